/* SPDX-License-Identifier: MIT */
/*
 * host.c - starts an sb-launch and talks to it.
 *
 * Start.  clone(VM|VFORK|PIDFD) on a stack of its own: the cost does not grow with the host's
 * memory, no pthread_atfork handler runs, and the calling thread sleeps until the exec.  Until then
 * the child shares our memory, so it runs with every signal blocked, makes raw system calls only,
 * and tells by a word in the caller's frame which step failed.  (Handlers fall to their default at
 * exec, so clone3's CLEAR_SIGHAND is not needed, nor clone3, which some seccomp filters refuse; what
 * was *ignored* would pass the exec and is reset by hand.)
 *
 * End.  The exit signal is none, so a host that loops over wait(-1) is not woken by a failed start;
 * after exec the kernel makes it SIGCHLD again, so the host's own loop or an ignored SIGCHLD may reap
 * sb-launch first.  The pidfd turns readable all the same, and ECHILD is no error.
 */
#include "host_box.h"
#include "places.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#define WAIT_PIDFD ((idtype_t)3) /* P_PIDFD, which musl does not name */
#define KERNEL_SIGNALS 64
#define CHILD_STACK 16384
#define CLOSE_WAIT_MS 10000u
#define END_WAIT_MS 200

/* ThreadSanitizer takes a clone that shares our memory for a fork, and from then on believes nothing that
 * this thread does: glibc's other name for it is not watched.  What runs in the child keeps no account. */
#ifdef __SANITIZE_THREAD__
int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#define UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define UNWATCHED
#endif

/* ---- Finding -------------------------------------------------------------------------------- */

static bool runnable(const char *dir, size_t dir_len, const char *below, char *path, size_t cap)
{
	int n = snprintf(path, cap, "%.*s%s/sb-launch", (int)dir_len, dir, below);

	return dir_len && n > 0 && (size_t)n < cap && !access(path, R_OK | X_OK);
}

/* Beside a file of ours; or, if that lies in PREFIX/BELOW, in the libexec of the same PREFIX. */
static bool runnable_near(const char *file, const char *below, char *path, size_t cap)
{
	const char *slash = strrchr(file, '/');
	size_t dir_len = slash ? (size_t)(slash - file) : 0, below_len = strlen(below);

	if (runnable(file, dir_len, "", path, cap))
		return true;
	return dir_len > below_len && file[dir_len - below_len - 1] == '/' &&
	       !memcmp(file + dir_len - below_len, below, below_len) &&
	       runnable(file, dir_len - below_len - 1, "/" SB_LIBEXEC_BELOW, path, cap);
}

/* What lies in one tree with us goes before what is installed elsewhere: that may be of another build. */
static bool find_in(const char *helper_dir, char *path, size_t cap)
{
	char self[PATH_MAX];
	ssize_t n;
	Dl_info info;

	if (helper_dir && runnable(helper_dir, strlen(helper_dir), "", path, cap))
		return true;
	n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n > 0) {
		self[n] = 0;
		if (runnable_near(self, SB_BIN_BELOW, path, cap))
			return true;
	}
	if (dladdr((const void *)&lh_find, &info) && info.dli_fname && info.dli_fname[0] == '/' &&
	    runnable_near(info.dli_fname, SB_LIB_BELOW, path, cap))
		return true;
	return runnable(SB_LIBEXEC, strlen(SB_LIBEXEC), "", path, cap);
}

/* Why not: without /proc nobody knows where the program lies; or it is there, and not to be run. */
static int not_found(const char *helper_dir, sb_error *err)
{
	char path[PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return error_errno(err, SB_ERR_BACKEND_UNAVAILABLE, errno, "launch.find",
				   "sb-launch cannot be found without /proc (`mount -t proc proc /proc`)");
	path[n] = 0;
	slash = strrchr(path, '/');
	snprintf(slash, sizeof path - (size_t)(slash - path), "/sb-launch");
	if (!access(path, F_OK))
		return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "launch.find",
				 "\"%s\" may not be read and run; `chmod 755` it", path);
	return error_set(err, SB_ERR_BACKEND_UNAVAILABLE, "launch.find",
			 "sb-launch was found neither beside the program or the library nor in "
			 "\"%s\"%s%s%s: install it, or name its directory as helper_dir of sb_sandbox_options",
			 SB_LIBEXEC, helper_dir ? " or \"" : "", helper_dir ? helper_dir : "",
			 helper_dir ? "\"" : "");
}

