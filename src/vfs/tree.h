/* SPDX-License-Identifier: MIT */
/* tree.h - what backends need of trees besides the public functions. */
#ifndef SB_VFS_TREE_H
#define SB_VFS_TREE_H

#include <sandbox/sandbox.h>

/* sb_tree_write()/mkdir() with a kind and a mode of the node's: SB_NODE_FILE, DIR, REMOVED or
 * LINK_OUT (data: the link's text).  mode 0 = 0644, a directory 0755.  The path need not be clean.
 * INVALID_PATH, IS_DIR, NOT_DIR, FS_QUOTA, TOO_MANY_FILES: nothing is changed then. */
int tree_put(sb_tree *tree, const sb_node *node, sb_error *err);

/* The same for a path as it stands on a file system: any bytes but NUL, each element a name. */
int tree_put_raw(sb_tree *tree, const sb_node *node, sb_error *err);
/* One more that the tree does not have. */
void tree_leave_out(sb_tree *tree, int why);
/* A directory where a collector was, which gets no node of its own. */
void tree_pass_dir(sb_tree *tree);
/* 1 = a collector found something: a node, a directory, or what was left out. */
int tree_found_any(const sb_tree *tree);

#endif /* SB_VFS_TREE_H */
