/* SPDX-License-Identifier: MIT */
/*
 * session.h - written once over any backend: the sandbox object, the way of a request through its
 * gates, and the pump of a run.
 *
 * One run, in order: enter (closed? forked?) -> effective_read (records read, operator's spec over
 * the caller's) -> gates_pass (approval, allowed commands) -> begin (what takes the backend long and
 * runs nothing) -> effective_resolve (limits, language, workspace, file rules, environment, program)
 * -> route -> plan, plan_check -> create, put, spawn -> pump -> reap, collect, destroy.  Nothing of the
 * guest's starts before plan_check() has said yes.
 *
 * A request lives in one `effective`: records are copied whole, strings stay the caller's for the
 * call, what is made on the way is in its arena.
 */
#ifndef SB_SESSION_H
#define SB_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "../core/core.h"
#include "feed.h"

/* ---- copy.c: deep copies of public records -------------------------------------------------- */
/* Whole records of our size.  NULL with err set: a bad record, or no memory. */
sb_limits *copy_limits(arena *mem, const sb_limits *in, sb_error *err);
sb_spec *copy_spec(arena *mem, const sb_spec *in, sb_error *err);
sb_command *copy_command(arena *mem, const sb_command *in, sb_error *err);
sb_pack *copy_pack(arena *mem, const sb_pack *in, sb_error *err);

/* ---- cancel.c, call.c ------------------------------------------------------------------------ */
int cancel_fd(const sb_cancel *cancel); /* -1 for NULL */
/* wait may be NULL; default_ms where its timeout is 0. */
int call_init(sb_call *call, const sb_wait *wait, uint64_t default_ms, sb_error *err);

/* ---- sandbox.c ------------------------------------------------------------------------------- */
typedef struct backend_slot {
	const sb_backend *table;
	pthread_mutex_t lock;
	sb_state *state;              /* of a cheap probe, once one succeeded */
	sb_state *tried;              /* of one that did the real operations */
} backend_slot;

typedef struct live_run {         /* a request inside the object */
	const char *id;
	struct live_run *next;
} live_run;

typedef struct live_id {          /* the id of a session or a process, until that is closed */
	const char *id;               /* NULL = none is held */
	struct live_id *next;
} live_id;

struct io_thread;
struct sb_sandbox {
	pid_t pid;                    /* of the process that made it */
	atomic_uint refs;             /* the handle and each session */
	pthread_mutex_t lock;         /* over closed, runs, ids, sessions */
	pthread_cond_t idle;
	bool closed;
	live_run *runs;
	size_t run_count;
	live_id *ids;
	sb_session *sessions;
	struct io_thread *io;         /* NULL until a process needs it */
	bool io_ends;                 /* it is being stopped, by somebody else for all but one */
	sb_manager *manager;          /* of sessions with an idle time or an age, NULL until there is one */
	int stop_fd;                  /* eventfd: the object is being closed */
	struct shim_kept *shims;      /* what they answered; NULL = each is asked each time */
	arena mem;
	backend_slot *slots;
	size_t slot_count;
	const char *const *order;     /* registered ones, stable names */
	bool order_given;             /* by the application: then nothing in it is skipped */
	const char *const *languages;
	const sb_pack *const *packs;
	const sb_limits *default_limits;
	const sb_spec *operator_spec; /* NULL = none */
	const sb_command *operator_command;
	char *operator_workspace;     /* resolved for good */
	int operator_workspace_fd;
	const char *const *allowed_commands;
	const sb_predicate *const *predicates;
	sb_approve_fn approve;
	sb_log_fn log;
	sb_audit_fn audit;
	void *approve_user, *log_user, *audit_user;
	uint64_t approve_ms;
	const char *cache_dir, *helper_dir;
	const char *owner;            /* as given, or NULL: sandbox_owner() */
	char owner_made[128];
	uint32_t log_level, flags;
	int audit_fd;                 /* -1 = none */
};

/* CLOSED: closed, or a forked child. */
int sandbox_enter(sb_sandbox *sandbox, live_run *run, sb_error *err);
/* The id is this run's until it leaves; CONFLICT: another has it. */
int sandbox_claim(sb_sandbox *sandbox, live_run *run, const char *id, sb_error *err);
void sandbox_leave(sb_sandbox *sandbox, live_run *run);
/* The same of what stays: until it is dropped. */
int sandbox_hold(sb_sandbox *sandbox, live_id *claim, const char *id, sb_error *err);
void sandbox_drop(sb_sandbox *sandbox, live_id *claim);
/* CLOSED: we are the child of a fork. */
int sandbox_check(const sb_sandbox *sandbox, sb_error *err);
void sandbox_ref(sb_sandbox *sandbox);
void sandbox_unref(sb_sandbox *sandbox);
const char *sandbox_owner(sb_sandbox *sandbox);
backend_slot *sandbox_slot(const sb_sandbox *sandbox, const char *name);
/* The probed state, at most one probe at a time; `tried`: by real operations. */
int sandbox_state(sb_sandbox *sandbox, backend_slot *slot, bool tried, const sb_call *call,
		  sb_state **state, sb_error *err);
