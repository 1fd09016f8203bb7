/* SPDX-License-Identifier: MIT */
/*
 * walls.c - what the worker takes from itself once the module is loaded.
 *
 * A filter of a handful of system calls, none of which opens, executes, connects or makes a page
 * executable; where directories of the host are shown, those come in addition that files need.  mprotect() is
 * among those it does not let through: the engine grows a guest's memory by it, so each growth lands in our
 * handler, which knows the limit, counts what it refuses, and does the rest by pkey_mprotect(), the same call
 * under another number.  The engine tells a refusal to nobody, and the guest may hide it; the limit would
 * otherwise not be known to be the reason of an end.
 */
#include "worker.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef SYS_pkey_mprotect
#define SYS_pkey_mprotect 329
#endif
#define STACK_WANTED ((rlim_t)64 << 20)
#define STACK_LEAST ((rlim_t)12 << 20)
#define RESERVED ((uint64_t)1 << 32)

/* ---- Limits -------------------------------------------------------------------------------------- */

int walls_raise_stack(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) < 0)
		return -errno;
	if (limit.rlim_cur >= STACK_WANTED)
		return 0;
	limit.rlim_cur = limit.rlim_max < STACK_WANTED ? limit.rlim_max : STACK_WANTED;
	if (limit.rlim_cur < STACK_LEAST)
		return -ENOMEM;
	return setrlimit(RLIMIT_STACK, &limit) < 0 ? -errno : 0;
}

int walls_limit_data(uint64_t bytes)
{
	struct rlimit limit = { .rlim_cur = bytes, .rlim_max = bytes };
	struct rlimit old;

	if (getrlimit(RLIMIT_DATA, &old) == 0 && old.rlim_max < limit.rlim_max)
		return 0; /* held tighter already */
	return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
}

/* ---- Growth -------------------------------------------------------------------------------------- */

static worker *watched;

static long grow(uintptr_t at, size_t len, int protection)
{
	const engine_run *run = &watched->run;
	uintptr_t base = (uintptr_t)run->base, end = at + len;

	if (protection & PROT_EXEC)
		return -EPERM;
	if (base && at >= base && at < base + RESERVED && (protection & PROT_WRITE)) {
		if (end < at || end - base > run->memory_bytes) {
			watched->memory_refused++;
			return -ENOMEM;
		}
		if (end - base > run->peak_bytes)
			watched->run.peak_bytes = end - base;
	}
	if (syscall(SYS_pkey_mprotect, at, len, protection, -1) == 0)
		return 0;
	if (errno == ENOMEM)
		watched->memory_refused++;
	return -errno;
}

static void on_growth(int signo, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	int kept = errno;

	(void)signo;
#if defined(__x86_64__)
	greg_t *r = u->uc_mcontext.gregs;

	r[REG_RAX] = info->si_syscall == SYS_mprotect ?
			     grow((uintptr_t)r[REG_RDI], (size_t)r[REG_RSI], (int)r[REG_RDX]) :
			     -ENOSYS;
#else
	unsigned long long *r = (unsigned long long *)u->uc_mcontext.regs;

	r[0] = (unsigned long long)(info->si_syscall == SYS_mprotect ?
					    grow((uintptr_t)r[0], (size_t)r[1], (int)r[2]) : -ENOSYS);
#endif
	errno = kept;
}

/* ---- The filter ------------------------------------------------------------------------------------ */

#define NR ((uint32_t)offsetof(struct seccomp_data, nr))
#define ARG_LOW(n) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (n)))
#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* with this bit clear in the low half of the argument, which is all that the kernel reads of it */
#define ALLOW_WITHOUT(name, arg, bit)                                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4),                                     \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG_LOW(arg)),                                  \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bit, 0, 1),                                   \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),                               \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

#define MOST 128u

typedef struct part {
	const struct sock_filter *code;
	size_t count;
} part;
#define PART(code) { code, sizeof(code) / sizeof(code)[0] }

