/* SPDX-License-Identifier: MIT */
/* engine.c - QuickJS, and the few things about a context that only its own file can reach. */
#include "quickjs.c"
#include "js.h"

void engine_freeze(JSContext *ctx, bool tables)
{
	ctx->random_state = 1; /* nothing of the builder's clock stays in the snapshot */
	if (!tables)
		ctx->hash_seed = 1;
	ctx->time_origin = 0;
}

void engine_renew(JSContext *ctx, const uint64_t seeds[2], bool tables)
{
	ctx->random_state = seeds[0] == 0 ? 1 : seeds[0];
	if (!tables) /* maps that exist already were filled under the old one */
		ctx->hash_seed = (uint32_t)seeds[1];
	ctx->time_origin = js__now_ms();
	JSValue performance = JS_GetPropertyStr(ctx, ctx->global_obj, "performance");
	if (JS_IsObject(performance))
		JS_DefinePropertyValueStr(ctx, performance, "timeOrigin", JS_NewFloat64(ctx, ctx->time_origin),
					  JS_PROP_ENUMERABLE | JS_PROP_CONFIGURABLE);
	JS_FreeValue(ctx, performance);
}

char *engine_join(JSContext *ctx, const char *base, const char *name)
{
	return js_default_module_normalize_name(ctx, base, name);
}
