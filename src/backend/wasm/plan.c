/* SPDX-License-Identifier: MIT */
/* plan.c - the walls of a guest in words, and what cannot be had behind them. */
#include "wasm.h"
#include "../../core/core.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct writer {
	sb_plan *plan;
	const sb_state *state;
	const sb_box_request *request;
	const wasm_shown *shown;
	sb_enforcement held;
	sb_error *err;
	int rc;
} writer;

/* ---- What cannot be had --------------------------------------------------------------------------- */

static int refuse(sb_error *err, const char *where, const char *what)
{
	return error_set(err, SB_ERR_UNSUPPORTED, where, "%s: backend \"wasm\" has none; use --backend linux", what);
}

bool wasm_shows_files(const sb_spec *spec)
{
	for (size_t i = 0; spec && spec->files && spec->files[i]; i++)
		if (spec->files[i]->access == SB_FILE_READ || spec->files[i]->access == SB_FILE_WRITE ||
		    spec->files[i]->access == SB_FILE_TMPFS)
			return true;
	return false;
}

static int check_options(const sb_wasm_options *o, bool code, sb_error *err)
{
	if (!o)
		return 0;
	if (o->fs_dir)
		return refuse(err, "options", "a directory of the host in place of the guest's own \"/\"");
	if (o->module && code)
		return error_set(err, SB_ERR_INVALID_SPEC, "options",
				 "the module \"%.200s\" is for an argv, and this is code in a language: leave one out",
				 o->module);
	if (o->fuel)
		return refuse(err, "options", "a limit of instructions");
	if (o->flags & ~(uint64_t)SB_WASM_CLOCK)
		return refuse(err, "options", "a bridge to the network");
	if (!o->stack_bytes || (o->stack_bytes >= JOB_STACK_LEAST && o->stack_bytes <= JOB_STACK_MOST))
		return 0;
	return error_set(err, SB_ERR_INVALID_SPEC, "options",
			 "a stack of %llu bytes (stack_bytes of sb_wasm_options): give it from %llu to %llu, or 0",
			 (unsigned long long)o->stack_bytes, (unsigned long long)JOB_STACK_LEAST,
			 (unsigned long long)JOB_STACK_MOST);
}

static int check_machine(const sb_state *state, sb_error *err)
{
	if (state->foreign)
		return result_tell_foreign("sb-wasm", err);
	if (!state->key[0])
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "engine",
				 "there is no WebAssembly engine beside sb-launch; `make wasm` builds it, or use "
				 "--backend linux");
	if (linux_in_place(&state->facts))
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "userns",
				 "the worker's own walls need user namespaces, and none can be made here; use "
				 "--backend linux");
	if (state->facts.root_helpless || state->facts.no_spare_uid || state->facts.map_errno)
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "ids",
				 "root cannot give the worker another uid here; run it as a plain user");
	return 0;
}

/* The walls alone, for whoever asks what they are. */
static bool for_no_command(const sb_box_request *request)
{
	return request->door == SB_DOOR_RUN && !request->guest;
}

int wasm_check(const sb_state *state, const sb_box_request *request, sb_error *err)
{
	const sb_network *network = request->network;
	const sb_limits *limits = request->limits;
	int rc = check_machine(state, err);

	if (rc)
		return rc;
	if (!request->pack && !module_path(request) && !for_no_command(request))
		return refuse(err, "command", "a program of the host");
	if (network && network->mode != SB_NET_DENY_ALL)
		return refuse(err, "network", "a network");
	if (network && network->unix_sockets && network->unix_sockets[0])
		return refuse(err, "network", "a socket of the host's");
	if (limits_is_set(limits->cpu_millicores))
		return refuse(err, "cpu", "a rate of CPU time");
	if (limits_is_set(limits->fs_nodes) && limits->fs_nodes < 3)
		return error_set(err, SB_ERR_INVALID_LIMITS, "disk",
				 "the limit of files and folders is %llu, and /in, /work and /out are 3 of them; "
				 "raise it (--disk-files)", (unsigned long long)limits->fs_nodes);
	rc = check_options(request->options, request->pack, err);
	return rc || !module_path(request) ? rc : module_check(module_path(request), err);
}

/* ---- The lines ---------------------------------------------------------------------------------------- */

static void put(writer *w, uint32_t wall, uint32_t level, const char *subject, const char *mechanism,
		const char *caveat, const char *test)
{
	const sb_plan_line line = { .size = sizeof line, .wall = wall, .level = level, .subject = subject,
		.mechanism = mechanism, .caveat = caveat, .test = test };

	if (!w->rc)
		w->rc = sb_plan_add(w->plan, &line, w->err);
}

static void unlimited(writer *w, uint32_t wall)
{
	put(w, wall, SB_LEVEL_NONE, "unlimited", "no limit", "", "");
}

