/* SPDX-License-Identifier: MIT */
/*
 * gates.c - before anything is validated or routed: does somebody have to be asked, and is the
 * command one of those allowed?
 *
 * Predicates and the approver see a deep copy, so nothing they do changes what runs.  Whatever is
 * not a clear yes is a no.
 */
#include "session.h"

#include <errno.h>
#include <fnmatch.h>

enum { REASON = 256 };

static bool name_matches(const sb_predicate *p, const char *name, char *reason)
{
	for (size_t i = 0; name && p->args && p->args[i]; i++)
		if (fnmatch(p->args[i], name, 0) == 0) {
			snprintf(reason, REASON, "the command \"%.80s\" matches \"%.80s\"", name,
				 p->args[i]);
			return true;
		}
	return false;
}

/* By its name, and by that of the module that runs in its place. */
static bool match_command(const sb_predicate *p, const sb_request *request, char *reason)
{
	const sb_wasm_options *options = request->spec->wasm_options; /* a copy: whole */
	const sb_command *c = request->command;
	const char *name = c && c->argv && c->argv[0] ? path_base(c->argv[0]) : NULL;

	if (name_matches(p, name, reason))
		return true;
	name = c && c->argv && options && options->module ? path_base(options->module) : NULL;
	return name_matches(p, name, reason);
}

/* The longest part of the path that exists, links resolved; NULL = cannot be told. */
static char *resolved_prefix(const char *path)
{
	char *copy = strdup(path), *real = NULL;

	while (copy && *copy && !(real = realpath(copy, NULL)) &&
	       (errno == ENOENT || errno == ENOTDIR)) {
		char *slash = strrchr(copy, '/');

		if (!slash)
			break;
		slash[slash == copy] = 0;
	}
	free(copy);
	return real;
}

static bool match_outside(const sb_predicate *p, const sb_command *c, char *reason)
{
	if (!c || !c->cwd || *c->cwd != '/')
		return false;
	char *root = p->args && p->args[0] ? realpath(p->args[0], NULL) : NULL;
	char *cwd = resolved_prefix(c->cwd);
	/* an element ".." behind what exists would climb out of what was resolved */
	bool inside = root && cwd && path_is_within(cwd, root) && !strstr(c->cwd, "/..");

	if (!inside)
		snprintf(reason, REASON, "the working directory \"%.80s\" is outside of \"%.80s\"",
			 c->cwd, p->args && p->args[0] ? p->args[0] : "");
	free(root);
	free(cwd);
	return !inside;
}

static bool match_shell(const sb_predicate *p, const sb_command *c, char *reason)
{
	bool is_shell = false;
	const char *line = c ? shell_line(c->argv, &is_shell) : NULL;
	char *code = NULL;
	bool match = false;

	if (c && c->language && (!strcmp(c->language, "bash") || !strcmp(c->language, "sh"))) {
		is_shell = true;
		if (c->code && !memchr(c->code, 0, c->code_len))
			line = code = strndup(c->code, c->code_len);
	}
	if (is_shell && (!line || !shell_allowed(line, p->args))) {
		snprintf(reason, REASON, line ? "a part of the shell line is not on the list"
					      : "the shell's line is not understood");
		match = true;
	}
	free(code);
	return match;
}

/* 1 = ask (reason filled), 0 = no, negative = denied outright. */
static int match_one(const sb_predicate *p, const sb_request *request, char *reason, sb_error *err)
{
	const sb_command *c = request->command;

	switch (p->what) {
	case SB_PREDICATE_COMMAND:
		return match_command(p, request, reason);
	case SB_PREDICATE_INTERACTIVE:
		snprintf(reason, REASON, "an interactive channel");
		return request->interactive != 0;
	case SB_PREDICATE_NETWORK:
		snprintf(reason, REASON, "the network mode is \"%s\"",
			 sb_net_mode_name((int)request->spec->network->mode));
		return request->spec->network->mode != SB_NET_HOST;
	case SB_PREDICATE_CWD_OUTSIDE:
		return match_outside(p, c, reason);
	case SB_PREDICATE_SHELL_SEGMENTS:
		return match_shell(p, c, reason);
	case SB_PREDICATE_CUSTOM:
		if (!p->match)
			break;
		snprintf(reason, REASON, "a rule of the operator's");
		return p->match(p->user, request, reason, REASON) != 0;
	default:
		break;
	}
	return error_set(err, SB_ERR_POLICY_DENIED, "approval",
			 "a predicate without a rule denies every call; give it one");
}

