/* SPDX-License-Identifier: MIT */
/*
 * mem.c - files in memory for a running guest: nodes, names, bytes, quotas.
 *
 * A directory keeps its names in the order in which they came; each has a cookie that only grows and
 * is never used again, so a listing goes on at the right place whatever was added or removed
 * meanwhile.  Names of all directories lie in one hash table.  A change first takes its quota and its
 * memory and then cannot fail.
 */
#include "mem_fs.h"

#include "../base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define MEM_BUCKETS_MIN 64u
#define MEM_FIRST_COOKIE 2u /* 0 is ".", 1 is ".." */
#define MEM_FILE_MAX ((uint64_t)1 << 40)

int64_t mem_now(void)
{
	return clock_unix_ns();
}

/* ---- Nodes ------------------------------------------------------------------------------------ */

mem_node *mem_node_new(mem_fs *fs, int type)
{
	mem_node *node = calloc(1, sizeof *node);

	if (!node)
		return NULL;
	node->ino = fs->next_ino++;
	node->type = (uint8_t)type;
	node->next_cookie = MEM_FIRST_COOKIE;
	node->atime_ns = node->mtime_ns = node->ctime_ns = mem_now();
	return node;
}

static void mem_node_free(mem_node *node)
{
	if (!node->borrowed)
		free(node->data);
	free(node->given);
	free(node->mounted);
	free(node->at);
	free(node);
}

void mem_node_put(mem_fs *fs, mem_node *node)
{
	if (node->links || node->opens)
		return;
	if (node->type == VFS_FILE && !node->free_of_charge)
		fs->bytes -= node->size;
	mem_node_free(node);
}

/* ---- Names ------------------------------------------------------------------------------------ */

static uint64_t mem_hash(const mem_fs *fs, const mem_node *dir, const char *name, size_t len)
{
	uint64_t h = fs->seed ^ (dir->ino * 0x9e3779b97f4a7c15u);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)name[i]) * 0x100000001b3u;
	return h ^ (h >> 29);
}

mem_entry *mem_find(const mem_fs *fs, const mem_node *dir, const char *name, size_t len)
{
	uint64_t hash = mem_hash(fs, dir, name, len);
	mem_entry *e = fs->bucket[hash & (fs->buckets - 1)];

	while (e && !(e->hash == hash && e->dir == dir && e->len == len &&
		      memcmp(e->name, name, len) == 0))
		e = e->chain;
	return e;
}

static bool mem_widen(mem_fs *fs)
{
	size_t more = fs->buckets * 2;
	mem_entry **wide;

	if (fs->entries < fs->buckets)
		return true;
	wide = calloc(more, sizeof *wide);
	if (!wide)
		return false;
	for (size_t i = 0; i < fs->buckets; i++)
		for (mem_entry *e = fs->bucket[i], *next; e; e = next) {
			next = e->chain;
			e->chain = wide[e->hash & (more - 1)];
			wide[e->hash & (more - 1)] = e;
		}
	free(fs->bucket);
	fs->bucket = wide;
	fs->buckets = more;
	return true;
}

/* Holes out once they are the greater part. */
static void mem_pack(mem_node *dir)
{
	size_t to = 0;

	if (dir->count < 16 || dir->live > dir->count / 2)
		return;
	for (size_t i = 0; i < dir->count; i++)
		if (dir->at[i])
			dir->at[to++] = dir->at[i];
	dir->count = to;
}

