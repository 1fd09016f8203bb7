/* SPDX-License-Identifier: MIT */
/*
 * guest.c - one process in a box: its pipes, its SPAWN, its end.
 *
 * Our end of each pipe is not blocking; the guest's end keeps its own flags (each end of a pipe is
 * an open file description of its own).
 */
#include "launched.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define STANDING_MS 50u /* for the walls to stand; longer is no harm */
#define SIGNAL_MS 10000u /* for pid 1 to say that it has sent a signal: one that is late strikes what comes next */
#define END_WAIT_MS 2000u /* for what sb-launch has to say once pid 1 is dead */

/* ---- Descriptors --------------------------------------------------------------------------- */

enum { END_IN = 0, END_OUT, END_ERR, END_CONTROL, END_EXIT, END_COUNT };
typedef struct ends {
	int ours[END_COUNT], theirs[END_COUNT];
} ends;

static void ends_close(int fds[END_COUNT])
{
	int i;

	for (i = 0; i < END_COUNT; i++)
		fd_close(&fds[i]);
}

/* A guest of another uid may open /dev/stdout again, as it could a pipe of its own making. */
static void ends_give(const sb_box *box, int fd)
{
	if (box->chown_uid >= 0 && fchown(fd, (uid_t)box->chown_uid, (gid_t)box->chown_gid) < 0)
		return; /* it then gets EACCES for /dev/stdout, and keeps the descriptor itself */
}

static int pipe_open(const sb_box *box, ends *e, int which)
{
	int fds[2], ours = which == END_IN;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	e->ours[which] = fds[ours];
	e->theirs[which] = fds[!ours];
	if (which != END_EXIT)
		ends_give(box, fds[!ours]);
	return fd_nonblock(fds[ours]);
}

/* A terminal comes from inside. */
static int ends_open(const sb_box *box, uint32_t flags, bool tty, ends *e, sb_error *err)
{
	int i, rc = 0;

	for (i = 0; i < END_COUNT; i++)
		e->ours[i] = e->theirs[i] = -1;
	if (flags & SB_GUEST_INPUT && !tty)
		rc = pipe_open(box, e, END_IN);
	for (i = END_OUT; !rc && !tty && i <= END_ERR; i++)
		rc = pipe_open(box, e, i);
	if (!rc)
		rc = pipe_open(box, e, END_EXIT);
	if (!rc && (flags & SB_GUEST_CONTROL)) {
		int pair[2];

		rc = fd_pair(SOCK_STREAM, pair);
		if (!rc) {
			e->ours[END_CONTROL] = pair[0];
			e->theirs[END_CONTROL] = pair[1];
			rc = fd_nonblock(pair[0]);
		}
	}
	if (!rc)
		return 0;
	ends_close(e->ours);
	ends_close(e->theirs);
	return error_errno(err, SB_ERR_IO, -rc, "spawn", "cannot make the pipes of a process");
}

/* ---- Start --------------------------------------------------------------------------------- */

static void guest_free(sb_guest *g)
{
	fd_close(&g->terminal);
	free(g);
}

/* The descriptors are the caller's. */
static sb_guest *guest_new(sb_box *box, const sb_guest_request *request)
{
	sb_guest *g = calloc(1, sizeof *g);

	if (!g)
		return NULL;
	if (!box->guests && !box->detached) /* it ended those before */
		box->limit = LP_LIMIT_NONE;
	g->box = box;
	g->id = ++box->next_id;
	g->before = box->usage;
	g->terminal = -1;
	g->renewed = request->flags & SB_GUEST_CONTROL && !(request->flags & SB_GUEST_LAST);
	snprintf(g->program, sizeof g->program, "%s", request->argv[0]);
	return g;
}

static uint32_t spawn_flags(const sb_guest_request *request)
{
	uint32_t flags = 0;

	if (request->rows && request->cols)
		flags |= LP_S_TTY;
	if (request->flags & SB_GUEST_CONTROL)
		flags |= LP_S_CONTROL;
	if (request->flags & SB_GUEST_DETACHED)
		flags |= LP_S_DETACHED;
	flags |= request->flags & SB_GUEST_LAST ? LP_S_LAST : LP_S_PIDFD;
	return flags;
}