static void shown_lines(writer *w)
{
	char mechanism[160];

	for (size_t i = 0; i < w->shown->table.len; i++) {
		const mount_row *row = &w->shown->table.at[i];

		if (!shown_is_grant(row))
			continue;
		snprintf(mechanism, sizeof mechanism, "%s in the worker's root, %s; behind it a walk name by name "
			 "that follows no link out", row->flags & LP_F_IDMAP ? "id-mapped bind mount" : "bind mount",
			 row->flags & LP_F_WRITE ? "writable" : "read-only");
		put(w, SB_WALL_FILES, SB_LEVEL_HARD, row->target, mechanism,
		    mounts_owner_caveat(&w->shown->wish, &w->shown->table, row), "tests/wasm/shown");
	}
}

static void confinement(writer *w)
{
	const sb_state *s = w->state;
	bool shows = shown_any(w->shown);
	char subject[64], mechanism[200];

	/* landlock is no half of its own: it holds only what a root that is read-only would let through */
	snprintf(mechanism, sizeof mechanism,
		 "files in memory behind the engine's interface; the worker sees itself%s, and writes %s%s",
		 shows ? ", the pack's folder and what is shown" : " and the pack's folder",
		 shown_writes(w->shown) ? "nowhere else" : "nothing",
		 s->facts.landlock_abi ? "; landlock behind it" : "");
	put(w, SB_WALL_FILES, SB_LEVEL_HARD, "/", mechanism,
	    s->shared_library ? "with the engine as a shared library the worker sees /usr, too" : "",
	    "tests/wasm/backend");
	shown_lines(w);
	w->held.fs_bounds = SB_LEVEL_HARD;
	put(w, SB_WALL_NETWORK, SB_LEVEL_HARD, "deny_all",
	    "no socket in the interface; no call around the worker that makes, binds or connects one", "",
	    "tests/wasm/taken");
	w->held.net_modes = 1u << SB_NET_DENY_ALL;
	w->held.unix_sockets = 1;
	put(w, SB_WALL_SYSCALLS, SB_LEVEL_HARD, "the engine, and the kernel",
	    shows ? "the engine's interface; around it a filter of some forty calls, those of files among them, none "
		    "of which makes a page executable" :
		    "the engine's interface; around it a filter of some twenty calls, none of which makes a page "
		    "executable",
	    s->shared_library ? "the worker holds a compiler that it cannot use any more" :
				"no compiler in the worker", "tests/wasm/taken");
	if (s->facts.root_caller)
		snprintf(subject, sizeof subject, "one of %u uids from %u", s->facts.uid_count, s->facts.uid_first);
	else
		snprintf(subject, sizeof subject, "uid %u", (unsigned)s->facts.uid);
	put(w, SB_WALL_PRIVILEGES, SB_LEVEL_HARD, subject,
	    "no capability, no new privileges, nested user namespace", "", "tests/wasm/taken");
	put(w, SB_WALL_PROCESSES, SB_LEVEL_HARD, "",
	    "pid and uts namespaces, no call for IPC objects; a guest is one process", "", "tests/wasm/taken");
	put(w, SB_WALL_PIDS, SB_LEVEL_HARD, "1", "no call of the filter makes a process or thread", "",
	    "tests/wasm/taken");
	put(w, SB_WALL_ENV, SB_LEVEL_HARD, "", "complete environment, built anew",
	    "nothing of the caller's but what was named", "tests/wasm/backend");
	w->held.env_allow_list = 1;
}

static void numbers(writer *w)
{
	const sb_limits *l = w->request->limits;
	char text[96], size[32];

	if (limits_is_set(l->memory_bytes)) {
		put(w, SB_WALL_MEMORY, SB_LEVEL_HARD, size_text(l->memory_bytes, text),
		    "each growth of the guest's memory is allowed or counted; RLIMIT_DATA around the worker",
		    "the interpreter counts in it; the engine's own 2 to 16 MiB do not", "tests/wasm/backend");
		w->held.memory_cap = SB_LEVEL_HARD;
	} else {
		unlimited(w, SB_WALL_MEMORY);
	}
	if (limits_is_set(l->cpu_ms)) {
		put(w, SB_WALL_CPU, SB_LEVEL_HARD, clock_text(l->cpu_ms, text),
		    "timer of the worker's CPU time, RLIMIT_CPU behind it", "", "tests/wasm/backend");
		w->held.cpu_cap = SB_LEVEL_HARD;
	} else {
		unlimited(w, SB_WALL_CPU);
	}
	if (limits_is_set(l->fs_bytes) || limits_is_set(l->fs_nodes)) {
		size_text(limits_is_set(l->fs_bytes) ? l->fs_bytes : l->memory_bytes, size);
		snprintf(text, sizeof text, "%s, %llu files", size, (unsigned long long)l->fs_nodes);
		put(w, SB_WALL_DISK, SB_LEVEL_HARD, text, "quota of bytes and names, held at each write", "",
		    "tests/wasm/backend");
		w->held.disk_cap = SB_LEVEL_HARD;
	} else {
		unlimited(w, SB_WALL_DISK);
	}
	for (size_t i = 0; i < w->shown->table.len; i++)
		if (shown_is_grant(&w->shown->table.at[i]) && (w->shown->table.at[i].flags & LP_F_WRITE))
			put(w, SB_WALL_DISK, SB_LEVEL_NONE, w->shown->table.at[i].target, "none",
			    limits_is_set(l->fs_bytes) ?
				    "a directory of the host has no quota of ours; each file in it has a limit" :
				    "a directory of the host has no quota of ours", "");
}

