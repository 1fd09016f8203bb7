/* SPDX-License-Identifier: MIT */
/*
 * conformance.c - one suite over every backend: what a run promises, whoever holds the walls.
 *
 * usage: conformance BACKEND [DIRECTORY OF sb-launch]
 *
 * A real backend gets shell lines; the scripted one the steps beside them, and one that runs code alone the
 * Lua, which say the same.  What such a backend has nothing for is skipped by what it says of itself: it
 * refuses a program, and its plan has one process.  Each test ends with as many descriptors and children as
 * it began with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../fake/fake.h"
#include "../lib/descriptors.h"

#define STEPS(...) ((const fake_step[]){ __VA_ARGS__, { FAKE_END, 0, NULL, 0 } })
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *backend, *helper_dir;
static const char *names[2];
static sb_sandbox *sandbox;
static char workspace[PATH_MAX];
static bool is_fake, code_alone;

/* ---- a run --------------------------------------------------------------------------------- */

typedef struct try {
	const char *line, *lua;       /* for sh -c; the same in Lua; or */
	const char *const *argv;
	const fake_step *steps;
	int fail_at, fail_code;       /* what the scripted one does instead */
	sb_limits limits;
	sb_command command;
	const sb_wait *wait;
	const sb_env *env;
	const sb_network *network;
} try;

static _Thread_local sb_error err;

/* "@" becomes this process's number: two suites at once do not count each other's processes. */
static const char *marked(const char *line)
{
	static _Thread_local char text[512];
	size_t len = 0;

	for (; *line && len < sizeof text - 24; line++) {
		if (*line == '@')
			len += (size_t)snprintf(text + len, 24, "%ld", (long)getpid());
		else
			text[len++] = *line;
	}
	assert_int_equal(*line, '\0');
	text[len] = '\0';
	return text;
}

static int attempt(const try *t, sb_result **result)
{
	const fake_script script = { .size = sizeof script, .backend = "fake", .steps = t->steps,
				     .fail_at = t->fail_at, .fail_code = t->fail_code };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const char *const shell[] = { "sh", "-c", t->line ? marked(t->line) : NULL, NULL };
	sb_limits limits = t->limits;
	sb_command command = t->command;
	sb_spec spec = { .size = sizeof spec, .backends = names, .limits = &limits,
			 .workspace = workspace, .env = t->env, .network = t->network };

	limits.size = sizeof limits;
	command.size = sizeof command;
	if (code_alone && !command.language) {
		assert_non_null(t->lua);
		command.language = "lua";
		command.code = t->lua;
		command.code_len = strlen(t->lua);
	}
	if (!command.language)
		command.argv = t->argv ? t->argv : shell;
	else
		spec.workspace = NULL;
	if (is_fake)
		spec.other_options = options;
	*result = NULL;
	memset(&err, 0, sizeof err);
	return sb_run(sandbox, &spec, &command, t->wait, result, &err);
}

static sb_result *done(const try *t)
{
	sb_result *result;

	if (attempt(t, &result) < 0)
		fail_msg("%s: %s: %s", t->line ? t->line : t->argv ? t->argv[0] : "code", err.where,
			 err.message);
	return result;
}

static void ends(const sb_result *r, int outcome, int code, int signal, int error)
{
	if (sb_result_outcome(r) != outcome || sb_result_code(r) != code ||
	    sb_result_signal(r) != signal || sb_result_error(r) != error)
		fail_msg("%s", sb_result_json(r));
}

static void says(const sb_result *r, int stream, const char *text)
{
	size_t len;
	const char *data = sb_result_output(r, stream, &len);

	if (len != strlen(text) || memcmp(data, text, len) != 0)
		fail_msg("wanted \"%s\" in %s", text, sb_result_json(r));
}

/* A hang alone takes so long, on a machine that does much else besides. */
enum { HANG_MS = 30000 };

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Of a test that needs what a backend of code alone has not. */
static void needs_programs(void)
{
	if (!code_alone)
		return;
	print_message("skipped: a guest of this backend is one process of code, no program\n");
	skip();
}

/* ---- what is left ------------------------------------------------------------------------------ */

/* Processes on this machine with that word among their arguments. */
static int processes(const char *mark)
{
	const char *word = marked(mark);
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300], text[512];
		int fd;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

		if (fd >= 0)
			close(fd);
		for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1) {
			text[n] = 0;
			if (!strcmp(text + at, word)) {
				found++;
				break;
			}
		}
	}
	closedir(dir);
	return found;
}

