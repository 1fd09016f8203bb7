/* SPDX-License-Identifier: MIT */
/*
 * box.h - one sandbox as the supervisor and its pid 1 know it, and what the files of sb-launch
 * offer each other.
 *
 * The supervisor fills a launch_box from PLAN and clones: pid 1 goes on with its own copy.  With
 * LP_SUBREAPER there is no second process: the supervisor does the work of pid 1 as well.
 */
#ifndef SB_LAUNCH_BOX_H
#define SB_LAUNCH_BOX_H

#include "launch.h"
#include "sample_rest.h"

#include <sandbox/sandbox.h>
#include <poll.h>
#include <sys/resource.h>

typedef struct launch_command {  /* a running SPAWN; pid 0 = free place */
	uint32_t id, flags;
	int pid;                 /* of its leader, which is its session and its group as well */
	int exit_pipe, tty;      /* tty: the slave, for RESIZE; -1 = none */
	int status;              /* of wait, once `ended` */
	bool ended;
} launch_command;

typedef struct launch_sockets {  /* what they hold beside a memory limit of cgroup v1 */
	bool on;
	uint32_t cpus;
	int fd[3];               /* its counters, -1 = not opened yet */
	uint64_t due_us;
} launch_sockets;

typedef struct launch_watch {    /* the sampler; used by whoever runs it */
	int proc, root;          /* /proc; pid above everything that counts, SAMPLE_BOX in a box's own */
	bool memory, cpu, pids;  /* what is watched */
	bool waits;              /* pid 1 has not said yet what is looked at, and nobody is in the box */
	uint32_t cpus, failures;
	int scratch;             /* a tmpfs whose use counts as memory, -1 = none */
	uint64_t due_us;         /* CLOCK_MONOTONIC */
	uint64_t late_us;        /* by which looks come later than that, of late */
	uint64_t cpu_base_us;    /* used before the budget that counts now */
	bool renew;              /* it counts from the next look on */
	uint32_t budget;         /* which one that is: pid 1 numbers them */
	launch_sockets sockets;
	sample_rest rest;        /* SAMPLE_BOX */
} launch_watch;

typedef struct launch_box {
	lp_plan_view view;
	const lp_plan *plan;     /* = view.plan */
	int fds[LP_MAX_FDS];     /* came with PLAN */
	uint32_t fd_count;
	int tree[LP_MAX_MOUNTS]; /* source of a mount row as a detached mount, -1 = not opened */
	int control;             /* to the host */
	int link;                /* supervisor <-> pid 1 */
	int watcher;             /* of the command's pid 1: its link once every wall stands; else -1 */
	launch_cgroup cgroup;
	int32_t pid1;            /* of pid 1, in the supervisor's pid namespace */
	struct rlimit open_files; /* as we got it: the guest's, if the plan leaves it */
	bool privileged;         /* the supervisor may clone mounts of the host's namespace */

	/* pid 1 */
	uint64_t held;           /* LP_* steps done */
	uint32_t landlock_abi;
	bool own_pids;           /* we are pid 1 of a pid namespace: kill(-1) means the box alone */
	bool walls_in_child;     /* LP_SUBREAPER: the child puts them on before its exec */
	int scratch;             /* root of the one tmpfs, -1 = none */
	int proc;                /* for walks where own_pids is false, -1 = none */
	int own_proc;            /* where it is true, for the sampler, -1 = none */
	int signals;             /* signalfd */
	void *child;             /* spawn.c's, where the child tells why it failed */
	launch_command command[LP_MAX_SPAWNS];
	uint32_t running;        /* places taken */
	uint32_t reaped;         /* children, so far */
	bool detached, spawned;  /* a detached / any SPAWN has been */
	bool stopping;           /* STOP received */
	bool put_failed;         /* some files did not fit */
	uint64_t kill_at_us;     /* end of STOP's grace */
	uint32_t limit;          /* LP_LIMIT_*: the watcher's */
	launch_watch *watch;     /* where no supervisor looks; or NULL */
	uint32_t budget;         /* of CPU time: the one that counts */
	int ask_in, ask_out;     /* LP_IN_PLACE: listeners of filters come through it; -1 = none */
	int ask[LP_MAX_SPAWNS];  /* the listeners */
	uint32_t ask_count;
} launch_box;

/* ---- wire.c: records with descriptors ------------------------------------------------------- */
/* Bytes, 0 = end of file, or -errno; -EMSGSIZE = cut.  fds may be NULL (none are taken then). */
long wire_receive(int socket, void *record, size_t cap, int *fds, uint32_t cap_fds,
		  uint32_t *fd_count);
int wire_send(int socket, const void *record, size_t bytes, const int *fds, uint32_t fd_count);
void wire_head(lp_head *head, uint32_t kind, size_t bytes, uint32_t id);
void wire_failed(int socket, uint32_t id, uint32_t exec, const launch_failure *f);
uint64_t wire_now_us(void);      /* CLOCK_MONOTONIC */
/* The descriptors of a cgroup record, in the order in which they travel; their number. */
uint32_t wire_cgroup_fds(launch_cgroup *cg, int *at[LP_MAX_FDS]);