int lh_find(const char *helper_dir, char **path, sb_error *err)
{
	char found[PATH_MAX + 16];

	*path = NULL;
	if (helper_dir && helper_dir[0] != '/')
		return error_set(err, SB_ERR_INVALID_PATH, "launch.find",
				 "the helper directory \"%s\" is not absolute", helper_dir);
	if (!find_in(helper_dir, found, sizeof found))
		return not_found(helper_dir, err);
	*path = strdup(found);
	return *path ? 0 : error_no_memory(err, "launch.find");
}

int lh_find_own(const char *helper_dir, char **path, sb_error *err)
{
	if (!host_self_way)
		return lh_find(helper_dir, path, err);
	*path = NULL;
	if (access(LH_SELF_PATH, F_OK) < 0)
		return error_errno(err, SB_ERR_BACKEND_UNAVAILABLE, errno, "launch.find",
				   "sandbox cannot start itself without /proc (`mount -t proc proc /proc`)");
	*path = strdup(LH_SELF_PATH);
	return *path ? 0 : error_no_memory(err, "launch.find");
}

const char *lh_place(const char *path)
{
	return strcmp(path, LH_SELF_PATH) ? path : "in the command itself";
}

/* ---- Starting ------------------------------------------------------------------------------- */

/* Shared with the child, which writes failed_at and os_errno. */
typedef struct start_args {
	const char *path;
	int socket;
	uint64_t old_mask;
	const char *volatile failed_at;
	volatile int os_errno;
} start_args;

UNWATCHED void host_reset_signals(uint64_t mask)
{
	/* The kernel's struct sigaction, all zeros: SIG_DFL.  libc's would refuse some numbers. */
	static const unsigned long zeros[8];
	int i;

	for (i = 1; i <= KERNEL_SIGNALS; i++)
		if (i != SIGKILL && i != SIGSTOP)
			syscall(SYS_rt_sigaction, i, zeros, NULL, KERNEL_SIGNALS / 8);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, KERNEL_SIGNALS / 8);
}

UNWATCHED int host_close_from(unsigned first)
{
	struct rlimit limit;
	unsigned i;

#ifdef SYS_close_range
	if (!syscall(SYS_close_range, first, ~0u, 0))
		return 0;
#endif
	/* before Linux 5.9 */
	if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) < 0)
		return -1;
	for (i = first; i < limit.rlim_cur && i < 1u << 20; i++)
		syscall(SYS_close, i);
	return 0;
}

UNWATCHED static int start_child(void *data)
{
	static char name[] = "sb-launch", self[] = LP_SELF_NAME;
	char *const argv[] = { host_self_way ? self : name, NULL }, *const envp[] = { NULL };
	start_args *args = data;
	int fd, i;

	args->failed_at = "descriptors";
	/* Out of the way first: the socket may have any number, 0 to 3 included. */
	fd = (int)syscall(SYS_fcntl, args->socket, F_DUPFD, LP_CONTROL_FD + 1);
	if (fd < 0 || syscall(SYS_dup3, fd, LP_CONTROL_FD, 0) < 0)
		goto fail;
	args->failed_at = "/dev/null";
	fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
	if (fd < 0)
		goto fail;
	for (i = 0; i < LP_CONTROL_FD; i++)
		if (fd != i && syscall(SYS_dup3, fd, i, 0) < 0)
			goto fail;
	if (host_close_from(LP_CONTROL_FD + 1) < 0)
		goto fail;
	host_reset_signals(0);
	args->failed_at = "exec";
	syscall(SYS_execve, args->path, argv, envp);
fail:
	args->os_errno = errno;
	syscall(SYS_exit, 127);
	return 0;
}

