/* SPDX-License-Identifier: MIT */
/*
 * sessions.c - one suite over every backend that has sessions: what processes in them promise.
 *
 * usage: sessions BACKEND [DIRECTORY OF sb-launch]
 *
 * A real backend gets shell lines, the scripted one the steps beside them.  What a backend cannot have
 * (a terminal) is tested to be refused there.  Each test has a sandbox object of its own, and ends with
 * as many descriptors, threads and children as it began with.
 */
#include "sessions.h"

sb_error err;
world w;

/* ---- streams and cursors ------------------------------------------------------------------------ */

static void both_streams(void **state)
{
	seen all = { 0 };
	sb_process *p = spawn(&(wish){ .line = "echo out; echo err >&2; exit 3",
				       .steps = STEPS({ FAKE_OUT, 0, "out\n", 0 },
						      { FAKE_ERR, 0, "err\n", 0 },
						      { FAKE_END, 3, NULL, 0 }) });

	(void)state;
	read_all(p, 0, 65536, &all);
	assert_string_equal(all.text[SB_STDOUT], "out\n");
	assert_string_equal(all.text[SB_STDERR], "err\n");
	ended(p, SB_OUTCOME_EXITED, 3, 0, 0);
	sb_process_free(p);
}

/* The same bytes in pieces of any size, as often as one likes, also after the end. */
static void replay(void **state)
{
	seen whole = { 0 }, pieces = { 0 };
	sb_chunk chunk = { .size = sizeof chunk };
	char piece[8];
	sb_process *p = spawn(&(wish){ .line = "echo one; echo two; printf '\\360\\237\\230\\200'",
				       .steps = STEPS({ FAKE_OUT, 0, "one\ntwo\n\360\237\230\200", 0 }) });

	(void)state;
	ended(p, SB_OUTCOME_EXITED, 0, 0, 0);
	read_all(p, 0, 65536, &whole);
	read_all(p, 0, 3, &pieces);
	assert_string_equal(whole.text[SB_STDOUT], "one\ntwo\n\360\237\230\200");
	assert_string_equal(pieces.text[SB_STDOUT], whole.text[SB_STDOUT]);
	assert_int_equal(sb_output_read(sb_process_output(p), 4, piece, 3, NULL, &chunk, &err), 0);
	assert_memory_equal(piece, "two", 3);
	assert_int_equal(chunk.next, 7);
	assert_false(chunk.eof);
	/* at the end: nothing, and that it is the end; beyond it there is nothing to wait for */
	assert_int_equal(sb_output_read(sb_process_output(p), 12, piece, 3, NULL, &chunk, &err), 0);
	assert_true(chunk.eof && chunk.len == 0);
	assert_int_equal(sb_output_read(sb_process_output(p), 999, piece, 3, NULL, &chunk, &err),
			 SB_ERR_INVALID);
	assert_int_equal(sb_output_read(sb_process_output(p), 0, piece, 0, NULL, &chunk, &err),
			 SB_ERR_INVALID);
	assert_int_equal(sb_process_close(p, NULL, &err), 0);
	assert_int_equal(sb_output_read(sb_process_output(p), 0, piece, 3, NULL, &chunk, &err),
			 SB_ERR_PROCESS_CLOSED);
	ended(p, SB_OUTCOME_EXITED, 0, 0, 0); /* remembered */
	sb_process_free(p);
}

static char letters[10001];

static void gap(void **state)
{
	sb_chunk chunk = { .size = sizeof chunk };
	uint64_t oldest, end;
	char piece[2000];
	seen rest = { 0 };

	(void)state;
	w.limits.log_bytes = 1024;
	sb_process *p = spawn(&(wish){ .line = "head -c 9990 /dev/zero | tr '\\0' x; printf 0123456789",
				       .steps = STEPS({ FAKE_OUT, 0, letters, 0 }) });

	ended(p, SB_OUTCOME_EXITED, 0, 0, 0);
	await_eof(p);
	assert_int_equal(sb_output_read(sb_process_output(p), 0, piece, sizeof piece, NULL, &chunk, &err),
			 SB_ERR_SEQUENCE_GAP);
	assert_int_equal(sb_output_range(sb_process_output(p), &oldest, &end, &err), 0);
	assert_int_equal(end, 10000);
	assert_in_range(end - oldest, 900, 1024);
	assert_int_equal(sb_output_read(sb_process_output(p), oldest - 1, piece, sizeof piece, NULL, &chunk,
					&err), SB_ERR_SEQUENCE_GAP);
	read_all(p, oldest, 100, &rest);
	assert_int_equal(rest.len[SB_STDOUT], end - oldest);
	assert_string_equal(rest.text[SB_STDOUT] + rest.len[SB_STDOUT] - 10, "0123456789");
	sb_process_free(p);
}

/* A reader that comes and goes, and goes on where it was, misses nothing and sees nothing twice. */
static void coming_and_going(void **state)
{
	char *text = malloc(1 << 20);
	size_t len = 0;
	sb_chunk chunk = { .size = sizeof chunk };
	const sb_wait moment = { .size = sizeof moment, .timeout_ms = 1 };
	unsigned random = 7;

	(void)state;
	if (w.is_fake) {
		free(text);
		return;
	}
	sb_process *p = spawn(&(wish){ .line = "seq 1 100000" });

	while (!chunk.eof) {
		random = random * 1103515245u + 12345u;
		size_t cap = 1 + (random >> 16) % 9000;
		int code = sb_output_read(sb_process_output(p), chunk.next, text + len, cap, &moment, &chunk,
					  &err);

		assert_true(code == 0 || code == SB_ERR_AGAIN);
		len += code == 0 ? chunk.len : 0;
	}
	char *at = text;

	for (int i = 1; i <= 100000; i++) {
		assert_int_equal(strtol(at, &at, 10), i);
		assert_int_equal(*at++, '\n');
	}
	assert_int_equal(at - text, len);
	free(text);
	sb_process_free(p);
}

