/* SPDX-License-Identifier: MIT */
/* spec.c - is a spec, or a command, sound in itself?  Nothing outside the records is looked at. */
#include "core.h"

#define SPEC_ARGUMENT_MAX 131072      /* of one, with its NUL: the kernel's own limit */
#define SPEC_ARGUMENTS_MAX (2u << 20) /* of all and the environment, with a pointer for each */
#define SPEC_ID_MAX 128
#define SPEC_HOSTNAME_MAX 64

static int spec_refuse(sb_error *err, const char *where, const char *what)
{
	return error_set(err, SB_ERR_INVALID_SPEC, where, "%s", what);
}

static int spec_unknown_flag(sb_error *err, const char *where)
{
	return error_set(err, SB_ERR_UNSUPPORTED, where,
			 "%s has a flag that this library does not know; use a newer library",
			 where);
}

/* ---- Spec ---- */

static int spec_check_backends(const char *const *backends, sb_error *err)
{
	if (!backends)
		return 0;
	if (!backends[0])
		return spec_refuse(err, "backend",
				   "the list of backends is empty; name one, or give no list");
	for (; *backends; backends++)
		if (!**backends)
			return spec_refuse(err, "backend", "a backend has an empty name");
	return 0;
}

static int spec_check_limits(const sb_limits *in, sb_error *err)
{
	sb_limits limits;
	int rc = record_read(&limits, sizeof limits, in, "sb_limits", err);

	return rc < 0 ? rc : limits_check_set(&limits, err);
}

static int spec_check_env(const sb_env *in, sb_error *err)
{
	sb_env env;
	int rc = record_read(&env, sizeof env, in, "sb_env", err);

	if (rc < 0)
		return rc;
	if (env.base > SB_ENV_LIST)
		return spec_refuse(err, "env", "unknown environment base");
	if (env.allow && env.base != SB_ENV_LIST)
		return spec_refuse(err, "env", "an allow list needs the environment base \"list\"");
	if (!env.allow && env.base == SB_ENV_LIST)
		return spec_refuse(err, "env",
				   "environment base \"list\" has no allow list; an empty one "
				   "lets nothing in");
	for (const char *const *name = env.allow; rc == 0 && name && *name; name++)
		rc = env_check(*name, true, err);
	for (const char *const *entry = env.inject; rc == 0 && entry && *entry; entry++)
		rc = env_check(*entry, false, err);
	return rc;
}

static int spec_check_files(const sb_file_rule *const *rules, sb_error *err)
{
	files_set set = { 0 };
	int rc = 0;

	for (; rc == 0 && rules && *rules; rules++) {
		sb_file_rule rule;

		rc = record_read(&rule, sizeof rule, *rules, "sb_file_rule", err);
		if (rc == 0)
			rc = files_add(&set, &rule, FILES_CALLER, err);
	}
	if (rc == 0)
		rc = files_settle(&set, err);
	files_release(&set);
	return rc;
}

static int spec_check_workspace(const sb_spec *spec, sb_error *err)
{
	const char *path = spec->workspace;

	if (spec->workspace_mode > SB_WORKSPACE_COPY)
		return spec_refuse(err, "workspace", "unknown workspace mode");
	if (!path)
		return 0;
	if (!*path)
		return spec_refuse(err, "workspace", "the workspace is an empty path");
	if (path[strspn(path, "/.")] == '\0' && path[0] == '/')
		return spec_refuse(err, "workspace",
				   "\"/\" cannot be the workspace; name a directory "
				   "beneath it");
	return 0;
}

/* Of any locale: the host's may say otherwise of bytes above 127. */
static bool spec_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static int spec_check_hostname(const char *name, sb_error *err)
{
	size_t n = name ? strlen(name) : 0;
	bool ok = n > 0 && n <= SPEC_HOSTNAME_MAX && name[0] != '-' && name[0] != '.';

	for (size_t i = 0; i < n; i++)
		ok = ok && (spec_is_word(name[i]) || name[i] == '-' || name[i] == '.');
	return ok || !name ? 0
			   : error_set(err, SB_ERR_INVALID_SPEC, "linux",
				       "\"%s\" is not a host name", name);
}

static int spec_check_linux(const sb_linux_options *in, sb_error *err)
{
	sb_linux_options o;
	int rc = record_read(&o, sizeof o, in, "sb_linux_options", err);

	if (rc < 0)
		return rc;
	if (o.flags & ~(uint64_t)(SB_LINUX_ALLOW_USERNS | SB_LINUX_NO_LANDLOCK))
		return spec_unknown_flag(err, "linux");
	bool root = o.root && !path_is_clean_absolute(o.root);

	if (root || (o.cgroup_parent && !path_is_clean_absolute(o.cgroup_parent)))
		return error_set(err, SB_ERR_INVALID_PATH, "linux",
				 "the %s \"%s\" is not an absolute path without \".\" and \"..\"",
				 root ? "root" : "parent of cgroups", root ? o.root : o.cgroup_parent);
	/* 0 is root's and 4294967295 nobody's: neither may ever be a guest's */
	if (o.uid_first > 0 && o.uid_count > UINT32_MAX - o.uid_first)
		return spec_refuse(err, "linux",
				   "uid_first and uid_count go beyond the last user id");
	if (o.uid_first == 0 && o.uid_count > 0)
		return spec_refuse(err, "linux", "uid_count needs uid_first");
	return spec_check_hostname(o.hostname, err);
}