int mem_entry_new(mem_fs *fs, mem_node *dir, const char *name, size_t len, bool charge,
		  mem_entry **entry)
{
	mem_entry *e;
	void *at;

	if (len > VFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (charge && fs->max_nodes != SB_UNLIMITED && fs->nodes >= fs->max_nodes) {
		fs->nodes_refused++;
		return -ENOSPC;
	}
	at = buf_grow(dir->at, dir->count, &dir->room_at, sizeof *dir->at);
	if (!at)
		return -ENOMEM;
	dir->at = at;
	e = malloc(sizeof *e + len + 1);
	if (!e || !mem_widen(fs)) {
		free(e);
		return -ENOMEM;
	}
	memset(e, 0, sizeof *e);
	memcpy(e->name, name, len);
	e->name[len] = '\0';
	e->len = (uint16_t)len;
	e->free_of_charge = !charge;
	if (charge)
		fs->nodes++;
	*entry = e;
	return 0;
}

void mem_entry_drop(mem_fs *fs, mem_entry *entry)
{
	if (!entry->free_of_charge)
		fs->nodes--;
	free(entry);
}

void mem_entry_link(mem_fs *fs, mem_node *dir, mem_entry *e, mem_node *node)
{
	mem_entry **bucket;

	e->dir = dir;
	e->node = node;
	e->hash = mem_hash(fs, dir, e->name, e->len);
	bucket = &fs->bucket[e->hash & (fs->buckets - 1)];
	e->chain = *bucket;
	*bucket = e;
	fs->entries++;
	e->cookie = dir->next_cookie++;
	dir->at[dir->count++] = e;
	dir->live++;
	node->links++;
	if (node->type == VFS_DIR)
		node->parent = dir;
	dir->mtime_ns = dir->ctime_ns = node->ctime_ns = mem_now();
}

/* The first place at or behind a cookie. */
static size_t mem_seek(const mem_node *dir, uint64_t cookie)
{
	size_t low = 0, high = dir->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2, look = middle;

		while (look > low && !dir->at[look])
			look--; /* a hole stands for nothing: what is before it decides */
		if (!dir->at[look] || dir->at[look]->cookie < cookie)
			low = middle + 1;
		else
			high = look;
	}
	return low;
}

void mem_entry_unlink(mem_fs *fs, mem_entry *e)
{
	mem_entry **at = &fs->bucket[e->hash & (fs->buckets - 1)];
	mem_node *dir = e->dir, *node = e->node;

	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	fs->entries--;
	dir->at[mem_seek(dir, e->cookie)] = NULL;
	dir->live--;
	mem_pack(dir);
	dir->mtime_ns = dir->ctime_ns = node->ctime_ns = mem_now();
	if (node->type == VFS_DIR && node->parent == dir)
		node->parent = NULL;
	mem_entry_drop(fs, e);
	node->links--;
	mem_node_put(fs, node);
}

int mem_list(vfs *face, vfs_file *file, uint64_t from, vfs_each_fn each, void *user)
{
	mem_node *dir = mem_of(file);
	const mem_node *parent = dir->parent ? dir->parent : dir;

	(void)face;
	if (dir->type != VFS_DIR)
		return -ENOTDIR;
	if (from == 0 && !each(user, ".", 1, dir->ino, VFS_DIR, 1))
		return 0;
	if (from <= 1 && !each(user, "..", 2, parent->ino, VFS_DIR, MEM_FIRST_COOKIE))
		return 0;
	for (size_t i = mem_seek(dir, from); i < dir->count; i++) {
		const mem_entry *e = dir->at[i];

		if (e && !each(user, e->name, e->len, e->node->ino, e->node->type, e->cookie + 1))
			break;
	}
	return 0;
}

/* ---- Bytes ------------------------------------------------------------------------------------ */

static int mem_room(mem_node *node, uint64_t size)
{
	uint64_t room = node->room + node->room / 2;
	void *data;

	if (size <= node->room)
		return 0;
	room = room < size ? size : room;
	room = room < 256 ? 256 : room;
	data = realloc(node->data, room);
	if (!data && room > size)
		data = realloc(node->data, room = size);
	if (!data)
		return -ENOMEM;
	node->data = data;
	node->room = room;
	return 0;
}

/* What a shorter file leaves is memory that no quota counts. */
static void mem_give_back(mem_node *node)
{
	void *data;

	if (node->size == 0) {
		free(node->data);
		node->data = NULL;
		node->room = 0;
	} else if (node->size < node->room / 2) {
		data = realloc(node->data, node->size);
		if (data) {
			node->data = data;
			node->room = node->size;
		}
	}
}

static bool mem_has_quota(mem_fs *fs, const mem_node *node, uint64_t more)
{
	if (!more || node->free_of_charge || fs->max_bytes == SB_UNLIMITED ||
	    (fs->bytes <= fs->max_bytes && more <= fs->max_bytes - fs->bytes))
		return true;
	fs->bytes_refused++;
	return false;
}

