/* SPDX-License-Identifier: MIT */
/* engine.c - Wasmtime's C API, as little of it as there can be: see engine.h. */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef ENGINE_DECLARED
#include "declared.h"
#else
#include <wasm.h>
#include <wasmtime.h>
#endif

#ifdef ENGINE_DECLARED
#define ENGINE_ROUTE "wheel"
#else
#define ENGINE_ROUTE "crate"
#endif
#define TABLE_ELEMENTS 1000000
#define TABLES 16
#define MEMORIES 1
#define IMPORTS_MAX 256
#define NAME_SHOWN 60

typedef struct bound_call {
	engine *e;
	const wasi_import *import;
} bound_call;

struct engine {
	wasm_engine_t *engine;
	wasmtime_module_t *module;
	wasmtime_store_t *store;
	wasmtime_context_t *context;
	wasmtime_memory_t memory;
	wasmtime_instance_t instance;    /* of `store`, once that is there */
	bool has_memory;
	wasmtime_func_t turn;            /* once has_turn */
	bool has_turn;
	int ended;               /* ENGINE_EXITED, STOPPED or RESTS by a call of the interface; -1 = no */
	engine_run *run;
	bound_call calls[IMPORTS_MAX];
};

const char *engine_route(void)
{
	return ENGINE_ROUTE;
}

const char *engine_key(void)
{
	return ENGINE_VERSION "-" ENGINE_ROUTE "-" ENGINE_SETTINGS;
}

/* ---- Settings ------------------------------------------------------------------------------------ */

static void set_features(wasm_config_t *c)
{
	wasmtime_config_shared_memory_set(c, false);
	wasmtime_config_wasm_tail_call_set(c, true);
	wasmtime_config_wasm_reference_types_set(c, true);
	wasmtime_config_wasm_function_references_set(c, false);
	wasmtime_config_wasm_gc_set(c, false);
	wasmtime_config_gc_support_set(c, true);
	wasmtime_config_wasm_simd_set(c, true);
	wasmtime_config_wasm_relaxed_simd_set(c, true);
	wasmtime_config_wasm_relaxed_simd_deterministic_set(c, false);
	wasmtime_config_wasm_bulk_memory_set(c, true);
	wasmtime_config_wasm_multi_value_set(c, true);
	wasmtime_config_wasm_multi_memory_set(c, false);
	wasmtime_config_wasm_memory64_set(c, false);
	wasmtime_config_wasm_wide_arithmetic_set(c, false);
	wasmtime_config_wasm_custom_page_sizes_set(c, false);
	wasmtime_config_wasm_exceptions_set(c, true);
}

static wasm_config_t *settings(bool from_memory, uint64_t stack_bytes)
{
	wasm_config_t *c = wasm_config_new();

	if (!c)
		return NULL;
	set_features(c);
	wasmtime_config_debug_info_set(c, false);
	wasmtime_config_consume_fuel_set(c, false);
	wasmtime_config_epoch_interruption_set(c, false);
	/* the first must be the larger at each moment */
	wasmtime_config_async_stack_size_set(c, ENGINE_STACK_BYTES + (2u << 20));
	wasmtime_config_max_wasm_stack_set(c, stack_bytes);
	wasmtime_config_memory_may_move_set(c, false);
	wasmtime_config_memory_reservation_set(c, (uint64_t)1 << 32);
	wasmtime_config_memory_guard_size_set(c, 32u << 20);
	/* a memory's first contents are mapped from the module's file; without one it would take a file
	 * in memory, made at the start of the guest, and are copied instead */
	wasmtime_config_memory_init_cow_set(c, !from_memory);
	wasmtime_config_signals_based_traps_set(c, true);
	wasmtime_config_native_unwind_info_set(c, false);
#ifdef WASMTIME_FEATURE_COMPILER
	wasmtime_config_strategy_set(c, WASMTIME_STRATEGY_CRANELIFT);
	wasmtime_config_cranelift_opt_level_set(c, WASMTIME_OPT_LEVEL_SPEED);
#endif
	return c;
}

