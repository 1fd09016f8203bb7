/* SPDX-License-Identifier: MIT */
/*
 * mem_state.c - a tree in memory as a stream, and back: see state.h.
 *
 * Written: a head; the nodes by number, each with its bytes; the names, directory by directory in the order of
 * their cookies, so that a listing that was begun goes on.  Numbers come breadth first.  So a directory stands
 * in one with a lower number, and with one name at most for each there can be no circle.
 *
 * What is given (files of the pack, what is shown of the host) is not in it, only where it was laid and where it
 * stands: each side has its own.
 */
#include "mem_fs.h"
#include "state.h"

#include "../base/base.h"

#include <errno.h>
#include <stdlib.h>

#define NO_NUMBER UINT32_MAX
#define MOST_NUMBER ((uint64_t)1 << 62)
#define FIRST_COOKIE 2u

typedef struct tree_head {
	uint64_t nodes, names, next_ino;
} tree_head;

enum { IS_READONLY = 1, IS_GIVEN = 2, IS_FREE = 4 };
typedef struct node_record {
	uint64_t ino, size, next_cookie; /* size: of the bytes behind it; of what is given: of the path */
	int64_t atime_ns, mtime_ns, ctime_ns;
	uint32_t type, flags;
} node_record;

typedef struct name_record {
	uint64_t cookie;
	uint32_t dir, node, len, flags;
} name_record;

struct mem_index {
	mem_node **node;
	node_record *record;     /* of mem_load() */
	uint64_t count, names, next_ino;
};

/* ---- Streams ------------------------------------------------------------------------------------- */

void state_put(state_sink *to, const void *data, uint64_t len)
{
	to->bytes += len;
	if (to->put && !to->failed && len)
		to->failed = !to->put(to->user, data, len);
}

int state_get(state_source *from, void *data, uint64_t len)
{
	if (len > from->left)
		return -EPROTO;
	from->left -= len;
	return !len || from->get(from->user, data, len) ? 0 : -EIO;
}

bool state_has(const state_source *from, uint64_t count, uint64_t least)
{
	return count <= from->left / least;
}

/* ---- Numbers ------------------------------------------------------------------------------------- */

static void take_number(mem_index *index, mem_node *node)
{
	if (node->number != NO_NUMBER)
		return;
	node->number = (uint32_t)index->count;
	index->node[index->count++] = node;
}

static void take_all(mem_index *index, mem_fs *fs, vfs_file *const *open, size_t count)
{
	take_number(index, fs->root);
	for (uint64_t i = 0; i < index->count; i++) {
		const mem_node *dir = index->node[i];

		for (size_t n = 0; n < dir->count; n++)
			if (dir->at[n])
				take_number(index, dir->at[n]->node);
	}
	for (size_t i = 0; i < count; i++)
		take_number(index, mem_of(open[i]));
}

mem_index *mem_index_new(mem_fs *fs, vfs_file *const *open, size_t count)
{
	mem_index *index = calloc(1, sizeof *index);

	if (index)
		index->node = fs->entries + count < NO_NUMBER / 2 ?
				      calloc(fs->entries + count + 1, sizeof(mem_node *)) : NULL;
	if (!index || !index->node) {
		free(index);
		return NULL;
	}
	for (size_t i = 0; i < fs->buckets; i++)
		for (mem_entry *e = fs->bucket[i]; e; e = e->chain)
			e->node->number = NO_NUMBER;
	for (size_t i = 0; i < count; i++)
		mem_of(open[i])->number = NO_NUMBER;
	fs->root->number = NO_NUMBER;
	take_all(index, fs, open, count);
	index->names = fs->entries;
	index->next_ino = fs->next_ino;
	return index;
}

uint32_t mem_index_of(const vfs_file *file)
{
	return ((const mem_node *)(const void *)file)->number;
}

void mem_index_free(mem_index *index)
{
	if (!index)
		return;
	free(index->node);
	free(index->record);
	free(index);
}

/* ---- Writing ------------------------------------------------------------------------------------- */

static void save_node(const mem_node *node, state_sink *to)
{
	const void *data = node->given ? (const void *)node->given : node->data;
	node_record r = { .ino = node->ino, .size = node->given ? strlen(node->given) : node->size,
			  .next_cookie = node->next_cookie, .atime_ns = node->atime_ns,
			  .mtime_ns = node->mtime_ns, .ctime_ns = node->ctime_ns, .type = node->type };

	r.flags = (node->readonly ? IS_READONLY : 0u) | (node->given ? IS_GIVEN : 0u);
	state_put(to, &r, sizeof r);
	state_put(to, data, r.size);
}

static void save_name(const mem_entry *e, state_sink *to)
{
	const name_record r = { .cookie = e->cookie, .dir = e->dir->number, .node = e->node->number, .len = e->len,
				.flags = e->free_of_charge ? IS_FREE : 0 };

	state_put(to, &r, sizeof r);
	state_put(to, e->name, e->len);
}

