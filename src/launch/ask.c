/* SPDX-License-Identifier: MIT */
/*
 * ask.c - answers for system calls that landlock does not know: chmod, truncate by path, the times of
 * a file.
 *
 * Without a root of its own a guest could use them on whatever its user owns, so its filter holds them
 * and asks.  The call is never let through: the path is read once out of the guest, opened here, and the
 * thing itself is done through that descriptor, if it lies beneath what the guest may write.  So it
 * does not matter what the guest does to its memory or its links meanwhile.  Done as the user that the
 * guest is: for a guest of root, whose supervisor is somebody else, the answer is always EPERM.
 *
 * One listener for each command; all that a command starts asks there.
 */
#include "box.h"
#include "sys.h"

#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#define AT_ONCE 64               /* answers before somebody else has a turn */
#define TIMES 2

#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

/* A question, read once. */
typedef struct question {
	const launch_box *box;
	struct seccomp_notif *notif;
	int listener;
	char path[PATH_MAX];
	bool has_path, nofollow, empty_path;
	int dir;                 /* AT_FDCWD, or the guest's descriptor */
} question;

int ask_open(launch_box *box, launch_failure *f)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return launch_fail(f, errno, "seccomp", "cannot make a socket pair");
	box->ask_in = pair[0];
	box->ask_out = pair[1];
	return 0;
}

int ask_hand_over(const launch_box *box, int listener, launch_failure *f)
{
	static const char byte;
	int rc = wire_send(box->ask_out, &byte, 1, &listener, 1);

	close(listener);
	return rc < 0 ? launch_fail(f, -rc, "seccomp", "cannot hand the questions over") : 0;
}

int ask_take_over(const launch_box *box)
{
	char byte;
	uint32_t count = 0;
	int fd = -1;

	if (box->ask_in < 0 || wire_receive(box->ask_in, &byte, 1, &fd, 1, &count) <= 0 || !count)
		return -1;
	return fd;
}

/* ---- Out of the guest ------------------------------------------------------------------------------ */

static bool read_guest(const question *q, uint64_t from, void *to, size_t len)
{
	struct iovec local = { to, len }, remote = { (void *)(uintptr_t)from, len };

	return syscall(SYS_process_vm_readv, q->notif->pid, &local, 1, &remote, 1, 0) == (long)len;
}

/* Up to its NUL, page by page: behind the last one there may be nothing. */
static int read_path(question *q, uint64_t from)
{
	size_t at = 0;

	while (at < sizeof q->path) {
		size_t part = 4096 - (size_t)((from + at) % 4096);

		if (part > sizeof q->path - at)
			part = sizeof q->path - at;
		if (!read_guest(q, from + at, q->path + at, part))
			return -EPERM;
		if (memchr(q->path + at, 0, part)) {
			q->has_path = true;
			return 0;
		}
		at += part;
	}
	return -ENAMETOOLONG;
}

/* The question is still the same one's: its number has not been given to another process. */
static bool still_there(const question *q)
{
	return ioctl(q->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &q->notif->id) == 0;
}

/* ---- Whose file -------------------------------------------------------------------------------------- */

static int open_of_guest(const question *q, const char *what)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "%d/%s", (int)q->notif->pid, what);
	fd = openat(q->box->proc, path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -EPERM : fd;
}

static int open_base(const question *q)
{
	char name[32];

	if (q->dir == AT_FDCWD)
		return open_of_guest(q, "cwd");
	if (q->dir < 0)
		return -EBADF;
	snprintf(name, sizeof name, "fd/%d", q->dir);
	return open_of_guest(q, name);
}

/* O_PATH of what the guest means, or -errno. */
static int open_subject(const question *q)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | (q->nofollow ? O_NOFOLLOW : 0),
		.resolve = RESOLVE_NO_MAGICLINKS };
	int base, fd;

	if (q->has_path && !*q->path && !q->empty_path)
		return -ENOENT;
	base = open_base(q);
	if (base < 0 || !q->has_path || !*q->path)
		return base;
	fd = (int)syscall(SYS_openat2, base, q->path, &how, sizeof how);
	fd = fd < 0 ? -errno : fd;
	close(base);
	return fd;
}

