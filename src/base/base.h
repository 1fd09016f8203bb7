/* SPDX-License-Identifier: MIT */
/*
 * base.h - what every layer uses: errors, growing bytes, descriptors, clocks, a JSON writer.
 *
 * Nothing here knows what a sandbox is.  Everything is safe from any thread; nothing prints, exits,
 * or aborts on memory.  A file foo.c exports foo_* only.
 */
#ifndef SB_BASE_H
#define SB_BASE_H

#include <sandbox/sandbox.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "banned.h"
#include "utf8.h"

#define BASE_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define BASE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* ---- error.c: set once, where it happens ------------------------------------------------- */
/* Fills *err (may be NULL) with code, its kind, where and the message; returns code.  os_errno 0. */
int error_set(sb_error *err, int code, const char *where, const char *fmt, ...) BASE_PRINTF(4, 5);
/* The same with an errno: message gets ": <text of errno>" at its end; os_errno is set. */
int error_errno(sb_error *err, int code, int os_errno, const char *where, const char *fmt, ...)
	BASE_PRINTF(5, 6);
int error_no_memory(sb_error *err, const char *where);
/* Puts text before the message; code, kind and where stay. */
void error_prefix(sb_error *err, const char *fmt, ...) BASE_PRINTF(2, 3);
/* A failed open/stat-like call on `path` as the SB_ERR_* a caller expects: ENOENT NOT_FOUND, EACCES
 * and EPERM FORBIDDEN, ENOTDIR NOT_DIR, EISDIR IS_DIR, ENOMEM NO_MEMORY, else IO. */
int error_code_of_errno(int os_errno);

/* ---- buf.c: growing bytes with a hard maximum from birth and a sticky error --------------- */
typedef struct buf {
	char *data;      /* NULL while empty; else there is always a NUL behind len */
	size_t len, cap, max;
	int failed;      /* 0, SB_ERR_NO_MEMORY, or SB_ERR_INVALID once max was met: then adds do nothing */
} buf;
void buf_init(buf *b, size_t max);
void buf_add(buf *b, const void *data, size_t len);
void buf_add_str(buf *b, const char *text);
void buf_add_char(buf *b, char c);
void buf_add_fmt(buf *b, const char *fmt, ...) BASE_PRINTF(2, 3);
char *buf_take(buf *b, size_t *len); /* the caller's, for free(); "" if empty; NULL if failed */
void buf_release(buf *b);

/* Room for one more item behind `len`: the array, perhaps elsewhere, or NULL; then it is as it was. */
void *buf_grow(void *at, size_t len, size_t *cap, size_t item);

/* A NULL-ended vector of strings that it owns. */
typedef struct strv {
	char **at;       /* NULL while empty */
	size_t len, cap;
} strv;
int strv_add(strv *v, const char *text);                 /* copies; 0 or SB_ERR_NO_MEMORY */
int strv_add_len(strv *v, const char *text, size_t len);
int strv_add_fmt(strv *v, const char *fmt, ...) BASE_PRINTF(2, 3);
int strv_add_all(strv *v, const char *const *list);      /* list may be NULL */
char **strv_take(strv *v);                               /* for strv_free_list(); never NULL on memory left */
void strv_release(strv *v);
void strv_free_list(char **list);                        /* NULL is fine */
size_t strv_count(const char *const *list);              /* NULL = 0 */
bool strv_has(const char *const *list, const char *text);

/* ---- arena.c: memory that ends with its owner -------------------------------------------- */
typedef struct arena_chunk arena_chunk;
typedef struct arena {
	arena_chunk *chunks;
	char *at;
	size_t left;
	bool failed;                  /* sticky; every maker then returns NULL */
} arena;                         /* zeros = empty; at and left may name a first piece of the owner's */
void *arena_alloc(arena *mem, size_t size); /* zeroed */
void *arena_copy(arena *mem, const void *data, size_t size);
char *arena_text(arena *mem, const char *text);              /* NULL stays NULL */
char *arena_text_len(arena *mem, const char *text, size_t len);
char *arena_fmt(arena *mem, const char *fmt, ...) BASE_PRINTF(2, 3);
const char *const *arena_list(arena *mem, const char *const *list); /* deep; NULL stays NULL */
void arena_release(arena *mem);

