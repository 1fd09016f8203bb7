/* SPDX-License-Identifier: MIT */
/* Plans of the backend `linux` for machines that are data: every fallback, on any machine. */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "../../src/backend/linux/linux.h"
#include "../../src/core/core.h"


typedef struct scene {
	sb_state state;
	sb_limits limits;
	sb_spec spec;
	sb_network network;
	sb_linux_options options;
	sb_pack pack;
	sb_box_request request;
	sb_plan *plan;
	sb_error err;
} scene;

static void scene_open(scene *s, bool code)
{
	memset(s, 0, sizeof *s);
	pthread_mutex_init(&s->state.lock, NULL);
	s->state.facts_known = true;
	s->state.facts = (linux_facts){ .uid = 1000, .gid = 1000, .landlock_abi = 7, .kernel = { 6, 1 },
		.cpus = 2, .ram_bytes = 8ull << 30, .proc_fresh = true, .user = "mary" };
	s->limits = (sb_limits){ .size = sizeof s->limits };
	assert_int_equal(sb_limits_default(code ? SB_PROFILE_CODE : SB_PROFILE_COMMAND, &s->limits, NULL),
			 0);
	s->spec = (sb_spec){ .size = sizeof s->spec, .workspace_mode = SB_WORKSPACE_NONE };
	s->network = (sb_network){ .size = sizeof s->network, .mode = SB_NET_DENY_ALL };
	s->options = (sb_linux_options){ .size = sizeof s->options };
	s->request = (sb_box_request){ .size = sizeof s->request, .spec = &s->spec,
		.limits = &s->limits, .network = &s->network, .options = &s->options,
		.pack = code ? &s->pack : NULL, .workspace_fd = -1 };
}

static int scene_plan(scene *s)
{
	plan_unref(s->plan);
	s->plan = NULL;
	s->err = (sb_error){ 0 };
	assert_int_equal(plan_new("linux", &s->plan, &s->err), 0);
	if (linux_plan(&s->state, &s->request, s->plan, &s->err) < 0)
		return s->err.code;
	assert_non_null(linux_plan_design(s->plan, &s->request));
	return plan_finish(s->plan, &s->err);
}

static void scene_close(scene *s)
{
	plan_unref(s->plan);
	pthread_mutex_destroy(&s->state.lock);
}

static uint64_t steps(scene *s)
{
	linux_design d;
	uint64_t set;

	assert_int_equal(design_make(&s->state, &s->request, &d, &s->err), 0);
	set = d.steps;
	design_release(&d);
	return set;
}

static bool says(const scene *s, int wall, const char *text)
{
	sb_plan_line line = { .size = sizeof line };
	size_t i;

	for (i = 0; !sb_plan_at(s->plan, i, &line); i++)
		if ((int)line.wall == wall &&
		    (strstr(line.mechanism, text) || strstr(line.caveat, text)))
			return true;
	return false;
}

static void place(cgroup_place *p, uint32_t kind, uint32_t controllers)
{
	*p = (cgroup_place){ .kind = kind, .count = 1, .controllers = controllers };
	p->at[0].controllers = controllers;
	snprintf(p->at[0].path, sizeof p->at[0].path, "/sys/fs/cgroup/x");
}

static void every_wall_has_a_line(void **state)
{
	int wall, code;
	scene s;

	(void)state;
	for (code = 0; code < 2; code++) {
		scene_open(&s, code);
		assert_int_equal(scene_plan(&s), 0);
		for (wall = 0; wall < SB_WALL_COUNT; wall++)
			unit_row(wall, says(&s, wall, ""));
		assert_non_null(sb_plan_text(s.plan, "seccomp"));
		scene_close(&s);
	}
}

static void limits_are_told_by_what_holds_them(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, true);
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_MEMORY), SB_LEVEL_SAMPLED);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_PIDS), SB_LEVEL_HARD);
	assert_true(says(&s, SB_WALL_PIDS, "RLIMIT_NPROC"));
	assert_true(steps(&s) & LP_SAMPLE);
	/* before 5.14 the kernel counts the caller's other processes, too */
	s.state.facts.kernel[0] = 5;
	s.state.facts.kernel[1] = 13;
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_PIDS), SB_LEVEL_COOPERATIVE);
	place(&s.state.facts.cgroup, LP_CG_V2, LP_CTL_MEMORY | LP_CTL_PIDS);
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_MEMORY), SB_LEVEL_HARD);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_PIDS), SB_LEVEL_HARD);
	assert_true(says(&s, SB_WALL_MEMORY, "cgroup2 memory.max"));
	place(&s.state.facts.cgroup, LP_CG_V1, LP_CTL_PIDS);
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_MEMORY), SB_LEVEL_SAMPLED);
	assert_true(says(&s, SB_WALL_PIDS, "cgroup1 pids.max"));
	/* a rate needs a controller: what there is not is not claimed */
	s.limits.cpu_millicores = 500;
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_CPU), SB_LEVEL_NONE);
	scene_close(&s);
}

