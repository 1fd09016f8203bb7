/* SPDX-License-Identifier: MIT */
/*
 * New namespaces (each would give the guest capabilities to try things with) and entering others.
 *
 * wall privileges
 * fixture peer
 * attempt unshare_user: open without seccomp
 * attempt unshare_mount: open without seccomp
 * attempt unshare_net: open without seccomp
 * attempt unshare_pid: open without seccomp
 * attempt unshare_ipc: open without seccomp
 * attempt unshare_uts: open without seccomp
 * attempt unshare_cgroup: open without seccomp
 * attempt clone_user: open without seccomp
 * attempt clone_net: open without seccomp
 * attempt clone3_user: open without seccomp
 * attempt clone3_plain: open without seccomp
 * attempt setns_peer_user: open bare as root | only root
 * attempt setns_peer_net: open bare as root
 * attempt setns_peer_mount: open bare as root
 * attempt setns_by_pidfd: open bare as root
 */
#include "attempt.h"
#include <linux/sched.h>
#include <sched.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static int unshare_user(void)
{
	return verdict(unshare(CLONE_NEWUSER));
}

/* Straight away, and with a user namespace of its own, which brings the capability along. */
static int leave(int kind)
{
	if (unshare(kind) == 0)
		return 0;
	return verdict(unshare(CLONE_NEWUSER | kind));
}

static int unshare_mount(void)
{
	return leave(CLONE_NEWNS);
}

static int unshare_net(void)
{
	return leave(CLONE_NEWNET);
}

static int unshare_pid(void)
{
	return leave(CLONE_NEWPID);
}

static int unshare_ipc(void)
{
	return leave(CLONE_NEWIPC);
}

static int unshare_uts(void)
{
	return leave(CLONE_NEWUTS);
}

static int unshare_cgroup(void)
{
	return leave(CLONE_NEWCGROUP);
}

static int clone_with(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

static int clone_user(void)
{
	return clone_with(CLONE_NEWUSER);
}

static int clone_net(void)
{
	return clone_with(CLONE_NEWUSER | CLONE_NEWNET);
}

static int clone3_with(uint64_t flags)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof args);

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

static int clone3_user(void)
{
	return clone3_with(CLONE_NEWUSER);
}

/* Its flags lie in memory, where no filter can look: the whole call is refused. */
static int clone3_plain(void)
{
	return clone3_with(0);
}

static int enter(const char *name, int kind)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/ns/%s", number("PEER"), name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	/* entering the namespace one is in already is EINVAL for user ones: the kernel was reached */
	if (setns(fd, kind) == 0 || errno == EINVAL)
		return 0;
	return errno;
}

static int setns_peer_user(void)
{
	return enter("user", CLONE_NEWUSER);
}

static int setns_peer_net(void)
{
	return enter("net", CLONE_NEWNET);
}

static int setns_peer_mount(void)
{
	return enter("mnt", CLONE_NEWNS);
}

static int setns_by_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, number("PEER"), 0);

	if (fd < 0)
		return errno;
	return verdict(setns(fd, CLONE_NEWUTS));
}

ATTEMPTS({ "unshare_user", unshare_user }, { "unshare_mount", unshare_mount },
	 { "unshare_net", unshare_net }, { "unshare_pid", unshare_pid },
	 { "unshare_ipc", unshare_ipc }, { "unshare_uts", unshare_uts },
	 { "unshare_cgroup", unshare_cgroup }, { "clone_user", clone_user },
	 { "clone_net", clone_net }, { "clone3_user", clone3_user },
	 { "clone3_plain", clone3_plain }, { "setns_peer_user", setns_peer_user },
	 { "setns_peer_net", setns_peer_net }, { "setns_peer_mount", setns_peer_mount },
	 { "setns_by_pidfd", setns_by_pidfd })
