/* SPDX-License-Identifier: MIT */
/*
 * pump.c - one loop over the descriptors of a running guest: its input, two outputs, its end, a
 * cancel, and two clocks.
 *
 *   running -> (deadline, cancel, cap, callback) TERM and grace, or KILL at once -> ended -> drain
 *
 * After the end what is still in the pipes is read; a straggler that holds one open is waited for
 * DRAIN_MS at most.
 *
 * Of a run that is likely to be over in a moment, and whose output nobody waits for, the end alone is waited for at
 * first (patience): each look at a pipe wakes us up on a processor that the guest, or who reaps it, may need.
 */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PIECE = 65536, DRAIN_MS = 200, KILL_MS = 5000, PATIENT_MS = 1 };

/* ---- ends --------------------------------------------------------------------------------- */

static uint64_t after_ms(uint64_t ms)
{
	return clock_deadline_ns(clock_now_ns(), ms);
}

static void kill_now(pump *p)
{
	if (p->killed)
		return;
	p->killed = true;
	p->kill_at_ns = SB_UNLIMITED;
	p->give_up_ns = after_ms(KILL_MS);
	p->signal(p->user, SB_SIGNAL_KILL);
}

/* The first reason stays, but that of the output wins.  Whoever has ended keeps its own end. */
static void end_guest(pump *p, int why, uint64_t grace_ms)
{
	if (p->ended)
		return;
	if (p->why == PUMP_EXITED || why == PUMP_OUTPUT)
		p->why = why;
	if (p->killed)
		return;
	if (!grace_ms) {
		kill_now(p);
		return;
	}
	if (p->kill_at_ns != SB_UNLIMITED)
		return;
	p->kill_at_ns = after_ms(grace_ms);
	p->signal(p->user, SB_SIGNAL_TERMINATE);
}

static void check_clocks(pump *p, uint64_t now)
{
	if (p->why == PUMP_EXITED && now >= p->deadline_ns)
		end_guest(p, PUMP_TIME, p->grace_ms);
	if (now >= p->call->deadline_ns)
		end_guest(p, PUMP_WAIT_OVER, 0);
	if (now >= p->kill_at_ns)
		kill_now(p);
}

static uint64_t next_clock(const pump *p)
{
	uint64_t next = p->give_up_ns;

	if (p->why == PUMP_EXITED && p->deadline_ns < next)
		next = p->deadline_ns;
	if (!p->killed && p->call->deadline_ns < next)
		next = p->call->deadline_ns;
	return p->kill_at_ns < next ? p->kill_at_ns : next;
}

/* A callback of the caller's said stop; one that noticed the deadline first says so, too. */
static void stopped(pump *p)
{
	uint64_t now = clock_now_ns();

	if (now >= p->deadline_ns)
		end_guest(p, PUMP_TIME, 0);
	else
		end_guest(p, now >= p->call->deadline_ns ? PUMP_WAIT_OVER : PUMP_CALLBACK, 0);
}

/* ---- output ------------------------------------------------------------------------------- */

static void show(pump *p, int stream, bool at_end)
{
	const char *data;
	size_t len = capture_next(&p->out, stream, &data, at_end);

	if (!len || p->deaf || !p->command->on_output)
		return;
	if (p->command->on_output(p->command->user, SB_STDOUT + stream, data, len) != 0) {
		p->deaf = true;
		stopped(p);
	}
}

/* Past the cap, or in the tail: through a buffer of its own, not on the stack of the caller's thread. */
static ssize_t take_rest(pump *p, int stream, int fd, size_t want)
{
	char little[1024], *at = little;
	ssize_t n;

	if (!p->scratch)
		p->scratch = malloc(PIECE);
	if (p->scratch)
		at = p->scratch;
	else if (want > sizeof little)
		want = sizeof little;
	n = read(fd, at, want);
	if (n > 0)
		capture_add(&p->out, stream, at, (size_t)n);
	return n;
}

