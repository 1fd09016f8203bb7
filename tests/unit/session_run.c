/* SPDX-License-Identifier: MIT */
/* One run over a scripted backend: ends, clocks, input, output, faults, what is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/session/session.h"
#include "../fake/fake.h"
#include "../lib/descriptors.h"

#define STEPS(...) ((const fake_step[]){ __VA_ARGS__, { FAKE_END, 0, NULL, 0 } })

static sb_sandbox *sandbox;
static const char *const argv_true[] = { "true", NULL };

static int setup(void **state)
{
	const sb_backend *const backends[] = { &fake_backend, &fake_other_backend, NULL };
	const char *const order[] = { "fake", NULL };
	const sb_sandbox_options o = { .size = sizeof o, .backends = backends, .order = order };

	fake_reset();
	*state = (void *)(intptr_t)open_descriptors();
	return sb_sandbox_new(&o, NULL, &sandbox, NULL);
}

static int teardown(void **state)
{
	sb_sandbox_free(sandbox);
	assert_int_equal(fake_seen.broken, 0);
	assert_int_equal(fake_seen.boxes, 0);
	assert_int_equal(fake_seen.guests, 0);
	assert_int_equal(fake_seen.states, 0);
	assert_int_equal(open_descriptors(), (int)(intptr_t)*state);
	return 0;
}

/* A run with these steps; the result is the test's. */
static int run_with(const fake_script *more, const sb_limits *limits, const sb_command *command,
		    const sb_wait *wait, sb_result **result, sb_error *err)
{
	fake_script script = *more;
	const sb_other_options *options[] = { FAKE_OPTIONS(&script), NULL };
	sb_spec spec = { .size = sizeof spec, .limits = limits, .other_options = options,
			 .workspace_mode = SB_WORKSPACE_NONE };
	sb_command c = { 0 };

	script.size = sizeof script;
	script.backend = "fake";
	if (command)
		c = *command;
	c.size = sizeof c;
	if (!c.language)
		c.argv = argv_true;
	return sb_run(sandbox, &spec, &c, wait, result, err);
}

static sb_result *run(const fake_step *steps, const sb_limits *limits, const sb_command *command)
{
	const fake_script script = { .steps = steps };
	sb_result *result = NULL;
	sb_error err = { 0 };

	if (run_with(&script, limits, command, NULL, &result, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	return result;
}

static void assert_output(const sb_result *r, int stream, const char *text)
{
	size_t len;
	const char *data = sb_result_output(r, stream, &len);

	assert_int_equal(len, strlen(text));
	assert_memory_equal(data, text, len);
}

static void assert_end(const sb_result *r, int outcome, int code, int signal, int error)
{
	assert_int_equal(sb_result_outcome(r), outcome);
	assert_int_equal(sb_result_code(r), code);
	assert_int_equal(sb_result_signal(r), signal);
	assert_int_equal(sb_result_error(r), error);
	if (error) {
		assert_non_null(sb_result_failure(r));
		assert_true(strlen(sb_result_failure(r)->message) > 10);
	}
}

/* ---- ends ---------------------------------------------------------------------------------- */

static void exit_table(void **state)
{
	static const int codes[] = { 0, 1, 3, 126, 127, 128, 137, 255 };

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(codes); i++) {
		sb_result *r = run((const fake_step[]){ { FAKE_END, codes[i], NULL, 0 } }, NULL, NULL);

		assert_end(r, SB_OUTCOME_EXITED, codes[i], 0, 0);
		assert_string_equal(sb_result_backend(r), "fake");
		sb_result_free(r);
	}
	for (int n = 0; n < 2; n++) {
		int sig = n ? SIGKILL : SIGSEGV;
		sb_result *r = run(STEPS({ FAKE_SIGNALED, sig, NULL, 0 }), NULL, NULL);

		assert_end(r, SB_OUTCOME_SIGNALED, -1, sig, 0);
		sb_result_free(r);
	}
}

static void limits_and_losses(void **state)
{
	static const struct {
		fake_step step;
		int outcome, error;
	} rows[] = {
		{ { FAKE_LIMIT, SB_ERR_MEMORY_LIMIT, NULL, 0 }, SB_OUTCOME_BUDGET_EXCEEDED,
		  SB_ERR_MEMORY_LIMIT },
		{ { FAKE_LIMIT, SB_ERR_CPU_LIMIT, NULL, 0 }, SB_OUTCOME_BUDGET_EXCEEDED,
		  SB_ERR_CPU_LIMIT },
		{ { FAKE_LIMIT, SB_ERR_PIDS_LIMIT, NULL, 0 }, SB_OUTCOME_BUDGET_EXCEEDED,
		  SB_ERR_PIDS_LIMIT },
		{ { FAKE_LIMIT, SB_ERR_FS_QUOTA, NULL, 0 }, SB_OUTCOME_BUDGET_EXCEEDED,
		  SB_ERR_FS_QUOTA },
		{ { FAKE_UNENFORCEABLE, 0, NULL, 0 }, SB_OUTCOME_UNENFORCEABLE,
		  SB_ERR_UNENFORCEABLE },
		{ { FAKE_VIOLATION, 0, NULL, 0 }, SB_OUTCOME_VIOLATION, SB_ERR_FORBIDDEN },
		{ { FAKE_LOSE, 0, NULL, 0 }, SB_OUTCOME_LOST, SB_ERR_CONNECTION_LOST },
	};

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		sb_result *r = run(STEPS({ FAKE_OUT, 0, "before", 0 }, rows[i].step), NULL, NULL);

		assert_end(r, rows[i].outcome, -1, 0, rows[i].error);
		assert_output(r, SB_STDOUT, "before");
		assert_int_equal(sb_result_incomplete(r), rows[i].outcome == SB_OUTCOME_LOST);
		sb_result_free(r);
	}
}

