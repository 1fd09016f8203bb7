/* SPDX-License-Identifier: MIT */
/*
 * mounts.c - the table of rows: adding, looking up, settling.  Rules become rows in rules.c.
 */
#include "mounts.h"
#include "rules.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void mounts_init(mount_table *table)
{
	memset(table, 0, sizeof *table);
}

void mounts_release(mount_table *table)
{
	size_t i;

	for (i = 0; i < table->len; i++)
		if (table->at[i].own_fd)
			fd_close(&table->at[i].fd);
	free(table->at);
	arena_release(&table->texts);
	memset(table, 0, sizeof *table);
}

const char *mounts_text(mount_table *table, const char *fmt, ...)
{
	char text[1024], *out = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (n >= 0)
		out = arena_alloc(&table->texts, (size_t)n + 1);
	if (!out) {
		table->failed = true;
		return "";
	}
	if ((size_t)n < sizeof text)
		return memcpy(out, text, (size_t)n + 1);
	va_start(args, fmt);
	vsnprintf(out, (size_t)n + 1, fmt, args);
	va_end(args);
	return out;
}

const char *mounts_join(mount_table *table, const char *front, const char *back)
{
	size_t n = strlen(front), m = strlen(back);
	char *out = arena_alloc(&table->texts, n + m + 1);

	if (!out) {
		table->failed = true;
		return "";
	}
	memcpy(out, front, n);
	memcpy(out + n, back, m);
	return out;
}

static unsigned depth_of(const char *path)
{
	unsigned n = 0;

	for (; *path; path++)
		n += *path == '/' && path[1];
	return n;
}

mount_row *mounts_add(mount_table *table, int kind, const char *source, const char *target,
		      int flags, uint64_t arg)
{
	mount_row *row;

	if (table->len == table->cap) {
		size_t cap = table->cap ? table->cap * 2 : 96;
		mount_row *more = realloc(table->at, cap * sizeof *more);

		if (!more) {
			table->failed = true;
			return NULL;
		}
		table->at = more;
		table->cap = cap;
	}
	row = &table->at[table->len++];
	*row = (mount_row){ .kind = kind, .flags = flags, .source = source, .target = target,
		.arg = arg, .fd = -1, .why = "", .len = strlen(target), .depth = depth_of(target) };
	return row;
}

mount_row *mounts_nearest(const mount_table *table, const char *path, const mount_row *but)
{
	mount_row *best = NULL;
	size_t i;

	for (i = 0; i < table->len; i++) {
		mount_row *row = &table->at[i];

		if (row == but || row->dropped || !path_is_within(path, row->target))
			continue;
		/* of two at one place the later one lies on top */
		if (!best || strlen(row->target) >= strlen(best->target))
			best = row;
	}
	return best;
}

static bool lies_below(const mount_row *row, const mount_row *dir)
{
	if (dir->len == 1)
		return row->len > 1;
	return dir->len < row->len && row->target[dir->len] == '/' &&
	       !memcmp(row->target, dir->target, dir->len);
}

/* ---- Settling -------------------------------------------------------------------------------- */

static bool is_grant(const mount_row *row)
{
	return row->origin != MOUNT_BUILTIN && row->origin != MOUNT_PIN && row->kind != LP_M_HIDE &&
	       row->kind != LP_M_PROTECT;
}

/* A code run needs these, wherever the caller's grants lie. */
static bool is_needed(const mount_wish *wish, const mount_row *row)
{
	return wish->code && row->kind == LP_M_SCRATCH && row->origin == MOUNT_BUILTIN &&
	       (!strcmp(row->source, "code") || !strcmp(row->source, "in") ||
		!strcmp(row->source, "work") || !strcmp(row->source, "out"));
}

/* What is hidden is hidden whole: also what every box has beneath it.  But the guest's own empty
 * folders hold nothing of the host's, and code does not run without some of them. */
