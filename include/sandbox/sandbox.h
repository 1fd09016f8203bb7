/* SPDX-License-Identifier: MIT */
/*
 * <sandbox/sandbox.h> - run code that nobody has read, behind walls that can be inspected.
 *
 * The life cycle
 *
 *   sb_sandbox   what an application holds: backends in order of preference, language packs, what
 *                the operator fixed, the gates (allowed commands, approval), log, audit
 *    |- sb_explain()        a SPEC and a COMMAND become a PLAN: wall by wall, what would hold
 *    |- sb_run()            one command behind fresh walls, waited for: an sb_result
 *    |- sb_session_open()   walls that stay up
 *    |    |- _spawn()       an sb_process: input, an output log, an exit
 *    |    `- _eval()        code in an interpreter that keeps its state: an sb_result each
 *    `- sb_doctor()         what works on this machine, and the one thing to change
 *
 *   Every door passes the same gates in the same order: the operator's spec, approval, allowed
 *   commands, validation, routing to a backend, plan; only then does anything start.
 *
 * Rules that hold everywhere
 *
 *  - Return: 0 when there is what was asked for, else a negative SB_ERR_*.  A guest that fails, is
 *    killed or meets a limit IS a result: 0, and the result has the outcome and, where a limit
 *    ended it, sb_result_error().  Negative means no result, and *out is left as it was.
 *    sb_*_at() past the end is SB_ERR_INVALID.
 *  - Arguments: object, inputs, wait, outputs, err.  err may be NULL, and so may wait and any
 *    record said to be "or NULL": all of its defaults.
 *  - Records begin with `size`: set it to sizeof the record and zero the rest.  Zero means
 *    "default", never "unlimited" (SB_UNLIMITED).  Members are only ever appended: the library
 *    reads min(size, its own) bytes; a non-zero tail it does not know, and any flag it does not
 *    know, is SB_ERR_UNSUPPORTED; size 0 is SB_ERR_INVALID.  Output records: set size, too.
 *  - Inputs are borrowed for the call and copied if needed later, but for callbacks, their user
 *    pointers, sb_backend tables and sb_cancel.  Lists, of strings or of records, are arrays of
 *    pointers that end in NULL; an empty list is not the same as no list (NULL).
 *  - `T **out` is the caller's, for sb_t_free(), in any order: a part keeps its whole alive.  What
 *    a getter returns lives as long as its object.  Every free takes NULL, does not fail, leaves
 *    no guest behind, and blocks no longer than its close would by default.
 *  - Strings are UTF-8 with a NUL; bytes are (pointer, length); units are in the names.
 *  - Threads: everything but sb_watch may be used from many threads at once (freeing excepted);
 *    results, plans, reports and lists do not change.  A callback runs on the thread inside the
 *    call that it belongs to; one of an open session or service on the sandbox's one I/O thread:
 *    be quick there, call nothing of the same object.  What a callback is given ends with it.
 *  - The library prints nothing, installs no signal handler, leaves the locale and the flags of
 *    borrowed descriptors alone, never exits.  In a forked child each call gives SB_ERR_CLOSED.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stddef.h>
#include <stdint.h>

#define SB_VERSION_MAJOR 0
#define SB_VERSION_MINOR 1

#if defined(__GNUC__) /* every function here is exported, nothing else is */
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* For any uint64_t limit or timeout.  Other values above INT64_MAX are refused as negative. */
#define SB_UNLIMITED ((uint64_t)-1)
#define SB_NO_WAIT ((uint64_t)-2) /* sb_wait.timeout_ms only: give what is there, at once */

typedef struct sb_sandbox sb_sandbox;         typedef struct sb_session sb_session;
typedef struct sb_process sb_process;         typedef struct sb_output sb_output;
typedef struct sb_watch sb_watch;             typedef struct sb_list sb_list;
typedef struct sb_manager sb_manager;         typedef struct sb_pool sb_pool;
typedef struct sb_result sb_result;           typedef struct sb_plan sb_plan;
typedef struct sb_report sb_report;           typedef struct sb_tree sb_tree;
typedef struct sb_approval sb_approval;       typedef struct sb_cancel sb_cancel;
typedef struct sb_backend sb_backend; /* <sandbox/backend.h> */

uint32_t sb_version(void); /* of the library at run time: major << 16 | minor */

/* ---- Errors ----------------------------------------------------------------------------- */
/* What a caller can do about it; a code's kind is -code / 100 and never changes. */
enum { SB_KIND_NONE = 0,
       SB_KIND_VALIDATION = 1, SB_KIND_NOT_FOUND = 2, /* mend the request */
       SB_KIND_FORBIDDEN = 3, SB_KIND_CONFLICT = 4,   /* the host says no; the name is taken */
       SB_KIND_TIMEOUT = 5, SB_KIND_ABORTED = 6,      /* time; the caller asked for the end */
       SB_KIND_NOT_AVAILABLE = 7,                     /* this backend or machine cannot do it */
       SB_KIND_BUDGET_EXCEEDED = 8, SB_KIND_POLICY_DENIED = 9, /* a limit; a gate */
       SB_KIND_CLOSED = 10, SB_KIND_INTERNAL = 11 };  /* the object is gone; machine or our bug */

/* Numbers are ABI; only ever appended within a hundred. */
enum { SB_OK = 0,
       SB_ERR_INVALID = -100, SB_ERR_INVALID_SPEC = -101, SB_ERR_INVALID_LIMITS = -102,
       SB_ERR_INVALID_PACK = -103, SB_ERR_INVALID_PATH = -104, SB_ERR_IS_DIR = -105,
       SB_ERR_NOT_DIR = -106, SB_ERR_CHECKSUM = -107,   /* an artifact is not what was pinned */
       SB_ERR_NOT_FOUND = -200, SB_ERR_UNKNOWN_LANGUAGE = -201, SB_ERR_SESSION_NOT_FOUND = -202,
       SB_ERR_SEQUENCE_GAP = -203,                      /* the bytes at the cursor are dropped */
       SB_ERR_FORBIDDEN = -300, SB_ERR_PATH_TRAVERSAL = -301, SB_ERR_CONFLICT = -400,
       SB_ERR_TIMEOUT = -500, SB_ERR_AGAIN = -501,      /* AGAIN: the wait is over, all as it was */
       SB_ERR_CANCELLED = -600, SB_ERR_UNSUPPORTED = -700, SB_ERR_BACKEND_UNAVAILABLE = -701,
       SB_ERR_UNENFORCEABLE = -702,                     /* a limit can no longer be measured */
       SB_ERR_TOO_MANY_SESSIONS = -703, SB_ERR_MEMORY_LIMIT = -800, SB_ERR_CPU_LIMIT = -801,
       SB_ERR_OUTPUT_LIMIT = -802, SB_ERR_FS_QUOTA = -803,
       SB_ERR_TOO_MANY_FILES = -804,                    /* counts as FS_QUOTA, too */
       SB_ERR_PIDS_LIMIT = -805, SB_ERR_POLICY_DENIED = -900, SB_ERR_NETWORK_DENIED = -901,
       SB_ERR_CLOSED = -1000, SB_ERR_PROCESS_CLOSED = -1001, SB_ERR_SESSION_CLOSED = -1002,
       SB_ERR_SESSION_KILLED = -1003, SB_ERR_MANAGER_CLOSED = -1004, SB_ERR_POOL_CLOSED = -1005,
       SB_ERR_INTERNAL = -1100, SB_ERR_NO_MEMORY = -1101, SB_ERR_IO = -1102,
       SB_ERR_CONNECTION_LOST = -1103 };                /* to an engine or cluster, mid-run */

/* The caller's own storage, 512 bytes for ever: no size, nothing to free, safe to copy. */
typedef struct sb_error {
	int32_t code;      /* SB_ERR_* */
	int32_t kind;      /* SB_KIND_* */
	int32_t cause;     /* the SB_ERR_* beneath, 0 = none: SESSION_KILLED because of TIMEOUT */
	int32_t os_errno;  /* 0 = no system call is to blame */
	char where[48];    /* wall or step, for programs: "landlock", "container.create" */
	char message[448]; /* one line: what failed, the subject in quotes, what to do */
} sb_error;
int sb_error_kind(int code); /* SB_KIND_*; NONE for 0 */
int sb_error_is(const sb_error *error, int code); /* 1: its code, cause or their parent */

/* ---- Waiting ---------------------------------------------------------------------------- */
typedef struct sb_progress {
	size_t size;
	const char *phase, *subject; /* "pull" "fetch" "compile" "schedule"; image, language... */
	uint64_t done, total;        /* bytes or steps; total 0 = unknown */
} sb_progress;
typedef int (*sb_progress_fn)(void *user, const sb_progress *progress); /* not 0 = cancel */
/* How long a call may block and what may end it.  Out of time is SB_ERR_AGAIN where it waits for
 * something (read, write, wait, next), SB_ERR_TIMEOUT where it does something, then undone. */