/* ---- clocks -------------------------------------------------------------------------------- */

static void deadline(void **state)
{
	const sb_limits l = { .size = sizeof l, .wall_ms = 500 };
	uint64_t start = clock_now_ns();
	sb_result *r = run(STEPS({ FAKE_OUT, 0, "a", 0 }, { FAKE_SLEEP, 600000, NULL, 0 }), &l, NULL);
	uint64_t took = (clock_now_ns() - start) / 1000000;
	sb_usage usage = { .size = sizeof usage };

	(void)state;
	assert_end(r, SB_OUTCOME_TIMED_OUT, -1, 0, SB_ERR_TIMEOUT);
	assert_output(r, SB_STDOUT, "a");
	assert_in_range(took, 500, 30000);
	sb_result_usage(r, &usage);
	assert_in_range(usage.wall_us, 500000, 30000000);
	assert_int_equal(fake_seen.terminated, 0);
	assert_int_equal(fake_seen.killed, 1);
	sb_result_free(r);
}

static void grace(void **state)
{
	const sb_limits l = { .size = sizeof l, .wall_ms = 500, .grace_ms = 5000 };
	sb_result *r = run(STEPS({ FAKE_ON_TERM, 0, NULL, 0 }, { FAKE_SLEEP, 600000, NULL, 0 },
				 { FAKE_TERM, 0, NULL, 0 }, { FAKE_OUT, 0, "bye", 0 },
				 { FAKE_END, 7, NULL, 0 }),
			   &l, NULL);

	(void)state;
	assert_end(r, SB_OUTCOME_TIMED_OUT, -1, 0, SB_ERR_TIMEOUT);
	assert_output(r, SB_STDOUT, "bye");
	assert_int_equal(fake_seen.killed, 0);
	sb_result_free(r);
	r = run(STEPS({ FAKE_IGNORE_TERM, 0, NULL, 0 }, { FAKE_SLEEP, 600000, NULL, 0 }), &l, NULL);
	assert_end(r, SB_OUTCOME_TIMED_OUT, -1, 0, SB_ERR_TIMEOUT);
	assert_int_equal(fake_seen.terminated, 2);
	assert_int_equal(fake_seen.killed, 1);
	sb_result_free(r);
}

