/* SPDX-License-Identifier: MIT */
/*
 * launch_seccomp.c - the generated filter: both architectures' programs through an interpreter, this
 * one's for real in a child, with the same calls without it as control.
 */
#include "unit.h"

#include "launch_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#define seccomp_code code_x86
#define seccomp_host_net net_x86
#define seccomp_place place_x86
#define seccomp_place_net place_net_x86
#define seccomp_worker worker_x86
#include "src/launch/seccomp_filter.h"
#undef seccomp_code
#undef seccomp_host_net
#undef seccomp_place
#undef seccomp_place_net
#undef seccomp_worker
#undef __x86_64__
#define __aarch64__ 1
#define seccomp_code code_arm
#define seccomp_host_net net_arm
#define seccomp_place place_arm
#define seccomp_place_net place_net_arm
#define seccomp_worker worker_arm
#include "src/launch/seccomp_filter.h"
#undef seccomp_code
#undef seccomp_host_net
#undef seccomp_place
#undef seccomp_place_net
#undef seccomp_worker
#undef __aarch64__
#define __x86_64__ 1
#else
#define seccomp_code code_arm
#define seccomp_host_net net_arm
#define seccomp_place place_arm
#define seccomp_place_net place_net_arm
#define seccomp_worker worker_arm
#include "src/launch/seccomp_filter.h"
#undef seccomp_code
#undef seccomp_host_net
#undef seccomp_place
#undef seccomp_place_net
#undef seccomp_worker
#endif

/* ---- The programs, interpreted ----------------------------------------------------------------- */

#define X86 0xc000003eu
#define I386 0x40000003u
#define ARM64 0xc00000b7u
#define ARM32 0x40000028u
#define KILL 0x80000000u
#define ALLOW 0x7fff0000u
#define ASK 0x7fc00000u
#define ERR(n) (0x00050000u | (n))

static uint32_t interpret(const struct sock_filter *code, size_t len, const struct seccomp_data *data)
{
	uint32_t a = 0;
	size_t pc;

	for (pc = 0; pc < len; pc++) {
		const struct sock_filter *i = &code[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k % 4 == 0 && i->k + 4 <= sizeof *data);
			memcpy(&a, (const char *)data + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction %zu is unknown: %#x", pc, i->code);
		}
	}
	fail_msg("the program has no end");
	return 0;
}

typedef struct ask {
	int x86, arm; /* numbers; -1 = none there */
	uint64_t a0, a1, a2;
	uint32_t want;
	uint64_t a3;
} ask;

#define HIGH 0xdeadbeef00000000u

