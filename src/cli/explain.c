/* SPDX-License-Identifier: MIT */
/* explain.c - `sandbox explain`: the plan, the filter, or one path, without running anything. */
#include "cli.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The path that is asked about, absolute, in *text; false = none is. */
static bool path_asked(const cli_options *options, cli_text *text)
{
	const char *path = options->path;

	if (path == NULL && options->rest_count == 1 && !options->dashes && options->lang == NULL &&
	    options->code == NULL && strcmp(options->rest[0], "-") != 0)
		path = options->rest[0];
	if (path == NULL)
		return false;
	if (path[0] != '/') {
		char *here = getcwd(NULL, 0);
		text_add_fmt(text, "%s/", here != NULL && strcmp(here, "/") != 0 ? here : "");
		free(here);
		while (strncmp(path, "./", 2) == 0)
			path += 2;
		if (strcmp(path, ".") == 0) {
			path = "";
			text->data[--text->len] = '\0';
		}
	}
	text_add(text, path);
	return true;
}

static const char *access_words(int access)
{
	switch (access) {
	case SB_FILE_READ:
		return "read-only";
	case SB_FILE_WRITE:
		return "writable";
	case SB_FILE_PROTECT:
		return "protected, read-only";
	case SB_FILE_TMPFS:
		return "private, empty at the start";
	default:
		return "hidden";
	}
}

static int show_path(const sb_plan *plan, const char *path, bool json, cli_text *text,
		     sb_error *err)
{
	const char *why = "";
	int access = 0;

	if (sb_plan_path(plan, path, &access, &why) < 0)
		return error_fill(
			err, SB_ERR_INVALID_PATH, "path",
			"\"%.160s\" is no clean absolute path: write it from /, without \"..\"",
			path);
	if (json) {
		text_add(text, "{\"schema\":1,\"path\":");
		text_add_json(text, path);
		text_add(text, ",\"access\":");
		text_add_json(text, sb_access_name(access));
		text_add(text, ",\"why\":");
		text_add_json(text, why);
		text_add(text, "}\n");
	} else {
		text_add_plain(text, path);
		text_add_fmt(text, ": %s%s%s\n", access_words(access), *why != '\0' ? "; " : "",
			     why);
	}
	return 0;
}

/* What was asked for about the plan, as text. */
static int show_plan(const sb_plan *plan, const cli_options *options, cli_text *text, sb_error *err)
{
	const char *format = options->seccomp ? "seccomp" : options->json ? "json" : "text";
	const char *shown = sb_plan_text(plan, format);

	if (shown == NULL)
		return error_fill(err, SB_ERR_UNSUPPORTED, "plan",
				  "backend \"%.160s\" has no %s to show", sb_plan_backend(plan),
				  options->seccomp ? "system call filter" : format);
	text_add(text, shown);
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		text_add(text, "\n");
	return 0;
}

static int explain(const cli_options *options, const cli_request *request, const char *path,
		   cli_text *text, sb_error *err)
{
	const sb_command *command = request->command.size == 0 ? NULL : &request->command;
	sb_sandbox *sandbox = NULL;
	sb_plan *plan = NULL;
	int code = 0;

	if (cli_sandbox(options, &sandbox, err) < 0 ||
	    sb_explain(sandbox, &request->spec, command, &plan, err) < 0 ||
	    (path != NULL ? show_path(plan, path, options->json, text, err)
			  : show_plan(plan, options, text, err)) < 0)
		code = -1;
	else if (sb_plan_failure(plan) != NULL)
		code = CLI_EXIT_OURS;
	sb_plan_free(plan);
	sb_sandbox_free(sandbox);
	return code;
}

/* "explain PATH --json": the options became the arguments of a program that is none. */
static bool options_behind(const cli_options *options)
{
	return !options->dashes && options->code == NULL && options->rest_count > 1 &&
	       options->rest[1][0] == '-' && options->rest[1][1] != '\0';
}

int explain_main(char **words)
{
	cli_options options;
	cli_request request = { 0 };
	cli_text path = { 0 }, text = { 0 };
	sb_error err;
	int code = -1;

	if (options_parse(CLI_EXPLAIN, words, &options, &err) < 0) {
		code = cli_fail(&err, options_want_json(words), false);
	} else if (options.help) {
		code = help_show(CLI_EXPLAIN);
	} else {
		bool asked = path_asked(&options, &path);
		bool with_command = options.dashes || options.lang != NULL ||
				    options.code != NULL ||
				    options.rest_count > (asked && options.path == NULL ? 1 : 0);
		const char *word = options.path != NULL ? options.path : asked ? options.rest[0] : NULL;
		if (word != NULL && word[0] == '\0')
			error_fill(&err, SB_ERR_INVALID_PATH, "path", "the path is empty: name one");
		else if (request_build(&request, &options, with_command, &err) == 0)
			code = explain(&options, &request, path.data, &text, &err);
		else if (options_behind(&options))
			error_fill(&err, SB_ERR_INVALID, "options",
				   "options go before a path: sandbox explain %.60s ... %.160s",
				   options.rest[1], options.rest[0]);
		if (code < 0) {
			cli_fail(&err, options.json, false);
			code = CLI_EXIT_OURS; /* also where a run's would tell more */
		} else
			code = output_text(STDOUT_FILENO, &text, code);
	}
	text_release(&path);
	text_release(&text);
	request_release(&request);
	options_release(&options);
	return code;
}