typedef struct sb_wait {
	size_t size;
	uint64_t timeout_ms; /* 0 = as the call says, else no end; SB_NO_WAIT, SB_UNLIMITED */
	sb_cancel *cancel;   /* or NULL; must outlive the call */
	sb_progress_fn on_progress;
	void *user;
} sb_wait;
int sb_cancel_new(sb_cancel **cancel, sb_error *err);
void sb_cancel_fire(sb_cancel *cancel); /* any thread, signal handlers too; stays fired */
void sb_cancel_free(sb_cancel *cancel);

/* ---- Walls, levels, limits -------------------------------------------------------------- */
enum { SB_WALL_FILES = 0, SB_WALL_NETWORK, SB_WALL_SYSCALLS, SB_WALL_PRIVILEGES, SB_WALL_PROCESSES,
       SB_WALL_MEMORY, SB_WALL_CPU, SB_WALL_PIDS, SB_WALL_DISK, SB_WALL_TIME, SB_WALL_OUTPUT,
       SB_WALL_ENV, SB_WALL_COUNT };
#define SB_WALL_BIT(wall) ((uint64_t)1 << (wall))
enum { SB_LEVEL_NONE = 0,    /* not held: never "unknown" */
       SB_LEVEL_COOPERATIVE, /* holds for a guest that does not try */
       SB_LEVEL_SAMPLED,     /* a watcher looks now and then */
       SB_LEVEL_HARD };      /* the kernel, a VM or an engine holds it */

/* Where unset members get their values from.  None of them picks the `process` backend. */
enum { SB_PROFILE_DEFAULT = 0, /* CODE for a language, COMMAND for an argv */
       SB_PROFILE_CODE,        /* 128 MiB, 10 s wall and CPU, 1 MiB out and stop, 16 MiB and 256
                                  files, 64 procs; no network, no environment, /in /work /out */
       SB_PROFILE_COMMAND,     /* min(2 GiB, RAM/2), 512 procs, 10 MiB out a stream; no network */
       SB_PROFILE_RUNNER,      /* no limits but 10 MiB out a stream, truncated; host network */
       SB_PROFILE_CONTAINER }; /* 256 MiB, half a core, 128 procs, 1024 descriptors; no network */
enum { SB_OUT_DEFAULT = 0, SB_OUT_STOP, SB_OUT_TRUNCATE }; /* at the cap: end the guest, or drop */
enum { SB_KEEP_DEFAULT = 0, SB_KEEP_HEAD, SB_KEEP_HEAD_TAIL }; /* COMMAND: HEAD_TAIL, else HEAD */

/* 0 = the profile's value, raised by the pack; SB_UNLIMITED = none; memory at least 1 MiB. */
typedef struct sb_limits {
	size_t size;
	uint64_t memory_bytes;   /* of the whole tree; swap included */
	uint64_t wall_ms;        /* of one command or eval */
	uint64_t cpu_ms;         /* CPU time of the whole tree, dead children too */
	uint64_t cpu_millicores; /* rate: 1000 = one core */
	uint64_t cpu_budget_millicores; /* cpu_ms as a share of wall_ms, which it needs */
	uint64_t out_total_bytes, out_stream_bytes; /* both streams together; each */
	uint64_t log_bytes;        /* of a process in a session, retained for replay: 10 MiB */
	uint64_t fs_bytes, fs_nodes; /* of all it can write; refused with a workspace to WRITE in */
	uint64_t collect_bytes;    /* of /out into the result; default fs_bytes, at most 64 MiB
	                              where that is unlimited */
	uint64_t procs, user_procs, open_files; /* in the walls; RLIMIT_NPROC; per process */
	uint64_t grace_ms;         /* from TERM to KILL; default 0 at wall_ms, 2000 in terminate */
	uint32_t out_mode, out_keep; /* SB_OUT_*, SB_KEEP_* */
} sb_limits;
/* A profile's own values; COMMAND's memory as on a machine with enough of it. */
int sb_limits_default(int profile, sb_limits *limits, sb_error *err);
int sb_limits_validate(const sb_limits *resolved, sb_error *err); /* zeros are refused */

/* ---- Environment and files -------------------------------------------------------------- */
/* What the guest sees of the caller's environment as it is at the call.  DEFAULT = INHERIT for
 * RUNNER, NONE otherwise.  A LIST that matches nothing is an empty environment. */
enum { SB_ENV_DEFAULT = 0, SB_ENV_INHERIT, SB_ENV_NONE, SB_ENV_LIST };
typedef struct sb_env {
	size_t size;
	const char *const *allow;  /* names; SB_ENV_LIST only */
	const char *const *inject; /* "NAME=value"; wins over what was inherited */
	uint64_t base;             /* SB_ENV_* */
} sb_env;
enum { SB_FILE_READ = 1, SB_FILE_WRITE, /* visible there; the source must exist */
       SB_FILE_HIDE,                    /* a file: EACCES; a directory: empty and unwritable */
       SB_FILE_PROTECT,                 /* read-only within something writable */
       SB_FILE_TMPFS };                 /* an empty one of its own */
enum { SB_FILE_GLOB = 1, SB_FILE_OPTIONAL = 2, SB_FILE_NOEXEC = 4 };
/* Order does not matter: the rule for the nearest path wins, and of two for one path the stricter;
 * the built-in protections give way to any rule of the caller's for that path.
 * Paths are absolute and literal; SB_FILE_GLOB expands once, at start, as glob(7), where an element "**"
 * is any number of directories, and HIDE and PROTECT match names that begin with a dot, too.  Links are
 * not followed for grants.  An absent path to protect is looked for after the run, and named in the result. */
typedef struct sb_file_rule {
	size_t size;
	const char *path, *source; /* inside; on the host, NULL = the same */
	uint64_t max_bytes;        /* TMPFS; counts within fs_bytes */
	uint32_t access, flags;    /* SB_FILE_READ.., SB_FILE_GLOB.. */
} sb_file_rule;
enum { SB_WORKSPACE_DEFAULT = 0, SB_WORKSPACE_NONE, /* DEFAULT: argv WRITE, code NONE */
       SB_WORKSPACE_READ,
       SB_WORKSPACE_WRITE,  /* .git/hooks, .git/config, .envrc and the like stay protected */
       SB_WORKSPACE_COPY }; /* copy on write; sessions only: UNSUPPORTED as yet */

/* ---- Network ---------------------------------------------------------------------------- */
enum { SB_NET_DEFAULT = 0, /* the profile's: HOST for RUNNER, else DENY_ALL */
       SB_NET_HOST,        /* no policy; never reported as enforced; rules are refused */
       SB_NET_DENY_ALL,
       SB_NET_ALLOW_LIST,  /* what no rule allows is denied */
       SB_NET_PROXY };     /* what no rule denies goes to the upstream, which must be given */
enum { SB_DENY = 0, SB_ALLOW = 1, SB_LATER = 2 };
enum { SB_HOST_SUFFIX = 0, SB_HOST_EXACT }; /* "a.test" is it and all below, or it alone; in both
                                               "*.a.test" is all below and not a.test itself */
/* Any deny that matches beats every allow.  Hosts: name, *.name, address, CIDR prefix. */
typedef struct sb_net_rule {
	size_t size;
	const char *host;
	uint16_t port, port_last; /* 0 = any; port_last 0 = port */
	uint16_t flavour, action; /* SB_HOST_*, SB_DENY or SB_ALLOW */
} sb_net_rule;

/* One attempt to go out, allowed or not: in the result, the audit and on_attempt alike. */
typedef struct sb_net_entry {
	size_t size;
	int64_t time_unix_ns;
	const char *session, *protocol;       /* id or ""; "http" "connect" "socks5" "tls" "dns" */
	const char *method, *url, *host, *address; /* address: dialled; "" = none was */
	const char *rule, *error;             /* as written, "" = the mode decided; "" = none */
	uint64_t sent_bytes, received_bytes, duration_us;
	uint32_t port, action, mode, status; /* SB_DENY/SB_ALLOW, SB_NET_*, HTTP status or 0 */
} sb_net_entry;
typedef void (*sb_net_attempt_fn)(void *user, const sb_net_entry *entry);
/* Asked where no rule matches; SB_ALLOW, or anything else = denied. */
typedef int (*sb_net_decide_fn)(void *user, const sb_net_entry *entry);

