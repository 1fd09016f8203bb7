/* SPDX-License-Identifier: MIT */
/*
 * Learning about host files without opening them: that they exist, their size, owner and times,
 * what happens to them, and what the mount table tells of other places.
 *
 * wall files
 * fixture canary
 * attempt stat_canary: open without root+landlock | shut without landlock | needs own-root
 * attempt statx_canary: open without root+landlock | shut without landlock | needs own-root
 * attempt access_canary: open without root+landlock | shut without landlock | needs own-root
 * attempt watch_canary: open without root+landlock | shut without landlock
 * attempt attributes_of_canary: open without root+landlock | shut without landlock | needs own-root
 * attempt statfs_of_canary: open without root+landlock | shut without landlock | needs own-root
 * attempt change_into: open without root+landlock | shut without landlock | needs own-root
 * attempt cgroups_in_mountinfo: open without root+landlock | shut without landlock
 * attempt stat_caller_home: open without root+landlock | shut without landlock | needs own-root
 */
#include "attempt.h"
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

static int stat_canary(void)
{
	struct stat st;

	return verdict(stat(target("CANARY"), &st));
}

static int statx_canary(void)
{
	struct statx st;

	return verdict(statx(AT_FDCWD, target("CANARY"), 0, STATX_BASIC_STATS, &st));
}

static int access_canary(void)
{
	return verdict(access(target("CANARY"), F_OK));
}

static int watch_canary(void)
{
	int fd = inotify_init1(IN_CLOEXEC);

	if (fd < 0)
		return errno;
	return verdict(inotify_add_watch(fd, target("CANARY"), IN_ALL_EVENTS));
}

static int attributes_of_canary(void)
{
	char names[256];

	return verdict(listxattr(target("CANARY"), names, sizeof names));
}

static int statfs_of_canary(void)
{
	struct statfs st;

	return verdict(statfs(target("CANARY"), &st));
}

static int change_into(void)
{
	return verdict(chdir(target("OUTSIDE")));
}

/* A mount of the host that is no part of the guest's view. */
static int cgroups_in_mountinfo(void)
{
	char line[8192];
	FILE *f = fopen("/proc/self/mountinfo", "re");
	int found = 0;

	if (f == NULL)
		return errno;
	while (fgets(line, sizeof line, f) != NULL)
		found |= strstr(line, " /sys/fs/cgroup") != NULL;
	fclose(f);
	return found ? 0 : ENOENT;
}

static int stat_caller_home(void)
{
	struct stat st;
	char path[4096];

	snprintf(path, sizeof path, "%s/.", target("OUTSIDE"));
	return verdict(lstat(path, &st));
}

ATTEMPTS({ "stat_canary", stat_canary }, { "statx_canary", statx_canary },
	 { "access_canary", access_canary }, { "watch_canary", watch_canary },
	 { "attributes_of_canary", attributes_of_canary },
	 { "statfs_of_canary", statfs_of_canary }, { "change_into", change_into },
	 { "cgroups_in_mountinfo", cgroups_in_mountinfo }, { "stat_caller_home", stat_caller_home })