/* What it means is for the backend to say. */
static int spec_check_wasm(const sb_wasm_options *in, sb_error *err)
{
	sb_wasm_options o;
	int rc = record_read(&o, sizeof o, in, "sb_wasm_options", err);

	if (rc == 0 && o.module && !path_is_clean_absolute(o.module))
		rc = error_set(err, SB_ERR_INVALID_PATH, "wasm",
			       "the module \"%s\" is not an absolute path without \".\" and \"..\"", o.module);
	return rc;
}

static int spec_check_options(const sb_spec *spec, sb_error *err)
{
	union {
		sb_process_options process;
		sb_container_options container;
		sb_kube_options kube;
		sb_seatbelt_options seatbelt;
	} o;
	int rc =
		record_read(&o, sizeof o.process, spec->process_options, "sb_process_options", err);

	if (rc == 0 && o.process.flags)
		rc = spec_unknown_flag(err, "process");
	if (rc == 0)
		rc = spec_check_linux(spec->linux_options, err);
	if (rc == 0)
		rc = record_read(&o, sizeof o.container, spec->container_options,
				 "sb_container_options", err);
	if (rc == 0)
		rc = record_read(&o, sizeof o.kube, spec->kube_options, "sb_kube_options", err);
	if (rc == 0)
		rc = spec_check_wasm(spec->wasm_options, err);
	if (rc == 0)
		rc = record_read(&o, sizeof o.seatbelt, spec->seatbelt_options,
				 "sb_seatbelt_options", err);
	for (size_t i = 0; rc == 0 && spec->other_options && spec->other_options[i]; i++) {
		/* longer by what the backend adds: its tail is the backend's to read */
		const sb_other_options *other = spec->other_options[i];

		if (other->size < sizeof *other || !other->backend || !*other->backend)
			rc = spec_refuse(err, "backend",
					 "a backend's options do not name the backend");
	}
	return rc;
}

static int spec_check_walls(const sb_spec *spec, sb_error *err)
{
	const uint64_t known = SB_WALL_BIT(SB_WALL_COUNT) - 1;

	if ((spec->require | spec->allow_weaker) & ~known)
		return error_set(err, SB_ERR_UNSUPPORTED, "spec",
				 "the spec names a wall that this library does not know");
	for (int wall = 0; wall < SB_WALL_COUNT; wall++)
		if (spec->require & spec->allow_weaker & SB_WALL_BIT(wall))
			return error_set(
				err, SB_ERR_INVALID_SPEC, "spec",
				"wall \"%s\" is both required and allowed to be weaker; choose one",
				sb_wall_name(wall));
	if (spec->profile > SB_PROFILE_CONTAINER)
		return spec_refuse(err, "spec", "unknown profile");
	if (spec->flags & ~(uint64_t)SB_SPEC_REQUIRE_HARD)
		return spec_unknown_flag(err, "spec");
	return 0;
}

int sb_spec_validate(const sb_spec *in, sb_error *err)
{
	sb_spec spec;
	int rc = record_read(&spec, sizeof spec, in, "sb_spec", err);

	if (rc == 0)
		rc = spec_check_walls(&spec, err);
	if (rc == 0)
		rc = spec_check_backends(spec.backends, err);
	if (rc == 0)
		rc = spec_check_limits(spec.limits, err);
	if (rc == 0)
		rc = spec_check_env(spec.env, err);
	if (rc == 0 && spec.network)
		rc = sb_network_validate(spec.network, err);
	if (rc == 0)
		rc = spec_check_workspace(&spec, err);
	if (rc == 0)
		rc = spec_check_files(spec.files, err);
	if (rc == 0)
		rc = spec_check_options(&spec, err);
	return rc;
}

/* ---- Command ---- */

static bool spec_is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

/* Either an argv, or a language and code. */
static int spec_check_shape(const sb_command *c, sb_error *err)
{
	if (c->argv && (c->language || c->code))
		return spec_refuse(err, "command",
				   "a command is either an argv or a language with code, "
				   "not both");
	if (c->argv && (!c->argv[0] || !*c->argv[0]))
		return spec_refuse(err, "command", "the command is empty; name a program");
	if (c->argv && c->args)
		return spec_refuse(err, "command", "args belong to code; put them into the argv");
	if (c->argv)
		return 0;
	if (!c->language && !c->code)
		return spec_refuse(err, "command",
				   "there is no command; give a program, or a language and "
				   "code");
	if (!c->language || spec_is_blank(c->language))
		return spec_refuse(err, "command", "code needs a language; name one");
	if (!c->code)
		return error_set(err, SB_ERR_INVALID_SPEC, "command",
				 "language \"%s\" has no code; give its source", c->language);
	return 0;
}

