/* SPDX-License-Identifier: MIT */
/*
 * rules.c - workspace, file rules and named sockets as rows of the mount table.
 *
 * A root caller's guest runs as a uid that owns nothing.  What it may write is mapped, so that it
 * is the owner there.  What it may only read is mapped where naming it would be pointless otherwise
 * (a single file, a directory closed to others, a part of the workspace); below an open directory it
 * sees what any other user of the machine would: `--ro /etc` does not open /etc/shadow.
 */
#include "rules.h"
#include "idmap.h"
#include "../../core/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_PATH of `path` without passing a link; -errno.  ELOOP: a link is in the way. */
static int open_place(const char *path)
{
	int fd = open_plain(AT_FDCWD, path, O_PATH);

	return fd < 0 ? -errno : fd;
}

static int path_refused(int os_errno, const char *path, sb_error *err)
{
	if (os_errno == ELOOP)
		return error_set(err, SB_ERR_INVALID_PATH, "files",
				 "\"%s\" leads through a symbolic link, which is not followed for a grant; "
				 "name its target (`realpath %s`)", path, path);
	if (os_errno == ENOENT)
		return error_set(err, SB_ERR_NOT_FOUND, "files",
				 "\"%s\" does not exist; create it, or leave the rule out", path);
	return error_errno(err, error_code_of_errno(os_errno), os_errno, "files",
			   "cannot open \"%s\"", path);
}

/* "/bin/x" as "/usr/bin/x", where the host's /bin is a link. */
static const char *unmerged(const mount_wish *wish, mount_table *table, const char *path)
{
	size_t i;

	for (i = 0; i < LINUX_MERGED_COUNT; i++) {
		const linux_merged *m = &wish->facts->merged[i];

		if (m->is_link && m->link[0] != '/' && path_is_within(path, m->name))
			return mounts_text(table, "/%s%s", m->link, path + strlen(m->name));
	}
	return path;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static void take_owner(mount_table *table, const mount_row *row, const struct stat *st, bool *taken)
{
	if (*taken || !(row->flags & LP_F_WRITE))
		return;
	table->owner_uid = st->st_uid;
	table->owner_gid = st->st_gid;
	*taken = true;
}

static int add_workspace(const mount_wish *wish, mount_table *table, bool *owner, sb_error *err)
{
	const sb_box_request *request = wish->request;
	int flags = LP_F_NODEV | (wish->workspace_write ? LP_F_WRITE : LP_F_READONLY);
	mount_row *row;
	struct stat st;

	if (!request->workspace)
		return 0;
	if (fstat(request->workspace_fd, &st) < 0)
		return error_errno(err, SB_ERR_IO, errno, "files", "cannot look at the workspace \"%s\"",
				   request->workspace);
	if (wish->facts->root_caller && wish->workspace_idmap)
		flags |= LP_F_IDMAP;
	row = mounts_add(table, LP_M_BIND, request->workspace, request->workspace, flags, 0);
	if (!row)
		return 0;
	row->fd = request->workspace_fd;
	row->origin = MOUNT_WORKSPACE;
	row->access = wish->workspace_write ? SB_FILE_WRITE : SB_FILE_READ;
	row->why = "the workspace";
	row->owner = st.st_uid;
	table->owner_uid = st.st_uid;
	table->owner_gid = st.st_gid;
	*owner = true;
	return 0;
}

/* Without a mapping a root caller's guest is nobody there: see above. */
static bool wants_idmap(const mount_wish *wish, const char *source, int fd, const struct stat *st,
			bool write)
{
	const char *workspace = wish->request->workspace;
	uint64_t type;
	bool sure;

	if (!wish->facts->root_caller || wish->facts->no_userns)
		return false;
	sure = !wish->facts->inner_root && idmap_by_type(fd, &type) == IDMAP_YES;
	if (S_ISSOCK(st->st_mode)) /* where it cannot be mapped, who may dial it is up to its mode */
		return sure;
	if (write || (workspace && wish->workspace_idmap && path_is_within(source, workspace)))
		return true;
	if (S_ISDIR(st->st_mode) ? (st->st_mode & 0005) == 0005 : (st->st_mode & 0004) != 0)
		return false;
	return sure;
}

static int bad_grant(const char *path, sb_error *err)
{
	static const char *const ours[] = { "/", "/dev", "/proc" };
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(ours); i++)
		if (!strcmp(path, ours[i]))
			return error_set(err, SB_ERR_INVALID_SPEC, "files",
					 "\"%s\" is made for each sandbox and cannot be replaced; name what "
					 "is needed beneath it", path);
	return 0;
}

typedef struct grant {
	const char *source, *target, *why;
	bool write, noexec;
} grant;

