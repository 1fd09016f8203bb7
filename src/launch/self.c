/* SPDX-License-Identifier: MIT */
/*
 * self.c - the command as its own supervisor; linked into `sandbox` alone.
 *
 * The library cannot fork its application, so it starts sb-launch.  The command is one small thread: it
 * clones pid 1 itself, as soon as it is known that something will run, and pid 1 has the namespaces that
 * take the kernel long (network, ipc) made beside it (aside.c), while the request is still planned.  The plan
 * then follows on the control socket, as to an sb-launch.
 *
 *   command --- pid 1 --- the guest
 *        `----- keeper    where there are cgroups, it waits for the command's end, to remove them; it
 *                         watches what they do not limit
 *
 * States of a box: begun (pid 1 waits for PLAN), followed (PLAN is sent), over (end of file: pid 1 ends),
 * reaped.  What fails on our side is told as a FAILED, like what fails in pid 1; then comes GONE.
 *
 * pid 1 begins with a copy of our memory.  What of it is the caller's (arguments and environment) is wiped
 * first; what we have read by then is the request, which is the guest's anyway.
 */
#include "box.h"
#include "host_box.h"
#include "sys.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SELF_NAME "sandbox"
#define WATCHER_FD (LP_CONTROL_FD + 1)
#define ALL_SIGNALS (~(uint64_t)0)
#define MASK_BYTES 8
#define FIRST (LP_USERNS | LP_PIDNS)    /* what pid 1 is born into; the others it makes itself, */
#define ASIDE (LP_NETNS | LP_IPCNS)     /* and these have somebody made beside it */

extern char **environ;

struct host_self {
	launch_box box;
	lp_plan plan;                /* what box.plan is while it is followed */
	launch_cgroup kept;          /* the keeper's: paths alone */
	uint64_t begun;              /* LP_NAMESPACES */
	int keeper, keeper_end;      /* pid, 0 = none; the pipe whose end of file is our death */
	int watcher;                 /* the other end of pid 1's; ours, if the keeper has no use for it */
	bool over, failed;
	launch_failure failure;      /* of our side, `failed` */
	uint32_t leftovers;
};

static char **words; /* main()'s */

int launch_self(char **argv)
{
	if (argv[0] && !strcmp(argv[0], LP_SELF_NAME)) {
		prctl(PR_SET_NAME, SELF_NAME, 0, 0, 0); /* not "exe" */
		memset(argv[0] + sizeof SELF_NAME - 1, 0, sizeof LP_SELF_NAME - sizeof SELF_NAME);
		return launch_main();
	}
	words = argv;
	return -1;
}

/* ---- In the children ---------------------------------------------------------------------------- */

/* What ps shows, and /proc/1/cmdline to the guest, is what stands there. */
static void forget_caller(void)
{
	char **at;

	for (at = environ; at && *at; at++)
		memset(*at, 0, strlen(*at));
	for (at = words; at && *at; at++)
		memset(*at, 0, strlen(*at));
	if (words && words[0] && words[1] && words[1] - words[0] >= (ptrdiff_t)sizeof SELF_NAME)
		memcpy(words[0], SELF_NAME, sizeof SELF_NAME);
}

/* The control socket as 3, the watcher's as 4, nothing else but /dev/null. */
static int set_descriptors(int control, int watcher, launch_failure *f)
{
	int fd, i;

	if ((watcher = fcntl(watcher, F_DUPFD_CLOEXEC, WATCHER_FD + 1)) < 0 ||
	    (control != LP_CONTROL_FD && dup3(control, LP_CONTROL_FD, O_CLOEXEC) < 0) ||
	    dup3(watcher, WATCHER_FD, O_CLOEXEC) < 0)
		return launch_fail(f, errno, "descriptors", "cannot place the sockets of pid 1");
	fd = openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return launch_fail(f, errno, "descriptors", "cannot open \"/dev/null\"");
	for (i = 0; i < LP_CONTROL_FD; i++)
		if (dup3(fd, i, 0) < 0)
			return launch_fail(f, errno, "descriptors", "cannot place descriptor %d", i);
	if (host_close_from(WATCHER_FD + 1) < 0)
		return launch_fail(f, errno, "descriptors", "cannot close the other descriptors");
	return 0;
}

