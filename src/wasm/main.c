/* SPDX-License-Identifier: MIT */
/*
 * main.c - sb-wasm: runs one WebAssembly module, once, and ends.
 *
 * It is started inside walls: nothing of the host is to be seen but itself and the folder of its pack.
 * It reads its job from a memory file, loads the compiled module, gives away what it will not need any
 * more (walls.c), and runs the guest over the streams 0, 1 and 2 and a tree of files in memory.
 *
 * A worker that waits (JOB_WAITS) does so with all of that done that does not depend on the run, and before
 * anything of a run has reached it; then it gets the job of the one run that it is for.
 *
 * The end.  SIGTERM and the timer of its CPU time end the guest, not the worker: what lies in /out by
 * then is still told.  While a call of the guest's is under way the handler leaves a note for its end
 * (the tree may be half changed); else it writes the result itself and ends the process.
 *
 * usage: sb-wasm FD
 */
#include "worker.h"
#include "build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sandbox/sandbox.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define OVERHEAD ((uint64_t)96 << 20) /* of engine, heap and results, beside what the guest may have */
#define TOUCHED_BYTES 65536u
#define SIGNAL_STACK_BYTES 262144u
#define EXIT_REFUSED JOB_NOT_MINE
#define EXIT_TRAPPED 134

static worker one;
static volatile sig_atomic_t ending; /* RESULT_* that a signal asked for */

static void on_end(int signo)
{
	ending = signo == SIGPROF ? RESULT_CPU : RESULT_STOPPED;
	if (one.run.in_host)
		return;
	result_write(&one, (uint32_t)ending, -1);
	_exit(EXIT_TRAPPED);
}

static bool shall_stop(void *user)
{
	(void)user;
	return ending != 0;
}

static int refuse(worker *k, int code)
{
	result_write(k, RESULT_REFUSED, code);
	return EXIT_REFUSED;
}

static void on_interrupt(int signo)
{
	(void)signo;
	ask_interrupt(&one);
}

static void end_by_signal(int signo)
{
	struct sigaction action = { .sa_handler = on_end, .sa_flags = SA_ONSTACK };

	sigfillset(&action.sa_mask);
	sigdelset(&action.sa_mask, SIGSYS);
	sigaction(signo, &action, NULL);
}

static void take_signals(const worker *k)
{
	struct itimerval timer = { 0 };

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	end_by_signal(SIGTERM);
	end_by_signal(SIGPROF);
	if (k->head->control) {
		struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_ONSTACK };

		sigfillset(&action.sa_mask);
		sigdelset(&action.sa_mask, SIGSYS);
		sigaction(SIGINT, &action, NULL);
	}
	if (k->head->cpu_us == SB_UNLIMITED)
		return;
	timer.it_value.tv_sec = (time_t)(k->head->cpu_us / 1000000);
	timer.it_value.tv_usec = (suseconds_t)(k->head->cpu_us % 1000000);
	setitimer(ITIMER_PROF, &timer, NULL);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a == SB_UNLIMITED || b == SB_UNLIMITED || a > UINT64_MAX / 2 || b > UINT64_MAX / 2 ?
		       SB_UNLIMITED : a + b;
}

/* The interface's streams; the root is 3. */
static int lay_descriptors(worker *k)
{
	const uint64_t common = WASI_R_POLL | WASI_R_STAT | WASI_R_SET_FLAGS;

	wasi_init(&k->w, k->head->open_files);
	k->w.stopping = shall_stop;
	k->w.user = k;
	for (int i = 0; i < 3; i++)
		if (wasi_add_stream(&k->w, i, isatty(i) ? WASI_T_CHAR : WASI_T_UNKNOWN,
				    common | (i ? WASI_R_WRITE : WASI_R_READ)) != i)
			return -1;
	if (wasi_add_preopen(&k->w, mem_vfs(k->fs), mem_root(k->fs), "/", false) != 3)
		return -1;
	if (!k->head->control)
		return 0;
	k->w.wait = ask_wait;
	wasi_add_control(&k->w, 3, WASI_T_STREAM, common | WASI_R_READ | WASI_R_WRITE | WASI_R_SHUTDOWN);
	return 0;
}

static int fail(worker *k, const char *why)
{
	snprintf(k->why, sizeof k->why, "%s", why);
	return -1;
}

static int load_file(worker *k)
{
	char path[300];

	k->e = engine_new(false, k->head->stack_bytes);
	if (!k->e)
		return fail(k, "no memory for the engine");
	snprintf(path, sizeof path, JOB_PACK_DIR "/%s", k->module_file);
	return engine_load_file(k->e, path, k->why);
}

