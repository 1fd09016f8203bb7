/* SPDX-License-Identifier: MIT */
/* engine.c - QuickJS, and the few things about a context that only its own file can reach. */
#include "quickjs.c"
#include "js.h"

/* performance.timeOrigin cannot be changed by a program; its place in the object can be, by us. */
static void set_origin(JSContext *ctx, double ms)
{
	ctx->time_origin = ms;
	JSAtom name = JS_NewAtom(ctx, "timeOrigin");
	JSValue performance = JS_GetPropertyStr(ctx, ctx->global_obj, "performance");
	JSProperty *origin;
	if (JS_IsObject(performance) && find_own_property(&origin, JS_VALUE_GET_OBJ(performance), name) != NULL)
		origin->u.value = js_float64(ms);
	JS_FreeValue(ctx, performance);
	JS_FreeAtom(ctx, name);
}

void engine_freeze(JSContext *ctx, bool tables)
{
	ctx->random_state = 1; /* nothing of the builder's clock stays in the snapshot */
	if (!tables)
		ctx->hash_seed = 1;
	set_origin(ctx, 0);
}

void engine_reseed(JSContext *ctx, uint64_t seed)
{
	ctx->random_state = seed == 0 ? 1 : seed;
}

void engine_renew(JSContext *ctx, const uint64_t seeds[2], bool tables)
{
	engine_reseed(ctx, seeds[0]);
	if (!tables) /* maps that exist already were filled under the old one */
		ctx->hash_seed = (uint32_t)seeds[1];
	set_origin(ctx, js__now_ms());
}

/* One write for each page of 4 KiB. */
static void touch(void *table, size_t bytes)
{
	for (volatile char *at = table, *end = at + bytes; at < end; at += 4096)
		*at = *at;
}

void engine_touch(JSRuntime *rt)
{
	touch(rt->atom_hash, sizeof rt->atom_hash[0] * (size_t)rt->atom_hash_size);
	touch(rt->shape_hash, sizeof rt->shape_hash[0] * (size_t)rt->shape_hash_size);
}

char *engine_join(JSContext *ctx, const char *base, const char *name)
{
	return js_default_module_normalize_name(ctx, base, name);
}
