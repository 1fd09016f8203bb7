/* SPDX-License-Identifier: MIT */
/*
 * life.c - the I/O thread's part of a process: output into its log, input out of its feed, its
 * clocks, its end.
 *
 *   running -> ended: `exited` turned readable, and the backend said how (its turn permitting)
 *   ended -> drained: both streams are at their end, or DRAIN_MS are over: a straggler may hold one
 *   drained -> over: the backend has released the guest
 *
 * Whoever wants it to end says so under the lock (process_end) and posts it; the signals are sent
 * from here, so that no caller waits for a backend to be told.
 */
#include "live.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { DRAIN_MS = 200, KILL_MS = 5000, BACKEND_MS = 10000, MOST_PIECES = 64 };

static uint64_t after_ms(uint64_t ms)
{
	return clock_deadline_ns(clock_now_ns(), ms);
}

static void lock(sb_process *p)
{
	pthread_mutex_lock(&p->session->lock);
}

static void unlock(sb_process *p)
{
	pthread_mutex_unlock(&p->session->lock);
}

/* ---- the end that is wanted: the lock is held --------------------------------------------------- */

static void kill_now(sb_process *p)
{
	if (p->killed)
		return;
	p->killed = true;
	p->want_kill = true;
	p->kill_at_ns = SB_UNLIMITED;
	p->give_up_ns = after_ms(KILL_MS);
}

void process_end(sb_process *p, int why, uint64_t grace_ms)
{
	if (p->ended)
		return;
	if (p->why == LIFE_RUNS)
		p->why = why;
	if (!p->killed && !grace_ms) {
		kill_now(p);
	} else if (!p->killed && p->kill_at_ns == SB_UNLIMITED) {
		p->kill_at_ns = after_ms(grace_ms);
		p->want_term = true;
	}
	io_post(p);
}

/* ---- output ---------------------------------------------------------------------------------------- */

static void close_stream(sb_process *p, int which)
{
	if (p->tty)
		p->fd[IO_IN] = -1; /* the same */
	io_drop(p, which);
}

static void close_input(sb_process *p)
{
	if (!p->tty)
		io_drop(p, IO_IN);
}

static bool over_cap(const sb_process *p)
{
	const sb_limits *l = &p->session->e.limits;

	if (l->out_mode != SB_OUT_STOP)
		return false;
	return p->bytes[0] + p->bytes[1] > l->out_total_bytes || p->bytes[0] > l->out_stream_bytes ||
	       p->bytes[1] > l->out_stream_bytes;
}

