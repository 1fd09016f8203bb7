/* SPDX-License-Identifier: MIT */
/* wasm.c - the table of the backend `wasm`, and what there is of it on this machine. */
#include "wasm.h"
#include "../builtin.h"
#include "../../core/core.h"
#include "build_id.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *wasm_pack_name(const sb_pack_way *way)
{
	const char *url = way && way->module ? way->module->url : NULL;

	return url && !strncmp(url, "pack:", 5) ? url + 5 : NULL;
}

/* What wasm/engine says: the engine's key, and on the next line of which build the worker is. */
static void read_engine(sb_state *state)
{
	char path[PATH_MAX], text[MANIFEST_WORD + 32], build[24];
	int fd FD_AUTO = snprintf(path, sizeof path, "%s/wasm/engine", state->dir) < (int)sizeof path ?
				 open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	size_t key;

	text[n > 0 ? n : 0] = '\0';
	key = strcspn(text, "\n");
	if (key >= sizeof state->key)
		return;
	snprintf(build, sizeof build, "\n%016llx\n", (unsigned long long)SB_WORKER_ID);
	state->foreign = key && strcmp(text + key, build) != 0;
	if (!state->foreign)
		memcpy(state->key, text, key);
}

/* Where sb-launch lies, the rest lies, too. */
static void find_engine(sb_state *state)
{
	const char *slash = state->helper ? strrchr(state->helper, '/') : NULL;
	char path[4096];

	if (!slash)
		return;
	state->dir = strndup(state->helper, (size_t)(slash - state->helper));
	if (!state->dir || snprintf(path, sizeof path, "%s/sb-wasm", state->dir) >= (int)sizeof path ||
	    access(path, R_OK | X_OK) != 0)
		return;
	read_engine(state);
	state->shared_library = strstr(state->key, "-wheel-") != NULL;
}

static void wasm_forget(sb_state *state)
{
	if (!state)
		return;
	stock_forget(&state->warm);
	for (size_t i = 0; i < WASM_CACHE_MAX; i++)
		free(state->cache[i].data);
	launched_begins_release(&state->begun);
	pthread_mutex_destroy(&state->lock);
	pthread_mutex_destroy(&state->idmap.lock);
	free(state->helper);
	free(state->dir);
	free(state);
}

/* ---- doctor ----------------------------------------------------------------------------------------- */

static int tell(sb_report *report, const char *what, bool ok, const char *found, const char *remedy, sb_error *err)
{
	const sb_check check = { .size = sizeof check, .backend = "wasm", .what = what, .found = found,
		.remedy = ok ? "" : remedy, .ok = ok };

	return sb_report_add(report, &check, err);
}

/* What runs there, and what of the language does not; docs/wasm.md says it at length. */
static const char *abilities(const char *name)
{
	static const struct { const char *name, *can; } all[] = {
		{ "js", "runs and sessions; no modules of Node.js, no fetch, no workers" },
		{ "lua", "runs and sessions; no programs, no native modules" },
		{ "python", "runs and sessions; no threads, programs, sockets, ssl, native packages" },
		{ "ts", "runs and sessions, translated without checking types; else as js" },
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(all); i++)
		if (!strcmp(all[i].name, name))
			return all[i].can;
	return "runs";
}

static int tell_pack(sb_report *report, const sb_state *state, const sb_pack *pack, sb_error *err)
{
	const char *name = wasm_pack_name(pack_way(pack, "wasm"));
	char what[64], found[600], remedy[80];
	sb_error why = { 0 };
	packdir dir;
	bool ok;
	int fd;

	if (!name)
		return 0;
	/* what the stamp knows is not hashed again: `sandbox packs verify` does */
	fd = packdir_open(&dir, state->dir, name, &why) ? -1 : packdir_file(&dir, &dir.of.module, false, &why);
	ok = fd >= 0;
	fd_close(&fd);
	snprintf(what, sizeof what, "pack %s", name);
	snprintf(remedy, sizeof remedy, "`sandbox packs build %s`", name);
	if (ok)
		snprintf(found, sizeof found, "%s, %llu KiB: %s%s%s", dir.of.version,
			 (unsigned long long)(packdir_bytes(&dir) / 1024), abilities(name), dir.of.note[0] ? "; " : "",
			 dir.of.note);
	else
		snprintf(found, sizeof found, "%s", why.code == SB_ERR_NOT_FOUND ? "not built here" : why.message);
	packdir_close(&dir);
	/* one that nobody has built yet is no fault of the machine's */
	return tell(report, what, ok || why.code == SB_ERR_NOT_FOUND, found, remedy, err);
}

static int report_all(sb_state *state, sb_report *report, sb_error *err)
{
	const sb_pack *const *packs = sb_packs_builtin();
	char found[600];
	int rc;

	if (state->foreign)
		return tell(report, "engine", false, "sb-wasm and sandbox are of different builds",
			    "`make wasm` renews it where they were built, else install both together", err);
	if (!state->key[0])
		return tell(report, "engine", false, "no sb-wasm beside sb-launch", "`make wasm` builds it", err);
	snprintf(found, sizeof found, "Wasmtime %s, %s", state->key,
		 state->shared_library ? "its ready-made library (the worker holds a compiler)" :
					 "built from its crate, no compiler in the worker");
	rc = tell(report, "engine", true, found, "", err);
	cache_tell(found, sizeof found);
	if (!rc)
		rc = tell(report, "modules of yours, compiled", true, found, "", err);
	for (; !rc && *packs; packs++)
		rc = tell_pack(report, state, *packs, err);
	return rc;
}