int mem_charge(mem_fs *fs, const mem_node *node, uint64_t bytes)
{
	if (!mem_has_quota(fs, node, bytes))
		return -ENOSPC;
	if (!node->free_of_charge)
		fs->bytes += bytes;
	return 0;
}

/* Takes the quota for a new size, and the memory.  The bytes between are zeros. */
int mem_set_size(mem_fs *fs, mem_node *node, uint64_t size)
{
	uint64_t more = size > node->size ? size - node->size : 0;
	bool counts = !node->free_of_charge;

	if (size > MEM_FILE_MAX)
		return -EFBIG;
	if (!mem_has_quota(fs, node, more))
		return -ENOSPC;
	if (more) {
		if (mem_room(node, size) < 0) {
			fs->bytes_refused++;
			return -ENOSPC;
		}
		memset(node->data + node->size, 0, more);
	}
	if (counts)
		fs->bytes = fs->bytes - node->size + size;
	node->size = size;
	if (!more)
		mem_give_back(node);
	return 0;
}

static int mem_file_kind(const mem_node *node)
{
	return node->type == VFS_DIR ? -EISDIR : node->type != VFS_FILE ? -EINVAL : 0;
}

static int mem_truncate(vfs *face, vfs_file *file, uint64_t size)
{
	mem_node *node = mem_of(file);
	int rc = mem_file_kind(node);

	if (!rc && node->readonly)
		rc = -EROFS;
	if (!rc)
		rc = mem_set_size(mem_fs_of(face), node, size);
	if (!rc)
		node->mtime_ns = node->ctime_ns = mem_now();
	return rc;
}

static int mem_allocate(vfs *face, vfs_file *file, uint64_t offset, uint64_t len)
{
	mem_node *node = mem_of(file);
	int rc = mem_file_kind(node);

	if (rc || node->readonly)
		return rc ? rc : -EROFS;
	if (!len)
		return -EINVAL;
	if (len > MEM_FILE_MAX || offset > MEM_FILE_MAX)
		return -EFBIG;
	if (offset + len <= node->size)
		return 0;
	return mem_truncate(face, file, offset + len);
}

static int mem_read(vfs *face, vfs_file *file, uint64_t offset, void *data, size_t len,
		    size_t *done)
{
	mem_node *node = mem_of(file);
	uint64_t left = offset < node->size ? node->size - offset : 0;
	int rc = mem_file_kind(node);

	(void)face;
	if (rc)
		return rc;
	*done = len < left ? len : (size_t)left;
	if (*done)
		memcpy(data, node->data + offset, *done);
	return 0;
}

/* As on a full disk: what still fits is written, and nothing fitting is ENOSPC. */
static size_t mem_fits(const mem_fs *fs, const mem_node *node, uint64_t offset, size_t len)
{
	uint64_t left, end;

	if (fs->max_bytes == SB_UNLIMITED)
		return len;
	left = fs->bytes < fs->max_bytes ? fs->max_bytes - fs->bytes : 0;
	end = left > MEM_FILE_MAX ? MEM_FILE_MAX : node->size + left;
	if (offset >= end)
		return offset < node->size ? len : 0;
	return end - offset < len ? (size_t)(end - offset) : len;
}

static int mem_write(vfs *face, vfs_file *file, uint64_t offset, const void *data, size_t len,
		     size_t *done, uint64_t *end)
{
	mem_fs *fs = mem_fs_of(face);
	mem_node *node = mem_of(file);
	int rc = mem_file_kind(node);
	size_t fits;

	if (rc || node->readonly)
		return rc ? rc : -EROFS;
	if (offset == VFS_APPEND)
		offset = node->size;
	*done = 0;
	*end = offset;
	if (!len)
		return 0;
	if (offset > MEM_FILE_MAX || len > MEM_FILE_MAX)
		return -EFBIG;
	fits = mem_fits(fs, node, offset, len);
	if (fits < len)
		fs->bytes_refused++;
	if (!fits)
		return -ENOSPC;
	if (offset + fits > node->size)
		rc = mem_set_size(fs, node, offset + fits);
	if (rc)
		return rc;
	memcpy(node->data + offset, data, fits);
	node->mtime_ns = node->ctime_ns = mem_now();
	*done = fits;
	*end = offset + fits;
	return 0;
}