enum { SB_FLOW_CONNECT = 1, SB_FLOW_REQUEST, SB_FLOW_RESPONSE }; /* stage */
enum { SB_FLOW_BODY_CUT = 1, SB_FLOW_BODY_ABSENT = 2 }; /* above the cap; not looked at */
typedef struct sb_flow {
	size_t size;
	const char *host, *method, *url;
	const char *const *headers; /* "Name: value" */
	const void *body;
	size_t body_len;
	uint32_t port, stage, status, flags;
} sb_flow;

/* 0 = go on; else 403 with the reason written to `reason` (UTF-8, at most cap with its NUL). */
typedef int (*sb_flow_fn)(void *user, const sb_flow *flow, char *reason, size_t cap);

enum { SB_MITM_BODIES = 1, SB_MITM_BODIES_REQUIRED = 2 }; /* REQUIRED: what is cut is denied */
/* TLS opened at the gate with a CA of this run alone, whose key never touches a disk. */
typedef struct sb_mitm {
	size_t size;
	const char *const *hosts;   /* NULL = all */
	const char *const *exclude; /* raw tunnel, still under the rules; wins */
	const char *roots_file;     /* PEM to verify origins; NULL = the system's */
	uint64_t max_body_bytes;    /* 64 KiB */
	sb_flow_fn on_flow;
	void *user;
	uint64_t flags;
} sb_mitm;
enum { SB_NETWORK_ALLOW_PRIVATE = 1, /* loopback, private, link-local; metadata only by rule */
       SB_NETWORK_ALLOW_DAEMONS = 2 }; /* unix_sockets of container engines, systemd, D-Bus */
typedef struct sb_network {
	size_t size;
	const sb_net_rule *const *rules;
	const uint16_t *ports;         /* for rules without one; NULL = CODE: 80, 443; else any */
	size_t port_count;
	uint64_t max_requests, max_bytes; /* of it all; received.  CODE: 100, 10 MiB; else none */
	const char *upstream;          /* http://[user:pass@]host:port, socks5://, socks5h:// */
	const char *const *unix_sockets; /* absolute host paths that must exist */
	const char *const *secrets;    /* names of the sandbox's, usable by this guest */
	const sb_mitm *mitm;           /* or NULL; needs ALLOW_LIST or PROXY */
	const char *deny_text;         /* shown to the guest with a denial */
	sb_net_decide_fn decide;
	sb_net_attempt_fn on_attempt;
	void *user;
	uint32_t mode, flags;          /* SB_NET_*, SB_NETWORK_* */
} sb_network;
int sb_network_validate(const sb_network *network, sb_error *err);
/* ---- Backend options: one record a backend, NULL = its defaults --------------------------- */
typedef struct sb_process_options { size_t size; uint64_t flags; } sb_process_options;
enum { SB_LINUX_ALLOW_USERNS = 1, SB_LINUX_NO_LANDLOCK = 2 };
typedef struct sb_linux_options {
	size_t size;
	const char *root;          /* a root file system; NULL = the host's /usr and the like */
	const char *hostname;      /* "sandbox" */
	const char *cgroup_parent; /* empty and delegated; NULL = find one */
	const char *seccomp_file;  /* OCI JSON, applied besides ours */
	uint32_t uid_first, uid_count; /* root callers: host ids to run guests as, one a sandbox */
	uint64_t flags;
} sb_linux_options;
enum { SB_PULL_DEFAULT = 0, SB_PULL_NEVER, SB_PULL_IF_MISSING }; /* DEFAULT: argv NEVER */
enum { SB_CONTAINER_WRITABLE_ROOT = 1, SB_CONTAINER_OVERRIDE_ENTRYPOINT = 2,
       SB_CONTAINER_REQUIRE_DIGEST = 4 };
/* The engine's memory, quota, pids, nofile and nproc come from sb_limits. */
typedef struct sb_container_options {
	size_t size;
	const char *image;         /* "alpine:3.19"; packs bring theirs, by digest */
	const char *socket;        /* "/var/run/docker.sock" */
	const char *network_mode;  /* "none"; another of the engine's is reported as SB_NET_HOST */
	const char *user;          /* "65534:65534" */
	const char *const *cap_add; /* on top of dropping all */
	const char *seccomp_json;  /* text; NULL = the engine's */
	const char *runtime;       /* "runsc"; NULL = the engine's */
	const char *const *tmpfs;  /* "/tmp:rw,noexec,nosuid,nodev,size=64m"; empty list = none */
	const char *const *labels; /* "name=value", besides our own */
	uint32_t pull, flags;
} sb_container_options;
typedef struct sb_kube_options {
	size_t size;
	const char *image;           /* required for an argv */
	const char *kube_namespace, *service_account; /* "default"; the namespace's */
	const char *kubeconfig, *context; /* NULL = in-cluster, KUBECONFIG, ~/.kube/config */
	const char *runtime_class;
	const char *const *image_pull_secrets;
	const char *const *node_selector, *const *labels; /* "name=value" */
	uint64_t schedule_ms, pull_ms; /* budgets of their own, outside wall_ms; 60 s, 300 s */
	uint64_t ttl_ms;               /* after the end, if our deletion is missed; 60 s */
	uint32_t pull, flags;
} sb_kube_options;
enum { SB_WASM_CLOCK = 1, SB_WASM_HTTP = 2, SB_WASM_FS_READ_ONLY = 4 };
/* What is not held yet is refused by name: fs_dir, fuel, and flags but the clock, which is always there. */
typedef struct sb_wasm_options {
	size_t size;
	const char *module; /* absolute path; required for an argv: argv[0] is then only a name */
	const char *fs_dir; /* host directory at "/", confined; NULL = none; workspace and files show others */
	uint64_t stack_bytes; /* of the guest's calls: 64 KiB to 8 MiB, the default */
	uint64_t fuel;      /* instructions; default none: wall_ms ends it */
	uint64_t flags;     /* SB_WASM_CLOCK, _HTTP: packs switch on what they need */
} sb_wasm_options;
typedef struct sb_seatbelt_options {
	size_t size;
	const char *const *mach_services;
} sb_seatbelt_options;
/* What every record of a backend of your own begins with. */
typedef struct sb_other_options { size_t size; const char *backend; } sb_other_options;

/* ---- Spec and command ------------------------------------------------------------------- */
enum { SB_SPEC_REQUIRE_HARD = 1 }; /* SAMPLED and COOPERATIVE count as weaker */

/* The walls asked for.  NULL where a call takes one = all defaults. */
typedef struct sb_spec {
	size_t size;
	const char *const *backends; /* names, or one of a policy, most wanted first; NULL = the
	                                sandbox's order.  Only these are used; the first that can
	                                run it, or an error */
	const sb_limits *limits;
	const sb_env *env;
	const sb_network *network;
	const char *workspace;       /* root of relative paths, same path inside; NULL = current
	                                directory; refused: "/", a home directory or above it, the
	                                system's folders, our own files */
	const sb_file_rule *const *files;
	const sb_process_options *process_options;
	const sb_linux_options *linux_options;
	const sb_container_options *container_options;
	const sb_kube_options *kube_options;
	const sb_wasm_options *wasm_options;
	const sb_seatbelt_options *seatbelt_options;
	const sb_other_options *const *other_options;
	uint64_t require;      /* SB_WALL_BITs asked for besides the profile's */
	uint64_t allow_weaker; /* SB_WALL_BITs that may be held less than asked; the plan tells */
	uint32_t profile, workspace_mode; /* SB_PROFILE_*, SB_WORKSPACE_* */
	uint64_t flags;        /* SB_SPEC_* */
} sb_spec;
int sb_spec_validate(const sb_spec *spec, sb_error *err); /* looks at nothing outside it */

typedef struct sb_file {
	size_t size;
	const char *path; /* relative to /in */
	const void *data;
	size_t len;
} sb_file;
enum { SB_STDIN = 0, SB_STDOUT = 1, SB_STDERR = 2, SB_TTY = 3 }; /* TTY: both in one, of
                                a terminal or of a backend without SB_CAP_SPLIT_STREAMS */
enum { SB_INPUT_DEFAULT = 0, /* run, eval, serve: NONE (end of file at once); spawn: OPEN */
       SB_INPUT_NONE, SB_INPUT_BYTES, SB_INPUT_FD, SB_INPUT_CALLBACK,
       SB_INPUT_OPEN };      /* fed by sb_process_write() */
/* Fills buf; returns bytes, 0 = end, negative = stop the run (SB_ERR_CANCELLED). */
typedef int64_t (*sb_input_fn)(void *user, void *buf, size_t cap);
typedef int (*sb_output_fn)(void *user, int stream, const void *data, size_t len); /* not 0: stop */

/* DETACHED: what it leaves running stays, until the session closes.  PARTIAL: eval only: code as it is
 * typed, line by line and without the last end of line: what is not finished is told, and not run.
 * HOLD: in a session: half of log_bytes that sb_output_read() has not yet given to anyone hold the
 * process up, rather than giving way; it takes 512 KiB at least.  SHORT_PLAN: in a run whose plan
 * nobody reads path by path: what no decision rests on (paths, mounts below the workspace, limits
 * above) is not looked up for it. */
