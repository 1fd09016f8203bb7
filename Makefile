# SPDX-License-Identifier: MIT
# Thin: Meson builds.  build/ has the library and the tests (gcc), build/static the two programs
# (musl where it is installed), which are copied to build/sandbox and build/sb-launch.
BUILD ?= build
PREFIX ?= /usr/local
MUSL_DIR := $(firstword $(wildcard /usr/lib/$(shell uname -m)-linux-musl))
MUSL_CC := $(if $(MUSL_DIR),$(shell command -v musl-gcc 2>/dev/null))
Q := $(if $(V),,@)

.PHONY: all lib programs wasm demo test check abi cases vm vm-smoke walls leftovers asan tsan lint fuzz bench long install \
	deb dist arm64 clean

all: programs lib

$(BUILD)/build.ninja:
	$(Q)tools/need build
	$(Q)echo "building in $(BUILD), a minute or two; V=1 shows each step" >&2
	$(Q)meson setup $(BUILD) --prefix $(PREFIX) $(SETUP) >$(BUILD).setup.log 2>&1 || { cat $(BUILD).setup.log; exit 1; }
	$(Q)rm -f $(BUILD).setup.log

$(BUILD)/static/build.ninja: $(BUILD)/build.ninja
	$(Q)$(if $(MUSL_CC),CC=$(MUSL_CC)) meson setup $(BUILD)/static --prefix $(PREFIX) -Dprograms=true -Dbuildtype=release -Db_pie=true \
		$(if $(MUSL_CC),-Dmusl=$(MUSL_DIR)) -Dlinenoise="$$(tools/linenoise 2>/dev/null || { echo 'no line editor: `sandbox repl` edits as the terminal does' >&2; })" \
		>$(BUILD)/static.log 2>&1 || { cat $(BUILD)/static.log; exit 1; }

programs: $(BUILD)/static/build.ninja
	$(Q)ninja -C $(BUILD)/static $(if $(V),-v,--quiet)
	$(Q)for p in sandbox sb-launch; do cmp -s $(BUILD)/static/src/cli/$$p $(BUILD)/$$p || \
		install -m 755 $(BUILD)/static/src/cli/$$p $(BUILD)/$$p; done

lib: $(BUILD)/build.ninja
	$(Q)ninja -C $(BUILD) $(if $(V),-v,--quiet)

# The WebAssembly engine and the languages on board.  Results are kept in ~/.cache/sandbox-build; without
# them the engine takes 5 to 10 minutes once, or a download where there is no new Rust.
wasm:
	$(Q)tools/need wasm
	$(Q)wasm/build $(BUILD) $(PACKS)

demo:
	$(Q)tools/need demo
	$(Q)$(MAKE) --no-print-directory programs
	$(Q)wasm/engine/build --check $(BUILD) 2>/dev/null && wasm/build $(BUILD) lua js || \
		echo "languages on board: \`make wasm\` builds them and their engine (once; some minutes)" >&2
	$(Q)demo/run $(BUILD)/sandbox

# ---- Tests.  `make test` runs the parts one after the other and ends with one count of all.
test:
	$(Q)tools/need test
	$(Q)$(MAKE) --no-print-directory all
	$(Q)$(MAKE) --no-print-directory wasm || echo "wasm: not built here; its tests are skipped" >&2
	$(Q)tests/run $(or $(PARTS),check walls asan lint demo vm-smoke)

# Unit, launcher and conformance tests, the cases, and what must be true of the files built and installed.
check: all
	$(Q)bad=0; tests/meson_run $(BUILD) --part unit || bad=1; \
	tools/hardening $(BUILD)/sandbox $(BUILD)/sb-launch $(BUILD)/src/libsandbox.so || bad=1; \
	tools/readme-table --check $(BUILD)/sandbox || bad=1; \
	tests/cases/run $(if $(V),-v) || bad=1; \
	tests/readme/run $(if $(V),-v) || bad=1; \
	demo/recordings/shell $(if $(V),-v) || bad=1; \
	demo/recordings/repl $(if $(V),-v) || bad=1; \
	tests/install/run $(if $(V),-v) || bad=1; \
	tests/completion/run $(if $(V),-v) || bad=1; \
	tests/wasm/run $(if $(V),-v) || bad=1; \
	tests/wasm/suites $(if $(V),-v) || bad=1; \
	tests/wasm/backend $(if $(V),-v) || bad=1; \
	tests/wasm/taken $(if $(V),-v) || bad=1; \
	tests/wasm/shown $(if $(V),-v) || bad=1; \
	tests/wasm/state $(if $(V),-v) || bad=1; \
	tests/torture/cli_args $(if $(V),-v) || bad=1; \
	tests/torture/killed --count 100 $(if $(V),-v) || bad=1; \
	tests/torture/calls $(if $(V),-v) || bad=1; \
	tests/torture/repl $(if $(V),-v) || bad=1; \
	tests/torture/machines $(if $(V),-v) || bad=1; exit $$bad