static void callers_deadline(void **state)
{
	const sb_wait wait = { .size = sizeof wait, .timeout_ms = 1000 };
	const fake_script script = { .steps = STEPS({ FAKE_OUT, 0, "a", 0 },
						    { FAKE_SLEEP, 600000, NULL, 0 }) };
	const fake_script slow = { .slow_at = FAKE_AT_CREATE };
	sb_result *r = NULL;
	sb_error err = { 0 };

	(void)state;
	assert_int_equal(run_with(&script, NULL, NULL, &wait, &r, &err), 0);
	assert_end(r, SB_OUTCOME_TIMED_OUT, -1, 0, SB_ERR_TIMEOUT);
	assert_output(r, SB_STDOUT, "a");
	sb_result_free(r);
	r = NULL;
	assert_int_equal(run_with(&slow, NULL, NULL, &wait, &r, &err), SB_ERR_TIMEOUT);
	assert_null(r);
}

static atomic_bool said;

static int heard(void *user, int stream, const void *data, size_t len)
{
	(void)user;
	(void)stream;
	(void)data;
	(void)len;
	said = true;
	return 0;
}

static void *fire_later(void *cancel)
{
	while (!said)
		usleep(1000);
	sb_cancel_fire(cancel);
	return NULL;
}

static void cancel(void **state)
{
	const fake_script script = { .steps = STEPS({ FAKE_OUT, 0, "a", 0 },
						    { FAKE_SLEEP, 600000, NULL, 0 }) };
	const fake_script slow = { .slow_at = FAKE_AT_CREATE };
	sb_cancel *flag = NULL;
	sb_result *r = NULL;
	sb_error err = { 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(sb_cancel_new(&flag, NULL), 0);
	const sb_wait wait = { .size = sizeof wait, .cancel = flag };

	const sb_command talks = { .on_output = heard };

	said = false;
	pthread_create(&thread, NULL, fire_later, flag);
	assert_int_equal(run_with(&script, NULL, &talks, &wait, &r, &err), 0);
	pthread_join(thread, NULL);
	assert_end(r, SB_OUTCOME_CANCELLED, -1, 0, SB_ERR_CANCELLED);
	assert_int_equal(sb_result_failure(r)->kind, SB_KIND_ABORTED);
	assert_output(r, SB_STDOUT, "a");
	sb_result_free(r);
	/* it stays fired: nothing more starts */
	fake_seen.called[FAKE_AT_CREATE] = 0;
	assert_int_equal(run_with(&slow, NULL, NULL, &wait, &r, &err), SB_ERR_CANCELLED);
	assert_int_equal(fake_seen.called[FAKE_AT_CREATE], 0);
	sb_cancel_free(flag);
}

static void *close_later(void *arg)
{
	(void)arg;
	while (!fake_seen.guests)
		usleep(1000);
	sb_sandbox_close(sandbox, NULL, NULL);
	return NULL;
}

static void closing_ends_runs(void **state)
{
	const fake_script script = { .steps = STEPS({ FAKE_SLEEP, 600000, NULL, 0 }) };
	sb_result *r = NULL;
	sb_error err = { 0 };
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, close_later, NULL);
	assert_int_equal(run_with(&script, NULL, NULL, NULL, &r, &err), 0);
	assert_end(r, SB_OUTCOME_CANCELLED, -1, 0, SB_ERR_CANCELLED);
	pthread_join(thread, NULL);
	sb_result_free(r);
	assert_int_equal(run_with(&script, NULL, NULL, NULL, &r, &err), SB_ERR_CLOSED);
	assert_int_equal(sb_sandbox_close(sandbox, NULL, NULL), 0);
}

/* ---- input --------------------------------------------------------------------------------- */

