/* SPDX-License-Identifier: MIT */
/*
 * shown.c - what a guest sees of the host's files: workspace and file rules.
 *
 * They are mounted in the worker's root as they are in a box of backend linux, below a directory of their
 * own: read-only or not, id-mapped, with what is hidden or protected in them covered.  The worker then shows
 * each in the guest's tree, at its path (wasm/job.c).  So a wall of the kernel's stands behind our walk of
 * paths, and a worker that was taken over has those directories and nothing else.
 */
#include "wasm.h"
#include "../linux/idmap.h"
#include "../../core/core.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* In memory; what a rule names may lie beneath /work, /tmp and /home/sandbox, and over none of them. */
static const char *const ours[] = { "/in", "/out", "/run", "/usr/local/lib" };
static const char *const covered_by_none[] = { "/work", "/tmp", "/home/sandbox" };

bool shown_is_grant(const mount_row *row)
{
	return (row->origin == MOUNT_WORKSPACE || row->origin == MOUNT_RULE) && row->kind == LP_M_BIND;
}

static bool in_memory(const mount_row *row)
{
	return row->kind == LP_M_SCRATCH;
}

/* ---- What can be shown ---------------------------------------------------------------------------- */

static int check_place(const mount_row *row, sb_error *err)
{
	const char *taken = NULL;

	for (size_t i = 0; i < BASE_ARRAY_LEN(ours); i++)
		if (path_is_within(ours[i], row->target) || path_is_within(row->target, ours[i]))
			taken = ours[i];
	for (size_t i = 0; i < BASE_ARRAY_LEN(covered_by_none); i++)
		if (path_is_within(covered_by_none[i], row->target))
			taken = covered_by_none[i];
	if (!taken)
		return 0;
	return error_set(err, SB_ERR_INVALID_SPEC, "files",
			 "nothing of the host can be shown at \"%s\": a guest of backend \"wasm\" has its own \"%s\"; "
			 "show it at another path, or use --backend linux", row->target, taken);
}

