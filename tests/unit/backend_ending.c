/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <signal.h>

#include "../../src/backend/launched/launched.h"

#define FREE SB_UNLIMITED, SB_UNLIMITED /* no scratch */

typedef struct row {
	int code, signo;
	uint32_t told;             /* LP_LIMIT_* of the box */
	lp_usage usage;            /* user, system, peak, refused, oom, pids, free bytes, free nodes */
	int outcome, error;
} row;

static const row rows[] = {
	/* plain ends */
	{ 0, 0, 0, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_EXITED, 0 },
	{ 7, 0, 0, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_EXITED, 0 },
	{ -1, SIGTERM, 0, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_SIGNALED, 0 },
	{ -1, SIGKILL, 0, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_SIGNALED, 0 },
	{ -1, SIGSYS, 0, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_VIOLATION, 0 },
	/* a watcher said why */
	{ -1, SIGKILL, LP_LIMIT_MEMORY, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_BUDGET_EXCEEDED,
	  SB_ERR_MEMORY_LIMIT },
	{ -1, SIGKILL, LP_LIMIT_CPU, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_BUDGET_EXCEEDED,
	  SB_ERR_CPU_LIMIT },
	{ -1, SIGKILL, LP_LIMIT_UNENFORCEABLE, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_UNENFORCEABLE,
	  SB_ERR_UNENFORCEABLE },
	/* the kernel's own ways: RLIMIT_CPU soft and hard, the OOM killer */
	{ -1, SIGXCPU, 0, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_CPU_LIMIT },
	{ -1, SIGKILL, 0, { 900000, 100000, 0, 0, 0, 0, FREE }, SB_OUTCOME_BUDGET_EXCEEDED,
	  SB_ERR_CPU_LIMIT },
	{ -1, SIGKILL, 0, { 0, 0, 0, 0, 1, 0, FREE }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_MEMORY_LIMIT },
	/* refused, and failed because of it; refused, and coped with it */
	{ 1, 0, 0, { 0, 0, 0, 1, 0, 0, FREE }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_MEMORY_LIMIT },
	{ 0, 0, 0, { 0, 0, 0, 1, 1, 0, FREE }, SB_OUTCOME_EXITED, 0 },
	{ 2, 0, 0, { 0, 0, 0, 0, 0, 3, FREE }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_PIDS_LIMIT },
	{ 0, 0, 0, { 0, 0, 0, 0, 0, 3, FREE }, SB_OUTCOME_EXITED, 0 },
	{ 1, 0, 0, { 0, 0, 0, 0, 0, 0, 0, 5 }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_FS_QUOTA },
	{ 1, 0, 0, { 0, 0, 0, 0, 0, 0, 4096, 0 }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_TOO_MANY_FILES },
	{ 1, 0, 0, { 0, 0, 0, 0, 0, 0, 4096, 1 }, SB_OUTCOME_EXITED, 0 },
	{ 0, 0, 0, { 0, 0, 0, 0, 0, 0, 0, 0 }, SB_OUTCOME_EXITED, 0 },
	{ -1, SIGXFSZ, 0, { 0, 0, 0, 0, 0, 0, FREE }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_FS_QUOTA },
	{ -1, SIGSEGV, 0, { 0, 0, 0, 0, 0, 1, FREE }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_PIDS_LIMIT },
	/* memory first: a guest that was killed for it left the rest as it is */
	{ 1, 0, 0, { 0, 0, 0, 0, 1, 1, 0, 0 }, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_MEMORY_LIMIT },
};

static void every_end_is_told_as_it_was(void **state)
{
	const sb_limits limits = { .size = sizeof limits, .memory_bytes = 64 << 20, .cpu_ms = 1000,
		.fs_bytes = 1 << 20, .fs_nodes = 16, .procs = 8 };
	size_t i;

	(void)state;
	for (i = 0; i < UNIT_LEN(rows); i++) {
		const lp_exited exited = { .code = rows[i].code, .signo = rows[i].signo,
			.usage = rows[i].usage };
		sb_usage usage = { .size = sizeof usage };
		sb_guest_exit end = { .size = sizeof end, .usage = &usage };

		launched_ending(&exited, rows[i].told, &limits, &end);
		unit_row(i, end.outcome == rows[i].outcome);
		unit_row(i, end.error == rows[i].error);
		unit_row(i, end.code == (rows[i].outcome == SB_OUTCOME_EXITED ? rows[i].code : -1));
		unit_row(i, end.outcome != SB_OUTCOME_SIGNALED || end.signal_number == rows[i].signo);
		unit_row(i, usage.oom_kills == rows[i].usage.oom_kills);
		unit_row(i, usage.disk_refused ==
			 (!rows[i].usage.scratch_free_bytes || !rows[i].usage.scratch_free_nodes));
	}
}

/* Nothing is blamed on a limit that was never set. */
static void no_limit_is_never_the_reason(void **state)
{
	const sb_limits none = { .size = sizeof none, .memory_bytes = SB_UNLIMITED,
		.cpu_ms = SB_UNLIMITED, .fs_bytes = SB_UNLIMITED };
	const lp_exited killed = { .code = -1, .signo = SIGKILL,
		.usage = { 9000000, 0, 0, 0, 0, 0, FREE } };
	const lp_exited xcpu = { .code = -1, .signo = SIGXCPU, .usage = { 0, 0, 0, 0, 0, 0, FREE } };
	sb_guest_exit end = { .size = sizeof end };

	(void)state;
	launched_ending(&killed, 0, &none, &end);
	assert_int_equal(end.outcome, SB_OUTCOME_SIGNALED);
	assert_int_equal(end.error, 0);
	launched_ending(&xcpu, 0, &none, &end);
	assert_int_equal(end.outcome, SB_OUTCOME_SIGNALED);
	assert_int_equal(end.signal_number, SIGXCPU);

	const sb_limits sized = { .size = sizeof sized, .fs_bytes = 1 << 20, .fs_nodes = SB_UNLIMITED };
	const lp_exited full = { .code = 1, .usage = { 0, 0, 0, 0, 0, 0, 4096, 0 } };
	launched_ending(&full, 0, &sized, &end);
	assert_int_equal(end.error, SB_ERR_FS_QUOTA);
}

static void signals_have_their_numbers(void **state)
{
	(void)state;
	assert_int_equal(launched_signal_number(SB_SIGNAL_INTERRUPT), SIGINT);
	assert_int_equal(launched_signal_number(SB_SIGNAL_KILL), SIGKILL);
	assert_int_equal(launched_signal_number(SB_SIGNAL_CONTINUE), SIGCONT);
	assert_int_equal(launched_signal_number(0), -1);
	assert_int_equal(launched_signal_number(SB_SIGNAL_CONTINUE + 1), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_end_is_told_as_it_was),
		cmocka_unit_test(no_limit_is_never_the_reason),
		cmocka_unit_test(signals_have_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
