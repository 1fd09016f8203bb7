/* SPDX-License-Identifier: MIT */
/* The file system of a box as rows, for requests and machines that are data. */
#include "unit.h"

#include "../../src/backend/linux/mounts.h"
#include "host_tree.h"

#define RULES_MAX 8

typedef struct scene {
	host_tree tree;
	linux_facts facts;
	sb_file_rule rule[RULES_MAX];
	const sb_file_rule *rules[RULES_MAX + 1];
	char path[RULES_MAX][512];
	size_t rule_count;
	sb_spec spec;
	sb_network network;
	sb_box_request request;
	char workspace[512];
	mount_wish wish;
	mount_table table;
	sb_error err;
} scene;

static void scene_open(scene *s, bool root_caller)
{
	memset(s, 0, sizeof *s);
	host_tree_open(&s->tree);
	s->facts = (linux_facts){ .uid = root_caller ? 0 : 4321, .root_caller = root_caller,
		.proc_fresh = true, .user = "mary" };
	s->facts.merged[0] = (linux_merged){ "/bin", "usr/bin", true, true };
	s->facts.merged[1] = (linux_merged){ "/lib", "", true, false };
	s->facts.etc[0] = (linux_etc){ "hosts", "" };
	s->facts.etc[1] = (linux_etc){ "ld.so.cache", "" };
	s->facts.etc[2] = (linux_etc){ "localtime", "/usr/share/zoneinfo/UTC" };
	s->facts.etc_count = 3;
	s->spec = (sb_spec){ .size = sizeof s->spec, .files = s->rules };
	s->network = (sb_network){ .size = sizeof s->network, .mode = SB_NET_DENY_ALL };
	s->request = (sb_box_request){ .size = sizeof s->request, .spec = &s->spec,
		.network = &s->network, .workspace_fd = -1 };
	s->wish = (mount_wish){ .facts = &s->facts, .request = &s->request, .uid_inside = 1000,
		.gid_inside = 1000, .workspace_idmap = root_caller };
}

static void scene_workspace(scene *s, const char *name, bool write)
{
	char dir[256];

	snprintf(dir, sizeof dir, "%s/", name);
	host_make(&s->tree, dir);
	snprintf(s->workspace, sizeof s->workspace, "%s", host_path(&s->tree, name));
	s->request.workspace = s->workspace;
	s->request.workspace_fd = open(s->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->request.workspace_fd >= 0);
	s->wish.workspace_write = write;
}

/* A name without "/" in front lies in the scene's tree. */
static sb_file_rule *scene_rule(scene *s, uint32_t access, const char *name)
{
	size_t i = s->rule_count++;

	assert_true(i < RULES_MAX);
	snprintf(s->path[i], sizeof s->path[i], "%s", *name == '/' ? name : host_path(&s->tree, name));
	s->rule[i] = (sb_file_rule){ .size = sizeof s->rule[i], .path = s->path[i], .access = access };
	s->rules[i] = &s->rule[i];
	return &s->rule[i];
}

static int scene_build(scene *s)
{
	mounts_release(&s->table);
	s->err = (sb_error){ 0 };
	return mounts_build(&s->wish, &s->table, &s->err);
}

static void scene_close(scene *s)
{
	mounts_release(&s->table);
	if (s->request.workspace_fd >= 0)
		close(s->request.workspace_fd);
	host_tree_close(&s->tree);
}

/* The row at a target; of two, the one on top. */
static const mount_row *at(const scene *s, const char *name)
{
	const char *target = *name == '/' ? name : host_path(&s->tree, name);
	const mount_row *found = NULL;
	size_t i;

	for (i = 0; i < s->table.len; i++)
		if (!strcmp(s->table.at[i].target, target))
			found = &s->table.at[i];
	return found;
}

static size_t count_of(const scene *s, const char *target)
{
	size_t i, n = 0;

	for (i = 0; i < s->table.len; i++)
		n += !strcmp(s->table.at[i].target, target);
	return n;
}

/* ---- What every box has ---- */

