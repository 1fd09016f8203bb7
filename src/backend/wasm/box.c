/* SPDX-License-Identifier: MIT */
/*
 * box.c - the walls around a worker as a plan of sb-launch; create, put, spawn.
 *
 * The root that a worker sees holds itself and, for a language, the folder of its pack; all that the
 * guest sees as files lives in the worker's memory.  So what is put is only gathered here, and goes
 * along with the spawn.
 */
#include "wasm.h"
#include "../../wasi/wasi.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define KILL_GRACE_MS 300u    /* for a worker to tell what lies in /out, once its time is over */
#define JOB_SLACK ((uint64_t)48 << 20)
#define CODE_DIR "/run/code"
#define AS_TEXT(number) #number
#define NUMBERED(name, number) name "=" AS_TEXT(number)
#define CONTROL_NAME NUMBERED("SANDBOX_CONTROL", WASI_CONTROL_FD)
/* Network and IPC are walled off by the filter of a worker: it is left no call that reaches them. */
#define WORKER_NAMESPACES ((uint64_t)(LP_USERNS | LP_PIDNS | LP_MOUNTNS | LP_UTSNS | LP_CGROUPNS))

wasm_box *box_own(sb_box *box)
{
	return box->wasm;
}

/* ---- The walls ------------------------------------------------------------------------------------- */

static void add_ids(const sb_state *state, lp_plan *p)
{
	const linux_facts *facts = &state->facts;

	if (facts->root_caller) {
		p->uid_outer = p->gid_outer = 1000;
	} else {
		p->uid_outside = p->uid_outer = facts->uid;
		p->gid_outside = p->gid_outer = facts->gid;
	}
	p->uid_inside = p->gid_inside = 1000;
}

static int take_uid(const sb_state *state, uint64_t deadline_ns, lh_plan *plan, sb_box *box,
		    sb_error *err)
{
	const linux_facts *facts = &state->facts;
	uint32_t outside = 0;
	int rc;

	if (!facts->root_caller)
		return 0;
	rc = ids_reserve(facts->uid_first, facts->uid_count, deadline_ns, &outside, &box->uid_lock, err);
	box->chown_uid = box->chown_gid = outside;
	plan->fixed.uid_outside = plan->fixed.gid_outside = outside;
	return rc;
}

static int open_place(const char *dir, const char *name, char path[4096], int flags, int *fd, sb_error *err)
{
	int n = snprintf(path, 4096, "%s/%s", dir, name);

	if (n < 0 || n >= 4096)
		return error_set(err, SB_ERR_INVALID_PATH, "create", "the path of our programs is too long");
	*fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW | flags);
	if (*fd < 0)
		return error_errno(err, SB_ERR_BACKEND_UNAVAILABLE, errno, "create",
				   "cannot open \"%s\"; `make wasm` builds it", path);
	return 0;
}

static void fill_plan(const sb_state *state, const sb_limits *limits, lh_plan *plan)
{
	lp_plan *p = &plan->fixed;
	uint64_t files = limits->collect_bytes ? limits->collect_bytes : limits->fs_bytes;

	p->steps = WORKER_NAMESPACES | LP_ROOT | LP_NO_CAPS | LP_NO_NEW_PRIVS | LP_UNDUMPABLE |
		   LP_SECCOMP | LP_WORKER | LP_SESSION | LP_CLOSE_FDS | LP_NESTED_USERNS |
		   (state->facts.root_caller ? LP_OWN_GROUP : 0) |
		   (state->facts.landlock_abi ? LP_LANDLOCK : 0) |
		   (state->facts.landlock_abi >= 6 ? LP_LANDLOCK_SCOPE : 0);
	add_ids(state, p);
	p->hostname = lh_plan_string(plan, "sandbox");
	/* the only file that it can write is the job, behind which it puts its result; where directories of the host
	 * are shown, each file in them, too */
	if (files && files < JOB_MAX_BYTES)
		p->file_bytes = files + JOB_SLACK;
	if (limits->cpu_ms && limits->cpu_ms < SB_UNLIMITED / 1000)
		p->cpu_us = limits->cpu_ms * 1000;
}