static void take(pump *p, int stream, int32_t *fd)
{
	char *at;
	size_t want = p->most && p->most < PIECE ? p->most : PIECE;
	size_t room = capture_room(&p->out, stream, want, &at);
	ssize_t n = room ? read(*fd, at, room) : take_rest(p, stream, *fd, want);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		p->lost |= n < 0 && errno != EIO; /* the end; EIO is that of a terminal */
		fd_close(fd);
		return;
	}
	if (room)
		capture_commit(&p->out, stream, (size_t)n);
	show(p, stream, false);
	if (p->out.over)
		end_guest(p, PUMP_OUTPUT, 0);
	if (p->out.no_memory)
		end_guest(p, PUMP_NO_MEMORY, 0);
}

/* ---- the loop ----------------------------------------------------------------------------- */

enum { F_EXITED, F_OUT, F_ERR, F_IN, F_SOURCE, F_CANCEL, F_STOP, F_CONTROL, F_WAKE, F_COUNT };

static void watch(const pump *p, struct pollfd fds[F_COUNT])
{
	bool source = feed_wants_source(&p->input);
	bool ending = p->killed;

	fds[F_EXITED] = (struct pollfd){ .fd = p->io.exited, .events = POLLIN };
	fds[F_OUT] = (struct pollfd){ .fd = p->patience ? -1 : p->io.out, .events = POLLIN };
	fds[F_ERR] = (struct pollfd){ .fd = p->patience ? -1 : p->io.err, .events = POLLIN };
	/* with nothing to give it is watched for the guest's closing it */
	fds[F_IN] = (struct pollfd){ .fd = p->input.done ? -1 : p->io.in,
				     .events = feed_wants_room(&p->input) ? POLLOUT : 0 };
	fds[F_SOURCE] = (struct pollfd){ .fd = source ? p->input.source : -1, .events = POLLIN };
	fds[F_CANCEL] = (struct pollfd){ .fd = ending ? -1 : p->call->cancel_fd, .events = POLLIN };
	fds[F_STOP] = (struct pollfd){ .fd = ending ? -1 : p->stop_fd, .events = POLLIN };
	bool control = p->on_control && !ending;

	fds[F_CONTROL] = (struct pollfd){ .fd = control ? p->io.control : -1,
					  .events = POLLIN | (p->control_full ? POLLOUT : 0) };
	fds[F_WAKE] = (struct pollfd){ .fd = control ? p->wake_fd : -1, .events = POLLIN };
}

static void serve_input(pump *p, const struct pollfd fds[F_COUNT])
{
	int said = FEED_FINE;

	if (p->input.done)
		return;
	if (fds[F_IN].revents & (POLLERR | POLLNVAL))
		feed_end(&p->input, &p->io.in);
	else if (fds[F_IN].revents & POLLOUT)
		said = feed_give(&p->input, &p->io.in);
	else if (fds[F_SOURCE].revents)
		said = feed_take(&p->input, &p->io.in);
	if (said == FEED_STOP)
		stopped(p);
}

/* What the pipes still hold; a descendant that keeps one open is not waited for. */
static void drain(pump *p)
{
	uint64_t end = after_ms(DRAIN_MS);

	for (;;) {
		struct pollfd fds[2] = { { .fd = p->io.out, .events = POLLIN },
					 { .fd = p->io.err, .events = POLLIN } };

		if (p->io.out < 0 && p->io.err < 0)
			return;
		/* past the bound only what is there at once counts, once round */
		int ms = clock_poll_ms(clock_now_ns(), end);
		int n = poll(fds, 2, ms);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (fds[0].revents)
			take(p, 0, &p->io.out);
		if (fds[1].revents)
			take(p, 1, &p->io.err);
		if (ms == 0)
			return;
	}
}

static bool says(int fd)
{
	int left = 0;

	return fd >= 0 && ioctl(fd, FIONREAD, &left) == 0 && left > 0;
}