static int load_given(worker *k)
{
	if (!k->module)
		return fail(k, "there is no module in the job");
	if (!k->e)
		k->e = engine_new(true, k->head->stack_bytes);
	return k->e ? engine_load(k->e, k->module, k->module_len, k->why) :
		      fail(k, "no memory for the engine");
}

static int fail_errno(worker *k, const char *why, int rc)
{
	snprintf(k->why, sizeof k->why, "%s: %s", why, strerror(-rc));
	return -1;
}

static int limit_data(worker *k)
{
	const job_head *h = k->head;
	uint64_t most = sum(sum(h->memory_bytes, h->fs_bytes), h->fs_bytes);
	int rc = most == SB_UNLIMITED ? 0 : walls_limit_data(most + OVERHEAD);

	return rc ? fail_errno(k, "cannot set a limit of the worker", rc) : 0;
}

/* What this process takes from itself: nothing of the guest has run by then, unless it is a pack's. */
static int close_walls(worker *k)
{
	int rc = k->head->control ? ask_open(k, 3) : 0;

	if (rc)
		return fail_errno(k, "cannot set a limit of the worker", rc);
	if (limit_data(k) < 0)
		return -1;
	take_signals(k);
	rc = walls_close(k);
	return rc ? fail_errno(k, "cannot load the filter of system calls", rc) : 0;
}

/* The job of the run that this worker is for.  Nobody there any more: the end. */
static int wait_for_job(worker *k)
{
	job_go go;
	ssize_t n;

	while ((n = read(JOB_WIRE, &go, sizeof go)) < 0 && errno == EINTR)
		;
	if (n != sizeof go || go.magic != JOB_GO_MAGIC || go.bytes > JOB_MAX_BYTES || job_map(k, go.at, go.bytes) < 0)
		_exit(EXIT_REFUSED);
	return job_lay_out(k);
}

/* Without a job and before the timer of the run's: what it does is the same in each worker. */
static int rehearse(worker *k)
{
	if (k->refused >= 0)
		return 0;
	wasi_start_clocks(&k->w);
	if (!engine_rehearse(k->e, &k->run))
		return fail(k, "the pack's module does not get ready");
	k->w.calls = 0;
	return 0;
}

extern const char __executable_start[], etext[], data_start[], _end[];

static void populate(const char *from, const char *to, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)from & ~(page - 1);

	madvise((void *)begin, (uintptr_t)to - begin, advice); /* an old kernel's no is no harm */
}

/* What each run touches of the program itself, of heap and of stack is there before somebody waits for it. */
static __attribute__((noinline)) void touch_ahead(void)
{
	volatile char deep[TOUCHED_BYTES], *heap;

	mallopt(M_TRIM_THRESHOLD, 1 << 20); /* or what is given back here would not stay */
	heap = malloc(TOUCHED_BYTES);
	populate(__executable_start, etext, MADV_POPULATE_READ);
	populate(data_start, _end, MADV_POPULATE_WRITE);
	for (size_t i = 0; i < TOUCHED_BYTES; i += 1024) {
		deep[i] = 0;
		if (heap)
			heap[i] = 0;
	}
	(void)deep[0];
	free((void *)heap);
}

/* The engine makes one of this size for its handlers, where there is none, at the first call of a guest's. */
static void stack_ahead(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	stack_t stack = { .ss_size = SIGNAL_STACK_BYTES };
	char *at = mmap(NULL, page + stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at, page, PROT_NONE) < 0)
		return;
	stack.ss_sp = at + page;
	sigaltstack(&stack, NULL);
}

/* A module that comes with the run: whatever its making and its loading do, the walls stand but for what that
 * takes, and they are closed before any of it runs. */
static int wait_for_module(worker *k)
{
	int rc;

	k->e = engine_new(true, k->head->stack_bytes);
	if (!k->e)
		return fail(k, "no memory for the engine");
	take_signals(k);
	stack_ahead();
	touch_ahead();
	rc = walls_set_ajar(k);
	if (rc)
		return fail_errno(k, "cannot load the filter of system calls", rc);
	if (wait_for_job(k) < 0 || load_given(k) < 0 || limit_data(k) < 0)
		return -1;
	rc = walls_shut();
	return rc ? fail_errno(k, "cannot load the filter of system calls", rc) : 0;
}

/* A module that the next run is likely to bring, since others before it did: it is loaded, and nothing of it runs
 * before that run is there.  The walls are closed by the time that its memory is made. */
