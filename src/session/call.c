/* SPDX-License-Identifier: MIT */
/* call.c - how long a call may block, for ourselves and for backends. */
#include "session.h"

#include <errno.h>
#include <poll.h>

int call_init(sb_call *call, const sb_wait *wait, uint64_t default_ms, sb_error *err)
{
	sb_wait w = { .size = sizeof w };
	uint64_t now = clock_now_ns(), ms;

	*call = (sb_call){ .size = sizeof *call, .deadline_ns = SB_UNLIMITED, .cancel_fd = -1 };
	if (wait) {
		int code = record_read(&w, sizeof w, wait, "sb_wait", err);

		if (code < 0)
			return code;
	}
	if (w.timeout_ms > INT64_MAX && w.timeout_ms < SB_NO_WAIT)
		return error_set(err, SB_ERR_INVALID, "wait",
				 "timeout_ms is negative; use SB_UNLIMITED for no end");
	ms = w.timeout_ms ? w.timeout_ms : default_ms;
	call->deadline_ns = ms == SB_NO_WAIT ? now : clock_deadline_ns(now, ms);
	call->cancel_fd = cancel_fd(w.cancel);
	call->on_progress = w.on_progress;
	call->user = w.user;
	return 0;
}

static int call_cancelled(sb_error *err)
{
	return error_set(err, SB_ERR_CANCELLED, "cancel", "the caller cancelled the call");
}

static int call_over(sb_error *err)
{
	return error_set(err, SB_ERR_TIMEOUT, "deadline",
			 "the time given for the call is over; allow more with sb_wait.timeout_ms");
}

int sb_call_check(const sb_call *call, sb_error *err)
{
	if (call->cancel_fd >= 0) {
		struct pollfd fd = { .fd = call->cancel_fd, .events = POLLIN };

		if (poll(&fd, 1, 0) > 0)
			return call_cancelled(err);
	}
	if (call->deadline_ns != SB_UNLIMITED && clock_now_ns() >= call->deadline_ns)
		return call_over(err);
	return 0;
}

int sb_call_wait(const sb_call *call, int fd, short events, sb_error *err)
{
	struct pollfd fds[2] = { { .fd = fd, .events = events },
				 { .fd = call->cancel_fd, .events = POLLIN } };

	for (;;) {
		int ms = clock_poll_ms(clock_now_ns(), call->deadline_ns);
		int ready = poll(fds, 2, ms);

		if (ready < 0 && errno != EINTR)
			return error_errno(err, SB_ERR_IO, errno, "wait", "cannot wait");
		if (ready <= 0) {
			if (ms == 0)
				return call_over(err);
			continue;
		}
		if (fds[0].revents & POLLNVAL)
			return error_set(err, SB_ERR_INVALID, "wait", "descriptor %d is closed", fd);
		if (fds[0].revents)
			return 0;
		if (fds[1].revents)
			return call_cancelled(err);
	}
}

int sb_call_progress(const sb_call *call, const sb_progress *progress, sb_error *err)
{
	if (call->on_progress && call->on_progress(call->user, progress) != 0)
		return call_cancelled(err);
	return sb_call_check(call, err);
}
