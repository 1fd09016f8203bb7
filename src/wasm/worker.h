/* SPDX-License-Identifier: MIT */
/* worker.h - the parts of sb-wasm: job, walls of its own, result. */
#ifndef SB_WASM_WORKER_H
#define SB_WASM_WORKER_H

#include "engine.h"
#include "job.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define WALLS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define WALLS_ARCH AUDIT_ARCH_AARCH64
#else
#error "no filter for this processor"
#endif
#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000u
#endif

#define WORKER_ARGS_MAX 65536u

typedef struct worker {
	int fd;                          /* of the job */
	uint64_t at;                     /* in that */
	const uint8_t *data;
	const job_head *head;
	mem_fs *fs;
	host_fs *host;                   /* NULL: nothing of the host's is shown */
	bool host_writes;                /* some of it may be changed */
	wasi w;
	engine *e;
	engine_run run;
	const char **argv, **env;
	const char *module_file;
	const uint8_t *module;
	size_t module_len;
	uint64_t memory_refused;
	int refused;                     /* ENGINE_* that an early instance ended with; -1 = none */
	int ask;                         /* the host's socket, -1 = none */
	bool rests;                      /* no call of the guest's is under way, nor is one begun */
	char why[ENGINE_WHY];            /* what a step before the guest failed with */
} worker;

/* ---- job.c ---- */
int job_open(worker *k, int fd);         /* all of that file */
int job_map(worker *k, uint64_t at, uint64_t bytes); /* one behind it */
/* Arguments, environment, module, files; 0 or -1 with why. */
int job_lay_out(worker *k);

/* ---- walls.c ---- */
int walls_raise_stack(void);             /* room for the guest's calls, before the first deep one */
/* From here on no page becomes executable and only a handful of system calls are left: a further one
 * kills.  Growth of memory goes through us. 0 or -errno. */
int walls_close(worker *k);
/* The same in two steps, for a module that has yet to be loaded: the first, while nobody waits, leaves open what
 * that takes, and the second, a small one, closes it. */
int walls_set_ajar(worker *k);
int walls_shut(void);
/* How much the kernel lets the process have in all: the second wall of memory. */
int walls_limit_data(uint64_t bytes);

/* ---- holder.c ---- */
/* A process that keeps the memory when this one ends; without it the end takes longer, no more. */
void holder_start(void);

/* ---- ask.c ---- */
/* The socket for what the host asks, from the control stream.  0 or -errno. */
int ask_open(worker *k, int control);
/* For wasi.wait: serves the host while the guest waits. */
int ask_wait(void *user, struct pollfd *polls, uint32_t count, const struct timespec *most);
/* While the guest rests: until its control stream has something for it.  False: a signal ends it before. */
bool ask_rest(worker *k);
/* The head of a question; the rest of it is to be read.  False: the host is gone, or asks what we do not know. */
bool ask_hear(const worker *k, ask_head *head);
bool ask_tell(const worker *k, const ask_head *head); /* the head of an answer */
/* From the handler of SIGINT. */
void ask_interrupt(worker *k);

/* ---- twin.c ---- */
/* Answers an ASK_BRANCH.  False: the host is gone. */
bool twin_give(worker *k, ask_head *head);
/* In the place of a start: ENGINE_RESTS, or how it ends. */
int twin_take(worker *k);

/* ---- result.c: fit for a signal handler ---- */
void result_write(worker *k, uint32_t kind, int32_t code);

#endif /* SB_WASM_WORKER_H */
