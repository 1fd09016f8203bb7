/* SPDX-License-Identifier: MIT */
/* proc.c - arguments, environment, clocks, random bytes, the end; sockets, which there are none of. */
#include "call.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

/* ---- Arguments and environment ------------------------------------------------------------------ */

static uint32_t list_sizes(wasi *w, const char *const *list, const uint64_t *a)
{
	uint32_t count = 0, bytes = 0, rc;

	for (; list && list[count]; count++)
		bytes += (uint32_t)strlen(list[count]) + 1;
	rc = call_set32(w, a[0], count);
	return rc ? rc : call_set32(w, a[1], bytes);
}

static uint32_t list_get(wasi *w, const char *const *list, const uint64_t *a)
{
	uint32_t pointers = call_arg32(a, 0), text = call_arg32(a, 1), rc = 0;

	for (; !rc && list && *list; list++, pointers += 4) {
		size_t len = strlen(*list) + 1;
		uint8_t *to = call_bytes(w, text, len);

		if (!to)
			return WASI_EFAULT;
		memcpy(to, *list, len);
		rc = call_set32(w, pointers, text);
		text += (uint32_t)len;
	}
	return rc;
}

CALL(args_get)
{
	return list_get(w, w->argv, a);
}

CALL(args_sizes_get)
{
	return list_sizes(w, w->argv, a);
}

CALL(environ_get)
{
	return list_get(w, w->env, a);
}

CALL(environ_sizes_get)
{
	return list_sizes(w, w->env, a);
}

/* ---- Clocks ------------------------------------------------------------------------------------- */

static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
				    CLOCK_THREAD_CPUTIME_ID };

CALL(clock_res_get)
{
	if (call_arg32(a, 0) >= sizeof clocks / sizeof clocks[0])
		return WASI_EINVAL;
	return call_set64(w, a[1], 1);
}

CALL(clock_time_get)
{
	const int64_t base[] = { 0, w->monotonic_base_ns, w->cpu_base_ns, w->thread_base_ns };
	uint32_t id = call_arg32(a, 0);
	struct timespec t;

	if (id >= sizeof clocks / sizeof clocks[0])
		return WASI_EINVAL;
	if (clock_gettime(clocks[id], &t) < 0)
		return fds_errno(-errno);
	return call_set64(w, a[2],
			  (uint64_t)((int64_t)t.tv_sec * 1000000000 + t.tv_nsec - base[id]));
}

/* ---- The rest ----------------------------------------------------------------------------------- */

CALL(proc_exit)
{
	w->exit_code = (int32_t)(call_arg32(a, 0) & 0xff);
	return WASI_ENDED;
}

CALL(proc_raise)
{
	(void)w;
	(void)a;
	return WASI_ENOTSUP; /* there is nobody to signal */
}

CALL(sched_yield)
{
	(void)w;
	(void)a;
	return WASI_OK;
}

CALL(random_get)
{
	uint64_t len = call_arg32(a, 1), at = 0;
	uint8_t *to = call_bytes(w, a[0], len);

	if (!to)
		return WASI_EFAULT;
	while (at < len) {
		ssize_t n = getrandom(to + at, len - at, 0);

		if (n < 0 && errno == EINTR && !(w->stopping && w->stopping(w->user)))
			continue;
		if (n < 0)
			return fds_errno(-errno);
		at += (uint64_t)n;
	}
	return WASI_OK;
}

/* ---- Sockets: a stream that was given is all there can be ------------------------------------------ */

static uint32_t need_socket(const wasi *w, uint64_t number, wasi_fd **fd)
{
	*fd = fds_get(w, number);
	if (!*fd)
		return WASI_EBADF;
	return (*fd)->type == WASI_T_STREAM && (*fd)->host >= 0 ? WASI_OK : WASI_ENOTSOCK;
}

CALL(sock_accept)
{
	wasi_fd *fd;
	uint32_t rc = need_socket(w, a[0], &fd);

	return rc ? rc : WASI_EINVAL; /* none of them listens */
}

CALL(sock_recv)
{
	uint32_t flags = call_arg32(a, 3), rc;
	wasi_fd *fd;

	rc = need_socket(w, a[0], &fd);
	if (rc)
		return rc;
	if (flags)
		return WASI_ENOTSUP; /* to peek, or to wait for all */
	{
		const uint64_t read[] = { a[0], a[1], a[2], a[4] };

		rc = call_fd_read(w, read);
	}
	if (!rc) {
		uint8_t *out = call_bytes(w, a[5], 2);

		if (!out)
			return WASI_EFAULT;
		call_store16(out, 0);
	}
	return rc;
}

CALL(sock_send)
{
	const uint64_t write[] = { a[0], a[1], a[2], a[4] };
	wasi_fd *fd;
	uint32_t rc = need_socket(w, a[0], &fd);

	if (rc)
		return rc;
	return call_arg32(a, 3) ? WASI_EINVAL : call_fd_write(w, write);
}

CALL(sock_shutdown)
{
	uint32_t how = call_arg32(a, 1), rc;
	wasi_fd *fd;

	rc = need_socket(w, a[0], &fd);
	if (rc)
		return rc;
	if (how < 1 || how > 3)
		return WASI_EINVAL;
	rc = shutdown(fd->host, how == 1 ? SHUT_RD : how == 2 ? SHUT_WR : SHUT_RDWR) < 0 ?
		     fds_errno(-errno) : WASI_OK;
	return rc;
}
