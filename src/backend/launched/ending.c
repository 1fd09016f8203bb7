/* SPDX-License-Identifier: MIT */
/*
 * ending.c - what the end of a guest means.
 *
 * A limit that killed is told by the watcher or the kernel.  A refused allocation, fork or write is
 * only counted: a guest that handles it and exits 0 has simply exited.  Counted, and ended by a
 * trap, a fatal signal or a non-zero exit, the limit is taken for the reason.
 */
#include "launched.h"
#include "../../core/core.h"

#include <signal.h>

/* A full scratch file system: 0 = not. */
static int disk_full(const lp_usage *usage, const sb_limits *limits)
{
	/* SB_UNLIMITED: there is no scratch */
	if (usage->scratch_free_nodes == 0) /* without a number of files they have what the bytes have */
		return limits_is_set(limits->fs_nodes) ? SB_ERR_TOO_MANY_FILES : SB_ERR_FS_QUOTA;
	if (usage->scratch_free_bytes == 0)
		return SB_ERR_FS_QUOTA;
	return 0;
}

void launched_fill_usage(const lp_usage *from, sb_usage *usage)
{
	usage->user_us = from->user_us;
	usage->system_us = from->system_us;
	usage->peak_memory_bytes = from->peak_memory_bytes;
	usage->memory_refused = from->memory_refused;
	usage->oom_kills = from->oom_kills;
	usage->pids_refused = from->pids_refused;
	usage->disk_refused = from->scratch_free_nodes == 0 || from->scratch_free_bytes == 0;
}

/* The limit that a watcher or the kernel ended it with, or 0. */
static int killed_by(const lp_exited *exited, uint32_t limit, const sb_limits *limits)
{
	const lp_usage *usage = &exited->usage;
	uint64_t cpu_us = usage->user_us + usage->system_us;

	if (limit == LP_LIMIT_MEMORY)
		return SB_ERR_MEMORY_LIMIT;
	if (limit == LP_LIMIT_CPU)
		return SB_ERR_CPU_LIMIT;
	if (limit == LP_LIMIT_PIDS)
		return SB_ERR_PIDS_LIMIT;
	if (exited->signo == SIGXCPU && limits_is_set(limits->cpu_ms))
		return SB_ERR_CPU_LIMIT;
	/* RLIMIT_CPU, the backstop, kills one process with SIGKILL once SIGXCPU was ignored */
	if (exited->signo == SIGKILL && limits_is_set(limits->cpu_ms) && cpu_us / 1000 >= limits->cpu_ms)
		return SB_ERR_CPU_LIMIT;
	return 0;
}

/* The limit that was met by a guest which then failed, or 0. */
static int failed_at(const lp_exited *exited, const sb_limits *limits)
{
	const lp_usage *usage = &exited->usage;

	if (!exited->signo && !exited->code)
		return 0;
	if (usage->oom_kills || usage->memory_refused)
		return SB_ERR_MEMORY_LIMIT;
	if (usage->pids_refused)
		return SB_ERR_PIDS_LIMIT;
	if (exited->signo == SIGXFSZ && (limits_is_set(limits->fs_bytes) || limits_is_set(limits->memory_bytes)))
		return SB_ERR_FS_QUOTA;
	return disk_full(usage, limits);
}

void launched_ending(const lp_exited *exited, uint32_t limit, const sb_limits *limits,
		     sb_guest_exit *end)
{
	if (exited->limit)
		limit = exited->limit;
	end->code = -1;
	end->signal_number = 0;
	end->error = 0;
	end->killed = exited->killed;
	if (end->usage)
		launched_fill_usage(&exited->usage, end->usage);
	if (limit == LP_LIMIT_UNENFORCEABLE) {
		end->outcome = SB_OUTCOME_UNENFORCEABLE;
		end->error = SB_ERR_UNENFORCEABLE;
		return;
	}
	end->error = killed_by(exited, limit, limits);
	if (!end->error)
		end->error = failed_at(exited, limits);
	if (end->error) {
		end->outcome = SB_OUTCOME_BUDGET_EXCEEDED;
		end->signal_number = exited->signo;
	} else if (exited->signo == SIGSYS) {
		end->outcome = SB_OUTCOME_VIOLATION;
		end->signal_number = SIGSYS;
	} else if (exited->signo) {
		end->outcome = SB_OUTCOME_SIGNALED;
		end->signal_number = exited->signo;
	} else {
		end->outcome = SB_OUTCOME_EXITED;
		end->code = exited->code;
	}
}
