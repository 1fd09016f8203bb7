/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

fake_record fake_seen;
fake_branching fake_branches;
_Atomic int fake_down, fake_go;

struct sb_state {
	int tried;
};

struct sb_box {
	const fake_script *script;
	atomic_int guests, called;    /* a call is on its way: one at a time */
	int session, torn_down;
	const char *files[16];
	size_t file_count;
};

struct sb_guest {
	sb_box *box;
	pthread_t thread;
	int in, out, err, exited, stop; /* stop: eventfd, a signal has come */
	int control;
	char nonce[33];
	_Atomic int term, kill, ended, interrupted;
	const fake_step *steps;
	const fake_step *_Atomic at;  /* where it is */
	_Atomic int rests;            /* it waits for a frame, of which nothing has come */
	int twin;
	int ignore_term, on_term, hold, reaped;
	sb_guest_exit end;
};

static const fake_step nothing[] = { { FAKE_END, 0, NULL, 0 } };
static const fake_script plain = { .size = sizeof plain, .backend = "fake", .steps = nothing };

void fake_reset(void)
{
	memset(&fake_seen, 0, sizeof fake_seen);
	fake_branches = (fake_branching){ 0 };
	fake_down = fake_go = 0;
}

static void broken(void)
{
	fake_seen.broken++;
}

static int say(sb_error *err, int code, const char *where)
{
	if (err) {
		memset(err, 0, sizeof *err);
		err->code = code;
		err->kind = sb_error_kind(code);
		snprintf(err->where, sizeof err->where, "%s", where);
		snprintf(err->message, sizeof err->message, "the script says so");
	}
	return code;
}

static const fake_script *script_of(const sb_box_request *request)
{
	return request->options ? request->options : &plain;
}

static int fault(const fake_script *script, int at, sb_error *err)
{
	static const char *const names[] = { "", "probe", "plan", "create", "put", "spawn", "reap",
					     "collect" };

	fake_seen.called[at]++;
	return script->fail_at == at ? say(err, script->fail_code, names[at]) : 0;
}

/* ---- the machine --------------------------------------------------------------------------- */

static int fake_probe(const sb_backend *self, const sb_call *call, sb_report *report,
		      sb_state **state, sb_error *err)
{
	const sb_check check = { .size = sizeof check, .backend = self->name, .what = "script",
				 .found = "here", .remedy = "", .ok = 1 };

	fake_seen.called[FAKE_AT_PROBE]++;
	if (call->size != sizeof *call)
		broken();
	if (report) {
		fake_seen.probes_tried++;
		sb_report_add(report, &check, NULL);
	}
	if (fake_down)
		return say(err, SB_ERR_BACKEND_UNAVAILABLE, "probe");
	*state = calloc(1, sizeof **state);
	if (!*state)
		return say(err, SB_ERR_NO_MEMORY, "probe");
	(*state)->tried = report != NULL;
	fake_seen.states++;
	return 0;
}

static int fake_supports(const sb_backend *self, const sb_pack *pack)
{
	(void)pack;
	return !strcmp(self->name, "fake");
}

static int fake_plan(sb_state *state, const sb_box_request *request, sb_plan *plan, sb_error *err)
{
	const fake_script *script = script_of(request);
	int code = fault(script, FAKE_AT_PLAN, err);

	(void)state;
	if (request->network->mode == SB_NET_DEFAULT || !request->limits->memory_bytes ||
	    !request->spec || (request->door != SB_DOOR_RUN && request->door != SB_DOOR_SESSION))
		broken(); /* not resolved */
	for (uint32_t wall = 0; code == 0 && wall < SB_WALL_TIME; wall++) {
		const sb_plan_line line = { .size = sizeof line, .mechanism = "script",
					    .caveat = "", .subject = "", .test = "", .wall = wall,
					    .level = script->levels ? script->levels[wall]
								    : SB_LEVEL_HARD };

		code = sb_plan_add(plan, &line, err);
	}
	return code;
}

/* ---- a guest ---------------------------------------------------------------------------------- */

/* Ready, or a signal is here that it minds. */
static int minds(const sb_guest *g)
{
	return g->kill || (g->term && !g->ignore_term);
}

