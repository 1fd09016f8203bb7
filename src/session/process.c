/* SPDX-License-Identifier: MIT */
/*
 * process.c - one running command, as its callers see it: input, signals, its end.
 *
 * Nothing here reads what the process says, nor learns how it ended: the I/O thread does (life.c),
 * and wakes whoever waits.  Input that is not fed is written from the caller's thread, as far as it
 * goes without waiting; the I/O thread tells when there is room again.
 */
#include "live.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { CLOSE_MS = 10000, BACKEND_MS = 10000, AFTER_KILL_MS = 5000, LINE_MOST = 4095 };

/* ---- memory ------------------------------------------------------------------------------------- */

sb_process *process_new(sb_session *s, const char *id, uint32_t flags)
{
	sb_process *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->refs = 1;
	p->session = s;
	session_ref(s);
	snprintf(p->id, sizeof p->id, "%s", id);
	p->tty = flags & SB_COMMAND_TTY;
	p->hold = flags & SB_COMMAND_HOLD;
	for (int i = 0; i < IO_COUNT; i++)
		p->fd[i] = -1;
	p->control = p->ready_fd = -1;
	p->deadline_ns = p->kill_at_ns = p->give_up_ns = p->drain_at_ns = SB_UNLIMITED;
	p->usage.size = sizeof p->usage;
	p->exit.size = sizeof p->exit;
	p->output.process = p;
	outlog_init(&p->log, s->e.limits.log_bytes);
	topic_init(&p->changed);
	return p;
}

void process_ref(sb_process *p)
{
	atomic_fetch_add(&p->refs, 1);
}

void process_unref(sb_process *p)
{
	if (atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	fd_close(&p->ready_fd);
	fd_close(&p->control);
	outlog_release(&p->log);
	feed_release(&p->feed);
	free(p->input);
	strv_free_list(p->argv);
	topic_release(&p->changed);
	session_unref(p->session);
	free(p);
}

void process_drop(sb_process *p)
{
	sb_session *s = p->session;
	sb_process **at = &s->processes;

	if (p->closed)
		return;
	p->closed = true;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	sandbox_drop(s->sandbox, &p->claim);
	output_tell(p);
	if (!p->watches) /* else with the last of them */
		outlog_release(&p->log);
	process_unref(p);
}

/* ---- what may still be done ------------------------------------------------------------------------ */

static int begin(const sb_process *p, const sb_wait *wait, uint64_t default_ms, sb_call *call,
		 sb_error *err)
{
	if (!p)
		return error_set(err, SB_ERR_INVALID, "process", "the process is NULL");
	int code = session_check(p->session, "process", err);

	return code < 0 ? code : call_init(call, wait, default_ms, err);
}

/* The lock is held. */
static int check_alive(const sb_process *p, sb_error *err)
{
	if (!p->ended && !p->closed && !p->killed)
		return 0;
	return error_set(err, SB_ERR_PROCESS_CLOSED, "process", "the process \"%.80s\" %s", p->id,
			 p->closed ? "is closed" : "has ended");
}

/* Asks the backend, under the session's turn; the lock is held. */
static int send(sb_process *p, int signal, const sb_call *call, sb_error *err)
{
	sb_session *s = p->session;
	int code = turn_take(s, call, err);

	if (code < 0)
		return code;
	if (p->guest && !p->ended) {
		pthread_mutex_unlock(&s->lock);
		code = session_table(s)->signal(p->guest, signal, call, err);
		pthread_mutex_lock(&s->lock);
	}
	turn_give(s);
	return code;
}

/* ---- input -------------------------------------------------------------------------------------------- */

/* Of `len` bytes those that a terminal will keep; one that collects lines keeps LINE_MOST of each. */
static size_t line_room(const sb_process *p, const char *data, size_t len, size_t *line_len)
{
	struct termios mode;

	*line_len = 0;
	if (!p->tty || tcgetattr(p->fd[IO_IN], &mode) < 0 || !(mode.c_lflag & ICANON))
		return len;
	*line_len = p->line_len;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c == '\n' || (c == '\r' && mode.c_iflag & ICRNL) || c == mode.c_cc[VEOF] ||
		    c == mode.c_cc[VEOL] || c == mode.c_cc[VKILL] ||
		    (c == mode.c_cc[VINTR] && mode.c_lflag & ISIG)) {
			*line_len = 0;
		} else if (*line_len == LINE_MOST) {
			return i;
		} else {
			++*line_len;
		}
	}
	return len;
}

