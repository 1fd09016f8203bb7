/* SPDX-License-Identifier: MIT */
/*
 * run.c - `sandbox run`: the guest's output goes out as it comes, a signal or a reader that has
 * gone stops the guest, and the exit code tells how it ended.
 */
#include "cli.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_MS = 500 }; /* for a slow reader, after the deadline */

typedef struct run_state {
	const cli_options *options;
	cli_stream out, err;
	uint64_t deadline_ns;
} run_state;

/* ---- Signals ------------------------------------------------------------------------------ */

static sb_cancel *cancel; /* fired by the handler */
static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
	stop_signal = number;
	sb_cancel_fire(cancel);
}

/* What the caller had ignored (nohup, a shell's background job) stays ignored. */
static void catch_signals(void)
{
	static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on_signal };
	struct sigaction old;

	for (size_t i = 0; i < CLI_LEN(stops); i++)
		if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(stops[i], &action, NULL);
}

/* ---- Output ------------------------------------------------------------------------------- */

static int on_output(void *user, int stream, const void *data, size_t len)
{
	run_state *run = user;
	cli_stream *to = stream == SB_STDERR ? &run->err : &run->out;
	int state = stream_write(to, data, len, run->deadline_ns, &stop_signal);

	return state != STREAM_OK && state != STREAM_LATE;
}

/* When the library will end it, as far as the options and the pack tell. */
static uint64_t run_deadline_ns(sb_sandbox *sandbox, const cli_request *request)
{
	uint64_t wall_ms = request->limits.wall_ms;
	sb_limits defaults = { .size = sizeof defaults };
	const sb_pack *pack;

	if (wall_ms == 0) {
		if (request->command.language == NULL ||
		    sb_limits_default(SB_PROFILE_CODE, &defaults, NULL) < 0)
			return SB_UNLIMITED;
		wall_ms = defaults.wall_ms;
		if (sb_sandbox_pack(sandbox, request->command.language, &pack, NULL) == 0 &&
		    pack->limits != NULL && pack->limits->wall_ms > wall_ms)
			wall_ms = pack->limits->wall_ms;
	}
	if (wall_ms > INT64_MAX / 1000000)
		return SB_UNLIMITED;
	return stream_now_ns() + wall_ms * 1000000;
}

/* ---- How it ended ------------------------------------------------------------------------- */

static void describe_cut(const sb_result *result, cli_text *line)
{
	static const struct {
		int stream;
		const char *name;
	} streams[] = {
		{ SB_STDOUT, "standard output" },
		{ SB_STDERR, "standard error" },
		{ SB_TTY, "output" },
	};

	if (sb_result_incomplete(result) && sb_result_failure(result) == NULL)
		text_add_fmt(line, "%ssome of its output was lost on the way", line->len > 0 ? "; " : "");
	if (sb_result_truncated(result) == 0 || sb_result_error(result) == SB_ERR_OUTPUT_LIMIT)
		return;
	for (size_t i = 0; i < CLI_LEN(streams); i++) {
		size_t at = 0;
		uint64_t dropped = sb_result_dropped(result, streams[i].stream, &at);
		if (dropped == 0)
			continue;
		text_add_fmt(line, "%s%llu bytes of %s cut at byte %zu; --output keeps more",
			     line->len > 0 ? "; " : "", (unsigned long long)dropped,
			     streams[i].name, at);
	}
}

/* What was in /out and is not in --out. */
static void describe_left_out(const sb_result *result, cli_text *line)
{
	static const char *const words[SB_LEFT_COUNT] = {
		[SB_LEFT_LINK] = "links, which are not followed",
		[SB_LEFT_SPECIAL] = "no regular files",
		[SB_LEFT_TOO_DEEP] = "too deep",
		[SB_LEFT_UNREADABLE] = "not readable",
	};
	const sb_tree *files = sb_result_files(result);
	uint64_t all = sb_tree_left_out(files, 0);
	const char *comma = ": ";

	if (all == 0)
		return;
	text_add_fmt(line, "%s%llu left out of --out", line->len > 0 ? "; " : "",
		     (unsigned long long)all);
	for (int why = SB_LEFT_LINK; why < SB_LEFT_COUNT; why++) {
		uint64_t n = sb_tree_left_out(files, why);
		if (n == 0)
			continue;
		text_add_fmt(line, "%s%llu %s", comma, (unsigned long long)n, words[why]);
		comma = ", ";
	}
}

/* ---- The run ------------------------------------------------------------------------------ */