static void fill_spawn(const sb_guest *g, const sb_guest_request *request, const ends *e, lh_spawn *spawn)
{
	spawn->argv = request->argv;
	spawn->env = request->env;
	spawn->cwd = request->cwd;
	spawn->in = e->theirs[END_IN];
	spawn->out = e->theirs[END_OUT];
	spawn->err = e->theirs[END_ERR];
	spawn->exit_pipe = e->theirs[END_EXIT];
	spawn->id = g->id;
	if (request->flags & SB_GUEST_CONTROL) /* else it may be of the backend's own */
		spawn->control = e->theirs[END_CONTROL];
	spawn->rows = request->rows;
	spawn->cols = request->cols;
	spawn->flags |= spawn_flags(request) | (g->renewed ? LP_S_RENEWED : 0);
}

/* Until the program runs.  What ends the wait otherwise ends the guest, too. */
static int wait_started(sb_guest *g, const sb_call *call, sb_error *err)
{
	sb_box *box = g->box;
	int rc = 0;

	while (!rc && !g->started && !g->refused && !box->failure.code && !box->lost && !box->gone)
		rc = launched_box_hear(box, call, true, err);
	if (g->started)
		return 0;
	if (g->refused || box->failure.code) {
		const sb_error *why = g->refused ? &g->failure : &box->failure;

		if (err)
			*err = *why;
		return why->code;
	}
	return rc ? rc : error_set(err, SB_ERR_CLOSED, "spawn", "the sandbox has ended");
}

/* An answer is about something with an id: here it is no guest. */
static int wait_answer(sb_guest *asked, const sb_call *call, const char *step, sb_error *err)
{
	sb_box *box = asked->box;
	sb_guest **link;
	int rc;

	asked->next = box->guests;
	box->guests = asked;
	rc = wait_started(asked, call, err);
	if (rc == SB_ERR_CLOSED)
		rc = error_set(err, SB_ERR_CONNECTION_LOST, step, "the sandbox has ended");
	for (link = &box->guests; *link != asked;)
		link = &(*link)->next;
	*link = asked->next;
	return rc;
}

int launched_put(sb_box *box, const lh_file *files, size_t count, const sb_call *call, sb_error *err)
{
	sb_guest here = { .box = box, .terminal = -1 };
	int rc;

	if (box->next_id)
		here.id = ++box->next_id;
	rc = lh_put(box->launch, files, count, here.id, err);
	if (rc)
		return launched_send_failed(box, rc, err);
	rc = here.id ? wait_answer(&here, call, "put", err) : 0;
	fd_close(&here.terminal);
	return rc;
}

static int check_open(const sb_box *box, sb_error *err)
{
	return !box->launch || box->lost || box->gone
		       ? error_set(err, SB_ERR_CLOSED, "files", "the sandbox has ended") : 0;
}

static int put_node(sb_box *box, const char *path, const sb_node *node, const sb_call *call, sb_error *err)
{
	sb_guest here = { .box = box, .terminal = -1 };
	const lh_file file = { .path = path, .data = node->data, .len = node->len,
		.mode = node->mode ? node->mode : 0644 };
	int rc = check_open(box, err);

	if (rc)
		return rc;
	here.id = ++box->next_id;
	rc = lh_put_anywhere(box->launch, &file, here.id, err);
	rc = rc ? launched_send_failed(box, rc, err) : wait_answer(&here, call, "files", err);
	fd_close(&here.terminal);
	return rc;
}

int launched_put_tree(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call, sb_error *err)
{
	sb_node node = { .size = sizeof node };
	int rc = sb_call_check(call, err);

	for (size_t i = 0; !rc && i < sb_tree_count(tree); i++) {
		char *whole;

		rc = sb_tree_at(tree, i, &node);
		if (rc || node.what != SB_NODE_FILE) /* directories come with what is in them */
			continue;
		if (asprintf(&whole, "%s%s%s", path + 1, path[1] ? "/" : "", node.path) < 0)
			return error_no_memory(err, "files");
		rc = put_node(box, whole, &node, call, err);
		free(whole);
	}
	return rc;
}