static int prepare_pid1(launch_box *box, const int sockets[2], uint64_t steps, launch_failure *f)
{
	unsigned long here = supervisor_namespaces(steps & LP_NAMESPACES & ~(FIRST | ASIDE));

	host_reset_signals(ALL_SIGNALS);
	forget_caller();
	if (set_descriptors(sockets[0], sockets[1], f) < 0)
		return -1;
	aside_start(supervisor_namespaces(steps & ASIDE), steps & LP_NETNS);
	if (here && unshare((int)here) < 0)
		return launch_fail(f, errno, "namespaces", "cannot make the namespaces");
	box->held |= steps & LP_NAMESPACES;
	box->held |= steps & LP_NETNS ? LP_LO_UP : 0;
	return supervisor_read_plan(box, f);
}

static void pid1_main(launch_box *box, const int sockets[2], uint64_t steps) __attribute__((noreturn));

static void pid1_main(launch_box *box, const int sockets[2], uint64_t steps)
{
	launch_failure failure;

	if (prepare_pid1(box, sockets, steps, &failure) < 0) {
		wire_failed(box->control, 0, 0, &failure);
		_exit(1);
	}
	box->link = box->control;
	box->watcher = WATCHER_FD;
	reap_main(box);
}

static bool keeper_watches(const lp_plan *p)
{
	return p->steps & LP_SAMPLE || sockets_watched(p);
}

static void keeper_main(host_self *s, int end, int pid1) __attribute__((noreturn));

static void keeper_main(host_self *s, int end, int pid1)
{
	bool watches = keeper_watches(&s->plan);
	char byte;

	forget_caller();
	setsid(); /* a signal for the caller's whole group is not for us */
	end = fcntl(end, F_DUPFD_CLOEXEC, 3);
	pid1 = fcntl(pid1, F_DUPFD_CLOEXEC, 3);
	if (dup3(s->watcher, 2, O_CLOEXEC) < 0 || dup3(end, 0, O_CLOEXEC) < 0 || dup3(pid1, 1, O_CLOEXEC) < 0)
		_exit(1);
	host_close_from(watches ? 3 : 2);
	s->box.control = 0;
	s->box.link = 2;
	if (watches)
		supervisor_wait(&s->box, 1);
	while (read(0, &byte, 1) < 0) /* the command has not done with the cgroups */
		;
	syscall(SYS_pidfd_send_signal, 1, SIGKILL, NULL, 0);
	cgroup_remove(&s->kept);
	_exit(0);
}

/* ---- Beginning ------------------------------------------------------------------------------------ */

/* As fork(), with every signal blocked in the child. */
static int clone_self(unsigned long flags, int *pidfd)
{
	uint64_t all = ALL_SIGNALS, old = 0;
	int pid;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, MASK_BYTES);
	pid = (int)syscall(SYS_clone, flags, NULL, pidfd, NULL, NULL);
	if (pid)
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, MASK_BYTES);
	return pid;
}

static void fail_here(host_self *s, int os_errno, const char *where, const char *what)
{
	s->failed = true;
	launch_fail(&s->failure, os_errno, where, "%s", what);
}

/* The keeper watches what no cgroup limits, and sockets; the CPU time of a cgroup is watched by an sb-launch.
 * A scope is entered before there is a pid 1. */
static bool self_fits(uint64_t steps, uint32_t cgroup_kind)
{
	return (steps & LP_PIDNS) && !(steps & LP_SUBREAPER) &&
	       (!(steps & LP_SAMPLE) || cgroup_kind == LP_CG_NONE) && cgroup_kind != LP_CG_SCOPE;
}

