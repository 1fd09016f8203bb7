/* SPDX-License-Identifier: MIT */
/*
 * watch_sockets.c - what TCP holds beside the memory limit of a version 1 cgroup.
 *
 * There the kernel counts buffers of TCP and UDP apart, under a limit of their own.  TCP may exceed it: so that
 * no connection stands still for ever, each socket gets a first packet whatever is left, some 64 KiB, and a
 * guest can have very many sockets.  No limit of the kernel's stops that, so a watcher does, once both counts
 * together are more than both limits; cache that would be given back does not count.
 */
#include "box.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_LOOK_US 20000u /* most commands have ended by then */
#define SHORTEST_US 5000u
#define LONGEST_US 100000u
/* What one cpu can fill in a microsecond, generously. */
#define FILL_BYTES_PER_US 2147u

static const char *const names[] = { "memory.kmem.tcp.usage_in_bytes", "memory.usage_in_bytes", "memory.stat" };
enum { TCP, ALL_ELSE, STAT };

bool sockets_watched(const lp_plan *p)
{
	uint32_t i;

	if (p->cgroup_kind != LP_CG_V1 || p->memory_bytes == SB_UNLIMITED)
		return false;
	for (i = 0; i < p->cgroup_count; i++)
		if (p->cgroups[i].controllers & LP_CTL_MEMORY)
			return true;
	return false;
}

void sockets_init(launch_sockets *s, const lp_plan *p, uint32_t cpus)
{
	size_t i;

	*s = (launch_sockets){ .on = sockets_watched(p), .cpus = cpus ? cpus : 1 };
	for (i = 0; i < sizeof names / sizeof *names; i++)
		s->fd[i] = -1;
	s->due_us = s->on ? wire_now_us() + FIRST_LOOK_US : UINT64_MAX;
}

/* Whoever watches may have begun before there was a cgroup: opened when it is first needed. */
static int open_file(launch_sockets *s, const launch_box *box, int which)
{
	const lp_plan *p = box->plan;
	char path[640];
	uint32_t i;

	for (i = 0; s->fd[which] < 0 && i < p->cgroup_count; i++) {
		int n;

		if (!(p->cgroups[i].controllers & LP_CTL_MEMORY))
			continue;
		n = snprintf(path, sizeof path, "%s/%s/%s", launch_string(&box->view, p->cgroups[i].parent),
			     launch_string(&box->view, p->cgroup_name), names[which]);
		if (n > 0 && (size_t)n < sizeof path)
			s->fd[which] = open(path, O_RDONLY | O_CLOEXEC);
	}
	return s->fd[which];
}

static bool read_number(launch_sockets *s, const launch_box *box, int which, uint64_t *out)
{
	char text[32];

	if (cgroup_read(open_file(s, box, which), text, sizeof text) <= 0)
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

/* Bytes of files that the kernel would give back before it refuses. */
static uint64_t spare_cache(launch_sockets *s, const launch_box *box)
{
	char text[8192];

	if (cgroup_read(open_file(s, box, STAT), text, sizeof text) <= 0)
		return 0;
	return cgroup_keyed(text, "total_inactive_file") + cgroup_keyed(text, "total_active_file");
}

bool sockets_exceed(launch_sockets *s, const launch_box *box)
{
	uint64_t limit = box->plan->memory_bytes, share = LP_SOCKET_BYTES(limit), tcp, rest, spare, room, wait;

	if (!s->on || wire_now_us() < s->due_us)
		return false;
	s->due_us = wire_now_us() + SHORTEST_US;
	if (!read_number(s, box, TCP, &tcp) || !read_number(s, box, ALL_ELSE, &rest))
		return false; /* not made yet, or removed: then nothing runs there */
	if (tcp > share && tcp + rest > limit + share) {
		spare = spare_cache(s, box);
		if (tcp + rest - (spare < rest ? spare : rest) > limit + share)
			return true;
	}
	room = (limit > rest ? limit - rest : 0) + (share > tcp ? share - tcp : 0);
	wait = room / (FILL_BYTES_PER_US * (uint64_t)s->cpus);
	wait = wait > LONGEST_US ? LONGEST_US : wait < SHORTEST_US ? SHORTEST_US : wait;
	s->due_us = wire_now_us() + wait;
	return false;
}
