/* SPDX-License-Identifier: MIT */
/*
 * ts.c - TypeScript: the compiler itself, as bytecode without source, in a realm of its own where
 * no script can reach it.
 *
 * ts_snapshot() loads it from /ts.bytecode (compile.c wrote that) while the module is built, and has
 * it translate one sample, so that what it makes on first use lies in the snapshot.  A trace of lines
 * that it made is put into the source's by translating once more with a source map: only errors pay.
 */
#include "js.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTECODE_MAX = 64 << 20 };

static JSContext *compiler;
static JSValue translate, translate_stack; /* functions of glue.js */
static const char glue[] = {
#embed "glue.js"
	, 0
};

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	if (JS_HasException(compiler))
		js_std_dump_error(compiler);
	abort();
}

/* The compiler notes when it was loaded, for measures that nobody asks for; that would be the builder's time. */
static void no_clock(void)
{
	static const char code[] = "delete globalThis.performance; Date.now = () => 0";

	JS_FreeValue(compiler, JS_Eval(compiler, code, sizeof code - 1, "clock", JS_EVAL_TYPE_GLOBAL));
}

static void load_compiler(void)
{
	FILE *file = fopen("/ts.bytecode", "rb");
	long size = file == NULL || fseek(file, 0, SEEK_END) != 0 ? 0 : ftell(file);
	size_t len = size < 0 || size > BYTECODE_MAX ? 0 : (size_t)size;
	/* no larger than it must be: a hole in the snapshot would have the engine copy all of it at each
	 * start, page by page, where it maps what is dense */
	unsigned char *code = malloc(len + 1);

	if (len == 0 || code == NULL || fseek(file, 0, SEEK_SET) != 0 || fread(code, 1, len, file) != len)
		fail("/ts.bytecode cannot be read");
	fclose(file);
	JSValue value = JS_ReadObject(compiler, code, len, JS_READ_OBJ_BYTECODE);
	memset(code, 0, len); /* pages of zeros take no room in the snapshot */
	free(code);
	if (!JS_IsException(value))
		value = JS_EvalFunction(compiler, value);
	if (JS_IsException(value))
		fail("the compiler does not start");
	JS_FreeValue(compiler, value);
}

static const char sample[] =
	"enum A { X = 1, Y }\nnamespace N { export const a: number = 1 }\n"
	"class C<T> extends Object { constructor(private readonly v: T) { super() } get w(): T { return this.v } }\n"
	"const f = async <T,>(x: T | null): Promise<T> => x!;\ninterface I { a?: string; b: [number, ...string[]] }\n"
	"export type { I };\nfor (const k of [1, 2] as const) console.log(`${k}`, k satisfies number);\n";

/* This one is JavaScript but for its types, and takes the short way through glue.js. */
static const char plain[] =
	"enum A { X = 1 }\ninterface I { a: A }\nclass C<T> { v?: T; f<U>(u: U): T { return this.v! } }\n"
	"const f = <T,>(x: T): T => x, o: I = { a: A.X };\nif (f(o.a) as number) for (const k of [1]) console.log(`${k}`);\n";

static void rehearse(const char *code)
{
	size_t len = strlen(code);
	char *text = strdup(code), *why = NULL;

	if (text == NULL || ts_take("/rehearsal.ts", &text, &len, false, &why) != TS_MADE)
		abort();
	free(text);
}

static void first_file(const char *code)
{
	size_t len = strlen(code);
	char *text = strdup(code);

	if (text == NULL || !ts_translate("/run/code/main.ts", &text, &len))
		fail("the compiler does not work");
	free(text);
}

