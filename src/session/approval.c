/* SPDX-License-Identifier: MIT */
/*
 * approval.c - one question, one answer, from whichever thread.
 *
 * The asker and the one who answers hold a reference each: an answer that comes after the asker has
 * given up finds its object still there, and is not heard.
 */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sb_approval {
	atomic_int refs;
	atomic_int answer;            /* -1 = none yet */
	int fd;                       /* eventfd: there is one */
};

static void approval_drop(sb_approval *a)
{
	if (atomic_fetch_sub(&a->refs, 1) != 1)
		return;
	close(a->fd);
	free(a);
}

void sb_approval_answer(sb_approval *approval, int action)
{
	int none = -1;
	uint64_t one = 1;

	if (!approval)
		return;
	if (atomic_compare_exchange_strong(&approval->answer, &none, action) &&
	    write(approval->fd, &one, sizeof one) < 0)
		none = 0; /* an eventfd at 1 takes another: this cannot be */
	approval_drop(approval);
}

/* Waits for approve_ms, or until the call is over. */
static int approval_wait(sb_approval *a, const sb_sandbox *sandbox, const sb_call *call,
			 sb_error *err)
{
	sb_call wait = *call;
	uint64_t end = clock_deadline_ns(clock_now_ns(), sandbox->approve_ms);
	sb_error why;

	if (end < wait.deadline_ns)
		wait.deadline_ns = end;
	int code = sb_call_wait(&wait, a->fd, POLLIN, &why);

	if (code == SB_ERR_TIMEOUT && clock_now_ns() < call->deadline_ns)
		return SB_DENY;
	if (code < 0) {
		if (err)
			*err = why;
		return code;
	}
	return atomic_load(&a->answer) == SB_ALLOW ? SB_ALLOW : SB_DENY;
}

int approval_ask(sb_sandbox *sandbox, const sb_request *request, const char *why,
		 const sb_call *call, sb_error *err)
{
	sb_approval *a = malloc(sizeof *a);

	if (!a)
		return error_no_memory(err, "approval");
	atomic_init(&a->refs, 2);
	atomic_init(&a->answer, -1);
	a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->fd < 0) {
		int code = error_errno(err, SB_ERR_IO, errno, "approval", "cannot make an eventfd");

		free(a);
		return code;
	}
	int said = sandbox->approve(sandbox->approve_user, request, why, a);

	if (said == SB_LATER) {
		said = approval_wait(a, sandbox, call, err);
	} else {
		if (atomic_load(&a->answer) < 0) /* it will not be answered again */
			approval_drop(a);
		if (said != SB_ALLOW)
			said = SB_DENY;
	}
	approval_drop(a);
	return said;
}
