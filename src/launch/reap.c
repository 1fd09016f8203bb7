/* SPDX-License-Identifier: MIT */
/*
 * reap.c - pid 1 of a sandbox: puts every wall up, then starts what the host asks for and reaps.
 *
 * It waits for three things: children that ended (signalfd), the host (control), the supervisor
 * (link).  End of file on either socket ends pid 1, and the kernel ends all that is inside.  A command
 * is over when its leader is: what it left running has a moment to end by itself, and is killed before
 * EXITED is sent, so that EXITED means that nothing of it is alive.  (A process that but holds the memory of
 * a worker has been killed by then, and may be taken apart yet: LP_S_HELD.)
 */
#include "box.h"
#include "sys.h"

#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#define REFUSED_MOST 16 /* waits of one look */
#define REAP_US 5000000u        /* for the last to die after SIGKILL */
#define LINGER_US 200000u       /* for what a command left running, to say its last words */

/* ---- Ends ------------------------------------------------------------------------------------------ */

void reap_kill_all(launch_box *box, int signo)
{
	uint32_t i;

	if (box->own_pids) { /* pid 1 of a namespace: everyone in it but us */
		kill(-1, signo);
		return;
	}
	for (i = 0; i < LP_MAX_SPAWNS; i++)
		if (box->command[i].pid && !box->command[i].ended)
			kill(-box->command[i].pid, signo);
	if (signo != SIGKILL)
		return;
	cgroup_kill_all(&box->cgroup);
	if (box->proc >= 0)
		sample_kill_tree(box->proc, getpid(), 4);
}

static void mark_ended(launch_box *box, int pid, int status)
{
	uint32_t i;

	for (i = 0; i < LP_MAX_SPAWNS; i++) {
		if (box->command[i].pid == pid && !box->command[i].ended) {
			box->command[i].ended = true;
			box->command[i].status = status;
			return;
		}
	}
}

/* Everything that is dead; true if there is no child at all.  A wait that was refused is no answer, and the
 * signal that told of the death does not come again: it is asked once more. */
static bool reap_dead(launch_box *box)
{
	int status, pid, refused = 0;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0 ||
	       (pid < 0 && errno != ECHILD && (errno == EINTR || ++refused < REFUSED_MOST)))
		if (pid > 0) {
			box->reaped++;
			mark_ended(box, pid, status);
		}
	return pid < 0 && errno == ECHILD;
}

static void drain_signals(const launch_box *box)
{
	struct signalfd_siginfo info[4];

	while (read(box->signals, info, sizeof info) > 0)
		;
}

/* Kills and reaps until nothing is left; false if something does not die.  *killed: how many did. */
static bool kill_and_reap(launch_box *box, uint32_t *killed)
{
	uint64_t end = wire_now_us() + REAP_US;
	struct pollfd wait = { .fd = box->signals, .events = POLLIN };
	bool none = reap_dead(box);
	uint32_t before = box->reaped;

	while (!none) {
		reap_kill_all(box, SIGKILL);
		none = reap_dead(box);
		if (none || wire_now_us() > end)
			break;
		poll(&wait, 1, 20);
		drain_signals(box);
	}
	*killed = box->reaped - before;
	return none;
}

/* A `tee` behind the command has read the end of its input and writes what it has: killed at once, it
 * would take the last lines along.  Anything that is to be done ends the wait.  True: nothing is left. */
static bool linger(launch_box *box)
{
	uint64_t end = wire_now_us() + LINGER_US;
	struct pollfd p[3 + LP_MAX_SPAWNS] = { { .fd = box->signals, .events = POLLIN },
		{ .fd = box->control, .events = POLLIN }, { .fd = box->link, .events = POLLIN } };

	while (!reap_dead(box)) {
		uint64_t now = wire_now_us(), left = end > now ? end - now : 0;
		uint64_t look = box->watch ? watch_wait_us(box->watch) : UINT64_MAX;

		if (!left || box->limit || box->stopping)
			return false;
		left = look < left ? look : left;
		if (poll(p, 3 + ask_poll(box, p + 3), (int)((left + 999) / 1000)) < 0) {
			if (errno == EINTR)
				continue; /* what `p` says is of the time before */
			return false;
		}
		ask_serve(box, p + 3);
		if (p[1].revents || p[2].revents || (box->watch && watch_look(box->watch, box)))
			return false;
		drain_signals(box);
	}
	return true;
}

