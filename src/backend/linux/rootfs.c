/* SPDX-License-Identifier: MIT */
/*
 * rootfs.c - what every box has: a table, and the few rows that depend on the machine.
 *
 * A read-only system (/usr, and /bin and the like as the host has them), an allow-list of /etc file
 * by file, generated accounts, a minimal /dev, /proc, and the parts of the one scratch tmpfs.  No
 * /sys; /run is empty but for the code; /home, /root and /var hold nothing of the host's.
 */
#include "mounts.h"
#include "../launched/launched.h"

#include <stdio.h>

typedef struct fixed_row {
	uint16_t kind, flags;
	const char *source, *target;
	uint16_t arg, access;
	const char *why;
} fixed_row;

#define SYSTEM "part of every sandbox"
#define PRIVATE "private to the run, gone at its end"

static const fixed_row rows[] = {
	{ LP_M_BIND, LP_F_READONLY | LP_F_NODEV, "/usr", "/usr", 0, SB_FILE_READ, SYSTEM },
	{ LP_M_DIR, 0, "", "/etc", 0755, 0, "" },
	{ LP_M_DIR, 0, "", "/run", 0755, SB_FILE_HIDE, "empty" },
	{ LP_M_DIR, 0, "", "/var", 0755, SB_FILE_HIDE, "empty" },
	{ LP_M_SYMLINK, 0, "/tmp", "/var/tmp", 0, SB_FILE_TMPFS, "leads to /tmp" },
	{ LP_M_DIR, 0, "", "/dev", 0755, SB_FILE_HIDE, "a few devices only" },
	{ LP_M_DEVICE, LP_F_WRITE, "/dev/null", "/dev/null", 0, SB_FILE_WRITE, SYSTEM },
	{ LP_M_DEVICE, LP_F_WRITE, "/dev/zero", "/dev/zero", 0, SB_FILE_WRITE, SYSTEM },
	{ LP_M_DEVICE, LP_F_WRITE, "/dev/full", "/dev/full", 0, SB_FILE_WRITE, SYSTEM },
	{ LP_M_DEVICE, LP_F_WRITE, "/dev/random", "/dev/random", 0, SB_FILE_WRITE, SYSTEM },
	{ LP_M_DEVICE, LP_F_WRITE, "/dev/urandom", "/dev/urandom", 0, SB_FILE_WRITE, SYSTEM },
	{ LP_M_DEVICE, LP_F_WRITE, "/dev/tty", "/dev/tty", 0, SB_FILE_WRITE, SYSTEM },
	{ LP_M_SYMLINK, 0, "/proc/self/fd", "/dev/fd", 0, 0, "" },
	{ LP_M_SYMLINK, 0, "/proc/self/fd/0", "/dev/stdin", 0, 0, "" },
	{ LP_M_SYMLINK, 0, "/proc/self/fd/1", "/dev/stdout", 0, 0, "" },
	{ LP_M_SYMLINK, 0, "/proc/self/fd/2", "/dev/stderr", 0, 0, "" },
	{ LP_M_DEVPTS, LP_F_WRITE, "", "/dev/pts", 0, SB_FILE_WRITE, "its own terminals" },
	{ LP_M_SCRATCH, LP_F_WRITE | LP_F_NODEV, "shm", "/dev/shm", 01777, SB_FILE_TMPFS, PRIVATE },
	{ LP_M_SCRATCH, LP_F_WRITE | LP_F_NODEV, "tmp", "/tmp", 01777, SB_FILE_TMPFS, PRIVATE },
	{ LP_M_SCRATCH, LP_F_WRITE | LP_F_NODEV, "home", "/home/sandbox", 0700, SB_FILE_TMPFS, PRIVATE },
};

/* Of a code run. */
static const fixed_row code_rows[] = {
	{ LP_M_SCRATCH, LP_F_READONLY | LP_F_NODEV, "code", "/run/code", 0755, SB_FILE_READ, "the code" },
	{ LP_M_SCRATCH, LP_F_READONLY | LP_F_NODEV, "in", "/in", 0755, SB_FILE_READ, "the files given" },
	{ LP_M_SCRATCH, LP_F_WRITE | LP_F_NODEV, "out", "/out", 0755, SB_FILE_TMPFS,
	  "collected at the end" },
};

/* Of a code run, and of a command without a workspace to be in. */
static const fixed_row work_row[] = {
	{ LP_M_SCRATCH, LP_F_WRITE | LP_F_NODEV, "work", "/work", 0755, SB_FILE_TMPFS, PRIVATE },
};