static void what_the_kernel_lacks_is_left_out_and_said(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	assert_true(steps(&s) & LP_LANDLOCK);
	assert_true(steps(&s) & LP_LANDLOCK_SCOPE);
	s.state.facts.landlock_abi = 5;
	assert_false(steps(&s) & LP_LANDLOCK_SCOPE);
	s.state.facts.landlock_abi = 0;
	assert_int_equal(scene_plan(&s), 0);
	assert_true(says(&s, SB_WALL_FILES, "no landlock"));
	assert_false(steps(&s) & LP_LANDLOCK);
	s.state.facts.proc_fresh = false;
	assert_int_equal(scene_plan(&s), 0);
	assert_true(says(&s, SB_WALL_FILES, "container"));
	assert_false(steps(&s) & LP_MASK_PROC);
	scene_close(&s);
}

static void the_hosts_network_is_no_wall(void **state)
{
	sb_enforcement held = { .size = sizeof held };
	scene s;

	(void)state;
	scene_open(&s, false);
	assert_true(steps(&s) & LP_NETNS);
	s.network.mode = SB_NET_HOST;
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_NETWORK), SB_LEVEL_NONE);
	sb_plan_enforcement(s.plan, &held);
	assert_int_equal(held.net_modes, 0);
	assert_false(steps(&s) & LP_NETNS);
	scene_close(&s);
}

static void what_cannot_be_had_is_refused(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	s.network.mode = SB_NET_ALLOW_LIST;
	assert_int_equal(scene_plan(&s), SB_ERR_UNSUPPORTED);
	s.network.mode = SB_NET_PROXY;
	assert_int_equal(scene_plan(&s), SB_ERR_UNSUPPORTED);
	s.network.mode = SB_NET_DENY_ALL;
	s.spec.workspace_mode = SB_WORKSPACE_COPY;
	assert_int_equal(scene_plan(&s), SB_ERR_UNSUPPORTED);
	s.spec.workspace_mode = SB_WORKSPACE_NONE;
	s.options.root = "/srv/root";
	assert_int_equal(scene_plan(&s), SB_ERR_UNSUPPORTED);
	s.options.root = NULL;
	s.options.uid_first = 0;
	s.options.uid_count = 5;
	assert_int_equal(scene_plan(&s), SB_ERR_INVALID_SPEC);
	s.options.uid_first = 999;
	assert_int_equal(scene_plan(&s), SB_ERR_INVALID_SPEC);
	s.options.uid_first = UINT32_MAX - 2;
	assert_int_equal(scene_plan(&s), SB_ERR_INVALID_SPEC);
	s.options.uid_first = 70000;
	assert_int_equal(scene_plan(&s), 0);
	s.options.cgroup_parent = "/no/such/cgroup";
	assert_int_equal(scene_plan(&s), SB_ERR_NOT_FOUND);
	s.options.cgroup_parent = NULL;
	s.state.facts.root_helpless = true;
	assert_int_equal(scene_plan(&s), SB_ERR_BACKEND_UNAVAILABLE);
	scene_close(&s);
}

/* The file system of /proc can certainly not be mapped; the answer for its type is known here. */
static void a_workspace_that_cannot_be_mapped(void **state)
{
	const sb_file_rule rule = { .size = sizeof rule, .path = "/var/lib", .access = SB_FILE_WRITE };
	const sb_file_rule *const rules[] = { &rule, NULL };
	linux_design d;
	scene s;
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	scene_open(&s, false);
	s.state.facts.uid = 0;
	s.state.facts.root_caller = true;
	s.state.facts.uid_first = LINUX_UID_FIRST;
	s.state.facts.uid_count = LINUX_UID_COUNT;
	s.state.idmap.at[0].type = 0x9fa0;
	s.state.idmap.at[0].works = false;
	s.state.idmap.count = 1;
	s.request.workspace = "/srv/project";
	s.request.workspace_fd = fd;
	/* nobody asked for writing by name: read-only, and said */
	s.spec.workspace_mode = SB_WORKSPACE_DEFAULT;
	assert_int_equal(scene_plan(&s), 0);
	assert_true(says(&s, SB_WALL_FILES, "id-mapped"));
	assert_int_equal(design_make(&s.state, &s.request, &d, &s.err), 0);
	assert_true(d.workspace_unmapped);
	assert_false(d.wish.workspace_write);
	design_release(&d);
	/* somebody did */
	s.spec.workspace_mode = SB_WORKSPACE_WRITE;
	assert_int_equal(scene_plan(&s), SB_ERR_UNSUPPORTED);
	assert_non_null(strstr(s.err.message, "--workspace-mode ro"));
	s.state.idmap.at[0].works = true;
	assert_int_equal(scene_plan(&s), 0);
	/* a quota cannot be held in a directory of the host */
	s.limits.fs_bytes = 1 << 20;
	assert_int_equal(scene_plan(&s), SB_ERR_UNENFORCEABLE);
	s.spec.allow_weaker = SB_WALL_BIT(SB_WALL_DISK);
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_DISK), SB_LEVEL_NONE);
	s.spec.allow_weaker = 0;
	s.spec.workspace_mode = SB_WORKSPACE_READ;
	assert_int_equal(scene_plan(&s), 0);
	assert_int_equal(sb_plan_level(s.plan, SB_WALL_DISK), SB_LEVEL_HARD);
	s.spec.files = rules;
	assert_int_equal(scene_plan(&s), SB_ERR_UNENFORCEABLE);
	close(fd);
	scene_close(&s);
}

