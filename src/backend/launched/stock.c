/* SPDX-License-Identifier: MIT */
/*
 * stock.c - kinds and workers: counted, started, closed.
 *
 * The lock is held to count and to link only.
 */
#include "stock.h"

#include <signal.h>
#include <unistd.h>

/* ---- Closing ------------------------------------------------------------------------------------- */

void stock_worker_free(stock_worker *w)
{
	if (w->guest)
		launched_release(w->guest);
	fd_close(&w->io.in);
	fd_close(&w->io.out);
	fd_close(&w->io.err);
	fd_close(&w->io.exited);
	fd_close(&w->wire);
	w->box->warm = NULL;
	free(w);
}

/* With the lock held; frees the last. */
static void unref(stock_kind *kind)
{
	if (!--kind->refs)
		kind->stock->way->free_kind(kind);
}

void stock_close(stock_worker *list)
{
	while (list) {
		stock_worker *w = list;
		stock_kind *kind = w->kind;
		stock *all = kind->stock;
		sb_box *box = w->box;

		list = w->next;
		stock_worker_free(w);
		all->way->destroy(box);
		pthread_mutex_lock(&all->lock);
		unref(kind);
		pthread_mutex_unlock(&all->lock);
	}
}

/* ---- Starting ------------------------------------------------------------------------------------ */

stock_worker *stock_worker_new(sb_box *box, stock_kind *kind)
{
	stock_worker *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	*w = (stock_worker){ .box = box, .kind = kind, .wire = -1, .since_ns = clock_now_ns(),
		.io = { .size = sizeof w->io, .in = -1, .out = -1, .err = -1, .exited = -1,
			.control = -1 } };
	box->warm = w;
	return w;
}

static unsigned wanted(const stock_kind *kind)
{
	unsigned count = kind->in_use + 1;

	if (count < STOCK_LEAST)
		return STOCK_LEAST;
	return count > STOCK_MOST ? STOCK_MOST : count;
}

/* Is this kind still one that is kept? */
static bool kept(const stock_kind *kind)
{
	size_t i;

	for (i = 0; i < STOCK_KINDS; i++)
		if (kind->stock->kinds[i] == kind)
			return true;
	return false;
}

void stock_push(stock_kind *kind, stock_worker *w)
{
	pthread_mutex_lock(&kind->stock->lock);
	if (kept(kind) && kind->waiting < STOCK_MOST) {
		w->next = kind->workers;
		kind->workers = w;
		kind->waiting++;
		w = NULL;
	}
	pthread_mutex_unlock(&kind->stock->lock);
	stock_close(w);
}

/* A kind that lacks workers, with a reference, and one of them counted as starting.  The lock is held. */
static stock_kind *find_lacking(stock *all)
{
	size_t i;

	for (i = 0; i < STOCK_KINDS; i++) {
		stock_kind *kind = all->kinds[i];

		if (!kind || kind->failed || kind->waiting + kind->starting >= wanted(kind))
			continue;
		kind->starting++;
		kind->refs++;
		return kind;
	}
	return NULL;
}

static void start_one(stock_kind *kind)
{
	stock *all = kind->stock;
	stock_worker *w = all->way->start(kind);

	pthread_mutex_lock(&all->lock);
	kind->starting--;
	kind->failed = !w; /* until somebody looks again */
	kind->refs += w != NULL;
	pthread_mutex_unlock(&all->lock);
	if (w)
		stock_push(kind, w);
	pthread_mutex_lock(&all->lock);
	unref(kind);
	pthread_mutex_unlock(&all->lock);
}

/* The lock is held. */
static sb_box *take_later(stock *all)
{
	sb_box *box = NULL;
	size_t i;

	for (i = 0; !box && i < STOCK_LATER; i++) {
		box = all->later[i];
		all->later[i] = NULL;
	}
	return box;
}

/* The lock is held. */
static stock_worker *take_stale(const stock *all)
{
	size_t i;

	for (i = 0; all->way->stale && i < STOCK_KINDS; i++) {
		stock_worker **at = all->kinds[i] ? &all->kinds[i]->workers : NULL, *w;

		for (; at && (w = *at); at = &w->next)
			if (all->way->stale(w)) {
				*at = w->next;
				w->next = NULL;
				all->kinds[i]->waiting--;
				return w;
			}
	}
	return NULL;
}