/* ---- input ---------------------------------------------------------------------------------------- */

/* More than any pipe holds goes through; without waiting as far as it goes, and that is told. */
static void writing(void **state)
{
	enum { MUCH = 1 << 20 };
	char *data = malloc(MUCH), *back = malloc(MUCH);
	const sb_wait at_once = { .size = sizeof at_once, .timeout_ms = SB_NO_WAIT };
	sb_process *p = spawn(&(wish){ .line = "sleep .3; cat",
				       .steps = STEPS({ FAKE_SLEEP, 300, NULL, 0 }, { FAKE_ECHO, 0, NULL, 0 }) });
	size_t first = 0, rest = 0;
	seen all = { .into = back, .room = MUCH };

	(void)state;
	for (size_t i = 0; i < MUCH; i++)
		data[i] = (char)(i * 31 + i / 977);
	assert_int_equal(sb_process_write(p, data, MUCH, &at_once, &first, &err), SB_ERR_AGAIN);
	assert_in_range(first, 1, MUCH - 1);
	assert_int_equal(sb_process_write(p, data + first, MUCH - first, NULL, &rest, &err), 0);
	assert_int_equal(rest, MUCH - first);
	assert_int_equal(sb_process_close_input(p, NULL, &err), 0);
	assert_int_equal(sb_process_close_input(p, NULL, &err), 0); /* closed already */
	assert_int_equal(sb_process_write(p, "x", 1, NULL, NULL, &err), SB_ERR_PROCESS_CLOSED);
	read_all(p, 0, 65536, &all);
	assert_int_equal(all.total, MUCH);
	assert_memory_equal(back, data, MUCH);
	ended(p, SB_OUTCOME_EXITED, 0, 0, 0);
	assert_int_equal(sb_process_write(p, "x", 1, NULL, NULL, &err), SB_ERR_PROCESS_CLOSED);
	assert_int_equal(sb_process_signal(p, SB_SIGNAL_USER1, NULL, &err), SB_ERR_PROCESS_CLOSED);
	free(data);
	free(back);
	sb_process_free(p);
}

static int64_t call_back(void *user, void *to, size_t cap)
{
	int *left = user;

	(void)cap;
	if (*left == 0)
		return 0;
	memcpy(to, "called\n", 7);
	--*left;
	return 7;
}

static void given_inputs(void **state)
{
	static const char path[] = "/etc/passwd";
	int fds[2], left = 2;
	seen all = { 0 };
	const wish cat = { .line = "cat", .steps = STEPS({ FAKE_ECHO, 0, NULL, 0 }) };
	wish it = cat;

	(void)state;
	it.command = (sb_command){ .input_kind = SB_INPUT_BYTES, .input = "bytes", .input_len = 5 };
	says(spawn(&it), "bytes");
	it = cat;
	it.command = (sb_command){ .input_kind = SB_INPUT_NONE };
	says(spawn(&it), "");
	it = cat;
	it.command = (sb_command){ .input_kind = SB_INPUT_CALLBACK, .read_input = call_back, .user = &left };
	says(spawn(&it), "called\ncalled\n");
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	it = cat;
	it.command = (sb_command){ .input_kind = SB_INPUT_FD, .input_fd = fds[0] };
	sb_process *p = spawn(&it);

	close(fds[0]); /* what was lent is copied */
	assert_int_equal(write(fds[1], "through a pipe", 14), 14);
	assert_int_equal(sb_process_write(p, "x", 1, NULL, NULL, &err), SB_ERR_PROCESS_CLOSED);
	close(fds[1]);
	says(p, "through a pipe");
	fds[0] = open(path, O_RDONLY | O_CLOEXEC);
	if (fds[0] < 0)
		return;
	it.command.input_fd = fds[0];
	p = spawn(&it);
	read_all(p, 0, 65536, &all);
	assert_true(all.total > 0);
	sb_process_free(p);
	close(fds[0]);
}

/* What the library's I/O thread watches. */
static int watched(void)
{
	char path[64], line[256];
	int count = 0;

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
		FILE *file = fopen(path, "re");

		while (file && fgets(line, sizeof line, file))
			count += !strncmp(line, "tfd:", 4);
		if (file)
			fclose(file);
	}
	return count;
}

