/* SPDX-License-Identifier: MIT */
/*
 * <sandbox/backend.h> - for those who write a backend: one more way to put walls around a guest.
 *
 * A backend is one constant table of functions.  It turns a checked request into walls (a BOX) and
 * starts processes in them (GUESTS).  All that a guest says and hears goes through descriptors, so
 * timeouts, output limits, logs, cursors, watches, terminals, ids, lists, approval and the eval
 * protocol are written once, in the session layer, and are the same for every backend.  A backend
 * whose guest has no descriptors (a stream of an engine, a WebAssembly instance) makes some and
 * pumps them.
 *
 * The life of a box
 *
 *   probe ... plan ... create, attach_gate, put ... spawn ... signal, resize, dial, handle, eval
 *   ... `exited` turns readable, reap, release ... collect, get ... destroy
 *
 * What the library promises
 *
 *  - Requests come resolved: gates passed, sizes converted, defaults filled in, rules checked, no
 *    member unset but where 0 or NULL is said to mean something.  Paths are absolute and clean.
 *  - Calls on one box come one at a time; calls on different boxes, and probe, plan, sweep and
 *    prepare, from any thread at once.  `destroy` comes exactly once, after the last `release`.
 *  - A member that is NULL, or not in `caps`, is not called: the caller gets SB_ERR_UNSUPPORTED, or
 *    the library does it by a command inside where that is the same thing.
 *
 * What a backend promises
 *
 *  - It never holds a wall less than its plan said.  What it cannot do, it refuses in plan().
 *  - Nothing blocks past call->deadline_ns, nor after call->cancel_fd turns readable; undoing what
 *    was begun has a budget of its own (10 s) and does not fail the call.
 *  - The guest reaches nothing that the request does not name: no descriptor of the host, no host
 *    file, no network but through the gate, nothing written outside box and workspace.
 *  - The exit told by reap() is the guest's own.  A limit that tripped is told by its SB_ERR_*.
 *    What is not known is SB_OUTCOME_LOST: never an invented code.
 *  - After destroy() nothing of the box is left, and a crash of the host at any instant leaves only
 *    what sweep() finds.
 *  - It prints nothing, keeps no global state, and errors name the step: "container.create".
 *
 * Conformance: tests/conformance runs one suite over every built-in backend and a scripted one:
 * the contract of each member, faults and cancels at each step.  For every wall that the plan
 * claims HARD, tests/walls has the escape attempts, each with its control.
 */
#ifndef SANDBOX_BACKEND_H
#define SANDBOX_BACKEND_H

#include <sandbox/sandbox.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define SB_BACKEND_ABI 1 /* of the table; only ever grows by members at its end */

/* The backend defines these three.  A state is what it knows and holds for one sandbox object:
 * probed features, connections, caches, zygotes. */
typedef struct sb_state sb_state;
typedef struct sb_box sb_box;
typedef struct sb_guest sb_guest;

/* ---- What the library hands over -------------------------------------------------------- */

/* In every member that may block.  Never NULL. */
typedef struct sb_call {
	size_t size;
	uint64_t deadline_ns;       /* CLOCK_MONOTONIC; SB_UNLIMITED = none */
	sb_progress_fn on_progress; /* or NULL; on the calling thread; not 0 = cancel */
	void *user;
	int32_t cancel_fd;          /* readable = stop; -1 = cannot be cancelled */
	uint32_t reserved;
	const char *helper_dir;     /* of the sandbox object; NULL = as built; outlives the state */
} sb_call;

/* 0, or SB_ERR_TIMEOUT / SB_ERR_CANCELLED with err set.  The second waits for fd (poll events) or
 * one of the two, whichever comes first. */
int sb_call_check(const sb_call *call, sb_error *err);
int sb_call_wait(const sb_call *call, int fd, short events, sb_error *err);
int sb_call_progress(const sb_call *call, const sb_progress *progress, sb_error *err);

/* The walls wanted. */
typedef struct sb_box_request {
	size_t size;
	const char *id, *owner;      /* for labels: of the session or run; of the sandbox object */
	const sb_spec *spec;
	const sb_limits *limits;
	const sb_network *network;   /* mode is never DEFAULT */
	const sb_pack *pack;         /* NULL = argv */
	const sb_pack_way *way;      /* the pack's for this backend */
	const void *options;         /* this backend's record, whole and zero-filled; NULL = none */
	const char *workspace;       /* resolved; NULL = none */
	int32_t workspace_fd;        /* O_PATH of it, opened once; -1 = none */
	uint32_t door;               /* SB_DOOR_* */
	uint32_t flags;              /* SB_BOX_* */
	const struct sb_guest_request *guest; /* RUN: what will be spawned, and nothing else; or NULL */
	const void *code;            /* what the pack will run, put() brings it yet; or NULL */
	size_t code_len;
} sb_box_request;

