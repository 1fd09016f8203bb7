/* SPDX-License-Identifier: MIT */
/*
 * taken.c - sb-wasm in the hands of its guest: the worker as it is (src/wasm), with an engine that lets the
 * guest make any system call.  What holds it then are the kernel's walls alone.
 *
 * The engine's part of the worker begins when its walls are closed, as a guest's does.  The attempt is the
 * guest's first argument; it ends with 0 and prints "through" if it got what it wanted, or with 1 and "held".
 * Many end by the filter instead.  With -DCONTROL a program of its own: the same without any wall, where each
 * attempt must get through.
 */
#include "../../src/wasm/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILL ((size_t)2 << 30) /* more than any limit of the tests */

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	return syscall(nr, a, b, c, d, e, f);
}

#define AT(p) ((long)(uintptr_t)(p))

/* ---- files --------------------------------------------------------------------------------------- */

static int open_file(void) { return call(SYS_openat, AT_FDCWD, AT("/etc/passwd"), O_RDONLY, 0, 0, 0) >= 0; }
static int open_root(void) { return call(SYS_openat, AT_FDCWD, AT("/"), O_RDONLY | O_DIRECTORY, 0, 0, 0) >= 0; }
static int open_create(void) { return call(SYS_openat, AT_FDCWD, AT("/tmp/taken"), O_WRONLY | O_CREAT, 0600, 0, 0) >= 0; }
static int status(void) { char b[256]; return call(SYS_newfstatat, AT_FDCWD, AT("/"), AT(b), 0, 0, 0) == 0; }
static int memory_file(void) { return call(SYS_memfd_create, AT("x"), 0, 0, 0, 0, 0) >= 0; }

/* ---- directories of the host that are shown ------------------------------------------------------- */

/* The second argument: where this one lies.  Beside it is a file "outside", in it "f", links that lead out, and
 * ".git/hooks", which is protected. */
static const char *shown = "";

static const char *in(const char *name)
{
	static char path[2][5000];
	static int which;

	which = !which;
	strcpy(path[which], shown);
	strcat(path[which], "/");
	return strcat(path[which], name);
}

static int opens(const char *name, int flags, int mode) { return call(SYS_openat, AT_FDCWD, AT(in(name)), flags, mode, 0, 0) >= 0; }
static int shown_up(void) { return opens("../outside", O_RDONLY, 0); }
static int shown_link(void) { return opens("absolute", O_RDONLY, 0); }
static int shown_link_up(void) { return opens("up", O_RDONLY, 0); }
static int shown_beside(void) { return opens("../new", O_WRONLY | O_CREAT, 0600); }
static int shown_protected(void) { return opens(".git/hooks/new", O_WRONLY | O_CREAT, 0700); }
static int shown_set_user_id(void) { return opens("set_user_id", O_WRONLY | O_CREAT, 04755); }
static int shown_chmod(void) { return call(SYS_fchmodat, AT_FDCWD, AT(in("f")), 04755, 0, 0, 0) == 0; }
static int shown_chown(void) { return call(SYS_fchownat, AT_FDCWD, AT(in("f")), 1234, 1234, 0, 0) == 0; }
static int shown_fifo(void) { return call(SYS_mknodat, AT_FDCWD, AT(in("fifo")), 0010600, 0, 0, 0) == 0; }
static int shown_link_in(void) { return call(SYS_linkat, AT_FDCWD, AT(in("../outside")), AT_FDCWD, AT(in("l")), 0, 0) == 0; }
static int shown_move_out(void) { return call(SYS_renameat2, AT_FDCWD, AT(in("f")), AT_FDCWD, AT(in("../moved")), 0, 0) == 0; }
static int shown_move_hooks(void) { return call(SYS_renameat2, AT_FDCWD, AT(in(".git")), AT_FDCWD, AT(in("moved")), 0, 0) == 0; }

static int shown_by_handle(void)
{
	struct { unsigned int bytes; int type; unsigned char f[128]; } handle = { .bytes = 128 };
	int mount;

	return call(SYS_name_to_handle_at, AT_FDCWD, AT(in("f")), AT(&handle), AT(&mount), 0, 0) == 0 &&
	       call(SYS_open_by_handle_at, AT_FDCWD, AT(&handle), O_RDONLY, 0, 0, 0) >= 0;
}

static int shown_beneath(void) /* its mode is in memory, where no filter looks */
{
	uint64_t how[3] = { O_WRONLY | O_CREAT, 04755, 0 };

	return call(SYS_openat2, AT_FDCWD, AT(in("set_user_id")), AT(how), sizeof how, 0, 0) >= 0;
}

static int shown_exec(void)
{
	long fd = call(SYS_openat, AT_FDCWD, AT(in("f")), O_RDONLY, 0, 0, 0);

	return fd >= 0 && call(SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) > 0;
}

/* ---- network, programs, processes ------------------------------------------------------------------ */

static int socket_inet(void) { return call(SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0) >= 0; }
static int socket_unix(void) { return call(SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, 0, 0) >= 0; }
static int socket_pair(void)
{
	int pair[2];

	return call(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, AT(pair), 0, 0) >= 0;
}

