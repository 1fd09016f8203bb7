/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - one more process in an open session.
 *
 * What the walls are was fixed when the session was opened; a command brings its argv, directory,
 * variables and input, and passes the same gates as a run.  The backend is asked under the session's
 * turn, and answers once the program runs or is known not to.
 */
#include "../backend/interp.h"
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

extern char **environ;

enum { SPAWN_MS = 60000, ROWS = 24, COLS = 80 };

typedef struct spawning {
	sb_session *s;
	effective e;                  /* the session's, with this command */
	const spawn_extra *extra;
	sb_process *p;
	char **env;
	char *program;
	sb_guest_request request;
	sb_guest_io io;
} spawning;

/* ---- before anything starts -------------------------------------------------------------------- */

static int check_command(const sb_session *s, const sb_command *c, sb_error *err)
{
	uint64_t caps = session_table(s)->caps;

	if (c->language)
		return error_set(err, SB_ERR_UNSUPPORTED, "command",
				 "a session starts programs, not code of a language; give an argv");
	if (!c->argv || !c->argv[0])
		return error_set(err, SB_ERR_INVALID, "command", "there is no program to run");
	if (c->flags & SB_COMMAND_PARTIAL)
		return error_set(err, SB_ERR_INVALID, "command", "partial code is for evaluations");
	if ((c->files && c->files[0]) || c->tree)
		return error_set(err, SB_ERR_INVALID_SPEC, "command",
				 "files for /in belong to code; a command sees what its session shows");
	if (c->on_output)
		return error_set(err, SB_ERR_UNSUPPORTED, "command",
				 "the output of a session's process is read, or watched; leave on_output "
				 "out");
	if (c->flags & SB_COMMAND_TTY && !(caps & SB_CAP_TTY))
		return error_set(err, SB_ERR_UNSUPPORTED, "command",
				 "the backend \"%s\" has no terminals; run without one",
				 session_table(s)->name);
	if (c->input_kind == SB_INPUT_FD && fcntl(c->input_fd, F_GETFD) < 0)
		return error_set(err, SB_ERR_INVALID, "input",
				 "input_fd %d is not an open descriptor", c->input_fd);
	return 0;
}

static int read_command(spawning *w, const sb_command *command, sb_error *err)
{
	effective *e = &w->e;
	const effective *open = &w->s->e;
	int code = record_read(&e->command, sizeof e->command, command, "sb_command", err);

	if (code >= 0 && (!e->command.argv || !e->command.argv[0]) && !e->command.language)
		return error_set(err, SB_ERR_INVALID, "command", "there is no program to run");
	if (code >= 0)
		code = spec_check_command(&e->command, err);
	if (code >= 0)
		code = check_command(w->s, &e->command, err);
	if (code < 0)
		return code;
	e->has_command = true;
	e->spec = open->spec;
	e->caller_limits = open->limits;
	e->env = open->env;
	e->network = open->network;
	e->session = open->id;
	e->interactive = e->command.flags & SB_COMMAND_TTY ? 1 : 0;
	if (e->command.id && *e->command.id)
		snprintf(e->id, sizeof e->id, "%s", e->command.id);
	else
		code = random_id("proc_", e->id, sizeof e->id, err);
	return code;
}

/* The session's environment is fixed; the command's own goes over it. */
static int spawn_env(spawning *w, sb_error *err)
{
	const sb_env all = { .size = sizeof all, .base = SB_ENV_INHERIT };

	return env_build(&all, NULL, (const char *const *)w->s->e.env_list, w->e.command.env, &w->env,
			 err);
}

static const char *path_of(char *const *env)
{
	for (; *env; env++)
		if (!strncmp(*env, "PATH=", 5))
			return *env + 5;
	return NULL;
}

