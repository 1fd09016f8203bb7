/* SPDX-License-Identifier: MIT */
/*
 * watch.c - looks now and then whether a limit that no cgroup enforces is exceeded.
 *
 * Memory is sampled over /proc, plus what lies in the scratch tmpfs; CPU time comes from the cgroup
 * where there is one, else from /proc as well; what is left of it is lent anew.  What the sockets of a
 * version 1 cgroup hold is looked at in watch_sockets.c.  Three looks in a row
 * that fail mean that the limit cannot be enforced, and that ends the run as well.
 */
#include "box.h"
#include "sys.h"

#include <sched.h>
#include <sys/vfs.h>

#define MAX_FAILURES 3u
#define MOST_REST_US 5000000u

static bool samples(const launch_watch *w)
{
	return w->memory || w->cpu || w->pids;
}

void watch_init(launch_watch *w, const launch_box *box, int root)
{
	const lp_plan *p = box->plan;
	uint32_t i, controllers = 0;
	cpu_set_t cpus;

	*w = (launch_watch){ .proc = -1, .root = root, .scratch = -1, .cpus = 1 };
	if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
		w->cpus = (uint32_t)CPU_COUNT(&cpus);
	sockets_init(&w->sockets, p, w->cpus);
	if (!(p->steps & LP_SAMPLE))
		return;
	for (i = 0; i < p->cgroup_count; i++)
		controllers |= p->cgroups[i].controllers;
	w->memory = p->memory_bytes != SB_UNLIMITED && !(controllers & LP_CTL_MEMORY);
	w->cpu = p->cpu_us != SB_UNLIMITED;
	/* in a namespace of its own RLIMIT_NPROC counts the box alone */
	w->pids = (p->steps & LP_IN_PLACE) && p->pids != SB_UNLIMITED && !(controllers & LP_CTL_PIDS);
	if (!samples(w))
		return;
	w->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w->due_us = wire_now_us();
}

bool watch_on(const launch_watch *w)
{
	return samples(w) || w->sockets.on;
}

uint64_t watch_wait_us(const launch_watch *w)
{
	uint64_t now, due = samples(w) ? w->due_us : UINT64_MAX;

	if (w->sockets.on && w->sockets.due_us < due)
		due = w->sockets.due_us;
	if (due == UINT64_MAX)
		return due;
	now = wire_now_us();
	return due > now ? due - now : 0;
}

/* A tmpfs counts an inode, and each kilobyte of extended attributes, as a node. */
#define NODE_BYTES 1024u

static uint64_t scratch_bytes(const launch_watch *w)
{
	struct statfs fs;

	if (w->scratch < 0 || fstatfs(w->scratch, &fs) < 0)
		return 0;
	return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize +
	       (uint64_t)(fs.f_files - fs.f_ffree) * NODE_BYTES;
}

static int take_sample(const launch_watch *w, const launch_box *box, launch_sample *out)
{
	uint64_t cpu_us = w->cpu ? cgroup_cpu_us(&box->cgroup) : 0;
	int rc;

	*out = (launch_sample){ 0 };
	if (w->memory || w->pids || cpu_us == SB_UNLIMITED) {
		rc = w->proc < 0 ? -ENOENT : sample_tree(w->proc, w->root, out);
		if (rc < 0)
			return rc;
	}
	if (w->memory) {
		/* The quick look counts shared pages for each who has them. */
		if (out->memory_bytes + scratch_bytes(w) > box->plan->memory_bytes)
			sample_exact(w->proc, w->root, &out->memory_bytes);
		out->memory_bytes += scratch_bytes(w);
	}
	if (cpu_us != SB_UNLIMITED)
		out->cpu_us = cpu_us;
	return 0;
}

void watch_renew(launch_watch *w, uint32_t budget)
{
	w->budget = budget;
	w->renew = w->cpu;
	w->due_us = wire_now_us();
}

/* What counts of it.  Sampled, it may fall: children that nobody waited for take theirs along. */
static uint64_t cpu_counted(launch_watch *w, uint64_t cpu_us)
{
	if (w->renew || cpu_us < w->cpu_base_us)
		w->cpu_base_us = cpu_us;
	w->renew = false;
	return cpu_us - w->cpu_base_us;
}

/* Microseconds until the next look.  Where CPU time alone is watched, half of what is left cannot be used
 * sooner on all processors: a session that rests need not be looked at ten times a second. */
static uint64_t next_look_us(const launch_watch *w, const lp_plan *p, const launch_sample *now)
{
	uint64_t next = sample_next_us(p, now, w->cpus), rest;

	if (w->memory || w->pids || now->cpu_us >= p->cpu_us)
		return next;
	rest = (p->cpu_us - now->cpu_us) / 2 / w->cpus;
	rest = rest < MOST_REST_US ? rest : MOST_REST_US;
	return rest > next ? rest : next;
}

uint32_t watch_look(launch_watch *w, const launch_box *box)
{
	const lp_plan *p = box->plan;
	launch_sample now;
	uint32_t limit = LP_LIMIT_NONE;

	if (sockets_exceed(&w->sockets, box))
		return LP_LIMIT_MEMORY;
	if (!samples(w) || wire_now_us() < w->due_us)
		return LP_LIMIT_NONE;
	if (take_sample(w, box, &now) < 0) {
		w->due_us = wire_now_us() + 1000;
		return ++w->failures < MAX_FAILURES ? LP_LIMIT_NONE : LP_LIMIT_UNENFORCEABLE;
	}
	w->failures = 0;
	if (cgroup_vanished(&box->cgroup))
		return LP_LIMIT_UNENFORCEABLE;
	if (w->cpu) {
		now.cpu_us = cpu_counted(w, now.cpu_us);
		cgroup_lease_cpu(&box->cgroup, p, now.cpu_us);
	}
	w->due_us = wire_now_us() + next_look_us(w, p, &now);
	if (w->memory && now.memory_bytes > p->memory_bytes)
		limit = LP_LIMIT_MEMORY;
	else if (w->cpu && now.cpu_us > p->cpu_us)
		limit = LP_LIMIT_CPU;
	else if (w->pids && now.tasks > p->pids)
		limit = LP_LIMIT_PIDS;
	if (limit) /* what is above it stays so for a while: no hurry */
		w->due_us = wire_now_us() + p->sample_us;
	return limit;
}
