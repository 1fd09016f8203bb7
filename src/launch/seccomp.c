/* SPDX-License-Identifier: MIT */
/*
 * seccomp.c - sets the filter that seccomp_gen made out of seccomp.table.
 *
 * The program is constant data: nothing is compiled, allocated or looked up here.  It needs
 * no-new-privs (or the capability over the user namespace), and holds for the calling thread and
 * whatever it starts, through exec and into new namespaces.
 *
 * Without namespaces there are two: first one that keeps the guest's hands off its supervisor, whose
 * number is known only now; then the table's, with a descriptor for what it asks about (ask.c).
 */
#include "launch.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_filter.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static int set(const struct sock_filter *code, size_t count, launch_failure *f)
{
	const struct sock_fprog program = { (unsigned short)count, (struct sock_filter *)code };

	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		return 0;
	if (errno == ENOSYS && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		return 0;
	return launch_fail(f, errno, "seccomp", "cannot set the system call filter");
}

int seccomp_apply(bool host_net, launch_failure *f)
{
	if (host_net)
		return set(seccomp_host_net, COUNT(seccomp_host_net), f);
	return set(seccomp_code, COUNT(seccomp_code), f);
}

int seccomp_apply_worker(launch_failure *f)
{
	return set(seccomp_worker, COUNT(seccomp_worker), f);
}

/* ---- Without namespaces ------------------------------------------------------------------------ */

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define PASS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOW_WORD(arg) args[arg] /* little-endian; the kernel takes pids as int */

/* No signal for the supervisor, for its group or for everybody (-1), by whatever call takes a pid; and
 * nothing that slows it down, as itself or as one of the user's. */
static int guard(int supervisor, launch_failure *f)
{
	const struct sock_filter code[] = {
		LOAD(nr),
		/*  1 */ IS(SYS_kill, 12, 0),
		/*  2 */ IS(SYS_tkill, 11, 0),
		/*  3 */ IS(SYS_tgkill, 10, 0),
		/*  4 */ IS(SYS_rt_sigqueueinfo, 9, 0),
		/*  5 */ IS(SYS_rt_tgsigqueueinfo, 8, 0),
		/*  6 */ IS(SYS_pidfd_open, 7, 0),
		/*  7 */ IS(SYS_sched_setparam, 6, 0),
		/*  8 */ IS(SYS_sched_setscheduler, 5, 0),
		/*  9 */ IS(SYS_sched_setaffinity, 4, 0),
		/* 10 */ IS(SYS_sched_setattr, 3, 0),
		/* 11 */ IS(SYS_setpriority, 7, 0),
		/* 12 */ IS(SYS_ioprio_set, 6, 0),
		/* 13 */ PASS,
		/* 14 */ LOAD(LOW_WORD(0)),
		/* 15 */ IS(-1, 8, 0),
		/* 16 */ IS(supervisor, 7, 0),
		/* 17 */ IS(-supervisor, 6, 0),
		/* 18 */ PASS,
		/* 19: of a user, PRIO_USER = 2; IOPRIO_WHO_USER = 3, IOPRIO_WHO_PGRP = 2 */
		LOAD(LOW_WORD(0)),
		/* 20 */ IS(2, 3, 0),
		/* 21 */ IS(3, 2, 0),
		/* 22 */ LOAD(LOW_WORD(1)),
		/* 23 */ IS(supervisor, 0, 1),
		/* 24 */ REFUSE,
		/* 25 */ PASS,
	};

	return set(code, COUNT(code), f);
}

int seccomp_apply_place(bool host_net, int supervisor, int *listener, launch_failure *f)
{
	const struct sock_fprog programs[] = {
		{ COUNT(seccomp_place), (struct sock_filter *)seccomp_place },
		{ COUNT(seccomp_place_net), (struct sock_filter *)seccomp_place_net } };
	const struct sock_fprog *program = &programs[host_net];

	*listener = -1;
	if (guard(supervisor, f) < 0)
		return -1;
	*listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
				 program);
	if (*listener >= 0)
		return 0;
	/* before Linux 5.0, or where somebody listens already: what is asked about is ENOSYS then */
	return set(program->filter, program->len, f);
}
