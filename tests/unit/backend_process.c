/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/backend/builtin.h"
#include "../../src/backend/process/process.h"
#include "../../src/core/core.h"
#include "host_tree.h"

/* The path is looked up beneath the directory that was opened once. */
static void the_working_directory_stays_in_the_workspace(void **state)
{
	static const struct { const char *cwd; int code; } rows[] = {
		{ "ws", 0 }, { "ws/sub", 0 }, { "ws/inner", 0 },
		{ "ws/none", SB_ERR_NOT_FOUND }, { "ws/file", SB_ERR_NOT_DIR },
		{ "ws/file/x", SB_ERR_NOT_DIR }, { "ws/out", SB_ERR_PATH_TRAVERSAL },
		{ "ws/out/none", SB_ERR_PATH_TRAVERSAL }, { "ws/up", SB_ERR_PATH_TRAVERSAL },
		{ "other", SB_ERR_PATH_TRAVERSAL }, { "ws2", SB_ERR_PATH_TRAVERSAL },
	};
	char ws[256];
	host_tree t;
	sb_error err;
	size_t i;
	int fd;

	(void)state;
	host_tree_open(&t);
	host_make(&t, "ws/sub/");
	host_make(&t, "ws2/");
	host_make(&t, "other/");
	host_write(&t, "ws/file", "");
	host_link(&t, "sub", "ws/inner");
	host_link(&t, "/etc", "ws/out");
	host_link(&t, "../other", "ws/up");
	snprintf(ws, sizeof ws, "%s", host_path(&t, "ws"));
	fd = open(ws, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, process_check_cwd(fd, ws, host_path(&t, rows[i].cwd), &err) == rows[i].code);
	/* a swap of the path afterwards changes nothing */
	assert_int_equal(rename(ws, host_path(&t, "moved")), 0);
	host_link(&t, "/etc", "ws");
	assert_int_equal(process_check_cwd(fd, ws, host_path(&t, "ws/sub"), &err), 0);
	assert_int_equal(process_check_cwd(fd, ws, host_path(&t, "ws/ssl"), &err), SB_ERR_NOT_FOUND);
	close(fd);
	assert_int_equal(process_check_cwd(-1, NULL, t.dir, &err), 0);
	assert_int_equal(process_check_cwd(-1, NULL, host_path(&t, "no"), &err), SB_ERR_NOT_FOUND);
	host_tree_close(&t);
}

static void plan_of(const sb_network *network, const sb_limits *limits, sb_plan **plan, int *rc)
{
	const sb_box_request request = { .size = sizeof request, .limits = limits, .network = network,
		.workspace_fd = -1 };
	sb_error err;

	assert_int_equal(plan_new("process", plan, &err), 0);
	*rc = backend_process.plan(NULL, &request, *plan, &err);
}

static void it_claims_nothing_that_it_does_not_hold(void **state)
{
	static const int none[] = { SB_WALL_FILES, SB_WALL_NETWORK, SB_WALL_SYSCALLS,
		SB_WALL_PRIVILEGES, SB_WALL_PIDS, SB_WALL_DISK };
	const sb_network net = { .size = sizeof net, .mode = SB_NET_DENY_ALL };
	const sb_network rules = { .size = sizeof rules, .mode = SB_NET_ALLOW_LIST };
	sb_limits limits = { .size = sizeof limits, .memory_bytes = 1 << 20, .cpu_ms = 5, .procs = 4,
		.fs_bytes = 1 << 20 };
	sb_enforcement held = { .size = sizeof held };
	sb_plan *plan;
	size_t i;
	int rc, wall;

	(void)state;
	plan_of(&net, &limits, &plan, &rc);
	assert_int_equal(rc, 0);
	for (i = 0; i < UNIT_LEN(none); i++)
		unit_row(i, sb_plan_level(plan, none[i]) == SB_LEVEL_NONE);
	assert_int_equal(sb_plan_level(plan, SB_WALL_MEMORY), SB_LEVEL_SAMPLED);
	assert_int_equal(sb_plan_level(plan, SB_WALL_CPU), SB_LEVEL_SAMPLED);
	for (wall = 0; wall < SB_WALL_COUNT; wall++) {
		sb_plan_line line = { .size = sizeof line };
		bool told = false;

		for (i = 0; !sb_plan_at(plan, i, &line); i++)
			told |= (int)line.wall == wall;
		unit_row(wall, told);
	}
	sb_plan_enforcement(plan, &held);
	assert_int_equal(held.net_modes, 0);
	assert_int_equal(held.fs_bounds, 0);
	assert_int_equal(held.disk_cap, 0);
	plan_unref(plan);
	plan_of(&rules, &limits, &plan, &rc);
	assert_int_equal(rc, SB_ERR_UNSUPPORTED);
	plan_unref(plan);
}

static void the_table_of_names(void **state)
{
	const sb_backend *const *all = sb_backends_builtin();
	size_t i;

	(void)state;
	for (i = 0; all[i]; i++)
		assert_ptr_equal(sb_backend_builtin(all[i]->name), all[i]);
	assert_int_equal(i, 5);
	assert_null(sb_backend_builtin("docker"));
	assert_null(sb_backend_builtin(NULL));
}

static void seatbelt_is_never_usable(void **state)
{
	const sb_call call = { .size = sizeof call, .deadline_ns = SB_UNLIMITED, .cancel_fd = -1 };
	const sb_backend *seatbelt = sb_backend_builtin("seatbelt");
	sb_state *found = NULL;
	sb_error err;

	(void)state;
	assert_int_equal(seatbelt->probe(seatbelt, &call, NULL, &found, &err),
			 SB_ERR_BACKEND_UNAVAILABLE);
	assert_null(found);
	assert_int_equal(err.kind, SB_KIND_NOT_AVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_working_directory_stays_in_the_workspace),
		cmocka_unit_test(it_claims_nothing_that_it_does_not_hold),
		cmocka_unit_test(the_table_of_names),
		cmocka_unit_test(seatbelt_is_never_usable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