/* As a child that an application forks has all of its descriptors: a close is not the end of a file then. */
static void shared_descriptors(void **state)
{
	int fds[2], hold[2], before = -1;
	char none;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	for (int round = 0; round < 2; round++) {
		wish lent = { .line = "exit 0", .steps = STEPS({ FAKE_END, 0, NULL, 0 }),
			      .command = { .input_kind = SB_INPUT_FD, .input_fd = fds[0] } };
		sb_process *p[3] = { spawn(&lent) };

		if (!round) { /* the thread is there from now on */
			ended(p[0], SB_OUTCOME_EXITED, 0, 0, 0);
			sb_process_free(p[0]);
			before = watched();
			p[0] = spawn(&lent);
		}
		p[1] = spawn(&(wish){ .line = "cat", .steps = STEPS({ FAKE_ECHO, 0, NULL, 0 }) });
		p[2] = spawn(&(wish){ .line = "exec sleep 1000", .steps = STEPS({ FAKE_SLEEP, 1000000, NULL, 0 }),
				      .command = { .input_kind = SB_INPUT_FD, .input_fd = fds[0] } });
		assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
		pid_t child = fork();

		if (!child) {
			close(hold[1]);
			_exit((int)read(hold[0], &none, 1));
		}
		assert_true(child > 0);
		close(hold[0]);
		assert_int_equal(round ? sb_process_close_input(p[1], NULL, &err) : 0, 0);
		for (size_t i = 0; i < COUNT(p); i++)
			sb_process_free(p[i]);
		assert_int_equal(write(fds[1], "late", 4), 4);
		for (uint64_t late = now_ms() + HANG_MS; watched() != before && now_ms() < late;)
			;
		assert_int_equal(watched(), before);
		close(hold[1]);
		waitpid(child, NULL, 0);
	}
	close(fds[0]);
	close(fds[1]);
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void left_behind(void **state)
{
	uint64_t start = now_ms();
	sb_process *p = spawn(&(wish){ .line = "sleep @7751 & echo lead; exit 3",
				       .steps = STEPS({ FAKE_HOLD, 0, NULL, 0 }, { FAKE_OUT, 0, "lead\n", 0 },
						      { FAKE_END, 3, NULL, 0 }) });

	(void)state;
	ended(p, SB_OUTCOME_EXITED, 3, 0, 0);
	says(p, "lead\n");
	assert_true(now_ms() - start < HANG_MS);
	if (!w.is_fake)
		assert_int_equal(processes("@7751"), 0);
}

static void interrupted(void **state)
{
	sb_process *p = spawn(&(wish){
		.line = "trap 'echo got; on=1' INT; echo up; while [ -z \"$on\" ]; do sleep .02; done; echo end",
		.steps = STEPS({ FAKE_OUT, 0, "up\n", 0 }, { FAKE_INTERRUPT, 0, NULL, 0 },
			       { FAKE_OUT, 0, "got\nend\n", 0 }) });

	(void)state;
	await_text(p, "up\n");
	assert_int_equal(sb_process_signal(p, SB_SIGNAL_INTERRUPT, NULL, &err), 0);
	ended(p, SB_OUTCOME_EXITED, 0, 0, 0);
	assert_int_equal(sb_process_signal(p, 77, NULL, &err), SB_ERR_INVALID);
	says(p, "up\ngot\nend\n");
}

static void terminated(void **state)
{
	const wish stubborn = { .line = "trap '' TERM; echo up; while :; do sleep .02; done",
				.steps = STEPS({ FAKE_IGNORE_TERM, 0, NULL, 0 }, { FAKE_OUT, 0, "up\n", 0 },
					       { FAKE_SLEEP, 600000, NULL, 0 }) };
	const sb_wait short_wait = { .size = sizeof short_wait, .timeout_ms = 200 };
	uint64_t start;

	(void)state;
	w.limits.grace_ms = 600;
	sb_process *p = spawn(&stubborn);

	await_text(p, "up\n");
	start = now_ms();
	assert_int_equal(sb_process_terminate(p, NULL, &err), 0);
	assert_in_range(now_ms() - start, 500, HANG_MS);
	ended(p, SB_OUTCOME_TERMINATED, -1, 0, 0);
	assert_int_equal(sb_process_terminate(p, NULL, &err), 0); /* ended already */
	says(p, "up\n");
	/* no more grace than the caller has time */
	w.limits.grace_ms = 60000;
	p = spawn(&stubborn);
	await_text(p, "up\n");
	assert_int_equal(sb_process_terminate(p, &short_wait, &err), 0);
	ended(p, SB_OUTCOME_TERMINATED, -1, 0, 0);
	sb_process_free(p);
	/* a polite one has its time */
	p = spawn(&(wish){ .line = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep .02; done",
			   .steps = STEPS({ FAKE_ON_TERM, 0, NULL, 0 }, { FAKE_OUT, 0, "up\n", 0 },
					  { FAKE_SLEEP, 600000, NULL, 0 }, { FAKE_TERM, 0, NULL, 0 },
					  { FAKE_OUT, 0, "bye\n", 0 }) });
	await_text(p, "up\n");
	assert_int_equal(sb_process_terminate(p, NULL, &err), 0);
	says(p, "up\nbye\n");
}

static void reasons(void **state)
{
	const wish forever = { .line = "sleep @7752", .steps = STEPS({ FAKE_SLEEP, 600000, NULL, 0 }) };

	(void)state;
	sb_process *p = spawn(&(wish){ .line = "kill -9 $$", .steps = STEPS({ FAKE_SIGNALED, 9, NULL, 0 }) });

	ended(p, SB_OUTCOME_SIGNALED, -1, 9, 0);
	sb_process_free(p);
	p = spawn(&forever);
	assert_int_equal(sb_process_signal(p, SB_SIGNAL_KILL, NULL, &err), 0);
	ended(p, SB_OUTCOME_TERMINATED, -1, 0, 0);
	sb_process_free(p);
	w.limits.wall_ms = 300;
	p = spawn(&forever);
	ended(p, SB_OUTCOME_TIMED_OUT, -1, 0, SB_ERR_TIMEOUT);
	sb_process_free(p);
	w.limits = (sb_limits){ .size = sizeof w.limits, .out_stream_bytes = 10000, .out_mode = SB_OUT_STOP };
	p = spawn(&(wish){ .line = "while :; do echo xxxxxxxxx; done",
			   .steps = STEPS({ FAKE_OUT, 3000, "xxxxxxxxx\n", 0 }, { FAKE_SLEEP, 600000, NULL, 0 }) });
	ended(p, SB_OUTCOME_BUDGET_EXCEEDED, -1, 0, SB_ERR_OUTPUT_LIMIT);
	sb_process_free(p);
}

static void waiting(void **state)
{
	const sb_wait moment = { .size = sizeof moment, .timeout_ms = 50 };
	sb_exit end = { .size = sizeof end };
	sb_chunk chunk = { .size = sizeof chunk };
	sb_cancel *flag = NULL;
	char piece[8];
	sb_process *p = spawn(&(wish){ .line = "cat", .steps = STEPS({ FAKE_ECHO, 0, NULL, 0 }) });

	(void)state;
	assert_int_equal(sb_process_wait(p, &moment, &end, &err), SB_ERR_AGAIN);
	assert_int_equal(sb_output_read(sb_process_output(p), 0, piece, 8, &moment, &chunk, &err), SB_ERR_AGAIN);
	assert_int_equal(sb_cancel_new(&flag, NULL), 0);
	sb_cancel_fire(flag);
	const sb_wait cancelled = { .size = sizeof cancelled, .cancel = flag };

	assert_int_equal(sb_process_wait(p, &cancelled, &end, &err), SB_ERR_CANCELLED);
	assert_int_equal(sb_output_read(sb_process_output(p), 0, piece, 8, &cancelled, &chunk, &err),
			 SB_ERR_CANCELLED);
	sb_cancel_free(flag);
	sb_process_free(p);
}

/* ---- names ------------------------------------------------------------------------------------------------ */

static void ids(void **state)
{
	const wish it = { .line = "cat", .steps = STEPS({ FAKE_ECHO, 0, NULL, 0 }), .command = { .id = "one" } };
	sb_process *p = spawn(&it), *other = NULL;
	sb_list *list = NULL;
	sb_info info = { .size = sizeof info };

	(void)state;
	assert_string_equal(sb_process_id(p), "one");
	assert_int_equal(try_spawn(&it, &other), SB_ERR_CONFLICT);
	assert_null(other);
	assert_int_equal(sb_sandbox_terminate(w.sandbox, "two", NULL, &err), SB_ERR_NOT_FOUND);
	assert_int_equal(sb_sandbox_terminate(w.sandbox, "one", NULL, &err), 0);
	/* it stays on the list until it is closed */
	assert_int_equal(sb_sandbox_list(w.sandbox, SB_LIST_ALL, &list, &err), 0);
	assert_int_equal(sb_list_count(list), 2);
	assert_int_equal(sb_list_at(list, 1, &info), 0);
	assert_string_equal(info.id, "one");
	assert_string_equal(info.session, sb_session_id(w.session));
	assert_string_equal(info.backend, w.backend);
	assert_int_equal(info.running, 0);
	assert_int_equal(info.outcome, SB_OUTCOME_TERMINATED);
	assert_int_equal(sb_list_at(list, 2, &info), SB_ERR_INVALID);
	sb_list_free(list);
	assert_int_equal(try_spawn(&it, &other), SB_ERR_CONFLICT);
	assert_int_equal(sb_process_close(p, NULL, &err), 0);
	other = spawn(&it);
	assert_int_equal(sb_sandbox_list(w.sandbox, SB_LIST_PROCESSES, &list, &err), 0);
	assert_int_equal(sb_list_count(list), 1);
	assert_int_equal(sb_list_at(list, 0, &info), 0);
	assert_int_equal(info.running, 1);
	sb_list_free(list);
	sb_process_free(other);
	sb_process_free(p);
}

static void not_started(void **state)
{
	sb_process *p = NULL;
	sb_list *list = NULL;

	(void)state;
	assert_int_equal(try_spawn(&(wish){ .argv = LIST(NULL) }, &p), SB_ERR_INVALID);
	assert_int_equal(try_spawn(&(wish){ .argv = LIST("sh"), .command = { .flags = 1u << 30 } }, &p),
			 SB_ERR_UNSUPPORTED);
	if (!w.is_fake) {
		assert_int_equal(try_spawn(&(wish){ .argv = LIST("no-such-program") }, &p), SB_ERR_NOT_FOUND);
		assert_int_equal(try_spawn(&(wish){ .argv = LIST("/etc/passwd") }, &p), SB_ERR_FORBIDDEN);
	}
	assert_null(p);
	assert_int_equal(sb_sandbox_list(w.sandbox, SB_LIST_PROCESSES, &list, &err), 0);
	assert_int_equal(sb_list_count(list), 0);
	sb_list_free(list);
}

/* ---- watches -------------------------------------------------------------------------------------------------- */

static void watching(void **state)
{
	sb_watch *early = NULL, *late = NULL;
	seen a = { 0 }, b = { 0 };
	sb_process *p = spawn(&(wish){ .line = "echo first; read x; echo second; exit 4",
				       .steps = STEPS({ FAKE_OUT, 0, "first\n", 0 }, { FAKE_READ, 2, NULL, 0 },
						      { FAKE_OUT, 0, "second\n", 0 }, { FAKE_END, 4, NULL, 0 }) });

	(void)state;
	assert_int_equal(sb_watch_new(sb_process_output(p), 0, 0, &early, &err), 0);
	await_text(p, "first\n");
	assert_int_equal(sb_watch_new(sb_process_output(p), 0, 0, &late, &err), 0);
	assert_int_equal(sb_watch_new(sb_process_output(p), 999, 0, &late, &err), SB_ERR_INVALID);
	assert_int_equal(sb_process_write(p, "x\n", 2, NULL, NULL, &err), 0);
	ended(p, SB_OUTCOME_EXITED, 4, 0, 0);
	await_eof(p);
	assert_int_equal(sb_process_close(p, NULL, &err), 0);
	watch_all(early, &a);
	watch_all(late, &b);
	assert_string_equal(a.text[SB_STDOUT], "first\nsecond\n");
	assert_string_equal(b.text[SB_STDOUT], "first\nsecond\n");
	assert_int_equal(b.replayed, 6); /* what was there before it is told apart */
	assert_int_equal(a.exit_code, 4);
	assert_int_equal(b.exit_code, 4);
	assert_true(a.closed && b.closed && !a.lagged && !b.lagged);
	sb_watch_free(early);
	sb_watch_free(late);
	sb_process_free(p);
}

/* What a full queue could not take begins where it says, and is read from there: no hole, nothing twice. */
static void lagging(void **state)
{
	sb_watch *watch = NULL;
	seen got = { 0 }, rest = { 0 }, all = { 0 };
	sb_process *p = spawn(&(wish){ .line = "read x; seq 1 2000",
				       .steps = STEPS({ FAKE_READ, 2, NULL, 0 }, { FAKE_OUT, 1000, "a line\n", 0 }) });

	(void)state;
	assert_int_equal(sb_watch_new(sb_process_output(p), 0, 1000, &watch, &err), 0);
	assert_int_equal(sb_process_write(p, "x\n", 2, NULL, NULL, &err), 0);
	await_eof(p);
	watch_all(watch, &got);
	assert_true(got.lagged && !got.closed);
	assert_int_equal(got.lag_at, got.total);
	assert_in_range(got.total, 1, 1000);
	read_all(p, got.lag_at, 65536, &rest);
	read_all(p, 0, 65536, &all);
	assert_int_equal(got.total + rest.total, all.total);
	assert_memory_equal(got.text[SB_STDOUT], all.text[SB_STDOUT], got.total);
	assert_memory_equal(rest.text[SB_STDOUT], all.text[SB_STDOUT] + got.total, rest.total);
	sb_watch_free(watch);
	sb_process_free(p);
}

static void *close_watch(void *watch)
{
	usleep(2000);
	sb_watch_close(watch);
	return NULL;
}

static void *close_process(void *process)
{
	sb_error mine;

	assert_int_equal(sb_process_close(process, NULL, &mine), 0);
	return NULL;
}

/* A watch that is closed while it gives; a process that two close at once. */
static void closing_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		sb_process *p = spawn(&(wish){ .line = "while :; do echo x; done",
					       .steps = STEPS({ FAKE_OUT, 1000000, "x\n", 0 }) });
		sb_watch *watch = NULL;
		sb_event event = { .size = sizeof event };
		pthread_t threads[3];
		int code = 0;

		assert_int_equal(sb_watch_new(sb_process_output(p), 0, SB_UNLIMITED, &watch, &err), 0);
		pthread_create(&threads[0], NULL, close_watch, watch);
		while (code == 0)
			code = sb_watch_next(watch, NULL, &event, &err);
		assert_int_equal(code, SB_ERR_CLOSED);
		pthread_create(&threads[1], NULL, close_process, p);
		pthread_create(&threads[2], NULL, close_process, p);
		for (int t = 0; t < 3; t++)
			pthread_join(threads[t], NULL);
		sb_watch_free(watch);
		sb_process_free(p);
	}
}

