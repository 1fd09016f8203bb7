/* SPDX-License-Identifier: MIT */
/*
 * userns.c - the two user namespaces of a box.
 *
 * The outer one owns mounts, network, host name and the rest.  The supervisor writes its maps, one
 * id each: a root caller's guest gets a kernel id that owns nothing, a plain user's its own.  At
 * the end pid 1 goes into a nested one: nobody inside holds a capability over what the outer owns.
 */
#include "box.h"
#include "sys.h"

#include <sched.h>
#include <string.h>

/* Decimal, behind `at`; the new end. */
static char *number(char *at, uint32_t value, char end)
{
	char digits[12], *p = digits + sizeof digits;

	*--p = end;
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	memcpy(at, p, (size_t)(digits + sizeof digits - p));
	return at + (digits + sizeof digits - p);
}

static int write_file(int dir, const char *name, const char *text, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC), error = 0;
	ssize_t n;

	if (fd < 0)
		return errno;
	n = write(fd, text, len);
	if (n != (ssize_t)len)
		error = n < 0 ? errno : EIO;
	close(fd);
	return error;
}

static int write_map(int dir, const char *name, uint32_t inside, uint32_t outside,
		     launch_failure *f)
{
	char text[40], *end = number(text, inside, ' ');
	int error;

	end = number(end, outside, ' ');
	end = number(end, 1, '\n');
	error = write_file(dir, name, text, (size_t)(end - text));
	if (error)
		return launch_fail(f, error, "userns", "cannot write \"%s\" (%u is to be %u outside)",
				   name, inside, outside);
	return 0;
}

static int write_maps(int dir, bool deny_groups, const uint32_t uid[2], const uint32_t gid[2],
		      launch_failure *f)
{
	int error = deny_groups ? write_file(dir, "setgroups", "deny", 4) : 0;

	if (error)
		return launch_fail(f, error, "userns", "cannot write \"setgroups\"");
	if (write_map(dir, "gid_map", gid[0], gid[1], f) < 0)
		return -1;
	return write_map(dir, "uid_map", uid[0], uid[1], f);
}

bool userns_oom_later(const launch_box *box)
{
	return box->privileged && (box->plan->steps & LP_USERNS) && box->plan->cgroup_kind != LP_CG_NONE;
}

int userns_map(const launch_box *box, int *userns_fd, bool want_fd, launch_failure *f)
{
	const lp_plan *p = box->plan;
	const uint32_t uid[2] = { p->uid_outer, p->uid_outside };
	const uint32_t gid[2] = { p->gid_outer, p->gid_outside };
	char path[32] = "/proc/", *end = number(path + 6, (uint32_t)box->pid1, 0);
	int dir = openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC), rc;

	(void)end;
	if (dir < 0)
		return launch_fail(f, errno, "userns", "cannot open \"%s\"", path);
	if (!userns_oom_later(box))
		spawn_prefer_for_oom(dir);
	rc = write_maps(dir, !(p->steps & LP_OWN_GROUP), uid, gid, f);
	if (!rc && want_fd) {
		*userns_fd = openat(dir, "ns/user", O_RDONLY | O_CLOEXEC);
		if (*userns_fd < 0)
			rc = launch_fail(f, errno, "userns", "cannot open \"%s/ns/user\"", path);
	}
	close(dir);
	return rc;
}

void userns_prefer_for_oom(const launch_box *box)
{
	char path[32] = "/proc/";
	int dir;

	number(path + 6, (uint32_t)box->pid1, 0);
	dir = openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		spawn_prefer_for_oom(dir);
		close(dir);
	}
}

int userns_nest(const launch_box *box, int proc_self, launch_failure *f)
{
	const lp_plan *p = box->plan;
	const uint32_t uid[2] = { p->uid_inside, p->uid_outer };
	const uint32_t gid[2] = { p->gid_inside, p->gid_outer };

	if (unshare(CLONE_NEWUSER) < 0)
		return launch_fail(f, errno, "userns.nested", "cannot make the nested user namespace");
	return write_maps(proc_self, true, uid, gid, f);
}
