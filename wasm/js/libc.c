/* SPDX-License-Identifier: MIT */
/* libc.c - the modules std and os, and their event loop one step at a time. */
#include "quickjs-libc.c"
#include "js.h"

volatile void *libc_signals(void)
{
	return &os_pending_signals;
}

bool libc_wait(JSContext *ctx)
{
	JSThreadState *ts = js_get_thread_state(JS_GetRuntime(ctx));

	bool more = ts->can_js_os_poll && js_os_poll(ctx) == 0;

	os_pending_signals &= ~((uint64_t)1 << 2);
	return more;
}
