/* SPDX-License-Identifier: MIT */
/*
 * compile.c - /typescript.js to /ts.bytecode, once, while the module is built: no source, no names of lines.
 *
 * Bytecode is slow at what other engines are quick at: a switch is a row of comparisons here, and each call counts.  So in
 * a few places of the scanner and the parser what is asked most is asked first.  Each says the same as what stands behind
 * it; the source is pinned, and a place that is not there once stops the build.
 */
#include "js.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *text, *instead; } places[] = {
#include "places.h"
};

static void fail(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	abort();
}

/* Where it stands, which is in one place alone. */
static char *find(const char *text, size_t len, const char *what)
{
	size_t of = strlen(what);
	char *at = memmem(text, len, what, of);

	if (at == NULL || memmem(at + 1, len - (size_t)(at + 1 - text), what, of) != NULL)
		fail("is not in the compiler once", what);
	return at;
}

static void put(char **to, const char *data, size_t len)
{
	memcpy(*to, data, len);
	*to += len;
}

/* The parser's function token() is its variable currentToken. */
static char *name_token(const char *text, size_t *len, char *made)
{
	static const char call[] = "token()", name[] = "currentToken", defined[] = "function ";
	const char *end = find(text, *len, "})(Parser || (Parser = {}));"), *all = text + *len, *at = find(text, *len, "\nvar Parser;\n");
	char *to = made;

	put(&to, text, (size_t)(at - text));
	while (at < end) {
		bool is = memcmp(at, call, sizeof call - 1) == 0 && strchr(" (![", at[-1]) != NULL &&
			  memcmp(at - (sizeof defined - 1), defined, sizeof defined - 1) != 0;
		put(&to, is ? name : at, is ? sizeof name - 1 : 1);
		at += is ? sizeof call - 1 : 1;
	}
	put(&to, at, (size_t)(all - at));
	*len = (size_t)(to - made);
	return made;
}

/* `text`, of `len` bytes, with every place replaced. */
static char *quicken(char *text, size_t *len)
{
	char *other = malloc(2 * *len);

	if (other == NULL)
		fail("no memory", "");
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		const char *at = find(text, *len, places[i].text), *behind = at + strlen(places[i].text);
		char *to = other, *made = other;
		put(&to, text, (size_t)(at - text));
		put(&to, places[i].instead, strlen(places[i].instead));
		put(&to, behind, *len - (size_t)(behind - text));
		*len = (size_t)(to - made);
		other = text;
		text = made;
	}
	text = name_token(text, len, other);
	text[*len] = '\0';
	return text;
}

extern void __wasm_call_ctors(void);

__attribute__((export_name("wizer.initialize"))) void guest_snapshot(void)
{
	size_t len, code_len;

	__wasm_call_ctors();
	JSRuntime *rt = JS_NewRuntime();
	JSContext *ctx = JS_NewContext(rt);
	char *text = source_load("/typescript.js", &len);
	FILE *file = fopen("/ts.bytecode", "wb");
	if (text == NULL || file == NULL)
		abort();
	text = quicken(text, &len);
	JSValue script = JS_Eval(ctx, text, len, "typescript.js", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
	if (JS_IsException(script)) {
		js_std_dump_error(ctx);
		abort();
	}
	unsigned char *code = JS_WriteObject(ctx, &code_len, script,
					     JS_WRITE_OBJ_BYTECODE | JS_WRITE_OBJ_STRIP_SOURCE | JS_WRITE_OBJ_STRIP_DEBUG);
	if (code == NULL || fwrite(code, 1, code_len, file) != code_len || fclose(file) != 0)
		abort();
}

__attribute__((export_name("wizer.resume"))) void guest_resume(void)
{
}

int main(void)
{
	return 0;
}
