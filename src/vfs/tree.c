/* SPDX-License-Identifier: MIT */
/*
 * tree.c - files in memory with live quotas.
 *
 * Nodes in the order of their paths (bytes), the root left out.  All beneath "a" is the stretch of
 * paths that begin with "a/".  A write first finds out whether it may, then gets all the memory it
 * needs, and only then changes anything: a failed write leaves no trace, no parents either.
 */
#include "tree.h"

#include <pthread.h>

#include "../core/core.h"
#include "order.h"

#define TREE_PATH_CAP 4097
#define TREE_DEPTH_MAX 64
#define TREE_NAME_MAX 255

struct sb_tree {
	pthread_mutex_t lock;
	order nodes;
	uint64_t bytes, max_bytes, max_nodes;
	uint64_t left_out[SB_LEFT_COUNT];
	bool passed_dir;
};

static int tree_refuse(sb_error *err, int code, const char *path, const char *why)
{
	return error_set(err, code, "tree", "path \"%s\" %s", path, why);
}

int sb_tree_new(uint64_t max_bytes, uint64_t max_nodes, sb_tree **tree, sb_error *err)
{
	sb_tree *t;

	if ((max_bytes > INT64_MAX && max_bytes != SB_UNLIMITED) ||
	    (max_nodes > INT64_MAX && max_nodes != SB_UNLIMITED))
		return error_set(err, SB_ERR_INVALID_LIMITS, "tree", "a quota is negative");
	t = calloc(1, sizeof *t);
	if (!t)
		return error_no_memory(err, "tree");
	t->max_bytes = max_bytes;
	t->max_nodes = max_nodes;
	t->nodes.dice = 2463534242u ^ (uint32_t)((uintptr_t)t >> 4);
	t->nodes.dice += !t->nodes.dice;
	pthread_mutex_init(&t->lock, NULL);
	*tree = t;
	return 0;
}

static void tree_node_free(tree_node *node)
{
	if (!node)
		return;
	free(node->path);
	free(node->data);
	free(node);
}

/* With all that hangs on it; the bytes that they held. */
static uint64_t tree_free_all(tree_node *root)
{
	uint64_t bytes = 0;

	if (root) {
		bytes = root->len + tree_free_all(root->before) + tree_free_all(root->behind);
		tree_node_free(root);
	}
	return bytes;
}

void sb_tree_free(sb_tree *tree)
{
	if (!tree)
		return;
	tree_free_all(tree->nodes.root);
	pthread_mutex_destroy(&tree->lock);
	free(tree);
}

static void tree_lock(const sb_tree *tree)
{
	pthread_mutex_lock(&((sb_tree *)tree)->lock);
}

static void tree_unlock(const sb_tree *tree)
{
	pthread_mutex_unlock(&((sb_tree *)tree)->lock);
}

static tree_node *tree_lookup(const sb_tree *tree, const char *path, size_t len)
{
	size_t place;

	return order_find(&tree->nodes, path, len, &place);
}

static tree_node *tree_node_new(const char *path, size_t path_len, const sb_node *from)
{
	tree_node *node = calloc(1, sizeof *node);

	if (!node)
		return NULL;
	node->path = strndup(path, path_len);
	node->data = malloc(from->len + 1);
	if (!node->path || !node->data) {
		tree_node_free(node);
		return NULL;
	}
	if (from->len)
		memcpy(node->data, from->data, from->len);
	node->data[from->len] = '\0';
	node->len = from->len;
	node->what = from->what;
	node->mode = from->mode ? from->mode : from->what == SB_NODE_DIR ? 0755 : 0644;
	return node;
}

/* Puts a new node in, or what it has into the old one: quotas have been looked at. */
static void tree_commit(sb_tree *tree, tree_node *node)
{
	size_t place;
	tree_node *old = order_find(&tree->nodes, node->path, strlen(node->path), &place);

	tree->bytes += node->len;
	if (!old) {
		order_insert(&tree->nodes, place, node);
		return;
	}
	char *data = old->data;

	tree->bytes -= old->len;
	old->data = node->data;
	old->len = node->len;
	old->what = node->what;
	old->mode = node->mode;
	node->data = data;
	tree_node_free(node);
}

/* Ends of the parents of a clean path that are not there yet.  NOT_DIR if one is something else. */
static int tree_missing(const sb_tree *tree, const char *path, size_t ends[TREE_DEPTH_MAX],
			size_t *count, sb_error *err)
{
	*count = 0;
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t len = (size_t)(slash - path);
		const tree_node *parent = tree_lookup(tree, path, len);

		if (!parent)
			ends[(*count)++] = len;
		else if (parent->what != SB_NODE_DIR)
			return tree_refuse(err, SB_ERR_NOT_DIR, path, "leads through a file");
	}
	return 0;
}

