/* SPDX-License-Identifier: MIT */
/*
 * main.c - JavaScript for the wasm walls: `node FILE ARG...`.
 *
 * snapshot() runs while the module is built and makes the runtime, the realm and the prelude
 * (console, timers, process); the built module's memory holds them.  main() runs at each start: it
 * renews what was frozen and runs one file.  A file is a classic script in which `await` may stand at
 * the top; one with import or export is a module.
 *
 * An error that nobody catches, or a promise rejected and left so once all jobs have run, goes to
 * stderr with its stack; exit code 1.
 */
#include "guest.h"
#include "js.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the linear stack; with more of it the engine's own (8 MiB) would end first, and with a trap.
 * UNSETTLED: the exit code of Node.js for an `await` at the top that nothing can end. */
enum { STACK_BYTES = 512 << 10, UNSETTLED = 13, LEAST_GARBAGE = 2 << 20 };

static JSRuntime *rt;
static JSContext *ctx;
static JSValue describe, inspect, start_prelude, rehearse_prelude, finish_prelude; /* functions of the prelude */
static const char prelude[] = {
#embed "prelude.js"
	, 0
};

/* ---- Modules ---------------------------------------------------------------------------------- */

static char *normalize(JSContext *c, const char *base, const char *name, void *opaque)
{
	(void)opaque;
	if (strcmp(name, "std") == 0 || strcmp(name, "os") == 0) {
		char full[8];
		snprintf(full, sizeof full, "qjs:%s", name);
		return js_strdup(c, full);
	}
	if (name[0] != '.' && name[0] != '/' && strncmp(name, "qjs:", 4) != 0) {
		JS_ThrowReferenceError(c, "module \"%s\" is not here: behind the wasm walls there are files, std and os; "
				       "--backend linux has Node.js", name);
		return NULL;
	}
	return engine_join(c, base, name);
}