/* 0, or the errno of clone. */
static int clone_child(start_args *args, lh_box *box)
{
	uint64_t all = ~(uint64_t)0, old = 0;
	char *stack = malloc(CHILD_STACK);
	int pid, os_errno;

	if (!stack)
		return ENOMEM;
	/* Raw: libc's wrapper would leave its own signals (thread cancellation) open. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, KERNEL_SIGNALS / 8);
	args->old_mask = old;
	pid = clone(start_child, stack + CHILD_STACK, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, args,
		    &box->pidfd);
	os_errno = errno;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, KERNEL_SIGNALS / 8);
	free(stack);
	if (pid < 0)
		return os_errno;
	box->pid = pid;
	return 0;
}

bool host_reap(const lh_box *box)
{
	siginfo_t info = { .si_code = 0 };

	while (waitid(WAIT_PIDFD, (id_t)box->pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
	return info.si_code == CLD_EXITED;
}

static int start_failed(lh_box *box, const start_args *args, sb_error *err)
{
	int code = SB_ERR_BACKEND_UNAVAILABLE;

	host_reap(box);
	box->reaped = true;
	if (!strcmp(args->failed_at, "exec"))
		return error_errno(err, code, args->os_errno, "launch.start",
				   "cannot run sb-launch at \"%s\"", args->path);
	return error_errno(err, code, args->os_errno, "launch.start", "cannot prepare sb-launch's %s",
			   args->failed_at);
}

static int start(lh_box *box, const char *path, sb_error *err)
{
	start_args args = { .path = path };
	int pair[2], rc;

	rc = fd_pair(SOCK_SEQPACKET, pair);
	if (rc < 0)
		return error_errno(err, SB_ERR_IO, -rc, "launch.start",
				   "cannot make a socket pair for sb-launch");
	box->socket = pair[0];
	args.socket = pair[1];
	rc = clone_child(&args, box);
	fd_close(&pair[1]);
	if (rc && host_limit_remedy(rc)) {
		int code = rc == ENOMEM ? SB_ERR_NO_MEMORY : SB_ERR_BACKEND_UNAVAILABLE;

		error_set(err, code, "launch.start", "cannot start a process for sb-launch; %s",
			  host_limit_remedy(rc));
		if (err)
			err->os_errno = rc;
		return code;
	}
	if (rc)
		return error_errno(err, SB_ERR_BACKEND_UNAVAILABLE, rc, "launch.start",
				   "cannot start a process for sb-launch");
	if (args.os_errno)
		return start_failed(box, &args, err);
	return 0;
}

static lh_box *box_new(sb_error *err)
{
	lh_box *box = malloc(sizeof *box);

	if (box)
		*box = (lh_box){ .socket = -1, .pidfd = -1, .pid = -1 };
	else
		error_no_memory(err, "launch.start");
	return box;
}

static int start_with(lh_box *box, const char *path, const lh_plan *plan, sb_error *err)
{
	int rc;

	if (host_self_way && host_self_way->fits(plan->fixed.steps, plan->fixed.cgroup_kind)) {
		rc = host_self_way->begin(box, plan->fixed.steps & LP_NAMESPACES, err);
		return rc ? rc : host_self_way->follow(box, plan, err);
	}
	rc = start(box, path, err);
	return rc ? rc : host_send_plan(box, plan, err);
}

int lh_start(const char *helper_path, const lh_plan *plan, lh_box **out, sb_error *err)
{
	lh_box *box;
	int rc;

	*out = NULL;
	rc = lh_plan_check(plan, err);
	if (rc)
		return rc;
	box = box_new(err);
	if (!box)
		return SB_ERR_NO_MEMORY;
	rc = start_with(box, helper_path, plan, err);
	if (rc) {
		lh_close(box);
		return rc;
	}
	*out = box;
	return 0;
}

int lh_begin(uint64_t namespaces, lh_box **out, sb_error *err)
{
	lh_box *box;
	int rc;

	*out = NULL;
	if (!host_self_way || !host_self_way->fits(namespaces, LP_CG_NONE))
		return error_set(err, SB_ERR_UNSUPPORTED, "launch.start", "nothing can begin without its plan");
	box = box_new(err);
	if (!box)
		return SB_ERR_NO_MEMORY;
	rc = host_self_way->begin(box, namespaces, err);
	if (rc) {
		lh_close(box);
		return rc;
	}
	*out = box;
	return 0;
}

int lh_follow(lh_box *box, const lh_plan *plan, sb_error *err)
{
	int rc = lh_plan_check(plan, err);

	return rc ? rc : host_self_way->follow(box, plan, err);
}

/* ---- Receiving ------------------------------------------------------------------------------ */

/* Takes the descriptors out of a message: at most two, and closes those behind. */
static size_t take_fds(struct msghdr *msg, int taken[2])
{
	struct cmsghdr *c;
	size_t count = 0, i;

	taken[0] = taken[1] = -1;
	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (count < 2)
				taken[count] = fd;
			else
				fd_close(&fd);
			count++;
		}
	}
	return count;
}

/* Of a process in another pid namespace, in ours; 0 = not known. */
static int32_t pid_of(int pidfd)
{
	char path[40], text[512], *at;
	int FD_AUTO fd = -1;
	ssize_t n;
	long pid;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
	fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, "\nPid:");
	pid = at ? strtol(at + 5, NULL, 10) : 0;
	return pid > 0 && pid <= INT32_MAX ? (int32_t)pid : 0;
}

/* It stays here: what is handed on is the number. */
static void take_pidfd(lp_spawned *s, int taken[2])
{
	int *pidfd = &taken[taken[1] >= 0];

	if (!s->has_pidfd)
		return;
	s->pid = pid_of(*pidfd);
	fd_close(pidfd);
}