void mem_save(const mem_index *index, state_sink *to)
{
	const tree_head head = { .nodes = index->count, .names = index->names, .next_ino = index->next_ino };

	state_put(to, &head, sizeof head);
	for (uint64_t i = 0; i < index->count; i++)
		save_node(index->node[i], to);
	for (uint64_t i = 0; i < index->count; i++)
		for (size_t n = 0; n < index->node[i]->count; n++)
			if (index->node[i]->at[n])
				save_name(index->node[i]->at[n], to);
}

/* ---- Reading ------------------------------------------------------------------------------------- */

typedef struct loading {
	mem_fs *fs;
	state_source *from;
	mem_index *index;
	mem_node **given;        /* of this side; NULL = taken */
	size_t given_count, given_left;
	uint64_t free_names;     /* as many as were laid here: no more cost nothing */
} loading;

static void let_go(mem_fs *fs, mem_node *node)
{
	node->opens--;
	mem_node_put(fs, node);
}

/* What is given here is held, and all else goes. */
static int make_room(loading *l)
{
	mem_fs *fs = l->fs;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < fs->buckets; i++)
			for (mem_entry *e = fs->bucket[i]; e; e = e->chain) {
				if (!round) {
					l->given_count += e->node->given != NULL;
					l->free_names += e->free_of_charge;
				} else if (e->node->given && l->given_left < l->given_count) {
					e->node->opens++;
					l->given[l->given_left++] = e->node;
				}
			}
		if (!round)
			l->given = calloc(l->given_count + 1, sizeof(mem_node *));
		if (!l->given)
			return -ENOMEM;
	}
	mem_clear_node(fs, fs->root);
	return 0;
}

static int take_given(loading *l, const node_record *r, mem_node **node)
{
	char path[VFS_PATH_MAX];
	int rc = r->size < sizeof path ? state_get(l->from, path, r->size) : -EPROTO;

	if (rc)
		return rc;
	path[r->size] = '\0';
	for (size_t i = 0; i < l->given_count; i++) {
		mem_node *own = l->given[i];

		if (!own || own->type != r->type || strcmp(own->given, path) != 0)
			continue;
		l->given[i] = NULL; /* the hold goes along */
		*node = own;
		return 0;
	}
	return -ENOENT;
}

static int read_link(loading *l, const node_record *r, mem_node *node)
{
	int rc;

	if (!r->size || r->size >= VFS_PATH_MAX)
		return -EPROTO;
	node->data = malloc(r->size);
	if (!node->data)
		return -ENOMEM;
	node->size = node->room = r->size;
	rc = state_get(l->from, node->data, r->size);
	return rc ? rc : memchr(node->data, 0, r->size) || node->data[0] == '/' ? -EPROTO : 0;
}

static int read_content(loading *l, const node_record *r, mem_node *node)
{
	int rc;

	switch (r->type) {
	case VFS_DIR:
		return r->size ? -EPROTO : 0;
	case VFS_LINK:
		return read_link(l, r, node);
	default:
		if (r->size > l->from->left)
			return -EPROTO;
		rc = mem_set_size(l->fs, node, r->size);
		return rc ? rc : state_get(l->from, node->data, r->size);
	}
}

static bool record_fits(const loading *l, const node_record *r, uint64_t number)
{
	bool root = number == 0;

	if (r->type != VFS_FILE && r->type != VFS_DIR && r->type != VFS_LINK)
		return false;
	if ((r->flags & ~(uint32_t)(IS_READONLY | IS_GIVEN)) || (root && (r->type != VFS_DIR || r->flags & IS_GIVEN)))
		return false;
	return (root ? r->ino == 1 : r->ino > 1) && r->ino < l->index->next_ino && r->next_cookie >= FIRST_COOKIE &&
	       r->next_cookie <= MOST_NUMBER;
}

/* In the index it is held, as if it were open. */
static int read_node(loading *l, uint64_t number)
{
	node_record *r = &l->index->record[number];
	mem_node *node = NULL;
	int rc = state_get(l->from, r, sizeof *r);

	if (!rc && !record_fits(l, r, number))
		rc = -EPROTO;
	if (!rc && r->flags & IS_GIVEN)
		rc = take_given(l, r, &node);
	if (rc)
		return rc;
	if (!node) {
		node = number ? mem_node_new(l->fs, (int)r->type) : l->fs->root;
		if (!node)
			return -ENOMEM;
		node->opens++;
	}
	node->number = (uint32_t)number;
	l->index->node[number] = node;
	l->index->count = number + 1;
	return r->flags & IS_GIVEN ? 0 : read_content(l, r, node);
}

static bool name_is_one(const char *name, uint32_t len)
{
	bool dots = name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'));

	return !dots && !memchr(name, '/', len) && !memchr(name, 0, len);
}

