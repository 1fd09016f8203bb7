/* SPDX-License-Identifier: MIT */
/*
 * watch.c - looks now and then whether a limit that no cgroup enforces is exceeded.
 *
 * Memory is sampled over /proc, plus what lies in the scratch tmpfs; CPU time comes from the cgroup
 * where there is one, else from /proc as well; what is left of it is lent anew.  What the sockets of a
 * version 1 cgroup hold is looked at in watch_sockets.c.  Three looks in a row
 * that fail mean that the limit cannot be enforced, and that ends the run as well.
 *
 * A box that sleeps may wake at any time, so it is looked at as often as one that works; but a look at it costs
 * less (sample_rest.c), and the larger the part of its limit that is left, the later the next one.  Only where
 * looks come late, for the machine has more to do than it can, boxes that sleep leave the processors to looks at
 * those that do not.
 */
#include "box.h"
#include "sample_proc.h"
#include "sys.h"

#include <linux/magic.h>
#include <sched.h>
#include <sys/vfs.h>

#define MAX_FAILURES 3u
#define MOST_REST_US 5000000u
#define MOST_MEMORY_REST_US 100000u
/* What no cpu can fill in a microsecond: 16 GiB/s; in pages of 4 KiB, one fault after the other, 4 GiB/s. */
#define MOST_FILL_BYTES_PER_US 17180u
#define SMALL_FILL_BYTES_PER_US 4295u
/* A box at rest is left alone for so many times as long as looks come late. */
#define CROWDED 16u

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

/* One that has us in it is no box's. */
static bool is_own_proc(int fd)
{
	struct statfs fs;
	char self[16];
	sample_process root;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC &&
	       readlinkat(fd, "self", self, sizeof self) < 0 && errno == ENOENT && !sample_read(fd, 1, &root);
}

void watch_own_proc(launch_watch *w, int proc_fd)
{
	bool own = samples(w) && is_own_proc(proc_fd);
	int other = own ? w->proc : proc_fd;

	if (own) {
		w->proc = proc_fd;
		w->root = SAMPLE_BOX;
	}
	if (other >= 0)
		close(other);
}

bool watch_small_pages(const lp_plan *p)
{
	return (p->steps & LP_SAMPLE) && (p->steps & LP_SECCOMP) && (p->steps & LP_PIDNS) &&
	       p->memory_bytes != SB_UNLIMITED && p->cgroup_kind == LP_CG_NONE;
}

bool watch_on(const launch_watch *w)
{
	return samples(w) || w->sockets.on;
}

uint64_t watch_wait_us(const launch_watch *w)
{
	uint64_t now, due = samples(w) && !w->waits ? w->due_us : UINT64_MAX;

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

static int look_at_processes(launch_watch *w, launch_sample *out)
{
	if (w->proc < 0)
		return -ENOENT;
	return w->root == SAMPLE_BOX ? sample_rest_look(&w->rest, w->proc, out) : sample_tree(w->proc, w->root, out);
}

/* The quick look counts shared pages for each who has them. */
static void count_shared_once(launch_watch *w, launch_sample *out)
{
	if (sample_exact(w->proc, w->root, &out->memory_bytes) == 0)
		sample_rest_exact(&w->rest, out->memory_bytes);
}

static int take_sample(launch_watch *w, const launch_box *box, launch_sample *out)
{
	uint64_t cpu_us = w->cpu ? cgroup_cpu_us(&box->cgroup) : 0, scratch;
	int rc;

	*out = (launch_sample){ 0 };
	if (w->memory || w->pids || cpu_us == SB_UNLIMITED) {
		rc = look_at_processes(w, out);
		if (rc < 0)
			return rc;
	}
	if (w->memory) {
		scratch = scratch_bytes(w);
		if (out->memory_bytes + scratch > box->plan->memory_bytes)
			count_shared_once(w, out);
		out->memory_bytes += scratch;
	}
	if (cpu_us != SB_UNLIMITED)
		out->cpu_us = cpu_us;
	return 0;
}

bool watch_sees(launch_watch *w, const launch_box *box)
{
	launch_sample now;

	return !samples(w) || take_sample(w, box, &now) == 0;
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

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* In which the memory that is left cannot be filled. */
static uint64_t memory_rest_us(const launch_watch *w, const lp_plan *p, const launch_sample *now)
{
	uint64_t rate = watch_small_pages(p) ? SMALL_FILL_BYTES_PER_US : MOST_FILL_BYTES_PER_US;
	uint64_t rest = (p->memory_bytes - now->memory_bytes) / (rate * w->cpus);

	if (w->rest.sure)
		rest = most(rest, w->late_us * CROWDED);
	return least(rest, MOST_MEMORY_REST_US);
}

/* Microseconds until the next look.  Half of the CPU time that is left cannot be used sooner on all processors:
 * a session that rests need not be looked at ten times a second. */
static uint64_t next_look_us(const launch_watch *w, const lp_plan *p, const launch_sample *now)
{
	uint64_t next = sample_next_us(p, now, w->cpus), rest = MOST_REST_US;

	if (w->pids || now->cpu_us >= p->cpu_us || now->memory_bytes >= p->memory_bytes)
		return next;
	if (w->memory)
		rest = memory_rest_us(w, p, now);
	if (p->cpu_us != SB_UNLIMITED)
		rest = least(rest, (p->cpu_us - now->cpu_us) / 2 / w->cpus);
	return most(rest, next);
}

uint32_t watch_look(launch_watch *w, const launch_box *box)
{
	const lp_plan *p = box->plan;
	uint64_t begin = wire_now_us();
	launch_sample now;
	uint32_t limit = LP_LIMIT_NONE;

	if (sockets_exceed(&w->sockets, box))
		return LP_LIMIT_MEMORY;
	if (!samples(w) || w->waits || begin < w->due_us)
		return LP_LIMIT_NONE;
	w->late_us = (w->late_us * 7 + (begin - w->due_us)) / 8;
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