/* From the supervisor when pid 1 may go on: trees that only it could open ride along. */
typedef struct link_go {
	int32_t pid1;
	uint32_t count;
	uint16_t row[LP_MAX_FDS];
} link_go;
/* Then, unless the plan has no cgroup: what it made meanwhile; its descriptors ride along. */
typedef struct link_cgroup { launch_cgroup cgroup; } link_cgroup;
/* From the supervisor's sampler; pid 1 answers with the same when it has acted.  With limit 0 from pid 1:
 * the scratch tmpfs, or the box's own /proc, for the sampler rides along.  Once `proc` has come, with a descriptor
 * or without, the looks begin. */
enum { LINK_PROC_NONE, LINK_PROC_GIVEN, LINK_PROC_ASKED }; /* asked: does the machine's do?  It answers, by `limit` */
typedef struct link_limit {
	uint32_t limit;
	uint32_t budget;         /* of CPU time, that was exceeded; with limit 0 from pid 1, and no
				    descriptor: the one that begins */
	uint32_t proc;           /* LINK_PROC_*; the descriptor, if there is one, is a /proc */
} link_limit;

/* ---- main.c ----------------------------------------------------------------------------------- */
int launch_main(void);           /* sb-launch; its exit code */
int launch_self(char **argv);    /* self.c: the command as that; -1 = it is the command */

/* ---- supervisor.c ------------------------------------------------------------------------------ */
void supervisor_init(launch_box *box, int control);
int supervisor_read_plan(launch_box *box, launch_failure *f); /* from box->control */
unsigned long supervisor_namespaces(uint64_t steps);          /* CLONE_NEW* */
/* Maps, sources that need our rights, and the word that pid 1 may go on, by box->link. */
int supervisor_prepare(launch_box *box, launch_failure *f);
int scope_enter(launch_box *box, launch_failure *f);           /* scope.c: LP_CG_SCOPE, else nothing to do */
int supervisor_cgroups(launch_box *box, launch_failure *f);   /* made, and handed over */
/* Until pid 1 has ended, which the end of box->control on the other side brings about; watches the limits. */
void supervisor_wait(launch_box *box, int pidfd);

/* ---- userns.c -------------------------------------------------------------------------------- */
/* Maps of pid 1's namespace, from outside; *userns_fd gets it if `want_fd`. */
int userns_map(const launch_box *box, int *userns_fd, bool want_fd, launch_failure *f);
/* pid 1 goes first as well, which is always smaller than what it starts.  With the maps; or, while it puts up
 * its walls, before it is given the cgroups that it waits for: root's way, for its files are soon only root's. */
bool userns_oom_later(const launch_box *box);
void userns_prefer_for_oom(const launch_box *box);
/* Below that of the mounts, with one id in it.  proc_self: /proc/self of any proc. */
int userns_nest(const launch_box *box, int proc_self, launch_failure *f);

/* ---- sources.c ------------------------------------------------------------------------------- */
bool sources_privileged(void);   /* box->privileged */
/* In the supervisor: rows that need its rights, into box->tree. */
int sources_open_outside(launch_box *box, int userns_fd, launch_failure *f);
/* In pid 1: all others that are not bound by path, before anything is mounted. */
int sources_open_inside(launch_box *box, launch_failure *f);
/* Bound by path in one call, without a detached mount: the system's own files and devices, which get
 * all that tree_harden() set (a device but nodev). */
bool sources_by_path(const lp_mount *m);
/* 0 = that is forgiven; else -1 and the failure. */
int sources_fail(const launch_box *box, const lp_mount *m, int error, launch_failure *f);

/* ---- tree.c ---------------------------------------------------------------------------------- */
int tree_clone(int dir, const char *path, uint32_t flags);     /* LP_F_*; -1 and errno */
int tree_restrict(int tree, uint32_t flags, bool devices);     /* LP_F_* as mount attributes */
int tree_tmpfs(uint64_t bytes, uint64_t nodes, const char *mode); /* detached; -1 and errno */
void tree_tmpfs_options(char *out, uint64_t bytes, uint64_t nodes, const char *mode); /* 80 bytes */
int tree_private(launch_failure *f);               /* nothing of ours shows outside */
/* Every mount of pid 1's copy read-only, nosuid, nodev, noexec: what is bound by path inherits it. */
int tree_harden(launch_failure *f);

/* ---- mounts.c -------------------------------------------------------------------------------- */
/* The mount table and the new root; box->scratch. */
int root_build(launch_box *box, launch_failure *f);

/* ---- aside.c --------------------------------------------------------------------------------- */
/* pid 1: CLONE_NEWNET, CLONE_NEWIPC or both, made beside what it does until it joins them. */
void aside_start(unsigned long namespaces, bool loopback);
int aside_join(launch_failure *f);                 /* nothing to do without a start */

