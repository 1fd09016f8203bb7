/* SPDX-License-Identifier: MIT */
/*
 * mounts.c - executes the mount table: the world that the guest sees.
 *
 * One tmpfs holds everything that is made: the skeleton of the new root (its directory "root"), the
 * scratch directories, and what covers hidden files.  The skeleton is a bind of its own over "/" of
 * pid 1's copy of the mount namespace; absolute paths still reach the old root meanwhile.  At the
 * end it becomes the root, over the old one.
 */
#include "sys.h"
#include "target.h"

#include <string.h>
#include <sys/stat.h>

#define SKELETON_BYTES (1u << 20) /* where there is no scratch */
#define SKELETON_NODES 4096u
#define PRIVATE_BYTES 65536u      /* LP_M_TMPFS without a size */

/* Where the one tmpfs lies until the old root goes: over a directory that nobody needs any more. */
#define SCRATCH "/proc"
#define HIDDEN_FILE "hidden"
#define HIDDEN_DIR "empty"
#define PLACE_FILE ".place"

/* ---- Rows --------------------------------------------------------------------------------------- */

static int row_dir(builder *b, const char *path, mode_t mode)
{
	const char *name;
	struct stat st;
	int parent = path[1] ? target_parent(b, path, &name) : 0, fd;

	if (!path[1] || (parent >= 0 && b->parent_own && mkdirat(parent, name, mode) == 0))
		return 0;
	if (parent < 0 || (b->parent_own && errno != EEXIST))
		return parent < 0 ? -1 : target_fail(b, errno, "make directory", path);
	fd = target_resolve(b, path);
	if (fd < 0)
		return errno == ENOENT ? target_own_parent(b, path, &name) : target_fail(b, errno, "open", path);
	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode)) {
		close(fd);
		return target_fail(b, ENOTDIR, "make directory", path);
	}
	close(fd);
	return 0;
}

