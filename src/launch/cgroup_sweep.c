/* SPDX-License-Identifier: MIT */
/*
 * cgroup_sweep.c - removes the cgroup directories of owners that were killed before they could.
 *
 * A directory's name tells its owner: pid and start time, so that a pid used again is not taken for
 * it.  Only empty groups can be removed (rmdir is EBUSY else): a running one is never hurt.
 */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "sandbox-"

uint64_t cgroup_start_time(int pid)
{
	char path[32], text[1024], *at;
	ssize_t n;
	int fd, field;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ')'); /* the end of field 2, which may hold anything */
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* "sandbox-PID-START" or "sandbox-PID-START-anything", and no such process. */
static bool owner_is_dead(const char *name)
{
	unsigned long long start;
	unsigned long pid;
	char *end;

	if (strncmp(name, PREFIX, sizeof PREFIX - 1))
		return false;
	name += sizeof PREFIX - 1;
	if (*name < '1' || *name > '9')
		return false;
	pid = strtoul(name, &end, 10);
	if (*end != '-' || pid > INT32_MAX || end[1] < '1' || end[1] > '9')
		return false;
	errno = 0;
	start = strtoull(end + 1, &end, 10);
	if ((*end && *end != '-') || errno)
		return false;
	return cgroup_start_time((int)pid) != start;
}

uint32_t cgroup_sweep(const char *parent)
{
	uint32_t removed = 0;
	struct dirent *entry;
	DIR *dir = opendir(parent);

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (owner_is_dead(entry->d_name) &&
		    !unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR))
			removed++;
	closedir(dir);
	return removed;
}