static int begin(void **state)
{
	*state = (void *)(intptr_t)open_descriptors();
	return 0;
}

static int end(void **state)
{
	int before = (int)(intptr_t)*state, now = open_descriptors();

	if (now != before)
		fail_msg("%d descriptors were left open", now - before);
	errno = 0;
	assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	assert_int_equal(fake_seen.broken, 0);
	assert_int_equal(fake_seen.boxes + fake_seen.guests, 0);
	return 0;
}

/* ---- ends ---------------------------------------------------------------------------------- */

static void exit_codes(void **state)
{
	static const int codes[] = { 0, 1, 3, 126, 127, 128, 137, 255 };

	(void)state;
	for (size_t i = 0; i < COUNT(codes); i++) {
		char line[32], lua[32];

		snprintf(line, sizeof line, "exit %d", codes[i]);
		snprintf(lua, sizeof lua, "os.exit(%d)", codes[i]);
		sb_result *r = done(&(try){ .line = line, .lua = lua, .steps = (const fake_step[]){
							    { FAKE_END, codes[i], NULL, 0 } } });

		ends(r, SB_OUTCOME_EXITED, codes[i], 0, 0);
		assert_string_equal(sb_result_backend(r), backend);
		sb_result_free(r);
	}
}

static void signals(void **state)
{
	static const struct {
		const char *line;
		int number;
	} rows[] = { { "kill -SEGV $$", SIGSEGV }, { "kill -KILL $$", SIGKILL },
		     { "kill -TERM $$", SIGTERM } };

	(void)state;
	needs_programs(); /* to signal itself */
	for (size_t i = 0; i < COUNT(rows); i++) {
		sb_result *r = done(&(try){ .line = rows[i].line,
					    .steps = STEPS({ FAKE_SIGNALED, rows[i].number, NULL, 0 }) });

		ends(r, SB_OUTCOME_SIGNALED, -1, rows[i].number, 0);
		sb_result_free(r);
	}
}

/* No result, and nothing was started. */
static void start_failures(void **state)
{
	static const struct {
		const char *program, *cwd;
		int code;
	} rows[] = {
		{ "no-such-command", NULL, SB_ERR_NOT_FOUND }, { "/no/such", NULL, SB_ERR_NOT_FOUND },
		{ "./plain", NULL, SB_ERR_FORBIDDEN },	       { "true", "missing", SB_ERR_NOT_FOUND },
		{ "true", "plain", SB_ERR_NOT_DIR },	       { "true", "..", SB_ERR_PATH_TRAVERSAL },
	};

	(void)state;
	needs_programs();
	for (size_t i = 0; i < COUNT(rows); i++) {
		sb_result *r;
		const try t = { .argv = LIST(rows[i].program), .command = { .cwd = rows[i].cwd },
				.fail_at = FAKE_AT_REAP, .fail_code = rows[i].code };

		if (attempt(&t, &r) != rows[i].code)
			fail_msg("%s in %s: %s", rows[i].program, rows[i].cwd ? rows[i].cwd : ".",
				 err.code ? err.message : sb_result_json(r));
		assert_null(r);
		assert_true(strlen(err.message) > 10);
	}
}

static void both_streams(void **state)
{
	(void)state;
	int rounds = is_fake || getenv("LONG") ? 2000 : 300;

	for (int i = 0; i < rounds; i++) {
		sb_result *r = done(&(try){ .line = "echo e >&2; echo o", .lua = "io.stderr:write('e\\n') print('o')",
					    .steps = STEPS({ FAKE_ERR, 0, "e\n", 0 },
							   { FAKE_OUT, 0, "o\n", 0 }) });

		says(r, SB_STDOUT, "o\n");
		says(r, SB_STDERR, "e\n");
		sb_result_free(r);
	}
}

static void bytes_are_bytes(void **state)
{
	size_t len;
	sb_result *r = done(&(try){ .line = "printf 'a\\200\\377\\000b'", .lua = "io.write('a\\128\\255\\0b')",
				    .steps = STEPS({ FAKE_OUT, 0, "a\200\377\0b", 5 }) });

	(void)state;
	assert_memory_equal(sb_result_output(r, SB_STDOUT, &len), "a\200\377\0b", 5);
	assert_int_equal(len, 5);
	assert_non_null(strstr(sb_result_json(r), "\"stdout_base64\":\"YYD/AGI=\""));
	sb_result_free(r);
}

