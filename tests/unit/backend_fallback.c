/* SPDX-License-Identifier: MIT */
/* What stands where a machine lacks something: the table of fallbacks, row by row, for machines as data. */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/backend/linux/linux.h"
#include "../../src/core/core.h"

enum { H = SB_LEVEL_HARD, S = SB_LEVEL_SAMPLED, C = SB_LEVEL_COOPERATIVE, N = SB_LEVEL_NONE };

typedef struct machine {
	const char *name;
	bool no_userns, no_proc;
	uint32_t landlock;
	uint32_t cgroup;              /* LP_CG_* */
	bool root, root_apart;        /* with every capability; with those over ids alone */
	int kernel_minor;             /* of 6; 0 = 6.1 */
} machine;

/* Levels: files, network, syscalls, privileges, processes, memory, pids, time, and of a code run's disk
 * (-1: code is refused). */
typedef struct row {
	machine m;
	int files, network, syscalls, privileges, processes, memory, pids, time, disk;
} row;

static const row rows[] = {
	{ { "everything, version 2", .landlock = 7, .cgroup = LP_CG_V2 }, H, H, H, H, H, H, H, H, H },
	{ { "no cgroup", .landlock = 7 }, H, H, H, H, H, S, H, H, H },
	{ { "root, version 1", .landlock = 7, .cgroup = LP_CG_V1, .root = true }, H, H, H, H, H, H, H, H, H },
	{ { "no landlock", .cgroup = LP_CG_V2 }, H, H, H, H, H, H, H, H, H },
	{ { "no fresh /proc", .no_proc = true, .landlock = 7 }, H, H, H, H, H, S, H, H, H },
	{ { "no user namespaces", .no_userns = true, .landlock = 7 }, H, H, H, H, N, S, S, S, -1 },
	{ { "no user namespaces, old landlock", .no_userns = true, .landlock = 1 },
	  H, H, H, H, N, S, S, S, -1 },
	{ { "no user namespaces, version 2", .no_userns = true, .landlock = 3, .cgroup = LP_CG_V2 },
	  H, H, H, H, N, H, H, H, -1 },
	{ { "neither, no landlock", .no_userns = true }, N, H, H, H, N, S, S, S, -1 },
	{ { "neither, a cgroup that lies open", .no_userns = true, .cgroup = LP_CG_V2 },
	  N, H, H, H, N, C, C, S, -1 },
	{ { "root without them", .no_userns = true, .landlock = 7, .root = true }, H, H, H, H, H, S, H, H, H },
	{ { "root of a container", .no_userns = true, .landlock = 7, .root_apart = true },
	  H, H, H, H, N, S, S, S, -1 },
};

typedef struct scene {
	sb_state state;
	sb_limits limits;
	sb_spec spec;
	sb_network network;
	sb_pack pack;
	sb_box_request request;
	sb_plan *plan;
	sb_error err;
} scene;

static void scene_open(scene *s, const machine *m, bool code)
{
	linux_facts *facts = &s->state.facts;

	memset(s, 0, sizeof *s);
	pthread_mutex_init(&s->state.lock, NULL);
	s->state.facts_known = true;
	*facts = (linux_facts){ .uid = 1000, .gid = 1000, .landlock_abi = m->landlock, .kernel = { 6, 1 },
		.cpus = 2, .ram_bytes = 8ull << 30, .proc_fresh = !m->no_proc, .user = "mary",
		.no_userns = m->no_userns, .root_caller = m->root, .root_helpless = m->root_apart,
		.apart_ids = m->root_apart };
	if (m->root || m->root_apart) {
		facts->uid = facts->gid = 0;
		facts->uid_first = LINUX_UID_FIRST;
		facts->uid_count = LINUX_UID_COUNT;
	}
	if (m->cgroup) {
		cgroup_place *p = &facts->cgroup;

		*p = (cgroup_place){ .kind = m->cgroup, .count = 1,
			.controllers = LP_CTL_MEMORY | LP_CTL_PIDS | LP_CTL_CPU | LP_CTL_CPUACCT };
		p->at[0].controllers = p->controllers;
		snprintf(p->at[0].path, sizeof p->at[0].path, "/sys/fs/cgroup/x");
	}
	s->limits = (sb_limits){ .size = sizeof s->limits };
	assert_int_equal(sb_limits_default(code ? SB_PROFILE_CODE : SB_PROFILE_COMMAND, &s->limits, NULL),
			 0);
	s->limits.wall_ms = 5000;
	s->spec = (sb_spec){ .size = sizeof s->spec, .workspace_mode = SB_WORKSPACE_NONE };
	s->network = (sb_network){ .size = sizeof s->network, .mode = SB_NET_DENY_ALL };
	s->request = (sb_box_request){ .size = sizeof s->request, .spec = &s->spec,
		.limits = &s->limits, .network = &s->network, .pack = code ? &s->pack : NULL,
		.workspace_fd = -1 };
}