void wasm_begin(sb_state *state, const char *id, const sb_network *network)
{
	launched_begin(&state->begun, state->helper, id, network ? WORKER_NAMESPACES : 0);
}

int box_launch(sb_state *state, const char *id, const char *program, const char *inside, const char *pack,
	       const wasm_shown *shown, const sb_limits *limits, const sb_call *call, sb_box *box, sb_error *err)
{
	int FD_AUTO program_fd = -1;
	int FD_AUTO pack_fd = -1;
	int FD_AUTO library_fd = -1;
	char program_path[4096], pack_path[4096], library_path[4096], below[64];
	lh_plan *plan = lh_plan_new();
	int rc = plan ? open_place(state->dir, program, program_path, 0, &program_fd, err) :
			error_no_memory(err, "create");

	snprintf(below, sizeof below, "wasm/%s", pack ? pack : "");
	if (!rc && pack)
		rc = open_place(state->dir, below, pack_path, O_DIRECTORY, &pack_fd, err);
	if (!rc && state->shared_library)
		rc = open_place(state->dir, "libwasmtime.so", library_path, 0, &library_fd, err);
	if (!rc) {
		fill_plan(state, limits, plan);
		lh_plan_mount_fd(plan, LP_M_BIND, program_fd, program_path, inside,
				 LP_F_READONLY | LP_F_NODEV, 0);
		if (pack)
			lh_plan_mount_fd(plan, LP_M_BIND, pack_fd, pack_path, JOB_PACK_DIR,
					 LP_F_READONLY | LP_F_NODEV | LP_F_NOSUBMOUNTS | LP_F_DIR, 0);
		if (state->shared_library) {
			/* then the worker needs a loader and the C library, too */
			lh_plan_mount_fd(plan, LP_M_BIND, library_fd, library_path, "/libwasmtime.so",
					 LP_F_READONLY | LP_F_NODEV, 0);
			lh_plan_mount(plan, LP_M_BIND, "/usr", "/usr", LP_F_READONLY | LP_F_NODEV | LP_F_DIR, 0);
			lh_plan_mount(plan, LP_M_SYMLINK, "usr/lib", "/lib", 0, 0);
			lh_plan_mount(plan, LP_M_SYMLINK, "usr/lib64", "/lib64", 0, 0);
		}
		if (shown)
			shown_mount(shown, plan);
		lh_plan_mount(plan, LP_M_REMOUNT_RO, "", "/", 0, 0);
		rc = take_uid(state, call->deadline_ns, plan, box, err);
	}
	if (!rc)
		rc = lh_plan_check(plan, err);
	if (!rc)
		rc = launched_start(&state->begun, state->helper, id, plan, box, err);
	lh_plan_free(plan);
	return rc;
}

/* ---- Create ------------------------------------------------------------------------------------------ */

int box_find_pack(sb_state *state, const char *name, const sb_call *call, packdir *dir, sb_error *err)
{
	int rc;

	*dir = (packdir){ .fd = -1 };
	if (!name)
		return 0;
	rc = packdir_open(dir, state->dir, name, err);
	if (rc)
		return rc;
	rc = packdir_check(dir, err);
	if (call && (rc == SB_ERR_CHECKSUM || rc == SB_ERR_NOT_FOUND) && !mend_pack(state, dir, call, NULL)) {
		if (err)
			*err = (sb_error){ 0 };
		rc = 0;
	}
	if (rc)
		packdir_close(dir);
	return rc;
}