void sandbox_log(const sb_sandbox *sandbox, uint32_t level, const char *module,
		 const char *fmt, ...) BASE_PRINTF(4, 5);
/* "linux, process": of what is registered. */
char *sandbox_names(const sb_sandbox *sandbox, arena *mem);

/* ---- patterns.c -------------------------------------------------------------------------------- */
/* The paths that an absolute pattern (SB_FILE_GLOB) matches now, at most 1,000.  dots: those whose names begin
 * with one match "*" and "?" like others. */
int pattern_expand(const char *pattern, bool dots, strv *out, sb_error *err);

/* ---- place.c: what a request names on the host ------------------------------------------------ */
typedef struct place_seen {       /* what stood at a path; no inode number = nothing */
	dev_t dev;
	ino_t ino;
	struct timespec changed;      /* of a link: its inode's number is soon another's */
} place_seen;
typedef struct place_watch {      /* a protected path, looked at again after the run */
	const char *path;
	place_seen link, target;      /* where it is a link; behind all links */
} place_watch;
typedef struct place {
	char *workspace;              /* resolved; NULL = none.  Arena's or the sandbox's */
	int fd;                       /* O_PATH; -1 = none */
	bool fd_borrowed;
	const char *home;             /* resolved home directory, or NULL */
	files_set files;
	place_watch *watch;
	size_t watch_count;
	const sb_file_rule **rules;   /* for the backend: settled, present, by path; NULL-ended */
	size_t rule_count;
	char **appeared;              /* strv_free_list */
} place;
void place_init(place *p);
void place_release(place *p);
/* `text` NULL = the current directory.  Links resolved once; the refused ones refused. */
int place_workspace(place *p, const sb_sandbox *sandbox, arena *mem, const char *text,
		    const char *const *environ_now, sb_error *err);
/* Caller's and operator's rules, expanded and looked at; protections of a writable workspace. */
int place_rules(place *p, const sb_file_rule *const *caller, const sb_file_rule *const *fixed,
		bool protect, sb_error *err);
/* protect.c: the protected names, and those of a git folder that a file ".git" names. */
int protect_add(place *p, sb_error *err);
/* Our own programs, wherever guests may write to them: they run outside. */
int protect_own(place *p, const char *helper_dir, sb_error *err);
int place_settle(place *p, arena *mem, sb_error *err);
/* One more grant of our own after that, once: read-only, where nothing was visible. */
int place_show(place *p, arena *mem, const char *path, sb_error *err);
/* More of the backend's rules, once the others are settled. */
int place_add(place *p, arena *mem, const sb_file_rule *const *rules, size_t count, sb_error *err);
/* cwd inside: NULL = workspace (argv) or /work. */
int place_cwd(place *p, arena *mem, const char *cwd, bool code, const char **out, sb_error *err);
int place_look_again(place *p, sb_error *err);
/* $HOME of the list, else of the password file; resolved; NULL = not known. */

/* ---- workspace.c -------------------------------------------------------------------------------- */
/* The caller's home directory without links, or NULL. */
const char *workspace_home(arena *mem, const char *const *environ_now);
/* May this (a path without links) be a workspace: FORBIDDEN if not.  The second looks at the directory itself. */
int workspace_allowed(const char *path, const char *home, const sb_sandbox *sandbox, sb_error *err);
int workspace_owner_allowed(const char *path, int fd, arena *mem, sb_error *err);

/* ---- sockets.c ---------------------------------------------------------------------------------- */
bool sockets_is_daemon(const char *path);
/* Those that were named: there, sockets, and no daemon's unless that is said. */
int sockets_check(const sb_network *network, sb_error *err);
/* All others that lie in what is shown are hidden. */
int sockets_hide(place *p, arena *mem, const char *const *named, sb_error *err);

/* ---- resolve.c ---------------------------------------------------------------------------------- */
typedef union backend_options {
	size_t size;
	sb_process_options process;
	sb_linux_options linux_;
	sb_container_options container;
	sb_kube_options kube;
	sb_wasm_options wasm;
	sb_seatbelt_options seatbelt;
} backend_options;