# Writes what is new in the public headers to tests/abi.
abi: lib
	$(Q)tools/abi --update $(BUILD)/src/libsandbox.so && tools/abi --check $(BUILD)/src/libsandbox.so

cases: programs
	$(Q)tests/cases/run $(if $(V),-v) $(if $(ONLY),--only '$(ONLY)')

walls: all
	$(Q)bad=0; tests/walls/run $(if $(V),-v) $(if $(FILE),--file $(FILE)) || bad=1; \
	$(if $(FILE),,tests/walls/elsewhere || bad=1; tests/torture/leftovers $(if $(V),-v) || bad=1;) exit $$bad

# Other machines, as virtual ones: cgroup v2 alone, no user namespaces.  All of it; or what `make test` has time for.
vm: all
	$(Q)tools/need vm
	$(Q)tests/vm/run $(if $(V),-v) $(if $(MACHINE),--machine $(MACHINE))

vm-smoke: all
	$(Q)tests/vm/run --smoke $(if $(V),-v) $(if $(MACHINE),--machine $(MACHINE))

leftovers: programs
	$(Q)tests/torture/leftovers -v --runs $(or $(RUNS),500)

# The same tests with the library instrumented; the programs that they start are the plain ones.
asan: programs
	$(Q)[ -f build-asan/build.ninja ] || meson setup build-asan -Db_sanitize=address,undefined \
		-Db_lundef=false -Dbuildtype=debug >build-asan.setup.log 2>&1 || { cat build-asan.setup.log; exit 1; }
	$(Q)rm -f build-asan.setup.log
	$(Q)ninja -C build-asan --quiet && ln -sfn ../$(BUILD)/static build-asan/static
	$(Q)tests/meson_run build-asan --part asan

# Without the two that count pages and processes: the sanitizer has some of its own.
tsan: programs
	$(Q)[ -f build-tsan/build.ninja ] || meson setup build-tsan -Db_sanitize=thread \
		-Db_lundef=false -Dbuildtype=debug >build-tsan.setup.log 2>&1 || { cat build-tsan.setup.log; exit 1; }
	$(Q)rm -f build-tsan.setup.log
	$(Q)ninja -C build-tsan --quiet && ln -sfn ../$(BUILD)/static build-tsan/static
	$(Q)TSAN_OPTIONS=die_after_fork=0 tests/meson_run build-tsan --part tsan \
		--without launch_sample --without launch_cgroup

# Layers, sizes and leftovers in the source, and every warning as an error with both compilers.
lint:
	$(Q)bad=0; tools/layers || bad=1; tools/lint || bad=1; exit $$bad
	$(Q)[ -f build-lint/build.ninja ] || meson setup build-lint -Dwerror=true >build-lint.setup.log 2>&1 \
		|| { cat build-lint.setup.log; exit 1; }
	$(Q)rm -f build-lint.setup.log
	$(Q)ninja -C build-lint --quiet
	$(Q)[ -f build-lint/static/build.ninja ] || $(if $(MUSL_CC),CC=$(MUSL_CC)) meson setup build-lint/static \
		-Dprograms=true -Dbuildtype=release -Dwerror=true $(if $(MUSL_CC),-Dmusl=$(MUSL_DIR)) \
		>build-lint/static.log 2>&1 || { cat build-lint/static.log; exit 1; }
	$(Q)ninja -C build-lint/static --quiet

