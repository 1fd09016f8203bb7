/* SPDX-License-Identifier: MIT */
/*
 * warm.c - workers: started, taken over.
 *
 * Starting one waits for nothing: plan, driver and command are sent one behind the other, as for a cold
 * run, and the rest goes on in the processes that came of it.  Taking one over is a record that pid 1 passes
 * on behind the files (LP_RELAY), and one byte of the driver's in return: without it nothing of the run has
 * been seen by anybody.
 */
#include "warm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define START_MS 1000u /* for a free uid */

/* ---- Starting ------------------------------------------------------------------------------------ */

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

static int start_driver(const warm_kind *kind, stock_worker *w)
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
static stock_worker *worker_start(stock_kind *base)
{
	const warm_kind *kind = (const warm_kind *)base;
	sb_box *box = launched_box_new(&kind->limits);
	stock_worker *w = box ? stock_worker_new(box, base) : NULL;

	if (w && !start_box(kind, box) && !start_driver(kind, w))
		return w;
	if (w)
		stock_worker_free(w);
	launched_box_destroy(box);
	return NULL;
}

const stock_way warm_way = { .start = worker_start, .destroy = launched_box_destroy,
			     .free_kind = warm_kind_free };

/* ---- Taking over --------------------------------------------------------------------------------- */

/* One byte of the driver's.  0; TIMEOUT or CANCELLED, and it may still come; AGAIN: it never will. */
static int hear(stock_worker *w, const sb_call *call, uint64_t ms, sb_error *err)
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
			return recv(w->wire, &byte, 1, MSG_DONTWAIT) == 1 ? 0 : stock_ended(err);
		if (p[1].revents && !stock_alive(w))
			break;
		rc = sb_call_check(&own, err);
	}
	return rc ? rc : stock_ended(err);
}

bool warm_take(warm_kind *kind, const sb_limits *limits, const sb_call *call, sb_box **box)
{
	stock_worker *w;
	int rc = SB_ERR_AGAIN;

	while ((w = stock_pop(&kind->base, NULL, NULL))) {
		if (stock_alive(w))
			rc = w->ready ? 0 : hear(w, call, WARM_READY_MS, NULL);
		if (!rc || rc != SB_ERR_AGAIN)
			break;
		stock_close(w);
	}
	if (w && rc) {
		stock_push(&kind->base, w);
		return false;
	}
	if (!w)
		return false;
	stock_taken(&kind->base);
	w->ready = true;
	w->box->limits = *limits;
	*box = w->box;
	return true;
}

/* What the driver gets: see packs/python_warm.py.  More than a record holds goes in a file. */
static int send_order(stock_worker *w, const sb_guest_request *request, size_t own, sb_error *err)
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
	return rc == SB_ERR_CONNECTION_LOST ? stock_ended(err) : rc;
}

/* 0 = it has gone on.  AGAIN is said only once it never can: a run happens once, or is lost. */
static int answer(stock_worker *w, const sb_call *call, sb_error *err)
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
	return rc == SB_ERR_TIMEOUT && !sb_call_check(call, NULL) ? stock_ended(err) : rc;
}

int warm_go(sb_box *box, const sb_guest_request *request, const sb_call *call, sb_guest **guest,
	    sb_guest_io *io, sb_error *err)
{
	stock_worker *w = box->warm;
	size_t own = 0;
	int rc;

	if (!warm_kind_fits((const warm_kind *)w->kind, request, &own))
		return error_set(err, SB_ERR_INTERNAL, "warm", "another guest than create() was told of");
	rc = send_order(w, request, own, err);
	if (!rc)
		rc = answer(w, call, err);
	if (rc)
		return rc;
	stock_give(w, request, guest, io);
	return 0;
}