static int ask_path(sb_box *box, uint32_t kind, const char *path, const sb_call *call, int *fd,
		    sb_error *err)
{
	sb_guest here = { .box = box, .terminal = -1 };
	int rc = check_open(box, err);

	if (rc)
		return rc;
	here.id = ++box->next_id;
	rc = lh_path(box->launch, kind, path, here.id, err);
	rc = rc ? launched_send_failed(box, rc, err) : wait_answer(&here, call, "files", err);
	*fd = here.terminal;
	return rc;
}

static int open_path(sb_box *box, const char *path, const sb_call *call, int *fd, sb_error *err)
{
	int rc = ask_path(box, LP_OPEN, path, call, fd, err);

	if (!rc && *fd < 0)
		rc = error_set(err, SB_ERR_CONNECTION_LOST, "files", "nothing came of \"/%s\"", path);
	return rc;
}

int launched_remove(sb_box *box, const char *path, const sb_call *call, sb_error *err)
{
	int FD_AUTO none = -1;
	int rc;

	do /* pid 1 does so much at once that it can do something else in between */
		rc = ask_path(box, LP_REMOVE, path + 1, call, &none, err);
	while (rc == SB_ERR_TIMEOUT && !sb_call_check(call, err));
	return rc;
}

int launched_get(sb_box *box, const char *path, const sb_call *call, sb_tree *tree, sb_error *err)
{
	int FD_AUTO fd = -1;
	struct stat st;
	int rc = open_path(box, path + 1, call, &fd, err);

	if (rc)
		return rc;
	if (fstat(fd, &st) < 0)
		return error_errno(err, SB_ERR_IO, errno, "files", "cannot look at \"%s\"", path);
	if (S_ISDIR(st.st_mode))
		return collect_tree(fd, path, false, call, tree, err);
	if (!S_ISREG(st.st_mode))
		return error_set(err, SB_ERR_INVALID_PATH, "files", "\"%s\" is neither a file nor a folder", path);
	return collect_file(fd, path, path_base(path), call, tree, err);
}

/* The master is in and out; a copy of it stays here, for the size. */
static int give_terminal(sb_guest *g, sb_guest_io *io, sb_error *err)
{
	if (g->terminal < 0)
		return error_set(err, SB_ERR_CONNECTION_LOST, "spawn", "the terminal did not arrive");
	io->out = fcntl(g->terminal, F_DUPFD_CLOEXEC, 3);
	if (io->out < 0)
		return error_errno(err, SB_ERR_IO, errno, "spawn", "cannot keep the terminal open");
	io->in = io->out;
	io->err = -1;
	int rc = fd_nonblock(io->out);

	if (!rc)
		return 0;
	fd_close(&io->out);
	return error_errno(err, SB_ERR_IO, -rc, "spawn", "cannot use the terminal");
}

static int spawn_send(sb_box *box, sb_guest *g, const sb_guest_request *request, lh_spawn *spawn,
		      ends *e, const sb_call *call, sb_guest_io *io, sb_error *err)
{
	bool tty = request->rows && request->cols;
	int rc;

	fill_spawn(g, request, e, spawn);
	rc = lh_spawn_send(box->launch, spawn, err);
	ends_close(e->theirs);
	if (rc) {
		guest_free(g);
		return launched_send_failed(box, rc, err);
	}
	g->next = box->guests;
	box->guests = g;
	io->in = e->ours[END_IN];
	io->out = e->ours[END_OUT];
	io->err = e->ours[END_ERR];
	io->control = e->ours[END_CONTROL];
	io->exited = e->ours[END_EXIT];
	if (tty || !(request->flags & SB_GUEST_LAST))
		rc = wait_started(g, call, err);
	if (!rc && tty)
		rc = give_terminal(g, io, err);
	if (!rc && request->flags & SB_GUEST_DETACHED)
		box->detached = true;
	if (rc)
		launched_release(g);
	return rc;
}

