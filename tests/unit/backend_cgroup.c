/* SPDX-License-Identifier: MIT */
/* Where cgroups may be made, on machines that are folders of files. */
#include "unit.h"

#include "../../src/backend/linux/facts.h"
#include "host_tree.h"

#include <sys/socket.h>
#include <sys/un.h>

static const char v1_mounts[] =
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory\n"
	"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
	"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
static const char v2_mounts[] =
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
	"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

static void v2_group(const host_tree *t, const char *path, const char *handed_down)
{
	char name[256];

	snprintf(name, sizeof name, "sys/fs/cgroup%s/cgroup.procs", path);
	host_write(t, name, "");
	snprintf(name, sizeof name, "sys/fs/cgroup%s/cgroup.subtree_control", path);
	host_write(t, name, handed_down);
}

static void limit(const host_tree *t, const char *path, const char *file, const char *text)
{
	char name[256];

	snprintf(name, sizeof name, "sys/fs/cgroup%s/%s", path, file);
	host_write(t, name, text);
}

static void machine(host_tree *t, const char *mounts, const char *own)
{
	host_tree_open(t);
	host_write(t, "proc/self/mountinfo", mounts);
	host_write(t, "proc/self/cgroup", own);
}

static void version_1_lies_below_our_own(void **state)
{
	static const char own[] = "8:pids:/\n4:memory:/app/x\n2:cpu,cpuacct:/app\n1:name=systemd:/\n0::/\n";
	cgroup_place place;
	host_tree t;

	(void)state;
	machine(&t, v1_mounts, own);
	host_make(&t, "sys/fs/cgroup/pids/");
	host_make(&t, "sys/fs/cgroup/memory/app/x/");
	host_make(&t, "sys/fs/cgroup/cpu,cpuacct/app/");
	host_make(&t, "sys/fs/cgroup/unified/");
	cgroup_find(t.dir, true, &place);
	assert_int_equal(place.kind, LP_CG_V1);
	assert_int_equal(place.count, 3);
	assert_int_equal(place.controllers, LP_CTL_MEMORY | LP_CTL_PIDS | LP_CTL_CPU | LP_CTL_CPUACCT);
	assert_string_equal(place.at[0].path, "/sys/fs/cgroup/cpu,cpuacct/app");
	assert_int_equal(place.at[0].controllers, LP_CTL_CPU | LP_CTL_CPUACCT);
	assert_string_equal(place.at[1].path, "/sys/fs/cgroup/memory/app/x");
	assert_string_equal(place.at[2].path, "/sys/fs/cgroup/pids");
	/* not for a plain user */
	cgroup_find(t.dir, false, &place);
	assert_int_equal(place.kind, LP_CG_NONE);
	assert_int_equal(place.count, 0);
	host_tree_close(&t);
}

/* A container sees a part of the hierarchy: the mount's root is stripped off our own path. */
static void a_mount_may_show_a_part(void **state)
{
	static const char mounts[] =
		"35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		"39 31 0:36 /docker/other /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";
	cgroup_place place;
	host_tree t;

	(void)state;
	machine(&t, mounts, "4:memory:/docker/abc/sub\n8:pids:/docker/abc\n");
	host_make(&t, "sys/fs/cgroup/memory/sub/");
	host_make(&t, "sys/fs/cgroup/pids/");
	cgroup_find(t.dir, true, &place);
	assert_int_equal(place.count, 1);
	assert_string_equal(place.at[0].path, "/sys/fs/cgroup/memory/sub");
	host_tree_close(&t);
}

static void version_2_own_group_hands_down(void **state)
{
	cgroup_place place;
	host_tree t;

	(void)state;
	machine(&t, v2_mounts, "0::/user/box\n");
	v2_group(&t, "/user/box", "cpu memory pids\n");
	cgroup_find(t.dir, false, &place);
	assert_int_equal(place.kind, LP_CG_V2);
	assert_int_equal(place.count, 1);
	assert_string_equal(place.at[0].path, "/sys/fs/cgroup/user/box");
	assert_true(place.controllers & LP_CTL_CPU);
	host_tree_close(&t);
}

static void version_2_delegated_parent(void **state)
{
	cgroup_place place;
	host_tree t;

	(void)state;
	machine(&t, v2_mounts, "0::/user/app.slice/term.scope\n");
	v2_group(&t, "/user/app.slice", "memory pids\n");
	v2_group(&t, "/user/app.slice/term.scope", "\n");
	v2_group(&t, "/user", "memory pids\n");
	cgroup_find(t.dir, false, &place);
	assert_int_equal(place.kind, LP_CG_V2);
	assert_string_equal(place.at[0].path, "/sys/fs/cgroup/user/app.slice");
	assert_false(place.controllers & LP_CTL_CPU);
	/* a word that only begins like one is none */
	limit(&t, "/user/app.slice", "cgroup.subtree_control", "memory pidsx cpuset\n");
	cgroup_find(t.dir, false, &place);
	assert_int_equal(place.kind, LP_CG_NONE);
	host_tree_close(&t);
}

