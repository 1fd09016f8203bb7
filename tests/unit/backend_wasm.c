/* SPDX-License-Identifier: MIT */
/* backend_wasm.c - what a guest of the backend wasm cannot have is refused, and named. */
#include "unit.h"
#include "../../src/backend/wasm/wasm.h"

#include <string.h>

static const sb_pack pack = { .size = sizeof pack, .name = "lua" };

static int check(sb_box_request request, sb_error *err)
{
	static const sb_limits limits = { .size = sizeof limits };
	static const sb_spec spec = { .size = sizeof spec };
	sb_state state = { .key = "engine" };

	request.size = sizeof request;
	request.limits = request.limits ? request.limits : &limits;
	request.spec = request.spec ? request.spec : &spec;
	memset(err, 0, sizeof *err);
	return wasm_check(&state, &request, err);
}

static void expect(sb_box_request request, const char *words)
{
	sb_error err;

	assert_int_equal(check(request, &err), SB_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, words));
	assert_non_null(strstr(err.message, "--backend linux"));
}

static void options(void **state)
{
	const sb_wasm_options dir = { .size = sizeof dir, .fs_dir = "/srv" }, fuel = { .size = sizeof fuel, .fuel = 1 },
			      module = { .size = sizeof module, .module = "/m.wasm" },
			      stack = { .size = sizeof stack, .stack_bytes = 1 << 20 },
			      http = { .size = sizeof http, .flags = SB_WASM_HTTP },
			      clock = { .size = sizeof clock, .flags = SB_WASM_CLOCK };
	sb_error err;

	(void)state;
	assert_int_equal(check((sb_box_request){ .pack = &pack }, &err), 0);
	assert_int_equal(check((sb_box_request){ .pack = &pack, .options = &clock }, &err), 0);
	expect((sb_box_request){ .pack = &pack, .options = &dir }, "a directory of the host");
	expect((sb_box_request){ .pack = &pack, .options = &module }, "a module");
	expect((sb_box_request){ .pack = &pack, .options = &fuel }, "instructions");
	expect((sb_box_request){ .pack = &pack, .options = &stack }, "stack");
	expect((sb_box_request){ .pack = &pack, .options = &http }, "network");
}

static void walls(void **state)
{
	const sb_file_rule shown = { .size = sizeof shown, .path = "/usr", .access = SB_FILE_READ };
	const sb_file_rule *const rules[] = { &shown, NULL };
	const sb_spec files = { .size = sizeof files, .files = rules };
	const sb_network host = { .size = sizeof host, .mode = SB_NET_HOST };
	const sb_limits rate = { .size = sizeof rate, .cpu_millicores = 500 };

	(void)state;
	expect((sb_box_request){ .pack = NULL }, "a program of the host");
	expect((sb_box_request){ .pack = &pack, .workspace = "/srv" }, "a workspace");
	expect((sb_box_request){ .pack = &pack, .spec = &files }, "files of the host");
	expect((sb_box_request){ .pack = &pack, .network = &host }, "a network");
	expect((sb_box_request){ .pack = &pack, .limits = &rate }, "a rate of CPU time");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options),
		cmocka_unit_test(walls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
