/* SPDX-License-Identifier: MIT */
/*
 * control.c - runs a command behind the walls of a backend but for those that are named: the proof that
 * an attempt would get through, and so that the wall is what holds it.
 *
 * usage: control --without STEP[,STEP]... [--backend linux] [options of `sandbox run`] -- COMMAND [ARGUMENT]...
 *        control --without LIMIT[,LIMIT]... --backend process ...
 *        control --without ... --lang LANGUAGE -e CODE [ARGUMENT]...
 *
 * Everything else is as in a run: the same library, the same plan, the same sb-launch; of `linux` only
 * the PLAN record is changed before it is sent, of `process` the limit itself is left out (it has no more
 * than memory, cpu, time and output).  Prints the result as JSON.
 */
#include "../../src/backend/linux/linux.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct step {
	const char *name;
	uint64_t bits;
} step;

static const step steps[] = {
	{ "seccomp", LP_SECCOMP },
	{ "landlock", LP_LANDLOCK | LP_LANDLOCK_SCOPE },
	{ "scope", LP_LANDLOCK_SCOPE },
	{ "netns", LP_NETNS | LP_LO_UP },
	{ "pidns", LP_PIDNS },
	{ "ipcns", LP_IPCNS },
	{ "utsns", LP_UTSNS },
	{ "cgroupns", LP_CGROUPNS },
	{ "mountns", LP_MOUNTNS | LP_ROOT | LP_MASK_PROC },
	{ "root", LP_ROOT | LP_MASK_PROC },
	{ "userns", LP_USERNS | LP_NESTED_USERNS },
	{ "nested", LP_NESTED_USERNS },
	{ "mask", LP_MASK_PROC },
	{ "caps", LP_NO_CAPS },
	{ "nnp", LP_NO_NEW_PRIVS },
	{ "undumpable", LP_UNDUMPABLE },
	{ "session", LP_SESSION },
	{ "fds", LP_CLOSE_FDS },
	{ "group", LP_OWN_GROUP },
};

/* What is left out: of the steps, and of the limits that are no step. */
typedef struct removal {
	uint64_t bits;
	bool memory, pids, cpu, disk, time, output, nodev, readonly, protect, hide;
} removal;

typedef struct request {
	const char *backend;
	sb_spec spec;
	sb_command command;
	sb_limits limits;
	sb_env env;
	const char *inject[64];
	size_t inject_count;
	sb_file_rule rules[16];
	const sb_file_rule *rule_list[17];
	size_t rule_count;
} request;

static removal removed; /* of this program, which runs one command and ends */

static void fail(const char *what, const char *about)
{
	fprintf(stderr, "control: %s: %s\n", what, about);
	exit(125);
}

/* ---- The plan without what is left out ------------------------------------------------------ */

/* Flags of rows, and whole rows: what is not enforced is taken out of the table. */
static void edit_mounts(lh_plan *plan)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < plan->mount_count; i++) {
		lp_mount row = plan->mounts[i];

		if (removed.protect && row.kind == LP_M_PROTECT)
			continue;
		if (removed.hide && row.kind == LP_M_HIDE)
			continue;
		if (removed.nodev)
			row.flags &= (uint16_t)~LP_F_NODEV;
		if (removed.readonly)
			row.flags &= (uint16_t)~LP_F_READONLY;
		plan->mounts[kept++] = row;
	}
	plan->mount_count = kept;
}

static void edit(lh_plan *plan, void *user)
{
	(void)user;
	plan->fixed.steps &= ~removed.bits;
	if (removed.memory)
		plan->fixed.memory_bytes = SB_UNLIMITED;
	if (removed.cpu)
		plan->fixed.cpu_us = SB_UNLIMITED;
	if (removed.pids) {
		plan->fixed.pids = SB_UNLIMITED;
		plan->fixed.user_procs = SB_UNLIMITED;
	}
	if (removed.disk && plan->fixed.tmpfs_bytes != 0) {
		plan->fixed.tmpfs_bytes = (uint64_t)512 << 20;
		plan->fixed.tmpfs_nodes = 100000;
		plan->fixed.file_bytes = SB_UNLIMITED;
	}
	edit_mounts(plan);
}

