/* SPDX-License-Identifier: MIT */
/*
 * watch.c - a reader that is told: output from a cursor on, then live, then the end.
 *
 * The queue is not a copy: it is the part of the log between the watch's cursor and the end.  Its
 * bound is on what came since the watch was made (what was retained before is replayed at the
 * reader's pace).  When more than queue_bytes are waiting, `cut` is set behind them, for good: what is
 * queued is still given, then LAG with the cursor at the cut, where sb_output_read() goes on without
 * a hole.  A log that dropped what was queued cuts there.
 */
#include "live.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENT_BYTES = 65536, QUEUE_BYTES = 1 << 20 };

struct sb_watch {
	sb_process *process;          /* one reference */
	sb_watch *next;               /* of the process; only while it is listed */
	uint64_t cursor, born, queue_bytes;
	uint64_t cut;                 /* SB_UNLIMITED = not cut */
	bool listed, told_exit, done; /* done: next gives CLOSED */
	int fd;
	bool fd_set;
	char *data;
	size_t data_cap;
};

/* ---- what is there: the lock is held ------------------------------------------------------------ */

static bool has_event(const sb_watch *w)
{
	const sb_process *p = w->process;

	if (w->done || w->cursor < p->log.end || w->cursor >= w->cut)
		return true;
	return p->closed || (p->drained && !w->told_exit);
}

static void fd_update(sb_watch *w)
{
	bool ready = has_event(w);
	uint64_t count = 1;

	if (ready == w->fd_set)
		return;
	w->fd_set = ready;
	ssize_t n = ready ? write(w->fd, &count, sizeof count) : read(w->fd, &count, sizeof count);

	if (n < 0 && errno == EAGAIN)
		return; /* it is as it should be already */
}

void watch_tell(sb_process *p)
{
	for (sb_watch *w = p->watches; w; w = w->next) {
		uint64_t live = w->cursor > w->born ? w->cursor : w->born;

		if (w->cut == SB_UNLIMITED && p->log.end - live > w->queue_bytes)
			w->cut = live + w->queue_bytes;
		fd_update(w);
	}
}

static void unlist(sb_watch *w)
{
	sb_watch **at = &w->process->watches;

	if (!w->listed)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->listed = false;
	/* the last one that a closed log was kept for */
	if (w->process->closed && !w->process->watches)
		outlog_release(&w->process->log);
}

static void finish(sb_watch *w)
{
	w->done = true;
	unlist(w);
	fd_update(w);
}

/* ---- making and closing ---------------------------------------------------------------------------- */

static int begin(sb_watch *w, uint64_t cursor, sb_error *err)
{
	sb_process *p = w->process;

	if (p->closed)
		return error_set(err, SB_ERR_PROCESS_CLOSED, "watch",
				 "the process \"%.80s\" is closed", p->id);
	if (cursor > p->log.end)
		return error_set(err, SB_ERR_INVALID, "watch",
				 "the cursor %llu is beyond the end of the output at %llu",
				 (unsigned long long)cursor, (unsigned long long)p->log.end);
	if (cursor && cursor < p->log.oldest)
		return error_set(err, SB_ERR_SEQUENCE_GAP, "watch",
				 "the bytes at %llu are dropped; the oldest that are kept begin at %llu",
				 (unsigned long long)cursor, (unsigned long long)p->log.oldest);
	w->cursor = cursor ? cursor : p->log.oldest;
	w->born = p->log.end;
	w->next = p->watches;
	p->watches = w;
	w->listed = true;
	fd_update(w);
	return 0;
}

int sb_watch_new(sb_output *output, uint64_t cursor, uint64_t queue_bytes, sb_watch **watch,
		 sb_error *err)
{
	sb_process *p = output ? output->process : NULL;

	if (!p || !watch || (queue_bytes > INT64_MAX && queue_bytes != SB_UNLIMITED))
		return error_set(err, SB_ERR_INVALID, "watch", "%s",
				 p && watch ? "queue_bytes is negative" : "an argument is NULL");
	int code = session_check(p->session, "output", err);

	if (code < 0)
		return code;
	sb_watch *w = calloc(1, sizeof *w);

	if (!w)
		return error_no_memory(err, "watch");
	w->process = p;
	w->queue_bytes = queue_bytes ? queue_bytes : QUEUE_BYTES;
	w->cut = SB_UNLIMITED;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0) {
		code = error_errno(err, SB_ERR_IO, errno, "watch", "cannot make an eventfd");
	} else {
		pthread_mutex_lock(&p->session->lock);
		code = begin(w, cursor, err);
		pthread_mutex_unlock(&p->session->lock);
	}
	if (code < 0) {
		fd_close(&w->fd);
		free(w);
		return code;
	}
	process_ref(p);
	*watch = w;
	return 0;
}

