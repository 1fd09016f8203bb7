/* SPDX-License-Identifier: MIT */
/*
 * topic.c - waiting for a change under a lock, for as long as a call may last.
 *
 * A call that cannot be cancelled sleeps on the condition; one that can also polls a descriptor, for
 * which it makes an eventfd while it waits.
 */
#include "live.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct topic_waiter {
	topic_waiter *next;
	int fd;
};

void topic_init(topic *t)
{
	pthread_condattr_t attr;

	t->waiters = NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->cond, &attr);
	pthread_condattr_destroy(&attr);
}

void topic_release(topic *t)
{
	pthread_cond_destroy(&t->cond);
}

void topic_wake(topic *t)
{
	uint64_t one = 1;

	pthread_cond_broadcast(&t->cond);
	for (const topic_waiter *w = t->waiters; w; w = w->next)
		if (write(w->fd, &one, sizeof one) < 0)
			continue; /* full: it is readable already */
}

static int wait_plain(topic *t, pthread_mutex_t *lock, uint64_t deadline_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
					.tv_nsec = (long)(deadline_ns % 1000000000u) };

	if (deadline_ns == SB_UNLIMITED) {
		pthread_cond_wait(&t->cond, lock);
		return 0;
	}
	return pthread_cond_timedwait(&t->cond, lock, &until) == ETIMEDOUT ? SB_ERR_AGAIN : 0;
}

static int poll_both(int fd, const sb_call *call, sb_error *err)
{
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
				 { .fd = call->cancel_fd, .events = POLLIN } };
	int n = poll(fds, 2, clock_poll_ms(clock_now_ns(), call->deadline_ns));

	if (n < 0 && errno != EINTR)
		return error_errno(err, SB_ERR_IO, errno, "wait", "cannot wait");
	if (n > 0 && fds[1].revents)
		return error_set(err, SB_ERR_CANCELLED, "cancel", "the caller cancelled the call");
	return 0;
}

static int wait_cancellable(topic *t, pthread_mutex_t *lock, const sb_call *call, sb_error *err)
{
	topic_waiter me = { .next = t->waiters, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	topic_waiter **at = &t->waiters;

	if (me.fd < 0)
		return error_errno(err, SB_ERR_IO, errno, "wait", "cannot make an eventfd");
	t->waiters = &me;
	pthread_mutex_unlock(lock);
	int code = poll_both(me.fd, call, err);

	pthread_mutex_lock(lock);
	while (*at != &me)
		at = &(*at)->next;
	*at = me.next;
	close(me.fd);
	return code;
}

int topic_wait(topic *t, pthread_mutex_t *lock, const sb_call *call, sb_error *err)
{
	if (call->deadline_ns != SB_UNLIMITED && clock_now_ns() >= call->deadline_ns)
		return SB_ERR_AGAIN;
	return call->cancel_fd < 0 ? wait_plain(t, lock, call->deadline_ns)
				   : wait_cancellable(t, lock, call, err);
}