static int wait_with_module(worker *k)
{
	stack_ahead();
	touch_ahead();
	if (load_given(k) < 0 || close_walls(k) < 0)
		return -1;
	if (k->head->flags & JOB_READY)
		k->refused = engine_ready(k->e, &k->run);
	return wait_for_job(k);
}

/* A pack's module is loaded, and may be instantiated, before the walls are closed and while nobody waits: it is
 * as trusted as we are. */
static int prepare_to_wait(worker *k)
{
	holder_start();
	if (k->module)
		return wait_with_module(k);
	if (k->module_file) {
		k->refused = engine_ready(k->e, &k->run);
		return rehearse(k) < 0 || close_walls(k) < 0 ? -1 : wait_for_job(k);
	}
	return wait_for_module(k);
}

static int prepare_at_once(worker *k)
{
	return !k->module_file && load_given(k) < 0 ? -1 : close_walls(k);
}

static int prepare(worker *k)
{
	const job_head *h = k->head;
	int rc = walls_raise_stack();

	if (h->stack_bytes < JOB_STACK_LEAST || h->stack_bytes > ENGINE_STACK_BYTES)
		return fail(k, "the job's stack is none that a guest can have");
	k->run.w = &k->w;
	k->run.memory_bytes = h->memory_bytes;
	k->run.stop = shall_stop;
	k->refused = -1;
	if (rc) {
		snprintf(k->why, sizeof k->why, "cannot raise the limit of the stack: %s", strerror(-rc));
		return -1;
	}
	k->fs = mem_new(h->fs_bytes, h->fs_nodes);
	if (!k->fs || job_lay_out(k) < 0 || (k->module_file && load_file(k) < 0))
		return -1;
	if (lay_descriptors(k) < 0)
		return fail(k, "no memory for descriptors");
	return h->flags & JOB_WAITS ? prepare_to_wait(k) : prepare_at_once(k);
}

/* As a shell says "Segmentation fault": the guest cannot say it itself any more. */
static void say_trap(const worker *k)
{
	char line[ENGINE_WHY + 16];
	int n = snprintf(line, sizeof line, "trap: %s\n", k->run.why);

	if (n > 0 && write(2, line, (size_t)n) < 0)
		return; /* nobody reads it: the result has it, too */
}

/* Tells how it ended; what the process is to exit with. */
static int tell(worker *k, int kind)
{
	static const uint32_t kinds[] = { [ENGINE_EXITED] = RESULT_EXITED,
		[ENGINE_TRAPPED] = RESULT_TRAPPED, [ENGINE_REFUSED] = RESULT_REFUSED,
		[ENGINE_NO_MEMORY] = RESULT_NO_MEMORY, [ENGINE_STOPPED] = RESULT_STOPPED };

	if (kind == ENGINE_STOPPED || ending) {
		result_write(k, ending ? (uint32_t)ending : RESULT_STOPPED, -1);
		return EXIT_TRAPPED;
	}
	if (kind == ENGINE_TRAPPED)
		say_trap(k);
	result_write(k, kinds[kind], k->w.exit_code);
	return kind == ENGINE_EXITED ? k->w.exit_code :
	       kind == ENGINE_TRAPPED ? EXIT_TRAPPED : EXIT_REFUSED;
}

static void leave(void *user, int kind)
{
	_exit(tell(user, kind));
}

static int run(worker *k)
{
	int kind;

	k->w.argv = k->argv;
	k->w.env = k->env;
	k->run.user = k;
	k->run.leave = leave;
	wasi_start_clocks(&k->w);
	kind = k->refused >= 0 ? k->refused : k->head->flags & JOB_BRANCH ? twin_take(k) : engine_start(k->e, &k->run);
	while (kind == ENGINE_RESTS)
		kind = ask_rest(k) ? engine_turn(k->e, &k->run) : ENGINE_STOPPED;
	return tell(k, kind);
}

int main(int argc, char **argv)
{
	long fd = argc == 2 ? strtol(argv[1], NULL, 10) : -1;

	if (argc == 2 && strcmp(argv[1], "--key") == 0)
		return printf("%s\n%016llx\n", engine_key(), (unsigned long long)JOB_MAGIC) < 0;
	if (fd >= 3 && fd <= 1000 && job_open(&one, (int)fd) < 0 && one.head)
		return JOB_NOT_MINE; /* the host says why */
	if (!one.head) {
		fputs("sb-wasm: no job; this program is started by sandbox\n", stderr);
		return EXIT_REFUSED;
	}
	if (prepare(&one) < 0)
		return refuse(&one, 1);
	_exit(run(&one));
}