static int shared_segment(void)
{
	long id = call(SYS_shmget, IPC_PRIVATE, 4096, 0600, 0, 0, 0);

	if (id >= 0)
		call(SYS_shmctl, id, IPC_RMID, 0, 0, 0, 0);
	return id >= 0;
}

static int message_queue(void)
{
	long fd = call(SYS_mq_open, AT("sandbox-taken"), O_RDWR | O_CREAT, 0600, 0, 0, 0);

	if (fd >= 0)
		call(SYS_mq_unlink, AT("sandbox-taken"), 0, 0, 0, 0, 0);
	return fd >= 0;
}

static int socket_netlink(void) { return call(SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0, 0, 0) >= 0; }

static int exec(void)
{
	static const char *const argv[] = { "/proc/self/exe", "exec_done", NULL }, *const none[] = { NULL };

	return call(SYS_execve, AT(argv[0]), AT(argv), AT(none), 0, 0, 0) >= 0; /* that says "through" */
}

static int fork_it(void)
{
	long pid = call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid > 0;
}

static int clone_three(void)
{
	uint64_t args[8] = { [4] = SIGCHLD };
	long pid = call(SYS_clone3, AT(args), sizeof args, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid > 0;
}

static int unshare_user(void) { return call(SYS_unshare, CLONE_NEWUSER, 0, 0, 0, 0, 0) == 0; }
static int kill_parent(void) { return call(SYS_kill, getppid(), 0, 0, 0, 0, 0) == 0; }
static int kill_all(void) { return call(SYS_kill, 0, 0, 0, 0, 0, 0) == 0; }
static int ptrace_parent(void) { return call(SYS_ptrace, PTRACE_SEIZE, getppid(), 0, 0, 0, 0) == 0; }
static int pidfd(void) { return call(SYS_pidfd_open, getppid(), 0, 0, 0, 0, 0) >= 0; }

static int read_parent(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { NULL, 0 };

	return call(SYS_process_vm_readv, getppid(), AT(&here), 1, AT(&there), 1, 0) >= 0;
}

/* ---- pages that can be executed ------------------------------------------------------------------------ */

static int map_exec(void)
{
	return call(SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) > 0;
}

static int protect(long nr)
{
	long at = call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at > 0 && call(nr, at, 4096, PROT_READ | PROT_EXEC, -1, 0, 0) == 0;
}

static int protect_exec(void) { return protect(SYS_mprotect); }
static int protect_exec_key(void) { return protect(SYS_pkey_mprotect); }
static int personality_exec(void) { return call(SYS_personality, 0x0400000, 0, 0, 0, 0, 0) >= 0; }

/* Code that is there already is not to be changed either. */
static int code_writable(void)
{
	long page = AT(code_writable) & ~4095L;

	return call(SYS_pkey_mprotect, page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, -1, 0, 0) == 0;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static int fill(int flags)
{
	char *at = (char *)call(SYS_mmap, 0, (long)FILL, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if ((long)at <= 0 && (long)at > -4096)
		return 0;
	for (size_t i = 0; i < FILL; i += (size_t)1 << 20) /* that it is there, not that it costs */
		at[i] = 1;
	return 1;
}

static int fill_private(void) { return fill(MAP_PRIVATE); }
static int fill_shared(void) { return fill(MAP_SHARED); }
static int fill_stack(void) { return fill(MAP_PRIVATE | MAP_GROWSDOWN); }

static int fill_heap(void)
{
	long top = call(SYS_brk, 0, 0, 0, 0, 0, 0);

	return call(SYS_brk, top + (long)FILL, 0, 0, 0, 0, 0) == top + (long)FILL;
}

/* Reserved first, as the engine's memories are, and made writable piece by piece. */
static int fill_reserved(void)
{
	long at = call(SYS_mmap, 0, (long)FILL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t step = (size_t)16 << 20, got = 0;

	while (at > 0 && got < FILL &&
	       call(SYS_pkey_mprotect, at + (long)got, (long)step, PROT_READ | PROT_WRITE, -1, 0, 0) == 0)
		got += step;
	return got >= FILL;
}

static int fill_moved(void)
{
	long at = call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at > 0 && call(SYS_mremap, at, 4096, (long)FILL, MREMAP_MAYMOVE, 0, 0) > 0;
}

/* The one file that it holds: its own job (the control's: its output). */
static int fill_file(void)
{
	static char block[1 << 20];
	long written = 0;

	for (long at = 0; at < (long)FILL; at += (long)sizeof block) {
		long n = call(SYS_pwrite64, 3, AT(block), sizeof block, at, 0, 0);

		if (n <= 0)
			break;
		written += n;
	}
	return written >= (long)FILL;
}

/* ---- limits that are signals ---------------------------------------------------------------------------- */

/* The timer's signal is blocked: the kernel's own limit is behind it. */
static int spin(void)
{
	static volatile int never;
	uint64_t all = ~(uint64_t)0;

	call(SYS_rt_sigprocmask, SIG_SETMASK, AT(&all), 0, 8, 0, 0);
	while (!never)
		;
	return 1;
}

static const struct { const char *name; int (*go)(void); } attempts[] = {
	{ "open", open_file }, { "open_root", open_root }, { "open_create", open_create }, { "stat", status },
	{ "memfd", memory_file }, { "socket_inet", socket_inet }, { "socket_unix", socket_unix },
	{ "socket_netlink", socket_netlink }, { "socket_pair", socket_pair },
	{ "shared_segment", shared_segment }, { "message_queue", message_queue }, { "exec", exec }, { "fork", fork_it }, { "clone3", clone_three },
	{ "unshare", unshare_user }, { "kill", kill_parent }, { "kill_all", kill_all },
	{ "ptrace", ptrace_parent }, { "pidfd", pidfd }, { "read_parent", read_parent }, { "map_exec", map_exec },
	{ "protect_exec", protect_exec }, { "protect_exec_key", protect_exec_key },
	{ "personality", personality_exec }, { "code_writable", code_writable },
	{ "fill_private", fill_private }, { "fill_shared", fill_shared }, { "fill_stack", fill_stack }, { "fill_heap", fill_heap }, { "fill_reserved", fill_reserved },
	{ "fill_moved", fill_moved }, { "fill_file", fill_file }, { "spin", spin },
	{ "shown_up", shown_up }, { "shown_link", shown_link }, { "shown_link_up", shown_link_up },
	{ "shown_beside", shown_beside }, { "shown_protected", shown_protected },
	{ "shown_set_user_id", shown_set_user_id }, { "shown_beneath", shown_beneath }, { "shown_chmod", shown_chmod },
	{ "shown_chown", shown_chown }, { "shown_fifo", shown_fifo }, { "shown_link_in", shown_link_in },
	{ "shown_move_out", shown_move_out }, { "shown_move_hooks", shown_move_hooks }, { "shown_by_handle", shown_by_handle },
	{ "shown_exec", shown_exec },
};

static int attempt(const char *name)
{
	bool through = false;
	const char *says;

	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		if (!strcmp(attempts[i].name, name))
			through = attempts[i].go();
	says = through ? "through\n" : "held\n";
	return write(1, says, strlen(says)) < 0 || !through;
}

#ifdef CONTROL
int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "exec_done"))
		return write(1, "through\n", 8) < 0;
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
			if (write(1, attempts[i].name, strlen(attempts[i].name)) < 0 || write(1, "\n", 1) < 0)
				return 1;
		return 0;
	}
	shown = argc == 3 ? argv[2] : "";
	return argc == 2 || argc == 3 ? attempt(argv[1]) : 2;
}
#else
/* ---- The engine's face ------------------------------------------------------------------------------- */

