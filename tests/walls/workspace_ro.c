/* SPDX-License-Identifier: MIT */
/*
 * Writing in a workspace that is shown read-only, by the one whose files they are.
 *
 * wall files
 * options --workspace-mode ro
 * fixture spares
 * attempt read: no control, it is permitted and must work
 * attempt overwrite: open without readonly+landlock | shut without landlock
 * attempt truncate: open without readonly+landlock | shut without landlock
 * attempt create: open without readonly+landlock | shut without landlock
 * attempt make_directory: open without readonly+landlock | shut without landlock
 * attempt make_link: open without readonly+landlock | shut without landlock
 * attempt remove: open without readonly+landlock | shut without landlock
 * attempt rename: open without readonly+landlock | shut without landlock
 * attempt mode: open without readonly | shut without landlock | needs own-root
 */
#define WRITES_IN "WORKSPACE"
#include "writes.h"

/* Turned around: that it cannot be read would be the fault. */
static int do_read(void)
{
	return try_open(in("spare"), O_RDONLY) == 0 ? EROFS : 0;
}

/* Landlock knows no right to it: the mount alone holds it. */
static int mode(void)
{
	return verdict(chmod(in("spare"), 0600));
}

ATTEMPTS({ "read", do_read }, { "overwrite", overwrite }, { "truncate", do_truncate }, { "create", create },
	 { "make_directory", make_directory }, { "make_link", make_link }, { "remove", do_remove },
	 { "rename", do_rename }, { "mode", mode })
