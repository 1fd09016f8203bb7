/* SPDX-License-Identifier: MIT */
/*
 * group_watch.c - a limit of memory and CPU time over a process group, by looking now and then.
 *
 * Who belongs: whoever has the group, whose parent belongs, and who belonged at the look before, by pid and
 * start time: an interactive shell gives each job a group of its own, setsid makes a new one, and an
 * orphan has another parent.  CPU time of one that was reaped is in its parent's sum; of one that vanished
 * without that (its parent ignores SIGCHLD, or is the application) the last known time is kept.
 *
 * One thread, which looks, sleeps, and ends once it has killed.  It shares `state` and `stopping` with the
 * callers, under the lock.
 */
#include "../base/base.h"
#include "../core/core.h"
#include "../launch/sample_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sandbox/backend.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GAP_US 20000u
#define MAX_MEMBERS 32768u
#define MAX_FAILURES 3
#define MAX_PASSES 64
#define KILL_ROUNDS 200
#define KILL_PAUSE_US 2000u

enum { RUNNING = 0, MEMORY, CPU, BROKEN, OVER };

typedef struct crowd {
	sample_process *at;          /* ascending pids */
	size_t count, cap;
} crowd;

struct sb_group_watch {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool joined, stopping;
	int state;
	sb_error why;                /* BROKEN */
	pid_t owner;                 /* not a forked child's to join */

	/* the thread's alone */
	int proc, pgid;
	uint64_t memory_bytes, cpu_us;
	crowd seen, before;
	uint64_t vanished_ticks;     /* of those that no parent's sum has */
	uint32_t cpus;
};

/* ---- Looking --------------------------------------------------------------------------------------- */

static int crowd_add(crowd *c, const sample_process *p)
{
	sample_process *at;

	if (c->count == MAX_MEMBERS)
		return -EOVERFLOW;
	at = buf_grow(c->at, c->count, &c->cap, sizeof *at);
	if (!at)
		return -ENOMEM;
	c->at = at;
	c->at[c->count++] = *p;
	return 0;
}

static sample_process *crowd_find(const crowd *c, int pid)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->at[mid].pid == pid)
			return &c->at[mid];
		if (c->at[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static int list_one(crowd *c, int proc, const char *name)
{
	int pid = sample_number(name), rc;
	sample_process p;

	if (!pid)
		return 0;
	rc = sample_read(proc, pid, &p);
	if (rc == -ENOENT || rc == -ESRCH) /* it has ended meanwhile */
		return 0;
	return rc ? rc : crowd_add(c, &p);
}

/* Everybody; 0 or -errno. */
static int list_all(crowd *c, int proc)
{
	char entries[8192] __attribute__((aligned(8)));
	long n, at;
	int rc = 0;

	c->count = 0;
	if (lseek(proc, 0, SEEK_SET) < 0)
		return -errno;
	while (!rc && (n = syscall(SYS_getdents64, proc, entries, sizeof entries)) > 0)
		for (at = 0; at < n && !rc;) {
			const struct sample_dirent *e = (const void *)(entries + at);

			at += e->len;
			rc = list_one(c, proc, e->name);
		}
	return rc || n >= 0 ? rc : -errno;
}

static bool was_member(const sb_group_watch *w, const sample_process *p)
{
	const sample_process *old = crowd_find(&w->before, p->pid);

	return old && old->start == p->start;
}

/* Leaves those that belong; they are at least as many as before but for those that ended. */
static void keep_members(sb_group_watch *w)
{
	crowd *c = &w->seen;
	bool more = true;
	size_t i, kept = 0;
	int pass;

	for (i = 0; i < c->count; i++)
		c->at[i].inside = c->at[i].group == w->pgid || was_member(w, &c->at[i]);
	for (pass = 0; more && pass < MAX_PASSES; pass++) {
		more = false;
		for (i = 0; i < c->count; i++) {
			const sample_process *parent =
				c->at[i].inside ? NULL : crowd_find(c, c->at[i].parent);

			if (parent && parent->inside)
				more = c->at[i].inside = true;
		}
	}
	for (i = 0; i < c->count; i++)
		if (c->at[i].inside)
			c->at[kept++] = c->at[i];
	c->count = kept;
}

/* What the dead of this look had used, less what their parents' sums have grown by. */
static void count_vanished(sb_group_watch *w)
{
	uint64_t lost = 0, grown = 0;
	size_t i;

	for (i = 0; i < w->before.count; i++) {
		const sample_process *old = &w->before.at[i], *now = crowd_find(&w->seen, old->pid);

		if (!now || now->start != old->start)
			lost += old->own_ticks + old->children_ticks;
		else if (now->children_ticks > old->children_ticks)
			grown += now->children_ticks - old->children_ticks;
	}
	w->vanished_ticks += lost > grown ? lost - grown : 0;
}

static uint64_t memory_of(const sb_group_watch *w, bool exact)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < w->seen.count; i++)
		if (!w->seen.at[i].dead)
			sum += exact ? sample_memory_exact(w->proc, &w->seen.at[i])
				     : sample_memory(w->proc, &w->seen.at[i]);
	return sum;
}

