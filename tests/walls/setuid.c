/* SPDX-License-Identifier: MIT */
/*
 * Programs that give more than their caller has: a set-user-id file and one with file
 * capabilities, both in the workspace, and the system's own.  The driver makes them when it is root.
 *
 * wall privileges
 * fixture setuid
 * attempt setuid_file: open bare as user | only user
 * attempt capable_file: open bare as user | only user
 * attempt become_root: open bare as root
 * attempt become_root_group: open bare as root
 * attempt set_groups: open bare as root
 * attempt raise_capabilities: open bare as root
 * attempt ambient: open bare as root
 * attempt keep_capabilities: open bare as root
 * attempt effective: open bare as root
 * attempt bounding: open bare | needs own-root
 * attempt no_new_privs: open bare
 * attempt unfiltered: open bare
 * attempt identity_is_root: open bare as root
 */
#include "attempt.h"
#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>

/* The helper prints its effective uid and capabilities: "0 0000000000000000". */
static int gained(const char *path, unsigned long uid_before)
{
	char text[128] = "";
	int out[2], status;

	if (strcmp(path, "/nowhere") == 0)
		return NONE; /* only root can make such a file */
	if (pipe(out) < 0)
		return errno;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		execl(path, path, "report", (char *)NULL);
		_exit(errno == EACCES || errno == EPERM ? 126 : 127);
	}
	close(out[1]);
	ssize_t n = read(out[0], text, sizeof text - 1);
	waitpid(pid, &status, 0);
	if (n <= 0)
		return WEXITSTATUS(status) == 126 ? EACCES : ENOENT;
	char *rest;
	unsigned long uid = strtoul(text, &rest, 10);
	return uid != uid_before || strtoull(rest, NULL, 16) != 0 ? 0 : EPERM;
}

static int setuid_file(void)
{
	return gained(target("SETUID_FILE"), (unsigned long)geteuid());
}

static int capable_file(void)
{
	return gained(target("CAPABLE_FILE"), (unsigned long)geteuid());
}

static int become_root(void)
{
	return verdict(setuid(0));
}

static int become_root_group(void)
{
	return verdict(setgid(0));
}

static int set_groups(void)
{
	const gid_t groups[] = { 0, 4, 6 };

	return verdict(setgroups(3, groups));
}

static int raise_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1u << 21, .permitted = 1u << 21 } };

	return verdict(syscall(SYS_capset, &head, data));
}

static int ambient(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return errno;
	data[0].inheritable = 1u << 21;
	if (syscall(SYS_capset, &head, data) < 0)
		return errno;
	return verdict(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
}

static int keep_capabilities(void)
{
	return verdict(prctl(PR_SET_SECUREBITS, 0x2f));
}

/* Not by /proc/self/status, which not every sandbox has.  permitted too; ~0 = cannot be told. */
static unsigned long long capabilities(bool permitted)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	unsigned long long found = 0;

	if (syscall(SYS_capget, &head, data) < 0)
		return ~0ull;
	for (int i = 0; i < 2; i++)
		found |= (unsigned long long)(data[i].effective | (permitted ? data[i].permitted : 0)) << 32 * i;
	return found;
}

static int effective(void)
{
	return capabilities(true) != 0 ? 0 : EPERM;
}

static int bounding(void)
{
	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap) > 0)
			return 0;
	return EPERM;
}

static int no_new_privs(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ? 0 : EPERM;
}

static int unfiltered(void)
{
	return prctl(PR_GET_SECCOMP) != 2 ? 0 : EPERM;
}

static int identity_is_root(void)
{
	return geteuid() == 0 || getuid() == 0 ? 0 : EPERM;
}

/* Also the helper: run as "report" it tells who it has become. */
static const struct attempt attempts[] = {
	{ "setuid_file", setuid_file }, { "capable_file", capable_file },
	{ "become_root", become_root }, { "become_root_group", become_root_group },
	{ "set_groups", set_groups }, { "raise_capabilities", raise_capabilities },
	{ "ambient", ambient }, { "keep_capabilities", keep_capabilities },
	{ "effective", effective }, { "bounding", bounding }, { "no_new_privs", no_new_privs },
	{ "unfiltered", unfiltered }, { "identity_is_root", identity_is_root }, { 0 }
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "report") == 0) {
		printf("%lu %llx\n", (unsigned long)geteuid(), capabilities(false));
		return 0;
	}
	return attempt_main(attempts, argc, argv);
}