engine *engine_new(bool from_memory, uint64_t stack_bytes)
{
	engine *e = calloc(1, sizeof *e);
	wasm_config_t *c = e ? settings(from_memory, stack_bytes) : NULL;

	if (c)
		e->engine = wasm_engine_new_with_config(c);
	if (!e || !e->engine) {
		free(e);
		return NULL;
	}
	return e;
}

/* ---- Words of the engine's, in ours ---------------------------------------------------------------- */

static void take_text(char why[ENGINE_WHY], const wasm_byte_vec_t *text)
{
	size_t n = 0;

	/* one line, the first of what may be many */
	for (size_t i = 0; i < text->size && n + 1 < ENGINE_WHY; i++) {
		unsigned char c = (unsigned char)text->data[i];

		if (c == '\0')
			break;
		if (c < 32 || c == 127)
			c = ' ';
		if (c != ' ' || (n && why[n - 1] != ' '))
			why[n++] = (char)c;
	}
	why[n] = '\0';
}

/* Of "failed to ... Caused by: ..." the cause. */
static void leave_cause(char why[ENGINE_WHY])
{
	static const char mark[] = "Caused by: ";
	const char *at = strstr(why, mark);

	if (at && at[sizeof mark - 1])
		memmove(why, at + sizeof mark - 1, strlen(at + sizeof mark - 1) + 1);
	for (size_t n = strlen(why); n && why[n - 1] == ' '; n--)
		why[n - 1] = '\0';
}

static int take_error(wasmtime_error_t *error, char why[ENGINE_WHY])
{
	wasm_name_t text;

	if (!error)
		return 0;
	wasmtime_error_message(error, &text);
	take_text(why, &text);
	wasm_byte_vec_delete(&text);
	wasmtime_error_delete(error);
	/* the whole range of a memory's addresses, of which next to nothing is used */
	if (strstr(why, "failed to reserve"))
		snprintf(why, ENGINE_WHY, "the engine cannot reserve addresses for a memory: raise `ulimit -v`");
	leave_cause(why);
	return -1;
}

/* ---- Modules --------------------------------------------------------------------------------------- */

int engine_load_file(engine *e, const char *path, char why[ENGINE_WHY])
{
	return take_error(wasmtime_module_deserialize_file(e->engine, path, &e->module), why);
}

int engine_load(engine *e, const void *data, size_t len, char why[ENGINE_WHY])
{
	return take_error(wasmtime_module_deserialize(e->engine, data, len, &e->module), why);
}

#ifdef WASMTIME_FEATURE_COMPILER
int engine_compile(engine *e, const void *wasm, size_t len, void **out, size_t *out_len,
		   char why[ENGINE_WHY])
{
	wasmtime_module_t *module = NULL;
	wasm_byte_vec_t bytes;
	int rc = take_error(wasmtime_module_new(e->engine, wasm, len, &module), why);

	if (rc)
		return rc;
	rc = take_error(wasmtime_module_serialize(module, &bytes), why);
	wasmtime_module_delete(module);
	if (rc)
		return rc;
	*out = malloc(bytes.size ? bytes.size : 1);
	if (*out)
		memcpy(*out, bytes.data, bytes.size);
	*out_len = bytes.size;
	wasm_byte_vec_delete(&bytes);
	if (!*out)
		snprintf(why, ENGINE_WHY, "no memory for the compiled module");
	return *out ? 0 : -1;
}
#else
int engine_compile(engine *e, const void *wasm, size_t len, void **out, size_t *out_len,
		   char why[ENGINE_WHY])
{
	(void)e;
	(void)wasm;
	(void)len;
	(void)out;
	(void)out_len;
	snprintf(why, ENGINE_WHY, "there is no compiler in this program");
	return -1;
}
#endif

/* ---- Calls of the guest's ---------------------------------------------------------------------------- */

uint64_t engine_memory_bytes(engine *e)
{
	return e->has_memory ? wasmtime_memory_data_size(e->context, &e->memory) : 0;
}

/* The engine takes the guest's calls off the stack; what is told of the trap is looked at by nobody. */
static wasm_trap_t *end_guest(engine *e, int kind)
{
	e->ended = kind;
	if (e->run->leave && kind != ENGINE_RESTS)
		e->run->leave(e->run->user, kind);
	return wasmtime_trap_new("end", 3);
}

