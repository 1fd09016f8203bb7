/* SPDX-License-Identifier: MIT */
/*
 * cgroup_find.c - where our cgroups may be made.
 *
 * Version 2: our own cgroup if it hands controllers to its children and is ours to write (that is
 * the root one, or one that holds no process), else the parent, beside our own: one that was
 * delegated to us, or, for root, where our own carries no limit that a sibling would escape.
 * Version 1, root only: below our own cgroup of each controller, each a hierarchy of its own.
 * A plain user who has none of these has a systemd of his own perhaps, which makes one when asked.
 * Nothing of the kind: no cgroup, and the watcher over /proc takes its place.
 */
#include "facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TEXT_MAX 65536
#define CGROUP_DIR "/sys/fs/cgroup"
enum { NEEDED = LP_CTL_MEMORY | LP_CTL_PIDS };

typedef struct controller {
	const char *name;
	uint32_t bit;
} controller;
static const controller controllers[] = {
	{ "memory", LP_CTL_MEMORY }, { "pids", LP_CTL_PIDS },
	{ "cpu", LP_CTL_CPU }, { "cpuacct", LP_CTL_CPUACCT },
};

/* ---- Text of /proc ------------------------------------------------------------------------- */

/* A machine, by the folder that stands for its root.  Each walk through /sys takes a lock that the kernel
 * holds for long while somebody makes a network namespace, as our own pid 1 does at this very moment: what
 * lies in CGROUP_DIR is reached by `base`, where that is open. */
typedef struct machine {
	const char *root;
	int base;
} machine;

/* The directory that *path begins at, which may be changed to something in `full`; -1: too long. */
static int machine_at(const machine *m, const char **path, char full[PATH_MAX])
{
	size_t len = sizeof CGROUP_DIR - 1;

	if (m->base >= 0 && !strncmp(*path, CGROUP_DIR, len) && (!(*path)[len] || (*path)[len] == '/')) {
		*path = (*path)[len] ? *path + len + 1 : ".";
		return m->base;
	}
	if (!facts_path(full, m->root, *path))
		return -1;
	*path = full;
	return AT_FDCWD;
}

static int machine_open(const machine *m, const char *path, int flags)
{
	char full[PATH_MAX];
	int at = machine_at(m, &path, full);

	return at == -1 ? -1 : openat(at, path, flags | O_CLOEXEC);
}

static bool read_text(const machine *m, const char *path, buf *out)
{
	char full[PATH_MAX];
	int at = machine_at(m, &path, full);
	int FD_AUTO fd = at == -1 ? -1 : open_regular(at, path);

	return fd >= 0 && !fd_read_file(fd, TEXT_MAX, out) && out->data;
}

static bool accessible(const machine *m, const char *path, int how)
{
	char full[PATH_MAX];
	int at = machine_at(m, &path, full);

	return at != -1 && !faccessat(at, path, how, 0);
}

static bool writable_dir(const machine *m, const char *path)
{
	return accessible(m, path, W_OK | X_OK);
}

/* The bits of a list, whose words end at `stop` characters. */
static uint32_t controllers_of(const char *list, size_t len)
{
	uint32_t bits = 0;
	size_t at = 0, i;

	while (at < len) {
		size_t n = strcspn(list + at, ", \n:");

		if (n > len - at)
			n = len - at;
		for (i = 0; i < BASE_ARRAY_LEN(controllers); i++)
			if (strlen(controllers[i].name) == n && !memcmp(controllers[i].name, list + at, n))
				bits |= controllers[i].bit;
		at += n + 1;
	}
	return bits;
}

/* One line of /proc/self/cgroup: "id:controllers:path". */
typedef struct own_line {
	const char *list, *path;
	size_t list_len, path_len;
} own_line;

static bool own_next(const char **at, own_line *line)
{
	const char *end = strchr(*at, '\n'), *first, *second;

	if (!**at)
		return false;
	if (!end)
		end = *at + strlen(*at);
	first = memchr(*at, ':', (size_t)(end - *at));
	second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
	if (!second)
		return false;
	line->list = first + 1;
	line->list_len = (size_t)(second - first - 1);
	line->path = second + 1;
	line->path_len = (size_t)(end - second - 1);
	*at = *end ? end + 1 : end;
	return true;
}

/* One line of mountinfo that is a cgroup hierarchy: its root, mount point and super options. */
typedef struct mount_line {
	char root[512], point[512];
	const char *options;
	size_t options_len;
	bool version2;
} mount_line;