static int scene_plan(scene *s)
{
	plan_unref(s->plan);
	s->plan = NULL;
	s->err = (sb_error){ 0 };
	assert_int_equal(plan_new("linux", &s->plan, &s->err), 0);
	return linux_plan(&s->state, &s->request, s->plan, &s->err) < 0 ? s->err.code
									: plan_finish(s->plan, &s->err);
}

static void scene_close(scene *s)
{
	plan_unref(s->plan);
	pthread_mutex_destroy(&s->state.lock);
	if (s->request.workspace_fd >= 0)
		close(s->request.workspace_fd);
}

static void levels(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < UNIT_LEN(rows); i++) {
		const row *r = &rows[i];
		const struct { int wall, level; } want[] = {
			{ SB_WALL_FILES, r->files }, { SB_WALL_NETWORK, r->network },
			{ SB_WALL_SYSCALLS, r->syscalls }, { SB_WALL_PRIVILEGES, r->privileges },
			{ SB_WALL_PROCESSES, r->processes }, { SB_WALL_MEMORY, r->memory },
			{ SB_WALL_PIDS, r->pids }, { SB_WALL_TIME, r->time } };
		scene s;
		size_t j;

		scene_open(&s, &r->m, false);
		if (scene_plan(&s))
			fail_msg("%s: %s", r->m.name, s.err.message);
		for (j = 0; j < UNIT_LEN(want); j++)
			if (sb_plan_level(s.plan, want[j].wall) != want[j].level)
				fail_msg("%s: %s is %s", r->m.name, sb_wall_name(want[j].wall),
					 sb_level_name(sb_plan_level(s.plan, want[j].wall)));
		scene_close(&s);
	}
}

static void code_has_a_quota_or_is_refused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < UNIT_LEN(rows); i++) {
		scene s;
		int code;

		scene_open(&s, &rows[i].m, true);
		code = scene_plan(&s);
		if (rows[i].disk < 0) {
			assert_int_equal(code, SB_ERR_UNENFORCEABLE);
			assert_string_equal(s.err.where, "disk");
			assert_non_null(strstr(s.err.message, "sandbox run -- "));
		} else {
			assert_int_equal(code, 0);
			assert_int_equal(sb_plan_level(s.plan, SB_WALL_DISK), rows[i].disk);
		}
		scene_close(&s);
	}
}

/* By what is asked of every run. */
static void what_is_refused_by_default(void **state)
{
	const plan_demand demand = { .profile = SB_WALL_BIT(SB_WALL_FILES) | SB_WALL_BIT(SB_WALL_NETWORK) |
		SB_WALL_BIT(SB_WALL_SYSCALLS) | SB_WALL_BIT(SB_WALL_PRIVILEGES) |
		SB_WALL_BIT(SB_WALL_MEMORY) | SB_WALL_BIT(SB_WALL_PIDS) };
	size_t i;

	(void)state;
	for (i = 0; i < UNIT_LEN(rows); i++) {
		scene s;

		scene_open(&s, &rows[i].m, false);
		assert_int_equal(scene_plan(&s), 0);
		unit_row(i, plan_check(s.plan, &demand, &s.err) ==
				    (rows[i].files == N ? SB_ERR_UNENFORCEABLE : 0));
		scene_close(&s);
	}
}

