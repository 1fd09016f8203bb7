/* SPDX-License-Identifier: MIT */
/*
 * sample.c - looks over /proc at a tree of processes, where no cgroup counts for us.
 *
 * The /proc of a box's own lists the box alone, in ascending order of pids: whatever it lists counts, and
 * who changes its parent meanwhile is listed all the same.  In the machine's /proc a look walks down from the
 * root by task/TID/children (Linux 3.5, CONFIG_PROC_CHILDREN), so that it costs what the tree costs and
 * not what the machine's /proc costs.  Where that file is not, and for killing, which must not miss one
 * that changes its parent meanwhile, one pass reads PID/stat of every process that /proc lists; who
 * descends from the root is found by following the parents.  A double fork or a setsid leads nowhere:
 * orphans fall to the root, which is pid 1 of its namespace or a subreaper.  No allocation, no stdio:
 * the table is static, and its pages are touched only as far as it is filled.
 *
 * The root is read first: a process that is reaped between two reads is then missed in this look's
 * CPU time, never counted twice by its parent.  One that ended before its memory was read may have left it to
 * a child that came after the list: such a look is repeated, a few times at most, and the most counts.
 */
#include "sample_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSES 32768u
#define MAX_PASSES 64
#define BEFORE_PROCESSES "thread-self" /* the last name in a /proc that is no pid */
#define LOOK_PASSES 3
#define BOX_ROOT 1 /* pid 1 of the box, in its own /proc */
#define KILL_PAUSE_NS 500000L

typedef struct table {
	sample_process root;
	sample_process at[MAX_PROCESSES];
	uint32_t count;
	bool gone;               /* one that was listed could not be read any more */
	int64_t first;           /* where in a /proc the processes begin; 0 = not known yet */
} table;
static table seen;

/* ---- The table --------------------------------------------------------------------------------- */

static int list_all(int proc_fd, int root_pid)
{
	char buf[8192] __attribute__((aligned(8)));
	long n, at;

	seen.count = 0;
	if (lseek(proc_fd, seen.first, SEEK_SET) < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, proc_fd, buf, sizeof buf)) > 0) {
		for (at = 0; at < n;) {
			const struct sample_dirent *e = (const void *)(buf + at);
			int pid = sample_number(e->name);

			at += e->len;
			if (!strcmp(e->name, BEFORE_PROCESSES))
				seen.first = e->off;
			if (!pid || pid == root_pid)
				continue;
			if (seen.count == MAX_PROCESSES)
				return -EOVERFLOW;
			if (!sample_read(proc_fd, pid, &seen.at[seen.count]))
				seen.count++;
			else
				seen.gone = true;
		}
	}
	return n < 0 ? -errno : 0;
}

/* Calls each() with the children of one thread, until it does not return 0: that, 0, or -errno. */
static int each_child(int proc_fd, int pid, int tid, int (*each)(int proc_fd, int child))
{
	char path[80], text[4096];
	int fd, n, child = 0, rc = 0;

	sample_path(path, sizeof path, pid, tid, "children");
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!rc && (n = (int)read(fd, text, sizeof text)) > 0) {
		for (int i = 0; i < n && !rc; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				child = child * 10 + (text[i] - '0');
				continue;
			}
			rc = child ? each(proc_fd, child) : 0;
			child = 0;
		}
	}
	close(fd);
	return rc;
}

/* Into the table.  One that lives and cannot be read is hidden from us: by a /proc with hidepid, after it has made
 * itself undumpable.  Nobody could watch it, and the look fails. */
static int add_child(int proc_fd, int child)
{
	int tries;

	if (seen.count == MAX_PROCESSES)
		return -EOVERFLOW;
	for (tries = 0; tries < 2; tries++) {
		if (!sample_read(proc_fd, child, &seen.at[seen.count])) {
			seen.at[seen.count++].inside = true;
			return 0;
		}
		if (kill(child, 0) < 0 && errno == ESRCH) {
			seen.gone = true;
			return 0;
		}
	}
	return -EACCES;
}

