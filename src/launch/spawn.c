/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - starts one command in the box.
 *
 * The arguments came with the request, or are read into one block, the only allocation after PLAN.  We
 * stand still until the child has executed its program or ended (CLONE_VFORK), and it leaves the reason
 * in our memory, which it shares until then (in a shared page, where it has its own).  An OOM kill in its
 * cgroup would take us along, but the kernel (since 4.6) never chooses a child that its parent waits for
 * like this: what it asks for is refused, and the exec fails.  For that case it is started once more with
 * memory of its own, so that it ends by its limit, and is told so.
 */
#include "box.h"
#include "sys.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define CHILD_STACK 49152u
#define MOST_SIGNALS 4096u
#define OOM_PREFER 300           /* as if it had 30 % of the memory more than it has */
#define OOM_PREFER_TEXT "300"
#define POLICY_RESETS 0x40000000 /* SCHED_RESET_ON_FORK */
#define POLICY_DEADLINE 6        /* SCHED_DEADLINE */
#define CPU_WORDS 16u            /* 1,024 processors */

enum { FD_ARGS, FD_EXIT, FD_IN, FD_OUT, FD_ERR, FD_MORE };

typedef struct child {
	launch_box *box;
	const lp_spawn *request;
	const int *fds;
	uint32_t fd_count;
	char **argv, **envp;         /* argv[-1] exists: room for the shell of a bare script */
	const char *search;          /* PATH */
	int parent;                  /* our pid */
	uint64_t cpus[CPU_WORDS];    /* where the command may run, `cpus_bytes`; 0 = as it is */
	size_t cpus_bytes;
	uint32_t exec;               /* of FAILED */
	launch_failure failure;
} child;

/* ---- The argument block --------------------------------------------------------------------------- */

typedef struct block {
	char *memory;
	size_t bytes;
	char **argv, **envp;
} block;

static int read_all(int fd, char *data, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = pread(fd, data + at, len - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EPROTO;
		at += (size_t)n;
	}
	return 0;
}

static void block_free(block *b)
{
	if (b->memory)
		munmap(b->memory, b->bytes);
	b->memory = NULL;
}

static int block_decode(block *b, char *text, size_t len, size_t argc, size_t envc,
			launch_failure *f)
{
	const char *why = "";
	uint32_t counts[2];

	b->envp = b->argv + argc + 1;
	if (lp_decode_args(text, len, b->argv, argc + 1, b->envp, envc + 1, &counts[0], &counts[1],
			   &why) < 0)
		return launch_fail(f, EPROTO, "spawn", "the arguments are broken (%s)", why);
	return 0;
}

/* Pointers first, text behind. */
static int block_read(block *b, int fd, size_t len, launch_failure *f)
{
	uint32_t counts[2];
	size_t pointers;
	char *text;
	int error = read_all(fd, (char *)counts, sizeof counts);

	if (!error && (uint64_t)counts[0] + counts[1] > len)
		error = EPROTO;
	if (error)
		return launch_fail(f, error, "spawn", "cannot read the arguments");
	pointers = (size_t)counts[0] + counts[1] + 4;
	b->bytes = pointers * sizeof(char *) + len;
	b->memory = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->memory == MAP_FAILED) {
		b->memory = NULL;
		return launch_fail(f, errno, "spawn", "no memory for %lu bytes of arguments",
				   (unsigned long)len);
	}
	b->argv = (char **)(void *)b->memory + 1;
	text = b->memory + pointers * sizeof(char *);
	error = read_all(fd, text, len);
	if (error)
		return launch_fail(f, error, "spawn", "cannot read the arguments");
	return block_decode(b, text, len, counts[0], counts[1], f);
}

/* They lie behind the request, which stays until the child has executed its program.  Each string has at
 * least its NUL, so there is room for as many pointers as there can be bytes. */
