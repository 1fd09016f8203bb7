/* SPDX-License-Identifier: MIT */
#include "guest.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wasi/api.h>
#include <wasi/libc-environ.h>

/* wasi-libc's own measures from a start that a snapshot freezes.  Where there is no CPU time the clock is
 * one of passed time since guest_start(). */
static __wasi_timestamp_t began;

clock_t __clock(void)
{
	__wasi_timestamp_t now;

	if (__wasi_clock_time_get(__WASI_CLOCKID_PROCESS_CPUTIME_ID, 0, &now) == 0)
		return (clock_t)now;
	return __wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &now) == 0 ? (clock_t)(now - began) : -1;
}

clock_t clock(void)
{
	return __clock();
}

void guest_start(void)
{
	(void)__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &began);
	__wasilibc_deinitialize_environ(); /* a snapshot's is the builder's */
	__wasilibc_maybe_reinitialize_environ_eagerly();
	const char *folder = getenv("PWD");

	if (folder == NULL || chdir(folder) == 0)
		return;
	fprintf(stderr, "the working directory \"%s\" cannot be entered: %s\n", folder, strerror(errno));
	exit(EXIT_FAILURE);
}

void guest_random(void *data, size_t len)
{
	for (size_t done = 0; done < len; done += 256)
		if (getentropy((char *)data + done, len - done < 256 ? len - done : 256) != 0)
			abort();
}
