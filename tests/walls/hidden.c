/* SPDX-License-Identifier: MIT */
/*
 * What lies in a writable workspace but is hidden by a rule: read, listed, changed, moved from
 * under its cover, and the same for a folder that a rule gives a tmpfs of its own.
 *
 * wall files
 * fixture hidden
 * hide hidden-file hidden-folder above/between/hidden
 * tmpfs own-folder
 * attempt file_read: open without hide
 * attempt file_by_link: open without hide
 * attempt file_by_proc_root: open without hide
 * attempt file_written: open without hide
 * attempt file_renamed: open without hide
 * attempt file_replaced: open without hide
 * attempt folder_entry: open without hide
 * attempt folder_entry_by_descriptor: open without hide
 * attempt folder_listed: open without hide
 * attempt folder_filled: open without hide
 * attempt folder_renamed: open without hide
 * attempt parents_renamed: open bare
 * attempt own_folder_entry: open without hide
 * attempt own_folder_renamed: open without hide
 */
#include "attempt.h"
#include <dirent.h>

static const char *inside(const char *name)
{
	static char path[2][4096];
	static int turn;

	turn ^= 1;
	snprintf(path[turn], sizeof path[turn], "%s/%s", target("WORKSPACE"), name);
	return path[turn];
}

/* Only the secret itself counts: something empty in its place gives nothing away. */
static int read_secret(int fd)
{
	char text[64] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (n < 0)
		return errno;
	return strstr(text, target("SECRET")) != NULL ? 0 : ENOENT;
}

static int move_and_back(const char *name, const char *away)
{
	if (rename(inside(name), inside(away)) < 0)
		return errno;
	return verdict(rename(inside(away), inside(name)));
}

static int file_read(void)
{
	return read_secret(open(inside("hidden-file"), O_RDONLY | O_CLOEXEC));
}

static int file_by_link(void)
{
	return read_secret(open(inside("link"), O_RDONLY | O_CLOEXEC));
}

static int file_by_proc_root(void)
{
	char path[8192];

	snprintf(path, sizeof path, "/proc/self/root%s", inside("hidden-file"));
	return read_secret(open(path, O_RDONLY | O_CLOEXEC));
}

static int file_written(void)
{
	return try_open(inside("hidden-file"), O_WRONLY);
}

static int file_renamed(void)
{
	return move_and_back("hidden-file", "away");
}

static int file_replaced(void)
{
	int fd = open(inside("new"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return verdict(rename(inside("new"), inside("hidden-file")));
}

static int folder_entry(void)
{
	return read_secret(open(inside("hidden-folder/secret"), O_RDONLY | O_CLOEXEC));
}

static int folder_entry_by_descriptor(void)
{
	int fd = open(inside("hidden-folder"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return read_secret(openat(fd, "../hidden-folder/./secret", O_RDONLY | O_CLOEXEC));
}

static int folder_listed(void)
{
	DIR *dir = opendir(inside("hidden-folder"));

	if (dir == NULL)
		return errno;
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.')
			return 0;
	return ENOENT;
}

static int folder_filled(void)
{
	return try_open(inside("hidden-folder/planted"), O_WRONLY | O_CREAT);
}

static int folder_renamed(void)
{
	return move_and_back("hidden-folder", "away");
}

/* A rule of the next run would find nothing to hide then. */
static int parents_renamed(void)
{
	if (move_and_back("above/between", "above/away") == 0)
		return 0;
	return move_and_back("above", "away");
}

static int own_folder_entry(void)
{
	return read_secret(open(inside("own-folder/secret"), O_RDONLY | O_CLOEXEC));
}

static int own_folder_renamed(void)
{
	return move_and_back("own-folder", "away");
}

ATTEMPTS({ "file_read", file_read }, { "file_by_link", file_by_link },
	 { "file_by_proc_root", file_by_proc_root }, { "file_written", file_written },
	 { "file_renamed", file_renamed }, { "file_replaced", file_replaced },
	 { "folder_entry", folder_entry },
	 { "folder_entry_by_descriptor", folder_entry_by_descriptor },
	 { "folder_listed", folder_listed }, { "folder_filled", folder_filled },
	 { "folder_renamed", folder_renamed }, { "parents_renamed", parents_renamed },
	 { "own_folder_entry", own_folder_entry },
	 { "own_folder_renamed", own_folder_renamed })