static uint64_t cpu_of(const sb_group_watch *w)
{
	long per_second = sysconf(_SC_CLK_TCK);
	uint64_t ticks = w->vanished_ticks;
	size_t i;

	for (i = 0; i < w->seen.count; i++)
		ticks += w->seen.at[i].own_ticks + w->seen.at[i].children_ticks;
	return ticks * (1000000 / (uint64_t)(per_second > 0 ? per_second : 100));
}

/* 0 or -errno. */
static int look(sb_group_watch *w, launch_sample *now)
{
	uint64_t begin = clock_now_ns();
	crowd old = w->before;
	int rc = list_all(&w->seen, w->proc);

	*now = (launch_sample){ 0 };
	if (rc)
		return rc;
	keep_members(w);
	count_vanished(w);
	if (w->memory_bytes != SB_UNLIMITED)
		now->memory_bytes = memory_of(w, false);
	/* the quick sum counts shared pages for each who has them */
	if (now->memory_bytes >= w->memory_bytes)
		now->memory_bytes = memory_of(w, true);
	now->cpu_us = cpu_of(w);
	now->processes = w->seen.count;
	now->took_us = (clock_now_ns() - begin) / 1000;
	w->before = w->seen;
	w->seen = old;
	return 0;
}

/* ---- The thread ------------------------------------------------------------------------------------ */

static void pause_us(uint64_t us)
{
	const struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

/* Everybody, until nobody is left or it is in vain; if nothing can be seen, at least the group. */
static void kill_all(sb_group_watch *w)
{
	launch_sample now;
	size_t i, alive = 1;
	int round;

	for (round = 0; alive && round < KILL_ROUNDS; round++) {
		if (look(w, &now)) {
			kill(-w->pgid, SIGKILL);
			pause_us(KILL_PAUSE_US);
			continue;
		}
		for (i = alive = 0; i < w->before.count; i++) {
			if (w->before.at[i].dead)
				continue;
			alive++;
			sample_kill(w->proc, &w->before.at[i]);
		}
		if (alive)
			pause_us(KILL_PAUSE_US);
	}
}

static int judge(const sb_group_watch *w, const launch_sample *now)
{
	if (now->memory_bytes >= w->memory_bytes)
		return MEMORY;
	if (now->cpu_us >= w->cpu_us)
		return CPU;
	return now->processes ? RUNNING : OVER;
}

/* Sleeps until the next look; false: it is not to come. */
static bool wait_us(sb_group_watch *w, uint64_t us)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)us * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&w->lock);
	while (!w->stopping && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
		;
	go_on = !w->stopping;
	pthread_mutex_unlock(&w->lock);
	return go_on;
}

static void settle(sb_group_watch *w, int state, int os_errno)
{
	pthread_mutex_lock(&w->lock);
	w->state = state;
	if (state == BROKEN)
		error_errno(&w->why, SB_ERR_UNENFORCEABLE, os_errno, "sampler",
			    "memory and CPU time of the group could not be measured any more, so it was killed; "
			    "see that /proc can be read, and `ulimit -n`");
	pthread_mutex_unlock(&w->lock);
}

static void *watch_main(void *argument)
{
	sb_group_watch *w = argument;
	const lp_plan plan = { .memory_bytes = w->memory_bytes, .cpu_us = w->cpu_us, .sample_us = GAP_US };
	launch_sample now;
	uint64_t next = 1000;
	int failures = 0, state = RUNNING, rc = 0;

	while (state == RUNNING && wait_us(w, next)) {
		rc = look(w, &now);
		if (rc) {
			next = 1000;
			state = ++failures < MAX_FAILURES ? RUNNING : BROKEN;
			continue;
		}
		failures = 0;
		next = sample_next_us(&plan, &now, w->cpus);
		state = judge(w, &now);
	}
	if (state == RUNNING)
		return NULL;
	/* first told, then done: whoever reaps the guest finds the reason */
	settle(w, state, -rc);
	if (state != OVER)
		kill_all(w);
	return NULL;
}