static void the_system_is_read_only_and_small(void **state)
{
	static const char *const absent[] = { "/sys", "/root", "/home", "/boot", "/etc/shadow",
		"/etc/machine-id", "/opt", "/run/docker.sock", "/etc/resolv.conf" };
	static const char *const written[] = { "/tmp", "/dev/shm", "/home/sandbox", "/dev/null" };
	const mount_row *row;
	size_t i;
	scene s;

	(void)state;
	scene_open(&s, false);
	assert_int_equal(scene_build(&s), 0);
	for (i = 0; i < UNIT_LEN(absent); i++)
		unit_row(i, !at(&s, absent[i]));
	for (i = 0; i < UNIT_LEN(written); i++)
		unit_row(i, at(&s, written[i]) && (at(&s, written[i])->flags & LP_F_WRITE));
	row = at(&s, "/usr");
	assert_int_equal(row->kind, LP_M_BIND);
	assert_true((row->flags & LP_F_READONLY) && (row->flags & LP_F_NODEV));
	assert_int_equal(at(&s, "/bin")->kind, LP_M_SYMLINK);
	assert_int_equal(at(&s, "/lib")->kind, LP_M_BIND);
	assert_int_equal(at(&s, "/etc/localtime")->kind, LP_M_SYMLINK);
	assert_int_equal(at(&s, "/etc/ld.so.cache")->kind, LP_M_BIND);
	assert_int_equal(at(&s, "/etc/hosts")->kind, LP_M_FILE);
	assert_null(at(&s, "/run/code"));
	assert_non_null(at(&s, "/work"));
	/* no bind is writable, no bind has devices, and the skeleton is closed last */
	for (i = 0; i < s.table.len; i++) {
		row = &s.table.at[i];
		unit_row(i, row->kind != LP_M_BIND || !(row->flags & LP_F_WRITE));
		unit_row(i, row->kind != LP_M_BIND || (row->flags & LP_F_NODEV));
		unit_row(i, (row->kind == LP_M_REMOUNT_RO) == (i + 1 == s.table.len));
	}
	scene_close(&s);
}

static void code_has_its_places(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	s.wish.code = true;
	assert_int_equal(scene_build(&s), 0);
	assert_true(at(&s, "/run/code")->flags & LP_F_READONLY);
	assert_true(at(&s, "/in")->flags & LP_F_READONLY);
	assert_true(at(&s, "/work")->flags & LP_F_WRITE);
	assert_true(at(&s, "/out")->flags & LP_F_WRITE);
	assert_non_null(strstr(at(&s, "/etc/passwd")->source, "sandbox:x:1000:1000:"));
	assert_null(strstr(at(&s, "/etc/passwd")->source, "mary"));
	scene_close(&s);
}

static void a_command_sees_its_callers_name(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	s.wish.uid_inside = s.wish.gid_inside = 4321;
	assert_int_equal(scene_build(&s), 0);
	assert_non_null(strstr(at(&s, "/etc/passwd")->source, "mary:x:4321:4321:"));
	scene_close(&s);
	scene_open(&s, true);
	assert_int_equal(scene_build(&s), 0);
	assert_non_null(strstr(at(&s, "/etc/passwd")->source, "sandbox:x:1000:1000:"));
	scene_close(&s);
}

static void the_hosts_network_brings_its_names(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	s.wish.net = true;
	assert_int_equal(scene_build(&s), 0);
	assert_int_equal(at(&s, "/etc/hosts")->kind, LP_M_BIND);
	assert_int_equal(count_of(&s, "/etc/hosts"), 1);
	scene_close(&s);
}

static void without_a_fresh_proc_there_is_an_empty_one(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	s.facts.proc_fresh = false;
	assert_int_equal(scene_build(&s), 0);
	assert_int_equal(at(&s, "/proc")->kind, LP_M_DIR);
	scene_close(&s);
}

static void etc_is_an_allow_list(void **state)
{
	static const char *const yes[] = { "ld.so.cache", "alternatives", "python3.11", "java-17-openjdk",
		"ssl/certs", "nsswitch.conf" };
	static const char *const no[] = { "shadow", "passwd", "machine-id", "ssh", "ssl", "ssl/private",
		"sudoers", "fstab", "hostname", "resolv.conf", "pip.conf", "npmrc", "krb5.keytab", "" };
	size_t i;

	(void)state;
	for (i = 0; i < UNIT_LEN(yes); i++)
		unit_row(i, linux_etc_allowed(yes[i], false));
	for (i = 0; i < UNIT_LEN(no); i++)
		unit_row(i, !linux_etc_allowed(no[i], false));
	assert_true(linux_etc_allowed("resolv.conf", true));
	assert_false(linux_etc_allowed("shadow", true));
}

