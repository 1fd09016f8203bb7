/* SPDX-License-Identifier: MIT */
/*
 * More on disk than the quota of a code run: 40 MiB under a quota of 8 MiB, in each place that can
 * be written, and more files than permitted.
 *
 * wall disk
 * options --disk 8M --mem 400M --timeout 80s --cpu 60s
 * each
 * code-run
 * attempt work: open without disk | code fs_quota
 * attempt out: open without disk | code fs_quota
 * attempt tmp: open without disk | code fs_quota
 * attempt shm: open without disk | code fs_quota
 * attempt home: open without disk | code fs_quota
 * attempt spread: open without disk | code fs_quota
 * attempt sparse: open without disk | code fs_quota
 * attempt allocated: open without disk | code fs_quota
 * attempt deleted_but_open: open without disk
 * attempt many_files: open without disk | code too_many_files fs_quota
 * attempt many_links: open without disk | code too_many_files fs_quota
 */
#include "attempt.h"
#include <sys/stat.h>

enum { MIB = 1 << 20, WANTED = 40 };

static int fill_to(int fd, int mib)
{
	static char chunk[MIB];

	memset(chunk, 'x', sizeof chunk);
	for (int i = 0; i < mib; i++) {
		if (write(fd, chunk, sizeof chunk) != (ssize_t)sizeof chunk)
			return ENOSPC;
	}
	return 0;
}

static int fill_in(const char *dir, int mib)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/hog", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? errno : fill_to(fd, mib);
}

static int work(void)
{
	return fill_in("/work", WANTED);
}

static int out(void)
{
	return fill_in("/out", WANTED);
}

static int tmp(void)
{
	return fill_in("/tmp", WANTED);
}

static int shm(void)
{
	return fill_in("/dev/shm", WANTED);
}

static int home(void)
{
	return fill_in(target("HOME"), WANTED);
}

/* No single place is above the quota. */
static int spread(void)
{
	const char *const places[] = { "/work", "/out", "/tmp", "/dev/shm", target("HOME") };
	int got = 0;

	for (int i = 0; i < 5 && got == 0; i++)
		got = fill_in(places[i], 6);
	return got;
}

/* Holes cost nothing; the pages written into them do. */
static int sparse(void)
{
	int fd = open("/work/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	for (long i = 0; i < (long)WANTED * 256; i++) {
		if (pwrite(fd, "x", 1, i * 65536) != 1)
			return errno;
	}
	return 0;
}

static int allocated(void)
{
	int fd = open("/work/allocated", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	int got = verdict(fallocate(fd, 0, 0, (off_t)WANTED * MIB));
	if (got != 0)
		fill_to(fd, WANTED);
	return got;
}

static int deleted_but_open(void)
{
	int fd = open("/work/deleted", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	unlink("/work/deleted");
	return fill_to(fd, WANTED);
}

static int many_files(void)
{
	char path[64];

	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof path, "/work/f%d", i);
		int got = try_open(path, O_WRONLY | O_CREAT);
		if (got != 0)
			return got;
	}
	return 0;
}

static int many_links(void)
{
	char path[64];

	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof path, "/work/l%d", i);
		if (symlink("a text that is too long to be kept in the inode itself and takes room", path) < 0)
			return errno;
	}
	return 0;
}

ATTEMPTS({ "work", work }, { "out", out }, { "tmp", tmp }, { "shm", shm }, { "home", home },
	 { "spread", spread }, { "sparse", sparse }, { "allocated", allocated },
	 { "deleted_but_open", deleted_but_open }, { "many_files", many_files },
	 { "many_links", many_links })