static int block_inline(block *b, char *text, size_t len, launch_failure *f)
{
	static char *pointers[LP_INLINE_ARGS + 4];
	uint32_t counts[2];

	memcpy(counts, text, sizeof counts);
	if ((uint64_t)counts[0] + counts[1] > len)
		return launch_fail(f, EPROTO, "spawn", "cannot read the arguments");
	b->argv = pointers + 1;
	return block_decode(b, text, len, counts[0], counts[1], f);
}

static const char *search_path(char **envp)
{
	for (; *envp; envp++)
		if (!strncmp(*envp, "PATH=", 5))
			return *envp + 5;
	return DEFAULT_PATH;
}

/* ---- Out of memory ----------------------------------------------------------------------------------- */

/* Of all that runs on this machine the guest is the one to go.  Never lowered: whoever has a higher
 * number may be forbidden to, and a service that the kernel spares (-1000) does not share that.  In the
 * caller's hands it is no wall, so nothing is refused where it cannot be had. */
void spawn_prefer_for_oom(int proc_dir)
{
	int fd = openat(proc_dir, "oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0)
		return;
	ssize_t n = read(fd, text, sizeof text - 1);

	if (n > 0 && (text[0] == '-' || strtol(text, NULL, 10) < OOM_PREFER))
		n = pwrite(fd, OOM_PREFER_TEXT, sizeof OOM_PREFER_TEXT - 1, 0);
	(void)n;
	close(fd);
}

static void prefer_self_for_oom(const launch_box *box)
{
	bool undumpable = box->plan->steps & LP_UNDUMPABLE;
	int dir = openat(box->proc, "self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return;
	/* the file belongs to us only while we are dumpable; this is memory of our own */
	if (undumpable)
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	spawn_prefer_for_oom(dir);
	if (undumpable)
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	close(dir);
}

/* ---- In the child ----------------------------------------------------------------------------------- */

/* 0, or errno.  A limit that is a wall must stand, or nothing runs. */
static int set_limit(int which, uint64_t soft, uint64_t hard)
{
	struct rlimit old, limit = { soft, hard };

	/* Never above what we were given ourselves. */
	if (getrlimit((__typeof__(RLIMIT_CORE))which, &old) < 0)
		return errno;
	if (old.rlim_max < limit.rlim_max)
		limit.rlim_max = old.rlim_max;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return setrlimit((__typeof__(RLIMIT_CORE))which, &limit) < 0 ? errno : 0;
}

static bool has_pids_controller(const lp_plan *p)
{
	uint32_t i;

	for (i = 0; i < p->cgroup_count; i++)
		if (p->cgroups[i].controllers & LP_CTL_PIDS)
			return true;
	return false;
}

static uint64_t process_limit(const launch_box *box)
{
	const lp_plan *p = box->plan;
	uint64_t limit = p->user_procs, others;

	/* Counted with all that the user runs: so many more than there are. */
	if ((p->steps & LP_IN_PLACE) && p->pids != SB_UNLIMITED && !has_pids_controller(p)) {
		others = sample_tasks_of(box->proc, p->uid_outside);
		if (p->pids < SB_UNLIMITED - others - 1 && p->pids + others < limit)
			limit = p->pids + others;
	}

	/* Counted per user namespace: ours holds pid 1 and the guest alone.  So does a uid of its own. */
	if (p->pids != SB_UNLIMITED && (p->steps & LP_PIDNS) &&
	    (p->steps & (LP_NESTED_USERNS | LP_OWN_GROUP)) && !has_pids_controller(p) &&
	    p->pids < SB_UNLIMITED - 1 && p->pids + 1 < limit)
		limit = p->pids + 1;
	return limit;
}

/* A caller may run by real time's rules (chrt).  A guest that did would leave the
 * processor to nobody, our watcher included, and the kernel lets no such thread into a v1 cpu cgroup. */
static int leave_real_time(const launch_box *box, launch_failure *f)
{
	const struct sched_param none = { .sched_priority = 0 };
	int policy = (int)syscall(SYS_sched_getscheduler, 0) & ~POLICY_RESETS;

	if (!(box->plan->steps & LP_SECCOMP) && !box->cgroup.count)
		return 0;
	if (policy != SCHED_FIFO && policy != SCHED_RR && policy != POLICY_DEADLINE)
		return 0;
	if (syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none) < 0) /* musl's own is ENOSYS */
		return launch_fail(f, errno, "limits", "cannot leave the real-time scheduling policy");
	return 0;
}

/* See stay_here(). */
static int leave_processor(const child *c, launch_failure *f)
{
	if (c->cpus_bytes && syscall(SYS_sched_setaffinity, 0, c->cpus_bytes, c->cpus) < 0)
		return launch_fail(f, errno, "limits", "cannot give the command its processors");
	return 0;
}

/* Signals that wait, and timers, count for who made our user namespace as well, root included: a guest
 * that took them all would leave none to the services of this machine. */
static int share_signals(void)
{
	struct rlimit old;
	rlim_t share;

	if (getrlimit(RLIMIT_SIGPENDING, &old) < 0)
		return errno;
	share = old.rlim_max / 2 < MOST_SIGNALS ? old.rlim_max / 2 : MOST_SIGNALS;
	return set_limit(RLIMIT_SIGPENDING, share, share);
}

static int set_limits(const launch_box *box, uint32_t flags, launch_failure *f)
{
	const lp_plan *p = box->plan;
	uint64_t seconds, processes = process_limit(box);
	int error = 0;

	if (p->steps & LP_SECCOMP) { /* a caller may have them, for sound say: nobody else would run then */
		error = set_limit(RLIMIT_RTPRIO, 0, 0);
		error = error ? error : set_limit(RLIMIT_NICE, 0, 0);
		error = error ? error : share_signals();
	}
	if (!error && p->open_files != SB_UNLIMITED)
		error = set_limit(RLIMIT_NOFILE, p->open_files, p->open_files);
	else
		setrlimit(RLIMIT_NOFILE, &box->open_files);
	if (!error && p->file_bytes != SB_UNLIMITED)
		error = set_limit(RLIMIT_FSIZE, p->file_bytes, p->file_bytes);
	/* of one process; the watcher sees all, and usually first */
	if (!error && p->cpu_us != SB_UNLIMITED && !(flags & LP_S_RENEWED)) {
		seconds = p->cpu_us / 1000000 + 2;
		error = set_limit(RLIMIT_CPU, seconds, seconds + 1); /* SIGXCPU, then SIGKILL */
	}
	if (!error && processes != SB_UNLIMITED)
		error = set_limit(RLIMIT_NPROC, processes, processes);
	return error ? launch_fail(f, error, "limits", "cannot set a limit of the command") : 0;
}

static int set_terminal(const child *c, launch_failure *f)
{
	const lp_spawn *r = c->request;
	struct winsize size = { .ws_row = r->rows, .ws_col = r->cols };

	if (!(r->flags & LP_S_TTY))
		return 0;
	if (ioctl(c->fds[FD_IN], TIOCSCTTY, 0) < 0)
		return launch_fail(f, errno, "spawn", "cannot make the terminal the controlling one");
	if (r->rows && r->cols)
		ioctl(c->fds[FD_IN], TIOCSWINSZ, &size);
	return 0;
}

/* At number n, and open across exec: dup2(n, n) would leave it CLOEXEC. */
static int place(int fd, int n)
{
	return fd == n ? fcntl(fd, F_SETFD, 0) : dup2(fd, n);
}

/* Received descriptors are above 3 (0..2 are open from the start, 3 is the control socket), but one
 * may be 4, where the code goes: that one is the last, and the others are placed by then. */
static int set_descriptors(const child *c, launch_failure *f)
{
	bool tty = c->request->flags & LP_S_TTY;
	uint32_t i;
	int next = 3;

	for (i = 0; i < 3; i++)
		if (place(c->fds[tty ? FD_IN : FD_IN + i], (int)i) < 0)
			return launch_fail(f, errno, "spawn", "cannot place descriptor %u", i);
	for (i = FD_MORE; i < c->fd_count; i++, next++)
		if (place(c->fds[i], next) < 0)
			return launch_fail(f, errno, "spawn", "cannot place descriptor %d", next);
	if (!(c->box->plan->steps & LP_CLOSE_FDS))
		return 0;
	if (sys_close_range((unsigned int)next, ~0u, 0) < 0)
		return launch_fail(f, errno, "spawn", "cannot close the other descriptors");
	return 0;
}

/* LP_SUBREAPER: the walls that there are. */
static int put_walls_on(child *c)
{
	launch_box *box = c->box;
	const lp_plan *p = box->plan;
	launch_failure *f = &c->failure;

	if (p->uid_outside != geteuid() || (p->steps & LP_OWN_GROUP)) {
		if (privileges_take_ids(box, p->uid_outside, p->gid_outside, f) < 0)
			return -1;
	}
	if ((p->steps & LP_NO_CAPS) && privileges_drop(box, f) < 0)
		return -1;
	if ((p->steps & LP_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return launch_fail(f, errno, "privileges", "cannot set no-new-privileges");
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != c->parent)
		return launch_fail(f, ESRCH, "spawn", "sb-launch has ended");
	return privileges_confine(box, f);
}

static void execute_script(child *c, const char *path)
{
	c->argv[0] = (char *)path;
	c->argv[-1] = (char *)"/bin/sh";
	execve("/bin/sh", c->argv - 1, c->envp);
}

static int execute(child *c, const char *path)
{
	execve(path, c->argv, c->envp);
	if (errno == ENOEXEC)
		execute_script(c, path);
	return errno;
}

/* As execvp: a directory that does not have it is passed by, one that has what may not be run is
 * remembered.  Returns on failure only. */
static int execute_searched(child *c)
{
	const char *name = c->argv[0], *at = c->search, *end;
	char path[PATH_MAX];
	size_t name_len = strlen(name);
	int error, remembered = ENOENT;

	for (;; at = end + 1) {
		size_t len;

		end = strchr(at, ':');
		end = end ? end : at + strlen(at);
		len = (size_t)(end - at);
		if (len && len + name_len + 2 <= sizeof path) { /* an empty one would be the workspace */
			memcpy(path, at, len);
			path[len] = '/';
			memcpy(path + len + 1, name, name_len + 1);
			error = execute(c, path);
			if (error == EACCES)
				remembered = EACCES;
			else if (error != ENOENT && error != ENOTDIR && error != ENAMETOOLONG)
				return error;
		}
		if (!*end)
			return remembered;
	}
}

static int prepare(child *c)
{
	launch_failure *f = &c->failure;
	launch_box *box = c->box;
	sigset_t none;
	int error;

	if (leave_real_time(box, f) < 0)
		return -1;
	error = cgroup_join(&box->cgroup);
	if (error < 0)
		return launch_fail(f, -error, "cgroup", "cannot join the sandbox's cgroup");
	if (setsid() < 0 && (box->plan->steps & LP_SESSION))
		return launch_fail(f, errno, "session", "cannot make a session of its own");
	if (set_limits(box, c->request->flags, f) < 0)
		return -1;
	if (box->walls_in_child)
		prefer_self_for_oom(box);
	umask(022);
	if (set_terminal(c, f) < 0)
		return -1;
	if (box->walls_in_child && put_walls_on(c) < 0)
		return -1;
	if (chdir(c->request->cwd) < 0) {
		c->exec = 2;
		return launch_fail(f, errno, "cwd", "cannot enter \"%s\"", c->request->cwd);
	}
	if (set_descriptors(c, f) < 0 || leave_processor(c, f) < 0)
		return -1;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

/* What the errno alone does not tell of a file that is there. */
static const char *about(const char *path, int error)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return "";
	if (S_ISDIR(st.st_mode))
		return ", a folder";
	if (error == ENOENT)
		return ": the interpreter that it names is not there";
	return error == EACCES && !(st.st_mode & 0111) ? ", which is not executable" : "";
}

static void child_main(child *c) __attribute__((noreturn));

static void child_main(child *c)
{
	const char *name = c->argv[0];
	int error;

	if (prepare(c) < 0)
		_exit(127);
	if (!*name)
		error = ENOENT;
	else
		error = strchr(name, '/') ? execute(c, name) : execute_searched(c);
	c->exec = 1;
	launch_fail(&c->failure, error, "exec", "cannot run \"%s\"%s", name,
		    strchr(name, '/') ? about(name, error) : "");
	_exit(127);
}

/* ---- In pid 1 ------------------------------------------------------------------------------------------ */

static launch_command *free_place(launch_box *box)
{
	uint32_t i;

	for (i = 0; i < LP_MAX_SPAWNS; i++)
		if (!box->command[i].pid)
			return &box->command[i];
	return NULL;
}

static void answer_spawned(launch_box *box, const lp_spawn *r, int pid, int master)
{
	lp_spawned answer = { .pid = box->own_pids ? 0 : pid, .pid_inside = pid };
	int fds[2] = { master }, pidfd = -1;
	uint32_t count = master >= 0;

	/* where there is none the host has no number for it */
	if (box->own_pids && (r->flags & LP_S_PIDFD))
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0) {
		fds[count++] = pidfd;
		answer.has_pidfd = 1;
	}
	wire_head(&answer.head, LP_SPAWNED, sizeof answer, r->head.id);
	wire_send(box->control, &answer, sizeof answer, fds, count);
	if (pidfd >= 0)
		close(pidfd);
}

/* We stand still until the child has executed its program: it begins on the processor that we leave to it.
 * On another it would wait until that one is awake, or for whoever runs there.  The worker's filter does not
 * let us: then it begins anywhere. */
static void stay_here(child *c)
{
	uint64_t here[CPU_WORDS] = { 0 };
	int cpu = sched_getcpu();
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof c->cpus, c->cpus);

	if (cpu < 0 || bytes <= 0 || (size_t)cpu >= (size_t)bytes * 8)
		return;
	here[cpu / 64] = 1ull << (cpu % 64);
	if (memcmp(here, c->cpus, (size_t)bytes) && !syscall(SYS_sched_setaffinity, 0, (size_t)bytes, here))
		c->cpus_bytes = (size_t)bytes;
}