/* Root could write anywhere: a sibling must not escape what limits our own group. */
static void version_2_root_stays_within_its_limits(void **state)
{
	cgroup_place place;
	host_tree t;

	(void)state;
	machine(&t, v2_mounts, "0::/system.slice/job.service\n");
	v2_group(&t, "/system.slice", "memory pids\n");
	v2_group(&t, "/system.slice/job.service", "\n");
	limit(&t, "/system.slice/job.service", "memory.max", "max\n");
	limit(&t, "/system.slice/job.service", "pids.max", "max\n");
	cgroup_find(t.dir, true, &place);
	assert_string_equal(place.at[0].path, "/sys/fs/cgroup/system.slice");
	limit(&t, "/system.slice/job.service", "memory.max", "1073741824\n");
	cgroup_find(t.dir, true, &place);
	assert_int_equal(place.kind, LP_CG_NONE);
	host_tree_close(&t);
}

static void nothing_is_found_in_rubbish(void **state)
{
	static const char *const mounts[] = { "", "\n\n", "x", "1 2 3 4 5", "30 24 0:26 / /sys/fs/cgroup rw",
		"30 24 0:26 / /sys/fs/cgroup rw - cgroup2", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 a",
		"- cgroup2 cgroup2 rw", "a b c d e f - cgroup2  \n" };
	static const char *const own[] = { "", ":", "::", "0::", "0::/..", "0::/../x\n", "0:/", "\n0::/\n" };
	cgroup_place place;
	size_t i, j;

	(void)state;
	for (i = 0; i < UNIT_LEN(mounts); i++)
		for (j = 0; j < UNIT_LEN(own); j++) {
			host_tree t;

			machine(&t, mounts[i], own[j]);
			cgroup_find(t.dir, true, &place);
			unit_row(i * 100 + j, place.kind == LP_CG_NONE);
			host_tree_close(&t);
		}
	cgroup_find("/no/such/machine", true, &place);
	assert_int_equal(place.kind, LP_CG_NONE);
}

static void a_parent_by_name(void **state)
{
	cgroup_place place;
	sb_error err;
	host_tree t;

	(void)state;
	machine(&t, v2_mounts, "0::/x\n");
	v2_group(&t, "/mine", "memory pids cpu\n");
	v2_group(&t, "/bare", "\n");
	host_make(&t, "srv/dir/");
	assert_int_equal(cgroup_find_parent(t.dir, "/sys/fs/cgroup/mine", &place, &err), 0);
	assert_int_equal(place.kind, LP_CG_V2);
	assert_int_equal(cgroup_find_parent(t.dir, "/sys/fs/cgroup/none", &place, &err),
			 SB_ERR_NOT_FOUND);
	assert_int_equal(cgroup_find_parent(t.dir, "/sys/fs/cgroup/bare", &place, &err),
			 SB_ERR_BACKEND_UNAVAILABLE);
	assert_non_null(strstr(err.message, "subtree_control"));
	assert_int_equal(cgroup_find_parent(t.dir, "/srv/dir", &place, &err),
			 SB_ERR_BACKEND_UNAVAILABLE);
	assert_int_equal(cgroup_find_parent(t.dir, "mine", &place, &err), SB_ERR_INVALID_PATH);
	assert_int_equal(cgroup_find_parent(t.dir, "/sys/../etc", &place, &err), SB_ERR_INVALID_PATH);
	host_tree_close(&t);
}

/* Version 1: the same place below each hierarchy. */
static void a_parent_by_name_in_version_1(void **state)
{
	cgroup_place place;
	sb_error err;
	host_tree t;

	(void)state;
	machine(&t, v1_mounts, "0::/\n");
	host_make(&t, "sys/fs/cgroup/memory/ours/");
	host_make(&t, "sys/fs/cgroup/pids/ours/");
	host_make(&t, "sys/fs/cgroup/cpu,cpuacct/");
	assert_int_equal(cgroup_find_parent(t.dir, "/sys/fs/cgroup/memory/ours", &place, &err), 0);
	assert_int_equal(place.kind, LP_CG_V1);
	assert_int_equal(place.count, 2);
	assert_int_equal(place.controllers, LP_CTL_MEMORY | LP_CTL_PIDS);
	host_tree_close(&t);
}