static const ask asks[] = {
	{ 0, 63, 0, 0, 0, ALLOW },                 /* read */
	{ 59, 221, 0, 0, 0, ALLOW },               /* execve */
	{ 435, 435, 0, 0, 0, ERR(ENOSYS) },        /* clone3 */
	{ 165, 40, 0, 0, 0, ERR(EPERM) },          /* mount */
	{ 101, 117, 0, 0, 0, ERR(EPERM) },         /* ptrace */
	{ 321, 280, 0, 0, 0, ERR(EPERM) },         /* bpf */
	{ 425, 425, 0, 0, 0, ERR(EPERM) },         /* io_uring_setup */
	{ 457, 457, 0, 0, 0, ERR(ENOSYS) },        /* statmount: stands nowhere */
	{ 334, 293, 0, 0, 0, ALLOW },              /* rseq */
	{ 335, 295, 0, 0, 0, ERR(ENOSYS) },        /* the gaps behind it */
	{ 423, 423, 0, 0, 0, ERR(ENOSYS) },
	{ 424, 424, 0, 0, 0, ALLOW },              /* pidfd_send_signal */
	{ 1023, 1023, 0, 0, 0, ERR(ENOSYS) },
	{ 1024, 1024, 0, 0, 0, ERR(ENOSYS) },
	{ 0x7fffffff, 0x7fffffff, 0, 0, 0, ERR(ENOSYS) },
	{ 0x40000000, -1, 0, 0, 0, ERR(ENOSYS) },  /* x32 */
	{ 0x40000000 + 59, -1, 0, 0, 0, ERR(ENOSYS) },
	{ 56, 220, 0x11, 0, 0, ALLOW },            /* clone: fork */
	{ 56, 220, 0x4111, 0, 0, ALLOW },          /* vfork */
	{ 56, 220, 0x3d0f00, 0, 0, ALLOW },        /* a thread */
	{ 56, 220, 0x10000011, 0, 0, ERR(EPERM) }, /* namespaces, one by one */
	{ 56, 220, 0x20000, 0, 0, ERR(EPERM) },
	{ 56, 220, 0x2000000, 0, 0, ERR(EPERM) },
	{ 56, 220, 0x4000000, 0, 0, ERR(EPERM) },
	{ 56, 220, 0x8000000, 0, 0, ERR(EPERM) },
	{ 56, 220, 0x20000000, 0, 0, ERR(EPERM) },
	{ 56, 220, 0x40000000, 0, 0, ERR(EPERM) },
	{ 56, 220, HIGH | 0x10000011, 0, 0, ERR(EPERM) },
	{ 272, 97, 0x400, 0, 0, ALLOW },           /* unshare: descriptors */
	{ 272, 97, 0x80, 0, 0, ERR(EPERM) },       /* time namespace */
	{ 272, 97, 0x10000000, 0, 0, ERR(EPERM) },
	{ 16, 29, 0, 0x5401, 0, ALLOW },           /* ioctl TCGETS */
	{ 16, 29, 0, 0x5412, 0, ERR(EPERM) },      /* TIOCSTI */
	{ 16, 29, 0, HIGH | 0x5412, 0, ERR(EPERM) },
	{ 16, 29, 0, 0x541c, 0, ERR(EPERM) },      /* TIOCLINUX */
	{ 16, 29, 0, HIGH | 0x541c, 0, ERR(EPERM) },
	{ 16, 29, 0x5412, 0x5413, 0, ALLOW },
	{ 135, 92, 0, 0, 0, ALLOW },               /* personality */
	{ 135, 92, 0xffffffff, 0, 0, ALLOW },
	{ 135, 92, UINT64_MAX, 0, 0, ALLOW },
	{ 135, 92, 0x400000, 0, 0, ERR(EPERM) },   /* READ_IMPLIES_EXEC */
	{ 135, 92, 1, 0, 0, ERR(EPERM) },
	{ 41, 198, 1, 1, 0, ALLOW },               /* socket unix */
	{ 41, 198, 2, 1, 0, ALLOW },
	{ 41, 198, 10, 2, 17, ALLOW },
	{ 41, 198, 2, 5, 132, ERR(EPROTONOSUPPORT) }, /* SCTP */
	{ 41, 198, 2, 3, 255, ERR(EPROTONOSUPPORT) }, /* raw */
	{ 41, 198, 16, 3, 0, ERR(EOPNOTSUPP) },    /* netlink route; see host_net_asks */
	{ 41, 198, 16, 3, 12, ERR(EPROTONOSUPPORT) }, /* netfilter */
	{ 41, 198, HIGH | 16, 3, HIGH | 12, ERR(EPROTONOSUPPORT) },
	{ 41, 198, 17, 3, 0, ERR(EAFNOSUPPORT) },  /* packet */
	{ 41, 198, 40, 1, 0, ERR(EAFNOSUPPORT) },  /* vsock */
	{ 41, 198, 38, 5, 0, ERR(EAFNOSUPPORT) },  /* alg */
	{ 53, 199, 1, 1, 0, ALLOW },               /* socketpair */
	{ 53, 199, 30, 1, 0, ERR(EAFNOSUPPORT) },
	{ 133, -1, 0, S_IFIFO | 0600, 0, ALLOW },  /* mknod */
	{ 133, -1, 0, S_IFCHR | 0600, 0, ERR(EPERM) },
	{ 259, 33, 0, 0, S_IFREG | 0600, ALLOW },  /* mknodat */
	{ 259, 33, 0, 0, S_IFBLK | 0600, ERR(EPERM) },
	{ 259, 33, 0, 0, 0600, ALLOW },
	{ 259, 33, 0, 0, S_IFSOCK | 0600, ALLOW },
	{ 259, 33, 0, 0, S_IFREG | S_ISUID | 0700, ERR(EPERM) },
	{ 259, 33, 0, 0, S_ISGID | 0710, ERR(EPERM) },
	{ 90, -1, 0, 01777, 0, ALLOW },            /* chmod */
	{ 90, -1, 0, S_ISUID, 0, ERR(EPERM) },
	{ 91, 52, 0, 0644, 0, ALLOW },             /* fchmod */
	{ 91, 52, 0, S_ISGID | 0755, 0, ERR(EPERM) },
	{ 91, 52, 0, HIGH | 0x10000 | S_ISUID, 0, ERR(EPERM) },
	{ 268, 53, 0, 0, 0755, ALLOW },            /* fchmodat */
	{ 268, 53, 0, 0, S_ISUID | 0755, ERR(EPERM) },
	{ 452, 452, 0, 0, 0755, ALLOW },           /* fchmodat2 */
	{ 452, 452, 0, 0, S_ISUID | 0755, ERR(EPERM) },
	{ 85, -1, 0, 0644, 0, ALLOW },             /* creat */
	{ 85, -1, 0, S_ISUID | 0755, 0, ERR(EPERM) },
	{ 2, -1, 0, 0, UINT64_MAX, ALLOW },        /* open: makes nothing, what stands there is no mode */
	{ 2, -1, 0, 0x241, 0644, ALLOW },
	{ 2, -1, 0, 0x241, S_ISUID | 0755, ERR(EPERM) },
	{ 257, 56, 0, 0, 0x241, ALLOW, 0666 },     /* openat */
	{ 257, 56, 0, 0, 0x80000, ALLOW, UINT64_MAX },
	{ 257, 56, 0, 0, 0x241, ERR(EPERM), S_ISGID | 0755 },
	{ 257, 56, 0, 0, 0x410002, ERR(EPERM), S_ISUID | 0755 }, /* O_TMPFILE */
	{ 437, 437, 0, 0, 0, ERR(ENOSYS) },        /* openat2 */
	{ 9, 222, 0, 0, 0, ALLOW, 0x22 },          /* mmap */
	{ 9, 222, 0, 0, 0, ERR(EPERM), 0x40022 },  /* huge pages */
	{ 319, 279, 0, 1, 0, ALLOW },              /* memfd_create */
	{ 319, 279, 0, 5, 0, ERR(EPERM) },
	{ 160, 164, 7, 0, 0, ALLOW },              /* setrlimit */
	{ 160, 164, 15, 0, 0, ALLOW },
	{ 160, 164, 4, 0, 0, ERR(0) },             /* RLIMIT_CORE: done, and nothing is */
	{ 302, 261, 0, 4, 0, ALLOW },              /* prlimit64: what is it? */
	{ 302, 261, 0, 4, 1ull << 32, ERR(0) },
	{ 302, 261, 0, 4, 0x7ffe0010, ERR(0) },
	{ 302, 261, 0, 7, 0x7ffe0010, ALLOW },
	{ 302, 261, 1, 7, 0x7ffe0010, ERR(EPERM) },
	{ 302, 261, 1, 7, 0, ERR(EPERM) },
	{ 206, 0, 0, 0, 0, ERR(ENOSYS) },          /* io_setup */
};