/* ---- input --------------------------------------------------------------------------------------- */

static void input(void **state)
{
	static char large[1 << 20];
	sb_result *r = done(&(try){
		.line = "cat; exit 3", .lua = "io.write(io.read('a')) os.exit(3)",
		.steps = STEPS({ FAKE_ECHO, 0, NULL, 0 }, { FAKE_END, 3, NULL, 0 }),
		.command = { .input_kind = SB_INPUT_BYTES, .input = "to it", .input_len = 5 } });

	(void)state;
	says(r, SB_STDOUT, "to it");
	ends(r, SB_OUTCOME_EXITED, 3, 0, 0);
	sb_result_free(r);
	/* without one it is at the end at once */
	r = done(&(try){ .line = "cat", .lua = "io.write(io.read('a'))", .steps = STEPS({ FAKE_OUT, 0, "", 0 }) });
	says(r, SB_STDOUT, "");
	sb_result_free(r);
	/* more than a pipe holds, to one that does not want it */
	memset(large, 'x', sizeof large);
	r = done(&(try){ .line = "exit 4", .lua = "os.exit(4)", .steps = STEPS({ FAKE_END, 4, NULL, 0 }),
			 .command = { .input_kind = SB_INPUT_BYTES, .input = large,
				      .input_len = sizeof large } });
	ends(r, SB_OUTCOME_EXITED, 4, 0, 0);
	sb_result_free(r);
	/* and to one that first has as much to say */
	size_t len;

	r = done(&(try){ .line = "head -c 1048576 /dev/zero; cat >/dev/null",
			 .lua = "io.write(string.rep('\\0', 1048576)) io.flush() io.read('a')",
			 .steps = STEPS({ FAKE_OUT, 0, large, sizeof large }, { FAKE_READ, -1, NULL, 0 }),
			 .command = { .input_kind = SB_INPUT_BYTES, .input = large,
				      .input_len = sizeof large } });
	ends(r, SB_OUTCOME_EXITED, 0, 0, 0);
	sb_result_output(r, SB_STDOUT, &len);
	assert_int_equal(len, 1 << 20);
	sb_result_free(r);
}