static void outside(writer *w)
{
	const sb_limits *l = w->request->limits;
	bool total = limits_is_set(l->out_total_bytes);
	char text[96], size[32];

	if (limits_is_set(l->wall_ms))
		put(w, SB_WALL_TIME, SB_LEVEL_HARD, clock_text(l->wall_ms, text),
		    "deadline outside the walls, the pid namespace killed", "", "tests/wasm/backend");
	else
		unlimited(w, SB_WALL_TIME);
	if (!total && !limits_is_set(l->out_stream_bytes)) {
		unlimited(w, SB_WALL_OUTPUT);
		return;
	}
	size_text(total ? l->out_total_bytes : l->out_stream_bytes, size);
	snprintf(text, sizeof text, "%s%s", size, total ? " in all" : " a stream");
	put(w, SB_WALL_OUTPUT, SB_LEVEL_HARD, text,
	    l->out_mode == SB_OUT_STOP ? "bounded reader outside the walls, ends the guest" :
					 "bounded reader outside the walls, drops what is more",
	    "", "tests/wasm/backend");
}

static void paths(writer *w)
{
	static const struct { const char *path; int access; const char *why; } of[] = {
		{ "/in", SB_FILE_READ, "the files given" },
		{ "/run/code", SB_FILE_READ, "the code" },
		{ "/work", SB_FILE_TMPFS, "private to the run, gone at its end" },
		{ "/tmp", SB_FILE_TMPFS, "private to the run, gone at its end" },
		{ "/home/sandbox", SB_FILE_TMPFS, "private to the run, gone at its end" },
		{ "/out", SB_FILE_TMPFS, "collected at the end" },
		{ "/", SB_FILE_HIDE, "no file of the host is there" },
	};

	for (size_t i = 0; !w->rc && i < w->shown->table.len; i++) {
		const mount_row *row = &w->shown->table.at[i];

		if (row->access)
			w->rc = plan_add_path(w->plan, row->target, row->access, row->why, w->err);
	}
	for (size_t i = 0; !w->rc && i < BASE_ARRAY_LEN(of); i++)
		w->rc = plan_add_path(w->plan, of[i].path, of[i].access, of[i].why, w->err);
}

static int write_plan(writer *w)
{
	uint64_t caps = WASM_CAPS;

	confinement(w);
	numbers(w);
	outside(w);
	paths(w);
	if (w->request->way && w->request->way->session_driver)
		caps |= SB_CAP_SESSIONS | SB_CAP_EVAL | (wasm_forks(w->request->way) ? SB_CAP_FORK : 0);
	if (!w->rc)
		w->rc = sb_plan_set_caps(w->plan, caps);
	if (!w->rc)
		w->rc = sb_plan_set_enforcement(w->plan, &w->held);
	return w->rc ? w->rc : plan_set_constant(w->plan, "seccomp", lh_seccomp_oci_worker, w->err);
}

static void release(void *kept)
{
	shown_release(kept);
	free(kept);
}

const wasm_shown *wasm_plan_shown(const sb_plan *plan, const sb_box_request *request)
{
	const wasm_shown *shown = plan_kept(plan, release);

	return shown && shown->wish.request == request ? shown : NULL;
}

int wasm_plan(sb_state *state, const sb_box_request *request, sb_plan *plan, sb_error *err)
{
	wasm_shown *shown = malloc(sizeof *shown);
	writer w = { .plan = plan, .state = state, .request = request, .shown = shown, .err = err,
		     .held = { .size = sizeof w.held } };
	int rc = shown ? wasm_check(state, request, err) : error_no_memory(err, "plan");

	if (!rc)
		rc = shown_find(state, request, shown, err);
	if (rc) {
		free(shown);
		return rc;
	}
	plan_keep(plan, shown, NULL, release);
	return write_plan(&w);
}