typedef struct effective {
	sb_sandbox *sandbox;
	arena mem;
	char first[4096];             /* the arena's first piece: most requests need no other */
	char id[136];
	sb_spec spec;                 /* effective: the operator's over the caller's */
	sb_limits caller_limits, limits;
	sb_env env;
	sb_network network;
	const sb_file_rule *const *caller_files, *const *operator_files;
	bool workspace_named, workspace_fixed; /* by anyone; by the operator */
	bool workspace_implied;       /* its mode was not */
	bool module_fixed;            /* by the operator */
	sb_command command;
	bool has_command;
	const char *session;          /* id of the one it happens in; "" = none */
	uint32_t interactive;         /* of sb_request */
	uint32_t door;
	bool shared;                  /* by effective_share() */
	int profile;
	uint64_t asked_by_operator;   /* walls that the caller's allow_weaker cannot give up */
	plan_demand demand;
	const sb_pack *pack;          /* NULL = argv */
	const char *module;           /* that an argv brings (sb_wasm_options); NULL = none */
	const sb_pack_way *way;
	const char *code_path;        /* inside */
	backend_slot *slot;
	backend_options options;
	const void *options_given;    /* what the backend gets; NULL = none */
	place place;
	char *program;                /* what interp_find() said, or NULL */
	const char *const *environ_now;
	char **env_list, **argv;
	const char *cwd;
	sb_box_request box;
	sb_guest_request guest;
} effective;

void effective_init(effective *e, sb_sandbox *sandbox, uint32_t door);
void effective_release(effective *e);
/* As another one that is resolved, but for its id: what it points to is the other's, which must outlive it and
 * is not changed any more. */
void effective_share(effective *e, const effective *of, const char *id);
/* Records read, operator's spec over the caller's, profile chosen.  Looks at nothing outside. */
int effective_read(effective *e, const sb_spec *spec, const sb_command *command, sb_error *err);
/* The rest, up to a routed request; starts nothing. */
int effective_resolve(effective *e, sb_error *err);
/* Of a resolved one with a language: code_path, and the argv that runs what lies there. */
int effective_code_argv(effective *e, sb_error *err);
/* The backend's plan and ours; plan_check() is the caller's. */
int effective_plan(effective *e, sb_state *state, sb_plan **plan, sb_error *err);
/* Names known to core or registered here; the first that can run it. */
int effective_route(effective *e, sb_error *err);
/* policy.c: policies by the names that they stand for, each once. NULL = no memory. */
const char *const *policy_spell_out(arena *mem, const char *const *order);

/* ---- merge.c: the operator's spec over the caller's --------------------------------------------- */
int merge_operator(effective *e, sb_error *err);
uint64_t merge_asked(const sb_limits *limits, const sb_network *network,
		     const sb_file_rule *const *files, const sb_env *env, uint32_t workspace_mode);

/* ---- gates.c, approval.c, shell.c ----------------------------------------------------------------- */
int gates_approve(effective *e, const sb_call *call, sb_error *err);
int gates_allowed(const effective *e, sb_error *err);
/* 1 = every segment of the shell line matches one of the globs; 0 = one does not, or the line is
 * not understood. */
int shell_allowed(const char *line, const char *const *globs);
/* The line of "sh -c LINE"; *is_shell tells a shell whose line is not understood (NULL). */
const char *shell_line(const char *const *argv, bool *is_shell);
int approval_ask(sb_sandbox *sandbox, const sb_request *request, const char *why,
		 const sb_call *call, sb_error *err);

/* ---- audit.c ---------------------------------------------------------------------------------------- */
typedef struct audit_note {
	uint32_t what, action, wall;
	int code;
	const char *session, *process, *subject, *rule, *text;
} audit_note;
/* NULL: "".  0, or POLICY_DENIED where SB_SANDBOX_AUDIT_REQUIRED and it was not kept. */
int audit_write(const sb_sandbox *sandbox, const audit_note *note, sb_error *err);

/* ---- capture.c: what is kept of a guest's output ----------------------------------------------------- */
/* Two streams under a cap each and one over both.  HEAD keeps the first bytes; HEAD_TAIL the first
 * half of the cap and a ring of the last.  At most cap bytes are ever held. */
