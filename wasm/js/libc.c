/* SPDX-License-Identifier: MIT */
/* libc.c - the modules std and os, and their event loop one step at a time. */
#include <errno.h>
#include <time.h>

/* The event loop goes on sleeping after an interrupt unless it sees a signal that was not there before the sleep;
 * one that came a moment earlier would be lost.  To it a sleep that was interrupted is over: it looks again. */
static int sleep_once(const struct timespec *wanted, struct timespec *left)
{
	int rc = nanosleep(wanted, left);

	return rc < 0 && errno == EINTR ? 0 : rc;
}

#define nanosleep sleep_once
#include "quickjs-libc.c"
#undef nanosleep
#include "js.h"

bool libc_wait(JSContext *ctx)
{
	JSThreadState *ts = js_get_thread_state(JS_GetRuntime(ctx));

	return ts->can_js_os_poll && js_os_poll(ctx) == 0;
}
