/* SPDX-License-Identifier: MIT */
/* call.h - shared by the files of the interface alone: memory of the guest, descriptors, errnos. */
#ifndef SB_WASI_CALL_H
#define SB_WASI_CALL_H

#include "wasi.h"

#include <string.h>

/* Stretches of the guest's memory that one call may name. */
#define WASI_IOVS_MAX 1024u

#define WASI_FILE_RIGHTS                                                                           \
	((uint64_t)(WASI_R_DATASYNC | WASI_R_READ | WASI_R_SEEK | WASI_R_SET_FLAGS | WASI_R_SYNC | \
		    WASI_R_TELL | WASI_R_WRITE | WASI_R_ADVISE | WASI_R_ALLOCATE | WASI_R_STAT |   \
		    WASI_R_SET_SIZE | WASI_R_SET_TIMES | WASI_R_POLL))
#define WASI_DIR_RIGHTS                                                                            \
	((uint64_t)(WASI_R_SET_FLAGS | WASI_R_SYNC | WASI_R_DATASYNC | WASI_R_ADVISE |             \
		    WASI_R_CREATE_DIR | WASI_R_CREATE_FILE | WASI_R_LINK_SOURCE |                  \
		    WASI_R_LINK_TARGET | WASI_R_OPEN | WASI_R_READDIR | WASI_R_READLINK |          \
		    WASI_R_RENAME_SOURCE | WASI_R_RENAME_TARGET | WASI_R_PATH_STAT |               \
		    WASI_R_PATH_SET_SIZE | WASI_R_PATH_SET_TIMES | WASI_R_STAT |                   \
		    WASI_R_SET_TIMES | WASI_R_SYMLINK | WASI_R_REMOVE_DIR | WASI_R_UNLINK |        \
		    WASI_R_POLL))
/* What a directory of files that nobody may change keeps. */
#define WASI_CHANGING                                                                              \
	((uint64_t)(WASI_R_WRITE | WASI_R_ALLOCATE | WASI_R_CREATE_DIR | WASI_R_CREATE_FILE |      \
		    WASI_R_LINK_SOURCE | WASI_R_LINK_TARGET | WASI_R_RENAME_SOURCE |               \
		    WASI_R_RENAME_TARGET | WASI_R_PATH_SET_SIZE | WASI_R_PATH_SET_TIMES |          \
		    WASI_R_SET_SIZE | WASI_R_SET_TIMES | WASI_R_SYMLINK | WASI_R_REMOVE_DIR |      \
		    WASI_R_UNLINK))

/* `len` bytes of the guest's at `at`; NULL = not all of them are there. */
static inline uint8_t *call_bytes(const wasi *w, uint64_t at, uint64_t len)
{
	at &= UINT32_MAX;
	if (at > w->mem_len || len > w->mem_len - at)
		return NULL;
	return w->mem + at;
}

static inline uint32_t call_load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline uint64_t call_load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline void call_store16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof v);
}

static inline void call_store32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof v);
}

static inline void call_store64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof v);
}

static inline uint32_t call_set32(const wasi *w, uint64_t at, uint32_t v)
{
	uint8_t *p = call_bytes(w, at, sizeof v);

	if (!p)
		return WASI_EFAULT;
	call_store32(p, v);
	return WASI_OK;
}

static inline uint32_t call_set64(const wasi *w, uint64_t at, uint64_t v)
{
	uint8_t *p = call_bytes(w, at, sizeof v);

	if (!p)
		return WASI_EFAULT;
	call_store64(p, v);
	return WASI_OK;
}

static inline uint32_t call_arg32(const uint64_t *a, int i)
{
	return (uint32_t)a[i];
}

/* ---- fds.c ---- */
uint32_t fds_errno(int rc); /* 0 or -errno of Linux */
wasi_fd *fds_get(const wasi *w, uint64_t number); /* NULL = not open */
/* With all of `rights`: WASI_OK, EBADF, ENOTCAPABLE. */
uint32_t fds_need(const wasi *w, uint64_t number, uint64_t rights, wasi_fd **fd);
/* The same for a directory: ENOTDIR. */
uint32_t fds_need_dir(const wasi *w, uint64_t number, uint64_t rights, wasi_fd **fd);
/* A free place, the lowest; -1 = none. */
int fds_place(wasi *w);
void fds_close(wasi_fd *fd);

/* ---- Each function of the interface ---- */
#define CALL(name) uint32_t call_##name(wasi *w, const uint64_t *a)
/* clang-format off */
CALL(args_get); CALL(args_sizes_get); CALL(environ_get); CALL(environ_sizes_get);
CALL(clock_res_get); CALL(clock_time_get); CALL(proc_exit); CALL(proc_raise); CALL(random_get);
CALL(sched_yield);
CALL(fd_advise); CALL(fd_allocate); CALL(fd_close); CALL(fd_datasync); CALL(fd_fdstat_get);
CALL(fd_fdstat_set_flags); CALL(fd_fdstat_set_rights); CALL(fd_filestat_get);
CALL(fd_filestat_get_old); CALL(fd_filestat_set_size); CALL(fd_filestat_set_times);
CALL(fd_pread); CALL(fd_prestat_get); CALL(fd_prestat_dir_name); CALL(fd_pwrite); CALL(fd_read);
CALL(fd_readdir); CALL(fd_renumber); CALL(fd_seek); CALL(fd_seek_old); CALL(fd_sync);
CALL(fd_tell); CALL(fd_write);
CALL(path_create_directory); CALL(path_filestat_get); CALL(path_filestat_get_old);
CALL(path_filestat_set_times); CALL(path_link); CALL(path_open); CALL(path_readlink);
CALL(path_remove_directory); CALL(path_rename); CALL(path_symlink); CALL(path_unlink_file);
CALL(poll_oneoff); CALL(poll_oneoff_old);
CALL(bell); CALL(rest);
CALL(sock_accept); CALL(sock_recv); CALL(sock_send); CALL(sock_shutdown);
/* clang-format on */

/* ---- stat.c ---- */
uint32_t stat_store(const wasi *w, uint64_t at, const vfs_stat *st, bool old);
/* fstflags and two times as what a vfs takes. */
uint32_t stat_times(uint64_t atim, uint64_t mtim, uint32_t flags, int64_t out[2]);

/* ---- stream.c: blocking, but for WASI_F_NONBLOCK ---- */
struct iovec;
uint32_t stream_read(wasi *w, wasi_fd *fd, const struct iovec *iov, int count, size_t *done);
uint32_t stream_write(wasi *w, const wasi_fd *fd, const struct iovec *iov, int count,
		      size_t *done);
/* The guest's list of stretches; WASI_IOVS_MAX of them at the most. */
uint32_t stream_iovs(const wasi *w, uint64_t at, uint64_t count, struct iovec *out);

#endif /* SB_WASI_CALL_H */
