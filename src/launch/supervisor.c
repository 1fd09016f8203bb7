/* SPDX-License-Identifier: MIT */
/*
 * supervisor.c - what the supervisor of a box does until every wall stands: sb-launch (main.c), or the
 * command itself (self.c).  It lives in the caller's world and has the caller's rights.
 */
#include "box.h"
#include "build_id.h"
#include "sys.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define ACT_US 2000000u         /* for pid 1 to end everything at a limit */
#define WANTED_FILES 1024u      /* descriptors that PLAN and its mounts may need at once */

void supervisor_init(launch_box *box, int control)
{
	struct rlimit more;
	uint32_t i;

	box->control = control;
	box->link = box->watcher = box->scratch = box->proc = box->own_proc = -1;
	box->signals = box->ask_in = box->ask_out = -1;
	for (i = 0; i < LP_MAX_MOUNTS; i++)
		box->tree[i] = -1;
	cgroup_init(&box->cgroup);
	if (getrlimit(RLIMIT_NOFILE, &box->open_files) < 0)
		return;
	more = box->open_files;
	if (more.rlim_cur < WANTED_FILES && more.rlim_max > more.rlim_cur) {
		more.rlim_cur = more.rlim_max < WANTED_FILES ? more.rlim_max : WANTED_FILES;
		setrlimit(RLIMIT_NOFILE, &more);
	}
}

int supervisor_read_plan(launch_box *box, launch_failure *f)
{
	static union { lp_plan plan; char bytes[LP_MAX_MESSAGE]; } record;
	const char *why = "";
	long n = wire_receive(box->control, &record, sizeof record, box->fds, LP_MAX_FDS, &box->fd_count);

	if (n <= 0)
		return launch_fail(f, n ? (int)-n : ECONNRESET, "protocol", "cannot read the plan");
	/* The build id comes first: records of another build need not fit. */
	if ((size_t)n >= sizeof(lp_plan) &&
	    strncmp(record.plan.build_id, SB_BUILD_ID, sizeof record.plan.build_id) != 0)
		return launch_fail(f, 0, "build-id", "sb-launch is another build (\"%s\")", SB_BUILD_ID);
	if (lp_decode_plan(&record, (size_t)n, box->fd_count, &box->view, &why) < 0)
		return launch_fail(f, EPROTO, "protocol", "the plan is broken (%s)", why);
	box->plan = box->view.plan;
	return 0;
}

unsigned long supervisor_namespaces(uint64_t steps)
{
	static const struct { uint64_t step; unsigned long flag; } table[] = {
		{ LP_USERNS, CLONE_NEWUSER }, { LP_PIDNS, CLONE_NEWPID }, { LP_MOUNTNS, CLONE_NEWNS },
		{ LP_IPCNS, CLONE_NEWIPC }, { LP_UTSNS, CLONE_NEWUTS }, { LP_NETNS, CLONE_NEWNET },
		{ LP_CGROUPNS, CLONE_NEWCGROUP } };
	unsigned long flags = 0;
	size_t i;

	for (i = 0; i < sizeof table / sizeof *table; i++)
		if (steps & table[i].step)
			flags |= table[i].flag;
	return flags;
}

static int send_go(launch_box *box, launch_failure *f)
{
	link_go go = { .pid1 = box->pid1 };
	int fds[LP_MAX_FDS], rc;
	uint32_t row, i;

	for (row = 0; row < box->plan->mount_count; row++) {
		if (box->tree[row] < 0)
			continue;
		go.row[go.count] = (uint16_t)row;
		fds[go.count++] = box->tree[row];
		box->tree[row] = -1;
	}
	rc = wire_send(box->link, &go, sizeof go, fds, go.count);
	for (i = 0; i < go.count; i++)
		close(fds[i]);
	return rc < 0 ? launch_fail(f, -rc, "protocol", "cannot tell pid 1 to go on") : 0;
}

/* What pid 1 cannot do for itself. */
int supervisor_prepare(launch_box *box, launch_failure *f)
{
	uint64_t steps = box->plan->steps;
	bool outside = box->privileged && (steps & LP_ROOT);
	int userns = -1, rc = 0;

	if (steps & LP_USERNS)
		rc = userns_map(box, &userns, outside, f);
	if (!rc && outside)
		rc = sources_open_outside(box, userns, f);
	if (userns >= 0)
		close(userns);
	return rc ? rc : send_go(box, f);
}

