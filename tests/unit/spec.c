/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/core/core.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define OF(type, ...) (&(const type){ .size = sizeof(type), __VA_ARGS__ })
#define BIT SB_WALL_BIT

static void specs_are_checked(void **state)
{
	const sb_file_rule rel = { .size = sizeof rel, .path = "a", .access = SB_FILE_READ },
			   one = { .size = sizeof one, .path = "/a", .access = SB_FILE_READ },
			   two = { .size = sizeof two, .path = "/a", .access = SB_FILE_TMPFS };
	const sb_file_rule *const bad_files[] = { &rel, NULL },
				  *const contrary[] = { &one, &two, NULL },
				  *const good_files[] = { &one, NULL };
	const sb_other_options *const others[] = { OF(sb_other_options, .backend = "mine"), NULL },
				      *const nobody[] = { OF(sb_other_options, 0), NULL };
	const struct {
		sb_spec spec;
		int rc;
	} rows[] = {
		{ { 0 }, 0 },
		{ { .backends = LIST("linux", "mine") }, 0 },
		{ { .backends = LIST() }, SB_ERR_INVALID_SPEC },
		{ { .backends = LIST("") }, SB_ERR_INVALID_SPEC },
		{ { .limits = OF(sb_limits, .memory_bytes = 1 << 20) }, 0 },
		{ { .limits = OF(sb_limits, .memory_bytes = 1) }, SB_ERR_INVALID_LIMITS },
		{ { .limits = &(const sb_limits){ .memory_bytes = 1 << 20 } }, SB_ERR_INVALID },
		{ { .env = OF(sb_env, .base = SB_ENV_LIST, .allow = LIST()) }, 0 },
		{ { .env = OF(sb_env, .base = SB_ENV_LIST, .allow = LIST("A=b")) },
		  SB_ERR_INVALID_SPEC },
		{ { .env = OF(sb_env, .base = SB_ENV_LIST) }, SB_ERR_INVALID_SPEC },
		{ { .env = OF(sb_env, .base = SB_ENV_NONE, .allow = LIST("A")) },
		  SB_ERR_INVALID_SPEC },
		{ { .env = OF(sb_env, .inject = LIST("=x")) }, SB_ERR_INVALID_SPEC },
		{ { .env = OF(sb_env, .base = 4) }, SB_ERR_INVALID_SPEC },
		{ { .network = OF(sb_network, .mode = SB_NET_PROXY) }, SB_ERR_INVALID_SPEC },
		{ { .workspace = "/home/u/p" }, 0 },
		{ { .workspace = "p" }, 0 },
		{ { .workspace = ".." }, 0 },
		{ { .workspace = "" }, SB_ERR_INVALID_SPEC },
		{ { .workspace = "/" }, SB_ERR_INVALID_SPEC },
		{ { .workspace = "//./.." }, SB_ERR_INVALID_SPEC },
		{ { .workspace_mode = 5 }, SB_ERR_INVALID_SPEC },
		{ { .files = good_files }, 0 },
		{ { .files = bad_files }, SB_ERR_INVALID_PATH },
		{ { .files = contrary }, SB_ERR_INVALID_SPEC },
		{ { .profile = 5 }, SB_ERR_INVALID_SPEC },
		{ { .require = BIT(SB_WALL_ENV), .allow_weaker = BIT(SB_WALL_FILES) }, 0 },
		{ { .require = BIT(SB_WALL_COUNT) }, SB_ERR_UNSUPPORTED },
		{ { .allow_weaker = BIT(63) }, SB_ERR_UNSUPPORTED },
		{ { .require = BIT(SB_WALL_CPU), .allow_weaker = BIT(SB_WALL_CPU) },
		  SB_ERR_INVALID_SPEC },
		{ { .flags = SB_SPEC_REQUIRE_HARD }, 0 },
		{ { .flags = 2 }, SB_ERR_UNSUPPORTED },
		{ { .process_options = OF(sb_process_options, .flags = 1) }, SB_ERR_UNSUPPORTED },
		{ { .linux_options = OF(sb_linux_options, .flags = 4) }, SB_ERR_UNSUPPORTED },
		{ { .linux_options = OF(sb_linux_options, .hostname = "box-1.test") }, 0 },
		{ { .linux_options = OF(sb_linux_options, .hostname = "a b") },
		  SB_ERR_INVALID_SPEC },
		{ { .linux_options = OF(sb_linux_options, .hostname = "") }, SB_ERR_INVALID_SPEC },
		{ { .linux_options = OF(sb_linux_options, .cgroup_parent = "rel") },
		  SB_ERR_INVALID_PATH },
		{ { .linux_options = OF(sb_linux_options, .root = "/r/../x") },
		  SB_ERR_INVALID_PATH },
		{ { .linux_options =
			    OF(sb_linux_options, .uid_first = 1879048192, .uid_count = 65536) },
		  0 },
		{ { .linux_options =
			    OF(sb_linux_options, .uid_first = 4294967000, .uid_count = 1000) },
		  SB_ERR_INVALID_SPEC },
		{ { .linux_options = OF(sb_linux_options, .uid_count = 9) }, SB_ERR_INVALID_SPEC },
		{ { .wasm_options = OF(sb_wasm_options, .module = "/a/b.wasm") }, 0 },
		{ { .wasm_options = OF(sb_wasm_options, .module = "b.wasm") }, SB_ERR_INVALID_PATH },
		{ { .wasm_options = OF(sb_wasm_options, .module = "/a/../b.wasm") }, SB_ERR_INVALID_PATH },
		{ { .wasm_options = &(const sb_wasm_options){ .stack_bytes = 1 << 20 } }, SB_ERR_INVALID },
		{ { .other_options = others }, 0 },
		{ { .other_options = nobody }, SB_ERR_INVALID_SPEC },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_spec spec = rows[i].spec;
		sb_error err = { 0 };

		spec.size = sizeof spec;
		unit_row(i, sb_spec_validate(&spec, &err) == rows[i].rc);
		unit_row(i, rows[i].rc == 0 || (err.message[0] && err.where[0]));
	}
	assert_int_equal(sb_spec_validate(NULL, NULL), 0);
}

