/* SPDX-License-Identifier: MIT */
/*
 * Changing what is not the guest's: contents, names and metadata of a world-writable host file
 * (so that nothing but the wall says no), and the system's own directories.
 *
 * wall files
 * fixture canary peer
 * attempt overwrite: open without root+landlock | shut without landlock
 * attempt append: open without root+landlock | shut without landlock
 * attempt truncate: open without root+landlock | shut without landlock
 * attempt create: open without root+landlock | shut without landlock
 * attempt remove: open without root+landlock | shut without landlock
 * attempt rename: open without root+landlock | shut without landlock
 * attempt link_out: open without root+landlock as user | open bare as root | shut without landlock
 * attempt mode: open without root+landlock as user | open bare as root | shut without landlock
 * attempt owner: open without root+landlock as user | open bare as root | shut without landlock
 * attempt times: open without root+landlock as user | open bare as root | shut without landlock
 * attempt attribute: open without root+landlock as user | open bare as root | shut without landlock
 * attempt lock_flags: open bare as root | only root
 * attempt etc: open bare as root
 * attempt usr: open bare as root
 * attempt top: open bare as root
 * attempt etc_by_peer_root: open bare as root
 * attempt write_by_proc_root: open without root+landlock | shut without landlock
 */
#include "attempt.h"
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* Everything aims at spare files beside the canary, which the control may well change. */
static const char *spare(void)
{
	return target("SPARE");
}

static const char *beside(const char *name)
{
	static char path[2][4096];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", target("OUTSIDE"), name);
	return path[turn];
}

static int overwrite(void)
{
	int fd = open(spare(), O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return write(fd, "gone", 4) == 4 ? 0 : errno;
}

static int append(void)
{
	return try_open(spare(), O_WRONLY | O_APPEND);
}

static int do_truncate(void)
{
	return verdict(truncate(spare(), 1));
}

static int create(void)
{
	return try_open(beside("made"), O_WRONLY | O_CREAT);
}

static int do_remove(void)
{
	return verdict(unlink(beside("to-remove")));
}

static int do_rename(void)
{
	return verdict(rename(beside("to-rename"), beside("renamed")));
}

static int link_out(void)
{
	char own[4096];

	snprintf(own, sizeof own, "%s/link-target", target("WORKSPACE"));
	if (try_open(own, O_WRONLY | O_CREAT) != 0)
		return errno;
	/* another mount may answer EXDEV on the host as well: a symbolic link does for the control */
	if (link(own, beside("linked")) == 0)
		return 0;
	return verdict(symlink(own, beside("linked-softly")));
}

static int mode(void)
{
	return verdict(chmod(spare(), 0700));
}

static int owner(void)
{
	return verdict(chown(spare(), (uid_t)-1, getgid()));
}

static int times(void)
{
	const struct timespec when[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	return verdict(utimensat(AT_FDCWD, spare(), when, 0));
}

static int attribute(void)
{
	if (setxattr(spare(), "user.mark", "1", 1, 0) == 0)
		return 0;
	return errno == EOPNOTSUPP ? NONE : errno;
}

static int lock_flags(void)
{
	long flags = 0;
	int fd = open(spare(), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return errno == ENOTTY || errno == EOPNOTSUPP ? NONE : errno;
	return verdict(ioctl(fd, FS_IOC_SETFLAGS, &flags));
}

/* Made and at once removed: the control leaves nothing in a system directory. */
static int make_in(const char *dir)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/.wall-test-%ld", dir, (long)getpid());
	int got = try_open(path, O_WRONLY | O_CREAT | O_EXCL);
	if (got == 0)
		unlink(path);
	return got;
}

static int etc(void)
{
	return make_in("/etc");
}

static int usr(void)
{
	return make_in("/usr");
}

static int top(void)
{
	return make_in("/");
}

static int etc_by_peer_root(void)
{
	char dir[64];

	snprintf(dir, sizeof dir, "/proc/%d/root/etc", number("PEER"));
	return make_in(dir);
}

static int write_by_proc_root(void)
{
	char path[4096];

	snprintf(path, sizeof path, "/proc/self/root%s", spare());
	return try_open(path, O_WRONLY);
}

ATTEMPTS({ "overwrite", overwrite }, { "append", append }, { "truncate", do_truncate },
	 { "create", create }, { "remove", do_remove }, { "rename", do_rename },
	 { "link_out", link_out }, { "mode", mode }, { "owner", owner }, { "times", times },
	 { "attribute", attribute }, { "lock_flags", lock_flags }, { "etc", etc }, { "usr", usr },
	 { "top", top }, { "etc_by_peer_root", etc_by_peer_root },
	 { "write_by_proc_root", write_by_proc_root })