/* ---- Workspace and rules ---- */

static void the_workspace_is_bound_at_its_own_path(void **state)
{
	const mount_row *row;
	scene s;

	(void)state;
	scene_open(&s, true);
	scene_workspace(&s, "ws", true);
	assert_int_equal(scene_build(&s), 0);
	row = at(&s, "ws");
	assert_int_equal(row->fd, s.request.workspace_fd);
	assert_true((row->flags & LP_F_WRITE) && (row->flags & LP_F_IDMAP) && (row->flags & LP_F_NODEV));
	assert_true(row > at(&s, "/tmp"));
	assert_int_equal(s.table.owner_uid, getuid());
	s.wish.workspace_write = false;
	assert_int_equal(scene_build(&s), 0);
	assert_true(at(&s, "ws")->flags & LP_F_READONLY);
	assert_false(at(&s, "ws")->flags & LP_F_WRITE);
	s.facts.root_caller = false;
	assert_int_equal(scene_build(&s), 0);
	assert_false(at(&s, "ws")->flags & LP_F_IDMAP);
	scene_close(&s);
}

static void the_nearest_rule_lies_on_top(void **state)
{
	const mount_row *outer, *inner, *deep;
	scene s;

	(void)state;
	scene_open(&s, false);
	scene_workspace(&s, "ws", true);
	host_write(&s.tree, "ws/a/b/f", "");
	/* given in the wrong order */
	scene_rule(&s, SB_FILE_HIDE, "ws/a/b/f");
	scene_rule(&s, SB_FILE_WRITE, "ws/a/b");
	scene_rule(&s, SB_FILE_READ, "ws/a");
	assert_int_equal(scene_build(&s), 0);
	outer = at(&s, "ws/a");
	inner = at(&s, "ws/a/b");
	deep = at(&s, "ws/a/b/f");
	assert_true(at(&s, "ws") < outer && outer < inner && inner < deep);
	assert_true((outer->flags & LP_F_READONLY) && (inner->flags & LP_F_WRITE));
	assert_int_equal(deep->kind, LP_M_HIDE);
	scene_close(&s);
}

static void what_is_protected_cannot_be_moved_away(void **state)
{
	const mount_row *pin;
	scene s;

	(void)state;
	scene_open(&s, false);
	scene_workspace(&s, "ws", true);
	host_write(&s.tree, "ws/.git/config", "");
	host_write(&s.tree, "ws/.envrc", "");
	scene_rule(&s, SB_FILE_PROTECT, "ws/.git/config");
	scene_rule(&s, SB_FILE_PROTECT, "ws/.envrc");
	scene_rule(&s, SB_FILE_PROTECT, "ws/.husky")->flags = SB_FILE_OPTIONAL;
	assert_int_equal(scene_build(&s), 0);
	assert_int_equal(at(&s, "ws/.git/config")->kind, LP_M_PROTECT);
	pin = at(&s, "ws/.git");
	assert_non_null(pin);
	assert_int_equal(pin->kind, LP_M_BIND);
	assert_true((pin->flags & LP_F_WRITE) && pin->fd >= 0 && pin < at(&s, "ws/.git/config"));
	assert_null(at(&s, "ws/.husky"));
	/* nor what is hidden: the next run would not find it */
	host_write(&s.tree, "ws/deep/er/secret", "");
	scene_rule(&s, SB_FILE_HIDE, "ws/deep/er/secret");
	assert_int_equal(scene_build(&s), 0);
	assert_int_equal(at(&s, "ws/deep")->kind, LP_M_BIND);
	assert_int_equal(at(&s, "ws/deep/er")->kind, LP_M_BIND);
	/* nothing to pin where nothing can be written */
	s.wish.workspace_write = false;
	assert_int_equal(scene_build(&s), 0);
	assert_null(at(&s, "ws/.git"));
	scene_close(&s);
}

