/* SPDX-License-Identifier: MIT */
/*
 * Mounting: the old call and the new ones, pivot_root, chroot, and lifting what lies on top.
 *
 * wall files
 * attempt mount_tmpfs: open bare as root
 * attempt mount_proc: open bare as root
 * attempt bind: open bare as root
 * attempt remount_root: open bare as root
 * attempt unmount_proc: open bare as root
 * attempt fsopen: open bare as root
 * attempt fspick: open bare as root
 * attempt open_tree_clone: open bare as root
 * attempt move_mount: open bare as root
 * attempt mount_setattr: open bare as root
 * attempt pivot: open bare as root
 * attempt change_root: open bare as root
 * attempt swap: open bare as root
 */
#include "attempt.h"
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif

/* Harmless on the host, too: everything happens in a mount namespace of its own, where the caller
 * may make one.  Inside the walls the call fails and the attempt goes on in the guest's. */
static void aside(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int mount_tmpfs(void)
{
	aside();
	return verdict(mount("x", "/tmp", "tmpfs", 0, "size=64k"));
}

static int mount_proc(void)
{
	aside();
	return verdict(mount("x", "/tmp", "proc", 0, NULL));
}

static int bind(void)
{
	aside();
	return verdict(mount("/usr", "/tmp", NULL, MS_BIND, NULL));
}

/* The step before writing to a read-only system. */
static int remount_root(void)
{
	aside();
	return verdict(mount("none", "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}

/* What hides the masked files of /proc. */
static int unmount_proc(void)
{
	aside();
	return verdict(umount2("/proc", MNT_DETACH));
}

static int do_fsopen(void)
{
	return verdict(syscall(SYS_fsopen, "tmpfs", 0));
}

static int do_fspick(void)
{
	return verdict(syscall(SYS_fspick, AT_FDCWD, "/proc", 0));
}

static int open_tree_clone(void)
{
	aside();
	return verdict(syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE));
}

static int do_move_mount(void)
{
	aside();
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE);
	if (fd < 0)
		fd = open("/usr", O_PATH | O_CLOEXEC);
	return verdict(syscall(SYS_move_mount, fd, "", AT_FDCWD, "/tmp", 4));
}

static int do_mount_setattr(void)
{
	struct {
		uint64_t set, clear, propagation, userns;
	} attributes = { .clear = 1 };

	aside();
	return verdict(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes, sizeof attributes));
}

/* Fails in any case with these arguments; what counts is whether the kernel looked at them. */
static int pivot(void)
{
	aside();
	return reached(syscall(SYS_pivot_root, "/nowhere", "/nowhere"));
}

static int change_root(void)
{
	return verdict(chroot("/usr"));
}

static int swap(void)
{
	return reached(swapon("/nowhere", 0));
}

ATTEMPTS({ "mount_tmpfs", mount_tmpfs }, { "mount_proc", mount_proc }, { "bind", bind },
	 { "remount_root", remount_root }, { "unmount_proc", unmount_proc },
	 { "fsopen", do_fsopen }, { "fspick", do_fspick }, { "open_tree_clone", open_tree_clone },
	 { "move_mount", do_move_mount }, { "mount_setattr", do_mount_setattr },
	 { "pivot", pivot }, { "change_root", change_root }, { "swap", swap })