static void stay_no_more(child *c)
{
	if (c->cpus_bytes)
		syscall(SYS_sched_setaffinity, 0, c->cpus_bytes, c->cpus);
	c->cpus_bytes = 0;
}

static int child_run(void *c)
{
	child_main(c);
}

/* -1 with c->failure, or the pid. */
static int start_as(child *c, bool sharing)
{
	static _Alignas(16) char stack[CHILD_STACK];
	int pid, error;

	if (sharing) {
		stay_here(c);
		pid = clone(child_run, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
	} else {
		pid = (int)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);
	}
	if (pid == 0)
		child_main(c);
	error = errno;
	stay_no_more(c);
	errno = error;
	if (pid < 0)
		return launch_fail(&c->failure, errno, "spawn", "cannot make a process");
	if (!c->failure.where[0])
		return pid;
	waitpid(pid, NULL, __WALL);
	return -1;
}

/* Where its memory has run out before its program is there: see the head of this file. */
static bool ran_out(const child *c)
{
	return c->exec == 1 && (c->failure.os_errno == E2BIG || c->failure.os_errno == ENOMEM);
}

/* What a child with memory of its own leaves its reason in; NULL and errno. */
static child *shared_page(void)
{
	void *page = mmap(NULL, sizeof(child), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

static int start_again(child *c)
{
	child *page = shared_page();
	int pid;

	if (!page) /* then it ends as it did */
		return -1;
	*page = *c;
	page->exec = 0;
	memset(&page->failure, 0, sizeof page->failure);
	pid = start_as(page, false);
	*c = *page;
	munmap(page, sizeof *page);
	return pid;
}

static int start(child *c)
{
	bool sharing = !c->box->walls_in_child;
	int pid = start_as(c, sharing);

	return pid < 0 && sharing && ran_out(c) ? start_again(c) : pid;
}

static void take_place(launch_box *box, launch_command *place, const lp_spawn *r, int *fds, int pid,
		       int master)
{
	*place = (launch_command){ .id = r->head.id, .flags = r->flags, .pid = pid,
		.exit_pipe = fds[FD_EXIT], .tty = -1 };
	fds[FD_EXIT] = -1;
	if (r->flags & LP_S_TTY) {
		place->tty = fds[FD_IN];
		fds[FD_IN] = -1;
	}
	if (!box->running++) {
		box->limit = LP_LIMIT_NONE; /* it ended those before */
		if (box->spawned)
			reap_renew(box);
	}
	box->spawned = true;
	box->detached |= !!(r->flags & LP_S_DETACHED);
	answer_spawned(box, r, pid, master);
}

/* Of the child's filter: it has sent it before it executed its program. */
static void take_listener(launch_box *box, bool started)
{
	int listener = ask_take_over(box);

	if (started)
		ask_add(box, listener);
	else if (listener >= 0)
		close(listener);
}

int spawn_init(launch_box *box, launch_failure *f)
{
	static child own;

	box->child = box->walls_in_child ? shared_page() : &own;
	return box->child ? 0 : launch_fail(f, errno, "spawn", "no memory for a page");
}

static int take_arguments(block *b, lp_spawn *request, int fd, launch_failure *f)
{
	if (request->flags & LP_S_INLINE)
		return block_inline(b, (char *)(request + 1), request->args_bytes, f);
	return block_read(b, fd, request->args_bytes, f);
}

/* In the place of what came for its input; *master stays -1 where none was asked for. */
static int take_terminal(const lp_spawn *r, int *fds, int *master, launch_failure *f)
{
	int slave;

	if (!(r->flags & LP_S_TTY))
		return 0;
	*master = terminal_open(r->rows, r->cols, &slave, f);
	if (*master < 0)
		return -1;
	close(fds[FD_IN]);
	fds[FD_IN] = slave;
	return 0;
}

void spawn_start(launch_box *box, lp_spawn *request, int *received, uint32_t fd_count)
{
	launch_command *place = free_place(box);
	child *c = box->child;
	block b = { 0 };
	int fds[LP_MAX_FDS] = { -1 };
	uint32_t i, without = !!(request->flags & LP_S_INLINE);
	int pid = -1, master = -1;

	/* as if all had come */
	memcpy(fds + without, received, fd_count * sizeof *fds);
	fd_count += without;
	*c = (child){ .box = box, .request = request, .fds = fds, .fd_count = fd_count,
		.parent = getpid() };
	if (!place) {
		launch_fail(&c->failure, EAGAIN, "spawn", "%u commands are running already",
			    LP_MAX_SPAWNS);
	} else if (box->stopping) {
		launch_fail(&c->failure, ECANCELED, "spawn", "the sandbox is being stopped");
	} else if (take_arguments(&b, request, fds[FD_ARGS], &c->failure) == 0 &&
		   take_terminal(request, fds, &master, &c->failure) == 0) {
		c->argv = b.argv;
		c->envp = b.envp;
		c->search = search_path(b.envp);
		pid = start(c);
	}
	if (pid > 0)
		take_place(box, place, request, fds, pid, master);
	else
		wire_failed(box->control, request->head.id, c->exec, &c->failure);
	take_listener(box, pid > 0);
	block_free(&b);
	if (master >= 0)
		close(master);
	for (i = 0; i < fd_count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}
