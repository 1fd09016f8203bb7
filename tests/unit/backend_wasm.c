/* SPDX-License-Identifier: MIT */
/* backend_wasm.c - what a guest of the backend wasm cannot have is refused, and named. */
#include "unit.h"
#include "../../src/backend/wasm/wasm.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
	static const struct { uint64_t stack; int code; } row[] = {
		{ 0, 0 }, { 64 << 10, 0 }, { 1 << 20, 0 }, { 8 << 20, 0 }, { 1, SB_ERR_INVALID_SPEC },
		{ (64 << 10) - 1, SB_ERR_INVALID_SPEC }, { (8 << 20) + 1, SB_ERR_INVALID_SPEC },
		{ SB_UNLIMITED, SB_ERR_INVALID_SPEC },
	};
	const sb_wasm_options dir = { .size = sizeof dir, .fs_dir = "/srv" }, fuel = { .size = sizeof fuel, .fuel = 1 },
			      module = { .size = sizeof module, .module = "/m.wasm" },
			      http = { .size = sizeof http, .flags = SB_WASM_HTTP },
			      clock = { .size = sizeof clock, .flags = SB_WASM_CLOCK };
	sb_error err;

	(void)state;
	assert_int_equal(check((sb_box_request){ .pack = &pack }, &err), 0);
	assert_int_equal(check((sb_box_request){ .pack = &pack, .options = &clock }, &err), 0);
	expect((sb_box_request){ .pack = &pack, .options = &dir }, "a directory of the host");
	assert_int_equal(check((sb_box_request){ .pack = &pack, .options = &module }, &err), SB_ERR_INVALID_SPEC);
	assert_int_equal(check((sb_box_request){ .options = &module }, &err), SB_ERR_NOT_FOUND);
	expect((sb_box_request){ .pack = &pack, .options = &fuel }, "instructions");
	expect((sb_box_request){ .pack = &pack, .options = &http }, "network");
	for (size_t i = 0; i < UNIT_LEN(row); i++) {
		const sb_wasm_options o = { .size = sizeof o, .stack_bytes = row[i].stack };

		unit_row(i, check((sb_box_request){ .pack = &pack, .options = &o }, &err) == row[i].code);
		unit_row(i, !row[i].code || strstr(err.message, "stack_bytes"));
	}
}

static void walls(void **state)
{
	const sb_network host = { .size = sizeof host, .mode = SB_NET_HOST };
	const char *const sockets[] = { "/run/s", NULL };
	const sb_network named = { .size = sizeof named, .mode = SB_NET_DENY_ALL, .unix_sockets = sockets };
	const sb_limits rate = { .size = sizeof rate, .cpu_millicores = 500 };

	(void)state;
	expect((sb_box_request){ .pack = NULL }, "a program of the host");
	expect((sb_box_request){ .pack = &pack, .network = &host }, "a network");
	expect((sb_box_request){ .pack = &pack, .network = &named }, "a socket of the host's");
	expect((sb_box_request){ .pack = &pack, .limits = &rate }, "a rate of CPU time");
}

/* ---- Files of the host --------------------------------------------------------------------------- */

static int find(const sb_file_rule *rule, uint64_t weaker, wasm_shown *shown, sb_error *err)
{
	static const sb_limits limits = { .size = sizeof limits, .fs_bytes = 1 << 20 };
	const sb_file_rule *const rules[] = { rule, NULL };
	const sb_spec spec = { .size = sizeof spec, .files = rules, .allow_weaker = weaker };
	const sb_box_request request = { .size = sizeof request, .pack = &pack, .limits = &limits, .spec = &spec,
					 .workspace_fd = -1 };
	static sb_state state = { .key = "engine" };

	memset(err, 0, sizeof *err);
	return shown_find(&state, &request, shown, err);
}

