/* SPDX-License-Identifier: MIT */
/* evals_languages.c - what the interpreters of the several languages say, each in its own words. */
#include "evals.h"
#include "../unit/folder.h"

static void other_languages(void **state)
{
	static const struct {
		const char *language, *assign, *show, *said;
	} all[] = {
		{ "js", "const x = 21", "x * 2", "42\n" },
		{ "lua", "x = 21", "x * 2", "42\n" },
		{ "bash", "x=21", "echo $((x * 2))", "42\n" },
		{ "ts", "enum E { A = 21 }; const x: number = E.A", "x as number * 2", "42\n" },
	};

	(void)state;
	if (w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		how.language = all[i].language;
		if (on_wasm() ? !strcmp(how.language, "bash") : !strcmp(how.language, "ts"))
			continue;
		if (try_open(&session) == SB_ERR_NOT_FOUND)
			continue; /* not installed */
		assert_non_null(session);
		ok(eval(all[i].assign), "");
		ok(eval(all[i].show), all[i].said);
		sb_session_free(session);
		session = NULL;
	}
}

/* Each in its own words; what was there before stays. */
static void each_language_is_interrupted(void **state)
{
	/* Python looks for signals before it goes to sleep, not while: one that comes in between is found after it */
	static const struct {
		const char *language, *assign, *loop, *exception, *show, *said;
	} all[] = {
		{ "js", "const x = 5", "console.log('go'); for (;;);", "interrupted", "x", "5\n" },
		{ "js", "const x = 5", "await new Promise((f) => setTimeout(f, 600000))", "interrupted", "x", "5\n" },
		{ "lua", "x = 5", "while true do end", "interrupted!", "x", "5\n" },
		{ "lua", "x = 5", "coroutine.wrap(function() while true do pcall(math.abs, 1) end end)()",
		  "interrupted!", "x", "5\n" },
		{ "ts", "const x: number = 5", "for (;;);", "interrupted", "x", "5\n" },
		{ "python", "x = 5", "import time\nwhile True: time.sleep(.01)", "KeyboardInterrupt", "x", "5\n" },
		/* in the middle of a word */
		{ "js", "const x = 5", "for (;;) console.log('x')", "interrupted", "x", "5\n" },
		{ "ts", "const x: number = 5", "for (;;) console.log('x')", "interrupted", "x", "5\n" },
		{ "lua", "x = 5", "while true do print('x') end", "interrupted!", "x", "5\n" },
		{ "python", "x = 5", "while True: print('x')", "KeyboardInterrupt", "x", "5\n" },
		{ "bash", "x=5", "while :; do /bin/true; done", "interrupted", "echo $x", "5\n" },
		{ "bash", "x=5", "f() { sleep 600; }; f", "interrupted", "echo $x", "5\n" },
	};

	(void)state;
	if (w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		other o = { .code = all[i].loop };

		how.language = all[i].language;
		if (on_wasm() ? !strcmp(how.language, "bash")
			      : !strcmp(how.language, "ts") || strstr(o.code, "coroutine"))
			continue; /* the module for the machine's Lua stops the main thread of code alone */
		if (try_open(&session) == SB_ERR_NOT_FOUND)
			continue; /* not built */
		assert_non_null(session);
		ok(eval(all[i].assign), "");
		for (unsigned round = 0; round < 8; round++) {
			start(&o);
			interrupt_after(round * round * 50);
			join(&o);
			if (o.got.rc || !strstr(o.got.exception, all[i].exception))
				fail_msg("%s: %d \"%s\" \"%s\"", all[i].language, o.got.rc,
					 o.got.exception, o.got.message);
		}
		ok(eval(all[i].show), all[i].said);
		sb_session_free(session);
		session = NULL;
	}
}

/* Whatever is thrown is an exception, and never a success. */
static void each_language_throws_anything(void **state)
{
	static const struct {
		const char *language, *code, *exception;
	} all[] = {
		{ "js", "throw null", "null" },
		{ "js", "throw undefined", "undefined" },
		{ "js", "await Promise.reject(null)", "null" },
		{ "js", "await Promise.reject()", "undefined" },
		{ "ts", "throw null", "null" },
		{ "ts", "await Promise.reject(undefined)", "undefined" },
		{ "lua", "error(nil)", "(error object is a nil value)" },
		{ "lua", "error({})", "(error object is a table value)" },
		{ "python", "raise BaseException", "BaseException" },
		{ "python", "raise GeneratorExit", "GeneratorExit" },
	};

	(void)state;
	if (w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		if (!on_wasm() && !strcmp(all[i].language, "ts"))
			continue;
		if (!session || strcmp(how.language, all[i].language)) {
			sb_session_free(session);
			session = NULL;
			how.language = all[i].language;
			if (try_open(&session) == SB_ERR_NOT_FOUND)
				continue; /* not installed */
			assert_non_null(session);
		}
		answer a = eval(all[i].code);

		if (a.rc || a.code != 1 || strcmp(a.exception, all[i].exception) || a.error)
			fail_msg("%s: %s: %d \"%s\"", all[i].language, all[i].code, a.code, a.exception);
	}
}

