/* SPDX-License-Identifier: MIT */
/* world.h - runs of Python on warm and cold sandboxes, and a look at what is there of them outside. */
#ifndef SB_TESTS_WARM_WORLD_H
#define SB_TESTS_WARM_WORLD_H

#include "../lib/descriptors.h"
#include "../unit/unit.h"

#include <sandbox/sandbox.h>
#include <sys/types.h>

/* True in a run that took a worker over. */
#define IS_WARM "__import__('gc').get_freeze_count() > 0"

/* 77 = skip.  Becomes a plain user if the first argument says so; the second is where sb-launch is. */
int world_begin(int argc, char **argv);
extern bool world_root;
const char *world_helpers(void);

sb_sandbox *world_sandbox(uint32_t flags);
typedef struct world_run {
	const char *code;
	size_t len;               /* 0 = strlen */
	sb_command command;       /* the rest of it */
	sb_limits limits;
	const sb_wait *wait;
} world_run;
extern sb_error world_error;
int world_try(sb_sandbox *sandbox, const world_run *run, sb_result **result);
/* The same; a failure fails the test. */
sb_result *world_do(sb_sandbox *sandbox, const world_run *run);
const char *world_out(const sb_result *result);
const char *world_err(const sb_result *result);
/* Runs `code` and fails unless it exits 0 and prints `expected`. */
void world_says(sb_sandbox *sandbox, const char *code, const char *expected);

/* Processes that come of this one, by name ("python3", "sb-launch"); at most `cap` of their numbers. */
size_t world_children(const char *name, pid_t *pids, size_t cap);
/* Waits until there are `count` of them, which must come true. */
void world_await(const char *name, size_t count);
/* At least `count` interpreters wait: on a busy machine one more may have been started. */
void world_ready(size_t count);

#endif /* SB_TESTS_WARM_WORLD_H */
