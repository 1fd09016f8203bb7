/* SPDX-License-Identifier: MIT */
/*
 * feed.c - a guest's input on its way; see feed.h.
 *
 * Only descriptors of the library's own are ever made non-blocking.  A borrowed one is read when
 * poll() says that it may, and pipes and sockets in a way that cannot wait, should another reader
 * have been faster.
 */
#include "feed.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 65536 };
enum { TYPE_PLAIN = 0, TYPE_PIPE, TYPE_SOCKET };
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

ssize_t feed_write(int fd, const void *data, size_t len)
{
	sigset_t pipe_only, before, pending;
	static const struct timespec at_once = { 0, 0 };

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	ssize_t n = write(fd, data, len);
	int saved = errno;

	/* the signal that this write raised is taken away; one of before stays */
	if (n < 0 && saved == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe_only, NULL, &at_once) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return n;
}

void feed_end(feed *f, int *in)
{
	if (!f->keep)
		fd_close(in);
	f->done = true;
	f->left = 0;
}

void feed_release(feed *f)
{
	free(f->buffer);
	f->buffer = NULL;
	f->left = 0;
}

bool feed_wants_source(const feed *f)
{
	return !f->done && !f->left && f->kind == SB_INPUT_FD;
}

bool feed_wants_room(const feed *f)
{
	return !f->done && (f->left || f->kind == SB_INPUT_CALLBACK);
}

static ssize_t source_read(feed *f)
{
	if (f->type == TYPE_SOCKET)
		return recv(f->source, f->buffer, PIECE, MSG_DONTWAIT);
	if (f->type == TYPE_PIPE) {
		struct iovec piece = { .iov_base = f->buffer, .iov_len = PIECE };
		/* raw: musl 1.2.3 has no preadv2; the offset travels as two halves */
		ssize_t n = (ssize_t)syscall(SYS_preadv2, f->source, &piece, 1, -1L, -1L,
					     RWF_NOWAIT);

		if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL))
			return n;
		f->type = TYPE_PLAIN; /* a kernel before 6.4: poll's word is all there is */
	}
	return read(f->source, f->buffer, PIECE);
}

static int refill(feed *f, int *in)
{
	int said = FEED_FINE;
	ssize_t n;

	if (f->kind == SB_INPUT_FD) {
		n = source_read(f);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return FEED_FINE;
	} else {
		n = (ssize_t)f->read_input(f->user, f->buffer, PIECE);
		if (n < 0 || n > PIECE)
			said = FEED_STOP;
	}
	if (n <= 0 || n > PIECE) {
		feed_end(f, in);
		return said;
	}
	f->next = f->buffer;
	f->left = (size_t)n;
	return FEED_FINE;
}

static void give(feed *f, int *in)
{
	while (f->left) {
		ssize_t n = feed_write(*in, f->next, f->left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) { /* EPIPE: it does not want more, which is its right */
			feed_end(f, in);
			return;
		}
		f->next += n;
		f->left -= (size_t)n;
	}
	if (f->kind == SB_INPUT_BYTES)
		feed_end(f, in);
}

int feed_give(feed *f, int *in)
{
	int said = f->left ? FEED_FINE : refill(f, in);

	if (f->left)
		give(f, in);
	return said;
}

int feed_take(feed *f, int *in)
{
	int said = f->left || f->done ? FEED_FINE : refill(f, in);

	if (f->left)
		give(f, in);
	return said;
}

int feed_begin(feed *f, const sb_command *command, int *in)
{
	struct stat st;

	f->kind = command->input_kind;
	f->source = command->input_fd;
	f->read_input = command->read_input;
	f->user = command->user;
	if (*in < 0) {
		f->done = true;
		return 0;
	}
	switch (f->kind) {
	case SB_INPUT_BYTES:
		f->next = command->input;
		f->left = command->input_len;
		give(f, in); /* most inputs fit: no round through poll */
		return 0;
	case SB_INPUT_FD:
		if (fstat(f->source, &st) == 0)
			f->type = S_ISFIFO(st.st_mode)   ? TYPE_PIPE
				  : S_ISSOCK(st.st_mode) ? TYPE_SOCKET
							 : TYPE_PLAIN;
		break;
	case SB_INPUT_CALLBACK:
		break;
	default:
		feed_end(f, in);
		return 0;
	}
	f->buffer = malloc(PIECE);
	if (f->buffer)
		return 0;
	feed_end(f, in);
	return SB_ERR_NO_MEMORY;
}