/* ---- For backends ------------------------------------------------------------------------------------- */

/* A /proc that does not show the first process (hidepid) would not show one that has made itself undumpable. */
int sb_group_watch_supported(void)
{
	static int known; /* 0 not yet, 1 no, 2 yes: whoever comes first, all find the same */
	int found = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
	sample_process self, first;

	if (!found) {
		int FD_AUTO proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		found = proc >= 0 && !sample_read(proc, getpid(), &self) && self.start &&
				sample_memory(proc, &self) && !sample_read(proc, 1, &first) ? 2 : 1;
		__atomic_store_n(&known, found, __ATOMIC_RELEASE);
	}
	return found == 2;
}

static void release(sb_group_watch *w)
{
	fd_close(&w->proc);
	free(w->seen.at);
	free(w->before.at);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static int start_thread(sb_group_watch *w, sb_error *err)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&w->thread, NULL, watch_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? error_errno(err, SB_ERR_IO, rc, "sampler", "cannot start the watcher's thread") : 0;
}

static sb_group_watch *make(int64_t pgid, const sb_limits *limits)
{
	sb_group_watch *w = calloc(1, sizeof *w);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_condattr_t attr;

	if (!w)
		return NULL;
	w->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w->pgid = (int)pgid;
	w->owner = getpid();
	w->cpus = cpus > 0 ? (uint32_t)cpus : 1;
	w->memory_bytes = limits->memory_bytes ? limits->memory_bytes : SB_UNLIMITED;
	w->cpu_us = limits->cpu_ms && limits->cpu_ms < SB_UNLIMITED / 1000 ? limits->cpu_ms * 1000
									  : SB_UNLIMITED;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	return w;
}

int sb_group_watch_start(int64_t pgid, const sb_limits *limits, sb_group_watch **watch,
			 sb_error *err)
{
	launch_sample now;
	sb_group_watch *w;
	sb_limits l;
	int rc;

	if (!watch || pgid <= 1 || pgid > INT32_MAX)
		return error_set(err, SB_ERR_INVALID, "sampler", "that is no process group of a guest");
	*watch = NULL;
	rc = record_read(&l, sizeof l, limits, "sb_limits", err);
	if (rc < 0)
		return rc;
	if ((!l.memory_bytes || l.memory_bytes == SB_UNLIMITED) &&
	    (!l.cpu_ms || l.cpu_ms == SB_UNLIMITED))
		return 0;
	if (!sb_group_watch_supported())
		return error_set(err, SB_ERR_UNENFORCEABLE, "sampler",
				 "memory and CPU time cannot be measured here; mount /proc, without hidepid, or leave "
				 "the limits out");
	w = make(pgid, &l);
	if (!w)
		return error_no_memory(err, "sampler");
	rc = look(w, &now);
	if (rc)
		rc = error_errno(err, SB_ERR_UNENFORCEABLE, -rc, "sampler", "cannot look at the processes; see "
				 "that /proc can be read, and `ulimit -n`");
	else if (!now.processes)
		rc = error_set(err, SB_ERR_NOT_FOUND, "sampler", "there is no process group %lld",
			       (long long)pgid);
	if (!rc)
		rc = start_thread(w, err);
	if (rc) {
		release(w);
		return rc;
	}
	*watch = w;
	return 0;
}

static int state_of(const sb_group_watch *watch, sb_error *why)
{
	sb_group_watch *w = (sb_group_watch *)watch; /* its lock only */
	int state;

	if (!w)
		return RUNNING;
	pthread_mutex_lock(&w->lock);
	state = w->state;
	if (why && state == BROKEN)
		*why = w->why;
	pthread_mutex_unlock(&w->lock);
	return state;
}

int sb_group_watch_unenforceable(const sb_group_watch *watch, sb_error *err)
{
	return state_of(watch, err) == BROKEN ? SB_ERR_UNENFORCEABLE : 0;
}

const char *sb_group_watch_exceeded(const sb_group_watch *watch)
{
	int state = state_of(watch, NULL);

	return state == MEMORY ? "memory" : state == CPU ? "cpu" : "";
}

void sb_group_watch_stop(sb_group_watch *watch)
{
	if (!watch || watch->joined || watch->owner != getpid())
		return;
	pthread_mutex_lock(&watch->lock);
	watch->stopping = true;
	pthread_cond_signal(&watch->wake);
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	watch->joined = true;
}

void sb_group_watch_free(sb_group_watch *watch)
{
	if (!watch)
		return;
	sb_group_watch_stop(watch);
	release(watch);
}
