/* SPDX-License-Identifier: MIT */
/*
 * sys.h - system calls and constants that musl or Debian 12's kernel headers do not have.
 *
 * <linux/mount.h> and <sys/mount.h> cannot be included together: this header stands for both.
 */
#ifndef SB_LAUNCH_SYS_H
#define SB_LAUNCH_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef SYS_fsopen
#define SYS_fsopen 430
#endif
#ifndef SYS_fsconfig
#define SYS_fsconfig 431
#endif
#ifndef SYS_fsmount
#define SYS_fsmount 432
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif
/* <sys/mount.h> and <linux/mount.h> both define these as what they are in every kernel. */
#ifndef MS_BIND
#define MS_BIND 4096ul
#endif
#ifndef MS_REC
#define MS_REC 16384ul
#endif
#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif
#ifndef MOVE_MOUNT_T_EMPTY_PATH
#define MOVE_MOUNT_T_EMPTY_PATH 0x00000040
#endif

/* Each answers as the C library would: -1 and errno. */
static inline int sys_open_tree(int dir, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

/* Both ends are descriptors. */
static inline int sys_move_mount(int tree, int target)
{
	return (int)syscall(SYS_move_mount, tree, "", target, "",
			    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* Over what stands at (dir, name), which is no link. */
static inline int sys_move_mount_to(int tree, int dir, const char *name)
{
	return (int)syscall(SYS_move_mount, tree, "", dir, name, MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int sys_mount(const char *source, const char *target, const char *type,
			    unsigned long flags, const char *data)
{
	return (int)syscall(SYS_mount, source, target, type, flags, data);
}

static inline int sys_mount_setattr(int tree, unsigned int flags, struct mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | flags, attr, sizeof *attr);
}

static inline int sys_fsopen(const char *type)
{
	return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig_text(int fs, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0);
}

/* Superblock made, mount made; closes fs. */
static inline int sys_fsmount(int fs, unsigned int attributes)
{
	int mount = (int)syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), error;

	if (!mount)
		mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
	error = errno;
	close(fs);
	errno = error;
	return mount;
}

/* O_PATH, without magic links. */
static inline int sys_open_path(int dir, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS | resolve };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static inline int sys_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

#endif /* SB_LAUNCH_SYS_H */
