/* SPDX-License-Identifier: MIT */
/* rules.h - workspace, file rules and named sockets as rows.  Used by mounts.c alone. */
#ifndef SB_BACKEND_LINUX_RULES_H
#define SB_BACKEND_LINUX_RULES_H

#include "mounts.h"

/* Rows of the workspace and of every rule; sources are opened (O_PATH, no links followed). */
int rules_add(const mount_wish *wish, mount_table *table, sb_error *err);
/* On the ordered table: mount points that do not exist on the host are refused, what is to be
 * hidden or protected but is not there is left out, and the directories above a protected path are
 * pinned, so that they cannot be moved away. */
int rules_settle(const mount_wish *wish, mount_table *table, sb_error *err);

#endif /* SB_BACKEND_LINUX_RULES_H */