static void add_fixed(mount_table *table, const fixed_row *fixed, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		mount_row *row = mounts_add(table, fixed[i].kind, fixed[i].source, fixed[i].target,
					    fixed[i].flags, fixed[i].arg);

		if (row) {
			row->access = fixed[i].access;
			row->why = fixed[i].why;
		}
	}
}

static void add_merged(const linux_facts *facts, mount_table *table)
{
	size_t i;

	for (i = 0; i < LINUX_MERGED_COUNT; i++) {
		const linux_merged *m = &facts->merged[i];
		mount_row *row;

		if (!m->present)
			continue;
		if (m->is_link)
			row = mounts_add(table, LP_M_SYMLINK, m->link, m->name, 0, 0);
		else
			row = mounts_add(table, LP_M_BIND, m->name, m->name, LP_F_READONLY | LP_F_NODEV, 0);
		if (row) {
			row->access = SB_FILE_READ;
			row->why = SYSTEM;
		}
	}
}

static void add_etc(const mount_wish *wish, mount_table *table)
{
	size_t i;

	for (i = 0; i < wish->facts->etc_count; i++) {
		const char *name = wish->facts->etc[i].name, *link = wish->facts->etc[i].link, *path;
		mount_row *row;

		if (!linux_etc_allowed(name, wish->net))
			continue;
		path = mounts_join(table, "/etc/", name);
		/* optional: a link that leads nowhere, or a file removed since the facts were read */
		if (*link)
			row = mounts_add(table, LP_M_SYMLINK, link, path, 0, 0);
		else
			row = mounts_add(table, LP_M_BIND, path, path,
					 LP_F_READONLY | LP_F_NODEV | LP_F_NOEXEC | LP_F_OPTIONAL |
						 (wish->facts->etc[i].dir ? LP_F_DIR : 0), 0);
		if (row) {
			row->access = SB_FILE_READ;
			row->why = "on the list of harmless files of /etc";
		}
	}
}

static void add_file(mount_table *table, const char *target, const char *text)
{
	mount_row *row = mounts_add(table, LP_M_FILE, text, target, LP_F_READONLY, 0444);

	if (row) {
		row->access = SB_FILE_READ;
		row->why = "made up: tells nothing of this machine";
	}
}

static void add_generated(const mount_wish *wish, mount_table *table)
{
	const linux_facts *facts = wish->facts;
	const char *user = wish->code || facts->root_caller ? "sandbox" : facts->user;
	const sb_linux_options *options = wish->request->options;
	const char *host = options && options->hostname ? options->hostname : "sandbox";
	unsigned uid = wish->uid_inside, gid = wish->gid_inside;
	bool hosts = true;
	size_t i;

	add_file(table, "/etc/passwd", mounts_text(table,
		 "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
		 "%s:x:%u:%u::/home/sandbox:/bin/sh\n"
		 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n", user, uid, gid));
	add_file(table, "/etc/group", mounts_text(table,
		 "root:x:0:\ntty:x:5:\n%s:x:%u:\nnogroup:x:65534:\n", user, gid));
	add_file(table, "/etc/hostname", mounts_text(table, "%s\n", host));
	for (i = 0; i < facts->etc_count; i++)
		hosts &= !(wish->net && !strcmp(facts->etc[i].name, "hosts"));
	if (hosts)
		add_file(table, "/etc/hosts", mounts_text(table,
			 "127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n", host));
}

void rootfs_rows(const mount_wish *wish, mount_table *table)
{
	mount_row *row;

	add_fixed(table, rows, BASE_ARRAY_LEN(rows));
	if (wish->code)
		add_fixed(table, code_rows, BASE_ARRAY_LEN(code_rows));
	if (wish->code || !wish->request->workspace) {
		const char *cwd = launched_dir_in_work(wish->request);

		add_fixed(table, work_row, BASE_ARRAY_LEN(work_row));
		if (cwd)
			mounts_add(table, LP_M_DIR, "", cwd, 0, 0755);
	}
	if (wish->facts->proc_fresh)
		row = mounts_add(table, LP_M_PROC, "", "/proc", LP_F_WRITE, 0);
	else
		row = mounts_add(table, LP_M_DIR, "", "/proc", 0, 0555);
	if (row) {
		row->access = wish->facts->proc_fresh ? SB_FILE_WRITE : SB_FILE_HIDE;
		row->why = wish->facts->proc_fresh ? "its own processes only" : "empty";
	}
	add_merged(wish->facts, table);
	add_etc(wish, table);
	add_generated(wish, table);
}
