/* SPDX-License-Identifier: MIT */
/*
 * process.c - the backend `process`: no walls, and it says so.
 *
 * The command runs as the caller, below an sb-launch that follows its descendants, kills them with
 * it and samples memory and CPU time.  Only by name: naming it is the consent to having no walls.
 * What was asked for besides is still refused.  Source text goes in through a descriptor.
 */
#include "process.h"
#include "../builtin.h"
#include "../launched/launched.h"
#include "../../core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE_US 20000u
#define PROCESS_CAPS (SB_CAP_SESSIONS | SB_CAP_TTY | SB_CAP_SIGNAL | SB_CAP_EVENTS | SB_CAP_SPLIT_STREAMS)
#define CODE_DIR "/run/code"
#define CODE_PATH "/proc/self/fd/3" /* the lowest free one: a control descriptor moves it to 4 */
#define CODE_PATH_CONTROL "/proc/self/fd/4"

struct sb_state {
	char *helper;
	sb_error helper_missing;
};

/* ---- Machine ------------------------------------------------------------------------------------ */

static void process_forget(sb_state *state)
{
	if (!state)
		return;
	free(state->helper);
	free(state);
}

static int process_probe(const sb_backend *self, const sb_call *call, sb_report *report,
			 sb_state **out, sb_error *err)
{
	sb_state *state = calloc(1, sizeof *state);
	int rc = 0;

	(void)self;
	if (!state)
		return error_no_memory(err, "probe");
	lh_find_own(call->helper_dir, &state->helper, &state->helper_missing);
	if (report) {
		const sb_check check = { .size = sizeof check, .backend = "process", .what = "sb-launch",
			.found = state->helper ? lh_place(state->helper) : state->helper_missing.message,
			.remedy = state->helper ? "" : "install sandbox and sb-launch together",
			.ok = state->helper != NULL };

		rc = sb_report_add(report, &check, err);
		if (!rc && !state->helper) {
			if (err)
				*err = state->helper_missing;
			rc = state->helper_missing.code;
		}
	}
	if (rc) {
		process_forget(state);
		return rc;
	}
	*out = state;
	return 0;
}

/* ---- Plan ---------------------------------------------------------------------------------------- */

static int add(sb_plan *plan, uint32_t wall, uint32_t level, const char *mechanism,
	       const char *caveat, const char *test, sb_error *err)
{
	const sb_plan_line line = { .size = sizeof line, .wall = wall, .level = level,
		.mechanism = mechanism, .caveat = caveat, .subject = "", .test = test };

	return sb_plan_add(plan, &line, err);
}

static int add_sampled(sb_plan *plan, uint32_t wall, bool asked, const char *caveat,
		       const char *test, sb_error *err)
{
	if (!asked)
		return add(plan, wall, SB_LEVEL_NONE, "no limit", "", "", err);
	return add(plan, wall, SB_LEVEL_SAMPLED, "watcher over /proc, the tree killed", caveat, test, err);
}

static int add_lines(const sb_limits *limits, sb_plan *plan, sb_error *err)
{
	static const struct { uint32_t wall, level; const char *mechanism, *caveat, *test; } fixed[] = {
		{ SB_WALL_FILES, SB_LEVEL_NONE, "none", "sees and writes whatever the caller may", "" },
		{ SB_WALL_NETWORK, SB_LEVEL_NONE, "none", "the host's network", "" },
		{ SB_WALL_SYSCALLS, SB_LEVEL_NONE, "none", "", "" },
		{ SB_WALL_PRIVILEGES, SB_LEVEL_NONE, "none", "runs as the caller", "" },
		{ SB_WALL_PROCESSES, SB_LEVEL_COOPERATIVE, "subreaper follows and kills descendants",
		  "sees and may signal the caller's other processes", "tests/walls/time.c" },
		{ SB_WALL_PIDS, SB_LEVEL_NONE, "none", "", "" },
		{ SB_WALL_DISK, SB_LEVEL_NONE, "none", "", "" },
		{ SB_WALL_ENV, SB_LEVEL_HARD, "complete environment, built anew",
		  "nothing of the caller's but what was named; his processes, and their environments, are seen",
		  "tests/walls/environment.c" },
	};
	bool time = limits_is_set(limits->wall_ms);
	bool output = limits_is_set(limits->out_total_bytes) || limits_is_set(limits->out_stream_bytes);
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < BASE_ARRAY_LEN(fixed); i++)
		rc = add(plan, fixed[i].wall, fixed[i].level, fixed[i].mechanism, fixed[i].caveat,
			 fixed[i].test, err);
	if (!rc)
		rc = add_sampled(plan, SB_WALL_MEMORY, limits_is_set(limits->memory_bytes),
				 "a burst between two looks gets through", "tests/walls/memory.c", err);
	if (!rc)
		rc = add_sampled(plan, SB_WALL_CPU, limits_is_set(limits->cpu_ms),
				 "children whose parent ignores SIGCHLD are not counted once they ended",
				 "tests/walls/cpu.c", err);
	if (!rc && limits_is_set(limits->cpu_millicores))
		rc = add(plan, SB_WALL_CPU, SB_LEVEL_NONE, "none", "a rate needs a cgroup of backend linux",
			 "", err);
	if (!rc)
		rc = time ? add(plan, SB_WALL_TIME, SB_LEVEL_SAMPLED, "deadline outside, the tree killed",
				"descendants are looked for over /proc until none is left", "tests/walls/time.c",
				err)
			  : add(plan, SB_WALL_TIME, SB_LEVEL_NONE, "no limit", "", "", err);
	if (!rc)
		rc = output ? add(plan, SB_WALL_OUTPUT, SB_LEVEL_HARD, "bounded reader outside", "",
				  "tests/walls/output.c", err)
			    : add(plan, SB_WALL_OUTPUT, SB_LEVEL_NONE, "no limit", "", "", err);
	return rc;
}

