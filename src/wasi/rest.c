/* SPDX-License-Identifier: MIT */
/*
 * rest.c - a guest that has nothing to do until something comes over its control stream.
 *
 * It could wait in a read; all its calls would then stand on the worker's stack, where nobody can copy them.
 * A guest at rest has no calls under way: what it is lies in its memory, all of it.
 */
#include "call.h"

/* rest(): comes back only where there is no control stream, or no longer. */
CALL(rest)
{
	(void)a;
	return w->control.open ? WASI_RESTS : WASI_OK;
}
