/* SPDX-License-Identifier: MIT */
/*
 * vfs.h - file systems as one table of functions, for a layer above that speaks to a guest.
 *
 * Two of them: mem.c (in memory, with live quotas) and host.c (directories of the host, confined).
 * An open file or directory is a vfs_file; the offset of a stream is the caller's.  All functions
 * return 0 or -errno as Linux would; a path that would leave the directory it starts from is -EPERM.
 * Paths are NUL-ended, not empty, relative to `dir`; a leading "/" is -EPERM.  One thread.
 */
#ifndef SB_VFS_VFS_H
#define SB_VFS_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VFS_PATH_MAX 4096 /* with its NUL */
#define VFS_NAME_MAX 255
#define VFS_LINKS_MAX 40  /* symbolic links in one walk */

enum { VFS_OTHER = 0, VFS_FILE, VFS_DIR, VFS_LINK };
enum { VFS_READ = 1, VFS_WRITE = 2, VFS_CREATE = 4, VFS_EXCL = 8, VFS_TRUNC = 16,
       VFS_DIRECTORY = 32, VFS_FOLLOW = 64 };
#define VFS_APPEND UINT64_MAX    /* as an offset: the end */
#define VFS_TIME_OMIT INT64_MIN  /* as a time: leave it */

/* What a walk does with a link at the end of a path: its own name is meant, whatever stands behind it (NAME);
 * it is followed if there is a slash behind it (STAY), if there is none, its own or of a link before it (MAKE:
 * no file can be made there), or always. */
enum { VFS_WALK_NAME = 0, VFS_WALK_STAY, VFS_WALK_MAKE, VFS_WALK_FOLLOW };
/* Of an open() with these flags. */
static inline int vfs_walk_of(uint32_t flags)
{
	bool create = flags & VFS_CREATE, follow = (flags & VFS_FOLLOW) && !(create && (flags & VFS_EXCL));

	if (create)
		return follow ? VFS_WALK_MAKE : VFS_WALK_NAME;
	return follow ? VFS_WALK_FOLLOW : VFS_WALK_STAY;
}

typedef struct vfs_stat {
	uint64_t dev, ino, links, size;
	int64_t atime_ns, mtime_ns, ctime_ns;
	int type;                /* VFS_* */
} vfs_stat;

typedef struct vfs_file vfs_file;
typedef struct vfs vfs;
typedef struct vfs_crossing {
	vfs *fs;
	vfs_file *dir;
	char path[VFS_PATH_MAX];
} vfs_crossing;

/* One name of a directory; false ends the listing.  next: where to go on behind it. */
typedef bool (*vfs_each_fn)(void *user, const char *name, size_t len, uint64_t ino, int type,
			    uint64_t next);

typedef struct vfs_ops {
	int (*open)(vfs *fs, vfs_file *dir, const char *path, uint32_t flags, vfs_file **file);
	void (*close)(vfs *fs, vfs_file *file);
	int (*stat)(vfs *fs, vfs_file *file, vfs_stat *out);
	int (*set_times)(vfs *fs, vfs_file *file, int64_t atime_ns, int64_t mtime_ns);
	int (*set_size)(vfs *fs, vfs_file *file, uint64_t size);
	int (*allocate)(vfs *fs, vfs_file *file, uint64_t offset, uint64_t len);
	int (*read)(vfs *fs, vfs_file *file, uint64_t offset, void *data, size_t len, size_t *done);
	/* *end: the offset behind the last byte written */
	int (*write)(vfs *fs, vfs_file *file, uint64_t offset, const void *data, size_t len,
		     size_t *done, uint64_t *end);
	int (*sync)(vfs *fs, vfs_file *file);
	/* From `from` on: 0 = the beginning, else what was `next`. "." and ".." come first. */
	int (*list)(vfs *fs, vfs_file *dir, uint64_t from, vfs_each_fn each, void *user);
	int (*stat_at)(vfs *fs, vfs_file *dir, const char *path, bool follow, vfs_stat *out);
	int (*set_times_at)(vfs *fs, vfs_file *dir, const char *path, bool follow, int64_t atime_ns,
			    int64_t mtime_ns);
	int (*mkdir)(vfs *fs, vfs_file *dir, const char *path);
	int (*rmdir)(vfs *fs, vfs_file *dir, const char *path);
	int (*unlink)(vfs *fs, vfs_file *dir, const char *path);
	int (*rename)(vfs *fs, vfs_file *dir, const char *path, vfs_file *to_dir, const char *to);
	int (*link)(vfs *fs, vfs_file *dir, const char *path, bool follow, vfs_file *to_dir,
		    const char *to);
	int (*symlink)(vfs *fs, const char *text, vfs_file *dir, const char *path);
	/* The text without a NUL; cut at cap as readlink(2) does. */
	int (*readlink)(vfs *fs, vfs_file *dir, const char *path, void *out, size_t cap,
			size_t *len);
	/* NULL: never.  1 if the path leads into another file system, which is mounted in this one: what is
	 * left of it, from where in that one; else 0.  `how`: VFS_WALK_* of whatever is to be done there. */
	int (*cross)(vfs *fs, vfs_file *dir, const char *path, int how, struct vfs_crossing *to);
} vfs_ops;

