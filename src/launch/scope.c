/* SPDX-License-Identifier: MIT */
/*
 * scope.c - a cgroup of our own from the caller's systemd.
 *
 * A plain user may write no cgroup but those that his own systemd (`systemd --user`) has made for him.
 * The supervisor asks it, over the user's bus, for a scope with itself in it, handed over to be divided
 * further; it then steps aside, into "supervisor" there, and the box gets a directory beside that.  systemd
 * removes all of it when the last process has left.
 *
 *   sb-launch -> bus: AUTH EXTERNAL, Hello, StartTransientUnit      -> it is moved; /proc/self/cgroup tells
 *
 * Nothing of a guest exists yet.  Every wait has one deadline.
 */
#include "box.h"
#include "bus.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_US 5000000u          /* for all of it: a busy machine's systemd takes its time */
#define LOOK_US 20000u            /* the message that it is done may be one that we are not sent */
#define HIERARCHY "/sys/fs/cgroup"
#define OURS "supervisor"

typedef struct bus {
	int fd;
	uint64_t deadline_us;
	launch_failure *failure;
} bus;

static int fail_bus(const bus *b, int os_errno, const char *what)
{
	return launch_fail(b->failure, os_errno, "scope", "your systemd %s", what);
}

/* ---- Bytes ------------------------------------------------------------------------------------- */

/* 1 = ready, 0 = `most_us` are over, -1 = the deadline is. */
static int wait_for(const bus *b, short events, uint64_t most_us)
{
	struct pollfd p = { .fd = b->fd, .events = events };
	uint64_t now = wire_now_us(), left = b->deadline_us > now ? b->deadline_us - now : 0;
	uint64_t wait = left < most_us ? left : most_us;
	struct timespec t = { (time_t)(wait / 1000000), (long)(wait % 1000000) * 1000 };

	if (!left)
		return fail_bus(b, ETIMEDOUT, "does not answer");
	return ppoll(&p, 1, &t, NULL) > 0;
}

