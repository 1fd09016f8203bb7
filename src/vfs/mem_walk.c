/* SPDX-License-Identifier: MIT */
/*
 * mem_walk.c - from a path to a place in the tree.
 *
 * Names are taken one by one; the text of a link takes the place of its name in front of what is
 * left.  `depth` counts how far beneath the directory of the start we are: a ".." at 0 would leave it,
 * and is refused, whoever brought it, path or link.
 */
#include "mem_fs.h"

#include "../base/base.h"

#include <errno.h>

typedef struct walk {
	mem_fs *fs;
	mem_place *place;
	mem_node *at;
	uint32_t depth, links;
	int follow; /* MEM_NAME.. */
	size_t from; /* of what is left in place->text */
} walk;

static bool walk_more(const char *rest)
{
	return rest[strspn(rest, "/")] != '\0';
}

/* The text of a link before the rest; both end up at the end of the buffer. */
static int walk_expand(walk *w, const mem_node *link, size_t behind)
{
	char *text = w->place->text;
	size_t rest = strlen(text + behind), len = (size_t)link->size;

	if (++w->links > VFS_LINKS_MAX)
		return -ELOOP;
	if (len + rest + 1 > sizeof w->place->text)
		return -ENAMETOOLONG;
	if (len && link->data[0] == '/')
		return -EPERM;
	memmove(text + len, text + behind, rest + 1);
	memcpy(text, link->data, len);
	w->from = 0;
	return 0;
}

static void walk_end(walk *w, int last, mem_node *node, mem_entry *entry, size_t len, bool slash)
{
	mem_place *p = w->place;

	p->dir = last == MEM_LAST_NAME ? w->at : node;
	p->node = node;
	p->entry = entry;
	p->name = p->text + w->from;
	p->len = len;
	p->last = last;
	p->slash = slash;
}

static int walk_dots(walk *w, size_t len, bool more, bool slash)
{
	mem_node *to = w->at;

	if (len == 2) {
		if (w->depth == 0)
			return -EPERM;
		if (!to->parent)
			return -ENOENT; /* removed meanwhile */
		to = to->parent;
		w->depth--;
	}
	if (!more)
		walk_end(w, len == 2 ? MEM_LAST_DOTDOT : MEM_LAST_DOT, to, NULL, len, slash);
	w->at = to;
	return 0;
}

/* One name; *done when it was the last. */
static int walk_step(walk *w, bool *done)
{
	const char *name = w->place->text + w->from;
	size_t len = strcspn(name, "/");
	const char *rest = name + len;
	bool more = walk_more(rest), slash = *rest == '/';
	mem_entry *e;

	if (len > VFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (w->at->type != VFS_DIR)
		return -ENOTDIR;
	*done = !more;
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))) {
		int rc = walk_dots(w, len, more, slash);

		w->from += len + strspn(rest, "/");
		return rc;
	}
	e = mem_find(w->fs, w->at, name, len);
	if (e && e->node->type == VFS_LINK && (more || w->follow == MEM_FOLLOW ||
					 w->follow == (slash ? MEM_STAY : MEM_MAKE))) {
		*done = false;
		return walk_expand(w, e->node, w->from + len);
	}
	if (!more) {
		walk_end(w, MEM_LAST_NAME, e ? e->node : NULL, e, len, slash);
		return e && slash && (w->follow == MEM_STAY || w->follow == MEM_FOLLOW) && e->node->type != VFS_DIR ?
			       -ENOTDIR : 0;
	}
	if (!e)
		return -ENOENT;
	w->at = e->node;
	w->depth++;
	w->from += len + strspn(rest, "/");
	return w->at->type == VFS_DIR ? 0 : -ENOTDIR;
}

int mem_resolve(mem_fs *fs, mem_node *base, const char *path, int follow, mem_place *place)
{
	walk w = { .fs = fs, .place = place, .at = base, .follow = follow };
	size_t len = strnlen(path, VFS_PATH_MAX);
	bool done = false;
	int rc = 0;

	if (len == VFS_PATH_MAX)
		return -ENAMETOOLONG;
	if (len == 0)
		return -ENOENT;
	if (path[0] == '/')
		return -EPERM;
	if (base->type != VFS_DIR)
		return -ENOTDIR;
	memcpy(place->text, path, len + 1);
	while (!rc && !done)
		rc = walk_step(&w, &done);
	return rc;
}

/* ---- The whole tree, for whoever collects it ---------------------------------------------------- */

#define WALK_DEPTH_MAX 64

static bool walk_tell(const mem_node *node, char *path, bool whole, mem_each_fn each, void *user)
{
	bool file = node->type == VFS_FILE || node->type == VFS_LINK;

	return each(user, path, node->type, whole && file ? node->data : NULL,
		    whole && file ? node->size : 0, whole);
}

int mem_walk(mem_fs *fs, const char *dir, mem_each_fn each, void *user)
{
	struct { const mem_node *node; size_t next, len; } up[WALK_DEPTH_MAX];
	char path[VFS_PATH_MAX];
	mem_place place;
	size_t depth = 1;
	int rc = mem_resolve(fs, fs->root, dir + strspn(dir, "/"), MEM_NAME, &place);

	if (rc || !place.node || place.node->type != VFS_DIR)
		return rc ? rc : place.node ? -ENOTDIR : -ENOENT;
	up[0].node = place.node;
	up[0].next = up[0].len = 0;
	while (depth) {
		size_t at = depth - 1, len = up[at].len;
		const mem_entry *e = NULL;
		bool whole;

		while (up[at].next < up[at].node->count && !e)
			e = up[at].node->at[up[at].next++];
		if (!e) {
			depth--;
			continue;
		}
		whole = len + e->len + 2 <= sizeof path;
		if (whole) {
			if (len)
				path[len++] = '/';
			memcpy(path + len, e->name, (size_t)e->len + 1);
		} else {
			path[len] = '\0';
		}
		whole = whole && depth < WALK_DEPTH_MAX;
		if (!walk_tell(e->node, path, whole, each, user))
			return 0;
		if (!whole || e->node->type != VFS_DIR)
			continue;
		up[depth].node = e->node;
		up[depth].next = 0;
		up[depth++].len = len + e->len;
	}
	return 0;
}
