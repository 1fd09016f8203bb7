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

void warm_kind_free(stock_kind *base)
{
	warm_kind *kind = (warm_kind *)base;
	uint32_t i;

	for (i = 0; kind->plan && i < kind->plan->fd_count; i++)
		fd_close(&kind->plan->fds[i]);
	lh_plan_free(kind->plan);
	buf_release(&kind->names);
	arena_release(&kind->mem);
	free(kind);
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
	if (!fill_names(kind, request->way) || !code || kind->mem.failed || !keep_files(plan)) {
		warm_kind_free(&kind->base);
		return NULL;
	}
	kind->plan = plan;
	return kind;
}

/* ---- The stock ----------------------------------------------------------------------------------- */

typedef struct asked {
	sb_state *state;
	const sb_box_request *request;
	const linux_design *design;
	lh_plan *plan;                /* NULL: it has become a kind's own */
} asked;

static bool fits(const stock_kind *kind, void *user)
{
	const asked *a = user;

	return kind_is((const warm_kind *)kind, a->request, a->design, a->plan);
}

static stock_kind *make(void *user)
{
	asked *a = user;
	warm_kind *kind = kind_new(a->state, a->request, a->design, a->plan);

	if (!kind)
		return NULL;
	a->plan = NULL;
	return &kind->base;
}

static bool wanted(const sb_state *state, const sb_box_request *request)
{
	return state->helper && request->guest && request->way && request->way->warm_driver &&
	       !request->guest->rows && !request->guest->cols;
}

warm_kind *warm_kind_of(sb_state *state, const sb_box_request *request, const sb_plan *plan)
{
	const linux_design *d = linux_plan_design(plan, request);
	stock *all = d && !d->wish.in_place && wanted(state, request) ?
			     stock_of(&state->warm, &state->lock, &warm_way) : NULL;
	asked a = { .state = state, .request = request, .design = d, .plan = all ? lh_plan_new() : NULL };
	stock_kind *kind = NULL;

	if (a.plan && !linux_fill_plan(request, d, a.plan, NULL))
		kind = stock_kind_of(all, fits, make, &a);
	lh_plan_free(a.plan);
	return (warm_kind *)kind;
}