/* ---- pressure ---------------------------------------------------------------------------------------------------- */

/* Nobody reads: the log stays small, the process runs on, and is ended at once. */
static void nobody_reads(void **state)
{
	uint64_t oldest = 0, end = 0, start = now_ms();

	(void)state;
	w.limits.log_bytes = 100000;
	sb_process *p = spawn(&(wish){ .line = "yes", .steps = STEPS({ FAKE_OUT, 1 << 30, "y\ny\ny\ny\n", 0 }) });

	while (end < 5000000 && now_ms() - start < HANG_MS)
		assert_int_equal(sb_output_range(sb_process_output(p), &oldest, &end, &err), 0);
	assert_true(end >= 5000000);
	assert_true(end - oldest <= 100000);
	start = now_ms();
	sb_process_free(p);
	assert_true(now_ms() - start < HANG_MS);
}

/* With HOLD unread output holds the process up, and none of it is lost. */
static void held_up(void **state)
{
	uint64_t oldest = 0, end = 0, before, start = now_ms();
	seen all = { 0 };
	sb_process *p = NULL;

	(void)state;
	w.limits.log_bytes = 512 * 1024 - 1; /* what is under way has no room beside the half that holds */
	says(spawn(&(wish){ .line = ":", .steps = STEPS({ FAKE_OUT, 0, "", 0 }) }), "");
	assert_int_equal(try_spawn(&(wish){ .line = ":", .command = { .flags = SB_COMMAND_HOLD } }, &p),
			 SB_ERR_INVALID_LIMITS);
	assert_non_null(strstr(err.message, "512 KiB"));
	w.limits.log_bytes++;
	p = spawn(&(wish){ .line = "head -c 3000000 /dev/zero | tr '\\0' x",
				       .steps = STEPS({ FAKE_OUT, 300, letters, 10000 }),
				       .command = { .flags = SB_COMMAND_HOLD } });

	do {
		before = end;
		usleep(100000);
		assert_int_equal(sb_output_range(sb_process_output(p), &oldest, &end, &err), 0);
	} while (end != before || (end < 262144 && now_ms() - start < HANG_MS));
	assert_int_equal(oldest, 0);
	assert_in_range(end, 262144, 512 * 1024);
	read_all(p, 0, 10000, &all);
	assert_int_equal(all.total, 3000000);
	sb_process_free(p);
}