/* After the guest's end: the exit code that our own output leaves, 0 = all was taken. */
static int streams_exit(run_state *run, cli_text *line)
{
	cli_stream *streams[] = { &run->out, &run->err };
	uint64_t lost = 0;
	int code = 0;

	for (size_t i = 0; i < CLI_LEN(streams); i++) {
		stream_flush(streams[i], FLUSH_MS, &stop_signal);
		lost += streams[i]->lost;
		if (streams[i]->state == STREAM_GONE)
			code = CLI_EXIT_PIPE;
		if (streams[i]->state == STREAM_ERROR) {
			text_add_fmt(line, "cannot write its %s: %s", i == 0 ? "output" : "errors",
				     units_errno_text(streams[i]->os_errno, (char[UNITS_TEXT]){ 0 }));
			return CLI_EXIT_OURS;
		}
	}
	if (code == 0 && stop_signal != 0 && lost > 0)
		code = 128 + stop_signal;
	if (code == 0 && lost > 0) {
		text_add_fmt(line, "%llu bytes of output were not read in time",
			     (unsigned long long)lost);
		code = CLI_EXIT_TIME;
	}
	return code;
}

/* The object, to a reader that has all the time that it wants: nothing of the guest's runs any more.
 * Once a signal has come it has a moment, and the next one ends the wait. */
static int json_write(run_state *run, const char *json, int stopped)
{
	uint64_t end = SB_UNLIMITED;

	if (stopped != 0) {
		end = stream_now_ns() + (uint64_t)FLUSH_MS * 1000000;
		stop_signal = 0;
	}
	stream_write(&run->out, json, strlen(json), end, &stop_signal);
	return stream_write(&run->out, "\n", 1, end, &stop_signal);
}

/* --json: the object instead of the streams. */
static int json_exit(run_state *run, const sb_result *result, int stopped, cli_text *line)
{
	const char *json = sb_result_json(result);

	if (json == NULL) {
		text_add(line, "no memory for the result as JSON: lower --output");
		return CLI_EXIT_OURS;
	}
	switch (json_write(run, json, stopped)) {
	case STREAM_OK:
		return 0;
	case STREAM_STOPPED:
		return 128 + stop_signal;
	default:
		return streams_exit(run, line);
	}
}

/* --debug: what held, and what a careful reader must know of it. */
static void debug_plan(const cli_options *options, const sb_result *result)
{
	const sb_plan *plan = sb_result_plan(result);
	const char *const *appeared = sb_result_appeared(result);
	sb_plan_line line = { .size = sizeof line };

	if (!options->debug)
		return;
	for (size_t i = 0; plan != NULL && i < sb_plan_count(plan); i++)
		if (sb_plan_at(plan, i, &line) == 0)
			cli_debug(options, "%s: %s by %s%s%s", sb_wall_name((int)line.wall),
				  sb_level_name((int)line.level), line.mechanism,
				  *line.caveat != '\0' ? "; " : "", line.caveat);
	for (; appeared != NULL && *appeared != NULL; appeared++)
		cli_debug(options, "a protected path appeared: \"%.160s\"", *appeared);
}

/* Our one line, on a line of its own. */
static void say(run_state *run, const char *line)
{
	if (run->err.open_line && run->err.state == STREAM_OK)
		stream_write(&run->err, "\n", 1, stream_now_ns() + FLUSH_MS * 1000000ull, &stop_signal);
	output_line("%s", line);
}

/* What is to be said of the run, in one line; empty if all went as asked. */
static void describe(const run_state *run, const sb_result *result, int stopped, int ours,
		     const cli_text *trouble, cli_text *line)
{
	sb_limits limits = { .size = sizeof limits };

	if (stopped != 0 && sb_result_outcome(result) == SB_OUTCOME_CANCELLED) {
		text_add_fmt(line, "stopped by signal %d", stopped);
	} else if (ours != CLI_EXIT_PIPE && ours != CLI_EXIT_OURS) {
		sb_plan_limits(sb_result_plan(result), &limits);
		ending_describe(sb_result_failure(result), &limits, line);
		describe_cut(result, line);
	}
	if (trouble->len > 0)
		text_add_fmt(line, "%s%s", line->len > 0 ? "; " : "", trouble->data);
	if (run->options->out != NULL)
		describe_left_out(result, line);
}

static int finish(run_state *run, const cli_outdir *out, const sb_result *result)
{
	const cli_options *options = run->options;
	cli_text line = { 0 }, trouble = { 0 };
	const sb_exit end = { .size = sizeof end, .outcome = sb_result_outcome(result),
			      .error = sb_result_error(result), .code = sb_result_code(result),
			      .signal_number = sb_result_signal(result) };
	sb_error err;
	int outcome = end.outcome, code = ending_exit(&end), stopped = stop_signal;

	cli_debug(options, "%s, exit code %d", sb_outcome_name(outcome), code);
	debug_plan(options, result);
	int ours = options->json ? json_exit(run, result, stopped, &trouble)
				 : streams_exit(run, &trouble);
	if (ours == CLI_EXIT_OURS || (ours != 0 && outcome != SB_OUTCOME_TIMED_OUT))
		code = ours;
	if (stopped != 0 && outcome == SB_OUTCOME_CANCELLED)
		code = 128 + stopped;
	describe(run, result, stopped, ours, &trouble, &line);
	if (line.len > 0 && !options->quiet && (!options->json || ours == CLI_EXIT_OURS))
		say(run, line.data);
	text_release(&line);
	text_release(&trouble);
	if (outdir_write(out, sb_result_files(result), &err) < 0)
		code = cli_fail(&err, false, options->quiet);
	return code;
}

