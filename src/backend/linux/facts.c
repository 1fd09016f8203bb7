/* SPDX-License-Identifier: MIT */
/*
 * facts.c - the cheap facts, read before each run of the command line: about 150 us in all.
 */
#include "facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
#define LANDLOCK_VERSION_FLAG 1u
#define CAP_NEED_SETGID 6
#define CAP_NEED_SETUID 7
#define CAP_NEED_ADMIN 21
#define CAP_BIT(n) (1u << (n))
#if defined(__aarch64__)
#define LD_MUSL_PATH "ld-musl-aarch64.path"
#else
#define LD_MUSL_PATH "ld-musl-x86_64.path"
#endif
#define FIRST_USERNS_INODE 0xEFFFFFFDu
#define MOUNT_ROOT_ATTRIBUTE 0x2000u /* STATX_ATTR_MOUNT_ROOT, Linux 5.8 */

/* Names of /etc that ordinary programs need and that tell nothing of this machine's people, keys or
 * peers.  A "*" at the end: any name that begins so.  Each one is a mount of its own (10 us), so what
 * only matters to a login shell or an administrator is not here.  They are asked for one by one: to list
 * /etc costs more than all of that, and only Java's names can be found in no other way. */
static const char *const etc_names[] = {
	"R", "alternatives", "crypto-policies", "fonts", "java*", "jvm*", LD_MUSL_PATH, "ld.so.cache",
	"localtime", "lsb-release", "maven", "mime.types", "nsswitch.conf", "os-release", "perl", "php",
	"protocols", "python2.*", "python3.*", "services", "timezone",
};
static const char *const etc_listed[] = { "java*", "jvm*" };
static const char *const etc_below[] = {
	"ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/tls/cert.pem",
	"pki/tls/openssl.cnf", "pki/ca-trust/extracted",
};
/* With the host's network only. */
static const char *const etc_net[] = { "gai.conf", "host.conf", "hosts", "resolv.conf" };

bool facts_path(char *out, const char *root, const char *path)
{
	size_t n = strlen(root), m = strlen(path);

	if (n + m >= PATH_MAX)
		return false;
	memcpy(out, root, n);
	memcpy(out + n, path, m + 1);
	return true;
}

static bool matches(const char *name, const char *pattern)
{
	size_t len;

	if (*name != *pattern) /* most of them, 30 times for each name */
		return false;
	len = strlen(pattern);
	return pattern[len - 1] == '*' ? !strncmp(name, pattern, len - 1) : !strcmp(name, pattern);
}

bool linux_etc_allowed(const char *name, bool net)
{
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(etc_names); i++)
		if (matches(name, etc_names[i]))
			return true;
	for (i = 0; i < BASE_ARRAY_LEN(etc_below); i++)
		if (matches(name, etc_below[i]))
			return true;
	for (i = 0; net && i < BASE_ARRAY_LEN(etc_net); i++)
		if (matches(name, etc_net[i]))
			return true;
	return false;
}

/* A pipe or a device in its place would keep each program that reads it. */
static bool is_shown_kind(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

/* The name, if it is there.  A link into /usr is a link inside, too: cheaper than a mount. */
static void etc_add(int dir, linux_facts *facts, const char *name)
{
	linux_etc *entry = &facts->etc[facts->etc_count];
	size_t len = strlen(name);
	struct stat st;
	ssize_t n = 0;

	if (facts->etc_count == LINUX_ETC_MAX || len >= sizeof entry->name)
		return;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISLNK(st.st_mode))
		n = readlinkat(dir, name, entry->link, sizeof entry->link - 1);
	if (n < 0 || (size_t)n >= sizeof entry->link - 1)
		n = 0;
	entry->link[n] = 0;
	entry->dir = S_ISDIR(st.st_mode);
	if (strstr(entry->link, "/../") ||
	    (strncmp(entry->link, "/usr/", 5) && strncmp(entry->link, "../usr/", 7)))
		entry->link[0] = 0;
	if (S_ISLNK(st.st_mode) && !entry->link[0] && fstatat(dir, name, &st, 0) < 0)
		st.st_mode = S_IFREG; /* leads nowhere now: shown if it comes to lead somewhere */
	if (!is_shown_kind(st.st_mode))
		return;
	memcpy(entry->name, name, len + 1);
	facts->etc_count++;
}

