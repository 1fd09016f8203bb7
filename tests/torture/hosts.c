/* SPDX-License-Identifier: MIT */
/*
 * hosts.c - applications that are not as a test is: threads that end, somebody who waits for any
 * child, a change of user, a debugger, other programs started meanwhile, signals that are blocked.
 *
 * usage: hosts [DIRECTORY OF sb-launch]
 *
 * Each is a process of its own, with a sandbox of its own, and tells by its exit code what was wrong:
 * the line number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sandbox/sandbox.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MUST(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, err.message);        \
			_exit(2);                                                                  \
		}                                                                                  \
	} while (0)

enum { PLAIN_ID = 1000, PATIENCE_S = 100 };

static sb_sandbox_options options = { .size = sizeof options };
static _Thread_local sb_error err;

static const sb_spec no_workspace = { .size = sizeof no_workspace,
				      .workspace_mode = SB_WORKSPACE_NONE };

static sb_sandbox *make(void)
{
	sb_sandbox *own = NULL;

	MUST(sb_sandbox_new(&options, NULL, &own, &err) == 0);
	return own;
}

/* A line that says "out" and ends with 8. */
static void run_in(sb_sandbox *own, const char *line)
{
	const sb_command command = { .size = sizeof command, .argv = LIST("sh", "-c", line) };
	sb_result *result = NULL;
	size_t len = 0;

	MUST(sb_run(own, &no_workspace, &command, NULL, &result, &err) == 0);
	const char *out = sb_result_output(result, SB_STDOUT, &len);

	if (sb_result_code(result) != 8 || strcmp(out, "out\n") != 0)
		fprintf(stderr, "%s: code %d, \"%s\"\n", line, sb_result_code(result), out);
	MUST(sb_result_code(result) == 8 && strcmp(out, "out\n") == 0);
	sb_result_free(result);
}

static void run_in_once(sb_sandbox *own)
{
	run_in(own, "echo out; exit 8");
}

/* Runs a host in a process of its own, and waits for it. */
static void host(void (*body)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		alarm(PATIENCE_S);
		body();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("status 0x%x", (unsigned)status);
}

/* ---- Threads that end ------------------------------------------------------------------------ */

static void *thread_makes(void *arg)
{
	*(sb_sandbox **)arg = make();
	return NULL;
}

static void *thread_runs(void *arg)
{
	run_in_once(arg);
	return NULL;
}

static void in_thread(void *(*body)(void *), void *arg, size_t stack)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (stack)
		MUST(pthread_attr_setstacksize(&attr, stack) == 0);
	MUST(pthread_create(&thread, &attr, body, arg) == 0);
	pthread_attr_destroy(&attr);
	pthread_join(thread, NULL);
}

/* The kernel tells a child of its parent's end when the thread ends that made it. */
static void threads_come_and_go(void)
{
	sb_sandbox *own = NULL;

	in_thread(thread_makes, &own, 0);
	for (int i = 0; i < 5; i++)
		in_thread(thread_runs, own, 0);
	run_in_once(own);
	sb_sandbox_free(own);
}

static void *thread_outlives_main(void *arg)
{
	(void)arg;
	sb_sandbox *own = make();

	for (int i = 0; i < 3; i++)
		run_in_once(own);
	sb_sandbox_free(own);
	_exit(0);
}

static void the_main_thread_ends(void)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, thread_outlives_main, NULL) == 0);
	pthread_exit(NULL);
}

#ifndef __SANITIZE_THREAD__
enum { SMALL_STACK = 128 << 10 }; /* what musl gives a thread */

static void ends_well(sb_sandbox *own, const sb_spec *spec, const sb_command *command)
{
	sb_result *result = NULL;

	MUST(sb_run(own, spec, command, NULL, &result, &err) == 0);
	MUST(sb_result_code(result) == 0);
	sb_result_free(result);
}

static void *thread_makes_noise(void *arg)
{
	const sb_limits limits = { .size = sizeof limits, .out_stream_bytes = 4096, .out_mode = SB_OUT_TRUNCATE };
	const sb_spec spec = { .size = sizeof spec, .workspace_mode = SB_WORKSPACE_NONE, .limits = &limits };
	const sb_command command = { .size = sizeof command, .argv = LIST("head", "-c", "300000", "/dev/zero") };

	ends_well(arg, &spec, &command);
	return NULL;
}

/* On the way that is taken first; where its languages were not built, on the next. */
static void *thread_runs_code(void *arg)
{
	static const char code[] = "print(1)";
	const sb_command command = { .size = sizeof command, .language = "python", .code = code,
				     .code_len = sizeof code - 1 };

	ends_well(arg, &no_workspace, &command);
	return NULL;
}

