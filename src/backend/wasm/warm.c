/* SPDX-License-Identifier: MIT */
/*
 * warm.c - workers that wait, each for the one run that it is for (launched/stock.h).
 *
 * Of one kind are runs of the same pack, as its manifest pins it, under the same limits, that see the very
 * same files of the host: nothing else makes a difference to a box here.  A worker has the pack's module loaded
 * and instantiated; one for raw modules has the engine alone, or the module that this object has last run twice in
 * a row.  Nothing of a guest has run in it: random numbers, clocks, files, arguments and environment are a run's
 * own, as in a cold one.
 *
 * Its filter of system calls is loaded by then; where a module has yet to be loaded, before that is started.
 */
#include "wasm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define START_MS 1000u /* for a free uid */

typedef struct wasm_kind {
	stock_kind base;
	sb_state *state;
	sb_limits limits;
	char pack[MANIFEST_WORD], hash[SHA256_HEX]; /* "" = modules that come with their run */
	uint64_t stack_bytes;
	wasm_shown shown;
	/* of raw modules: of the last run's, and of the last that two runs in a row had; under the stock's lock */
	char last[SHA256_HEX], often[SHA256_HEX];
} wasm_kind;

typedef struct asked {
	sb_state *state;
	const sb_limits *limits;
	const packdir *dir;
	const wasm_shown *shown;
	uint64_t stack_bytes;
} asked;

/* ---- Kinds --------------------------------------------------------------------------------------- */

static bool fits(const stock_kind *base, void *user)
{
	const wasm_kind *kind = (const wasm_kind *)base;
	const asked *a = user;

	return !memcmp(&kind->limits, a->limits, sizeof kind->limits) && !strcmp(kind->pack, a->dir->of.name) &&
	       !strcmp(kind->hash, a->dir->of.module.sha256) && kind->stack_bytes == a->stack_bytes &&
	       shown_same(&kind->shown, a->shown);
}

static stock_kind *make(void *user)
{
	const asked *a = user;
	wasm_kind *kind = calloc(1, sizeof *kind);

	if (!kind || !shown_keep(a->shown, &kind->shown)) {
		free(kind);
		return NULL;
	}
	kind->state = a->state;
	kind->limits = *a->limits;
	kind->stack_bytes = a->stack_bytes;
	memcpy(kind->pack, a->dir->of.name, sizeof kind->pack);
	memcpy(kind->hash, a->dir->of.module.sha256, sizeof kind->hash);
	return &kind->base;
}

static void free_kind(stock_kind *kind)
{
	shown_release(&((wasm_kind *)kind)->shown);
	free(kind);
}

stock_kind *wasm_warm_kind(sb_state *state, const sb_box_request *request, const packdir *dir,
			   const wasm_shown *shown)
{
	stock *all = stock_of(&state->warm, &state->lock, &wasm_warm_way);
	asked a = { .state = state, .limits = request->limits, .dir = dir, .shown = shown,
		    .stack_bytes = box_stack_bytes(request) };

	return all ? stock_kind_of(all, fits, make, &a) : NULL;
}

/* ---- Starting ------------------------------------------------------------------------------------ */

static int start_worker(stock_worker *w, const wasm_kind *kind)
{
	static const char *const argv[] = { JOB_WORKER_PATH, "4", NULL }, *const env[] = { NULL };
	const sb_guest_request request = { .size = sizeof request, .argv = argv, .env = env, .cwd = "/",
		.limits = &kind->limits, .flags = SB_GUEST_INPUT | SB_GUEST_LAST };
	uint32_t flags = JOB_WAITS;
	lh_spawn spawn = { .flags = LP_S_CODE_FD | LP_S_CONTROL | LP_S_HELD };
	wasm_box *own = box_own(w->box);
	int pair[2], rc = fd_pair(SOCK_SEQPACKET, pair);

	if (rc)
		return rc;
	flags |= own->ready ? JOB_READY : 0;
	w->wire = pair[0];
	spawn.control = pair[1];
	own->fd = spawn.code = job_make(own, &kind->limits, kind->limits.cpu_ms, false, flags, NULL);
	rc = own->fd < 0 ? own->fd : launched_spawn(w->box, &request, &spawn, NULL, &w->guest, &w->io, NULL);
	fd_close(&pair[1]);
	return rc;
}

/* Into hash, the module that another worker is to wait with, or "": of those that wait one has what often comes, and
 * one is for any other. */
static void choose_module(const wasm_kind *kind, char hash[SHA256_HEX])
{
	unsigned blank = 0, with = 0;

	pthread_mutex_lock(&kind->base.stock->lock);
	for (const stock_worker *w = kind->base.workers; w; w = w->next)
		if (!box_own(w->box)->hash[0])
			blank++;
		else
			with++;
	memcpy(hash, with && !blank ? "" : kind->often, with && !blank ? 1 : sizeof kind->often);
	pthread_mutex_unlock(&kind->base.stock->lock);
}