/* create() may give a box in which an interpreter waits behind the very walls of this request, and keep
 * such ones ready for later requests like it.  Then spawn() gives SB_ERR_AGAIN if it turns out to have
 * ended: nothing of the request has run, and a box without this flag will do. */
enum { SB_BOX_WARM = 1 };

/* A process wanted. */
typedef struct sb_guest_request {
	size_t size;
	const char *id;
	const char *const *argv;     /* complete: placeholders replaced */
	const char *const *env;      /* complete; never NULL; { NULL } is an empty environment */
	const char *cwd;             /* inside */
	const sb_limits *limits;
	uint16_t rows, cols;         /* both 0 = pipes, else a terminal, of that size at once */
	uint32_t flags;              /* SB_GUEST_* */
} sb_guest_request;

enum { SB_GUEST_INPUT = 1,       /* wants `in`; else its input is at the end */
       SB_GUEST_CONTROL = 2,     /* wants `control`: the driver finds it as descriptor 3 */
       SB_GUEST_DETACHED = 4,    /* what it leaves running stays, until destroy */
       SB_GUEST_LAST = 8 };      /* no other comes in this box, which may end with it: collect,
                                    usage and destroy still follow */

/* Descriptors that the library takes over and closes; -1 = none.  CLOEXEC, not blocking. */
typedef struct sb_guest_io {
	size_t size;
	int32_t in, out, err; /* a terminal: in is out (one descriptor), err -1 */
	int32_t exited;       /* readable once the guest has ended: pidfd, eventfd, ... */
	int32_t control;      /* stream to the session or serve driver, apart from in and out */
	uint32_t reserved;
} sb_guest_io;

typedef struct sb_guest_exit {
	size_t size;
	int32_t outcome, error;       /* SB_OUTCOME_*; SB_ERR_* of the limit that ended it, or 0 */
	int32_t code, signal_number;  /* as in sb_exit */
	uint32_t output_incomplete;   /* 1 = some of the output did not arrive */
	uint32_t reserved;
	sb_usage *usage;              /* the library's; fill what is known */
	uint64_t killed;              /* processes of its own that had outlived it */
} sb_guest_exit;

/* How the gate gets between the box and the world. */
enum { SB_GATE_DNS = 1, SB_GATE_ALL_PORTS = 2 };
typedef struct sb_gate {
	size_t size;
	const uint16_t *ports;        /* that some rule names */
	size_t port_count;
	const char *socket;           /* host path; a stream that speaks HTTP proxy and SOCKS5 */
	int32_t *listeners;           /* out: sockets opened inside, port_count of them, then for */
	size_t listener_cap;          /*      DNS a datagram one; the library's from then on */
	size_t listener_count;        /* out; 0 = the guest is led to `socket` by the backend */
	uint64_t flags;               /* SB_GATE_* */
} sb_gate;

typedef struct sb_eval_end {
	size_t size;
	const char *value;            /* of the last expression; lives until the next eval */
	int32_t status;               /* 0; 1 = an exception; what the code exited with */
	uint32_t alive;               /* 0 = the interpreter is gone */
} sb_eval_end;

/* ---- The table -------------------------------------------------------------------------- */

struct sb_backend {
	size_t size;
	uint32_t abi;                 /* SB_BACKEND_ABI */
	uint32_t reserved;
	const char *name;             /* stable, lower case: "linux" */
	const char *const *aliases;
	const char *summary;          /* one line for `sandbox doctor` */
	uint64_t caps;                /* SB_CAP_* it can have on some machine */

	/* -- the machine -- */

	/* What can be done here: one line each into the report, by doing it.  0 = usable, then
	 * *state is the library's until forget().  BACKEND_UNAVAILABLE = no, see report.  report
	 * NULL: before a run; cheap facts suffice, for what is missing shows in create(). */
	int (*probe)(const sb_backend *self, const sb_call *call, sb_report *report,
		     sb_state **state, sb_error *err);
	/* Can it run this pack at all?  Looks at the pack only.  NULL = it has a way for `name`. */
	int (*supports)(const sb_backend *self, const sb_pack *pack);
	/* What create() would hold, by sb_plan_add(): a pure function of request and state, under
	 * 1 ms.  UNSUPPORTED = what was asked cannot be had in any strength. */
	int (*plan)(sb_state *state, const sb_box_request *request, sb_plan *plan, sb_error *err);

