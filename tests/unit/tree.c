/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <pthread.h>

#include "../../src/base/base.h"
#include "../../src/vfs/tree.h"

static sb_tree *tree_of(uint64_t bytes, uint64_t nodes)
{
	sb_tree *tree = NULL;

	assert_int_equal(sb_tree_new(bytes, nodes, &tree, NULL), 0);
	return tree;
}

static int put(sb_tree *tree, const char *path, size_t len)
{
	static const char zeros[4096];

	return sb_tree_write(tree, path, zeros, len, NULL);
}

/* "a/ a/b=3 c=0" */
static const char *list(const sb_tree *tree)
{
	static char text[1024];

	text[0] = '\0';
	for (size_t i = 0; i < sb_tree_count(tree); i++) {
		sb_node node = { .size = sizeof node };
		size_t n = strlen(text);

		assert_int_equal(sb_tree_at(tree, i, &node), 0);
		if (node.what == SB_NODE_DIR)
			snprintf(text + n, sizeof text - n, "%s%s/", n ? " " : "", node.path);
		else
			snprintf(text + n, sizeof text - n, "%s%s=%zu", n ? " " : "", node.path,
				 node.len);
	}
	return text;
}

static void writes_make_parents_and_sort(void **state)
{
	sb_tree *tree = tree_of(SB_UNLIMITED, SB_UNLIMITED);
	sb_node node = { .size = sizeof node };
	char data[4] = "abc";

	(void)state;
	assert_int_equal(sb_tree_write(tree, "b/c/d", data, 3, NULL), 0);
	data[0] = 'x'; /* was copied */
	assert_int_equal(put(tree, "/b\\a", 1), 0);
	assert_int_equal(put(tree, "b-", 0), 0);
	assert_int_equal(sb_tree_mkdir(tree, "a/e", NULL), 0);
	assert_int_equal(sb_tree_mkdir(tree, "a/e", NULL), 0);
	assert_int_equal(sb_tree_mkdir(tree, ".", NULL), 0);
	assert_string_equal(list(tree), "a/ a/e/ b/ b-=0 b/a=1 b/c/ b/c/d=3");
	assert_int_equal(sb_tree_bytes(tree), 4);
	assert_int_equal(sb_tree_find(tree, "./b//c/d", &node, NULL), 0);
	assert_memory_equal(node.data, "abc", 4); /* and a NUL behind */
	assert_int_equal(node.mode, 0644);
	assert_int_equal(sb_tree_find(tree, "a", &node, NULL), 0);
	assert_int_equal(node.what, SB_NODE_DIR);
	assert_int_equal(node.mode, 0755);
	assert_int_equal(sb_tree_find(tree, "/", &node, NULL), 0);
	assert_int_equal(node.what, SB_NODE_DIR);
	assert_int_equal(sb_tree_find(tree, "b/", &node, NULL), 0);
	assert_int_equal(sb_tree_find(tree, "b/c/dd", &node, NULL), SB_ERR_NOT_FOUND);
	assert_int_equal(sb_tree_find(tree, "b/c/", &node, NULL), 0);
	assert_int_equal(sb_tree_find(tree, "..", &node, NULL), SB_ERR_INVALID_PATH);
	assert_int_equal(sb_tree_at(tree, 7, &node), SB_ERR_INVALID);
	sb_tree_free(tree);
	sb_tree_free(NULL);
}

static void structure_is_kept(void **state)
{
	sb_tree *tree = tree_of(SB_UNLIMITED, SB_UNLIMITED);

	(void)state;
	assert_int_equal(put(tree, "d/f", 1), 0);
	assert_int_equal(put(tree, "d", 1), SB_ERR_IS_DIR);
	assert_int_equal(put(tree, ".", 1), SB_ERR_IS_DIR);
	assert_int_equal(put(tree, "d/f/g", 1), SB_ERR_NOT_DIR);
	assert_int_equal(put(tree, "d/f/g/h", 1), SB_ERR_NOT_DIR);
	assert_int_equal(sb_tree_mkdir(tree, "d/f", NULL), SB_ERR_NOT_DIR);
	assert_int_equal(sb_tree_mkdir(tree, "d/f/g", NULL), SB_ERR_NOT_DIR);
	assert_int_equal(put(tree, "../x", 1), SB_ERR_INVALID_PATH);
	assert_int_equal(sb_tree_write(tree, "x", NULL, 1, NULL), SB_ERR_INVALID);
	assert_int_equal(sb_tree_write(tree, "e", NULL, 0, NULL), 0);
	assert_string_equal(list(tree), "d/ d/f=1 e=0");
	assert_int_equal(sb_tree_remove(tree, "nope/x", NULL), 0);
	assert_int_equal(sb_tree_remove(tree, "/", NULL), SB_ERR_INVALID_PATH);
	assert_int_equal(put(tree, "d-", 2), 0);
	assert_int_equal(put(tree, "d/g/h", 2), 0);
	assert_int_equal(put(tree, "dd", 2), 0);
	assert_int_equal(sb_tree_remove(tree, "d", NULL), 0);
	assert_string_equal(list(tree), "d-=2 dd=2 e=0");
	assert_int_equal(sb_tree_bytes(tree), 4);
	sb_tree_free(tree);
}