/* No result: the exit code that stands for why. */
static int refused(run_state *run, const sb_error *err)
{
	int stopped = stop_signal;
	cli_text json = { 0 };

	if (run->options->json) {
		text_add_error_json(&json, err);
		if (!json.failed)
			json_write(run, json.data, stopped);
		text_release(&json);
	} else if (!run->options->quiet && (stopped == 0 || err->code != SB_ERR_CANCELLED))
		output_line("%s", err->message);
	return stopped != 0 && err->code == SB_ERR_CANCELLED ? 128 + stopped : cli_error_exit(err);
}

/* What takes long before the run begins, and why. */
static int on_progress(void *user, const sb_progress *progress)
{
	const run_state *run = user;

	if (strcmp(progress->phase, "compile") == 0 && !run->options->quiet)
		output_line("the compiled module of the pack \"%s\" is not what its manifest pins: it is made anew",
			    progress->subject);
	return 0;
}

static int run_request(const cli_options *options, cli_request *request)
{
	run_state run = { .options = options };
	sb_sandbox *sandbox = NULL;
	sb_result *result = NULL;
	cli_outdir out;
	sb_error err;
	int code;

	if (outdir_open(&out, options->out, &err) < 0)
		return cli_fail(&err, options->json, options->quiet);
	if (sb_cancel_new(&cancel, &err) < 0 || cli_sandbox(options, &sandbox, &err) < 0) {
		code = cli_fail(&err, options->json, options->quiet);
		goto done;
	}
	catch_signals();
	stream_init(&run.out, STDOUT_FILENO);
	stream_init(&run.err, STDERR_FILENO);
	run.deadline_ns = run_deadline_ns(sandbox, request);
	if (!options->json) {
		request->command.on_output = on_output;
		request->command.user = &run;
	}
	const sb_wait wait = { .size = sizeof wait, .cancel = cancel, .on_progress = on_progress, .user = &run };
	if (request->command.language != NULL)
		cli_debug(options, "read: %zu bytes of %s", request->command.code_len,
			  request->command.language);
	if (!options->json && !options->debug) /* nobody will see them */
		request->command.flags |= SB_COMMAND_SHORT_PLAN;
	cli_debug(options, "starting %s",
		  request->command.argv != NULL ? request->command.argv[0] : "the code");
	if (sb_run(sandbox, &request->spec, &request->command, &wait, &result, &err) < 0)
		code = refused(&run, &err);
	else
		code = finish(&run, &out, result);
done:
	outdir_close(&out, result == NULL);
	sb_result_free(result);
	sb_sandbox_free(sandbox);
	return code; /* `cancel` lives on: a signal may still come */
}

static int tty_refused(const cli_options *options, sb_error *err)
{
	if (!options->tty && options->size != NULL)
		return error_fill(err, SB_ERR_INVALID, "size", "--size is that of a terminal: add --tty");
	if (options->tty && (options->json || options->out != NULL))
		return error_fill(err, SB_ERR_INVALID, "terminal",
				  "--tty passes a terminal on: %s has no place beside it",
				  options->json ? "--json" : "--out");
	if (options->tty && (options->out_keep != 0 ||
			     (options->output_bytes != 0 && options->output_bytes != SB_UNLIMITED &&
			      options->out_mode != SB_OUT_STOP)))
		return error_fill(err, SB_ERR_INVALID, "terminal",
				  "--tty passes on all that comes: for a cap add --output-mode stop%s",
				  options->out_keep != 0 ? ", and leave --output-keep out" : "");
	if (options->tty && !options->dashes)
		return error_fill(err, SB_ERR_INVALID, "terminal",
				  "--tty is for a command: `sandbox run --tty -- COMMAND`");
	return 0;
}

int run_main(char **words)
{
	cli_options options;
	cli_request request = { 0 };
	sb_error err;
	int code;

	if (options_parse(CLI_RUN, words, &options, &err) < 0)
		code = cli_fail(&err, options_want_json(words), false);
	else if (options.help)
		code = help_show(CLI_RUN);
	else if (tty_refused(&options, &err) < 0 || request_build(&request, &options, true, &err) < 0)
		code = cli_fail(&err, options.json, options.quiet);
	else if (options.tty)
		code = terminal_run(&options, &request);
	else
		code = run_request(&options, &request);
	request_release(&request);
	options_release(&options);
	return code;
}