enum { SB_COMMAND_TTY = 1, SB_COMMAND_DETACHED = 2, SB_COMMAND_PARTIAL = 4, SB_COMMAND_HOLD = 8,
       SB_COMMAND_SHORT_PLAN = 16 };
/* Either argv, or language and code. */
typedef struct sb_command {
	size_t size;
	const char *id;            /* of the process, unique in the sandbox; NULL = random */
	const char *const *argv;
	const char *language;      /* name or alias; case and blanks around it do not matter */
	const void *code;          /* source, or a module: bytes beginning with "\0asm" */
	size_t code_len;
	const char *const *args;   /* after the script */
	const char *cwd;           /* NULL = workspace or /work (made there); outside both: PATH_TRAVERSAL */
	const char *const *env;    /* "NAME=value", over the spec's */
	const sb_file *const *files; /* put read-only under /in */
	const sb_tree *tree;       /* more of them, or NULL */
	const void *input;         /* SB_INPUT_BYTES */
	size_t input_len;
	sb_input_fn read_input;    /* SB_INPUT_CALLBACK */
	sb_output_fn on_output;    /* run and eval: also see output as it comes */
	void *user;
	uint32_t input_kind;       /* SB_INPUT_* */
	int32_t input_fd;          /* SB_INPUT_FD: borrowed */
	uint16_t rows, cols;       /* of the terminal; 0 = 24, 80 */
	uint32_t flags;            /* SB_COMMAND_* */
} sb_command;

/* ---- Packs: a language as data ----------------------------------------------------------- */
/* Bytes pinned by hash, checked on every use.  Either embedded or a URL. */
typedef struct sb_artifact {
	size_t size;
	const char *name, *url;
	const char *sha256, *archive_entry; /* 64 lower-case hex digits; a file in the zip */
	const char *path;          /* as a mount: where it is seen inside, read-only */
	const void *data;
	uint64_t bytes;            /* expected, and length of data; 0 = unknown */
} sb_artifact;

/* How one backend runs it.  In commands "{code}" is the code file, "{args}" the arguments. */
typedef struct sb_pack_way {
	size_t size;
	const char *backend;             /* "linux" (process, seatbelt too), "container", ... */
	const char *const *find;         /* native: programs to look for on PATH, best first */
	const char *const *run, *const *compile; /* compile NULL = no such step */
	const char *code_file, *workdir; /* "__main__.py" */
	const char *image;               /* container, k8s: must contain @sha256: */
	const sb_artifact *module;       /* wasm */
	const sb_artifact *const *mounts;
	const char *session_driver, *serve_driver; /* guest-side text: evals, requests */
	const char *const *preload;      /* modules that a warm worker has loaded already */
	const sb_other_options *other;   /* for a backend of your own */
	uint64_t caps;                   /* SB_CAP_* that this way adds */
	const char *warm_driver;         /* guest-side text: waits for the one run that it is for */
} sb_pack_way;
typedef struct sb_pack {
	size_t size;
	const char *name, *version;        /* ^[a-z][a-z0-9_+.-]{0,31}$ */
	const char *const *aliases, *const *extensions; /* "py"; ".py" */
	const sb_pack_way *const *ways;    /* at least one */
	const sb_limits *limits, *compile_limits; /* raised defaults; those of the compile step */
	uint64_t memory_floor_bytes;       /* less than this is refused */
} sb_pack;
int sb_pack_validate(const sb_pack *pack, sb_error *err);
const sb_pack *const *sb_packs_builtin(void); /* static list */

/* Modules of the built-in packs for the backend wasm, as they lie beside our programs. */
enum { SB_MODULE_MISSING = 0, SB_MODULE_READY,
       SB_MODULE_STALE,    /* made for another engine */
       SB_MODULE_DAMAGED };/* not what its manifest pins, or others could change it */
enum { SB_MODULES_VERIFY = 1 }; /* hash all; else what the stamps know is taken as it was */
typedef struct sb_module {
	size_t size;
	const char *name, *version, *path; /* "" where not known; the folder */
	const char *note, *problem;        /* one line each, or "" */
	uint64_t bytes;
	int32_t state;                     /* SB_MODULE_* */
	uint32_t reserved;
} sb_module;
typedef struct sb_modules sb_modules;
/* helper_dir: NULL = as built.  Strings live as long as the list.  With VERIFY it takes a moment (some
 * 100 MB are read), and leaves stamps where the folders can be written.  Any thread. */
int sb_modules_read(const char *helper_dir, uint64_t flags, sb_modules **modules, sb_error *err);
size_t sb_modules_count(const sb_modules *modules);
int sb_modules_at(const sb_modules *modules, size_t index, sb_module *module);
const char *sb_modules_programs(const sb_modules *modules); /* the folder of our programs */
void sb_modules_free(sb_modules *modules);

/* ---- The sandbox object ------------------------------------------------------------------ */
enum { SB_DOOR_RUN = 1, SB_DOOR_SESSION, SB_DOOR_SPAWN, SB_DOOR_EVAL, SB_DOOR_SERVE };
typedef struct sb_request { /* a deep copy of the effective request: changing it changes nothing */
	size_t size;
	const sb_spec *spec;
	const sb_command *command; /* NULL for SESSION */
	const char *session, *backend;
	uint32_t door;             /* SB_DOOR_* */
	uint32_t interactive;      /* 1 = a lasting channel: terminal, eval session, service */
} sb_request;
enum { SB_PREDICATE_NONE = 0,       /* also CUSTOM without match: every call is denied */
       SB_PREDICATE_COMMAND,        /* args: globs on the base name of argv[0] */
       SB_PREDICATE_INTERACTIVE,
       SB_PREDICATE_NETWORK,        /* any mode but HOST */
       SB_PREDICATE_CWD_OUTSIDE,    /* absolute cwd, links resolved, outside args[0] */
       SB_PREDICATE_SHELL_SEGMENTS, /* a shell line with a segment that none of args matches */
       SB_PREDICATE_CUSTOM };
typedef struct sb_predicate {
	size_t size;
	const char *const *args;
	int (*match)(void *user, const sb_request *request, char *reason, size_t cap); /* 1 = ask */
	void *user;
	uint64_t what;                 /* SB_PREDICATE_* */
} sb_predicate;

/* SB_ALLOW; SB_DENY; SB_LATER = sb_approval_answer() follows, from any thread; negative = the
 * channel failed.  Everything but SB_ALLOW within approve_ms is a denial. */
typedef int (*sb_approve_fn)(void *user, const sb_request *request, const char *why,
			     sb_approval *approval);
void sb_approval_answer(sb_approval *approval, int action); /* consumes; once, the first counts */

enum { SB_AUDIT_REQUEST = 1, SB_AUDIT_APPROVAL, SB_AUDIT_START, SB_AUDIT_NETWORK, SB_AUDIT_DENIAL,
       SB_AUDIT_LIMIT, SB_AUDIT_FILES, SB_AUDIT_EXIT, SB_AUDIT_OVERRULED };
typedef struct sb_audit {  /* never holds a secret's value */
	size_t size;
	int64_t time_unix_ns;
	const char *session, *process; /* ids or "" */
	const char *subject, *rule, *text;
	const sb_net_entry *net;       /* NETWORK only */
	const char *json;              /* all of it, one line, "schema":1 */
	uint32_t what, action, wall;   /* SB_AUDIT_*; SB_ALLOW or SB_DENY; _COUNT = no wall */
	int32_t code;                  /* SB_ERR_* or 0 */
} sb_audit;
typedef int (*sb_audit_fn)(void *user, const sb_audit *audit); /* not 0 = it was not kept */

enum { SB_LOG_ERROR = 1, SB_LOG_WARNING, SB_LOG_INFO, SB_LOG_DEBUG };
typedef void (*sb_log_fn)(void *user, int level, const char *module, const char *message);

/* Used at the gate only: the guest holds a placeholder, sent to another host it is refused. */
typedef struct sb_secret {
	size_t size;
	const char *name;
	const void *value;
	size_t len;
	const char *const *hosts; /* where it may go; EXACT */
	const char *header;       /* "Authorization: Bearer {}"; NULL = where the placeholder is */
	const char *env;          /* guest variable that gets the placeholder, or NULL */
} sb_secret;
enum { SB_SANDBOX_OFFLINE = 1,
       SB_SANDBOX_AUDIT_REQUIRED = 2, /* a record not kept = not run */
       SB_SANDBOX_EAGER = 4,          /* new: compile modules, reach engine and cluster, or fail */
       SB_SANDBOX_WARM = 8 };         /* runs of code take over workers that have their language loaded,
                                         each for one run; a thread starts the next ones (linux) */