static bool field_copy(char *out, size_t cap, const char *from, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len && n + 1 < cap; i++) {
		/* the kernel writes blanks, newlines and backslashes as three octal digits */
		if (from[i] == '\\' && i + 3 < len + 0 && from[i + 1] >= '0' && from[i + 1] <= '3') {
			out[n++] = (char)((from[i + 1] - '0') << 6 | (from[i + 2] - '0') << 3 |
					  (from[i + 3] - '0'));
			i += 3;
		} else {
			out[n++] = from[i];
		}
	}
	out[n] = 0;
	return i == len;
}

static bool mount_parse(const char *text, size_t len, mount_line *line)
{
	const char *field[5], *end = text + len, *dash, *at = text;
	size_t size[5];
	int i;

	for (i = 0; i < 5; i++) {
		const char *blank = memchr(at, ' ', (size_t)(end - at));

		if (!blank)
			return false;
		field[i] = at;
		size[i] = (size_t)(blank - at);
		at = blank + 1;
	}
	dash = memmem(at - 1, (size_t)(end - at) + 1, " - ", 3);
	if (!dash)
		return false;
	at = dash + 3;
	if (end - at > 8 && !memcmp(at, "cgroup2 ", 8))
		line->version2 = true;
	else if (end - at > 7 && !memcmp(at, "cgroup ", 7))
		line->version2 = false;
	else
		return false;
	for (i = 0; i < 2; i++) { /* over type and source */
		at = memchr(at, ' ', (size_t)(end - at));
		if (!at)
			return false;
		at++;
	}
	line->options = at;
	line->options_len = (size_t)(end - at);
	return field_copy(line->root, sizeof line->root, field[3], size[3]) &&
	       field_copy(line->point, sizeof line->point, field[4], size[4]);
}

static bool mount_next(const char **at, mount_line *line)
{
	while (**at) {
		const char *begin = *at, *end = strchr(begin, '\n');
		size_t len = end ? (size_t)(end - begin) : strlen(begin);

		*at = begin + len + (end ? 1 : 0);
		if (mount_parse(begin, len, line))
			return true;
	}
	return false;
}

/* The directory of cgroup `own` under a mount that shows the hierarchy from `line->root` on. */
static bool own_dir(const mount_line *line, const own_line *own, char *out, size_t cap)
{
	const char *path = own->path;
	size_t len = own->path_len, root_len = strlen(line->root);

	if (strcmp(line->root, "/")) {
		/* "/.." = our namespace's root lies outside of what this mount shows */
		if (len < root_len || memcmp(path, line->root, root_len) ||
		    (len > root_len && path[root_len] != '/'))
			return false;
		path += root_len;
		len -= root_len;
	}
	if (len >= 3 && !memcmp(path, "/..", 3))
		return false;
	if (len == 1 && *path == '/')
		len = 0;
	root_len = strlen(line->point);
	if (root_len + len >= cap)
		return false;
	memcpy(out, line->point, root_len);
	memcpy(out + root_len, path, len);
	out[root_len + len] = 0;
	return true;
}

/* ---- Version 2 ------------------------------------------------------------------------------- */

static uint32_t handed_down(const machine *m, const char *dir)
{
	char path[PATH_MAX];
	uint32_t bits = 0;
	buf text;

	buf_init(&text, TEXT_MAX);
	if (facts_path(path, dir, "/cgroup.subtree_control") && read_text(m, path, &text))
		bits = controllers_of(text.data, text.len);
	buf_release(&text);
	return bits;
}

/* A limit of `dir` itself that a sibling would escape. */
static bool has_limits(const machine *m, const char *dir)
{
	static const char *const files[] = { "memory.max", "memory.high", "pids.max", "cpu.max" };
	bool found = false;
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(files); i++) {
		buf text;

		buf_init(&text, 256);
		if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, files[i]) < sizeof path &&
		    read_text(m, path, &text))
			found |= strncmp(text.data, "max", 3) != 0;
		buf_release(&text);
	}
	return found;
}

static bool may_attach(const machine *m, const char *dir)
{
	char path[PATH_MAX];

	return facts_path(path, dir, "/cgroup.procs") && writable_dir(m, dir) && accessible(m, path, W_OK);
}

