/* SPDX-License-Identifier: MIT */
/*
 * sample_rest.h - looks at a box's own /proc that cost next to nothing while nothing in the box runs.
 */
#ifndef SB_LAUNCH_SAMPLE_REST_H
#define SB_LAUNCH_SAMPLE_REST_H

#include "launch.h"

#define REST_TASKS 32

typedef struct sample_task {
	int fd, pid;             /* fd: its schedstat */
	uint64_t ran_ns, runs;
} sample_task;

typedef struct sample_rest {
	sample_task task[REST_TASKS];
	uint32_t count;          /* 0 = they are not watched */
	bool sure;               /* a whole look was taken while none of them ran */
	uint64_t until_us;       /* when a whole look is taken all the same */
	launch_sample last;
} sample_rest;

/* As sample_tree(proc_fd, SAMPLE_BOX, out).  The record is all 0 at first. */
int sample_rest_look(sample_rest *rest, int proc_fd, launch_sample *out);
/* What the dear sum of its memory was: it stays while nothing runs. */
void sample_rest_exact(sample_rest *rest, uint64_t memory_bytes);

#endif /* SB_LAUNCH_SAMPLE_REST_H */
