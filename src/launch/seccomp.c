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

/* No signal for the supervisor, for its group or for everybody (-1), by whatever call takes a pid. */
static int guard(int supervisor, launch_failure *f)
{
	const struct sock_filter code[] = {
		LOAD(nr),
		/*  1 */ IS(SYS_kill, 6, 0),
		/*  2 */ IS(SYS_tkill, 5, 0),
		/*  3 */ IS(SYS_tgkill, 4, 0),
		/*  4 */ IS(SYS_rt_sigqueueinfo, 3, 0),
		/*  5 */ IS(SYS_rt_tgsigqueueinfo, 2, 0),
		/*  6 */ IS(SYS_pidfd_open, 1, 0),
		/*  7 */ PASS,
		/*  8 */ LOAD(LOW_WORD(0)),
		/*  9 */ IS(-1, 3, 0),
		/* 10 */ IS(supervisor, 2, 0),
		/* 11 */ IS(-supervisor, 1, 0),
		/* 12 */ PASS,
		/* 13 */ REFUSE,
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