static int process_plan(sb_state *state, const sb_box_request *request, sb_plan *plan,
			sb_error *err)
{
	const sb_limits *limits = request->limits;
	const sb_network *network = request->network;
	const sb_enforcement held = { .size = sizeof held, .env_allow_list = 1,
		.memory_cap = limits_is_set(limits->memory_bytes) ? SB_LEVEL_SAMPLED : SB_LEVEL_NONE,
		.cpu_cap = limits_is_set(limits->cpu_ms) ? SB_LEVEL_SAMPLED : SB_LEVEL_NONE };
	int rc;

	(void)state;
	if (network && (network->mode == SB_NET_ALLOW_LIST || network->mode == SB_NET_PROXY))
		return error_set(err, SB_ERR_UNSUPPORTED, "network",
				 "backend \"process\" cannot hold the network back (mode \"%s\"); use backend "
				 "\"linux\"", sb_net_mode_name((int)network->mode));
	if (network && network->unix_sockets && network->unix_sockets[0])
		return error_set(err, SB_ERR_UNSUPPORTED, "network",
				 "backend \"process\" cannot hold other sockets back than the named ones; use "
				 "backend \"linux\", or leave the list out");
	rc = launched_lacks_work(request, err);
	if (!rc)
		rc = add_lines(limits, plan, err);
	if (!rc)
		rc = plan_add_path(plan, "/", SB_FILE_WRITE, "no wall: whatever the caller may", err);
	if (!rc)
		rc = sb_plan_set_caps(plan, PROCESS_CAPS);
	return rc ? rc : sb_plan_set_enforcement(plan, &held);
}

/* ---- Box ----------------------------------------------------------------------------------------- */

static void fill_plan(const sb_limits *limits, lh_plan *plan)
{
	lp_plan *p = &plan->fixed;

	p->steps = LP_SUBREAPER | LP_SESSION | LP_CLOSE_FDS;
	p->uid_outside = p->uid_outer = p->uid_inside = geteuid();
	p->gid_outside = p->gid_outer = p->gid_inside = getegid();
	if (limits_is_set(limits->memory_bytes))
		p->memory_bytes = limits->memory_bytes;
	if (limits_is_set(limits->cpu_ms) && limits->cpu_ms < SB_UNLIMITED / 1000)
		p->cpu_us = limits->cpu_ms * 1000;
	if (limits_is_set(limits->open_files))
		p->open_files = limits->open_files;
	if (limits_is_set(limits->user_procs))
		p->user_procs = limits->user_procs;
	p->sample_us = SAMPLE_US;
	if (p->memory_bytes != SB_UNLIMITED || p->cpu_us != SB_UNLIMITED)
		p->steps |= LP_SAMPLE;
}

static int start(const sb_state *state, const sb_box_request *request, sb_box *box, sb_error *err)
{
	lh_plan *plan;
	int rc;

	if (request->workspace) {
		box->workspace = strdup(request->workspace);
		box->workspace_fd = fcntl(request->workspace_fd, F_DUPFD_CLOEXEC, 3);
		if (!box->workspace || box->workspace_fd < 0)
			return error_errno(err, SB_ERR_IO, errno, "create",
					   "cannot keep the workspace open");
	}
	plan = lh_plan_new();
	if (!plan)
		return error_no_memory(err, "create");
	fill_plan(request->limits, plan);
	rc = lh_start(state->helper, plan, &box->launch, err);
	lh_plan_free(plan);
	return rc;
}

static int process_create(sb_state *state, const sb_box_request *request, const sb_plan *plan,
			  const sb_call *call, sb_box **out, sb_error *err)
{
	sb_box *box;
	int rc = sb_call_check(call, err);

	(void)plan;
	if (rc)
		return rc;
	if (!state->helper) {
		if (err)
			*err = state->helper_missing;
		return state->helper_missing.code;
	}
	box = launched_box_new(request->limits);
	rc = box ? start(state, request, box, err) : error_no_memory(err, "create");
	if (!rc && request->door == SB_DOOR_SESSION)
		rc = launched_box_wait_ready(box, call, err);
	if (rc) {
		launched_box_destroy(box);
		return rc;
	}
	*out = box;
	return 0;
}

