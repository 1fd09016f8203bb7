/* SPDX-License-Identifier: MIT */
/*
 * library.c - the library's runs, beside another program's and a bare one; started by bench/run.
 *
 *   library one ROUNDS PEER...          seconds of each, one line a round: sandbox peer bare
 *   library flight THREADS MS PEER...   runs per second of each with so many in flight, one line a round
 *
 * PEER is a whole command line that runs /bin/true behind walls like ours.
 */
#include <sandbox/sandbox.h>

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 3
#define FLIGHT_ROUNDS 5
#define MOST_THREADS 64

enum { OURS, PEER, BARE, KINDS };

static sb_sandbox *sandbox;
static char **peer;
static char *bare[] = { (char *)"/bin/true", NULL };
static atomic_long count;
static atomic_bool over;
static int kind;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "library: %s: %s\n", what, why);
	exit(1);
}

/* The limits that bench/run gives the command, too. */
static void run_ours(void)
{
	static const char *const argv[] = { "/bin/true", NULL };
	const sb_limits limits = { .size = sizeof limits, .memory_bytes = 256u << 20, .procs = 64,
				   .wall_ms = 5000 };
	const sb_spec spec = { .size = sizeof spec, .limits = &limits, .workspace_mode = SB_WORKSPACE_NONE };
	const sb_command command = { .size = sizeof command, .argv = argv };
	sb_result *result = NULL;
	sb_error err;

	if (sb_run(sandbox, &spec, &command, NULL, &result, &err) < 0)
		fail("sb_run", err.message);
	if (sb_result_code(result) != 0)
		fail("sb_run", "the command failed");
	sb_result_free(result);
}

/* With both outputs through a pipe, as ours are. */
static void run_other(char **argv)
{
	posix_spawn_file_actions_t actions;
	char byte[16];
	int out[2], status;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		fail("pipe2", "no pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawn_file_actions_adddup2(&actions, out[1], 2);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0)
		fail(argv[0], "cannot be started");
	posix_spawn_file_actions_destroy(&actions);
	close(out[1]);
	while (read(out[0], byte, sizeof byte) > 0)
		;
	close(out[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		fail(argv[0], "failed");
}

static void run(int which)
{
	if (which == OURS)
		run_ours();
	else
		run_other(which == PEER ? peer : bare);
}

static void one(int rounds)
{
	for (int i = 0; i < rounds + WARM_UP; i++) {
		double took[KINDS];

		for (int k = 0; k < KINDS; k++) {
			double began = now();

			run(k);
			took[k] = now() - began;
		}
		if (i >= WARM_UP)
			printf("%.7f %.7f %.7f\n", took[OURS], took[PEER], took[BARE]);
	}
}

static void *worker(void *unused)
{
	(void)unused;
	while (!atomic_load(&over)) {
		run(kind);
		atomic_fetch_add(&count, 1);
	}
	return NULL;
}

static double flight_of(int threads, int ms)
{
	const struct timespec pause = { ms / 1000, (long)(ms % 1000) * 1000000 };
	pthread_t thread[MOST_THREADS];
	double began;

	atomic_store(&over, false);
	atomic_store(&count, 0);
	began = now();
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, worker, NULL) != 0)
			fail("pthread_create", "no thread");
	nanosleep(&pause, NULL);
	atomic_store(&over, true);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return (double)atomic_load(&count) / (now() - began);
}

static void flight(int threads, int ms)
{
	for (int i = 0; i < FLIGHT_ROUNDS; i++)
		for (kind = 0; kind < KINDS; kind++)
			printf("%.3f%c", flight_of(threads, ms), kind == KINDS - 1 ? '\n' : ' ');
}

int main(int argc, char **argv)
{
	bool in_flight = argc > 4 && !strcmp(argv[1], "flight");
	sb_error err;

	if (argc < 4)
		fail("usage", "library one ROUNDS PEER... | library flight THREADS MS PEER...");
	/* the build's own sb-launch */
	const sb_sandbox_options options = { .size = sizeof options, .helper_dir = getenv("HELPER_DIR") };

	if (sb_sandbox_new(&options, NULL, &sandbox, &err) < 0)
		fail("sb_sandbox_new", err.message);
	peer = argv + (in_flight ? 4 : 3);
	if (in_flight && atoi(argv[2]) <= MOST_THREADS)
		flight(atoi(argv[2]), atoi(argv[3]));
	else
		one(atoi(argv[2]));
	sb_sandbox_free(sandbox);
	return 0;
}