/* "python3.11": what the link /usr/bin/python3 says. */
static void etc_add_python(int dir, const char *root, linux_facts *facts, const char *program)
{
	char path[PATH_MAX], name[32];
	ssize_t n = facts_path(path, root, program) ? readlink(path, name, sizeof name - 1) : -1;

	if (n <= 0)
		return;
	name[n] = 0;
	if (linux_etc_allowed(name, false))
		etc_add(dir, facts, name);
}

/* By listing: names that begin as a pattern does. */
static void etc_add_listed(const char *path, linux_facts *facts)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t i;

	while (dir && (entry = readdir(dir)))
		for (i = 0; i < BASE_ARRAY_LEN(etc_listed); i++)
			if (matches(entry->d_name, etc_listed[i]))
				etc_add(dirfd(dir), facts, entry->d_name);
	if (dir)
		closedir(dir);
}

/* Debian's "java-17-openjdk-amd64" of /usr/lib/jvm has its settings in "java-17-openjdk".  False: some
 * other distribution's Java. */
static bool etc_add_java(int etc, const char *root, linux_facts *facts)
{
	char path[PATH_MAX];
	DIR *dir = facts_path(path, root, "/usr/lib/jvm") ? opendir(path) : NULL;
	struct dirent *entry;
	bool all = true;

	while (dir && (entry = readdir(dir))) {
		size_t count = facts->etc_count;
		char *dash = strrchr(entry->d_name, '-');

		if (entry->d_type != DT_DIR || !matches(entry->d_name, "java*"))
			continue;
		if (dash)
			*dash = 0;
		etc_add(etc, facts, entry->d_name);
		all &= facts->etc_count > count;
	}
	if (dir)
		closedir(dir);
	return all;
}

static void read_etc(const char *root, linux_facts *facts)
{
	char path[PATH_MAX];
	size_t i, count;
	int FD_AUTO dir = -1;

	if (facts_path(path, root, "/etc"))
		dir = openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	for (i = 0; i < BASE_ARRAY_LEN(etc_names); i++)
		if (!strchr(etc_names[i], '*'))
			etc_add(dir, facts, etc_names[i]);
	for (i = 0; i < BASE_ARRAY_LEN(etc_net); i++)
		etc_add(dir, facts, etc_net[i]);
	for (i = 0; i < BASE_ARRAY_LEN(etc_below); i++)
		etc_add(dir, facts, etc_below[i]);
	etc_add_python(dir, root, facts, "/usr/bin/python3");
	etc_add_python(dir, root, facts, "/usr/bin/python2");
	count = facts->etc_count;
	if (!etc_add_java(dir, root, facts)) {
		facts->etc_count = count;
		etc_add_listed(path, facts);
	}
}

static void read_merged(const char *root, linux_facts *facts)
{
	static const char *const names[LINUX_MERGED_COUNT] = { "/bin", "/lib", "/lib32", "/lib64",
		"/libx32", "/sbin" };
	char path[PATH_MAX];
	struct stat st;
	size_t i;

	for (i = 0; i < LINUX_MERGED_COUNT; i++) {
		linux_merged *m = &facts->merged[i];
		ssize_t n;

		m->name = names[i];
		if (!facts_path(path, root, names[i]))
			continue;
		n = readlink(path, m->link, sizeof m->link - 1);
		if (n > 0 && (size_t)n < sizeof m->link - 1) {
			m->link[n] = 0;
			m->present = m->is_link = true;
		} else {
			m->link[0] = 0;
			m->present = n < 0 && errno == EINVAL && !stat(path, &st) && S_ISDIR(st.st_mode);
		}
	}
}

/* Something over a part of /proc, as container engines, lxcfs and services (ProtectKernelLogs=) put it there: the
 * kernel then refuses a fresh one in a user namespace (it would show what is covered). */
static bool proc_covered(const char *root)
{
	static const char *const parts[] = { "/proc/kcore", "/proc/sys", "/proc/bus", "/proc/timer_list",
		"/proc/kmsg", "/proc/cpuinfo", "/proc/meminfo", "/proc/acpi", "/proc/keys", "/proc/fs" };
	char path[PATH_MAX];
	uint64_t statx[32]; /* its second word are the attributes; musl 1.2.3 has no such struct */
	size_t i;

	for (i = 0; i < BASE_ARRAY_LEN(parts); i++) {
		if (facts_path(path, root, parts[i]) &&
		    !syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, statx) &&
		    (statx[1] & MOUNT_ROOT_ATTRIBUTE))
			return true;
	}
	return false;
}