static uint64_t micros(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void fill_usage(const launch_box *box, lp_usage *usage)
{
	struct rusage children;
	struct statfs fs;

	usage->scratch_free_bytes = usage->scratch_free_nodes = SB_UNLIMITED;
	if (getrusage(RUSAGE_CHILDREN, &children) == 0) {
		usage->user_us = micros(children.ru_utime);
		usage->system_us = micros(children.ru_stime);
		usage->peak_memory_bytes = (uint64_t)children.ru_maxrss * 1024;
	}
	if (box->scratch >= 0 && fstatfs(box->scratch, &fs) == 0) {
		usage->scratch_free_bytes = (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
		usage->scratch_free_nodes = fs.f_ffree;
	}
	cgroup_usage(&box->cgroup, usage);
}

static void answer_exited(launch_box *box, launch_command *c, bool empty, uint32_t killed)
{
	lp_exited answer = { .code = -1, .empty = empty, .limit = box->limit, .killed = killed };

	if (WIFSIGNALED(c->status))
		answer.signo = WTERMSIG(c->status);
	else
		answer.code = WEXITSTATUS(c->status);
	fill_usage(box, &answer.usage);
	if (cgroup_vanished(&box->cgroup))
		answer.limit = LP_LIMIT_UNENFORCEABLE;
	if (c->tty >= 0) /* first: with the last of its slaves gone, the master is at its end */
		close(c->tty);
	wire_head(&answer.head, LP_EXITED, sizeof answer, c->id);
	wire_send(box->control, &answer, sizeof answer, NULL, 0);
	close(c->exit_pipe);
	*c = (launch_command){ .exit_pipe = -1, .tty = -1 };
	box->running--;
}

static void finish(launch_box *box, launch_command *c)
{
	uint32_t killed = 0;
	bool empty;

	if (c->flags & LP_S_DETACHED) {
		empty = reap_dead(box);
	} else if (c->flags & LP_S_HELD && c->flags & LP_S_LAST && box->own_pids) {
		reap_kill_all(box, SIGKILL); /* whatever it is: no instruction of it runs from here on */
		empty = reap_dead(box);
	} else if (box->running == 1 && !box->detached) {
		empty = linger(box) || kill_and_reap(box, &killed);
	} else {
		stray_kill(box, c->pid);
		empty = reap_dead(box);
	}
	if (c->flags & LP_S_LAST) {
		box->stopping = true;
		box->kill_at_us = UINT64_MAX;
	}
	answer_exited(box, c, empty, killed);
}

/* True when no child is left. */
static bool collect(launch_box *box)
{
	bool none = reap_dead(box);
	uint32_t i;

	for (i = 0; i < LP_MAX_SPAWNS; i++)
		if (box->command[i].pid && box->command[i].ended)
			finish(box, &box->command[i]);
	return none;
}

/* ---- Orders ----------------------------------------------------------------------------------------- */

static launch_command *find_command(launch_box *box, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < LP_MAX_SPAWNS; i++)
		if (box->command[i].pid && box->command[i].id == id)
			return &box->command[i];
	return NULL;
}

/* What was asked for under that id is done. */
static void say_placed(launch_box *box, uint32_t id, const int *fds, uint32_t count)
{
	lp_placed placed;

	wire_head(&placed.head, LP_PLACED, sizeof placed, id);
	wire_send(box->control, &placed, sizeof placed, fds, count);
}

static void order_signal(launch_box *box, const lp_signal *s)
{
	const launch_command *c = find_command(box, s->head.id);

	if (s->whole_box)
		reap_kill_all(box, s->signo);
	else if (c && !c->ended)
		kill(-c->pid, s->signo);
	if (s->answer)
		say_placed(box, s->answer, NULL, 0);
}

static void order_resize(launch_box *box, const lp_resize *r)
{
	const launch_command *c = find_command(box, r->head.id);
	struct winsize size = { .ws_row = r->rows, .ws_col = r->cols };

	if (c && c->tty >= 0)
		ioctl(c->tty, TIOCSWINSZ, &size);
}

static void order_stop(launch_box *box, const lp_stop *s)
{
	uint64_t now = wire_now_us(), grace = s->grace_ms;

	box->stopping = true;
	box->kill_at_us = grace > (UINT64_MAX - now) / 1000 ? UINT64_MAX : now + grace * 1000;
	if (!grace) {
		reap_kill_all(box, SIGKILL);
		return;
	}
	reap_kill_all(box, SIGTERM);
	reap_kill_all(box, SIGCONT); /* a stopped one would not notice */
}

/* Files that do not fit end the box before its first command: that one must not run without them. */
static void order_put(launch_box *box, const lp_put *put, int fd)
{
	launch_failure failure;

	if (put_files(box, put, fd, &failure) == 0) {
		if (put->head.id)
			say_placed(box, put->head.id, NULL, 0);
		return;
	}
	wire_failed(box->control, put->head.id, 0, &failure);
	if (put->head.id)
		return;
	box->put_failed = true;
	if (!box->spawned)
		box->stopping = true;
}

static void order_path(launch_box *box, const lp_path *order)
{
	launch_failure failure;
	bool open = order->head.kind == LP_OPEN;
	int fd = open ? put_open(order->path, &failure) : -1;
	int rc = open ? fd : put_remove(order->path, &failure);

	if (rc < 0)
		wire_failed(box->control, order->head.id, 0, &failure);
	else
		say_placed(box, order->head.id, &fd, open);
	if (fd >= 0)
		close(fd);
}

/* What waits at the other end must not go on without the files that it was to find.  Where the record
 * cannot be sent nobody waits any more, and the host will hear of that end. */
static void order_relay(const launch_box *box, const lp_relay *relay, const int *fds, uint32_t count)
{
	if (!box->put_failed)
		wire_send(fds[0], relay + 1, relay->len, fds + 1, count - 1);
}

void reap_renew(launch_box *box)
{
	link_limit word = { .budget = ++box->budget };

	if (box->plan->cpu_us == SB_UNLIMITED || !(box->plan->steps & LP_SAMPLE))
		return;
	if (box->watch)
		watch_renew(box->watch, word.budget);
	else
		wire_send(box->link, &word, sizeof word, NULL, 0);
}

static void execute_order(launch_box *box, lp_head *head, int *fds, uint32_t count)
{
	switch (head->kind) {
	case LP_SPAWN:
		spawn_start(box, (lp_spawn *)(void *)head, fds, count);
		return; /* it has taken the descriptors */
	case LP_PUT:
		order_put(box, (const lp_put *)(const void *)head, fds[0]);
		break;
	case LP_SIGNAL:
		order_signal(box, (const lp_signal *)(const void *)head);
		break;
	case LP_RESIZE:
		order_resize(box, (const lp_resize *)(const void *)head);
		break;
	case LP_STOP:
		order_stop(box, (const lp_stop *)(const void *)head);
		break;
	case LP_OPEN:
	case LP_REMOVE:
		order_path(box, (const lp_path *)(const void *)head);
		break;
	case LP_RENEW:
		reap_renew(box);
		break;
	case LP_RELAY:
		order_relay(box, (const lp_relay *)(const void *)head, fds, count);
		break;
	default:
		dial_port(box, (const lp_dial *)(const void *)head);
		break;
	}
	while (count)
		close(fds[--count]);
}

/* False: the host is gone, or speaks another language. */
static bool read_order(launch_box *box)
{
	static union { lp_head head; char bytes[sizeof(lp_spawn) + LP_INLINE_ARGS]; lp_plan aligned; }
		record;
	int fds[LP_MAX_FDS];
	uint32_t count = 0;
	launch_failure failure;
	const char *why = "";
	long n = wire_receive(box->control, &record, sizeof record, fds, LP_MAX_FDS, &count);

	if (n == -EMSGSIZE)
		why = "the record is too long";
	else if (n <= 0)
		return false;
	else if (lp_decode_request(&record, (size_t)n, count, &why) == 0) {
		execute_order(box, &record.head, fds, count);
		return true;
	}
	launch_fail(&failure, EPROTO, "protocol", "a request is broken (%s)", why);
	wire_failed(box->control, 0, 0, &failure);
	return false;
}

static void limit_reached(launch_box *box, uint32_t limit)
{
	lp_limit answer = { .limit = limit };

	if (!box->running && !box->detached)
		return;
	box->limit = limit;
	wire_head(&answer.head, LP_LIMIT, sizeof answer, 0);
	wire_send(box->control, &answer, sizeof answer, NULL, 0);
	reap_kill_all(box, SIGKILL);
}

/* False: the supervisor is gone. */
static bool read_link(launch_box *box)
{
	link_limit order;
	long n = wire_receive(box->link, &order, sizeof order, NULL, 0, NULL);

	if (n <= 0)
		return false;
	if (n == sizeof order) {
		/* of a budget that is over nobody is to be ended any more */
		if (order.limit != LP_LIMIT_CPU || order.budget == box->budget)
			limit_reached(box, order.limit);
		wire_send(box->link, &order, sizeof order, NULL, 0);
	}
	return true;
}

/* ---- The loop --------------------------------------------------------------------------------------- */

static int wait_ms(const launch_box *box, const launch_watch *watch)
{
	uint64_t now = wire_now_us(), us = watch ? watch_wait_us(watch) : UINT64_MAX;

	if (box->stopping && box->kill_at_us != UINT64_MAX) {
		uint64_t left = box->kill_at_us > now ? box->kill_at_us - now : 0;

		us = left < us ? left : us;
		us = us > 20000 && !left ? 20000 : us; /* killed: look again soon */
	}
	if (us == UINT64_MAX)
		return -1;
	return us > 60000000 ? 60000 : (int)((us + 999) / 1000);
}

void reap_serve(launch_box *box, launch_watch *watch)
{
	struct pollfd p[3 + LP_MAX_SPAWNS] = { { .fd = box->signals, .events = POLLIN },
		{ .fd = box->control, .events = POLLIN }, { .fd = box->link, .events = POLLIN } };
	uint32_t killed;

	box->watch = watch;
	for (;;) {
		uint32_t limit;

		if (poll(p, 3 + ask_poll(box, p + 3), wait_ms(box, watch)) < 0) {
			if (errno == EINTR)
				continue; /* what `p` says is of the time before: reading by it would wait */
			break;
		}
		ask_serve(box, p + 3);
		if ((p[1].revents & (POLLHUP | POLLERR)) || (p[2].revents & (POLLHUP | POLLERR)))
			break;
		if (p[0].revents) {
			drain_signals(box);
			if (collect(box) && box->stopping)
				break;
		}
		if ((p[2].revents & POLLIN) && !read_link(box))
			break;
		if ((p[1].revents & POLLIN) && !read_order(box))
			break;
		limit = watch ? watch_look(watch, box) : LP_LIMIT_NONE;
		if (limit)
			limit_reached(box, limit);
		if (box->stopping && wire_now_us() >= box->kill_at_us)
			reap_kill_all(box, SIGKILL);
		if (box->stopping && collect(box))
			break;
	}
	kill_and_reap(box, &killed);
}

int reap_signals(launch_box *box, launch_failure *f)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	box->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return box->signals < 0 ? launch_fail(f, errno, "spawn", "cannot watch for children") : 0;
}

