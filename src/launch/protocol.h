/* SPDX-License-Identifier: MIT */
/*
 * protocol.h - the control protocol between a host (libsandbox) and sb-launch.
 *
 * One SOCK_SEQPACKET pair per box.  The host keeps one end; the other is descriptor 3 of sb-launch.
 * The supervisor reads PLAN from it, starts pid 1 of the sandbox, and from then on only watches it
 * for end of file (poll, events 0); pid 1 reads everything after PLAN and answers on the same
 * socket.  End of file, either way: kill everything.
 *
 *   host -> PLAN [PUT ...] SPAWN ...           may be sent at once: pid 1 reads SPAWN only when
 *                                              every wall stands
 *   host <- READY | FAILED                     FAILED also for a PUT or SPAWN that did not start
 *   host <- SPAWNED EXITED                     per SPAWN, by id; LIMIT when a watcher ended it
 *   host -> SIGNAL RESIZE STOP DIAL            host <- DIALED
 *   host -> RELAY                              a record for a guest, behind the files sent before it
 *   host -> RENEW                              the budget of CPU time counts from here on; it does so by itself
 *                                              with a SPAWN while no other runs
 *   host -> OPEN REMOVE                        host <- PLACED | FAILED, by id, as for a PUT with one;
 *                                              and PLACED for a SIGNAL that asks
 *   host <- GONE                               of the supervisor: nothing is left; then end of file
 *
 * Both sides are the same build (build id in PLAN), so structures travel as they are.  Each message
 * is one record: a fixed part, then for PLAN a table of mounts and an arena of strings.  Decoding
 * is bounded and total: lp_decode_*() look at every offset, count and kind before anyone uses it,
 * and are fuzzed.  Descriptors ride along (SCM_RIGHTS) in the order that the record says.
 */
#ifndef SB_LAUNCH_PROTOCOL_H
#define SB_LAUNCH_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define LP_VERSION 1u
#define LP_MAX_MESSAGE 65536u     /* bytes of one record */
#define LP_MAX_FDS 200u           /* descriptors with one record (SCM_MAX_FD is 253) */
#define LP_MAX_MOUNTS 384u
#define LP_MAX_STRINGS 40960u     /* bytes of the arena of PLAN */
#define LP_MAX_ARGS (8u << 20)    /* bytes of argv + env of one SPAWN */
#define LP_MAX_PUT (1u << 30)     /* bytes of one PUT archive */
#define LP_INLINE_ARGS 4096u      /* so many of them come with the SPAWN itself */
#define LP_MAX_RELAY 4096u        /* bytes of the record in one RELAY */
#define LP_MAX_SPAWNS 64u         /* processes running at once in one box */
#define LP_MAX_CGROUPS 8u
#define LP_CONTROL_FD 3
#define LP_SELF_NAME "sandbox: supervisor" /* argv[0] with which the command starts itself as sb-launch */

enum { LP_PLAN = 1, LP_PUT, LP_SPAWN, LP_SIGNAL, LP_RESIZE, LP_STOP, LP_DIAL, LP_RELAY,
       LP_OPEN, LP_REMOVE, LP_RENEW,
       LP_READY = 64, LP_FAILED, LP_SPAWNED, LP_EXITED, LP_LIMIT, LP_DIALED, LP_PLACED,
       LP_GONE };

typedef struct lp_head {
	uint32_t version, kind;
	uint32_t bytes;               /* of the whole record */
	uint32_t id;                  /* of the SPAWN it is about; 0 = the box */
} lp_head;

/* ---- PLAN ------------------------------------------------------------------------------- */

/* Steps.  Each that is set is mandatory: one that cannot be done ends in FAILED, before anything
 * of the guest runs.  A test-only plan leaves one out: that is the control of a wall's test. */
