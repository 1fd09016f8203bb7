/* SPDX-License-Identifier: MIT */
/*
 * io.c - the one thread of a sandbox object that serves its open sessions.
 *
 * It waits in epoll for outputs, ends, inputs that have room and sources that have bytes; for the
 * next clock of a process that has one; and for a word from elsewhere (posted, stopping).  What is
 * to be done with a process is life.c's.  A process that is over is let go only behind a whole round,
 * so that no event of that round can name memory that is gone.
 *
 * The thread has every signal blocked, and is joined when the sandbox closes.
 */
#include "live.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS = 64, STACK = 512 * 1024 };

/* ---- words from elsewhere --------------------------------------------------------------------- */

static void wake(io_thread *io)
{
	uint64_t one = 1;

	if (write(io->wake, &one, sizeof one) < 0)
		return; /* full: it is readable already */
}

void io_post(sb_process *p)
{
	io_thread *io = p->session->sandbox->io;

	pthread_mutex_lock(&io->lock);
	bool first = !p->posted;

	if (first) {
		process_ref(p);
		p->posted = true;
		p->next_posted = io->posted;
		io->posted = p;
	}
	pthread_mutex_unlock(&io->lock);
	if (first)
		wake(io);
}

/* ---- what epoll watches ------------------------------------------------------------------------ */

static int watch_fd(io_thread *io, sb_process *p, int which, uint32_t events, sb_error *err)
{
	struct epoll_event event = { .events = events, .data.ptr = &p->source[which] };

	p->source[which] = (io_source){ .process = p, .which = which };
	if (p->fd[which] < 0 || epoll_ctl(io->epoll, EPOLL_CTL_ADD, p->fd[which], &event) == 0)
		return 0;
	return error_errno(err, SB_ERR_IO, errno, "io", "cannot watch a descriptor");
}

static void unwatch(io_thread *io, sb_process *p, int which)
{
	if (p->fd[which] >= 0)
		epoll_ctl(io->epoll, EPOLL_CTL_DEL, p->fd[which], NULL);
}

/* A file cannot be watched, and need not: life_look() reads it whenever there is room. */
static int try_source(io_thread *io, sb_process *p, sb_error *err)
{
	sb_error why = { 0 };
	int code = watch_fd(io, p, IO_SOURCE, EPOLLIN, &why);

	if (code >= 0) {
		unwatch(io, p, IO_SOURCE); /* watched while it is wanted: its end would be told for ever */
		return 0;
	}
	p->source_plain = why.os_errno == EPERM;
	if (!p->source_plain && err)
		*err = why;
	return p->source_plain ? 0 : code;
}

/* Its part from here on; a reference of its own, given back when the process is over. */
int io_adopt(sb_process *p, sb_error *err)
{
	io_thread *io = p->session->sandbox->io;
	int code = watch_fd(io, p, IO_OUT, EPOLLIN, err);

	if (code >= 0)
		code = watch_fd(io, p, IO_ERR, EPOLLIN, err);
	if (code >= 0)
		code = watch_fd(io, p, IO_EXITED, EPOLLIN, err);
	if (code >= 0 && !p->tty)
		code = watch_fd(io, p, IO_IN, 0, err);
	if (code >= 0 && p->fed)
		code = try_source(io, p, err);
	if (code >= 0)
		process_ref(p);
	return code;
}

static void modify(sb_process *p, int which, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = &p->source[which] };

	if (p->fd[which] >= 0)
		epoll_ctl(p->session->sandbox->io->epoll, EPOLL_CTL_MOD, p->fd[which], &event);
}

/* On a terminal the input is the output's descriptor. */
void io_watch_input(sb_process *p, bool room)
{
	if (p->input_armed == room)
		return;
	p->input_armed = room;
	if (p->tty)
		modify(p, IO_OUT, (p->held ? 0 : EPOLLIN) | (room ? EPOLLOUT : 0));
	else
		modify(p, IO_IN, room ? EPOLLOUT : 0);
}

void io_watch_source(sb_process *p, bool wanted)
{
	if (p->source_armed == wanted || p->source_plain)
		return;
	p->source_armed = wanted;
	if (wanted)
		watch_fd(p->session->sandbox->io, p, IO_SOURCE, EPOLLIN, NULL);
	else
		unwatch(p->session->sandbox->io, p, IO_SOURCE);
}

void io_hold(sb_process *p, bool hold)
{
	uint32_t events = hold ? 0 : EPOLLIN;

	if (p->held == hold || p->exit_seen)
		return;
	p->held = hold;
	modify(p, IO_OUT, events | (p->tty && p->input_armed ? EPOLLOUT : 0));
	modify(p, IO_ERR, events);
}

void io_quiet(sb_process *p, int which)
{
	unwatch(p->session->sandbox->io, p, which);
}

/* A close alone ends the watch only where nobody else has the file open: a child of a fork has all of ours, and
 * whoever lent us a source has that one.  What is left watched would name a process that is gone. */
void io_drop(sb_process *p, int which)
{
	if (p->session->sandbox->io)
		io_quiet(p, which);
	fd_close(&p->fd[which]);
}

/* ---- the thread ----------------------------------------------------------------------------------- */

static void untime(io_thread *io, sb_process *p)
{
	sb_process **at = &io->timed;

	if (!p->timed)
		return;
	while (*at != p)
		at = &(*at)->next_timed;
	*at = p->next_timed;
	p->timed = false;
}

