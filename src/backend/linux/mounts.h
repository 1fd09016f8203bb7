/* SPDX-License-Identifier: MIT */
/*
 * mounts.h - the file system of a box as rows of data, before anything is mounted.
 *
 * Built in three steps: what every box has (rootfs.c), then workspace and rules over it, then
 * settled: a grant of the caller's takes the place of built-in rows at and below its path, rows are
 * ordered by depth (so the nearest one wins), and every mount point that would have to be made on
 * the host is refused.  Nothing is followed through symbolic links but the host's own /bin and the
 * like.
 */
#ifndef SB_BACKEND_LINUX_MOUNTS_H
#define SB_BACKEND_LINUX_MOUNTS_H

#include "facts.h"

#include <sandbox/backend.h>

enum { MOUNT_BUILTIN = 0, MOUNT_WORKSPACE, MOUNT_RULE, MOUNT_PIN };

typedef struct mount_row {
	int kind, flags;              /* LP_M_*, LP_F_* */
	const char *source, *target;  /* borrowed, or of the table's texts; source may be NULL */
	uint64_t arg;
	int fd;                       /* O_PATH of the source, -1 = by path */
	bool own_fd;
	int origin;                   /* MOUNT_* */
	int access;                   /* SB_FILE_*, for sb_plan_path(); 0 = not told */
	uid_t owner;                  /* on disk, of workspace and rules */
	const char *why;              /* for the plan; a constant */
	bool dropped;
	uint32_t depth;               /* of target: "/" = 0 */
	size_t len;                   /* of target */
} mount_row;

typedef struct mount_table {
	mount_row *at;
	size_t len, cap;
	arena texts;
	bool failed;                  /* no memory: sticky */
	uid_t owner_uid;              /* on disk: who the guest is there */
	gid_t owner_gid;
} mount_table;

/* What is to be built. */
typedef struct mount_wish {
	const linux_facts *facts;
	const sb_box_request *request;
	uid_t uid_inside;
	gid_t gid_inside;
	bool code, net;               /* a language run; the host's network */
	bool in_place;                /* in the host's own root: inplace.c */
	bool bare;                    /* what is shown alone: no system, nothing of a box around it */
	bool workspace_write;
	bool workspace_idmap;         /* its file system can be mapped (root callers) */
} mount_wish;

void mounts_init(mount_table *table);
void mounts_release(mount_table *table);
/* All of it, settled.  NOT_FOUND, INVALID_PATH, INVALID_SPEC name the rule. */
int mounts_build(const mount_wish *wish, mount_table *table, sb_error *err);
/* Directory entries that the rows make in the scratch tmpfs, its own top directories included. */
uint64_t mounts_nodes(mount_table *table);

/* What a guest of root is to the files of a row, for its line in the plan; "" = nothing to say. */
const char *mounts_owner_caveat(const mount_wish *wish, const mount_table *table, const mount_row *row);
/* UNSUPPORTED: the file system of `path` maps no owners; `instead`: what shows it for reading. */
int mounts_unmapped(const char *path, const char *instead, sb_error *err);

/* rules.c: a limit over what lies on the host is nobody's to hold. */
int rules_check_disk(const mount_wish *wish, sb_error *err);

/* inplace.c: leaves of the rows what landlock can hold.  UNENFORCEABLE names a rule that it cannot. */
int inplace_rows(const mount_wish *wish, mount_table *table, sb_error *err);

/* rootfs.c: what every box has. */
void rootfs_rows(const mount_wish *wish, mount_table *table);

/* Adders; on memory they set table->failed. */
mount_row *mounts_add(mount_table *table, int kind, const char *source, const char *target,
		      int flags, uint64_t arg);
const char *mounts_text(mount_table *table, const char *fmt, ...) BASE_PRINTF(2, 3);
const char *mounts_join(mount_table *table, const char *front, const char *back);
/* The nearest row at or above `path` that is not dropped; NULL = the skeleton's root. */
mount_row *mounts_nearest(const mount_table *table, const char *path, const mount_row *but);

#endif /* SB_BACKEND_LINUX_MOUNTS_H */
