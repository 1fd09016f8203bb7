/* SPDX-License-Identifier: MIT */
/*
 * Other processes: the one that holds the walls (pid 1 inside), and those of the host.
 *
 * wall processes
 * fixture victim
 * attempt see_victim: open bare
 * attempt kill_victim: open bare
 * attempt stop_victim: open bare
 * attempt queue_to_victim: open bare
 * attempt pidfd_to_victim: open bare
 * attempt read_victim_environment: open bare
 * attempt trace_victim: open bare as root
 * attempt read_victim_memory: open bare as root
 * attempt limit_victim: open bare
 * attempt schedule_victim: open bare
 * attempt count_processes: open bare
 * attempt same_ipc: open without ipcns | needs own-root
 * attempt same_uts: open without utsns | needs own-root
 */
#include "attempt.h"
#include <dirent.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

/* Whether the guest is in the namespace of the host, which it is told.  Without a /proc there is nothing to tell it by. */
static int same(const char *kind, const char *of_host)
{
	char own[64] = "";
	long len = readlink(kind, own, sizeof own - 1);

	if (len < 0)
		return errno == ENOENT ? NONE : errno;
	return strcmp(own, target(of_host)) == 0 ? 0 : EPERM;
}

static int same_ipc(void)
{
	return same("/proc/self/ns/ipc", "HOST_IPCNS");
}

static int same_uts(void)
{
	return same("/proc/self/ns/uts", "HOST_UTSNS");
}

static int see_victim(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/cmdline", number("VICTIM"));
	return try_open(path, O_RDONLY);
}

/* 0 is no signal: the permission alone is asked for; the other attempts send real ones. */
static int kill_victim(void)
{
	return verdict(kill(number("VICTIM"), SIGUSR1));
}

static int stop_victim(void)
{
	int pid = number("VICTIM");
	int got = verdict(kill(pid, SIGCONT));

	return got != 0 ? got : verdict(syscall(SYS_tgkill, pid, pid, 0));
}

static int queue_to_victim(void)
{
	union sigval value = { .sival_int = 1 };

	return verdict(sigqueue(number("VICTIM"), SIGUSR1, value));
}

static int pidfd_to_victim(void)
{
	int fd = (int)syscall(434, number("VICTIM"), 0);

	if (fd < 0)
		return errno;
	return verdict(syscall(424, fd, SIGUSR1, NULL, 0));
}

static int read_victim_environment(void)
{
	char path[64], text[64];

	snprintf(path, sizeof path, "/proc/%d/environ", number("VICTIM"));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? errno : verdict(read(fd, text, sizeof text));
}

static int trace_victim(void)
{
	return verdict(ptrace(PTRACE_SEIZE, number("VICTIM"), 0, 0));
}

static int read_victim_memory(void)
{
	char byte;
	char path[64], line[256];
	unsigned long at = 0;

	snprintf(path, sizeof path, "/proc/%d/maps", number("VICTIM"));
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return errno;
	if (fgets(line, sizeof line, f) != NULL)
		at = strtoul(line, NULL, 16);
	fclose(f);
	struct iovec here = { &byte, 1 }, there = { (void *)at, 1 };
	return verdict(process_vm_readv(number("VICTIM"), &here, 1, &there, 1, 0));
}

static int limit_victim(void)
{
	struct rlimit now;

	return verdict(prlimit(number("VICTIM"), RLIMIT_CORE, NULL, &now));
}

static int schedule_victim(void)
{
	return verdict(setpriority(PRIO_PROCESS, (id_t)number("VICTIM"), 19));
}

/* More than the reaper, this program and its child: the host's are visible. */
static int count_processes(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	if (dir == NULL)
		return errno;
	while ((entry = readdir(dir)) != NULL)
		found += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
	closedir(dir);
	return found > 6 ? 0 : ESRCH;
}

ATTEMPTS({ "see_victim", see_victim }, { "kill_victim", kill_victim },
	 { "stop_victim", stop_victim }, { "queue_to_victim", queue_to_victim },
	 { "pidfd_to_victim", pidfd_to_victim },
	 { "read_victim_environment", read_victim_environment }, { "trace_victim", trace_victim },
	 { "read_victim_memory", read_victim_memory }, { "limit_victim", limit_victim },
	 { "schedule_victim", schedule_victim }, { "count_processes", count_processes },
	 { "same_ipc", same_ipc }, { "same_uts", same_uts })