static const ask host_net_asks[] = {
	{ 41, 198, 16, 3, 0, ALLOW },
	{ 41, 198, 16, 3, 12, ERR(EPROTONOSUPPORT) },
	{ 41, 198, 17, 3, 0, ERR(EAFNOSUPPORT) },
	{ 90, -1, 0, S_ISUID, 0, ERR(EPERM) },
	{ 165, 40, 0, 0, 0, ERR(EPERM) },
	{ 1023, 1023, 0, 0, 0, ERR(ENOSYS) },
};

/* Of a guest without namespaces. */
static const ask place_asks[] = {
	{ 41, 198, 1, 1, 0, ERR(EPERM) },          /* unix sockets reach the host's */
	{ 41, 198, 2, 1, 6, ERR(EOPNOTSUPP) },
	{ 41, 198, 16, 3, 0, ERR(EOPNOTSUPP) },
	{ 41, 198, 40, 1, 0, ERR(EAFNOSUPPORT) },  /* vsock */
	{ 53, 199, 1, 0x80801, 0, ALLOW },         /* a pair of streams, with flags */
	{ 53, 199, 1, 5, 0, ALLOW },
	{ 53, 199, 1, 2, 0, ERR(EAFNOSUPPORT) },   /* datagrams: connect() again, anywhere */
	{ 42, 203, 0, 0, 0, ERR(EOPNOTSUPP) },
	{ 49, 200, 0, 0, 0, ERR(EOPNOTSUPP) },
	{ 90, -1, 0, 0644, 0, ASK },
	{ 90, -1, 0, S_ISUID | 0755, 0, ERR(EPERM) },
	{ 91, 52, 0, S_ISGID, 0, ERR(EPERM) },
	{ 268, 53, 0, 0, 0600, ASK },
	{ 268, 53, 0, 0, S_ISUID, ERR(EPERM) },
	{ 76, 45, 0, 0, 0, ASK },
	{ 280, 88, 0, 0, 0, ASK },
	{ 260, 54, 0, 0, 0, ERR(EPERM) },          /* fchownat */
	{ 188, 5, 0, 0, 0, ERR(EOPNOTSUPP) },      /* setxattr */
	{ 29, 194, 0, 0, 0, ERR(ENOSYS) },         /* shmget */
	{ 240, 180, 0, 0, 0, ERR(ENOSYS) },        /* mq_open */
	{ 72, 25, 0, 1, 0, ALLOW },
	{ 72, 25, 0, HIGH | 8, 0, ERR(EPERM) },    /* F_SETOWN: signals by descriptor */
	{ 72, 25, 0, 10, 0, ERR(EPERM) },
	{ 72, 25, 0, 15, 0, ERR(EPERM) },
	{ 16, 29, 0, 0x5401, 0, ALLOW },
	{ 16, 29, 0, 0x5412, 0, ERR(EPERM) },
	{ 16, 29, 0, HIGH | 0x40086602, 0, ERR(EPERM) }, /* FS_IOC_SETFLAGS */
	{ 16, 29, 0, 0x40806685, 0, ERR(EPERM) },  /* FS_IOC_ENABLE_VERITY */
	{ 257, 56, 0, 0, O_RDONLY, ALLOW },
	{ 257, 56, 0, 0, O_WRONLY | O_TRUNC, ALLOW },
	{ 257, 56, 0, 0, O_WRONLY | O_TRUNC | O_CREAT, ALLOW, 0644 },
	{ 257, 56, 0, 0, O_WRONLY | O_TRUNC | O_CREAT, ERR(EPERM), 04755 },
	{ 257, 56, 0, 0, O_RDONLY | O_TRUNC, ERR(EPERM) }, /* empties what may only be read */
	{ 257, 56, 0, 0, HIGH | O_RDONLY | O_TRUNC | O_CREAT, ERR(EPERM), 0644 },
	{ 2, -1, 0, O_RDONLY | O_TRUNC, 0, ERR(EPERM) },
	{ 2, -1, 0, O_RDWR | O_TRUNC, 0, ALLOW },
	{ 254, 27, 0, 0, 0, ERR(EACCES) },         /* inotify_add_watch */
	{ 141, 140, 0, 0, 5, ALLOW },              /* setpriority of the caller itself */
	{ 141, 140, 0, 4711, 5, ERR(EPERM) },
	{ 141, 140, 1, 0, 5, ERR(EPERM) },         /* PRIO_PGRP */
	{ 141, 140, 2, 0, 5, ERR(EPERM) },         /* PRIO_USER */
	{ 144, 119, 0, 0, 0, ALLOW },              /* sched_setscheduler */
	{ 144, 119, 4711, 0, 0, ERR(EPERM) },
	{ 142, 118, 4711, 0, 0, ERR(EPERM) },      /* sched_setparam */
	{ 203, 122, HIGH, 0, 0, ALLOW },           /* sched_setaffinity: an int */
	{ 203, 122, HIGH | 4711, 0, 0, ERR(EPERM) },
	{ 314, 274, 4711, 0, 0, ERR(EPERM) },      /* sched_setattr */
	{ 251, 30, 1, 0, 0, ALLOW },               /* ioprio_set */
	{ 251, 30, 1, 4711, 0, ERR(EPERM) },
	{ 251, 30, 3, 0, 0, ERR(EPERM) },
	{ 165, 40, 0, 0, 0, ERR(EPERM) },
	{ 101, 117, 0, 0, 0, ERR(EPERM) },
	{ 0, 63, 0, 0, 0, ALLOW },
	{ 1023, 1023, 0, 0, 0, ERR(ENOSYS) },
};

