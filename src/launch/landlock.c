/* SPDX-License-Identifier: MIT */
/*
 * landlock.c - the second wall around files, out of the mount table.
 *
 * Rules add up: what is allowed at a directory holds for all beneath.  Behind a root of our own,
 * "/" may be read and run; rows that let the guest write get the write classes; device nodes get
 * reading, writing and ioctls.  Without a root of our own (LP_ROOT not set) there is no rule for
 * "/": only what the binds name can be opened.
 *
 * Each ABI of the kernel knows more rights than the one before.  A right that the kernel does not
 * know cannot be handled, so it stays as the mounts have it; before ABI 2 the kernel refuses to move
 * a file to another directory (EXDEV), as it does between file systems.  Device nodes can be made
 * nowhere.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

/* <linux/landlock.h> may be older than the kernel that we meet. */
enum { LL_CREATE_VERSION = 1, LL_RULE_PATH = 1 };
enum { LL_EXECUTE = 1 << 0, LL_WRITE_FILE = 1 << 1, LL_READ_FILE = 1 << 2, LL_READ_DIR = 1 << 3,
       LL_REMOVE_DIR = 1 << 4, LL_REMOVE_FILE = 1 << 5, LL_MAKE_CHAR = 1 << 6, LL_MAKE_DIR = 1 << 7,
       LL_MAKE_REG = 1 << 8, LL_MAKE_SOCK = 1 << 9, LL_MAKE_FIFO = 1 << 10, LL_MAKE_BLOCK = 1 << 11,
       LL_MAKE_SYM = 1 << 12,
       LL_REFER = 1 << 13,     /* ABI 2 */
       LL_TRUNCATE = 1 << 14,  /* ABI 3 */
       LL_IOCTL_DEV = 1 << 15  /* ABI 5 */ };
enum { LL_SCOPE_ABSTRACT = 1 << 0, LL_SCOPE_SIGNAL = 1 << 1 }; /* ABI 6 */

#define LL_READ (LL_EXECUTE | LL_READ_FILE | LL_READ_DIR)
#define LL_WRITE                                                                                   \
	(LL_WRITE_FILE | LL_TRUNCATE | LL_REFER | LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_DIR |      \
	 LL_MAKE_REG | LL_MAKE_SOCK | LL_MAKE_FIFO | LL_MAKE_SYM)
#define LL_DEVICE (LL_READ_FILE | LL_WRITE_FILE | LL_TRUNCATE | LL_IOCTL_DEV)
/* All that a rule for something else than a directory may name. */
#define LL_OF_FILES (LL_EXECUTE | LL_READ_FILE | LL_WRITE_FILE | LL_TRUNCATE | LL_IOCTL_DEV)

struct ll_ruleset { uint64_t fs, net, scoped; };
struct ll_path { uint64_t access; int32_t fd; } __attribute__((packed));

uint32_t landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_VERSION);

	return abi > 0 ? (uint32_t)abi : 0;
}

static uint64_t known_rights(uint32_t abi)
{
	if (abi >= 5)
		return LL_IOCTL_DEV * 2 - 1;
	if (abi >= 3)
		return LL_TRUNCATE * 2 - 1;
	return abi == 2 ? LL_REFER * 2 - 1 : LL_MAKE_SYM * 2 - 1;
}

static size_t ruleset_size(uint32_t abi)
{
	if (abi >= 6)
		return 24;
	return abi >= 4 ? 16 : 8;
}

typedef struct ruleset {
	int fd;
	uint64_t known;
	launch_failure *failure;
} ruleset;

/* `dir`: it is one, that is known. */
static int add_fd(const ruleset *set, int fd, uint64_t access, bool dir, const char *path)
{
	struct ll_path rule = { .access = access & set->known, .fd = fd };
	struct stat st;

	if (!dir && (access & ~(uint64_t)LL_OF_FILES)) {
		if (fstat(fd, &st) < 0)
			return launch_fail(set->failure, errno, "landlock", "cannot look at \"%s\"", path);
		if (!S_ISDIR(st.st_mode))
			rule.access &= LL_OF_FILES;
	}
	if (syscall(SYS_landlock_add_rule, set->fd, LL_RULE_PATH, &rule, 0) < 0)
		return launch_fail(set->failure, errno, "landlock", "cannot add a rule for \"%s\"",
				   path);
	return 0;
}