static void input_bytes(void **state)
{
	const size_t len = 1 << 20;
	char *data = malloc(len);
	const sb_limits l = { .size = sizeof l, .out_stream_bytes = 2 << 20 };
	sb_command c = { .input_kind = SB_INPUT_BYTES, .input = data, .input_len = len };
	size_t got;

	(void)state;
	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 31 + (i >> 11));
	sb_result *r = run(STEPS({ FAKE_ECHO, 0, NULL, 0 }), &l, &c);
	const void *out = sb_result_output(r, SB_STDOUT, &got);

	assert_int_equal(got, len);
	assert_memory_equal(out, data, len);
	sb_result_free(r);
	/* one that reads nothing, and one that closes it early, are no failures; nor is SIGPIPE ours */
	r = run(STEPS({ FAKE_SLEEP, 50, NULL, 0 }), NULL, &c);
	assert_end(r, SB_OUTCOME_EXITED, 0, 0, 0);
	sb_result_free(r);
	signal(SIGPIPE, SIG_DFL);
	r = run(STEPS({ FAKE_READ, 10, NULL, 0 }, { FAKE_CLOSE_INPUT, 0, NULL, 0 },
		      { FAKE_SLEEP, 50, NULL, 0 }, { FAKE_OUT, 0, "fine", 0 }),
		NULL, &c);
	assert_end(r, SB_OUTCOME_EXITED, 0, 0, 0);
	assert_output(r, SB_STDOUT, "fine");
	sb_result_free(r);
	free(data);
}

static void input_never_ends(void **state)
{
	sb_command c = { .input_kind = SB_INPUT_FD };
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	c.input_fd = fds[0];
	for (int i = 0; i < 2; i++) {
		int flags = fcntl(fds[0], F_GETFL);
		sb_result *r = run(STEPS({ FAKE_OUT, 0, "hi", 0 }), NULL, &c);

		assert_end(r, SB_OUTCOME_EXITED, 0, 0, 0);
		assert_output(r, SB_STDOUT, "hi");
		assert_int_equal(fcntl(fds[0], F_GETFL), flags);
		sb_result_free(r);
	}
	assert_int_equal(write(fds[1], "seq\n", 4), 4);
	close(fds[1]);
	sb_result *r = run(STEPS({ FAKE_ECHO, 0, NULL, 0 }), NULL, &c);

	assert_output(r, SB_STDOUT, "seq\n");
	sb_result_free(r);
	close(fds[0]);
	sb_error err;

	assert_int_equal(run_with(&(fake_script){ 0 }, NULL, &c, NULL, &r, &err), SB_ERR_INVALID);
}

static void input_file(void **state)
{
	sb_command c = { .input_kind = SB_INPUT_FD };
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	fputs("from a file", file);
	fflush(file);
	c.input_fd = fileno(file);
	lseek(c.input_fd, 0, SEEK_SET);
	sb_result *r = run(STEPS({ FAKE_ECHO, 0, NULL, 0 }), NULL, &c);

	assert_output(r, SB_STDOUT, "from a file");
	sb_result_free(r);
	fclose(file);
}

static int64_t three_pieces(void *user, void *data, size_t cap)
{
	int *left = user;

	assert_true(cap >= 5);
	if (*left < 0)
		return -1;
	if (*left == 0)
		return 0;
	--*left;
	memcpy(data, "piece", 5);
	return 5;
}

static void input_callback(void **state)
{
	int left = 3;
	sb_command c = { .input_kind = SB_INPUT_CALLBACK, .read_input = three_pieces, .user = &left };
	sb_result *r = run(STEPS({ FAKE_ECHO, 0, NULL, 0 }), NULL, &c);

	(void)state;
	assert_output(r, SB_STDOUT, "piecepiecepiece");
	sb_result_free(r);
	left = -1;
	r = run(STEPS({ FAKE_ECHO, 0, NULL, 0 }, { FAKE_SLEEP, 600000, NULL, 0 }), NULL, &c);
	assert_end(r, SB_OUTCOME_CANCELLED, -1, 0, SB_ERR_CANCELLED);
	sb_result_free(r);
}

/* ---- output -------------------------------------------------------------------------------- */