typedef struct family {
	int proc_fd, pid;
} family;

/* One that has ended meanwhile has none. */
static int add_children_of_thread(void *context, int tid)
{
	const family *f = context;
	int rc = each_child(f->proc_fd, f->pid, tid, add_child);

	return rc == -ENOENT || rc == -ESRCH ? 0 : rc;
}

/* The children of all threads of a process. */
static int add_children_of(int proc_fd, int pid, uint64_t threads)
{
	family f = { proc_fd, pid };

	return threads > 1 ? sample_threads(proc_fd, pid, add_children_of_thread, &f) :
			     each_child(proc_fd, pid, pid, add_child);
}

/* All descendants of the root, all marked inside; -ENOENT where the kernel has no such files. */
static int list_tree(int proc_fd, const sample_process *root)
{
	uint32_t i;
	int rc;

	seen.count = 0;
	rc = add_children_of(proc_fd, root->pid, root->threads);
	for (i = 0; !rc && i < seen.count; i++) {
		if (seen.at[i].dead)
			continue;
		rc = add_children_of(proc_fd, seen.at[i].pid, seen.at[i].threads);
		if (rc == -ENOENT || rc == -ESRCH) {
			seen.gone = true;
			rc = 0;
		}
	}
	return rc;
}

static sample_process *find(int pid)
{
	uint32_t low = 0, high = seen.count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (seen.at[mid].pid == pid)
			return &seen.at[mid];
		if (seen.at[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Marks the descendants; number of them.  One pass does it but where pids have wrapped around. */
static uint32_t mark_inside(int root_pid)
{
	uint32_t count = 0, before, i;
	int pass;

	for (pass = 0; pass < MAX_PASSES; pass++) {
		before = count;
		for (i = 0; i < seen.count; i++) {
			sample_process *p = &seen.at[i], *parent;

			if (p->inside)
				continue;
			parent = p->parent == root_pid ? NULL : find(p->parent);
			p->inside = p->parent == root_pid || (parent && parent->inside);
			count += p->inside;
		}
		if (count == before)
			break;
	}
	return count;
}

/* Everybody in a box's own /proc. */
static int list_box(int proc_fd)
{
	int rc = list_all(proc_fd, BOX_ROOT);
	uint32_t i;

	for (i = 0; i < seen.count; i++)
		seen.at[i].inside = true;
	return rc;
}

/* The root, and into the table whoever descends from it. */
static int list_descendants(int proc_fd, int root_pid)
{
	int rc = sample_read(proc_fd, root_pid == SAMPLE_BOX ? BOX_ROOT : root_pid, &seen.root);

	seen.gone = false;
	if (rc)
		return rc;
	if (root_pid == SAMPLE_BOX)
		return list_box(proc_fd);
	rc = list_tree(proc_fd, &seen.root);
	if (rc != -ENOENT)
		return rc;
	rc = list_all(proc_fd, root_pid);
	seen.gone = false; /* whoever it was, it need not have been one of ours */
	if (!rc)
		mark_inside(root_pid);
	return rc;
}

const sample_process *sample_seen(uint32_t i)
{
	if (i == 0)
		return &seen.root;
	return i <= seen.count ? &seen.at[i - 1] : NULL;
}

/* ---- Looks -------------------------------------------------------------------------------------- */

static bool counts(const sample_process *p)
{
	return p->inside && !p->dead;
}

/* One pass over the tree. */
static int look_once(int proc_fd, int root_pid, launch_sample *out)
{
	long per_second = sysconf(_SC_CLK_TCK);
	uint64_t ticks, bytes;
	uint32_t i;
	int rc = list_descendants(proc_fd, root_pid);

	*out = (launch_sample){ 0 };
	if (rc)
		return rc;
	ticks = seen.root.children_ticks;
	for (i = 0; i < seen.count; i++) {
		const sample_process *p = &seen.at[i];

		if (!p->inside)
			continue;
		ticks += p->own_ticks + p->children_ticks;
		if (!counts(p))
			continue;
		out->processes++;
		out->tasks += p->threads;
		bytes = sample_memory(proc_fd, p);
		seen.gone |= !bytes;
		out->memory_bytes += bytes;
	}
	out->cpu_us = ticks * (1000000 / (uint64_t)(per_second > 0 ? per_second : 100));
	return 0;
}

int sample_tree(int proc_fd, int root_pid, launch_sample *out)
{
	uint64_t begin = sample_now_us(), most = 0;
	int pass, rc = 0;

	seen.gone = true;
	for (pass = 0; pass < LOOK_PASSES && seen.gone; pass++) {
		rc = look_once(proc_fd, root_pid, out);
		if (rc)
			return rc;
		most = out->memory_bytes > most ? out->memory_bytes : most;
	}
	out->memory_bytes = most;
	out->took_us = sample_now_us() - begin;
	return 0;
}

int sample_exact(int proc_fd, int root_pid, uint64_t *memory_bytes)
{
	uint64_t most = 0, sum, bytes;
	uint32_t i;
	int pass, rc;

	seen.gone = true;
	for (pass = 0; pass < LOOK_PASSES && seen.gone; pass++) {
		rc = list_descendants(proc_fd, root_pid);
		if (rc)
			return rc;
		for (i = 0, sum = 0; i < seen.count; i++) {
			if (!counts(&seen.at[i]))
				continue;
			bytes = sample_memory_exact(proc_fd, &seen.at[i]);
			seen.gone |= !bytes;
			sum += bytes;
		}
		most = !seen.gone || sum > most ? sum : most;
	}
	*memory_bytes = most;
	return 0;
}

uint64_t sample_tasks_of(int proc_fd, uint32_t uid)
{
	uint64_t tasks = 0;
	char path[80];
	struct stat st;
	uint32_t i;

	if (list_all(proc_fd, 0) < 0 && !seen.count)
		return 0;
	for (i = 0; i < seen.count; i++) {
		sample_path(path, sizeof path, seen.at[i].pid, 0, "stat");
		if (fstatat(proc_fd, path, &st, 0) == 0 && st.st_uid == uid)
			tasks += seen.at[i].threads;
	}
	return tasks;
}

/* ---- Killing ------------------------------------------------------------------------------------ */

static uint32_t hidden;

/* A child of ours is nobody else's pid before we have waited for it. */
static int kill_hidden(int proc_fd, int child)
{
	sample_process p;

	if (sample_read(proc_fd, child, &p) && kill(child, SIGKILL) == 0)
		hidden++;
	return 0;
}

static int kill_hidden_of_thread(void *context, int tid)
{
	const family *f = context;

	each_child(f->proc_fd, f->pid, tid, kill_hidden);
	return 0;
}

/* Our own children that the /proc which lists everybody does not list; theirs will be ours.  Their number. */
static uint32_t kill_hidden_children(int proc_fd)
{
	family f = { proc_fd, getpid() };

	hidden = 0;
	sample_threads(proc_fd, f.pid, kill_hidden_of_thread, &f);
	return hidden;
}

uint32_t sample_kill_tree(int proc_fd, int root_pid, uint32_t rounds)
{
	const struct timespec pause = { .tv_nsec = KILL_PAUSE_NS };
	uint32_t left, round, i;

	for (round = 0;; round++) {
		left = round < rounds && root_pid == getpid() ? kill_hidden_children(proc_fd) : 0;
		if (list_all(proc_fd, root_pid) == 0 || seen.count)
			mark_inside(root_pid);
		for (i = 0; i < seen.count; i++) {
			if (!seen.at[i].inside || seen.at[i].dead)
				continue;
			left++;
			if (round < rounds)
				sample_kill(proc_fd, &seen.at[i]);
		}
		if (!left || round >= rounds)
			return left;
		nanosleep(&pause, NULL);
	}
}