static int spec_count_words(const char *const *list, size_t *total, sb_error *err)
{
	for (; list && *list; list++) {
		size_t n = strlen(*list) + 1;

		if (n > SPEC_ARGUMENT_MAX)
			return error_set(
				err, SB_ERR_INVALID_SPEC, "command",
				"an argument or variable has %zu bytes; the system takes %d: pass "
				"it in a file or as input",
				n - 1, SPEC_ARGUMENT_MAX - 1);
		*total += n + sizeof(char *);
	}
	return 0;
}

static int spec_check_words(const sb_command *c, sb_error *err)
{
	size_t total = 0;
	int rc = spec_count_words(c->argv, &total, err);

	if (rc == 0)
		rc = spec_count_words(c->args, &total, err);
	if (rc == 0)
		rc = spec_count_words(c->env, &total, err);
	if (rc == 0 && total > SPEC_ARGUMENTS_MAX)
		rc = error_set(
			err, SB_ERR_INVALID_SPEC, "command",
			"the arguments have %zu bytes; the system takes %u: pass them in a file or "
			"as input",
			total, SPEC_ARGUMENTS_MAX);
	for (const char *const *entry = c->env; rc == 0 && entry && *entry; entry++)
		rc = env_check(*entry, false, err);
	return rc;
}

static int spec_check_file(const sb_file *in, sb_error *err)
{
	char clean[4097];
	sb_file file;
	int rc = record_read(&file, sizeof file, in, "sb_file", err);

	if (rc < 0)
		return rc;
	if (!file.path)
		return spec_refuse(err, "files", "a file for /in has no path");
	if (!file.data && file.len > 0)
		return error_set(err, SB_ERR_INVALID_SPEC, "files", "file \"%s\" has no data",
				 file.path);
	rc = sb_path_clean(file.path, clean, sizeof clean, NULL, err);
	if (rc < 0) {
		if (err) { /* of a spec, not of a call about paths */
			err->cause = err->code;
			err->code = SB_ERR_INVALID_SPEC;
		}
		return SB_ERR_INVALID_SPEC;
	}
	if (strcmp(clean, ".") == 0)
		return error_set(err, SB_ERR_INVALID_SPEC, "files",
				 "file \"%s\" is the directory /in itself; name a file", file.path);
	return 0;
}

static int spec_check_input(const sb_command *c, sb_error *err)
{
	switch (c->input_kind) {
	case SB_INPUT_DEFAULT:
		return c->input || c->read_input
			       ? spec_refuse(err, "input",
					     "input is given, but input_kind is not set")
			       : 0;
	case SB_INPUT_NONE:
	case SB_INPUT_OPEN:
		return 0;
	case SB_INPUT_BYTES:
		return c->input || c->input_len == 0 ? 0
						     : spec_refuse(err, "input", "input is NULL");
	case SB_INPUT_FD:
		return c->input_fd >= 0 ? 0 : spec_refuse(err, "input", "input_fd is negative");
	case SB_INPUT_CALLBACK:
		return c->read_input ? 0 : spec_refuse(err, "input", "read_input is NULL");
	default:
		return error_set(err, SB_ERR_UNSUPPORTED, "input", "unknown kind of input %u",
				 c->input_kind);
	}
}

static int spec_check_id(const char *id, sb_error *err)
{
	size_t n = id ? strlen(id) : 0;

	if (!id)
		return 0;
	if (n == 0 || n > SPEC_ID_MAX)
		return spec_refuse(err, "command", "an id has 1 to 128 characters");
	for (size_t i = 0; i < n; i++)
		if (!spec_is_word(id[i]) && !strchr("_.-:", id[i]))
			return error_set(
				err, SB_ERR_INVALID_SPEC, "command",
				"id \"%s\" has a character that is none of a-z A-Z 0-9 _ . - :",
				id);
	return 0;
}

int spec_check_command(const sb_command *in, sb_error *err)
{
	sb_command c;
	int rc = record_read(&c, sizeof c, in, "sb_command", err);

	if (rc == 0 && c.flags & ~(uint32_t)(SB_COMMAND_TTY | SB_COMMAND_DETACHED | SB_COMMAND_PARTIAL |
					     SB_COMMAND_HOLD | SB_COMMAND_SHORT_PLAN))
		rc = spec_unknown_flag(err, "command");
	if (rc == 0)
		rc = spec_check_shape(&c, err);
	if (rc == 0)
		rc = spec_check_id(c.id, err);
	if (rc == 0)
		rc = spec_check_words(&c, err);
	if (rc == 0 && c.cwd && !*c.cwd)
		rc = spec_refuse(err, "command", "the working directory is an empty path");
	for (size_t i = 0; rc == 0 && c.files && c.files[i]; i++)
		rc = spec_check_file(c.files[i], err);
	if (rc == 0)
		rc = spec_check_input(&c, err);
	return rc;
}
