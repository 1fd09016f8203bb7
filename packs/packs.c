/* SPDX-License-Identifier: MIT */
/*
 * packs.c - the languages, as data: how they are found on the host (linux), and which module runs them
 * (wasm).
 *
 * A code file lies in a read-only place, so Python is told to write no bytecode beside it.  Output
 * buffering is left as each language has it.  "limits" raise what a run gets by default where the
 * profile's is too little; "memory_floor_bytes" is the least memory.limit_in_bytes under which a
 * program that prints one line was seen to end well, and some room for the box itself.
 */
#include <sandbox/sandbox.h>

#include "drivers.h" /* generated */

/* clang-format off */
#define PACKS_LIST(...) (const char *const[]){ __VA_ARGS__, NULL }
/* clang-format on */
#define PACKS_MIB ((uint64_t)1 << 20)

#define PACKS_EVAL (SB_CAP_SESSIONS | SB_CAP_EVAL)

#define PACKS_HOST_WAY(id, file, programs, command, driver, more)                                       \
	static const sb_pack_way id##_way = { .size = sizeof(sb_pack_way),                         \
					      .backend = "linux",                                  \
					      .find = programs,                                    \
					      .run = command,                                      \
					      .code_file = file,                                   \
					      .session_driver = driver,                            \
					      .caps = SB_CAP_FILES | SB_CAP_SPLIT_STREAMS | more };  \
	static const sb_pack_way *const id##_ways[] __attribute__((unused)) = { &id##_way, NULL }

/* Of a language with a module that was built beside our programs; see docs/internals/wasm-pack.md. */
#define PACKS_WASM_WAY(id, name_, file, command)                                                   \
	static const sb_artifact id##_module = { .size = sizeof(sb_artifact),                      \
						 .name = name_,                                    \
						 .url = "pack:" name_ };                           \
	static const sb_pack_way id##_wasm_way = { .size = sizeof(sb_pack_way),                    \
						   .backend = "wasm",                              \
						   .run = command,                                 \
						   .code_file = file,                              \
						   .module = &id##_module,                         \
						   .session_driver = "", /* the module's own */   \
						   .caps = SB_CAP_FILES | SB_CAP_SPLIT_STREAMS |   \
							   PACKS_EVAL }
#define PACKS_TWO_WAYS(id)                                                                         \
	static const sb_pack_way *const id##_both[] = { &id##_way, &id##_wasm_way, NULL }

PACKS_WASM_WAY(packs_python, "python", "__main__.py", PACKS_LIST("python3", "{code}", "{args}"));
PACKS_WASM_WAY(packs_js, "js", "main.js", PACKS_LIST("qjs", "{code}", "{args}"));
PACKS_WASM_WAY(packs_ts, "ts", "main.ts", PACKS_LIST("qjs", "{code}", "{args}"));
PACKS_WASM_WAY(packs_lua, "lua", "main.lua", PACKS_LIST("lua", "{code}", "{args}"));

static const sb_pack_way packs_python_way = {
	.size = sizeof(sb_pack_way),
	.backend = "linux",
	.find = PACKS_LIST("python3", "python"),
	.run = PACKS_LIST("python3", "-B", "{code}", "{args}"),
	.code_file = "__main__.py",
	.preload = PACKS_LIST("json", "re", "datetime", "math", "random", "collections", "functools",
			      "itertools"),
	.caps = SB_CAP_FILES | SB_CAP_SPLIT_STREAMS | PACKS_EVAL,
	.session_driver = python_driver,
	.warm_driver = python_warm,
};
PACKS_TWO_WAYS(packs_python);
PACKS_HOST_WAY(packs_js, "main.js", PACKS_LIST("node", "nodejs"),
	       /* the code may be a descriptor without a name: it is not to be resolved */
	       PACKS_LIST("node", "--preserve-symlinks-main", "{code}", "{args}"), js_driver, PACKS_EVAL);
PACKS_HOST_WAY(packs_bash, "main.sh", PACKS_LIST("bash", "sh"),
	       PACKS_LIST("bash", "{code}", "{args}"), bash_driver, PACKS_EVAL);
PACKS_HOST_WAY(packs_lua, "main.lua", PACKS_LIST("lua5.4", "lua5.3", "lua"),
	       PACKS_LIST("lua", "{code}", "{args}"), lua_driver, PACKS_EVAL);
