/* SPDX-License-Identifier: MIT */
/*
 * repl.c - `sandbox repl`: a language's console behind walls.
 *
 * Lines are collected until the language says that they are finished; then they run, and what they
 * write goes out as it comes.  At a terminal one more thread waits for Ctrl-C, which stops what runs;
 * whatever ends the session there is told, and the next line finds a new one.  In a pipe the first such
 * end is the end, and the exit code tells.
 */
#include "cli.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct repl_state {
	const cli_options *options;
	sb_sandbox *sandbox;
	sb_session *session;
	cli_lines lines;
	cli_outdir outdir;
	cli_stream out, err;
	const sb_file *const *files; /* for the first evaluation */
	bool terminal;
	int struck;               /* eventfd: Ctrl-C, for who waits for input */
	bool told;                /* that all is gone */
	bool ended;
	int code;                 /* exit code, once ended */
} repl_state;

/* ---- Ctrl-C ----------------------------------------------------------------------------------- */

static void *wait_for_interrupts(void *arg)
{
	repl_state *repl = arg;
	const uint64_t one = 1;
	sigset_t only;
	int number;

	sigemptyset(&only);
	sigaddset(&only, SIGINT);
	while (sigwait(&only, &number) == 0) {
		(void)sb_session_interrupt(repl->session, NULL, NULL);
		if (write(repl->struck, &one, sizeof one) < 0)
			continue; /* told already */
	}
	return NULL;
}

/* Before anything starts a thread, which shall not be the one that is struck. */
static void catch_interrupts(repl_state *repl)
{
	pthread_attr_t detached;
	pthread_t thread;
	sigset_t only;

	if (!repl->terminal)
		return;
	sigemptyset(&only);
	sigaddset(&only, SIGINT);
	pthread_sigmask(SIG_BLOCK, &only, NULL);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &detached, wait_for_interrupts, repl) != 0)
		pthread_sigmask(SIG_UNBLOCK, &only, NULL); /* then it ends us all */
	pthread_attr_destroy(&detached);
}

/* ---- what code says and hears ------------------------------------------------------------------- */

static const volatile sig_atomic_t never;

static int on_output(void *user, int stream, const void *data, size_t len)
{
	repl_state *repl = user;
	cli_stream *to = stream == SB_STDERR ? &repl->err : &repl->out;

	return stream_write(to, data, len, SB_UNLIMITED, &never) != STREAM_OK;
}

/* Code asks at the terminal. */
static int64_t on_input(void *user, void *buf, size_t cap)
{
	repl_state *repl = user;
	cli_text line = { 0 };
	uint64_t count;
	int64_t n = 0;

	if (read(repl->struck, &count, sizeof count) < 0)
		count = 0; /* nothing of before */
	if (line_raw(&repl->lines, &line, repl->struck) == LINE_READ && line.len + 1 < cap) {
		text_add(&line, "\n");
		if (!line.failed) {
			memcpy(buf, line.data, line.len);
			n = (int64_t)line.len;
		}
	}
	text_release(&line);
	return n;
}

/* ---- a piece of code ------------------------------------------------------------------------------ */

static void say(repl_state *repl, const char *words)
{
	if (repl->err.open_line || repl->out.open_line)
		(void)stream_write(&repl->err, "\n", 1, SB_UNLIMITED, &never);
	output_line("%s", words);
}

static void end(repl_state *repl, int code)
{
	repl->ended = true;
	repl->code = code;
}

static int result_exit(const sb_result *result)
{
	const sb_error *failure = sb_result_failure(result);
	const sb_exit how = {
		.outcome = sb_result_outcome(result),
		.error = failure->cause != 0 ? failure->cause : failure->code,
		.code = sb_result_code(result),
		.signal_number = sb_result_signal(result),
	};

	return ending_exit(&how);
}

static void describe(const repl_state *repl, const sb_error *failure, cli_text *line)
{
	sb_limits limits = { .size = sizeof limits };
	sb_error why = *failure;

	if (why.cause != 0)
		why.code = why.cause;
	sb_plan_limits(sb_session_plan(repl->session), &limits);
	ending_describe(&why, &limits, line);
}

/* The interpreter has gone by itself, or was killed. */
static void on_failure(repl_state *repl, const sb_result *result)
{
	const sb_error *failure = sb_result_failure(result);
	bool left = sb_error_is(failure, SB_ERR_PROCESS_CLOSED) != 0;

	if (left) {
		end(repl, result_exit(result));
		return;
	}
	cli_text line = { 0 };

	describe(repl, failure, &line);
	if (!repl->options->quiet && line.len > 0)
		say(repl, line.data);
	text_release(&line);
	repl->told = true;
	if (!repl->terminal)
		end(repl, result_exit(result));
	else if (!repl->options->quiet)
		output_line("all that was defined is gone; the next line finds everything new");
}