static int self_begin(lh_box *b, uint64_t steps, sb_error *err)
{
	host_self *s = calloc(1, sizeof *s);
	int ours[2], theirs[2], pid, rc = s ? fd_pair(SOCK_SEQPACKET, ours) : -ENOMEM;

	if (rc >= 0) {
		int pair[2] = { -1, -1 };

		theirs[0] = ours[1];
		rc = fd_pair(SOCK_SEQPACKET, pair);
		ours[1] = pair[0];
		theirs[1] = pair[1];
		if (rc < 0) {
			close(ours[0]);
			close(theirs[0]);
		}
	}
	if (rc < 0) {
		free(s);
		return error_errno(err, SB_ERR_IO, -rc, "launch.start", "cannot make a socket pair");
	}
	b->self = s;
	b->socket = ours[0];
	s->watcher = ours[1];
	s->begun = steps & LP_NAMESPACES;
	supervisor_init(&s->box, LP_CONTROL_FD);
	s->box.privileged = sources_privileged();
	pid = clone_self(supervisor_namespaces(s->begun & FIRST) | CLONE_PIDFD, &b->pidfd);
	if (!pid)
		pid1_main(&s->box, theirs, s->begun);
	rc = errno;
	fd_close(&theirs[0]);
	fd_close(&theirs[1]);
	if (pid < 0) {
		b->pidfd = -1;
		b->reaped = true;
		fail_here(s, rc, s->begun & LP_USERNS ? "userns" : "namespaces", "cannot make the namespaces");
		return 0;
	}
	b->pid = pid;
	s->box.pid1 = pid;
	s->box.control = s->box.link = b->socket;
	return 0;
}

/* ---- The plan --------------------------------------------------------------------------------------- */

static void view_plan(host_self *s, const lh_plan *plan)
{
	s->plan = plan->fixed;
	s->plan.mount_count = plan->mount_count;
	s->plan.string_bytes = plan->string_bytes;
	s->box.view = (lp_plan_view){ &s->plan, plan->mounts, plan->strings, NULL };
	s->box.plan = &s->plan;
	memcpy(s->box.fds, plan->fds, plan->fd_count * sizeof *plan->fds); /* borrowed: none of them counts */
}

/* The directories that will be made. */
static void name_kept(host_self *s)
{
	const lp_plan_view *v = &s->box.view;
	launch_cgroup *kept = &s->kept;
	uint32_t i;

	cgroup_init(kept);
	kept->kind = v->plan->cgroup_kind;
	for (i = 0; i < v->plan->cgroup_count; i++) {
		int n = snprintf(kept->path[kept->count], sizeof kept->path[0], "%s/%s",
				 launch_string(v, v->plan->cgroups[i].parent),
				 launch_string(v, v->plan->cgroup_name));

		if (n > 0 && (size_t)n < sizeof kept->path[0])
			kept->join[kept->count++] = -1;
	}
}

/* Before there is anything to keep. */
static int start_keeper(lh_box *b, launch_failure *f)
{
	host_self *s = b->self;
	int end[2], pid;

	if (s->plan.cgroup_kind == LP_CG_NONE && !(s->plan.steps & LP_SAMPLE))
		return 0;
	name_kept(s);
	if (pipe2(end, O_CLOEXEC) < 0)
		return launch_fail(f, errno, "cgroup", "cannot make a pipe");
	pid = clone_self(0, NULL);
	if (!pid)
		keeper_main(s, end[0], b->pidfd);
	close(end[0]);
	if (pid < 0) {
		close(end[1]);
		return launch_fail(f, errno, "cgroup", "cannot start the process that removes the cgroups");
	}
	s->keeper = pid;
	s->keeper_end = end[1];
	if (keeper_watches(&s->plan)) /* it is the keeper's: without it nothing runs on */
		fd_close(&s->watcher);
	return 0;
}

static bool reap_pid1(lh_box *b)
{
	bool by_itself = host_reap(b);

	b->reaped = true;
	return by_itself;
}

