/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - directories of control groups, v1 and v2: made, limited, joined, read, removed.
 *
 * The supervisor makes them in the host's world and opens what is needed later: pid 1, which may not
 * open a thing there, joins and reads through these descriptors (the kernel checks who opened them).
 *
 * Joining.  v1: "0" into `tasks`, which moves one thread and skips the process-wide lock that makes
 * `cgroup.procs` wait for an RCU grace period (10 ms on a quiet machine); so the writer must be
 * single-threaded.  v2 has no such way between domains (`cgroup.threads` is EOPNOTSUPP there):
 * `cgroup.procs`.
 *
 * A budget of CPU time is no limit that a kernel has; a share of each second is.  So the budget is lent
 * second by second: what is left of it, written anew at each look of the watcher.  If that is late, or
 * never comes, the group gets no more than that in a second.
 *
 * Every limit is read back: a kernel that rounds to pages is fine, one that keeps another value is a
 * failure.  Swap counts as memory: memory.memsw.limit_in_bytes on v1 (where the kernel accounts swap;
 * else swappiness 0 keeps the group out of it), memory.swap.max = 0 on v2.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UNLIMITED ((uint64_t)-1)
#define MOST_LEASE_US (1ull << 40) /* beyond it a budget is no share that a kernel takes: 12 days */
#define PIDS_MOST 4194304u /* PID_MAX_LIMIT: more there never are, and the file takes no more */
#define REMOVE_ROUNDS 200u
#define REMOVE_FIRST_NS 100000L
#define REMOVE_PAUSE_NS 2000000L

/* ---- Small files ------------------------------------------------------------------------------ */

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A directory of a hierarchy: opened once, named in messages. */
typedef struct group {
	int fd;
	const char *path;
} group;

ssize_t cgroup_read(int fd, char *text, size_t cap)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, cap - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return n;
}

static int open_in(const group *g, const char *name, int flags)
{
	return openat(g->fd, name, flags | O_CLOEXEC | O_NOFOLLOW);
}

/* Writes and reads back what is there then; -1 with errno. */
static int write_in(const group *g, const char *name, const char *text, char *got, size_t cap)
{
	int fd = open_in(g, name, O_RDWR), saved;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	if (n >= 0)
		n = cgroup_read(fd, got, cap);
	saved = errno;
	close(fd);
	got[n > 0 ? strcspn(got, "\n") : 0] = 0;
	errno = saved;
	return n < 0 ? -1 : 0;
}

uint64_t cgroup_keyed(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (text) {
		if (!strncmp(text, key, len) && text[len] == ' ')
			return strtoull(text + len + 1, NULL, 10);
		text = strchr(text, '\n');
		text += !!text;
	}
	return 0;
}

/* ---- Limits ------------------------------------------------------------------------------------ */

static int set_failed(launch_failure *f, const group *g, const char *name, const char *value)
{
	return launch_fail(f, errno, "cgroup", "cannot write \"%s\" to \"%s/%s\"", value, g->path,
			   name);
}

/* One number, read back; `unit`: the kernel may round down by less than that. */
static int set_number(const group *g, const char *name, uint64_t value, uint64_t unit,
		      launch_failure *f)
{
	char text[32], got[64];
	uint64_t is;

	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	if (write_in(g, name, text, got, sizeof got) < 0)
		return set_failed(f, g, name, text);
	is = strtoull(got, NULL, 10);
	if (got[0] < '0' || got[0] > '9' || is > value || value - is >= unit)
		return launch_fail(f, 0, "cgroup", "\"%s/%s\" does not keep %s but %s", g->path, name,
				   text, got);
	return 0;
}

/* v1 counts the buffers of TCP and UDP apart from the rest, and only once they have a limit. */
static int limit_sockets(uint64_t bytes, uint64_t page, const group *g, launch_failure *f)
{
	uint64_t share = LP_SOCKET_BYTES(bytes);

	return set_number(g, "memory.kmem.tcp.limit_in_bytes", share < page ? page : share, page, f);
}