/* ---- json.c: writer ---------------------------------------------------------------------- */
/* Commas are put by itself.  Names and text must be UTF-8; what is not becomes U+FFFD. */
typedef struct json {
	buf *out;
	uint32_t depth;
	bool comma, after_name;
} json;
void json_init(json *j, buf *out);
void json_open(json *j, char bracket);           /* '{' or '[' */
void json_close(json *j, char bracket);          /* '}' or ']' */
void json_name(json *j, const char *name);
void json_text(json *j, const char *text);       /* NULL = null */
void json_bytes(json *j, const char *data, size_t len); /* as text, bad bytes as U+FFFD */
void json_base64(json *j, const void *data, size_t len);
void json_uint(json *j, uint64_t value);
void json_int(json *j, int64_t value);
void json_bool(json *j, bool value);
void json_null(json *j);
void json_milli(json *j, uint64_t micros);       /* 14213 us -> 14.213 */
/* "name": and the value, as by the two calls one behind the other. */
void json_member_text(json *j, const char *name, const char *text);
void json_member_uint(json *j, const char *name, uint64_t value);
void json_member_int(json *j, const char *name, int64_t value);
void json_member_bool(json *j, const char *name, bool value);
void json_member_milli(json *j, const char *name, uint64_t micros);
/* "name": text, and "name_base64" beside it if the bytes are not UTF-8. */
void json_member_bytes(json *j, const char *name, const void *data, size_t len);

/* ---- fd.c -------------------------------------------------------------------------------- */
void fd_close(int *fd);                          /* closes if >= 0, sets -1, errno kept */
#define FD_AUTO __attribute__((cleanup(fd_close)))
/* whole.c: by read(2) or write(2), or by what takes the same (recv, send).  0, -errno, -EPIPE at the end of what is
 * read.  `await` waits where the call would block, or has it given up: -ECANCELED.  Without it: -EAGAIN. */
typedef ssize_t (*fd_move_fn)(int fd, void *at, size_t len);
typedef bool (*fd_await_fn)(void *user, int fd);
int fd_move_all(int fd, void *data, uint64_t len, fd_move_fn move, fd_await_fn await, void *user);
int fd_write_all(int fd, const void *data, size_t len);  /* 0 or -errno; blocking fd */
/* The same into a file (in memory): -EFBIG above RLIMIT_FSIZE, and no SIGXFSZ. */
int fd_write_file(int fd, const void *data, size_t len);
int fd_read_file(int fd, size_t max, buf *out);  /* to the end; 0, -errno, -EFBIG above max */
int fd_memfd(const char *name, const void *data, size_t len); /* sealed against change; fd or -errno */
/* open.c: of what others may have had their hands in.  -1 with errno, always CLOEXEC.
 * No link on the way, nor at its end (but with O_PATH | O_NOFOLLOW, which opens it): ELOOP. */
int open_plain(int dir, const char *path, int flags);
/* `path` may lead through links, but not out of `dir`: EXDEV. */
int open_beneath(int dir, const char *path, int flags);
/* A file of the host's, to be read, and nothing that could keep us waiting: of any other kind EINVAL, unopened. */
int open_regular(int dir, const char *path);
int fd_nonblock(int fd);                         /* of our own fds only; 0 or -errno */
int fd_pair(int type, int out[2]);               /* socketpair AF_UNIX, CLOEXEC; 0 or -errno */

/* ---- clock.c ----------------------------------------------------------------------------- */
uint64_t clock_now_ns(void);                     /* CLOCK_MONOTONIC */
int64_t clock_unix_ns(void);
/* now + ms, saturating; SB_UNLIMITED stays. */
uint64_t clock_deadline_ns(uint64_t now_ns, uint64_t timeout_ms);
/* "500 ms", "10 s" of a limit; returns out. */
const char *clock_text(uint64_t ms, char out[32]);
/* "64 MiB", "1000 bytes" of a limit; returns out. */
const char *size_text(uint64_t bytes, char out[32]);
/* For poll(): -1 = no end, 0 = past, else milliseconds rounded up, at most INT_MAX. */
int clock_poll_ms(uint64_t now_ns, uint64_t deadline_ns);

/* ---- path.c: pure text ------------------------------------------------------------------- */
/* Absolute, no ".", "..", "//" or trailing "/" (but "/"), no NUL: copies the lexically clean form.
 * ".." is refused, never resolved.  INVALID_PATH. */
int path_clean_absolute(const char *path, char **out, sb_error *err);
bool path_is_clean_absolute(const char *path);
/* 1 if `path` is `dir` or beneath it (element boundary; "/" holds all). */
bool path_is_within(const char *path, const char *dir);
const char *path_base(const char *path);         /* behind the last "/" */
int path_join(const char *dir, const char *name, char **out);

/* ---- random.c ---------------------------------------------------------------------------- */
/* prefix and 32 hex digits of getrandom(2); failure is an error, never a weaker source. */
int random_id(const char *prefix, char *out, size_t cap, sb_error *err);

#endif /* SB_BASE_H */
