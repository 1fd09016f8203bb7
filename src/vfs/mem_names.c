/* SPDX-License-Identifier: MIT */
/* mem_names.c - what is done by path: open, make, remove, rename, link. */
#include "mem_fs.h"

#include "../base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Making ----------------------------------------------------------------------------------- */

/* May a new name stand at this place? */
static int names_may_make(const mem_place *p)
{
	if (p->node)
		return -EEXIST;
	if (p->dir->parent == NULL && p->dir->ino != 1)
		return -ENOENT; /* a directory that was removed while it was open */
	return p->dir->readonly ? -EROFS : 0;
}

static int names_make(mem_fs *fs, const mem_place *p, int type, mem_node **node)
{
	mem_entry *entry;
	int rc = names_may_make(p);

	if (!rc)
		rc = mem_entry_new(fs, p->dir, p->name, p->len, true, &entry);
	if (rc)
		return rc;
	*node = mem_node_new(fs, type);
	if (!*node) {
		mem_entry_drop(fs, entry);
		return -ENOMEM;
	}
	mem_entry_link(fs, p->dir, entry, *node);
	return 0;
}

int mem_mkdir(vfs *face, vfs_file *dir, const char *path)
{
	mem_place p;
	mem_node *node;
	int rc = mem_resolve(mem_fs_of(face), mem_of(dir), path, VFS_WALK_NAME, &p);

	return rc ? rc : names_make(mem_fs_of(face), &p, VFS_DIR, &node);
}

int mem_symlink(vfs *face, const char *text, vfs_file *dir, const char *path)
{
	mem_fs *fs = mem_fs_of(face);
	size_t len = strnlen(text, VFS_PATH_MAX);
	mem_place p;
	mem_node *node;
	uint8_t *copy;
	int rc;

	if (len == 0)
		return -ENOENT;
	if (len == VFS_PATH_MAX)
		return -ENAMETOOLONG;
	if (text[0] == '/')
		return -EPERM;
	rc = mem_resolve(fs, mem_of(dir), path, VFS_WALK_NAME, &p);
	if (!rc && !p.node && p.slash)
		rc = -ENOENT;
	if (rc)
		return rc;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	rc = names_make(fs, &p, VFS_LINK, &node);
	if (rc) {
		free(copy);
		return rc;
	}
	node->data = copy;
	node->size = node->room = len;
	return 0;
}

/* ---- Opening ---------------------------------------------------------------------------------- */

static int names_open_there(mem_fs *fs, mem_node *node, uint32_t flags)
{
	if (node->type == VFS_LINK)
		return flags & VFS_DIRECTORY ? -ENOTDIR : -ELOOP;
	if ((flags & VFS_DIRECTORY) && node->type != VFS_DIR)
		return -ENOTDIR;
	if ((flags & (VFS_WRITE | VFS_TRUNC)) && node->type == VFS_DIR)
		return -EISDIR;
	if ((flags & (VFS_WRITE | VFS_TRUNC)) && node->readonly)
		return -EROFS;
	if (flags & VFS_TRUNC) {
		mem_set_size(fs, node, 0);
		node->mtime_ns = node->ctime_ns = mem_now();
	}
	return 0;
}

int mem_open(vfs *face, vfs_file *dir, const char *path, uint32_t flags, vfs_file **file)
{
	mem_fs *fs = mem_fs_of(face);
	bool create = flags & VFS_CREATE;
	mem_place p;
	mem_node *node;
	int rc = mem_resolve(fs, mem_of(dir), path, vfs_walk_of(flags), &p);

	if (!rc && create && p.slash && p.last == MEM_LAST_NAME)
		rc = -EISDIR;
	if (rc)
		return rc;
	node = p.node;
	if (node && create && (flags & VFS_EXCL))
		return -EEXIST;
	if (node && create && node->type == VFS_DIR)
		return -EISDIR;
	if (!node && !create)
		return -ENOENT;
	if (!node && (flags & VFS_DIRECTORY))
		return -EINVAL;
	rc = node ? names_open_there(fs, node, flags) : names_make(fs, &p, VFS_FILE, &node);
	if (rc)
		return rc;
	node->opens++;
	*file = (vfs_file *)(void *)node;
	return 0;
}