static int spawn_program(spawning *w, sb_error *err)
{
	const effective *open = &w->s->e;
	const char *const name[] = { w->e.command.argv[0], NULL };
	const interp_query query = {
		.names = name,
		.host_env = (const char *const *)environ,
		.guest_path = path_of(w->env),
		.home = open->place.home,
		.workspace = open->place.workspace,
		.cwd = w->e.cwd,
		.rules = open->place.rules,
		.everything = strcmp(session_table(w->s)->name, "linux") != 0,
		.cancel_fd = -1,
		.kept = w->s->sandbox->shims,
	};
	interp_found found = { 0 };
	int code = interp_find(&query, &found, err);

	if (code >= 0 && found.show)
		code = error_set(err, SB_ERR_NOT_FOUND, "command",
				 "the program \"%.100s\" lies in \"%.100s\", which this session does not "
				 "show; open it with a file rule for that",
				 name[0], found.show);
	if (code >= 0) {
		w->program = found.program;
		found.program = NULL;
	}
	interp_release(&found);
	return code;
}

static int spawn_argv(spawning *w, sb_error *err)
{
	strv argv = { 0 };
	int code = strv_add(&argv, w->program ? w->program : w->e.command.argv[0]);

	if (code >= 0)
		code = strv_add_all(&argv, w->e.command.argv + 1);
	w->p->argv = code < 0 ? NULL : strv_take(&argv);
	strv_release(&argv);
	return w->p->argv ? 0 : error_no_memory(err, "command");
}

static uint32_t guest_flags(const spawning *w)
{
	const sb_command *c = &w->e.command;
	bool empty = c->input_kind == SB_INPUT_NONE ||
		     (c->input_kind == SB_INPUT_BYTES && !c->input_len);

	return (empty && !w->p->tty ? 0 : SB_GUEST_INPUT) |
	       (c->flags & SB_COMMAND_DETACHED ? SB_GUEST_DETACHED : 0) |
	       (w->extra ? w->extra->flags : 0);
}

/* Half of it holds the process up, the other takes what is under way: too little, and the oldest would give way. */
static int enough_to_hold(const spawning *w, sb_error *err)
{
	char size[32];

	if (!w->p->hold || w->s->e.limits.log_bytes >= HOLD_LEAST)
		return 0;
	return error_set(err, SB_ERR_INVALID_LIMITS, "log",
			 "a log of %s cannot hold up a process (SB_COMMAND_HOLD) without losing output; "
			 "give log_bytes at least 512 KiB",
			 size_text(w->s->e.limits.log_bytes, size));
}

static int resolve(spawning *w, sb_error *err)
{
	const effective *open = &w->s->e;
	const sb_command *c = &w->e.command;
	sb_process *p = w->p;
	int code = place_cwd((place *)&open->place, &w->e.mem, c->cwd, open->pack != NULL, &w->e.cwd,
			     err);

	if (code >= 0)
		code = enough_to_hold(w, err);
	if (code >= 0)
		code = spawn_env(w, err);
	if (code >= 0)
		code = spawn_program(w, err);
	if (code >= 0)
		code = spawn_argv(w, err);
	if (code < 0)
		return code;
	w->request = (sb_guest_request){
		.size = sizeof w->request, .id = p->id, .argv = (const char *const *)p->argv,
		.env = (const char *const *)w->env, .cwd = w->e.cwd, .limits = &open->limits,
		.rows = p->tty ? (c->rows ? c->rows : ROWS) : 0,
		.cols = p->tty ? (c->cols ? c->cols : COLS) : 0, .flags = guest_flags(w),
	};
	return 0;
}

/* ---- start ------------------------------------------------------------------------------------------ */

static int session_gone(const sb_session *s, sb_error *err)
{
	if (s->closing || s->closed)
		return error_set(err, SB_ERR_SESSION_CLOSED, "session",
				 "the session \"%.80s\" is closed", s->e.id);
	if (s->killed)
		return error_set(err, SB_ERR_SESSION_KILLED, "session",
				 "the walls of the session \"%.80s\" are gone; open another", s->e.id);
	return 0;
}

