/* SPDX-License-Identifier: MIT */
/*
 * wire.c - sends and receives records, and puts a failure into words.
 *
 * Safe after fork and in a vfork child: no allocation, no stdio.
 */
#include "box.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef union fd_room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * LP_MAX_FDS)];
} fd_room;

static uint32_t take_fds(struct msghdr *msg, int *fds, uint32_t cap)
{
	struct cmsghdr *c;
	uint32_t taken = 0;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t i, n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (fds && taken < cap)
				fds[taken++] = fd;
			else
				close(fd);
		}
	}
	return taken;
}

long wire_receive(int socket, void *record, size_t cap, int *fds, uint32_t cap_fds,
		  uint32_t *fd_count)
{
	fd_room room;
	struct iovec iov = { record, cap };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room,
		.msg_controllen = sizeof room };
	uint32_t taken;
	ssize_t n;

	do
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	taken = take_fds(&msg, fds, cap_fds);
	if (fd_count)
		*fd_count = taken;
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		while (taken)
			close(fds[--taken]);
		return -EMSGSIZE;
	}
	return (long)n;
}

int wire_send(int socket, const void *record, size_t bytes, const int *fds, uint32_t fd_count)
{
	fd_room room;
	struct iovec iov = { (void *)record, bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd_count > LP_MAX_FDS)
		return -E2BIG;
	if (fd_count) {
		memset(&room, 0, CMSG_SPACE(sizeof(int) * fd_count));
		msg.msg_control = &room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		room.align.cmsg_level = SOL_SOCKET;
		room.align.cmsg_type = SCM_RIGHTS;
		room.align.cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(&room.align), fds, sizeof(int) * fd_count);
	}
	do
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

void wire_head(lp_head *head, uint32_t kind, size_t bytes, uint32_t id)
{
	*head = (lp_head){ .version = LP_VERSION, .kind = kind, .bytes = (uint32_t)bytes, .id = id };
}

void wire_failed(int socket, uint32_t id, uint32_t exec, const launch_failure *f)
{
	lp_failed answer = { .os_errno = f->os_errno, .exec = exec };

	wire_head(&answer.head, LP_FAILED, sizeof answer, id);
	memcpy(answer.where, f->where, sizeof answer.where);
	memcpy(answer.message, f->message, sizeof answer.message);
	wire_send(socket, &answer, sizeof answer, NULL, 0);
}

uint64_t wire_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint32_t wire_cgroup_fds(launch_cgroup *cg, int *at[LP_MAX_FDS])
{
	int *const all[] = { &cg->memory_peak, &cg->memory_oom, &cg->pids_events, &cg->cpu_usage,
		&cg->cpu_stat, &cg->kill };
	uint32_t i, count = 0;

	for (i = 0; i < cg->count; i++)
		if (cg->join[i] >= 0)
			at[count++] = &cg->join[i];
	for (i = 0; i < sizeof all / sizeof *all; i++)
		if (*all[i] >= 0)
			at[count++] = all[i];
	return count;
}

/* ---- A failure in words ----------------------------------------------------------------------- */

typedef struct line {
	char *at, *end;              /* end: where the NUL goes at the latest */
} line;

static void put_text(line *l, const char *text)
{
	while (text && *text && l->at < l->end)
		*l->at++ = *text++;
}

static void put_number(line *l, uint64_t value, bool negative)
{
	char digits[24], *p = digits + sizeof digits;

	*--p = 0;
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	if (negative)
		*--p = '-';
	put_text(l, p);
}

/* %s %d %u %lu %llu %zu %%: what failures need. */
static void put_format(line *l, const char *fmt, va_list args)
{
	for (; *fmt && l->at < l->end; fmt++) {
		int longs = 0;

		if (*fmt != '%') {
			*l->at++ = *fmt;
			continue;
		}
		for (fmt++; *fmt == 'l' || *fmt == 'z'; fmt++)
			longs++;
		if (*fmt == 's') {
			put_text(l, va_arg(args, const char *));
		} else if (*fmt == 'd') {
			int64_t v = longs ? va_arg(args, long) : va_arg(args, int);

			put_number(l, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
		} else if (*fmt == 'u') {
			put_number(l, longs ? va_arg(args, unsigned long) : va_arg(args, unsigned int),
				   false);
		} else if (*fmt == '%') {
			put_text(l, "%");
		} else {
			return;
		}
	}
}

int launch_fail(launch_failure *f, int os_errno, const char *where, const char *fmt, ...)
{
	line w = { f->where, f->where + sizeof f->where - 1 };
	line m = { f->message, f->message + sizeof f->message - 1 };
	va_list args;

	memset(f, 0, sizeof *f);
	f->os_errno = os_errno;
	put_text(&w, where);
	va_start(args, fmt);
	put_format(&m, fmt, args);
	va_end(args);
	if (os_errno) {
		char *reason;

		put_text(&m, ": ");
		reason = m.at;
		put_text(&m, strerror(os_errno));
		/* our messages have no capital, but for words like "RFS specific error" */
		if (reason[0] >= 'A' && reason[0] <= 'Z' && reason[1] >= 'a' && reason[1] <= 'z')
			reason[0] = (char)(reason[0] - 'A' + 'a');
	}
	return -1;
}