int launched_spawn(sb_box *box, const sb_guest_request *request, lh_spawn *spawn, const sb_call *call,
		   sb_guest **guest, sb_guest_io *io, sb_error *err)
{
	bool tty = request->rows && request->cols;
	sb_guest *g;
	ends e;
	int rc;

	if (!box->launch || box->lost || box->gone)
		return error_set(err, SB_ERR_CLOSED, "spawn", "the sandbox has ended");
	g = guest_new(box, request);
	if (!g)
		return error_no_memory(err, "spawn");
	rc = ends_open(box, request->flags, tty, &e, err);
	if (rc) {
		guest_free(g);
		return rc;
	}
	rc = spawn_send(box, g, request, spawn, &e, call, io, err);
	if (rc) {
		ends_close(e.ours);
		io->in = io->out = io->err = io->control = io->exited = -1;
		return rc;
	}
	*guest = g;
	/* What a run still has to look at (the machine's mounts) would hold up who puts up its walls. */
	if (request->flags & SB_GUEST_LAST)
		lh_await(box->launch, STANDING_MS);
	return 0;
}

/* ---- While it runs ------------------------------------------------------------------------- */

int launched_signal_number(int signal)
{
	static const int numbers[] = { [SB_SIGNAL_INTERRUPT] = SIGINT, [SB_SIGNAL_TERMINATE] = SIGTERM,
		[SB_SIGNAL_KILL] = SIGKILL, [SB_SIGNAL_HANGUP] = SIGHUP, [SB_SIGNAL_QUIT] = SIGQUIT,
		[SB_SIGNAL_USER1] = SIGUSR1, [SB_SIGNAL_USER2] = SIGUSR2, [SB_SIGNAL_STOP] = SIGSTOP,
		[SB_SIGNAL_CONTINUE] = SIGCONT };

	if (signal < SB_SIGNAL_INTERRUPT || signal > SB_SIGNAL_CONTINUE)
		return -1;
	return numbers[signal];
}

/* Pid 1 has sent it when this returns: what the host does next comes after it.  One that does not say so
 * in time holds up nobody. */
static int signal_and_wait(sb_guest *guest, int number, const sb_call *call, sb_error *err)
{
	sb_box *box = guest->box;
	sb_guest here = { .box = box, .terminal = -1, .id = ++box->next_id };
	sb_call own = *call;
	uint64_t soon = clock_deadline_ns(clock_now_ns(), SIGNAL_MS);
	int rc = lh_signal(box->launch, guest->id, number, false, here.id, err);

	if (rc)
		return rc;
	if (soon < own.deadline_ns)
		own.deadline_ns = soon;
	wait_answer(&here, &own, "signal", NULL);
	fd_close(&here.terminal);
	return 0;
}

int launched_signal(sb_guest *guest, int signal, const sb_call *call, sb_error *err)
{
	sb_box *box = guest->box;
	int number = launched_signal_number(signal);
	/* what has left its group belongs to it, too, if there is nobody else it could belong to */
	bool alone = box->guests == guest && !guest->next && !box->detached &&
		     (number == SIGKILL || number == SIGTERM);
	int rc;

	if (number < 0)
		return error_set(err, SB_ERR_INVALID, "signal", "%d is not one of SB_SIGNAL_*", signal);
	launched_box_listen(box);
	if (guest->ended || guest->refused || box->lost || box->gone || !box->launch)
		return 0;
	if (number == SIGINT && guest->renewed && call)
		rc = signal_and_wait(guest, number, call, err);
	else
		rc = lh_signal(box->launch, guest->id, number, alone, 0, err);
	if (rc == SB_ERR_CONNECTION_LOST) {
		launched_box_listen(box);
		return 0; /* it ended meanwhile: reap() tells how */
	}
	return rc;
}

void launched_renew(sb_guest *guest)
{
	sb_box *box = guest->box;

	if (box->launch && !box->lost && !box->gone)
		lh_renew(box->launch, NULL); /* if it is gone, that is told in a moment */
}

int64_t launched_pid(const sb_guest *guest)
{
	return guest->pid;
}