/* A guest has these places itself, and nothing of the host's takes them, or a part of them. */
static void places(void **state)
{
	static const struct { const char *at; int code; } row[] = {
		{ "/in", SB_ERR_INVALID_SPEC },	      { "/in/x", SB_ERR_INVALID_SPEC },
		{ "/out", SB_ERR_INVALID_SPEC },      { "/out/x", SB_ERR_INVALID_SPEC },
		{ "/work", SB_ERR_INVALID_SPEC },     { "/work/x", 0 },
		{ "/tmp", SB_ERR_INVALID_SPEC },      { "/tmp/x", 0 },
		{ "/home", SB_ERR_INVALID_SPEC },     { "/home/x", 0 },
		{ "/home/sandbox", SB_ERR_INVALID_SPEC }, { "/home/sandbox/x", 0 },
		{ "/run", SB_ERR_INVALID_SPEC },      { "/run/code", SB_ERR_INVALID_SPEC },
		{ "/usr", SB_ERR_INVALID_SPEC },      { "/usr/local/lib/x", SB_ERR_INVALID_SPEC },
		{ "/usr/share", 0 },		      { "/data", 0 },
		{ "/", SB_ERR_INVALID_SPEC },	      { "/dev", SB_ERR_INVALID_SPEC },
	};
	wasm_shown shown;
	sb_error err;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(row); i++) {
		const sb_file_rule rule = { .size = sizeof rule, .path = row[i].at, .source = "/tmp", .access = SB_FILE_READ };
		int rc = find(&rule, 0, &shown, &err);

		unit_row(i, rc == row[i].code);
		if (rc)
			continue;
		unit_row(i, shown_any(&shown) && !shown_writes(&shown));
		shown_release(&shown);
	}
}

static void no_quota_of_the_host(void **state)
{
	const sb_file_rule rule = { .size = sizeof rule, .path = "/data", .source = "/tmp", .access = SB_FILE_WRITE };
	wasm_shown shown, kept;
	sb_error err;

	(void)state;
	assert_int_equal(find(&rule, 0, &shown, &err), SB_ERR_UNENFORCEABLE);
	assert_int_equal(find(&rule, SB_WALL_BIT(SB_WALL_DISK), &shown, &err), 0);
	assert_true(shown_writes(&shown));
	assert_true(shown_keep(&shown, &kept));
	shown_release(&shown);
	assert_true(shown_writes(&kept)); /* with texts and descriptors of its own */
	shown_release(&kept);
}

/* Where no owner can be mapped a guest of root does not write: refused in the plan, before anything starts. */
static void unmapped(void **state)
{
	static const struct { uint32_t mode; bool works; int code; bool writes; } row[] = {
		{ SB_WORKSPACE_WRITE, false, SB_ERR_UNSUPPORTED, false }, { SB_WORKSPACE_WRITE, true, 0, true },
		{ SB_WORKSPACE_READ, false, 0, false },			  { SB_WORKSPACE_DEFAULT, false, 0, false },
		{ SB_WORKSPACE_DEFAULT, true, 0, true },
	};
	const sb_wasm_options module = { .size = sizeof module, .module = "/m.wasm" };
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const sb_limits none = { .size = sizeof none };
	sb_error err;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(row); i++) {
		const sb_spec spec = { .size = sizeof spec, .workspace_mode = row[i].mode };
		const sb_box_request request = { .size = sizeof request, .limits = &none, .spec = &spec,
			.workspace = "/srv/project", .workspace_fd = fd, .options = &module };
		sb_state s = { .key = "engine", .facts = { .root_caller = true, .uid_first = 1000000, .uid_count = 9 },
			       .idmap = { .count = 1, .at = { { 0x9fa0, row[i].works } } } };
		wasm_shown shown;
		int rc = shown_find(&s, &request, &shown, &err);

		unit_row(i, rc == row[i].code);
		unit_row(i, !rc || strstr(err.message, "--workspace-mode ro"));
		if (rc)
			continue;
		unit_row(i, shown_writes(&shown) == row[i].writes);
		shown_release(&shown);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(no_quota_of_the_host),
		cmocka_unit_test(unmapped),
		cmocka_unit_test(options),
		cmocka_unit_test(walls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
