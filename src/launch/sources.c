/* SPDX-License-Identifier: MIT */
/*
 * sources.c - opens what the mount table binds, before any scaffolding could hide it.
 *
 * A privileged supervisor clones the mounts of the descriptors that the host opened: nothing can be
 * swapped in between, and an id-mapped mount can only be made there.  Without privileges the host's
 * mounts are not ours to clone; pid 1 opens the path again in its copy of the mount namespace and
 * takes it only if it is the very file that the host looked at.  The system's own files, which only
 * root could swap, are bound by path when their turn comes.
 */
#include "box.h"
#include "sys.h"

#include <linux/capability.h>
#include <sys/stat.h>

#define CAP_BIT(cap) (1u << ((cap) & 31))

/* Root of an inner user namespace has the capability, and not over mounts that belong to an outer one.
 * The kernel looks at that first, and then at flags that mean nothing. */
static bool may_mount(void)
{
	return syscall(SYS_move_mount, -1, "", -1, "", ~0u) < 0 && errno != EPERM;
}

bool sources_privileged(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2] = { 0 };

	return syscall(SYS_capget, &head, caps) == 0 &&
	       (caps[0].effective & CAP_BIT(CAP_SYS_ADMIN)) && may_mount();
}

static bool has_source(const lp_mount *m)
{
	return m->kind == LP_M_BIND || m->kind == LP_M_DEVICE;
}

/* A privileged supervisor opens these. */
static bool is_outside(const lp_mount *m)
{
	return has_source(m) && (m->flags & (LP_F_FD | LP_F_IDMAP));
}

bool sources_by_path(const lp_mount *m)
{
	const uint32_t flags = LP_F_READONLY | LP_F_NOEXEC | LP_F_NODEV;

	if (m->flags & (LP_F_FD | LP_F_IDMAP))
		return false;
	return m->kind == LP_M_DEVICE || (m->kind == LP_M_BIND && (m->flags & flags) == flags);
}

/* Not there, or not for us: what LP_F_OPTIONAL forgives. */
static bool absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP;
}

int sources_fail(const launch_box *box, const lp_mount *m, int error, launch_failure *f)
{
	if ((m->flags & LP_F_OPTIONAL) && absent(error))
		return 0;
	return launch_fail(f, error, "mount.source", "cannot open \"%s\"",
			   launch_string(&box->view, m->source));
}

/* ---- In the supervisor -------------------------------------------------------------------------- */

static int open_outside(launch_box *box, uint32_t row, int userns_fd, launch_failure *f)
{
	const lp_mount *m = &box->view.mounts[row];
	const char *path = launch_string(&box->view, m->source);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };
	int tree;

	if (m->flags & LP_F_FD)
		tree = tree_clone(box->fds[m->source_fd], "", m->flags);
	else
		tree = tree_clone(AT_FDCWD, path, m->flags);
	if (tree < 0)
		return sources_fail(box, m, errno, f);
	if ((m->flags & LP_F_IDMAP) && userns_fd >= 0 &&
	    sys_mount_setattr(tree, m->flags & LP_F_NOSUBMOUNTS ? 0 : AT_RECURSIVE, &attr) < 0) {
		launch_fail(f, errno, "idmap", "cannot map the owner of \"%s\"", path);
		close(tree);
		return -1;
	}
	box->tree[row] = tree;
	return 0;
}

int sources_open_outside(launch_box *box, int userns_fd, launch_failure *f)
{
	uint32_t row, count = 0;

	for (row = 0; row < box->plan->mount_count; row++) {
		const lp_mount *m = &box->view.mounts[row];

		if (!is_outside(m))
			continue;
		if (++count > LP_MAX_FDS)
			return launch_fail(f, E2BIG, "mount.source", "more than %u opened sources",
					   LP_MAX_FDS);
		if (open_outside(box, row, userns_fd, f) < 0)
			return -1;
	}
	return 0;
}

/* ---- In pid 1 ----------------------------------------------------------------------------------- */

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino && ((x.st_mode ^ y.st_mode) & S_IFMT) == 0;
}

/* The path again, and it must be what the host opened. */
static int open_again(launch_box *box, uint32_t row, launch_failure *f)
{
	const lp_mount *m = &box->view.mounts[row];
	const char *path = launch_string(&box->view, m->source);
	int fd = sys_open_path(AT_FDCWD, path, 0);

	if (fd < 0)
		return launch_fail(f, errno, "mount.source", "cannot open \"%s\" again", path);
	if (!same_file(fd, box->fds[m->source_fd])) {
		close(fd);
		return launch_fail(f, 0, "mount.source",
				   "\"%s\" was swapped for another file while the sandbox started", path);
	}
	box->tree[row] = tree_clone(fd, "", m->flags);
	if (box->tree[row] < 0)
		launch_fail(f, errno, "mount.source", "cannot bind \"%s\"", path);
	close(fd);
	return box->tree[row] < 0 ? -1 : 0;
}

int sources_open_inside(launch_box *box, launch_failure *f)
{
	uint32_t row;

	for (row = 0; row < box->plan->mount_count; row++) {
		const lp_mount *m = &box->view.mounts[row];

		if (!has_source(m) || sources_by_path(m) || (box->privileged && is_outside(m)))
			continue;
		if (m->flags & LP_F_FD) {
			if (open_again(box, row, f) < 0)
				return -1;
			continue;
		}
		box->tree[row] = tree_clone(AT_FDCWD, launch_string(&box->view, m->source), m->flags);
		if (box->tree[row] < 0 && sources_fail(box, m, errno, f) < 0)
			return -1;
	}
	return 0;
}