# Each fuzzer for FUZZ_S seconds, or only T (clang; what was found lies in build-fuzz/NAME).
fuzz:
	$(Q)tools/need fuzz
	$(Q)FUZZ_S=$(or $(FUZZ_S),30) fuzz/run $(T)

bench: all
	$(Q)tools/need bench
	$(Q)$(CC) -std=gnu17 -O2 -D_GNU_SOURCE -Iinclude bench/library.c -o $(BUILD)/bench-library $(BUILD)/src/libsandbox.so -lpthread
	$(Q)[ "$(ONLY)" = guests ] || bench/run $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only $(ONLY))
	$(Q)[ "$(or $(ONLY),guests)" != guests ] || bench/guests $(if $(ROUNDS),--rounds $(ROUNDS))

# What takes longer than a test run may.
long: all
	$(Q)tests/wasm/suites -v --long
	$(Q)LONG=1 tests/wasm/backend -v
	$(Q)tests/wasm/again || [ $$? = 77 ]
	$(Q)LONG=1 meson test -C $(BUILD) --suite conformance --no-rebuild --timeout-multiplier 10
	$(Q)for who in root user; do LONG=1 $(BUILD)/tests/warm/warm $$who $(CURDIR)/$(BUILD) || [ $$? = 77 ] || exit 1; done
	$(Q)LONG=1 $(BUILD)/tests/warm/warm-wasm here $(CURDIR)/$(BUILD)
	$(Q)tests/torture/leftovers -v --seed random --runs 5000
	$(Q)tests/torture/killed -v --seed random --count 3000
	$(Q)tests/torture/cli_args --seed random --count 10000
	$(Q)tests/torture/calls -v --seed random --count 400
	$(Q)tests/torture/repl -v --seed random --rounds 100
	$(Q)GLIBC_TUNABLES=glibc.malloc.tcache_count=0 $(BUILD)/tests/torture/torture-many $(CURDIR)/$(BUILD) 10000
	$(Q)for i in 1 2 3; do tests/walls/run || exit 1; done
	$(Q)tools/arm64
	$(Q)tests/deb -v
	$(Q)$(MAKE) --no-print-directory tsan
	$(Q)$(MAKE) --no-print-directory fuzz FUZZ_S=300

# PREFIX counts here, too, whatever the folder was set up with.
install: $(BUILD)/static/build.ninja
	$(Q)for b in $(BUILD) $(BUILD)/static; do \
		grep -qF '"name": "prefix", "value": "$(PREFIX)"' $$b/meson-info/intro-buildoptions.json || \
		meson configure $$b --prefix $(PREFIX) || exit 1; done
	$(Q)$(MAKE) --no-print-directory all
	$(Q)meson install -C $(BUILD) --no-rebuild --quiet
	$(Q)meson install -C $(BUILD)/static --no-rebuild --quiet
	$(Q)[ ! -f $(BUILD)/wasm/engine ] || wasm/install $(BUILD) $(DESTDIR)$(PREFIX)/libexec/sandbox
	$(Q)[ -n "$(DESTDIR)" ] || [ $$(id -u) != 0 ] || ldconfig

# A Debian package, in OUT; and the sources of the last commit as one archive, the same wherever it is made.
deb:
	$(Q)tree=$$(mktemp -d) && trap 'rm -rf "$$tree"' EXIT && \
	$(MAKE) --no-print-directory install BUILD=build-deb SETUP='-Dtests=false -Dman=enabled' PREFIX=/usr DESTDIR=$$tree && \
	{ [ ! -f $(BUILD)/wasm/engine ] || wasm/install $(BUILD) $$tree/usr/libexec/sandbox; } && \
	rm -f $$tree/usr/libexec/sandbox/wasm/*/stamp && packaging/deb $$tree $(or $(OUT),.)

dist:
	$(Q)tools/dist $(or $(OUT),.)
	$(Q)[ ! -f $(BUILD)/wasm/engine ] || wasm/bundle $(BUILD) $(or $(OUT),.)/sandbox-wasm-$(shell uname -m).tar.xz

# For aarch64, under qemu-user: what needs no sandbox.
arm64:
	$(Q)tools/arm64

clean:
	rm -rf $(BUILD) build-arm64 build-deb build-asan build-tsan build-lint build-fuzz build-install