static int drop_hidden(const mount_wish *wish, mount_table *table, const mount_row *hide, sb_error *err)
{
	size_t i;

	for (i = 0; i < table->len; i++) {
		mount_row *row = &table->at[i];
		bool same = row->len == hide->len && !memcmp(row->target, hide->target, row->len);

		if (same && row->origin == MOUNT_WORKSPACE)
			return error_set(err, SB_ERR_INVALID_SPEC, "files",
					 "\"%s\" is the workspace and cannot be hidden; go without one "
					 "(--workspace none), or name something beneath it", hide->target);
		if (row->dropped || row->origin != MOUNT_BUILTIN || !(same || lies_below(row, hide)))
			continue;
		if (is_needed(wish, row))
			return error_set(err, SB_ERR_INVALID_SPEC, "files",
					 "\"%s\" cannot be hidden, for a code run needs \"%s\"; name "
					 "something beneath it", hide->target, row->target);
		if (same && row->kind == LP_M_SCRATCH) { /* else landlock would let it be written */
			row->kind = LP_M_DIR;
			row->source = "";
			row->flags = 0;
			row->arg = 0555;
		} else if (same ? row->kind == LP_M_SYMLINK : row->kind != LP_M_SCRATCH) {
			row->dropped = true;
		}
	}
	return 0;
}

static int drop_covered(const mount_wish *wish, mount_table *table, const mount_row *grant,
			sb_error *err)
{
	size_t i;

	for (i = 0; i < table->len; i++) {
		mount_row *row = &table->at[i];
		bool same;

		if (row == grant || row->dropped)
			continue;
		same = row->len == grant->len && !memcmp(row->target, grant->target, row->len);
		/* a rule for the workspace's own path stands for it */
		if (row->origin == MOUNT_WORKSPACE)
			row->dropped |= same && grant->origin == MOUNT_RULE;
		if (row->origin != MOUNT_BUILTIN)
			continue;
		if (same || lies_below(row, grant)) {
			if (is_needed(wish, row))
				return error_set(err, SB_ERR_INVALID_SPEC, "files",
						 "\"%s\" would cover \"%s\", which a code run needs; name "
						 "something beneath it", grant->target, row->target);
			row->dropped = true;
		}
		/* what lies beneath a link of ours needs a directory there */
		if (row->kind == LP_M_SYMLINK && lies_below(grant, row))
			row->dropped = true;
	}
	return 0;
}

/* Stable, by depth: one pass for each depth that there is. */
static void sort_rows(mount_table *table)
{
	mount_row *sorted = malloc((table->len ? table->len : 1) * sizeof *sorted);
	unsigned deepest = 0, depth;
	size_t i, n = 0;

	if (!sorted) {
		table->failed = true;
		return;
	}
	for (i = 0; i < table->len; i++)
		if (table->at[i].depth > deepest)
			deepest = table->at[i].depth;
	for (depth = 0; depth <= deepest; depth++)
		for (i = 0; i < table->len; i++)
			if (table->at[i].depth == depth)
				sorted[n++] = table->at[i];
	free(table->at);
	table->at = sorted;
	table->cap = table->len;
}

static void remove_dropped(mount_table *table)
{
	size_t i, kept = 0;

	for (i = 0; i < table->len; i++) {
		if (!table->at[i].dropped)
			table->at[kept++] = table->at[i];
		else if (table->at[i].own_fd)
			fd_close(&table->at[i].fd);
	}
	table->len = kept;
}

int mounts_build(const mount_wish *wish, mount_table *table, sb_error *err)
{
	size_t i, count;
	bool pinned;
	int rc;

	if (!wish->bare)
		rootfs_rows(wish, table);
	rc = rules_add(wish, table, err);
	for (i = 0; !rc && i < table->len; i++) {
		const mount_row *row = &table->at[i];

		if (is_grant(row))
			rc = drop_covered(wish, table, row, err);
		else if (row->kind == LP_M_HIDE && row->origin == MOUNT_RULE)
			rc = drop_hidden(wish, table, row, err);
	}
	if (!rc && wish->in_place)
		rc = inplace_rows(wish, table, err);
	if (rc)
		return rc;
	remove_dropped(table);
	sort_rows(table);
	count = table->len;
	rc = rules_settle(wish, table, err);
	if (rc)
		return rc;
	pinned = table->len > count;
	remove_dropped(table);
	if (pinned)
		sort_rows(table);
	if (!table->failed && !wish->in_place && !wish->bare)
		mounts_add(table, LP_M_REMOUNT_RO, "", "/", 0, 0);
	return table->failed ? error_no_memory(err, "files") : 0;
}