static wasm_trap_t *on_call(void *env, wasmtime_caller_t *caller, wasmtime_val_raw_t *values,
			    size_t count)
{
	const bound_call *call = env;
	engine *e = call->e;
	engine_run *run = e->run;
	uint64_t args[9];
	uint32_t rc;

	(void)caller;
	for (size_t i = 0; i < count && call->import->params[i]; i++)
		args[i] = call->import->params[i] == 'I' ? (uint64_t)values[i].i64 :
							   (uint32_t)values[i].i32;
	run->w->mem_len = engine_memory_bytes(e);
	if (run->w->mem_len > run->peak_bytes)
		run->peak_bytes = run->w->mem_len;
	run->w->calls++;
	run->in_host = true;
	rc = call->import->call(run->w, args);
	run->in_host = false;
	if (run->stop && run->stop(run->user))
		return end_guest(e, ENGINE_STOPPED);
	if (rc >= WASI_ENDED)
		return end_guest(e, rc == WASI_ENDED ? ENGINE_EXITED : ENGINE_RESTS);
	if (call->import->returns)
		values[0].i32 = (int32_t)rc;
	return NULL;
}

static wasm_functype_t *type_of(const wasi_import *import)
{
	wasm_valtype_t *p[9], *r[1] = { NULL };
	wasm_valtype_vec_t params, results;
	size_t n = strlen(import->params);

	for (size_t i = 0; i < n; i++)
		p[i] = wasm_valtype_new(import->params[i] == 'I' ? WASM_I64 : WASM_I32);
	if (import->returns)
		r[0] = wasm_valtype_new(WASM_I32);
	wasm_valtype_vec_new(&params, n, p);
	wasm_valtype_vec_new(&results, import->returns ? 1 : 0, r);
	return wasm_functype_new(&params, &results);
}

/* Does the guest mean the same by it? */
static bool type_fits(const wasm_externtype_t *wanted, const wasi_import *import)
{
	const wasm_functype_t *type = wasm_externtype_as_functype_const(wanted);
	const wasm_valtype_vec_t *params, *results;

	if (!type)
		return false;
	params = wasm_functype_params(type);
	results = wasm_functype_results(type);
	if (params->size != strlen(import->params) || results->size != (import->returns ? 1u : 0u))
		return false;
	for (size_t i = 0; i < params->size; i++)
		if (wasm_valtype_kind(params->data[i]) !=
		    (import->params[i] == 'I' ? WASM_I64 : WASM_I32))
			return false;
	return !results->size || wasm_valtype_kind(results->data[0]) == WASM_I32;
}

static const wasi_import *find_import(const wasm_name_t *module, const wasm_name_t *name)
{
	const wasi_import *i = wasi_interface(module->data, module->size);

	for (; i && i->name; i++)
		if (strlen(i->name) == name->size && memcmp(i->name, name->data, name->size) == 0)
			return i;
	return NULL;
}

static int shown(const wasm_name_t *name)
{
	return name->size > NAME_SHOWN ? NAME_SHOWN : (int)name->size;
}

static int bind_import(engine *e, const wasm_importtype_t *wanted, bound_call *call,
		       wasmtime_extern_t *out, char why[ENGINE_WHY])
{
	const wasm_name_t *module = wasm_importtype_module(wanted);
	const wasm_name_t *name = wasm_importtype_name(wanted);
	const wasi_import *import = find_import(module, name);
	wasm_functype_t *type;

	if (!import || !type_fits(wasm_importtype_type(wanted), import)) {
		snprintf(why, ENGINE_WHY, "the module imports \"%.*s.%.*s\", which %s", shown(module),
			 module->data, shown(name), name->data,
			 import ? "has another type here" :
			 "is not there: WASI preview 1 is all that a module gets");
		return -1;
	}
	*call = (bound_call){ .e = e, .import = import };
	type = type_of(import);
	out->kind = WASMTIME_EXTERN_FUNC;
	wasmtime_func_new_unchecked(e->context, type, on_call, call, NULL, &out->of.func);
	wasm_functype_delete(type);
	return 0;
}

/* ---- A run -------------------------------------------------------------------------------------------- */