static int wait_for(sb_guest *g, int fd, short events, int ms)
{
	struct pollfd fds[2] = { { .fd = fd, .events = events }, { .fd = g->stop, .events = POLLIN } };

	while (!minds(g)) {
		if (g->term && g->ignore_term) /* heard already */
			fds[1].fd = -1;
		int n = poll(fds, 2, ms < 0 || ms > 20 ? 20 : ms);

		if (n > 0 && fds[0].revents)
			return 1;
		if (ms >= 0 && (ms -= 20) <= 0)
			return 0;
	}
	return 0;
}

static void write_all(sb_guest *g, int fd, const char *data, size_t len)
{
	while (len && !minds(g) && fd >= 0) {
		ssize_t n = write(fd, data, len);

		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			wait_for(g, fd, POLLOUT, -1);
		} else if (n < 0 && errno != EINTR) {
			return;
		}
	}
}

static void input(sb_guest *g, int echo, int64_t most)
{
	char piece[65536];

	while (g->in >= 0 && !minds(g) && most != 0) {
		size_t want = most > 0 && most < (int64_t)sizeof piece ? (size_t)most : sizeof piece;
		ssize_t n;

		if (!wait_for(g, g->in, POLLIN, -1))
			continue;
		n = read(g->in, piece, want);
		if (n == 0)
			return;
		if (n > 0 && echo)
			write_all(g, g->out, piece, (size_t)n);
		if (n > 0 && most > 0)
			most -= n;
	}
}