static void limits_above_are_found(void **state)
{
	host_tree t;

	(void)state;
	machine(&t, v2_mounts, "0::/a/b\n");
	v2_group(&t, "", "memory pids");
	v2_group(&t, "/a", "memory pids");
	v2_group(&t, "/a/b", "memory pids");
	limit(&t, "/a", "memory.max", "67108864\n");
	limit(&t, "/a/b", "memory.max", "max\n");
	limit(&t, "/a", "pids.max", "max\n");
	limit(&t, "/a/b", "pids.max", "20\n");
	assert_true(cgroup_above(t.dir, "/sys/fs/cgroup/a/b", "memory.max") == 64 << 20);
	assert_true(cgroup_above(t.dir, "/sys/fs/cgroup/a/b", "pids.max") == 20);
	assert_true(cgroup_above(t.dir, "/sys/fs/cgroup/a", "pids.max") == SB_UNLIMITED);
	assert_true(cgroup_above(t.dir, "/sys/fs/cgroup/none", "pids.max") == SB_UNLIMITED);
	host_tree_close(&t);
}

static void a_socket(const host_tree *t, const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	host_make(t, name);
	snprintf(at.sun_path, sizeof at.sun_path, "%s/%s", t->dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	close(fd);
}

/* Whoever is logged in: his session's cgroup is root's, and his systemd has one beside it. */
static void the_users_systemd(void **state)
{
	static const struct {
		const char *address, *runtime, *found;
	} rows[] = {
		{ NULL, "/run/user/7", "/run/user/7/bus" },
		{ "", "/run/user/7", "/run/user/7/bus" },
		{ "unix:path=/run/other", NULL, "/run/other" },
		{ "unix:path=/run/other,guid=01234567", "/run/user/7", "/run/other" },
		{ "unix:path=/run/other;unix:abstract=x", NULL, "/run/other" },
		{ NULL, NULL, NULL },
		{ NULL, "", NULL },
		{ NULL, "run/user/7", NULL },
		{ NULL, "/run/user/8", NULL },             /* no such socket */
		{ NULL, "/run/file", NULL },
		{ "unix:abstract=/run/other", "/run/user/7", NULL },
		{ "tcp:host=localhost,port=1", "/run/user/7", NULL },
		{ "unix:path=", "/run/user/7", NULL },
		{ "unix:path=/run/oth%65r", NULL, NULL },
		{ "unix:path=/run/../run/other", NULL, NULL },
	};
	char dir[80], name[128], longest[300] = "/run/";
	cgroup_place place;
	host_tree t;
	size_t i;

	(void)state;
	machine(&t, v2_mounts, "0::/user.slice/session-1.scope\n");
	snprintf(dir, sizeof dir, "/user.slice/user-%u.slice/user@%u.service", getuid(), getuid());
	snprintf(name, sizeof name, "sys/fs/cgroup%s/cgroup.controllers", dir);
	host_write(&t, name, "cpu memory pids\n");
	a_socket(&t, "run/user/7/bus");
	a_socket(&t, "run/other");
	host_write(&t, "run/file/bus", "");
	for (i = 0; i < UNIT_LEN(rows); i++) {
		memset(&place, 0, sizeof place);
		cgroup_find_scope(t.dir, getuid(), rows[i].address, rows[i].runtime, &place);
		unit_row(i, (place.kind == LP_CG_SCOPE) == !!rows[i].found);
		unit_row(i, !rows[i].found || !strcmp(place.bus, rows[i].found));
	}
	memset(longest + 5, 'x', sizeof longest - 6);
	memset(&place, 0, sizeof place);
	cgroup_find_scope(t.dir, getuid(), NULL, longest, &place);
	assert_int_equal(place.kind, LP_CG_NONE);

	cgroup_find_scope(t.dir, getuid(), NULL, "/run/user/7", &place);
	assert_string_equal(place.at[0].path + strlen("/sys/fs/cgroup"), dir);
	assert_int_equal(place.controllers, LP_CTL_MEMORY | LP_CTL_PIDS | LP_CTL_CPU | LP_CTL_CPUACCT);
	/* somebody else's bus, and a systemd that may not divide what it has */
	memset(&place, 0, sizeof place);
	cgroup_find_scope(t.dir, getuid() + 1, NULL, "/run/user/7", &place);
	assert_int_equal(place.kind, LP_CG_NONE);
	host_write(&t, name, "memory\n");
	cgroup_find_scope(t.dir, getuid(), NULL, "/run/user/7", &place);
	assert_int_equal(place.kind, LP_CG_NONE);
	host_write(&t, name, "cpu memory pids\n");
	host_write(&t, "proc/self/mountinfo", v1_mounts);
	cgroup_find_scope(t.dir, getuid(), NULL, "/run/user/7", &place);
	assert_int_equal(place.kind, LP_CG_NONE);
	host_tree_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_above_are_found),
		cmocka_unit_test(the_users_systemd),
		cmocka_unit_test(version_1_lies_below_our_own),
		cmocka_unit_test(a_mount_may_show_a_part),
		cmocka_unit_test(version_2_own_group_hands_down),
		cmocka_unit_test(version_2_delegated_parent),
		cmocka_unit_test(version_2_root_stays_within_its_limits),
		cmocka_unit_test(nothing_is_found_in_rubbish),
		cmocka_unit_test(a_parent_by_name),
		cmocka_unit_test(a_parent_by_name_in_version_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
