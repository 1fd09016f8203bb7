/* SPDX-License-Identifier: MIT */
/* packs.c - `packs`: the modules of the languages on board: list, verify, path, build. */
#include "cli.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const states[] = { "missing", "ready", "stale", "damaged" };

static const char help_text[] =
	"usage: sandbox packs list [--json]\n"
	"       sandbox packs verify [--json] [NAME...]\n"
	"       sandbox packs path [NAME]\n"
	"       sandbox packs build [NAME...]\n"
	"\n"
	"The languages on board, which the backend wasm runs with nothing installed: lua, js, ts,\n"
	"python. list: what is there. verify: hashes all of it. path: where it lies. build: makes\n"
	"what is missing from pinned sources, with its progress on standard error. Exit code: 0; 125\n"
	"if one that was asked for is not there or not whole.\n";

typedef struct asked {
	const char *verb;
	char **names;
	bool json, help;
} asked;

static bool is_named(const asked *of, const char *name)
{
	if (of->names[0] == NULL)
		return true;
	for (char **at = of->names; *at != NULL; at++)
		if (strcmp(*at, name) == 0)
			return true;
	return false;
}

/* ---- Text and JSON -------------------------------------------------------------------------- */

static void add_line(cli_text *text, const sb_module *m)
{
	char size[UNITS_TEXT];

	text_add_fmt(text, "%-8s %-22s %-8s ", m->name, m->version[0] != '\0' ? m->version : "-",
		     states[m->state]);
	if (m->state == SB_MODULE_READY) {
		text_add_fmt(text, "%-10s ", units_size_text(m->bytes, size));
		text_add_plain(text, m->path);
	} else
		text_add_plain(text, m->problem);
	text_add(text, "\n");
}

static void add_member(cli_text *text, const char *name, const char *value)
{
	text_add_fmt(text, ",\"%s\":", name);
	if (value[0] == '\0')
		text_add(text, "null");
	else
		text_add_json(text, value);
}

static void add_object(cli_text *text, const sb_module *m)
{
	text_add(text, "{\"name\":");
	text_add_json(text, m->name);
	text_add_fmt(text, ",\"state\":\"%s\",\"bytes\":%llu", states[m->state], (unsigned long long)m->bytes);
	add_member(text, "version", m->version);
	add_member(text, "path", m->path);
	add_member(text, "note", m->note);
	add_member(text, "problem", m->problem);
	text_add(text, "}");
}

/* ---- list, verify --------------------------------------------------------------------------- */

/* The exit code: `strict`, and one that was asked for is not whole, or is there and is not. */
static int show(const asked *of, const sb_modules *modules, bool strict)
{
	sb_module m = { .size = sizeof m };
	cli_text text = { 0 };
	bool bad = false, first = true;

	if (of->json)
		text_add(&text, "{\"schema\":1,\"packs\":[");
	for (size_t i = 0; i < sb_modules_count(modules); i++) {
		if (sb_modules_at(modules, i, &m) < 0 || !is_named(of, m.name))
			continue;
		if (of->json && !first)
			text_add(&text, ",");
		first = false;
		if (of->json)
			add_object(&text, &m);
		else
			add_line(&text, &m);
		bad |= strict && m.state != SB_MODULE_READY &&
		       (of->names[0] != NULL || m.state != SB_MODULE_MISSING);
	}
	if (of->json)
		text_add(&text, "]}\n");
	return output_text(STDOUT_FILENO, &text, bad ? CLI_EXIT_OURS : 0);
}

/* ---- path ------------------------------------------------------------------------------------ */

static int show_path(const asked *of, const sb_modules *modules)
{
	sb_module m = { .size = sizeof m };
	cli_text text = { 0 };
	sb_error err;

	if (of->names[0] == NULL) {
		text_add_fmt(&text, "%s/wasm\n", sb_modules_programs(modules));
		return output_text(STDOUT_FILENO, &text, 0);
	}
	for (size_t i = 0; i < sb_modules_count(modules); i++) {
		if (sb_modules_at(modules, i, &m) < 0 || strcmp(m.name, of->names[0]) != 0)
			continue;
		if (m.state == SB_MODULE_MISSING) {
			error_fill(&err, SB_ERR_NOT_FOUND, "pack", "%s", m.problem);
			return cli_fail(&err, of->json, false);
		}
		text_add_fmt(&text, "%s\n", m.path);
	}
	return output_text(STDOUT_FILENO, &text, 0);
}

/* ---- build ----------------------------------------------------------------------------------- */