/* Under the session's turn. */
static int ask_backend(spawning *w, const sb_call *call, sb_error *err)
{
	sb_session *s = w->s;
	int code = turn_take(s, call, err);

	if (code < 0)
		return code;
	code = session_gone(s, err);
	if (code >= 0) {
		pthread_mutex_unlock(&s->lock);
		w->p->start_ns = clock_now_ns();
		w->p->started_unix_ns = clock_unix_ns();
		code = session_table(s)->spawn(s->box, &w->request, call, &w->p->guest, &w->io, err);
		pthread_mutex_lock(&s->lock);
		if (sb_error_kind(code) == SB_KIND_CLOSED || code == SB_ERR_CONNECTION_LOST)
			s->killed = true;
	}
	turn_give(s);
	return code;
}

static void take_descriptors(spawning *w)
{
	sb_process *p = w->p;

	p->fd[IO_OUT] = w->io.out;
	p->fd[IO_ERR] = w->io.err;
	p->fd[IO_IN] = w->io.in;
	p->fd[IO_EXITED] = w->io.exited;
	p->control = w->io.control;
}

/* The call may end before the process does: what it lent is copied. */
static int take_input(spawning *w, sb_error *err)
{
	sb_command *c = &w->e.command;
	sb_process *p = w->p;

	if (c->input_kind == SB_INPUT_DEFAULT || c->input_kind == SB_INPUT_OPEN)
		return 0;
	p->fed = true;
	p->feed.keep = p->tty;
	if (c->input_kind == SB_INPUT_FD) {
		c->input_fd = p->fd[IO_SOURCE] = fcntl(c->input_fd, F_DUPFD_CLOEXEC, 3);
		if (c->input_fd < 0)
			return error_errno(err, SB_ERR_IO, errno, "input",
					   "cannot keep the input's descriptor");
	}
	if (c->input_kind == SB_INPUT_BYTES && c->input_len) {
		p->input = malloc(c->input_len);
		if (!p->input)
			return error_no_memory(err, "input");
		memcpy(p->input, c->input, c->input_len);
		c->input = p->input;
	}
	int code = feed_begin(&p->feed, c, &p->fd[IO_IN]);

	p->feed.keep = true; /* from here on it is watched: io_drop() closes it */
	return code < 0 ? error_no_memory(err, "input") : 0;
}

static uint64_t wall_end(const sb_process *p, const sb_limits *l)
{
	return clock_deadline_ns(p->start_ns, l->wall_ms);
}

/* It runs.  From here on it is the I/O thread's; whatever goes wrong ends it. */
static int go_live(spawning *w, sb_error *err)
{
	sb_session *s = w->s;
	sb_process *p = w->p;
	int code;

	take_descriptors(w);
	p->pid = session_table(s)->pid ? session_table(s)->pid(p->guest) : 0;
	p->deadline_ns = wall_end(p, &s->e.limits);
	code = take_input(w, err);
	if (code >= 0)
		code = io_adopt(p, err);
	if (code < 0)
		return code;
	process_ref(p); /* the list's */
	p->next = s->processes;
	s->processes = p;
	s->running++;
	if (s->closing)
		process_end(p, LIFE_TERMINATED, 0);
	io_post(p);
	return 0;
}

/* A guest that nobody will serve. */
static void abandon(spawning *w)
{
	sb_process *p = w->p;

	if (p->tty) /* one descriptor */
		p->fd[IO_IN] = -1;
	for (int which = 0; which < IO_COUNT; which++)
		io_drop(p, which);
	fd_close(&p->control);
	if (p->guest) {
		sb_guest_exit end = { .size = sizeof end, .usage = &p->usage };
		const sb_call call = { .size = sizeof call, .cancel_fd = -1,
				       .deadline_ns = clock_deadline_ns(clock_now_ns(), SPAWN_MS) };

		session_table(w->s)->signal(p->guest, SB_SIGNAL_KILL, &call, NULL);
		session_table(w->s)->reap(p->guest, &end, NULL);
		session_table(w->s)->release(p->guest);
	}
	p->guest = NULL;
}

