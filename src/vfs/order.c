/* SPDX-License-Identifier: MIT */
/* order.c - see order.h.  The recursions are as deep as the treap is: some 40 for a million nodes. */
#include "order.h"

#include <string.h>

static size_t count_of(const tree_node *node)
{
	return node ? node->count : 0;
}

static tree_node *counted(tree_node *node)
{
	node->count = count_of(node->before) + 1 + count_of(node->behind);
	return node;
}

size_t order_count(const order *o)
{
	return count_of(o->root);
}

/* The path of a node against `len` bytes of another. */
static int compare(const char *own, const char *path, size_t len)
{
	int diff = strncmp(own, path, len);

	return diff ? diff : own[len] != '\0';
}

tree_node *order_find(const order *o, const char *path, size_t len, size_t *place)
{
	tree_node *node = o->root;

	*place = 0;
	while (node) {
		int diff = compare(node->path, path, len);

		if (diff == 0) {
			*place += count_of(node->before);
			return node;
		}
		if (diff < 0)
			*place += count_of(node->before) + 1;
		node = diff < 0 ? node->behind : node->before;
	}
	return NULL;
}

tree_node *order_at(const order *o, size_t place)
{
	tree_node *node = o->root;

	while (node && place != count_of(node->before)) {
		bool behind = place > count_of(node->before);

		if (behind)
			place -= count_of(node->before) + 1;
		node = behind ? node->behind : node->before;
	}
	return node;
}

/* The first `count` nodes, and the others. */
static void split(tree_node *node, size_t count, tree_node **first, tree_node **others)
{
	if (!node) {
		*first = *others = NULL;
	} else if (count > count_of(node->before)) {
		split(node->behind, count - count_of(node->before) - 1, &node->behind, others);
		*first = counted(node);
	} else {
		split(node->before, count, first, &node->before);
		*others = counted(node);
	}
}

static tree_node *join(tree_node *first, tree_node *others)
{
	if (!first || !others)
		return first ? first : others;
	if (first->rank > others->rank) {
		first->behind = join(first->behind, others);
		return counted(first);
	}
	others->before = join(first, others->before);
	return counted(others);
}

static uint32_t throw(order *o)
{
	o->dice ^= o->dice << 13; /* xorshift: all values but 0, each once in 2^32 - 1 */
	o->dice ^= o->dice >> 17;
	o->dice ^= o->dice << 5;
	return o->dice;
}

void order_insert(order *o, size_t place, tree_node *node)
{
	tree_node *first, *others;

	node->before = node->behind = NULL;
	node->rank = throw(o);
	split(o->root, place, &first, &others);
	o->root = join(join(first, counted(node)), others);
}

tree_node *order_cut(order *o, size_t place, size_t count)
{
	tree_node *first, *cut, *others;

	split(o->root, place, &first, &others);
	split(others, count, &cut, &others);
	o->root = join(first, others);
	return cut;
}
