/* SPDX-License-Identifier: MIT */
/* carry.c - what goes into a box (code, files) and what a pump caught, into a result. */
#include "session.h"

static int put_tree(const sb_backend *table, sb_box *box, const char *path, const sb_tree *tree,
		    const sb_call *call, sb_error *err)
{
	if (!table->put)
		return error_set(err, SB_ERR_UNSUPPORTED, "put",
				 "the backend \"%s\" takes no files, so it cannot run code; use "
				 "another",
				 table->name);
	return table->put(box, path, tree, call, err);
}

int carry_code(const sb_backend *table, sb_box *box, const char *code_path, const void *code,
	       size_t len, const sb_call *call, sb_error *err)
{
	sb_tree *tree = NULL;
	int rc = sb_tree_new(len + 1, 8, &tree, err);

	if (rc >= 0)
		rc = sb_tree_write(tree, path_base(code_path), code ? code : "", len, err);
	if (rc >= 0)
		rc = put_tree(table, box, "/run/code", tree, call, err);
	sb_tree_free(tree);
	return rc;
}

static int copy_tree(sb_tree *to, const sb_tree *from, sb_error *err)
{
	sb_node node = { .size = sizeof node };
	int code = 0;

	for (size_t i = 0; code >= 0 && i < sb_tree_count(from); i++) {
		if (sb_tree_at(from, i, &node) < 0)
			break;
		if (node.what == SB_NODE_DIR)
			code = sb_tree_mkdir(to, node.path, err);
		else if (node.what == SB_NODE_FILE)
			code = sb_tree_write(to, node.path, node.data, node.len, err);
	}
	return code;
}

/* All in one tree under the quota, so that too much is told before anything runs. */
int carry_files(const sb_backend *table, sb_box *box, const sb_command *c, const sb_limits *limits,
		const sb_call *call, sb_error *err)
{
	sb_tree *tree = NULL;

	if (!(c->files && c->files[0]) && !(c->tree && sb_tree_count(c->tree)))
		return 0;
	int code = sb_tree_new(limits->fs_bytes, limits->fs_nodes, &tree, err);

	if (code >= 0 && c->tree)
		code = copy_tree(tree, c->tree, err);
	for (size_t i = 0; code >= 0 && c->files && c->files[i]; i++) {
		sb_file file;

		code = record_read(&file, sizeof file, c->files[i], "sb_file", err);
		if (code >= 0 && !file.path)
			code = error_set(err, SB_ERR_INVALID_PATH, "files", "a file has no path");
		if (code >= 0)
			code = sb_tree_write(tree, file.path, file.data ? file.data : "", file.len,
					     err);
	}
	if (code >= 0)
		code = put_tree(table, box, "/in", tree, call, err);
	sb_tree_free(tree);
	return code;
}

int carry_output(capture *from, sb_result *result, sb_error *err)
{
	for (int i = 0; i < 2; i++) {
		int stream = SB_STDOUT + i;

		result->output[stream] =
			capture_take(from, i, &result->output_len[stream], &result->gap_at[stream]);
		result->dropped[stream] = from->stream[i].dropped;
		result->truncated |= result->dropped[stream] > 0;
		if (!result->output[stream])
			return error_no_memory(err, "output");
	}
	return 0;
}