void box_lay_world(wasm_box *own, const packdir *dir)
{
	job_add(own, JOB_DIR, JOB_READONLY | JOB_FREE, "/run", NULL, 0);
	job_add(own, JOB_DIR, JOB_READONLY | JOB_FREE, CODE_DIR, NULL, 0);
	job_add(own, JOB_DIR, JOB_READONLY | JOB_FREE, "/home", NULL, 0);
	job_add(own, JOB_DIR, JOB_FREE, "/home/sandbox", NULL, 0);
	job_add(own, JOB_DIR, JOB_FREE, "/tmp", NULL, 0);
	job_add(own, JOB_DIR, JOB_READONLY, "/in", NULL, 0);
	job_add(own, JOB_DIR, 0, "/work", NULL, 0);
	job_add(own, JOB_DIR, 0, "/out", NULL, 0);
	if (dir->fd < 0)
		return;
	job_add(own, JOB_MODULE_FILE, 0, "", dir->of.module.name, strlen(dir->of.module.name));
	for (size_t i = 0; i < dir->of.file_count; i++)
		job_add(own, JOB_MOUNT, 0, dir->of.files[i].path, dir->of.files[i].name,
			strlen(dir->of.files[i].name));
	own->has_code = own->is_pack = true;
	snprintf(own->pack, sizeof own->pack, "%s", dir->of.name);
	snprintf(own->module, sizeof own->module, "%s", dir->of.module.sha256);
}

sb_box *box_new(const sb_limits *limits)
{
	sb_box *box = launched_box_new(limits);
	wasm_box *own = calloc(1, sizeof *own);

	if (!box || !own) {
		launched_box_destroy(box);
		free(own);
		return NULL;
	}
	buf_init(&own->job, JOB_MAX_BYTES);
	own->fd = own->ask = -1;
	own->stack_bytes = JOB_STACK_MOST;
	box->wasm = own;
	return box;
}

uint64_t box_stack_bytes(const sb_box_request *request)
{
	const sb_wasm_options *options = request->options;

	return options && options->stack_bytes ? options->stack_bytes : JOB_STACK_MOST;
}

static int create_cold(sb_state *state, const sb_box_request *request, const packdir *dir, const wasm_shown *shown,
		       const sb_call *call, sb_box **out, sb_error *err)
{
	sb_box *box = box_new(request->limits);
	int rc;

	if (!box)
		return error_no_memory(err, "create");
	box_own(box)->state = state;
	box_own(box)->stack_bytes = box_stack_bytes(request);
	box_lay_world(box_own(box), dir);
	shown_lay(shown, box_own(box));
	rc = module_path(request) ? module_add(state, call, module_path(request), box_own(box), err) : 0;
	if (rc) {
		box_destroy(box);
		return rc;
	}
	rc = box_launch(state, request->id, "sb-wasm", JOB_WORKER_PATH, dir->fd < 0 ? NULL : dir->of.name, shown,
			request->limits, call, box, err);
	if (rc) {
		box_destroy(box);
		return rc;
	}
	*out = box;
	return 0;
}

static int create(sb_state *state, const sb_box_request *request, const wasm_shown *shown, const sb_call *call,
		  sb_box **out, sb_error *err)
{
	stock_kind *kind = NULL;
	packdir dir;
	int rc = box_find_pack(state, wasm_pack_name(request->way), call, &dir, err);

	if (rc)
		return rc;
	if (request->flags & SB_BOX_WARM)
		kind = wasm_warm_kind(state, request, &dir, shown);
	*out = kind ? wasm_warm_take(kind, request) : NULL;
	if (!*out) {
		rc = create_cold(state, request, &dir, shown, call, out, err);
		if (rc)
			stock_kind_drop(kind);
		else
			stock_seat(*out, kind);
	}
	packdir_close(&dir);
	return rc;
}

int wasm_create(sb_state *state, const sb_box_request *request, const sb_plan *plan,
		const sb_call *call, sb_box **out, sb_error *err)
{
	const wasm_shown *shown = wasm_plan_shown(plan, request);
	wasm_shown fresh;
	int rc = wasm_check(state, request, err);

	if (!rc)
		rc = sb_call_check(call, err);
	if (rc)
		return rc;
	if (!state->helper) {
		if (err)
			*err = state->helper_missing;
		return state->helper_missing.code;
	}
	if (shown)
		return create(state, request, shown, call, out, err);
	rc = shown_find(state, request, &fresh, err);
	if (rc)
		return rc;
	rc = create(state, request, &fresh, call, out, err);
	shown_release(&fresh);
	return rc;
}