static void output_stop(void **state)
{
	const sb_limits l = { .size = sizeof l, .out_total_bytes = 1000, .out_mode = SB_OUT_STOP };
	size_t out, err;
	sb_result *r = run(STEPS({ FAKE_ERR, 60, "0123456789", 0 }, { FAKE_OUT, 60, "abcdefghij", 0 },
				 { FAKE_SLEEP, 600000, NULL, 0 }),
			   &l, NULL);

	(void)state;
	assert_end(r, SB_OUTCOME_BUDGET_EXCEEDED, -1, 0, SB_ERR_OUTPUT_LIMIT);
	sb_result_output(r, SB_STDOUT, &out);
	sb_result_output(r, SB_STDERR, &err);
	assert_int_equal(out + err, 1000);
	assert_true(sb_result_truncated(r));
	sb_result_free(r);
	/* also of one that has already ended, whatever else is said of it */
	r = run(STEPS({ FAKE_OUT, 101, "abcdefghij", 0 }, { FAKE_LIMIT, SB_ERR_MEMORY_LIMIT, NULL, 0 }),
		&l, NULL);
	assert_end(r, SB_OUTCOME_BUDGET_EXCEEDED, -1, 0, SB_ERR_OUTPUT_LIMIT);
	sb_result_free(r);
	r = run(STEPS({ FAKE_OUT, 100, "abcdefghij", 0 }), &l, NULL);
	assert_end(r, SB_OUTCOME_EXITED, 0, 0, 0);
	assert_false(sb_result_truncated(r));
	sb_result_free(r);
}

static void output_truncate(void **state)
{
	const sb_limits l = { .size = sizeof l, .out_stream_bytes = 100, .out_mode = SB_OUT_TRUNCATE,
			      .out_keep = SB_KEEP_HEAD };
	const sb_limits both = { .size = sizeof l, .out_stream_bytes = 10,
				 .out_mode = SB_OUT_TRUNCATE, .out_keep = SB_KEEP_HEAD_TAIL };
	size_t at, len;
	sb_result *r = run(STEPS({ FAKE_OUT, 200000, "abcdefghij", 0 }, { FAKE_ERR, 0, "e", 0 },
				 { FAKE_END, 5, NULL, 0 }),
			   &l, NULL);

	(void)state;
	assert_end(r, SB_OUTCOME_EXITED, 5, 0, 0);
	assert_true(sb_result_truncated(r));
	assert_int_equal(sb_result_dropped(r, SB_STDOUT, &at), 2000000 - 100);
	assert_int_equal(at, 100);
	assert_int_equal(sb_result_dropped(r, SB_STDERR, &at), 0);
	assert_output(r, SB_STDERR, "e");
	sb_result_free(r);
	r = run(STEPS({ FAKE_OUT, 1000, "x", 0 }, { FAKE_OUT, 0, "ERROR last", 0 }), &both, NULL);
	const char *out = sb_result_output(r, SB_STDOUT, &len);

	assert_memory_equal(out, "xxxxx last", len);
	assert_int_equal(sb_result_dropped(r, SB_STDOUT, &at), 1000);
	assert_int_equal(at, 5);
	sb_result_free(r);
}

static void bounded_memory(void **state)
{
	static char piece[1 << 20];
	struct rusage before, after;
	const sb_limits l = { .size = sizeof l, .out_stream_bytes = 1 << 20,
			      .out_mode = SB_OUT_TRUNCATE };

	(void)state;
	memset(piece, 'x', sizeof piece);
	getrusage(RUSAGE_SELF, &before);
	sb_result *r = run(STEPS({ FAKE_OUT, 256, piece, sizeof piece }), &l, NULL);

	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(sb_result_dropped(r, SB_STDOUT, NULL), 255ull << 20);
#ifndef __SANITIZE_ADDRESS__
	assert_true(after.ru_maxrss - before.ru_maxrss < 8 << 10);
#endif
	sb_result_free(r);
}

typedef struct seen_output {
	char text[2][256];
	size_t len[2];
	int stop_after, calls;
} seen_output;

static int see(void *user, int stream, const void *data, size_t len)
{
	seen_output *s = user;
	int i = stream - SB_STDOUT;

	assert_in_range(stream, SB_STDOUT, SB_STDERR);
	assert_true(s->len[i] + len < sizeof s->text[i]);
	memcpy(s->text[i] + s->len[i], data, len);
	s->len[i] += len;
	return s->stop_after && ++s->calls >= s->stop_after;
}