/* ---- Inodes of ours --------------------------------------------------------------------------- */

/* A set of directories, each the beginning of some target. */
typedef struct path_set {
	const mount_row *rows;
	struct { uint32_t row, len; } *at; /* row + 1: 0 = free */
	size_t mask;                  /* places - 1: a power of two, never full */
} path_set;

static bool path_set_init(path_set *set, const mount_table *table)
{
	size_t places = 64, depths = 0, i;

	for (i = 0; i < table->len; i++)
		depths += table->at[i].depth;
	while (places < depths * 2)
		places *= 2;
	set->rows = table->at;
	set->at = calloc(places, sizeof *set->at);
	set->mask = places - 1;
	return set->at != NULL;
}

/* False: it was there already. */
static bool path_set_add(path_set *set, uint32_t hash, uint32_t row, uint32_t len)
{
	const char *path = set->rows[row].target;
	size_t i;

	for (i = hash & set->mask; set->at[i].row; i = (i + 1) & set->mask)
		if (set->at[i].len == len && !memcmp(set->rows[set->at[i].row - 1].target, path, len))
			return false;
	set->at[i].row = row + 1;
	set->at[i].len = len;
	return true;
}

/* Directories of this row's target that no row before it has made. */
static size_t new_parts(path_set *set, uint32_t row)
{
	const char *target = set->rows[row].target;
	uint32_t hash = 2166136261u, at;
	size_t made = 0;

	for (at = 1; target[at]; at++) {
		hash = (hash ^ (unsigned char)target[at]) * 16777619u;
		if (!target[at + 1] || target[at + 1] == '/')
			made += path_set_add(set, hash, row, at + 1);
	}
	return made;
}

/* A mount point below a bind lies on the host; it made no inode here. */
static bool lies_in_bind(const mount_table *table, size_t index)
{
	const mount_row *row = &table->at[index];
	size_t i;

	for (i = 0; i < index; i++) {
		if (table->at[i].kind == LP_M_BIND && lies_below(row, &table->at[i]))
			return true;
	}
	return false;
}

uint64_t mounts_nodes(mount_table *table)
{
	uint64_t nodes = 4; /* the tmpfs' root, the skeleton, and the two covers of hidden things */
	path_set made;
	size_t i;

	if (!path_set_init(&made, table)) {
		table->failed = true;
		return nodes;
	}
	for (i = 0; i < table->len; i++) {
		const mount_row *row = &table->at[i];
		size_t parts = new_parts(&made, (uint32_t)i);

		if (row->kind == LP_M_REMOUNT_RO || lies_in_bind(table, i))
			continue;
		/* the directory that is bound there; the link /dev/ptmx beside /dev/pts */
		nodes += parts + (row->kind == LP_M_SCRATCH || row->kind == LP_M_DEVPTS);
	}
	free(made.at);
	return nodes;
}

/* ---- Owners -------------------------------------------------------------------------------------- */

const char *mounts_owner_caveat(const mount_wish *wish, const mount_table *table, const mount_row *row)
{
	if (!wish->facts->root_caller || row->kind != LP_M_BIND)
		return "";
	if (!(row->flags & LP_F_IDMAP))
		return "seen as by any other user: what is closed to others stays closed";
	if (row->owner != table->owner_uid)
		return "owned by another user than the workspace: seen as by any other user";
	return "what belongs to its owner is the guest's; the rest is seen as by any other user";
}

int mounts_unmapped(const char *path, const char *instead, sb_error *err)
{
	return error_set(err, SB_ERR_UNSUPPORTED, "idmap",
			 "the file system of \"%s\" does not support id-mapped mounts, so a guest of root cannot "
			 "write there; %s, or run as the owner", path, instead);
}
