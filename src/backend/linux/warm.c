/* SPDX-License-Identifier: MIT */
/*
 * warm.c - workers: started, taken over, closed.
 *
 * Starting one waits for nothing: plan, driver and command are sent one behind the other, as for a cold
 * run, and the rest goes on in the processes that came of it.  The lock is held to count and to link
 * only.  Taking one over is a record that pid 1 passes on behind the files (LP_RELAY), and one byte
 * of the driver's in return: without it nothing of the run has been seen by anybody.
 */
#include "warm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define START_MS 1000u /* for a free uid */

/* ---- Closing ------------------------------------------------------------------------------------- */

/* Of a box that goes: what belongs to the worker alone. */
static void worker_free(warm_worker *w)
{
	if (w->guest)
		launched_release(w->guest);
	fd_close(&w->io.in);
	fd_close(&w->io.out);
	fd_close(&w->io.err);
	fd_close(&w->io.exited);
	fd_close(&w->wire);
	free(w);
}

void warm_close(warm_worker *list)
{
	while (list) {
		warm_worker *w = list;
		warm_kind *kind = w->kind;
		warm_stock *stock = kind->stock;
		sb_box *box = w->box;

		list = w->next;
		worker_free(w);
		box->warm = NULL;
		launched_box_destroy(box);
		pthread_mutex_lock(&stock->lock);
		warm_kind_unref(kind);
		pthread_mutex_unlock(&stock->lock);
	}
}

/* ---- Starting ------------------------------------------------------------------------------------ */

static warm_worker *worker_new(sb_box *box, warm_kind *kind)
{
	warm_worker *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	*w = (warm_worker){ .box = box, .kind = kind, .wire = -1, .since_ns = clock_now_ns(),
		.io = { .size = sizeof w->io, .in = -1, .out = -1, .err = -1, .exited = -1,
			.control = -1 } };
	box->warm = w;
	return w;
}

/* A plan of its own: it gets a uid and a name. */
static int start_box(const warm_kind *kind, sb_box *box)
{
	lh_plan *plan = lh_plan_new();
	int rc;

	if (!plan)
		return SB_ERR_NO_MEMORY;
	*plan = *kind->plan;
	rc = linux_launch(kind->state, NULL, &kind->uids, clock_deadline_ns(clock_now_ns(), START_MS), plan, box,
			  NULL);
	lh_plan_free(plan);
	return rc;
}

static int start_driver(const warm_kind *kind, warm_worker *w)
{
	const lh_file file = { .path = kind->code, .data = kind->driver, .len = strlen(kind->driver),
		.mode = 0644 };
	const sb_guest_request request = { .size = sizeof request, .argv = kind->argv, .env = kind->env,
		.cwd = kind->cwd, .limits = &kind->limits, .flags = SB_GUEST_INPUT | SB_GUEST_LAST };
	lh_spawn spawn = { .code = -1, .flags = LP_S_CONTROL };
	int pair[2], rc = lh_put(w->box->launch, &file, 1, 0, NULL);

	if (!rc)
		rc = fd_pair(SOCK_SEQPACKET, pair);
	if (rc)
		return rc;
	w->wire = pair[0];
	spawn.control = pair[1];
	rc = fd_nonblock(w->wire);
	if (!rc)
		rc = launched_spawn(w->box, &request, &spawn, NULL, &w->guest, &w->io, NULL);
	fd_close(&pair[1]);
	if (!rc && send(w->wire, kind->names.data, kind->names.len, MSG_NOSIGNAL) < 0)
		rc = -errno;
	return rc;
}

/* NULL: it cannot be had now; the next run asks again. */
static warm_worker *worker_start(warm_kind *kind)
{
	sb_box *box = launched_box_new(&kind->limits);
	warm_worker *w = box ? worker_new(box, kind) : NULL;

	if (w && !start_box(kind, box) && !start_driver(kind, w))
		return w;
	if (w)
		worker_free(w);
	if (box)
		box->warm = NULL;
	launched_box_destroy(box);
	return NULL;
}

static unsigned wanted(const warm_kind *kind)
{
	unsigned count = kind->in_use + 1;

	if (count < WARM_LEAST)
		return WARM_LEAST;
	return count > WARM_MOST ? WARM_MOST : count;
}

/* Is this kind still one that is kept? */
static bool kept(const warm_kind *kind)
{
	size_t i;

	for (i = 0; i < WARM_KINDS; i++)
		if (kind->stock->kinds[i] == kind)
			return true;
	return false;
}

/* The newest again; where there are enough it comes back, to be closed. */
static warm_worker *push(warm_kind *kind, warm_worker *w)
{
	pthread_mutex_lock(&kind->stock->lock);
	if (kept(kind) && kind->waiting < WARM_MOST) {
		w->next = kind->workers;
		kind->workers = w;
		kind->waiting++;
		w = NULL;
	}
	pthread_mutex_unlock(&kind->stock->lock);
	return w;
}

