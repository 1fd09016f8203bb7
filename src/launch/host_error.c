/* SPDX-License-Identifier: MIT */
/*
 * host_error.c - a FAILED of sb-launch as the error that a caller expects, with the one thing to
 * change.  Only here, after a failure, does the host look why the kernel said no.
 */
#include "host_box.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

/* The first number of a sysctl file, or -1. */
static long sysctl_number(const char *path)
{
	int FD_AUTO fd = open_regular(AT_FDCWD, path);
	char text[32];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (n <= 0)
		return -1;
	text[n] = 0;
	return strtol(text, NULL, 10);
}

static bool apparmor_forbids(void)
{
	return geteuid() &&
	       sysctl_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1;
}

static const char apparmor_remedy[] =
	"AppArmor forbids user namespaces: install packaging/apparmor/sandbox (PREFIX/share/sandbox/apparmor) in "
	"/etc/apparmor.d and run `sudo apparmor_parser -r /etc/apparmor.d/sandbox`";

/* The kind of namespace of which this user may have none at all, or NULL. */
static const char *switched_off(void)
{
	static const char *const kinds[] = { "user", "pid", "mnt", "ipc", "uts", "net", "cgroup" };
	static const char *const orders[] = {
		"namespaces are switched off here: run `sysctl -w user.max_user_namespaces=15000`",
		"namespaces are switched off here: run `sysctl -w user.max_pid_namespaces=15000`",
		"namespaces are switched off here: run `sysctl -w user.max_mnt_namespaces=15000`",
		"namespaces are switched off here: run `sysctl -w user.max_ipc_namespaces=15000`",
		"namespaces are switched off here: run `sysctl -w user.max_uts_namespaces=15000`",
		"namespaces are switched off here: run `sysctl -w user.max_net_namespaces=15000`",
		"namespaces are switched off here: run `sysctl -w user.max_cgroup_namespaces=15000`",
	};
	char path[64];
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
		if (sysctl_number(path) == 0)
			return orders[i];
	}
	return NULL;
}

/* Are we the guest of one of our own? */
static bool inside_a_sandbox(void)
{
	static const char *const names[] = { "sb-launch\n", "sandbox\n" };
	int FD_AUTO fd = open_regular(AT_FDCWD, "/proc/1/comm");
	char text[32] = "";

	return fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
	       (!strcmp(text, names[0]) || !strcmp(text, names[1]));
}