static int line_too_long(sb_error *err)
{
	return error_set(err, SB_ERR_INVALID, "process",
			 "the terminal collects lines, and a line there has at most %d bytes; end it "
			 "before, or have the program set the terminal to raw", LINE_MOST);
}

/* 0 = all that is wanted now was tried; *n bytes of it went. */
static int write_some(sb_process *p, const char *data, size_t len, size_t *n, sb_error *err)
{
	size_t line_len, room;
	ssize_t wrote;

	*n = 0;
	if (p->fd[IO_IN] < 0 || p->fed)
		return error_set(err, SB_ERR_PROCESS_CLOSED, "process",
				 p->fed ? "the process \"%.80s\" was given its input at the start"
					: "the input of the process \"%.80s\" is closed",
				 p->id);
	room = line_room(p, data, len, &line_len);
	if (!room)
		return line_too_long(err);
	do
		wrote = feed_write(p->fd[IO_IN], data, room);
	while (wrote < 0 && errno == EINTR);
	if (wrote < 0 && errno != EAGAIN)
		return error_set(err, SB_ERR_PROCESS_CLOSED, "process",
				 "the process \"%.80s\" has closed its input", p->id);
	*n = wrote > 0 ? (size_t)wrote : 0;
	if (*n && *n < room)
		line_room(p, data, *n, &line_len);
	if (*n)
		p->line_len = line_len;
	return 0;
}

static int write_locked(sb_process *p, const char *data, size_t len, const sb_call *call,
			size_t *done, sb_error *err)
{
	while (*done < len) {
		size_t n = 0;
		int code = check_alive(p, err);

		if (code >= 0)
			code = write_some(p, data + *done, len - *done, &n, err);
		*done += n;
		if (code >= 0 && !n) {
			io_watch_input(p, true);
			code = topic_wait(&p->changed, &p->session->lock, call, err);
		}
		if (code == SB_ERR_AGAIN)
			return error_set(err, SB_ERR_AGAIN, "process",
					 "the process does not take more input yet");
		if (code < 0)
			return code;
	}
	return 0;
}

int sb_process_write(sb_process *p, const void *data, size_t len, const sb_wait *wait,
		     size_t *written, sb_error *err)
{
	size_t done = 0;
	sb_call call;
	int code = begin(p, wait, SB_UNLIMITED, &call, err);

	if (code >= 0 && len && !data)
		code = error_set(err, SB_ERR_INVALID, "process", "there are no bytes to write");
	if (code < 0) {
		if (written)
			*written = 0;
		return code;
	}
	pthread_mutex_lock(&p->session->lock);
	code = len ? write_locked(p, data, len, &call, &done, err) : check_alive(p, err);
	pthread_mutex_unlock(&p->session->lock);
	if (written)
		*written = done;
	return code;
}

int sb_process_close_input(sb_process *p, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	int code = begin(p, wait, BACKEND_MS, &call, err);

	if (code < 0)
		return code;
	if (p->tty)
		return error_set(err, SB_ERR_UNSUPPORTED, "process",
				 "a terminal's input has no end of its own; write its end-of-file "
				 "character (Ctrl-D)");
	pthread_mutex_lock(&p->session->lock);
	if (p->fed) {
		p->want_close = true;
		io_post(p);
	} else {
		io_drop(p, IO_IN);
		topic_wake(&p->changed);
	}
	pthread_mutex_unlock(&p->session->lock);
	return 0;
}

/* ---- terminal -------------------------------------------------------------------------------------------- */

