/* SPDX-License-Identifier: MIT */
/*
 * session.c - an evaluation session of JavaScript or TypeScript: docs/internals/driver-protocol.md.
 *
 * Each evaluation is a classic script of the one realm, in which `await` may stand at the top; what its
 * last statement comes to is its value.  While it awaits, timers and other jobs run; between
 * evaluations nothing does: the guest rests (guest.h).
 */
#include "guest.h"
#include "js.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 44, NONCE = 32, CODE_HEAD = 10, TEXT_MAX = 65536, PARTIAL = 1 };

static JSContext *ctx;
static JSValue inspect;
static volatile uint32_t rung;  /* from outside */
static bool running, was_interrupted;
static char nonce[NONCE + 1];
static unsigned count;          /* of evaluations */

/* ---- Frames ----------------------------------------------------------------------------------- */

static void frame(char kind, const char *text, size_t len)
{
	char head[HEAD + 1];

	snprintf(head, sizeof head, "%c %s %08zx\n", kind, nonce, len);
	guest_control_write(head, HEAD);
	guest_control_write(text, len);
}

static void frame_text(char kind, const char *text)
{
	size_t len = strlen(text);

	if (len > TEXT_MAX)
		for (len = TEXT_MAX; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	frame(kind, text, len);
}

static void fill(char *data, size_t len)
{
	while (len > 0) {
		size_t n = guest_control_read(data, len);
		if (n == 0)
			exit(EXIT_SUCCESS);
		data += n;
		len -= n;
	}
}

/* The payload, ended by a NUL. */
static char *receive(char *kind, size_t *len)
{
	char head[HEAD + 1] = { 0 };

	fill(head, HEAD);
	*kind = head[0];
	memcpy(nonce, head + 2, NONCE);
	*len = strtoul(head + 3 + NONCE, NULL, 16);
	char *payload = malloc(*len + 1);
	if (payload == NULL) {
		fputs("not enough memory for the code\n", stderr);
		exit(EXIT_FAILURE);
	}
	fill(payload, *len);
	payload[*len] = '\0';
	return payload;
}

/* Was the code interrupted before it began?  Once it has, the bell tells. */
static bool told_to_stop(void)
{
	char head[HEAD];

	if (!guest_control_waiting())
		return false;
	fill(head, HEAD); /* nothing else comes now, and it has no payload */
	return head[0] == 'I' && memcmp(head + 2, nonce, NONCE) == 0;
}

/* ---- Endings ---------------------------------------------------------------------------------- */

static int on_look(JSRuntime *rt, void *opaque)
{
	(void)rt, (void)opaque;
	if (rung == 0)
		return 0;
	rung = 0;
	was_interrupted = running;
	return running;
}

static void flush_all(void)
{
	fflush(stdout);
	fflush(stderr);
}

static void done(const char *status)
{
	flush_all();
	frame_text('D', status);
}

static void failed_with(const char *shown, const char *brief)
{
	fflush(stdout);
	fprintf(stderr, "%s\n", shown);
	flush_all();
	frame_text('X', brief);
	done("1");
}

static char *call_text(JSValueConst function, JSValueConst value)
{
	JSValue text = JS_Call(ctx, function, JS_UNDEFINED, 1, &value);
	const char *words = JS_IsException(text) ? NULL : JS_ToCString(ctx, text);
	char *copy = words == NULL ? NULL : strdup(words);

	if (words == NULL)
		JS_FreeValue(ctx, JS_GetException(ctx));
	JS_FreeCString(ctx, words);
	JS_FreeValue(ctx, text);
	return copy;
}

static char *property(JSValueConst object, const char *name)
{
	JSValue value = JS_IsObject(object) ? JS_GetPropertyStr(ctx, object, name) : JS_UNDEFINED;
	const char *words = JS_IsString(value) ? JS_ToCString(ctx, value) : NULL;
	char *copy = words == NULL ? NULL : strdup(words);

	if (JS_IsException(value))
		JS_FreeValue(ctx, JS_GetException(ctx));
	JS_FreeCString(ctx, words);
	JS_FreeValue(ctx, value);
	return copy;
}

static char *brief_of(JSValueConst error)
{
	char *name = property(error, "name"), *message = property(error, "message"), *out = NULL;

	if (name != NULL && message != NULL && asprintf(&out, "%s: %s", name, message) < 0)
		out = NULL;
	free(name);
	free(message);
	return out != NULL ? out : call_text(inspect, error);
}

/* Takes the error over. */
static void failed(JSValue error)
{
	if (was_interrupted) {
		JS_FreeValue(ctx, error);
		failed_with("Uncaught interrupt", "interrupted");
		return;
	}
	char *shown = call_text(inspect, error), *brief = brief_of(error), *line = NULL;
	char *mapped = shown == NULL ? NULL : ts_stack(shown);
	const char *text = mapped != NULL ? mapped : shown != NULL ? shown : "[an error that cannot be shown]";

	if (asprintf(&line, "Uncaught %s", text) < 0)
		line = NULL;
	failed_with(line != NULL ? line : "Uncaught error", brief != NULL ? brief : "[an error that cannot be shown]");
	free(line);
	free(mapped);
	free(shown);
	free(brief);
	JS_FreeValue(ctx, error);
}

static void succeeded(JSValue value)
{
	char *text = NULL;

	if (!JS_IsUndefined(value)) {
		running = true; /* a getter or a proxy of the code's may run */
		text = call_text(inspect, value);
		running = false;
		if (was_interrupted || text == NULL) {
			free(text);
			JS_FreeValue(ctx, value);
			failed(JS_NewString(ctx, "[a value that cannot be shown]"));
			return;
		}
		JSValue global = JS_GetGlobalObject(ctx);
		JS_SetPropertyStr(ctx, global, "_", JS_DupValue(ctx, value));
		JS_FreeValue(ctx, global);
		printf("%s\n", text);
		flush_all();
		frame_text('V', text);
		free(text);
	}
	JS_FreeValue(ctx, value);
	done("0");
}

/* ---- Code ------------------------------------------------------------------------------------- */

static JSValue compile(const char *text, size_t len, const char *name)
{
	return JS_Eval(ctx, text, len, name, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC | JS_EVAL_FLAG_COMPILE_ONLY);
}

/* `{ a: 1 }` is meant as an object, if it can be one. */
static JSValue compile_line(const char *text, size_t len, const char *name)
{
	size_t from = strspn(text, " \t\r\n"), to = len;
	char *object = NULL;

	while (to > from && strchr(" \t\r\n", text[to - 1]) != NULL)
		to--;
	if (to - from >= 2 && text[from] == '{' && text[to - 1] == '}' && (object = malloc(len + 3)) != NULL) {
		int n = snprintf(object, len + 3, "(%s)", text);
		JSValue code = n == (int)len + 2 ? compile(object, (size_t)n, name) : JS_EXCEPTION;
		free(object);
		if (!JS_IsException(code))
			return code;
		JS_FreeValue(ctx, JS_GetException(ctx));
	}
	return compile(text, len, name);
}

/* Where the error stands, and what it is; false: it is no error of syntax. */
static bool syntax_error(const char *text, size_t len, unsigned long *line, char **message)
{
	JSValue code = compile(text, len, "S");

	*message = NULL;
	if (!JS_IsException(code)) {
		JS_FreeValue(ctx, code);
		return false;
	}
	JSValue error = JS_GetException(ctx);
	char *stack = property(error, "stack"), *at = stack == NULL ? NULL : strstr(stack, "at S:");
	*line = at == NULL ? 0 : strtoul(at + 5, NULL, 10);
	*message = property(error, "message");
	free(stack);
	JS_FreeValue(ctx, error);
	return *line != 0 && *message != NULL;
}

/* Would more text help?  The error then stands behind all that there is, or within what must be ended. */
static bool unfinished(const char *text, size_t len)
{
	unsigned long lines = 2, line, second;
	char *longer = malloc(len + 3), *message, *other = NULL;
	bool more = false;

	if (longer == NULL)
		return false;
	memcpy(longer, text, len);
	memcpy(longer + len, "\n`", 3);
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	if (syntax_error(longer, len + 1, &line, &message)) {
		more = line == lines || strcmp(message, "unexpected end of comment") == 0;
		if (!more && strcmp(message, "unexpected end of string") == 0) /* of a template? */
			more = !syntax_error(longer, len + 2, &second, &other) || second != line ||
			       strcmp(other, message) != 0;
	}
	free(message);
	free(other);
	free(longer);
	return more;
}

/* Runs all that is due, and waits, until the promise is settled. */
static bool settle(JSValueConst promise)
{
	JSContext *of;

	while (JS_PromiseState(ctx, promise) == JS_PROMISE_PENDING) {
		int state = JS_ExecutePendingJob(JS_GetRuntime(ctx), &of);

		if (state == 0 && rung != 0) {
			on_look(NULL, NULL);
			return false;
		}
		if (state < 0 || (state == 0 && !libc_wait(ctx))) {
			if (!JS_HasException(ctx) && rung == 0)
				JS_ThrowTypeError(ctx, "nothing is left that could end this await");
			on_look(NULL, NULL);
			return false;
		}
	}
	return true;
}

static JSValue run(JSValue code)
{
	JSValue promise = JS_EvalFunction(ctx, code), result = JS_EXCEPTION;
	JSContext *of;

	if (JS_IsException(promise))
		return promise;
	if (settle(promise)) {
		result = JS_PromiseResult(ctx, promise);
		if (JS_PromiseState(ctx, promise) == JS_PROMISE_REJECTED) {
			js_forgive(promise);
			JS_Throw(ctx, result);
			result = JS_EXCEPTION;
		} else if (JS_IsObject(result)) { /* { value } */
			JSValue value = JS_GetPropertyStr(ctx, result, "value");
			JS_FreeValue(ctx, result);
			result = value;
		}
		while (!was_interrupted && JS_ExecutePendingJob(JS_GetRuntime(ctx), &of) > 0)
			;
	}
	JS_FreeValue(ctx, promise);
	return result;
}

static void evaluate(char *text, size_t len, bool partial)
{
	char name[24], *why = NULL;
	int made = TS_MADE;

	snprintf(name, sizeof name, "REPL%u", ++count);
	was_interrupted = false;
	if (ts_wanted(name))
		made = ts_take(name, &text, &len, partial, &why);
	if (made == TS_FAILED) {
		failed_with(why != NULL ? why : "out of memory", "SyntaxError");
		free(why);
		free(text);
		return;
	}
	JSValue code = made == TS_MADE ? compile_line(text, len, name) : JS_UNDEFINED;
	JSValue wrong = JS_IsException(code) ? JS_GetException(ctx) : JS_UNDEFINED;
	if (made == TS_UNFINISHED || (partial && JS_IsException(code) && unfinished(text, len))) {
		JS_FreeValue(ctx, wrong);
		free(text);
		frame('U', "", 0);
		return;
	}
	free(text);
	rung = 0;
	running = true;
	JSValue value = JS_EXCEPTION;
	if (JS_IsException(code)) {
		JS_Throw(ctx, wrong);
	} else if (told_to_stop()) {
		was_interrupted = true;
		JS_FreeValue(ctx, code);
		JS_Throw(ctx, JS_UNDEFINED);
	} else {
		value = run(code);
	}
	running = false;
	if (JS_IsException(value))
		wrong = JS_GetException(ctx);
	js_report_rejections();
	if (JS_IsException(value))
		failed(wrong);
	else
		succeeded(value);
}

static void give_input(const char *data, size_t len)
{
	static const char name[] = "/tmp/.input";
	FILE *file = fopen(name, "wb");

	if (file == NULL)
		return;
	bool whole = fwrite(data, 1, len, file) == len;
	if (fclose(file) == 0 && whole)
		guest_input_file(name);
	remove(name);
	clearerr(stdin);
	fseek(stdin, 0, SEEK_SET);
}

static void step(void)
{
	char kind, *payload, digits[9] = { 0 };
	size_t len, code_len;

	payload = receive(&kind, &len);
	if (kind == 'S')
		frame_text('H', "1 nul int js quickjs-ng");
	if (kind != 'E' || len < CODE_HEAD) {
		free(payload);
		return;
	}
	memcpy(digits, payload + 2, 8);
	code_len = strtoul(digits, NULL, 16);
	bool given = len > CODE_HEAD + code_len;
	bool partial = payload[1] & PARTIAL;
	if (given)
		give_input(payload + CODE_HEAD + code_len, len - CODE_HEAD - code_len);
	memmove(payload, payload + CODE_HEAD, code_len);
	payload[code_len] = '\0';
	evaluate(payload, code_len, partial);
	if (given)
		guest_input_file("/dev/null");
}

__attribute__((export_name("guest.turn"))) void guest_turn(void)
{
	step();
}

_Noreturn void js_session(JSContext *of, JSValueConst shown)
{
	const guest_bell_word words[] = { { &rung, 1 } };

	ctx = of;
	inspect = JS_DupValue(ctx, shown);
	JS_SetInterruptHandler(JS_GetRuntime(ctx), on_look, NULL);
	guest_bell(words, sizeof words / sizeof words[0]);
	guest_rest();
}