/* ---- Looking ---------------------------------------------------------------------------------- */

int mem_stat_at(vfs *face, vfs_file *dir, const char *path, bool follow, vfs_stat *out)
{
	mem_place p;
	int rc = mem_resolve(mem_fs_of(face), mem_of(dir), path, follow ? VFS_WALK_FOLLOW : VFS_WALK_STAY, &p);

	if (!rc && !p.node)
		rc = -ENOENT;
	if (!rc)
		mem_stat_node(p.node, out);
	return rc;
}

int mem_set_times_at(vfs *face, vfs_file *dir, const char *path, bool follow, int64_t atime_ns,
		     int64_t mtime_ns)
{
	mem_place p;
	int rc = mem_resolve(mem_fs_of(face), mem_of(dir), path, follow ? VFS_WALK_FOLLOW : VFS_WALK_STAY, &p);

	if (!rc && !p.node)
		rc = -ENOENT;
	return rc ? rc : mem_times_node(p.node, atime_ns, mtime_ns);
}

int mem_readlink(vfs *face, vfs_file *dir, const char *path, void *out, size_t cap, size_t *len)
{
	mem_place p;
	int rc = mem_resolve(mem_fs_of(face), mem_of(dir), path, VFS_WALK_STAY, &p);

	if (!rc && !p.node)
		rc = -ENOENT;
	if (!rc && p.node->type != VFS_LINK)
		rc = -EINVAL;
	if (rc)
		return rc;
	*len = p.node->size < cap ? (size_t)p.node->size : cap;
	memcpy(out, p.node->data, *len);
	return 0;
}

/* ---- Removing --------------------------------------------------------------------------------- */

int mem_rmdir(vfs *face, vfs_file *dir, const char *path)
{
	mem_place p;
	int rc = mem_resolve(mem_fs_of(face), mem_of(dir), path, VFS_WALK_NAME, &p);

	if (rc)
		return rc;
	if (p.last == MEM_LAST_DOT)
		return -EINVAL;
	if (p.last == MEM_LAST_DOTDOT)
		return -ENOTEMPTY;
	if (!p.node)
		return -ENOENT;
	if (p.node->type != VFS_DIR)
		return -ENOTDIR;
	if (p.node->mounted)
		return -EBUSY;
	if (p.dir->readonly)
		return -EROFS;
	if (p.node->live)
		return -ENOTEMPTY;
	mem_entry_unlink(mem_fs_of(face), p.entry);
	return 0;
}

int mem_unlink(vfs *face, vfs_file *dir, const char *path)
{
	mem_place p;
	int rc = mem_resolve(mem_fs_of(face), mem_of(dir), path, VFS_WALK_NAME, &p);

	if (rc)
		return rc;
	if (p.last != MEM_LAST_NAME)
		return -EISDIR;
	if (!p.node)
		return -ENOENT;
	if (p.node->type == VFS_DIR)
		return -EISDIR;
	if (p.slash)
		return -ENOTDIR;
	if (p.node->mounted)
		return -EBUSY;
	if (p.dir->readonly)
		return -EROFS;
	mem_entry_unlink(mem_fs_of(face), p.entry);
	return 0;
}

/* ---- Renaming and linking ------------------------------------------------------------------------ */

static bool names_is_above(const mem_node *above, const mem_node *node)
{
	for (; node; node = node->parent)
		if (node == above)
			return true;
	return false;
}

static int names_may_rename(const mem_place *from, const mem_place *to)
{
	bool dir = from->node && from->node->type == VFS_DIR;

	if (from->last != MEM_LAST_NAME || to->last != MEM_LAST_NAME)
		return -EBUSY;
	if (!from->node)
		return -ENOENT;
	if (from->node->mounted || (to->node && to->node->mounted))
		return -EBUSY;
	if (from->dir->readonly || to->dir->readonly)
		return -EROFS;
	if (to->dir->parent == NULL && to->dir->ino != 1)
		return -ENOENT;
	if (!dir && (from->slash || to->slash))
		return -ENOTDIR;
	if (dir && names_is_above(from->node, to->dir))
		return -EINVAL;
	if (to->node && names_is_above(to->node, from->dir))
		return -ENOTEMPTY;
	if (!to->node || to->node == from->node)
		return 0;
	if (dir && to->node->type != VFS_DIR)
		return -ENOTDIR;
	if (!dir && to->node->type == VFS_DIR)
		return -EISDIR;
	return to->node->type == VFS_DIR && to->node->live ? -ENOTEMPTY : 0;
}