static const ask place_net_asks[] = {
	{ 41, 198, 1, 1, 0, ERR(EPERM) },          /* no unix socket with the host's network, either */
	{ 41, 198, 2, 1, 6, ALLOW },
	{ 41, 198, 16, 3, 0, ALLOW },
	{ 42, 203, 0, 0, 0, ALLOW },
	{ 53, 199, 1, 2, 0, ERR(EAFNOSUPPORT) },
	{ 90, -1, 0, 0644, 0, ASK },
};

/* Of a worker of ours. */
static const ask worker_asks[] = {
	{ 0, 63, 0, 0, 0, ALLOW },                 /* read */
	{ 46, 211, 0, 0, 0, ALLOW },               /* sendmsg: by a socket that was handed in */
	{ 59, 221, 0, 0, 0, ALLOW },               /* execve */
	{ 56, 220, 0x11, 0, 0, ALLOW },            /* clone */
	{ 56, 220, 0x40000011, 0, 0, ERR(EPERM) }, /* with a network of its own, where it could do more */
	{ 41, 198, 1, 1, 0, ERR(ENOSYS) },         /* socket */
	{ 41, 198, 2, 1, 6, ERR(ENOSYS) },
	{ 41, 198, 16, 3, 0, ERR(ENOSYS) },
	{ 53, 199, 1, 1, 0, ERR(ENOSYS) },         /* socketpair */
	{ 42, 203, 0, 0, 0, ERR(ENOSYS) },         /* connect */
	{ 49, 200, 0, 0, 0, ERR(ENOSYS) },         /* bind */
	{ 50, 201, 0, 0, 0, ERR(ENOSYS) },         /* listen */
	{ 43, 202, 0, 0, 0, ERR(ENOSYS) },         /* accept */
	{ 288, 242, 0, 0, 0, ERR(ENOSYS) },        /* accept4 */
	{ 29, 194, 0, 0, 0, ERR(ENOSYS) },         /* shmget */
	{ 30, 196, 0, 0, 0, ERR(ENOSYS) },         /* shmat */
	{ 64, 190, 0, 0, 0, ERR(ENOSYS) },         /* semget */
	{ 68, 186, 0, 0, 0, ERR(ENOSYS) },         /* msgget */
	{ 240, 180, 0, 0, 0, ERR(ENOSYS) },        /* mq_open */
	{ 272, 97, 0, 0, 0, ERR(ENOSYS) },         /* unshare */
	{ 308, 268, 0, 0, 0, ERR(ENOSYS) },        /* setns */
	{ 425, 425, 0, 0, 0, ERR(ENOSYS) },        /* io_uring_setup: it makes sockets, too */
	{ 438, 438, 0, 0, 0, ERR(ENOSYS) },        /* pidfd_getfd */
	{ 434, 434, 0, 0, 0, ERR(ENOSYS) },        /* pidfd_open */
	{ 165, 40, 0, 0, 0, ERR(ENOSYS) },         /* mount */
	{ 101, 117, 0, 0, 0, ERR(ENOSYS) },        /* ptrace */
	{ 257, 56, 0, 0, 0x241, ERR(EPERM), S_ISUID | 0755 },
	{ 302, 261, 1, 7, 0, ERR(EPERM) },         /* prlimit64 of another */
	{ 1024, 1024, 0, 0, 0, ERR(ENOSYS) },
};