static int add_path(const ruleset *set, const char *path, uint64_t access, bool dir, bool optional)
{
	int fd = openat(AT_FDCWD, path, O_PATH | O_CLOEXEC), rc;

	if (fd < 0 && optional && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0)
		return launch_fail(set->failure, errno, "landlock", "cannot open \"%s\"", path);
	rc = add_fd(set, fd, access, dir, path);
	close(fd);
	return rc;
}

/* What a row needs beyond reading; 0 = no rule. */
static uint64_t row_access(const lp_mount *m, bool own_root)
{
	uint64_t base = own_root ? 0 : LL_READ;

	switch (m->kind) {
	case LP_M_BIND:
		return base | (m->flags & LP_F_WRITE ? LL_WRITE | LL_READ : 0);
	case LP_M_SCRATCH:
	case LP_M_TMPFS:
		/* without the flag it hides a directory, with something to see in it */
		return m->flags & LP_F_WRITE ? LL_WRITE | LL_READ : base;
	case LP_M_DEVICE:
		return LL_DEVICE;
	case LP_M_DEVPTS:
		return LL_DEVICE | LL_READ_DIR;
	case LP_M_PROC:
		/* one's own oom_score_adj, comm, coredump_filter; the mounts keep the rest */
		return LL_READ | LL_WRITE_FILE | LL_TRUNCATE;
	default:
		return 0;
	}
}

/* File systems of our own: what is mounted there is their root, or a directory of ours. */
static bool is_dir(const lp_mount *m)
{
	return m->kind == LP_M_SCRATCH || m->kind == LP_M_TMPFS || m->kind == LP_M_DEVPTS ||
	       m->kind == LP_M_PROC;
}

/* In the guest's own root; or, where that is the host's, by what the host has opened: there a path may lead
 * elsewhere by now. */
static int add_row(const ruleset *set, const lp_plan_view *v, const lp_mount *m, uint64_t access,
		   const int *fds, uint32_t fd_count)
{
	const char *target = launch_string(v, m->target);

	if (!(v->plan->steps & LP_ROOT) && m->source_fd >= 0 && (uint32_t)m->source_fd < fd_count)
		return add_fd(set, fds[m->source_fd], access, false, target);
	return add_path(set, target, access, is_dir(m), m->flags & LP_F_OPTIONAL);
}

static int add_rows(const ruleset *set, const lp_plan_view *v, const int *fds, uint32_t fd_count,
		    int scratch_fd)
{
	bool own_root = v->plan->steps & LP_ROOT;
	uint32_t i;

	if (own_root && add_path(set, "/", LL_READ, true, false) < 0)
		return -1;
	for (i = 0; i < v->plan->mount_count; i++) {
		const lp_mount *m = &v->mounts[i];
		uint64_t access = row_access(m, own_root);

		if (access && add_row(set, v, m, access, fds, fd_count) < 0)
			return -1;
	}
	if (scratch_fd >= 0)
		return add_fd(set, scratch_fd, LL_WRITE | LL_READ, true, "the scratch tmpfs");
	return 0;
}

int landlock_apply(const lp_plan_view *v, const int *fds, uint32_t fd_count, int scratch_fd, bool scope,
		   uint32_t *abi, launch_failure *f)
{
	struct ll_ruleset attr = { 0 };
	ruleset set = { .failure = f };
	int rc;

	*abi = landlock_abi();
	if (!*abi)
		return launch_fail(f, EOPNOTSUPP, "landlock", "the kernel has no landlock");
	if (scope && *abi < 6)
		return launch_fail(f, EOPNOTSUPP, "landlock",
				   "landlock's scopes need ABI 6, the kernel has %u", *abi);
	set.known = attr.fs = known_rights(*abi);
	if (scope)
		attr.scoped = LL_SCOPE_ABSTRACT | LL_SCOPE_SIGNAL;
	set.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, ruleset_size(*abi), 0);
	if (set.fd < 0)
		return launch_fail(f, errno, "landlock", "cannot create a ruleset");
	rc = add_rows(&set, v, fds, fd_count, scratch_fd);
	if (!rc && syscall(SYS_landlock_restrict_self, set.fd, 0) < 0)
		rc = launch_fail(f, errno, "landlock", "cannot restrict itself");
	close(set.fd);
	return rc;
}