static int add_grant(const mount_wish *wish, mount_table *table, const grant *g, bool *owner,
		     sb_error *err)
{
	const char *source = unmerged(wish, table, g->source);
	const char *target = wish->bare ? g->target : unmerged(wish, table, g->target);
	int flags = g->write ? LP_F_WRITE : LP_F_READONLY, fd;
	bool device;
	mount_row *row;
	struct stat st;

	if (bad_grant(target, err))
		return SB_ERR_INVALID_SPEC;
	fd = open_place(source);
	if (fd < 0)
		return path_refused(-fd, g->source, err);
	if (fstat(fd, &st) < 0)
		memset(&st, 0, sizeof st);
	if (S_ISSOCK(st.st_mode) && !g->write) {
		close(fd);
		return error_set(err, SB_ERR_INVALID_SPEC, "files",
				 "the socket \"%s\" cannot be shown read-only: who sees it can talk to what "
				 "listens there; use --rw, or leave it out", g->source);
	}
	device = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode);
	if (g->write && !device && wish->facts->no_userns &&
	    (wish->facts->root_caller || wish->facts->apart_ids)) {
		close(fd);
		return error_set(err, SB_ERR_UNENFORCEABLE, "files",
				 "a guest of root cannot write to \"%s\" without user namespaces, which cannot be made "
				 "here; show it read-only (--ro), or run as the owner", g->source);
	}
	if (!device && !path_is_within(target, "/dev"))
		flags |= LP_F_NODEV;
	if (g->noexec)
		flags |= LP_F_NOEXEC;
	if (!device && wants_idmap(wish, source, fd, &st, g->write))
		flags |= LP_F_IDMAP;
	row = mounts_add(table, device ? LP_M_DEVICE : LP_M_BIND, source, target, flags, 0);
	if (!row) {
		close(fd);
		return 0;
	}
	row->fd = fd;
	row->own_fd = true;
	row->origin = MOUNT_RULE;
	row->access = g->write ? SB_FILE_WRITE : SB_FILE_READ;
	row->why = g->why;
	row->owner = st.st_uid;
	take_owner(table, row, &st, owner);
	return 0;
}

/* Without a size of its own it is one more part of the scratch tmpfs, under the same quota. */
static mount_row *add_tmpfs(mount_table *table, const sb_file_rule *rule, const char *target)
{
	int flags = LP_F_WRITE | LP_F_NODEV | (rule->flags & SB_FILE_NOEXEC ? LP_F_NOEXEC : 0);

	if (rule->max_bytes && rule->max_bytes != SB_UNLIMITED)
		return mounts_add(table, LP_M_TMPFS, "", target, flags, rule->max_bytes);
	return mounts_add(table, LP_M_SCRATCH, mounts_text(table, "tmpfs%zu", table->len), target, flags,
			  0777 | 01000);
}

static int add_rule(const mount_wish *wish, mount_table *table, const sb_file_rule *rule,
		    bool *owner, sb_error *err)
{
	const char *target = rule->path;
	mount_row *row = NULL;
	grant g = { .source = rule->source ? rule->source : rule->path, .target = rule->path,
		.write = rule->access == SB_FILE_WRITE, .noexec = rule->flags & SB_FILE_NOEXEC,
		.why = "by a rule" };
	sb_error ignored;
	int rc;

	switch (rule->access) {
	case SB_FILE_READ:
	case SB_FILE_WRITE:
		rc = add_grant(wish, table, &g, owner, rule->flags & SB_FILE_OPTIONAL ? &ignored : err);
		return rc == SB_ERR_NOT_FOUND && (rule->flags & SB_FILE_OPTIONAL) ? 0 : rc;
	case SB_FILE_TMPFS:
		target = unmerged(wish, table, target);
		if (bad_grant(target, err))
			return SB_ERR_INVALID_SPEC;
		row = add_tmpfs(table, rule, target);
		break;
	case SB_FILE_HIDE:
	case SB_FILE_PROTECT:
		target = unmerged(wish, table, target);
		if (!strcmp(target, "/") || !strcmp(target, "/dev"))
			return error_set(err, SB_ERR_INVALID_SPEC, "files",
					 "\"%s\" cannot be hidden or protected as a whole; name what is "
					 "beneath it", target);
		row = mounts_add(table, rule->access == SB_FILE_HIDE ? LP_M_HIDE : LP_M_PROTECT, "", target,
				 LP_F_OPTIONAL, rule->flags & SB_FILE_OPTIONAL);
		break;
	default:
		return error_set(err, SB_ERR_INVALID_SPEC, "files", "the rule for \"%s\" has no access that "
				 "is known", rule->path);
	}
	if (row) {
		row->origin = MOUNT_RULE;
		row->access = (int)rule->access;
		row->why = "by a rule";
	}
	return 0;
}

