/* SPDX-License-Identifier: MIT */
/*
 * launch.h - inside sb-launch: the supervisor and pid 1, one file per kernel feature.
 *
 * Static, single-threaded, no allocation after PLAN but the argument block of SPAWN.  Whatever
 * builds a wall is a function on the decoded plan that is async-signal-safe, so that a warm worker
 * can call it after fork.  Uses base's headers only for constants; links decode.c.
 */
#ifndef SB_LAUNCH_LAUNCH_H
#define SB_LAUNCH_LAUNCH_H

#include "protocol.h"
#include <sys/types.h>
#include <stdbool.h>

/* The first failure of a step; code path: fill and return -1. */
typedef struct launch_failure {
	int os_errno;
	char where[48], message[400];
} launch_failure;
int launch_fail(launch_failure *f, int os_errno, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 4, 5))); /* returns -1 */

static inline const char *launch_string(const lp_plan_view *v, uint32_t at)
{
	return v->strings + at;
}

/* seccomp.c: the guest's filter, compiled at build time (seccomp_filter.h is generated).  pid 1 of
 * a sandbox carries the same one.  host_net: not behind a network namespace of its own.  Last of all
 * steps. */
int seccomp_apply(bool host_net, launch_failure *f);
/* The one that a worker of ours is left (seccomp_worker.table). */
int seccomp_apply_worker(launch_failure *f);
/* The one for a guest without namespaces (seccomp_place.table).  supervisor: the pid that it must not get
 * at.  *listener: where it asks (ask.c), -1 where that cannot be had. */
int seccomp_apply_place(bool host_net, int supervisor, int *listener, launch_failure *f);
/* landlock.c: rules out of the mount table, on the new root (paths as inside), or without LP_ROOT on the
 * host's, where a row's descriptor among `fds` counts, and not its path.  *abi = what the
 * kernel has; ABI below 1 is a failure.  scope: also abstract sockets and signals (ABI 6).
 * scratch_fd: root of the scratch tmpfs or -1; everything beneath is allowed.  The guest reaches
 * parts of it through binds only, whose paths do not pass that root; pid 1 puts files by it. */
int landlock_apply(const lp_plan_view *v, const int *fds, uint32_t fd_count, int scratch_fd, bool scope,
		   uint32_t *abi, launch_failure *f);
uint32_t landlock_abi(void); /* 0 = none */

/* cgroup.c: in the supervisor.  Directories made, limits written and read back, descriptors of
 * tasks / cgroup.procs and of the counters opened (CLOEXEC). */
typedef struct launch_cgroup {
	uint32_t count, kind;          /* kind: LP_CG_* */
	char path[LP_MAX_CGROUPS][512];
	int join[LP_MAX_CGROUPS];      /* write "0" in the child before exec */
	int memory_peak, memory_oom, pids_events, cpu_usage, cpu_stat; /* counters; -1 = none */
	int kill;                      /* v2 cgroup.kill, -1 = none */
	int cpu_quota;                 /* of a CPU budget: see cgroup_lease_cpu(); the supervisor's alone */
} launch_cgroup;
void cgroup_init(launch_cgroup *cg);           /* empty: no directory, every descriptor -1 */
/* Begins with cgroup_init().  On failure nothing is left.  cgroup_kind NONE: stays empty. */
int cgroup_make(const lp_plan_view *v, launch_cgroup *cg, launch_failure *f);
int cgroup_join(const launch_cgroup *cg);      /* in the single-threaded child: 0 or -errno */
/* Overwrites what it knows: CPU times, peak, refused allocations (v2: allocations that failed at the
 * limit; v1 does not count these but by the kills they led to), OOM kills, refused forks. */
void cgroup_usage(const launch_cgroup *cg, lp_usage *usage);
/* The beginning of a file of a cgroup, NUL-ended, from offset 0; -1 with an empty text if there is none. */
ssize_t cgroup_read(int fd, char *text, size_t cap);
/* The number behind `key` at the beginning of a line, 0 if it is not there. */
uint64_t cgroup_keyed(const char *text, const char *key);
uint64_t cgroup_cpu_us(const launch_cgroup *cg); /* SB_UNLIMITED = not known */
/* A budget of CPU time: the group may use what is left of it, and LP_LEASE_US, until the next lease or for a
 * second.  Nothing to do where the plan has no budget, or the group no controller for it. */
void cgroup_lease_cpu(const launch_cgroup *cg, const lp_plan *p, uint64_t used_us);
/* It was removed under us, by whoever emptied it: nothing is limited any more. */
bool cgroup_vanished(const launch_cgroup *cg);
void cgroup_kill_all(const launch_cgroup *cg); /* SIGKILL to every process in it */
void cgroup_remove_empty(launch_cgroup *cg);   /* those with nothing in them */
uint32_t cgroup_remove(launch_cgroup *cg);     /* kills, bounded retries; number left */
void cgroup_close(launch_cgroup *cg);          /* all descriptors; paths stay */

/* cgroup_sweep.c: also in the library.  Removes the directories "sandbox-PID-START" and
 * "sandbox-PID-START-anything" right beneath `parent` whose process PID, started at START (field 22
 * of /proc/PID/stat), is dead; number removed. */
uint32_t cgroup_sweep(const char *parent);
uint64_t cgroup_start_time(int pid);           /* for such a name; 0 = no such process */

/* sample.c: in the supervisor, or where there is no pid namespace in who reaps.
 * One look over /proc at all descendants of `root` (root itself not counted in memory): anonymous +
 * shared memory, CPU time of the living and of reaped children.  Pages that several processes share
 * count once for each: memory_bytes is an upper bound.  -EOVERFLOW: more processes than it can see.
 * With SAMPLE_BOX as the root the /proc is a box's own: who is listed there counts. */
#define SAMPLE_BOX 0
typedef struct launch_sample { uint64_t memory_bytes, cpu_us, processes, tasks, took_us; } launch_sample;
int sample_tree(int proc_fd, int root_pid, launch_sample *out); /* 0 or -errno */
/* The same memory with shared pages counted once; dear, so only when sample_tree's is over the limit.
 * What cannot be looked at counts as in sample_tree.  On failure *memory_bytes stays. */
int sample_exact(int proc_fd, int root_pid, uint64_t *memory_bytes);
/* Threads of all processes of that user, wherever they run. */
uint64_t sample_tasks_of(int proc_fd, uint32_t uid);
/* When to look next, microseconds, from what is left of each limit; 5 ms to plan->sample_us. */
uint64_t sample_next_us(const lp_plan *plan, const launch_sample *now, uint32_t cpus);
/* SIGKILL to every descendant of `root`, until none is left or `rounds` passed; number left.  The dead
 * that nobody has reaped yet do not count. */
uint32_t sample_kill_tree(int proc_fd, int root_pid, uint32_t rounds);

/* userns.c proc.c mounts.c privileges.c spawn.c reap.c main.c: see each file's head. */

#endif /* SB_LAUNCH_LAUNCH_H */
