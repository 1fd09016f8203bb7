/* SPDX-License-Identifier: MIT */
/*
 * sample_proc.h - reading and ending one process by /proc: what the sampler of sb-launch (sample.c) and the
 * library's watcher of groups (group_watch.c) share.  No allocation, no state.
 */
#ifndef SB_LAUNCH_SAMPLE_PROC_H
#define SB_LAUNCH_SAMPLE_PROC_H

#include "launch.h"

#include <sys/types.h>

typedef struct sample_process {
	int pid, parent, group;
	uint64_t start;
	uint64_t own_ticks, children_ticks, system_ticks, threads; /* of CPU time; system_ticks: part of the two */
	bool inside, dead, headless;
} sample_process;

/* An entry of getdents64. */
struct sample_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};
uint64_t sample_now_us(void);            /* CLOCK_MONOTONIC */
int sample_number(const char *name);   /* a pid or tid as a name; 0 = it is none */

/* Writes "PID/name", or "PID/task/TID/name" with a tid; "" where it does not fit (80 bytes do). */
void sample_path(char *out, size_t cap, int pid, int tid, const char *name);
int sample_read(int proc_fd, int pid, sample_process *p);   /* 0 or -errno */
/* Calls each() with the threads of a process, until it does not return 0: that, 0, or -errno. */
int sample_threads(int proc_fd, int pid, int (*each)(void *context, int tid), void *context);
/* Bytes that are its own, shared ones counted whole; or each by its share, where that can be looked at. */
uint64_t sample_memory(int proc_fd, const sample_process *p);
uint64_t sample_memory_exact(int proc_fd, const sample_process *p);
/* Not on a processor, nor waiting for one.  tid = pid is the first thread. */
bool sample_sleeps(int proc_fd, int pid, int tid);
/* SIGKILL, by pidfd, after making sure that the pid is still the process that was seen. */
void sample_kill(int proc_fd, const sample_process *p);

/* sample.c: who was listed by the look before; 0 is the root; NULL = there are no more. */
const sample_process *sample_seen(uint32_t i);

#endif /* SB_LAUNCH_SAMPLE_PROC_H */
