/* SPDX-License-Identifier: MIT */
/*
 * inplace.c - a guest without namespaces, in the host's own root.
 *
 * Where no user namespace can be made there are no mounts.  Landlock then is the wall: what a row
 * binds can be opened, at the place where it lies, and nothing else.  It only ever adds, so that nothing
 * beneath what is shown can be hidden, and nothing beneath what may be written can be protected; and
 * there is nothing private, no quota, and no place for code.  What was asked for and cannot be had is
 * refused.
 */
#include "mounts.h"

#include <sys/stat.h>

#define INSTEAD "user namespaces cannot be made here (`sandbox doctor` tells why)"

static int refuse(sb_error *err, const char *path, const char *what, const char *remedy)
{
	return error_set(err, SB_ERR_UNENFORCEABLE, "files", "\"%s\" cannot be %s, because " INSTEAD "; %s",
			 path, what, remedy);
}

/* Rows of the caller's that give something. */
static int check_grant(const mount_row *row, sb_error *err)
{
	if (row->kind == LP_M_TMPFS || row->kind == LP_M_SCRATCH)
		return refuse(err, row->target, "an empty directory of the sandbox's own",
			      "name a directory of the host's with --rw");
	if (row->source && strcmp(row->source, row->target))
		return refuse(err, row->source, "shown at another place", "show it where it lies");
	if (row->flags & LP_F_NOEXEC)
		return refuse(err, row->target, "shown without the right to run it", "leave that out");
	return 0;
}

static bool is_socket(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISSOCK(st.st_mode);
}

/* The grant that a restriction would have to be made in; NULL = it holds without doing anything. */
static const mount_row *weakened(const mount_table *table, const mount_row *row)
{
	const mount_row *best = NULL;
	struct stat st;
	size_t i;

	/* nobody in there can dial a unix socket; and what is not there is looked for after the run */
	if (lstat(row->target, &st) < 0 || is_socket(row->target))
		return NULL;
	for (i = 0; i < table->len; i++) {
		const mount_row *grant = &table->at[i];

		if (grant->dropped || grant->kind != LP_M_BIND || !path_is_within(row->target, grant->target))
			continue;
		/* rights add up: the widest counts, not the nearest */
		if (!best || (grant->flags & LP_F_WRITE))
			best = grant;
	}
	if (best && row->kind == LP_M_PROTECT && !(best->flags & LP_F_WRITE))
		return NULL;
	return best;
}

static int check_restriction(const mount_wish *wish, const mount_table *table, mount_row *row,
			     sb_error *err)
{
	const sb_spec *spec = wish->request->spec;

	if (weakened(table, row) && !(spec && (spec->allow_weaker & SB_WALL_BIT(SB_WALL_FILES)))) {
		if (row->kind == LP_M_HIDE)
			return refuse(err, row->target, "hidden in a directory that is shown",
				      "show less, or --allow-weaker files");
		return refuse(err, row->target, "protected in a directory that may be written",
			      "use --workspace-mode ro, or --allow-weaker files");
	}
	row->dropped = true;
	return 0;
}

/* A grant for reading beneath one for writing would be no restriction, either. */
static int check_narrower(const mount_table *table, const mount_row *row, sb_error *err)
{
	size_t i;

	if (row->kind != LP_M_BIND || (row->flags & LP_F_WRITE))
		return 0;
	for (i = 0; i < table->len; i++) {
		const mount_row *above = &table->at[i];

		if (above != row && !above->dropped && above->kind == LP_M_BIND &&
		    (above->flags & LP_F_WRITE) && path_is_within(row->target, above->target))
			return refuse(err, row->target, "read-only in a directory that may be written",
				      "leave its rule out, or the directory read-only");
	}
	return 0;
}

int inplace_rows(const mount_wish *wish, mount_table *table, sb_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < table->len; i++) {
		mount_row *row = &table->at[i];

		if (row->origin == MOUNT_BUILTIN && row->kind != LP_M_BIND && row->kind != LP_M_DEVICE)
			row->dropped = true;
	}
	for (i = 0; !rc && i < table->len; i++) {
		mount_row *row = &table->at[i];

		if (row->dropped || row->origin == MOUNT_BUILTIN)
			continue;
		if (row->kind == LP_M_HIDE || row->kind == LP_M_PROTECT)
			rc = check_restriction(wish, table, row, err);
		else
			rc = check_grant(row, err) ?: check_narrower(table, row, err);
	}
	return rc;
}
