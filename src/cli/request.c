/* SPDX-License-Identifier: MIT */
/* request.c - what the options said, as the records that sb_run() and sb_explain() take. */
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int invalid(sb_error *err, const char *message)
{
	return error_fill(err, SB_ERR_INVALID, "command", "%s", message);
}

static int no_memory(sb_error *err)
{
	return error_fill(err, SB_ERR_NO_MEMORY, "command", "out of memory");
}

/* ---- The command -------------------------------------------------------------------------- */

/* Nothing can ever be read there: no pump is needed. */
static bool input_is_null(void)
{
	int flags = fcntl(STDIN_FILENO, F_GETFL);
	struct stat st;

	if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH) != 0)
		return true;
	return fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode) && major(st.st_rdev) == 1 &&
	       minor(st.st_rdev) == 3;
}

static int command_argv(cli_request *request, const cli_options *options, sb_error *err)
{
	if (options->lang != NULL)
		return invalid(err, "--lang goes with code, not with a command behind --");
	if (options->rest_count == 0)
		return invalid(err,
			       "no command behind --: sandbox run [options] -- COMMAND [ARGS]");
	if (options->rest[0][0] == '\0')
		return invalid(err, "the command's name is empty");
	request->command.argv = (const char *const *)options->rest;
	return 0;
}

static int language_unknown(const char *path, sb_error *err)
{
	cli_text names = { 0 };

	source_languages(&names);
	error_fill(err, SB_ERR_UNKNOWN_LANGUAGE, "language",
		   "unknown language of \"%.160s\": name it with --lang (%s), or put -- before a "
		   "command",
		   path, names.data == NULL ? "" : names.data);
	text_release(&names);
	return SB_ERR_UNKNOWN_LANGUAGE;
}

static int file_missing(const char *path, sb_error *err)
{
	if (err->code != SB_ERR_NOT_FOUND || strchr(path, '/') != NULL || strchr(path, '.') != NULL)
		return err->code;
	return error_fill(
		err, SB_ERR_NOT_FOUND, "file",
		"no file \"%.160s\": to run a command of that name, write sandbox run -- %s", path,
		path);
}

static int command_file(cli_request *request, const cli_options *options, sb_error *err)
{
	const char *path = options->rest[0];
	cli_source *source = &request->source;

	if (path[0] == '\0')
		return invalid(err, "the file's name is empty: sandbox run FILE, or - for standard input");
	if (source_read(path, SOURCE_MAX_BYTES, &source->code, &source->code_len, err) < 0)
		return file_missing(path, err);
	source->language = options->lang;
	if (source->language == NULL)
		source->language = source_language(path, source->code, source->code_len);
	if (source->language == NULL)
		return language_unknown(path, err);
	request->command.code = source->code;
	request->command.code_len = source->code_len;
	request->command.args = (const char *const *)options->rest + 1;
	return 0;
}

static int command_eval(cli_request *request, const cli_options *options, sb_error *err)
{
	if (options->lang == NULL)
		return invalid(err, "which language? sandbox run --lang python -e 'CODE' [ARGS]");
	request->source.language = options->lang;
	request->command.code = options->code;
	request->command.code_len = strlen(options->code);
	request->command.args = (const char *const *)options->rest;
	return 0;
}

static int command_build(cli_request *request, const cli_options *options, sb_error *err)
{
	sb_command *command = &request->command;
	int rc;

	command->size = sizeof *command;
	command->cwd = options->workdir;
	if (options->code != NULL)
		rc = command_eval(request, options, err);
	else if (options->dashes)
		rc = command_argv(request, options, err);
	else if (options->rest_count > 0)
		rc = command_file(request, options, err);
	else if (options->lang != NULL)
		rc = invalid(err, "no code: name a file, - for standard input, or -e 'CODE'");
	else
		rc = invalid(err,
			     "nothing to run: sandbox run FILE, --lang L -e 'CODE', or -- COMMAND");
	if (rc < 0)
		return rc;
	command->language = request->source.language;
	bool taken =
		options->code == NULL && !options->dashes && strcmp(options->rest[0], "-") == 0;
	if (taken || input_is_null())
		command->input_kind = SB_INPUT_NONE;
	else {
		command->input_kind = SB_INPUT_FD;
		command->input_fd = STDIN_FILENO;
	}
	return 0;
}

/* ---- Limits, environment, network --------------------------------------------------------- */