static int add_sockets(const mount_wish *wish, mount_table *table, bool *owner, sb_error *err)
{
	const sb_network *network = wish->request->network;
	struct stat st;
	size_t i;
	int rc = 0;

	for (i = 0; !rc && network && network->unix_sockets && network->unix_sockets[i]; i++) {
		const char *path = network->unix_sockets[i];
		const grant g = { .source = path, .target = path, .write = true, .why = "a named socket" };

		if (!stat(path, &st) && !S_ISSOCK(st.st_mode))
			return error_set(err, SB_ERR_INVALID_SPEC, "files", "\"%s\" is not a socket", path);
		rc = add_grant(wish, table, &g, owner, err);
	}
	return rc;
}

int rules_add(const mount_wish *wish, mount_table *table, sb_error *err)
{
	const sb_spec *spec = wish->request->spec;
	bool owner = false;
	size_t i;
	int rc = add_workspace(wish, table, &owner, err);

	for (i = 0; !rc && spec && spec->files && spec->files[i]; i++)
		rc = add_rule(wish, table, spec->files[i], &owner, err);
	if (!rc)
		rc = add_sockets(wish, table, &owner, err);
	return rc;
}

/* ---- Settling --------------------------------------------------------------------------------- */

enum { PLACE_MAKE = 0,    /* in the skeleton or a tmpfs: a mount point is made */
       PLACE_THERE,       /* exists */
       PLACE_ABSENT,      /* would have to be made on the host */
       PLACE_LINK,        /* is or leads through a link */
       PLACE_HIDDEN,      /* beneath a row that hides */
       PLACE_CLOSED };    /* beneath a device, a file or /proc */

/* Where the target of a row lies: what is there before it is mounted. */
static int place_of(const mount_table *table, const mount_row *row, const mount_row **base,
		    int *fd)
{
	const mount_row *under = mounts_nearest(table, row->target, row);
	bool same;
	char *path;

	*base = under;
	*fd = -1;
	if (!under)
		return PLACE_MAKE;
	same = !strcmp(under->target, row->target);
	switch (under->kind) {
	case LP_M_BIND:
		if (same)
			return PLACE_THERE;
		if (asprintf(&path, "%s%s", under->source, row->target + strlen(under->target)) < 0)
			return PLACE_ABSENT;
		*fd = open_place(path);
		free(path);
		if (*fd == -ELOOP)
			return PLACE_LINK;
		return *fd < 0 ? PLACE_ABSENT : PLACE_THERE;
	case LP_M_DIR:
	case LP_M_SCRATCH:
	case LP_M_TMPFS:
		return same ? PLACE_THERE : PLACE_MAKE;
	case LP_M_HIDE:
		return PLACE_HIDDEN;
	case LP_M_PROC:
		if (same || row->kind != LP_M_HIDE)
			return same ? PLACE_THERE : PLACE_CLOSED;
		/* each process has its own "self": what a link leads to there is not to be named */
		*fd = open_place(row->target);
		return *fd == -ELOOP ? PLACE_LINK : PLACE_THERE;
	case LP_M_PROTECT:
		return same || row->kind == LP_M_HIDE ? PLACE_THERE : PLACE_CLOSED;
	default:
		return same ? PLACE_THERE : PLACE_CLOSED;
	}
}

static int settle_restriction(mount_row *row, int place, sb_error *err)
{
	if (place == PLACE_THERE)
		return 0;
	if (place == PLACE_LINK && !row->arg)
		return error_set(err, SB_ERR_INVALID_PATH, "files",
				 "\"%s\" is or leads through a symbolic link, which cannot be %s; name its "
				 "target", row->target, row->kind == LP_M_HIDE ? "hidden" : "protected");
	/* nothing is there to be hidden; a protected path that appears is found after the run */
	row->dropped = true;
	return 0;
}

static int settle_grant(mount_table *table, mount_row *row, int place, const mount_row *base,
			sb_error *err)
{
	switch (place) {
	case PLACE_ABSENT:
		return error_set(err, SB_ERR_INVALID_SPEC, "files",
				 "\"%s\" would have to be created inside \"%s\" on the host; create it first, "
				 "or choose another place", row->target, base->source);
	case PLACE_LINK:
		return error_set(err, SB_ERR_INVALID_PATH, "files",
				 "\"%s\" leads through a symbolic link inside; name another place",
				 row->target);
	case PLACE_CLOSED:
		return error_set(err, SB_ERR_INVALID_SPEC, "files",
				 "nothing can be shown at \"%s\", beneath \"%s\"", row->target, base->target);
	case PLACE_HIDDEN: {
		/* what hides a directory with something to see in it is a tmpfs, read-only once that is there */
		mount_row *hide = &table->at[base - table->at];

		hide->kind = LP_M_TMPFS;
		hide->flags = LP_F_NODEV | LP_F_NOEXEC;
		hide->arg = 65536;
		return 0;
	}
	default:
		return 0;
	}
}

