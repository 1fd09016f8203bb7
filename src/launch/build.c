/* SPDX-License-Identifier: MIT */
/*
 * build.c - pid 1 puts up the walls, in the only order that works.
 *
 * Sources are opened before anything is mounted, and as the caller; then pid 1 takes the guest's id,
 * builds the mounts, enters the nested user namespace (only a process that the kernel does not call
 * chrooted may: the old root is off by then), drops every privilege, and confines itself last.  Two
 * messages of the supervisor come in between: that it may go on, and the cgroups.
 */
#include "box.h"
#include "sys.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static int wait_for_go(launch_box *box, launch_failure *f)
{
	int fds[LP_MAX_FDS];
	uint32_t count, i;
	link_go go;
	long n = wire_receive(box->link, &go, sizeof go, fds, LP_MAX_FDS, &count);

	if (n == 0)
		_exit(1);
	if (n != sizeof go || go.count != count)
		return launch_fail(f, n < 0 ? (int)-n : EPROTO, "protocol", "no word of the supervisor");
	for (i = 0; i < count; i++)
		box->tree[go.row[i]] = fds[i];
	box->pid1 = go.pid1;
	return 0;
}

/* The supervisor has made them beside us. */
static int wait_for_cgroups(launch_box *box, launch_failure *f)
{
	static link_cgroup message;
	int *at[LP_MAX_FDS], fds[LP_MAX_FDS];
	uint32_t count, i;
	long n;

	if (box->plan->cgroup_kind == LP_CG_NONE)
		return 0;
	n = wire_receive(box->link, &message, sizeof message, fds, LP_MAX_FDS, &count);
	if (n == 0)
		_exit(1);
	if (n != sizeof message || wire_cgroup_fds(&message.cgroup, at) != count)
		return launch_fail(f, n < 0 ? (int)-n : EPROTO, "protocol", "no cgroups of the supervisor");
	for (i = 0; i < count; i++)
		*at[i] = fds[i];
	box->cgroup = message.cgroup;
	return 0;
}

static void close_sources(launch_box *box)
{
	while (box->fd_count)
		close(box->fds[--box->fd_count]);
}

/* What needs no map of ids: it is done while the supervisor writes them. */
static int build_sources(launch_box *box, launch_failure *f)
{
	uint64_t steps = box->plan->steps;

	if ((steps & LP_MOUNTNS) && tree_private(f) < 0)
		return -1;
	if ((steps & LP_ROOT) && (sources_open_inside(box, f) < 0 || tree_harden(f) < 0))
		return -1;
	close_sources(box);
	if (!box->own_pids)
		box->proc = openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static int build_world(launch_box *box, launch_failure *f)
{
	const lp_plan *p = box->plan;
	const char *name = launch_string(&box->view, p->hostname);
	uint64_t steps = p->steps;

	if (privileges_take_ids(box, p->uid_outer, p->gid_outer, f) < 0)
		return -1;
	box->held |= steps & LP_OWN_GROUP;
	if ((steps & LP_ROOT) && root_build(box, f) < 0)
		return -1;
	if (aside_join(f) < 0)
		return -1;
	if ((steps & LP_ROOT) && (steps & LP_SAMPLE) && box->own_pids && p->cgroup_kind == LP_CG_NONE)
		box->own_proc = openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if ((steps & LP_UTSNS) && *name && privileges_hostname(name, f) < 0)
		return -1;
	if ((steps & LP_LO_UP) && !(box->held & LP_LO_UP) && privileges_loopback(f) < 0)
		return -1;
	box->held |= steps & LP_LO_UP;
	return 0;
}

/* The maps are written through a /proc that the new root may not have. */
static int build_nested(launch_box *box, int proc_self, launch_failure *f)
{
	if (!(box->plan->steps & LP_NESTED_USERNS))
		return 0;
	if (proc_self < 0)
		return launch_fail(f, ENOENT, "userns.nested", "cannot open \"/proc/self\"");
	/* The files belong to us only while we are dumpable. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return launch_fail(f, errno, "userns.nested", "cannot become dumpable");
	if (userns_nest(box, proc_self, f) < 0)
		return -1;
	box->held |= LP_NESTED_USERNS;
	return 0;
}

static int build_walls(launch_box *box, int proc_self, launch_failure *f)
{
	uint64_t steps = box->plan->steps;
	struct pollfd link = { .fd = box->link, .events = 0 };

	umask(0);
	if (build_world(box, f) < 0 || build_nested(box, proc_self, f) < 0)
		return -1;
	if (proc_self >= 0)
		close(proc_self);
	if ((steps & LP_NO_CAPS) && privileges_drop(box, f) < 0)
		return -1;
	if (privileges_seal(box, f) < 0 || reap_signals(box, f) < 0 || spawn_init(box, f) < 0)
		return -1;
	box->held |= steps & (LP_NO_CAPS | LP_NO_NEW_PRIVS | LP_UNDUMPABLE | LP_CLOSE_FDS | LP_SAMPLE);
	/* The supervisor died before the death signal was set? */
	if (poll(&link, 1, 0) > 0 && (link.revents & (POLLHUP | POLLERR)))
		_exit(1);
	return privileges_confine(box, f);
}

int build_box(launch_box *box, launch_failure *f)
{
	uint64_t steps = box->plan->steps;
	int proc_self = -1;

	box->own_pids = (steps & LP_PIDNS) && getpid() == 1;
	if (!box->own_pids)
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if ((steps & LP_SESSION) && setsid() < 0)
		return launch_fail(f, errno, "session", "cannot make a session of its own");
	box->held |= steps & LP_SESSION;
	if (steps & LP_NESTED_USERNS)
		proc_self = openat(AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (build_sources(box, f) < 0 || wait_for_go(box, f) < 0 || build_walls(box, proc_self, f) < 0)
		return -1;
	return wait_for_cgroups(box, f);
}