static void bytes_have_a_quota(void **state)
{
	sb_tree *tree = tree_of(10, SB_UNLIMITED);
	sb_error err;

	(void)state;
	assert_int_equal(put(tree, "a", 6), 0);
	assert_int_equal(sb_tree_write(tree, "d/e/b", "12345", 5, &err), SB_ERR_FS_QUOTA);
	assert_int_equal(err.kind, SB_KIND_BUDGET_EXCEEDED);
	assert_string_equal(list(tree), "a=6");	 /* no parents are left */
	assert_int_equal(put(tree, "a", 10), 0); /* only growth counts */
	assert_int_equal(put(tree, "a", 11), SB_ERR_FS_QUOTA);
	assert_int_equal(put(tree, "b", 0), 0);
	assert_int_equal(put(tree, "b", 1), SB_ERR_FS_QUOTA);
	assert_int_equal(put(tree, "a", 2), 0);
	assert_int_equal(put(tree, "b", 8), 0);
	assert_int_equal(sb_tree_remove(tree, "b", NULL), 0);
	assert_int_equal(put(tree, "c", 8), 0); /* room comes back */
	assert_int_equal(sb_tree_bytes(tree), 10);
	sb_tree_free(tree);
	assert_int_equal(sb_tree_new((uint64_t)-5, 1, &tree, NULL), SB_ERR_INVALID_LIMITS);
	assert_int_equal(sb_tree_new(1, (uint64_t)-5, &tree, NULL), SB_ERR_INVALID_LIMITS);
	tree = tree_of(0, 0); /* zero is no room, not no limit */
	assert_int_equal(put(tree, "a", 0), SB_ERR_TOO_MANY_FILES);
	sb_tree_free(tree);
}

static void nodes_have_a_quota(void **state)
{
	sb_tree *tree = tree_of(SB_UNLIMITED, 4);
	const sb_error *e;
	sb_error err;

	(void)state;
	assert_int_equal(put(tree, "a/b/c", 1), 0);
	assert_int_equal(sb_tree_write(tree, "d/e", "", 0, &err), SB_ERR_TOO_MANY_FILES);
	e = &err;
	assert_int_equal(e->code, SB_ERR_TOO_MANY_FILES);
	assert_int_equal(put(tree, "d", 1), 0);
	assert_int_equal(put(tree, "e", 1), SB_ERR_TOO_MANY_FILES);
	assert_int_equal(sb_tree_mkdir(tree, "e", NULL), SB_ERR_TOO_MANY_FILES);
	assert_int_equal(sb_tree_mkdir(tree, "a/b", NULL), 0);
	assert_int_equal(put(tree, "d", 100), 0); /* to write over one makes no node */
	assert_int_equal(sb_tree_remove(tree, "a", NULL), 0);
	assert_int_equal(put(tree, "x/y/z", 1), 0);
	assert_string_equal(list(tree), "d=100 x/ x/y/ x/y/z=1");
	sb_tree_free(tree);
}

static void other_kinds_come_from_backends(void **state)
{
	const sb_node link = { .size = sizeof link,
			       .path = "l",
			       .data = "/etc",
			       .len = 4,
			       .what = SB_NODE_LINK_OUT,
			       .mode = 0777 },
		      gone = { .size = sizeof gone,
			       .path = "g",
			       .data = "x",
			       .len = 1,
			       .what = SB_NODE_REMOVED },
		      unknown = { .size = sizeof unknown, .path = "u", .what = 9 };
	sb_tree *tree = tree_of(100, 100);
	sb_node node = { .size = sizeof node };

	(void)state;
	assert_int_equal(tree_put(tree, &link, NULL), 0);
	assert_int_equal(tree_put(tree, &gone, NULL), 0);
	assert_int_equal(tree_put(tree, &unknown, NULL), SB_ERR_INVALID);
	assert_int_equal(put(tree, "l/x", 1), SB_ERR_NOT_DIR); /* never through a link */
	assert_int_equal(sb_tree_find(tree, "l", &node, NULL), 0);
	assert_int_equal(node.what, SB_NODE_LINK_OUT);
	assert_int_equal(node.mode, 0777);
	assert_memory_equal(node.data, "/etc", 4);
	assert_int_equal(sb_tree_bytes(tree), 4);
	sb_tree_free(tree);
}

