# SPDX-License-Identifier: MIT
# compile.sh - the objects of QuickJS and of its driver, for js and for ts; sourced after common.sh.

js_flags="-std=gnu23 -O3 -D_GNU_SOURCE -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_PROCESS_CLOCKS"
js_flags="$js_flags -funsigned-char -fwrapv -Wno-c23-extensions"

# js_objects FOLDER: FOLDER/o/*.o without a TypeScript part.
js_objects() {
	source_tree quickjs "$1/quickjs"
	local src=$1/quickjs/usr/src/quickjs-ng
	local of=$pack at=$result flags=$js_flags
	js_flags="$js_flags -I$src -I$here -I$here/js -ffile-prefix-map=$1=. -ffile-prefix-map=$here=."
	compile_each "$1/o" "$js_flags" "$here"/js/{libc,main,session,source,no_ts}.c "$here/guest.c"
	# The engine itself takes most of the time, and is the same for both.
	pack=quickjs
	if ! cached "$quickjs" "$sysroot" "$toolchain_id" "$flags" "$(hash_of "$here"/js/{engine.c,js.h})"; then
		compile_each "$1/q" "$js_flags" "$here/js/engine.c" "$src"/{libregexp,libunicode,dtoa}.c
		keep "$1/q"
	fi
	cp "$result"/*.o "$1/o/"
	pack=$of result=$at
}

# js_link OUTPUT OBJECT...
js_link() {
	run $clang $target --no-wasm-opt -O2 -o "$@" $guest_link -Wl,--strip-all -Wl,-z,stack-size=1048576,--stack-first \
		-lwasi-emulated-signal -lwasi-emulated-process-clocks -lm
}
