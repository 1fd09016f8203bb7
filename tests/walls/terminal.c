/* SPDX-License-Identifier: MIT */
/*
 * The caller's terminal: the driver runs this with one that controls the caller.  Opening it by
 * name, and pushing characters into it that the caller's shell would read as typed.
 *
 * wall processes
 * fixture terminal
 * attempt open_tty: open bare
 * attempt inject: open bare
 * attempt inject_by_stdin: open bare
 * attempt inject_by_name: open bare
 * attempt filter_inject: open without seccomp
 * attempt filter_inject_high_bits: open without seccomp
 * attempt filter_linux: open without seccomp
 * attempt filter_linux_high_bits: open without seccomp
 */
#include "attempt.h"
#include <sys/ioctl.h>

#ifndef TIOCLINUX
#define TIOCLINUX 0x541c
#endif

static int push(int fd)
{
	int got = 0;

	if (fd < 0)
		return errno;
	for (const char *c = "\x01"; *c != '\0' && got == 0; c++)
		got = verdict(ioctl(fd, TIOCSTI, c));
	/* EIO: this kernel has it switched off for everybody */
	return got == EIO ? NONE : got;
}

static int open_tty(void)
{
	return try_open("/dev/tty", O_RDWR);
}

static int inject(void)
{
	return push(open("/dev/tty", O_RDWR | O_CLOEXEC));
}

static int inject_by_stdin(void)
{
	return push(0);
}

static int inject_by_name(void)
{
	return push(open(target("TERMINAL"), O_RDWR | O_CLOEXEC | O_NOCTTY));
}

/* On a descriptor that is no terminal the kernel answers ENOTTY: the filter let it by. */
static int filtered(unsigned long request)
{
	char c = '\0';
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return reached(syscall(SYS_ioctl, fd, request, &c));
}

static int filter_inject(void)
{
	return filtered(TIOCSTI);
}

static int filter_inject_high_bits(void)
{
	return filtered(TIOCSTI | (1UL << 32) | (1UL << 63));
}

static int filter_linux(void)
{
	return filtered(TIOCLINUX);
}

static int filter_linux_high_bits(void)
{
	return filtered(TIOCLINUX | (1UL << 32));
}

ATTEMPTS({ "open_tty", open_tty }, { "inject", inject }, { "inject_by_stdin", inject_by_stdin },
	 { "inject_by_name", inject_by_name }, { "filter_inject", filter_inject },
	 { "filter_inject_high_bits", filter_inject_high_bits }, { "filter_linux", filter_linux },
	 { "filter_linux_high_bits", filter_linux_high_bits })