static int64_t read_input(void *user, void *data, size_t cap)
{
	(void)user;
	(void)data;
	(void)cap;
	return 0;
}

static void commands_are_checked(void **state)
{
	static char large[131073], fits[131072];
	static const char *many[41];
	const sb_file *const up[] = { OF(sb_file, .path = "../x", .data = "", .len = 0), NULL },
			     *const root[] = { OF(sb_file, .path = "./", .data = ""), NULL },
			     *const hollow[] = { OF(sb_file, .path = "a", .len = 3), NULL },
			     *const nameless[] = { OF(sb_file, .data = "a", .len = 1), NULL },
			     *const good[] = { OF(sb_file, .path = "a/b.txt", .data = "x",
						  .len = 1),
					       OF(sb_file, .path = "empty"), NULL };
	const struct {
		sb_command c;
		int rc;
	} rows[] = {
		{ { 0 }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true") }, 0 },
		{ { .argv = LIST("sh", "-c", "", "\xff") }, 0 },
		{ { .argv = LIST() }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("") }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .language = "python" }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .code = "x", .code_len = 1 }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .args = LIST("x") }, SB_ERR_INVALID_SPEC },
		{ { .language = "python", .code = "a\0b", .code_len = 3, .args = LIST("x") }, 0 },
		{ { .language = "python", .code = "", .code_len = 0 }, 0 },
		{ { .language = "python" }, SB_ERR_INVALID_SPEC },
		{ { .language = "", .code = "x", .code_len = 1 }, SB_ERR_INVALID_SPEC },
		{ { .language = " \t", .code = "x", .code_len = 1 }, SB_ERR_INVALID_SPEC },
		{ { .code = "x", .code_len = 1 }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true", large) }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true", fits) }, 0 },
		{ { .argv = many }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .env = LIST("A=b") }, 0 },
		{ { .argv = LIST("true"), .env = LIST("=x") }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .env = LIST("A") }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .cwd = "" }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .files = good }, 0 },
		{ { .argv = LIST("true"), .files = up }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .files = root }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .files = hollow }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .files = nameless }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .input = "x", .input_len = 1 }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"),
		    .input = "x",
		    .input_len = 1,
		    .input_kind = SB_INPUT_BYTES },
		  0 },
		{ { .argv = LIST("true"), .input_len = 1, .input_kind = SB_INPUT_BYTES },
		  SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .input_kind = SB_INPUT_FD, .input_fd = -1 },
		  SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .input_kind = SB_INPUT_FD, .input_fd = 0 }, 0 },
		{ { .argv = LIST("true"), .input_kind = SB_INPUT_CALLBACK }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"),
		    .input_kind = SB_INPUT_CALLBACK,
		    .read_input = read_input },
		  0 },
		{ { .argv = LIST("true"), .input_kind = 6 }, SB_ERR_UNSUPPORTED },
		{ { .argv = LIST("true"), .flags = 32 }, SB_ERR_UNSUPPORTED },
		{ { .argv = LIST("true"), .flags = SB_COMMAND_SHORT_PLAN }, 0 },
		{ { .argv = LIST("true"), .id = "build-7_a.b:c" }, 0 },
		{ { .argv = LIST("true"), .id = "" }, SB_ERR_INVALID_SPEC },
		{ { .argv = LIST("true"), .id = "a/b" }, SB_ERR_INVALID_SPEC },
	};

	(void)state;
	memset(large, 'a', sizeof large - 1);
	memset(fits, 'a', sizeof fits - 1);
	for (size_t i = 0; i + 1 < UNIT_LEN(many); i++)
		many[i] = fits;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		sb_command c = rows[i].c;
		sb_error err = { 0 };

		c.size = sizeof c;
		unit_row(i, spec_check_command(&c, &err) == rows[i].rc);
		unit_row(i, err.code == rows[i].rc);
		unit_row(i, rows[i].rc == 0 || err.message[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specs_are_checked),
		cmocka_unit_test(commands_are_checked),
	};

	return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