static int start(spawning *w, const sb_call *call, sb_error *err)
{
	sb_session *s = w->s;
	int code;

	pthread_mutex_lock(&s->lock);
	code = session_gone(s, err);
	if (code >= 0) {
		s->starting++;
		code = ask_backend(w, call, err);
		if (code >= 0)
			code = go_live(w, err);
		s->starting--;
		s->used_ns = clock_now_ns();
		topic_wake(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	if (code < 0)
		abandon(w);
	return code;
}

/* ---- the door ------------------------------------------------------------------------------------------ */

static void note(const spawning *w, uint32_t what, uint32_t action, int code, const char *text)
{
	const sb_command *c = &w->e.command;
	const audit_note n = { .what = what, .action = action, .wall = SB_WALL_COUNT, .code = code,
			       .session = w->s->e.id, .process = w->e.id,
			       .subject = c->argv ? c->argv[0] : "", .text = text };

	audit_write(w->s->sandbox, &n, NULL);
}

static int request_note(const spawning *w, sb_error *err)
{
	const audit_note n = { .what = SB_AUDIT_REQUEST, .action = SB_ALLOW, .wall = SB_WALL_COUNT,
			       .session = w->s->e.id, .process = w->e.id,
			       .subject = w->e.command.argv[0] };

	return audit_write(w->s->sandbox, &n, err);
}

static int prepare(spawning *w, const sb_command *command, const sb_call *call, sb_error *err)
{
	int code = read_command(w, command, err);

	if (code < 0)
		return code;
	w->p = process_new(w->s, w->e.id, w->e.command.flags);
	if (!w->p)
		return error_no_memory(err, "spawn");
	code = sandbox_hold(w->s->sandbox, &w->p->claim, w->p->id, err);
	if (code >= 0)
		code = request_note(w, err);
	if (code >= 0)
		code = gates_approve(&w->e, call, err);
	if (code >= 0)
		code = gates_allowed(&w->e, err);
	if (code >= 0)
		code = resolve(w, err);
	return code < 0 ? code : io_start(w->s->sandbox, err);
}

int spawn_process(sb_session *s, const sb_command *command, const spawn_extra *extra,
		  const sb_call *call, sb_process **process, sb_error *err)
{
	spawning w = { .s = s, .extra = extra,
		       .io = { .size = sizeof w.io, .in = -1, .out = -1, .err = -1, .exited = -1,
			       .control = -1 } };

	effective_init(&w.e, s->sandbox, SB_DOOR_SPAWN);
	int code = prepare(&w, command, call, err);

	if (code >= 0)
		code = start(&w, call, err);
	if (code >= 0) {
		note(&w, SB_AUDIT_START, SB_ALLOW, 0, session_table(s)->name);
		*process = w.p;
	} else {
		note(&w, SB_AUDIT_DENIAL, SB_DENY, code, err ? err->message : "");
		if (w.p) {
			sandbox_drop(s->sandbox, &w.p->claim);
			process_unref(w.p);
		}
	}
	strv_free_list(w.env);
	free(w.program);
	effective_release(&w.e);
	return code < 0 ? code : 0;
}

int sb_session_spawn(sb_session *session, const sb_command *command, const sb_wait *wait,
		     sb_process **process, sb_error *err)
{
	live_run live;
	sb_call call;

	if (!command || !process)
		return error_set(err, SB_ERR_INVALID, "spawn", "%s",
				 process ? "there is no command" : "no place for the process was given");
	int code = session_check(session, "session", err);

	if (code >= 0)
		code = call_init(&call, wait, SPAWN_MS, err);
	if (code >= 0)
		code = sandbox_enter(session->sandbox, &live, err);
	if (code < 0)
		return code;
	code = spawn_process(session, command, NULL, &call, process, err);
	sandbox_leave(session->sandbox, &live);
	return code;
}
