/* SPDX-License-Identifier: MIT */
/* mem_fs.h - shared by mem*.c alone: nodes, entries, walks. */
#ifndef SB_VFS_MEM_FS_H
#define SB_VFS_MEM_FS_H

#include "vfs.h"

typedef struct mem_node mem_node;

/* One name in a directory. */
typedef struct mem_entry {
	struct mem_entry *chain; /* of its bucket */
	mem_node *dir, *node;
	uint64_t cookie;         /* place in the directory: grows, never used again */
	uint64_t hash;
	uint16_t len;
	bool free_of_charge;
	char name[];
} mem_entry;

/* What is mounted at a directory or a file: mem_mount(). */
typedef struct mem_mounted {
	vfs *fs;
	vfs_file *dir;
	char name[VFS_NAME_MAX + 1]; /* "" = the directory itself */
} mem_mounted;

struct mem_node {
	uint64_t ino;
	uint32_t links, opens;   /* names; open files */
	uint8_t type;            /* VFS_FILE, DIR, LINK */
	bool readonly, borrowed, free_of_charge;
	int64_t atime_ns, mtime_ns, ctime_ns;
	uint8_t *data;           /* of a file; text of a link */
	uint64_t size, room;
	mem_mounted *mounted;    /* or NULL; then the node itself stays empty */
	char *given;             /* where it was laid as MEM_GIVEN or mounted; or NULL */
	uint32_t number;         /* of the mem_index that was made last */
	/* of a directory: */
	mem_node *parent;        /* NULL: the root, or removed */
	mem_entry **at;          /* by cookie; holes where names were removed */
	size_t count, room_at, live;
	uint64_t next_cookie;
};

/* An open file is the node itself: a stream's offset is the caller's. */
static inline mem_node *mem_of(vfs_file *file)
{
	return (mem_node *)(void *)file;
}

struct mem_fs {
	vfs face;
	mem_node *root;
	mem_entry **bucket;
	size_t buckets, entries; /* buckets: a power of two */
	uint64_t seed, next_ino;
	uint64_t bytes, max_bytes, nodes, max_nodes;
	uint64_t bytes_refused, nodes_refused;
	bool mounts;             /* there are some */
};

static inline mem_fs *mem_fs_of(vfs *fs)
{
	return (mem_fs *)(void *)fs;
}

/* ---- mem.c ---- */
int64_t mem_now(void);
mem_node *mem_node_new(mem_fs *fs, int type);
void mem_node_put(mem_fs *fs, mem_node *node); /* frees it if neither name nor open file is left */
mem_entry *mem_find(const mem_fs *fs, const mem_node *dir, const char *name, size_t len);
/* Quota of one more name, and memory for it; then nothing can fail: mem_entry_link(). */
int mem_entry_new(mem_fs *fs, mem_node *dir, const char *name, size_t len, bool charge,
		  mem_entry **entry);
void mem_entry_drop(mem_fs *fs, mem_entry *entry); /* one that was not linked */
void mem_entry_link(mem_fs *fs, mem_node *dir, mem_entry *entry, mem_node *node);
void mem_entry_unlink(mem_fs *fs, mem_entry *entry); /* frees the entry, and the node with its last */
/* Of bytes that lie elsewhere. */
int mem_charge(mem_fs *fs, const mem_node *node, uint64_t bytes);
int mem_set_size(mem_fs *fs, mem_node *node, uint64_t size);
int mem_list(vfs *face, vfs_file *file, uint64_t from, vfs_each_fn each, void *user);

/* ---- mem_walk.c ---- */
enum { MEM_LAST_NAME = 0, MEM_LAST_DOT, MEM_LAST_DOTDOT };
typedef struct mem_place {
	mem_node *dir;           /* in which the last name stands */
	mem_node *node;          /* what stands there; NULL = nothing */
	mem_entry *entry;        /* its name; NULL for "." and ".." */
	const char *name;        /* in `text` */
	size_t len;
	int last;                /* MEM_LAST_* */
	bool slash;              /* a slash behind the last name */
	char text[2 * VFS_PATH_MAX];
} mem_place;
/* how: VFS_WALK_*.  0 also if nothing is there; but with STAY and FOLLOW not if there is a slash behind what is no
 * directory. */
int mem_resolve(mem_fs *fs, mem_node *base, const char *path, int how, mem_place *place);
int mem_cross(vfs *face, vfs_file *dir, const char *path, int how, vfs_crossing *to);

/* ---- mem_names.c ---- */
int mem_open(vfs *face, vfs_file *dir, const char *path, uint32_t flags, vfs_file **file);
int mem_mkdir(vfs *face, vfs_file *dir, const char *path);
int mem_rmdir(vfs *face, vfs_file *dir, const char *path);
int mem_unlink(vfs *face, vfs_file *dir, const char *path);
int mem_rename(vfs *face, vfs_file *dir, const char *path, vfs_file *to_dir, const char *to);
int mem_link(vfs *face, vfs_file *dir, const char *path, bool follow, vfs_file *to_dir,
	     const char *to);
int mem_symlink(vfs *face, const char *text, vfs_file *dir, const char *path);
int mem_readlink(vfs *face, vfs_file *dir, const char *path, void *out, size_t cap, size_t *len);
int mem_stat_at(vfs *face, vfs_file *dir, const char *path, bool follow, vfs_stat *out);
int mem_set_times_at(vfs *face, vfs_file *dir, const char *path, bool follow, int64_t atime_ns,
		     int64_t mtime_ns);
void mem_stat_node(const mem_node *node, vfs_stat *out);
void mem_clear_node(mem_fs *fs, mem_node *top); /* of all that is beneath it */
int mem_times_node(mem_node *node, int64_t atime_ns, int64_t mtime_ns);

#endif /* SB_VFS_MEM_FS_H */