static bool is_within(const char *path, const char *top)
{
	size_t len = strlen(top);

	return !strncmp(path, top, len) && (!path[len] || path[len] == '/' || len == 1);
}

/* Beneath what may be written?  A file only gets there by the hand of who may write it. */
static bool may_write(const launch_box *box, int fd)
{
	char link[32], real[PATH_MAX];
	ssize_t n;
	uint32_t i;

	snprintf(link, sizeof link, "self/fd/%d", fd);
	n = readlinkat(box->proc, link, real, sizeof real - 1);
	if (n <= 0 || n == sizeof real - 1)
		return false;
	real[n] = 0;
	for (i = 0; i < box->plan->mount_count; i++) {
		const lp_mount *m = &box->view.mounts[i];

		if (m->kind == LP_M_BIND && (m->flags & LP_F_WRITE) &&
		    is_within(real, launch_string(&box->view, m->target)))
			return true;
	}
	return false;
}

/* ---- The calls ----------------------------------------------------------------------------------------- */

static int do_chmod(const question *q, int fd, uint64_t mode)
{
	char link[32];

	if (mode & (S_ISUID | S_ISGID))
		return -EPERM;
	snprintf(link, sizeof link, "self/fd/%d", fd);
	return fchmodat(q->box->proc, link, (mode_t)mode & 07777, 0) < 0 ? -errno : 0;
}

static int do_truncate(int fd, uint64_t length)
{
	char link[48];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	return truncate(link, (off_t)length) < 0 ? -errno : 0;
}