/* A kind that lacks workers, with a reference, and one of them counted as starting.  The lock is held. */
static warm_kind *find_lacking(warm_stock *stock)
{
	size_t i;

	for (i = 0; i < WARM_KINDS; i++) {
		warm_kind *kind = stock->kinds[i];

		if (!kind || kind->failed || kind->waiting + kind->starting >= wanted(kind))
			continue;
		kind->starting++;
		kind->refs++;
		return kind;
	}
	return NULL;
}

static void start_one(warm_kind *kind)
{
	warm_stock *stock = kind->stock;
	warm_worker *w = worker_start(kind);

	pthread_mutex_lock(&stock->lock);
	kind->starting--;
	kind->failed = !w; /* until somebody looks again */
	kind->refs += w != NULL;
	pthread_mutex_unlock(&stock->lock);
	warm_close(w ? push(kind, w) : NULL);
	pthread_mutex_lock(&stock->lock);
	warm_kind_unref(kind);
	pthread_mutex_unlock(&stock->lock);
}

static void *filler(void *user)
{
	warm_stock *stock = user;

	pthread_mutex_lock(&stock->lock);
	while (!stock->stop) {
		warm_kind *kind = find_lacking(stock);

		if (!kind && !stock->look)
			pthread_cond_wait(&stock->wanted, &stock->lock);
		stock->look = false;
		if (!kind)
			continue;
		pthread_mutex_unlock(&stock->lock);
		start_one(kind);
		pthread_mutex_lock(&stock->lock);
	}
	pthread_mutex_unlock(&stock->lock);
	return NULL;
}

/* The lock is held.  Signals are for the application's own threads; without a thread all runs are cold. */
static void ask_filler(warm_stock *stock)
{
	sigset_t all, old;
	size_t i;

	for (i = 0; i < WARM_KINDS; i++)
		if (stock->kinds[i])
			stock->kinds[i]->failed = false;
	stock->look = true;
	if (!stock->started && !stock->stop) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		stock->started = !pthread_create(&stock->thread, NULL, filler, stock);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_cond_signal(&stock->wanted);
}

void warm_refill(sb_box *box)
{
	const warm_worker *own = box->warm;

	if (!own)
		return;
	pthread_mutex_lock(&own->kind->stock->lock);
	if (!own->kind->waiting)
		ask_filler(own->kind->stock);
	pthread_mutex_unlock(&own->kind->stock->lock);
}

void warm_leave(sb_box *box)
{
	warm_worker *w = box ? box->warm : NULL;
	warm_stock *stock = w ? w->kind->stock : NULL;

	if (!w)
		return;
	box->warm = NULL;
	warm_kind_drop(w->kind);
	worker_free(w);
	pthread_mutex_lock(&stock->lock);
	ask_filler(stock);
	pthread_mutex_unlock(&stock->lock);
}

void warm_forget(sb_state *state)
{
	warm_stock *stock = state->warm;

	if (!stock)
		return;
	pthread_mutex_lock(&stock->lock);
	stock->stop = true;
	pthread_cond_signal(&stock->wanted);
	pthread_mutex_unlock(&stock->lock);
	if (stock->started)
		pthread_join(stock->thread, NULL);
	pthread_mutex_lock(&stock->lock);
	warm_worker *list = warm_kind_sort_out(stock, 0, true);
	pthread_mutex_unlock(&stock->lock);
	warm_close(list);
	pthread_cond_destroy(&stock->wanted);
	pthread_mutex_destroy(&stock->lock);
	free(stock);
	state->warm = NULL;
}

/* ---- Taking over --------------------------------------------------------------------------------- */

void warm_seat(sb_box *box, warm_kind *kind)
{
	/* without memory for it the box is cold, and no worker follows */
	if (kind && !worker_new(box, kind))
		warm_kind_drop(kind);
}

int warm_ended(sb_error *err)
{
	return error_set(err, SB_ERR_AGAIN, "warm", "the warm worker has ended before the run began");
}

static bool alive(warm_worker *w)
{
	launched_box_listen(w->box);
	return !w->box->failure.code && !w->box->lost && !w->box->gone && !w->guest->ended &&
	       !w->guest->refused;
}

/* The one that has waited for longest. */
static warm_worker *pop(warm_kind *kind)
{
	warm_worker **at, *w;

	pthread_mutex_lock(&kind->stock->lock);
	for (at = &kind->workers; *at && (*at)->next;)
		at = &(*at)->next;
	w = *at;
	*at = NULL;
	kind->waiting -= w != NULL;
	pthread_mutex_unlock(&kind->stock->lock);
	return w;
}