static void check_program(const struct sock_filter *code, size_t len, bool arm, const ask *list,
			  size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const ask *a = &list[i];
		struct seccomp_data data = { .nr = arm ? a->arm : a->x86, .arch = arm ? ARM64 : X86,
			.args = { a->a0, a->a1, a->a2, a->a3 } };

		if (data.nr < 0)
			continue;
		unit_row(i, interpret(code, len, &data) == a->want);
		data.arch = arm ? ARM32 : I386;
		unit_row(i, interpret(code, len, &data) == KILL);
		data.arch = arm ? X86 : ARM64;
		unit_row(i, interpret(code, len, &data) == KILL);
	}
}

static void programs_decide(void **state)
{
	(void)state;
#ifdef __x86_64__
	check_program(code_x86, UNIT_LEN(code_x86), false, asks, UNIT_LEN(asks));
	check_program(net_x86, UNIT_LEN(net_x86), false, host_net_asks, UNIT_LEN(host_net_asks));
	check_program(worker_x86, UNIT_LEN(worker_x86), false, worker_asks, UNIT_LEN(worker_asks));
	check_program(place_x86, UNIT_LEN(place_x86), false, place_asks, UNIT_LEN(place_asks));
	check_program(place_net_x86, UNIT_LEN(place_net_x86), false, place_net_asks,
		      UNIT_LEN(place_net_asks));
#endif
	check_program(worker_arm, UNIT_LEN(worker_arm), true, worker_asks, UNIT_LEN(worker_asks));
	check_program(place_arm, UNIT_LEN(place_arm), true, place_asks, UNIT_LEN(place_asks));
	check_program(place_net_arm, UNIT_LEN(place_net_arm), true, place_net_asks,
		      UNIT_LEN(place_net_asks));
	check_program(code_arm, UNIT_LEN(code_arm), true, asks, UNIT_LEN(asks));
	check_program(net_arm, UNIT_LEN(net_arm), true, host_net_asks, UNIT_LEN(host_net_asks));
}

/* What a worker may do, a guest may do as well: it is a part of that list. */
static void worker_is_less(void **state)
{
	int nr, allowed = 0;

	(void)state;
	for (nr = 0; nr < 1024; nr++) {
		struct seccomp_data data = { .nr = nr, .arch = ARM64 };
		uint32_t worker = interpret(worker_arm, UNIT_LEN(worker_arm), &data);

		unit_row(nr, worker == ERR(ENOSYS) || worker == interpret(code_arm, UNIT_LEN(code_arm), &data));
		allowed += worker == ALLOW;
	}
	assert_in_range(allowed, 50, 120);
}

/* Every number of the table up to the end: one of three answers, and never a kill. */
static void programs_are_total(void **state)
{
	int nr, allowed = 0;

	(void)state;
	for (nr = 0; nr < 2000; nr++) {
		struct seccomp_data data = { .nr = nr, .arch = ARM64 };
		uint32_t r = interpret(code_arm, UNIT_LEN(code_arm), &data);

		unit_row(nr, r == ALLOW || (r >= ERR(0) && r <= ERR(133)));
		allowed += r == ALLOW;
	}
	assert_in_range(allowed, 200, 330);
}

