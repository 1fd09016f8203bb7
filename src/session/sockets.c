/* SPDX-License-Identifier: MIT */
/*
 * sockets.c - unix sockets of the host's programs.
 *
 * A mount holds back who writes a file, not who dials a socket: through one that lies in a directory
 * that is shown, even read-only, a guest reaches a program that is behind no wall at all.  Those that
 * are bound when the run starts are hidden like any other file (the kernel lists them in
 * /proc/net/unix), unless they were named.  What is bound later, or under a name that is not absolute,
 * is not known here: the plan says so.
 */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

enum { MAX_HIDDEN = 128, MAX_TABLE = 8 << 20, PATH_FIELD = 7, MAX_FOLDERS = 64 };

/* ---- named ---------------------------------------------------------------------------------- */

/* Who may talk to one of these is no longer behind walls: the program at the other end starts
 * processes, or mounts, for whoever asks. */
static const char *const daemons[] = {
	"/run/docker.sock", "/run/docker/*", "/run/containerd/*", "/run/podman/*", "/run/crio/*",
	"/run/lxd*", "/run/incus*", "/var/lib/lxd/*", "/var/snap/lxd/*", "/var/lib/incus/*",
	"/run/libvirt/*", "/run/systemd/*", "/run/dbus/*", "/run/snapd*.socket", "/run/user/*/bus",
	"/run/user/*/systemd/*", "/run/user/*/podman/*", "/run/user/*/docker.sock",
};

bool sockets_is_daemon(const char *path)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(daemons); i++)
		if (fnmatch(daemons[i], path, 0) == 0)
			return true;
	return false;
}

static int check_named(const char *path, uint32_t flags, sb_error *err)
{
	struct stat st;
	int code = 0;

	if (lstat(path, &st) < 0)
		return error_errno(err, error_code_of_errno(errno), errno, "network",
				   "the socket \"%s\" cannot be shown", path);
	if (!S_ISSOCK(st.st_mode) && !S_ISLNK(st.st_mode))
		return error_set(err, SB_ERR_INVALID_SPEC, "network", "\"%s\" is not a socket", path);
	char *real = realpath(path, NULL);

	if (!real)
		code = error_errno(err, error_code_of_errno(errno), errno, "network",
				   "the socket \"%s\" cannot be shown", path);
	else if (!(flags & SB_NETWORK_ALLOW_DAEMONS) && sockets_is_daemon(real))
		code = error_set(err, SB_ERR_FORBIDDEN, "network",
				 "\"%s\" belongs to a daemon that does for others what walls are there "
				 "to prevent; leave it out, or set SB_NETWORK_ALLOW_DAEMONS",
				 path);
	free(real);
	return code;
}

int sockets_check(const sb_network *network, sb_error *err)
{
	const char *const *named = network->unix_sockets;
	int code = 0;

	for (size_t i = 0; code >= 0 && named && named[i]; i++)
		code = check_named(named[i], network->flags, err);
	return code;
}

/* ---- found ---------------------------------------------------------------------------------- */

typedef struct folder {           /* one that sockets are bound in, by their own words and really */
	const char *named, *real;     /* arena's; real NULL = not there */
} folder;
typedef struct hider {
	place *p;
	arena *mem;
	const char *const *named;
	const sb_file_rule *found[MAX_HIDDEN];
	size_t count;
	bool too_many;
	folder folders[MAX_FOLDERS];
	size_t folder_count;
} hider;

static bool known(const hider *h, const char *path)
{
	for (size_t i = 0; i < h->p->rule_count; i++)
		if (!strcmp(h->p->rules[i]->path, path))
			return true;
	for (size_t i = 0; i < h->count; i++)
		if (!strcmp(h->found[i]->path, path))
			return true;
	return strv_has(h->named, path);
}

/* Not there already: beneath something hidden, or a tmpfs. */
static bool covered(const hider *h, const char *path)
{
	const sb_file_rule *nearest = NULL;

	for (size_t i = 0; i < h->p->rule_count; i++)
		if (path_is_within(path, h->p->rules[i]->path))
			nearest = h->p->rules[i]; /* sorted: the longer comes later */
	return nearest && (nearest->access == SB_FILE_HIDE || nearest->access == SB_FILE_TMPFS);
}