/* ---- the session ---------------------------------------------------------------------------------------------------- */

static void its_life(void **state)
{
	const wish forever = { .line = "sleep @7753", .steps = STEPS({ FAKE_SLEEP, 600000, NULL, 0 }) };
	sb_process *p = spawn(&forever), *other = NULL;
	sb_usage usage = { .size = sizeof usage };

	(void)state;
	assert_int_equal(sb_session_state(w.session), SB_STATE_BUSY);
	assert_non_null(strstr(sb_session_id(w.session), "sess_"));
	assert_string_equal(sb_session_language(w.session), "");
	assert_non_null(sb_session_plan(w.session));
	sb_session_usage(w.session, &usage);
	assert_true(usage.wall_us > 0);
	assert_int_equal(sb_session_close(w.session, NULL, &err), 0);
	assert_int_equal(sb_session_close(w.session, NULL, &err), 0);
	assert_int_equal(sb_session_state(w.session), SB_STATE_CLOSED);
	ended(p, SB_OUTCOME_TERMINATED, -1, 0, 0);
	assert_int_equal(try_spawn(&forever, &other), SB_ERR_SESSION_CLOSED);
	if (!w.is_fake)
		assert_int_equal(processes("@7753"), 0);
	/* the handle of a process outlives all it belonged to */
	sb_session_free(w.session);
	sb_sandbox_free(w.sandbox);
	w.session = NULL;
	w.sandbox = NULL;
	ended(p, SB_OUTCOME_TERMINATED, -1, 0, 0);
	sb_process_free(p);
}