void reap_ready(launch_box *box)
{
	lp_ready answer = { .held = box->held, .landlock_abi = box->landlock_abi,
		.has_scratch = box->scratch >= 0, .pid1 = box->pid1 };

	wire_head(&answer.head, LP_READY, sizeof answer, 0);
	wire_send(box->control, &answer, sizeof answer, &box->scratch, answer.has_scratch);
}

/* Where the box has no /proc of its own. */
static int ask_sampler(const launch_box *box, launch_failure *f)
{
	link_limit answer;
	long n = wire_receive(box->link, &answer, sizeof answer, NULL, 0, NULL);

	if (n == sizeof answer && answer.limit)
		return launch_fail(f, EACCES, "sampler", "\"/proc\" does not show the processes of the sandbox");
	return 0; /* without a supervisor it ends at once */
}

/* What the sampler looks at.  The machine's /proc may not show pid 1 (hidepid), so it does not look before. */
static int give_sampler(launch_box *box, launch_failure *f)
{
	link_limit scratch = { 0 }, proc = { .proc = LINK_PROC_GIVEN };
	struct statfs fs;
	bool own = box->own_proc >= 0 && fstatfs(box->own_proc, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
	int rc = 0;

	if (!own && box->plan->cgroup_kind == LP_CG_NONE)
		proc.proc = LINK_PROC_ASKED;
	if (box->scratch >= 0)
		rc = wire_send(box->link, &scratch, sizeof scratch, &box->scratch, 1);
	if (rc >= 0)
		rc = wire_send(box->link, &proc, sizeof proc, &box->own_proc, own);
	if (box->own_proc >= 0)
		close(box->own_proc);
	box->own_proc = -1;
	if (!rc && proc.proc == LINK_PROC_ASKED)
		return ask_sampler(box, f);
	return rc < 0 && rc != -EPIPE ?
		       launch_fail(f, -rc, "link", "cannot tell the sampler what it is to look at") : 0;
}

void reap_main(launch_box *box)
{
	launch_failure failure;
	uint64_t steps = box->plan->steps;
	int rc = build_box(box, &failure);

	if (!rc && box->link == box->control) /* the host is the supervisor, and all that it says are orders now */
		box->link = box->watcher;
	if (!rc && (steps & LP_SAMPLE))
		rc = give_sampler(box, &failure);
	if (rc < 0) {
		wire_failed(box->control, 0, 0, &failure);
		_exit(1);
	}
	reap_ready(box);
	reap_serve(box, NULL);
	_exit(0);
}