/* It may have ended while nothing ran: then this is the first that we hear of it. */
static void tell_of_restart(repl_state *repl)
{
	if (!repl->told && !repl->options->quiet)
		say(repl, "the interpreter had ended since the last line: all that was defined before is gone");
	repl->told = false;
}

static bool is_unfinished(repl_state *repl, const sb_result *result)
{
	sb_error err;

	if (sb_result_restarted(result))
		tell_of_restart(repl);
	if (sb_result_unfinished(result))
		return true;
	if (outdir_write(&repl->outdir, sb_result_files(result), &err) < 0)
		say(repl, err.message);
	if (sb_result_failure(result) != NULL)
		on_failure(repl, result);
	else if (repl->out.state != STREAM_OK)
		end(repl, CLI_EXIT_PIPE);
	return false;
}

/* True: it goes on. */
static bool evaluate(repl_state *repl, const cli_text *code, bool partial)
{
	const sb_command command = {
		.size = sizeof command,
		.code = code->data,
		.code_len = code->len,
		.files = repl->files,
		.on_output = on_output,
		.read_input = on_input,
		.user = repl,
		.input_kind = repl->terminal && repl->lines.asks ? SB_INPUT_CALLBACK : SB_INPUT_NONE,
		.flags = partial ? SB_COMMAND_PARTIAL : 0,
	};
	sb_result *result = NULL;
	sb_error err;

	repl->out.open_line = repl->err.open_line = false;
	if (sb_session_eval(repl->session, &command, NULL, &result, &err) < 0) {
		say(repl, err.message);
		if (!repl->terminal || sb_error_kind(err.code) == SB_KIND_CLOSED)
			end(repl, CLI_EXIT_OURS);
		return false;
	}
	repl->files = NULL;
	bool more = is_unfinished(repl, result);

	sb_result_free(result);
	return more;
}

/* ---- our own commands -------------------------------------------------------------------------------- */

static void show_limits(const repl_state *repl)
{
	sb_limits l = { .size = sizeof l };
	char value[UNITS_TEXT];
	cli_text text = { 0 };

	sb_plan_limits(sb_session_plan(repl->session), &l);
	text_add_fmt(&text, "time    %s for each evaluation\n", units_duration_text(l.wall_ms, value));
	text_add_fmt(&text, "output  %s for each evaluation\n",
		     units_size_text(l.out_total_bytes < l.out_stream_bytes ? l.out_total_bytes
									    : l.out_stream_bytes,
				     value));
	text_add_fmt(&text, "memory  %s\n", units_size_text(l.memory_bytes, value));
	text_add_fmt(&text, "cpu     %s\n", units_duration_text(l.cpu_ms, value));
	text_add_fmt(&text, "disk    %s\n", units_size_text(l.fs_bytes, value));
	if (l.procs == SB_UNLIMITED)
		text_add(&text, "pids    unlimited\n");
	else
		text_add_fmt(&text, "pids    %llu\n", (unsigned long long)l.procs);
	(void)output_text(STDOUT_FILENO, &text, 0);
}

static void show_help(void)
{
	static const char help[] = ":help    this text\n"
				   ":reset   everything as at the start: no variable, no process, no file\n"
				   ":limits  what it may use\n"
				   ":quit    ends it, as does the end of the input\n"
				   "All other lines are code. Files that it leaves in /out go to --out.\n";

	(void)output_write(STDOUT_FILENO, help, sizeof help - 1);
}

/* True: the line was one of ours.  One with a zero byte is none of them. */
static bool own_command(repl_state *repl, const char *line, size_t len)
{
	sb_error err;

	if (strlen(line) != len)
		return false;
	if (strcmp(line, ":quit") == 0)
		end(repl, 0);
	else if (strcmp(line, ":help") == 0)
		show_help();
	else if (strcmp(line, ":limits") == 0)
		show_limits(repl);
	else if (strcmp(line, ":reset") != 0)
		return false;
	else if (sb_session_reset(repl->session, NULL, &err) < 0) {
		say(repl, err.message);
		end(repl, CLI_EXIT_OURS);
	}
	return true;
}

/* ---- lines ------------------------------------------------------------------------------------------- */

static bool is_blank(const char *line, size_t len)
{
	return strspn(line, " \t\r") == len;
}

