/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own files: those that make it run a program of the guest's (core_pattern, the
 * cgroup release agent, modprobe), those that command it (sysrq, the trigger files), those that
 * leak (kcore, kmsg, keys).  Opening for writing is what counts: nothing is written.
 *
 * wall files
 * attempt core_pattern: open bare as root
 * attempt modprobe: open bare as root
 * attempt hotplug: open bare as root
 * attempt binfmt: open bare as root
 * attempt hostname: open bare as root
 * attempt panic: open bare as root
 * attempt overcommit: open bare as root
 * attempt ns_last_pid: open bare as root
 * attempt sysrq_trigger: open bare as root
 * attempt kcore: open bare as root
 * attempt kmsg: open bare as root
 * attempt keys: open without mask
 * attempt key_users: open without mask
 * attempt timer_list: open bare as root
 * attempt kallsyms: open without mask
 * attempt boot_id: open without mask
 * attempt boot_cmdline: open without mask
 * attempt slabinfo: open bare as root
 * attempt pagetypeinfo: open bare as root
 * attempt interrupts_write: open bare as root
 * attempt sys_write: open bare as root
 * attempt sys_read: open without root+landlock | shut without landlock
 * attempt debugfs: open bare as root
 * attempt cgroup_write: open bare as root
 * attempt cgroup_read: open without root+landlock | shut without landlock
 * attempt release_agent: open bare as root
 * attempt dev_mem: open bare as root
 * attempt dev_kmsg: open bare as root
 * attempt oom_score_lower: open bare as root
 */
#include "attempt.h"
#include <dirent.h>
#include <limits.h>

/* First of several places that exists on this machine. */
static int open_first(int flags, const char *const *paths)
{
	int last = ENOENT;

	for (; *paths != NULL && last == ENOENT; paths++)
		last = try_open(*paths, flags);
	return last;
}

#define OPENS(name, flags, ...)                                             \
	static int name(void)                                               \
	{                                                                   \
		return open_first(flags, (const char *const[]){ __VA_ARGS__, NULL }); \
	}

OPENS(core_pattern, O_WRONLY, "/proc/sys/kernel/core_pattern")
OPENS(modprobe, O_WRONLY, "/proc/sys/kernel/modprobe", "/proc/sys/kernel/poweroff_cmd")
OPENS(hotplug, O_WRONLY, "/proc/sys/kernel/hotplug", "/proc/sys/kernel/usermodehelper/bset")
OPENS(binfmt, O_WRONLY, "/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/pipe-max-size")
OPENS(hostname, O_WRONLY, "/proc/sys/kernel/hostname")
OPENS(panic, O_WRONLY, "/proc/sys/kernel/panic")
OPENS(overcommit, O_WRONLY, "/proc/sys/vm/overcommit_memory")
OPENS(ns_last_pid, O_WRONLY, "/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/pid_max")
OPENS(sysrq_trigger, O_WRONLY, "/proc/sysrq-trigger")
OPENS(kcore, O_RDONLY, "/proc/kcore")
OPENS(kmsg, O_RDONLY, "/proc/kmsg")
OPENS(timer_list, O_RDONLY, "/proc/timer_list")
OPENS(boot_id, O_RDONLY, "/proc/sys/kernel/random/boot_id")
OPENS(boot_cmdline, O_RDONLY, "/proc/cmdline")
OPENS(slabinfo, O_RDONLY, "/proc/slabinfo", "/proc/vmallocinfo")
OPENS(pagetypeinfo, O_RDONLY, "/proc/pagetypeinfo", "/proc/kpagecount")
OPENS(interrupts_write, O_WRONLY, "/proc/irq/default_smp_affinity")
OPENS(sys_write, O_WRONLY, "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state")
OPENS(cgroup_write, O_WRONLY, "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs",
      "/sys/fs/cgroup/unified/cgroup.procs")
OPENS(release_agent, O_WRONLY, "/sys/fs/cgroup/memory/release_agent",
      "/sys/fs/cgroup/pids/release_agent", "/sys/fs/cgroup/cgroup.procs")
OPENS(dev_kmsg, O_WRONLY, "/dev/kmsg")

/* Files that any user may read count only by what stands in them. */
static int holds(const char *path, const char *wanted)
{
	char line[4096];
	FILE *f = fopen(path, "re");
	int found = 0;

	if (f == NULL)
		return errno;
	while (!found && fgets(line, sizeof line, f) != NULL)
		found = strstr(line, wanted) != NULL;
	fclose(f);
	return found ? 0 : ENODATA;
}

static int keys(void)
{
	return try_open("/proc/keys", O_RDONLY);
}

static int key_users(void)
{
	return try_open("/proc/key-users", O_RDONLY);
}

static int kallsyms(void)
{
	return holds("/proc/kallsyms", " T ");
}

static int has_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int found = 0;

	if (dir == NULL)
		return errno;
	while ((entry = readdir(dir)) != NULL)
		found |= entry->d_name[0] != '.';
	closedir(dir);
	return found ? 0 : ENOENT;
}

static int sys_read(void)
{
	return has_entries("/sys/kernel");
}

static int cgroup_read(void)
{
	return has_entries("/sys/fs/cgroup");
}

static int debugfs(void)
{
	int got = has_entries("/sys/kernel/debug");

	return got == ENOENT ? has_entries("/sys/kernel") : got;
}

static int dev_mem(void)
{
	int got = open_first(O_RDONLY, (const char *const[]){ "/dev/mem", "/dev/port", NULL });

	return got == ENOENT ? open_first(O_RDONLY, (const char *const[]){ "/dev/loop0", NULL }) : got;
}

/* A guest that can lower it makes the kernel choose another victim: ours. */
static int oom_score_lower(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return verdict(write(fd, "-999", 4));
}

ATTEMPTS({ "core_pattern", core_pattern }, { "modprobe", modprobe }, { "hotplug", hotplug },
	 { "binfmt", binfmt }, { "hostname", hostname }, { "panic", panic },
	 { "overcommit", overcommit }, { "ns_last_pid", ns_last_pid },
	 { "sysrq_trigger", sysrq_trigger }, { "kcore", kcore }, { "kmsg", kmsg },
	 { "keys", keys }, { "key_users", key_users }, { "timer_list", timer_list },
	 { "kallsyms", kallsyms }, { "slabinfo", slabinfo }, { "boot_id", boot_id }, { "boot_cmdline", boot_cmdline },
	 { "pagetypeinfo", pagetypeinfo }, { "interrupts_write", interrupts_write },
	 { "sys_write", sys_write }, { "sys_read", sys_read },
	 { "debugfs", debugfs }, { "cgroup_write", cgroup_write }, { "cgroup_read", cgroup_read },
	 { "release_agent", release_agent }, { "dev_mem", dev_mem }, { "dev_kmsg", dev_kmsg },
	 { "oom_score_lower", oom_score_lower })