static void output_callback(void **state)
{
	seen_output s = { .stop_after = 0 };
	sb_command c = { .on_output = see, .user = &s };
	const sb_limits l = { .size = sizeof l, .out_stream_bytes = 10 };
	sb_result *r = run(STEPS({ FAKE_OUT, 0, "0123456789abc", 0 }, { FAKE_ERR, 0, "err", 0 }), &l,
			   &c);

	(void)state;
	assert_string_equal(s.text[0], "0123489abc");
	assert_string_equal(s.text[1], "err");
	assert_output(r, SB_STDOUT, "0123489abc");
	sb_result_free(r);
	s = (seen_output){ .stop_after = 1 };
	r = run(STEPS({ FAKE_OUT, 0, "a", 0 }, { FAKE_SLEEP, 600000, NULL, 0 }), NULL, &c);
	assert_end(r, SB_OUTCOME_CANCELLED, -1, 0, SB_ERR_CANCELLED);
	sb_result_free(r);
	/* what it says after the end changes no truth, and it is not asked again */
	s = (seen_output){ .stop_after = 1 };
	r = run(STEPS({ FAKE_OUT, 0, "0123456789abc", 0 }, { FAKE_ERR, 0, "e", 0 },
		      { FAKE_END, 3, NULL, 0 }),
		&l, &c);
	assert_true(s.calls == 1);
	sb_result_free(r);
}

static void both_streams_complete(void **state)
{
	(void)state;
	for (int i = 0; i < 2000; i++) {
		sb_result *r = run(STEPS({ FAKE_ERR, 0, "e\n", 0 }, { FAKE_OUT, 0, "o\n", 0 }), NULL,
				   NULL);

		assert_output(r, SB_STDOUT, "o\n");
		assert_output(r, SB_STDERR, "e\n");
		sb_result_free(r);
	}
}

static void held_pipe(void **state)
{
	uint64_t start = clock_now_ns();
	sb_result *r = run(STEPS({ FAKE_HOLD, 0, NULL, 0 }, { FAKE_OUT, 0, "done", 0 },
				 { FAKE_END, 4, NULL, 0 }),
			   NULL, NULL);

	(void)state;
	assert_end(r, SB_OUTCOME_EXITED, 4, 0, 0);
	assert_output(r, SB_STDOUT, "done");
	assert_true((clock_now_ns() - start) / 1000000 < 2200);
	sb_result_free(r);
}

/* ---- faults -------------------------------------------------------------------------------- */

static void every_step_fails(void **state)
{
	(void)state;
	for (int at = FAKE_AT_PLAN; at <= FAKE_AT_REAP; at++) {
		const fake_script script = { .fail_at = at, .fail_code = SB_ERR_NOT_FOUND };
		sb_result *r = NULL;
		sb_error err = { 0 };

		if (at == FAKE_AT_PUT)
			continue; /* only code puts something: see the resolve test */
		assert_int_equal(run_with(&script, NULL, NULL, NULL, &r, &err), SB_ERR_NOT_FOUND);
		assert_null(r);
		assert_int_equal(err.code, SB_ERR_NOT_FOUND);
		assert_int_equal(err.kind, SB_KIND_NOT_FOUND);
		assert_int_equal(fake_seen.boxes, 0);
		assert_int_equal(fake_seen.guests, 0);
	}
}

static void down_is_told(void **state)
{
	sb_result *r = NULL;
	sb_error err = { 0 };

	(void)state;
	fake_down = 1;
	assert_int_equal(run_with(&(fake_script){ 0 }, NULL, NULL, NULL, &r, &err),
			 SB_ERR_BACKEND_UNAVAILABLE);
	assert_int_equal(fake_seen.called[FAKE_AT_CREATE], 0);
	fake_down = 0; /* it came up: nobody has to make a new object for that */
	assert_int_equal(run_with(&(fake_script){ 0 }, NULL, NULL, NULL, &r, &err), 0);
	sb_result_free(r);
	assert_int_equal(fake_seen.called[FAKE_AT_PROBE], 2);
	assert_int_equal(run_with(&(fake_script){ 0 }, NULL, NULL, NULL, &r, &err), 0);
	sb_result_free(r);
	assert_int_equal(fake_seen.called[FAKE_AT_PROBE], 2);
}

/* ---- the object ------------------------------------------------------------------------------ */

