/* SPDX-License-Identifier: MIT */
/*
 * ids.c - host ids for the guests of a root caller, and the caller's name.
 *
 * Each live box of a root caller has a uid of its own, so that guests cannot signal, trace or count
 * against one another.  It is reserved by binding an abstract socket named after it: that name
 * vanishes with the descriptor, also when we are killed, and leaves nothing on disk.  The first one
 * tried is random, so a collision needs a squatter who knows it.
 */
#include "facts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAP_SHARE 1024u  /* of a small map: how much of its top is ours */
#define TRIES 256u       /* before waiting */
#define WAIT_MS 20
#define WAIT_ROUNDS 100u

/* One line "inside outside count". */
static bool map_line(const char **at, uint64_t *inside, uint64_t *count)
{
	uint64_t value[3];
	char *end;
	int i;

	for (i = 0; i < 3; i++) {
		while (**at == ' ' || **at == '\n' || **at == '\t')
			++*at;
		value[i] = strtoull(*at, &end, 10);
		if (end == *at)
			return false;
		*at = end;
	}
	*inside = value[0];
	*count = value[2];
	return true;
}

/* The top of one extent that we may take. */
static bool extent_share(uint64_t inside, uint64_t count, uint32_t *first, uint32_t *share)
{
	uint64_t end = inside + count, begin = inside;

	if (end > LINUX_UID_NOBODY)
		end = LINUX_UID_NOBODY;
	if (begin < LINUX_UID_LEAST)
		begin = LINUX_UID_LEAST;
	if (begin >= end)
		return false;
	if (end - begin > MAP_SHARE)
		begin = end - MAP_SHARE;
	*first = (uint32_t)begin;
	*share = (uint32_t)(end - begin);
	return true;
}

bool ids_range_of_map(const char *map, uint32_t *first, uint32_t *count)
{
	uint64_t inside, n;
	uint32_t from, share;
	bool found = false, nobody = false;
	const char *at = map;

	while (map_line(&at, &inside, &n)) {
		if (inside <= LINUX_UID_FIRST &&
		    inside + n >= (uint64_t)LINUX_UID_FIRST + LINUX_UID_COUNT) {
			*first = LINUX_UID_FIRST;
			*count = LINUX_UID_COUNT;
			return true;
		}
		nobody |= inside <= LINUX_UID_NOBODY && inside + n > LINUX_UID_NOBODY;
		if (extent_share(inside, n, &from, &share) && (!found || from > *first)) {
			*first = from;
			*count = share;
			found = true;
		}
	}
	if (!found && nobody) {
		*first = LINUX_UID_NOBODY;
		*count = 1;
		found = true;
	}
	return found;
}

/* 0, 1 = taken, or -errno. */
static int try_reserve(uint32_t uid, int *lock)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "sandbox-uid-%u", uid);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0) {
		int rc = errno == EADDRINUSE ? 1 : -errno;

		close(fd);
		return rc;
	}
	*lock = fd;
	return 0;
}

int ids_reserve(uint32_t first, uint32_t count, uint64_t deadline_ns, uint32_t *uid, int *lock,
		sb_error *err)
{
	uint32_t start = 0, tries = count < TRIES ? count : TRIES, i, round;
	int rc = 1;

	*lock = -1;
	if (count > 1 && getrandom(&start, sizeof start, 0) != sizeof start)
		return error_errno(err, SB_ERR_INTERNAL, errno, "ids", "no randomness for a uid");
	for (round = 0; round < WAIT_ROUNDS; round++) {
		for (i = 0; rc == 1 && i < tries; i++) {
			*uid = first + (uint32_t)(((uint64_t)start + i) % count);
			rc = try_reserve(*uid, lock);
		}
		if (!rc)
			return 0;
		if (rc < 0)
			return error_errno(err, SB_ERR_IO, -rc, "ids", "cannot reserve uid %u", *uid);
		if (clock_now_ns() >= deadline_ns)
			break;
		poll(NULL, 0, WAIT_MS);
	}
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "ids",
			 "all of the %u uids from %u that guests may have are in use; widen uid_count",
			 count, first);
}

static bool plain_name(const char *name, size_t len)
{
	size_t i;

	if (!len || len > 32 || name[0] == '-')
		return false;
	for (i = 0; i < len; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || c == '.'))
			return false;
	}
	return true;
}

void ids_user_name(const char *passwd, uid_t uid, char *out, size_t cap)
{
	const char *line, *next;

	for (line = passwd; line && *line; line = next) {
		const char *name_end = strchr(line, ':'), *id;

		next = strchr(line, '\n');
		next = next ? next + 1 : NULL;
		id = name_end ? strchr(name_end + 1, ':') : NULL;
		if (!id || (next && id >= next) || id[1] < '0' || id[1] > '9' ||
		    strtoull(id + 1, NULL, 10) != uid)
			continue;
		if (!plain_name(line, (size_t)(name_end - line)))
			break;
		snprintf(out, cap, "%.*s", (int)(name_end - line), line);
		return;
	}
	snprintf(out, cap, "user");
}
