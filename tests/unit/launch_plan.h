/* SPDX-License-Identifier: MIT */
/* launch_plan.h - a decoded PLAN for tests, out of lh_plan's adders; and launch_fail(). */
#ifndef SB_TESTS_UNIT_LAUNCH_PLAN_H
#define SB_TESTS_UNIT_LAUNCH_PLAN_H

#include "../../src/launch/host.h"
#include "../../src/launch/launch.h"

#include <stdarg.h>

int launch_fail(launch_failure *f, int os_errno, const char *where, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	f->os_errno = os_errno;
	snprintf(f->where, sizeof f->where, "%s", where);
	vsnprintf(f->message, sizeof f->message, fmt, ap);
	va_end(ap);
	return -1;
}

/* The record as it would be sent; lives until the next call. */
static inline lp_plan_view plan_view(const lh_plan *plan)
{
	static uint64_t record[LP_MAX_MESSAGE / 8];
	lp_plan *p = (lp_plan *)record;
	size_t mounts = plan->mount_count * sizeof(lp_mount);
	const char *why = NULL;
	lp_plan_view v;

	assert_int_equal(plan->failed, 0);
	*p = plan->fixed;
	p->fd_count = plan->fd_count;
	p->mount_count = plan->mount_count;
	p->string_bytes = plan->string_bytes;
	p->head = (lp_head){ LP_VERSION, LP_PLAN,
		(uint32_t)(sizeof *p + mounts + plan->string_bytes), 0 };
	memcpy(p + 1, plan->mounts, mounts);
	memcpy((char *)(p + 1) + mounts, plan->strings, plan->string_bytes);
	if (lp_decode_plan(record, p->head.bytes, plan->fd_count, &v, &why) < 0)
		fail_msg("the plan is refused: %s", why);
	return v;
}

#endif /* SB_TESTS_UNIT_LAUNCH_PLAN_H */