typedef struct capture_stream {
	char *data;
	size_t len;                   /* kept bytes, linear until `ring` */
	size_t alloc;
	size_t head;                  /* HEAD_TAIL: end of the head once it is full */
	size_t start;                 /* offset of the oldest tail byte, behind the head */
	bool spilled;                 /* the head is closed: bytes go to the tail */
	bool cut;                     /* HEAD: something was dropped, nothing more is kept */
	bool settled;                 /* the tail begins with a character, for good */
	uint64_t dropped, given;      /* given: bytes that the callback has seen */
} capture_stream;
typedef struct capture {
	capture_stream stream[2];     /* 0 = stdout (or terminal), 1 = stderr */
	uint64_t cap_total, cap_stream;
	uint32_t mode, keep;          /* SB_OUT_*, SB_KEEP_* */
	uint64_t kept;
	bool over;                    /* STOP: more came than the cap */
	bool no_memory;
} capture;
void capture_init(capture *c, const sb_limits *limits);
void capture_release(capture *c);
/* Takes the next bytes of a stream. */
void capture_add(capture *c, int stream, const void *data, size_t len);
/* Room to read into directly, at most `want`; 0 = use capture_add().  capture_commit() after it. */
size_t capture_room(capture *c, int stream, size_t want, char **at);
void capture_commit(capture *c, int stream, size_t len);
/* Head bytes of a stream that the callback has not seen; advances. */
size_t capture_next(capture *c, int stream, const char **data, bool at_end);
/* One contiguous run of bytes with a NUL behind; the caller's.  *gap = where bytes are missing.  What
 * is dropped is known after it. */
char *capture_take(capture *c, int stream, size_t *len, size_t *gap);

/* ---- pump.c: descriptors of a running guest ------------------------------------------------------------- */
enum { PUMP_EXITED = 0, PUMP_TIME, PUMP_WAIT_OVER, PUMP_CANCELLED, PUMP_OUTPUT, PUMP_CALLBACK,
       PUMP_NO_MEMORY, PUMP_STUCK, PUMP_BROKEN, PUMP_DONE };
typedef struct pump {
	sb_guest_io io;               /* closed as they end */
	capture out;
	char *scratch;                /* what is read past the cap; NULL = not yet */
	const sb_command *command;
	const sb_call *call;
	int stop_fd;                  /* the sandbox is closing */
	uint64_t deadline_ns;         /* wall_ms */
	uint64_t grace_ms;
	int (*signal)(void *user, int signal);
	void *user;
	int why;                      /* PUMP_* */
	feed input;
	/* an evaluation: io.control has something to read or room, or wake_fd is readable.  True = it is
	 * over, and the guest goes on */
	bool (*on_control)(void *user);
	bool control_full;            /* wait for room */
	size_t most;                  /* bytes to take of a stream at once; 0 = any */
	int wake_fd;
	uint64_t kill_at_ns;          /* after TERM; SB_UNLIMITED = not yet */
	uint64_t give_up_ns;          /* after KILL */
	bool killed, ended;
	bool deaf;                    /* the output callback wants no more */
	bool lost;                    /* output that could not be read: nobody knows how much */
	unsigned patience;            /* looks at the end alone, as long as little was said: see pump.c */
} pump;
enum { PUMP_PATIENCE = 4 };          /* for a run that is likely to be over in a moment */
/* Until the guest has ended and its output is drained (bounded).  The streams are closed then. */
void pump_run(pump *p);
/* The same with on_control, whose end (PUMP_DONE) leaves the streams open: what they held is taken. */
void pump_evaluate(pump *p);
/* From a callback of it: the guest is to end, for this reason. */
void pump_stop(pump *p, int why);
void pump_release(pump *p);

/* ---- carry.c: what goes into a box and comes out of a pump ----------------------------------------------------- */
/* The source as the file at code_path. */
int carry_code(const sb_backend *table, sb_box *box, const char *code_path, const void *code,
	       size_t len, const sb_call *call, sb_error *err);
/* The command's files and tree, if any, into /in: under the quota, before anything runs. */
int carry_files(const sb_backend *table, sb_box *box, const sb_command *command,
		const sb_limits *limits, const sb_call *call, sb_error *err);
int carry_output(capture *from, sb_result *result, sb_error *err);

/* ---- ending.c: how a run ended, in words ------------------------------------------------------------------- */
/* outcome, code, signal and failure of the result; `end` NULL = the guest did not end in time. */
void ending_fill(sb_result *result, const sb_limits *limits, const pump *p,
		 const sb_guest_exit *end);

/* The error of an ending that no limit of ours made: SB_ERR_* or 0. */
int ending_error(const sb_guest_exit *end);

#endif /* SB_SESSION_H */