static int tree_check_quota(const sb_tree *tree, const sb_node *node, const tree_node *old,
			    size_t parents, sb_error *err)
{
	uint64_t used = tree->bytes - (old ? old->len : 0);

	if (tree->max_bytes != SB_UNLIMITED &&
	    (used > tree->max_bytes || node->len > tree->max_bytes - used) &&
	    node->len > (old ? old->len : 0))
		return error_set(
			err, SB_ERR_FS_QUOTA, "tree",
			"file \"%s\" of %zu bytes does not fit: %llu of %llu are used; allow more with "
			"--disk (fs_bytes)",
			node->path, node->len, (unsigned long long)used,
			(unsigned long long)tree->max_bytes);
	if (tree->max_nodes != SB_UNLIMITED && parents + !old > 0 &&
	    (order_count(&tree->nodes) > tree->max_nodes ||
	     parents + !old > tree->max_nodes - order_count(&tree->nodes)))
		return error_set(
			err, SB_ERR_TOO_MANY_FILES, "tree",
			"path \"%s\" is one too many: the limit is %llu files and directories; "
			"allow more with --disk-files (fs_nodes)",
			node->path, (unsigned long long)tree->max_nodes);
	return 0;
}

static int tree_put_locked(sb_tree *tree, const sb_node *node, sb_error *err)
{
	const sb_node dir = { .what = SB_NODE_DIR };
	const tree_node *old = tree_lookup(tree, node->path, strlen(node->path));
	tree_node *made[TREE_DEPTH_MAX + 1] = { NULL };
	size_t ends[TREE_DEPTH_MAX], parents, n = 0;
	int rc = tree_missing(tree, node->path, ends, &parents, err);

	if (rc == 0 && old && old->what == SB_NODE_DIR && node->what != SB_NODE_DIR)
		rc = tree_refuse(err, SB_ERR_IS_DIR, node->path, "is a directory");
	if (rc == 0 && old && old->what != SB_NODE_DIR && node->what == SB_NODE_DIR)
		rc = tree_refuse(err, SB_ERR_NOT_DIR, node->path, "is a file");
	if (rc < 0 || (old && node->what == SB_NODE_DIR))
		return rc;
	rc = tree_check_quota(tree, node, old, parents, err);
	if (rc < 0)
		return rc;
	for (; n < parents; n++)
		if (!(made[n] = tree_node_new(node->path, ends[n], &dir)))
			break;
	made[parents] = n == parents ? tree_node_new(node->path, strlen(node->path), node) : NULL;
	if (!made[parents]) {
		for (size_t i = 0; i <= parents; i++)
			tree_node_free(made[i]);
		return error_no_memory(err, "tree");
	}
	for (size_t i = 0; i <= parents; i++)
		tree_commit(tree, made[i]);
	return 0;
}

/* `node` with a path that has been looked at. */
static int tree_put_checked(sb_tree *tree, sb_node *node, sb_error *err)
{
	int rc;

	if (node->what < SB_NODE_FILE || node->what > SB_NODE_LINK_OUT ||
	    (!node->data && node->len > 0))
		return error_set(err, SB_ERR_INVALID, "tree",
				 "node \"%s\" has no known kind or no data", node->path);
	if (node->what == SB_NODE_DIR || node->what == SB_NODE_REMOVED) {
		node->data = NULL;
		node->len = 0;
	}
	tree_lock(tree);
	rc = tree_put_locked(tree, node, err);
	tree_unlock(tree);
	return rc;
}

int tree_put(sb_tree *tree, const sb_node *node, sb_error *err)
{
	char clean[TREE_PATH_CAP];
	sb_node in;
	int rc = record_read(&in, sizeof in, node, "sb_node", err);

	if (rc == 0)
		rc = sb_path_clean(in.path, clean, sizeof clean, NULL, err);
	if (rc < 0)
		return rc;
	if (strcmp(clean, ".") == 0)
		return in.what == SB_NODE_DIR
			       ? 0
			       : tree_refuse(err, SB_ERR_IS_DIR, in.path, "is the root directory");
	in.path = clean;
	return tree_put_checked(tree, &in, err);
}