static int limit_memory(const lp_plan *p, const group *g, launch_failure *f)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = p->memory_bytes;
	bool v2 = p->cgroup_kind != LP_CG_V1;
	char got[32];
	int rc;

	if (bytes == UNLIMITED)
		return 0;
	if (set_number(g, v2 ? "memory.max" : "memory.limit_in_bytes", bytes, page, f) < 0)
		return -1;
	if (!v2 && limit_sockets(bytes, page, g, f) < 0)
		return -1;
	rc = v2 ? set_number(g, "memory.swap.max", 0, 1, f)
		: set_number(g, "memory.memsw.limit_in_bytes", bytes, page, f);
	if (!rc || f->os_errno != ENOENT)
		return rc;
	/* swap is not accounted here; v1 can at least be told to leave the group out of it */
	if (!v2)
		write_in(g, "memory.swappiness", "0", got, sizeof got);
	return 0;
}

typedef struct cpu_share {
	uint64_t quota, period;      /* quota UNLIMITED = none */
} cpu_share;

static cpu_share share_of(const lp_plan *p, uint64_t used_us)
{
	/* The kernel takes no quota below 1 ms: small shares need a longer period, of 1 s at most. */
	cpu_share s = { UNLIMITED, 1000000 };

	if (p->cpu_millicores != UNLIMITED) {
		s.period = p->cpu_millicores < 10 ? 1000000 : 100000;
		s.quota = p->cpu_millicores * (s.period / 1000);
	}
	if (p->cpu_us < MOST_LEASE_US) {
		uint64_t left = (p->cpu_us > used_us ? p->cpu_us - used_us : 0) + LP_LEASE_US;

		s.quota = left < s.quota ? left : s.quota;
	}
	return s;
}

static int limit_cpu(const lp_plan *p, const group *g, launch_failure *f)
{
	cpu_share share = share_of(p, 0);
	uint64_t period = share.period, quota = share.quota;
	char text[64], got[64];

	if (quota == UNLIMITED)
		return 0;
	if (p->cpu_millicores != UNLIMITED && p->cpu_millicores > UINT32_MAX)
		return launch_fail(f, ERANGE, "cgroup", "%llu millicores are more than a cgroup takes",
				   (unsigned long long)p->cpu_millicores);
	if (p->cgroup_kind == LP_CG_V1) {
		if (set_number(g, "cpu.cfs_period_us", period, 1, f) < 0)
			return -1;
		/* a budget's share is refused where the group above has a smaller one: that holds, too */
		if (set_number(g, "cpu.cfs_quota_us", quota, 1, f) < 0 &&
		    (f->os_errno != EINVAL || p->cpu_millicores != UNLIMITED))
			return -1;
		return 0;
	}
	snprintf(text, sizeof text, "%llu %llu", (unsigned long long)quota,
		 (unsigned long long)period);
	if (write_in(g, "cpu.max", text, got, sizeof got) < 0)
		return set_failed(f, g, "cpu.max", text);
	if (strcmp(got, text))
		return launch_fail(f, 0, "cgroup", "\"%s/cpu.max\" does not keep %s but %s", g->path,
				   text, got);
	return 0;
}

static int limit_all(const lp_plan *p, uint32_t controllers, const group *g, launch_failure *f)
{
	if ((controllers & LP_CTL_MEMORY) && limit_memory(p, g, f) < 0)
		return -1;
	if ((controllers & LP_CTL_PIDS) && p->pids != UNLIMITED &&
	    set_number(g, "pids.max", p->pids < PIDS_MOST ? p->pids : PIDS_MOST, 1, f) < 0)
		return -1;
	if ((controllers & LP_CTL_CPU) && limit_cpu(p, g, f) < 0)
		return -1;
	return 0;
}

/* ---- Making ------------------------------------------------------------------------------------ */

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (;;) {
		text += strspn(text, " \n");
		if (!*text)
			return false;
		if (strcspn(text, " \n") == len && !memcmp(text, word, len))
			return true;
		text += strcspn(text, " \n");
	}
}

