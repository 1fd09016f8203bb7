/* SPDX-License-Identifier: MIT */
/*
 * The reaper, pid 1 inside: it holds the control socket.  Tracing it, reading or writing its
 * memory, taking its descriptors, its program, and killing it.
 *
 * wall processes
 * attempt seize: open without undumpable+seccomp | shut without seccomp | shut without undumpable
 * attempt attach: open without undumpable+seccomp | shut without seccomp
 * attempt read_by_vm: open without undumpable+seccomp | shut without seccomp
 * attempt memory_file: open without undumpable
 * attempt descriptors: open without undumpable
 * attempt take_descriptor: open without undumpable+seccomp | shut without seccomp
 * attempt program: open without undumpable
 * attempt environment: open without undumpable
 * attempt maps: open without undumpable
 * attempt working_directory: open without undumpable
 * attempt system_call: open without undumpable+seccomp
 * attempt limit_it: open without seccomp
 * attempt kill_it: no control, it would signal the pid 1 of this machine
 */
#include "attempt.h"
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static int seize(void)
{
	return verdict(ptrace(PTRACE_SEIZE, 1, 0, 0));
}

static int attach(void)
{
	if (ptrace(PTRACE_ATTACH, 1, 0, 0) < 0)
		return errno;
	waitpid(1, NULL, __WALL);
	ptrace(PTRACE_DETACH, 1, 0, 0);
	return 0;
}

static int read_by_vm(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)0x1000, 1 };

	/* EFAULT is the answer of a kernel that was willing */
	if (process_vm_readv(1, &here, 1, &there, 1, 0) < 0 && errno != EFAULT)
		return errno;
	return 0;
}

static int memory_file(void)
{
	return try_open("/proc/1/mem", O_RDWR);
}

static int descriptors(void)
{
	return try_open("/proc/1/fd", O_RDONLY | O_DIRECTORY);
}

static int take_descriptor(void)
{
	int pidfd = (int)syscall(434, 1, 0);

	if (pidfd < 0)
		return errno;
	return verdict(syscall(438, pidfd, 3, 0));
}

static int program(void)
{
	char text[256];

	return verdict(readlink("/proc/1/exe", text, sizeof text));
}

static int environment(void)
{
	return try_open("/proc/1/environ", O_RDONLY);
}

static int maps(void)
{
	return try_open("/proc/1/maps", O_RDONLY);
}

static int working_directory(void)
{
	char text[256];

	return verdict(readlink("/proc/1/cwd", text, sizeof text));
}

static int system_call(void)
{
	char text[64];
	int fd = open("/proc/1/syscall", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? errno : verdict(read(fd, text, sizeof text));
}

/* The kernel drops what pid 1 of a namespace does not handle, SIGKILL from inside included: the
 * call may succeed, and what counts is that this program is still there to say so. */
static int kill_it(void)
{
	char here[64] = "";

	if (readlink("/proc/self/ns/pid", here, sizeof here - 1) < 0 ||
	    strcmp(here, target("HOST_PIDNS")) == 0)
		_exit(0); /* no pid namespace of our own: got through, and nothing is signalled */
	kill(1, SIGKILL);
	kill(1, SIGTERM);
	kill(1, SIGSTOP);
	kill(1, SIGSEGV);
	return ESRCH;
}

/* Later commands of the box would inherit it, and with none left it could start no more. */
static int limit_it(void)
{
	struct rlimit now, less;

	if (prlimit(1, RLIMIT_NOFILE, NULL, &now) < 0)
		return errno;
	less = now;
	less.rlim_cur = --less.rlim_max;
	return verdict(prlimit(1, RLIMIT_NOFILE, &less, NULL));
}

ATTEMPTS({ "seize", seize }, { "attach", attach }, { "read_by_vm", read_by_vm },
	 { "memory_file", memory_file }, { "descriptors", descriptors },
	 { "take_descriptor", take_descriptor }, { "program", program },
	 { "environment", environment }, { "maps", maps },
	 { "working_directory", working_directory }, { "system_call", system_call },
	 { "limit_it", limit_it },
	 { "kill_it", kill_it })
