/* SPDX-License-Identifier: MIT */
/*
 * stream.c - the guest's output to our own descriptors.
 *
 * The descriptors are the caller's: their flags are shared with the shell and are left alone, so a
 * write may block.  What is written at once is therefore no more than poll() promised: PIPE_BUF for
 * a pipe.  A reader that is slow holds the guest back, as it would without us.  At the deadline the
 * rest is kept, which the cap of the output bounds, so that the library sees the deadline, too, and
 * ends the guest; after that the reader gets a short while more.
 */
#include "cli.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TERMINAL_CHUNK = 512 };

uint64_t stream_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void stream_init(cli_stream *stream, int fd)
{
	struct stat st;

	*stream = (cli_stream){ .fd = fd };
	if (fstat(fd, &st) == 0) {
		stream->pipe = S_ISFIFO(st.st_mode);
		stream->file = S_ISREG(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(fd) == 0);
	}
}

/* Milliseconds for poll(): -1 = no end; a long wait is cut, the loop comes back. */
static int wait_ms(uint64_t deadline_ns)
{
	if (deadline_ns == SB_UNLIMITED)
		return -1;
	uint64_t now = stream_now_ns();
	if (now >= deadline_ns)
		return 0;
	uint64_t ms = (deadline_ns - now + 999999) / 1000000;
	return ms > 60000 ? 60000 : (int)ms;
}

/* STREAM_OK once the descriptor takes something. */
static int wait_ready(cli_stream *stream, uint64_t deadline_ns, const volatile sig_atomic_t *stop)
{
	struct pollfd ready = { .fd = stream->fd, .events = POLLOUT };

	for (;;) {
		int ms = wait_ms(deadline_ns);
		if (*stop != 0)
			return STREAM_STOPPED;
		/* a signal between the check and poll() would be missed: look again soon */
		int n = poll(&ready, 1, ms < 0 || ms > 200 ? 200 : ms);
		if (n > 0 && (ready.revents & POLLOUT) != 0)
			return STREAM_OK;
		if (n > 0)
			return STREAM_GONE; /* POLLERR: nobody reads a pipe any more */
		if (n < 0 && errno != EINTR) {
			stream->os_errno = errno;
			return STREAM_ERROR;
		}
		if (n == 0 && ms == 0)
			return STREAM_LATE;
	}
}

static size_t chunk_size(const cli_stream *stream, size_t len)
{
	size_t most = stream->pipe ? PIPE_BUF : TERMINAL_CHUNK;

	return stream->file || len < most ? len : most;
}

/* What no one takes now: kept for later, or counted. */
static void keep_rest(cli_stream *stream, const char *data, size_t len)
{
	if (stream->state == STREAM_LATE)
		text_add_len(&stream->late, data, len);
	if (stream->state != STREAM_LATE || stream->late.failed)
		stream->lost += len;
}

int stream_write(cli_stream *stream, const void *data, size_t len, uint64_t deadline_ns,
		 const volatile sig_atomic_t *stop)
{
	const char *p = data;

	while (len > 0 && stream->state == STREAM_OK) {
		if (!stream->file) {
			stream->state = wait_ready(stream, deadline_ns, stop);
			if (stream->state != STREAM_OK)
				break;
		}
		ssize_t n = write(stream->fd, p, chunk_size(stream, len));
		if (n > 0) {
			p += n;
			len -= (size_t)n;
			stream->open_line = p[-1] != '\n';
		} else if (n < 0 && errno == EPIPE)
			stream->state = STREAM_GONE;
		else if (n < 0 && errno != EINTR && errno != EAGAIN) {
			stream->state = STREAM_ERROR;
			stream->os_errno = errno;
		}
	}
	if (len > 0)
		keep_rest(stream, p, len);
	return stream->state;
}

int stream_flush(cli_stream *stream, uint64_t patience_ms, const volatile sig_atomic_t *stop)
{
	cli_text late = stream->late;

	if (stream->state != STREAM_LATE)
		return stream->state;
	stream->late = (cli_text){ 0 };
	stream->state = STREAM_OK;
	stream_write(stream, late.data, late.len, stream_now_ns() + patience_ms * 1000000, stop);
	stream->lost += stream->late.len;
	text_release(&stream->late);
	text_release(&late);
	return stream->state;
}
