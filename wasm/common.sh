# SPDX-License-Identifier: MIT
# common.sh - what the build scripts of the guests share: the cache, pinned sources, the compiler.
#
# Sourced by NAME/build with $here set to the folder of this file.  Everything lies below
# ${XDG_CACHE_HOME:-~/.cache}/sandbox-build: `source-HASH/` one verified archive each, `KEY/` a
# finished result.  What is being made lies in a `.tmp.` folder and gets its name by rename, so that
# a folder with its name is whole; two builds at once end with one of two equal results.
set -eu
export LC_ALL=C TZ=UTC0 SOURCE_DATE_EPOCH=1700000000
umask 022
cache=${XDG_CACHE_HOME:-${HOME:?is not set}/.cache}/sandbox-build
no_word=$'*[][ \t\n\'"`$\\;&|<>(){}*?#=]*' # compilers and configure scripts take a path as one word

say() { printf '%s: %s\n' "${pack:-wasm}" "$*" >&2; }
die() {
	say "$*"
	exit 1
}

case $cache in
$no_word) die "\"$cache\": configure scripts take no path with such characters: set XDG_CACHE_HOME to another folder" ;;
esac

work= # the folder of this process, gone at its end
scratch() {
	[ -n "$work" ] && return
	mkdir -p "$cache"
	find "$cache" -maxdepth 1 -name '.tmp.*' -mmin +600 -exec rm -rf {} + # of builds that were killed
	work=$(mktemp -d "$cache/.tmp.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	case $here in
	$no_word) # by a name that is one
		ln -s "$here" "$work/here"
		here=$work/here
		;;
	esac
}

# run COMMAND...: its output into a log, of which the end is shown if it fails.
run() {
	"$@" >"$work/log" 2>&1 || {
		tail -n 15 "$work/log" >&2
		die "\"$1\" failed"
	}
}

hash_of() { sha256sum "$@" | cut -d ' ' -f 1 | sha256sum | cut -c 1-16; }

# ---- Pinned sources ----------------------------------------------------------------------------

# Private lists of the machine's own Debian mirror for another suite of it: the system's stay as they are.
apt_lists=
apt_lists_for() {
	[ "$apt_lists" = "$1" ] && return
	command -v apt-get >/dev/null || die "sources come from Debian's packages: there is no apt-get here"
	local site keys=/usr/share/keyrings/debian-archive-keyring.gpg
	site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sort -u | head -n 1)
	[ -n "$site" ] && [ -r $keys ] || die "no mirror of Debian is among this machine's package sources"
	apt=$work/apt-$1
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	printf '%s [signed-by=%s] %s %s main\n' deb $keys "$site" "$1" deb-src $keys "$site" "$1" >"$apt/sources.list"
	say "reading the package lists of Debian's $1"
	run apt_get update
	apt_lists=$1
}

apt_get() {
	apt-get -q -o Dir::State="$apt" -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" \
		-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false \
		-o APT::Sandbox::User=root -o Acquire::Retries=2 "$@"
}

# fetch_one KIND PACKAGE VERSION FILE SHA256, into the current folder
fetch_one() {
	case $1 in
	deb:*)
		apt_get download "$2=$3" >"$work/log" 2>&1 && mv "$2"_*.deb "$4"
		;;
	src:*) # the upstream archive stays the same when the package is revised
		apt_get source --download-only --tar-only "$2=$3" >"$work/log" 2>&1 ||
			apt_get source --download-only --tar-only "$2" >"$work/log" 2>&1
		;;
	npm)
		command -v npm >/dev/null || die "\"$2\" comes through npm, which is not installed"
		npm pack --silent --ignore-scripts "$2@$3" >"$work/log" 2>&1
		;;
	pypi) # the hash is looked at before anything of the archive is used
		python3 -m pip --version >"$work/log" 2>&1 || die "\"$2\" comes through pip, which is not installed"
		printf '%s==%s --hash=sha256:%s\n' "$2" "$3" "$5" >"$work/required"
		PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip download -q --no-deps --no-binary "$2" --require-hashes \
			-r "$work/required" -d . >"$work/log" 2>&1
		;;
	*) die "sources: \"$1\" is no kind of source" ;;
	esac
}