/* A directory above something read-only or hidden in a writable bind could be renamed, and another put
 * in its place; the next run would then find nothing at the path to protect or to hide.  A mount point
 * cannot: each of them becomes one, as writable as before. */
static void pin_above(mount_table *table, size_t index, size_t base)
{
	size_t from = strlen(table->at[base].target), at;
	const char *target = table->at[index].target;

	if (from == 1)
		from = 0;
	for (at = from + 1; target[at]; at++) {
		const char *path;
		mount_row *row, *near;

		if (target[at] != '/')
			continue;
		path = mounts_text(table, "%.*s", (int)at, target);
		near = mounts_nearest(table, path, NULL);
		if (near && !strcmp(near->target, path))
			continue;
		row = mounts_add(table, LP_M_BIND,
				 mounts_text(table, "%s%s", table->at[base].source, path + from), path,
				 table->at[base].flags, 0);
		if (!row)
			return;
		row->origin = MOUNT_PIN;
		row->access = 0;
		row->fd = open_place(row->source);
		row->own_fd = row->fd >= 0;
		if (row->fd < 0)
			row->dropped = true;
	}
}

/* A mount point and what is mounted there are both a directory, or both none. */
static int check_kinds(const mount_row *row, int place_fd, sb_error *err)
{
	bool inside, source = true;
	struct stat st;

	if (place_fd < 0 || fstat(place_fd, &st) < 0)
		return 0;
	inside = S_ISDIR(st.st_mode);
	if (row->kind == LP_M_BIND || row->kind == LP_M_DEVICE) {
		if (row->fd < 0 || fstat(row->fd, &st) < 0)
			return 0;
		source = S_ISDIR(st.st_mode);
	}
	if (inside == source)
		return 0;
	return error_set(err, SB_ERR_INVALID_SPEC, "files", inside ?
			 "a file cannot be shown at \"%s\", which is a directory; choose another place" :
			 "a directory cannot be put at \"%s\", which is a file; choose another place",
			 row->target);
}

static bool is_restriction(const mount_row *row)
{
	return row->kind == LP_M_HIDE || row->kind == LP_M_PROTECT;
}

static bool wants_pins(const mount_row *row)
{
	return is_restriction(row) || (row->kind == LP_M_BIND && !(row->flags & LP_F_WRITE));
}

int rules_settle(const mount_wish *wish, mount_table *table, sb_error *err)
{
	size_t i, count = table->len;
	int rc = 0;

	(void)wish;
	for (i = 0; !rc && i < count; i++) {
		mount_row *row = &table->at[i];
		const mount_row *base;
		int fd, place;

		if (row->origin == MOUNT_BUILTIN || row->dropped)
			continue;
		place = place_of(table, row, &base, &fd);
		if (is_restriction(row))
			rc = settle_restriction(row, place, err);
		else
			rc = settle_grant(table, row, place, base, err);
		if (!rc && !is_restriction(row))
			rc = check_kinds(row, fd, err);
		if (fd >= 0)
			close(fd);
		if (!rc && !row->dropped && wants_pins(row) && base && base->kind == LP_M_BIND &&
		    (base->flags & LP_F_WRITE))
			pin_above(table, i, (size_t)(base - table->at));
	}
	return rc;
}

/* ---- Disk ---------------------------------------------------------------------------------------- */

static bool has_write_rule(const sb_spec *spec)
{
	size_t i;

	for (i = 0; spec && spec->files && spec->files[i]; i++)
		if (spec->files[i]->access == SB_FILE_WRITE)
			return true;
	return false;
}

int rules_check_disk(const mount_wish *wish, sb_error *err)
{
	const sb_limits *limits = wish->request->limits;
	const sb_spec *spec = wish->request->spec;

	if (!limits_is_set(limits->fs_bytes) && !limits_is_set(limits->fs_nodes))
		return 0;
	if (!(wish->request->workspace && wish->workspace_write) && !has_write_rule(spec))
		return 0;
	if (spec && (spec->allow_weaker & SB_WALL_BIT(SB_WALL_DISK)))
		return 0;
	return error_set(err, SB_ERR_UNENFORCEABLE, "disk",
			 "a disk limit cannot be held in a directory of the host that the guest may write; "
			 "make it read-only (--workspace-mode ro), leave the limit out, or --allow-weaker "
			 "disk");
}