PACKS_TWO_WAYS(packs_js);
PACKS_TWO_WAYS(packs_lua);
PACKS_HOST_WAY(packs_ruby, "main.rb", PACKS_LIST("ruby"), PACKS_LIST("ruby", "{code}", "{args}"),
	       NULL, 0);
PACKS_HOST_WAY(packs_perl, "main.pl", PACKS_LIST("perl"), PACKS_LIST("perl", "{code}", "{args}"),
	       NULL, 0);

static const sb_pack packs_python = {
	.size = sizeof(sb_pack),
	.name = "python",
	.version = "3",
	.aliases = PACKS_LIST("py", "python3"),
	.extensions = PACKS_LIST(".py"),
	.ways = packs_python_both,
	.memory_floor_bytes = 12 * PACKS_MIB,
};

/* Its heap, its compiled code and a pool of eleven threads do not fit the profile's 128 MiB. */
static const sb_limits packs_js_limits = {
	.size = sizeof(sb_limits),
	.memory_bytes = 256 * PACKS_MIB,
	.procs = 64,
};
static const sb_pack packs_js = {
	.size = sizeof(sb_pack),
	.name = "js",
	.version = "node",
	.aliases = PACKS_LIST("javascript", "node", "nodejs"),
	.extensions = PACKS_LIST(".js", ".mjs", ".cjs"),
	.ways = packs_js_both,
	.limits = &packs_js_limits,
	.memory_floor_bytes = 48 * PACKS_MIB,
};

static const sb_pack packs_bash = {
	.size = sizeof(sb_pack),
	.name = "bash",
	.version = "5",
	.aliases = PACKS_LIST("sh", "shell"),
	.extensions = PACKS_LIST(".sh", ".bash"),
	.ways = packs_bash_ways,
	.memory_floor_bytes = 4 * PACKS_MIB,
};

static const sb_pack packs_lua = {
	.size = sizeof(sb_pack),
	.name = "lua",
	.version = "5",
	.aliases = PACKS_LIST("lua5.4", "lua54", "lua5.3", "lua53"),
	.extensions = PACKS_LIST(".lua"),
	.ways = packs_lua_both,
	.memory_floor_bytes = 4 * PACKS_MIB,
};

static const sb_pack packs_ruby = {
	.size = sizeof(sb_pack),
	.name = "ruby",
	.version = "3",
	.aliases = PACKS_LIST("rb"),
	.extensions = PACKS_LIST(".rb"),
	.ways = packs_ruby_ways,
	.memory_floor_bytes = 16 * PACKS_MIB,
};

static const sb_pack packs_perl = {
	.size = sizeof(sb_pack),
	.name = "perl",
	.version = "5",
	.aliases = PACKS_LIST("pl"),
	.extensions = PACKS_LIST(".pl"),
	.ways = packs_perl_ways,
	.memory_floor_bytes = 4 * PACKS_MIB,
};

static const sb_pack_way *const packs_ts_ways[] = { &packs_ts_wasm_way, NULL };
static const sb_pack packs_ts = {
	.size = sizeof(sb_pack),
	.name = "ts",
	.version = "5",
	.aliases = PACKS_LIST("typescript"),
	.extensions = PACKS_LIST(".ts", ".mts", ".cts"),
	.ways = packs_ts_ways,
	.memory_floor_bytes = 16 * PACKS_MIB,
};

/* The code is the module. */
static const sb_pack_way packs_wasm_way = {
	.size = sizeof(sb_pack_way),
	.backend = "wasm",
	.run = PACKS_LIST("main.wasm", "{args}"),
	.code_file = "main.wasm",
	.caps = SB_CAP_FILES | SB_CAP_SPLIT_STREAMS,
};
static const sb_pack_way *const packs_wasm_ways[] = { &packs_wasm_way, NULL };
static const sb_pack packs_wasm = {
	.size = sizeof(sb_pack),
	.name = "wasm",
	.version = "1",
	.aliases = PACKS_LIST("wasi", "wasip1"),
	.extensions = PACKS_LIST(".wasm"),
	.ways = packs_wasm_ways,
	.memory_floor_bytes = PACKS_MIB,
};

const sb_pack *const *sb_packs_builtin(void)
{
	static const sb_pack *const all[] = {
		&packs_bash, &packs_js,	  &packs_lua, &packs_perl, &packs_python,
		&packs_ruby, &packs_ts, &packs_wasm, NULL,
	};

	return all;
}