# source_file NAME: sets $file to the verified archive, fetching it where the cache has none.
source_file() {
	local name kind package version archive sum rest
	while read -r name kind package version archive sum rest; do
		[ "$name" = "$1" ] || continue
		file=$cache/source-$(printf %.16s "$sum")/$archive
		if [ ! -f "$file" ] || ! printf '%s  %s\n' "$sum" "$file" | sha256sum -c --status; then
			scratch
			say "fetching $package $version"
			case $kind in deb:* | src:*) apt_lists_for "${kind#*:}" ;; esac
			rm -rf "$work/fetch" && mkdir "$work/fetch"
			(cd "$work/fetch" && fetch_one "$kind" "$package" "$version" "$archive" "$sum") || {
				tail -n 3 "$work/log" >&2
				continue
			}
			printf '%s  %s\n' "$sum" "$work/fetch/$archive" | sha256sum -c --status ||
				die "\"$package\" $version is not what it was: its SHA-256 differs from the pinned one"
			rm -rf "${file%/*}"
			mv "$work/fetch" "${file%/*}" 2>/dev/null || [ -f "$file" ] || die "cannot write \"${file%/*}\""
		fi
		return 0
	done <"$here/sources"
	die "\"$1\" cannot be fetched: is this machine offline, or is that version gone?"
}

# source_tree NAME FOLDER: unpacks it there.
source_tree() {
	source_file "$1"
	mkdir -p "$2"
	case $file in
	*.deb) dpkg-deb -x "$file" "$2" ;;
	*) tar -xf "$file" -C "$2" --strip-components=1 --no-same-owner ;;
	esac
}

# ---- The compiler ------------------------------------------------------------------------------

llvm=22
toolchain() {
	for tool in clang-$llvm wasm-ld-$llvm llvm-ar-$llvm llvm-ranlib-$llvm; do
		command -v $tool >/dev/null || die "\"$tool\" is missing; install clang-$llvm lld-$llvm llvm-$llvm libclang-rt-$llvm-dev-wasm32"
	done
	clang=clang-$llvm ar=llvm-ar-$llvm ranlib=llvm-ranlib-$llvm
	toolchain_id=$($clang --version | head -n 1)
	source_file wasi-libc
	sysroot=${file%/*}/root/usr
	if [ ! -d "$sysroot" ]; then
		scratch
		mkdir "$work/root"
		dpkg-deb -x "$file" "$work/root"
		mv "$work/root" "${sysroot%/usr}" 2>/dev/null || [ -d "$sysroot" ]
	fi
	target="--target=wasm32-wasip1 --sysroot=$sysroot"
}

# guest.c; guest.h
guest_link="-Wl,--wrap=__wasilibc_find_relpath_alloc -Wl,--export=__stack_pointer"

# cached KEY-WORDS...: sets $result to the folder of that key; true if it is there already.  Where the
# cache lies does not count.
cached() {
	result=$cache/$pack-$(printf '%s\n' "${@//"$cache/"/}" | sha256sum | cut -c 1-16)
	[ -f "$result/done" ]
}

# keep FOLDER: makes it the result.  Who is there first stays: somebody may be copying from it.
keep() {
	: >"$1/done"
	[ -f "$result/done" ] || rm -rf "$result"
	mv -T "$1" "$result" 2>/dev/null || [ -f "$result/done" ] || die "cannot write \"$result\""
}

# deliver OUTDIR: lays the result over OUTDIR/wasm/NAME by rename.
deliver() {
	local to=$1/wasm/$pack
	mkdir -p "$1/wasm"
	rm -rf "$to.new" && mkdir "$to.new"
	cp -p "$result"/* "$to.new/" && rm -f "$to.new/done"
	rm -rf "$to"
	mv -T "$to.new" "$to"
}

# compile_each FOLDER FLAGS FILE...: objects beside each other, as many at once as there are cores.  Headers that
# name themselves (assert) do not say where the cache lies.
compile_each() {
	local out=$1 flags=$2
	shift 2
	mkdir -p "$out"
	printf '%s\n' "$@" | xargs -P "$(nproc)" -I @ sh -c '
		n=$(basename "$1" .c); exec '"$clang $target -ffile-prefix-map=$cache=. $flags"' -c "$1" -o "'"$out"'/$n.o"' sh @ \
		>"$work/log" 2>&1 || {
		tail -n 15 "$work/log" >&2
		die "a file does not compile"
	}
}

# ---- Snapshots ---------------------------------------------------------------------------------

wizer_find() {
	source_file "wizer-$(uname -m)"
	wizer=${file%/*}/wizer
	[ -x "$wizer" ] && return
	scratch
	tar -xf "$file" -C "$work" --strip-components=1 package/wizer
	mv "$work/wizer" "$wizer"
}

# snapshot IN OUT [wizer's options]: runs its wizer.initialize; what memory then holds goes into OUT.
snapshot() {
	local in=$1 out=$2
	shift 2
	run "$wizer" --allow-wasi --inherit-env false -r _start=wizer.resume -o "$out" "$@" -- "$in"
}