/* Nothing of a box lies outside of it.  One in which nothing runs any more is in nobody's way: where workers
 * wait, their thread takes it down. */
void wasm_teardown(sb_box *box, sb_teardown *report)
{
	if (!box_own(box)->over || !box->warm)
		launched_box_teardown(box, report);
}

void wasm_destroy(sb_box *box)
{
	if (box && box_own(box)->over && stock_leave_later(box))
		return;
	stock_leave(box);
	box_destroy(box);
}

void box_destroy(sb_box *box)
{
	wasm_box *own = box ? box->wasm : NULL;

	launched_box_destroy(box);
	if (!own)
		return;
	buf_release(&own->job);
	fd_close(&own->fd);
	fd_close(&own->ask);
	free(own->result);
	free(own);
}

/* ---- Put --------------------------------------------------------------------------------------------- */

/* Of what a worker was taken for the hash is known; one that waited with it needs no more. */
static int put_module(wasm_box *own, const sb_node *node, const sb_call *call, sb_error *err)
{
	bool same = own->hash[0] && node->len == own->code_len && !memcmp(node->data, own->code, node->len);

	if (own->loaded)
		return same ? 0 : stock_ended(err);
	return compile_add(own->state, call, node->data, node->len, same ? own->hash : NULL, own, err);
}

/* The code of a raw module is not a file of the guest's, but the guest. */
static int put_code(sb_box *box, const sb_node *node, const sb_call *call, sb_error *err)
{
	wasm_box *own = box_own(box);
	char path[300];

	if (own->has_code) {
		snprintf(path, sizeof path, CODE_DIR "/%.255s", node->path);
		memcpy(own->code_path, path, sizeof own->code_path);
		job_add(own, JOB_FILE, JOB_READONLY | JOB_FREE, path, node->data, node->len);
		return 0;
	}
	own->has_code = true;
	return put_module(own, node, call, err);
}

/* The guest runs already: what was gathered goes to it now. */
static int put_late(wasm_box *own, const sb_call *call, sb_error *err)
{
	int rc = live_put(own, call, err);

	buf_release(&own->job);
	own->entries = 0;
	return rc;
}

int wasm_put(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call, sb_error *err)
{
	wasm_box *own = box_own(box);
	bool code = !strcmp(path, CODE_DIR), given = path_is_within(path, "/in");
	size_t count = sb_tree_count(tree);
	strv names = { 0 };
	int rc = sb_call_check(call, err);

	if (!rc && own->spawned && strcmp(path, "/in"))
		rc = live_only(err);
	if (!rc && !code && !given && !path_is_within(path, "/work") && !path_is_within(path, "/tmp"))
		rc = error_set(err, SB_ERR_INVALID_PATH, "put",
			       "files can be put into /in, /work and /tmp, not into \"%s\"", path);
	for (size_t i = 0; !rc && i < count; i++) {
		sb_node node = { .size = sizeof node };

		rc = sb_tree_at(tree, i, &node);
		if (rc || node.what > SB_NODE_DIR)
			continue;
		if (code) {
			rc = put_code(box, &node, call, err);
			continue;
		}
		if (strv_add_fmt(&names, "%s/%s", path, node.path)) {
			rc = error_no_memory(err, "put");
			continue;
		}
		job_add(own, node.what == SB_NODE_DIR ? JOB_DIR : JOB_FILE, given ? JOB_READONLY : 0,
			names.at[names.len - 1], node.data, node.what == SB_NODE_DIR ? 0 : node.len);
	}
	strv_release(&names);
	if (!rc && own->spawned)
		rc = put_late(own, call, err);
	return rc;
}

/* ---- Spawn ------------------------------------------------------------------------------------------- */

