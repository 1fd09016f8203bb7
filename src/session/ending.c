/* SPDX-License-Identifier: MIT */
/* ending.c - how a run ended: outcome, and where a limit or a wall ended it the words for it. */
#include "session.h"

static void fail(sb_result *r, int outcome, int code, const char *where, const char *text)
{
	r->outcome = outcome;
	r->code = -1;
	r->signal_number = 0;
	error_set(&r->failure, code, where, "%s", text);
}

static void output_limit(sb_result *r, const sb_limits *l)
{
	uint64_t cap = l->out_total_bytes < l->out_stream_bytes ? l->out_total_bytes
								: l->out_stream_bytes;
	char size[32];

	fail(r, SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_OUTPUT_LIMIT, "output", "");
	error_set(&r->failure, SB_ERR_OUTPUT_LIMIT, "output",
		  "stopped at %s of output; allow more with --output (out_total_bytes, "
		  "out_stream_bytes), or have it cut with --output-mode truncate (out_mode)",
		  size_text(cap, size));
}

static void time_limit(sb_result *r, const sb_limits *l)
{
	char text[32];

	fail(r, SB_OUTCOME_TIMED_OUT, SB_ERR_TIMEOUT, "time", "");
	error_set(&r->failure, SB_ERR_TIMEOUT, "time",
		  "stopped after %s; allow more with --timeout (wall_ms)",
		  clock_text(l->wall_ms, text));
}

/* Words for a limit that the backend says ended the guest. */
static void budget(sb_result *r, const sb_limits *l, int code)
{
	char text[32];

	switch (code) {
	case SB_ERR_MEMORY_LIMIT:
		error_set(&r->failure, code, "memory",
			  "stopped at %s of memory; allow more with --mem (memory_bytes)",
			  size_text(l->memory_bytes, text));
		return;
	case SB_ERR_CPU_LIMIT:
		error_set(&r->failure, code, "cpu",
			  "stopped after %s of CPU time; allow more with --cpu (cpu_ms)",
			  clock_text(l->cpu_ms, text));
		return;
	case SB_ERR_PIDS_LIMIT:
		error_set(&r->failure, code, "pids",
			  "more than %llu processes and threads were wanted; allow more with --pids "
			  "(procs)",
			  (unsigned long long)l->procs);
		return;
	case SB_ERR_FS_QUOTA:
	case SB_ERR_TOO_MANY_FILES:
		if (l->fs_bytes == SB_UNLIMITED)
			error_set(&r->failure, code, "disk",
				  "the file system inside is full; its size follows --mem "
				  "(memory_bytes)");
		else if (code == SB_ERR_TOO_MANY_FILES)
			error_set(&r->failure, code, "disk",
				  "more than %llu files and directories were wanted (fs_nodes)",
				  (unsigned long long)l->fs_nodes);
		else
			error_set(&r->failure, code, "disk",
				  "more than %s of files were wanted; allow more with --disk "
				  "(fs_bytes)",
				  size_text(l->fs_bytes, text));
		return;
	case SB_ERR_UNENFORCEABLE:
		error_set(&r->failure, code, "sampler",
			  "stopped, because a limit could no longer be measured; see that /proc hides no process "
			  "(hidepid), and that its cgroup stays");
		return;
	case SB_ERR_CONNECTION_LOST:
		error_set(&r->failure, code, "backend",
			  "the connection to the command was lost; how it ended is not known");
		return;
	default:
		error_set(&r->failure, code, "backend", "the backend ended the command: %s",
			  sb_code_name(code));
	}
}

int ending_error(const sb_guest_exit *end)
{
	if (end->error)
		return end->error;
	switch (end->outcome) {
	case SB_OUTCOME_LOST:
		return SB_ERR_CONNECTION_LOST;
	case SB_OUTCOME_VIOLATION:
		return SB_ERR_FORBIDDEN;
	case SB_OUTCOME_UNENFORCEABLE:
		return SB_ERR_UNENFORCEABLE;
	default:
		return 0;
	}
}

static void natural(sb_result *r, const sb_limits *l, const sb_guest_exit *end)
{
	r->outcome = end->outcome;
	r->code = end->outcome == SB_OUTCOME_EXITED ? end->code : -1;
	r->signal_number = end->outcome == SB_OUTCOME_SIGNALED ? end->signal_number : 0;
	r->incomplete |= end->output_incomplete != 0;
	int code = ending_error(end);

	if (code == SB_ERR_FORBIDDEN)
		error_set(&r->failure, SB_ERR_FORBIDDEN, "syscalls",
			  "killed by a wall, for something that no program here may do");
	else if (code)
		budget(r, l, code);
}

void ending_fill(sb_result *r, const sb_limits *l, const pump *p, const sb_guest_exit *end)
{
	r->code = -1;
	r->incomplete = p->lost;
	switch (p->why) {
	case PUMP_OUTPUT:
		output_limit(r, l);
		return;
	case PUMP_TIME:
		time_limit(r, l);
		return;
	case PUMP_WAIT_OVER:
		fail(r, SB_OUTCOME_TIMED_OUT, SB_ERR_TIMEOUT, "deadline",
		     "stopped at the caller's deadline");
		return;
	case PUMP_CANCELLED:
		fail(r, SB_OUTCOME_CANCELLED, SB_ERR_CANCELLED, "cancel",
		     "stopped, because the caller cancelled the run");
		return;
	case PUMP_CALLBACK:
		fail(r, SB_OUTCOME_CANCELLED, SB_ERR_CANCELLED, "callback",
		     "stopped, because the receiver of the output wanted no more");
		return;
	default:
		break;
	}
	if (end)
		natural(r, l, end);
	else
		fail(r, SB_OUTCOME_LOST, SB_ERR_CONNECTION_LOST, "backend",
		     "the command did not end when it was killed; how it ended is not known");
}
