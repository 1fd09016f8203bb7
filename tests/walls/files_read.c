/* SPDX-License-Identifier: MIT */
/*
 * Reading what is not the guest's: a file of the host, keys, other homes, the system's secrets.
 *
 * wall files
 * fixture canary home peer
 * attempt canary: open without root+landlock | shut without landlock
 * attempt canary_by_proc_root: open without root+landlock | shut without landlock
 * attempt canary_by_peer_root: open bare as root | only root
 * attempt canary_by_handle: open bare as root | only root
 * attempt ssh_key: open without root+landlock as user | open bare as root | shut without landlock
 * attempt list_home: open without root+landlock as user | open bare as root | shut without landlock
 * attempt shadow: open bare as root
 * attempt root_home: open bare as root
 * attempt host_tmp: open without root+landlock | shut without landlock
 * attempt host_run: open without root+landlock | shut without landlock
 * attempt disk_device: open bare as root
 * attempt kernel_log: open bare as root
 */
#include "attempt.h"
#include <dirent.h>
#include <sys/klog.h>
#include <sys/stat.h>

/* Only a file that holds the secret counts: an empty one in its place gives nothing away. */
static int read_secret(const char *path)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n < 0)
		return errno;
	return strstr(text, target("SECRET")) != NULL ? 0 : ENOENT;
}

static int canary(void)
{
	return read_secret(target("CANARY"));
}

static int read_below(const char *prefix)
{
	char path[4096];

	snprintf(path, sizeof path, "%s%s", prefix, target("CANARY"));
	return read_secret(path);
}

static int canary_by_proc_root(void)
{
	return read_below("/proc/self/root");
}

static int canary_by_peer_root(void)
{
	char root[64];

	snprintf(root, sizeof root, "/proc/%d/root", number("PEER"));
	return read_below(root);
}

/* A handle needs no path: it goes around mounts, so the call itself must be shut. */
static int canary_by_handle(void)
{
	struct {
		struct file_handle head;
		unsigned char bytes[128];
	} handle = { .head.handle_bytes = 128 };
	int mount_id;
	int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount_id, 0) < 0)
		return errno == EOPNOTSUPP ? NONE : errno;
	return verdict(open_by_handle_at(dir, &handle.head, O_RDONLY));
}

static int ssh_key(void)
{
	return read_secret(target("SSH_KEY"));
}

static int list(const char *path, const char *wanted)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int found = 0;

	if (dir == NULL)
		return errno;
	while ((entry = readdir(dir)) != NULL) {
		if (wanted != NULL ? strcmp(entry->d_name, wanted) == 0 : entry->d_name[0] != '.')
			found = 1;
	}
	closedir(dir);
	return found ? 0 : ENOENT;
}

static int list_home(void)
{
	return list(target("CALLER_HOME"), ".ssh");
}

static int root_home(void)
{
	return try_open("/root", O_RDONLY | O_DIRECTORY);
}

static int host_tmp(void)
{
	return list("/tmp", target("TMP_NAME"));
}

static int host_run(void)
{
	return list("/run", NULL);
}

static int shadow(void)
{
	return try_open("/etc/shadow", O_RDONLY);
}

static int disk_device(void)
{
	const char *const disks[] = { "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0",
				      "/dev/loop-control" };
	int got = ENOENT;

	for (size_t i = 0; i < sizeof disks / sizeof disks[0] && got != 0; i++)
		got = try_open(disks[i], O_RDONLY);
	return got;
}

static int kernel_log(void)
{
	char text[256];

	if (klogctl(3, text, sizeof text) >= 0)
		return 0;
	return try_open("/dev/kmsg", O_RDONLY);
}

ATTEMPTS({ "canary", canary }, { "canary_by_proc_root", canary_by_proc_root },
	 { "canary_by_peer_root", canary_by_peer_root }, { "canary_by_handle", canary_by_handle },
	 { "ssh_key", ssh_key }, { "list_home", list_home }, { "shadow", shadow },
	 { "root_home", root_home }, { "host_tmp", host_tmp }, { "host_run", host_run },
	 { "disk_device", disk_device }, { "kernel_log", kernel_log })
