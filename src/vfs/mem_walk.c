/* SPDX-License-Identifier: MIT */
/*
 * mem_walk.c - from a path to a place in the tree.
 *
 * Names are taken one by one; the text of a link takes the place of its name in front of what is
 * left.  `depth` counts how far beneath the directory of the start we are: a ".." at 0 would leave it,
 * and is refused, whoever brought it, path or link.
 *
 * Another file system that is mounted here is entered by mem_cross() alone: it stops there, and says what is
 * left of the path.
 */
#include "mem_fs.h"

#include "../base/base.h"

#include <errno.h>

typedef struct walk {
	mem_fs *fs;
	mem_place *place;
	mem_node *at;
	uint32_t depth, links;
	int follow; /* VFS_WALK_NAME.. */
	size_t from; /* of what is left in place->text */
	/* of mem_cross(): */
	vfs_crossing *to; /* NULL = nothing is entered */
	mem_node *base;
	const mem_mounted *into; /* what was entered: the rest is meant there */
	bool leaves; /* what is left leads out of what is mounted where we are */
	bool anew;   /* to->path is another path to the same place, through nothing that is mounted */
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

/* ---- Into what is mounted ------------------------------------------------------------------------ */

/* A ".." in `rest` by which it climbs out of where it begins, if none of its names is a link. */
static const char *walk_out(const char *rest)
{
	int depth = 0;

	for (const char *at = rest; *at; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");

		if (len == 2 && at[0] == '.' && at[1] == '.') {
			if (depth-- == 0)
				return at;
		} else if (len != 1 || at[0] != '.') {
			depth++;
		}
		at += len;
	}
	return NULL;
}

/* Does `path` lead from where that is mounted to there again?  1 or 0, or -errno. */
static int walk_returns(const mem_mounted *m, const char *path)
{
	vfs_stat at, top;
	int rc = m->fs->ops->stat_at(m->fs, m->dir, path, true, &at);

	if (!rc)
		rc = m->fs->ops->stat(m->fs, m->dir, &top);
	return rc ? rc : at.dev == top.dev && at.ino == top.ino;
}

static const mem_entry *walk_name(const mem_node *node)
{
	const mem_node *dir = node->parent;

	for (size_t i = 0; i < dir->count; i++)
		if (dir->at[i] && dir->at[i]->node == node)
			return dir->at[i];
	return NULL;
}

/* The names from where the walk began to where we are, and then `rest`, as if the path had been that. */
static int walk_again(walk *w, const char *rest)
{
	char *text = w->to->path;
	size_t len = strlen(rest) + 1, at = sizeof w->to->path;

	if (len > at)
		return -ENAMETOOLONG;
	at -= len;
	memcpy(text + at, rest, len);
	for (; w->depth; w->depth--, w->at = w->at->parent) {
		const mem_entry *e = w->at->parent ? walk_name(w->at) : NULL;

		if (!e || (size_t)e->len + 1 > at)
			return e ? -ENAMETOOLONG : -ENOENT;
		text[--at] = '/';
		at -= e->len;
		memcpy(text + at, e->name, e->len);
	}
	memmove(text, text + at, sizeof w->to->path - at);
	memcpy(w->place->text, text, sizeof w->to->path - at);
	w->at = w->base;
	w->from = 0;
	w->anew = true;
	return 0;
}

/* We are where something is mounted, and more of the path is left.  Either it is meant there, or leads there and
 * back to us, and goes on above. */
static int walk_enter(walk *w, const mem_mounted *m, bool *done)
{
	char *rest = w->place->text + w->from;
	const char *out = m->name[0] ? NULL : walk_out(rest);
	int rc = 0;

	if (out == rest) {
		w->leaves = true;
		return 0;
	}
	if (out) {
		char *end = rest + (out - rest);

		*end = '\0';
		rc = walk_returns(m, rest);
		*end = '.';
	}
	if (rc)
		return rc < 0 ? rc : walk_again(w, out);
	w->into = m;
	*done = true;
	return 0;
}

/* The path ends where something is mounted: its top is meant, but for what is done to a name. */
static void walk_end_there(walk *w, bool slash)
{
	const mem_node *node = w->place->node;

	if (!w->to || !node || !node->mounted || w->follow == VFS_WALK_NAME)
		return;
	w->into = node->mounted;
	memcpy(w->place->text, slash ? "./" : ".", slash ? 3 : 2);
	w->from = 0;
	if (w->into->name[0])
		w->place->text[0] = '\0'; /* the name itself; with a slash, what is no directory */
	if (w->into->name[0] && slash)
		memcpy(w->place->text, "/", 2);
}

/* One name; *done when it was the last. */
static int walk_step(walk *w, bool *done)
{
	const char *name = w->place->text + w->from;
	size_t len = strcspn(name, "/");
	const char *rest = name + len;
	bool more = walk_more(rest), slash = *rest == '/';
	mem_entry *e;

	if (w->to && w->at->mounted && !w->leaves)
		return walk_enter(w, w->at->mounted, done);
	w->leaves = false;
	if (len > VFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (w->at->type != VFS_DIR)
		return -ENOTDIR;
	*done = !more;
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))) {
		int rc = walk_dots(w, len, more, slash);

		w->from += len + strspn(rest, "/");
		if (!rc && !more)
			walk_end_there(w, slash);
		return rc;
	}
	e = mem_find(w->fs, w->at, name, len);
	if (e && e->node->type == VFS_LINK && (more || w->follow == VFS_WALK_FOLLOW ||
					 w->follow == (slash ? VFS_WALK_STAY : VFS_WALK_MAKE))) {
		*done = false;
		return walk_expand(w, e->node, w->from + len);
	}
	if (!more) {
		walk_end(w, MEM_LAST_NAME, e ? e->node : NULL, e, len, slash);
		walk_end_there(w, slash);
		if (w->into)
			return 0;
		return e && slash && e->node->type != VFS_DIR &&
				       (w->follow == VFS_WALK_STAY || w->follow == VFS_WALK_FOLLOW) ?
			       -ENOTDIR : 0;
	}
	if (!e)
		return -ENOENT;
	w->at = e->node;
	w->depth++;
	w->from += len + strspn(rest, "/");
	return w->at->type == VFS_DIR || (w->to && w->at->mounted) ? 0 : -ENOTDIR;
}

