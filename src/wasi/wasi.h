/* SPDX-License-Identifier: MIT */
/*
 * wasi.h - WASI preview 1 over a vfs, without an engine.
 *
 * Each function of the interface is a C function on the context: it takes the guest's arguments as
 * numbers, and finds the guest's memory in `mem` and `mem_len`, which whoever calls it sets before each
 * call.  Every offset and length is looked at against that before anything is read or written; nothing
 * outside of it and of the descriptors given here is ever touched.  One thread.
 *
 * The answer is a WASI errno.  WASI_ENDED means that the guest has called proc_exit(): `exit_code` is
 * set, and the guest must not go on.  WASI_RESTS, of sandbox.rest: what it was doing must not go on, and
 * another call of it will when there is something to do.
 */
#ifndef SB_WASI_WASI_H
#define SB_WASI_WASI_H

#include "../vfs/vfs.h"

/* clang-format off */
enum { WASI_OK = 0, WASI_E2BIG, WASI_EACCES, WASI_EADDRINUSE, WASI_EADDRNOTAVAIL, WASI_EAFNOSUPPORT,
       WASI_EAGAIN, WASI_EALREADY, WASI_EBADF, WASI_EBADMSG, WASI_EBUSY, WASI_ECANCELED, WASI_ECHILD,
       WASI_ECONNABORTED, WASI_ECONNREFUSED, WASI_ECONNRESET, WASI_EDEADLK, WASI_EDESTADDRREQ,
       WASI_EDOM, WASI_EDQUOT, WASI_EEXIST, WASI_EFAULT, WASI_EFBIG, WASI_EHOSTUNREACH, WASI_EIDRM,
       WASI_EILSEQ, WASI_EINPROGRESS, WASI_EINTR, WASI_EINVAL, WASI_EIO, WASI_EISCONN, WASI_EISDIR,
       WASI_ELOOP, WASI_EMFILE, WASI_EMLINK, WASI_EMSGSIZE, WASI_EMULTIHOP, WASI_ENAMETOOLONG,
       WASI_ENETDOWN, WASI_ENETRESET, WASI_ENETUNREACH, WASI_ENFILE, WASI_ENOBUFS, WASI_ENODEV,
       WASI_ENOENT, WASI_ENOEXEC, WASI_ENOLCK, WASI_ENOLINK, WASI_ENOMEM, WASI_ENOMSG,
       WASI_ENOPROTOOPT, WASI_ENOSPC, WASI_ENOSYS, WASI_ENOTCONN, WASI_ENOTDIR, WASI_ENOTEMPTY,
       WASI_ENOTRECOVERABLE, WASI_ENOTSOCK, WASI_ENOTSUP, WASI_ENOTTY, WASI_ENXIO, WASI_EOVERFLOW,
       WASI_EOWNERDEAD, WASI_EPERM, WASI_EPIPE, WASI_EPROTO, WASI_EPROTONOSUPPORT, WASI_EPROTOTYPE,
       WASI_ERANGE, WASI_EROFS, WASI_ESPIPE, WASI_ESRCH, WASI_ESTALE, WASI_ETIMEDOUT, WASI_ETXTBSY,
       WASI_EXDEV, WASI_ENOTCAPABLE };
/* clang-format on */
#define WASI_ENDED 0x10000u
#define WASI_RESTS 0x10001u

/* Rights: one bit a function or so. */
enum { WASI_R_DATASYNC = 1 << 0, WASI_R_READ = 1 << 1, WASI_R_SEEK = 1 << 2,
       WASI_R_SET_FLAGS = 1 << 3, WASI_R_SYNC = 1 << 4, WASI_R_TELL = 1 << 5,
       WASI_R_WRITE = 1 << 6, WASI_R_ADVISE = 1 << 7, WASI_R_ALLOCATE = 1 << 8,
       WASI_R_CREATE_DIR = 1 << 9, WASI_R_CREATE_FILE = 1 << 10, WASI_R_LINK_SOURCE = 1 << 11,
       WASI_R_LINK_TARGET = 1 << 12, WASI_R_OPEN = 1 << 13, WASI_R_READDIR = 1 << 14,
       WASI_R_READLINK = 1 << 15, WASI_R_RENAME_SOURCE = 1 << 16, WASI_R_RENAME_TARGET = 1 << 17,
       WASI_R_PATH_STAT = 1 << 18, WASI_R_PATH_SET_SIZE = 1 << 19, WASI_R_PATH_SET_TIMES = 1 << 20,
       WASI_R_STAT = 1 << 21, WASI_R_SET_SIZE = 1 << 22, WASI_R_SET_TIMES = 1 << 23,
       WASI_R_SYMLINK = 1 << 24, WASI_R_REMOVE_DIR = 1 << 25, WASI_R_UNLINK = 1 << 26,
       WASI_R_POLL = 1 << 27, WASI_R_SHUTDOWN = 1 << 28, WASI_R_ACCEPT = 1 << 29 };

