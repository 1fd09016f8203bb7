/* SPDX-License-Identifier: MIT */
/*
 * sessions.c - what open sessions cost, as ratios of one interleaved run: replay of an output log
 * against memcpy, the echo of a terminal against a bare one, an evaluation against the interpreter's own
 * part of it, a branch of a session against one that is opened, the memory of idle sessions.
 *
 * usage: bench-sessions DIRECTORY-OF-SB-LAUNCH [SESSIONS]
 */
#include <sandbox/sandbox.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REPLAY = 10 << 20, PIECE = 256 << 10, REPLAYS = 40, ECHOES = 3000, WARM = 200, BRANCHES = 60 };
enum { SMALL = 64 << 20, USUAL = 512 << 20 }; /* limits of memory */

static sb_sandbox *sandbox;
static sb_error err;

static void must(int code)
{
	if (code >= 0)
		return;
	fprintf(stderr, "bench: %s: %s\n", err.where, err.message);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of this thread alone: a copy waits for nobody, whatever else the machine does. */
static double busy(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return values[count / 2];
}

static sb_session *open_session(uint64_t memory_bytes)
{
	const sb_limits limits = { .size = sizeof limits, .log_bytes = 12 << 20, .memory_bytes = memory_bytes,
				   .procs = 16 };
	const sb_spec spec = { .size = sizeof spec, .limits = &limits, .workspace_mode = SB_WORKSPACE_NONE };
	sb_session *session = NULL;

	must(sb_session_open(sandbox, &spec, NULL, NULL, &session, &err));
	return session;
}

static sb_process *spawn(sb_session *session, const char *line, uint32_t flags)
{
	const char *const argv[] = { "sh", "-c", line, NULL };
	const sb_command command = { .size = sizeof command, .argv = argv, .flags = flags };
	sb_process *process = NULL;

	must(sb_session_spawn(session, &command, NULL, &process, &err));
	return process;
}

/* ---- replay ---------------------------------------------------------------------------------- */

static void read_whole(sb_output *output, char *to)
{
	sb_chunk chunk = { .size = sizeof chunk };
	size_t at = 0;

	while (!chunk.eof) {
		must(sb_output_read(output, chunk.next, to + at, PIECE, NULL, &chunk, &err));
		at += chunk.len;
	}
	if (at != REPLAY)
		exit(2);
}

static void replay(void)
{
	static double ours[REPLAYS], plain[REPLAYS];
	sb_session *session = open_session(SMALL);
	sb_process *p = spawn(session, "head -c 10485760 /dev/zero", 0);
	char *to = calloc(1, REPLAY), *from = calloc(1, REPLAY);

	read_whole(sb_process_output(p), to);
	memset(from, 'x', REPLAY);
	for (int i = 0; i < REPLAYS; i++) {
		double start = busy();

		read_whole(sb_process_output(p), to);
		ours[i] = busy() - start;
		start = busy();
		for (size_t at = 0; at < REPLAY; at += PIECE)
			memcpy(to + at, from + at, PIECE);
		__asm__ volatile("" ::"r"(to) : "memory");
		plain[i] = busy() - start;
	}
	printf("| replay of 10 MiB | %.2f x memcpy's speed | at least 0.3 |\n",
	       median(plain, REPLAYS) / median(ours, REPLAYS));
	free(to);
	free(from);
	sb_process_free(p);
	sb_session_free(session);
}

/* ---- echo ------------------------------------------------------------------------------------- */

static double echo_ours(sb_process *p, uint64_t *cursor)
{
	sb_chunk chunk = { .size = sizeof chunk };
	char byte;
	double start = now();

	must(sb_process_write(p, "x", 1, NULL, NULL, &err));
	must(sb_output_read(sb_process_output(p), *cursor, &byte, 1, NULL, &chunk, &err));
	*cursor = chunk.next;
	return now() - start;
}

static double echo_bare(int master)
{
	char byte;
	double start = now();

	if (write(master, "x", 1) != 1 || read(master, &byte, 1) != 1)
		exit(2);
	return now() - start;
}

#define CAT "stty raw -echo; echo up; exec cat"

static void echo(void)
{
	static double ours[ECHOES], bare[ECHOES];
	sb_session *session = open_session(SMALL);
	sb_process *p = spawn(session, CAT, SB_COMMAND_TTY);
	sb_chunk chunk = { .size = sizeof chunk };
	char text[16];
	uint64_t cursor = 0;
	int master;
	pid_t child = forkpty(&master, NULL, NULL, NULL);

	if (child == 0) {
		execl("/bin/sh", "sh", "-c", CAT, NULL);
		_exit(127);
	}
	while (cursor < 3) {
		must(sb_output_read(sb_process_output(p), cursor, text, 3, NULL, &chunk, &err));
		cursor = chunk.next;
	}
	for (ssize_t n = 0; n < 3;)
		n += read(master, text, (size_t)(3 - n));
	for (int i = 0; i < WARM + ECHOES; i++) {
		double a = echo_ours(p, &cursor), b = echo_bare(master);

		if (i >= WARM) {
			ours[i - WARM] = a;
			bare[i - WARM] = b;
		}
	}
	double mine = median(ours, ECHOES), theirs = median(bare, ECHOES);

	printf("| echo of a terminal, there and back | %.2f x a bare one (%.0f us) | at most 3 |\n", mine / theirs,
	       theirs * 1e6);
	close(master);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	sb_process_free(p);
	sb_session_free(session);
}

/* ---- evaluations ------------------------------------------------------------------------------- */

#define CONSOLE                                                                                    \
	"import sys\n"                                                                             \
	"for line in sys.stdin:\n"                                                                 \
	"    exec(compile(line, '<stdin>', 'single'))\n"                                           \
	"    sys.stdout.flush()\n"

/* The interpreter's own part: the same line, over bare pipes. */
static pid_t console(int *to, int *from)
{
	int in[2], out[2];

	if (pipe(in) < 0 || pipe(out) < 0)
		exit(2);
	pid_t child = fork();

	if (child == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execlp("python3", "python3", "-E", "-c", CONSOLE, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	*to = in[1];
	*from = out[0];
	return child;
}

static double bare_evaluation(int to, int from)
{
	char text[2] = "";
	double start = now();

	if (write(to, "1+1\n", 4) != 4)
		exit(2);
	while (text[0] != '\n' && text[1] != '\n')
		if (read(from, text, sizeof text) <= 0)
			exit(2);
	return now() - start;
}

static double our_evaluation(sb_session *session)
{
	const sb_command command = { .size = sizeof command, .code = "1+1", .code_len = 3 };
	sb_result *result = NULL;
	double start = now();

	must(sb_session_eval(session, &command, NULL, &result, &err));
	double took = now() - start;
	size_t len;
	const char *out = sb_result_output(result, SB_STDOUT, &len);

	if (len != 2 || memcmp(out, "2\n", 2) != 0)
		exit(2);
	sb_result_free(result);
	return took;
}

static void evaluation(void)
{
	static double ours[ECHOES], bare[ECHOES];
	const sb_session_options how = { .size = sizeof how, .language = "python" };
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = SB_WORKSPACE_NONE };
	sb_session *session = NULL;
	int to, from;

	if (sb_session_open(sandbox, &spec, &how, NULL, &session, &err) < 0) {
		printf("| one evaluation of `1+1` | not measured: %s | |\n", err.message);
		return;
	}
	pid_t child = console(&to, &from);

	for (int i = 0; i < WARM + ECHOES; i++) {
		double a = our_evaluation(session), b = bare_evaluation(to, from);

		if (i >= WARM) {
			ours[i - WARM] = a;
			bare[i - WARM] = b;
		}
	}
	double mine = median(ours, ECHOES), theirs = median(bare, ECHOES);

	printf("| one evaluation of `1+1` | %.0f us of ours beyond the interpreter's %.0f | at most 200 |\n",
	       (mine - theirs) * 1e6, theirs * 1e6);
	close(to);
	close(from);
	waitpid(child, NULL, 0);
	sb_session_free(session);
}

/* ---- memory ------------------------------------------------------------------------------------- */

static long pss_of(const char *pid)
{
	char path[300], line[200];
	long kib = 0;

	snprintf(path, sizeof path, "/proc/%s/smaps_rollup", pid);
	FILE *file = fopen(path, "re");

	while (!kib && file && fgets(line, sizeof line, file))
		if (!strncmp(line, "Pss:", 4))
			kib = strtol(line + 4, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

static bool is_helper(const char *pid)
{
	char path[300], name[32] = "";

	snprintf(path, sizeof path, "/proc/%s/comm", pid);
	FILE *file = fopen(path, "re");

	if (file) {
		if (!fgets(name, sizeof name, file))
			name[0] = 0;
		fclose(file);
	}
	return !strcmp(name, "sb-launch\n");
}

static long helpers_kib(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	long kib = 0;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && is_helper(entry->d_name))
			kib += pss_of(entry->d_name);
	closedir(dir);
	return kib;
}

static void idle(int count)
{
	sb_session **sessions = calloc((size_t)count, sizeof *sessions);
	sb_process **processes = calloc((size_t)count, sizeof *processes);
	char me[16];
	long before, host, helpers;

	snprintf(me, sizeof me, "%d", (int)getpid());
	before = pss_of(me);
	helpers = helpers_kib();
	for (int i = 0; i < count; i++) {
		sessions[i] = open_session(USUAL);
		processes[i] = spawn(sessions[i], "exec sleep 1000", 0);
	}
	host = pss_of(me) - before;
	helpers = helpers_kib() - helpers;
	printf("| %d idle sessions with a process each | %ld KiB each: %ld in the application, %ld in sb-launch | at "
	       "most 300 |\n",
	       count, (host + helpers) / count, host / count, helpers / count);
	for (int i = 0; i < count; i++) {
		sb_session_free(sessions[i]);
		sb_process_free(processes[i]);
	}
	free(sessions);
	free(processes);
}

/* ---- branches -------------------------------------------------------------------------------- */

static void define(sb_session *session, const char *code)
{
	const sb_command command = { .size = sizeof command, .code = code, .code_len = strlen(code) };
	sb_result *result = NULL;

	must(sb_session_eval(session, &command, NULL, &result, &err));
	sb_result_free(result);
}

/* A branch against a session that is opened, one after the other. */
static void branches_in(const char *language, const char *code)
{
	const sb_session_options how = { .size = sizeof how, .language = language };
	static const char *const wasm[] = { "wasm", NULL };
	const sb_spec spec = { .size = sizeof spec, .backends = wasm };
	static double branch[BRANCHES], cold[BRANCHES];
	sb_session *session, *other;

	if (sb_session_open(sandbox, &spec, &how, NULL, &session, &err) < 0) {
		printf("| a branch of a session in %s | not measured: %s | |\n", language, err.message);
		return;
	}
	define(session, code);
	for (size_t i = 0; i < BRANCHES; i++) {
		double from = now();

		must(sb_session_fork(session, NULL, NULL, &other, &err));
		branch[i] = now() - from;
		sb_session_free(other);
		from = now();
		must(sb_session_open(sandbox, &spec, &how, NULL, &other, &err));
		cold[i] = now() - from;
		sb_session_free(other);
	}
	sb_session_free(session);
	printf("| a branch of a session in %s | %.1f ms, %.2f x opening one (%.1f ms) | |\n", language,
	       median(branch, BRANCHES) * 1e3, median(branch, BRANCHES) / median(cold, BRANCHES),
	       median(cold, BRANCHES) * 1e3);
}

static void branches(void)
{
	branches_in("lua", "x = {} for i = 1, 1000 do x[i] = i end");
	branches_in("js", "let x = []; for (let i = 0; i < 1000; i++) x.push(i)");
	branches_in("ts", "let x: number[] = []; for (let i = 0; i < 1000; i++) x.push(i)");
	branches_in("python", "import json, re\nx = list(range(1000))");
}

int main(int argc, char **argv)
{
	static const char *const order[] = { "linux", NULL };
	sb_sandbox_options options = { .size = sizeof options, .order = order };
	struct rlimit files;
	int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000;

	if (argc < 2)
		return 2;
	options.helper_dir = argv[1];
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	must(sb_sandbox_new(&options, NULL, &sandbox, &err));
	printf("\nopen sessions\n\n| what | measured | wanted |\n|---|---|---|\n");
	replay();
	echo();
	evaluation();
	branches();
	idle(count);
	sb_sandbox_free(sandbox);
	return 0;
}
