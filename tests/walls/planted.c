/* SPDX-License-Identifier: MIT */
/*
 * Leaving behind what gives others the rights of the workspace's owner (root, where root started
 * it): a set-user-id or set-group-id file, by every call that takes a mode.
 *
 * wall privileges
 * fixture planted
 * attempt by_chmod: open without seccomp
 * attempt by_chmod_group: open without seccomp
 * attempt by_fchmod: open without seccomp
 * attempt by_fchmodat: open without seccomp
 * attempt by_fchmodat2: open without seccomp
 * attempt by_open: open without seccomp
 * attempt by_openat: open without seccomp
 * attempt by_openat2: open without seccomp
 * attempt by_creat: open without seccomp
 * attempt by_mknod: open without seccomp
 * attempt by_mknodat: open without seccomp
 * attempt by_tmpfile: open without seccomp
 * attempt by_high_bits: open without seccomp
 */
#include "attempt.h"
#include <linux/openat2.h>
#include <sys/stat.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
enum { PLANTED = S_ISUID | 0755, MAKE = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC };

/* A name that is not there yet: the attempts' own number. */
static const char *name(void)
{
	static char path[4096];

	snprintf(path, sizeof path, "%s/planted-%ld", target("WORKSPACE"), (long)getpid());
	return path;
}

/* Only bits that are there count; a call that lets them fall gives nothing away. */
static int left(long result)
{
	struct stat st;

	if (result < 0)
		return errno;
	if (stat(name(), &st) < 0)
		return errno;
	return st.st_mode & (S_ISUID | S_ISGID) ? 0 : EPERM;
}

static int plain(void)
{
	return open(name(), MAKE, 0755);
}

static int by_chmod(void)
{
	close(plain());
#ifdef SYS_chmod
	return left(syscall(SYS_chmod, name(), PLANTED));
#else
	return NONE;
#endif
}

static int by_chmod_group(void)
{
	close(plain());
	return left(syscall(SYS_fchmodat, AT_FDCWD, name(), S_ISGID | 0755));
}

static int by_fchmod(void)
{
	return left(syscall(SYS_fchmod, plain(), PLANTED));
}

static int by_fchmodat(void)
{
	close(plain());
	return left(syscall(SYS_fchmodat, AT_FDCWD, name(), PLANTED));
}

static int by_fchmodat2(void)
{
	close(plain());
	return left(syscall(SYS_fchmodat2, AT_FDCWD, name(), PLANTED, 0));
}

static int by_open(void)
{
#ifdef SYS_open
	return left(syscall(SYS_open, name(), MAKE, PLANTED));
#else
	return NONE;
#endif
}

static int by_openat(void)
{
	return left(syscall(SYS_openat, AT_FDCWD, name(), MAKE, PLANTED));
}

static int by_openat2(void)
{
	struct open_how how = { .flags = MAKE, .mode = PLANTED };

	return left(syscall(SYS_openat2, AT_FDCWD, name(), &how, sizeof how));
}

static int by_creat(void)
{
#ifdef SYS_creat
	return left(syscall(SYS_creat, name(), PLANTED));
#else
	return NONE;
#endif
}

static int by_mknod(void)
{
#ifdef SYS_mknod
	return left(syscall(SYS_mknod, name(), S_IFREG | PLANTED, 0));
#else
	return NONE;
#endif
}

static int by_mknodat(void)
{
	return left(syscall(SYS_mknodat, AT_FDCWD, name(), S_IFREG | PLANTED, 0));
}

static int by_tmpfile(void)
{
	char self[64];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, target("WORKSPACE"), O_TMPFILE | O_WRONLY, PLANTED);

	if (fd < 0)
		return errno;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return left(linkat(AT_FDCWD, self, AT_FDCWD, name(), AT_SYMLINK_FOLLOW));
}

/* The kernel reads 16 bits of a mode: what stands above them must not hide it. */
static int by_high_bits(void)
{
	close(plain());
	return left(syscall(SYS_fchmodat, AT_FDCWD, name(), 0xffffffff00010000ul | PLANTED));
}

ATTEMPTS({ "by_chmod", by_chmod }, { "by_chmod_group", by_chmod_group }, { "by_fchmod", by_fchmod },
	 { "by_fchmodat", by_fchmodat }, { "by_fchmodat2", by_fchmodat2 }, { "by_open", by_open },
	 { "by_openat", by_openat }, { "by_openat2", by_openat2 }, { "by_creat", by_creat },
	 { "by_mknod", by_mknod }, { "by_mknodat", by_mknodat }, { "by_tmpfile", by_tmpfile },
	 { "by_high_bits", by_high_bits })