/* v2: what the parent hands down.  It must hold no process of its own for that. */
static int hand_down(const group *parent, uint32_t controllers, launch_failure *f)
{
	static const struct {
		uint32_t bit;
		const char *name, *order;
	} all[] = { { LP_CTL_MEMORY, "memory", "+memory" }, { LP_CTL_PIDS, "pids", "+pids" },
		{ LP_CTL_CPU, "cpu", "+cpu" } };
	int fd = open_in(parent, "cgroup.subtree_control", O_RDONLY);
	char on[256];
	size_t i;

	cgroup_read(fd, on, sizeof on);
	close_one(&fd);
	for (i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (!(controllers & all[i].bit) || has_word(on, all[i].name))
			continue;
		if (write_in(parent, "cgroup.subtree_control", all[i].order, on, sizeof on) < 0)
			return set_failed(f, parent, "cgroup.subtree_control", all[i].order);
	}
	return 0;
}

static void open_counters(launch_cgroup *cg, const group *g, uint32_t controllers)
{
	bool v2 = cg->kind == LP_CG_V2;

	if (controllers & LP_CTL_MEMORY) {
		/* memory.peak: since 5.19 */
		cg->memory_peak = open_in(g, v2 ? "memory.peak" : "memory.max_usage_in_bytes", O_RDONLY);
		cg->memory_oom = open_in(g, v2 ? "memory.events" : "memory.oom_control", O_RDONLY);
	}
	if (controllers & LP_CTL_PIDS)
		cg->pids_events = open_in(g, "pids.events", O_RDONLY);
	if (v2) {
		cg->cpu_stat = open_in(g, "cpu.stat", O_RDONLY);
		cg->kill = open_in(g, "cgroup.kill", O_WRONLY); /* since 5.14 */
	}
	if (!v2 && (controllers & LP_CTL_CPUACCT)) {
		cg->cpu_usage = open_in(g, "cpuacct.usage", O_RDONLY);
		cg->cpu_stat = open_in(g, "cpuacct.stat", O_RDONLY);
	}
}

static void open_quota(launch_cgroup *cg, const group *g, const lp_plan *p, uint32_t controllers)
{
	if ((controllers & LP_CTL_CPU) && p->cpu_us < MOST_LEASE_US)
		cg->cpu_quota = open_in(g, cg->kind == LP_CG_V2 ? "cpu.max" : "cpu.cfs_quota_us", O_WRONLY);
}

static int furnish(const lp_plan *p, uint32_t controllers, const group *g, launch_cgroup *cg,
		   launch_failure *f)
{
	int *join = &cg->join[cg->count - 1];

	if (limit_all(p, controllers, g, f) < 0)
		return -1;
	*join = open_in(g, cg->kind == LP_CG_V1 ? "tasks" : "cgroup.procs", O_WRONLY);
	if (*join < 0)
		return launch_fail(f, errno, "cgroup", "cannot open the way into \"%s\"", g->path);
	open_counters(cg, g, controllers);
	open_quota(cg, g, p, controllers);
	return 0;
}

