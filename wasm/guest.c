/* SPDX-License-Identifier: MIT */
#include "guest.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wasi/api.h>
#include <wasi/libc-environ.h>
#include <wasi/libc.h>

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
	const char *folder = getenv("SANDBOX_CWD"); /* src/backend/wasm/box.c */

	if (folder == NULL || chdir(folder) == 0) {
		unsetenv("SANDBOX_CWD");
		return;
	}
	fprintf(stderr, "the working directory \"%s\" cannot be entered: %s\n", folder, strerror(errno));
	exit(EXIT_FAILURE);
}

/* To wasi-libc no name is the working directory's; to everybody else it is nothing's. */
int __real___wasilibc_find_relpath_alloc(const char *path, const char **base, char **relative, size_t *room, int can_grow);
int __wrap___wasilibc_find_relpath_alloc(const char *path, const char **base, char **relative, size_t *room, int can_grow);

int __wrap___wasilibc_find_relpath_alloc(const char *path, const char **base, char **relative, size_t *room, int can_grow)
{
	if (path[0] != '\0')
		return __real___wasilibc_find_relpath_alloc(path, base, relative, room, can_grow);
	errno = ENOENT;
	return -1;
}

void guest_random(void *data, size_t len)
{
	for (size_t done = 0; done < len; done += 256)
		if (getentropy((char *)data + done, len - done < 256 ? len - done : 256) != 0)
			abort();
}

/* wasi-libc's own tells of an interrupt as of a sleep that cannot be. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
	__wasi_subscription_t wish = { .u.tag = __WASI_EVENTTYPE_CLOCK };
	__wasi_event_t event;
	size_t count;

	if (wanted->tv_sec < 0 || wanted->tv_nsec < 0 || wanted->tv_nsec >= 1000000000 || (flags & ~TIMER_ABSTIME))
		return EINVAL;
	wish.u.u.clock.id = clock == CLOCK_MONOTONIC ? __WASI_CLOCKID_MONOTONIC : __WASI_CLOCKID_REALTIME;
	wish.u.u.clock.flags = flags & TIMER_ABSTIME ? __WASI_SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME : 0;
	if ((uint64_t)wanted->tv_sec > UINT64_MAX / 1000000000 - 1)
		wish.u.u.clock.timeout = UINT64_MAX;
	else
		wish.u.u.clock.timeout = (uint64_t)wanted->tv_sec * 1000000000 + (uint64_t)wanted->tv_nsec;
	if (left != NULL)
		*left = *wanted; /* whoever asks again sleeps too long rather than too little */
	__wasi_errno_t rc = __wasi_poll_oneoff(&wish, &event, 1, &count);
	return rc == __WASI_ERRNO_INTR ? EINTR : rc != 0 || event.error != 0 ? ENOTSUP : 0;
}

/* ---- Evaluation sessions ---------------------------------------------------------------------- */

static int control = -1; /* its number, high, is in the environment */

__attribute__((import_module("sandbox"), import_name("bell"))) int sandbox_bell(const void *words, size_t count);

__attribute__((import_module("sandbox"), import_name("rest"))) void sandbox_rest(void);

_Noreturn void guest_rest(void)
{
	sandbox_rest();
	abort(); /* the control stream is gone */
}

bool guest_has_session(void)
{
	const char *number = getenv("SANDBOX_CONTROL");

	if (number != NULL)
		control = atoi(number);
	unsetenv("SANDBOX_CONTROL");
	return control >= 0;
}

size_t guest_control_read(void *data, size_t cap)
{
	ssize_t n;

	do
		n = read(control, data, cap);
	while (n < 0 && errno == EINTR);
	return n > 0 ? (size_t)n : 0;
}

bool guest_control_waiting(void)
{
	struct pollfd fd = { .fd = control, .events = POLLIN };
	int n;

	do /* an interrupt is told once */
		n = poll(&fd, 1, 0);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

bool guest_control_wait(void)
{
	struct pollfd fd = { .fd = control, .events = POLLIN };

	return poll(&fd, 1, -1) >= 0 || errno != EINTR;
}

void guest_control_write(const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(control, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_Exit(EXIT_SUCCESS);
		at += n;
		len -= (size_t)n;
	}
}

void guest_input_file(const char *path)
{
	static const char nothing[] = "/tmp/.nothing";
	bool is_nothing = strcmp(path, "/dev/null") == 0;
	int fd = is_nothing ? open(nothing, O_RDONLY | O_CREAT | O_TRUNC, 0600) : open(path, O_RDONLY);

	if (is_nothing)
		unlink(nothing);
	if (fd > 0)
		__wasilibc_fd_renumber(fd, 0);
}

void guest_bell(const guest_bell_word *words, size_t count)
{
	struct { uint32_t at, bits; } list[8];

	for (size_t i = 0; i < count && i < 8; i++) {
		list[i].at = (uint32_t)(uintptr_t)words[i].at;
		list[i].bits = words[i].bits;
	}
	if (sandbox_bell(list, count) != 0)
		abort();
}