/* Against a model that only counts: quotas hold, failures change nothing, order stays. */
static void random_use_keeps_the_books(void **state)
{
	static const char *const paths[] = { "a", "a/b",     "a/b/c", "a/c", "a-b",   "a.c/d",
					     "b", "b/c/d/e", "c",     "c/d", "a/b/d", "ab" };
	uint64_t seed = 5;
	size_t full = 0, written = 0;
	char before[1024];
	sb_tree *tree = tree_of(200, 9);

	(void)state;
	for (int round = 0; round < 50000; round++) {
		const char *path = paths[unit_random(&seed) % UNIT_LEN(paths)];
		uint32_t what = unit_random(&seed) % 8;
		uint64_t bytes = 0;
		int rc;

		snprintf(before, sizeof before, "%s", list(tree));
		if (what == 0)
			rc = sb_tree_remove(tree, path, NULL);
		else if (what == 1)
			rc = sb_tree_mkdir(tree, path, NULL);
		else
			rc = put(tree, path, unit_random(&seed) % 90);
		full += rc == SB_ERR_FS_QUOTA || rc == SB_ERR_TOO_MANY_FILES;
		written += rc == 0;
		if (rc < 0)
			assert_string_equal(before, list(tree));
		assert_true(sb_tree_count(tree) <= 9);
		for (size_t i = 0; i < sb_tree_count(tree); i++) {
			sb_node node = { .size = sizeof node }, next = { .size = sizeof next };

			assert_int_equal(sb_tree_at(tree, i, &node), 0);
			bytes += node.len;
			if (sb_tree_at(tree, i + 1, &next) == 0)
				assert_true(strcmp(node.path, next.path) < 0);
		}
		assert_int_equal(bytes, sb_tree_bytes(tree));
		assert_true(bytes <= 200);
	}
	assert_true(full > 1000 && written > 1000);
	sb_tree_free(tree);
}

static void *fill(void *arg)
{
	sb_tree *tree = arg;
	char path[32];

	for (int i = 0; i < 2000; i++) {
		snprintf(path, sizeof path, "d%d/f%d", i % 7, i % 301);
		put(tree, path, (size_t)(i % 50));
		if (i % 5 == 0)
			sb_tree_remove(tree, path, NULL);
	}
	return NULL;
}

static void threads_never_exceed_the_quota(void **state)
{
	sb_tree *tree = tree_of(3000, 100);
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fill, tree), 0);
	for (int i = 0; i < 2000; i++)
		if (sb_tree_bytes(tree) > 3000 || sb_tree_count(tree) > 100)
			fail();
	for (size_t i = 0; i < UNIT_LEN(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(sb_tree_count(tree) > 7 && sb_tree_count(tree) <= 100);
	sb_tree_free(tree);
}

enum { MANY = 200000, PRIME = 7919 };

/* The time that they take, one after the other. */
static uint64_t put_many(sb_tree *tree, unsigned first, unsigned step)
{
	const uint64_t begun = clock_now_ns();
	unsigned n = first;
	char path[32];

	for (unsigned i = 0; i < MANY; i++, n = (n + step) % MANY) {
		snprintf(path, sizeof path, "d%u/%06u", n % 2, n);
		assert_int_equal(put(tree, path, 1), 0);
	}
	return clock_now_ns() - begun;
}

/* As they sort; as a tmpfs lists them, the newest first; and in no order. */
static void many_names_take_no_longer_for_their_order(void **state)
{
	static const unsigned ways[][2] = { { 0, 1 }, { MANY - 1, MANY - 1 }, { 0, PRIME } };
	uint64_t took[UNIT_LEN(ways)];

	(void)state;
	for (size_t way = 0; way < UNIT_LEN(ways); way++) {
		sb_tree *tree = tree_of(SB_UNLIMITED, SB_UNLIMITED);
		char last[32] = "";

		took[way] = put_many(tree, ways[way][0], ways[way][1]);
		assert_int_equal(sb_tree_count(tree), MANY + 2);
		assert_int_equal(sb_tree_bytes(tree), MANY);
		for (size_t i = 0; i < MANY + 2; i++) {
			sb_node node = { .size = sizeof node };

			if (sb_tree_at(tree, i, &node) < 0 || strcmp(last, node.path) >= 0)
				fail_msg("node %zu of way %zu", i, way);
			snprintf(last, sizeof last, "%s", node.path);
		}
		assert_int_equal(sb_tree_remove(tree, "d0", NULL), 0);
		assert_int_equal(sb_tree_count(tree), MANY / 2 + 1);
		assert_int_equal(sb_tree_bytes(tree), MANY / 2);
		sb_tree_free(tree);
	}
	/* an array that is moved for each takes a hundred times as long */
	for (size_t way = 1; way < UNIT_LEN(ways); way++)
		assert_true(took[way] < 10 * took[0] + 2000000000u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_make_parents_and_sort),
		cmocka_unit_test(structure_is_kept),
		cmocka_unit_test(bytes_have_a_quota),
		cmocka_unit_test(nodes_have_a_quota),
		cmocka_unit_test(other_kinds_come_from_backends),
		cmocka_unit_test(random_use_keeps_the_books),
		cmocka_unit_test(threads_never_exceed_the_quota),
		cmocka_unit_test(many_names_take_no_longer_for_their_order),
	};

	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
