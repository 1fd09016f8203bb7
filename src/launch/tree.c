/* SPDX-License-Identifier: MIT */
/* tree.c - detached mounts, held by descriptors: cloned, restricted, made, put somewhere. */
#include "box.h"
#include "sys.h"

int tree_clone(int dir, const char *path, uint32_t flags)
{
	unsigned int how = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;

	if (!(flags & LP_F_NOSUBMOUNTS))
		how |= AT_RECURSIVE;
	return sys_open_tree(dir, path, how);
}

int tree_restrict(int tree, uint32_t flags, bool devices)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID };

	if (!devices)
		attr.attr_set |= MOUNT_ATTR_NODEV;
	if (flags & LP_F_READONLY)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (flags & LP_F_NOEXEC)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	return sys_mount_setattr(tree, AT_RECURSIVE, &attr);
}

int tree_private(launch_failure *f)
{
	struct mount_attr attr = { .propagation = MS_PRIVATE };

	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr) < 0)
		return launch_fail(f, errno, "userns",
				   "cannot make the mounts private: the user namespace has no rights");
	return 0;
}

int tree_harden(launch_failure *f)
{
	struct mount_attr all = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
		MOUNT_ATTR_NOEXEC };
	struct mount_attr proc = { .attr_clr = MOUNT_ATTR_RDONLY };

	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &all, sizeof all) < 0)
		return launch_fail(f, errno, "mount", "cannot make the mounts read-only");
	/* the maps of the nested user namespace are written through it */
	syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &proc, sizeof proc);
	return 0;
}

static char *decimal(char *end, uint64_t v)
{
	*--end = 0;
	do
		*--end = (char)('0' + v % 10);
	while (v /= 10);
	return end;
}

static char *append(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	return at;
}

void tree_tmpfs_options(char *out, uint64_t bytes, uint64_t nodes, const char *mode)
{
	char digits[24];

	out = append(out, "size=");
	out = append(out, decimal(digits + sizeof digits, bytes));
	out = append(out, ",nr_inodes=");
	out = append(out, decimal(digits + sizeof digits, nodes));
	out = append(out, ",mode=");
	*append(out, mode) = 0;
}

/* A tmpfs, detached. */
int tree_tmpfs(uint64_t bytes, uint64_t nodes, const char *mode)
{
	const struct { const char *key; uint64_t value; } numbers[] = { { "size", bytes },
		{ "nr_inodes", nodes } };
	int fs = sys_fsopen("tmpfs"), error;
	char digits[24];
	size_t i;

	for (i = 0; fs >= 0 && i < 2; i++)
		if (sys_fsconfig_text(fs, numbers[i].key, decimal(digits + sizeof digits,
								  numbers[i].value)) < 0)
			goto fail;
	if (fs < 0 || sys_fsconfig_text(fs, "mode", mode) < 0)
		goto fail;
	return sys_fsmount(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
fail:
	error = errno;
	if (fs >= 0)
		close(fs);
	errno = error;
	return -1;
}