static void *thread_has_sessions(void *arg)
{
	static const char code[] = "1+1";
	const sb_session_options language = { .size = sizeof language, .language = "python" };
	const sb_command command = { .size = sizeof command, .argv = LIST("true") };
	const sb_command asks = { .size = sizeof asks, .code = code, .code_len = sizeof code - 1 };
	sb_session *session = NULL;
	sb_process *process = NULL;
	sb_result *result = NULL;

	MUST(sb_session_open(arg, &no_workspace, NULL, NULL, &session, &err) == 0);
	MUST(sb_session_spawn(session, &command, NULL, &process, &err) == 0);
	sb_process_free(process);
	MUST(sb_session_close(session, NULL, &err) == 0);
	sb_session_free(session);
	MUST(sb_session_open(arg, &no_workspace, &language, NULL, &session, &err) == 0);
	MUST(sb_session_eval(session, &asks, NULL, &result, &err) == 0);
	MUST(sb_result_code(result) == 0);
	sb_result_free(result);
	sb_session_free(session);
	return NULL;
}

static void *thread_looks(void *arg)
{
	const sb_command command = { .size = sizeof command, .argv = LIST("true") };
	sb_report *report = NULL;
	sb_plan *plan = NULL;

	MUST(sb_doctor(arg, NULL, &report, &err) == 0);
	sb_report_free(report);
	MUST(sb_explain(arg, &no_workspace, &command, &plan, &err) == 0);
	sb_plan_free(plan);
	return NULL;
}

static void small_stacks(void)
{
	static void *(*const bodies[])(void *) = { thread_runs, thread_makes_noise, thread_runs_code,
						   thread_has_sessions, thread_looks };
	sb_sandbox *own = NULL;

	in_thread(thread_makes, &own, SMALL_STACK);
	for (size_t i = 0; i < COUNT(bodies); i++)
		in_thread(bodies[i], own, SMALL_STACK);
	sb_sandbox_free(own);
}
#endif

/* ---- Children ---------------------------------------------------------------------------------- */

static atomic_int stop;

static void *thread_waits_for_any(void *arg)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	(void)arg;
	while (!atomic_load(&stop))
		if (waitpid(-1, NULL, WNOHANG) <= 0) /* else it was ours: the library must do without */
			nanosleep(&moment, NULL);
	return NULL;
}

static void somebody_waits_for_any_child(void)
{
	sb_sandbox *own = make();
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, thread_waits_for_any, NULL) == 0);
	for (int i = 0; i < 10; i++)
		run_in_once(own);
	sb_sandbox_free(own);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
}

static void *thread_starts_others(void *arg)
{
	/* 0, 1, 2, and the one that ls reads by */
	static char sh[] = "sh", flag[] = "-c", path[] = "PATH=/usr/bin:/bin";
	static char line[] = "[ $(ls /proc/self/fd | wc -l) -le 4 ]";
	char *const argv[] = { sh, flag, line, NULL }, *const env[] = { path, NULL };

	(void)arg;
	while (!atomic_load(&stop)) {
		int status = 0;
		pid_t pid;

		MUST(posix_spawnp(&pid, "sh", NULL, NULL, argv, env) == 0);
		MUST(waitpid(pid, &status, 0) == pid);
		MUST(status == 0); /* nothing of ours was handed on */
	}
	return NULL;
}

/* Close-on-exec from birth: whoever starts a program at any instant hands on nothing. */
static void other_programs_start(void)
{
	sb_sandbox *own = make();
	pthread_t threads[2];
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 2; fd++)
		dup2(null, fd);
	closefrom(3);
	for (size_t i = 0; i < COUNT(threads); i++)
		MUST(pthread_create(&threads[i], NULL, thread_starts_others, NULL) == 0);
	sb_sandbox *another = make();
	for (int i = 0; i < 10; i++)
		run_in_once(another);
	atomic_store(&stop, 1);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	sb_sandbox_free(another);
	(void)own; /* its descriptors were closed by closefrom() */
}

/* ---- Who we are -------------------------------------------------------------------------------- */

/* A daemon that gives root up, before it makes its sandbox.  The kernel makes it undumpable then, and
 * /proc/self belongs to root. */
static void another_user(void)
{
	gid_t none = 0;

	MUST(setgroups(0, &none) == 0);
	MUST(setgid(PLAIN_ID) == 0 && setuid(PLAIN_ID) == 0);
	sb_sandbox *own = make();

	run_in_once(own);
	run_in(own, "[ $(id -u) != 0 ] || exit 3; echo out; exit 8");
	sb_sandbox_free(own);
}