/* ---- In place ----------------------------------------------------------------------------------- */

static const machine bare = { "no user namespaces", .no_userns = true, .landlock = 7 };

static uint64_t steps(scene *s)
{
	linux_design d;
	uint64_t set;

	assert_int_equal(design_make(&s->state, &s->request, &d, &s->err), 0);
	set = d.steps;
	design_release(&d);
	return set;
}

static void no_namespace_is_asked_for(void **state)
{
	const uint64_t namespaces = LP_USERNS | LP_PIDNS | LP_MOUNTNS | LP_IPCNS | LP_UTSNS | LP_CGROUPNS |
				    LP_NETNS | LP_ROOT | LP_NESTED_USERNS | LP_MASK_PROC | LP_LO_UP;
	const uint64_t walls = LP_SUBREAPER | LP_IN_PLACE | LP_LANDLOCK | LP_SECCOMP | LP_NO_NEW_PRIVS |
			       LP_NO_CAPS | LP_SAMPLE | LP_CLOSE_FDS | LP_UNDUMPABLE;
	scene s;

	(void)state;
	scene_open(&s, &bare, false);
	assert_int_equal(steps(&s) & namespaces, 0);
	assert_int_equal(steps(&s) & walls, walls);
	assert_int_equal(steps(&s) & LP_HOST_NET, 0);
	s.network.mode = SB_NET_HOST;
	assert_true(steps(&s) & LP_HOST_NET);
	scene_close(&s);
}

/* A workspace with something that is to be protected, and rules. */
static int with_rule(const char *top, const char *path, uint32_t access, uint32_t mode, uint64_t weaker,
		     const char *source, uint32_t flags, char *message)
{
	const sb_file_rule rule = { .size = sizeof rule, .path = path, .source = source, .access = access,
		.flags = flags };
	const sb_file_rule *const list[] = { path ? &rule : NULL, NULL };
	scene s;
	int code;

	scene_open(&s, &bare, false);
	s.request.workspace = top;
	s.request.workspace_fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	s.spec.workspace_mode = mode;
	s.spec.files = list;
	s.spec.allow_weaker = weaker;
	code = scene_plan(&s);
	snprintf(message, sizeof s.err.message, "%s", s.err.message);
	scene_close(&s);
	return code;
}

