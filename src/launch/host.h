/* SPDX-License-Identifier: MIT */
/*
 * host.h - the host's side of the control protocol: starts an sb-launch and talks to it.
 *
 * Used by the backends `linux` and `process`.  The library never forks its own image (the command, one
 * thread, does: self.c): sb-launch is started vfork-style (clone3 VM|VFORK|PIDFD|CLEAR_SIGHAND, or
 * posix_spawn where clone3 is ENOSYS), signals blocked, empty environment, standard descriptors on
 * /dev/null, the socket as 3.  Works with SIGCHLD ignored and beside a wait(-1) loop of the application.
 */
#ifndef SB_LAUNCH_HOST_H
#define SB_LAUNCH_HOST_H

#include "../base/base.h"
#include "protocol.h"
#include <sandbox/backend.h>

/* ---- A PLAN under construction ------------------------------------------------------------ */
typedef struct lh_plan {
	lp_plan fixed;                /* fill as needed; counts and head are set when it is sent */
	lp_mount mounts[LP_MAX_MOUNTS];
	uint32_t mount_count;
	char strings[LP_MAX_STRINGS];
	uint32_t string_bytes;        /* 1 at the beginning: the empty string */
	int fds[LP_MAX_FDS];          /* borrowed */
	uint32_t fd_count;
	int failed;                   /* sticky SB_ERR_*; the adders then do nothing */
} lh_plan;
lh_plan *lh_plan_new(void);       /* NULL = no memory.  All limits SB_UNLIMITED, no steps */
void lh_plan_free(lh_plan *plan);
uint32_t lh_plan_string(lh_plan *plan, const char *text);
int32_t lh_plan_fd(lh_plan *plan, int fd);            /* index */
void lh_plan_mount(lh_plan *plan, int kind, const char *source, const char *target, int flags,
		   uint64_t arg);
void lh_plan_mount_fd(lh_plan *plan, int kind, int fd, const char *source, const char *target,
		      int flags, uint64_t arg);
void lh_plan_cgroup(lh_plan *plan, const char *parent, uint32_t controllers);
int lh_plan_check(const lh_plan *plan, sb_error *err); /* too many rules: INVALID_SPEC, with the max */
int lh_plan_too_large(sb_error *err); /* what that says then */

/* ---- A running sb-launch ------------------------------------------------------------------- */
typedef struct lh_box lh_box;
/* Finds sb-launch of this very build: helper_dir (or NULL), beside the running program or in libexec
 * of its tree, the same for the library, the build-time libexec path; never PATH.  None:
 * BACKEND_UNAVAILABLE, naming the places.  *path is the caller's. */
int lh_find(const char *helper_dir, char **path, sb_error *err);
/* What lh_start() starts: that; in the command, which is all in one file, the command itself. */
#define LH_SELF_PATH "/proc/self/exe"
int lh_find_own(const char *helper_dir, char **path, sb_error *err);
const char *lh_place(const char *path); /* of what was found, in words for people */
/* Starts it and sends the plan; does not wait for READY. */
int lh_start(const char *helper_path, const lh_plan *plan, lh_box **box, sb_error *err);
/* The same in two steps: the kernel needs longer for the namespaces (LP_NAMESPACES) than we for the plan.
 * UNSUPPORTED: only the command can.  A plan that needs others: CONFLICT, and the box is to be closed. */
int lh_begin(uint64_t namespaces, lh_box **box, sb_error *err);
int lh_follow(lh_box *box, const lh_plan *plan, sb_error *err);
/* Sends files: entries relative to the scratch root, e.g. "in/data.json".  Does not wait; an id that is not
 * 0 is answered by PLACED or FAILED. */
typedef struct lh_file { const char *path; const void *data; size_t len; uint32_t mode; } lh_file;
int lh_put(lh_box *box, const lh_file *files, size_t count, uint32_t id, sb_error *err);
/* The same to anywhere that the guest may write: relative to the root that it sees.  LP_OPEN or LP_REMOVE of
 * such a path.  Both do not wait, and are answered, by PLACED or FAILED of that id. */