static void limits_build(cli_request *request, const cli_options *options)
{
	sb_limits *limits = &request->limits;

	*limits = (sb_limits){
		.size = sizeof *limits,
		.memory_bytes = options->memory_bytes,
		.wall_ms = options->timeout_ms,
		.cpu_ms = options->cpu_ms,
		.fs_bytes = options->disk_bytes,
		.fs_nodes = options->disk_files,
		.procs = options->procs,
		.grace_ms = options->grace_ms,
		.out_mode = options->out_mode,
		.out_keep = options->out_keep,
	};
	if (request->command.language == NULL)
		limits->out_stream_bytes = options->output_bytes;
	else
		limits->out_total_bytes = options->output_bytes;
	request->spec.limits = limits;
}

/* --env NAME takes the caller's value, none if it is not set; NAME=VALUE is as it stands. */
static int env_build(cli_request *request, const cli_options *options, sb_error *err)
{
	if (options->env.len == 0)
		return 0;
	request->inject = calloc(options->env.len + 1, sizeof *request->inject);
	if (request->inject == NULL)
		return no_memory(err);
	for (size_t i = 0; i < options->env.len; i++) {
		const char *entry = options->env.at[i];
		const char *value = NULL;
		char *text = NULL;
		if (*entry == '\0' || *entry == '=')
			return error_fill(err, SB_ERR_INVALID, "env",
					  "--env \"%.160s\" has no name: write NAME or NAME=VALUE",
					  entry);
		if (strchr(entry, '=') == NULL && (value = getenv(entry)) == NULL)
			continue;
		size_t len = strlen(entry) + (value != NULL ? strlen(value) + 1 : 0) + 1;
		if ((text = malloc(len)) == NULL)
			return no_memory(err);
		snprintf(text, len, "%s%s%s", entry, value != NULL ? "=" : "",
			 value != NULL ? value : "");
		request->inject[request->inject_count++] = text;
	}
	request->env = (sb_env){ .size = sizeof request->env,
				 .inject = (const char *const *)request->inject };
	request->spec.env = &request->env;
	return 0;
}

static void network_build(cli_request *request, const cli_options *options)
{
	if (options->net == SB_NET_DEFAULT)
		return;
	request->network = (sb_network){ .size = sizeof request->network, .mode = options->net };
	request->spec.network = &request->network;
}

/* ---- Files -------------------------------------------------------------------------------- */

static const char *rule_option(uint32_t access)
{
	switch (access) {
	case SB_FILE_READ:
		return "--ro";
	case SB_FILE_WRITE:
		return "--rw";
	case SB_FILE_HIDE:
		return "--hide";
	default:
		return "--tmpfs";
	}
}

static int rules_build(cli_request *request, const cli_options *options, sb_error *err)
{
	size_t count = options->rule_count;

	if (count == 0)
		return 0;
	request->rules = calloc(count, sizeof *request->rules);
	request->rule_list = calloc(count + 1, sizeof *request->rule_list);
	if (request->rules == NULL || request->rule_list == NULL)
		return no_memory(err);
	for (size_t i = 0; i < count; i++) {
		const cli_rule *rule = &options->rules[i];
		if (rule->path[0] != '/')
			return error_fill(
				err, SB_ERR_INVALID_PATH, "files",
				"%s \"%.160s\" is not absolute: write the whole path, from /",
				rule_option(rule->access), rule->path);
		request->rules[i] = (sb_file_rule){ .size = sizeof request->rules[i],
						    .path = rule->path,
						    .access = rule->access };
		request->rule_list[i] = &request->rules[i];
	}
	request->spec.files = request->rule_list;
	return 0;
}

/* One --file NAME=PATH. */
static int file_read(cli_request *request, const char *entry, sb_error *err)
{
	sb_file *file = &request->files[request->file_count];
	const char *equals = strchr(entry, '=');
	char *name, *data;

	if (equals == NULL || equals == entry || equals[1] == '\0')
		return error_fill(err, SB_ERR_INVALID, "files",
				  "--file \"%.160s\" is not NAME=PATH: write data.json=/path/to/it",
				  entry);
	name = strndup(entry, (size_t)(equals - entry));
	if (name == NULL)
		return no_memory(err);
	if (source_read(equals + 1, SOURCE_MAX_BYTES, &data, &file->len, err) < 0) {
		free(name);
		return err->code;
	}
	file->size = sizeof *file;
	file->path = name;
	file->data = data;
	request->file_list[request->file_count++] = file;
	return 0;
}

static int files_build(cli_request *request, const cli_options *options, sb_error *err)
{
	size_t count = options->files.len;

	if (count == 0)
		return 0;
	request->files = calloc(count, sizeof *request->files);
	request->file_list = calloc(count + 1, sizeof *request->file_list);
	if (request->files == NULL || request->file_list == NULL)
		return no_memory(err);
	for (size_t i = 0; i < count; i++)
		if (file_read(request, options->files.at[i], err) < 0)
			return err->code;
	request->command.files = request->file_list;
	return 0;
}