static void rules_that_landlock_cannot_hold_are_refused(void **state)
{
	char top[] = "/tmp/unit-fallback.XXXXXX", inside[64], absent[64], why[sizeof((sb_error *)0)->message];
	const uint64_t files = SB_WALL_BIT(SB_WALL_FILES);
	const struct {
		const char *path;
		uint32_t access, mode;
		uint64_t weaker;
		const char *source;
		uint32_t flags;
		int want;
	} cases[] = {
		{ NULL, 0, SB_WORKSPACE_WRITE, 0, NULL, 0, 0 },
		{ inside, SB_FILE_PROTECT, SB_WORKSPACE_WRITE, 0, NULL, 0, SB_ERR_UNENFORCEABLE },
		{ inside, SB_FILE_PROTECT, SB_WORKSPACE_WRITE, files, NULL, 0, 0 },
		{ inside, SB_FILE_PROTECT, SB_WORKSPACE_READ, 0, NULL, 0, 0 },
		{ absent, SB_FILE_PROTECT, SB_WORKSPACE_WRITE, 0, NULL, 0, 0 },
		{ inside, SB_FILE_HIDE, SB_WORKSPACE_READ, 0, NULL, 0, SB_ERR_UNENFORCEABLE },
		{ inside, SB_FILE_HIDE, SB_WORKSPACE_READ, files, NULL, 0, 0 },
		{ "/var/lib", SB_FILE_HIDE, SB_WORKSPACE_WRITE, 0, NULL, 0, 0 }, /* not shown anyway */
		{ inside, SB_FILE_READ, SB_WORKSPACE_WRITE, 0, NULL, 0, SB_ERR_UNENFORCEABLE },
		{ inside, SB_FILE_WRITE, SB_WORKSPACE_READ, 0, NULL, 0, 0 },
		{ "/var/lib", SB_FILE_READ, SB_WORKSPACE_WRITE, 0, NULL, 0, 0 },
		{ "/elsewhere", SB_FILE_READ, SB_WORKSPACE_WRITE, 0, "/var/lib", 0, SB_ERR_UNENFORCEABLE },
		{ "/var/lib", SB_FILE_READ, SB_WORKSPACE_WRITE, 0, NULL, SB_FILE_NOEXEC,
		  SB_ERR_UNENFORCEABLE },
		{ inside, SB_FILE_TMPFS, SB_WORKSPACE_WRITE, 0, NULL, 0, SB_ERR_UNENFORCEABLE },
	};
	size_t i;

	(void)state;
	assert_non_null(mkdtemp(top));
	snprintf(inside, sizeof inside, "%s/inside", top);
	snprintf(absent, sizeof absent, "%s/absent", top);
	assert_int_equal(mkdir(inside, 0755), 0);
	for (i = 0; i < UNIT_LEN(cases); i++) {
		int got = with_rule(top, cases[i].path, cases[i].access, cases[i].mode, cases[i].weaker,
				    cases[i].source, cases[i].flags, why);

		if (got != cases[i].want)
			fail_msg("row %zu: %d, %s", i, got, why);
		if (got)
			assert_non_null(strstr(why, "; ")); /* a remedy */
	}
	rmdir(inside);
	rmdir(top);
}

static void a_quota_that_was_asked_for_is_refused(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, &bare, false);
	s.limits.fs_bytes = 1 << 20;
	assert_int_equal(scene_plan(&s), SB_ERR_UNENFORCEABLE);
	s.spec.allow_weaker = SB_WALL_BIT(SB_WALL_DISK);
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_DISK), SB_LEVEL_NONE);
	scene_close(&s);
}

/* Its guests have another uid, which may not write what is root's. */
static void roots_guests_write_nothing(void **state)
{
	const machine able = { "root without them", .no_userns = true, .landlock = 7, .root = true };
	const uint64_t users = LP_USERNS | LP_NESTED_USERNS, others = LP_PIDNS | LP_MOUNTNS | LP_NETNS | LP_ROOT;
	const machine root = { "root of a container", .no_userns = true, .landlock = 7, .root_apart = true };
	scene s;

	(void)state;
	scene_open(&s, &root, false);
	s.request.workspace = "/usr";
	s.request.workspace_fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	s.spec.workspace_mode = SB_WORKSPACE_WRITE;
	assert_int_equal(scene_plan(&s), SB_ERR_UNENFORCEABLE);
	s.spec.workspace_mode = SB_WORKSPACE_DEFAULT;
	assert_int_equal(scene_plan(&s), 0);
	scene_close(&s);
	scene_open(&s, &able, false);
	s.request.workspace = "/usr";
	s.request.workspace_fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(steps(&s) & (users | others | LP_IN_PLACE), others);
	s.spec.workspace_mode = SB_WORKSPACE_WRITE;
	assert_int_equal(scene_plan(&s), SB_ERR_UNENFORCEABLE);
	scene_close(&s);
	/* and where a namespace could be made, only a plain user may use it */
	scene_open(&s, &root, false);
	s.state.facts.no_userns = false;
	assert_int_equal(scene_plan(&s), SB_ERR_BACKEND_UNAVAILABLE);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels), cmocka_unit_test(code_has_a_quota_or_is_refused),
		cmocka_unit_test(what_is_refused_by_default), cmocka_unit_test(no_namespace_is_asked_for),
		cmocka_unit_test(rules_that_landlock_cannot_hold_are_refused),
		cmocka_unit_test(a_quota_that_was_asked_for_is_refused),
		cmocka_unit_test(roots_guests_write_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