static void hide(hider *h, const char *inside)
{
	if (!inside || known(h, inside) || covered(h, inside))
		return;
	if (h->count == MAX_HIDDEN) {
		h->too_many = true;
		return;
	}
	sb_file_rule *rule = arena_alloc(h->mem, sizeof *rule);

	if (!rule)
		return;
	*rule = (sb_file_rule){ .size = sizeof *rule, .path = inside, .access = SB_FILE_HIDE,
				.flags = SB_FILE_OPTIONAL };
	h->found[h->count++] = rule;
}

/* Programs bind by names that lead through links, "/var/run/x" above all. */
static const char *real_folder(hider *h, const char *path, size_t len)
{
	folder *at = h->folders;

	for (size_t i = 0; i < h->folder_count; i++, at++)
		if (!strncmp(at->named, path, len) && !at->named[len])
			return at->real;
	char *named = arena_fmt(h->mem, "%.*s", (int)len, path);
	char *real = named ? realpath(*named ? named : "/", NULL) : NULL;
	const char *kept = real ? arena_text(h->mem, real) : NULL;

	free(real);
	if (named && h->folder_count < MAX_FOLDERS)
		*at = (folder){ named, kept }, h->folder_count++;
	return kept;
}

/* A socket bound by the name `bound`: wherever it is seen inside. */
static void consider(hider *h, const char *bound)
{
	const place *p = h->p;
	const char *base = path_base(bound);
	const char *dir = real_folder(h, bound, (size_t)(base - bound) - 1);
	struct stat st;

	if (!dir)
		return;
	const char *path = arena_fmt(h->mem, "%s/%s", strcmp(dir, "/") ? dir : "", base);

	if (!path || !path_is_clean_absolute(path))
		return;
	if (p->workspace && path_is_within(path, p->workspace) && lstat(path, &st) == 0 &&
	    S_ISSOCK(st.st_mode))
		hide(h, arena_text(h->mem, path));
	for (size_t i = 0; i < p->rule_count; i++) {
		const sb_file_rule *rule = p->rules[i];
		const char *source = rule->source ? rule->source : rule->path;

		if ((rule->access != SB_FILE_READ && rule->access != SB_FILE_WRITE) ||
		    !path_is_within(path, source) || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
			continue;
		hide(h, arena_fmt(h->mem, "%s%s", rule->path, path + strlen(source)));
	}
}

/* The eighth field of each line: what a socket is bound to. */
static void read_table(hider *h, char *text)
{
	for (char *line = text, *next; line && *line; line = next) {
		char *at = line;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		for (int field = 0; at && field < PATH_FIELD; field++) {
			at += strspn(at, " ");
			at = strchr(at, ' ');
		}
		if (at && at[1] == '/')
			consider(h, at + 1);
	}
}

static bool shows_something(const place *p)
{
	for (size_t i = 0; i < p->rule_count; i++)
		if (p->rules[i]->access == SB_FILE_READ || p->rules[i]->access == SB_FILE_WRITE)
			return true;
	return p->workspace != NULL;
}

static int look_for_sockets(hider *h, sb_error *err)
{
	int FD_AUTO fd = open_regular(AT_FDCWD, "/proc/net/unix");
	int rc = fd < 0 ? -errno : 0;
	buf text;

	buf_init(&text, MAX_TABLE);
	if (!rc)
		rc = fd_read_file(fd, MAX_TABLE, &text);
	if (!rc && text.data)
		read_table(h, text.data);
	buf_release(&text);
	if (rc) /* the plan says that they are hidden */
		return error_errno(err, SB_ERR_BACKEND_UNAVAILABLE, -rc, "files",
				   "cannot tell whose sockets lie in what is to be shown; mount /proc, or show "
				   "no folder: cannot read \"/proc/net/unix\"");
	if (h->mem->failed)
		return error_no_memory(err, "files");
	if (h->too_many)
		return error_set(err, SB_ERR_INVALID_SPEC, "files",
				 "more than %d sockets of running programs lie in what is to be shown, "
				 "\"%s\" is the last; hide their directory, or show less",
				 MAX_HIDDEN, h->found[MAX_HIDDEN - 1]->path);
	return 0;
}

int sockets_hide(place *p, arena *mem, const char *const *named, sb_error *err)
{
	hider h = { .p = p, .mem = mem, .named = named };
	int code = shows_something(p) ? look_for_sockets(&h, err) : 0;

	return code < 0 || !h.count ? code : place_add(p, mem, h.found, h.count, err);
}