static const struct sock_filter of_all[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WALLS_ARCH, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NR),
	ALLOW(writev), ALLOW(readv), ALLOW(write), ALLOW(read), ALLOW(clock_gettime),
	ALLOW(ppoll), ALLOW(pwrite64), ALLOW(rt_sigreturn), ALLOW(exit_group),
	ALLOW(munmap), ALLOW(brk), ALLOW(madvise), ALLOW(getrandom), ALLOW(futex),
	ALLOW(sigaltstack), ALLOW(rt_sigprocmask), ALLOW(mremap), ALLOW(shutdown),
#ifdef SYS_poll
	ALLOW(poll),
#endif
};

/* Of directories of the host: what host*.c of vfs does.  The filter around this one looks at the modes. */
static const struct sock_filter of_files[] = {
	ALLOW(openat), ALLOW(close), ALLOW(newfstatat), ALLOW(fstat), ALLOW(readlinkat),
	ALLOW(pread64), ALLOW(getdents64), ALLOW(lseek), ALLOW(fsync),
};
static const struct sock_filter of_changes[] = {
	ALLOW(pwritev2), ALLOW(ftruncate), ALLOW(fallocate), ALLOW(utimensat), ALLOW(mkdirat), ALLOW(unlinkat),
	ALLOW(renameat2), ALLOW(linkat), ALLOW(symlinkat),
};

static const struct sock_filter of_memory[] = {
	/* what is shared counts in no limit of a process's memory */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 6),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG_LOW(3)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED | MAP_GROWSDOWN, 3, 0),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG_LOW(2)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	ALLOW_WITHOUT(pkey_mprotect, 2, PROT_EXEC),
};
static const struct sock_filter of_closed[] = {
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

/* Ajar: a module has yet to be loaded.  What that takes, and loading the second filter, are let through. */
static const struct sock_filter of_ajar[] = {
	ALLOW(mprotect), ALLOW(prctl), ALLOW(prlimit64), ALLOW(membarrier),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
/* What was ajar, closed: all else the first filter has said. */
static const struct sock_filter of_the_rest[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NR),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 4, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 4, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 2, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static int load(const struct sock_fprog *filter)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter) < 0 ? -errno : 0;
}

static int load_filter(const worker *k, bool ajar)
{
	static const part parts[] = { PART(of_all), PART(of_files), PART(of_changes), PART(of_memory),
				      PART(of_ajar), PART(of_closed) };
	const bool wanted[] = { true, k->host, k->host_writes, true, ajar, !ajar };
	struct sock_filter code[MOST];
	struct sock_fprog filter = { .filter = code };

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (!wanted[i])
			continue;
		memcpy(code + filter.len, parts[i].code, parts[i].count * sizeof *code);
		filter.len = (unsigned short)(filter.len + parts[i].count);
	}
	return load(&filter);
}
_Static_assert(sizeof of_all + sizeof of_files + sizeof of_changes + sizeof of_memory + sizeof of_ajar +
		       sizeof of_closed <= MOST * sizeof(struct sock_filter), "a filter with everything fits");

static int take_growth(worker *k)
{
	struct sigaction growth = { .sa_sigaction = on_growth, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	watched = k;
	sigfillset(&growth.sa_mask);
	return sigaction(SIGSYS, &growth, NULL) < 0 ? -errno : 0;
}

int walls_close(worker *k)
{
	int rc = take_growth(k);

	return rc ? rc : load_filter(k, false);
}

int walls_set_ajar(worker *k)
{
	int rc = take_growth(k);

	return rc ? rc : load_filter(k, true);
}

int walls_shut(void)
{
	static struct sock_filter code[sizeof of_the_rest / sizeof *of_the_rest];
	const struct sock_fprog filter = { .len = sizeof of_the_rest / sizeof *of_the_rest, .filter = code };

	memcpy(code, of_the_rest, sizeof of_the_rest);
	return load(&filter);
}