static void take_line(repl_state *repl, cli_text *code, const cli_text *line)
{
	const char *text = line->data != NULL ? line->data : "";

	line_remember(&repl->lines, text);
	if (code->data == NULL || code->len == 0) {
		if (is_blank(text, line->len) || own_command(repl, text, line->len))
			return;
	} else {
		text_add(code, "\n");
	}
	text_add_len(code, text, line->len);
	if (code->failed) {
		say(repl, "no memory for so much code");
		end(repl, CLI_EXIT_OURS);
	} else if (!evaluate(repl, code, true)) {
		code->len = 0;
	}
}

static void loop(repl_state *repl)
{
	bool python = strcmp(sb_session_language(repl->session), "python") == 0;
	const char *first = python ? ">>> " : "> ", *more = python ? "... " : "| ";
	cli_text code = { 0 }, line = { 0 };

	while (!repl->ended) {
		int state = line_next(&repl->lines, code.len > 0 ? more : first, &line);

		if (state == LINE_READ) {
			take_line(repl, &code, &line);
		} else if (state == LINE_BROKEN) {
			code.len = 0;
		} else {
			/* what was begun is all that there is */
			if (state == LINE_END && code.len > 0)
				evaluate(repl, &code, false);
			if (state == LINE_LONG)
				say(repl, "a line has more than 64 MiB");
			if (!repl->ended)
				end(repl, state == LINE_LONG ? CLI_EXIT_OURS : 0);
			if (repl->terminal && state == LINE_END)
				(void)output_write(STDOUT_FILENO, "\n", 1);
		}
	}
	text_release(&code);
	text_release(&line);
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static int repl_session(repl_state *repl, const cli_request *request)
{
	const sb_session_options session = {
		.size = sizeof session,
		.language = repl->options->lang,
		.flags = repl->terminal ? SB_SESSION_AUTO_RESTART : 0,
	};
	sb_error err;

	repl->files = request->command.files;
	repl->struck = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (outdir_open(&repl->outdir, repl->options->out, &err) < 0 ||
	    cli_sandbox(repl->options, &repl->sandbox, &err) < 0 ||
	    sb_session_open(repl->sandbox, &request->spec, &session, NULL, &repl->session, &err) < 0) {
		outdir_close(&repl->outdir, true);
		return cli_fail(&err, false, repl->options->quiet);
	}
	if (heap_share != NULL)
		heap_share();
	catch_interrupts(repl);
	line_init(&repl->lines, repl->terminal);
	repl->lines.asks = strcmp(sb_session_language(repl->session), "python") == 0;
	if (repl->terminal && !repl->options->quiet)
		output_line("%s behind walls; :help, :quit", sb_session_language(repl->session));
	loop(repl);
	line_release(&repl->lines);
	outdir_close(&repl->outdir, false);
	return repl->code;
}

static int repl_run(const cli_options *options, cli_request *request)
{
	repl_state *repl = calloc(1, sizeof *repl); /* outlives us: the thread may still look */
	sb_error err;

	if (repl == NULL) {
		error_fill(&err, SB_ERR_NO_MEMORY, "repl", "no memory");
		return cli_fail(&err, false, options->quiet);
	}
	repl->options = options;
	repl->outdir.fd = -1;
	repl->terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
	stream_init(&repl->out, STDOUT_FILENO);
	stream_init(&repl->err, STDERR_FILENO);
	int code = repl_session(repl, request);

	(void)sb_session_close(repl->session, NULL, NULL);
	sb_sandbox_free(repl->sandbox); /* the handle of the session stays, for the thread */
	return code;
}

static int check_words(const cli_options *options, sb_error *err)
{
	if (options->lang == NULL)
		return error_fill(err, SB_ERR_INVALID, "repl",
				  "which language? as in `sandbox repl --lang python`");
	if (options->rest_count > 0)
		return error_fill(err, SB_ERR_INVALID, "repl",
				  "`sandbox repl` takes no \"%.160s\": code comes line by line", options->rest[0]);
	return 0;
}

int repl_main(char **words)
{
	cli_options options;
	cli_request request = { 0 };
	sb_error err;
	int code;

	if (options_parse(CLI_REPL, words, &options, &err) < 0)
		code = cli_fail(&err, false, false);
	else if (options.help)
		code = help_show(CLI_REPL);
	else if (check_words(&options, &err) < 0 || request_build(&request, &options, false, &err) < 0)
		code = cli_fail(&err, false, options.quiet);
	else
		code = repl_run(&options, &request);
	request_release(&request);
	options_release(&options);
	return code;
}