static bool take_v2(const machine *m, const char *dir, cgroup_place *place)
{
	uint32_t bits = handed_down(m, dir);

	if ((bits & NEEDED) != NEEDED || !may_attach(m, dir))
		return false;
	place->kind = LP_CG_V2;
	place->count = 1;
	place->controllers = place->at[0].controllers = bits | LP_CTL_CPUACCT; /* cpu.stat is always there */
	snprintf(place->at[0].path, sizeof place->at[0].path, "%s", dir);
	return true;
}

/* Below our own cgroup, or beside it. */
static void try_v2(const machine *m, bool root_caller, const mount_line *mount,
		   const own_line *line, cgroup_place *place)
{
	char dir[512], *slash;

	if (!own_dir(mount, line, dir, sizeof dir) || take_v2(m, dir, place))
		return;
	slash = strrchr(dir, '/');
	if (!slash || strlen(dir) <= strlen(mount->point))
		return;
	if (root_caller && has_limits(m, dir))
		return;
	*slash = 0;
	take_v2(m, dir, place);
}

static void find_v2(const machine *m, bool root_caller, const char *mounts, const char *own,
		    cgroup_place *place)
{
	char dir[512];
	mount_line mount;
	own_line line;

	while (own_next(&own, &line))
		if (!line.list_len)
			goto found;
	return;
found:
	while (mount_next(&mounts, &mount)) {
		if (!mount.version2 || !own_dir(&mount, &line, dir, sizeof dir))
			continue;
		try_v2(m, root_caller, &mount, &line, place);
		return;
	}
}

/* ---- The user's systemd ----------------------------------------------------------------------- */

/* "unix:path=PATH" with or without more behind it, or RUNTIME/bus, which is where it is without. */
static bool bus_path(const char *address, const char *runtime, char *out, size_t cap)
{
	static const char kind[] = "unix:path=";
	size_t len;
	int n;

	if (address && *address) {
		if (strncmp(address, kind, sizeof kind - 1) != 0)
			return false;
		address += sizeof kind - 1;
		len = strcspn(address, ",;");
		if (len >= cap || memchr(address, '%', len)) /* what stands for another byte: nobody's path has that */
			return false;
		memcpy(out, address, len);
		out[len] = 0;
		return path_is_clean_absolute(out);
	}
	n = runtime ? snprintf(out, cap, "%s/bus", runtime) : -1;
	return n > 0 && (size_t)n < cap && path_is_clean_absolute(out);
}

static bool owned_by(const char *root, const char *path, uid_t uid, mode_t type)
{
	char full[PATH_MAX];
	struct stat st;

	return facts_path(full, root, path) && !stat(full, &st) && st.st_uid == uid &&
	       (st.st_mode & S_IFMT) == type;
}

static bool version2_mount(const machine *m, mount_line *line)
{
	const char *at;
	bool found = false;
	buf mounts;

	buf_init(&mounts, 1 << 20);
	if (read_text(m, "/proc/self/mountinfo", &mounts))
		for (at = mounts.data; !found && mount_next(&at, line);)
			found = line->version2;
	buf_release(&mounts);
	return found;
}

void cgroup_find_scope(const char *root, uid_t uid, const char *address, const char *runtime,
		       cgroup_place *place)
{
	const machine m = { root, -1 };
	char bus[sizeof place->bus], dir[sizeof place->at[0].path], file[PATH_MAX];
	mount_line mount;
	uint32_t bits = 0;
	buf text;
	int n;

	/* sb-launch looks for itself at the usual place */
	if (!bus_path(address, runtime, bus, sizeof bus) || !owned_by(root, bus, uid, S_IFSOCK) ||
	    !version2_mount(&m, &mount) || strcmp(mount.point, CGROUP_DIR) || strcmp(mount.root, "/"))
		return;
	n = snprintf(dir, sizeof dir, CGROUP_DIR "/user.slice/user-%u.slice/user@%u.service", (unsigned)uid,
		     (unsigned)uid);
	if (n <= 0 || (size_t)n >= sizeof dir || !owned_by(root, dir, uid, S_IFDIR))
		return;
	buf_init(&text, TEXT_MAX);
	if (facts_path(file, dir, "/cgroup.controllers") && read_text(&m, file, &text))
		bits = controllers_of(text.data, text.len);
	buf_release(&text);
	if ((bits & NEEDED) != NEEDED)
		return;
	place->kind = LP_CG_SCOPE;
	place->count = 1;
	place->controllers = place->at[0].controllers = bits | LP_CTL_CPUACCT;
	memcpy(place->at[0].path, dir, (size_t)n + 1);
	memcpy(place->bus, bus, sizeof bus);
}