/* Names between slashes, as a file system has them. */
static bool tree_is_raw(const char *path)
{
	size_t depth = 0;

	if (strnlen(path, TREE_PATH_CAP) == TREE_PATH_CAP)
		return false;
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0 || n > TREE_NAME_MAX || ++depth > TREE_DEPTH_MAX ||
		    (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

int tree_put_raw(sb_tree *tree, const sb_node *node, sb_error *err)
{
	sb_node in;
	int rc = record_read(&in, sizeof in, node, "sb_node", err);

	if (rc < 0)
		return rc;
	if (!in.path || !tree_is_raw(in.path))
		return tree_refuse(err, SB_ERR_INVALID_PATH, in.path ? in.path : "",
				   "is too long, too deep, or no path of names");
	return tree_put_checked(tree, &in, err);
}

void tree_leave_out(sb_tree *tree, int why)
{
	tree_lock(tree);
	tree->left_out[why]++;
	tree_unlock(tree);
}

void tree_pass_dir(sb_tree *tree)
{
	tree_lock(tree);
	tree->passed_dir = true;
	tree_unlock(tree);
}

int tree_found_any(const sb_tree *tree)
{
	bool passed;

	tree_lock(tree);
	passed = tree->passed_dir;
	tree_unlock(tree);
	return passed || sb_tree_count(tree) > 0 || sb_tree_left_out(tree, 0) > 0;
}

uint64_t sb_tree_left_out(const sb_tree *tree, int why)
{
	uint64_t count = 0;

	tree_lock(tree);
	for (int i = SB_LEFT_LINK; i < SB_LEFT_COUNT; i++)
		if (why == 0 || why == i)
			count += tree->left_out[i];
	tree_unlock(tree);
	return count;
}

int sb_tree_write(sb_tree *tree, const char *path, const void *data, size_t len, sb_error *err)
{
	const sb_node node = {
		.size = sizeof node, .path = path, .data = data, .len = len, .what = SB_NODE_FILE
	};

	return tree_put(tree, &node, err);
}

int sb_tree_mkdir(sb_tree *tree, const char *path, sb_error *err)
{
	const sb_node node = { .size = sizeof node, .path = path, .what = SB_NODE_DIR };

	return tree_put(tree, &node, err);
}

/* The path as it stands in the tree, else its clean form; `clean` has TREE_PATH_CAP bytes. */
static int tree_resolve(const sb_tree *tree, const char *path, char *clean, size_t *len,
			sb_error *err)
{
	bool raw = false;

	if (path && *path && tree_is_raw(path)) {
		*len = strlen(path);
		tree_lock(tree);
		raw = tree_lookup(tree, path, *len) != NULL;
		tree_unlock(tree);
	}
	if (!raw)
		return sb_path_clean(path, clean, TREE_PATH_CAP, len, err);
	memcpy(clean, path, *len + 1);
	return 0;
}

int sb_tree_remove(sb_tree *tree, const char *path, sb_error *err)
{
	char clean[TREE_PATH_CAP + 1];
	size_t len, place, end;
	int rc = tree_resolve(tree, path, clean, &len, err);

	if (rc < 0)
		return rc;
	if (strcmp(clean, ".") == 0)
		return tree_refuse(err, SB_ERR_INVALID_PATH, path,
				   "is the root and cannot be removed");
	tree_lock(tree);
	if (order_find(&tree->nodes, clean, len, &place))
		tree->bytes -= tree_free_all(order_cut(&tree->nodes, place, 1));
	/* what lies beneath stands between "path/" and "path0" */
	clean[len] = '/';
	order_find(&tree->nodes, clean, len + 1, &place);
	clean[len] = '/' + 1;
	order_find(&tree->nodes, clean, len + 1, &end);
	tree->bytes -= tree_free_all(order_cut(&tree->nodes, place, end - place));
	tree_unlock(tree);
	return 0;
}

static int tree_tell(const tree_node *from, sb_node *node, sb_error *err)
{
	const sb_node out = { .size = sizeof out,
			      .path = from->path,
			      .data = from->data,
			      .len = from->len,
			      .what = from->what,
			      .mode = from->mode };

	return record_write(node, &out, sizeof out, "sb_node", err);
}

int sb_tree_find(const sb_tree *tree, const char *path, sb_node *node, sb_error *err)
{
	static const tree_node root = {
		.path = (char *)".", .data = (char *)"", .what = SB_NODE_DIR, .mode = 0755
	};
	char clean[TREE_PATH_CAP];
	const tree_node *from;
	size_t len;
	int rc = tree_resolve(tree, path, clean, &len, err);

	if (rc < 0)
		return rc;
	tree_lock(tree);
	from = strcmp(clean, ".") == 0 ? &root : tree_lookup(tree, clean, len);
	rc = from ? tree_tell(from, node, err)
		  : tree_refuse(err, SB_ERR_NOT_FOUND, clean, "is not in the tree");
	tree_unlock(tree);
	return rc;
}

size_t sb_tree_count(const sb_tree *tree)
{
	size_t count;

	tree_lock(tree);
	count = order_count(&tree->nodes);
	tree_unlock(tree);
	return count;
}

uint64_t sb_tree_bytes(const sb_tree *tree)
{
	uint64_t bytes;

	tree_lock(tree);
	bytes = tree->bytes;
	tree_unlock(tree);
	return bytes;
}

int sb_tree_at(const sb_tree *tree, size_t index, sb_node *node)
{
	int rc = SB_ERR_INVALID;

	tree_lock(tree);
	const tree_node *at = order_at(&tree->nodes, index);

	if (at)
		rc = tree_tell(at, node, NULL);
	tree_unlock(tree);
	return rc;
}