typedef struct sb_sandbox_options {
	size_t size;
	const sb_backend *const *backends; /* NULL = all that are built in */
	const char *const *order;      /* NULL = "wasm", "linux", "container": for specs without one */
	const sb_pack *const *packs;   /* NULL = sb_packs_builtin() */
	const sb_limits *default_limits; /* where the caller's are unset */
	const sb_spec *operator_spec;  /* what is set here wins over the caller's, but: wall_ms, the
	                                  lesser; env.inject, both, the caller's values win */
	const sb_command *operator_command; /* cwd, input: where the caller's are unset */
	const char *const *allowed_commands; /* exact argv[0]; NULL = no gate, empty = none */
	const sb_predicate *const *predicates; /* the first that matches asks, once */
	sb_approve_fn approve;         /* NULL = what a predicate matches is denied */
	sb_log_fn log;
	sb_audit_fn audit;
	void *approve_user, *log_user, *audit_user;
	uint64_t approve_ms;           /* 30 s */
	const sb_secret *const *secrets;
	const char *cache_dir, *helper_dir; /* artifacts; our programs.  NULL = as built */
	const char *owner;             /* label on containers, Jobs; NULL = host, pid, start time */
	uint32_t log_level, flags;     /* SB_LOG_*, 0 = WARNING; SB_SANDBOX_* */
	int32_t audit_fd;              /* also JSON lines, not waited for; 0 = none */
	uint32_t reserved;
} sb_sandbox_options;

/* Checks packs, limits, rules and names, resolves operator_spec's workspace for good.  Unless EAGER
 * it starts nothing: an engine that is down shows when it is needed.  opts or NULL. */
int sb_sandbox_new(const sb_sandbox_options *opts, const sb_wait *wait, sb_sandbox **sandbox,
		   sb_error *err);
/* Ends everything in it, then refuses.  Default wait 30 s; what is left is killed.  Idempotent. */
int sb_sandbox_close(sb_sandbox *sandbox, const sb_wait *wait, sb_error *err);
void sb_sandbox_free(sb_sandbox *sandbox); /* closes */

const char *const *sb_sandbox_order(const sb_sandbox *sandbox);
const char *const *sb_sandbox_languages(const sb_sandbox *sandbox); /* sorted */
int sb_sandbox_pack(const sb_sandbox *sandbox, const char *language, const sb_pack **pack,
		    sb_error *err);
/* "docker", "k8s"... to the stable name; what is unknown stays as it is, and is NOT_FOUND. */
int sb_backend_parse(const char *text, const char **name);
/* "WasmOnly", "PreferWasm" (or "wasm-only"...) to the names that it stands for, NULL-ended; else
 * NOT_FOUND. */
int sb_policy_parse(const char *text, const char *const **names);

/* What is alive: sessions, and processes until they are closed; by start, then id. */
enum { SB_LIST_ALL = 0, SB_LIST_PROCESSES, SB_LIST_SESSIONS };
typedef struct sb_info {
	size_t size;
	const char *id, *session, *backend, *language; /* session: of a process; "" = none */
	const char *const *argv;   /* of a process; else an empty list */
	int64_t started_unix_ns;
	int64_t pid;               /* on this host; 0 = none to name */
	uint32_t what, running, tty, reserved; /* SB_LIST_PROCESSES or _SESSIONS */
	int32_t outcome, code, signal_number, error; /* once it is not running */
} sb_info;
int sb_sandbox_list(sb_sandbox *sandbox, int what, sb_list **list, sb_error *err);
size_t sb_list_count(const sb_list *list);
int sb_list_at(const sb_list *list, size_t index, sb_info *info);
void sb_list_free(sb_list *list);
/* By id: a process as by sb_process_terminate(), a session as by sb_session_close().  Still
 * starting: UNSUPPORTED; unknown: NOT_FOUND.  Default wait 10 s. */
int sb_sandbox_terminate(sb_sandbox *sandbox, const char *id, const sb_wait *wait, sb_error *err);

/* Remove containers, Jobs and cgroups of owners that are dead. */
int sb_sweep(sb_sandbox *sandbox, const sb_wait *wait, uint64_t *removed, sb_error *err);

/* ---- Plans and doctor -------------------------------------------------------------------- */
typedef struct sb_plan_line {
	size_t size;
	const char *mechanism; /* "cgroup2 memory.max", "empty network namespace" */
	const char *caveat;    /* what a careful reader must know, or "" */
	const char *subject, *test; /* path, rule or value as resolved; what proves it; or "" */
	uint32_t wall, level;  /* a wall may have several lines; its level is their least */
	uint32_t required, reserved; /* 1 = asked for */
} sb_plan_line;
typedef struct sb_enforcement { /* 0 = not enforced; memory_cap.. fs_bounds hold an SB_LEVEL_* */
	size_t size;
	uint32_t net_modes;          /* bits 1 << SB_NET_*, never HOST */
	uint32_t env_allow_list, socks5, mitm, unix_sockets;
	uint32_t memory_cap, cpu_cap, disk_cap, fs_bounds, reserved;
} sb_enforcement;

/* What a backend, a pack on it, a session or a process can do. */
enum { SB_CAP_SESSIONS = 1, SB_CAP_TTY = 2, SB_CAP_SIGNAL = 4, SB_CAP_EVENTS = 8, SB_CAP_EVAL = 16,
       SB_CAP_SERVE_SOCKET = 32, SB_CAP_SERVE_HANDLER = 64, SB_CAP_NETWORK = 128,
       SB_CAP_FORK = 256, SB_CAP_FILES = 512, SB_CAP_COPY = 1024, SB_CAP_SPLIT_STREAMS = 2048,
       SB_CAP_COMPILES = 4096 };

/* Runs nothing of the command's, asks nobody, needs no privilege; what the machine can do is tried
 * out at the first call, as by sb_doctor().  A plan comes of every valid request, also for
 * a backend that is not here; sb_plan_failure() is the error its run would give, NULL = it would
 * start.  spec, command or NULL. */
int sb_explain(sb_sandbox *sandbox, const sb_spec *spec, const sb_command *command, sb_plan **plan,
	       sb_error *err);
const sb_error *sb_plan_failure(const sb_plan *plan);
const char *sb_plan_backend(const sb_plan *plan);
uint64_t sb_plan_caps(const sb_plan *plan);
int sb_plan_level(const sb_plan *plan, int wall);
void sb_plan_limits(const sb_plan *plan, sb_limits *resolved);
void sb_plan_enforcement(const sb_plan *plan, sb_enforcement *enforcement); /* NULL: 0s */
size_t sb_plan_count(const sb_plan *plan);
int sb_plan_at(const sb_plan *plan, size_t index, sb_plan_line *line);
/* What becomes of a path inside: SB_FILE_* (HIDE = absent), and the rule.  UNSUPPORTED: a short plan. */
int sb_plan_path(const sb_plan *plan, const char *path, int *access, const char **why);
/* "text", "json"; per backend "seccomp" (OCI), "seatbelt" (SBPL), "container", "job"; or NULL. */
const char *sb_plan_text(const sb_plan *plan, const char *format);
void sb_plan_free(sb_plan *plan); /* only those of sb_explain() */

typedef struct sb_check {
	size_t size;
	const char *backend, *what, *found, *remedy; /* remedy "" = nothing to do */
	uint64_t ok;
} sb_check;
/* Tries the real operations, engines and clusters included.  Default wait 10 s. */
int sb_doctor(sb_sandbox *sandbox, const sb_wait *wait, sb_report **report, sb_error *err);
size_t sb_report_count(const sb_report *report);
int sb_report_at(const sb_report *report, size_t index, sb_check *check);
/* 1 = this backend can run here; backend NULL = some backend that isolates can. */
int sb_report_usable(const sb_report *report, const char *backend);
/* What a default run on it would hold; lives with the report.  NULL = it has no plan here. */
const sb_plan *sb_report_plan(const sb_report *report, const char *backend);
const char *sb_report_json(const sb_report *report);
void sb_report_free(sb_report *report);

/* ---- One run and its result -------------------------------------------------------------- */
enum { SB_OUTCOME_EXITED = 0, SB_OUTCOME_SIGNALED, /* code tells; signal tells, and was not ours */
       SB_OUTCOME_TERMINATED,                      /* by sb_process_terminate() or the like */
       SB_OUTCOME_TIMED_OUT,
       SB_OUTCOME_BUDGET_EXCEEDED,                 /* the error tells which */
       SB_OUTCOME_UNENFORCEABLE,                   /* a limit could no longer be watched */
       SB_OUTCOME_CANCELLED,
       SB_OUTCOME_VIOLATION,                       /* a wall that kills: seccomp, a trap */
       SB_OUTCOME_LOST };                          /* engine or cluster gone, end not known */