/* ---- Version 1 ------------------------------------------------------------------------------- */

static void take_v1(const machine *m, const char *dir, uint32_t bits, cgroup_place *place)
{
	if (place->count == BASE_ARRAY_LEN(place->at) || !writable_dir(m, dir))
		return;
	place->at[place->count].controllers = bits;
	snprintf(place->at[place->count].path, sizeof place->at[0].path, "%s", dir);
	place->controllers |= bits;
	place->count++;
	place->kind = LP_CG_V1;
}

static void find_v1(const machine *m, const char *mounts, const char *own, cgroup_place *place)
{
	mount_line mount;

	while (mount_next(&mounts, &mount)) {
		uint32_t bits = mount.version2 ? 0 : controllers_of(mount.options, mount.options_len);
		const char *at = own;
		own_line line;
		char dir[512];

		bits &= ~place->controllers;
		while (bits && own_next(&at, &line)) {
			if (!(controllers_of(line.list, line.list_len) & bits))
				continue;
			if (own_dir(&mount, &line, dir, sizeof dir))
				take_v1(m, dir, bits, place);
			break;
		}
	}
}

/* ---- Where hierarchies are mounted ----------------------------------------------------------- */

#define FIRST_CGROUP_NAMESPACE 0xEFFFFFFBu /* the kernel's constant inode of the machine's own */
#define MAGIC_CGROUP 0x27e0ebu
#define MAGIC_CGROUP2 0x63677270u

/* A hierarchy, shown from its root on (the root directory's inode is 1; no part of it has that). */
static bool whole_hierarchy(const machine *m, const char *point, unsigned long magic)
{
	int FD_AUTO fd = machine_open(m, point, O_PATH | O_DIRECTORY);
	struct statfs fs;
	struct stat st;

	return fd >= 0 && !fstatfs(fd, &fs) && (unsigned long)fs.f_type == magic && !fstat(fd, &st) &&
	       st.st_ino == 1;
}

/* The same without mountinfo, whose text the kernel makes anew for each reader, with all mounts of the
 * machine.  Sure only in the machine's own cgroup namespace and where everything lies at its usual
 * place; false: not sure. */
static bool find_usual(const machine *m, bool root_caller, const char *own, cgroup_place *place)
{
	mount_line mount = { .root = "/", .point = CGROUP_DIR };
	const char *at = own;
	own_line line;

	if (facts_first_namespace("", "cgroup", FIRST_CGROUP_NAMESPACE) <= 0)
		return false;
	while (own_next(&at, &line)) {
		if (line.list_len)
			continue;
		if (!whole_hierarchy(m, CGROUP_DIR, MAGIC_CGROUP2)) {
			memcpy(mount.point, CGROUP_DIR "/unified", sizeof CGROUP_DIR "/unified");
			if (!whole_hierarchy(m, mount.point, MAGIC_CGROUP2))
				return false;
		}
		try_v2(m, root_caller, &mount, &line, place);
	}
	if (place->kind != LP_CG_NONE || !root_caller)
		return true;
	memcpy(mount.point, CGROUP_DIR "/", sizeof CGROUP_DIR "/");
	for (at = own; own_next(&at, &line);) {
		uint32_t bits = controllers_of(line.list, line.list_len) & ~place->controllers;
		char dir[512];

		if (!bits)
			continue;
		if (line.list_len >= 128)
			return false;
		memcpy(mount.point + sizeof CGROUP_DIR, line.list, line.list_len);
		mount.point[sizeof CGROUP_DIR + line.list_len] = 0;
		if (!whole_hierarchy(m, mount.point, MAGIC_CGROUP))
			return false;
		if (own_dir(&mount, &line, dir, sizeof dir))
			take_v1(m, dir, bits, place);
	}
	return true;
}

static void find_mounted(const machine *m, bool root_caller, const char *own, cgroup_place *place)
{
	buf mounts;

	buf_init(&mounts, 1 << 20);
	if (read_text(m, "/proc/self/mountinfo", &mounts)) {
		find_v2(m, root_caller, mounts.data, own, place);
		if (place->kind == LP_CG_NONE && root_caller)
			find_v1(m, mounts.data, own, place);
	}
	buf_release(&mounts);
}