static void finish(sb_guest *g, int outcome, int code, int signal, int error)
{
	g->end.outcome = outcome;
	g->end.code = code;
	g->end.signal_number = signal;
	g->end.error = error;
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void read_exactly(sb_guest *g, char *into, size_t len)
{
	char piece[4096];

	while (len && g->control >= 0 && !minds(g)) {
		ssize_t n;

		if (!wait_for(g, g->control, POLLIN, -1))
			continue;
		n = read(g->control, into ? into : piece, into || len < sizeof piece ? len : sizeof piece);
		if (n <= 0)
			return;
		into = into ? into + n : NULL;
		len -= (size_t)n;
	}
}

static void hear(sb_guest *g)
{
	char head[45] = "";

	g->rests = 1;
	while (g->control >= 0 && !minds(g) && !wait_for(g, g->control, POLLIN, -1))
		;
	g->rests = 0;
	read_exactly(g, head, 44);
	memcpy(g->nonce, head + 2, 32);
	read_exactly(g, NULL, strtoul(head + 35, NULL, 16));
}

/* In one piece: what lies behind the end of an evaluation is there when its end is read. */
static void tell(sb_guest *g, const char *text)
{
	char all[512];
	size_t len = 0;

	for (; *text && len + 32 < sizeof all; text++)
		if (*text == '@') {
			memcpy(all + len, g->nonce, 32);
			len += 32;
		} else {
			all[len++] = *text;
		}
	write_all(g, g->control, all, len);
}

/* 1 = it has ended. */
static int one_step(sb_guest *g, const fake_step *s)
{
	switch (s->what) {
	case FAKE_END:
		finish(g, SB_OUTCOME_EXITED, (int)s->number, 0, 0);
		return 1;
	case FAKE_OUT:
	case FAKE_ERR:
		for (int64_t i = 0; i < (s->number ? s->number : 1) && !minds(g); i++)
			write_all(g, s->what == FAKE_OUT ? g->out : g->err, s->text,
				  s->len ? s->len : strlen(s->text));
		return 0;
	case FAKE_SLEEP:
		wait_for(g, -1, 0, (int)s->number);
		return 0;
	case FAKE_ECHO:
	case FAKE_READ:
		input(g, s->what == FAKE_ECHO, s->what == FAKE_READ ? s->number : -1);
		return 0;
	case FAKE_CLOSE_INPUT:
		drop(&g->in);
		return 0;
	case FAKE_SIGNALED:
		finish(g, SB_OUTCOME_SIGNALED, -1, (int)s->number, 0);
		return 1;
	case FAKE_LIMIT:
		finish(g, SB_OUTCOME_BUDGET_EXCEEDED, -1, 0, (int)s->number);
		return 1;
	case FAKE_VIOLATION:
		finish(g, SB_OUTCOME_VIOLATION, -1, 0, 0);
		return 1;
	case FAKE_UNENFORCEABLE:
		finish(g, SB_OUTCOME_UNENFORCEABLE, -1, 0, SB_ERR_UNENFORCEABLE);
		return 1;
	case FAKE_LOSE:
		finish(g, SB_OUTCOME_LOST, -1, 0, SB_ERR_CONNECTION_LOST);
		g->end.output_incomplete = 1;
		return 1;
	case FAKE_ON_TERM:
		g->on_term = 1;
		return 0;
	case FAKE_IGNORE_TERM:
		g->ignore_term = 1;
		return 0;
	case FAKE_HOLD:
		g->hold = 1;
		return 0;
	case FAKE_OUT_FILE:
		if (g->box->file_count < 16)
			g->box->files[g->box->file_count++] = s->text;
		return 0;
	case FAKE_INTERRUPT:
		while (!g->interrupted && !minds(g))
			wait_for(g, -1, 0, 20);
		return 0;
	case FAKE_HEAR:
		hear(g);
		return 0;
	case FAKE_TELL:
		tell(g, s->text);
		return 0;
	case FAKE_GO:
		while (!fake_go && !minds(g))
			wait_for(g, -1, 0, 20);
		return 0;
	case FAKE_HANG_UP:
		drop(&g->control);
		return 0;
	default:
		return 0;
	}
}

static void *guest_main(void *arg)
{
	sb_guest *g = arg;
	const fake_step *s = g->steps;
	uint64_t one = 1;
	sigset_t pipe_only;

	sigemptyset(&pipe_only); /* its own writes to a closed pipe are not the host's business */
	sigaddset(&pipe_only, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_only, NULL);
	if (g->twin) {
		hear(g);
		tell(g, "H @ 00000009\n1 ask nul");
	}
	for (;;) {
		g->at = s;
		if (one_step(g, s))
			break;
		if (s->what == FAKE_BACK && !minds(g)) {
			s -= s->number;
			continue;
		}
		if (minds(g) && g->on_term && !g->kill) {
			g->on_term = 0;
			g->ignore_term = 1;
			while (s->what != FAKE_TERM && s->what != FAKE_END)
				s++;
			if (s->what == FAKE_END)
				continue;
		} else if (minds(g)) {
			finish(g, SB_OUTCOME_SIGNALED, -1, g->kill ? SIGKILL : SIGTERM, 0);
			break;
		}
		s++;
	}
	drop(&g->control);
	if (!g->hold) {
		drop(&g->out);
		drop(&g->err);
	}
	drop(&g->in);
	g->ended = 1;
	if (write(g->exited, &one, sizeof one) < 0)
		abort();
	return NULL;
}

/* ---- a box ---------------------------------------------------------------------------------------- */

/* As long as the call may last. */
static int linger(const sb_call *call, sb_error *err)
{
	int never[2];

	if (pipe2(never, O_CLOEXEC) < 0)
		abort();
	int code = sb_call_wait(call, never[0], POLLIN, err);

	close(never[0]);
	close(never[1]);
	return code;
}

static int fake_create(sb_state *state, const sb_box_request *request, const sb_plan *plan,
		       const sb_call *call, sb_box **box, sb_error *err)
{
	const fake_script *script = script_of(request);
	int code = fault(script, FAKE_AT_CREATE, err);

	(void)state;
	if (!plan)
		broken();
	if (code == 0 && script->slow_at == FAKE_AT_CREATE)
		code = linger(call, err);
	if (code < 0)
		return code;
	*box = calloc(1, sizeof **box);
	if (!*box)
		return say(err, SB_ERR_NO_MEMORY, "create");
	(*box)->script = script;
	(*box)->session = request->door == SB_DOOR_SESSION;
	if (script->seen)
		script->seen(request, NULL);
	fake_seen.boxes++;
	return 0;
}

static int fake_put(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call,
		    sb_error *err)
{
	(void)call;
	if (box->guests || strcmp(path, "/in") * strcmp(path, "/run/code") != 0 || !sb_tree_count(tree))
		broken();
	return fault(box->script, FAKE_AT_PUT, err);
}

static void pipes(sb_guest *g, sb_guest_io *io, uint32_t flags)
{
	int in[2] = { -1, -1 }, out[2], err[2];

	if ((flags & SB_GUEST_INPUT && pipe2(in, O_CLOEXEC | O_NONBLOCK) < 0) ||
	    pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0)
		abort();
	g->control = -1;
	if (flags & SB_GUEST_CONTROL) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
			abort();
		g->control = pair[0];
		io->control = pair[1];
	}
	g->in = in[0];
	g->out = out[1];
	g->err = err[1];
	g->exited = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	io->in = in[1];
	io->out = out[0];
	io->err = err[0];
	io->exited = fcntl(g->exited, F_DUPFD_CLOEXEC, 0);
}