	/* -- one box -- */

	int (*create)(sb_state *state, const sb_box_request *request, const sb_plan *plan,
		      const sb_call *call, sb_box **box, sb_error *err);
	/* Before the first spawn, when the network mode wants a gate.  Caps: NETWORK. */
	int (*attach_gate)(sb_box *box, sb_gate *gate, const sb_call *call, sb_error *err);
	/* NOT_FOUND: no such program.  FORBIDDEN: it may not be executed. */
	int (*spawn)(sb_box *box, const sb_guest_request *request, const sb_call *call,
		     sb_guest **guest, sb_guest_io *io, sb_error *err);
	/* SB_SIGNAL_* to the guest and all that came of it.  Ended already: 0.  Caps: SIGNAL; KILL
	 * and TERMINATE are had by all. */
	int (*signal)(sb_guest *guest, int signal, const sb_call *call, sb_error *err);
	int (*resize)(sb_guest *guest, uint16_t rows, uint16_t cols, const sb_call *call,
		      sb_error *err); /* Caps: TTY */
	/* A stream to a port on which something inside listens.  Caps: SERVE_SOCKET. */
	int (*dial)(sb_box *box, uint16_t port, const sb_call *call, int *fd, sb_error *err);
	/* Before the first spawn of a code run: "/in" gets the given files, "/run/code" the one
	 * code file, whose path inside stands in argv (where code lies elsewhere, the backend puts
	 * its own path there).  `path` is a directory, `tree` what it gets.
	 * `tree` has its quotas set; links become SB_NODE_LINK_OUT and are never followed out.
	 * collect() is get("/out") once nothing runs.  Caps: FILES; COPY for the last two. */
	int (*put)(sb_box *box, const char *path, const sb_tree *tree, const sb_call *call,
		   sb_error *err);
	int (*get)(sb_box *box, const char *path, const sb_call *call, sb_tree *tree,
		   sb_error *err);
	int (*remove)(sb_box *box, const char *path, const sb_call *call, sb_error *err);
	int (*collect)(sb_box *box, const sb_call *call, sb_tree *tree, sb_error *err);
	int (*changes)(sb_box *box, const sb_call *call, sb_tree *tree, sb_error *err);
	int (*apply)(sb_box *box, const char *const *paths, const sb_call *call, sb_error *err);
	/* Once after `exited`; never blocks.  Negative: the guest had not started (spawn() need not
	 * wait for that); the error says why, as spawn() would have. */
	int (*reap)(sb_guest *guest, sb_guest_exit *end, sb_error *err);
	/* Now; guest NULL = the box.  CONNECTION_LOST: nothing can run in it any more.  Never blocks. */
	int (*usage)(sb_box *box, sb_guest *guest, sb_usage *usage);
	void (*release)(sb_guest *guest); /* kills what still runs of it; consumes */
	void (*destroy)(sb_box *box);     /* consumes */

	/* -- languages and services; NULL where the drivers over `control` do -- */

	int (*eval)(sb_guest *guest, const void *code, size_t len, const sb_call *call,
		    sb_eval_end *end, sb_error *err);
	/* One request to one response, both as sb_flow; the response lives until the next.  Caps:
	 * SERVE_HANDLER. */
	int (*handle)(sb_box *box, const sb_flow *request, const sb_call *call, sb_flow *response,
		      sb_error *err);
	/* A branch of a session's interpreter that waits for code: a box as create() makes it of `request`,
	 * and in it a twin that goes on where the guest stands, with the same memory and files, and with
	 * descriptors and random numbers of its own; its io as of a spawn with SB_GUEST_CONTROL.  The first
	 * frame that its driver gets is an `S`, which it answers.  The guest stays as it was; where this
	 * fails, nothing is left of the branch.  No other call on the box meanwhile.  Caps: FORK. */
	int (*fork)(sb_box *box, sb_guest *guest, const sb_box_request *request,
		    const sb_call *call, sb_box **branch, sb_guest **twin, sb_guest_io *io,
		    sb_error *err);
	/* As after create(): no process, file, variable or connection of before.  0 = proven so. */
	int (*reset)(sb_box *box, const sb_call *call, sb_error *err);

	/* -- housekeeping -- */

