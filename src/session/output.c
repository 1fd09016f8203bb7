/* SPDX-License-Identifier: MIT */
/* output.c - the output log of a process as its readers see it. */
#include "live.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- the descriptor that tells ------------------------------------------------------------------ */

static void ready_update(sb_process *p)
{
	bool ready = p->log.end > p->given || p->drained || p->closed;
	uint64_t count = 1;

	if (p->ready_fd < 0 || ready == p->ready_set)
		return;
	p->ready_set = ready;
	ssize_t n = ready ? write(p->ready_fd, &count, sizeof count)
			  : read(p->ready_fd, &count, sizeof count);

	if (n < 0 && errno == EAGAIN)
		return; /* it is as it should be already */
}

int sb_output_fd(const sb_output *output)
{
	sb_process *p = output ? output->process : NULL;
	int fd;

	if (!p || session_check(p->session, "output", NULL) < 0)
		return -1;
	pthread_mutex_lock(&p->session->lock);
	if (p->ready_fd < 0)
		p->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ready_update(p);
	fd = p->ready_fd;
	pthread_mutex_unlock(&p->session->lock);
	return fd;
}

/* ---- what comes in ------------------------------------------------------------------------------- */

void output_tell(sb_process *p)
{
	watch_tell(p);
	ready_update(p);
	topic_wake(&p->changed);
}

/* Before what nobody has read gives way; streams that take turns fill the log with bookkeeping. */
static bool must_hold(const sb_process *p)
{
	uint64_t unread = p->log.end - p->given;

	return unread > p->log.budget / 2 || (unread && outlog_used(&p->log) > p->log.budget / 4 * 3 &&
					      outlog_used(&p->log) > 2 * (p->log.end - p->log.oldest));
}

void output_add(sb_process *p, int which, const void *data, size_t len)
{
	uint32_t stream = p->tty ? SB_TTY : which == IO_ERR ? SB_STDERR : SB_STDOUT;

	p->bytes[which == IO_ERR] += len;
	if (p->closed)
		return;
	outlog_add(&p->log, stream, data, len);
	if (p->hold && must_hold(p))
		io_hold(p, true);
	output_tell(p);
}

/* ---- reading --------------------------------------------------------------------------------------- */

static int closed_error(sb_error *err, const sb_process *p)
{
	return error_set(err, SB_ERR_PROCESS_CLOSED, "output", "the process \"%.80s\" is closed",
			 p->id);
}

static int gap_error(sb_error *err, const sb_process *p, uint64_t cursor)
{
	return error_set(err, SB_ERR_SEQUENCE_GAP, "output",
			 "the bytes at %llu are dropped; the oldest that are kept begin at %llu",
			 (unsigned long long)cursor, (unsigned long long)p->log.oldest);
}

static int check_cursor(const sb_process *p, uint64_t cursor, sb_error *err)
{
	if (p->closed)
		return closed_error(err, p);
	if (cursor > p->log.end)
		return error_set(err, SB_ERR_INVALID, "output",
				 "the cursor %llu is beyond the end of the output at %llu",
				 (unsigned long long)cursor, (unsigned long long)p->log.end);
	return cursor < p->log.oldest ? gap_error(err, p, cursor) : 0;
}

static int read_locked(sb_process *p, uint64_t cursor, void *to, size_t cap, const sb_call *call,
		       sb_chunk *chunk, sb_error *err)
{
	int code = check_cursor(p, cursor, err);

	while (code >= 0 && cursor == p->log.end && !p->drained) {
		code = topic_wait(&p->changed, &p->session->lock, call, err);
		if (code == SB_ERR_AGAIN)
			return error_set(err, SB_ERR_AGAIN, "output",
					 "there is no more output yet");
		if (code >= 0)
			code = check_cursor(p, cursor, err);
	}
	if (code < 0)
		return code;
	chunk->stream = p->tty ? SB_TTY : SB_STDOUT;
	chunk->len = outlog_read(&p->log, cursor, to, cap, &chunk->stream);
	chunk->cursor = cursor;
	chunk->next = cursor + chunk->len;
	chunk->eof = p->drained && chunk->next == p->log.end;
	if (chunk->next > p->given) {
		p->given = chunk->next;
		if (p->held && p->log.end - p->given < p->log.budget / 4)
			io_hold(p, false);
		ready_update(p);
	}
	return 0;
}

int sb_output_read(sb_output *output, uint64_t cursor, void *to, size_t cap, const sb_wait *wait,
		   sb_chunk *chunk, sb_error *err)
{
	sb_chunk out = { .size = sizeof out };
	sb_process *p = output ? output->process : NULL;
	sb_call call;

	if (!p || !to || !cap || !chunk)
		return error_set(err, SB_ERR_INVALID, "output",
				 "there is nothing to read from, no room to read into, or no place for "
				 "the chunk");
	int code = session_check(p->session, "output", err);

	if (code >= 0)
		code = call_init(&call, wait, SB_UNLIMITED, err);
	if (code < 0)
		return code;
	pthread_mutex_lock(&p->session->lock);
	code = read_locked(p, cursor, to, cap, &call, &out, err);
	pthread_mutex_unlock(&p->session->lock);
	return code < 0 ? code : record_write(chunk, &out, sizeof out, "sb_chunk", err);
}

int sb_output_range(sb_output *output, uint64_t *oldest, uint64_t *end, sb_error *err)
{
	sb_process *p = output ? output->process : NULL;

	if (!p)
		return error_set(err, SB_ERR_INVALID, "output", "the output is NULL");
	int code = session_check(p->session, "output", err);

	if (code < 0)
		return code;
	pthread_mutex_lock(&p->session->lock);
	if (p->closed)
		code = closed_error(err, p);
	if (code >= 0 && oldest)
		*oldest = p->log.oldest;
	if (code >= 0 && end)
		*end = p->log.end;
	pthread_mutex_unlock(&p->session->lock);
	return code;
}