static int workspace_build(cli_request *request, const cli_options *options, sb_error *err)
{
	sb_spec *spec = &request->spec;

	spec->workspace_mode = options->workspace_mode;
	if (options->workspace == NULL)
		return 0;
	if (strcmp(options->workspace, "none") == 0) {
		if (options->workspace_mode != SB_WORKSPACE_DEFAULT)
			return invalid(err, "--workspace none leaves nothing for --workspace-mode");
		spec->workspace_mode = SB_WORKSPACE_NONE;
		return 0;
	}
	if (options->workspace[0] == '/')
		spec->workspace = options->workspace;
	else {
		request->workspace = realpath(options->workspace, NULL);
		if (request->workspace == NULL)
			return error_fill(err, errno == ENOENT ? SB_ERR_NOT_FOUND : SB_ERR_IO,
					  "workspace", "--workspace \"%.160s\": %s",
					  options->workspace, units_errno_text(errno, (char[UNITS_TEXT]){ 0 }));
		spec->workspace = request->workspace;
	}
	/* code has none unless it is named; then reading is what naming it asks for */
	if (request->command.language != NULL && spec->workspace_mode == SB_WORKSPACE_DEFAULT)
		spec->workspace_mode = SB_WORKSPACE_READ;
	return 0;
}

/* ---- A module behind -- ------------------------------------------------------------------------- */

/* COMMAND names a file of WebAssembly: backend wasm runs that in place of a program.  Relative to where
 * the command will begin, as a program's path is. */
static int module_build(cli_request *request, const cli_options *options, sb_error *err)
{
	const char *name = request->command.argv != NULL ? request->command.argv[0] : NULL;
	const char *language = name != NULL ? source_language(name, "", 0) : NULL;
	const char *base = request->spec.workspace != NULL ? request->spec.workspace : ".";
	const char *below = options->workdir != NULL ? options->workdir : ".";
	cli_text path = { 0 };

	if (language == NULL || strcmp(language, "wasm") != 0)
		return 0;
	if (name[0] != '/' && below[0] != '/')
		text_add_fmt(&path, "%s/", base);
	if (name[0] != '/')
		text_add_fmt(&path, "%s/", below);
	text_add(&path, name);
	if (path.failed) {
		text_release(&path);
		return no_memory(err);
	}
	request->module = realpath(path.data, NULL);
	text_release(&path);
	if (request->module == NULL)
		return error_fill(err, errno == ENOENT || errno == ENOTDIR ? SB_ERR_NOT_FOUND :
				  errno == EACCES ? SB_ERR_FORBIDDEN : SB_ERR_IO, "exec",
				  "cannot read the module \"%.160s\": %s", name,
				  units_errno_text(errno, (char[UNITS_TEXT]){ 0 }));
	request->wasm_options = (sb_wasm_options){ .size = sizeof request->wasm_options, .module = request->module };
	request->spec.wasm_options = &request->wasm_options;
	return 0;
}

/* ---- All of it ---------------------------------------------------------------------------- */

int request_build(cli_request *request, const cli_options *options, bool with_command,
		  sb_error *err)
{
	sb_spec *spec = &request->spec;
	int rc;

	*request = (cli_request){ .spec = { .size = sizeof *spec } };
	if (with_command && options->dashes && options->code == NULL && options->out != NULL)
		return error_fill(err, SB_ERR_INVALID, "out",
				  "--out belongs to code; a command leaves its files in the workspace");
	if ((with_command && (rc = command_build(request, options, err)) < 0) ||
	    (rc = env_build(request, options, err)) < 0 ||
	    (rc = rules_build(request, options, err)) < 0 ||
	    (rc = files_build(request, options, err)) < 0 ||
	    (rc = workspace_build(request, options, err)) < 0 || (rc = module_build(request, options, err)) < 0)
		return rc;
	limits_build(request, options);
	network_build(request, options);
	if (options->backends.len > 0)
		spec->backends = options->backends.at;
	spec->require = options->require;
	spec->allow_weaker = options->allow_weaker;
	if (options->cgroup != NULL) {
		request->linux_options = (sb_linux_options){ .size = sizeof request->linux_options,
							     .cgroup_parent = options->cgroup };
		spec->linux_options = &request->linux_options;
	}
	return 0;
}

void request_release(cli_request *request)
{
	for (size_t i = 0; i < request->file_count; i++) {
		free((char *)request->files[i].path);
		free((void *)request->files[i].data);
	}
	for (size_t i = 0; i < request->inject_count; i++)
		free(request->inject[i]);
	free(request->inject);
	free(request->files);
	free(request->file_list);
	free(request->rules);
	free(request->rule_list);
	free(request->workspace);
	free(request->module);
	free(request->source.code);
	*request = (cli_request){ 0 };
}