/* After anything happened to it: on or off the list of clocks; or over. */
static void settle(io_thread *io, sb_process *p)
{
	bool clock = life_next_clock(p) != SB_UNLIMITED;

	if (clock && !p->timed) {
		p->next_timed = io->timed;
		io->timed = p;
		p->timed = true;
	} else if (!clock) {
		untime(io, p);
	}
	if (p->let_go || !p->over)
		return;
	p->let_go = true;
	untime(io, p);
	p->next_over = io->over;
	io->over = p;
}

/* The next that was posted; NULL = none. */
static sb_process *next_posted(io_thread *io)
{
	pthread_mutex_lock(&io->lock);
	sb_process *p = io->posted;

	if (p) {
		io->posted = p->next_posted;
		p->posted = false;
	}
	pthread_mutex_unlock(&io->lock);
	return p;
}

static bool is_stopping(io_thread *io)
{
	uint64_t count;

	if (read(io->wake, &count, sizeof count) < 0 && errno != EAGAIN && errno != EINTR)
		return true;
	pthread_mutex_lock(&io->lock);
	bool stopping = io->stopping;

	pthread_mutex_unlock(&io->lock);
	return stopping;
}

static void look_at_posted(io_thread *io)
{
	sb_process *p;

	while ((p = next_posted(io))) {
		life_look(p, io->piece);
		settle(io, p);
		process_unref(p);
	}
}

static void look_at_clocks(io_thread *io)
{
	uint64_t now = clock_now_ns();
	sb_process *next;

	for (sb_process *p = io->timed; p; p = next) {
		next = p->next_timed;
		if (life_next_clock(p) <= now) {
			life_look(p, io->piece);
			settle(io, p);
		}
	}
}

static int wait_ms(const io_thread *io)
{
	uint64_t next = SB_UNLIMITED;

	for (sb_process *p = io->timed; p; p = p->next_timed) {
		uint64_t clock = life_next_clock(p);

		next = clock < next ? clock : next;
	}
	return clock_poll_ms(clock_now_ns(), next);
}

static void let_go(io_thread *io)
{
	while (io->over) {
		sb_process *p = io->over;

		io->over = p->next_over;
		process_unref(p);
	}
}

static void *io_main(void *arg)
{
	io_thread *io = arg;
	struct epoll_event events[EVENTS];
	bool stopping = false;

	while (!stopping) {
		int n = epoll_wait(io->epoll, events, EVENTS, wait_ms(io));

		for (int i = 0; i < n; i++) {
			const io_source *from = events[i].data.ptr;

			if (!from) {
				stopping = is_stopping(io);
				continue;
			}
			life_ready(from->process, from->which, events[i].events, io->piece);
			settle(io, from->process);
		}
		look_at_posted(io);
		look_at_clocks(io);
		let_go(io);
	}
	return NULL;
}

/* ---- its own life ------------------------------------------------------------------------------------ */

static void io_release(io_thread *io)
{
	fd_close(&io->epoll);
	fd_close(&io->wake);
	pthread_mutex_destroy(&io->lock);
	free(io->piece);
	free(io);
}

/* With every signal blocked: they are the application's. */
static int start_thread(io_thread *io)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return rc;
	sigfillset(&all);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&io->thread, &attr, io_main, io);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

static int io_new(io_thread **out, sb_error *err)
{
	io_thread *io = calloc(1, sizeof *io);
	struct epoll_event event = { .events = EPOLLIN };
	int rc;

	if (!io)
		return error_no_memory(err, "io");
	pthread_mutex_init(&io->lock, NULL);
	io->epoll = epoll_create1(EPOLL_CLOEXEC);
	io->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	io->piece = malloc(LIFE_PIECE);
	rc = io->epoll < 0 || io->wake < 0 ? errno : io->piece ? 0 : ENOMEM;
	if (!rc && epoll_ctl(io->epoll, EPOLL_CTL_ADD, io->wake, &event) < 0)
		rc = errno;
	if (!rc)
		rc = start_thread(io);
	if (rc) {
		io_release(io);
		return error_errno(err, rc == ENOMEM ? SB_ERR_NO_MEMORY : SB_ERR_IO, rc, "io",
				   "cannot start the thread that serves sessions");
	}
	*out = io;
	return 0;
}

int io_start(sb_sandbox *sandbox, sb_error *err)
{
	int code = 0;

	pthread_mutex_lock(&sandbox->lock);
	if (!sandbox->io)
		code = io_new(&sandbox->io, err);
	pthread_mutex_unlock(&sandbox->lock);
	return code;
}

/* The thread asks for sandbox->io until it has ended. */
void io_stop(sb_sandbox *sandbox)
{
	io_thread *io;

	pthread_mutex_lock(&sandbox->lock);
	io = sandbox->io_ends ? NULL : sandbox->io;
	sandbox->io_ends = io || sandbox->io_ends;
	pthread_mutex_unlock(&sandbox->lock);
	if (!io)
		return;
	pthread_mutex_lock(&io->lock);
	io->stopping = true;
	pthread_mutex_unlock(&io->lock);
	wake(io);
	pthread_join(io->thread, NULL);
	look_at_posted(io);
	let_go(io);
	pthread_mutex_lock(&sandbox->lock);
	sandbox->io = NULL;
	sandbox->io_ends = false;
	pthread_mutex_unlock(&sandbox->lock);
	io_release(io);
}
