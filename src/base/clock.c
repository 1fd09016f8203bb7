/* SPDX-License-Identifier: MIT */
/* clock.c - CLOCK_MONOTONIC in nanoseconds; SB_UNLIMITED is the end of time. */
#include "base.h"

#include <limits.h>
#include <time.h>

#define CLOCK_NS_PER_SECOND 1000000000u
#define CLOCK_NS_PER_MS 1000000u

uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

int64_t clock_unix_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * (int64_t)CLOCK_NS_PER_SECOND + now.tv_nsec;
}

uint64_t clock_deadline_ns(uint64_t now_ns, uint64_t timeout_ms)
{
	if (timeout_ms > (SB_UNLIMITED - now_ns) / CLOCK_NS_PER_MS)
		return SB_UNLIMITED;
	return now_ns + timeout_ms * CLOCK_NS_PER_MS;
}

int clock_poll_ms(uint64_t now_ns, uint64_t deadline_ns)
{
	uint64_t ms;

	if (deadline_ns == SB_UNLIMITED)
		return -1;
	if (deadline_ns <= now_ns)
		return 0;
	ms = (deadline_ns - now_ns - 1) / CLOCK_NS_PER_MS + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

const char *clock_text(uint64_t ms, char out[32])
{
	if (ms % 1000)
		snprintf(out, 32, "%llu ms", (unsigned long long)ms);
	else
		snprintf(out, 32, "%llu s", (unsigned long long)(ms / 1000));
	return out;
}
