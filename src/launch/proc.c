/* SPDX-License-Identifier: MIT */
/*
 * proc.c - the box's own /proc, what of it is read-only or covered, and its own terminals.
 */
#include "box.h"
#include "proc_parts.h"
#include "sys.h"

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

int proc_mask(const char *hidden_file, const char *hidden_dir, launch_failure *f)
{
	size_t i;

	for (i = 0; i < COUNT(proc_read_only); i++)
		if (make_read_only(proc_read_only[i]) < 0)
			return launch_fail(f, errno, "mask", "cannot make \"/proc/%s\" read-only",
					   proc_read_only[i]);
	if (cover_all(proc_covered_files, COUNT(proc_covered_files), hidden_file, f) < 0)
		return -1;
	return cover_all(proc_covered_dirs, COUNT(proc_covered_dirs), hidden_dir, f);
}