/* Why the other end is closed: sb-launch's own end, which is only a moment away. */
int host_lost(const lh_box *box, sb_error *err)
{
	struct pollfd ended = { .fd = box->pidfd, .events = POLLIN };
	siginfo_t info = { 0 };

	if (box->gone)
		return error_set(err, SB_ERR_CLOSED, "launch", "the sandbox is gone");
	poll(&ended, 1, END_WAIT_MS);
	if (!waitid(WAIT_PIDFD, (id_t)box->pidfd, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) &&
	    info.si_pid && info.si_code != CLD_EXITED)
		return error_set(err, SB_ERR_CONNECTION_LOST, "launch",
				 "sb-launch was killed by signal %d", info.si_status);
	return error_set(err, SB_ERR_CONNECTION_LOST, "launch",
			 "sb-launch ended without a word: it is damaged or of another build; install "
			 "sandbox and sb-launch together");
}

/* 0, 1 = nothing there yet, or an error. */
static int receive(lh_box *box, lh_answer *answer, int *fd, sb_error *err)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	struct iovec iov = { answer, sizeof *answer };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof control };
	const char *why = "the answer is too long";
	unsigned reset = 0; /* told once, where pid 1 left a request unread: its answers are still there */
	int taken[2] = { -1, -1 };
	ssize_t n;
	size_t fds;

	do
		n = recvmsg(box->socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || (errno == ECONNRESET && box->self && !reset++)));
	if (n < 0 && errno == EAGAIN)
		return 1;
	if (n < 0 && errno != ECONNRESET)
		return error_errno(err, SB_ERR_IO, errno, "launch", "cannot hear sb-launch");
	if (n <= 0)
		return box->self ? host_self_way->hear_end(box, answer, err) : host_lost(box, err);
	fds = take_fds(&msg, taken);
	if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	    lp_decode_answer(answer, (size_t)n, fds, &why) < 0) {
		fd_close(&taken[0]);
		fd_close(&taken[1]);
		return error_set(err, SB_ERR_CONNECTION_LOST, "launch",
				 "sb-launch answered what it should not: %s", why);
	}
	if (answer->head.kind == LP_SPAWNED)
		take_pidfd(&answer->spawned, taken);
	*fd = taken[0];
	if (answer->head.kind == LP_GONE)
		box->gone = true;
	if (answer->head.kind == LP_EXITED && box->last && answer->head.id == box->last)
		box->ending = true;
	return 0;
}

int lh_next(lh_box *box, const sb_call *call, bool wait, lh_answer *answer, int *fd, sb_error *err)
{
	int rc;

	*fd = -1;
	for (;;) {
		rc = receive(box, answer, fd, err);
		if (rc <= 0)
			return rc;
		if (!wait) {
			if (err) /* asked often: nothing to format */
				*err = (sb_error){ .code = SB_ERR_AGAIN, .kind = -SB_ERR_AGAIN / 100,
						   .where = "launch",
						   .message = "sb-launch has not answered yet" };
			return SB_ERR_AGAIN;
		}
		rc = sb_call_wait(call, lh_socket(box), POLLIN, err);
		if (rc)
			return rc;
	}
}

int lh_socket(const lh_box *box)
{
	return box->self ? host_self_way->wait_fd(box) : box->socket;
}

void lh_await(const lh_box *box, unsigned ms)
{
	struct pollfd word = { .fd = lh_socket(box), .events = POLLIN };

	poll(&word, 1, (int)ms);
}

int64_t lh_pid(const lh_box *box)
{
	return box->pid;
}

/* ---- The end -------------------------------------------------------------------------------- */

bool lh_ends(lh_box *box)
{
	struct pollfd answer = { .fd = box->socket, .events = POLLIN };
	uint64_t deadline = clock_deadline_ns(clock_now_ns(), CLOSE_WAIT_MS);

	if (!box->ending || box->gone)
		return box->gone;
	if (box->self)
		return host_self_way->ends(box, CLOSE_WAIT_MS);
	while (poll(&answer, 1, clock_poll_ms(clock_now_ns(), deadline)) < 0 && errno == EINTR)
		;
	return answer.revents & POLLIN;
}

void lh_close(lh_box *box)
{
	struct pollfd ended;
	uint64_t deadline;

	if (!box)
		return;
	fd_close(&box->socket);
	if (box->pidfd >= 0 && !box->reaped) {
		ended = (struct pollfd){ .fd = box->pidfd, .events = POLLIN };
		deadline = clock_deadline_ns(clock_now_ns(), CLOSE_WAIT_MS);
		while (poll(&ended, 1, clock_poll_ms(clock_now_ns(), deadline)) < 0 && errno == EINTR)
			;
		if (!(ended.revents & POLLIN))
			syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
		host_reap(box);
	}
	if (box->self)
		host_self_way->release(box);
	fd_close(&box->pidfd);
	free(box);
}