static int denied(effective *e, const char *reason, sb_error *err)
{
	const audit_note note = { .what = SB_AUDIT_APPROVAL, .action = SB_DENY,
				  .wall = SB_WALL_COUNT, .session = e->session,
				  .process = e->id, .subject = e->command.argv ? e->command.argv[0]
							     : e->command.language,
				  .text = reason, .code = SB_ERR_POLICY_DENIED };

	audit_write(e->sandbox, &note, NULL);
	return error_set(err, SB_ERR_POLICY_DENIED, "approval", "not approved: %s", reason);
}

static int ask(effective *e, const sb_request *request, const char *reason, const sb_call *call,
	       sb_error *err)
{
	if (!e->sandbox->approve)
		return denied(e, reason, err);
	int said = approval_ask(e->sandbox, request, reason, call, err);

	if (said < 0)
		return said;
	if (said != SB_ALLOW)
		return denied(e, reason, err);
	const audit_note note = { .what = SB_AUDIT_APPROVAL, .action = SB_ALLOW,
				  .wall = SB_WALL_COUNT, .session = e->session,
				  .process = e->id, .subject = e->command.argv ? e->command.argv[0]
							     : e->command.language,
				  .text = reason };

	return audit_write(e->sandbox, &note, err);
}

/* What callbacks see: everything copied, so that the request itself stays as it is. */
static int request_copy(effective *e, arena *mem, sb_request *request, sb_error *err)
{
	sb_spec spec = e->spec;

	spec.limits = &e->caller_limits;
	spec.env = &e->env;
	spec.network = &e->network;
	spec.files = e->caller_files;
	*request = (sb_request){ .size = sizeof *request, .session = e->session ? e->session : "",
				 .interactive = e->interactive,
				 .backend = spec.backends && spec.backends[0]
						    ? arena_text(mem, spec.backends[0])
						    : arena_text(mem, e->sandbox->order[0]),
				 .door = e->door };
	sb_error why = { 0 };

	request->spec = copy_spec(mem, &spec, &why);
	if (request->spec && e->has_command)
		request->command = copy_command(mem, &e->command, &why);
	if (request->spec && (request->command || !e->has_command))
		return 0;
	if (err)
		*err = why;
	return why.code;
}

static int approve_with(effective *e, arena *mem, const sb_call *call, sb_error *err)
{
	const sb_predicate *const *list = e->sandbox->predicates;
	sb_request request;
	char reason[REASON];
	int code = request_copy(e, mem, &request, err);

	for (size_t i = 0; code >= 0 && list[i]; i++) {
		reason[0] = 0;
		int match = match_one(list[i], &request, reason, err);

		reason[REASON - 1] = 0;
		if (match < 0)
			return match;
		if (!match)
			continue;
		/* a copy of its own: the approver gets what was asked, not what a match made of it */
		arena fresh = { 0 };

		code = request_copy(e, &fresh, &request, err);
		if (code >= 0)
			code = ask(e, &request, reason, call, err);
		arena_release(&fresh);
		return code;
	}
	return code;
}

int gates_approve(effective *e, const sb_call *call, sb_error *err)
{
	arena mem = { 0 };

	if (!e->sandbox->predicates || !e->sandbox->predicates[0])
		return 0;
	int code = approve_with(e, &mem, call, err);

	arena_release(&mem);
	return code;
}

int gates_allowed(const effective *e, sb_error *err)
{
	const char *const *allowed = e->sandbox->allowed_commands;
	/* of a code run it is the language that must be on the list */
	const char *name = e->command.argv ? e->command.argv[0] : e->command.language;

	if (!allowed || !name)
		return 0; /* a session without a language: each spawn is looked at */
	/* where a module runs, the argv's first word is only what it is told to be called */
	if (strv_has(allowed, name) && e->module && !e->module_fixed)
		name = e->module;
	if (strv_has(allowed, name))
		return 0;
	return error_set(err, SB_ERR_POLICY_DENIED, "allowed_commands",
			 "the command \"%.200s\" is not one of those that the operator allows", name);
}