int mem_rename(vfs *face, vfs_file *dir, const char *path, vfs_file *to_dir, const char *to_path)
{
	mem_fs *fs = mem_fs_of(face);
	mem_place from, to;
	mem_node *node;
	mem_entry *entry;
	int rc = mem_resolve(fs, mem_of(dir), path, VFS_WALK_NAME, &from);

	if (!rc)
		rc = mem_resolve(fs, mem_of(to_dir), to_path, VFS_WALK_NAME, &to);
	/* a directory over a file with a slash: the file is what is wrong either way */
	if (!rc)
		rc = names_may_rename(&from, &to);
	if (rc || to.node == from.node)
		return rc;
	rc = mem_entry_new(fs, to.dir, to.name, to.len, false, &entry);
	if (rc)
		return rc;
	/* the name moves, with what was charged for it */
	entry->free_of_charge = from.entry->free_of_charge;
	from.entry->free_of_charge = true;
	node = from.node;
	if (to.node)
		mem_entry_unlink(fs, to.entry);
	node->links++;
	mem_entry_unlink(fs, from.entry);
	mem_entry_link(fs, to.dir, entry, node);
	node->links--;
	return 0;
}

int mem_link(vfs *face, vfs_file *dir, const char *path, bool follow, vfs_file *to_dir,
	     const char *to_path)
{
	mem_fs *fs = mem_fs_of(face);
	mem_place from, to;
	mem_entry *entry;
	int rc = mem_resolve(fs, mem_of(dir), path, follow ? VFS_WALK_FOLLOW : VFS_WALK_STAY, &from);

	if (!rc && !from.node)
		rc = -ENOENT;
	if (!rc)
		rc = mem_resolve(fs, mem_of(to_dir), to_path, VFS_WALK_NAME, &to);
	if (rc)
		return rc;
	if (!to.node && to.slash)
		return -ENOENT;
	rc = names_may_make(&to);
	if (rc)
		return rc;
	if (from.node->type == VFS_DIR)
		return -EPERM;
	if (from.node->readonly)
		return -EXDEV; /* as between two file systems: what is given stays where it is */
	rc = mem_entry_new(fs, to.dir, to.name, to.len, true, &entry);
	if (!rc)
		mem_entry_link(fs, to.dir, entry, from.node);
	return rc;
}

/* ---- Laying out ------------------------------------------------------------------------------------ */

/* One name beneath `dir`: what is there, or made. */
static int names_lay(mem_fs *fs, mem_node *dir, const char *name, size_t len, int type,
		     uint32_t flags, mem_node **node)
{
	mem_entry *e = mem_find(fs, dir, name, len);
	int rc;

	if (e) {
		*node = e->node;
		return e->node->type == type ? 0 : type == VFS_DIR ? -ENOTDIR : -EISDIR;
	}
	rc = mem_entry_new(fs, dir, name, len, !(flags & MEM_FREE), &e);
	if (rc)
		return rc;
	*node = mem_node_new(fs, type);
	if (!*node) {
		mem_entry_drop(fs, e);
		return -ENOMEM;
	}
	(*node)->readonly = flags & MEM_READONLY;
	mem_entry_link(fs, dir, e, *node);
	return 0;
}

static int names_lay_path(mem_fs *fs, const char *path, int type, uint32_t flags, mem_node **node)
{
	mem_node *at = fs->root;
	int rc = 0;

	if (*path != '/')
		return -EINVAL;
	if (path[1] == '\0') {
		*node = at;
		return type == VFS_DIR ? 0 : -EISDIR;
	}
	while (!rc && *path == '/') {
		size_t len = strcspn(++path, "/");
		bool last = path[len] == '\0';

		if (!len || (path[0] == '.' && (len == 1 || (len == 2 && path[1] == '.'))))
			return -EINVAL;
		rc = names_lay(fs, at, path, len, last ? type : VFS_DIR, flags, node);
		at = *node;
		path += len;
	}
	return rc;
}

