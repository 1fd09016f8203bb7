/* SPDX-License-Identifier: MIT */
/*
 * main.c - sb-launch: the supervisor of one sandbox.
 *
 * It lives in the caller's world and has the caller's rights.  It reads PLAN, makes the cgroups, clones
 * pid 1 into the namespaces, writes its id maps and opens the mounts that only it can open; then it
 * waits for one of two ends: of pid 1, or of the host (end of file on the control socket: SIGKILL to
 * pid 1, and the kernel ends all that is inside).  Last it removes the cgroups and says GONE.
 *
 * It never touches what the guest says, and shares nothing with pid 1 but two sockets.
 */
#include "box.h"
#include "sys.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define WAIT_PIDFD 3             /* P_PIDFD, which not every C library has */

static launch_box box;

/* ---- Start ------------------------------------------------------------------------------------------ */

static void reset_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_DFL); /* the host has reset them all; without this one nothing works */
}

/* 0, 1 and 2 are open, 3 is the socket, and nothing else is. */
static int check_descriptors(void)
{
	int type = 0, fd, i;
	socklen_t size = sizeof type;

	if (getsockopt(LP_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
	    type != SOCK_SEQPACKET)
		return -1;
	for (i = 0; i < 3; i++) {
		if (fcntl(i, F_GETFD) >= 0)
			continue;
		fd = open("/dev/null", O_RDWR);
		if (fd >= 0 && fd != i) {
			dup2(fd, i);
			close(fd);
		}
	}
	sys_close_range(LP_CONTROL_FD + 1, ~0u, 0);
	return fcntl(LP_CONTROL_FD, F_SETFD, FD_CLOEXEC);
}

/* ---- pid 1 ------------------------------------------------------------------------------------------ */

/* Forks into the namespaces; the child does not return.  pidfd of pid 1, or -1. */
static int clone_pid1(launch_failure *f)
{
	uint64_t steps = box.plan->steps;
	unsigned long flags = supervisor_namespaces(steps);
	int pair[2], pidfd = -1;
	long pid;

	box.privileged = sources_privileged();
	box.held |= steps & LP_NAMESPACES;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return launch_fail(f, errno, "link", "cannot make a socket pair");
	pid = syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
	if (pid == 0) {
		close(pair[0]);
		box.link = pair[1];
		reap_main(&box);
	}
	if (pid < 0)
		launch_fail(f, errno, steps & LP_USERNS ? "userns" : "namespaces",
			    "cannot make the namespaces");
	close(pair[1]);
	box.link = pair[0];
	box.pid1 = (int32_t)pid;
	return pid < 0 ? -1 : pidfd;
}

/* True: it ended by itself. */
static bool reap_pid1(int pidfd)
{
	siginfo_t info = { .si_code = 0 };

	while (waitid((idtype_t)WAIT_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
	return info.si_code == CLD_EXITED;
}

static int run_box(launch_failure *f)
{
	int pidfd = clone_pid1(f), rc;

	if (pidfd < 0)
		return -1;
	rc = supervisor_prepare(&box, f);
	while (box.fd_count)
		close(box.fds[--box.fd_count]);
	if (!rc)
		rc = supervisor_cgroups(&box, f);
	if (rc < 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	else
		supervisor_wait(&box, pidfd);
	/* If pid 1 has failed beside us it has said so; that nobody was there to be mapped is no news. */
	return reap_pid1(pidfd) ? 0 : rc;
}

/* ---- Without namespaces ------------------------------------------------------------------------------- */

static int run_subreaper(launch_failure *f)
{
	uint64_t steps = box.plan->steps;
	launch_watch watch;

	box.walls_in_child = true;
	while (!(steps & LP_LANDLOCK) && box.fd_count) /* its rules are made of them, by each child */
		close(box.fds[--box.fd_count]);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return launch_fail(f, errno, "subreaper", "cannot become the reaper of orphans");
	if ((steps & LP_UNDUMPABLE) && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return launch_fail(f, errno, "privileges", "cannot become undumpable");
	box.landlock_abi = landlock_abi();
	if ((steps & LP_LANDLOCK) && !box.landlock_abi)
		return launch_fail(f, ENOSYS, "landlock", "the kernel has no landlock");
	box.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (box.proc < 0)
		return launch_fail(f, errno, "subreaper", "cannot open \"/proc\"");
	if ((steps & LP_IN_PLACE) && ask_open(&box, f) < 0)
		return -1;
	if (reap_signals(&box, f) < 0 || spawn_init(&box, f) < 0 ||
	    cgroup_make(&box.view, &box.cgroup, f) < 0)
		return -1;
	/* The rest is put on by each child before its exec; one that cannot is not started. */
	box.held = steps & (LP_SUBREAPER | LP_SESSION | LP_CLOSE_FDS | LP_UNDUMPABLE | LP_NO_CAPS |
			    LP_NO_NEW_PRIVS | LP_LANDLOCK | LP_SECCOMP | LP_OWN_GROUP | LP_SAMPLE |
			    LP_IN_PLACE | LP_HOST_NET);
	if ((steps & LP_LANDLOCK_SCOPE) && box.landlock_abi >= 6)
		box.held |= LP_LANDLOCK_SCOPE;
	watch_init(&watch, &box, getpid());
	reap_ready(&box);
	reap_serve(&box, &watch);
	return 0;
}

/* Requests that nobody reads any more.  If one were left at the close, the host's next recv would be
 * ECONNRESET instead of our last answers; from here on its sends fail with EPIPE. */
static void drain_control(void)
{
	static union { lp_head head; char bytes[LP_MAX_MESSAGE]; } record;

	shutdown(box.control, SHUT_RD);
	while (wire_receive(box.control, &record, sizeof record, NULL, 0, NULL) > 0)
		;
}

int launch_main(void)
{
	static const char usage[] = "sb-launch is started by sandbox and libsandbox, not by hand\n";
	launch_failure failure;
	lp_gone gone = { .leftovers = 0 };
	int rc;

	if (check_descriptors() < 0) {
		ssize_t n = write(STDERR_FILENO, usage, sizeof usage - 1);

		return n < 0 ? 3 : 2;
	}
	reset_signals();
	setsid();
	supervisor_init(&box, LP_CONTROL_FD);
	rc = supervisor_read_plan(&box, &failure);
	if (!rc)
		rc = scope_enter(&box, &failure);
	if (!rc)
		rc = box.plan->steps & LP_SUBREAPER ? run_subreaper(&failure) : run_box(&failure);
	if (rc < 0)
		wire_failed(box.control, 0, 0, &failure);
	drain_control();
	gone.leftovers = cgroup_remove(&box.cgroup);
	wire_head(&gone.head, LP_GONE, sizeof gone, 0);
	wire_send(box.control, &gone, sizeof gone, NULL, 0);
	return rc < 0;
}
