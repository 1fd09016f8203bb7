/* SPDX-License-Identifier: MIT */
/*
 * host.c - directories of the host as a file system for a guest: open files, and the whole.
 *
 * Paths are host_walk.c's; everything here is done to a descriptor.  There is no quota: what the guest
 * writes lies on the host's disk.
 */
#include "host_fs.h"

#include "../base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_APPEND
#define RWF_APPEND 0x10
#endif
#define LIST_BYTES 8192
#define NS 1000000000

struct host_fs {
	vfs face;
	bool readonly;
};

bool host_is_readonly(const vfs *face)
{
	return ((const host_fs *)(const void *)face)->readonly;
}

vfs_file *host_file_new(int fd)
{
	host_file *file = malloc(sizeof *file);

	if (!file) {
		close(fd);
		return NULL;
	}
	file->fd = fd;
	return (vfs_file *)(void *)file;
}

/* ---- Looking ------------------------------------------------------------------------------------ */

void host_stat_of(const struct stat *st, vfs_stat *out)
{
	*out = (vfs_stat){
		.dev = (uint64_t)st->st_dev + 2, /* 1 is the one in memory */
		.ino = st->st_ino, .links = st->st_nlink, .size = (uint64_t)st->st_size,
		.atime_ns = (int64_t)st->st_atim.tv_sec * NS + st->st_atim.tv_nsec,
		.mtime_ns = (int64_t)st->st_mtim.tv_sec * NS + st->st_mtim.tv_nsec,
		.ctime_ns = (int64_t)st->st_ctim.tv_sec * NS + st->st_ctim.tv_nsec,
		.type = S_ISREG(st->st_mode) ? VFS_FILE : S_ISDIR(st->st_mode) ? VFS_DIR :
			S_ISLNK(st->st_mode) ? VFS_LINK : VFS_OTHER,
	};
}

static int host_stat(vfs *face, vfs_file *file, vfs_stat *out)
{
	struct stat st;

	(void)face;
	if (fstat(host_fd_of(file), &st) < 0)
		return -errno;
	host_stat_of(&st, out);
	return 0;
}

static struct timespec time_of(int64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / NS), .tv_nsec = (long)(ns % NS) };

	if (ns == VFS_TIME_OMIT)
		return (struct timespec){ .tv_nsec = UTIME_OMIT };
	if (t.tv_nsec < 0) {
		t.tv_sec--;
		t.tv_nsec += NS;
	}
	return t;
}

void host_times(int64_t atime_ns, int64_t mtime_ns, struct timespec out[2])
{
	out[0] = time_of(atime_ns);
	out[1] = time_of(mtime_ns);
}