static void forked_child(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		sb_result *r = NULL;
		const sb_command c = { .size = sizeof c, .argv = argv_true };

		_exit(sb_run(sandbox, NULL, &c, NULL, &r, NULL) == SB_ERR_CLOSED &&
				      sb_sandbox_close(sandbox, NULL, NULL) == SB_ERR_CLOSED
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void *many_runs(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10; i++) {
		sb_result *r = run(STEPS({ FAKE_OUT, 0, "x", 0 }, { FAKE_END, i, NULL, 0 }), NULL, NULL);

		assert_end(r, SB_OUTCOME_EXITED, i, 0, 0);
		sb_result_free(r);
	}
	return NULL;
}

static void many_threads(void **state)
{
	pthread_t threads[64];

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many_runs, NULL), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(fake_seen.called[FAKE_AT_PROBE], 1);
	assert_int_equal(fake_seen.called[FAKE_AT_CREATE], 640);
}

static void *run_named(void *arg)
{
	const sb_command c = { .id = "twin" };

	(void)arg;
	sb_result_free(run(STEPS({ FAKE_SLEEP, 300, NULL, 0 }), NULL, &c));
	return NULL;
}

static void id_in_use(void **state)
{
	const sb_command c = { .id = "twin" };
	sb_result *r = NULL;
	sb_error err;
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, run_named, NULL);
	while (!fake_seen.guests)
		usleep(1000);
	assert_int_equal(run_with(&(fake_script){ 0 }, NULL, &c, NULL, &r, &err), SB_ERR_CONFLICT);
	pthread_join(thread, NULL);
	assert_int_equal(run_with(&(fake_script){ 0 }, NULL, &c, NULL, &r, &err), 0);
	sb_result_free(r);
}

/* What the end took away, and what it could not: in the result, and said aloud. */
static void count_warnings(void *user, int level, const char *module, const char *message)
{
	assert_string_equal(module, "run");
	assert_non_null(strstr(message, "3 cgroup directories"));
	*(int *)user += level == SB_LOG_WARNING;
}

static void what_is_left_is_told(void **state)
{
	const sb_backend *const backends[] = { &fake_backend, NULL };
	const char *const order[] = { "fake", NULL };
	int warnings = 0;
	const sb_sandbox_options o = { .size = sizeof o, .backends = backends,
				       .order = order, .log = count_warnings,
				       .log_user = &warnings };
	const fake_script script = { .steps = STEPS({ FAKE_OUT, 0, "x", 0 }), .outlived = 2, .left = 3 };
	sb_teardown t = { .size = sizeof t };
	sb_result *r = NULL;
	sb_error err;

	(void)state;
	sb_sandbox_free(sandbox);
	assert_int_equal(sb_sandbox_new(&o, NULL, &sandbox, NULL), 0);
	assert_int_equal(run_with(&script, NULL, NULL, NULL, &r, &err), 0);
	sb_result_teardown(r, &t);
	assert_int_equal(t.killed, 2);
	assert_int_equal(t.left, 3);
	assert_true(t.took_us < 60000000);
	assert_non_null(strstr(sb_result_json(r), "\"teardown\":{\"killed\":2,\"left\":3,\"took_ms\":"));
	assert_int_equal(warnings, 1);
	sb_result_free(r);
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(exit_table),	     RUN_TEST(limits_and_losses),
		RUN_TEST(deadline),	     RUN_TEST(grace),
		RUN_TEST(callers_deadline),  RUN_TEST(cancel),
		RUN_TEST(closing_ends_runs), RUN_TEST(input_bytes),
		RUN_TEST(input_never_ends),  RUN_TEST(input_file),
		RUN_TEST(input_callback),    RUN_TEST(output_stop),
		RUN_TEST(output_truncate),   RUN_TEST(bounded_memory),
		RUN_TEST(output_callback),   RUN_TEST(both_streams_complete),
		RUN_TEST(held_pipe),	     RUN_TEST(every_step_fails),
		RUN_TEST(down_is_told),	     RUN_TEST(forked_child),
		RUN_TEST(many_threads),	     RUN_TEST(id_in_use),
		RUN_TEST(what_is_left_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
