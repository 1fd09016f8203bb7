/* SPDX-License-Identifier: MIT */
/*
 * privileges.c - what pid 1 gives up: ids, capabilities, and the right to ever get any back.
 *
 * The C library's own wrappers for ids reach for other threads: raw calls here, also because a vfork
 * child of the subreaper runs the same code.
 */
#include "box.h"
#include "sys.h"

#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* 0, or errno. */
static int caps_get(struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };

	return syscall(SYS_capget, &head, caps) < 0 ? errno : 0;
}

static int caps_set(const struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };

	return syscall(SYS_capset, &head, caps) < 0 ? errno : 0;
}

/* Effective = permitted: a change of user cleared it. */
static int caps_raise(void)
{
	struct __user_cap_data_struct caps[2] = { 0 };
	int i, error = caps_get(caps);

	for (i = 0; i < 2; i++)
		caps[i].effective = caps[i].permitted;
	return error ? error : caps_set(caps);
}

int privileges_take_ids(const launch_box *box, uint32_t uid, uint32_t gid, launch_failure *f)
{
	bool keep;
	int error;

	if ((box->plan->steps & LP_OWN_GROUP) && syscall(SYS_setgroups, 0, NULL) < 0)
		return launch_fail(f, errno, "groups", "cannot drop the supplementary groups");
	if (syscall(SYS_setresgid, gid, gid, gid) < 0)
		return launch_fail(f, errno, "ids", "cannot become group %u", gid);
	/* Without a user namespace the mounts still need what a change of user takes away. */
	keep = !(box->plan->steps & (LP_USERNS | LP_SUBREAPER));
	if (keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return launch_fail(f, errno, "ids", "cannot keep the capabilities");
	if (syscall(SYS_setresuid, uid, uid, uid) < 0)
		return launch_fail(f, errno, "ids", "cannot become user %u", uid);
	error = keep ? caps_raise() : 0;
	if (error)
		return launch_fail(f, error, "ids", "cannot take the capabilities up again");
	return 0;
}

int privileges_drop(const launch_box *box, launch_failure *f)
{
	struct __user_cap_data_struct caps[2] = { 0 }, none[2] = { 0 };
	int cap, error = caps_get(caps);

	(void)box;
	if (error)
		return launch_fail(f, error, "privileges", "cannot read the capabilities");
	/* The bounding set goes only with CAP_SETPCAP; without it and with no-new-privileges nothing
	 * can come back out of it. */
	if (caps[0].effective & (1u << CAP_SETPCAP)) {
		for (cap = 0; cap < 64; cap++) {
			if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
				continue;
			if (errno == EINVAL)
				break;
			return launch_fail(f, errno, "privileges",
					   "cannot drop capability %d of the bounding set", cap);
		}
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return launch_fail(f, errno, "privileges", "cannot clear the ambient capabilities");
	error = caps_set(none);
	if (error)
		return launch_fail(f, error, "privileges", "cannot drop the capabilities");
	return 0;
}

int privileges_seal(const launch_box *box, launch_failure *f)
{
	uint64_t steps = box->plan->steps;

	if ((steps & LP_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return launch_fail(f, errno, "privileges", "cannot set no-new-privileges");
	if (prctl(PR_SET_DUMPABLE, steps & LP_UNDUMPABLE ? 0 : 1, 0, 0, 0) < 0)
		return launch_fail(f, errno, "privileges", "cannot become undumpable");
	if (watch_small_pages(box->plan) && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		return launch_fail(f, errno, "privileges", "cannot do without huge pages");
	/* Any change of credentials clears it, so it stands behind the last one. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return launch_fail(f, errno, "privileges", "cannot tie pid 1 to its supervisor");
	return 0;
}

int privileges_hostname(const char *name, launch_failure *f)
{
	if (syscall(SYS_sethostname, name, strlen(name)) < 0 || syscall(SYS_setdomainname, "", 0) < 0)
		return launch_fail(f, errno, "hostname", "cannot set the host name \"%s\"", name);
	return 0;
}

int privileges_loopback(launch_failure *f)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return launch_fail(f, errno, "netns", "cannot open a socket for loopback");
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	rc = ioctl(fd, SIOCSIFFLAGS, &request);
	if (rc < 0)
		launch_fail(f, errno, "netns", "cannot bring loopback up");
	close(fd);
	return rc;
}

/* No core file.  0 would do for that; but a core_pattern that is a program runs whatever the limit is,
 * outside and as root, unless it is 1.  The filter keeps it. */
static void no_core(void)
{
	struct rlimit one;

	if (getrlimit(RLIMIT_CORE, &one) < 0)
		return;
	one.rlim_max = one.rlim_max ? 1 : 0;
	one.rlim_cur = one.rlim_max;
	setrlimit(RLIMIT_CORE, &one);
}

int privileges_confine(launch_box *box, launch_failure *f)
{
	uint64_t steps = box->plan->steps;

	no_core();

	if (steps & LP_LANDLOCK) {
		bool scope = steps & LP_LANDLOCK_SCOPE;

		if (landlock_apply(&box->view, box->fds, box->fd_count, box->scratch, scope,
				   &box->landlock_abi, f) < 0)
			return -1;
		box->held |= LP_LANDLOCK;
		if (scope && box->landlock_abi >= 6)
			box->held |= LP_LANDLOCK_SCOPE;
	}
	if (steps & LP_IN_PLACE) {
		int listener;

		if (seccomp_apply_place(steps & LP_HOST_NET, getppid(), &listener, f) < 0 ||
		    (listener >= 0 && ask_hand_over(box, listener, f) < 0))
			return -1;
		box->held |= LP_SECCOMP | LP_IN_PLACE;
	} else if (steps & LP_SECCOMP) {
		bool worker = steps & LP_WORKER;

		if (worker ? seccomp_apply_worker(f) < 0 : seccomp_apply(!(steps & LP_NETNS), f) < 0)
			return -1;
		box->held |= LP_SECCOMP | (steps & LP_WORKER);
	}
	return 0;
}
