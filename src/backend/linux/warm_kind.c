/* SPDX-License-Identifier: MIT */
/*
 * warm_kind.c - which runs may take each other's place.
 *
 * Two requests are of one kind if their plans are the same byte for byte, but for the uid and the name
 * that each box has of its own, and the descriptors in them are of the same files; and if the guests
 * are started in the same way.  Nothing is compared that was not sent: what makes no difference to the
 * box is not in its plan.
 */
#include "warm.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Comparing ----------------------------------------------------------------------------------- */

static bool same_list(const char *const *a, const char *const *b)
{
	size_t i;

	for (i = 0; a[i] && b[i]; i++)
		if (strcmp(a[i], b[i]))
			return false;
	return !a[i] && !b[i];
}

static bool same_files(const lh_plan *a, const lh_plan *b)
{
	struct stat x, y;
	uint32_t i;

	for (i = 0; i < a->fd_count; i++)
		if (fstat(a->fds[i], &x) < 0 || fstat(b->fds[i], &y) < 0 || x.st_dev != y.st_dev ||
		    x.st_ino != y.st_ino)
			return false;
	return true;
}

static bool same_plan(const lh_plan *a, const lh_plan *b)
{
	return a->mount_count == b->mount_count && a->string_bytes == b->string_bytes &&
	       a->fd_count == b->fd_count && !memcmp(&a->fixed, &b->fixed, sizeof a->fixed) &&
	       !memcmp(a->mounts, b->mounts, a->mount_count * sizeof *a->mounts) &&
	       !memcmp(a->strings, b->strings, a->string_bytes) && same_files(a, b);
}

bool warm_kind_fits(const warm_kind *kind, const sb_guest_request *guest, size_t *own)
{
	size_t i;

	for (i = 0; kind->argv[i]; i++)
		if (!guest->argv[i] || strcmp(kind->argv[i], guest->argv[i]))
			return false;
	*own = i;
	return !strcmp(kind->cwd, guest->cwd) && same_list(kind->env, guest->env);
}

static bool same_names(const warm_kind *kind, const sb_pack_way *way)
{
	const char *at = kind->names.data, *end = at + kind->names.len;
	size_t i;

	for (i = 0; way->preload && way->preload[i]; i++) {
		if (at >= end || strcmp(at, way->preload[i]))
			return false;
		at += strlen(at) + 1;
	}
	return at == end && !strcmp(kind->driver, way->warm_driver);
}

static bool kind_is(const warm_kind *kind, const sb_box_request *request, const linux_design *d,
		    const lh_plan *plan)
{
	size_t own;

	return warm_kind_fits(kind, request->guest, &own) && same_names(kind, request->way) &&
	       kind->uids.apart == d->apart && kind->uids.first == d->uid_first &&
	       kind->uids.count == d->uid_count &&
	       same_plan(kind->plan, plan);
}

/* ---- Making -------------------------------------------------------------------------------------- */

static void kind_free(warm_kind *kind)
{
	uint32_t i;

	for (i = 0; kind->plan && i < kind->plan->fd_count; i++)
		fd_close(&kind->plan->fds[i]);
	lh_plan_free(kind->plan);
	buf_release(&kind->names);
	arena_release(&kind->mem);
	free(kind);
}

void warm_kind_unref(warm_kind *kind)
{
	if (!--kind->refs)
		kind_free(kind);
}

void warm_kind_drop(warm_kind *kind)
{
	warm_stock *stock = kind ? kind->stock : NULL;

	if (!kind)
		return;
	pthread_mutex_lock(&stock->lock);
	kind->in_use--;
	warm_kind_unref(kind);
	pthread_mutex_unlock(&stock->lock);
}

/* The descriptors are borrowed from the request until then. */
static bool keep_files(lh_plan *plan)
{
	uint32_t i, kept;

	for (kept = 0; kept < plan->fd_count; kept++) {
		int fd = fcntl(plan->fds[kept], F_DUPFD_CLOEXEC, 3);

		if (fd < 0)
			break;
		plan->fds[kept] = fd;
	}
	if (kept == plan->fd_count)
		return true;
	for (i = 0; i < kept; i++)
		fd_close(&plan->fds[i]);
	return false;
}

/* Where the code file is among the arguments: the last of what is the same for each run. */
static const char *code_of(const sb_box_request *request, size_t *at)
{
	const sb_guest_request *guest = request->guest;
	const char *name = request->way->code_file;
	size_t i;

	for (i = 1; name && guest->argv[i]; i++)
		if (path_is_within(guest->argv[i], "/run/code") && !strcmp(path_base(guest->argv[i]), name)) {
			*at = i;
			return guest->argv[i] + sizeof "/run/" - 1;
		}
	return NULL;
}

static bool fill_names(warm_kind *kind, const sb_pack_way *way)
{
	size_t i;

	buf_init(&kind->names, WARM_NAMES);
	for (i = 0; way->preload && way->preload[i]; i++)
		buf_add(&kind->names, way->preload[i], strlen(way->preload[i]) + 1);
	if (!kind->names.len) /* a record has at least one byte */
		buf_add_char(&kind->names, 0);
	return !kind->names.failed;
}