static void lay_module(wasm_box *own, const wasm_kind *kind)
{
	if (!kind->pack[0])
		choose_module(kind, own->hash);
	if (own->hash[0] && !compile_add_known(kind->state, own->hash, own))
		own->hash[0] = '\0';
}

static int start_box(sb_box *box, const wasm_kind *kind, const packdir *dir)
{
	const sb_call call = { .size = sizeof call, .cancel_fd = -1,
			       .deadline_ns = clock_deadline_ns(clock_now_ns(), START_MS) };

	box_own(box)->state = kind->state;
	box_own(box)->stack_bytes = kind->stack_bytes;
	box_lay_world(box_own(box), dir);
	shown_lay(&kind->shown, box_own(box));
	lay_module(box_own(box), kind);
	return box_launch(kind->state, NULL, "sb-wasm", JOB_WORKER_PATH, kind->pack[0] ? kind->pack : NULL,
			  &kind->shown, &kind->limits, &call, box, NULL);
}

/* NULL: it cannot be had now, or the pack is another one by now. */
static stock_worker *start(stock_kind *base)
{
	const wasm_kind *kind = (const wasm_kind *)base;
	packdir dir = { .fd = -1 };
	sb_box *box = NULL;
	stock_worker *w = NULL;

	if (!box_find_pack(kind->state, kind->pack[0] ? kind->pack : NULL, NULL, &dir, NULL) &&
	    !strcmp(kind->hash, dir.of.module.sha256))
		box = box_new(&kind->limits);
	if (box && !start_box(box, kind, &dir))
		w = stock_worker_new(box, base);
	packdir_close(&dir);
	if (w && !start_worker(w, kind))
		return w;
	if (w)
		stock_worker_free(w);
	box_destroy(box);
	return NULL;
}

/* It waits with a module that is not the one which often comes, any more. */
static bool stale(const stock_worker *w)
{
	const char *hash = box_own(w->box)->hash;

	return hash[0] && strcmp(hash, ((const wasm_kind *)w->kind)->often) != 0;
}

const stock_way wasm_warm_way = { .start = start, .destroy = box_destroy, .free_kind = free_kind, .stale = stale };

/* ---- Taking over --------------------------------------------------------------------------------- */

static void note_module(wasm_kind *kind, const char hash[SHA256_HEX])
{
	pthread_mutex_lock(&kind->base.stock->lock);
	if (!strcmp(kind->last, hash))
		memcpy(kind->often, hash, SHA256_HEX);
	memcpy(kind->last, hash, SHA256_HEX);
	pthread_mutex_unlock(&kind->base.stock->lock);
}

/* Waits with the module of this hash, or with none. */
static bool waits_with(const stock_worker *w, void *hash)
{
	return !strcmp(box_own(w->box)->hash, hash);
}

static stock_worker *pop(stock_kind *kind, char *hash)
{
	stock_worker *w = hash[0] ? stock_pop(kind, waits_with, hash) : NULL;

	return w ? w : stock_pop(kind, waits_with, (char[1]){ "" });
}

sb_box *wasm_warm_take(stock_kind *kind, const sb_box_request *request)
{
	char hash[SHA256_HEX] = "";
	stock_worker *w;
	wasm_box *own;

	if (!((wasm_kind *)kind)->pack[0] && request->code) {
		sha256_data(request->code, request->code_len, hash);
		note_module((wasm_kind *)kind, hash);
	}
	while ((w = pop(kind, hash)) && !stock_alive(w))
		stock_close(w);
	if (!w)
		return NULL;
	stock_taken(kind);
	w->box->limits = *request->limits;
	own = box_own(w->box);
	own->loaded = own->hash[0];
	memcpy(own->hash, hash, sizeof hash);
	own->code = request->code;
	own->code_len = request->code_len;
	return w->box;
}

/* It is told to whoever waits, and to nobody else: what cannot be told has not begun. */
int wasm_warm_go(sb_box *box, const sb_guest_request *request, sb_guest **guest, sb_guest_io *io, sb_error *err)
{
	const wasm_box *own = box_own(box);
	const job_go go = { .magic = JOB_GO_MAGIC, .at = own->job_at, .bytes = own->job_bytes };
	stock_worker *w = box->warm;

	if (!stock_alive(w) || send(w->wire, &go, sizeof go, MSG_NOSIGNAL) != sizeof go)
		return stock_ended(err);
	stock_give(w, request, guest, io);
	return 0;
}