void sb_watch_close(sb_watch *w)
{
	if (!w || session_check(w->process->session, "watch", NULL) < 0)
		return;
	pthread_mutex_lock(&w->process->session->lock);
	finish(w);
	topic_wake(&w->process->changed);
	pthread_mutex_unlock(&w->process->session->lock);
}

void sb_watch_free(sb_watch *w)
{
	if (!w)
		return;
	bool ours = session_check(w->process->session, "watch", NULL) >= 0;

	if (ours)
		sb_watch_close(w);
	fd_close(&w->fd);
	if (ours)
		process_unref(w->process);
	free(w->data);
	free(w);
}

int sb_watch_fd(const sb_watch *w)
{
	return w ? w->fd : -1;
}

/* ---- the next event ----------------------------------------------------------------------------------- */

static int room_for(sb_watch *w, uint64_t len, sb_error *err)
{
	size_t want = len < EVENT_BYTES ? (size_t)len : EVENT_BYTES;

	if (want <= w->data_cap)
		return 0;
	char *data = realloc(w->data, want);

	if (!data)
		return error_no_memory(err, "watch");
	w->data = data;
	w->data_cap = want;
	return 0;
}

static int give_output(sb_watch *w, sb_event *event, sb_error *err)
{
	const sb_process *p = w->process;
	uint64_t until = p->log.end < w->cut ? p->log.end : w->cut;

	/* an event is either old or new */
	if (w->cursor < w->born && w->born < until)
		until = w->born;
	int code = room_for(w, until - w->cursor, err);

	if (code < 0)
		return code;
	size_t most = until - w->cursor < w->data_cap ? (size_t)(until - w->cursor) : w->data_cap;

	event->what = SB_EVENT_OUTPUT;
	event->len = outlog_read(&p->log, w->cursor, w->data, most, &event->stream);
	event->data = w->data;
	event->cursor = w->cursor;
	event->replay = w->cursor < w->born;
	w->cursor += event->len;
	return 0;
}

/* 1 = there was none. */
static int take_event(sb_watch *w, sb_event *event, sb_error *err)
{
	const sb_process *p = w->process;

	event->cursor = w->cursor;
	if (w->cursor < p->log.oldest || w->cursor >= w->cut) {
		event->what = SB_EVENT_LAG;
		finish(w);
	} else if (w->cursor < p->log.end) {
		return give_output(w, event, err);
	} else if (p->drained && !w->told_exit) {
		event->what = SB_EVENT_EXITED;
		event->outcome = p->exit.outcome;
		event->code = p->exit.code;
		event->signal_number = p->exit.signal_number;
		event->error = p->exit.error;
		w->told_exit = true;
	} else if (p->closed) {
		event->what = SB_EVENT_CLOSED;
		finish(w);
	} else {
		return 1;
	}
	return 0;
}

static int next_locked(sb_watch *w, const sb_call *call, sb_event *event, sb_error *err)
{
	int code;

	for (;;) {
		if (w->done)
			return error_set(err, SB_ERR_CLOSED, "watch", "the watch has ended");
		code = take_event(w, event, err);
		fd_update(w);
		if (code <= 0)
			return code;
		code = topic_wait(&w->process->changed, &w->process->session->lock, call, err);
		if (code == SB_ERR_AGAIN)
			return error_set(err, SB_ERR_AGAIN, "watch", "nothing has happened yet");
		if (code < 0)
			return code;
	}
}

int sb_watch_next(sb_watch *w, const sb_wait *wait, sb_event *event, sb_error *err)
{
	sb_event out = { .size = sizeof out, .code = -1 };
	sb_call call;

	if (!w || !event)
		return error_set(err, SB_ERR_INVALID, "watch", "an argument is NULL");
	int code = session_check(w->process->session, "watch", err);

	if (code >= 0)
		code = call_init(&call, wait, SB_UNLIMITED, err);
	if (code < 0)
		return code;
	pthread_mutex_lock(&w->process->session->lock);
	code = next_locked(w, &call, &out, err);
	pthread_mutex_unlock(&w->process->session->lock);
	return code < 0 ? code : record_write(event, &out, sizeof out, "sb_event", err);
}