/* One byte of the driver's.  0; TIMEOUT or CANCELLED, and it may still come; AGAIN: it never will. */
static int hear(warm_worker *w, const sb_call *call, uint64_t ms, sb_error *err)
{
	sb_call own = *call;
	struct pollfd p[3] = { { .fd = w->wire, .events = POLLIN }, { .events = POLLIN },
		{ .fd = call->cancel_fd, .events = POLLIN } };
	uint64_t end = clock_deadline_ns(clock_now_ns(), ms);
	char byte;
	int rc = 0;

	own.deadline_ns = end < own.deadline_ns ? end : own.deadline_ns;
	p[1].fd = lh_socket(w->box->launch);
	while (!rc) {
		if (poll(p, 3, clock_poll_ms(clock_now_ns(), own.deadline_ns)) < 0 && errno != EINTR)
			break;
		if (p[0].revents)
			return recv(w->wire, &byte, 1, MSG_DONTWAIT) == 1 ? 0 : warm_ended(err);
		if (p[1].revents && !alive(w))
			break;
		rc = sb_call_check(&own, err);
	}
	return rc ? rc : warm_ended(err);
}

bool warm_take(warm_kind *kind, const sb_limits *limits, const sb_call *call, sb_box **box)
{
	warm_worker *w;
	int rc = SB_ERR_AGAIN;

	while ((w = pop(kind))) {
		if (alive(w))
			rc = w->ready ? 0 : hear(w, call, WARM_READY_MS, NULL);
		if (!rc || rc != SB_ERR_AGAIN)
			break;
		warm_close(w);
	}
	if (w && rc) {
		warm_close(push(kind, w));
		return false;
	}
	if (!w)
		return false;
	/* two references are held for it now: the worker's, and the one of warm_kind_of() */
	pthread_mutex_lock(&kind->stock->lock);
	warm_kind_unref(kind);
	pthread_mutex_unlock(&kind->stock->lock);
	w->ready = true;
	w->box->limits = *limits;
	*box = w->box;
	return true;
}

bool warm_waits(const sb_box *box)
{
	const warm_worker *w = box->warm;

	return w && w->guest;
}

/* What the driver gets: see packs/python_warm.py.  More than a record holds goes in a file. */
static int send_order(warm_worker *w, const sb_guest_request *request, size_t own, sb_error *err)
{
	int FD_AUTO more = -1;
	buf order;
	int rc = 0;
	size_t len;

	buf_init(&order, LP_MAX_ARGS);
	buf_add_char(&order, request->flags & SB_GUEST_INPUT ? 'i' : 'n');
	for (; request->argv[own]; own++)
		buf_add(&order, request->argv[own], strlen(request->argv[own]) + 1);
	if (order.failed == SB_ERR_NO_MEMORY)
		rc = error_no_memory(err, "spawn");
	else if (order.failed)
		rc = error_set(err, order.failed, "spawn", "arguments exceed %u bytes", LP_MAX_ARGS);
	len = order.len;
	if (!rc && len > LP_MAX_RELAY) {
		len = 1;
		more = fd_memfd("sandbox-args", order.data + 1, order.len - 1);
		if (more < 0)
			rc = error_errno(err, SB_ERR_IO, -more, "spawn", "cannot make a memory file");
	}
	if (!rc)
		rc = lh_relay(w->box->launch, w->wire, order.data, len, more, err);
	buf_release(&order);
	return rc == SB_ERR_CONNECTION_LOST ? warm_ended(err) : rc;
}

/* 0 = it has gone on.  AGAIN is said only once it never can: a run happens once, or is lost. */
static int answer(warm_worker *w, const sb_call *call, sb_error *err)
{
	int rc = hear(w, call, WARM_ANSWER_MS, err);
	char byte;

	if (rc != SB_ERR_AGAIN && rc != SB_ERR_TIMEOUT)
		return rc;
	lh_close(w->box->launch);
	w->box->launch = NULL;
	if (recv(w->wire, &byte, 1, MSG_DONTWAIT) == 1)
		return error_set(err, SB_ERR_CONNECTION_LOST, "warm",
				 "the warm worker ended while it took the run over");
	if (w->box->failure.code && !strcmp(w->box->failure.where, "put")) { /* would be so in any box */
		if (err)
			*err = w->box->failure;
		return w->box->failure.code;
	}
	return rc == SB_ERR_TIMEOUT && !sb_call_check(call, NULL) ? warm_ended(err) : rc;
}

int warm_go(sb_box *box, const sb_guest_request *request, const sb_call *call, sb_guest **guest,
	    sb_guest_io *io, sb_error *err)
{
	warm_worker *w = box->warm;
	size_t own = 0;
	int rc;

	if (!warm_kind_fits(w->kind, request, &own))
		return error_set(err, SB_ERR_INTERNAL, "warm", "another guest than create() was told of");
	rc = send_order(w, request, own, err);
	if (!rc)
		rc = answer(w, call, err);
	if (rc)
		return rc;
	fd_close(&w->wire);
	if (!(request->flags & SB_GUEST_INPUT))
		fd_close(&w->io.in);
	*guest = w->guest;
	*io = w->io;
	w->guest = NULL;
	w->io = (sb_guest_io){ .in = -1, .out = -1, .err = -1, .exited = -1, .control = -1 };
	return 0;
}