static void the_quota_of_code_is_what_was_asked(void **state)
{
	linux_design d;
	uint64_t files = 0;
	size_t i;
	scene s;

	(void)state;
	scene_open(&s, true);
	s.limits.fs_bytes = 1000000; /* no whole pages */
	s.limits.fs_nodes = 256;
	assert_int_equal(design_make(&s.state, &s.request, &d, &s.err), 0);
	for (i = 0; i < d.table.len; i++)
		files += d.table.at[i].kind == LP_M_FILE;
	assert_int_equal(d.tmpfs_bytes, 245 * 4096 + files * 4096);
	assert_int_equal(d.tmpfs_nodes, mounts_nodes(&d.table) - 2 + 256);
	assert_int_equal(d.wish.uid_inside, 1000);
	design_release(&d);
	s.limits.fs_nodes = SB_UNLIMITED; /* a KiB each, as a tmpfs counts them and their attributes */
	assert_int_equal(design_make(&s.state, &s.request, &d, &s.err), 0);
	assert_int_equal(d.tmpfs_nodes, mounts_nodes(&d.table) - 2 + 1000000 / 1024 + 1);
	design_release(&d);
	s.limits.fs_bytes = (uint64_t)8 << 30;
	assert_int_equal(design_make(&s.state, &s.request, &d, &s.err), 0);
	assert_int_equal(d.tmpfs_nodes, mounts_nodes(&d.table) - 2 + (1 << 20));
	design_release(&d);
	scene_close(&s);
}

static void a_tmpfs_of_its_own_counts_in_the_quota(void **state)
{
	sb_file_rule rule = { .size = sizeof rule, .path = "/cache", .access = SB_FILE_TMPFS,
		.max_bytes = 4 << 20 };
	const sb_file_rule *const rules[] = { &rule, NULL };
	linux_design d;
	uint64_t whole;
	scene s;

	(void)state;
	scene_open(&s, true);
	assert_int_equal(design_make(&s.state, &s.request, &d, &s.err), 0);
	whole = d.tmpfs_bytes;
	design_release(&d);
	s.spec.files = rules;
	assert_int_equal(design_make(&s.state, &s.request, &d, &s.err), 0);
	assert_int_equal(d.tmpfs_bytes, whole - (4 << 20));
	design_release(&d);
	rule.max_bytes = s.limits.fs_bytes;
	assert_int_equal(scene_plan(&s), SB_ERR_INVALID_LIMITS);
	rule.max_bytes = 0;
	assert_int_equal(design_make(&s.state, &s.request, &d, &s.err), 0);
	assert_int_equal(d.tmpfs_bytes, whole);
	design_release(&d);
	scene_close(&s);
}

static void paths_inside_are_answered(void **state)
{
	static const struct { const char *path; int access; } rows[] = {
		{ "/usr/bin/env", SB_FILE_READ }, { "/etc/shadow", SB_FILE_HIDE }, { "/root/.ssh", SB_FILE_HIDE },
		{ "/tmp/x", SB_FILE_TMPFS }, { "/sys", SB_FILE_HIDE }, { "/run/docker.sock", SB_FILE_HIDE },
		{ "/", SB_FILE_READ }, { "/etc", SB_FILE_READ }, { "/dev", SB_FILE_READ }, { "/dev/sda", SB_FILE_HIDE },
		{ "/run", SB_FILE_HIDE }, { "/home", SB_FILE_READ }, { "/home/x", SB_FILE_HIDE },
		{ "/proc/self/comm", SB_FILE_WRITE }, { "/proc/sys/kernel/hostname", SB_FILE_READ },
		{ "/proc/kcore", SB_FILE_HIDE }, { "/proc/sys/kernel/random/boot_id", SB_FILE_HIDE },
	};
	const char *why;
	size_t i;
	int access;
	scene s;

	(void)state;
	scene_open(&s, false);
	assert_int_equal(scene_plan(&s), 0);
	for (i = 0; i < UNIT_LEN(rows); i++) {
		unit_row(i, !sb_plan_path(s.plan, rows[i].path, &access, &why));
		unit_row(i, access == rows[i].access);
	}
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wall_has_a_line),
		cmocka_unit_test(limits_are_told_by_what_holds_them),
		cmocka_unit_test(what_the_kernel_lacks_is_left_out_and_said),
		cmocka_unit_test(the_hosts_network_is_no_wall),
		cmocka_unit_test(what_cannot_be_had_is_refused),
		cmocka_unit_test(a_workspace_that_cannot_be_mapped),
		cmocka_unit_test(the_quota_of_code_is_what_was_asked),
		cmocka_unit_test(a_tmpfs_of_its_own_counts_in_the_quota),
		cmocka_unit_test(paths_inside_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