static int do_times(int fd, const struct timespec *times)
{
	return syscall(SYS_utimensat, fd, "", times, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

enum { KIND_MODE, KIND_LENGTH, KIND_TIMES };

typedef struct order {
	int kind;
	uint64_t value;              /* mode, length */
	struct timespec times[TIMES];
	bool now;                    /* no times were given */
} order;

static int read_order_times(const question *q, uint64_t from, int nr, order *o)
{
	int64_t pair[2 * TIMES];
	int i;

	(void)nr; /* some machines have one call alone */
	o->kind = KIND_TIMES;
	o->now = !from;
	if (o->now)
		return 0;
	/* utime: two seconds; utimes: two pairs with microseconds; utimensat: with nanoseconds */
#ifdef SYS_utime
	if (nr == SYS_utime) {
		if (!read_guest(q, from, pair, 2 * sizeof *pair))
			return -EFAULT;
		o->times[0] = (struct timespec){ .tv_sec = pair[0] };
		o->times[1] = (struct timespec){ .tv_sec = pair[1] };
		return 0;
	}
#endif
	if (!read_guest(q, from, pair, sizeof pair))
		return -EFAULT;
	for (i = 0; i < TIMES; i++) {
		int64_t fraction = pair[2 * i + 1];

#ifdef SYS_utimes
		if (nr == SYS_utimes) {
			if (fraction < 0 || fraction > 999999)
				return -EINVAL;
			fraction *= 1000;
		}
#endif
		o->times[i].tv_sec = pair[2 * i];
		o->times[i].tv_nsec = (long)fraction;
	}
	return 0;
}

/* Which file, and what is to be done; 0 or -errno. */
static int read_question(question *q, order *o)
{
	const struct seccomp_data *d = &q->notif->data;
	int nr = d->nr;

	q->dir = AT_FDCWD;
	switch (nr) {
#ifdef SYS_chmod
	case SYS_chmod:
		*o = (order){ .kind = KIND_MODE, .value = (uint32_t)d->args[1] };
		return read_path(q, d->args[0]);
	case SYS_utime:
	case SYS_utimes:
		return read_path(q, d->args[0]) ?: read_order_times(q, d->args[1], nr, o);
#endif
	case SYS_fchmod:
		*o = (order){ .kind = KIND_MODE, .value = (uint32_t)d->args[1] };
		q->dir = (int)d->args[0];
		return 0;
	case SYS_fchmodat:
		*o = (order){ .kind = KIND_MODE, .value = (uint32_t)d->args[2] };
		q->dir = (int)d->args[0];
		return read_path(q, d->args[1]);
	case SYS_truncate:
		*o = (order){ .kind = KIND_LENGTH, .value = d->args[1] };
		return read_path(q, d->args[0]);
	case SYS_utimensat:
		if (d->args[3] & ~(uint64_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
			return -EINVAL;
		q->dir = (int)d->args[0];
		q->nofollow = d->args[3] & AT_SYMLINK_NOFOLLOW;
		q->empty_path = d->args[3] & AT_EMPTY_PATH;
		return (d->args[1] ? read_path(q, d->args[1]) : 0) ?:
		       read_order_times(q, d->args[2], nr, o);
	default:
		return -ENOSYS;
	}
}

static int decide(question *q)
{
	order o = { 0 };
	int rc, fd;

	if (q->box->plan->uid_outside != geteuid())
		return -EPERM;
	rc = read_question(q, &o);
	if (rc)
		return rc;
	fd = open_subject(q);
	if (fd < 0)
		return fd;
	if (!still_there(q) || !may_write(q->box, fd))
		rc = -EPERM;
	else if (o.kind == KIND_MODE)
		rc = do_chmod(q, fd, o.value);
	else if (o.kind == KIND_LENGTH)
		rc = do_truncate(fd, o.value);
	else
		rc = do_times(fd, o.now ? NULL : o.times);
	close(fd);
	return rc;
}

/* The kernel's records may be longer than ours. */
static union { struct seccomp_notif record; char bytes[512]; } asked;
static union { struct seccomp_notif_resp record; char bytes[512]; } answer;

static bool answer_one(const launch_box *box, int listener)
{
	static question q;
	int rc;

	memset(&asked, 0, sizeof asked);
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked.record) < 0)
		return false;
	q = (question){ .box = box, .notif = &asked.record, .listener = listener };
	rc = decide(&q);
	memset(&answer, 0, sizeof answer);
	answer.record.id = asked.record.id;
	answer.record.error = rc;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer.record);
	return true;
}

/* ---- For the loop --------------------------------------------------------------------------------------- */

static void serve(const launch_box *box, int *listener, short events)
{
	struct pollfd p = { .fd = *listener, .events = POLLIN };
	int i;

	/* receiving waits: only while there is something to receive */
	for (i = 0; i < AT_ONCE && (events & POLLIN); i++) {
		if (!answer_one(box, *listener) || poll(&p, 1, 0) < 1)
			break;
		events = p.revents;
	}
	if ((events & POLLHUP) && !(events & POLLIN)) { /* nobody is left who could ask */
		close(*listener);
		*listener = -1;
	}
}

uint32_t ask_poll(const launch_box *box, struct pollfd *p)
{
	uint32_t i;

	for (i = 0; i < box->ask_count; i++)
		p[i] = (struct pollfd){ .fd = box->ask[i], .events = POLLIN };
	return box->ask_count;
}

void ask_serve(launch_box *box, const struct pollfd *p)
{
	uint32_t i, kept = 0;

	for (i = 0; i < box->ask_count; i++)
		if (p[i].revents)
			serve(box, &box->ask[i], p[i].revents);
	for (i = 0; i < box->ask_count; i++)
		if (box->ask[i] >= 0)
			box->ask[kept++] = box->ask[i];
	box->ask_count = kept;
}

void ask_add(launch_box *box, int listener)
{
	if (listener < 0)
		return;
	if (box->ask_count == LP_MAX_SPAWNS) { /* its guest is told ENOSYS from now on */
		close(listener);
		return;
	}
	box->ask[box->ask_count++] = listener;
}
