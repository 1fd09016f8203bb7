/* SPDX-License-Identifier: MIT */
/*
 * order.h - nodes in the order of their paths, found by path or by number.
 *
 * A treap: a search tree that is a heap in random ranks, so that its depth does not depend on the order
 * in which names come.  Links lie in the nodes: nothing here needs memory, nothing can fail.
 */
#ifndef SB_VFS_ORDER_H
#define SB_VFS_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tree_node {
	char *path, *data;
	size_t len;
	uint32_t what, mode;
	struct tree_node *before, *behind; /* of the order's own: the subtrees, */
	size_t count;                      /* how many nodes they are with this one, */
	uint32_t rank;                     /* and what keeps them shallow */
} tree_node;

typedef struct order {
	tree_node *root;
	uint32_t dice; /* any but 0 */
} order;

size_t order_count(const order *o);
/* The node with this path, of which `len` bytes count, or NULL; *place is its number, or the one that
 * it would have. */
tree_node *order_find(const order *o, const char *path, size_t len, size_t *place);
tree_node *order_at(const order *o, size_t place); /* NULL = not so many */
/* `node` becomes number `place`, which order_find() told. */
void order_insert(order *o, size_t place, tree_node *node);
/* Takes `count` nodes out from `place` on: the root of a tree of them, or NULL. */
tree_node *order_cut(order *o, size_t place, size_t count);

#endif /* SB_VFS_ORDER_H */