static void sandbox_closes(void **state)
{
	const wish forever = { .line = "sleep @7754", .steps = STEPS({ FAKE_SLEEP, 600000, NULL, 0 }) };
	sb_session *sessions[10];
	sb_process *at[10];
	sb_session *late = NULL;

	(void)state;
	for (size_t i = 0; i < COUNT(sessions); i++) {
		sessions[i] = open_session();
		sb_session *mine = w.session;

		w.session = sessions[i];
		at[i] = spawn(&forever);
		w.session = mine;
	}
	uint64_t start = now_ms();

	assert_int_equal(sb_sandbox_close(w.sandbox, NULL, &err), 0);
	assert_true(now_ms() - start < HANG_MS);
	assert_int_equal(try_session(&late), SB_ERR_CLOSED);
	if (!w.is_fake)
		assert_int_equal(processes("@7754"), 0);
	for (size_t i = 0; i < COUNT(sessions); i++) {
		ended(at[i], SB_OUTCOME_TERMINATED, -1, 0, 0);
		sb_session_free(sessions[i]);
		sb_process_free(at[i]);
	}
}

static void many(void **state)
{
	enum { AT_ONCE = 40 };
	sb_session *at[AT_ONCE];
	int rounds = w.is_fake ? 25 : 1; /* a thousand, where they cost nothing */

	(void)state;
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < AT_ONCE; i++)
			at[i] = open_session();
		for (int i = 0; i < AT_ONCE; i++)
			sb_session_free(at[(i * 7) % AT_ONCE]);
	}
}

/* Processes of one session see each other's files and what another left running; sessions do not. */
static void shared_walls(void **state)
{
	(void)state;
	if (strcmp(w.backend, "linux"))
		return;
	says(spawn(&(wish){ .line = "echo kept >/tmp/note; (sleep 7755 & echo $! >/tmp/pid); echo done",
			    .command = { .flags = SB_COMMAND_DETACHED } }), "done\n");
	says(spawn(&(wish){ .line = "cat /tmp/note; kill -0 $(cat /tmp/pid) && echo alive" }), "kept\nalive\n");
	sb_session *mine = w.session;

	w.session = open_session();
	says(spawn(&(wish){ .line = "cat /tmp/note 2>/dev/null; for p in /proc/[0-9]*; do "
				    "tr '\\0' ' ' <$p/cmdline; done | grep -c 'sleep [7]755'" }), "0\n");
	sb_session_free(w.session);
	w.session = mine;
}

static void in_a_fork(void **state)
{
	sb_process *p = spawn(&(wish){ .line = "cat", .steps = STEPS({ FAKE_ECHO, 0, NULL, 0 }) });
	int status = 0;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		sb_chunk chunk = { .size = sizeof chunk };
		sb_process *other = NULL;
		char piece[4];
		int bad = 0;

		bad |= sb_process_write(p, "x", 1, NULL, NULL, &err) != SB_ERR_CLOSED;
		bad |= sb_output_read(sb_process_output(p), 0, piece, 4, NULL, &chunk, &err) != SB_ERR_CLOSED;
		bad |= try_spawn(&(wish){ .line = "true" }, &other) != SB_ERR_CLOSED;
		sb_process_free(p);
		sb_session_free(w.session);
		_exit(bad);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(sb_process_write(p, "x", 1, NULL, NULL, &err), 0); /* ours runs on */
	sb_process_free(p);
}

