/* SPDX-License-Identifier: MIT */
/* main.c - `sandbox`: standard descriptors first, then the command that the first word names. */
#include "cli.h"
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK_LEAST = 256 << 10 };

const cli_command command_table[] = {
	{ "run", run_main, CLI_RUN, "runs code or a command behind walls" },
	{ "shell", shell_main, CLI_SHELL, "a terminal behind walls" },
	{ "explain", explain_main, CLI_EXPLAIN, "says what would hold, without running anything" },
	{ "repl", repl_main, CLI_REPL, "a language's console behind walls" },
	{ "doctor", doctor_main, CLI_DOCTOR, "says what works on this machine" },
	{ "packs", packs_main, 0, "the languages on board: what is there, and how to get it" },
	{ "completion", completion_main, 0, "completion for a shell" },
	{ "version", version_main, 0, "the version" },
	{ "help", help_main, 0, "help on a command" },
};
const size_t command_count = CLI_LEN(command_table);

/* A descriptor that the caller closed would be taken by the next file that is opened. */
static void open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0)
			_exit(CLI_EXIT_OURS);
}

/* With less the kernel ends us in the middle of it, without a word; threads get as much as this, too. */
static bool stack_suffices(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= STACK_LEAST)
		return true;
	output_line("the stack may have %llu KiB, and %d are needed: raise it (`ulimit -s 8192`)",
		    (unsigned long long)limit.rlim_cur / 1024, STACK_LEAST / 1024);
	return false;
}

/* What only says something. */
static bool needs_no_stack(const cli_command *command)
{
	return command->options == 0 && command->main != packs_main;
}

/* ---- Shared by the commands ---------------------------------------------------------------- */

int cli_error_exit(const sb_error *err)
{
	if (strcmp(err->where, "exec") != 0)
		return CLI_EXIT_OURS;
	return err->code == SB_ERR_NOT_FOUND   ? CLI_EXIT_NOT_FOUND
	       : err->code == SB_ERR_FORBIDDEN ? CLI_EXIT_NOT_EXECUTABLE
					       : CLI_EXIT_OURS;
}

int cli_fail(const sb_error *err, bool json, bool quiet)
{
	cli_text text = { 0 };

	if (json) {
		text_add_error_json(&text, err);
		text_add(&text, "\n");
		(void)output_text(STDOUT_FILENO, &text, 0);
	} else if (!quiet)
		output_line("%s", err->message);
	return cli_error_exit(err);
}

static uint64_t started_ns;

static void debug_line(const char *text)
{
	uint64_t us = (stream_now_ns() - started_ns) / 1000;

	output_line("debug: %llu.%03llu ms: %s", (unsigned long long)(us / 1000),
		    (unsigned long long)(us % 1000), text);
}

void cli_debug(const cli_options *options, const char *fmt, ...)
{
	char text[700];
	va_list args;

	if (!options->debug)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	debug_line(text);
}

static void on_log(void *user, int level, const char *module, const char *message)
{
	char text[700];

	(void)user;
	(void)level;
	snprintf(text, sizeof text, "%s: %s", module, message);
	debug_line(text);
}

int cli_sandbox(const cli_options *options, sb_sandbox **sandbox, sb_error *err)
{
	const sb_sandbox_options debug = { .size = sizeof debug,
					   .log = on_log,
					   .log_level = SB_LOG_DEBUG };

	return sb_sandbox_new(options->debug ? &debug : NULL, NULL, sandbox, err);
}

/* -------------------------------------------------------------------------------------------- */

static int unknown_command(const char *word, bool json)
{
	const char *names[CLI_LEN(command_table)];
	sb_error err;

	for (size_t i = 0; i < command_count; i++)
		names[i] = command_table[i].name;
	const char *near = options_nearest(word, names, command_count);

	if (near != NULL)
		error_fill(&err, SB_ERR_INVALID, "command",
			   "unknown command \"%.160s\": did you mean %s?", word, near);
	else if (word[0] == '-')
		error_fill(&err, SB_ERR_INVALID, "command",
			   "\"%.160s\" is no command: options stand behind one, as in `sandbox run %.160s "
			   "...`; see `sandbox help`", word, word);
	else
		error_fill(&err, SB_ERR_INVALID, "command",
			   "unknown command \"%.160s\": see `sandbox help`; to run it: `sandbox run -- "
			   "%.160s`", word, word);
	return cli_fail(&err, json, false);
}

static void on_failed_write(int number)
{
	(void)number;
}

/* A reader that has gone, and a file that may not grow, are told by write(), too.  A handler, since
 * an ignored signal would stay ignored in the guest. */
static void survive_failed_writes(void)
{
	const struct sigaction action = { .sa_handler = on_failed_write, .sa_flags = SA_RESTART };

	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGXFSZ, &action, NULL);
}

int main(int argc, char **argv)
{
	static char debug[] = "--debug";
	int launched = launch_self(argv);

	if (launched >= 0)
		return launched;
	open_standard_descriptors();
	survive_failed_writes();
	started_ns = stream_now_ns();
	if (argc < 2) {
		output_line("nothing to do: see `sandbox help`");
		return CLI_EXIT_OURS;
	}
	if (strcmp(argv[1], "--debug") == 0 && argc > 2) { /* `sandbox --debug run ...` */
		argv[1] = argv[2];
		argv[2] = debug;
	}
	const char *word = argv[1];
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		word = "help";
	else if (strcmp(word, "--version") == 0)
		word = "version";
	for (size_t i = 0; i < command_count; i++)
		if (strcmp(command_table[i].name, word) == 0)
			return needs_no_stack(&command_table[i]) || stack_suffices() ? command_table[i].main(argv + 2)
										     : CLI_EXIT_OURS;
	return unknown_command(argv[1], options_want_json(argv + 1));
}