enum { LP_USERNS = 1 << 0,        /* user namespace, maps from outside; nested one at the end */
       LP_PIDNS = 1 << 1, LP_MOUNTNS = 1 << 2, LP_IPCNS = 1 << 3, LP_UTSNS = 1 << 4,
       LP_CGROUPNS = 1 << 5, LP_NETNS = 1 << 6,
       LP_LO_UP = 1 << 7,         /* loopback of the network namespace up */
       LP_ROOT = 1 << 8,          /* the mount table, pivot_root, old root off */
       LP_MASK_PROC = 1 << 9,     /* /proc/sys read-only, kcore and the like masked */
       LP_NO_CAPS = 1 << 10,      /* capabilities and bounding set dropped */
       LP_NO_NEW_PRIVS = 1 << 11,
       LP_UNDUMPABLE = 1 << 12,   /* pid 1 refuses ptrace and /proc/1/mem */
       LP_LANDLOCK = 1 << 13,     /* rules come of the mount table */
       LP_SECCOMP = 1 << 14,
       LP_SESSION = 1 << 15,      /* setsid: the caller's terminal is out of reach */
       LP_CLOSE_FDS = 1 << 16,
       LP_SUBREAPER = 1 << 17,    /* no namespaces: backend process */
       LP_SAMPLE = 1 << 18,       /* watch memory_bytes and cpu_us over /proc */
       LP_NESTED_USERNS = 1 << 19, /* the guest sits in a user namespace below that of the mounts */
       LP_LANDLOCK_SCOPE = 1 << 20, /* abstract sockets, signals (ABI 6); set where supported */
       LP_OWN_GROUP = 1 << 21,    /* drop supplementary groups (needs root) */
       LP_IN_PLACE = 1 << 22,     /* with LP_SUBREAPER: behind landlock and the filter for a guest
                                     without namespaces, whose questions the supervisor answers */
       LP_HOST_NET = 1 << 23,     /* that filter allows the host's network */
       LP_WORKER = 1 << 24 };     /* with LP_SECCOMP: the filter of a worker, which holds the walls of network
                                     and IPC without namespaces for them */

#define LP_NAMESPACES                                                                              \
	((uint64_t)(LP_USERNS | LP_PIDNS | LP_MOUNTNS | LP_IPCNS | LP_UTSNS | LP_CGROUPNS | LP_NETNS))

enum { LP_CG_NONE = 0, LP_CG_V1, LP_CG_V2,
       LP_CG_SCOPE };             /* version 2, in a scope that sb-launch asks the user's systemd for */
/* v1: what TCP and UDP may buffer beside a memory limit. */
#define LP_SOCKET_BYTES(bytes) ((bytes) / 4 < (64u << 20) ? (bytes) / 4 : (64u << 20))
/* What a CPU budget may be exceeded by before the kernel stops the group for the rest of a second: so much that
 * the watcher sees that it is exceeded. */
#define LP_LEASE_US 10000u
enum { LP_CTL_MEMORY = 1, LP_CTL_PIDS = 2, LP_CTL_CPU = 4, LP_CTL_CPUACCT = 8 }; /* bits */

typedef struct lp_cgroup {        /* a directory to make, limit, and remove at the end */
	uint32_t parent;              /* string: absolute path of the parent, "" is invalid; LP_CG_SCOPE: of
	                                 the socket of the bus */
	uint32_t controllers;         /* LP_CTL_* that this hierarchy carries; v2: all wanted */
} lp_cgroup;

/* Rows are executed in order, inside pid 1, as the outer namespace's owner, on a detached tree. */
enum { LP_M_DIR = 1,              /* mkdir -p of target in the skeleton, mode = arg */
       LP_M_SYMLINK,              /* target -> source (text) */
       LP_M_FILE,                 /* generated file, source = its text, mode = arg */
       LP_M_BIND,                 /* source (host path or fd) at target; made if absent */
       LP_M_SCRATCH,              /* part of the one sized tmpfs: directory `source` of it (one
                                     element) at target, mode = arg */
       LP_M_TMPFS,                /* an own one of arg bytes (0 = 64 KiB) */
       LP_M_PROC, LP_M_DEVPTS,
       LP_M_DEVICE,               /* bind of a host device node */
       LP_M_HIDE,                 /* target, which exists by now: a file gives EACCES, a directory is
                                     empty and unwritable */
       LP_M_PROTECT,              /* target, which exists by now, read-only */
       LP_M_REMOUNT_RO };         /* the skeleton itself; last row */
enum { LP_F_READONLY = 1, LP_F_NOEXEC = 2, LP_F_NODEV = 4,
       LP_F_OPTIONAL = 8,         /* absent source or target: skip the row */
       LP_F_IDMAP = 16,           /* mapped by the supervisor: on-disk outer id -> uid_outside */
       LP_F_FD = 32,              /* source_fd names what was opened by the host; without root it is
                                     opened again by path and must be the same file */
       LP_F_NOSUBMOUNTS = 64,     /* not recursive */
       LP_F_WRITE = 128,          /* landlock: writing below target is allowed */
       LP_F_DIR = 256 };          /* source is a directory: saves a look where it is bound by path */

typedef struct lp_mount {
	uint16_t kind, flags;
	int32_t source_fd;            /* index among PLAN's descriptors, -1 = none */
	uint32_t source, target;      /* strings, 0 = "" (the arena begins with a NUL) */
	uint64_t arg;
} lp_mount;