/* And one that does so between two runs: the second is a plain user's, or is refused. */
static void another_user_later(void)
{
	const sb_command command = { .size = sizeof command, .argv = LIST("sh", "-c", "exit 8") };
	sb_sandbox *own = make();
	sb_result *result = NULL;

	run_in_once(own);
	MUST(setgid(PLAIN_ID) == 0 && setuid(PLAIN_ID) == 0);
	if (sb_run(own, &no_workspace, &command, NULL, &result, &err) == 0)
		MUST(sb_result_code(result) == 8);
	else
		MUST(err.message[0] != '\0');
	sb_result_free(result);
	sb_sandbox_free(own);
}

/* ---- Signals, umask, folder -------------------------------------------------------------------- */

static void signals_are_the_hosts(void)
{
	sb_sandbox *own = make();
	sigset_t all, now;

	sigfillset(&all);
	MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	run_in(own, "grep -E 'Sig(Blk|Ign):.*[1-9a-f]' /proc/self/status || { echo out; exit 8; }");
	MUST(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
	MUST(sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGCHLD) == 1);
	sb_sandbox_free(own);
}

/* Megabytes for a guest that reads nothing: nobody is ended by SIGPIPE. */
static void input_for_nobody(void)
{
	static char much[4 << 20];
	const sb_command command = { .size = sizeof command, .argv = LIST("true"),
				     .input_kind = SB_INPUT_BYTES, .input = much, .input_len = sizeof much };
	sb_sandbox *own = make();
	sb_result *result = NULL;

	signal(SIGPIPE, SIG_DFL);
	for (int i = 0; i < 5; i++) {
		MUST(sb_run(own, &no_workspace, &command, NULL, &result, &err) == 0);
		MUST(sb_result_code(result) == 0);
		sb_result_free(result);
	}
	sb_sandbox_free(own);
}

static void a_mask_for_all_and_no_folder(void)
{
	char folder[] = "/tmp/sb-hosts-XXXXXX";
	const sb_command command = { .size = sizeof command, .language = "bash",
				     .code = "echo x >/out/f", .code_len = 14 };
	sb_sandbox *own = make();
	sb_result *result = NULL;

	MUST(mkdtemp(folder) != NULL && chdir(folder) == 0 && rmdir(folder) == 0);
	umask(0777);
	run_in_once(own);
	MUST(sb_run(own, &no_workspace, &command, NULL, &result, &err) == 0);
	MUST(sb_result_files(result) != NULL && sb_tree_count(sb_result_files(result)) == 1);
	sb_result_free(result);
	sb_sandbox_free(own);
}

/* ---- Debuggers --------------------------------------------------------------------------------- */

static void traced_body(void)
{
	sb_sandbox *own = make();

	for (int i = 0; i < 3; i++)
		run_in_once(own);
	sb_sandbox_free(own);
}

/* Lets all that stops go on, as a debugger does whom nothing interests. */
static int follow(pid_t first)
{
	int status = 0, last = -1;

	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0)
			return last;
		if (pid == first && (WIFEXITED(status) || WIFSIGNALED(status)))
			last = status;
		if (!WIFSTOPPED(status))
			continue;
		int signo = WSTOPSIG(status);

		if (status >> 16 || signo == SIGTRAP || signo == SIGSTOP)
			signo = 0; /* an event, or the stop that begins */
		ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signo);
	}
}

static void traced(long what_follows)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		alarm(PATIENCE_S);
		raise(SIGSTOP);
		traced_body();
		_exit(0);
	}
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, (void *)(intptr_t)what_follows), 0);
	status = follow(pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("status 0x%x", (unsigned)status);
}

static void under_a_debugger(void **state)
{
	(void)state;
	traced(0);
	traced(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
	       PTRACE_O_TRACEEXIT);
}

/* ------------------------------------------------------------------------------------------------ */

#define HOST(name)                                                                                 \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		host(name);                                                                        \
	}
HOST(threads_come_and_go)
HOST(the_main_thread_ends)
#ifndef __SANITIZE_THREAD__ /* which needs larger ones itself */
HOST(small_stacks)
#endif
HOST(somebody_waits_for_any_child)
HOST(other_programs_start)
HOST(signals_are_the_hosts)
HOST(input_for_nobody)
HOST(a_mask_for_all_and_no_folder)

static void a_change_of_user(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	host(another_user);
	host(another_user_later);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_come_and_go),
		cmocka_unit_test(test_the_main_thread_ends),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(test_small_stacks),
#endif
		cmocka_unit_test(test_somebody_waits_for_any_child),
		cmocka_unit_test(test_other_programs_start),
		cmocka_unit_test(a_change_of_user),
		cmocka_unit_test(test_signals_are_the_hosts),
		cmocka_unit_test(test_input_for_nobody),
		cmocka_unit_test(test_a_mask_for_all_and_no_folder),
		cmocka_unit_test(under_a_debugger),
	};

	if (argc > 1)
		options.helper_dir = argv[1];
	if (chdir("/tmp") < 0)
		return 1;
	return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