const char *fake_argv(const fake_step *steps, char text[32])
{
	snprintf(text, 32, "%p", (const void *)steps);
	return text;
}

/* Of the box, or the process's own. */
static const fake_step *steps_of(const sb_box *box, const sb_guest_request *request)
{
	const char *const *argv = request->argv;

	if (argv[1] && argv[2] && !strcmp(argv[1], FAKE_WORD))
		return (const fake_step *)(uintptr_t)strtoull(argv[2], NULL, 16);
	return box->script->steps ? box->script->steps : nothing;
}

static int fake_spawn(sb_box *box, const sb_guest_request *request, const sb_call *call,
		      sb_guest **guest, sb_guest_io *io, sb_error *err)
{
	int code = fault(box->script, FAKE_AT_SPAWN, err);

	(void)call;
	if (!request->argv || !request->argv[0] || !request->env || !request->cwd)
		broken();
	if (code < 0)
		return code;
	sb_guest *g = calloc(1, sizeof *g);

	if (!g)
		return say(err, SB_ERR_NO_MEMORY, "spawn");
	g->box = box;
	g->steps = steps_of(box, request);
	pipes(g, io, request->flags);
	if (box->script->seen)
		box->script->seen(NULL, request);
	box->guests++;
	fake_seen.guests++;
	if (pthread_create(&g->thread, NULL, guest_main, g) != 0)
		abort();
	*guest = g;
	return 0;
}

/* Where the guest rests, a twin goes on, with what is in the box. */
static int fork_at_rest(sb_box *box, sb_guest *g, const sb_call *call, sb_box **branch, sb_guest **twin,
			sb_guest_io *io, sb_error *err)
{
	while (!g->rests && !g->ended) {
		int code = sb_call_check(call, err);

		if (code < 0)
			return code;
		poll(NULL, 0, 1);
	}
	if (g->ended) {
		poll(&(struct pollfd){ .fd = g->exited, .events = POLLIN }, 1, -1); /* and it can be seen */
		return say(err, SB_ERR_SESSION_CLOSED, "fork");
	}
	sb_box *made = calloc(1, sizeof *made);
	sb_guest *t = calloc(1, sizeof *t);

	if (!made || !t) {
		free(made);
		free(t);
		return say(err, SB_ERR_NO_MEMORY, "fork");
	}
	made->script = box->script;
	made->session = 1;
	memcpy(made->files, box->files, sizeof box->files);
	made->file_count = box->file_count;
	t->box = made;
	t->steps = fake_branches.steps ? fake_branches.steps : g->at;
	t->twin = !fake_branches.steps;
	pipes(t, io, SB_GUEST_CONTROL);
	made->guests++;
	fake_seen.boxes++;
	fake_seen.guests++;
	if (pthread_create(&t->thread, NULL, guest_main, t) != 0)
		abort();
	*branch = made;
	*twin = t;
	return 0;
}

static int fake_fork(sb_box *box, sb_guest *g, const sb_box_request *request, const sb_call *call,
		     sb_box **branch, sb_guest **twin, sb_guest_io *io, sb_error *err)
{
	int code = fake_branches.fail_code ? say(err, fake_branches.fail_code, "fork") : 0;

	if (box->called++ || g->box != box || g->reaped || script_of(request) != box->script ||
	    request->door != SB_DOOR_SESSION || !request->pack || io->control != -1)
		broken();
	fake_seen.forking++;
	if (code == 0 && fake_branches.slow)
		code = linger(call, err);
	if (code >= 0)
		code = fork_at_rest(box, g, call, branch, twin, io, err);
	fake_seen.forking--;
	box->called--;
	return code;
}

static int fake_signal(sb_guest *g, int signal, const sb_call *call, sb_error *err)
{
	uint64_t one = 1;

	(void)call;
	(void)err;
	if (g->reaped)
		broken();
	if (signal == SB_SIGNAL_KILL) {
		fake_seen.killed++;
		g->kill = 1;
	} else if (signal == SB_SIGNAL_INTERRUPT) {
		g->interrupted = 1; /* looked at from time to time: it must not shorten what waits */
		return 0;
	} else if (signal == SB_SIGNAL_TERMINATE) {
		fake_seen.terminated++;
		g->term = 1;
	}
	return write(g->stop, &one, sizeof one) < 0 ? SB_ERR_IO : 0;
}