struct engine {
	int unused;
};

const char *engine_key(void) { return "taken"; }

engine *engine_new(bool from_memory, uint64_t stack_bytes)
{
	(void)from_memory;
	(void)stack_bytes;
	return calloc(1, sizeof(engine));
}

int engine_load_file(engine *e, const char *path, char why[ENGINE_WHY])
{
	(void)e;
	(void)path;
	(void)why;
	return 0;
}

int engine_load(engine *e, const void *data, size_t len, char why[ENGINE_WHY])
{
	(void)data;
	(void)len;
	return engine_load_file(e, NULL, why);
}

int engine_ready(engine *e, engine_run *run)
{
	(void)e;
	(void)run;
	return -1;
}

bool engine_rehearse(engine *e, engine_run *run)
{
	(void)e;
	(void)run;
	return true;
}

int engine_start(engine *e, engine_run *run)
{
	(void)e;
	if (run->w->argv[0] && run->w->argv[1] && run->w->argv[2])
		shown = run->w->argv[2];
	run->w->exit_code = attempt(run->w->argv[0] && run->w->argv[1] ? run->w->argv[1] : "");
	return ENGINE_EXITED;
}

int engine_turn(engine *e, engine_run *run)
{
	(void)e;
	(void)run;
	return ENGINE_TRAPPED; /* this guest never rests */
}

/* ... and nothing is a branch of it. */
engine_fresh *engine_fresh_new(engine *e, const uint8_t **data, uint64_t *bytes)
{
	(void)e;
	(void)data;
	(void)bytes;
	return NULL;
}

void engine_fresh_free(engine_fresh *fresh)
{
	(void)fresh;
}

int engine_globals(engine *e, branch_global *out, uint32_t most)
{
	(void)e;
	(void)out;
	(void)most;
	return -1;
}

int engine_globals_set(engine *e, const branch_global *from, uint32_t count)
{
	(void)e;
	(void)from;
	(void)count;
	return -1;
}

int engine_rest(engine *e, engine_run *run)
{
	return engine_turn(e, run);
}

int engine_renew(engine *e, engine_run *run)
{
	return engine_turn(e, run);
}

bool engine_can_rest(engine *e)
{
	(void)e;
	return false;
}

int engine_grow(engine *e, uint64_t bytes)
{
	(void)e;
	(void)bytes;
	return -1;
}

uint64_t engine_memory_bytes(engine *e)
{
	(void)e;
	return 0;
}
#endif