/* Which trap it was, in words; what its code means is the interface's promise. */
static void tell_trap(engine_run *run, wasm_trap_t *trap)
{
	static const char *const words[] = {
		[WASMTIME_TRAP_CODE_STACK_OVERFLOW] = "calls too deep: the stack is used up",
		[WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS] = "memory out of bounds",
		[WASMTIME_TRAP_CODE_HEAP_MISALIGNED] = "misaligned atomic access",
		[WASMTIME_TRAP_CODE_TABLE_OUT_OF_BOUNDS] = "table out of bounds",
		[WASMTIME_TRAP_CODE_INDIRECT_CALL_TO_NULL] = "call of an element that is null",
		[WASMTIME_TRAP_CODE_BAD_SIGNATURE] = "call of a function of another type",
		[WASMTIME_TRAP_CODE_INTEGER_OVERFLOW] = "integer overflow",
		[WASMTIME_TRAP_CODE_INTEGER_DIVISION_BY_ZERO] = "integer division by zero",
		[WASMTIME_TRAP_CODE_BAD_CONVERSION_TO_INTEGER] = "number that no integer can hold",
		[WASMTIME_TRAP_CODE_UNREACHABLE_CODE_REACHED] = "unreachable code was reached",
	};
	wasmtime_trap_code_t code;
	wasm_message_t text;

	if (wasmtime_trap_code(trap, &code)) {
		run->stack_overflow = code == WASMTIME_TRAP_CODE_STACK_OVERFLOW;
		if (code < sizeof words / sizeof words[0] && words[code]) {
			snprintf(run->why, sizeof run->why, "%s", words[code]);
			return;
		}
	}
	wasm_trap_message(trap, &text);
	take_text(run->why, &text);
	wasm_byte_vec_delete(&text);
}

/* How a call of the guest's ended. */
static int ending(engine *e, engine_run *run, wasmtime_error_t *error, wasm_trap_t *trap)
{
	int kind = ENGINE_EXITED;

	run->peak_bytes = engine_memory_bytes(e) > run->peak_bytes ? engine_memory_bytes(e) :
								     run->peak_bytes;
	if (error) {
		take_error(error, run->why);
		kind = ENGINE_TRAPPED;
	} else if (trap) {
		tell_trap(run, trap);
		kind = ENGINE_TRAPPED;
		wasm_trap_delete(trap);
	}
	return e->ended < 0 ? kind : e->ended;
}

static bool find_export(engine *e, wasmtime_instance_t *instance, const char *name,
			wasmtime_extern_kind_t kind, wasmtime_extern_t *out)
{
	return wasmtime_instance_export_get(e->context, instance, name, strlen(name), out) &&
	       out->kind == kind;
}

static int instantiate(engine *e, engine_run *run, const wasm_importtype_vec_t *imports,
		       wasmtime_instance_t *instance)
{
	static wasmtime_extern_t given[IMPORTS_MAX];
	wasm_trap_t *trap = NULL;
	wasmtime_error_t *error;

	if (imports->size > IMPORTS_MAX) {
		snprintf(run->why, sizeof run->why, "the module has %zu imports; %d are the most",
			 imports->size, IMPORTS_MAX);
		return ENGINE_REFUSED;
	}
	for (size_t i = 0; i < imports->size; i++)
		if (bind_import(e, imports->data[i], &e->calls[i], &given[i], run->why) < 0)
			return ENGINE_REFUSED;
	error = wasmtime_instance_new(e->context, e->module, given, imports->size, instance, &trap);
	if (error) {
		take_error(error, run->why);
		return strstr(run->why, "memory minimum size") ? ENGINE_NO_MEMORY : ENGINE_REFUSED;
	}
	return trap ? ending(e, run, NULL, trap) : -1;
}

/* False: there is none of that name, or it takes or gives something. */
static bool find_plain(engine *e, const char *name, wasmtime_extern_t *out)
{
	wasm_functype_t *type;
	bool plain;

	if (!find_export(e, &e->instance, name, WASMTIME_EXTERN_FUNC, out))
		return false;
	type = wasmtime_func_type(e->context, &out->of.func);
	plain = !wasm_functype_params(type)->size && !wasm_functype_results(type)->size;
	wasm_functype_delete(type);
	return plain;
}

