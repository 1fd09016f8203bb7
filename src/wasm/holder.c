/* SPDX-License-Identifier: MIT */
/*
 * holder.c - a process beside a worker that waits: it shares the worker's memory, and does nothing.
 *
 * The kernel takes a memory apart when the last process that has it ends, before anybody is told of that end:
 * half a millisecond, and up to two, for whoever waits for the answer of a run.  With a holder the worker's
 * end is no more than its end.  pid 1 then kills the holder (LP_S_HELD) and answers; the kernel takes the memory
 * apart meanwhile, which is nobody's wait.
 *
 * The holder runs nothing of the guest's, and cannot be made to: it sleeps in the one system call that its filter
 * leaves to it, has no descriptor, and every signal is blocked but those that end or stop it.  Whoever has the
 * worker in his hands can write on the holder's stack, but not wake it up; and once it is killed no
 * instruction of it runs any more.
 */
#include "worker.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES 16384u
#define NR ((uint32_t)offsetof(struct seccomp_data, nr))
#define ARCH ((uint32_t)offsetof(struct seccomp_data, arch))

enum { SETTING_UP, HOLDS, GAVE_UP };

static _Alignas(4096) char stack[STACK_BYTES];
static int state;

/* It tells that it is there, once, and sleeps. */
static struct sock_filter sleep_alone[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARCH),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WALLS_ARCH, 0, 4),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NR),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void tell(int now)
{
	__atomic_store_n(&state, now, __ATOMIC_RELEASE);
	syscall(SYS_futex, &state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool shut_in(void)
{
	const struct sock_fprog filter = { .len = sizeof sleep_alone / sizeof *sleep_alone, .filter = sleep_alone };

	/* its end is in nobody's way: it takes the place of none who is about to tell of the run */
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
	/* no end of a pipe of the guest's is to stay open for it */
	return syscall(SYS_close_range, 0u, ~0u, 0u) == 0 && prctl(PR_SET_NAME, JOB_HOLDER_NAME, 0, 0, 0) == 0 &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* The worker stands still until it is told, for what the C library keeps of a thread is one and the same. */
static int hold(void *unused)
{
	(void)unused;
	if (!shut_in()) {
		tell(GAVE_UP);
		_exit(0);
	}
	tell(HOLDS);
	for (;;)
		syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

void holder_start(void)
{
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	if (clone(hold, stack + sizeof stack, CLONE_VM, NULL) > 0)
		while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == SETTING_UP)
			syscall(SYS_futex, &state, FUTEX_WAIT, SETTING_UP, NULL, NULL, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
