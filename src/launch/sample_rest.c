/* SPDX-License-Identifier: MIT */
/*
 * sample_rest.c - whether anything in a box has run since the look before.
 *
 * If none of its tasks has, nothing in it can have grown, forked or used CPU time, and what that look saw is
 * what there is.  The kernel counts how often each task was put on a processor (schedstat): the counts are
 * read, then each task is seen asleep, then a whole look is taken, and the counts are read again.  If they
 * are the same, and that look saw these tasks and no other, it holds for as long as they stay the same.  A task
 * that was woken before it had left its processor is not counted; the time that it ran is, by the next tick.
 * In case of a flaw in this a whole look is taken every second.
 */
#include "sample_rest.h"

#include "sample_proc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define WHOLE_LOOK_US 1000000u

static void forget(sample_rest *r)
{
	while (r->count)
		close(r->task[--r->count].fd);
	r->sure = false;
}

/* "time-on-cpu time-waiting times-put-on"; false: it has ended, or the kernel counts nothing. */
static bool read_task(int fd, uint64_t *ran_ns, uint64_t *runs)
{
	char text[80], *at = text;
	ssize_t n = pread(fd, text, sizeof text - 1, 0);

	if (n <= 0)
		return false;
	text[n] = 0;
	*ran_ns = strtoull(at, &at, 10);
	strtoull(at, &at, 10);
	*runs = strtoull(at, &at, 10);
	return *runs > 0;
}

static bool none_ran(const sample_rest *r)
{
	uint64_t ran_ns, runs;
	uint32_t i;

	for (i = 0; i < r->count; i++)
		if (!read_task(r->task[i].fd, &ran_ns, &runs) || ran_ns != r->task[i].ran_ns ||
		    runs != r->task[i].runs)
			return false;
	return r->count > 0;
}

typedef struct adding {
	sample_rest *rest;
	int proc_fd, pid;
} adding;

/* 0, or -1: it cannot be watched, or does not sleep. */
static int add_task(void *context, int tid)
{
	const adding *a = context;
	sample_rest *r = a->rest;
	sample_task *t = &r->task[r->count];
	char path[80];

	if (r->count == REST_TASKS)
		return -1;
	sample_path(path, sizeof path, a->pid, tid, "schedstat");
	t->pid = a->pid;
	t->fd = openat(a->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0)
		return -1;
	r->count++;
	return read_task(t->fd, &t->ran_ns, &t->runs) && sample_sleeps(a->proc_fd, a->pid, tid) ? 0 : -1;
}

static int add_process(sample_rest *r, int proc_fd, const sample_process *p)
{
	adding a = { r, proc_fd, p->pid };

	return p->threads > 1 ? sample_threads(proc_fd, p->pid, add_task, &a) : add_task(&a, p->pid);
}

/* Begins to watch the tasks of the look before. */
static void remember(sample_rest *r, int proc_fd)
{
	const sample_process *p;
	uint32_t i;

	for (i = 0; (p = sample_seen(i)); i++)
		if (!p->dead && (p->headless || add_process(r, proc_fd, p) < 0)) {
			forget(r);
			return;
		}
}

static bool has_process(const sample_rest *r, int pid)
{
	uint32_t i;

	for (i = 0; i < r->count; i++)
		if (r->task[i].pid == pid)
			return true;
	return false;
}

/* The look before saw the tasks that are watched, and no other. */
static bool saw_these(const sample_rest *r)
{
	const sample_process *p;
	uint64_t tasks = 0;
	uint32_t i;

	for (i = 0; (p = sample_seen(i)); i++) {
		if (p->dead)
			continue;
		tasks += p->threads;
		if (!has_process(r, p->pid))
			return false;
	}
	return tasks == r->count;
}

int sample_rest_look(sample_rest *r, int proc_fd, launch_sample *out)
{
	uint64_t begin = sample_now_us();
	bool as_before;
	int rc;

	if (r->sure && begin < r->until_us && none_ran(r)) {
		*out = r->last;
		out->took_us = sample_now_us() - begin;
		return 0;
	}
	rc = sample_tree(proc_fd, SAMPLE_BOX, out);
	as_before = !rc && out->cpu_us == r->last.cpu_us && out->tasks == r->last.tasks;
	r->sure = !rc && none_ran(r) && saw_these(r);
	r->until_us = begin + WHOLE_LOOK_US;
	if (!r->sure)
		forget(r);
	if (as_before && !r->sure) /* it may be at rest: the next look tells */
		remember(r, proc_fd);
	r->last = *out;
	return rc;
}

void sample_rest_exact(sample_rest *r, uint64_t memory_bytes)
{
	r->last.memory_bytes = memory_bytes;
}