/* Errors, unfinished blocks, input and exits, in the language's own form. */
static void each_language_says_it_its_way(void **state)
{
	static const sb_command partial = { .flags = SB_COMMAND_PARTIAL };
	static const struct {
		const char *language, *wrong, *exception, *open, *close, *read, *said, *leave;
	} all[] = {
		{ "js", "null.x", "TypeError", "function f() {", "function f() {\n return 7 }\nf()",
		  "std.in.getline()", "'line'\n", "std.exit(3)" },
		{ "ts", "const y: number = ;", "SyntaxError", "function f(): number {",
		  "function f(): number {\n return 7 }\nf()", "std.in.getline() as string", "'line'\n",
		  "process.exit(3)" },
		{ "lua", "error('boom')", "boom", "if true then", "if true then f = 7 end return f",
		  "io.read()", "line\n", "os.exit(3)" },
		{ "python", "1/0", "ZeroDivisionError: division by zero", "def f():", "f = lambda: 7\nf()",
		  "input()", "'line'\n", "raise SystemExit(3)" },
	};

	(void)state;
	if (!on_wasm())
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		how.language = all[i].language;
		if (try_open(&session) == SB_ERR_NOT_FOUND)
			continue; /* not built */
		assert_non_null(session);
		answer a = eval(all[i].wrong);

		if (a.rc || a.code != 1 || !strstr(a.exception, all[i].exception))
			fail_msg("%s: \"%s\"", all[i].language, a.exception);
		a = eval_in(session, partial, all[i].open, NULL);
		assert_int_equal(a.unfinished, 1);
		ok(eval(all[i].close), "7\n");
		ok(eval_in(session,
			   (sb_command){ .input_kind = SB_INPUT_BYTES, .input = "line\n", .input_len = 5 },
			   all[i].read, NULL),
		   all[i].said);
		a = eval(all[i].leave);
		assert_int_equal(a.code, 3);
		assert_int_equal(a.error, SB_ERR_SESSION_CLOSED);
		sb_session_free(session);
		session = NULL;
	}
}

/* What an interrupt of code that computes left behind hides none of code that waits. */
static void a_wait_after_a_loop_is_interrupted(void **state)
{
	static const struct {
		const char *language, *loop, *wait, *exception;
	} all[] = {
		{ "js", "for (;;);", "await new Promise((f) => setTimeout(f, 600000))", "interrupted" },
		{ "ts", "for (;;);", "await new Promise((f: () => void) => setTimeout(f, 600000))", "interrupted" },
		{ "python", "while True: pass", "import time\nwhile True: time.sleep(.01)", "KeyboardInterrupt" },
		{ "bash", "while :; do :; done", "sleep 600", "interrupted" },
	};

	(void)state;
	if (w.is_fake)
		skip();
	for (size_t i = 0; i < COUNT(all); i++) {
		how.language = all[i].language;
		if (!strcmp(how.language, on_wasm() ? "bash" : "ts") || try_open(&session) == SB_ERR_NOT_FOUND)
			continue;
		assert_non_null(session);
		for (unsigned round = 0; round < 6; round++) {
			other o = { .code = round % 2 ? all[i].wait : all[i].loop };

			start(&o);
			interrupt_after(round / 2 * 10000);
			join(&o);
			if (o.got.rc || !strstr(o.got.exception, all[i].exception))
				fail_msg("%s, round %u: %d \"%s\" \"%s\"", all[i].language, round, o.got.rc,
					 o.got.exception, o.got.message);
		}
		sb_session_free(session);
		session = NULL;
	}
}

EVALS_MAIN(TEST(other_languages), TEST(each_language_is_interrupted), TEST(a_wait_after_a_loop_is_interrupted),
	   TEST(each_language_throws_anything),
	   TEST(each_language_says_it_its_way));