enum { WASI_T_UNKNOWN = 0, WASI_T_BLOCK, WASI_T_CHAR, WASI_T_DIR, WASI_T_FILE, WASI_T_DGRAM,
       WASI_T_STREAM, WASI_T_LINK };

/* fdflags */
enum { WASI_F_APPEND = 1, WASI_F_DSYNC = 2, WASI_F_NONBLOCK = 4, WASI_F_RSYNC = 8, WASI_F_SYNC = 16 };

typedef struct wasi_fd {
	vfs *fs;                 /* of a file or directory */
	vfs_file *file;          /* NULL: a stream of the host's, or closed */
	int host;                /* -1: none */
	uint64_t offset, rights, inherits;
	uint16_t flags;
	uint8_t type;            /* WASI_T_* */
	bool open, preopen, borrowed; /* borrowed: `file` is not closed with it */
	bool ready;              /* the caller has waited already: the next read need not */
	const char *name;        /* of a preopen */
} wasi_fd;

struct pollfd;
struct timespec;
#define WASI_BELL_MAX 8

typedef struct wasi {
	uint8_t *mem;
	uint64_t mem_len;
	wasi_fd *fd;
	uint32_t fd_count, fd_room, fd_max;
	wasi_fd control;         /* WASI_CONTROL_FD */
	const char *const *argv, *const *env; /* NULL-ended; the caller's */
	int64_t monotonic_base_ns, cpu_base_ns, thread_base_ns;
	int32_t exit_code;
	uint64_t calls;
	/* Asked when a blocking call was interrupted; true = it shall not go on (EINTR). */
	bool (*stopping)(void *user);
	/* Where given, in the place of ppoll(): waits of poll_oneoff(), and for a stream of a socket.
	 * -1 with EINTR: the wait is over for a reason of the caller's, which the guest is told. */
	int (*wait)(void *user, struct pollfd *polls, uint32_t count, const struct timespec *most);
	void *user;
	/* The guest's bell: words of its memory and the bits that are set in each of them. */
	struct { uint32_t at, bits; } bell[WASI_BELL_MAX];
	volatile uint32_t bells;
} wasi;

/* Files that may be open at once: `fd_max`. */
void wasi_init(wasi *w, uint32_t fd_max);
void wasi_release(wasi *w); /* closes files, not the streams */
/* At the lowest free number; the number, or -1: no memory or room. */
int wasi_add_stream(wasi *w, int host, uint8_t type, uint64_t rights);
/* A stream at WASI_CONTROL_FD, far above what loops over descriptors reach. */
void wasi_add_control(wasi *w, int host, uint8_t type, uint64_t rights);
#define WASI_CONTROL_FD 1000000000
int wasi_add_preopen(wasi *w, vfs *fs, vfs_file *dir, const char *name, bool readonly);
/* Clocks begin to count from now on. */
void wasi_start_clocks(wasi *w);
/* Sets the bits of the guest's bell: fit for a signal handler, whatever the guest is doing. */
void wasi_ring(wasi *w);

typedef uint32_t (*wasi_fn)(wasi *w, const uint64_t *args);
typedef struct wasi_import {
	const char *name;
	const char *params;      /* 'i' = i32, 'I' = i64 */
	bool returns;            /* an i32 */
	wasi_fn call;
} wasi_import;
/* NULL-named at the end.  The older interface differs in a few records and numbers. */
extern const wasi_import wasi_preview1[], wasi_unstable[];
/* "sandbox": what is not of WASI. */
extern const wasi_import wasi_ours[];
/* The interface of a module name, or NULL. */
const wasi_import *wasi_interface(const char *module, size_t len);

#endif /* SB_WASI_WASI_H */