static int fake_reap(sb_guest *g, sb_guest_exit *end, sb_error *err)
{
	sb_usage *usage = end->usage;

	if (!g->ended || g->reaped)
		broken();
	g->reaped = 1;
	int code = fault(g->box->script, FAKE_AT_REAP, err);

	*end = g->end;
	end->usage = usage;
	end->killed = g->box->script->outlived;
	if (usage)
		usage->user_us = 1000;
	return code;
}

static void fake_release(sb_guest *g)
{
	uint64_t one = 1;

	g->kill = 1;
	if (write(g->stop, &one, sizeof one) < 0)
		abort();
	pthread_join(g->thread, NULL);
	drop(&g->in);
	drop(&g->out);
	drop(&g->err);
	drop(&g->control);
	drop(&g->exited);
	drop(&g->stop);
	g->box->guests--;
	fake_seen.guests--;
	free(g);
}

static int fake_collect(sb_box *box, const sb_call *call, sb_tree *tree, sb_error *err)
{
	int code = fault(box->script, FAKE_AT_COLLECT, err);

	(void)call;
	if (box->guests)
		broken(); /* something may still run */
	for (size_t i = 0; code >= 0 && i < box->file_count; i++)
		code = sb_tree_write(tree, box->files[i], box->files[i], strlen(box->files[i]), err);
	return code;
}

static int fake_get(sb_box *box, const char *path, const sb_call *call, sb_tree *tree, sb_error *err)
{
	int code = fault(box->script, FAKE_AT_COLLECT, err);

	(void)call;
	if (strcmp(path, "/out") || box->called++)
		broken();
	box->called--;
	for (size_t i = 0; code >= 0 && i < box->file_count; i++)
		code = sb_tree_write(tree, box->files[i], box->files[i], strlen(box->files[i]), err);
	return code;
}

static int fake_remove(sb_box *box, const char *path, const sb_call *call, sb_error *err)
{
	(void)call;
	(void)err;
	if (strcmp(path, "/out"))
		broken();
	box->file_count = 0;
	return 0;
}

static void fake_teardown(sb_box *box, sb_teardown *report)
{
	if (box->guests || box->torn_down)
		broken();
	box->torn_down = 1;
	report->left = box->script->left;
}

static void fake_destroy(sb_box *box)
{
	if (box->guests || !box->torn_down)
		broken();
	fake_seen.boxes--;
	free(box);
}

static void fake_forget(sb_state *state)
{
	fake_seen.states--;
	free(state);
}

static int fake_sweep(sb_state *state, const sb_call *call, uint64_t *removed, sb_error *err)
{
	(void)state;
	(void)call;
	(void)err;
	*removed = 2;
	return 0;
}

static const char *const aliases[] = { "sham", NULL };
const sb_backend fake_backend = {
	.size = sizeof fake_backend, .abi = SB_BACKEND_ABI, .name = "fake", .aliases = aliases,
	.summary = "does what a script says", .caps = SB_CAP_FILES | SB_CAP_SIGNAL | SB_CAP_SESSIONS | SB_CAP_FORK,
	.probe = fake_probe, .supports = fake_supports, .plan = fake_plan, .create = fake_create,
	.put = fake_put, .spawn = fake_spawn, .signal = fake_signal, .reap = fake_reap,
	.release = fake_release, .collect = fake_collect, .get = fake_get, .remove = fake_remove,
	.destroy = fake_destroy, .fork = fake_fork, .sweep = fake_sweep, .forget = fake_forget, .teardown = fake_teardown,
};
const sb_backend fake_other_backend = {
	.size = sizeof fake_backend, .abi = SB_BACKEND_ABI, .name = "other",
	.summary = "runs no language", .caps = SB_CAP_SIGNAL,
	.probe = fake_probe, .supports = fake_supports, .plan = fake_plan, .create = fake_create,
	.spawn = fake_spawn, .signal = fake_signal, .reap = fake_reap, .release = fake_release,
	.destroy = fake_destroy, .forget = fake_forget, .teardown = fake_teardown,
};