struct vfs {
	const vfs_ops *ops;
};

/* ---- mem.c, mem_walk.c, mem_names.c: in memory ------------------------------------------------ */
typedef struct mem_fs mem_fs;
/* Quotas live at each change: sum of the sizes of files; entries (files, directories, links, each name
 * of a hard link).  SB_UNLIMITED = none.  NULL = no memory. */
mem_fs *mem_new(uint64_t max_bytes, uint64_t max_nodes);
void mem_free(mem_fs *fs);
vfs *mem_vfs(mem_fs *fs);
/* The root, open; it lives as long as the file system. */
vfs_file *mem_root(mem_fs *fs);
/* For whoever lays the tree out: absolute clean paths, parents are made, nothing is charged where
 * `free_of_charge`.  data NULL with len 0 = empty. `borrowed`: the bytes stay the caller's and are
 * never changed: such a file is read-only.  `given`: whoever lays a tree like this one lays the same file, too. */
enum { MEM_READONLY = 1, MEM_FREE = 2, MEM_BORROWED = 4, MEM_GIVEN = 8 };
int mem_add_dir(mem_fs *fs, const char *path, uint32_t flags);
int mem_add_file(mem_fs *fs, const char *path, const void *data, uint64_t len, uint32_t flags);
/* Another file system's directory `dir` at a path where nothing stands yet; of it the one file `name`, unless
 * that is NULL.  It cannot be removed or renamed.  The functions of this one do not lead there: see cross(). */
int mem_mount(mem_fs *fs, const char *path, vfs *with, vfs_file *dir, const char *name);
/* Takes away what stands at an absolute path, with all beneath it, whoever may write there; nothing there is
 * fine.  mem_clear(): only what is beneath. */
int mem_drop(mem_fs *fs, const char *path);
int mem_clear(mem_fs *fs, const char *dir);
/* What is used, and how often something was refused for lack of it. */
typedef struct mem_usage { uint64_t bytes, nodes, bytes_refused, nodes_refused; } mem_usage;
void mem_tell(const mem_fs *fs, mem_usage *out);
/* Every name beneath `dir` (an absolute path), parents first, by path relative to it.  Allocates
 * nothing: fit for a signal handler while no other function of this file runs.  Deeper than
 * `depth` (at most 64) or longer than VFS_PATH_MAX: left out, told with data NULL and type OTHER. */
typedef bool (*mem_each_fn)(void *user, const char *path, int type, const void *data, uint64_t len,
			    bool whole);
int mem_walk(mem_fs *fs, const char *dir, mem_each_fn each, void *user);

/* ---- host.c, host_walk.c, host_names.c: directories of the host ------------------------------- */
typedef struct host_fs host_fs;
/* Nothing is changed anywhere, whatever the mounts allow, until that is said.  NULL = no memory. */
host_fs *host_new(void);
void host_may_change(host_fs *fs);
void host_free(host_fs *fs);
vfs *host_vfs(host_fs *fs);
/* A directory to start from, which takes over its descriptor; NULL = no memory. */
vfs_file *host_dir(int fd);

#endif /* SB_VFS_VFS_H */