static warm_kind *kind_new(sb_state *state, const sb_box_request *request, const linux_design *d,
			   lh_plan *plan)
{
	const sb_guest_request *guest = request->guest;
	warm_kind *kind = calloc(1, sizeof *kind);
	const char **argv, *code;
	size_t at = 0, i;

	if (!kind)
		return NULL;
	code = code_of(request, &at);
	argv = arena_alloc(&kind->mem, (at + 2) * sizeof *argv);
	for (i = 0; argv && code && i <= at; i++)
		argv[i] = arena_text(&kind->mem, guest->argv[i]);
	kind->argv = argv;
	kind->env = arena_list(&kind->mem, guest->env);
	kind->cwd = arena_text(&kind->mem, guest->cwd);
	kind->code = arena_text(&kind->mem, code);
	kind->driver = arena_text(&kind->mem, request->way->warm_driver);
	kind->limits = *request->limits;
	kind->uids = linux_uids_of(d);
	kind->state = state;
	kind->stock = state->warm;
	if (!fill_names(kind, request->way) || !code || kind->mem.failed || !keep_files(plan)) {
		kind_free(kind);
		return NULL;
	}
	kind->plan = plan;
	return kind;
}

/* ---- The stock ----------------------------------------------------------------------------------- */

static warm_stock *stock_of(sb_state *state)
{
	pthread_mutex_lock(&state->lock);
	if (!state->warm) {
		state->warm = calloc(1, sizeof *state->warm);
		if (state->warm) {
			pthread_mutex_init(&state->warm->lock, NULL);
			pthread_cond_init(&state->warm->wanted, NULL);
		}
	}
	pthread_mutex_unlock(&state->lock);
	return state->warm;
}

static warm_worker *take_older(warm_kind *kind, uint64_t before_ns, warm_worker *list)
{
	warm_worker **at = &kind->workers, *w;

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

warm_worker *warm_kind_sort_out(warm_stock *stock, uint64_t now_ns, bool all)
{
	uint64_t age = (uint64_t)WARM_AGE_MS * 1000000, before = now_ns > age ? now_ns - age : 0;
	warm_worker *list = NULL;
	size_t i;

	for (i = 0; i < WARM_KINDS; i++) {
		warm_kind *kind = stock->kinds[i];

		if (!kind)
			continue;
		list = take_older(kind, all ? UINT64_MAX : before, list);
		if (all || kind->used_ns < before) {
			stock->kinds[i] = NULL;
			warm_kind_unref(kind);
		}
	}
	return list;
}

/* A place for another kind, made free if need be. */
static size_t free_place(warm_stock *stock, warm_worker **out)
{
	size_t i, oldest = 0;

	for (i = 0; i < WARM_KINDS; i++) {
		if (!stock->kinds[i])
			return i;
		if (stock->kinds[i]->used_ns < stock->kinds[oldest]->used_ns)
			oldest = i;
	}
	*out = take_older(stock->kinds[oldest], UINT64_MAX, *out);
	warm_kind_unref(stock->kinds[oldest]);
	stock->kinds[oldest] = NULL;
	return oldest;
}

/* Known, or made of the plan, which is then its own and *plan NULL. */
static warm_kind *find_or_make(warm_stock *stock, sb_state *state, const sb_box_request *request,
			       const linux_design *d, lh_plan **plan, warm_worker **out)
{
	warm_kind *kind = NULL;
	size_t i;

	for (i = 0; !kind && i < WARM_KINDS; i++)
		if (stock->kinds[i] && kind_is(stock->kinds[i], request, d, *plan))
			kind = stock->kinds[i];
	if (kind)
		return kind;
	kind = kind_new(state, request, d, *plan);
	if (!kind)
		return NULL;
	*plan = NULL;
	kind->refs = 1;
	stock->kinds[free_place(stock, out)] = kind;
	return kind;
}

static bool wanted(const sb_state *state, const sb_box_request *request)
{
	return state->helper && request->guest && request->way && request->way->warm_driver &&
	       !request->guest->rows && !request->guest->cols;
}

warm_kind *warm_kind_of(sb_state *state, const sb_box_request *request, const sb_plan *plan)
{
	const linux_design *d = linux_plan_design(plan, request);
	warm_stock *stock = d && !d->wish.in_place && wanted(state, request) ? stock_of(state) : NULL;
	lh_plan *made = stock ? lh_plan_new() : NULL;
	uint64_t now = clock_now_ns();
	warm_kind *kind = NULL;
	warm_worker *out;

	if (!made || linux_fill_plan(request, d, made, NULL)) {
		lh_plan_free(made);
		return NULL;
	}
	pthread_mutex_lock(&stock->lock);
	out = warm_kind_sort_out(stock, now, false);
	kind = find_or_make(stock, state, request, d, &made, &out);
	if (kind) {
		kind->used_ns = now;
		kind->in_use++;
		kind->refs++;
	}
	pthread_mutex_unlock(&stock->lock);
	warm_close(out);
	lh_plan_free(made);
	return kind;
}
