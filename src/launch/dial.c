/* SPDX-License-Identifier: MIT */
/*
 * dial.c - a connection to a port that the guest listens on, made inside its network namespace.
 */
#include "box.h"
#include "sys.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#define DIAL_WAIT_MS 250 /* loopback answers at once, or its queue is full */

static int address(const lp_dial *d, struct sockaddr_storage *out, socklen_t *len)
{
	struct sockaddr_in *v4 = (void *)out;
	struct sockaddr_in6 *v6 = (void *)out;

	*out = (struct sockaddr_storage){ .ss_family = (sa_family_t)d->family };
	if (d->family == AF_INET) {
		v4->sin_port = htons((uint16_t)d->port);
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		*len = sizeof *v4;
		return 0;
	}
	if (d->family != AF_INET6)
		return EAFNOSUPPORT;
	v6->sin6_port = htons((uint16_t)d->port);
	v6->sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
	*len = sizeof *v6;
	return 0;
}

/* 0 or errno: the stream is left blocking. */
static int connect_bounded(int fd, const struct sockaddr_storage *to, socklen_t len)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	int error = 0, flags = fcntl(fd, F_GETFL);
	socklen_t size = sizeof error;

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (connect(fd, (const void *)to, len) < 0) {
		if (errno != EINPROGRESS)
			return errno;
		if (poll(&wait, 1, DIAL_WAIT_MS) <= 0)
			return ETIMEDOUT;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
			return errno;
	}
	fcntl(fd, F_SETFL, flags);
	return error;
}

void dial_port(launch_box *box, const lp_dial *request)
{
	lp_dialed answer = { 0 };
	struct sockaddr_storage to;
	socklen_t len = 0;
	int fd = -1;

	wire_head(&answer.head, LP_DIALED, sizeof answer, request->head.id);
	answer.os_errno = address(request, &to, &len);
	if (!answer.os_errno) {
		fd = socket((int)request->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		answer.os_errno = fd < 0 ? errno : connect_bounded(fd, &to, len);
	}
	wire_send(box->control, &answer, sizeof answer, &fd, answer.os_errno ? 0 : 1);
	if (fd >= 0)
		close(fd);
}
