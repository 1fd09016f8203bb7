/* SPDX-License-Identifier: MIT */
/*
 * proc.c - the box's own /proc, what of it is read-only or covered, and its own terminals.
 */
#include "box.h"
#include "proc_parts.h"
#include "sys.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define TERMINALS "128" /* the machine has 3072 for all sandboxes and containers together */

int proc_mount(const char *name, launch_failure *f)
{
	if (sys_mount("proc", name, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return launch_fail(f, errno, "proc", "cannot mount a fresh \"/proc\"");
	return 0;
}

int proc_mount_devpts(const char *name, launch_failure *f)
{
	if (sys_mount("devpts", name, "devpts", MS_NOSUID | MS_NOEXEC,
		      "newinstance,ptmxmode=0666,mode=0620,max=" TERMINALS) < 0)
		return launch_fail(f, errno, "mount.devpts", "cannot mount terminals of its own");
	return 0;
}

static int restrict_here(const char *name, uint64_t set)
{
	struct mount_attr attr = { .attr_set = set };

	return (int)syscall(SYS_mount_setattr, AT_FDCWD, name, AT_SYMLINK_NOFOLLOW | AT_RECURSIVE, &attr,
			    sizeof attr);
}

/* Binds `source` over each entry that there is.  The first cover is made read-only and is the source of
 * the others: a bind inherits it. */
static int cover_all(const char *const *names, size_t count, const char *source, launch_failure *f)
{
	bool first = true;
	size_t i;

	for (i = 0; i < count; i++) {
		if (sys_mount(source, names[i], NULL, MS_BIND, NULL) < 0) {
			if (errno == ENOENT)
				continue;
		} else if (!first) {
			continue;
		} else if (restrict_here(names[i], MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC) == 0) {
			first = false;
			source = names[i];
			continue;
		}
		return launch_fail(f, errno, "mask", "cannot cover \"/proc/%s\"", names[i]);
	}
	return 0;
}

/* The rest of what restricts it is inherited of the proc itself. */
static int make_read_only(const char *name)
{
	if (sys_mount(name, name, NULL, MS_BIND | MS_REC, NULL) < 0)
		return errno == ENOENT ? 0 : -1;
	return restrict_here(name, MOUNT_ATTR_RDONLY);
}

static uint64_t read_here(const char *name)
{
	int fd = openat(AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
	char text[24];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return strtoull(text, NULL, 10);
}

/* What a user of ours takes of these counts for who made the user namespace as well, root included: whoever
 * took all would leave the services of this machine none.  A share, therefore; no wall is made of it, so
 * nothing is refused where it cannot be had. */
static void share_allowances(void)
{
	static const struct {
		const char *machine, *ours;
		uint64_t most;
	} all[] = { { "sys/fs/inotify/max_user_instances", "sys/user/max_inotify_instances", 32 },
		    { "sys/fs/inotify/max_user_watches", "sys/user/max_inotify_watches", 16384 } };
	char text[24];
	size_t i;

	for (i = 0; i < COUNT(all); i++) {
		uint64_t quarter = read_here(all[i].machine) / 4, share = quarter < all[i].most ? quarter : all[i].most;
		int fd = openat(AT_FDCWD, all[i].ours, O_WRONLY | O_CLOEXEC), n;
		ssize_t done;

		if (fd < 0)
			continue;
		n = snprintf(text, sizeof text, "%llu", (unsigned long long)share);
		done = write(fd, text, (size_t)n);
		(void)done;
		close(fd);
	}
}

int proc_mask(const launch_box *box, const char *hidden_file, const char *hidden_dir, launch_failure *f)
{
	size_t i;

	if (box->plan->steps & LP_USERNS)
		share_allowances();
	for (i = 0; i < COUNT(proc_read_only); i++)
		if (make_read_only(proc_read_only[i]) < 0)
			return launch_fail(f, errno, "mask", "cannot make \"/proc/%s\" read-only",
					   proc_read_only[i]);
	if (cover_all(proc_covered_files, COUNT(proc_covered_files), hidden_file, f) < 0)
		return -1;
	return cover_all(proc_covered_dirs, COUNT(proc_covered_dirs), hidden_dir, f);
}