int mem_add_dir(mem_fs *fs, const char *path, uint32_t flags)
{
	mem_node *node = NULL;
	int rc = names_lay_path(fs, path, VFS_DIR, flags, &node);

	if (!rc)
		node->readonly = flags & MEM_READONLY;
	return rc;
}

int mem_add_file(mem_fs *fs, const char *path, const void *data, uint64_t len, uint32_t flags)
{
	mem_node *node = NULL;
	int rc = names_lay_path(fs, path, VFS_FILE, flags, &node);

	if (rc)
		return rc;
	if (node->borrowed || node->free_of_charge)
		return -EEXIST;
	if ((flags & MEM_GIVEN) && !node->given && !(node->given = strdup(path)))
		return -ENOMEM;
	node->free_of_charge = flags & MEM_FREE;
	if (flags & MEM_BORROWED) {
		rc = mem_charge(fs, node, len);
		if (rc)
			return rc;
		node->borrowed = node->readonly = true;
		node->data = (uint8_t *)(uintptr_t)data;
		node->size = len;
		return 0;
	}
	rc = mem_set_size(fs, node, len);
	if (!rc && len)
		memcpy(node->data, data, len);
	return rc;
}

int mem_mount(mem_fs *fs, const char *path, vfs *with, vfs_file *dir, const char *name)
{
	size_t len = name ? strlen(name) : 0;
	mem_mounted *m = calloc(1, sizeof *m);
	mem_node *node = NULL;
	int rc = !m ? -ENOMEM : len >= sizeof m->name ? -ENAMETOOLONG :
		 names_lay_path(fs, path, name ? VFS_FILE : VFS_DIR, MEM_READONLY | MEM_FREE, &node);

	if (!rc && (node == fs->root || node->mounted || node->live || node->data))
		rc = -EEXIST;
	if (!rc && !(node->given = strdup(path)))
		rc = -ENOMEM;
	if (rc) {
		free(m);
		return rc;
	}
	m->fs = with;
	m->dir = dir;
	memcpy(m->name, name ? name : "", len + 1);
	node->mounted = m;
	node->readonly = fs->mounts = true;
	return 0;
}

/* ---- Taking away ------------------------------------------------------------------------------ */

/* Always the first name that is left: a directory that has become empty is the first of its own. */
void mem_clear_node(mem_fs *fs, mem_node *top)
{
	mem_node *at = top;
	size_t i = 0;

	while (top->live) {
		size_t count = at->count;
		mem_entry *e;

		while (!at->at[i])
			i++;
		e = at->at[i];
		if (e->node->type == VFS_DIR && e->node->live) {
			at = e->node;
			i = 0;
			continue;
		}
		mem_entry_unlink(fs, e);
		i = at->count == count ? i : 0; /* the holes have gone */
		while (!at->live && at != top) {
			at = at->parent;
			i = 0;
		}
	}
}

static int names_inside(mem_fs *fs, const char *path, mem_place *place)
{
	int rc = mem_resolve(fs, fs->root, path + strspn(path, "/"), VFS_WALK_NAME, place);

	return rc == -ENOENT || rc == -ENOTDIR || (!rc && !place->node) ? 1 : rc;
}

int mem_clear(mem_fs *fs, const char *dir)
{
	mem_place place;
	int rc = names_inside(fs, dir, &place);

	if (rc == 0 && place.node->type != VFS_DIR)
		return -ENOTDIR;
	if (rc == 0)
		mem_clear_node(fs, place.node);
	return rc < 0 ? rc : 0;
}

int mem_drop(mem_fs *fs, const char *path)
{
	mem_place place;
	int rc = names_inside(fs, path, &place);

	if (rc == 0 && !place.entry)
		return -EBUSY; /* the root, or by ".." */
	if (rc)
		return rc < 0 ? rc : 0;
	if (place.node->type == VFS_DIR)
		mem_clear_node(fs, place.node);
	mem_entry_unlink(fs, place.entry);
	return 0;
}