static int walk_all(walk *w, const char *path)
{
	size_t len = strnlen(path, VFS_PATH_MAX);
	bool done = false;
	int rc = 0;

	if (len == VFS_PATH_MAX)
		return -ENAMETOOLONG;
	if (len == 0)
		return -ENOENT;
	if (path[0] == '/')
		return -EPERM;
	if (w->at->type != VFS_DIR)
		return -ENOTDIR;
	memcpy(w->place->text, path, len + 1);
	while (!rc && !done)
		rc = walk_step(w, &done);
	return rc;
}

int mem_resolve(mem_fs *fs, mem_node *base, const char *path, int how, mem_place *place)
{
	walk w = { .fs = fs, .place = place, .at = base, .follow = how };

	return walk_all(&w, path);
}

int mem_cross(vfs *face, vfs_file *dir, const char *path, int how, vfs_crossing *to)
{
	mem_place place;
	walk w = { .fs = mem_fs_of(face), .place = &place, .at = mem_of(dir), .base = mem_of(dir), .follow = how,
		   .to = to };
	const char *rest;
	size_t name, len;
	int rc;

	if (!w.fs->mounts)
		return 0;
	rc = walk_all(&w, path);
	to->fs = face;
	to->dir = dir;
	if (rc || !w.into)
		return w.anew; /* what is wrong with the path is told by whatever it is meant for */
	rest = place.text + w.from;
	name = strlen(w.into->name);
	len = strlen(rest);
	if (name + len + 2 > sizeof to->path)
		return -ENAMETOOLONG;
	to->fs = w.into->fs;
	to->dir = w.into->dir;
	memcpy(to->path, w.into->name, name);
	if (name && len && rest[0] != '/')
		to->path[name++] = '/';
	memcpy(to->path + name, rest, len + 1);
	return 1;
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
	int rc = mem_resolve(fs, fs->root, dir + strspn(dir, "/"), VFS_WALK_NAME, &place);

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