typedef struct sb_usage { /* 0 = not known, unless the plan has the wall */
	size_t size;
	uint64_t wall_us, user_us, system_us, peak_memory_bytes;
	uint64_t memory_refused, oom_kills, pids_refused, disk_refused, fs_bytes, fs_nodes;
	uint64_t net_requests, net_sent_bytes, net_received_bytes;
} sb_usage;

/* What the end of a run took away, and what it could not. */
typedef struct sb_teardown {
	size_t size;
	uint64_t killed;  /* processes that had outlived the command */
	uint64_t left;    /* things on the host that could not be removed: sb_sweep() tries again */
	uint64_t took_us; /* from the command's end until nothing was left, /out collected */
} sb_teardown;

/* Ends at the limits, at wait's deadline (TIMED_OUT) or on cancel (CANCELLED): with a result if
 * the guest had started.  No process of the guest's is left on return.  spec or NULL. */
int sb_run(sb_sandbox *sandbox, const sb_spec *spec, const sb_command *command, const sb_wait *wait,
	   sb_result **result, sb_error *err);

int sb_result_outcome(const sb_result *result);
int sb_result_error(const sb_result *result); /* SB_ERR_*; OUTPUT_LIMIT first; 0 = none */
const sb_error *sb_result_failure(const sb_result *result); /* the same with words; or NULL */
int sb_result_code(const sb_result *result); /* -1 unless EXITED */
int sb_result_signal(const sb_result *result); /* 0 unless SIGNALED */
const void *sb_result_output(const sb_result *result, int stream, size_t *len);
int sb_result_truncated(const sb_result *result);
/* Bytes left out of a stream; *at (or NULL) = where in the kept ones: their number for HEAD. */
uint64_t sb_result_dropped(const sb_result *result, int stream, size_t *at);
int sb_result_incomplete(const sb_result *result); /* 1 = the end of the output was lost */
const sb_tree *sb_result_files(const sb_result *result); /* of /out; regular files only */
/* Protected paths that were absent at the start and are there now; ends in NULL. */
const char *const *sb_result_appeared(const sb_result *result);
void sb_result_usage(const sb_result *result, sb_usage *usage);
void sb_result_teardown(const sb_result *result, sb_teardown *teardown);
const char *sb_result_backend(const sb_result *result);
/* Of an evaluation: the last expression's value as the language writes it, at most 64 KiB, "" = none;
 * what was not caught, type and message; 1 = state was lost before it; 1 = PARTIAL code that goes on. */
const char *sb_result_value(const sb_result *result);
const char *sb_result_exception(const sb_result *result);
int sb_result_restarted(const sb_result *result);
int sb_result_unfinished(const sb_result *result);
const sb_plan *sb_result_plan(const sb_result *result);
const char *sb_result_json(const sb_result *result); /* stdout, stderr, exit_code, ... */
void sb_result_free(sb_result *result);

/* ---- Sessions ---------------------------------------------------------------------------- */
/*
 * Walls that stay up.  Open returns when they stand; what is wrong with them is told there, what is
 * wrong with a command by spawn, which returns once the program runs.  Processes of one session
 * share namespaces, /tmp, /work and 127.0.0.1; a session ends with its last handle, with its sandbox
 * object, or with the application, and everything inside with it.
 *
 * All open sessions of a sandbox object are served by one thread, started by the first spawn: it
 * reads outputs into the logs, gives input, keeps the clocks and learns of ends.  Callbacks of their
 * commands run on it.  A session takes three or four descriptors, a running process four (a
 * terminal: three).
 */
enum { SB_SESSION_AUTO_RESTART = 1 }; /* eval goes on, with nothing left, where it ended */
typedef struct sb_session_options {
	size_t size;
	const char *id;       /* unique in the sandbox; NULL = "sess_" and 128 random bits */
	const char *language; /* an interpreter for eval, started at once; NULL = spawn only */
	uint64_t idle_ms, lifetime_ms; /* then it is closed; under a manager: 5 min, 1 h, else none */
	uint64_t max_evals;   /* after so many, eval gives SESSION_CLOSED; 0 = any number */
	uint64_t flags;       /* SB_SESSION_* */
} sb_session_options;

/* Policy is fixed here for all that happens in it.  Limits hold for the session as a whole; wall and
 * output for each command, and CPU time, which those that run at once have together.  spec, opts or
 * NULL.  Default wait 60 s. */
int sb_session_open(sb_sandbox *sandbox, const sb_spec *spec, const sb_session_options *opts,
		    const sb_wait *wait, sb_session **session, sb_error *err);
const char *sb_session_id(const sb_session *session);
const char *sb_session_language(const sb_session *session); /* "" = none */
const sb_plan *sb_session_plan(const sb_session *session);
/* BUSY: a process or an evaluation runs in it.  INPUT: the code waits for sb_session_answer().
 * KILLED: its walls or its interpreter are gone, whoever took them down. */
enum { SB_STATE_IDLE = 0, SB_STATE_BUSY, SB_STATE_INPUT, SB_STATE_KILLED, SB_STATE_CLOSED };
int sb_session_state(const sb_session *session);
void sb_session_usage(const sb_session *session, sb_usage *usage);

/* argv only.  Empty argv: INVALID.  An id in use: CONFLICT.  No terminal here: UNSUPPORTED.  A
 * program that is not there or may not be run: as for sb_run(), and nothing is listed.  Its limits
 * are the session's; wall_ms is its lifetime; with SB_OUT_STOP the output caps end it, else the
 * oldest output gives way (log_bytes).  What it leaves running when it ends is killed, unless
 * SB_COMMAND_DETACHED.  Default wait 60 s. */
int sb_session_spawn(sb_session *session, const sb_command *command, const sb_wait *wait,
		     sb_process **process, sb_error *err);

/*
 * Code in the interpreter of a session with a language: one global scope, so that what one evaluation
 * defines the next one has.  command: code, and none or some of language (the session's), files (for
 * /in), on_output, PARTIAL, and input: BYTES, CALLBACK, or OPEN, which sb_session_answer() gives; a
 * language whose console cannot ask (all but Python) takes BYTES, and CALLBACK is read to its end.
 *
 * The value of a last expression is written to standard output in the language's own form, and is in
 * the result; an exception is outcome EXITED, code 1, with the traceback on standard error.  What the
 * guest left in /out is in the result, and /out is empty afterwards; /work stays.
 *
 * wall_ms, cpu_ms and the output caps hold for each evaluation, all other limits for the session as a
 * whole; the CPU time of what an evaluation left running counts for the next one.  A limit, wait's end
 * or a cancel ends the session: there is a result, with what was written until then, whose failure is
 * SESSION_KILLED with the reason as its cause; later calls give SESSION_KILLED.  An interpreter that
 * exits is a result with its own end and the failure SESSION_CLOSED; one that a signal ends is
 * SIGNALED and SESSION_KILLED, one that breaks the protocol VIOLATION and killed.  With AUTO_RESTART
 * the failure is the reason itself, and the next evaluation finds everything new (/work, too).  The
 * usage in the result is the evaluation's own: its wall time, and the CPU time of the interpreter and
 * of children that it has waited for, where the backend knows it ("wasm" does not).
 *
 * Calls take turns: another waits for as long as its own wait says; while code waits for input it is
 * a CONFLICT.  Code shares its memory with what reports of it: it can lie about its value, exception
 * and code, but not about exits, limits or usage, and it cannot reach another evaluation's result.
 */
int sb_session_eval(sb_session *session, const sb_command *command, const sb_wait *wait,
		    sb_result **result, sb_error *err);
/* A line for code in SB_STATE_INPUT, its end added where it has none; len 0 = the input has ended.
 * At most 1 MiB.  Nobody waits for it: CONFLICT. */
int sb_session_answer(sb_session *session, const void *data, size_t len, const sb_wait *wait,
		      sb_error *err);
/* Ends the evaluation that runs, as Ctrl-C does at the language's console; none runs: 0. */
int sb_session_interrupt(sb_session *session, const sb_wait *wait, sb_error *err);
/* Everything as after open: fresh walls, a fresh interpreter, no process, no file.  Also where the
 * session was killed.  Default wait 60 s. */
int sb_session_reset(sb_session *session, const sb_wait *wait, sb_error *err);