static int create(sb_state *state, const sb_box_request *req, const sb_plan *plan,
		  const sb_call *call, sb_box **box, sb_error *err)
{
	return linux_box_create_edited(state, req, plan, call, edit, NULL, box, err);
}

/* ---- Options --------------------------------------------------------------------------------- */

static void remove_one(const char *name)
{
	bool *const flags[] = { &removed.memory, &removed.pids, &removed.cpu, &removed.disk,
				&removed.time, &removed.output, &removed.nodev,
				&removed.readonly, &removed.protect, &removed.hide };
	static const char *const names[] = { "memory", "pids", "cpu", "disk", "time", "output",
					     "nodev", "readonly", "protect", "hide" };

	for (size_t i = 0; i < BASE_ARRAY_LEN(steps); i++) {
		if (strcmp(steps[i].name, name) == 0) {
			removed.bits |= steps[i].bits;
			return;
		}
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++) {
		if (strcmp(names[i], name) == 0) {
			*flags[i] = true;
			return;
		}
	}
	fail("no such step", name);
}

static void remove_all(const char *list)
{
	char name[32];

	for (const char *at = list; *at != '\0';) {
		size_t len = strcspn(at, ",");

		if (len >= sizeof name)
			fail("no such step", at);
		memcpy(name, at, len);
		name[len] = '\0';
		remove_one(name);
		at += len + (at[len] == ',');
	}
}

/* "64M", "700ms", "20s", "20": as the tests write them. */
static uint64_t amount(const char *text)
{
	char *rest;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &rest, 10);
	if (errno != 0 || rest == text)
		fail("not a number", text);
	if (strcmp(rest, "K") == 0)
		return value << 10;
	if (strcmp(rest, "M") == 0)
		return value << 20;
	if (strcmp(rest, "s") == 0)
		return value * 1000;
	if (*rest != '\0' && strcmp(rest, "ms") != 0)
		fail("not a number", text);
	return value;
}

/* Where no plan of ours is sent, the limit is what can be. */
static bool left_out(const request *r, bool flag)
{
	return flag && strcmp(r->backend, "linux") != 0;
}

static bool read_limit(request *r, const char *name, const char *value)
{
	sb_limits *l = &r->limits;

	if (strcmp(name, "--timeout") == 0)
		l->wall_ms = removed.time ? SB_UNLIMITED : amount(value);
	else if (strcmp(name, "--grace") == 0)
		l->grace_ms = amount(value);
	else if (strcmp(name, "--mem") == 0)
		l->memory_bytes = left_out(r, removed.memory) ? SB_UNLIMITED : amount(value);
	else if (strcmp(name, "--cpu") == 0)
		l->cpu_ms = left_out(r, removed.cpu) ? SB_UNLIMITED : amount(value);
	else if (strcmp(name, "--pids") == 0)
		l->procs = amount(value);
	else if (strcmp(name, "--disk") == 0)
		l->fs_bytes = amount(value);
	else if (strcmp(name, "--output") == 0)
		l->out_stream_bytes = removed.output ? (uint64_t)64 << 20 : amount(value);
	else if (strcmp(name, "--output-mode") == 0)
		l->out_mode = strcmp(value, "stop") == 0 ? SB_OUT_STOP : SB_OUT_TRUNCATE;
	else
		return false;
	return true;
}

static void add_rule(request *r, const char *path, uint32_t access)
{
	sb_file_rule *rule;

	if (r->rule_count == BASE_ARRAY_LEN(r->rules))
		fail("too many rules", path);
	rule = &r->rules[r->rule_count];
	rule->size = sizeof *rule;
	rule->path = path;
	rule->access = access;
	r->rule_list[r->rule_count++] = rule;
}