/* An application that is killed takes along what its sessions run. */
static void host_killed(void **state)
{
	int fds[2], status;
	char byte;

	(void)state;
	if (w.is_fake)
		return;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t child = fork();

	if (child == 0) {
		world_open(&w);
		sb_process *p = spawn(&(wish){ .line = "setsid sleep @7756 & sleep @7756 & echo up; wait" });

		await_text(p, "up\n");
		if (write(fds[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	/* marked by the child's number */
	for (int i = 0; i < 500 && processes_of(child, "7756"); i++)
		usleep(20000);
	assert_int_equal(processes_of(child, "7756"), 0);
}

/* ---- terminals -------------------------------------------------------------------------------------------------------- */

static bool has_terminals(void)
{
	sb_process *p = NULL;

	if (!w.is_fake)
		return true;
	assert_int_equal(try_spawn(&(wish){ .line = "tty", .command = { .flags = SB_COMMAND_TTY } }, &p),
			 SB_ERR_UNSUPPORTED);
	return false;
}

static sb_process *on_terminal(const char *line, uint16_t rows, uint16_t cols)
{
	return spawn(&(wish){ .line = line, .command = { .flags = SB_COMMAND_TTY, .rows = rows, .cols = cols } });
}

static void terminal(void **state)
{
	seen all = { 0 };

	(void)state;
	if (!has_terminals())
		return;
	sb_process *p = on_terminal("stty size; tty; stty -echo; echo up; read x; stty size; exit 6", 0, 0);

	await_text(p, "up\r\n");
	assert_int_equal(sb_process_resize(p, 40, 100, NULL, &err), 0);
	assert_int_equal(sb_process_resize(p, 0, 100, NULL, &err), SB_ERR_INVALID);
	assert_int_equal(sb_process_close_input(p, NULL, &err), SB_ERR_UNSUPPORTED);
	assert_int_equal(sb_process_write(p, "\n", 1, NULL, NULL, &err), 0);
	ended(p, SB_OUTCOME_EXITED, 6, 0, 0);
	read_all(p, 0, 65536, &all);
	assert_non_null(strstr(all.text[SB_TTY], "24 80\r\n/dev/pts/"));
	assert_non_null(strstr(all.text[SB_TTY], "up\r\n40 100\r\n"));
	sb_process_free(p);
	p = spawn(&(wish){ .line = "true" });
	assert_int_equal(sb_process_resize(p, 40, 100, NULL, &err), SB_ERR_UNSUPPORTED);
	sb_process_free(p);
}

/* Size at the first instruction; of many that come while it starts the last one stays. */
static void terminal_sizes(void **state)
{
	(void)state;
	if (!has_terminals())
		return;
	for (int i = 0; i < 10; i++) {
		sb_process *p = on_terminal("stty -echo; read x; stty size", 40, 120);

		for (uint16_t n = 1; n <= 100; n++)
			assert_int_equal(sb_process_resize(p, n, 200, NULL, &err), 0);
		assert_int_equal(sb_process_write(p, "\n", 1, NULL, NULL, &err), 0);
		await_text(p, "100 200\r\n");
		sb_process_free(p);
	}
	says_tty(on_terminal("stty size", 40, 120), "40 120\r\n");
}

/* All that it wrote, and then its end, which is no error. */
static void terminal_ends(void **state)
{
	(void)state;
	if (!has_terminals())
		return;
	for (int i = 0; i < 60; i++) {
		sb_process *p = on_terminal("head -c 20480 /dev/zero | tr '\\0' x", 0, 0);
		seen all = { 0 };

		read_all(p, 0, 65536, &all);
		assert_int_equal(all.total, 20480);
		ended(p, SB_OUTCOME_EXITED, 0, 0, 0);
		sb_process_free(p);
	}
	says_tty(on_terminal("sleep .2", 0, 0), "");
}

static void terminal_interrupt(void **state)
{
	(void)state;
	if (!has_terminals())
		return;
	sb_process *p = on_terminal("trap 'echo got; exit 5' INT; stty -echo; echo up; while :; do sleep .02; done",
				    0, 0);

	await_text(p, "up\r\n");
	assert_int_equal(sb_process_signal(p, SB_SIGNAL_INTERRUPT, NULL, &err), 0);
	ended(p, SB_OUTCOME_EXITED, 5, 0, 0);
	sb_process_free(p);
	/* raw, without a character for it */
	p = on_terminal("trap 'echo got; exit 5' INT; stty raw -echo intr undef; echo up; while :; do sleep .02; done",
			0, 0);
	await_text(p, "up\n");
	assert_int_equal(sb_process_signal(p, SB_SIGNAL_INTERRUPT, NULL, &err), 0);
	ended(p, SB_OUTCOME_EXITED, 5, 0, 0);
	sb_process_free(p);
}

/* A line that the terminal would cut is not taken, and that is said; in raw mode all goes. */
static void terminal_lines(void **state)
{
	static char line[10001];
	size_t written = 0;

	(void)state;
	if (!has_terminals())
		return;
	memset(line, 'x', sizeof line - 1);
	sb_process *p = on_terminal("stty -echo; echo up; read x; echo ${#x}; stty raw; echo raw; head -c 10000 | wc -c",
				    0, 0);

	await_text(p, "up\r\n");
	assert_int_equal(sb_process_write(p, line, 10000, NULL, &written, &err), SB_ERR_INVALID);
	assert_int_equal(written, 4095);
	assert_int_equal(sb_process_write(p, "y", 1, NULL, &written, &err), SB_ERR_INVALID);
	assert_int_equal(written, 0);
	assert_int_equal(sb_process_write(p, "\n", 1, NULL, &written, &err), 0);
	await_text(p, "4095\r\nraw");
	assert_int_equal(sb_process_write(p, line, 10000, NULL, &written, &err), 0);
	assert_int_equal(written, 10000);
	await_text(p, "10000");
	sb_process_free(p);
}

/* A program asks its terminal, and whoever shows it answers.  Who comes later gets the question as it was,
 * told apart from what is asked now: it must not be answered again, and nobody else answers. */
static void terminal_queries(void **state)
{
	static const char answer[] = "\033[1;2R";
	sb_watch *late = NULL;
	seen got = { 0 };

	(void)state;
	if (!has_terminals())
		return;
	sb_process *p = on_terminal("stty raw -echo; printf 'A\\033[6n'; head -c 6 | od -An -tx1 | tr -d ' \\n'; "
				    "printf 'B\\033[6n'; head -c 6 | od -An -tx1 | tr -d ' \\n'; printf 'C'; stty -icanon min 0 "
				    "time 3; head -c 1 | wc -c | tr -d '\\n'",
				    0, 0);

	await_text(p, "A\033[6n");
	assert_int_equal(sb_process_write(p, answer, 6, NULL, NULL, &err), 0);
	await_text(p, "1b5b313b3252B\033[6n");
	assert_int_equal(sb_watch_new(sb_process_output(p), 0, 0, &late, &err), 0);
	assert_int_equal(sb_process_write(p, answer, 6, NULL, NULL, &err), 0);
	await_eof(p);
	assert_int_equal(sb_process_close(p, NULL, &err), 0);
	watch_all(late, &got);
	assert_string_equal(got.text[SB_TTY], "A\033[6n1b5b313b3252B\033[6n1b5b313b3252C0");
	assert_int_equal(got.replayed, 5 + 12 + 5);
	sb_watch_free(late);
	sb_process_free(p);
}

/* ---- the suite ------------------------------------------------------------------------------------------------------------ */

/* The number is that of the process on this host: what runs there, and nobody else. */
static void pid_on_this_host(void **state)
{
	sb_process *p = spawn(&(wish){ .line = "exec sleep 100@", .steps = STEPS({ FAKE_SLEEP, 60000, NULL, 0 }) });
	char path[64], text[256] = "", mark[32];
	sb_list *list = NULL;
	sb_info info = { .size = sizeof info };

	(void)state;
	if (w.is_fake) {
		assert_int_equal(sb_process_pid(p), 0);
		sb_process_free(p);
		return;
	}
	assert_true(sb_process_pid(p) > 0);
	assert_int_equal(sb_sandbox_list(w.sandbox, SB_LIST_PROCESSES, &list, &err), 0);
	assert_int_equal(sb_list_at(list, 0, &info), 0);
	assert_int_equal(info.pid, sb_process_pid(p));
	sb_list_free(list);
	snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)sb_process_pid(p));
	snprintf(mark, sizeof mark, "100%ld", (long)getpid());
	for (uint64_t late = now_ms() + 20000; memcmp(text, "sleep", 6) && now_ms() < late;) {
		FILE *file = fopen(path, "r");

		assert_non_null(file);
		text[fread(text, 1, sizeof text - 1, file)] = 0;
		fclose(file);
	}
	assert_string_equal(text, "sleep");
	assert_string_equal(text + 6, mark);
	sb_process_free(p);
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(both_streams), RUN_TEST(replay), RUN_TEST(gap), RUN_TEST(coming_and_going),
		RUN_TEST(writing), RUN_TEST(given_inputs), RUN_TEST(shared_descriptors), RUN_TEST(left_behind), RUN_TEST(interrupted),
		RUN_TEST(terminated), RUN_TEST(reasons), RUN_TEST(waiting), RUN_TEST(ids),
		RUN_TEST(not_started), RUN_TEST(watching), RUN_TEST(lagging), RUN_TEST(closing_at_once),
		RUN_TEST(nobody_reads), RUN_TEST(held_up), RUN_TEST(its_life), RUN_TEST(sandbox_closes),
		RUN_TEST(many), RUN_TEST(shared_walls), RUN_TEST(in_a_fork), RUN_TEST(host_killed),
		RUN_TEST(terminal), RUN_TEST(terminal_sizes), RUN_TEST(terminal_ends),
		RUN_TEST(terminal_interrupt), RUN_TEST(terminal_lines), RUN_TEST(terminal_queries), RUN_TEST(pid_on_this_host),
	};

	if (argc < 2) {
		fprintf(stderr, "usage: sessions BACKEND [DIRECTORY OF sb-launch]\n");
		return 2;
	}
	memset(letters, 'x', sizeof letters - 1);
	memcpy(letters + sizeof letters - 11, "0123456789", 10);
	w.backend = argv[1];
	w.helper_dir = argc > 2 ? argv[2] : NULL;
	w.is_fake = !strcmp(w.backend, "fake");
	return cmocka_run_group_tests_name(w.backend, tests, world_make, world_remove);
}