typedef struct lp_plan {
	lp_head head;
	char build_id[48];            /* NUL-padded */
	uint64_t steps;               /* LP_* */
	uint32_t uid_outside, gid_outside; /* kernel ids of the guest */
	uint32_t uid_outer, gid_outer; /* the same inside the outer namespace */
	uint32_t uid_inside, gid_inside; /* as the guest sees itself */
	uint64_t tmpfs_bytes, tmpfs_nodes; /* of the scratch tmpfs, ours included; 0 = no scratch */
	uint64_t memory_bytes, pids, cpu_us, cpu_millicores; /* SB_UNLIMITED = none; pids is also set
	                                 as RLIMIT_NPROC when there is no pids controller */
	uint64_t open_files, user_procs, file_bytes; /* rlimits; SB_UNLIMITED = leave */
	uint64_t sample_us;           /* LP_SAMPLE: longest gap between two looks */
	uint32_t cgroup_kind, cgroup_count;
	lp_cgroup cgroups[LP_MAX_CGROUPS];
	uint32_t hostname;            /* string; 0 = leave */
	uint32_t cgroup_name;         /* string: name of the directories to make */
	uint32_t seccomp_extra_fd;    /* reserved: 0 */
	uint32_t fd_count;            /* descriptors that ride along */
	uint32_t mount_count, string_bytes;
	/* lp_mount mounts[mount_count]; char strings[string_bytes]; */
} lp_plan;

/* ---- PUT: files into the scratch tmpfs before a SPAWN ------------------------------------ */
/* One descriptor: a sealed memfd of `archive_bytes`: records { lp_put_entry, path, data } one behind
 * the other, path and data each padded to LP_PUT_ALIGN; path_len counts the NUL that ends it.  Paths
 * are clean and relative to the scratch root ("in/a.txt"), parents are made.  No space or inode:
 * FAILED{where "put", errno ENOSPC}.  With an id it is answered, by PLACED or FAILED of that id, and is no
 * condition of what follows; a file that does not fit leaves what was there before.  from_root: the paths
 * are relative to the root that the guest sees, where it may write; with an id only. */
#define LP_PUT_ALIGN 8u
typedef struct lp_put_entry { uint32_t path_len, mode; uint64_t data_len; } lp_put_entry;
typedef struct lp_put { lp_head head; uint64_t archive_bytes; uint32_t from_root, reserved; } lp_put;

/* ---- SPAWN ------------------------------------------------------------------------------- */
enum { LP_S_TTY = 1,              /* a terminal of the box's own /dev/pts, the controlling one: it is
                                     in, out and err, whatever came for them; its master rides
                                     with SPAWNED */
       LP_S_CONTROL = 2,          /* a control descriptor follows; it becomes 3 in the guest */
       LP_S_DETACHED = 4,         /* what it leaves running stays until STOP or end of file */
       LP_S_CODE_FD = 8,          /* a further descriptor becomes the guest's lowest free one, read
                                     only: for backends without a scratch tmpfs */
       LP_S_LAST = 16,            /* no SPAWN comes behind it: the box ends with EXITED by itself */
       LP_S_INLINE = 32,          /* the args block follows the record, and no memfd comes */
       LP_S_RENEWED = 64,         /* its budget of CPU time is renewed (RENEW): RLIMIT_CPU, which cannot be,
                                     is not set */
       LP_S_PIDFD = 128,          /* SPAWNED is to bring one, where pid 1 does not know the host's number */
       LP_S_HELD = 256 };         /* what it leaves is a process of ours that sleeps and has its memory: killed
                                     before EXITED is sent, so that nothing runs any more, but not waited for;
                                     in a pid namespace, and with LP_S_LAST */
/* Descriptors, in order: args memfd, exit pipe (write end; closed when EXITED is sent, or when pid 1
 * dies), in, out, err, [control], [code].  The args block: u32 argc, u32 envc, then argc + envc
 * NUL-ended strings; the first is the program: with a "/" as it is, else looked up in the PATH of
 * that environment. */
typedef struct lp_spawn {
	lp_head head;
	uint32_t flags, args_bytes;
	uint16_t rows, cols;
	char cwd[4096 - 32];
} lp_spawn;

/* The system's number; whole_box 1 = everything inside.  `answer` not 0: PLACED of that id tells that the
 * signal has been sent. */
typedef struct lp_signal {
	lp_head head;
	int32_t signo;
	uint32_t whole_box, answer, reserved;
} lp_signal;
typedef struct lp_resize { lp_head head; uint16_t rows, cols; uint32_t reserved; } lp_resize;
typedef struct lp_stop { lp_head head; uint64_t grace_ms; } lp_stop; /* TERM all, KILL after it, end */
typedef struct lp_dial { lp_head head; uint32_t port, family; } lp_dial;