static JSModuleDef *load(JSContext *c, const char *name, void *opaque, JSValueConst attributes)
{
	char *text;
	size_t len;

	if (!ts_wanted(name))
		return js_module_loader(c, name, opaque, attributes);
	text = source_load(name, &len);
	if (text == NULL) {
		JS_ThrowReferenceError(c, "could not load module filename '%s'", name);
		return NULL;
	}
	if (!ts_translate(name, &text, &len)) {
		JS_ThrowSyntaxError(c, "\"%s\" is no TypeScript", name);
		return NULL;
	}
	JSValue module = JS_Eval(c, text, len, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	free(text);
	if (JS_IsException(module) || js_module_set_import_meta(c, module, false, false) < 0)
		return NULL;
	JSModuleDef *def = JS_VALUE_GET_PTR(module);
	JS_FreeValue(c, module);
	return def;
}

/* ---- Errors that nobody caught ---------------------------------------------------------------- */

static void hint(const char *text)
{
	/* what Node.js has; each between blanks */
	static const char elsewhere[] = " require module exports fetch Worker Buffer XMLHttpRequest WebSocket __dirname __filename "
					"Atomics Intl URL URLSearchParams crypto AbortController EventTarget Blob FormData Headers Request "
					"Response ReadableStream MessageChannel BroadcastChannel WebAssembly ";
	static const char begin[] = "ReferenceError: ", end[] = " is not defined";
	const char *name = strstr(text, begin), *behind = name != NULL ? strstr(name, end) : NULL;
	char word[32];
	int len;

	if (behind == NULL)
		return;
	name += sizeof begin - 1;
	len = snprintf(word, sizeof word, " %.*s ", (int)(behind - name), name);
	if (len < (int)sizeof word && strstr(elsewhere, word) != NULL)
		fputs("note: this is QuickJS behind the wasm walls; --backend linux has Node.js\n", stderr);
}

static void report(JSValue error)
{
	JSValue text = JS_Call(ctx, describe, JS_UNDEFINED, 1, &error);
	const char *words;

	fflush(stdout);
	if (JS_IsException(text)) {
		JS_FreeValue(ctx, JS_GetException(ctx));
		text = JS_UNDEFINED;
		words = NULL;
	} else
		words = JS_ToCString(ctx, text);
	char *mapped = words == NULL ? NULL : ts_stack(words);
	fprintf(stderr, "%s\n", mapped != NULL ? mapped : words != NULL ? words : "Uncaught error that cannot be shown");
	if (words != NULL)
		hint(words);
	fflush(stderr);
	free(mapped);
	JS_FreeCString(ctx, words);
	JS_FreeValue(ctx, text);
	JS_FreeValue(ctx, error);
}

/* Promises that are rejected and have no handler; the run fails if one is left once all jobs have run. */
static struct rejected {
	struct rejected *next;
	JSValue promise, reason;
} *rejected;

static void on_rejection(JSContext *c, JSValueConst promise, JSValueConst reason, bool handled, void *opaque)
{
	struct rejected **at = &rejected, *r;

	(void)opaque;
	while (*at != NULL && JS_VALUE_GET_PTR((*at)->promise) != JS_VALUE_GET_PTR(promise))
		at = &(*at)->next;
	if (handled && *at != NULL) {
		r = *at;
		*at = r->next;
		JS_FreeValue(c, r->promise);
		JS_FreeValue(c, r->reason);
		free(r);
	} else if (!handled && *at == NULL && (r = malloc(sizeof *r)) != NULL) {
		r->next = NULL;
		r->promise = JS_DupValue(c, promise);
		r->reason = JS_DupValue(c, reason);
		*at = r;
	}
}

void js_forgive(JSValueConst promise)
{
	on_rejection(ctx, promise, JS_UNDEFINED, true, NULL);
}

void js_report_rejections(void)
{
	while (rejected != NULL) {
		report(JS_DupValue(ctx, rejected->reason));
		js_forgive(rejected->promise);
	}
}

/* ---- Jobs, timers, descriptors ---------------------------------------------------------------- */

/* Runs until nothing is left to do; false once an error was told. */
static bool run_all(void)
{
	JSContext *of;
	int state;

	do {
		while ((state = JS_ExecutePendingJob(rt, &of)) > 0)
			;
		if (state < 0 || rejected != NULL) {
			report(state < 0 ? JS_GetException(of) : JS_DupValue(ctx, rejected->reason));
			return false;
		}
	} while (libc_wait(ctx));
	if (!JS_HasException(ctx))
		return true;
	report(JS_GetException(ctx));
	return false;
}

/* ---- One file --------------------------------------------------------------------------------- */

static bool is_module_name(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot != NULL && (strcmp(dot, ".mjs") == 0 || strcmp(dot, ".mts") == 0);
}

/* As a script if it is one; what has import or export and is none, as a module. */
static JSValue compile(const char *path, const char *text, size_t len)
{
	const int script = JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC | JS_EVAL_FLAG_COMPILE_ONLY;
	const int module = JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY;
	bool words = memmem(text, len, "import", 6) != NULL || memmem(text, len, "export", 6) != NULL;

	if (is_module_name(path))
		return JS_Eval(ctx, text, len, path, module);
	JSValue code = JS_Eval(ctx, text, len, path, script);
	if (!JS_IsException(code) || !words || !JS_DetectModule(text, len))
		return code;
	JS_FreeValue(ctx, JS_GetException(ctx));
	return JS_Eval(ctx, text, len, path, module);
}

/* The exit code that the script left in process.exitCode, after its "exit" handlers. */
static int finish(void)
{
	int32_t code = 0;
	JSValue value = JS_Call(ctx, finish_prelude, JS_UNDEFINED, 0, NULL);

	if (JS_IsException(value) || JS_ToInt32(ctx, &code, value) < 0) {
		report(JS_GetException(ctx));
		return EXIT_FAILURE;
	}
	return code;
}

/* The exit code. */
static int run_file(const char *path)
{
	size_t len;
	char *text = source_load(path, &len);

	if (text == NULL) {
		fprintf(stderr, "node: cannot open \"%s\": %s\n", path, strerror(errno));
		return EXIT_FAILURE;
	}
	if (ts_wanted(path) && !ts_translate(path, &text, &len))
		return EXIT_FAILURE;
	JSValue promise = compile(path, text, len);
	free(text);
	if (!JS_IsException(promise) && JS_VALUE_GET_TAG(promise) == JS_TAG_MODULE &&
	    js_module_set_import_meta(ctx, promise, false, true) < 0)
		promise = JS_EXCEPTION;
	if (!JS_IsException(promise))
		promise = JS_EvalFunction(ctx, promise);
	if (JS_IsException(promise)) {
		report(JS_GetException(ctx));
		return EXIT_FAILURE;
	}
	if (!run_all())
		return EXIT_FAILURE;
	if (!JS_IsPromise(promise) || JS_PromiseState(ctx, promise) != JS_PROMISE_PENDING)
		return finish();
	fflush(stdout);
	fputs("Warning: detected unsettled top-level await\n", stderr);
	return UNSETTLED;
}

/* ---- Snapshot and start ----------------------------------------------------------------------- */

extern void __wasm_call_ctors(void), __wasm_call_dtors(void);
extern int __main_void(void);
_Noreturn extern void __wasi_proc_exit(uint32_t code);

static void take_prelude(void)
{
	JSValue global = JS_GetGlobalObject(ctx), guest = JS_GetPropertyStr(ctx, global, "__guest");
	JSAtom name = JS_NewAtom(ctx, "__guest");

	describe = JS_GetPropertyStr(ctx, guest, "describe");
	inspect = JS_GetPropertyStr(ctx, guest, "inspect");
	start_prelude = JS_GetPropertyStr(ctx, guest, "start");
	rehearse_prelude = JS_GetPropertyStr(ctx, guest, "rehearse");
	finish_prelude = JS_GetPropertyStr(ctx, guest, "finish");
	JS_DeleteProperty(ctx, global, name, 0);
	JS_FreeAtom(ctx, name);
	JS_FreeValue(ctx, guest);
	JS_FreeValue(ctx, global);
}

/* No collection walks through the snapshot before a program has made a good deal of its own. */
static void set_threshold(void)
{
	JSMemoryUsage usage;

	JS_ComputeMemoryUsage(rt, &usage);
	size_t own = (size_t)usage.malloc_size / 2;
	JS_SetGCThreshold(rt, (size_t)usage.malloc_size + (own > LEAST_GARBAGE ? own : LEAST_GARBAGE));
}

static void snapshot(void)
{
	JSContext *of;

	rt = JS_NewRuntime();
	ctx = JS_NewContext(rt);
	js_std_init_handlers(rt);
	JS_SetMaxStackSize(rt, STACK_BYTES);
	JS_SetModuleLoaderFunc2(rt, normalize, load, js_module_check_attributes, NULL);
	js_std_add_helpers(ctx, -1, NULL);
	js_init_module_std(ctx, "qjs:std");
	js_init_module_os(ctx, "qjs:os");
	js_init_module_bjson(ctx, "qjs:bjson");
	JSValue done = JS_Eval(ctx, prelude, sizeof prelude - 1, "prelude", JS_EVAL_TYPE_MODULE);
	while (JS_ExecutePendingJob(rt, &of) > 0)
		;
	if (JS_IsException(done) || JS_PromiseState(ctx, done) != JS_PROMISE_FULFILLED) {
		if (!JS_IsException(done))
			JS_Throw(ctx, JS_PromiseResult(ctx, done));
		js_std_dump_error(ctx);
		abort();
	}
	JS_FreeValue(ctx, done);
	take_prelude();
	JS_SetHostPromiseRejectionTracker(rt, on_rejection, NULL);
	ts_snapshot(rt);
	JS_RunGC(rt);
	set_threshold();
	engine_freeze(ctx, false);
}

extern char __stack_low;

/* What calls that are over left on the stack, times of the builder's among it, would make each snapshot another. */
__attribute__((noinline)) static void clean_stack(void)
{
	volatile char here;

	for (volatile char *at = &__stack_low; at < &here; at++)
		*at = 0;
}

__attribute__((export_name("wizer.initialize"))) void guest_snapshot(void)
{
	__wasm_call_ctors();
	snapshot();
	clean_stack();
}

/* _start of the module with the snapshot in it: constructors have run already. */
__attribute__((export_name("wizer.resume"))) void guest_resume(void)
{
	int code = __main_void();

	__wasm_call_dtors();
	__wasi_proc_exit((uint32_t)code);
}

static void renew(int argc, char **argv)
{
	uint64_t seeds[4];
	JSValue args = JS_NewArray(ctx);

	guest_random(seeds, sizeof seeds);
	engine_renew(ctx, seeds, false);
	ts_renew(seeds + 2);
	for (int i = 1; i < argc; i++)
		JS_SetPropertyUint32(ctx, args, (uint32_t)(i - 1), JS_NewString(ctx, argv[i]));
	JSValue done = JS_Call(ctx, start_prelude, JS_UNDEFINED, 1, &args);
	if (JS_IsException(done))
		report(JS_GetException(ctx));
	JS_FreeValue(ctx, done);
	JS_FreeValue(ctx, args);
}

__attribute__((export_name("guest.renew"))) void guest_renew(void)
{
	uint64_t seed;

	guest_random(&seed, sizeof seed);
	engine_reseed(ctx, seed);
}

/* As run_file() has it: where the C library puts a file's stream, its text, and that as UTF-8. */
static void rehearse_load(void)
{
	enum { STREAM = 1280, TEXT = 4097, CHECKED = 2048 };
	static const size_t sizes[] = { STREAM, TEXT, CHECKED };
	void *parts[sizeof sizes / sizeof sizes[0]];

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		if ((parts[i] = malloc(sizes[i])) != NULL)
			memset(parts[i], 0, sizes[i]);
	for (size_t i = sizeof sizes / sizeof sizes[0]; i-- > 0;)
		free(parts[i]);
}

/* In a worker that waits for its run: what most runs touch is there by then.  Nothing of it stays but memory that was
 * used and given back, and what renew() makes anew. */
__attribute__((export_name("guest.rehearse"))) void guest_rehearse(void)
{
	static const char code[] =
		"(() => { class C { constructor(v) { this.v = v } get w() { return this.v } }\n"
		"const f = (x) => x, a = { b: [1, 'c'], c: new C(2) };\n"
		"function g(n, m = 1) { let s = ''; for (const k of [n, m]) if (k > 0) s += `${k}`; return s }\n"
		"return (f(g(a.c.w)) + a.b.map((x) => x).join(',')).isWellFormed() })()";

	JS_UpdateStackTop(rt);
	engine_touch(rt);
	ts_rehearse();
	JSValue shown = JS_Call(ctx, rehearse_prelude, JS_UNDEFINED, 0, NULL);
	rehearse_load();
	JSValue promise = compile("/rehearsal", code, sizeof code - 1);
	if (!JS_IsException(promise))
		promise = JS_EvalFunction(ctx, promise);
	if (JS_IsException(shown) || JS_IsException(promise) || !run_all() || finish() != 0)
		abort();
	JS_FreeValue(ctx, promise);
	JS_FreeValue(ctx, shown);
}

int main(int argc, char **argv)
{
	if (rt == NULL)
		snapshot();
	guest_start();
	setvbuf(stdout, NULL, _IOLBF, 0);
	JS_UpdateStackTop(rt);
	if (guest_has_session()) {
		renew(1, argv);
		js_session(ctx, inspect);
	}
	if (argc < 2) {
		fputs("node: no code file was given\n", stderr);
		return 1;
	}
	renew(argc, argv);
	int code = run_file(argv[1]);
	return fflush(stdout) == 0 ? code : EXIT_FAILURE;
}
