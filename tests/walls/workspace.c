/* SPDX-License-Identifier: MIT */
/*
 * Out of the workspace: by a link planted in it, by "..", by descriptors and a working directory
 * that the caller leaked, and past the names in it that stay protected.
 *
 * wall files
 * fixture canary leak links protected
 * attempt link_to_file: open without root+landlock | shut without landlock
 * attempt link_to_directory: open without root+landlock | shut without landlock
 * attempt relative_link: open without root+landlock | shut without landlock
 * attempt own_link: open without root+landlock as user | open bare as root | shut without landlock
 * attempt dot_dot: open without root+landlock | shut without landlock
 * attempt dot_dot_by_descriptor: open without root+landlock | shut without landlock
 * attempt leaked_file: open bare
 * attempt leaked_directory: open bare
 * attempt leaked_by_proc: open bare
 * attempt parent_descriptors: open bare
 * attempt git_hook: open without protect | needs own-root
 * attempt git_hooks_renamed: open without protect | needs own-root
 * attempt git_replaced: open bare | needs own-root
 * attempt envrc: open without protect | needs own-root
 */
#include "attempt.h"
#include <sys/stat.h>

static const char *inside(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof path, "%s/%s", target("WORKSPACE"), name);
	return path;
}

static int link_to_file(void)
{
	return try_open(inside("link-file"), O_RDONLY);
}

static int link_to_directory(void)
{
	return try_open(inside("link-dir/canary"), O_RDONLY);
}

static int relative_link(void)
{
	return try_open(inside("link-relative"), O_RDONLY);
}

static int own_link(void)
{
	char path[4096];

	snprintf(path, sizeof path, "%s", inside("own-link"));
	unlink(path);
	if (symlink(target("CANARY"), path) < 0)
		return errno;
	return try_open(path, O_RDONLY);
}

static int dot_dot(void)
{
	char path[8192];

	snprintf(path, sizeof path, "%s/../outside/canary", target("WORKSPACE"));
	return try_open(path, O_RDONLY);
}

static int dot_dot_by_descriptor(void)
{
	int fd = open(target("WORKSPACE"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return verdict(openat(fd, "../outside/canary", O_RDONLY | O_CLOEXEC));
}

/* The caller holds descriptors 8 (the canary) and 9 (its directory) open, not close-on-exec. */
static int leaked_file(void)
{
	char text[16];

	return verdict(pread(8, text, sizeof text, 0));
}

static int leaked_directory(void)
{
	return verdict(openat(9, "canary", O_RDONLY | O_CLOEXEC));
}

static int leaked_by_proc(void)
{
	return try_open("/proc/self/fd/9/canary", O_RDONLY);
}

/* Whoever started us may hold them still: its descriptors are files under /proc as well. */
static int parent_descriptors(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/fd/8", (long)getppid());
	return try_open(path, O_RDONLY);
}

static int git_hook(void)
{
	return try_open(inside(".git/hooks/post-checkout"), O_WRONLY | O_CREAT);
}

static int git_hooks_renamed(void)
{
	char from[4096];

	snprintf(from, sizeof from, "%s", inside(".git/hooks"));
	if (rename(from, inside(".git/hooks-away")) < 0)
		return errno;
	return verdict(rename(inside(".git/hooks-away"), from));
}

static int git_replaced(void)
{
	char from[4096];

	snprintf(from, sizeof from, "%s", inside(".git"));
	if (rename(from, inside(".git-away")) < 0)
		return errno;
	return verdict(rename(inside(".git-away"), from));
}

static int envrc(void)
{
	return try_open(inside(".envrc"), O_WRONLY);
}

ATTEMPTS({ "link_to_file", link_to_file }, { "link_to_directory", link_to_directory },
	 { "relative_link", relative_link }, { "own_link", own_link }, { "dot_dot", dot_dot },
	 { "dot_dot_by_descriptor", dot_dot_by_descriptor }, { "leaked_file", leaked_file },
	 { "leaked_directory", leaked_directory }, { "leaked_by_proc", leaked_by_proc },
	 { "parent_descriptors", parent_descriptors }, { "git_hook", git_hook },
	 { "git_hooks_renamed", git_hooks_renamed }, { "git_replaced", git_replaced },
	 { "envrc", envrc })