int lh_put_anywhere(lh_box *box, const lh_file *file, uint32_t id, sb_error *err);
int lh_path(lh_box *box, uint32_t kind, const char *path, uint32_t id, sb_error *err);
typedef struct lh_spawn {
	const char *const *argv, *const *env;
	const char *cwd;
	uint32_t flags;               /* LP_S_* */
	uint16_t rows, cols;
	int in, out, err, control, code; /* guest ends; borrowed, -1 = /dev/null or none */
	int exit_pipe;                /* write end; borrowed */
	uint32_t id;
} lh_spawn;
/* Argument block over LP_MAX_ARGS: INVALID.  Does not wait. */
int lh_spawn_send(lh_box *box, const lh_spawn *spawn, sb_error *err);
int lh_signal(lh_box *box, uint32_t id, int signo, bool whole_box, uint32_t answer, sb_error *err);
int lh_resize(lh_box *box, uint32_t id, uint16_t rows, uint16_t cols, sb_error *err);
/* `len` bytes (1..LP_MAX_RELAY), and `more` unless it is -1, into the SOCK_SEQPACKET `socket`, by pid 1,
 * once all files that were sent before are in place.  Borrows both.  Does not wait. */
int lh_relay(lh_box *box, int socket, const void *data, size_t len, int more, sb_error *err);
/* LP_RENEW.  Does not wait, and is not answered. */
int lh_renew(lh_box *box, sb_error *err);
int lh_stop(lh_box *box, uint64_t grace_ms, sb_error *err);

/* The next answer.  Waits until call's deadline or cancel; *fd gets a descriptor that came along
 * (READY's scratch root, DIALED's stream), else -1.  A FAILED is returned as an answer, not as an
 * error.  End of file without GONE: CONNECTION_LOST.  `wait` false: SB_ERR_AGAIN if none is there. */
typedef union lh_answer {
	lp_head head;
	lp_ready ready;
	lp_failed failed;
	lp_spawned spawned;
	lp_exited exited;
	lp_limit limit;
	lp_dialed dialed;
	lp_placed placed;
	lp_gone gone;
} lh_answer;
int lh_next(lh_box *box, const sb_call *call, bool wait, lh_answer *answer, int *fd, sb_error *err);
/* A FAILED as the error that a caller expects: exec 1: NOT_FOUND or FORBIDDEN naming the program;
 * exec 2: NOT_FOUND or NOT_DIR naming the cwd; put with ENOSPC: FS_QUOTA; files: what the errno says; else
 * BACKEND_UNAVAILABLE with where, message, and the one thing to change for that step. */
int lh_failed_error(const lp_failed *failed, sb_error *err);
int lh_socket(const lh_box *box);
/* Until there is something to hear, the word that the walls stand above all; so long at the most. */
void lh_await(const lh_box *box, unsigned ms);
int64_t lh_pid(const lh_box *box);             /* of sb-launch */
/* Waits, 10 s at the most, until sb-launch has said GONE; false: it does not end by itself (no LP_S_LAST
 * has ended), or has not in time. */
bool lh_ends(lh_box *box);
/* Closes the socket (kills everything inside), waits for sb-launch's end up to 10 s (kills it then),
 * reaps it.  NULL is fine. */
void lh_close(lh_box *box);

/* The guest's system calls, as OCI JSON (generated; the filter in sb-launch is made of the same table): with
 * a network of its own, and with the host's. */
extern const char lh_seccomp_oci_json[], lh_seccomp_oci_host_net[];
/* The same for a guest without namespaces. */
extern const char lh_seccomp_oci_place[], lh_seccomp_oci_place_net[];
/* What a worker is left (LP_WORKER). */
extern const char lh_seccomp_oci_worker[];

#endif /* SB_LAUNCH_HOST_H */
