/* SPDX-License-Identifier: MIT */
/*
 * workspace.c - what may be a workspace: a project's folder, and not what a guest must never have
 * whole, however it was come by (most are simply the current directory of a caller who did not
 * think of it): the system, a home directory, the kernel's file systems, our own files.
 */
#include "session.h"
#include "places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PASSWD = 1 << 20 };

/* With all that is below them, and by themselves alone: projects do lie in /usr/src or /var/www. */
static const char *const system_trees[] = { "/boot",	   "/etc",	   "/usr/bin",
					    "/usr/lib",	   "/usr/lib32",   "/usr/lib64",
					    "/usr/libx32", "/usr/libexec", "/usr/sbin",
					    NULL };
static const char *const system_tops[] = { "/home",	 "/run", "/usr",     "/usr/local",
					   "/usr/share", "/var", "/var/lib", NULL };

/* ---- home --------------------------------------------------------------------------------- */

static const char *list_value(const char *const *list, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; list && list[i]; i++)
		if (!strncmp(list[i], name, len) && list[i][len] == '=')
			return list[i] + len + 1;
	return NULL;
}

/* The sixth field of that uid's line, or NULL. */
static const char *passwd_home(arena *mem, uid_t uid)
{
	const char *home = NULL;
	char want[24];
	buf text;
	int fd = open_regular(AT_FDCWD, "/etc/passwd");

	if (fd < 0)
		return NULL;
	buf_init(&text, MAX_PASSWD);
	snprintf(want, sizeof want, "%u", (unsigned)uid);
	if (fd_read_file(fd, MAX_PASSWD, &text) == 0 && text.data)
		for (char *line = text.data, *next; line && !home; line = next) {
			char *field[7] = { line };
			int n = 1;

			next = strchr(line, '\n');
			if (next)
				*next++ = 0;
			for (char *c = line; *c && n < 7; c++)
				if (*c == ':') {
					*c = 0;
					field[n++] = c + 1;
				}
			if (n == 7 && !strcmp(field[2], want))
				home = arena_text(mem, field[5]);
		}
	buf_release(&text);
	fd_close(&fd);
	return home;
}

/* With every link resolved, in the arena; as it is if that cannot be done. */
static const char *resolved(arena *mem, const char *path)
{
	char *real = realpath(path, NULL);
	const char *out = real ? arena_text(mem, real) : NULL;

	free(real);
	return out ? out : path;
}

/* A caller may have no $HOME (a cron job, env -i), or one that is not there (a service). */
const char *workspace_home(arena *mem, const char *const *environ_now)
{
	const char *home = list_value(environ_now, "HOME");

	if (!home || *home != '/' || access(home, F_OK) < 0)
		home = passwd_home(mem, getuid());
	if (!home || *home != '/')
		return NULL;
	return resolved(mem, home);
}

/* ---- what is allowed ---------------------------------------------------------------------- */

static int refuse(sb_error *err, const char *path, const char *what)
{
	return error_set(err, SB_ERR_FORBIDDEN, "workspace",
			 "\"%s\" cannot be the workspace, it is %s; go to a project directory, or "
			 "name one or none with --workspace",
			 path, what);
}

int workspace_allowed(const char *path, const char *home, const sb_sandbox *sandbox, sb_error *err)
{
	const char *const ours[] = { sandbox->cache_dir, sandbox->helper_dir, SB_LIBEXEC };

	if (!strcmp(path, "/"))
		return refuse(err, path, "the whole system");
	if (home && !strcmp(path, home))
		return refuse(err, path, "your home directory");
	if (home && path_is_within(home, path))
		return refuse(err, path, "above your home directory");
	if (path_is_within(path, "/proc") || path_is_within(path, "/sys") || !strcmp(path, "/dev"))
		return refuse(err, path, "not a place for files");
	for (size_t i = 0; i < BASE_ARRAY_LEN(ours); i++)
		if (ours[i] && path_is_within(path, ours[i]))
			return refuse(err, path, "where this program keeps its own files");
	for (size_t i = 0; system_trees[i]; i++)
		if (path_is_within(path, system_trees[i]))
			return refuse(err, path, "part of the system");
	for (size_t i = 0; system_tops[i]; i++)
		if (!strcmp(path, system_tops[i]))
			return refuse(err, path, "part of the system");
	return 0;
}

/* Root in somebody's home, as under sudo: the guest would act as the owner of all that is there. */
int workspace_owner_allowed(const char *path, int fd, arena *mem, sb_error *err)
{
	struct stat st;

	if (fstat(fd, &st) || st.st_uid == geteuid())
		return 0;
	const char *home = passwd_home(mem, st.st_uid);

	if (home && *home == '/' && !strcmp(path, resolved(mem, home)))
		return refuse(err, path, "the home directory of its owner");
	return 0;
}