static void nothing_is_made_on_the_host(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	scene_workspace(&s, "ws", true);
	host_write(&s.tree, "data/f", "");
	scene_rule(&s, SB_FILE_TMPFS, "ws/build");
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_SPEC);
	assert_non_null(strstr(s.err.message, "create it first"));
	host_make(&s.tree, "ws/build/");
	assert_int_equal(scene_build(&s), 0);
	/* under the one quota, or with a size of its own */
	assert_int_equal(at(&s, "ws/build")->kind, LP_M_SCRATCH);
	s.rule[0].max_bytes = 1 << 20;
	assert_int_equal(scene_build(&s), 0);
	assert_int_equal(at(&s, "ws/build")->kind, LP_M_TMPFS);
	assert_int_equal(at(&s, "ws/build")->arg, 1 << 20);
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_READ, "/usr/no-such-directory-here")->source = "/usr/bin";
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_SPEC);
	/* in the skeleton a place is made */
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_READ, "/data")->source = host_path(&s.tree, "data");
	assert_int_equal(scene_build(&s), 0);
	assert_non_null(at(&s, "/data"));
	/* hidden and absent: nothing */
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_HIDE, "ws/none");
	scene_rule(&s, SB_FILE_HIDE, "/root/.ssh");
	assert_int_equal(scene_build(&s), 0);
	assert_null(at(&s, "ws/none"));
	assert_null(at(&s, "/root/.ssh"));
	scene_close(&s);
}

static void links_are_not_followed_for_grants(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	scene_workspace(&s, "ws", true);
	host_write(&s.tree, "secret/f", "");
	host_link(&s.tree, "../secret", "ws/link");
	scene_rule(&s, SB_FILE_READ, "ws/link");
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_PATH);
	assert_non_null(strstr(s.err.message, "symbolic link"));
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_WRITE, "ws/link/f");
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_PATH);
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_PROTECT, "ws/link");
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_PATH);
	/* but the host's own links for /bin and the like are what they are */
	s.rule_count = 0;
	s.rules[0] = NULL;
	scene_rule(&s, SB_FILE_READ, "/bin/env");
	assert_int_equal(scene_build(&s), 0);
	assert_non_null(at(&s, "/usr/bin/env"));
	scene_close(&s);
}

static void absent_sources(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	scene_rule(&s, SB_FILE_READ, "none");
	assert_int_equal(scene_build(&s), SB_ERR_NOT_FOUND);
	s.rule[0].flags = SB_FILE_OPTIONAL;
	assert_int_equal(scene_build(&s), 0);
	assert_null(at(&s, "none"));
	scene_close(&s);
}

static void a_grant_takes_the_place_of_what_is_built_in(void **state)
{
	static const char *const refused[] = { "/", "/dev", "/proc" };
	size_t i;
	scene s;

	(void)state;
	scene_open(&s, false);
	scene_rule(&s, SB_FILE_READ, "/etc");
	assert_int_equal(scene_build(&s), 0);
	assert_int_equal(at(&s, "/etc")->kind, LP_M_BIND);
	assert_null(at(&s, "/etc/passwd"));
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_WRITE, "/tmp");
	assert_int_equal(scene_build(&s), 0);
	assert_int_equal(at(&s, "/tmp")->kind, LP_M_BIND);
	assert_int_equal(count_of(&s, "/tmp"), 1);
	/* below a link of ours a directory takes its place */
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_TMPFS, "/var/tmp/x");
	assert_int_equal(scene_build(&s), 0);
	assert_null(at(&s, "/var/tmp"));
	for (i = 0; i < UNIT_LEN(refused); i++) {
		s.rule_count = 0;
		scene_rule(&s, SB_FILE_READ, refused[i]);
		unit_row(i, scene_build(&s) == SB_ERR_INVALID_SPEC);
	}
	/* what a code run needs is not covered */
	s.wish.code = true;
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_READ, "/run");
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_SPEC);
	assert_non_null(strstr(s.err.message, "/run/code"));
	scene_close(&s);
}