/* Of a file that was cut short it is the next write that says why; an error number, or 0. */
static int write_text(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			return n < 0 ? errno : ENOSPC;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int row_file(builder *b, const lp_mount *m, const char *text, const char *path)
{
	const char *name;
	int parent = target_own_parent(b, path, &name), fd, error;

	if (parent < 0)
		return -1;
	fd = openat(parent, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, (mode_t)m->arg);
	if (fd < 0)
		return target_fail(b, errno, "make file", path);
	error = write_text(fd, text, strlen(text));
	close(fd);
	return error ? target_fail(b, error, "write", path) : 0;
}

static int row_symlink(builder *b, const char *text, const char *path)
{
	const char *name;
	char there[64];
	int parent = target_own_parent(b, path, &name), error;
	ssize_t n;

	if (parent < 0)
		return -1;
	if (symlinkat(text, parent, name) == 0)
		return 0;
	error = errno;
	n = error == EEXIST ? readlinkat(parent, name, there, sizeof there) : -1;
	if (n == (ssize_t)strlen(text) && !memcmp(there, text, (size_t)n))
		return 0;
	return target_fail(b, error, "make link", path);
}

static int row_bind(builder *b, uint32_t row, const lp_mount *m, const char *path)
{
	int tree = b->box->tree[row];
	struct stat st;

	if (tree < 0) /* an optional one that is not there */
		return 0;
	b->box->tree[row] = -1;
	if (fstat(tree, &st) < 0 || tree_restrict(tree, m->flags, m->kind == LP_M_DEVICE) < 0) {
		target_fail(b, errno, "restrict the mount at", path);
		close(tree);
		return -1;
	}
	return target_attach(b, tree, path, S_ISDIR(st.st_mode));
}

/* ---- By path, where the place is on a file system of ours ----------------------------------------- */

enum { HERE_DONE = 0, HERE_EXISTS = 1 };

/* The empty files that something is mounted over are names of one: a further name costs a third of an
 * inode.  It has to be reached by the same mount, and is not left behind. */
static int make_here(builder *b, const char *name, bool dir)
{
	const mode_t mode = S_IFREG | 0444;

	if (dir)
		return mkdirat(AT_FDCWD, name, 0755);
	if (!b->place && mknodat(b->root, PLACE_FILE, mode, 0) < 0)
		return mknodat(AT_FDCWD, name, mode, 0);
	b->place = true;
	if (linkat(b->root, PLACE_FILE, AT_FDCWD, name, 0) == 0)
		return 0;
	return errno == EEXIST ? -1 : mknodat(AT_FDCWD, name, mode, 0);
}

/* Binds `source` over a fresh `name` of the current directory; HERE_EXISTS: it is not fresh.  -1 and
 * errno: nothing is left there.  `dir` is what the source is thought to be. */
static int bind_here(builder *b, const char *source, const char *name, unsigned long how, bool dir)
{
	bool again = false;
	int error;

	for (;; dir = !dir, again = true) {
		if (make_here(b, name, dir) < 0)
			return errno == EEXIST ? HERE_EXISTS : -1;
		if (sys_mount(source, name, NULL, MS_BIND | how, NULL) == 0)
			return HERE_DONE;
		error = errno;
		unlinkat(AT_FDCWD, name, dir ? AT_REMOVEDIR : 0);
		errno = error;
		if (error != ENOTDIR || again)
			return -1;
	}
}

static int setattr_here(const char *name, uint64_t set, uint64_t clear)
{
	struct mount_attr attr = { .attr_set = set, .attr_clr = clear };

	return (int)syscall(SYS_mount_setattr, AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, &attr, sizeof attr);
}

/* sources_by_path(): it is what tree_harden() has made of it.  HERE_EXISTS: not this way. */
static int bind_by_path(builder *b, const lp_mount *m, const char *source, const char *path)
{
	const char *name;
	int rc;

	if (target_parent(b, path, &name) < 0)
		return -1;
	if (!b->parent_own)
		return HERE_EXISTS;
	if (target_enter(b, path, &name) < 0)
		return -1;
	rc = bind_here(b, source, name, m->flags & LP_F_NOSUBMOUNTS ? 0 : MS_REC, m->flags & LP_F_DIR);
	if (rc < 0)
		return sources_fail(b->box, m, errno, b->f);
	/* EPERM: it is nodev on the host, too, and of no use there either */
	if (rc == HERE_DONE && m->kind == LP_M_DEVICE)
		setattr_here(name, 0, MOUNT_ATTR_NODEV);
	if (rc == HERE_DONE)
		target_covered(b, path);
	return rc;
}

static int row_by_path(builder *b, uint32_t row, const lp_mount *m, const char *source,
		       const char *path)
{
	struct mount_attr device = { .attr_clr = MOUNT_ATTR_NODEV };
	int tree, rc = bind_by_path(b, m, source, path);

	if (rc != HERE_EXISTS)
		return rc;
	tree = tree_clone(AT_FDCWD, source, m->flags);
	if (tree < 0)
		return sources_fail(b->box, m, errno, b->f);
	if (m->kind == LP_M_DEVICE)
		sys_mount_setattr(tree, 0, &device);
	b->box->tree[row] = tree;
	return row_bind(b, row, m, path);
}

/* 0; HERE_EXISTS: not this way. */
static int scratch_by_path(builder *b, const lp_mount *m, const char *part, const char *path)
{
	char source[sizeof SCRATCH + 256] = SCRATCH "/";
	const char *name;
	size_t len = strlen(part);
	int rc;

	if (target_parent(b, path, &name) < 0)
		return -1;
	if (!b->parent_own || len > 255)
		return HERE_EXISTS;
	if (target_enter(b, path, &name) < 0)
		return -1;
	memcpy(source + sizeof SCRATCH, part, len + 1);
	rc = bind_here(b, source, name, 0, true);
	if (rc == HERE_DONE && (m->flags & (LP_F_READONLY | LP_F_NOEXEC)))
		rc = setattr_here(name, (m->flags & LP_F_READONLY ? MOUNT_ATTR_RDONLY : 0) |
				  (m->flags & LP_F_NOEXEC ? MOUNT_ATTR_NOEXEC : 0), 0);
	if (rc < 0)
		return target_fail(b, errno, "bind the scratch directory of", path);
	if (rc == HERE_DONE)
		target_covered(b, path);
	return rc;
}

/* ---- Our own file systems --------------------------------------------------------------------------- */

static int row_scratch(builder *b, const lp_mount *m, const char *part, const char *path)
{
	int tree, rc;

	if (mkdirat(b->scratch, part, (mode_t)m->arg) < 0 && errno != EEXIST)
		return target_fail(b, errno, "make the scratch directory of", path);
	rc = scratch_by_path(b, m, part, path);
	if (rc != HERE_EXISTS)
		return rc;
	tree = tree_clone(b->scratch, part, LP_F_NOSUBMOUNTS);
	if (tree < 0)
		return target_fail(b, errno, "bind the scratch directory of", path);
	if (tree_restrict(tree, m->flags, false) < 0) {
		target_fail(b, errno, "restrict the mount at", path);
		close(tree);
		return -1;
	}
	return target_attach(b, tree, path, true);
}

/* World-writable and sticky where programs expect it. */
static bool is_shared_place(const char *path)
{
	return !strcmp(path, "/tmp") || !strcmp(path, "/var/tmp") || !strcmp(path, "/dev/shm");
}

static int row_tmpfs(builder *b, uint32_t row, const lp_mount *m, const char *path)
{
	uint64_t bytes = m->arg ? m->arg : PRIVATE_BYTES;
	int tree = tree_tmpfs(bytes, bytes / 4096 + 64, is_shared_place(path) ? "1777" : "755");

	if (tree < 0)
		return target_fail(b, errno, "make a tmpfs for", path);
	if (!(m->flags & LP_F_WRITE)) /* see tmpfs_seal() */
		b->box->tree[row] = fcntl(tree, F_DUPFD_CLOEXEC, 3);
	if (target_own_add(b, tree) < 0 || (m->flags && tree_restrict(tree, m->flags, false) < 0)) {
		close(tree);
		return -1;
	}
	return target_attach(b, tree, path, true);
}

static int cover_make(builder *b)
{
	if (b->covers)
		return 0;
	if (mknodat(b->scratch, HIDDEN_FILE, S_IFREG, 0) < 0 || mkdirat(b->scratch, HIDDEN_DIR, 0555) < 0)
		return target_fail(b, errno, "make the cover for hidden files", "");
	b->covers = true;
	return 0;
}

/* A directory of ours at `path`, and we are in the one above. */
static int dir_here(builder *b, const char *path, const char **name)
{
	struct stat st;

	if (target_enter(b, path, name) < 0)
		return -1;
	if (mkdirat(AT_FDCWD, *name, 0755) < 0 && errno != EEXIST)
		return target_fail(b, errno, "make directory", path);
	if (fstatat(AT_FDCWD, *name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return target_fail(b, ENOTDIR, "mount at", path);
	return 0;
}

static int row_proc(builder *b, const char *path)
{
	const char *name;

	if (dir_here(b, path, &name) < 0 || proc_mount(name, b->f) < 0)
		return -1;
	target_covered(b, path);
	if (!(b->box->plan->steps & LP_MASK_PROC))
		return 0;
	b->here = false;
	if (cover_make(b) < 0)
		return -1;
	if (chdir(name) < 0)
		return target_fail(b, errno, "enter", path);
	if (proc_mask(b->box, SCRATCH "/" HIDDEN_FILE, SCRATCH "/" HIDDEN_DIR, b->f) < 0)
		return -1;
	b->box->held |= LP_MASK_PROC;
	return 0;
}

static int row_devpts(builder *b, const char *path)
{
	const char *name;

	if (dir_here(b, path, &name) < 0 || proc_mount_devpts(name, b->f) < 0)
		return -1;
	target_covered(b, path);
	if (symlinkat("pts/ptmx", AT_FDCWD, "ptmx") < 0 && errno != EEXIST)
		return target_fail(b, errno, "make link", "/dev/ptmx");
	return 0;
}

/* HIDE and PROTECT: over what stands at the target. */
static int row_cover(builder *b, const lp_mount *m, const char *path)
{
	int target = target_resolve(b, path), tree = -1, rc = 0;
	const char *cover = NULL;
	struct stat st;

	if (target < 0 && (errno == ENOENT || errno == ENOTDIR) && (m->flags & LP_F_OPTIONAL))
		return 0;
	if (target < 0 || (m->kind == LP_M_HIDE && fstat(target, &st) < 0))
		return target_fail(b, errno, "open", path);
	if (m->kind == LP_M_PROTECT)
		tree = tree_clone(target, "", m->flags);
	else if (cover_make(b) == 0)
		cover = S_ISDIR(st.st_mode) ? HIDDEN_DIR : HIDDEN_FILE;
	if (cover)
		tree = tree_clone(b->scratch, cover, LP_F_NOSUBMOUNTS);
	if (tree < 0 || tree_restrict(tree, m->flags | LP_F_READONLY, false) < 0 ||
	    sys_move_mount(tree, target) < 0)
		rc = target_fail(b, errno, m->kind == LP_M_HIDE ? "hide" : "protect", path);
	if (tree >= 0)
		close(tree);
	close(target);
	target_covered(b, path);
	return rc;
}

static int row_execute(builder *b, uint32_t row)
{
	const lp_mount *m = &b->box->view.mounts[row];
	const char *source = launch_string(&b->box->view, m->source);
	const char *path = launch_string(&b->box->view, m->target);
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };

	switch (m->kind) {
	case LP_M_DIR:
		return row_dir(b, path, (mode_t)m->arg);
	case LP_M_SYMLINK:
		return row_symlink(b, source, path);
	case LP_M_FILE:
		return row_file(b, m, source, path);
	case LP_M_BIND:
	case LP_M_DEVICE:
		if (sources_by_path(m) && b->box->tree[row] < 0)
			return row_by_path(b, row, m, source, path);
		return row_bind(b, row, m, path);
	case LP_M_SCRATCH:
		return row_scratch(b, m, source, path);
	case LP_M_TMPFS:
		return row_tmpfs(b, row, m, path);
	case LP_M_PROC:
		return row_proc(b, path);
	case LP_M_DEVPTS:
		return row_devpts(b, path);
	case LP_M_HIDE:
	case LP_M_PROTECT:
		return row_cover(b, m, path);
	default: /* LP_M_REMOUNT_RO */
		if (b->place && unlinkat(b->root, PLACE_FILE, 0) == 0)
			b->place = false;
		if (sys_mount_setattr(b->root, 0, &read_only) < 0)
			return target_fail(b, errno, "make read-only", "/");
		return 0;
	}
}

/* ---- The whole ---------------------------------------------------------------------------------- */

/* The one tmpfs, and its directory "root" as a mount of its own over "/".  To be cloned from, the
 * tmpfs must be mounted itself (before Linux 6.15).  Not over "/", where it would come between the old
 * root and its unmount. */
static int scaffold(builder *b)
{
	const lp_plan *p = b->box->plan;
	uint64_t bytes = p->tmpfs_bytes ? p->tmpfs_bytes : SKELETON_BYTES;
	uint64_t nodes = p->tmpfs_bytes ? p->tmpfs_nodes : SKELETON_NODES;
	char options[80];

	tree_tmpfs_options(options, bytes, nodes, "755");
	if (sys_mount("tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return launch_fail(b->f, errno, "tmpfs", "cannot make a tmpfs of %lu bytes",
				   (unsigned long)bytes);
	b->scratch = openat(AT_FDCWD, SCRATCH, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->scratch < 0 || mkdirat(b->scratch, "root", 0755) < 0 ||
	    (b->root = tree_clone(b->scratch, "root", LP_F_NOSUBMOUNTS)) < 0 ||
	    sys_move_mount_to(b->root, AT_FDCWD, "/") < 0)
		return launch_fail(b->f, errno, "mount", "cannot put up the new root");
	return target_own_add(b, b->scratch);
}

/* What the guest may not write to: read-only once the places beneath it are made. */
static int tmpfs_seal(builder *b)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
	uint32_t row;
	int rc = 0;

	for (row = 0; row < b->box->plan->mount_count; row++) {
		int *tree = &b->box->tree[row];

		if (b->box->view.mounts[row].kind != LP_M_TMPFS || *tree < 0)
			continue;
		if (!rc && sys_mount_setattr(*tree, 0, &read_only) < 0)
			rc = target_fail(b, errno, "make read-only",
					 launch_string(&b->box->view, b->box->view.mounts[row].target));
		close(*tree);
		*tree = -1;
	}
	return rc;
}

/* What stands over "/" already becomes the root.  The old root stays below it: nobody inside can lift what
 * covers it, for the mounts belong to the outer user namespace and the guest is in the nested one; no path
 * and no mountinfo leads there.  To take it off would cost a wait for every processor (an expedited grace
 * period: 30 to 150 us, more on a busy machine).  Without the nested namespace it is taken off. */
static int enter(builder *b)
{
	bool covered = b->box->plan->steps & LP_NESTED_USERNS;

	if (fchdir(b->root) < 0 || (covered ? chroot(".") : (int)syscall(SYS_pivot_root, ".", ".")) < 0)
		return launch_fail(b->f, errno, "mount.root", "cannot make the new root the root");
	if ((!covered && syscall(SYS_umount2, ".", MNT_DETACH) < 0) || chdir("/") < 0)
		return launch_fail(b->f, errno, "mount.root", "cannot take the old root off");
	return 0;
}

int root_build(launch_box *box, launch_failure *f)
{
	builder b = { .box = box, .f = f, .root = -1, .scratch = -1, .parent_fd = -1 };
	uint32_t row;
	bool has_proc = false;
	int rc = scaffold(&b);

	for (row = 0; !rc && row < box->plan->mount_count; row++) {
		has_proc |= box->view.mounts[row].kind == LP_M_PROC;
		b.absent = false;
		rc = row_execute(&b, row);
		if (rc && b.absent && (box->view.mounts[row].flags & LP_F_OPTIONAL))
			rc = 0;
	}
	target_forget(&b);
	if (!rc)
		rc = tmpfs_seal(&b);
	if (!rc)
		rc = enter(&b);
	if (rc)
		return rc;
	close(b.root);
	if (box->plan->tmpfs_bytes)
		box->scratch = b.scratch;
	else
		close(b.scratch);
	box->held |= LP_ROOT;
	if (!has_proc) /* nothing there that could be covered */
		box->held |= box->plan->steps & LP_MASK_PROC;
	return 0;
}