void cgroup_find(const char *root, bool root_caller, cgroup_place *place)
{
	int FD_AUTO base = *root ? -1 : openat(AT_FDCWD, CGROUP_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const machine m = { root, base };
	buf own;

	memset(place, 0, sizeof *place);
	buf_init(&own, TEXT_MAX);
	if (read_text(&m, "/proc/self/cgroup", &own) &&
	    (*root || !find_usual(&m, root_caller, own.data, place))) {
		memset(place, 0, sizeof *place);
		find_mounted(&m, root_caller, own.data, place);
	}
	buf_release(&own);
}

/* ---- Limits above ------------------------------------------------------------------------------ */

uint64_t cgroup_above(const char *root, const char *dir, const char *file)
{
	int FD_AUTO base = *root ? -1 : openat(AT_FDCWD, CGROUP_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const machine m = { root, base };
	uint64_t least = SB_UNLIMITED;
	char at[512], path[PATH_MAX], *slash;
	bool there = true;
	size_t n = strlen(dir);

	if (n >= sizeof at)
		return least;
	memcpy(at, dir, n + 1);
	while (there && at[0]) {
		buf text;

		buf_init(&text, 256);
		there = (size_t)snprintf(path, sizeof path, "%s/%s", at, file) < sizeof path &&
			read_text(&m, path, &text);
		if (there && text.data[0] >= '0' && text.data[0] <= '9') {
			uint64_t value = strtoull(text.data, NULL, 10);

			least = value < least ? value : least;
		}
		buf_release(&text);
		slash = strrchr(at, '/');
		*(slash ? slash : at) = 0;
	}
	return least;
}

/* ---- A parent by name -------------------------------------------------------------------------- */

static int parent_v2(const machine *m, const char *parent, cgroup_place *place, sb_error *err)
{
	if (take_v2(m, parent, place))
		return 0;
	if (!may_attach(m, parent))
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "cgroup",
				 "cgroup \"%s\" is not yours to write; delegate it, or name another with "
				 "--cgroup", parent);
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "cgroup",
			 "cgroup \"%s\" does not hand memory and pids to its children; run `echo '+memory "
			 "+pids +cpu' > %.200s/cgroup.subtree_control`", parent, parent);
}

/* Below a version 1 hierarchy: the same path in each of them. */
static void parent_v1(const machine *m, const char *parent, const char *mounts,
		      cgroup_place *place)
{
	const char *below = NULL, *at = mounts;
	mount_line mount;
	char dir[1024];

	while (!below && mount_next(&at, &mount))
		if (!mount.version2 && path_is_within(parent, mount.point))
			below = parent + strlen(mount.point);
	for (at = mounts; below && mount_next(&at, &mount);) {
		uint32_t bits = mount.version2 ? 0 : controllers_of(mount.options, mount.options_len);

		bits &= ~place->controllers;
		if (bits && (size_t)snprintf(dir, sizeof dir, "%s%s", mount.point, below) < sizeof dir &&
		    accessible(m, dir, F_OK) && strlen(dir) < sizeof place->at[0].path)
			take_v1(m, dir, bits, place);
	}
}

static int parent_in(const machine *m, const char *parent, const char *mounts,
		     cgroup_place *place, sb_error *err)
{
	const char *at = mounts;
	mount_line mount;

	while (mount_next(&at, &mount))
		if (mount.version2 && path_is_within(parent, mount.point))
			return parent_v2(m, parent, place, err);
	parent_v1(m, parent, mounts, place);
	if (place->count)
		return 0;
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "cgroup",
			 "\"%s\" is not a cgroup that you may write; name one below a cgroup mount",
			 parent);
}

int cgroup_find_parent(const char *root, const char *parent, cgroup_place *place, sb_error *err)
{
	const machine m = { root, -1 };
	buf mounts;
	int rc;

	memset(place, 0, sizeof *place);
	if (!path_is_clean_absolute(parent) || strlen(parent) >= sizeof place->at[0].path)
		return error_set(err, SB_ERR_INVALID_PATH, "cgroup",
				 "cgroup \"%s\" is not a plain absolute path", parent);
	if (!accessible(&m, parent, F_OK))
		return error_set(err, SB_ERR_NOT_FOUND, "cgroup",
				 "cgroup \"%s\" does not exist; make it, or leave --cgroup out", parent);
	buf_init(&mounts, 1 << 20);
	if (read_text(&m, "/proc/self/mountinfo", &mounts))
		rc = parent_in(&m, parent, mounts.data, place, err);
	else
		rc = error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "cgroup",
			       "cannot read \"/proc/self/mountinfo\"");
	buf_release(&mounts);
	return rc;
}