/*
 * A branch of a session with a language: one more session, in walls of its own, whose interpreter goes on
 * where this one rests, with all that it holds (variables, imports, files, open ones too); from then on the
 * two share nothing but folders of the host that are shown.  Only its random numbers are its own.  Policy,
 * plan and limits are those of the session, held for each anew; evaluations, output and usage are counted
 * from here on.  The branch passes the gates as at sb_session_open(), and is closed and freed like any
 * session, before or after this one.
 *
 * opts or NULL: id; language, the session's or NULL; what is 0 of idle_ms, lifetime_ms and max_evals is the
 * session's, and counts anew; flags are added to the session's.  Under a manager it is the manager's, too,
 * and within its cap.  A reset, or AUTO_RESTART, gives a branch a new, empty interpreter, as it does any.
 *
 * The session is idle: an evaluation, a question for input or a process in it is a CONFLICT, and so are an
 * open file of a folder that is shown, and an id in use.  Until the branch is there the session is BUSY:
 * evaluations wait for their turn, and so does another branch; closing it ends the making, SESSION_CLOSED.
 * SESSION_KILLED, SESSION_CLOSED: it has no interpreter any more.  UNSUPPORTED: it has no language, or its
 * backend (SB_CAP_FORK; "wasm" has it) makes no branches.  Whatever fails leaves the session as it was and
 * nothing of the branch.  Default wait 60 s.
 */
int sb_session_fork(sb_session *session, const sb_session_options *opts, const sb_wait *wait,
		    sb_session **branch, sb_error *err);

/* Files of an open session, whatever runs in it.  Absolute paths, where the guest may write (elsewhere
 * FORBIDDEN); with its rights, and no link is followed (PATH_TRAVERSAL).  put: one file, mode 0644, its
 * directories made; it replaces one that is there, or fails and leaves that as it was; no room in the
 * session's quota: FS_QUOTA.  get: a file is a tree of one, by its last element; of a directory what is
 * regular in it.  remove: with all that is in it; a place of the sandbox's own (/work, /tmp) is emptied.
 * Not there: NOT_FOUND.  Without namespaces, or files: UNSUPPORTED.  Default wait 10 s. */
int sb_session_put(sb_session *session, const char *path, const void *data, size_t len,
		   const sb_wait *wait, sb_error *err);
int sb_session_get(sb_session *session, const char *path, const sb_wait *wait, sb_tree **tree,
		   sb_error *err);
int sb_session_remove(sb_session *session, const char *path, const sb_wait *wait, sb_error *err);

/* Kills what runs in it, takes the walls down.  Idempotent.  Default wait 10 s. */
int sb_session_close(sb_session *session, const sb_wait *wait, sb_error *err);
/* Drops this handle; the last one closes. */
void sb_session_free(sb_session *session);

/* ---- Manager and pool -------------------------------------------------------------------- */
typedef struct sb_manager_options {
	size_t size;
	uint64_t max_sessions;  /* 64 */
	uint64_t idle_ms, lifetime_ms, reap_ms; /* 5 min, 1 h, 10 s; a session may ask for less */
	const sb_limits *default_limits;
	sb_pool *pool;          /* where new sessions come from, if they fit; or NULL; outlives it */
	uint64_t session_flags; /* for every session: SB_SESSION_AUTO_RESTART */
} sb_manager_options;
/* Many live sessions of one sandbox object.  One that is idle (nothing runs in it, and no call is under
 * way) or has lived for too long is killed and closed, at most reap_ms late; its user's calls then give
 * SESSION_CLOSED.  A thread sleeps until the first can be due.  opts or NULL. */
int sb_manager_new(sb_sandbox *sandbox, const sb_manager_options *opts, sb_manager **manager,
		   sb_error *err);
/* At the cap: TOO_MANY_SESSIONS; shut down: MANAGER_CLOSED; an id in use: CONFLICT.  The pool's sessions fit
 * whoever asks for nothing of his own: spec NULL, no id, no default_limits, and the language, if any,
 * is theirs.  Else as sb_session_open(). */
int sb_manager_create(sb_manager *manager, const sb_spec *spec, const sb_session_options *opts,
		      const sb_wait *wait, sb_session **session, sb_error *err);
/* One more handle of it, to be freed like any.  Absent or closed: SESSION_NOT_FOUND. */
int sb_manager_get(sb_manager *manager, const char *id, sb_session **session, sb_error *err);
int sb_manager_close(sb_manager *manager, const char *id, const sb_wait *wait, sb_error *err);
size_t sb_manager_count(const sb_manager *manager);
int sb_manager_list(sb_manager *manager, sb_list **list, sb_error *err);
/* Kills what runs in all of them, then closes one after the other; TIMEOUT: some are not closed yet, and
 * another call goes on.  No session is opened from then on.  Idempotent.  Default wait 10 s. */
int sb_manager_shutdown(sb_manager *manager, const sb_wait *wait, sb_error *err);
void sb_manager_free(sb_manager *manager); /* shuts down */

/* Bring a returned session back to its first state.  0 = it is clean, else it is closed. */
typedef int (*sb_pool_reset_fn)(void *user, sb_session *session, const sb_wait *wait);
/* NULL = sb_session_open() with the pool's own spec and session options. */
typedef int (*sb_pool_make_fn)(void *user, const sb_wait *wait, sb_session **out, sb_error *err);

typedef struct sb_pool_options {
	size_t size;
	const sb_spec *spec;
	const sb_session_options *session;
	sb_pool_make_fn make;   /* one of spec and make is needed */
	sb_pool_reset_fn reset; /* NULL = one use each */
	void *user;
	uint64_t max_size, max_idle_ms; /* ready ones: 5; 5 min, looked at when one is taken or given back */
} sb_pool_options;
/* Sessions that stand ready: their walls are up, and nothing runs in them yet.  max_size bounds those, not
 * the ones in use.  No thread: what is not warmed up is opened when it is taken. */
int sb_pool_new(sb_sandbox *sandbox, const sb_pool_options *opts, sb_pool **pool, sb_error *err);
/* Opens sessions until `count` are ready, or max_size; the first that cannot be opened ends it.  Default
 * wait, of this and the next, 60 s. */
int sb_pool_warm(sb_pool *pool, size_t count, const sb_wait *wait, sb_error *err);
/* The newest ready one that is alive, else a new one.  Its handle goes back by sb_pool_release(); one that is
 * only freed is closed at the next call on the pool. */
int sb_pool_acquire(sb_pool *pool, const sb_wait *wait, sb_session **session, sb_error *err);
/* Ready again if `reset` says that it is clean and nobody has another handle of it; else, or if enough are
 * ready, closed.  Consumes the session; one that is not from here, or given back before: INVALID, not consumed. */
int sb_pool_release(sb_pool *pool, sb_session *session, const sb_wait *wait, sb_error *err);
size_t sb_pool_size(const sb_pool *pool);
size_t sb_pool_in_use(const sb_pool *pool);
void sb_pool_free(sb_pool *pool); /* closes what is ready; what is in use, once released */

/* ---- Output logs ------------------------------------------------------------------------- */
/* One append-only log: a cursor is the absolute number of bytes before it, over both streams.
 * Readable by many, from any retained cursor, until its owner is closed (PROCESS_CLOSED).  At most
 * log_bytes are kept, bookkeeping included; the oldest give way. */
typedef struct sb_chunk {
	size_t size;
	uint64_t cursor, next; /* of its first byte; to go on from */
	size_t len;
	uint32_t stream, eof;  /* SB_STDOUT..; 1 = ended, and all before next was given */
} sb_chunk;

/* Waits for at least one byte after `cursor`, or the end.  Dropped there: SEQUENCE_GAP, and trying
 * again will not help (sb_output_range() tells where to go on); beyond the end, or cap 0: INVALID.
 * A chunk is of one stream; it may end within a character. */
int sb_output_read(sb_output *output, uint64_t cursor, void *buf, size_t cap, const sb_wait *wait,
		   sb_chunk *chunk, sb_error *err);
int sb_output_range(sb_output *output, uint64_t *oldest, uint64_t *end, sb_error *err);
/* Readable while there is more than sb_output_read() has yet given to anyone, or the end.  The
 * output's own, to poll only; -1 = no descriptor left. */
int sb_output_fd(const sb_output *output);

enum { SB_EVENT_OUTPUT = 0, SB_EVENT_EXITED, SB_EVENT_CLOSED, SB_EVENT_LAG };
typedef struct sb_event {
	size_t size;
	uint64_t cursor;   /* OUTPUT: its first byte; LAG: first missed byte; else the end */
	const void *data;  /* until the next call on this watch */
	size_t len;
	uint32_t what, stream; /* SB_EVENT_*, SB_STDOUT.. */
	uint32_t replay, reserved; /* 1 = older than the watch: a terminal must not answer it */
	int32_t outcome, code, signal_number, error; /* EXITED */
} sb_event;