/* ---- proc.c ---------------------------------------------------------------------------------- */
/* Over the directory `name` of the current one. */
int proc_mount(const char *name, launch_failure *f);        /* a fresh proc */
int proc_mount_devpts(const char *name, launch_failure *f); /* a new instance */
/* The current directory is the root of a proc; what covers its entries, by absolute paths. */
int proc_mask(const launch_box *box, const char *hidden_file, const char *hidden_dir, launch_failure *f);

/* ---- privileges.c ---------------------------------------------------------------------------- */
int privileges_take_ids(const launch_box *box, uint32_t uid, uint32_t gid, launch_failure *f);
int privileges_drop(const launch_box *box, launch_failure *f); /* capabilities, bounding set */
/* no-new-privileges, dumpable, parent-death signal. */
int privileges_seal(const launch_box *box, launch_failure *f);
int privileges_hostname(const char *name, launch_failure *f);
int privileges_loopback(launch_failure *f);
/* Landlock and seccomp: the last two. */
int privileges_confine(launch_box *box, launch_failure *f);

/* ---- spawn.c, put.c, dial.c -------------------------------------------------------------------- */
int spawn_init(launch_box *box, launch_failure *f);   /* before the first */
/* Of a process, by its directory in /proc: what the kernel ends first, and all that comes of it. */
void spawn_prefer_for_oom(int proc_dir);
/* Consumes fds.  What goes wrong is answered with FAILED.  An args block that came inline is changed. */
void spawn_start(launch_box *box, lp_spawn *request, int *fds, uint32_t fd_count);
int put_files(launch_box *box, const lp_put *request, int fd, launch_failure *f);
int put_open(const char *path, launch_failure *f);    /* relative to the root; to be read; or -1 */
int put_remove(const char *path, launch_failure *f);
void dial_port(launch_box *box, const lp_dial *request);

/* ---- ask.c: LP_IN_PLACE ------------------------------------------------------------------------- */
int ask_open(launch_box *box, launch_failure *f);      /* before the first command */
/* In the child, and in the supervisor: the listener of its filter.  -1 = there is none. */
int ask_hand_over(const launch_box *box, int listener, launch_failure *f);
int ask_take_over(const launch_box *box);
void ask_add(launch_box *box, int listener);           /* -1 is fine */
/* What to wait for, at most LP_MAX_SPAWNS; number of them.  Then, with what poll() said: answers. */
uint32_t ask_poll(const launch_box *box, struct pollfd *p);
void ask_serve(launch_box *box, const struct pollfd *p);

/* ---- terminal.c -------------------------------------------------------------------------------- */
/* The master, or -1; the slave has that size from the beginning. */
int terminal_open(uint16_t rows, uint16_t cols, int *slave, launch_failure *f);

/* ---- stray.c ----------------------------------------------------------------------------------- */
void stray_kill(const launch_box *box, int session);

/* ---- watch_sockets.c --------------------------------------------------------------------------- */
bool sockets_watched(const lp_plan *p);       /* a watcher is needed for them */
void sockets_init(launch_sockets *s, const lp_plan *p, uint32_t cpus);
/* Looks if it is due; true: they and all other memory are more than what both may be. */
bool sockets_exceed(launch_sockets *s, const launch_box *box);

/* ---- watch.c ----------------------------------------------------------------------------------- */
void watch_init(launch_watch *w, const launch_box *box, int root);
bool watch_on(const launch_watch *w);
/* The guest has no huge pages: memory is not filled faster than it is looked at. */
bool watch_small_pages(const lp_plan *p);
/* Microseconds until the next look; UINT64_MAX = never. */
uint64_t watch_wait_us(const launch_watch *w);
/* The box's own /proc, consumed: it is looked at instead of the machine's, if it is one. */
void watch_own_proc(launch_watch *w, int proc_fd);
/* Can it look at all? */
bool watch_sees(launch_watch *w, const launch_box *box);
/* Another budget of CPU time begins: it looks at once. */
void watch_renew(launch_watch *w, uint32_t budget);
/* Looks if it is due: LP_LIMIT_*. */
uint32_t watch_look(launch_watch *w, const launch_box *box);

/* ---- build.c ----------------------------------------------------------------------------------- */
/* pid 1: waits for the supervisor's word, then puts up every wall of the plan; box->held. */
int build_box(launch_box *box, launch_failure *f);

/* ---- reap.c ------------------------------------------------------------------------------------ */
/* pid 1: builds the walls and serves.  Does not return. */
void reap_main(launch_box *box) __attribute__((noreturn));
/* The loop alone; returns when everything is over. */
void reap_serve(launch_box *box, launch_watch *watch);
int reap_signals(launch_box *box, launch_failure *f);  /* box->signals */
/* What is held, to the host. */
void reap_ready(launch_box *box);
/* Another budget of CPU time begins. */
void reap_renew(launch_box *box);
void reap_kill_all(launch_box *box, int signo);

#endif /* SB_LAUNCH_BOX_H */