static int check_kind(const mount_row *row, sb_error *err)
{
	struct stat st;

	if (row->kind == LP_M_BIND && row->fd >= 0 && fstat(row->fd, &st) == 0 &&
	    (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
		return 0;
	return error_set(err, SB_ERR_UNSUPPORTED, "files",
			 "\"%s\" is neither a file nor a directory, and nothing else can be shown to a guest of "
			 "backend \"wasm\"; use --backend linux", row->target);
}

static int check_row(const mount_table *table, const mount_row *row, sb_error *err)
{
	const mount_row *under = mounts_nearest(table, row->target, row);
	int rc;

	if (row->kind == LP_M_HIDE || row->kind == LP_M_PROTECT || row->origin == MOUNT_PIN)
		return 0;
	if (row->kind == LP_M_TMPFS || (in_memory(row) && under && under->kind == LP_M_BIND))
		return error_set(err, SB_ERR_UNSUPPORTED, "files",
				 "\"%s\": backend \"wasm\" has a tmpfs neither of a size of its own nor inside a "
				 "directory of the host; leave the size out, or use --backend linux", row->target);
	rc = check_place(row, err);
	return rc || in_memory(row) ? rc : check_kind(row, err);
}

static int check_rows(const wasm_shown *s, sb_error *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < s->table.len; i++)
		rc = check_row(&s->table, &s->table.at[i], err);
	return rc;
}

/* ---- Finding -------------------------------------------------------------------------------------- */

static int decide_workspace(const idmap_asker *by, const sb_box_request *request, mount_wish *wish, sb_error *err)
{
	const sb_spec *spec = request->spec;
	uint32_t mode = spec ? spec->workspace_mode : SB_WORKSPACE_DEFAULT;

	wish->workspace_write = mode == SB_WORKSPACE_WRITE || (mode == SB_WORKSPACE_DEFAULT && !request->pack);
	if (mode == SB_WORKSPACE_COPY)
		return error_set(err, SB_ERR_UNSUPPORTED, "files",
				 "a copy-on-write workspace: backend \"wasm\" has none; use ro or rw");
	if (!by->facts->root_caller || !request->workspace)
		return 0;
	wish->workspace_idmap = idmap_works(by, request->workspace, request->workspace_fd);
	if (wish->workspace_idmap || !wish->workspace_write)
		return 0;
	if (mode == SB_WORKSPACE_WRITE)
		return mounts_unmapped(request->workspace, "use --workspace-mode ro", err);
	wish->workspace_write = false; /* nobody has asked for it by name; its line says so */
	return 0;
}

int shown_find(sb_state *state, const sb_box_request *request, wasm_shown *s, sb_error *err)
{
	const idmap_asker by = { .facts = &state->facts, .helper = state->helper, .known = &state->idmap };
	int rc;

	memset(s, 0, sizeof *s);
	mounts_init(&s->table);
	s->wish = (mount_wish){ .facts = &state->facts, .request = request, .code = true, .bare = true };
	if (!request->workspace && !wasm_shows_files(request->spec))
		return 0;
	rc = decide_workspace(&by, request, &s->wish, err);
	if (!rc)
		rc = rules_check_disk(&s->wish, err);
	if (!rc)
		rc = mounts_build(&s->wish, &s->table, err);
	if (!rc)
		rc = check_rows(s, err);
	if (!rc && state->facts.root_caller)
		rc = idmap_rules(&by, &s->table, err);
	if (rc)
		shown_release(s);
	return rc;
}

void shown_release(wasm_shown *s)
{
	mounts_release(&s->table);
}

bool shown_writes(const wasm_shown *s)
{
	for (size_t i = 0; i < s->table.len; i++)
		if (shown_is_grant(&s->table.at[i]) && (s->table.at[i].flags & LP_F_WRITE))
			return true;
	return false;
}

/* ---- For a box ------------------------------------------------------------------------------------ */

void shown_mount(const wasm_shown *s, lh_plan *plan)
{
	char target[JOB_PATH_MAX + sizeof JOB_HOST_DIR];
	struct stat st;

	for (size_t i = 0; i < s->table.len; i++) {
		const mount_row *row = &s->table.at[i];
		int flags = row->flags | (row->kind == LP_M_BIND ? LP_F_NODEV | LP_F_NOEXEC : 0);

		if (in_memory(row))
			continue;
		snprintf(target, sizeof target, JOB_HOST_DIR "%s", row->target);
		if (row->fd < 0) {
			lh_plan_mount(plan, row->kind, row->source, target, flags, 0);
			continue;
		}
		if (fstat(row->fd, &st) == 0 && S_ISDIR(st.st_mode))
			flags |= LP_F_DIR;
		lh_plan_mount_fd(plan, row->kind, row->fd, row->source, target, flags, 0);
	}
	if (s->wish.facts && s->wish.facts->root_caller && shown_any(s)) {
		plan->fixed.uid_outer = s->table.owner_uid;
		plan->fixed.gid_outer = s->table.owner_gid;
	}
}

bool shown_any(const wasm_shown *s)
{
	return s->table.len > 0;
}

/* Inside another one it is part of that: the kernel has mounted it there. */
static bool is_inside(const mount_table *table, const mount_row *row)
{
	const mount_row *under = mounts_nearest(table, row->target, row);

	return under && under->kind == LP_M_BIND;
}

void shown_lay(const wasm_shown *s, wasm_box *own)
{
	bool writes = shown_writes(s);
	struct stat st;

	for (size_t i = 0; i < s->table.len; i++) {
		const mount_row *row = &s->table.at[i];
		uint32_t flags = writes ? 0 : JOB_READONLY;

		if (in_memory(row))
			job_add(own, JOB_DIR, 0, row->target, NULL, 0);
		if (!shown_is_grant(row) || is_inside(&s->table, row))
			continue;
		if (fstat(row->fd, &st) == 0 && !S_ISDIR(st.st_mode))
			flags |= JOB_ONE;
		job_add(own, JOB_HOST, flags, row->target, NULL, 0);
	}
}

/* ---- For boxes that wait ----------------------------------------------------------------------------- */

static bool same_file(int a, int b)
{
	struct stat x, y;

	if (a < 0 || b < 0)
		return a < 0 && b < 0;
	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool shown_same(const wasm_shown *a, const wasm_shown *b)
{
	if (a->table.len != b->table.len || a->table.owner_uid != b->table.owner_uid ||
	    a->table.owner_gid != b->table.owner_gid)
		return false;
	for (size_t i = 0; i < a->table.len; i++) {
		const mount_row *x = &a->table.at[i], *y = &b->table.at[i];

		if (x->kind != y->kind || x->flags != y->flags || x->origin != y->origin || x->arg != y->arg ||
		    !same_text(x->source, y->source) || !same_text(x->target, y->target) || !same_file(x->fd, y->fd))
			return false;
	}
	return true;
}

bool shown_keep(const wasm_shown *of, wasm_shown *s)
{
	memset(s, 0, sizeof *s);
	mounts_init(&s->table);
	s->wish.facts = of->wish.facts;
	s->table.owner_uid = of->table.owner_uid;
	s->table.owner_gid = of->table.owner_gid;
	for (size_t i = 0; i < of->table.len; i++) {
		const mount_row *x = &of->table.at[i];
		mount_row *y = mounts_add(&s->table, x->kind, x->source ? mounts_join(&s->table, x->source, "") : NULL,
					  mounts_join(&s->table, x->target, ""), x->flags, x->arg);

		if (!y)
			break;
		y->origin = x->origin;
		y->fd = x->fd < 0 ? -1 : fcntl(x->fd, F_DUPFD_CLOEXEC, 3);
		y->own_fd = y->fd >= 0;
		s->table.failed |= x->fd >= 0 && y->fd < 0;
	}
	if (s->table.failed)
		shown_release(s);
	return !s->table.failed && s->table.len == of->table.len;
}