static int make_below(const lp_plan_view *v, uint32_t controllers, const group *parent,
		      launch_cgroup *cg, launch_failure *f)
{
	const char *name = launch_string(v, v->plan->cgroup_name);
	group g = { -1, cg->path[cg->count] };
	int n = snprintf(cg->path[cg->count], sizeof cg->path[0], "%s/%s", parent->path, name), rc;

	if (n < 0 || (size_t)n >= sizeof cg->path[0])
		return launch_fail(f, ENAMETOOLONG, "cgroup", "the path of cgroup \"%s\" is too long",
				   parent->path);
	if (cg->kind == LP_CG_V2 && hand_down(parent, controllers, f) < 0)
		return -1;
	if (mkdirat(parent->fd, name, 0755) < 0)
		return launch_fail(f, errno, "cgroup", "cannot make \"%s\"", g.path);
	cg->join[cg->count++] = -1; /* from here on cgroup_remove() knows it */
	g.fd = openat(parent->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (g.fd < 0)
		return launch_fail(f, errno, "cgroup", "cannot open \"%s\"", g.path);
	rc = furnish(v->plan, controllers, &g, cg, f);
	close_one(&g.fd);
	return rc;
}

static int make_one(const lp_plan_view *v, uint32_t at, launch_cgroup *cg, launch_failure *f)
{
	const lp_cgroup *c = &v->plan->cgroups[at];
	group parent = { -1, v->scope ? v->scope : launch_string(v, c->parent) };
	int rc;

	parent.fd = openat(AT_FDCWD, parent.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent.fd < 0)
		return launch_fail(f, errno, "cgroup", "cannot open cgroup \"%s\"", parent.path);
	rc = make_below(v, c->controllers, &parent, cg, f);
	close_one(&parent.fd);
	return rc;
}

void cgroup_init(launch_cgroup *cg)
{
	cg->count = 0;
	cg->kind = LP_CG_NONE;
	cg->memory_peak = cg->memory_oom = cg->pids_events = -1;
	cg->cpu_usage = cg->cpu_stat = cg->kill = cg->cpu_quota = -1;
}

int cgroup_make(const lp_plan_view *v, launch_cgroup *cg, launch_failure *f)
{
	uint32_t i;

	cgroup_init(cg);
	cg->kind = v->plan->cgroup_kind == LP_CG_SCOPE ? LP_CG_V2 : v->plan->cgroup_kind;
	for (i = 0; i < v->plan->cgroup_count; i++) {
		if (make_one(v, i, cg, f) < 0) {
			cgroup_close(cg);
			cgroup_remove(cg);
			return -1;
		}
	}
	return 0;
}

int cgroup_join(const launch_cgroup *cg)
{
	uint32_t i;

	for (i = 0; i < cg->count; i++)
		if (write(cg->join[i], "0", 1) != 1)
			return -errno;
	return 0;
}

void cgroup_lease_cpu(const launch_cgroup *cg, const lp_plan *p, uint64_t used_us)
{
	cpu_share share = share_of(p, used_us);
	char text[64];
	int n;

	if (cg->cpu_quota < 0)
		return;
	if (cg->kind == LP_CG_V2)
		n = snprintf(text, sizeof text, "%llu %llu", (unsigned long long)share.quota,
			     (unsigned long long)share.period);
	else
		n = snprintf(text, sizeof text, "%llu", (unsigned long long)share.quota);
	/* where it cannot be written, the last one stands, or the group above has a smaller one */
	if (pwrite(cg->cpu_quota, text, (size_t)n, 0) < 0)
		return;
}

/* ---- Reading ----------------------------------------------------------------------------------- */

static uint64_t read_number(int fd)
{
	char text[32];

	return cgroup_read(fd, text, sizeof text) > 0 ? strtoull(text, NULL, 10) : 0;
}

uint64_t cgroup_cpu_us(const launch_cgroup *cg)
{
	char text[1024];

	if (cg->cpu_usage >= 0)
		return read_number(cg->cpu_usage) / 1000;
	if (cg->kind == LP_CG_V2 && cgroup_read(cg->cpu_stat, text, sizeof text) > 0)
		return cgroup_keyed(text, "usage_usec");
	return UNLIMITED;
}

static void usage_cpu(const launch_cgroup *cg, lp_usage *usage)
{
	bool v2 = cg->kind == LP_CG_V2;
	uint64_t total = cgroup_cpu_us(cg), user, system;
	char text[1024];

	if (total == UNLIMITED)
		return;
	usage->user_us = total;
	usage->system_us = 0;
	if (cgroup_read(cg->cpu_stat, text, sizeof text) <= 0)
		return;
	/* v1 tells the two in ticks of 10 ms: their ratio divides the exact sum */
	user = cgroup_keyed(text, v2 ? "user_usec" : "user");
	system = cgroup_keyed(text, v2 ? "system_usec" : "system");
	if (user + system) {
		usage->system_us = (uint64_t)((double)total * (double)system /
					      (double)(user + system));
		usage->user_us = total - usage->system_us;
	}
}

static void usage_memory(const launch_cgroup *cg, lp_usage *usage)
{
	char text[1024];

	if (cg->memory_peak >= 0)
		usage->peak_memory_bytes = read_number(cg->memory_peak);
	if (cgroup_read(cg->memory_oom, text, sizeof text) <= 0)
		return;
	usage->oom_kills = cgroup_keyed(text, "oom_kill");
	/* v1's failcnt also counts each time that reclaiming page cache helped: of no use here */
	usage->memory_refused = cg->kind == LP_CG_V2 ? cgroup_keyed(text, "oom") : usage->oom_kills;
}

bool cgroup_vanished(const launch_cgroup *cg)
{
	char text[64];
	int fd = cg->memory_oom >= 0 ? cg->memory_oom : cg->pids_events;

	return fd >= 0 && cgroup_read(fd, text, sizeof text) < 0 && errno == ENODEV;
}

void cgroup_usage(const launch_cgroup *cg, lp_usage *usage)
{
	char text[256];

	usage_cpu(cg, usage);
	usage_memory(cg, usage);
	if (cgroup_read(cg->pids_events, text, sizeof text) > 0)
		usage->pids_refused = cgroup_keyed(text, "max");
}

/* ---- The end ----------------------------------------------------------------------------------- */

static void kill_listed(const char *dir)
{
	char path[640], text[4096], *at = text, *end;
	int fd;

	snprintf(path, sizeof path, "%s/cgroup.procs", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cgroup_read(fd, text, sizeof text);
	close_one(&fd);
	for (;;) {
		long pid = strtol(at, &end, 10);

		/* a number without its newline may be cut; 0 is a process of another pid namespace */
		if (end == at || *end != '\n')
			return;
		if (pid > 1 && pid != getpid())
			kill((pid_t)pid, SIGKILL);
		at = end + 1;
	}
}

void cgroup_kill_all(const launch_cgroup *cg)
{
	uint32_t i;

	if (cg->kill >= 0 && write(cg->kill, "1", 1) == 1)
		return;
	for (i = 0; i < cg->count; i++)
		kill_listed(cg->path[i]);
}

void cgroup_remove_empty(launch_cgroup *cg)
{
	uint32_t i, kept = 0;

	for (i = 0; i < cg->count; i++) {
		if (rmdir(cg->path[i]) == 0 || errno == ENOENT) {
			close_one(&cg->join[i]);
			continue;
		}
		if (kept != i) {
			memcpy(cg->path[kept], cg->path[i], sizeof cg->path[0]);
			cg->join[kept] = cg->join[i];
		}
		kept++;
	}
	cg->count = kept;
}

uint32_t cgroup_remove(launch_cgroup *cg)
{
	struct timespec pause = { .tv_nsec = REMOVE_FIRST_NS };
	uint32_t round, left;

	for (round = 0; round < REMOVE_ROUNDS; round++) {
		cgroup_remove_empty(cg);
		if (!cg->count)
			break;
		cgroup_kill_all(cg);
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < REMOVE_PAUSE_NS)
			pause.tv_nsec *= 2;
	}
	left = cg->count;
	cg->count = 0;
	return left;
}

void cgroup_close(launch_cgroup *cg)
{
	uint32_t i;

	for (i = 0; i < cg->count; i++)
		close_one(&cg->join[i]);
	close_one(&cg->memory_peak);
	close_one(&cg->memory_oom);
	close_one(&cg->pids_events);
	close_one(&cg->cpu_usage);
	close_one(&cg->cpu_stat);
	close_one(&cg->kill);
	close_one(&cg->cpu_quota);
}