/* One piece.  True: there may be more at once. */
static bool take(sb_process *p, int which, char *piece)
{
	ssize_t n;

	if (p->fd[which] < 0)
		return false;
	n = read(p->fd[which], piece, LIFE_PIECE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	lock(p);
	if (n <= 0) {
		close_stream(p, which); /* the end; EIO is that of a terminal */
	} else {
		output_add(p, which, piece, (size_t)n);
		if (over_cap(p))
			process_end(p, LIFE_OUTPUT, 0);
	}
	unlock(p);
	return n > 0;
}

/* ---- input ------------------------------------------------------------------------------------------ */

/* The lock is held. */
static void watch_feed(sb_process *p)
{
	if (!p->fed)
		return;
	io_watch_input(p, feed_wants_room(&p->feed));
	io_watch_source(p, feed_wants_source(&p->feed));
	if (p->feed.done) {
		close_input(p);
		io_drop(p, IO_SOURCE);
	}
}

static void input_gone(sb_process *p)
{
	lock(p);
	if (p->fed)
		p->feed.done = true;
	close_input(p);
	watch_feed(p);
	output_tell(p);
	unlock(p);
}

/* A fed input is this thread's alone, so the callback is called without a lock. */
static void give(sb_process *p, int (*step)(feed *f, int *in))
{
	int in = p->fd[IO_IN];
	int said = in >= 0 && !p->feed.done ? step(&p->feed, &in) : FEED_FINE;

	lock(p);
	if (said == FEED_STOP)
		process_end(p, LIFE_TERMINATED, 0);
	watch_feed(p);
	if (p->source_plain && feed_wants_source(&p->feed))
		io_post(p);
	unlock(p);
}

static void input_ready(sb_process *p, uint32_t events)
{
	if (!p->tty && events & (EPOLLERR | EPOLLHUP)) {
		input_gone(p);
		return;
	}
	if (!(events & EPOLLOUT))
		return;
	if (p->fed) {
		give(p, feed_give);
		return;
	}
	lock(p);
	io_watch_input(p, false);
	topic_wake(&p->changed);
	unlock(p);
}

/* ---- the backend's part ----------------------------------------------------------------------------- */

static sb_call backend_call(void)
{
	return (sb_call){ .size = sizeof(sb_call), .cancel_fd = -1, .deadline_ns = after_ms(BACKEND_MS) };
}

/* The lock is held, and given back while the backend is asked; false: it is not our turn. */
static bool send(sb_process *p, int signal)
{
	sb_session *s = p->session;
	const sb_call call = backend_call();

	if (!turn_try(s))
		return false;
	unlock(p);
	session_table(s)->signal(p->guest, signal, &call, NULL);
	lock(p);
	turn_give(s);
	return true;
}

static void send_wanted(sb_process *p)
{
	if (p->ended || !p->guest) {
		p->want_term = p->want_kill = false;
		return;
	}
	if (p->want_kill) {
		p->want_term = false;
		if (send(p, SB_SIGNAL_KILL))
			p->want_kill = false;
		return;
	}
	/* a stopped one would not notice */
	if (p->want_term && send(p, SB_SIGNAL_TERMINATE)) {
		p->want_term = false;
		if (session_table(p->session)->caps & SB_CAP_SIGNAL)
			send(p, SB_SIGNAL_CONTINUE);
	}
}

/* What the guest's own end and our reason come to. */
static void fill_exit(sb_process *p, const sb_guest_exit *end)
{
	static const struct { int outcome, error; } ours[] = {
		[LIFE_TIME] = { SB_OUTCOME_TIMED_OUT, SB_ERR_TIMEOUT },
		[LIFE_OUTPUT] = { SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_OUTPUT_LIMIT },
		[LIFE_TERMINATED] = { SB_OUTCOME_TERMINATED, 0 },
		[LIFE_STUCK] = { SB_OUTCOME_LOST, SB_ERR_CONNECTION_LOST },
	};
	sb_exit *out = &p->exit;

	*out = (sb_exit){ .size = sizeof *out, .code = -1 };
	if (over_cap(p))
		p->why = LIFE_OUTPUT;
	if (p->why != LIFE_RUNS) {
		out->outcome = ours[p->why].outcome;
		out->error = ours[p->why].error;
		return;
	}
	out->outcome = end->outcome;
	out->error = ending_error(end);
	if (end->outcome == SB_OUTCOME_EXITED)
		out->code = end->code;
	if (end->outcome == SB_OUTCOME_SIGNALED)
		out->signal_number = end->signal_number;
}

static void note_end(const sb_process *p)
{
	const audit_note n = { .what = SB_AUDIT_EXIT, .action = SB_ALLOW, .wall = SB_WALL_COUNT,
			       .session = p->session->e.id, .process = p->id, .subject = p->argv[0],
			       .text = sb_outcome_name(p->exit.outcome), .code = p->exit.error };

	audit_write(p->session->sandbox, &n, NULL);
}

/* A signal of ours that ended it is a termination. */
static void ended_by_us(sb_process *p, const sb_guest_exit *end)
{
	if (p->why == LIFE_RUNS && p->signaled && end->outcome == SB_OUTCOME_SIGNALED &&
	    end->signal_number == p->signaled)
		p->why = LIFE_TERMINATED;
}

/* The lock is held. */
static void reap(sb_process *p)
{
	sb_session *s = p->session;
	sb_guest_exit end = { .size = sizeof end };
	sb_usage usage = { .size = sizeof usage };
	uint64_t now = clock_now_ns();

	if (!turn_try(s))
		return;
	end.usage = &usage;
	unlock(p);
	int code = session_table(s)->reap(p->guest, &end, NULL);

	lock(p);
	turn_give(s);
	if (code < 0)
		end = (sb_guest_exit){ .outcome = SB_OUTCOME_LOST, .error = code, .code = -1 };
	if (end.outcome == SB_OUTCOME_LOST)
		s->killed = true;
	usage.wall_us = (now - p->start_ns) / 1000;
	p->usage = usage;
	ended_by_us(p, &end);
	fill_exit(p, &end);
	p->ended = true;
	p->drain_at_ns = after_ms(DRAIN_MS);
	close_input(p);
	io_drop(p, IO_EXITED);
	io_drop(p, IO_SOURCE);
	p->feed.done = true;
	output_tell(p);
	unlock(p);
	note_end(p);
	lock(p);
}

/* It does not end though it was killed: given up, and told as lost. */
static void give_up(sb_process *p)
{
	const sb_guest_exit end = { .outcome = SB_OUTCOME_LOST, .code = -1 };

	if (p->why == LIFE_RUNS)
		p->why = LIFE_STUCK;
	fill_exit(p, &end);
	p->ended = true;
	p->session->killed = true;
	p->drain_at_ns = clock_now_ns();
	close_input(p);
	io_drop(p, IO_EXITED);
	io_drop(p, IO_SOURCE);
	p->feed.done = true;
	output_tell(p);
}

/* What is there at once; what never ends is cut. */
static void take_all(sb_process *p, char *piece)
{
	for (int which = IO_OUT; which <= IO_ERR; which++)
		for (unsigned rounds = 0; rounds < MOST_PIECES && take(p, which, piece); rounds++)
			;
}

static void drain(sb_process *p, char *piece)
{
	bool late = clock_now_ns() >= p->drain_at_ns;

	unlock(p);
	take_all(p, piece);
	lock(p);
	if (late) {
		close_stream(p, IO_OUT);
		close_stream(p, IO_ERR);
	}
	if (p->fd[IO_OUT] >= 0 || p->fd[IO_ERR] >= 0)
		return;
	p->drained = true;
	output_tell(p);
}

static void release(sb_process *p)
{
	sb_session *s = p->session;

	if (!turn_try(s))
		return;
	sb_guest *guest = p->guest;

	p->guest = NULL;
	unlock(p);
	session_table(s)->release(guest);
	lock(p);
	p->over = true;
	s->running--;
	s->used_ns = clock_now_ns();
	turn_give(s);
	topic_wake(&p->changed);
}

/* ---- what the thread calls ------------------------------------------------------------------------------ */

static void check_clocks(sb_process *p, uint64_t now)
{
	if (p->ended)
		return;
	if (p->why == LIFE_RUNS && now >= p->deadline_ns) {
		process_end(p, LIFE_TIME, p->session->e.limits.grace_ms);
		p->deadline_ns = SB_UNLIMITED;
	}
	if (now >= p->kill_at_ns)
		kill_now(p);
}

uint64_t life_next_clock(sb_process *p)
{
	uint64_t next = SB_UNLIMITED;

	lock(p);
	if (!p->ended) {
		next = p->give_up_ns;
		if (p->why == LIFE_RUNS && p->deadline_ns < next)
			next = p->deadline_ns;
		if (p->kill_at_ns < next)
			next = p->kill_at_ns;
	} else if (!p->drained) {
		next = p->drain_at_ns;
	}
	unlock(p);
	return next;
}

void life_look(sb_process *p, char *piece)
{
	lock(p);
	if (!p->over) {
		check_clocks(p, clock_now_ns());
		send_wanted(p);
		if (!p->ended && p->exit_seen)
			reap(p);
		if (!p->ended && clock_now_ns() >= p->give_up_ns)
			give_up(p);
		if (p->ended && !p->drained)
			drain(p, piece);
		if (p->drained && p->guest)
			release(p);
		if (p->want_close && !p->feed.done)
			feed_end(&p->feed, &p->fd[IO_IN]);
		if (!p->ended)
			watch_feed(p);
	}
	bool read_source = !p->ended && p->fed && p->source_plain && feed_wants_source(&p->feed);

	unlock(p);
	if (read_source)
		give(p, feed_take);
}

void life_ready(sb_process *p, int which, uint32_t events, char *piece)
{
	switch (which) {
	case IO_OUT:
		if (events & EPOLLOUT)
			input_ready(p, EPOLLOUT);
		if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			take(p, which, piece);
		break;
	case IO_ERR:
		take(p, which, piece);
		break;
	case IO_IN:
		input_ready(p, events);
		return;
	case IO_SOURCE:
		give(p, feed_take);
		return;
	default:
		if (p->exit_seen)
			break;
		lock(p);
		p->exit_seen = true;
		io_quiet(p, IO_EXITED);
		unlock(p);
		take_all(p, piece); /* a cap that its last words passed is part of how it ended */
		break;
	}
	if (p->exit_seen)
		life_look(p, piece);
}
