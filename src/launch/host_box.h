/* SPDX-License-Identifier: MIT */
/* host_box.h - shared by host.c, host_send.c and host_error.c alone. */
#ifndef SB_LAUNCH_HOST_BOX_H
#define SB_LAUNCH_HOST_BOX_H

#include "host.h"

typedef struct host_self host_self;

struct lh_box {
	int socket, pidfd;
	pid_t pid;       /* of sb-launch; of pid 1, if `self` */
	host_self *self; /* we are the supervisor */
	bool gone;     /* GONE was seen */
	uint32_t last; /* id of the LP_S_LAST, 0 = none */
	bool ending;   /* it was seen to end: sb-launch ends by itself */
	bool reaped;
};

/* The command as its own supervisor: self.c.  A library has none. */
typedef struct host_way {
	/* No supervisor of its own is needed for such a plan: steps, kind of cgroups. */
	bool (*fits)(uint64_t steps, uint32_t cgroup_kind);
	int (*begin)(lh_box *box, uint64_t steps, sb_error *err);
	int (*follow)(lh_box *box, const lh_plan *plan, sb_error *err);
	/* Behind the end of file: 0 and an answer, 1 = not yet, or an error. */
	int (*hear_end)(lh_box *box, lh_answer *answer, sb_error *err);
	int (*wait_fd)(const lh_box *box); /* readable when there is something to hear */
	bool (*ends)(lh_box *box, unsigned wait_ms);
	void (*release)(lh_box *box);      /* pid 1 is reaped */
} host_way;
extern const host_way *const host_self_way; /* NULL = none */

/* Safe in a child that shares our memory: raw system calls. */
void host_reset_signals(uint64_t mask);
int host_close_from(unsigned first);
bool host_reap(const lh_box *box); /* true: it ended by itself */

/* After the end of file or a broken connection: the error that says how sb-launch ended. */
int host_lost(const lh_box *box, sb_error *err);
/* What any step can meet: a limit that the caller brought along.  What to do, or NULL. */
const char *host_limit_remedy(int os_errno);
int host_send_plan(lh_box *box, const lh_plan *plan, sb_error *err);

#endif /* SB_LAUNCH_HOST_BOX_H */