static const char *userns_remedy(int os_errno)
{
	const char *off = switched_off();

	if (off)
		return off;
	if (os_errno == EROFS)
		return "/proc is read-only here: mount it writable, as `mount -o remount,rw /proc` does";
	if (sysctl_number("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		return "user namespaces are for root only here: run `sysctl -w "
		       "kernel.unprivileged_userns_clone=1`";
	if (apparmor_forbids())
		return apparmor_remedy;
	if (os_errno == ENOSPC || os_errno == EUSERS)
		return "too many or too deep namespaces: raise user.max_user_namespaces and its like";
	if (inside_a_sandbox())
		return "a sandbox cannot be made inside a sandbox: run it outside, or name --backend "
		       "process, behind the walls that are there already";
	return "user namespaces are forbidden here, by a container (start it with `--security-opt "
	       "seccomp=unconfined`), a service (RestrictNamespaces=) or a chroot";
}

/* sched(7): under SCHED_DEADLINE nothing is forked, unless the children are to have another policy. */
static const char *process_remedy(void)
{
	if (syscall(SYS_sched_getscheduler, 0) == SCHED_DEADLINE)
		return "a caller under SCHED_DEADLINE may start no process: start it under another policy (`chrt "
		       "--other 0`), or with `chrt --reset-on-fork`";
	return "the limit of processes is met: raise it (`ulimit -u`, or pids.max of the cgroup you are in)";
}

const char *host_limit_remedy(int os_errno)
{
	switch (os_errno) {
	case EMFILE:
		return "raise the limit of open files (`ulimit -n`)";
	case ENFILE:
		return "the whole machine is out of open files: raise fs.file-max";
	case EAGAIN:
		return process_remedy();
	case EFBIG:
		return "raise the limit of file sizes (`ulimit -f`)";
	case ENOMEM:
		return "memory has run out: free some, or raise the limit of the cgroup you are in";
	default:
		return NULL;
	}
}

static const char *cgroup_remedy(int os_errno)
{
	if (os_errno == EACCES || os_errno == EPERM || os_errno == EROFS)
		return "name a cgroup that you may write with --cgroup, or start it under `systemd-run "
		       "--user --scope -p Delegate=yes`";
	if (os_errno == ENOENT)
		return "the named cgroup does not exist: make it, or leave --cgroup out";
	return "name another parent with --cgroup, or allow the weaker limits with --allow-weaker";
}

typedef struct remedy {
	const char *where;
	const char *text;
} remedy;

static const remedy remedies[] = {
	{ "build-id", "sandbox and sb-launch are of different builds: install both together" },
	{ "protocol", "this is a defect of sandbox itself, or sb-launch was killed" },
	{ "proc", "/proc is covered by other mounts, as in a container: start the container with "
		  "`--security-opt systempaths=unconfined`" },
	{ "mask", "/proc is covered by other mounts, as in a container: start the container with "
		  "`--security-opt systempaths=unconfined`" },
	{ "sampler", "mount it without hidepid (a service: ProtectProc=), or name a cgroup that you may write "
		     "with --cgroup" },
	{ "landlock", "boot with `lsm=landlock,...` on a kernel with CONFIG_SECURITY_LANDLOCK, or allow "
		      "the weaker wall by name" },
	{ "seccomp", "the kernel needs CONFIG_SECCOMP_FILTER" },
	{ "idmap", "the file system does not support id-mapped mounts: show it read-only (--workspace-mode ro, "
		   "--ro), or use a place on ext4, xfs, btrfs or tmpfs" },
	{ "netns", "network namespaces are refused: raise user.max_net_namespaces, or share the network "
		   "with --net host" },
	{ "namespaces", "one of the namespaces is refused: see `sysctl -a | grep max_.*_namespaces`" },
	{ "tmpfs", "the scratch file system cannot be made: lower --disk" },
	{ "mount.source", "check that the path exists and that you may reach it" },
	{ "groups", "supplementary groups cannot be dropped: start as root, or as a plain user" },
};

/* `name` is the step itself, or what stands before its first ".". */
static bool is_step(const char *where, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(where, name, len) && (!where[len] || where[len] == '.');
}

static const char *remedy_for(const char *where, int os_errno)
{
	const char *limit = host_limit_remedy(os_errno);
	size_t i;

	if (limit)
		return limit;
	if (is_step(where, "userns") || (is_step(where, "namespaces") && os_errno == ENOSPC))
		return userns_remedy(os_errno);
	if (is_step(where, "cgroup"))
		return cgroup_remedy(os_errno);
	if (is_step(where, "scope"))
		return "name a cgroup that you may write with --cgroup, or unset DBUS_SESSION_BUS_ADDRESS and "
		       "XDG_RUNTIME_DIR to do without one";
	if (is_step(where, "idmap") && os_errno == EPERM)
		return "whoever is root only in a user namespace cannot map owners: use --workspace-mode ro, "
		       "or run it as the owner";
	/* AppArmor lets the namespace be made, and then takes every capability in it */
	if ((os_errno == EPERM || os_errno == EACCES) && !is_step(where, "mount.source") &&
	    !is_step(where, "landlock") && apparmor_forbids())
		return apparmor_remedy;
	if ((os_errno == EPERM || os_errno == ENOSYS) && (is_step(where, "tmpfs") || !strcmp(where, "mount")))
		return "mounts are forbidden here, by a container (start it with `--security-opt "
		       "seccomp=unconfined`) or a service (SystemCallFilter=)";
	for (i = 0; i < BASE_ARRAY_LEN(remedies); i++)
		if (is_step(where, remedies[i].where))
			return remedies[i].text;
	return "`sandbox doctor` tells wall by wall what works here";
}

/* One line, whatever pid 1 wrote. */
static void plain_line(char *out, size_t cap, const char *text)
{
	size_t i;

	for (i = 0; i + 1 < cap && text[i]; i++)
		out[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
	out[i] = 0;
}

static int exec_error(const lp_failed *failed, const char *message, sb_error *err)
{
	int code = error_code_of_errno(failed->os_errno);
	const char *instead = "";

	if (failed->os_errno == E2BIG) {
		code = SB_ERR_INVALID_SPEC;
		instead = "; pass what is large in a file or as input";
	} else if (host_limit_remedy(failed->os_errno)) {
		/* the caller's own limits, and not the program's fault */
		error_set(err, code, "spawn", "%.250s; %s", message, host_limit_remedy(failed->os_errno));
		if (err)
			err->os_errno = failed->os_errno;
		return code;
	} else if (failed->exec == 1 && code != SB_ERR_NOT_FOUND && code != SB_ERR_NO_MEMORY) {
		/* The caller's exit codes know two ways: not there, or there and not to be run. */
		code = SB_ERR_FORBIDDEN;
	} else if (failed->exec != 1 && failed->os_errno == EACCES) {
		instead = "; open it to the guest's user (`chmod o+rx`), or name another (--workdir)";
	}
	error_set(err, code, failed->exec == 1 ? "exec" : "cwd", "%s%s", message, instead);
	if (err)
		err->os_errno = failed->os_errno;
	return code;
}

/* Of a path that the caller named. */
static int files_code(int os_errno)
{
	switch (os_errno) {
	case ENOSPC:
	case EDQUOT:
		return SB_ERR_FS_QUOTA;
	case ELOOP:
		return SB_ERR_PATH_TRAVERSAL;
	case EACCES:
	case EPERM:
	case EROFS:
		return SB_ERR_FORBIDDEN;
	case EINVAL:
	case ENAMETOOLONG:
		return SB_ERR_INVALID_PATH;
	case ETIMEDOUT:
		return SB_ERR_TIMEOUT;
	case ENOENT:
	case EISDIR:
	case ENOTDIR:
		return error_code_of_errno(os_errno);
	default:
		return SB_ERR_IO;
	}
}

int lh_failed_error(const lp_failed *failed, sb_error *err)
{
	char message[sizeof failed->message], where[sizeof failed->where];
	int code = SB_ERR_BACKEND_UNAVAILABLE;

	plain_line(message, sizeof message, failed->message);
	plain_line(where, sizeof where, failed->where);
	if (failed->exec)
		return exec_error(failed, message, err);
	if (!strcmp(where, "files")) {
		code = files_code(failed->os_errno);
		error_set(err, code, "files", "%.300s%s", message,
			  code == SB_ERR_FS_QUOTA ? "; remove some, or raise --disk, or --disk-files" : "");
	} else if (!strcmp(where, "put")) {
		const char *limit = host_limit_remedy(failed->os_errno);

		code = failed->os_errno == ENOSPC ? SB_ERR_FS_QUOTA : SB_ERR_IO;
		error_set(err, code, "put", "%.250s%s%s", message, limit ? "; " : "",
			  limit ? limit : code == SB_ERR_FS_QUOTA ? "; raise --disk, or --disk-files" : "");
	} else {
		error_set(err, code, where, "%.250s; %s", message, remedy_for(where, failed->os_errno));
	}
	if (err)
		err->os_errno = failed->os_errno;
	return code;
}