/* ---- Open files ------------------------------------------------------------------------------- */

static void mem_close(vfs *face, vfs_file *file)
{
	mem_node *node = mem_of(file);

	node->opens--;
	mem_node_put(mem_fs_of(face), node);
}

void mem_stat_node(const mem_node *node, vfs_stat *out)
{
	*out = (vfs_stat){ .dev = 1, .ino = node->ino, .links = node->links, .size = node->size,
			   .atime_ns = node->atime_ns, .mtime_ns = node->mtime_ns,
			   .ctime_ns = node->ctime_ns, .type = node->type };
}

static int mem_stat(vfs *face, vfs_file *file, vfs_stat *out)
{
	(void)face;
	mem_stat_node(mem_of(file), out);
	return 0;
}

int mem_times_node(mem_node *node, int64_t atime_ns, int64_t mtime_ns)
{
	if (node->readonly)
		return -EROFS;
	if (atime_ns != VFS_TIME_OMIT)
		node->atime_ns = atime_ns;
	if (mtime_ns != VFS_TIME_OMIT)
		node->mtime_ns = mtime_ns;
	node->ctime_ns = mem_now();
	return 0;
}

static int mem_set_times(vfs *face, vfs_file *file, int64_t atime_ns, int64_t mtime_ns)
{
	(void)face;
	return mem_times_node(mem_of(file), atime_ns, mtime_ns);
}

static int mem_sync(vfs *face, vfs_file *file)
{
	(void)face;
	(void)file;
	return 0;
}

/* ---- The whole -------------------------------------------------------------------------------- */

static const vfs_ops mem_ops = {
	.open = mem_open, .close = mem_close, .stat = mem_stat, .set_times = mem_set_times,
	.set_size = mem_truncate, .allocate = mem_allocate, .read = mem_read, .write = mem_write,
	.sync = mem_sync, .list = mem_list, .stat_at = mem_stat_at,
	.set_times_at = mem_set_times_at, .mkdir = mem_mkdir, .rmdir = mem_rmdir,
	.unlink = mem_unlink, .rename = mem_rename, .link = mem_link, .symlink = mem_symlink,
	.readlink = mem_readlink, .cross = mem_cross,
};

mem_fs *mem_new(uint64_t max_bytes, uint64_t max_nodes)
{
	mem_fs *fs = calloc(1, sizeof *fs);

	if (!fs)
		return NULL;
	fs->face.ops = &mem_ops;
	fs->max_bytes = max_bytes;
	fs->max_nodes = max_nodes;
	fs->next_ino = 1;
	if (getrandom(&fs->seed, sizeof fs->seed, GRND_NONBLOCK) != sizeof fs->seed)
		fs->seed = clock_now_ns(); /* names then hash predictably, in the guest's own world */
	fs->buckets = MEM_BUCKETS_MIN;
	fs->bucket = calloc(fs->buckets, sizeof(mem_entry *));
	fs->root = fs->bucket ? mem_node_new(fs, VFS_DIR) : NULL;
	if (!fs->root) {
		free(fs->bucket);
		free(fs);
		return NULL;
	}
	fs->root->opens = 1;
	return fs;
}

/* Names only: files that are still open are their owner's to close first. */
void mem_free(mem_fs *fs)
{
	if (!fs)
		return;
	for (size_t i = 0; i < fs->buckets; i++)
		while (fs->bucket[i]) {
			mem_entry *e = fs->bucket[i];
			mem_node *node = e->node;

			fs->bucket[i] = e->chain;
			free(e);
			node->links--;
			if (!node->links)
				mem_node_free(node);
		}
	free(fs->root->at);
	free(fs->root);
	free(fs->bucket);
	free(fs);
}

vfs *mem_vfs(mem_fs *fs)
{
	return &fs->face;
}

vfs_file *mem_root(mem_fs *fs)
{
	return (vfs_file *)(void *)fs->root;
}

void mem_tell(const mem_fs *fs, mem_usage *out)
{
	*out = (mem_usage){ .bytes = fs->bytes, .nodes = fs->nodes,
			    .bytes_refused = fs->bytes_refused,
			    .nodes_refused = fs->nodes_refused };
}
