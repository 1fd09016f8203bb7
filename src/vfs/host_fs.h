/* SPDX-License-Identifier: MIT */
/* host_fs.h - shared by host*.c alone: open files, walks. */
#ifndef SB_VFS_HOST_FS_H
#define SB_VFS_HOST_FS_H

#include "vfs.h"

#include <time.h>

#define HOST_DEPTH_MAX 128u /* directories in one path: each is open while it is walked */

typedef struct host_file {
	int fd;
} host_file;

static inline int host_fd_of(const vfs_file *file)
{
	return ((const host_file *)(const void *)file)->fd;
}

/* ---- host_walk.c ---- */
enum { HOST_LAST_NAME = 0, HOST_LAST_DOT, HOST_LAST_DOTDOT };
typedef struct host_place {
	int dir;                         /* in which the last name stands; or that directory itself */
	int last;                        /* HOST_LAST_* */
	bool slash;                      /* a slash behind the last name */
	char name[VFS_NAME_MAX + 1];     /* never a link that `how` follows; "." where there is none */
	/* of the walk: */
	int up[HOST_DEPTH_MAX + 1];      /* the directories that lead there; the first is the caller's */
	uint32_t depth, links;
	size_t from;                     /* of what is left in text */
	char text[2 * VFS_PATH_MAX];
} host_place;
/* how: VFS_NAME.. as of mem.c.  Whatever it gives, host_leave() comes behind it. */
int host_walk(int start, const char *path, int how, host_place *place);
void host_leave(host_place *place);
/* What stands at the place, itself: its mode, 0 = nothing; or -errno. */
int host_kind(const host_place *place, unsigned int *mode);

/* ---- host_names.c ---- */
int host_open(vfs *face, vfs_file *dir, const char *path, uint32_t flags, vfs_file **file);
int host_mkdir(vfs *face, vfs_file *dir, const char *path);
int host_rmdir(vfs *face, vfs_file *dir, const char *path);
int host_unlink(vfs *face, vfs_file *dir, const char *path);
int host_rename(vfs *face, vfs_file *dir, const char *path, vfs_file *to_dir, const char *to);
int host_link(vfs *face, vfs_file *dir, const char *path, bool follow, vfs_file *to_dir, const char *to);
int host_symlink(vfs *face, const char *text, vfs_file *dir, const char *path);
int host_readlink(vfs *face, vfs_file *dir, const char *path, void *out, size_t cap, size_t *len);
int host_stat_at(vfs *face, vfs_file *dir, const char *path, bool follow, vfs_stat *out);
int host_set_times_at(vfs *face, vfs_file *dir, const char *path, bool follow, int64_t atime_ns,
		      int64_t mtime_ns);

/* ---- host.c ---- */
bool host_is_readonly(const vfs *face);
vfs_file *host_file_new(int fd); /* takes it; NULL = no memory, and it is closed */
struct stat;
void host_stat_of(const struct stat *st, vfs_stat *out);

void host_times(int64_t atime_ns, int64_t mtime_ns, struct timespec out[2]);

#endif /* SB_VFS_HOST_FS_H */
