/* SPDX-License-Identifier: MIT */
/* process.h - what a unit test sees of the backend `process`. */
#ifndef SB_BACKEND_PROCESS_H
#define SB_BACKEND_PROCESS_H

#include <sandbox/sandbox.h>

/* cwd must be a directory beneath the workspace (NULL = anywhere), links that lead out included:
 * NOT_FOUND, NOT_DIR, PATH_TRAVERSAL. */
int process_check_cwd(int workspace_fd, const char *workspace, const char *cwd, sb_error *err);

#endif /* SB_BACKEND_PROCESS_H */