static void find_memory(engine *e, engine_run *run)
{
	wasmtime_extern_t memory;

	e->has_memory = find_export(e, &e->instance, "memory", WASMTIME_EXTERN_MEMORY, &memory);
	if (e->has_memory) {
		e->memory = memory.of.memory;
		run->base = run->w->mem = wasmtime_memory_data(e->context, &e->memory);
		run->peak_bytes = engine_memory_bytes(e);
	}
	/* from here on each growth is the worker's own to allow: it counts what it refuses */
	wasmtime_store_limiter(e->store, -1, TABLE_ELEMENTS, 1, TABLES, MEMORIES);
}

static int call_start(engine *e, engine_run *run)
{
	wasmtime_extern_t start;
	wasm_trap_t *trap = NULL;
	wasmtime_error_t *error;

	if (!find_plain(e, "_start", &start)) {
		bool other = find_export(e, &e->instance, "_start", WASMTIME_EXTERN_FUNC, &start);

		snprintf(run->why, sizeof run->why, "%s", other ?
			 "\"_start\" of the module has another type" :
			 "the module exports no function \"_start\": it is no command");
		return ENGINE_REFUSED;
	}
	find_memory(e, run);
	error = wasmtime_func_call(e->context, &start.of.func, NULL, 0, NULL, 0, &trap);
	return ending(e, run, error, trap);
}

/* From outside, of a guest that rests. */
static int call_in(engine *e, engine_run *run, const wasmtime_func_t *func)
{
	wasm_trap_t *trap = NULL;
	wasmtime_error_t *error;
	int kind;

	e->ended = -1;
	/* find_plain() has looked at its type */
	error = wasmtime_func_call_unchecked(e->context, func, NULL, 0, &trap);
	kind = ending(e, run, error, trap);
	return kind == ENGINE_EXITED && e->ended < 0 ? ENGINE_RESTS : kind;
}

int engine_turn(engine *e, engine_run *run)
{
	wasmtime_extern_t turn;

	if (!e->has_turn) {
		if (!find_plain(e, "guest.turn", &turn)) {
			snprintf(run->why, sizeof run->why, "the module rests and exports no \"guest.turn\"");
			return ENGINE_TRAPPED;
		}
		e->turn = turn.of.func;
		e->has_turn = true;
	}
	return call_in(e, run, &e->turn);
}

bool engine_rehearse(engine *e, engine_run *run)
{
	wasmtime_extern_t rehearse;
	wasm_trap_t *trap = NULL;
	wasmtime_error_t *error;

	if (!find_plain(e, "guest.rehearse", &rehearse))
		return true;
	find_memory(e, run);
	error = wasmtime_func_call(e->context, &rehearse.of.func, NULL, 0, NULL, 0, &trap);
	return ending(e, run, error, trap) == ENGINE_EXITED;
}

int engine_ready(engine *e, engine_run *run)
{
	uint64_t most = run->memory_bytes < (uint64_t)1 << 32 ? run->memory_bytes : (uint64_t)1 << 32;
	wasm_importtype_vec_t imports;
	int kind;

	e->run = run;
	e->ended = -1;
	e->store = wasmtime_store_new(e->engine, NULL, NULL);
	if (!e->store) {
		snprintf(run->why, sizeof run->why, "no memory for a store");
		return ENGINE_REFUSED;
	}
	e->context = wasmtime_store_context(e->store);
	wasmtime_store_limiter(e->store, (int64_t)most, TABLE_ELEMENTS, 1, TABLES, MEMORIES);
	wasmtime_module_imports(e->module, &imports);
	kind = instantiate(e, run, &imports, &e->instance);
	wasm_importtype_vec_delete(&imports);
	return kind;
}

int engine_start(engine *e, engine_run *run)
{
	int kind = e->store ? -1 : engine_ready(e, run);

	return kind < 0 ? call_start(e, run) : kind;
}

/* ---- A branch ----------------------------------------------------------------------------------------- */

struct engine_fresh {
	engine e;                /* of the other's module, in a store of its own */
	engine_run run;
	wasi w;
};

static bool never(void *user)
{
	(void)user;
	return true; /* a module that calls something as it is instantiated has none */
}

