/* SPDX-License-Identifier: MIT */
/*
 * fake.h - a backend that does what a script says, over real descriptors.
 *
 * A guest is a thread that works through the steps of a script: it writes chosen bytes in chosen
 * pieces, reads its input, waits, ends as it is told.  Members fail where the script says.  What
 * the library called, and in which order, is recorded, and what it broke of its promises (a call on
 * a box that is gone, a release without a reap) is counted.
 *
 * The processes of a session have a script each: argv { "sh", FAKE_WORD, FAKE_ARGV(steps) }.
 *
 * The script of a run comes with its spec: FAKE_SPEC_OPTIONS(script) for spec.other_options.
 */
#ifndef SB_TESTS_FAKE_H
#define SB_TESTS_FAKE_H

#include <sandbox/backend.h>
#include <stdatomic.h>

enum { FAKE_END = 0,              /* exits with `number` */
       FAKE_OUT, FAKE_ERR,        /* writes `text` (len 0 = strlen), `number` times (0 = once) */
       FAKE_SLEEP,                /* `number` ms, or until killed */
       FAKE_ECHO,                 /* copies its input to its output, to the end */
       FAKE_READ,                 /* reads `number` bytes of input, or to the end */
       FAKE_CLOSE_INPUT,
       FAKE_SIGNALED,             /* ends by signal `number` */
       FAKE_LIMIT,                /* ends as budget_exceeded with SB_ERR_* `number` */
       FAKE_VIOLATION, FAKE_UNENFORCEABLE,
       FAKE_LOSE,                 /* the connection breaks: nothing is known */
       FAKE_ON_TERM,              /* from here on a TERM makes it jump to the next FAKE_TERM */
       FAKE_TERM,                 /* a label; passed over when met */
       FAKE_IGNORE_TERM,
       FAKE_HOLD,                 /* keeps its pipes open after its end, until released */
       FAKE_OUT_FILE,             /* leaves /out/<text> with its own name as content */
       FAKE_INTERRUPT,            /* waits until it was interrupted */
       FAKE_HEAR,                 /* reads one frame from its control descriptor */
       FAKE_TELL,                 /* writes `text` there, with the nonce of that frame for each "@" */
       FAKE_HANG_UP,              /* closes it */
       FAKE_BACK,                 /* goes on `number` steps before this one */
       FAKE_GO };                 /* waits until fake_go is set */
typedef struct fake_step {
	int what;
	int64_t number;
	const char *text;
	size_t len;
} fake_step;

enum { FAKE_AT_PROBE = 1, FAKE_AT_PLAN, FAKE_AT_CREATE, FAKE_AT_PUT, FAKE_AT_SPAWN, FAKE_AT_REAP,
       FAKE_AT_COLLECT, FAKE_AT_COUNT };
typedef struct fake_script {
	size_t size;                  /* these two as in sb_other_options */
	const char *backend;
	const fake_step *steps;
	int fail_at, fail_code;       /* FAKE_AT_*, SB_ERR_* */
	int slow_at;                  /* FAKE_AT_CREATE: waits for the call's deadline or cancel */
	const uint32_t *levels;       /* SB_WALL_COUNT of them; NULL = HARD all over */
	void (*seen)(const sb_box_request *box, const sb_guest_request *guest);
	uint64_t outlived, left;      /* processes killed; things that could not be removed */
} fake_script;

/* What all runs did. */
typedef struct fake_record {
	atomic_int called[FAKE_AT_COUNT];
	atomic_int boxes, guests;     /* alive */
	atomic_int states;
	atomic_int terminated, killed; /* signals sent */
	atomic_int broken;            /* promises of the library's */
	atomic_int probes_tried;
	atomic_int forking;           /* guests that are being forked, now */
} fake_record;
extern fake_record fake_seen;
void fake_reset(void);

extern const sb_backend fake_backend, fake_other_backend; /* "fake" (alias "sham"), "other" */
/* How branches come out from now on: a script is the one that its session was opened with. */
typedef struct fake_branching {
	int fail_code, slow;          /* SB_ERR_*; waits for the call's deadline or cancel */
	const fake_step *steps;       /* what a twin does; NULL = says hello, and goes on where the guest was */
} fake_branching;
extern fake_branching fake_branches;

extern _Atomic int fake_go;
extern _Atomic int fake_down; /* probe says BACKEND_UNAVAILABLE */

#define FAKE_WORD "--fake-steps"
/* The steps as a word of an argv; `text` has 32 bytes. */
const char *fake_argv(const fake_step *steps, char text[32]);

#define FAKE_OPTIONS(script) ((const sb_other_options *)(const void *)(script))

#endif /* SB_TESTS_FAKE_H */