static void input_never_ends(void **state)
{
	int fds[2];
	uint64_t start = now_ms();

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	sb_result *r = done(&(try){
		.line = "echo hi", .lua = "print('hi')", .steps = STEPS({ FAKE_OUT, 0, "hi\n", 0 }),
		.command = { .input_kind = SB_INPUT_FD, .input_fd = fds[0] } });

	says(r, SB_STDOUT, "hi\n");
	assert_true(now_ms() - start < HANG_MS);
	assert_int_equal(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
	sb_result_free(r);
	close(fds[0]);
	close(fds[1]);
}

/* ---- clocks ---------------------------------------------------------------------------------------- */

/* Ended by its deadline; with more time where it did not come to say a word. */
static sb_result *out_of_time(try t)
{
	for (t.limits.wall_ms = 300;; t.limits.wall_ms *= 4) {
		uint64_t start = now_ms();
		sb_result *r = done(&t);
		size_t len;

		ends(r, SB_OUTCOME_TIMED_OUT, -1, 0, SB_ERR_TIMEOUT);
		assert_in_range(now_ms() - start, t.limits.wall_ms, t.limits.wall_ms + HANG_MS);
		sb_result_output(r, SB_STDOUT, &len);
		if (len || t.limits.wall_ms > HANG_MS)
			return r;
		sb_result_free(r);
	}
}

/* Says a word, and goes on. */
#define FOREVER "print('a') io.flush() while true do end"

/* The tree dies with the call, whatever it did to stay. */
static void deadline(void **state)
{
	static const char *const lines[] = {
		"echo a; exec sleep @7741",
		"echo a; sleep @7741 & sleep @7741",
		"echo a; setsid sleep @7741 & exec sleep @7741",
		"echo a; (setsid sh -c 'sleep @7741 & sleep @7741' &); exec sleep @7741",
		"echo a; trap '' TERM INT HUP; sleep @7741; sleep @7741",
		"echo a; kill -STOP $$",
	};

	(void)state;
	for (size_t i = 0; i < (code_alone ? 1 : COUNT(lines)); i++) {
		sb_result *r = out_of_time((try){ .line = lines[i], .lua = FOREVER,
						  .steps = STEPS({ FAKE_OUT, 0, "a\n", 0 },
								 { FAKE_SLEEP, 600000, NULL, 0 }) });

		says(r, SB_STDOUT, "a\n");
		assert_int_equal(processes("@7741"), 0);
		sb_result_free(r);
	}
}

static void grace_used(void)
{
	sb_result *r = out_of_time((try){
		.line = "trap 'echo bye; exit 7' TERM; while :; do sleep .02; done",
		.steps = STEPS({ FAKE_ON_TERM, 0, NULL, 0 }, { FAKE_SLEEP, 600000, NULL, 0 },
			       { FAKE_TERM, 0, NULL, 0 }, { FAKE_OUT, 0, "bye\n", 0 },
			       { FAKE_END, 7, NULL, 0 }),
		.limits = { .grace_ms = HANG_MS } });

	says(r, SB_STDOUT, "bye\n");
	sb_result_free(r);
}

static void grace(void **state)
{
	uint64_t start = now_ms();
	sb_result *r;

	(void)state;
	if (!code_alone)
		grace_used();
	r = done(&(try){ .line = "trap '' TERM; while :; do sleep .02; done", .lua = "while true do end",
			 .steps = STEPS({ FAKE_IGNORE_TERM, 0, NULL, 0 },
					{ FAKE_SLEEP, 600000, NULL, 0 }),
			 .limits = { .wall_ms = 200, .grace_ms = 300 } });
	ends(r, SB_OUTCOME_TIMED_OUT, -1, 0, SB_ERR_TIMEOUT);
	assert_in_range(now_ms() - start, 200, HANG_MS); /* one that comes before the trap ends it at once */
	sb_result_free(r);
}

/* Another thread's, as soon as the guest has said something. */
typedef struct later {
	sb_cancel *flag;
	sem_t said;
} later;

static void *fire(void *arg)
{
	later *l = arg;

	while (sem_wait(&l->said) < 0)
		;
	sb_cancel_fire(l->flag);
	return NULL;
}

static int heard(void *arg, int stream, const void *data, size_t len)
{
	later *l = arg;

	(void)stream;
	(void)data;
	(void)len;
	sem_post(&l->said);
	return 0;
}

static void cancel(void **state)
{
	later l = { 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(sb_cancel_new(&l.flag, NULL), 0);
	assert_int_equal(sem_init(&l.said, 0, 0), 0);
	const sb_wait wait = { .size = sizeof wait, .cancel = l.flag };

	assert_int_equal(pthread_create(&thread, NULL, fire, &l), 0);
	sb_result *r = done(&(try){ .line = "echo a; sleep @7742 & sleep @7742", .lua = FOREVER,
				    .steps = STEPS({ FAKE_OUT, 0, "a\n", 0 },
						   { FAKE_SLEEP, 600000, NULL, 0 }),
				    .command = { .on_output = heard, .user = &l }, .wait = &wait });

	pthread_join(thread, NULL);
	ends(r, SB_OUTCOME_CANCELLED, -1, 0, SB_ERR_CANCELLED);
	says(r, SB_STDOUT, "a\n");
	assert_int_equal(processes("@7742"), 0);
	sb_result_free(r);
	sb_cancel_free(l.flag);
	sem_destroy(&l.said);
}

/* A child that holds the pipe neither keeps the call nor outlives it. */
static void left_behind(void **state)
{
	static const char *const lines[] = {
		"sleep @7743 & echo done",
		"setsid sleep @7743 & echo done",
		"(sleep @7743 &); echo done",
		"setsid sleep @7743 >/dev/null 2>&1 & echo done",
	};

	(void)state;
	needs_programs();
	for (size_t i = 0; i < COUNT(lines); i++) {
		uint64_t start = now_ms();
		sb_result *r = done(&(try){ .line = lines[i],
					    .steps = STEPS({ FAKE_HOLD, 0, NULL, 0 },
							   { FAKE_OUT, 0, "done\n", 0 }) });

		ends(r, SB_OUTCOME_EXITED, 0, 0, 0);
		says(r, SB_STDOUT, "done\n");
		assert_true(now_ms() - start < HANG_MS);
		assert_int_equal(processes("@7743"), 0);
		sb_teardown t = { .size = sizeof t };

		sb_result_teardown(r, &t);
		assert_int_equal(t.killed, is_fake ? 0 : 1);
		assert_int_equal(t.left, 0);
		sb_result_free(r);
	}
}

/* What it leaves running may still say what it was about to say, for a moment; each time, what came was in order. */
static void last_words(void **state)
{
	static const char all[] = "first\nlast\n";
	char fifo[PATH_MAX + 8];
	size_t len = 0;

	(void)state;
	needs_programs();
	snprintf(fifo, sizeof fifo, "%s/f", workspace);
	for (int i = 0; i < 100 && len < strlen(all); i++) {
		sb_result *r = done(&(try){
			.line = "mkfifo f; (cat f; rm f; echo last) & exec 3>f; echo first >&3; exit 3",
			.steps = STEPS({ FAKE_OUT, 0, all, 0 }, { FAKE_END, 3, NULL, 0 }) });

		ends(r, SB_OUTCOME_EXITED, 3, 0, 0);
		const char *out = sb_result_output(r, SB_STDOUT, &len);

		assert_true(len <= strlen(all));
		assert_memory_equal(out, all, len);
		sb_result_free(r);
		unlink(fifo);
	}
	assert_int_equal(len, strlen(all));
}

/* ---- output ------------------------------------------------------------------------------------------ */

static char flood_piece[10000];
static const fake_step flood[] = { { FAKE_OUT, 3000, flood_piece, sizeof flood_piece },
				   { FAKE_END, 0, NULL, 0 } };

static void output_caps(void **state)
{
	const char *line = "head -c 30000000 /dev/zero | tr '\\0' x; echo last";
	const char *lua = "for i = 1, 3000 do io.write(string.rep('x', 10000)) end print('last')";
	size_t len, at;
	sb_result *r = done(&(try){ .line = "while :; do echo xxxxxxxxx; done", .steps = flood,
				    .lua = "while true do print('xxxxxxxxx') end",
				    .limits = { .out_total_bytes = 10240, .out_mode = SB_OUT_STOP } });

	(void)state;
	ends(r, SB_OUTCOME_BUDGET_EXCEEDED, -1, 0, SB_ERR_OUTPUT_LIMIT);
	sb_result_output(r, SB_STDOUT, &len);
	assert_int_equal(len, 10240);
	assert_true(sb_result_truncated(r));
	sb_result_free(r);
	for (int keep = SB_KEEP_HEAD; keep <= SB_KEEP_HEAD_TAIL; keep++) {
		r = done(&(try){ .line = line, .lua = lua, .steps = flood,
				 .limits = { .out_stream_bytes = 1000, .out_mode = SB_OUT_TRUNCATE,
					     .out_keep = (uint32_t)keep } });
		ends(r, SB_OUTCOME_EXITED, 0, 0, 0);
		const char *out = sb_result_output(r, SB_STDOUT, &len);

		assert_int_equal(len, 1000);
		assert_int_equal(sb_result_dropped(r, SB_STDOUT, &at),
				 30000000 - 1000 + (is_fake ? 0 : 5));
		assert_int_equal(at, keep == SB_KEEP_HEAD ? 1000 : 500);
		if (!is_fake)
			assert_int_equal(memcmp(out + 995, "last\n", 5) == 0, keep == SB_KEEP_HEAD_TAIL);
		sb_result_free(r);
	}
	/* the very cap is no cut */
	r = done(&(try){ .line = "printf 0123456789", .lua = "io.write('0123456789')",
			 .steps = STEPS({ FAKE_OUT, 0, "0123456789", 0 }),
			 .limits = { .out_total_bytes = 10, .out_mode = SB_OUT_STOP } });
	ends(r, SB_OUTCOME_EXITED, 0, 0, 0);
	assert_false(sb_result_truncated(r));
	sb_result_free(r);
}

typedef struct stream_seen {
	char text[64];
	size_t len;
	int calls, stop_at;
} stream_seen;

static int see(void *user, int stream, const void *data, size_t len)
{
	stream_seen *s = user;

	assert_int_equal(stream, SB_STDOUT);
	assert_true(s->len + len < sizeof s->text);
	memcpy(s->text + s->len, data, len);
	s->len += len;
	return ++s->calls == s->stop_at;
}

static void streaming(void **state)
{
	stream_seen s = { .stop_at = 0 };
	const fake_step *steps = STEPS({ FAKE_OUT, 0, "first\n", 0 }, { FAKE_SLEEP, 300, NULL, 0 },
				       { FAKE_OUT, 0, "second\n", 0 });
	sb_result *r = done(&(try){ .line = "echo first; sleep .3; echo second", .steps = steps,
				    .lua = "print('first') io.flush() local t = os.clock() "
					   "while os.clock() - t < 0.3 do end print('second')",
				    .command = { .on_output = see, .user = &s } });

	(void)state;
	assert_string_equal(s.text, "first\nsecond\n");
	assert_int_equal(s.calls, 2); /* not all at the end */
	sb_result_free(r);
	s = (stream_seen){ .stop_at = 1 };
	r = done(&(try){ .line = "echo first; sleep @7744; echo second",
			 .lua = "print('first') io.flush() while true do end",
			 .steps = STEPS({ FAKE_OUT, 0, "first\n", 0 }, { FAKE_SLEEP, 60000, NULL, 0 }),
			 .command = { .on_output = see, .user = &s } });
	ends(r, SB_OUTCOME_CANCELLED, -1, 0, SB_ERR_CANCELLED);
	assert_int_equal(processes("@7744"), 0);
	sb_result_free(r);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

static void environment(void **state)
{
	const sb_env none = { .size = sizeof none, .base = SB_ENV_NONE, .inject = LIST("B=2") };
	static const char js[] = "for (const [k, v] of Object.entries(process.env)) console.log(k + '=' + v)";
	try whole = { .argv = LIST("/usr/bin/env"), .env = &none, .command = { .env = LIST("A=1") },
		      .steps = STEPS({ FAKE_OUT, 0, "A=1\nB=2\n", 0 }) };
	sb_result *r;

	(void)state;
	if (code_alone) {
		whole.command.language = "js";
		whole.command.code = js;
		whole.command.code_len = sizeof js - 1;
	}
	setenv("CONFORMANCE_SECRET", "leak", 1);
	r = done(&whole);
	says(r, SB_STDOUT, "A=1\nB=2\n");
	sb_result_free(r);
	r = done(&(try){ .line = "echo ${CONFORMANCE_SECRET-none}",
			 .lua = "print(os.getenv('CONFORMANCE_SECRET') or 'none')",
			 .steps = STEPS({ FAKE_OUT, 0, "none\n", 0 }) });
	says(r, SB_STDOUT, "none\n");
	sb_result_free(r);
}

/* A listener of the host's at `path`, which answers one call. */
static int listen_at(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(chmod(path, 0777), 0);
	return fd;
}

/* The socket that is named is there and answers, its neighbour is not. */
static void named_sockets(void **state)
{
	char dir[] = "/tmp/named.XXXXXX", named[64], other[64], line[400];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(named, sizeof named, "%s/named", dir);
	snprintf(other, sizeof other, "%s/other", dir);
	int fds[] = { listen_at(named), listen_at(other) };
	const sb_network network = { .size = sizeof network, .mode = SB_NET_DENY_ALL,
				     .unix_sockets = LIST(named) };

	snprintf(line, sizeof line,
		 "[ -S %s ] && [ ! -e %s ] && python3 -c 'import socket\n"
		 "socket.socket(socket.AF_UNIX).connect(\"%s\")' && echo called", named, other, named);
	const try t = { .line = line, .lua = "print('called')", .network = &network,
			.steps = STEPS({ FAKE_OUT, 0, "called\n", 0 }) };
	sb_result *r = NULL;

	if (code_alone || !strcmp(backend, "process")) {
		assert_int_equal(attempt(&t, &r), SB_ERR_UNSUPPORTED);
	} else {
		r = done(&t);
		says(r, SB_STDOUT, "called\n");
		sb_result_free(r);
		if (!is_fake)
			close(accept(fds[0], NULL, NULL));
	}
	close(fds[0]);
	close(fds[1]);
	unlink(named);
	assert_int_equal(attempt(&t, &r), SB_ERR_NOT_FOUND);
	unlink(other);
	assert_int_equal(rmdir(dir), 0);
}

/* A wall that is not there is refused before anything starts. */
static void refusal(void **state)
{
	static const uint32_t nothing[SB_WALL_COUNT];
	const fake_script script = { .size = sizeof script, .backend = "fake", .levels = nothing };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const sb_network deny = { .size = sizeof deny, .mode = SB_NET_DENY_ALL };
	const sb_limits disk = { .size = sizeof disk, .fs_bytes = 1 << 20 };
	/* these hold all but a quota over the workspace */
	bool is_linux = code_alone || !strcmp(backend, "linux");
	const sb_spec spec = { .size = sizeof spec, .backends = names, .network = &deny,
			       .workspace = workspace, .other_options = is_fake ? options : NULL,
			       .limits = is_linux ? &disk : NULL, .workspace_mode = SB_WORKSPACE_WRITE };
	const sb_command program = { .size = sizeof program, .argv = LIST("touch", "ran") },
			 code = { .size = sizeof code, .language = "lua", .code = "io.open('ran', 'w')", .code_len = 19 },
			 c = code_alone ? code : program;
	sb_result *r = NULL;
	sb_plan *plan = NULL;
	struct stat st;
	char path[PATH_MAX + 8];

	(void)state;
	int created = fake_seen.called[FAKE_AT_CREATE];

	assert_int_equal(sb_run(sandbox, &spec, &c, NULL, &r, &err), SB_ERR_UNENFORCEABLE);
	assert_string_equal(err.where, is_fake ? "files" : is_linux ? "disk" : "network");
	assert_int_equal(fake_seen.called[FAKE_AT_CREATE], created);
	snprintf(path, sizeof path, "%s/ran", workspace);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(sb_explain(sandbox, &spec, &c, &plan, &err), 0);
	assert_int_equal(sb_plan_failure(plan)->code, SB_ERR_UNENFORCEABLE);
	sb_plan_free(plan);
}

static void code_runs(void **state)
{
	const sb_file file = { .size = sizeof file, .path = "a/in.txt", .data = "given", .len = 5 };
	const sb_file *const files[] = { &file, NULL };
	static const char text[] = "cat /in/a/in.txt; mkdir -p /out/d; printf kept >/out/d/f; echo \" $1\"";
	static const char js[] = "os.mkdir('/out/d'); const f = std.open('/out/d/f', 'w'); f.puts('kept'); f.close(); "
				 "console.log(std.loadFile('/in/a/in.txt') + ' ' + scriptArgs[1])";
	try t = { .steps = STEPS({ FAKE_OUT, 0, "given x\n", 0 }, { FAKE_OUT_FILE, 0, "d/f", 0 }),
		  .command = { .language = "bash", .code = text, .code_len = sizeof text - 1,
			       .args = LIST("x"), .files = files } };
	sb_node node = { .size = sizeof node };
	sb_result *r;

	(void)state;
	if (code_alone) {
		t.command.language = "js";
		t.command.code = js;
		t.command.code_len = sizeof js - 1;
	}
	if (!strcmp(backend, "process")) { /* no place of its own: code, but no files */
		t.command.files = NULL;
		t.command.code = "echo $1";
		t.command.code_len = 7;
		r = done(&t);
		says(r, SB_STDOUT, "x\n");
		sb_result_free(r);
		return;
	}
	r = done(&t);
	says(r, SB_STDOUT, "given x\n");
	assert_int_equal(sb_tree_find(sb_result_files(r), "d/f", &node, NULL), 0);
	assert_int_equal(node.len, is_fake ? 3 : 4);
	sb_result_free(r);
}

/* An application that wants to hear nothing of children is none of our business. */
static void children_ignored(void **state)
{
	sb_result *r;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	r = done(&(try){ .line = "exit 5", .lua = "os.exit(5)", .steps = STEPS({ FAKE_END, 5, NULL, 0 }) });
	signal(SIGCHLD, SIG_DFL);
	ends(r, SB_OUTCOME_EXITED, 5, 0, 0);
	sb_result_free(r);
}

static void *several(void *arg)
{
	for (int i = 0; i < 8; i++) {
		char line[32], lua[32];

		snprintf(line, sizeof line, "echo %d; exit %d", i, i);
		snprintf(lua, sizeof lua, "print(%d) os.exit(%d)", i, i);
		const fake_step *steps = STEPS({ FAKE_OUT, 0, "x", 0 }, { FAKE_END, i, NULL, 0 });
		sb_result *r = NULL;

		if (attempt(&(try){ .line = line, .lua = lua, .steps = steps }, &r) < 0 || sb_result_code(r) != i)
			++*(int *)arg;
		sb_result_free(r);
	}
	return NULL;
}

static void threads(void **state)
{
	pthread_t at[8];
	int failed[8] = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(at); i++)
		assert_int_equal(pthread_create(&at[i], NULL, several, &failed[i]), 0);
	for (size_t i = 0; i < COUNT(at); i++) {
		pthread_join(at[i], NULL);
		assert_int_equal(failed[i], 0);
	}
}

static void plan_and_usage(void **state)
{
	sb_usage usage = { .size = sizeof usage };
	sb_result *r = done(&(try){ .line = "exit 0", .lua = "", .steps = STEPS({ FAKE_END, 0, NULL, 0 }) });
	uint32_t seen = 0;
	sb_plan_line line = { .size = sizeof line };

	(void)state;
	sb_result_usage(r, &usage);
	assert_true(usage.wall_us > 0);
	for (size_t i = 0; sb_plan_at(sb_result_plan(r), i, &line) == 0; i++) {
		assert_true(line.wall < SB_WALL_COUNT);
		assert_true(line.mechanism[0]);
		seen |= 1u << line.wall;
	}
	assert_int_equal(seen, (1u << SB_WALL_COUNT) - 1); /* no wall is passed over */
	sb_result_free(r);
}

/* ---- the suite -------------------------------------------------------------------------------------------- */

/* What the backend itself says of a program. */
static bool runs_code_alone(void)
{
	const sb_spec spec = { .size = sizeof spec, .backends = names, .workspace_mode = SB_WORKSPACE_NONE };
	const sb_command program = { .size = sizeof program, .argv = LIST("true") };
	sb_plan *plan = NULL;

	if (is_fake || sb_explain(sandbox, &spec, &program, &plan, &err) < 0)
		return false;
	bool refused = sb_plan_failure(plan) && sb_plan_failure(plan)->code == SB_ERR_UNSUPPORTED;

	sb_plan_free(plan);
	return refused;
}

/* On a backend of code alone: the languages that the suite speaks there. */
static bool has_languages(void)
{
	static const char *const packs[] = { "lua", "js" };
	char path[PATH_MAX];

	for (size_t i = 0; i < COUNT(packs) && !strcmp(backend, "wasm"); i++) {
		snprintf(path, sizeof path, "%s/wasm/%s/manifest", helper_dir ? helper_dir : ".", packs[i]);
		if (access(path, F_OK) != 0)
			return false;
	}
	return true;
}

static int open_suite(void **state)
{
	const sb_backend *const fakes[] = { &fake_backend, NULL };
	sb_sandbox_options o = { .size = sizeof o, .backends = is_fake ? fakes : NULL,
				 .helper_dir = helper_dir, .order = names };
	char path[PATH_MAX + 8], dir[] = "/tmp/conformance.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_non_null(realpath(dir, workspace));
	snprintf(path, sizeof path, "%s/plain", workspace);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	close(fd);
	if (sb_sandbox_new(&o, NULL, &sandbox, &err) < 0)
		fail_msg("%s: %s", err.where, err.message);
	code_alone = runs_code_alone();
	/* once: what is probed for good is not a descriptor that a test left open */
	sb_result_free(done(&(try){ .line = "exit 0", .lua = "" }));
	sb_plan *plan = NULL;

	if (sb_explain(sandbox, &(sb_spec){ .size = sizeof(sb_spec), .backends = names,
					    .workspace = workspace },
		       NULL, &plan, &err) == 0)
		sb_plan_free(plan);
	return 0;
}

static int close_suite(void **state)
{
	char path[PATH_MAX + 8];

	(void)state;
	sb_sandbox_free(sandbox);
	snprintf(path, sizeof path, "%s/plain", workspace);
	unlink(path);
	assert_int_equal(rmdir(workspace), 0); /* nothing else is in it */
	return 0;
}

#define RUN_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RUN_TEST(exit_codes),	    RUN_TEST(signals),	     RUN_TEST(start_failures),
		RUN_TEST(both_streams),	    RUN_TEST(bytes_are_bytes), RUN_TEST(input),
		RUN_TEST(input_never_ends), RUN_TEST(deadline),	     RUN_TEST(grace),
		RUN_TEST(cancel),	    RUN_TEST(left_behind),   RUN_TEST(last_words),
		RUN_TEST(output_caps),
		RUN_TEST(streaming),	    RUN_TEST(environment),   RUN_TEST(refusal),
		RUN_TEST(named_sockets), RUN_TEST(code_runs),	    RUN_TEST(children_ignored), RUN_TEST(threads),
		RUN_TEST(plan_and_usage),
	};

	if (argc < 2) {
		fprintf(stderr, "usage: conformance BACKEND [DIRECTORY OF sb-launch]\n");
		return 2;
	}
	backend = argv[1];
	helper_dir = argc > 2 ? argv[2] : NULL;
	names[0] = backend;
	is_fake = !strcmp(backend, "fake");
	if (!has_languages())
		return fputs("the languages on board are not built: make wasm\n", stderr), 77;
	return cmocka_run_group_tests_name(backend, tests, open_suite, close_suite);
}
