/* SPDX-License-Identifier: MIT */
/* What a hostile guest may leave behind, and what of it comes out. */
#include "unit.h"

#include <linux/fs.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../../src/backend/linux/linux.h"
#include "host_tree.h"

static const sb_call now = { .size = sizeof now, .deadline_ns = SB_UNLIMITED, .cancel_fd = -1 };

typedef struct harvest {
	sb_tree *tree;
	sb_error err;
	int rc;
} harvest;

static void collect(const host_tree *t, const char *dir, uint64_t bytes, uint64_t nodes, harvest *h)
{
	int fd = open(host_path(t, dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int real = open(host_path(t, dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0 && real >= 0);
	assert_int_equal(sb_tree_new(bytes, nodes, &h->tree, NULL), 0);
	h->rc = collect_tree(real, "/out", true, &now, h->tree, &h->err);
	close(fd);
	close(real);
}

static const char *text_of(const harvest *h, const char *path)
{
	static char text[256];
	sb_node node = { .size = sizeof node };

	if (sb_tree_find(h->tree, path, &node, NULL))
		return "(absent)";
	snprintf(text, sizeof text, "%.*s", (int)node.len, (const char *)node.data);
	return text;
}

static void files_come_out_as_they_are(void **state)
{
	host_tree t;
	harvest h;

	(void)state;
	host_tree_open(&t);
	host_write(&t, "out/a.txt", "hi");
	host_write(&t, "out/sub/deep/b", "there");
	host_write(&t, "out/empty", "");
	host_make(&t, "out/hollow/");
	collect(&t, "out", 1 << 20, 100, &h);
	assert_int_equal(h.rc, 0);
	assert_string_equal(text_of(&h, "a.txt"), "hi");
	assert_string_equal(text_of(&h, "sub/deep/b"), "there");
	assert_string_equal(text_of(&h, "empty"), "");
	assert_string_equal(text_of(&h, "hollow"), "(absent)");
	assert_int_equal(sb_tree_left_out(h.tree, 0), 0);
	sb_tree_free(h.tree);
	host_tree_close(&t);
}

static void links_lead_nowhere(void **state)
{
	host_tree t;
	harvest h;

	(void)state;
	host_tree_open(&t);
	host_write(&t, "secret", "topsecret");
	host_write(&t, "out/plain", "x");
	host_link(&t, host_path(&t, "secret"), "out/absolute");
	host_link(&t, "../secret", "out/relative");
	host_link(&t, "plain", "out/inner");
	host_link(&t, "/", "out/root");
	host_link(&t, "..", "out/up");
	host_link(&t, "/proc/self/fd/0", "out/magic");
	host_link(&t, "loop", "out/loop");
	collect(&t, "out", 1 << 20, 100, &h);
	assert_int_equal(h.rc, 0);
	assert_int_equal(sb_tree_bytes(h.tree), 1);
	assert_string_equal(text_of(&h, "plain"), "x");
	assert_string_equal(text_of(&h, "absolute"), "(absent)");
	assert_int_equal(sb_tree_left_out(h.tree, SB_LEFT_LINK), 7);
	assert_int_equal(sb_tree_left_out(h.tree, 0), 7);
	sb_tree_free(h.tree);
	host_tree_close(&t);
}

/* Opening a fifo would wait for ever. */
static void what_is_no_file_is_left_out(void **state)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	host_tree t;
	harvest h;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	host_tree_open(&t);
	host_write(&t, "out/z", "last");
	assert_int_equal(mkfifo(host_path(&t, "out/fifo"), 0644), 0);
	snprintf(name.sun_path, sizeof name.sun_path, "%s", host_path(&t, "out/socket"));
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
	collect(&t, "out", 1 << 20, 100, &h);
	assert_int_equal(h.rc, 0);
	assert_string_equal(text_of(&h, "z"), "last");
	assert_int_equal(sb_tree_left_out(h.tree, SB_LEFT_SPECIAL), 2);
	assert_int_equal(sb_tree_left_out(h.tree, 0), 2);
	sb_tree_free(h.tree);
	close(fd);
	host_tree_close(&t);
}

static void rights_taken_away_are_no_hiding_place(void **state)
{
	host_tree t;
	harvest h;

	(void)state;
	host_tree_open(&t);
	host_write(&t, "out/locked/f", "inside");
	host_write(&t, "out/f", "closed");
	assert_int_equal(chmod(host_path(&t, "out/f"), 0), 0);
	assert_int_equal(chmod(host_path(&t, "out/locked"), 0), 0);
	collect(&t, "out", 1 << 20, 100, &h);
	assert_int_equal(h.rc, 0);
	assert_string_equal(text_of(&h, "f"), "closed");
	assert_string_equal(text_of(&h, "locked/f"), "inside");
	sb_tree_free(h.tree);
	host_tree_close(&t);
}

/* While something runs, a locked folder may become a link between two of our steps. */
static void swap_for_ever(const char *one, const char *other)
{
	while (getppid() != 1)
		if (syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) < 0)
			_exit(1);
	_exit(0);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? 0 : st.st_mode & 07777;
}

/* As somebody to whom a locked folder is closed; 0 = the other one was never touched. */
static int open_while_swapped(const host_tree *t)
{
	const char *victim = host_path(t, "victim"), *one = host_path(t, "out/one"), *other = host_path(t, "out/other");
	int dir = open(host_path(t, "out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC), touched = 0;
	pid_t swapper;

	if (geteuid() == 0 && (setgid(1000) < 0 || setuid(1000) < 0))
		return 2;
	if (mkdir(victim, 0500) < 0 || mkdir(one, 0) < 0 || symlink("../victim", other) < 0)
		return 3;
	swapper = fork();
	if (!swapper)
		swap_for_ever(one, other);
	for (int i = 0; i < 20000 && !touched; i++) {
		int fd = collect_open(dir, "one", O_RDONLY | O_DIRECTORY, 0700);

		if (fd >= 0)
			fchmod(fd, 0);
		fd_close(&fd);
		touched = mode_of(victim) != 0500;
	}
	kill(swapper, SIGKILL);
	waitpid(swapper, NULL, 0);
	return touched;
}

static void no_link_is_followed_to_change_rights(void **state)
{
	host_tree t;
	pid_t pid;
	int status;

	(void)state;
	host_tree_open(&t);
	host_make(&t, "out/");
	assert_int_equal(chmod(t.dir, 0777) | chmod(host_path(&t, "out"), 0777), 0);
	pid = fork();
	if (!pid)
		_exit(open_while_swapped(&t));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	host_tree_close(&t);
}

/* Whatever Linux takes for a name comes out under that name, and beside its near relations. */
static void every_name_comes_out(void **state)
{
	static const char *const names[] = {
		"good", "bad\nname", "bad\xff", "a:b", "c:", "C:\\x", "back\\slash", "back/slash",
		"\\\\net\\share", "..\\..\\etc", "...", "..x", "-dash", "--", " sp ", "\x01\x1b[31m",
		"q\"uote'", "\xe2\x80\xae", "d:/f", "d\n/f", "%s%n",
	};
	host_tree t;
	harvest h;
	char name[64], longest[256];

	(void)state;
	host_tree_open(&t);
	for (size_t i = 0; i < UNIT_LEN(names); i++) {
		snprintf(name, sizeof name, "out/%s", names[i]);
		host_write(&t, name, names[i]);
	}
	memset(longest, 'x', 255);
	longest[255] = 0;
	char path[300];
	snprintf(path, sizeof path, "out/%s", longest);
	host_write(&t, path, "long");
	collect(&t, "out", 1 << 20, 1000, &h);
	assert_int_equal(h.rc, 0);
	assert_int_equal(sb_tree_left_out(h.tree, 0), 0);
	for (size_t i = 0; i < UNIT_LEN(names); i++)
		unit_row(i, strcmp(text_of(&h, names[i]), names[i]) == 0);
	assert_string_equal(text_of(&h, longest), "long");
	/* three directories: back, d: and the one with a line's end */
	assert_int_equal(sb_tree_count(h.tree), UNIT_LEN(names) + 1 + 3);
	sb_tree_free(h.tree);
	host_tree_close(&t);
}

static void what_lies_too_deep_is_counted(void **state)
{
	char deep[512] = "out";
	host_tree t;
	harvest h;
	int i;

	(void)state;
	host_tree_open(&t);
	host_write(&t, "out/good", "1");
	for (i = 0; i < 63; i++)
		snprintf(deep + strlen(deep), sizeof deep - strlen(deep), "/d");
	snprintf(deep + strlen(deep), sizeof deep - strlen(deep), "/f");
	host_write(&t, deep, "the last that fits");
	deep[strlen(deep) - 1] = 'd';
	snprintf(deep + strlen(deep), sizeof deep - strlen(deep), "/f");
	host_write(&t, deep, "one too deep");
	collect(&t, "out", 1 << 20, 1000, &h);
	assert_int_equal(h.rc, 0);
	assert_int_equal(sb_tree_bytes(h.tree), 1 + strlen("the last that fits"));
	assert_int_equal(sb_tree_left_out(h.tree, SB_LEFT_TOO_DEEP), 1);
	assert_int_equal(sb_tree_left_out(h.tree, 0), 1);
	sb_tree_free(h.tree);
	host_tree_close(&t);
}

static void the_trees_own_quota_holds(void **state)
{
	host_tree t;
	harvest h;

	(void)state;
	host_tree_open(&t);
	host_write(&t, "out/a", "12345");
	host_write(&t, "out/b", "12345");
	collect(&t, "out", 9, 100, &h);
	assert_int_equal(h.rc, SB_ERR_FS_QUOTA);
	sb_tree_free(h.tree);
	collect(&t, "out", 100, 1, &h);
	assert_int_equal(h.rc, SB_ERR_TOO_MANY_FILES);
	sb_tree_free(h.tree);
	/* a terabyte of nothing: told at once, and not held in memory */
	assert_int_equal(truncate(host_path(&t, "out/a"), (off_t)1 << 40), 0);
	collect(&t, "out", 1 << 20, 100, &h);
	assert_int_equal(h.rc, SB_ERR_FS_QUOTA);
	sb_tree_free(h.tree);
	host_tree_close(&t);
}

static void a_deadline_ends_it(void **state)
{
	const sb_call late = { .size = sizeof late, .deadline_ns = 1, .cancel_fd = -1 };
	sb_tree *tree;
	sb_error err;
	host_tree t;
	int fd;

	(void)state;
	host_tree_open(&t);
	host_write(&t, "out/a", "12345");
	fd = open(host_path(&t, "out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sb_tree_new(100, 100, &tree, NULL), 0);
	assert_int_equal(collect_tree(fd, "/out", true, &late, tree, &err), SB_ERR_TIMEOUT);
	sb_tree_free(tree);
	close(fd);
	host_tree_close(&t);
}

static void sizes_count_base_directories_and_no_targets(void **state)
{
	uint64_t bytes = 0, nodes = 0;
	host_tree t;
	int fd;

	(void)state;
	host_tree_open(&t);
	host_write(&t, "big", "0123456789");
	host_write(&t, "d/one", "12345");
	host_write(&t, "d/sub/two", "67");
	host_link(&t, "../big", "d/link");
	fd = open(host_path(&t, "d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(collect_sizes(fd, &bytes, &nodes), 0);
	assert_int_equal(bytes, 7);
	assert_int_equal(nodes, 5); /* d, one, sub, two, link */
	close(fd);
	host_tree_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_come_out_as_they_are),
		cmocka_unit_test(links_lead_nowhere),
		cmocka_unit_test(what_is_no_file_is_left_out),
		cmocka_unit_test(rights_taken_away_are_no_hiding_place),
		cmocka_unit_test(no_link_is_followed_to_change_rights),
		cmocka_unit_test(every_name_comes_out),
		cmocka_unit_test(what_lies_too_deep_is_counted),
		cmocka_unit_test(the_trees_own_quota_holds),
		cmocka_unit_test(a_deadline_ends_it),
		cmocka_unit_test(sizes_count_base_directories_and_no_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