static void lay_command(wasm_box *own, const sb_guest_request *request, bool control)
{
	char pwd[4096 + 16];

	for (size_t i = 0; request->argv[i]; i++)
		job_add(own, JOB_ARG, 0, "", request->argv[i], strlen(request->argv[i]));
	for (size_t i = 0; request->env[i]; i++)
		job_add(own, JOB_ENV, 0, "", request->env[i], strlen(request->env[i]));
	if (control)
		job_add(own, JOB_ENV, 0, "", CONTROL_NAME, strlen(CONTROL_NAME));
	if (!request->cwd)
		return;
	if (path_is_within(request->cwd, "/work") && strcmp(request->cwd, "/work"))
		job_add(own, JOB_DIR, 0, request->cwd, NULL, 0);
	/* an interpreter's driver goes there and forgets the name; to a module it is all that it will know */
	snprintf(pwd, sizeof pwd, "%s=%s", own->is_pack ? "SANDBOX_CWD" : "PWD", request->cwd);
	job_add(own, JOB_ENV, 0, "", pwd, strlen(pwd));
}

static int send_worker(sb_box *box, const sb_guest_request *request, const sb_call *call, sb_guest **guest,
		       sb_guest_io *io, sb_error *err)
{
	static const char *const nothing[] = { NULL };
	const char *const argv[] = { JOB_WORKER_PATH, request->flags & SB_GUEST_CONTROL ? "4" : "3", NULL };
	sb_guest_request worker = *request;
	lh_spawn spawn = { .flags = LP_S_CODE_FD, .code = box_own(box)->fd };

	worker.argv = argv;
	worker.env = nothing;
	worker.cwd = "/";
	return launched_spawn(box, &worker, &spawn, call, guest, io, err);
}

int wasm_spawn(sb_box *box, const sb_guest_request *request, const sb_call *call, sb_guest **guest,
	       sb_guest_io *io, sb_error *err)
{
	bool control = request->flags & SB_GUEST_CONTROL, waits = !control && stock_waits(box);
	uint64_t cpu_ms = request->limits ? request->limits->cpu_ms : 0;
	wasm_box *own = box_own(box);
	int rc = sb_call_check(call, err);

	if (!rc && own->spawned)
		rc = error_set(err, SB_ERR_UNSUPPORTED, "spawn", "a box of backend \"wasm\" runs one guest");
	if (!rc && !own->has_code)
		rc = error_set(err, SB_ERR_INVALID_SPEC, "spawn", "there is no module to run");
	if (rc)
		return rc;
	lay_command(own, request, control);
	/* not ours to write: the root that the guest sees, last, when all is laid */
	job_add(own, JOB_DIR, JOB_READONLY | JOB_FREE, "/", NULL, 0);
	own->spawned = true;
	if (waits)
		rc = job_append(own, &box->limits, cpu_ms, err);
	else
		rc = own->fd = job_make(own, &box->limits, cpu_ms, control, 0, err);
	if (rc < 0)
		return rc;
	own->entries = 0;
	rc = waits ? wasm_warm_go(box, request, guest, io, err) : send_worker(box, request, call, guest, io, err);
	if (!rc && control)
		rc = live_open(own, io->control, err);
	if (!rc)
		stock_refill(box);
	return rc;
}

/* A worker that is told to end tells what lies in /out; one that does not is killed. */
int wasm_signal(sb_guest *guest, int signal, const sb_call *call, sb_error *err)
{
	sb_box *box = guest->box;
	int number = launched_signal_number(signal), rc;

	if (number < 0 || number == SIGSTOP || number == SIGCONT)
		return launched_signal(guest, signal, call, err);
	if (number == SIGINT && box_own(box)->ask >= 0) /* of a session: it goes on */
		return launched_signal(guest, signal, call, err);
	if (number != SIGKILL)
		return launched_signal(guest, SB_SIGNAL_TERMINATE, call, err);
	launched_box_listen(box);
	if (guest->ended || guest->refused || box->lost || box->gone)
		return 0;
	rc = lh_stop(box->launch, KILL_GRACE_MS, err);
	if (rc == SB_ERR_CONNECTION_LOST) {
		launched_box_listen(box);
		return 0;
	}
	return rc;
}