static int self_follow(lh_box *b, const lh_plan *plan, sb_error *err)
{
	host_self *s = b->self;
	int rc;

	if ((plan->fixed.steps & LP_NAMESPACES) != s->begun || !self_fits(plan->fixed.steps, plan->fixed.cgroup_kind))
		return error_set(err, SB_ERR_CONFLICT, "launch.start", "other namespaces were begun");
	if (s->failed)
		return 0;
	rc = host_send_plan(b, plan, err);
	if (rc)
		return rc;
	view_plan(s, plan);
	rc = supervisor_prepare(&s->box, &s->failure);
	if (!rc)
		rc = start_keeper(b, &s->failure);
	if (!rc)
		rc = supervisor_cgroups(&s->box, &s->failure);
	s->box.plan = NULL;
	s->box.view = (lp_plan_view){ 0 };
	if (!rc)
		return 0;
	/* If pid 1 has failed beside us it has said so; that nobody was there to be mapped is no news. */
	syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
	s->failed = !reap_pid1(b);
	return 0;
}

/* ---- The end ----------------------------------------------------------------------------------------- */

/* Its work is done when nothing is left to remove. */
static void dismiss_keeper(host_self *s)
{
	if (s->keeper && s->keeper_end >= 0) {
		kill(s->keeper, SIGKILL);
		fd_close(&s->keeper_end);
	}
}

static void reap_keeper(host_self *s)
{
	while (s->keeper && waitpid(s->keeper, NULL, __WALL) < 0 && errno == EINTR)
		;
	s->keeper = 0;
}

/* pid 1 is dead, and what was inside with it. */
static void remove_rest(lh_box *b)
{
	host_self *s = b->self;

	cgroup_close(&s->box.cgroup);
	s->leftovers = cgroup_remove(&s->box.cgroup);
	dismiss_keeper(s);
	reap_keeper(s);
}

static bool pid1_ended(const lh_box *b, int wait_ms)
{
	struct pollfd ended = { .fd = b->pidfd, .events = POLLIN };
	uint64_t deadline = clock_deadline_ns(clock_now_ns(), (uint64_t)wait_ms);

	if (b->reaped)
		return true;
	while (poll(&ended, 1, wait_ms ? clock_poll_ms(clock_now_ns(), deadline) : 0) < 0 && errno == EINTR)
		;
	return ended.revents & POLLIN;
}

static int self_hear_end(lh_box *b, lh_answer *answer, sb_error *err)
{
	host_self *s = b->self;

	s->over = true;
	if (b->gone)
		return host_lost(b, err);
	if (!pid1_ended(b, 0))
		return 1;
	if (!b->reaped)
		reap_pid1(b);
	if (s->failed) {
		lp_failed *failed = &answer->failed;

		*failed = (lp_failed){ .head = { LP_VERSION, LP_FAILED, sizeof *failed, 0 },
			.os_errno = s->failure.os_errno };
		memcpy(failed->where, s->failure.where, sizeof failed->where);
		memcpy(failed->message, s->failure.message, sizeof failed->message);
		s->failed = false;
		return 0;
	}
	remove_rest(b);
	answer->gone = (lp_gone){ .head = { LP_VERSION, LP_GONE, sizeof answer->gone, 0 },
		.leftovers = s->leftovers };
	b->gone = true;
	return 0;
}

static int self_wait_fd(const lh_box *b)
{
	return b->self->over && b->pidfd >= 0 ? b->pidfd : b->socket;
}

static bool self_ends(lh_box *b, unsigned wait_ms)
{
	/* nothing is in them any more, while the kernel still takes the namespaces down */
	cgroup_remove_empty(&b->self->box.cgroup);
	if (!b->self->box.cgroup.count) {
		dismiss_keeper(b->self);
		cgroup_close(&b->self->box.cgroup);
		reap_keeper(b->self);
	}
	return pid1_ended(b, (int)wait_ms);
}

static void self_release(lh_box *b)
{
	if (!b->gone)
		remove_rest(b);
	fd_close(&b->self->watcher);
	free(b->self);
	b->self = NULL;
}

static const host_way way = { .fits = self_fits, .begin = self_begin, .follow = self_follow,
	.hear_end = self_hear_end, .wait_fd = self_wait_fd, .ends = self_ends, .release = self_release };
const host_way *const host_self_way = &way;