static void read_option(request *r, const char *name, const char *value)
{
	if (read_limit(r, name, value))
		return;
	if (strcmp(name, "--env") == 0 && r->inject_count + 1 < BASE_ARRAY_LEN(r->inject))
		r->inject[r->inject_count++] = value;
	else if (strcmp(name, "--ro") == 0)
		add_rule(r, value, SB_FILE_READ);
	else if (strcmp(name, "--rw") == 0)
		add_rule(r, value, SB_FILE_WRITE);
	else if (strcmp(name, "--hide") == 0)
		add_rule(r, value, SB_FILE_HIDE);
	else if (strcmp(name, "--tmpfs") == 0 && removed.hide)
		return; /* a part of the one tmpfs, as /tmp is: no row of a kind of its own */
	else if (strcmp(name, "--tmpfs") == 0)
		add_rule(r, value, SB_FILE_TMPFS);
	else if (strcmp(name, "--workspace") == 0)
		r->spec.workspace = value;
	else if (strcmp(name, "--workspace-mode") == 0 && strcmp(value, "ro") == 0)
		r->spec.workspace_mode = SB_WORKSPACE_READ;
	else if (strcmp(name, "--lang") == 0)
		r->command.language = value;
	else
		fail("no such option", name);
}

static void read_arguments(request *r, char **argv)
{
	/* first of all, because limits look at it */
	for (char **a = argv + 1; a[0] != NULL && a[1] != NULL; a++)
		if (strcmp(a[0], "--without") == 0)
			remove_all(a[1]);
		else if (strcmp(a[0], "--backend") == 0)
			r->backend = a[1];
	for (char **a = argv + 1; a[0] != NULL; a += 2) {
		if (strcmp(a[0], "--") == 0) {
			r->command.argv = (const char *const *)a + 1;
			return;
		}
		if (a[1] == NULL)
			break;
		if (strcmp(a[0], "-e") == 0) {
			r->command.code = a[1];
			r->command.code_len = strlen(a[1]);
			r->command.args = (const char *const *)a + 2;
			return;
		}
		if (strcmp(a[0], "--without") != 0 && strcmp(a[0], "--backend") != 0)
			read_option(r, a[0], a[1]);
	}
	fail("usage", "control --without STEP,... [options] -- COMMAND...");
}

static void check_backend(const request *r)
{
	if (strcmp(r->backend, "linux") == 0)
		return;
	if (strcmp(r->backend, "process") != 0)
		fail("no such backend", r->backend);
	if (removed.bits || removed.pids || removed.disk || removed.nodev || removed.readonly || removed.protect ||
	    removed.hide)
		fail("only memory, cpu, time and output can be left out", r->backend);
}

static void prepare(request *r, char **argv)
{
	r->backend = "linux";
	r->spec = (sb_spec){ .size = sizeof r->spec, .limits = &r->limits, .env = &r->env };
	r->command = (sb_command){ .size = sizeof r->command };
	r->limits.size = sizeof r->limits;
	r->env = (sb_env){ .size = sizeof r->env, .inject = r->inject };
	read_arguments(r, argv);
	check_backend(r);
	if (r->rule_count > 0)
		r->spec.files = r->rule_list;
}

static int run(request *r, sb_result **result, sb_error *err)
{
	sb_backend table = *sb_backend_builtin(r->backend);
	const sb_backend *const backends[] = { &table, NULL };
	const char *const names[] = { r->backend, NULL };
	const sb_sandbox_options options = { .size = sizeof options, .backends = backends };
	sb_sandbox *sandbox = NULL;
	int rc;

	if (strcmp(r->backend, "linux") == 0)
		table.create = create;
	r->spec.backends = names;
	rc = sb_sandbox_new(&options, NULL, &sandbox, err);
	if (rc == 0)
		rc = sb_run(sandbox, &r->spec, &r->command, NULL, result, err);
	sb_sandbox_free(sandbox);
	return rc;
}

int main(int argc, char **argv)
{
	static request r;
	sb_result *result = NULL;
	sb_error err = { 0 };

	(void)argc;
	prepare(&r, argv);
	if (run(&r, &result, &err) < 0)
		fail(err.where, err.message);
	printf("%s\n", sb_result_json(result));
	sb_result_free(result);
	return 0;
}
