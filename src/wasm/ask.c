/* SPDX-License-Identifier: MIT */
/*
 * ask.c - what the host asks of a guest that stays: files in, files out; and interrupts.
 *
 * All of it happens while the guest waits in a call of the interface, or rests, so its files are whole.  SIGINT
 * is let in by ppoll() alone while we look whether one has come: none is lost between the look and the
 * wait.
 */
#include "worker.h"
#include "../base/base.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SMALL = 256 };

static volatile sig_atomic_t interrupted; /* and no wait has been told yet */

int ask_open(worker *k, int control)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} more;
	char hello = 0;
	struct iovec iov = { &hello, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &more,
			    .msg_controllen = sizeof more };
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(control, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n == 1 ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c || hello != ASK_HELLO || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return n < 0 ? -errno : -EPROTO;
	memcpy(&k->ask, CMSG_DATA(c), sizeof k->ask);
	return 0;
}

/* ---- Bytes -------------------------------------------------------------------------------------------- */

static ssize_t write_some(int fd, void *at, size_t len)
{
	return write(fd, at, len);
}

static bool ask_read(int fd, void *data, uint64_t len)
{
	return fd_move_all(fd, data, len, read, NULL, NULL) == 0;
}

static bool ask_write(int fd, const void *data, uint64_t len)
{
	return fd_move_all(fd, (void *)(uintptr_t)data, len, write_some, NULL, NULL) == 0;
}

bool ask_hear(const worker *k, ask_head *head)
{
	return ask_read(k->ask, head, sizeof *head) && head->magic == ASK_MAGIC && head->bytes >= sizeof *head;
}

bool ask_tell(const worker *k, const ask_head *head)
{
	return ask_write(k->ask, head, sizeof *head);
}

/* ---- Questions ---------------------------------------------------------------------------------------- */

static int put_one(mem_fs *fs, const job_entry *e, const char *path, const uint8_t *data)
{
	uint32_t flags = e->flags & JOB_READONLY ? MEM_READONLY : 0;
	int rc;

	if (e->kind == JOB_DIR)
		return mem_add_dir(fs, path, flags);
	if (e->kind != JOB_FILE)
		return -EINVAL;
	rc = mem_drop(fs, path);
	return rc ? rc : mem_add_file(fs, path, data, e->data_len, flags);
}

static int put_all(mem_fs *fs, const uint8_t *data, uint64_t len)
{
	const job_entry *e;
	const uint8_t *content;
	const char *path;
	uint64_t at = 0;
	int rc = 0;

	while (!rc && job_next(data, len, &at, &e, &path, &content))
		rc = put_one(fs, e, path, content);
	return rc ? rc : at == len ? 0 : -EINVAL;
}

/* Counts on a first walk, writes on a second. */
typedef struct gathering {
	int fd; /* -1 = count */
	ask_head *head;
	uint64_t left;
	bool failed;
} gathering;

static bool gather_part(gathering *g, const void *data, uint64_t len)
{
	static const uint8_t zeros[JOB_ALIGN];
	uint64_t padding = (JOB_ALIGN - len % JOB_ALIGN) % JOB_ALIGN;

	if (g->fd < 0) {
		g->head->bytes += len + padding;
		return true;
	}
	return ask_write(g->fd, data, len) && ask_write(g->fd, zeros, padding);
}

static bool gather(void *user, const char *path, int type, const void *data, uint64_t len, bool whole)
{
	gathering *g = user;
	const job_entry e = { .kind = type == VFS_FILE ? JOB_FILE : JOB_DIR,
			      .path_len = (uint32_t)strlen(path), .data_len = len };

	if (!whole || (type != VFS_FILE && type != VFS_DIR) || len > g->left) {
		uint32_t *why = !whole ? &g->head->too_deep :
				type != VFS_FILE && type != VFS_DIR ? &g->head->links : &g->head->cut;

		*why += g->fd < 0;
		return true;
	}
	g->left -= len;
	g->head->entries += g->fd < 0;
	g->failed |= !gather_part(g, &e, sizeof e) || !gather_part(g, path, (uint64_t)e.path_len + 1) ||
		     !gather_part(g, data, len);
	return !g->failed;
}