engine_fresh *engine_fresh_new(engine *e, const uint8_t **data, uint64_t *bytes)
{
	engine_fresh *f = calloc(1, sizeof *f);

	*data = NULL;
	*bytes = 0;
	if (!f)
		return NULL;
	f->e.engine = e->engine;
	f->e.module = e->module;
	f->run = (engine_run){ .w = &f->w, .memory_bytes = e->run->memory_bytes, .stop = never };
	if (engine_ready(&f->e, &f->run) >= 0) {
		engine_fresh_free(f);
		return NULL;
	}
	find_memory(&f->e, &f->run);
	*data = f->run.base;
	*bytes = engine_memory_bytes(&f->e);
	return f;
}

void engine_fresh_free(engine_fresh *f)
{
	if (f && f->e.store)
		wasmtime_store_delete(f->e.store);
	free(f);
}

/* The next of them from export *at on; false = there is none more. */
static bool next_global(engine *e, size_t *at, wasmtime_global_t *out)
{
	wasmtime_extern_t item;
	size_t len;
	char *name;

	while (wasmtime_instance_export_nth(e->context, &e->instance, *at, &name, &len, &item)) {
		wasm_globaltype_t *type;
		bool changes;

		++*at;
		if (item.kind != WASMTIME_EXTERN_GLOBAL)
			continue;
		type = wasmtime_global_type(e->context, &item.of.global);
		changes = wasm_globaltype_mutability(type) == WASM_VAR;
		wasm_globaltype_delete(type);
		*out = item.of.global;
		if (changes)
			return true;
	}
	return false;
}

/* As large as any of the engine's builds makes one. */
typedef union value {
	wasmtime_val_t val;
	char room[64];
} value;

int engine_globals(engine *e, branch_global *out, uint32_t most)
{
	wasmtime_global_t global;
	size_t at = 0;
	uint32_t count = 0;

	while (next_global(e, &at, &global)) {
		value v = { .room = { 0 } };

		wasmtime_global_get(e->context, &global, &v.val);
		if (count == most || v.val.kind > WASMTIME_F64)
			return -1;
		out[count] = (branch_global){ .kind = v.val.kind };
		memcpy(&out[count++].bits, &v.val.of, sizeof out->bits);
	}
	return (int)count;
}

int engine_globals_set(engine *e, const branch_global *from, uint32_t count)
{
	char why[ENGINE_WHY];
	wasmtime_global_t global;
	size_t at = 0;
	uint32_t i = 0;

	for (; next_global(e, &at, &global); i++) {
		value v = { .room = { 0 } };

		if (i == count)
			return -1;
		v.val.kind = (wasmtime_valkind_t)from[i].kind;
		memcpy(&v.val.of, &from[i].bits, sizeof from->bits);
		if (take_error(wasmtime_global_set(e->context, &global, &v.val), why) < 0)
			return -1;
	}
	return i == count ? 0 : -1;
}

bool engine_can_rest(engine *e)
{
	wasmtime_extern_t found;

	return e->has_memory && find_plain(e, "guest.turn", &found) && find_plain(e, "guest.renew", &found) &&
	       find_export(e, &e->instance, "__stack_pointer", WASMTIME_EXTERN_GLOBAL, &found);
}

int engine_rest(engine *e, engine_run *run)
{
	int kind = e->store ? -1 : engine_ready(e, run);

	if (kind >= 0)
		return kind;
	find_memory(e, run);
	if (engine_can_rest(e))
		return -1;
	snprintf(run->why, sizeof run->why, "the module cannot go on from a copy");
	return ENGINE_REFUSED;
}

int engine_grow(engine *e, uint64_t bytes)
{
	uint64_t now = engine_memory_bytes(e), before;
	char why[ENGINE_WHY];

	if (bytes <= now)
		return 0;
	if (take_error(wasmtime_memory_grow(e->context, &e->memory, (bytes - now) / 65536, &before), why) < 0)
		return -ENOMEM;
	return engine_memory_bytes(e) == bytes ? 0 : -ENOMEM;
}

int engine_renew(engine *e, engine_run *run)
{
	wasmtime_extern_t renew;

	return find_plain(e, "guest.renew", &renew) ? call_in(e, run, &renew.of.func) : ENGINE_REFUSED;
}