static int process_put(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call,
		       sb_error *err)
{
	sb_node node = { .size = sizeof node };
	int fd;

	if (!strcmp(path, "/in")) /* the host's: that of a run is meant */
		return error_set(err, SB_ERR_UNSUPPORTED, "put",
				 "backend \"process\" has no \"%s\" to put files into; name them by their own "
				 "path, or use backend \"linux\"", path);
	if (strcmp(path, CODE_DIR))
		return launched_put_tree(box, path, tree, call, err);
	if (sb_tree_count(tree) != 1 || sb_tree_at(tree, 0, &node) || node.what != SB_NODE_FILE)
		return error_set(err, SB_ERR_INVALID, "put", "the code is one file");
	fd = fd_memfd("sandbox-code", node.data, node.len);
	if (fd < 0)
		return error_errno(err, SB_ERR_IO, -fd, "put", "cannot make a memory file for the code");
	fd_close(&box->code_fd);
	box->code_fd = fd;
	return 0;
}

/* ---- Spawn --------------------------------------------------------------------------------------- */

int process_check_cwd(int workspace_fd, const char *workspace, const char *cwd, sb_error *err)
{
	const char *below = cwd;
	int FD_AUTO fd = -1;
	struct stat st;

	if (workspace) {
		if (!path_is_within(cwd, workspace))
			goto outside;
		below = cwd + strlen(workspace);
		below += *below == '/';
		below = *below ? below : ".";
		fd = open_beneath(workspace_fd, below, O_PATH);
	} else {
		fd = open(cwd, O_PATH | O_CLOEXEC);
	}
	if (fd < 0 && (errno == EXDEV || errno == ELOOP))
		goto outside;
	if (fd < 0)
		return error_errno(err, error_code_of_errno(errno), errno, "cwd",
				   "cannot work in \"%s\"", cwd);
	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return error_set(err, SB_ERR_NOT_DIR, "cwd", "\"%s\" is not a directory", cwd);
	return 0;
outside:
	return error_set(err, SB_ERR_PATH_TRAVERSAL, "cwd",
			 "\"%s\" leads out of the workspace \"%s\"; name a directory in it", cwd, workspace);
}

/* argv with the code's path inside replaced by that of the descriptor. */
static const char **code_argv(const char *const *argv, const char *code_path)
{
	size_t count = strv_count(argv), i;
	const char **out = calloc(count + 1, sizeof *out);

	for (i = 0; out && i < count; i++)
		out[i] = path_is_within(argv[i], CODE_DIR) ? code_path : argv[i];
	return out;
}

static int spawn_code(sb_box *box, const sb_guest_request *request, const sb_call *call,
		      sb_guest **guest, sb_guest_io *io, sb_error *err)
{
	bool control = request->flags & SB_GUEST_CONTROL;
	const char **argv = code_argv(request->argv, control ? CODE_PATH_CONTROL : CODE_PATH);
	sb_guest_request with_code = *request;
	lh_spawn spawn = { .code = box->code_fd, .flags = LP_S_CODE_FD };
	int rc;

	if (!argv)
		return error_no_memory(err, "spawn");
	with_code.argv = argv;
	rc = launched_spawn(box, &with_code, &spawn, call, guest, io, err);
	free(argv);
	fd_close(&box->code_fd); /* it was for this one */
	return rc;
}

static int process_spawn(sb_box *box, const sb_guest_request *request, const sb_call *call,
			 sb_guest **guest, sb_guest_io *io, sb_error *err)
{
	sb_guest_request here = *request;
	lh_spawn spawn = { .code = -1 };
	char cwd[4096];
	int rc = sb_call_check(call, err);

	/* there is no /work: what has no workspace runs where the caller is */
	if (!box->workspace && request->cwd && !strcmp(request->cwd, "/work") &&
	    getcwd(cwd, sizeof cwd))
		here.cwd = cwd;
	if (!rc && here.cwd)
		rc = process_check_cwd(box->workspace_fd, box->workspace, here.cwd, err);
	if (rc)
		return rc;
	if (box->code_fd >= 0)
		return spawn_code(box, &here, call, guest, io, err);
	return launched_spawn(box, &here, &spawn, call, guest, io, err);
}

const sb_backend backend_process = {
	.size = sizeof(sb_backend),
	.abi = SB_BACKEND_ABI,
	.name = "process",
	.summary = "no walls: a plain process, followed and killed as a tree",
	.caps = PROCESS_CAPS,
	.probe = process_probe,
	.plan = process_plan,
	.create = process_create,
	.spawn = process_spawn,
	.signal = launched_signal,
	.resize = launched_resize,
	.put = process_put,
	.get = launched_get,
	.remove = launched_remove,
	.reap = launched_reap,
	.usage = launched_usage,
	.release = launched_release,
	.destroy = launched_box_destroy,
	.forget = process_forget,
	.teardown = launched_box_teardown,
	.renew = launched_renew,
	.pid = launched_pid,
};