static void a_hidden_directory_with_something_to_see(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	scene_workspace(&s, "ws", true);
	host_write(&s.tree, "ws/h/seen/f", "");
	scene_rule(&s, SB_FILE_HIDE, "ws/h");
	scene_rule(&s, SB_FILE_READ, "ws/h/seen");
	assert_int_equal(scene_build(&s), 0);
	assert_int_equal(at(&s, "ws/h")->kind, LP_M_TMPFS);
	assert_false(at(&s, "ws/h")->flags & LP_F_WRITE);
	assert_int_equal(at(&s, "ws/h/seen")->kind, LP_M_BIND);
	scene_close(&s);
}

static void nothing_is_shown_beneath_proc_or_a_file(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, false);
	host_write(&s.tree, "data/f", "");
	scene_rule(&s, SB_FILE_READ, "/proc/data")->source = host_path(&s.tree, "data");
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_SPEC);
	s.rule_count = 0;
	scene_rule(&s, SB_FILE_READ, "/dev/null/x")->source = host_path(&s.tree, "data");
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_SPEC);
	scene_close(&s);
}

/* A root caller's guest is nobody where nothing is mapped: see rules.c. */
static void what_is_mapped_for_root(void **state)
{
	scene s;

	(void)state;
	scene_open(&s, true);
	host_write(&s.tree, "open/f", "");
	host_write(&s.tree, "rw/f", "");
	scene_rule(&s, SB_FILE_READ, "open");
	scene_rule(&s, SB_FILE_WRITE, "rw");
	assert_int_equal(scene_build(&s), 0);
	assert_false(at(&s, "open")->flags & LP_F_IDMAP);
	assert_true(at(&s, "rw")->flags & LP_F_IDMAP);
	s.facts.root_caller = false;
	assert_int_equal(scene_build(&s), 0);
	assert_false(at(&s, "rw")->flags & LP_F_IDMAP);
	scene_close(&s);
}

static void named_sockets_are_bound(void **state)
{
	static const char *list[2];
	scene s;

	(void)state;
	scene_open(&s, false);
	host_write(&s.tree, "file", "");
	list[0] = host_path(&s.tree, "none.sock");
	s.network.unix_sockets = list;
	assert_int_equal(scene_build(&s), SB_ERR_NOT_FOUND);
	list[0] = host_path(&s.tree, "file");
	assert_int_equal(scene_build(&s), SB_ERR_INVALID_SPEC);
	scene_close(&s);
}

static void nodes_of_ours_are_counted_once(void **state)
{
	mount_table table;

	(void)state;
	mounts_init(&table);
	mounts_add(&table, LP_M_DIR, "", "/a", 0, 0755);
	assert_int_equal(mounts_nodes(&table), 4 + 1);
	mounts_add(&table, LP_M_FILE, "x", "/a/b/c", 0, 0444);
	assert_int_equal(mounts_nodes(&table), 4 + 3);
	mounts_add(&table, LP_M_SCRATCH, "tmp", "/tmp", 0, 01777);
	assert_int_equal(mounts_nodes(&table), 4 + 5);
	mounts_add(&table, LP_M_BIND, "/ws", "/ws", 0, 0);
	mounts_add(&table, LP_M_PROTECT, "", "/ws/x", 0, 0);
	assert_int_equal(mounts_nodes(&table), 4 + 6);
	mounts_release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_system_is_read_only_and_small),
		cmocka_unit_test(code_has_its_places),
		cmocka_unit_test(a_command_sees_its_callers_name),
		cmocka_unit_test(the_hosts_network_brings_its_names),
		cmocka_unit_test(without_a_fresh_proc_there_is_an_empty_one),
		cmocka_unit_test(etc_is_an_allow_list),
		cmocka_unit_test(the_workspace_is_bound_at_its_own_path),
		cmocka_unit_test(the_nearest_rule_lies_on_top),
		cmocka_unit_test(what_is_protected_cannot_be_moved_away),
		cmocka_unit_test(nothing_is_made_on_the_host),
		cmocka_unit_test(links_are_not_followed_for_grants),
		cmocka_unit_test(absent_sources),
		cmocka_unit_test(a_grant_takes_the_place_of_what_is_built_in),
		cmocka_unit_test(a_hidden_directory_with_something_to_see),
		cmocka_unit_test(nothing_is_shown_beneath_proc_or_a_file),
		cmocka_unit_test(what_is_mapped_for_root),
		cmocka_unit_test(named_sockets_are_bound),
		cmocka_unit_test(nodes_of_ours_are_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
