/* SPDX-License-Identifier: MIT */
/* target.h - the new root while it is built: where rows of the mount table put things. */
#ifndef SB_LAUNCH_TARGET_H
#define SB_LAUNCH_TARGET_H

#include "box.h"

#include <sys/types.h>

#define TARGET_MAX_OWN 64u           /* file systems of its own in one box */

typedef struct builder {
	launch_box *box;
	launch_failure *f;
	int root;                    /* skeleton, attached */
	int scratch;                 /* the whole tmpfs, attached */
	bool covers;                 /* what hides things is in the scratch tmpfs */
	bool place;                  /* the file that others are names of is in the skeleton */
	dev_t own[TARGET_MAX_OWN];   /* file systems that we made */
	uint32_t own_count;
	/* The last parent directory used: rows come in groups. */
	char parent[4096];
	int parent_fd;
	bool parent_own;             /* it is on a file system of ours */
	bool here;                   /* it is the current directory */
	bool absent;                 /* a target is not there, and would lie on the host */
} builder;

/* Says what of the sandbox's `path` failed; -1. */
int target_fail(builder *b, int error, const char *what, const char *path);
int target_own_add(builder *b, int fd);        /* things may be made on this file system */
/* Absolute path as the guest will see it; O_PATH, or -1 and errno. */
int target_resolve(const builder *b, const char *path);
/* The directory above `path`, made if absent, and the last name.  The descriptor stays the builder's. */
int target_parent(builder *b, const char *path, const char **name);
/* The same, but on a file system of ours: there the name may be made. */
int target_own_parent(builder *b, const char *path, const char **name);
/* Then goes there: *name is what a path of one element means. */
int target_enter(builder *b, const char *path, const char **name);
void target_covered(builder *b, const char *path); /* something was mounted there */
void target_forget(builder *b);                /* at the end */
/* Puts a detached mount at its target, which is made if absent; consumes the tree. */
int target_attach(builder *b, int tree, const char *path, bool dir);

#endif /* SB_LAUNCH_TARGET_H */