static int send_all(const bus *b, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = send(b->fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			if (wait_for(b, POLLOUT, UINT64_MAX) < 0)
				return -1;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_bus(b, errno, "cannot be asked: its bus has closed");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* 1 = all of it; 0 = nothing has come within `most_us`; -1. */
static int receive_all(const bus *b, void *data, size_t len, uint64_t most_us)
{
	char *at = data;
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(b->fd, at + got, len - got, MSG_DONTWAIT);

		if (n > 0) {
			got += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (!n || errno != EAGAIN)
			return fail_bus(b, n ? errno : ECONNRESET, "cannot be asked: its bus has closed");
		n = wait_for(b, POLLIN, got ? UINT64_MAX : most_us);
		if (n < 0)
			return -1;
		if (!n && !got)
			return 0;
	}
	return 1;
}

/* ---- The bus ------------------------------------------------------------------------------------- */

static int dial(bus *b, const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t size = sizeof peer;

	if (strlen(path) >= sizeof to.sun_path)
		return fail_bus(b, ENAMETOOLONG, "cannot be asked: the path of its bus is too long");
	memcpy(to.sun_path, path, strlen(path));
	b->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (b->fd < 0 || connect(b->fd, (struct sockaddr *)&to, sizeof to) < 0)
		return fail_bus(b, errno, "cannot be asked over its bus");
	/* a bus of the host, shown in a container, would act on processes that are not ours */
	if (getsockopt(b->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0)
		return fail_bus(b, ESRCH, "is not in this pid namespace");
	return 0;
}

/* "EXTERNAL": the kernel tells the other end who we are; the number is our uid, its digits in hexadecimal. */
static int authenticate(const bus *b)
{
	char text[80], line[128];
	int n = snprintf(text, sizeof text, "%u", (unsigned)geteuid()), len, i;
	size_t at = 0;

	len = snprintf(line, sizeof line, "%cAUTH EXTERNAL ", 0);
	for (i = 0; i < n; i++)
		len += snprintf(line + len, sizeof line - (size_t)len, "%02x", (unsigned char)text[i]);
	len += snprintf(line + len, sizeof line - (size_t)len, "\r\n");
	if (send_all(b, line, (size_t)len) < 0)
		return -1;
	do {
		if (receive_all(b, line + at, 1, UINT64_MAX) < 0)
			return -1;
	} while (line[at] != '\n' && ++at < sizeof line);
	if (at < 3 || at == sizeof line || memcmp(line, "OK ", 3) != 0)
		return fail_bus(b, EACCES, "does not take us for its user");
	return send_all(b, "BEGIN\r\n", 7);
}

/* 1, 0 and -1 as receive_all(). */
static int next_message(const bus *b, bus_message *m, uint64_t most_us)
{
	static uint8_t data[BUS_MAX_MESSAGE];
	int rc = receive_all(b, data, BUS_HEAD_BYTES, most_us);
	size_t len;

	if (rc <= 0)
		return rc;
	len = bus_length(data);
	if (!len)
		return fail_bus(b, EPROTO, "sends what cannot be read");
	if (receive_all(b, data + BUS_HEAD_BYTES, len - BUS_HEAD_BYTES, UINT64_MAX) < 0)
		return -1;
	return bus_read(data, len, m) ? 1 : fail_bus(b, EPROTO, "sends what cannot be read");
}

static int call(const bus *b, const bus_out *message, uint32_t serial, bus_message *answer)
{
	if (message->full)
		return fail_bus(b, EMSGSIZE, "cannot be asked: the name is too long");
	if (send_all(b, message->data, message->len) < 0)
		return -1;
	do {
		if (next_message(b, answer, UINT64_MAX) < 0)
			return -1;
	} while ((answer->type != BUS_RETURN && answer->type != BUS_ERROR) || answer->serial != serial);
	return 0;
}

static int refused(const bus *b, const bus_message *answer)
{
	return launch_fail(b->failure, EACCES, "scope", "your systemd makes no scope: %s (%s)",
			   answer->texts ? answer->text[0] : "no reason given", answer->error);
}

/* ---- The scope ----------------------------------------------------------------------------------- */

/* Our cgroup in the one hierarchy of version 2; false = it has another name than `unit`. */
static bool moved_to(const char *unit, char *path, size_t cap)
{
	char text[1024], *at, *end;
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC), n;
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = 0;
	for (at = text; strncmp(at, "0::/", 4) != 0; at++) {
		at = strchr(at, '\n');
		if (!at)
			return false;
	}
	end = strchr(at, '\n');
	if (!end)
		return false;
	*end = 0;
	at += 3;
	n = snprintf(path, cap, "%s%s", HIERARCHY, at);
	end = strrchr(at, '/');
	return !strcmp(end + 1, unit) && n > 0 && (size_t)n < cap;
}

static int wait_until_moved(const bus *b, const char *unit, char *path, size_t cap)
{
	bus_message m;
	int rc;

	while (!moved_to(unit, path, cap)) {
		rc = next_message(b, &m, LOOK_US);
		if (rc < 0)
			return -1;
		/* number, path and unit of a job, and what became of it */
		if (rc && m.type == BUS_SIGNAL && !strcmp(m.member, "JobRemoved") && m.texts == 4 &&
		    !strcmp(m.text[2], unit) && strcmp(m.text[3], "done") != 0)
			return launch_fail(b->failure, EACCES, "scope", "your systemd makes no scope: its job "
					   "has %s", m.text[3]);
	}
	return 0;
}

static int ask(const bus *b, const char *unit, char *path, size_t cap)
{
	bus_message answer;
	bus_out message;
	uint32_t serial = 1;

	bus_hello(&message, serial);
	if (authenticate(b) < 0 || call(b, &message, serial, &answer) < 0)
		return -1;
	if (answer.type == BUS_ERROR)
		return refused(b, &answer);
	bus_start_scope(&message, ++serial, unit, true);
	if (call(b, &message, serial, &answer) < 0)
		return -1;
	if (answer.type == BUS_ERROR) { /* before 253 it knows no OOMPolicy for a scope, and needs none */
		bus_start_scope(&message, ++serial, unit, false);
		if (call(b, &message, serial, &answer) < 0)
			return -1;
	}
	return answer.type == BUS_ERROR ? refused(b, &answer) : wait_until_moved(b, unit, path, cap);
}

/* Whoever hands controllers down must hold no process himself. */
static int step_aside(const char *scope, launch_failure *f)
{
	int dir = openat(AT_FDCWD, scope, O_PATH | O_DIRECTORY | O_CLOEXEC), fd, error;

	if (dir < 0 || (mkdirat(dir, OURS, 0755) < 0 && errno != EEXIST)) {
		error = errno;
		if (dir >= 0)
			close(dir);
		return launch_fail(f, error, "scope", "cannot make \"%s/%s\"", scope, OURS);
	}
	fd = openat(dir, OURS "/cgroup.procs", O_WRONLY | O_CLOEXEC);
	close(dir);
	error = fd < 0 || write(fd, "0", 1) != 1 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return error ? launch_fail(f, error, "scope", "cannot move to \"%s/%s\"", scope, OURS) : 0;
}

int scope_enter(launch_box *box, launch_failure *f)
{
	static char path[400]; /* as long as a parent may be */
	bus b = { -1, wire_now_us() + WAIT_US, f };
	const lp_plan_view *v = &box->view;
	char unit[96];
	int rc;

	if (box->plan->cgroup_kind != LP_CG_SCOPE)
		return 0;
	snprintf(unit, sizeof unit, "%s.scope", launch_string(v, v->plan->cgroup_name));
	rc = dial(&b, launch_string(v, v->plan->cgroups[0].parent));
	if (!rc)
		rc = ask(&b, unit, path, sizeof path);
	if (b.fd >= 0)
		close(b.fd);
	if (!rc)
		rc = step_aside(path, f);
	box->view.scope = path;
	return rc;
}
