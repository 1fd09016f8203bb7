/* SPDX-License-Identifier: MIT */
/*
 * Device nodes: making one in any writable place, and using one that lies in the workspace (made by
 * the driver when it is root: a copy of /dev/zero, harmless for the control).
 *
 * wall files
 * fixture device
 * attempt make_disk: open bare as root
 * attempt make_zero: open bare as root
 * attempt make_in_tmp: open bare as root
 * attempt make_in_shm: open bare as root
 * attempt use_node: open bare | only root
 * attempt disk_ioctl: open bare as root
 * attempt fuse: open bare as root
 * attempt tun: open bare as root
 * attempt kvm: open bare as root
 * attempt host_pts: open bare | needs own-root
 * attempt all_terminals: open bare
 * attempt console: open bare as root
 */
#include "attempt.h"
#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int make(const char *dir, mode_t kind, dev_t device)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/.node-%ld", dir, (long)getpid());
	int got = verdict(mknod(path, kind | 0600, device));
	if (got == 0)
		unlink(path);
	return got;
}

static int make_disk(void)
{
	return make(target("WORKSPACE"), S_IFBLK, makedev(254, 0));
}

static int make_zero(void)
{
	return make(target("WORKSPACE"), S_IFCHR, makedev(1, 5));
}

static int make_in_tmp(void)
{
	return make("/tmp", S_IFCHR, makedev(1, 5));
}

static int make_in_shm(void)
{
	return make("/dev/shm", S_IFCHR, makedev(1, 5));
}

static int use_node(void)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/node", target("WORKSPACE"));
	return try_open(path, O_RDONLY);
}

static int disk_ioctl(void)
{
	return try_open("/dev/loop-control", O_RDWR);
}

static int fuse(void)
{
	return try_open("/dev/fuse", O_RDWR);
}

static int tun(void)
{
	int got = try_open("/dev/net/tun", O_RDWR);

	return got == ENOENT ? try_open("/dev/fuse", O_RDWR) : got;
}

static int kvm(void)
{
	int got = try_open("/dev/kvm", O_RDWR);

	return got == ENOENT || got == ENODEV ? try_open("/dev/loop0", O_RDONLY) : got;
}

/* Terminals of the host: a fresh devpts shows none of them. */
static int host_pts(void)
{
	char path[64];

	snprintf(path, sizeof path, "/dev/pts/%s", target("PTS"));
	return access(path, F_OK) == 0 ? 0 : errno;
}

static int console(void)
{
	int got = try_open("/dev/console", O_RDWR);

	return got == ENXIO || got == EIO || got == ENODEV || got == ENOENT ? try_open("/dev/tty0", O_RDONLY) :
									      got;
}

/* Of 3072 that a machine has for its containers; 200 hurt nobody. */
static int all_terminals(void)
{
	for (int i = 0; i < 200; i++)
		if (open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) < 0)
			return errno;
	return 0;
}

ATTEMPTS({ "make_disk", make_disk }, { "make_zero", make_zero }, { "make_in_tmp", make_in_tmp },
	 { "make_in_shm", make_in_shm }, { "use_node", use_node },
	 { "disk_ioctl", disk_ioctl }, { "fuse", fuse }, { "tun", tun }, { "kvm", kvm },
	 { "host_pts", host_pts }, { "all_terminals", all_terminals }, { "console", console })