static bool answer(const worker *k, ask_head *head, const char *dir)
{
	gathering g = { .fd = -1, .head = head, .left = head->room };

	head->bytes = sizeof *head;
	head->entries = head->cut = head->links = head->too_deep = 0;
	if (head->what == ASK_GET && !head->rc)
		head->rc = mem_walk(k->fs, dir, gather, &g);
	if (!ask_tell(k, head))
		return false;
	if (head->what != ASK_GET || head->rc)
		return true;
	g.fd = k->ask;
	g.left = head->room;
	mem_walk(k->fs, dir, gather, &g);
	return !g.failed;
}

/* False: the host is gone, or asks what we do not know. */
static bool serve(worker *k)
{
	_Alignas(JOB_ALIGN) uint8_t few[SMALL]; /* most questions have a folder's name, no more */
	const job_entry *e;
	const uint8_t *content;
	const char *dir = "";
	uint64_t len, at = 0;
	uint8_t *data = few;
	ask_head head;
	bool fine;

	if (!ask_hear(k, &head) || head.bytes > JOB_MAX_BYTES)
		return false;
	if (head.what == ASK_BRANCH)
		return head.bytes == sizeof head && twin_give(k, &head);
	len = head.bytes - sizeof head;
	if (len > sizeof few)
		data = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED || !ask_read(k->ask, data, len))
		return false;
	if (head.what == ASK_PUT)
		head.rc = put_all(k->fs, data, len);
	else if (!job_next(data, len, &at, &e, &dir, &content))
		head.rc = -EINVAL;
	else
		head.rc = head.what == ASK_CLEAR ? mem_clear(k->fs, dir) : 0;
	fine = answer(k, &head, dir);
	if (data != few)
		munmap(data, len);
	return fine;
}

/* ---- Waiting ------------------------------------------------------------------------------------------ */

void ask_interrupt(worker *k)
{
	interrupted = 1;
	wasi_ring(&k->w);
}

/* Once for each interrupt, and not before what is there: a look without waiting that is told of an interrupt alone
 * would find nothing, and a driver that looks whether it was interrupted takes nothing for a no. */
static int look_once(struct pollfd *polls, uint32_t count)
{
	int n = poll(polls, count, 0);

	if (n == 0 && interrupted) {
		n = -1;
		errno = EINTR;
	}
	if (n < 0 && errno == EINTR)
		interrupted = 0;
	return n;
}

static int wait_once(const worker *k, struct pollfd *polls, uint32_t count, const struct timespec *most)
{
	sigset_t block, before;
	int n, error;

	if (most && !most->tv_sec && !most->tv_nsec)
		return look_once(polls, count);
	sigemptyset(&block);
	sigaddset(&block, SIGINT);
	sigaddset(&block, SIGTERM);
	sigaddset(&block, SIGPROF);
	sigprocmask(SIG_BLOCK, &block, &before);
	if (k->run.stop(k->run.user)) { /* it came an instant ago, and would end no sleep */
		n = -1;
		errno = EINTR;
	} else if (interrupted) {
		n = look_once(polls, count);
	} else {
		n = ppoll(polls, count, most, &before);
		if (n < 0 && errno == EINTR)
			interrupted = 0;
	}
	error = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return n;
}

int ask_wait(void *user, struct pollfd *polls, uint32_t count, const struct timespec *most)
{
	worker *k = user;
	struct pollfd *all = malloc(((size_t)count + 1) * sizeof *all);
	int n, error;

	if (!all) {
		errno = ENOMEM;
		return -1;
	}
	memcpy(all, polls, count * sizeof *all);
	all[count] = (struct pollfd){ .fd = k->ask, .events = POLLIN };
	/* what the host asks does not lengthen a wait by more than it takes: whoever has a time looks again */
	n = wait_once(k, all, count + 1, most);
	error = errno;
	if (n > 0 && all[count].revents) {
		n--;
		if (!serve(k))
			k->ask = -1; /* it stays open: close() is not among the calls that are left */
	}
	for (uint32_t i = 0; n >= 0 && i < count; i++)
		polls[i].revents = all[i].revents;
	free(all);
	errno = error;
	return n;
}

/* As a read of the stream by the guest would wait.  One that has lost its stream finds out by itself. */
bool ask_rest(worker *k)
{
	struct pollfd control = { .fd = k->w.control.host, .events = POLLIN };
	int n = 0;

	if (!k->w.control.open || k->w.control.host < 0)
		return true;
	k->run.in_host = k->rests = true;
	while ((n == 0 || (n < 0 && errno == EINTR)) && !k->run.stop(k->run.user))
		n = ask_wait(k, &control, 1, NULL);
	k->w.control.ready = n > 0;
	k->run.in_host = k->rests = false;
	return !k->run.stop(k->run.user);
}