int launched_resize(sb_guest *guest, uint16_t rows, uint16_t cols, const sb_call *call, sb_error *err)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	(void)call;
	if (guest->terminal < 0)
		return error_set(err, SB_ERR_UNSUPPORTED, "resize", "the command has no terminal");
	if (ioctl(guest->terminal, TIOCSWINSZ, &size) < 0)
		return error_errno(err, SB_ERR_IO, errno, "resize", "cannot set the terminal's size");
	return 0;
}

int launched_usage(sb_box *box, sb_guest *guest, sb_usage *usage)
{
	launched_box_listen(box);
	if (guest && guest->ended)
		launched_fill_usage(&guest->end.usage, usage);
	else if (guest)
		launched_used(guest, usage);
	else if (box->usage_known)
		launched_fill_usage(&box->usage, usage);
	if (box->fs_known) {
		usage->fs_bytes = box->fs_bytes;
		usage->fs_nodes = box->fs_nodes;
	}
	return box->lost || box->gone ? SB_ERR_CONNECTION_LOST : 0;
}

/* ---- The end ------------------------------------------------------------------------------- */

/* pid 1 is dead without an EXITED: what the supervisor still says (LIMIT, GONE) comes at once. */
static void hear_the_end(sb_box *box)
{
	uint64_t deadline = clock_deadline_ns(clock_now_ns(), END_WAIT_MS);
	struct pollfd socket = { .events = POLLIN };

	while (!box->lost && !box->gone && clock_now_ns() < deadline) {
		socket.fd = lh_socket(box->launch);
		poll(&socket, 1, clock_poll_ms(clock_now_ns(), deadline));
		launched_box_listen(box);
	}
}

static int reap_unended(sb_guest *guest, sb_guest_exit *end, sb_error *err)
{
	sb_box *box = guest->box;
	const lp_exited unknown = { .signo = SIGKILL, .code = -1, .limit = box->limit,
		.usage = { .scratch_free_bytes = SB_UNLIMITED, .scratch_free_nodes = SB_UNLIMITED } };

	if (box->limit) {
		launched_ending(&unknown, box->limit, &box->limits, end);
		return 0;
	}
	if (!guest->started && box->failure.code) {
		if (err)
			*err = box->failure;
		return box->failure.code;
	}
	if (end->usage && box->usage_known)
		launched_fill_usage(&box->usage, end->usage);
	end->outcome = SB_OUTCOME_LOST;
	end->error = SB_ERR_CONNECTION_LOST;
	end->code = -1;
	end->signal_number = 0;
	end->output_incomplete = 1;
	return 0;
}

/* The counts are of all that ever ran in the box. */
static void subtract(lp_usage *usage, const lp_usage *before)
{
	usage->user_us -= before->user_us < usage->user_us ? before->user_us : usage->user_us;
	usage->system_us -= before->system_us < usage->system_us ? before->system_us : usage->system_us;
	usage->memory_refused -= before->memory_refused;
	usage->oom_kills -= before->oom_kills;
	usage->pids_refused -= before->pids_refused;
}

int launched_reap(sb_guest *guest, sb_guest_exit *end, sb_error *err)
{
	sb_box *box = guest->box;

	launched_box_listen(box);
	if (!guest->ended && !guest->refused && !box->failure.code)
		hear_the_end(box);
	if (guest->refused) {
		if (err)
			*err = guest->failure;
		return guest->failure.code;
	}
	if (!guest->ended)
		return reap_unended(guest, end, err);
	subtract(&guest->end.usage, &guest->before);
	guest->before = (lp_usage){ 0 };
	sb_limits limits = box->limits;

	if (guest->renewed) /* what it has used over its life is no sign of a limit */
		limits.cpu_ms = SB_UNLIMITED;
	launched_ending(&guest->end, box->limit, &limits, end);
	return 0;
}

void launched_release(sb_guest *guest)
{
	sb_box *box;
	sb_guest **at;

	if (!guest)
		return;
	box = guest->box;
	launched_signal(guest, SB_SIGNAL_KILL, NULL, NULL);
	for (at = &box->guests; *at; at = &(*at)->next)
		if (*at == guest) {
			*at = guest->next;
			break;
		}
	guest_free(guest);
}
