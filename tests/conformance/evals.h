/* SPDX-License-Identifier: MIT */
/*
 * evals.h - what the tests of evaluations share: one open session, and short ways to ask it.
 *
 * usage of each: PROGRAM BACKEND [DIRECTORY OF sb-launch [TEST]]
 *
 * A real backend runs Python (drivers of other languages have tests of their own without walls, and
 * a few here); the scripted one plays a driver, good and bad.  Each test ends with as many
 * descriptors and children as it began with.
 */
#ifndef SB_TESTS_EVALS_H
#define SB_TESTS_EVALS_H

#include "sessions.h"

typedef struct answer { /* of one evaluation, copied */
	int rc, outcome, code, error, cause, restarted, unfinished, truncated;
	char value[200], exception[200], where[48], message[448];
	char out[2000], err[2000];
	size_t out_len;
	uint64_t cpu_us, wall_us;
	size_t files;
	char first[64];
} answer;

extern sb_session_options how;        /* of the next session */
extern sb_limits limits;
extern const fake_step *script;
extern fake_script fake;
extern sb_session *session;

/* What differs from the usual sandbox of a test; what makes it a new one. */
void evals_sandbox(sb_sandbox_options o);
int evals_begin(void **state);
int evals_end(void **state);
int try_open(sb_session **out);
sb_session *open_one(void);
bool on_wasm(void);

void read_result(answer *a, sb_result *r); /* which it frees */
answer eval_in(sb_session *in, sb_command command, const char *code, const sb_wait *wait);
answer eval(const char *code);
void ok(answer a, const char *out);
void killed(answer a, int cause);

/* An evaluation in another thread. */
typedef struct other {
	pthread_t thread;
	sb_session *session;
	sb_command command;
	const char *code;
	answer got;
} other;

void start(other *o);
void join(other *o);
void await_state(int state);
void interrupt_after(unsigned us);

/* What takes another process, a thread or a signal of the code's own. */
#define NEEDS_PROCESSES()                                                                          \
	do {                                                                                       \
		if (on_wasm())                                                                     \
			skip();                                                                    \
		NEEDS_REAL();                                                                      \
	} while (0)
#define NEEDS_REAL()                                                                               \
	do {                                                                                       \
		(void)state;                                                                       \
		if (w.is_fake)                                                                     \
			skip();                                                                    \
		session = open_one();                                                              \
	} while (0)

/* 0, or what main() returns: nothing to test here (77), or no such call (2). */
int evals_given(int argc, char **argv);

#define TEST(name) cmocka_unit_test_setup_teardown(name, evals_begin, evals_end)
#define EVALS_MAIN(...)                                                                            \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		const struct CMUnitTest tests[] = { __VA_ARGS__ };                                 \
		int code = evals_given(argc, argv);                                                \
                                                                                                   \
		return code ? code                                                                 \
			    : cmocka_run_group_tests_name(w.backend, tests, folder_enter,          \
							  folder_leave);                           \
	}

#endif /* SB_TESTS_EVALS_H */