/* May this name stand there?  Both numbers were looked at. */
static bool name_fits(const loading *l, const name_record *r, const mem_node *dir, const mem_node *node)
{
	const mem_entry *last = dir->count ? dir->at[dir->count - 1] : NULL;
	bool once = node->type == VFS_DIR || node->given;

	if (dir->type != VFS_DIR || dir->given || r->node == 0 || (once && node->links))
		return false;
	if (node->type == VFS_DIR && r->node <= r->dir)
		return false;
	return r->cookie >= FIRST_COOKIE && (!last || r->cookie > last->cookie) &&
	       r->cookie < l->index->record[r->dir].next_cookie && !(r->flags & ~(uint32_t)IS_FREE);
}

static int read_name(loading *l)
{
	char name[VFS_NAME_MAX];
	mem_node *dir, *node;
	mem_entry *entry;
	name_record r;
	int rc = state_get(l->from, &r, sizeof r);

	if (rc)
		return rc;
	if (!r.len || r.len > sizeof name || r.dir >= l->index->count || r.node >= l->index->count)
		return -EPROTO;
	dir = l->index->node[r.dir];
	node = l->index->node[r.node];
	rc = state_get(l->from, name, r.len);
	if (rc)
		return rc;
	if (!name_is_one(name, r.len) || !name_fits(l, &r, dir, node) || mem_find(l->fs, dir, name, r.len))
		return -EPROTO;
	if (r.flags & IS_FREE && !l->free_names--)
		return -EPROTO;
	rc = mem_entry_new(l->fs, dir, name, r.len, !(r.flags & IS_FREE), &entry);
	if (rc)
		return rc;
	dir->next_cookie = r.cookie;
	mem_entry_link(l->fs, dir, entry, node);
	return 0;
}

/* What the making of the tree has changed on the way, and what has to hold of all of it. */
static int finish(loading *l)
{
	for (uint64_t i = 0; i < l->index->count; i++) {
		const node_record *r = &l->index->record[i];
		mem_node *node = l->index->node[i];

		if (i && node->type == VFS_DIR && !node->links && node->live)
			return -EPROTO; /* a directory is removed when it is empty */
		node->atime_ns = r->atime_ns;
		node->mtime_ns = r->mtime_ns;
		node->ctime_ns = r->ctime_ns;
		if (node->given)
			continue; /* how it may be used is this side's to say */
		node->readonly = r->flags & IS_READONLY;
		node->next_cookie = r->next_cookie;
	}
	l->fs->next_ino = l->index->next_ino;
	return 0;
}

/* Names are found by their directory's number: it is set before the first of them. */
static void number_inodes(const mem_index *index)
{
	for (uint64_t i = 0; i < index->count; i++)
		index->node[i]->ino = index->record[i].ino;
}

static int read_tree(loading *l)
{
	tree_head head;
	int rc = state_get(l->from, &head, sizeof head);

	if (rc)
		return rc;
	if (!head.nodes || head.nodes >= NO_NUMBER || head.names >= NO_NUMBER || head.next_ino > MOST_NUMBER ||
	    !state_has(l->from, head.nodes, sizeof(node_record)) ||
	    !state_has(l->from, head.names, sizeof(name_record)))
		return -EPROTO;
	l->index->next_ino = head.next_ino;
	l->index->node = calloc(head.nodes, sizeof(mem_node *));
	l->index->record = calloc(head.nodes, sizeof(node_record));
	if (!l->index->node || !l->index->record)
		return -ENOMEM;
	for (uint64_t i = 0; !rc && i < head.nodes; i++)
		rc = read_node(l, i);
	if (rc)
		return rc;
	number_inodes(l->index);
	for (uint64_t i = 0; !rc && i < head.names; i++)
		rc = read_name(l);
	return rc ? rc : finish(l);
}

int mem_load(mem_fs *fs, state_source *from, mem_index **out)
{
	loading l = { .fs = fs, .from = from, .index = calloc(1, sizeof(mem_index)) };
	int rc = l.index ? make_room(&l) : -ENOMEM;

	if (!rc)
		rc = read_tree(&l);
	for (size_t i = 0; i < l.given_left; i++)
		if (l.given[i])
			let_go(fs, l.given[i]);
	free(l.given);
	if (rc) {
		mem_clear_node(fs, fs->root);
		for (uint64_t i = 0; l.index && i < l.index->count; i++)
			mem_clear_node(fs, l.index->node[i]); /* what nothing leads to */
		mem_index_settle(fs, l.index);
	}
	*out = rc ? NULL : l.index;
	return rc;
}

vfs_file *mem_index_open(const mem_index *index, uint32_t number)
{
	mem_node *node = number < index->count ? index->node[number] : NULL;

	if (!node || node->type == VFS_LINK || node->mounted)
		return NULL;
	node->opens++;
	return (vfs_file *)(void *)node;
}

void mem_index_settle(mem_fs *fs, mem_index *index)
{
	if (!index)
		return;
	for (uint64_t i = 0; i < index->count; i++)
		let_go(fs, index->node[i]);
	mem_index_free(index);
}