void ts_snapshot(JSRuntime *rt)
{
	compiler = JS_NewContext(rt);
	engine_freeze(compiler, false);
	no_clock();
	load_compiler();
	JSValue guest = JS_Eval(compiler, glue, sizeof glue - 1, "glue", JS_EVAL_TYPE_GLOBAL);
	if (JS_IsException(guest))
		fail("glue.js does not run");
	translate = JS_GetPropertyStr(compiler, guest, "translate");
	translate_stack = JS_GetPropertyStr(compiler, guest, "stack");
	JS_FreeValue(compiler, guest);
	for (int i = 0; i < 2; i++) {
		first_file(sample);
		free(ts_stack("at f (/run/code/main.ts:2:3)"));
		first_file(plain); /* and the sample's text is not kept */
	}
	JS_RunGC(rt);
	engine_freeze(compiler, true);
}

void ts_renew(const uint64_t seeds[2])
{
	engine_renew(compiler, seeds, true);
}

void ts_rehearse(void)
{
	rehearse(sample);
	rehearse(plain);
}

bool ts_wanted(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot == NULL || (strcmp(dot, ".js") != 0 && strcmp(dot, ".mjs") != 0 && strcmp(dot, ".cjs") != 0 &&
			       strcmp(dot, ".json") != 0);
}

/* [the code], the errors as one text, or null: unfinished. */
static int take_result(JSValueConst result, char **text, size_t *len, char **why)
{
	bool ok = JS_IsArray(result);
	JSValue code = ok ? JS_GetPropertyUint32(compiler, result, 0) : JS_DupValue(compiler, result);
	size_t made_len;
	const char *words = JS_ToCStringLen(compiler, &made_len, code);
	char *made = words == NULL ? NULL : malloc(made_len + 1);

	if (made != NULL)
		memcpy(made, words, made_len + 1);
	JS_FreeCString(compiler, words);
	JS_FreeValue(compiler, code);
	if (!ok || made == NULL) {
		*why = made;
		return TS_FAILED;
	}
	free(*text);
	*text = made;
	*len = made_len;
	return TS_MADE;
}

static int take(const char *path, char **text, size_t *len, bool keep, bool partial, char **why)
{
	JSValue args[] = { JS_NewString(compiler, path), JS_NewStringLen(compiler, *text, *len), JS_NewBool(compiler, keep),
			   JS_NewBool(compiler, partial) };
	JSValue result = JS_Call(compiler, translate, JS_UNDEFINED, 4, args);
	int made;

	*why = NULL;
	JS_FreeValue(compiler, args[0]);
	JS_FreeValue(compiler, args[1]);
	if (JS_IsException(result)) { /* out of memory, or nested deeper than the stack allows */
		JSValue error = JS_GetException(compiler);
		const char *words = JS_ToCString(compiler, error);
		if (asprintf(why, "%s: cannot be translated: %s", path, words != NULL ? words : "out of memory") < 0)
			*why = NULL;
		JS_FreeCString(compiler, words);
		JS_FreeValue(compiler, error);
		return TS_FAILED;
	}
	made = JS_IsNull(result) ? TS_UNFINISHED : take_result(result, text, len, why);
	JS_FreeValue(compiler, result);
	return made;
}

bool ts_translate(const char *path, char **text, size_t *len)
{
	char *why;
	int made = take(path, text, len, true, false, &why);

	if (made == TS_FAILED)
		fprintf(stderr, "%s\n", why != NULL ? why : "out of memory");
	free(why);
	return made == TS_MADE;
}

int ts_take(const char *name, char **text, size_t *len, bool partial, char **why)
{
	return take(name, text, len, false, partial, why);
}

char *ts_stack(const char *stack)
{
	JSValue arg = JS_NewString(compiler, stack);
	JSValue result = JS_Call(compiler, translate_stack, JS_UNDEFINED, 1, &arg);
	char *mapped = NULL;

	JS_FreeValue(compiler, arg);
	if (JS_IsException(result))
		JS_FreeValue(compiler, JS_GetException(compiler));
	else {
		const char *words = JS_ToCString(compiler, result);
		mapped = words == NULL ? NULL : strdup(words);
		JS_FreeCString(compiler, words);
		JS_FreeValue(compiler, result);
	}
	return mapped;
}
