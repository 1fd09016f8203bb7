/* SPDX-License-Identifier: MIT */
/*
 * poll.c - poll_oneoff: waits for the first of several clocks and streams.
 *
 * Files are always ready.  Of the clocks only the earliest matters: the wait is one ppoll() until then,
 * and afterwards all that is due is told.  A clock that is past before we begin does not wait at all,
 * but streams that are ready are told with it.
 */
#include "call.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#define POLL_MAX 4096u
enum { KIND_CLOCK = 0, KIND_READ, KIND_WRITE };
enum { REALTIME = 0, MONOTONIC = 1 };
enum { ABSOLUTE = 1 };
enum { HANGUP = 1 };

typedef struct wish {
	uint64_t userdata;
	int64_t until_ns;        /* on CLOCK_MONOTONIC or, `realtime`, CLOCK_REALTIME */
	wasi_fd *fd;
	uint32_t error;          /* told at once */
	int poll;                /* index of its pollfd; -1 = none */
	uint8_t kind;
	bool realtime;
} wish;

static int64_t poll_now(clockid_t id)
{
	struct timespec t = { 0 };

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void read_clock(const wasi *w, const uint8_t *p, wish *out)
{
	uint32_t id = call_load32(p), flags = p[24];
	uint64_t timeout = call_load64(p + 8);
	int64_t from = 0, wait = timeout > INT64_MAX ? INT64_MAX : (int64_t)timeout;

	if (id > MONOTONIC) {
		out->error = id > 3 ? WASI_EINVAL : WASI_ENOTSUP; /* time that only passes while we run */
		return;
	}
	out->realtime = id == REALTIME && (flags & ABSOLUTE);
	if (!(flags & ABSOLUTE))
		from = poll_now(CLOCK_MONOTONIC);
	else if (id == MONOTONIC)
		from = w->monotonic_base_ns;
	if (__builtin_add_overflow(from, wait, &out->until_ns))
		out->until_ns = INT64_MAX;
}

static void read_stream(const wasi *w, uint32_t number, wish *out)
{
	uint64_t right = out->kind == KIND_READ ? WASI_R_READ : WASI_R_WRITE;

	out->fd = fds_get(w, number);
	if (!out->fd)
		out->error = WASI_EBADF;
	else if (out->fd->type == WASI_T_DIR || !(out->fd->rights & right))
		out->error = WASI_EBADF;
}

static void read_wish(const wasi *w, const uint8_t *p, bool old, wish *out)
{
	*out = (wish){ .userdata = call_load64(p), .kind = p[8], .poll = -1 };
	if (out->kind == KIND_CLOCK)
		read_clock(w, p + (old ? 24 : 16), out);
	else if (out->kind <= KIND_WRITE)
		read_stream(w, call_load32(p + 16), out);
	else
		out->error = WASI_EINVAL;
}

static bool is_file(const wish *x)
{
	return x->kind != KIND_CLOCK && !x->error && x->fd->file;
}

static int64_t left_of(const wish *x)
{
	int64_t now = poll_now(x->realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC);

	return x->until_ns > now ? x->until_ns - now : 0;
}

/* How long until something must be told; -1 = no end. */
static int64_t first_of(const wish *list, uint32_t count)
{
	int64_t first = -1;

	for (uint32_t i = 0; i < count; i++) {
		int64_t left;

		if (list[i].error || is_file(&list[i]))
			return 0;
		if (list[i].kind != KIND_CLOCK)
			continue;
		left = left_of(&list[i]);
		first = first < 0 || left < first ? left : first;
	}
	return first;
}

static uint64_t bytes_of(const wish *x)
{
	vfs_stat st;

	if (!x->fd->file)
		return 1; /* at least; how many is nobody's promise */
	if (x->fd->fs->ops->stat(x->fd->fs, x->fd->file, &st) != 0 || st.size < x->fd->offset)
		return 0;
	return st.size - x->fd->offset;
}

static uint32_t tell(const wasi *w, const wish *list, uint32_t count, const struct pollfd *polls,
		     uint64_t out)
{
	uint32_t told = 0;

	for (uint32_t i = 0; i < count; i++) {
		const wish *x = &list[i];
		short seen = x->poll >= 0 ? polls[x->poll].revents : 0;
		uint8_t *p = call_bytes(w, out + (uint64_t)told * 32, 32);

		if (!x->error && !is_file(x) && !seen &&
		    (x->kind != KIND_CLOCK || left_of(x) > 0))
			continue;
		memset(p, 0, 32);
		call_store64(p, x->userdata);
		call_store16(p + 8, (uint16_t)(seen & POLLNVAL ? WASI_EBADF : x->error));
		p[10] = x->kind;
		if (!x->error && x->kind != KIND_CLOCK) {
			call_store64(p + 16, x->kind == KIND_READ ? bytes_of(x) : PIPE_BUF);
			call_store16(p + 24, seen & (POLLHUP | POLLERR) ? HANGUP : 0);
		}
		told++;
	}
	return told;
}

static uint32_t wait_for(wasi *w, const wish *list, uint32_t count, struct pollfd *polls,
			 uint32_t streams)
{
	for (;;) {
		int64_t ns = first_of(list, count);
		struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
		const struct timespec *most = ns < 0 ? NULL : &t;
		int n = w->wait ? w->wait(w->user, polls, streams, most) :
				  ppoll(polls, streams, most, NULL);

		if (n < 0 && errno == EINTR && !w->wait && !(w->stopping && w->stopping(w->user)))
			continue;
		if (n < 0)
			return fds_errno(-errno);
		if (n > 0 || first_of(list, count) == 0)
			return WASI_OK;
	}
}

static uint32_t poll_all(wasi *w, const uint64_t *a, bool old, wish *list, struct pollfd *polls)
{
	uint32_t count = call_arg32(a, 2), size = old ? 56 : 48, streams = 0, rc;
	const uint8_t *in = call_bytes(w, a[0], (uint64_t)count * size);

	if (!in || !call_bytes(w, a[1], (uint64_t)count * 32) || !call_bytes(w, a[3], 4))
		return WASI_EFAULT;
	for (uint32_t i = 0; i < count; i++) {
		read_wish(w, in + (uint64_t)i * size, old, &list[i]);
		if (list[i].kind == KIND_CLOCK || list[i].error || is_file(&list[i]))
			continue;
		list[i].poll = (int)streams;
		polls[streams++] = (struct pollfd){ .fd = list[i].fd->host,
			.events = list[i].kind == KIND_READ ? POLLIN : POLLOUT };
	}
	rc = wait_for(w, list, count, polls, streams);
	return rc ? rc : call_set32(w, a[3], tell(w, list, count, polls, a[1]));
}

static uint32_t poll_call(wasi *w, const uint64_t *a, bool old)
{
	uint32_t count = call_arg32(a, 2), rc;
	struct pollfd *polls;
	wish *list;

	if (count == 0 || count > POLL_MAX)
		return WASI_EINVAL;
	list = calloc(count, sizeof *list);
	polls = calloc(count, sizeof *polls);
	rc = list && polls ? poll_all(w, a, old, list, polls) : WASI_ENOMEM;
	free(list);
	free(polls);
	return rc;
}

CALL(poll_oneoff)
{
	return poll_call(w, a, false);
}

CALL(poll_oneoff_old)
{
	return poll_call(w, a, true);
}
