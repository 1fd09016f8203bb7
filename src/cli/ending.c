/* SPDX-License-Identifier: MIT */
/* ending.c - how a guest ended: as our exit code, and as one line for people. */
#include "cli.h"

#include <signal.h>
#include <string.h>

static int limit_exit(int error)
{
	switch (error) {
	case SB_ERR_TIMEOUT:
		return CLI_EXIT_TIME;
	case SB_ERR_MEMORY_LIMIT:
		return CLI_EXIT_MEMORY;
	case SB_ERR_CPU_LIMIT:
		return CLI_EXIT_CPU;
	case SB_ERR_OUTPUT_LIMIT:
	case SB_ERR_FS_QUOTA:
	case SB_ERR_TOO_MANY_FILES:
	case SB_ERR_PIDS_LIMIT:
		return CLI_EXIT_OUTPUT;
	default:
		return CLI_EXIT_OURS;
	}
}

int ending_exit(const sb_exit *end)
{
	switch (end->outcome) {
	case SB_OUTCOME_EXITED:
		return end->code & 0xff;
	case SB_OUTCOME_SIGNALED:
		return 128 + end->signal_number;
	case SB_OUTCOME_TERMINATED:
		return 128 + SIGTERM;
	case SB_OUTCOME_TIMED_OUT:
		return CLI_EXIT_TIME;
	case SB_OUTCOME_BUDGET_EXCEEDED:
		return limit_exit(end->error);
	case SB_OUTCOME_VIOLATION:
		return 128 + SIGSYS;
	default:
		return CLI_EXIT_OURS;
	}
}

/* Of an exit there is the code alone. */
static const char *words_of(const sb_error *failure)
{
	if (failure->message[0] != '\0')
		return failure->message;
	switch (failure->code) {
	case SB_ERR_FORBIDDEN:
		return "killed by a wall, for something that no program here may do";
	case SB_ERR_UNENFORCEABLE:
		return "a limit could no longer be measured";
	case SB_ERR_CONNECTION_LOST:
		return "the connection to the command was lost; how it ended is not known";
	default:
		return sb_code_name(failure->code);
	}
}

void ending_describe(const sb_error *failure, const sb_limits *limits, cli_text *line)
{
	uint64_t output = limits->out_total_bytes != SB_UNLIMITED && limits->out_total_bytes != 0
				  ? limits->out_total_bytes
				  : limits->out_stream_bytes;
	bool sized = limits->fs_bytes != 0 && limits->fs_bytes != SB_UNLIMITED;
	char value[UNITS_TEXT];

	switch (failure != NULL ? failure->code : 0) {
	case 0:
		return;
	case SB_ERR_TIMEOUT:
		text_add_fmt(line, "stopped after %s; --timeout allows more",
			     units_duration_text(limits->wall_ms, value));
		return;
	case SB_ERR_MEMORY_LIMIT:
		text_add_fmt(line, "stopped at its limit of %s of memory; --mem allows more",
			     units_size_text(limits->memory_bytes, value));
		return;
	case SB_ERR_CPU_LIMIT:
		text_add_fmt(line, "stopped after %s of CPU time; --cpu allows more",
			     units_duration_text(limits->cpu_ms, value));
		return;
	case SB_ERR_OUTPUT_LIMIT:
		text_add_fmt(line,
			     "stopped after %s of output; --output allows more, and "
			     "--output-mode truncate lets it go on",
			     units_size_text(output, value));
		return;
	case SB_ERR_FS_QUOTA:
		text_add_fmt(
			line, "ended out of disk space, at %s; %s allows more",
			units_size_text(sized ? limits->fs_bytes : limits->memory_bytes / 2, value),
			sized ? "--disk" : "--mem");
		return;
	case SB_ERR_TOO_MANY_FILES:
		text_add_fmt(
			line,
			"ended at its limit of %llu files and folders; --disk-files allows more",
			(unsigned long long)limits->fs_nodes);
		return;
	case SB_ERR_PIDS_LIMIT:
		text_add_fmt(line, "ended at its limit of %llu processes; --pids allows more",
			     (unsigned long long)limits->procs);
		return;
	default:
		text_add_fmt(line, "%s%s", strncmp(words_of(failure), "stopped", 7) ? "stopped: " : "",
			     words_of(failure));
	}
}