static int resize_locked(sb_process *p, uint16_t rows, uint16_t cols, const sb_call *call,
			 sb_error *err)
{
	sb_session *s = p->session;
	int code = check_alive(p, err);

	if (code >= 0)
		code = turn_take(s, call, err);
	if (code < 0)
		return code;
	code = check_alive(p, err);
	if (code >= 0 && p->guest) {
		pthread_mutex_unlock(&s->lock);
		code = session_table(s)->resize(p->guest, rows, cols, call, err);
		pthread_mutex_lock(&s->lock);
	}
	turn_give(s);
	return code;
}

int sb_process_resize(sb_process *p, uint16_t rows, uint16_t cols, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	int code = begin(p, wait, BACKEND_MS, &call, err);

	if (code < 0)
		return code;
	if (!p->tty || !session_table(p->session)->resize)
		return error_set(err, SB_ERR_UNSUPPORTED, "process",
				 "the process \"%.80s\" has no terminal", p->id);
	if (!rows || !cols)
		return error_set(err, SB_ERR_INVALID, "process",
				 "a terminal has at least one row and one column");
	pthread_mutex_lock(&p->session->lock);
	code = resize_locked(p, rows, cols, &call, err);
	pthread_mutex_unlock(&p->session->lock);
	return code;
}

/* Ctrl-C: the character that the terminal takes for it now; where it takes none, or has no room, the
 * signal itself to whoever is in front. */
static int interrupt_terminal(sb_process *p, sb_error *err)
{
	struct termios mode;
	int fd = p->fd[IO_IN];

	if (fd < 0)
		return 0; /* it has hung up: the end is on its way */
	if (tcgetattr(fd, &mode) == 0 && mode.c_cc[VINTR] != _POSIX_VDISABLE &&
	    write(fd, &mode.c_cc[VINTR], 1) == 1) {
		p->line_len = 0;
		return 0;
	}
	if (ioctl(fd, TIOCSIG, SIGINT) == 0)
		return 0;
	return error_errno(err, SB_ERR_IO, errno, "process", "cannot interrupt the terminal");
}

/* ---- signals ----------------------------------------------------------------------------------------------- */

int sb_process_signal(sb_process *p, int signal, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	int code = begin(p, wait, BACKEND_MS, &call, err);

	if (code < 0)
		return code;
	if (signal < SB_SIGNAL_INTERRUPT || signal > SB_SIGNAL_CONTINUE)
		return error_set(err, SB_ERR_INVALID, "process", "%d is not one of SB_SIGNAL_*", signal);
	if (signal != SB_SIGNAL_KILL && signal != SB_SIGNAL_TERMINATE &&
	    !(session_table(p->session)->caps & SB_CAP_SIGNAL))
		return error_set(err, SB_ERR_UNSUPPORTED, "process",
				 "the backend \"%s\" has no signals but terminate and kill",
				 session_table(p->session)->name);
	pthread_mutex_lock(&p->session->lock);
	code = check_alive(p, err);
	if (code >= 0 && signal == SB_SIGNAL_KILL)
		p->signaled = SIGKILL;
	if (code >= 0 && signal == SB_SIGNAL_TERMINATE && p->signaled != SIGKILL)
		p->signaled = SIGTERM;
	if (code >= 0)
		code = p->tty && signal == SB_SIGNAL_INTERRUPT ? interrupt_terminal(p, err)
							       : send(p, signal, &call, err);
	pthread_mutex_unlock(&p->session->lock);
	return code;
}

static uint64_t grace_of(const sb_process *p)
{
	uint64_t grace = p->session->e.limits.grace_ms;

	return grace ? grace : 2000;
}

static int not_ended(const sb_process *p, sb_error *err)
{
	return error_set(err, SB_ERR_TIMEOUT, "process",
			 "the process \"%.80s\" was killed and has not ended yet", p->id);
}