static bool has_capabilities(uint32_t need)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	return !syscall(SYS_capget, &head, data) && (data[0].effective & need) == need;
}

static bool read_file(const char *root, const char *path, buf *out)
{
	char full[PATH_MAX];
	int FD_AUTO fd = -1;

	if (!facts_path(full, root, path))
		return false;
	fd = open_regular(AT_FDCWD, full);
	return fd >= 0 && !fd_read_file(fd, 1 << 20, out) && out->data;
}

/* The text of the link is cheap; what it leads to is an inode made for whoever looks. */
int facts_first_namespace(const char *root, const char *kind, uint32_t number)
{
	char path[PATH_MAX], file[40], text[48], first[48];
	ssize_t n;

	snprintf(file, sizeof file, "/proc/self/ns/%s", kind);
	snprintf(first, sizeof first, "%s:[%u]", kind, number);
	n = facts_path(path, root, file) ? readlink(path, text, sizeof text - 1) : -1;
	if (n < 0)
		return -1;
	text[n] = 0;
	return !strcmp(text, first);
}

static void read_ids(const char *root, linux_facts *facts)
{
	uint32_t ids = CAP_BIT(CAP_NEED_SETUID) | CAP_BIT(CAP_NEED_SETGID);
	bool able = !facts->uid && has_capabilities(ids | CAP_BIT(CAP_NEED_ADMIN));
	buf text;

	buf_init(&text, 1 << 20);
	memcpy(facts->user, "sandbox", sizeof "sandbox");
	if (facts->uid) {
		if (read_file(root, "/etc/passwd", &text))
			ids_user_name(text.data, facts->uid, facts->user, sizeof facts->user);
	} else if (able) {
		errno = 0;
		if (read_file(root, "/proc/self/uid_map", &text)) {
			facts->root_caller = ids_range_of_map(text.data, &facts->uid_first,
							      &facts->uid_count);
			facts->no_spare_uid = !facts->root_caller;
			facts->inner_root = facts->root_caller &&
					    facts_first_namespace(root, "user", FIRST_USERNS_INODE) == 0;
		} else {
			facts->map_errno = errno ? errno : ENODATA;
		}
	} else {
		facts->root_helpless = true;
		facts->apart_ids = has_capabilities(ids) && read_file(root, "/proc/self/uid_map", &text) &&
				   ids_range_of_map(text.data, &facts->uid_first, &facts->uid_count);
	}
	buf_release(&text);
}

static bool is_zero(const char *root, const char *path)
{
	bool zero = false;
	buf text;

	buf_init(&text, 64);
	if (read_file(root, path, &text))
		zero = !strcmp(text.data, "0\n");
	buf_release(&text);
	return zero;
}

void linux_facts_read_caller(const char *root, linux_facts *facts)
{
	long abi;

	memset(facts, 0, sizeof *facts);
	facts->uid = geteuid();
	facts->gid = getegid();
	read_ids(root, facts);
	facts->no_userns = is_zero(root, "/proc/sys/user/max_user_namespaces") ||
			   (facts->uid && is_zero(root, "/proc/sys/kernel/unprivileged_userns_clone"));
	abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);
	facts->landlock_abi = abi > 0 ? (uint32_t)abi : 0;
}

void linux_facts_read(const char *root, linux_facts *facts)
{
	struct utsname name;
	struct sysinfo info;
	long cpus;

	linux_facts_read_caller(root, facts);
	if (!uname(&name)) {
		char *end;

		facts->kernel[0] = (int)strtol(name.release, &end, 10);
		facts->kernel[1] = *end == '.' ? (int)strtol(end + 1, NULL, 10) : 0;
	}
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	facts->cpus = cpus > 0 ? (uint32_t)cpus : 1;
	if (!sysinfo(&info))
		facts->ram_bytes = (uint64_t)info.totalram * info.mem_unit;
	facts->proc_fresh = !proc_covered(root);
	read_merged(root, facts);
	read_etc(root, facts);
	cgroup_find(root, facts->root_caller, &facts->cgroup);
	if (facts->cgroup.kind == LP_CG_NONE && facts->uid && !*root)
		cgroup_find_scope(root, facts->uid, getenv("DBUS_SESSION_BUS_ADDRESS"),
				  getenv("XDG_RUNTIME_DIR"), &facts->cgroup);
}