/* The scripts lie in the source tree beside our programs' folder, or in it where we are installed. */
static bool find_script(const char *programs, char path[PATH_MAX])
{
	static const char *const places[] = { "/../wasm/build", "/wasm/scripts/wasm/build" };

	for (size_t i = 0; i < CLI_LEN(places); i++)
		if (snprintf(path, PATH_MAX, "%s%s", programs, places[i]) < PATH_MAX && access(path, R_OK) == 0)
			return true;
	return false;
}

static int build(const asked *of, const char *programs)
{
	char script[PATH_MAX];
	const char **argv;
	size_t count = 0, at = 0;
	sb_error err;

	if (!find_script(programs, script)) {
		error_fill(&err, SB_ERR_NOT_FOUND, "pack",
			   "the build scripts of the packs are not installed here: `make wasm` in the source tree "
			   "makes them");
		return cli_fail(&err, of->json, false);
	}
	while (of->names[count] != NULL)
		count++;
	argv = calloc(count + 5, sizeof *argv);
	if (argv == NULL)
		return CLI_EXIT_OURS;
	argv[at++] = "bash";
	argv[at++] = script;
	argv[at++] = "--need";
	argv[at++] = programs;
	memcpy(argv + at, of->names, count * sizeof *argv);
	execvp("bash", (char *const *)argv);
	error_fill(&err, SB_ERR_NOT_FOUND, "pack", "bash, which the build scripts need, cannot be started: %s",
		   strerror(errno));
	free(argv);
	return cli_fail(&err, of->json, false);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int parse(char **words, asked *out, sb_error *err)
{
	static const char *const verbs[] = { "list", "verify", "path", "build" };
	size_t kept = 0;

	for (size_t i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], "--json") == 0)
			out->json = true;
		else if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0)
			out->help = true;
		else if (words[i][0] == '-')
			return error_fill(err, SB_ERR_INVALID, "option",
					  "unknown option \"%.160s\": see `sandbox packs --help`", words[i]);
		else if (out->verb == NULL)
			out->verb = words[i];
		else
			words[kept++] = words[i];
	}
	words[kept] = NULL;
	out->names = words;
	if (out->verb == NULL)
		out->verb = "list";
	for (size_t i = 0; i < CLI_LEN(verbs); i++)
		if (strcmp(out->verb, verbs[i]) == 0)
			return 0;
	const char *near = options_nearest(out->verb, verbs, CLI_LEN(verbs));
	return error_fill(err, SB_ERR_INVALID, "command", "packs has no \"%.160s\": %s%s", out->verb,
			  near != NULL ? "did you mean " : "there are list, verify, path and ",
			  near != NULL ? near : "build");
}

static int check_names(const asked *of, const sb_modules *modules, sb_error *err)
{
	sb_module m = { .size = sizeof m };

	if (strcmp(of->verb, "list") == 0 && of->names[0] != NULL)
		return error_fill(err, SB_ERR_INVALID, "option", "packs list takes no \"%.160s\"", of->names[0]);
	if (strcmp(of->verb, "path") == 0 && of->names[0] != NULL && of->names[1] != NULL)
		return error_fill(err, SB_ERR_INVALID, "option", "packs path takes one name at most");
	for (char **name = of->names; *name != NULL; name++) {
		bool known = false;
		for (size_t i = 0; i < sb_modules_count(modules) && !known; i++)
			known = sb_modules_at(modules, i, &m) == 0 && strcmp(m.name, *name) == 0;
		if (!known)
			return error_fill(err, SB_ERR_INVALID, "pack",
					  "\"%.160s\" is no pack that is built: there are lua, js, ts and "
					  "python", *name);
	}
	return 0;
}

static int run_verb(const asked *of, sb_modules *modules)
{
	if (strcmp(of->verb, "path") == 0)
		return show_path(of, modules);
	if (strcmp(of->verb, "build") == 0)
		return build(of, sb_modules_programs(modules));
	return show(of, modules, strcmp(of->verb, "verify") == 0);
}

int packs_main(char **words)
{
	sb_modules *modules = NULL;
	asked of = { 0 };
	cli_text text = { 0 };
	sb_error err;
	int code;

	if (parse(words, &of, &err) < 0)
		return cli_fail(&err, of.json, false);
	if (of.help) {
		text_add(&text, help_text);
		return output_text(STDOUT_FILENO, &text, 0);
	}
	if (sb_modules_read(NULL, strcmp(of.verb, "verify") == 0 ? SB_MODULES_VERIFY : 0, &modules, &err) < 0 ||
	    check_names(&of, modules, &err) < 0)
		code = cli_fail(&err, of.json, false);
	else
		code = run_verb(&of, modules);
	sb_modules_free(modules);
	return code;
}