/* Made while pid 1 puts up its walls: it waits for them only at the end. */
int supervisor_cgroups(launch_box *box, launch_failure *f)
{
	static link_cgroup message;
	int *at[LP_MAX_FDS], fds[LP_MAX_FDS], rc;
	uint32_t i, count;

	if (box->plan->cgroup_kind == LP_CG_NONE)
		return 0;
	if (userns_oom_later(box))
		userns_prefer_for_oom(box);
	if (cgroup_make(&box->view, &box->cgroup, f) < 0)
		return -1;
	message.cgroup = box->cgroup;
	message.cgroup.cpu_quota = -1;
	count = wire_cgroup_fds(&message.cgroup, at);
	for (i = 0; i < count; i++)
		fds[i] = *at[i];
	rc = wire_send(box->link, &message, sizeof message, fds, count);
	/* EPIPE: pid 1 has failed by itself, and said so */
	return rc < 0 && rc != -EPIPE ? launch_fail(f, -rc, "cgroup", "cannot hand the cgroups over") : 0;
}

/* ---- Waiting ---------------------------------------------------------------------------------------- */

static int poll_us(struct pollfd *p, nfds_t n, uint64_t us)
{
	struct timespec wait = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	int rc = ppoll(p, n, us == UINT64_MAX ? NULL : &wait, NULL);

	if (rc >= 0 || errno == EINTR)
		return rc;
	return poll(p, n, us == UINT64_MAX ? -1 : (int)(us / 1000 < 60000 ? us / 1000 + 1 : 60000));
}

typedef struct watcher {
	launch_watch watch;
	uint64_t told_us;       /* when pid 1 was told of a limit and has not answered; 0 = never */
} watcher;

static void read_link(watcher *w, const launch_box *box)
{
	link_limit answer;
	uint32_t count = 0;
	int fd = -1;

	if (wire_receive(box->link, &answer, sizeof answer, &fd, 1, &count) <= 0)
		return;
	if (answer.limit)
		w->told_us = 0;
	else if (answer.budget)
		watch_renew(&w->watch, answer.budget);
	if (answer.proc && w->watch.waits) {
		w->watch.waits = false;
		w->watch.due_us = wire_now_us();
	}
	if (count && answer.proc)
		watch_own_proc(&w->watch, fd);
	else if (count)
		w->watch.scratch = fd;
	else if (answer.proc == LINK_PROC_ASKED) {
		answer.limit = watch_sees(&w->watch, box) ? LP_LIMIT_NONE : LP_LIMIT_UNENFORCEABLE;
		wire_send(box->link, &answer, sizeof answer, NULL, 0);
	}
}

/* False: pid 1 must be killed, for it does not act.  (A guest may have stopped the child that pid 1 waits
 * for while it starts a command.) */
static bool look(watcher *w, const launch_box *box)
{
	link_limit order = { .limit = watch_look(&w->watch, box), .budget = w->watch.budget };

	if (order.limit && !w->told_us) {
		w->told_us = wire_now_us();
		wire_send(box->link, &order, sizeof order, NULL, 0);
	}
	return !w->told_us || wire_now_us() - w->told_us < ACT_US;
}

void supervisor_wait(launch_box *box, int pidfd)
{
	struct pollfd p[3] = { { .fd = pidfd, .events = POLLIN }, { .fd = box->control, .events = 0 },
		{ .fd = box->link, .events = 0 } };
	watcher w = { .told_us = 0 };

	watch_init(&w.watch, box, box->pid1);
	w.watch.waits = box->plan->steps & LP_SAMPLE;
	if (watch_on(&w.watch) || w.watch.waits)
		p[2].events = POLLIN;
	for (;;) {
		if (poll_us(p, 3, watch_wait_us(&w.watch)) < 0) {
			if (errno == EINTR)
				continue; /* what `p` says is of the time before */
			break;
		}
		if (p[0].revents)
			break;
		if (p[2].revents & POLLIN)
			read_link(&w, box);
		else if (p[2].revents & (POLLHUP | POLLERR)) {
			/* pid 1 is ending, and the kernel is not done with its namespaces yet */
			p[2].fd = -1;
			cgroup_remove_empty(&box->cgroup);
		}
		if (p[1].revents || !look(&w, box)) {
			syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
			break;
		}
	}
}
