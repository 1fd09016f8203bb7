/* SPDX-License-Identifier: MIT */
/*
 * fixture.h - boxes for the tests of sb-launch itself: a plan with every wall that needs no cgroup, in
 * the shape that the linux backend makes, a command in it, and what came of it.
 *
 * The path of sb-launch comes from SB_LAUNCH.  Without it the tests are skipped (77).
 */
#ifndef SB_TESTS_LAUNCH_FIXTURE_H
#define SB_TESTS_LAUNCH_FIXTURE_H

#include "../unit/unit.h"

#include "../../src/launch/host.h"

#define FIX_WAIT_MS 20000        /* only a hang takes that long */

typedef struct fix {
	char dir[64];            /* a fresh directory, the workspace is its "ws" */
	char ws[80];
	lh_plan *plan;
	lh_box *box;
	uint32_t last_id;
	char mark[32], other[32]; /* numbers of seconds that nobody else sleeps; $M and $N inside */
} fix;

typedef struct fix_run {         /* what came of one command */
	char out[8192];
	size_t out_len;
	lh_answer end;           /* EXITED or FAILED */
} fix_run;

extern const char *fix_launch;   /* the sb-launch under test */
extern bool fix_root;            /* the tests run as root */

/* The main of each test: as root, or with the argument "user" as uid 1000.  77 without SB_LAUNCH. */
int fix_main(int argc, char **argv, int (*run)(void));
void fix_open(fix *f);
/* Everything but cgroups; rows up to the workspace, without LP_M_REMOUNT_RO. */
void fix_plan(fix *f);
/* Adds the last row, starts, waits for READY; *scratch may be NULL. */
void fix_start(fix *f, lh_answer *ready, int *scratch);
/* The same, but FAILED is expected. */
void fix_start_failed(fix *f, lh_answer *failed);
void fix_next(fix *f, lh_answer *answer, int *fd);       /* fails the test on a timeout */
/* One command to its end: out and err together. */
void fix_run_argv(fix *f, const char *const *argv, const char *cwd, fix_run *run);
void fix_sh(fix *f, const char *script, fix_run *run);   /* in "/" */
/* Starts and leaves it: read end of out and err; the id. */
uint32_t fix_spawn(fix *f, const char *const *argv, const char *cwd, uint32_t flags, int *out,
		   int *exited);
void fix_close(fix *f);          /* the box, its plan, the directory */
/* Processes of this machine whose command line holds `mark`. */
unsigned fix_count(const char *mark);
/* Waits for as many: they may have just started.  Fails the test after FIX_WAIT_MS, as the next does. */
void fix_expect_count(const char *mark, unsigned count);
void fix_expect_none(const char *mark);
void fix_write(const char *dir, const char *name, const char *text);
bool fix_exists(const char *dir, const char *name);
/* The next answer of a kind about `id`; others are skipped. */
void fix_await(fix *f, uint32_t kind, uint32_t id, lh_answer *answer);

#define fix_expect_exit(run, want) \
	do { \
		if ((run)->end.head.kind != LP_EXITED || (run)->end.exited.code != (want)) \
			fail_msg("kind %u code %d signal %d: %s%.*s", (run)->end.head.kind, \
				 (run)->end.exited.code, (run)->end.exited.signo, \
				 (run)->end.head.kind == LP_FAILED ? (run)->end.failed.message : "", \
				 (int)(run)->out_len, (run)->out); \
	} while (0)
#define fix_expect_out(run, text) \
	do { \
		fix_expect_exit(run, 0); \
		assert_string_equal((run)->out, text); \
	} while (0)

#endif /* SB_TESTS_LAUNCH_FIXTURE_H */
