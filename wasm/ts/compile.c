/* SPDX-License-Identifier: MIT */
/* compile.c - /typescript.js to /ts.bytecode, once, while the module is built: no source, no names of lines. */
#include "js.h"
#include <stdio.h>
#include <stdlib.h>

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