static int wasm_probe(const sb_backend *self, const sb_call *call, sb_report *report, sb_state **out,
		      sb_error *err)
{
	sb_state *state = calloc(1, sizeof *state);
	int rc;

	(void)self;
	if (!state)
		return error_no_memory(err, "probe");
	pthread_mutex_init(&state->lock, NULL);
	pthread_mutex_init(&state->idmap.lock, NULL);
	launched_begins_init(&state->begun);
	linux_facts_read_caller("", &state->facts);
	lh_find(call->helper_dir, &state->helper, &state->helper_missing);
	find_engine(state);
	rc = report ? report_all(state, report, err) : 0;
	if (!rc && report && state->foreign)
		rc = result_tell_foreign("sb-wasm", err);
	else if (!rc && report && !state->key[0])
		rc = error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "wasm",
			       "there is no WebAssembly engine here; `make wasm` builds it");
	if (rc) {
		wasm_forget(state);
		return rc;
	}
	*out = state;
	return 0;
}

/* A module that nobody has built is for create() to tell, or for the router to leave out. */
static int wasm_supports(const sb_backend *self, const sb_pack *pack)
{
	(void)self;
	return pack_way(pack, "wasm") != NULL;
}

static int wasm_prepare(sb_state *state, const sb_pack *pack, const sb_pack_way *way, const sb_call *call,
			sb_error *err)
{
	const char *name = wasm_pack_name(way);
	packdir dir;
	int rc = sb_call_check(call, err);

	(void)pack;
	if (rc || !name)
		return rc;
	rc = packdir_open(&dir, state->dir, name, err);
	if (!rc)
		rc = packdir_verify(&dir, err);
	packdir_close(&dir);
	return rc;
}

/* A command that has one, and a file of it. */
static bool names_module(const sb_box_request *request)
{
	sb_wasm_options o = { 0 };

	return request->door == SB_DOOR_RUN && request->spec->wasm_options &&
	       record_read(&o, sizeof o, request->spec->wasm_options, "sb_wasm_options", NULL) == 0 && o.module;
}

/* Before there is a state: is it all there, and can these walls hold what was asked for?  Cheap: some
 * small files are read. */
static int wasm_suits(const sb_backend *self, const char *helper_dir, const sb_box_request *request)
{
	const char *name = wasm_pack_name(request->way);
	const sb_network *network = request->network;
	sb_state state = { 0 };
	packdir dir = { .fd = -1 };
	bool ok;

	(void)self;
	if (!request->pack && !names_module(request))
		return 0;
	/* A session that starts programs needs another: these boxes run one guest.  What an interpreter that
	 * stays will be asked nobody knows: the language of the machine, where there is one, has it all. */
	if ((request->door != SB_DOOR_RUN && request->door != SB_DOOR_SESSION) ||
	    (request->door == SB_DOOR_SESSION && pack_way(request->pack, "linux")))
		return 0;
	if (network && ((network->mode != SB_NET_DENY_ALL && network->mode != SB_NET_DEFAULT) ||
			(network->unix_sockets && network->unix_sockets[0])))
		return 0;
	if (request->spec->linux_options ||
	    (request->limits->cpu_millicores && request->limits->cpu_millicores != SB_UNLIMITED))
		return 0;
	lh_find(helper_dir, &state.helper, NULL);
	find_engine(&state);
	ok = state.key[0] && (!name || !packdir_open(&dir, state.dir, name, NULL));
	packdir_close(&dir);
	free(state.helper);
	free(state.dir);
	if (!ok || !name || !pack_way(request->pack, "linux"))
		return ok;
	/* whoever shows files of the host means programs that work on them: the machine's own do that best */
	return !request->workspace && !wasm_shows_files(request->spec) &&
	       look_suits(name, request->code, request->code_len);
}

const sb_backend backend_wasm = {
	.size = sizeof(sb_backend),
	.abi = SB_BACKEND_ABI,
	.name = "wasm",
	.summary = "WebAssembly in a worker behind the walls of linux",
	.caps = WASM_CAPS | SB_CAP_SESSIONS | SB_CAP_EVAL | SB_CAP_FORK,
	.probe = wasm_probe,
	.supports = wasm_supports,
	.plan = wasm_plan,
	.create = wasm_create,
	.spawn = wasm_spawn,
	.signal = wasm_signal,
	.put = wasm_put,
	.get = wasm_get,
	.remove = wasm_remove,
	.collect = wasm_collect,
	.fork = wasm_fork,
	.reap = wasm_reap,
	.usage = wasm_usage,
	.release = launched_release,
	.destroy = wasm_destroy,
	.prepare = wasm_prepare,
	.forget = wasm_forget,
	.teardown = wasm_teardown,
	.begin = wasm_begin,
	.suits = wasm_suits,
};