/* ---- For real --------------------------------------------------------------------------------- */

typedef struct attempt {
	const char *name;
	long nr, a0, a1, a2, a3, a4;
	int want;    /* errno; 0 = anything but what the filter answers */
	bool differs; /* control: as root and without the filter, the answer is another */
} attempt;

/* Harmless without the filter, too: bad addresses, bad numbers, bad descriptors. */
static const attempt attempts[] = {
	{ "mount", SYS_mount, 0, 0, 0, 0, 0, EPERM, true },
	{ "umount2", SYS_umount2, 0, 0, 0, 0, 0, EPERM, true },
	{ "pivot_root", SYS_pivot_root, 0, 0, 0, 0, 0, EPERM, true },
	{ "chroot", SYS_chroot, 0, 0, 0, 0, 0, EPERM, true },
	{ "fsopen", 430, 0, 0, 0, 0, 0, EPERM, true },
	{ "fsconfig", 431, -1, 99, 0, 0, 0, EPERM, true },
	{ "fsmount", 432, -1, 0, 0, 0, 0, EPERM, true },
	{ "fspick", 433, -1, 0, 0, 0, 0, EPERM, true },
	{ "open_tree", 428, -1, 0, 0, 0, 0, EPERM, true },
	{ "move_mount", 429, -1, 0, -1, 0, 0, EPERM, true },
	{ "mount_setattr", 442, -1, 0, 0, 0, 0, EPERM, true },
	{ "setns", SYS_setns, -1, 0, 0, 0, 0, EPERM, true },
	{ "clone user", SYS_clone, CLONE_NEWUSER | CLONE_THREAD, 0, 0, 0, 0, EPERM, true },
	{ "clone3", SYS_clone3, 0, 0, 0, 0, 0, ENOSYS, true },
	{ "socket netlink route", SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0, 0, EOPNOTSUPP, true },
	{ "io_setup", SYS_io_setup, 0, 0, 0, 0, 0, ENOSYS, true },
	{ "prlimit64 of another", SYS_prlimit64, 1, RLIMIT_NOFILE, 0, 0, 0, EPERM, true },
	{ "memfd huge pages", SYS_memfd_create, 0, 4, 0, 0, 0, EPERM, true },
	{ "openat2", 437, -1, 0, 0, 0, 0, ENOSYS, true },
	{ "fchmod setuid", SYS_fchmod, -1, S_ISUID, 0, 0, 0, EPERM, true },
	{ "openat setgid", SYS_openat, -1, 0, O_CREAT, S_ISGID, 0, EPERM, true },
	{ "ptrace", SYS_ptrace, 16, -1, 0, 0, 0, EPERM, true },
	{ "process_vm_readv", SYS_process_vm_readv, -1, 0, 0, 0, 0, EPERM, true },
	{ "process_vm_writev", SYS_process_vm_writev, -1, 0, 0, 0, 0, EPERM, true },
	{ "pidfd_getfd", 438, -1, 0, 0, 0, 0, EPERM, true },
	{ "kcmp", SYS_kcmp, -1, -1, 0, 0, 0, EPERM, true },
	{ "bpf", SYS_bpf, -1, 0, 0, 0, 0, EPERM, true },
	{ "perf_event_open", SYS_perf_event_open, 0, 0, 0, 0, 0, EPERM, true },
	{ "add_key", SYS_add_key, 0, 0, 0, 0, 0, EPERM, true },
	{ "request_key", SYS_request_key, 0, 0, 0, 0, 0, EPERM, true },
	{ "keyctl", SYS_keyctl, -1, 0, 0, 0, 0, EPERM, true },
	{ "userfaultfd", SYS_userfaultfd, -1, 0, 0, 0, 0, EPERM, true },
	{ "io_uring_setup", 425, 0, 0, 0, 0, 0, EPERM, true },
	{ "io_uring_enter", 426, -1, 0, 0, 0, 0, EPERM, true },
	{ "io_uring_register", 427, -1, 0, 0, 0, 0, EPERM, true },
	{ "kexec_load", SYS_kexec_load, 0, -1, 0, 0, 0, EPERM, true },
	{ "init_module", SYS_init_module, 0, 0, 0, 0, 0, EPERM, false },
	{ "finit_module", SYS_finit_module, -1, 0, 0, 0, 0, EPERM, false },
	{ "delete_module", SYS_delete_module, 0, 0, 0, 0, 0, EPERM, false },
	{ "open_by_handle_at", SYS_open_by_handle_at, -1, 0, 0, 0, 0, EPERM, true },
	{ "name_to_handle_at", SYS_name_to_handle_at, -1, 0, 0, 0, -1, EPERM, true },
	{ "swapon", SYS_swapon, 0, -1, 0, 0, 0, EPERM, true },
	{ "swapoff", SYS_swapoff, 0, 0, 0, 0, 0, EPERM, true },
	{ "reboot", SYS_reboot, 0, 0, 0, 0, 0, EPERM, true },
	{ "quotactl", SYS_quotactl, -1, 0, 0, 0, 0, EPERM, true },
	{ "acct", SYS_acct, -1, 0, 0, 0, 0, EPERM, true },
	{ "settimeofday", SYS_settimeofday, -1, -1, 0, 0, 0, EPERM, true },
	{ "clock_settime", SYS_clock_settime, -1, 0, 0, 0, 0, EPERM, true },
	{ "adjtimex", SYS_adjtimex, -1, 0, 0, 0, 0, EPERM, true },
	{ "syslog", SYS_syslog, -1, 0, 0, 0, 0, EPERM, true },
	{ "sethostname", SYS_sethostname, -1, -1, 0, 0, 0, EPERM, true },
	{ "setdomainname", SYS_setdomainname, -1, -1, 0, 0, 0, EPERM, true },
	{ "fanotify_init", SYS_fanotify_init, -1, 0, 0, 0, 0, EPERM, true },
	{ "move_pages", SYS_move_pages, -1, 0, 0, 0, -1, EPERM, true },
	{ "memfd_secret", 447, -1, 0, 0, 0, 0, EPERM, true },
	{ "statmount", 457, 0, 0, 0, 0, 0, ENOSYS, false },
	{ "number above the table", 5000, 0, 0, 0, 0, 0, ENOSYS, false },
	{ "ioctl TIOCSTI", SYS_ioctl, -1, TIOCSTI, 0, 0, 0, EPERM, true },
	{ "ioctl TIOCLINUX", SYS_ioctl, -1, TIOCLINUX, 0, 0, 0, EPERM, true },
	{ "ioctl TIOCSTI, high half set", SYS_ioctl, -1, (1L << 32) | TIOCSTI, 0, 0, 0, EPERM, true },
	{ "ioctl TIOCSETD", SYS_ioctl, -1, TIOCSETD, 0, 0, 0, EPERM, true },
	{ "personality READ_IMPLIES_EXEC", SYS_personality, READ_IMPLIES_EXEC, 0, 0, 0, 0, EPERM, true },
	{ "socket packet", SYS_socket, AF_PACKET, SOCK_RAW, 0, 0, 0, EAFNOSUPPORT, true },
	{ "socket vsock", SYS_socket, 40, SOCK_STREAM, 0, 0, 0, EAFNOSUPPORT, false },
	{ "socket raw", SYS_socket, AF_INET, SOCK_RAW, 255, 0, 0, EPROTONOSUPPORT, true },
	{ "socket netlink audit", SYS_socket, AF_NETLINK, SOCK_RAW, 9, 0, 0, EPROTONOSUPPORT, false },
	{ "socketpair inet", SYS_socketpair, AF_INET, SOCK_STREAM, 0, 0, 0, EAFNOSUPPORT, true },
	{ "mknodat chr", SYS_mknodat, -1, 0, S_IFCHR, 0, 0, EPERM, true },
	{ "mknodat blk", SYS_mknodat, -1, 0, S_IFBLK, 0, 0, EPERM, true },
	/* and these go on working */
	{ "getpid", SYS_getpid, 0, 0, 0, 0, 0, 0, false },
	{ "mknodat fifo", SYS_mknodat, -1, 0, S_IFIFO, 0, 0, 0, false },
	{ "personality ask", SYS_personality, 0xffffffff, 0, 0, 0, 0, 0, false },
	{ "ioctl TCGETS", SYS_ioctl, -1, TCGETS, 0, 0, 0, 0, false },
	{ "socket unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, 0, 0, false },
	{ "prlimit64", SYS_prlimit64, 0, RLIMIT_CORE, 0, 0, 0, 0, false },
	{ "close_range", 436, 500, 400, 0, 0, 0, 0, false },
	{ "pidfd_open", 434, -1, 0, 0, 0, 0, 0, false },
	{ "unshare files", SYS_unshare, CLONE_FILES, 0, 0, 0, 0, 0, false },
	{ "seccomp", SYS_seccomp, -1, 0, 0, 0, 0, 0, false },
	{ "landlock_create_ruleset", 444, 0, 0, 1, 0, 0, 0, false },
	/* last: where they succeed, what comes after has other rights */
	{ "unshare net", SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0, EPERM, true },
	{ "unshare user", SYS_unshare, CLONE_NEWUSER, 0, 0, 0, 0, EPERM, true },
};

/* In a child: the errno of each attempt (0 = it worked). */
static void try_all(bool filtered, int *answers)
{
	int status, *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	assert_true(shared != MAP_FAILED && sizeof(int) * UNIT_LEN(attempts) <= 4096);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		launch_failure f;
		size_t i;

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (filtered && seccomp_apply(false, &f) < 0)
			_exit(1);
		for (i = 0; i < UNIT_LEN(attempts); i++) {
			const attempt *a = &attempts[i];

			errno = 0;
			shared[i] = syscall(a->nr, a->a0, a->a1, a->a2, a->a3, a->a4) < 0 ? errno : 0;
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	memcpy(answers, shared, sizeof(int) * UNIT_LEN(attempts));
	munmap(shared, 4096);
}

static void calls_are_refused(void **state)
{
	static int with[UNIT_LEN(attempts)], without[UNIT_LEN(attempts)];
	bool control;
	size_t i;

	(void)state;
	try_all(true, with);
	try_all(false, without);
	control = !geteuid() && without[0] != EPERM; /* root of a container may hold too little */
	for (i = 0; i < UNIT_LEN(attempts); i++) {
		const attempt *a = &attempts[i];

		if (a->want && with[i] != a->want)
			fail_msg("%s: %s", a->name, strerror(with[i]));
		if (!a->want && with[i] != without[i])
			fail_msg("%s: %s, without the filter %s", a->name, strerror(with[i]),
				 strerror(without[i]));
		/* the control; ENOSYS: this kernel has no such call at all */
		if (a->differs && control && without[i] == a->want)
			fail_msg("%s: without the filter the same: %s", a->name, strerror(without[i]));
	}
}

static int run_child(void (*body)(void), bool filtered)
{
	launch_failure f;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (filtered && seccomp_apply(false, &f) < 0)
			_exit(99);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

#ifdef __x86_64__
static void call_i386(void)
{
	long result = 20; /* getpid there */

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory");
}

static void other_abi_kills(void **state)
{
	int control = run_child(call_i386, false), status = run_child(call_i386, true);

	(void)state;
	/* a kernel without the i386 calls ends the control by SIGSEGV, too: nothing to show then */
	if (control)
		skip();
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void call_x32(void)
{
	if (syscall(0x40000000 + SYS_getpid) != -1 || errno != ENOSYS)
		_exit(1);
}

static void x32_is_refused(void **state)
{
	(void)state;
	assert_int_equal(run_child(call_x32, true), 0);
}
#endif

static void *thread_body(void *data)
{
	return data;
}

static void ordinary_life(void)
{
	pthread_t thread;
	void *result = NULL;
	int pair[2], status = 1;
	pid_t pid;

	if (pthread_create(&thread, NULL, thread_body, &pair) || pthread_join(thread, &result) ||
	    result != &pair)
		_exit(2);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) || send(pair[0], "x", 1, 0) != 1)
		_exit(3);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "echo $(echo a | tr a b) >/dev/null & wait", (char *)NULL);
		_exit(4);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		_exit(5);
}

static void ordinary_programs_run(void **state)
{
	(void)state;
	assert_int_equal(run_child(ordinary_life, true), 0);
}

static void oci_text(void **state)
{
	(void)state;
	assert_non_null(strstr(lh_seccomp_oci_json, "\"defaultErrnoRet\": 38"));
	assert_non_null(strstr(lh_seccomp_oci_json, "\"names\": [\"clone\"]"));
	assert_null(strstr(lh_seccomp_oci_json, "\"valueTwo\": 16,")); /* netlink */
	assert_non_null(strstr(lh_seccomp_oci_host_net, "\"valueTwo\": 16,"));
	assert_null(strstr(lh_seccomp_oci_json, "SCMP_ACT_NOTIFY"));
	assert_non_null(strstr(lh_seccomp_oci_place, "\"names\": [\"truncate\""));
	assert_non_null(strstr(lh_seccomp_oci_place, "SCMP_ACT_NOTIFY"));
	assert_non_null(strstr(lh_seccomp_oci_place_net, "SCMP_ACT_NOTIFY"));
	assert_null(strstr(lh_seccomp_oci_worker, "socket"));
	assert_null(strstr(lh_seccomp_oci_worker, "shmget"));
	assert_non_null(strstr(lh_seccomp_oci_worker, "\"execve\""));
	assert_null(strstr(lh_seccomp_oci_json, "21522")); /* TIOCSTI is in no list of what is allowed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_decide), cmocka_unit_test(programs_are_total), cmocka_unit_test(worker_is_less),
		cmocka_unit_test(calls_are_refused),
#ifdef __x86_64__
		cmocka_unit_test(other_abi_kills), cmocka_unit_test(x32_is_refused),
#endif
		cmocka_unit_test(ordinary_programs_run), cmocka_unit_test(oci_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