static void *filler(void *user)
{
	stock *all = user;

	pthread_mutex_lock(&all->lock);
	while (!all->stop) {
		sb_box *box = take_later(all);
		stock_worker *stale = box ? NULL : take_stale(all);
		stock_kind *kind = box || stale ? NULL : find_lacking(all);
		bool idle = !box && !stale && !kind;

		if (idle && !all->look)
			pthread_cond_wait(&all->wanted, &all->lock);
		all->look = false;
		if (idle)
			continue;
		pthread_mutex_unlock(&all->lock);
		if (box)
			all->way->destroy(box);
		else if (stale)
			stock_close(stale);
		else
			start_one(kind);
		pthread_mutex_lock(&all->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* The lock is held.  Signals are for the application's own threads; without a thread all runs are cold. */
static void ask_filler(stock *all)
{
	sigset_t every, old;
	size_t i;

	for (i = 0; i < STOCK_KINDS; i++)
		if (all->kinds[i])
			all->kinds[i]->failed = false;
	all->look = true;
	if (!all->started && !all->stop) {
		sigfillset(&every);
		pthread_sigmask(SIG_SETMASK, &every, &old);
		all->started = !pthread_create(&all->thread, NULL, filler, all);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_cond_signal(&all->wanted);
}

void stock_refill(sb_box *box)
{
	const stock_worker *own = box->warm;

	if (!own)
		return;
	pthread_mutex_lock(&own->kind->stock->lock);
	if (!own->kind->waiting)
		ask_filler(own->kind->stock);
	pthread_mutex_unlock(&own->kind->stock->lock);
}

/* ---- Kinds --------------------------------------------------------------------------------------- */

void stock_kind_drop(stock_kind *kind)
{
	stock *all = kind ? kind->stock : NULL;

	if (!kind)
		return;
	pthread_mutex_lock(&all->lock);
	kind->in_use--;
	unref(kind);
	pthread_mutex_unlock(&all->lock);
}

static stock_worker *take_older(stock_kind *kind, uint64_t before_ns, stock_worker *list)
{
	stock_worker **at = &kind->workers, *w;

	while ((w = *at)) {
		if (w->since_ns >= before_ns) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = list;
		list = w;
		kind->waiting--;
	}
	return list;
}

/* Takes kinds and workers that are too old, or all, out of the stock; they are for stock_close(). */
static stock_worker *sort_out(stock *all, uint64_t now_ns, bool every)
{
	uint64_t age = (uint64_t)STOCK_AGE_MS * 1000000, before = now_ns > age ? now_ns - age : 0;
	stock_worker *list = NULL;
	size_t i;

	for (i = 0; i < STOCK_KINDS; i++) {
		stock_kind *kind = all->kinds[i];

		if (!kind)
			continue;
		list = take_older(kind, every ? UINT64_MAX : before, list);
		if (every || kind->used_ns < before) {
			all->kinds[i] = NULL;
			unref(kind);
		}
	}
	return list;
}

/* A place for another kind, made free if need be. */
static size_t free_place(stock *all, stock_worker **out)
{
	size_t i, oldest = 0;

	for (i = 0; i < STOCK_KINDS; i++) {
		if (!all->kinds[i])
			return i;
		if (all->kinds[i]->used_ns < all->kinds[oldest]->used_ns)
			oldest = i;
	}
	*out = take_older(all->kinds[oldest], UINT64_MAX, *out);
	unref(all->kinds[oldest]);
	all->kinds[oldest] = NULL;
	return oldest;
}

static stock_kind *find_or_make(stock *all, bool (*fits)(const stock_kind *kind, void *user),
				stock_kind *(*make)(void *user), void *user, stock_worker **out)
{
	stock_kind *kind;
	size_t i;

	for (i = 0; i < STOCK_KINDS; i++)
		if (all->kinds[i] && fits(all->kinds[i], user))
			return all->kinds[i];
	kind = make(user);
	if (!kind)
		return NULL;
	kind->stock = all;
	kind->refs = 1;
	all->kinds[free_place(all, out)] = kind;
	return kind;
}

stock_kind *stock_kind_of(stock *all, bool (*fits)(const stock_kind *kind, void *user),
			  stock_kind *(*make)(void *user), void *user)
{
	uint64_t now = clock_now_ns();
	stock_worker *out;
	stock_kind *kind;

	pthread_mutex_lock(&all->lock);
	out = sort_out(all, now, false);
	kind = find_or_make(all, fits, make, user, &out);
	if (kind) {
		kind->used_ns = now;
		kind->in_use++;
		kind->refs++;
	}
	pthread_mutex_unlock(&all->lock);
	stock_close(out);
	return kind;
}

/* ---- The stock ----------------------------------------------------------------------------------- */

stock *stock_of(stock **at, pthread_mutex_t *lock, const stock_way *way)
{
	pthread_mutex_lock(lock);
	if (!*at) {
		*at = calloc(1, sizeof **at);
		if (*at) {
			(*at)->way = way;
			pthread_mutex_init(&(*at)->lock, NULL);
			pthread_cond_init(&(*at)->wanted, NULL);
		}
	}
	pthread_mutex_unlock(lock);
	return *at;
}

void stock_forget(stock **at)
{
	stock *all = *at;
	stock_worker *list;
	sb_box *box;

	if (!all)
		return;
	pthread_mutex_lock(&all->lock);
	all->stop = true;
	pthread_cond_signal(&all->wanted);
	pthread_mutex_unlock(&all->lock);
	if (all->started)
		pthread_join(all->thread, NULL);
	pthread_mutex_lock(&all->lock);
	list = sort_out(all, 0, true);
	pthread_mutex_unlock(&all->lock);
	stock_close(list);
	while ((box = take_later(all)))
		all->way->destroy(box);
	pthread_cond_destroy(&all->wanted);
	pthread_mutex_destroy(&all->lock);
	free(all);
	*at = NULL;
}

/* ---- Taking over --------------------------------------------------------------------------------- */

void stock_seat(sb_box *box, stock_kind *kind)
{
	/* without memory for it the box is cold, and no worker follows */
	if (kind && !stock_worker_new(box, kind))
		stock_kind_drop(kind);
}

static void leave(sb_box *box, bool later)
{
	stock_worker *w = box->warm;
	stock *all = w->kind->stock;

	stock_kind_drop(w->kind);
	stock_worker_free(w);
	pthread_mutex_lock(&all->lock);
	for (size_t i = 0; later && i < STOCK_LATER; i++)
		if (!all->later[i]) {
			all->later[i] = box;
			later = false;
		}
	ask_filler(all);
	pthread_mutex_unlock(&all->lock);
	if (later) /* the thread has fallen behind */
		all->way->destroy(box);
}

void stock_leave(sb_box *box)
{
	if (box && box->warm)
		leave(box, false);
}

bool stock_leave_later(sb_box *box)
{
	const stock_worker *w = box ? box->warm : NULL;
	bool running;

	if (!w)
		return false;
	pthread_mutex_lock(&w->kind->stock->lock);
	running = w->kind->stock->started && !w->kind->stock->stop;
	pthread_mutex_unlock(&w->kind->stock->lock);
	if (!running)
		return false;
	leave(box, true);
	return true;
}

int stock_ended(sb_error *err)
{
	return error_set(err, SB_ERR_AGAIN, "warm", "the warm worker has ended before the run began");
}

bool stock_alive(stock_worker *w)
{
	launched_box_listen(w->box);
	return !w->box->failure.code && !w->box->lost && !w->box->gone && !w->guest->ended &&
	       !w->guest->refused;
}

stock_worker *stock_pop(stock_kind *kind, bool (*fits)(const stock_worker *w, void *user), void *user)
{
	stock_worker **at, **found = NULL, *w = NULL;

	pthread_mutex_lock(&kind->stock->lock);
	for (at = &kind->workers; *at; at = &(*at)->next)
		if (!fits || fits(*at, user))
			found = at;
	if (found) {
		w = *found;
		*found = w->next;
		w->next = NULL;
		kind->waiting--;
	}
	pthread_mutex_unlock(&kind->stock->lock);
	return w;
}

void stock_taken(stock_kind *kind)
{
	/* two references are held for it now: the worker's, and the one of stock_kind_of() */
	pthread_mutex_lock(&kind->stock->lock);
	unref(kind);
	pthread_mutex_unlock(&kind->stock->lock);
}

bool stock_waits(const sb_box *box)
{
	const stock_worker *w = box->warm;

	return w && w->guest;
}

void stock_give(stock_worker *w, const sb_guest_request *request, sb_guest **guest, sb_guest_io *io)
{
	fd_close(&w->wire);
	if (!(request->flags & SB_GUEST_INPUT))
		fd_close(&w->io.in);
	*guest = w->guest;
	*io = w->io;
	w->guest = NULL;
	w->io = (sb_guest_io){ .in = -1, .out = -1, .err = -1, .exited = -1, .control = -1 };
}