/* A reader with a queue of its own: from `cursor` (0 = all that is retained), then live.  A full
 * queue (queue_bytes; 0 = 1 MiB): one LAG with the first byte not queued, after which next gives
 * SB_ERR_CLOSED; sb_output_read() goes on from there.  Output, then EXITED, then CLOSED once its
 * process is closed, and that is the last.  Used by one thread at a time. */
int sb_watch_new(sb_output *output, uint64_t cursor, uint64_t queue_bytes, sb_watch **watch,
		 sb_error *err);
int sb_watch_next(sb_watch *watch, const sb_wait *wait, sb_event *event, sb_error *err);
int sb_watch_fd(const sb_watch *watch); /* readable while sb_watch_next() would not wait */
void sb_watch_close(sb_watch *watch); /* any thread, idempotent: next gives CLOSED */
void sb_watch_free(sb_watch *watch);

/* ---- Processes --------------------------------------------------------------------------- */
typedef struct sb_exit {
	size_t size;
	int32_t outcome, error;       /* SB_OUTCOME_*, SB_ERR_* or 0 */
	int32_t code, signal_number;  /* -1 unless EXITED; 0 unless SIGNALED */
} sb_exit;

/* Ours, not the system's numbers. */
enum { SB_SIGNAL_INTERRUPT = 1, SB_SIGNAL_TERMINATE, SB_SIGNAL_KILL, SB_SIGNAL_HANGUP,
       SB_SIGNAL_QUIT, SB_SIGNAL_USER1, SB_SIGNAL_USER2, SB_SIGNAL_STOP, SB_SIGNAL_CONTINUE };

const char *sb_process_id(const sb_process *process);
int64_t sb_process_pid(const sb_process *process); /* 0 = none on this host */
uint64_t sb_process_caps(const sb_process *process); /* SB_CAP_TTY, _SIGNAL, _EVENTS */
sb_output *sb_process_output(sb_process *process);
void sb_process_usage(const sb_process *process, sb_usage *usage);
/* *written (or NULL) tells how much was taken, also with AGAIN: nothing is written behind the
 * caller's back.  Writes of two threads at once may mix.  Once the process has ended or has closed
 * its input, and after close, write, resize and signal give PROCESS_CLOSED.  A terminal that
 * collects lines keeps 4095 bytes of one: what is longer is INVALID, after what fits. */
int sb_process_write(sb_process *process, const void *data, size_t len, const sb_wait *wait,
		     size_t *written, sb_error *err);
/* A terminal: UNSUPPORTED.  Closed already: 0. */
int sb_process_close_input(sb_process *process, const sb_wait *wait, sb_error *err);
/* Pipes: UNSUPPORTED.  0 rows or columns: INVALID. */
int sb_process_resize(sb_process *process, uint16_t rows, uint16_t cols, const sb_wait *wait,
		      sb_error *err);
/* INTERRUPT is Ctrl-C on a terminal, else to the whole group; the process may go on.  One that
 * KILL or TERMINATE ends has been terminated, as by the next. */
int sb_process_signal(sb_process *process, int signal, const sb_wait *wait, sb_error *err);
/* TERM to all of it, KILL after limits.grace_ms or at wait's end.  Ended already: 0. */
int sb_process_terminate(sb_process *process, const sb_wait *wait, sb_error *err);
/* The same answer each time, also after close.  Ends at exit, not at the end of inherited pipes. */
int sb_process_wait(sb_process *process, const sb_wait *wait, sb_exit *exit, sb_error *err);
/* Kills, reaps, drops the log, leaves the list.  Idempotent.  Default wait 10 s. */
int sb_process_close(sb_process *process, const sb_wait *wait, sb_error *err);
void sb_process_free(sb_process *process); /* closes, drops the handle */

/* ---- Trees: files in memory with live quotas ---------------------------------------------- */
enum { SB_NODE_FILE = 1, SB_NODE_DIR, SB_NODE_REMOVED, SB_NODE_LINK_OUT };
/* Why something that a guest left in /out is not in the result's tree: a link, which is never
 * followed; no regular file; deeper than 64 directories or more than 4096 bytes of path; not to be
 * read. */
enum { SB_LEFT_LINK = 1, SB_LEFT_SPECIAL, SB_LEFT_TOO_DEEP, SB_LEFT_UNREADABLE, SB_LEFT_COUNT };
typedef struct sb_node {
	size_t size;
	const char *path;  /* clean: relative, "/" between, no "." or ".."; of a result: the guest's
	                      own bytes, which may be ":", "\\", controls, or no UTF-8 */
	const void *data;  /* until the path is written or removed */
	size_t len;
	uint32_t what, mode; /* LINK_OUT: a link that led outside, given as its text; 0644 */
} sb_node;
int sb_tree_new(uint64_t max_bytes, uint64_t max_nodes, sb_tree **tree, sb_error *err);
/* Data is copied, parents are made, a failed write changes nothing. */
int sb_tree_write(sb_tree *tree, const char *path, const void *data, size_t len, sb_error *err);
int sb_tree_mkdir(sb_tree *tree, const char *path, sb_error *err); /* parents too */
int sb_tree_remove(sb_tree *tree, const char *path, sb_error *err); /* absent is fine */
/* The path as it stands in the tree, or else its clean form. */
int sb_tree_find(const sb_tree *tree, const char *path, sb_node *node, sb_error *err);
size_t sb_tree_count(const sb_tree *tree);
uint64_t sb_tree_bytes(const sb_tree *tree);
int sb_tree_at(const sb_tree *tree, size_t index, sb_node *node); /* sorted by path */
uint64_t sb_tree_left_out(const sb_tree *tree, int why); /* SB_LEFT_*; 0 = for any reason */
void sb_tree_free(sb_tree *tree); /* not those that a getter returned */
/* The clean form into buf; *len without its NUL.  INVALID_PATH: "..", control characters, bad
 * UTF-8, a drive letter, more than 4096 bytes, 255 in an element, or 64 elements. */
int sb_path_clean(const char *path, char *buf, size_t cap, size_t *len, sb_error *err);

/* ---- Names: stable lower-case words, as in documents and JSON; "?" for an unknown number ---- */
const char *sb_code_name(int value); int sb_code_parse(const char *word, int *value);
const char *sb_kind_name(int value); int sb_kind_parse(const char *word, int *value);
const char *sb_wall_name(int value); int sb_wall_parse(const char *word, int *value);
const char *sb_level_name(int value); int sb_level_parse(const char *word, int *value);
const char *sb_profile_name(int value); int sb_profile_parse(const char *word, int *value);
const char *sb_outcome_name(int value); int sb_outcome_parse(const char *word, int *value);
const char *sb_stream_name(int value); int sb_stream_parse(const char *word, int *value);
const char *sb_event_name(int value); int sb_event_parse(const char *word, int *value);
const char *sb_signal_name(int value); int sb_signal_parse(const char *word, int *value);
const char *sb_net_mode_name(int value); int sb_net_mode_parse(const char *word, int *value);
const char *sb_action_name(int value); int sb_action_parse(const char *word, int *value);
const char *sb_env_base_name(int value); int sb_env_base_parse(const char *word, int *value);
const char *sb_access_name(int value); int sb_access_parse(const char *word, int *value);
const char *sb_left_name(int value); int sb_left_parse(const char *word, int *value);
const char *sb_state_name(int value); int sb_state_parse(const char *word, int *value);
const char *sb_audit_name(int value); int sb_audit_parse(const char *word, int *value);
const char *sb_cap_name(int value); int sb_cap_parse(const char *word, int *value);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif /* SANDBOX_SANDBOX_H */

/* Worked example: Python, no network, 64 MiB; where nothing can hold the memory, sb_run() says so.
 *
 *	static const char code[] = "print(6 * 7)";
 *	const sb_limits limits = { .size = sizeof limits, .memory_bytes = 64 << 20 };
 *	const sb_network nothing = { .size = sizeof nothing, .mode = SB_NET_DENY_ALL };
 *	const sb_spec spec = { .size = sizeof spec, .limits = &limits, .network = &nothing };
 *	const sb_command command = { .size = sizeof command, .language = "python",
 *				     .code = code, .code_len = sizeof code - 1 };
 *	sb_sandbox *sandbox = NULL;
 *	sb_result *result = NULL;
 *	sb_error err;
 *	size_t len;
 *
 *	if (sb_sandbox_new(NULL, NULL, &sandbox, &err) < 0 ||
 *	    sb_run(sandbox, &spec, &command, NULL, &result, &err) < 0)
 *		return fprintf(stderr, "%s: %s\n", err.where, err.message), 125;
 *	const void *out = sb_result_output(result, SB_STDOUT, &len);
 *	fwrite(out, 1, len, stdout);
 *	printf("%s %d\n", sb_outcome_name(sb_result_outcome(result)), sb_result_code(result));
 *	sb_result_free(result);
 *	sb_sandbox_free(sandbox);
 */