/* By the descriptor, which need not be open for reading. */
static int host_set_times(vfs *face, vfs_file *file, int64_t atime_ns, int64_t mtime_ns)
{
	struct timespec times[2];

	if (host_is_readonly(face))
		return -EROFS;
	host_times(atime_ns, mtime_ns, times);
	return utimensat(host_fd_of(file), "", times, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* ---- Bytes ------------------------------------------------------------------------------------ */

static int host_set_size(vfs *face, vfs_file *file, uint64_t size)
{
	if (host_is_readonly(face))
		return -EROFS;
	return ftruncate(host_fd_of(file), (off_t)size) < 0 ? -errno : 0;
}

static int host_allocate(vfs *face, vfs_file *file, uint64_t offset, uint64_t len)
{
	if (host_is_readonly(face))
		return -EROFS;
	return fallocate(host_fd_of(file), 0, (off_t)offset, (off_t)len) < 0 ? -errno : 0;
}

static int host_read(vfs *face, vfs_file *file, uint64_t offset, void *data, size_t len, size_t *done)
{
	ssize_t n = offset > INT64_MAX ? 0 : pread(host_fd_of(file), data, len, (off_t)offset);

	(void)face;
	*done = n < 0 ? 0 : (size_t)n;
	return n < 0 ? -errno : 0;
}

/* At the end as it is when the bytes arrive; the file's own offset, which nothing else uses, tells where. */
static ssize_t append(int fd, const void *data, size_t len, uint64_t *end)
{
	const struct iovec iov = { (void *)(uintptr_t)data, len };
	ssize_t n = pwritev2(fd, &iov, 1, -1, RWF_APPEND);
	off_t at = n < 0 ? 0 : lseek(fd, 0, SEEK_CUR);

	*end = at < 0 ? 0 : (uint64_t)at;
	return n;
}

static int host_write(vfs *face, vfs_file *file, uint64_t offset, const void *data, size_t len, size_t *done,
		      uint64_t *end)
{
	int fd = host_fd_of(file);
	ssize_t n;

	*done = 0;
	if (host_is_readonly(face))
		return -EROFS;
	if (offset == VFS_APPEND) {
		n = append(fd, data, len, end);
	} else if (offset > INT64_MAX - len) {
		return -EFBIG;
	} else {
		n = pwrite(fd, data, len, (off_t)offset);
		*end = offset + (n < 0 ? 0 : (uint64_t)n);
	}
	if (n < 0)
		return -errno;
	*done = (size_t)n;
	return 0;
}

static int host_sync(vfs *face, vfs_file *file)
{
	(void)face;
	return fsync(host_fd_of(file)) < 0 ? -errno : 0;
}

/* ---- Listing ------------------------------------------------------------------------------------ */

/* As getdents64() writes it. */
typedef struct listed {
	uint64_t ino;
	int64_t next;
	uint16_t len;
	uint8_t type;
	char name[];
} listed;

static int type_of(int dir, const listed *e)
{
	struct stat st;
	vfs_stat out;

	if (e->type == 8 || e->type == 4 || e->type == 10) /* DT_REG, DT_DIR, DT_LNK */
		return e->type == 8 ? VFS_FILE : e->type == 4 ? VFS_DIR : VFS_LINK;
	if (e->type != 0 || fstatat(dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return VFS_OTHER;
	host_stat_of(&st, &out);
	return out.type;
}

/* A cookie is the kernel's own: where to go on in the directory as it then is. */
static int host_list(vfs *face, vfs_file *file, uint64_t from, vfs_each_fn each, void *user)
{
	union {
		listed align;
		char bytes[LIST_BYTES];
	} room;
	int fd = host_fd_of(file);
	long n;

	(void)face;
	if (from > INT64_MAX || lseek(fd, (off_t)from, SEEK_SET) < 0)
		return from > INT64_MAX ? -EINVAL : -errno;
	while ((n = syscall(SYS_getdents64, fd, room.bytes, sizeof room.bytes)) > 0)
		for (long at = 0; at < n;) {
			const listed *e = (const listed *)(const void *)(room.bytes + at);

			if (!each(user, e->name, strlen(e->name), e->ino, type_of(fd, e), (uint64_t)e->next))
				return 0;
			at += e->len;
		}
	return n < 0 ? -errno : 0;
}

/* ---- The whole ---------------------------------------------------------------------------------- */

static void host_close(vfs *face, vfs_file *file)
{
	(void)face;
	close(host_fd_of(file));
	free(file);
}

static const vfs_ops host_ops = {
	.open = host_open, .close = host_close, .stat = host_stat, .set_times = host_set_times,
	.set_size = host_set_size, .allocate = host_allocate, .read = host_read, .write = host_write,
	.sync = host_sync, .list = host_list, .stat_at = host_stat_at, .set_times_at = host_set_times_at,
	.mkdir = host_mkdir, .rmdir = host_rmdir, .unlink = host_unlink, .rename = host_rename,
	.link = host_link, .symlink = host_symlink, .readlink = host_readlink,
};

host_fs *host_new(void)
{
	host_fs *fs = calloc(1, sizeof *fs);

	if (!fs)
		return NULL;
	fs->face.ops = &host_ops;
	fs->readonly = true;
	return fs;
}

void host_may_change(host_fs *fs)
{
	fs->readonly = false;
}

void host_free(host_fs *fs)
{
	free(fs);
}

vfs *host_vfs(host_fs *fs)
{
	return &fs->face;
}

vfs_file *host_dir(int fd)
{
	return host_file_new(fd);
}
