/* SPDX-License-Identifier: MIT */
/*
 * Around the filter: by the other system call tables of this processor, by a number beyond the
 * table, and by bits of an argument that the kernel does not look at.
 *
 * wall syscalls
 * attempt int80: open without seccomp
 * attempt int80_socket: open without seccomp
 * attempt x32_call: open without seccomp
 * attempt beyond_the_table: no control, no kernel has such a call
 * attempt negative_number: no control, no kernel has such a call
 * attempt clone_high_bits: open without seccomp
 * attempt socket_high_bits: open without seccomp
 */
#include "attempt.h"
#include <sched.h>
#include <sys/socket.h>

/* getpid by the 32-bit gate: the number is that of another call in the native table. */
static int int80(void)
{
#ifdef __x86_64__
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	if (result < 0)
		return (int)-result;
	return result == getpid() ? 0 : ENOSYS;
#else
	return NONE;
#endif
}

/* socket(AF_VSOCK) through it, which the native table refuses. */
static int int80_socket(void)
{
#ifdef __x86_64__
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(359L), "b"((long)AF_VSOCK), "c"((long)SOCK_STREAM), "d"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	return result < 0 ? (int)-result : 0;
#else
	return NONE;
#endif
}

static int x32_call(void)
{
#ifdef __x86_64__
	long result = syscall(0x40000000L | 39);

	return result < 0 ? errno : 0;
#else
	return NONE;
#endif
}

/* ENOSYS, so that programs that try what is new fall back; anything else would be a surprise. */
static int beyond_the_table(void)
{
	long result = syscall(10000, 1, 2, 3);

	if (result < 0 && errno == ENOSYS)
		return ENOSYS;
	return 0;
}

static int negative_number(void)
{
	long result = syscall(-2L);

	return result < 0 ? errno : 0;
}

/* The kernel takes an int: the upper half of the register must not fool the filter. */
static int clone_high_bits(void)
{
	long pid = syscall(SYS_clone, (1L << 40) | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

static int socket_high_bits(void)
{
	return verdict(syscall(SYS_socket, (1L << 40) | AF_VSOCK, SOCK_STREAM, 0));
}

ATTEMPTS({ "int80", int80 }, { "int80_socket", int80_socket }, { "x32_call", x32_call },
	 { "beyond_the_table", beyond_the_table }, { "negative_number", negative_number },
	 { "clone_high_bits", clone_high_bits }, { "socket_high_bits", socket_high_bits })