static int terminate_locked(sb_process *p, const sb_call *call, sb_error *err)
{
	sb_call last = *call;
	int code = 0;

	process_end(p, LIFE_TERMINATED, grace_of(p));
	while (code >= 0 && !p->ended)
		code = topic_wait(&p->changed, &p->session->lock, call, err);
	if (code >= 0)
		return 0;
	/* at the end of the wait, or on cancel, there is no more grace */
	process_end(p, LIFE_TERMINATED, 0);
	last.deadline_ns = clock_deadline_ns(clock_now_ns(), AFTER_KILL_MS);
	last.cancel_fd = -1;
	for (int rc = 0; rc >= 0 && !p->ended;)
		rc = topic_wait(&p->changed, &p->session->lock, &last, NULL);
	if (!p->ended)
		return not_ended(p, err);
	return code == SB_ERR_AGAIN ? 0 : code;
}

int sb_process_terminate(sb_process *p, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	int code = begin(p, wait, SB_UNLIMITED, &call, err);

	if (code < 0)
		return code;
	pthread_mutex_lock(&p->session->lock);
	code = terminate_locked(p, &call, err);
	pthread_mutex_unlock(&p->session->lock);
	return code;
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

int sb_process_wait(sb_process *p, const sb_wait *wait, sb_exit *exit, sb_error *err)
{
	sb_call call;
	int code = begin(p, wait, SB_UNLIMITED, &call, err);

	if (code < 0)
		return code;
	if (!exit)
		return error_set(err, SB_ERR_INVALID, "process", "no place for the exit was given");
	pthread_mutex_lock(&p->session->lock);
	while (code >= 0 && !p->ended)
		code = topic_wait(&p->changed, &p->session->lock, &call, err);
	if (code == SB_ERR_AGAIN)
		error_set(err, SB_ERR_AGAIN, "process", "the process \"%.80s\" runs yet", p->id);
	const sb_exit end = p->exit;

	pthread_mutex_unlock(&p->session->lock);
	return code < 0 ? code : record_write(exit, &end, sizeof end, "sb_exit", err);
}

int process_settled(sb_process *p, const sb_call *call, sb_error *err)
{
	int code = 0;

	while (code >= 0 && !p->over)
		code = topic_wait(&p->changed, &p->session->lock, call, err);
	return code == SB_ERR_AGAIN ? not_ended(p, err) : code;
}

int sb_process_close(sb_process *p, const sb_wait *wait, sb_error *err)
{
	sb_call call;
	int code = begin(p, wait, CLOSE_MS, &call, err);

	if (code < 0)
		return code;
	pthread_mutex_lock(&p->session->lock);
	process_end(p, LIFE_TERMINATED, 0);
	code = process_settled(p, &call, err);
	if (code >= 0)
		process_drop(p);
	pthread_mutex_unlock(&p->session->lock);
	return code;
}

void sb_process_free(sb_process *p)
{
	if (!p || session_check(p->session, "process", NULL) < 0)
		return; /* in a forked child: the guest is its parent's */
	sb_process_close(p, NULL, NULL);
	process_unref(p);
}

/* ---- what it is ------------------------------------------------------------------------------------------------ */

const char *sb_process_id(const sb_process *p)
{
	return p->id;
}

int64_t sb_process_pid(const sb_process *p)
{
	return p->pid;
}

uint64_t sb_process_caps(const sb_process *p)
{
	return SB_CAP_EVENTS | (p->tty ? SB_CAP_TTY : 0) |
	       (session_table(p->session)->caps & (SB_CAP_SIGNAL | SB_CAP_SPLIT_STREAMS));
}

sb_output *sb_process_output(sb_process *p)
{
	return &p->output;
}

void sb_process_usage(const sb_process *process, sb_usage *usage)
{
	sb_process *p = (sb_process *)process;
	sb_usage now;

	if (session_check(p->session, "process", NULL) < 0)
		return;
	pthread_mutex_lock(&p->session->lock);
	now = p->usage;
	if (!p->ended)
		now.wall_us = (clock_now_ns() - p->start_ns) / 1000;
	pthread_mutex_unlock(&p->session->lock);
	record_write(usage, &now, sizeof now, "sb_usage", NULL);
}