/* Descriptors: a SOCK_SEQPACKET socket, and perhaps one more.  pid 1 sends the record (`len` bytes behind
 * this part), and the other descriptor with it, into that socket, without waiting: so a guest that holds
 * its other end reads it when what was PUT before is in place.  After a PUT that failed nothing is sent. */
typedef struct lp_relay { lp_head head; uint32_t len, reserved; } lp_relay;

/* Clean, relative to the root that the guest sees; no element may be a link.  OPEN: a file or a directory,
 * to be read: its descriptor comes with PLACED.  REMOVE: with all that is in it; a mount is only emptied. */
typedef struct lp_renew { lp_head head; } lp_renew;

typedef struct lp_path { lp_head head; char path[4096 - 16]; } lp_path;

/* ---- Answers ------------------------------------------------------------------------------ */
/* READY carries one descriptor, the root of the scratch tmpfs, if there is one. */
typedef struct lp_ready {
	lp_head head;
	uint64_t held;                /* LP_* steps done */
	uint32_t landlock_abi, has_scratch;
	int32_t pid1;                 /* in the host's pid namespace; 0 = not known */
	uint32_t reserved;
} lp_ready;
typedef struct lp_failed {
	lp_head head;
	int32_t os_errno;
	uint32_t exec;                /* 1 = a SPAWN whose program could not be started, 2 = its cwd */
	char where[48];               /* step: "userns", "mount", "landlock", "exec" ... */
	char message[400];            /* what failed, the subject in quotes */
} lp_failed;
/* pid: outside, 0 = not known (pid 1 of a pid namespace sees none but its own).  With LP_S_TTY comes the
 * master of the terminal; last, with has_pidfd, a pidfd. */
typedef struct lp_spawned { lp_head head; int32_t pid, pid_inside; uint32_t has_pidfd, reserved; } lp_spawned;

enum { LP_LIMIT_NONE = 0, LP_LIMIT_MEMORY, LP_LIMIT_CPU, LP_LIMIT_PIDS,
       LP_LIMIT_UNENFORCEABLE };
typedef struct lp_usage {         /* of all that ever ran inside */
	uint64_t user_us, system_us, peak_memory_bytes;
	uint64_t memory_refused, oom_kills, pids_refused;
	uint64_t scratch_free_bytes, scratch_free_nodes; /* at the end; SB_UNLIMITED = no scratch */
} lp_usage;
typedef struct lp_exited {
	lp_head head;
	int32_t code, signo;          /* one of them; code -1 if killed */
	uint32_t empty;               /* 1 = no process is left inside */
	uint32_t limit;               /* LP_LIMIT_*: the watcher that ended it */
	uint32_t killed, reserved;    /* processes that had outlived it */
	lp_usage usage;
} lp_exited;
typedef struct lp_limit { lp_head head; uint32_t limit, reserved; } lp_limit;
typedef struct lp_dialed { lp_head head; int32_t os_errno; uint32_t reserved; } lp_dialed; /* one fd if 0 */
typedef struct lp_placed { lp_head head; } lp_placed; /* that PUT, OPEN (one fd), REMOVE or SIGNAL is done */
typedef struct lp_gone { lp_head head; uint32_t leftovers, reserved; } lp_gone; /* cgroups not removed */

/* ---- Decoding: 0, or -1 with *why a constant text.  Nothing is copied; `data` stays. -------- */
typedef struct lp_plan_view {
	const lp_plan *plan;
	const lp_mount *mounts;
	const char *strings;
	const char *scope;            /* LP_CG_SCOPE, once there is one: the parent; else NULL */
} lp_plan_view;
/* Kind, version and length of any record; fds = descriptors that came with it. */
int lp_decode_head(const void *data, size_t len, const lp_head **head, const char **why);
int lp_decode_plan(const void *data, size_t len, size_t fds, lp_plan_view *view, const char **why);
int lp_decode_request(const void *data, size_t len, size_t fds, const char **why); /* PUT.. DIAL */
int lp_decode_answer(const void *data, size_t len, size_t fds, const char **why);  /* READY.. GONE */
/* The args memfd's contents: counts and ends; fills argv and envp with pointers into data. */
int lp_decode_args(char *data, size_t len, char **argv, size_t argv_cap, char **envp,
		   size_t env_cap, uint32_t *argc, uint32_t *envc, const char **why);
/* The next entry of a PUT archive at *at; 1 = one, 0 = the end, -1 = broken. */
int lp_decode_put(const void *data, size_t len, size_t *at, const lp_put_entry **entry,
		  const char **path, const void **content, const char **why);

#endif /* SB_LAUNCH_PROTOCOL_H */
