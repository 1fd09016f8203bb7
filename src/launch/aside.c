/* SPDX-License-Identifier: MIT */
/*
 * aside.c - the namespaces of network and IPC, made beside pid 1.
 *
 * A network namespace takes the kernel longer than all mounts together, and nothing needs it before the
 * walls are closed.  A second process, which shares pid 1's memory and descriptors, makes both, brings the
 * loopback up, leaves their descriptors and ends; pid 1 joins them when its mounts stand.  They belong to
 * the user namespace that pid 1 is in, as if it had made them.  With one processor, or where it could not leave
 * them (there is no /proc), pid 1 makes them itself.
 *
 * It would write pid 1's errno, so it makes its system calls by itself.
 */
#include "box.h"
#include "sys.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define STACK_BYTES 16384
#define KINDS 2

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#endif

static struct {
	unsigned long namespaces;       /* CLONE_NEW*, not joined yet */
	bool loopback;
	int pid;                        /* 0 = none */
	int fd[KINDS];                  /* valid once it has ended and `left` */
	bool left;
} made = { .fd = { -1, -1 } };

static const struct { unsigned long flag; const char *path; } kind[KINDS] = {
	{ CLONE_NEWNET, "/proc/self/ns/net" }, { CLONE_NEWIPC, "/proc/self/ns/ipc" } };

#if (defined __x86_64__ || defined __aarch64__) && !defined SANITIZED

/* The kernel's answer, -errno included. */
static inline long call(long number, long a, long b, long c)
{
#ifdef __x86_64__
	long answer;

	__asm__ volatile("syscall" : "=a"(answer) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return answer;
#else
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
		      x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory", "cc");
	return x0;
#endif
}

static long open_file(const char *path, long flags)
{
	return call(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC);
}

/* The next process is to be the one after pid 1, as if we had never been: a courtesy. */
static void give_number_back(void)
{
	long fd = open_file("/proc/sys/kernel/ns_last_pid", O_WRONLY);

	if (fd < 0)
		return;
	call(SYS_write, fd, (long)"1", 1);
	call(SYS_close, fd, 0, 0);
}

static long bring_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	long fd = call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return fd;
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	rc = call(SYS_ioctl, fd, SIOCSIFFLAGS, (long)&request);
	call(SYS_close, fd, 0, 0);
	return rc;
}

static int aside_main(void *unused)
{
	size_t i;

	(void)unused;
	if (call(SYS_unshare, (long)made.namespaces, 0, 0) < 0 || (made.loopback && bring_up() < 0))
		return 1;
	for (i = 0; i < KINDS; i++)
		if (made.namespaces & kind[i].flag && (made.fd[i] = (int)open_file(kind[i].path, O_RDONLY)) < 0)
			return 1;
	made.left = true;
	give_number_back();
	return 0;
}

static void start(void)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	int pid = clone(aside_main, stack + sizeof stack, CLONE_VM | CLONE_FILES, NULL);

	made.pid = pid > 0 ? pid : 0;
}

#else

static void start(void) { }

#endif

void aside_start(unsigned long namespaces, bool loopback)
{
	made.namespaces = namespaces;
	made.loopback = loopback;
	if ((namespaces & CLONE_NEWNET) && sysconf(_SC_NPROCESSORS_ONLN) > 1)
		start();
}

static int make_here(launch_failure *f)
{
	if (unshare((int)made.namespaces) < 0)
		return launch_fail(f, errno, "namespaces", "cannot make the namespaces");
	return made.loopback ? privileges_loopback(f) : 0;
}

/* False: not all of them.  Whoever filters our calls may know nothing against a new namespace, and something
 * against one that is there. */
static bool join(void)
{
	bool joined = made.left;
	size_t i;

	for (i = 0; i < KINDS; i++) {
		if (joined && (made.namespaces & kind[i].flag))
			joined = !setns(made.fd[i], (int)kind[i].flag);
		if (made.fd[i] >= 0)
			close(made.fd[i]);
	}
	return joined;
}

int aside_join(launch_failure *f)
{
	int rc;

	if (!made.namespaces)
		return 0;
	while (made.pid && waitpid(made.pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	rc = join() ? 0 : make_here(f);
	made.namespaces = 0;
	return rc;
}