	/* Remove what owners left that are dead: host, pid and start time in the label say so. */
	int (*sweep)(sb_state *state, const sb_call *call, uint64_t *removed, sb_error *err);
	/* Fetch, pull, verify, compile what the way needs.  Reports progress. */
	int (*prepare)(sb_state *state, const sb_pack *pack, const sb_pack_way *way,
		       const sb_call *call, sb_error *err);
	void (*forget)(sb_state *state); /* consumes; after the last destroy */

	/* -- appended -- */

	/* What destroy() would do, and how that went: fills `left`.  Only destroy() follows.  NULL:
	 * nothing of a box ever lies outside of it. */
	void (*teardown)(sb_box *box, sb_teardown *report);
	/* A request of this id and network is on its way to plan() and create(), its gates passed: what
	 * takes time may begin, as long as nothing of it can run yet.  network NULL: nothing (more) comes
	 * of it; called once for each begun one, after its create() if there was one.  NULL: nothing
	 * takes that long. */
	void (*begin)(sb_state *state, const char *id, const sb_network *network);
	/* Where nobody has named a backend: 1 = all that this run needs is there, and these walls can
	 * hold what was asked for; 0 = the next one is looked at.  Cheap, before probe(), from any
	 * thread; of the request what was asked is filled in.  NULL = 1. */
	int (*suits)(const sb_backend *self, const char *helper_dir, const sb_box_request *request);
	/* An evaluation begins in this guest, which is a session's interpreter: limits.cpu_ms counts from here
	 * on.  Never blocks.  NULL: it counts over the life of the box. */
	void (*renew)(sb_guest *guest);
	/* Of a guest that runs: its process on this host; 0 = there is none to name.  NULL = 0. */
	int64_t (*pid)(const sb_guest *guest);
};

/* The built-in ones, for sb_sandbox_options.backends: "wasm" "process" "linux" "seatbelt" (there, but
 * never usable on Linux) "noop" (runs nothing, enforces nothing).  NULL = not known here. */
const sb_backend *sb_backend_builtin(const char *name);
const sb_backend *const *sb_backends_builtin(void);

/* ---- For plan() and probe() -------------------------------------------------------------- */

int sb_plan_add(sb_plan *plan, const sb_plan_line *line, sb_error *err); /* copies */
int sb_plan_set_caps(sb_plan *plan, uint64_t caps);
int sb_plan_set_enforcement(sb_plan *plan, const sb_enforcement *enforcement);
int sb_plan_set_text(sb_plan *plan, const char *format, const char *text, sb_error *err);
int sb_report_add(sb_report *report, const sb_check *check, sb_error *err);

/* ---- Shared mechanisms ------------------------------------------------------------------- */

/* The checks before any spawn: disk without a quota, a CPU budget without wall_ms, memory or CPU
 * where nothing could measure them.  `held` says what the backend enforces itself. */
int sb_exec_policy_validate(const sb_limits *limits, const sb_enforcement *held, sb_error *err);

/* The sampler, for backends that start processes of this machine without control groups: memory and
 * CPU time of a process group, of those that left it (they are followed by their parents, and known
 * from then on) and of those that have ended; over memory_bytes or cpu_ms all of them are killed.
 * Level SAMPLED: what happens between two looks, 5 to 20 ms, is not seen.  Each watch has one thread
 * of its own, with every signal blocked. */
typedef struct sb_group_watch sb_group_watch;
/* 1 after one real look, remembered for the process; 0: nothing can be measured here, refuse. */
int sb_group_watch_supported(void);
/* Start it once the guest leads group `pgid`, before it is reaped.  *watch NULL and 0: there is no limit
 * that it could hold.  NOT_FOUND: no such group; UNENFORCEABLE: nothing can be measured here. */
int sb_group_watch_start(int64_t pgid, const sb_limits *limits, sb_group_watch **watch,
			 sb_error *err);
/* Ask this first: UNENFORCEABLE if three looks in a row failed, and all was killed for that; else 0. */
int sb_group_watch_unenforceable(const sb_group_watch *watch, sb_error *err);
/* "memory" or "cpu" if that was exceeded, "" if not; a constant. */
const char *sb_group_watch_exceeded(const sb_group_watch *watch);
/* After the guest was reaped: returns when no look is under way any more, and none comes.  NULL is fine. */
void sb_group_watch_stop(sb_group_watch *watch);
void sb_group_watch_free(sb_group_watch *watch); /* stops; NULL is fine */

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif /* SANDBOX_BACKEND_H */
