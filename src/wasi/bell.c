/* SPDX-License-Identifier: MIT */
/*
 * bell.c - an interrupt for a guest that computes.
 *
 * Code that runs looks at words of its own memory from time to time (an interpreter: has a signal come?).
 * The guest names those words once, with the bits to set; ringing sets them, from outside and at any
 * moment, and costs compiled code nothing.  What it may name is its own memory, which it could
 * write itself.
 */
#include "call.h"

/* bell(list, count): a list of { address, bits }, 32 bits each. */
CALL(bell)
{
	uint32_t count = call_arg32(a, 1);
	const uint8_t *list;

	if (count > WASI_BELL_MAX)
		return WASI_EINVAL;
	list = call_bytes(w, a[0], (uint64_t)count * 8);
	if (!list)
		return WASI_EFAULT;
	w->bells = 0; /* none may ring while they change */
	for (uint32_t i = 0; i < count; i++) {
		w->bell[i].at = call_load32(list + (size_t)i * 8);
		w->bell[i].bits = call_load32(list + (size_t)i * 8 + 4);
		if (!call_bytes(w, w->bell[i].at, 4) || w->bell[i].at % 4)
			return WASI_EFAULT;
	}
	w->bells = count;
	return WASI_OK;
}

void wasi_ring(wasi *w)
{
	/* memory never shrinks: what was in it when it was named still is */
	for (uint32_t i = 0; i < w->bells; i++)
		__atomic_fetch_or((uint32_t *)(void *)(w->mem + w->bell[i].at), w->bell[i].bits,
				  __ATOMIC_RELAXED);
}