static int wait_ms(const pump *p)
{
	int ms = clock_poll_ms(clock_now_ns(), next_clock(p));

	return p->patience && (ms < 0 || ms > PATIENT_MS) ? PATIENT_MS : ms;
}

static bool step(pump *p)
{
	struct pollfd fds[F_COUNT];

	watch(p, fds);
	int n = poll(fds, F_COUNT, wait_ms(p));

	/* what is said goes on at once, or it would stand still at a full pipe */
	if (n != 0 || says(p->io.out) || says(p->io.err))
		p->patience = 0;
	p->patience -= p->patience > 0;
	if (n < 0 && errno != EINTR)
		end_guest(p, PUMP_NO_MEMORY, 0);
	if (n < 0)
		n = 0;
	bool ended = n > 0 && fds[F_EXITED].revents;

	if (!ended)
		check_clocks(p, clock_now_ns());
	if (n > 0 && fds[F_OUT].revents)
		take(p, 0, &p->io.out);
	if (n > 0 && fds[F_ERR].revents)
		take(p, 1, &p->io.err);
	if (ended)
		return false;
	if (n > 0 && (fds[F_CANCEL].revents || fds[F_STOP].revents))
		end_guest(p, PUMP_CANCELLED, 0);
	if (n > 0)
		serve_input(p, fds);
	if (n > 0 && (fds[F_CONTROL].revents || fds[F_WAKE].revents) && !p->killed &&
	    p->on_control(p->user)) {
		p->why = PUMP_DONE;
		return false;
	}
	if (p->killed && clock_now_ns() >= p->give_up_ns) {
		p->why = p->why == PUMP_EXITED ? PUMP_STUCK : p->why;
		return false;
	}
	return true;
}

static void loop(pump *p)
{
	p->kill_at_ns = p->give_up_ns = SB_UNLIMITED;
	if (feed_begin(&p->input, p->command, &p->io.in) < 0)
		end_guest(p, PUMP_NO_MEMORY, 0);
	while (step(p))
		;
}

static void end(pump *p)
{
	p->ended = true;
	fd_close(&p->io.in);
	drain(p);
	for (int i = 0; i < 2; i++)
		show(p, i, true);
	if (p->out.over)
		p->why = PUMP_OUTPUT;
	fd_close(&p->io.out);
	fd_close(&p->io.err);
}

void pump_run(pump *p)
{
	loop(p);
	end(p);
}

/* What a stream holds now; what comes meanwhile is the next one's. */
static void take_present(pump *p, int stream, int32_t *fd)
{
	int left = 0;

	if (*fd < 0 || ioctl(*fd, FIONREAD, &left) < 0)
		return;
	while (left > 0 && *fd >= 0 && p->why == PUMP_EXITED) {
		uint64_t before = p->out.stream[stream].len + p->out.stream[stream].dropped;

		p->most = (size_t)left;
		take(p, stream, fd);
		p->most = 0;
		uint64_t now = p->out.stream[stream].len + p->out.stream[stream].dropped;

		if (now <= before)
			break;
		left -= (int)(now - before);
	}
	show(p, stream, true);
}

void pump_evaluate(pump *p)
{
	loop(p);
	if (p->why != PUMP_DONE) {
		end(p);
		return;
	}
	p->why = PUMP_EXITED; /* its last words may pass a cap: then it ends after all */
	take_present(p, 0, &p->io.out);
	take_present(p, 1, &p->io.err);
	if (p->why == PUMP_EXITED) {
		p->why = PUMP_DONE;
		return;
	}
	while (step(p))
		;
	end(p);
}

void pump_stop(pump *p, int why)
{
	end_guest(p, why, 0);
}

void pump_release(pump *p)
{
	fd_close(&p->io.in);
	fd_close(&p->io.out);
	fd_close(&p->io.err);
	fd_close(&p->io.exited);
	fd_close(&p->io.control);
	free(p->scratch);
	p->scratch = NULL;
	capture_release(&p->out);
	feed_release(&p->input);
}
