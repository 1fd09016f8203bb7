/* SPDX-License-Identifier: MIT */
/*
 * declared.h - what engine.c uses of the engine's C API, declared by hand: the ready-made library comes
 * without headers.  wasm/engine/check compares each declaration with the crate's own headers.
 */
#ifndef SB_WASM_DECLARED_H
#define SB_WASM_DECLARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WASMTIME_FEATURE_COMPILER 1

enum { WASM_I32 = 0, WASM_I64 = 1 };
enum { WASM_CONST = 0, WASM_VAR = 1 };
enum { WASMTIME_F64 = 3 };
enum { WASMTIME_EXTERN_FUNC = 0, WASMTIME_EXTERN_GLOBAL = 1, WASMTIME_EXTERN_MEMORY = 3 };
enum { WASMTIME_STRATEGY_CRANELIFT = 1, WASMTIME_OPT_LEVEL_SPEED = 1 };
enum { WASMTIME_TRAP_CODE_STACK_OVERFLOW = 0, WASMTIME_TRAP_CODE_MEMORY_OUT_OF_BOUNDS,
       WASMTIME_TRAP_CODE_HEAP_MISALIGNED, WASMTIME_TRAP_CODE_TABLE_OUT_OF_BOUNDS,
       WASMTIME_TRAP_CODE_INDIRECT_CALL_TO_NULL, WASMTIME_TRAP_CODE_BAD_SIGNATURE,
       WASMTIME_TRAP_CODE_INTEGER_OVERFLOW, WASMTIME_TRAP_CODE_INTEGER_DIVISION_BY_ZERO,
       WASMTIME_TRAP_CODE_BAD_CONVERSION_TO_INTEGER, WASMTIME_TRAP_CODE_UNREACHABLE_CODE_REACHED };

typedef uint8_t wasm_mutability_t, wasmtime_valkind_t;
typedef uint8_t wasm_valkind_t, wasmtime_extern_kind_t, wasmtime_strategy_t, wasmtime_opt_level_t;
typedef uint8_t wasmtime_trap_code_t;
typedef struct wasm_config_t wasm_config_t;
typedef struct wasm_engine_t wasm_engine_t;
typedef struct wasm_trap_t wasm_trap_t;
typedef struct wasm_valtype_t wasm_valtype_t;
typedef struct wasm_functype_t wasm_functype_t;
typedef struct wasm_externtype_t wasm_externtype_t;
typedef struct wasm_importtype_t wasm_importtype_t;
typedef struct wasm_globaltype_t wasm_globaltype_t;
typedef struct wasmtime_error wasmtime_error_t;
typedef struct wasmtime_module wasmtime_module_t;
typedef struct wasmtime_store wasmtime_store_t;
typedef struct wasmtime_context wasmtime_context_t;
typedef struct wasmtime_caller wasmtime_caller_t;

typedef struct wasm_byte_vec_t { size_t size; char *data; } wasm_byte_vec_t;
typedef wasm_byte_vec_t wasm_name_t, wasm_message_t;
typedef struct wasm_valtype_vec_t { size_t size; wasm_valtype_t **data; } wasm_valtype_vec_t;
typedef struct wasm_importtype_vec_t { size_t size; wasm_importtype_t **data; } wasm_importtype_vec_t;

typedef struct wasmtime_func { uint64_t store_id; void *hidden; } wasmtime_func_t;
typedef struct wasmtime_memory {
	struct { uint64_t store_id; uint32_t hidden1; };
	uint32_t hidden2;
} wasmtime_memory_t;
typedef struct wasmtime_global { uint64_t store_id; uint32_t hidden[3]; } wasmtime_global_t;
/* a union of more, all of it hidden */
typedef struct wasmtime_val {
	wasmtime_valkind_t kind;
	union { int32_t i32; int64_t i64; uint64_t hidden[3]; } of;
} wasmtime_val_t;
typedef struct wasmtime_extern {
	wasmtime_extern_kind_t kind;
	union { wasmtime_func_t func; wasmtime_global_t global; wasmtime_memory_t memory; } of;
} wasmtime_extern_t;
typedef struct wasmtime_instance { uint64_t store_id; size_t hidden; } wasmtime_instance_t;
typedef union wasmtime_val_raw { int32_t i32; int64_t i64; uint8_t v128[16]; uint64_t align; } wasmtime_val_raw_t;
typedef wasm_trap_t *(*wasmtime_func_unchecked_callback_t)(void *, wasmtime_caller_t *, wasmtime_val_raw_t *,
							   size_t);

/* wasm.h */
wasm_config_t *wasm_config_new(void);
wasm_engine_t *wasm_engine_new_with_config(wasm_config_t *);
void wasm_byte_vec_delete(wasm_byte_vec_t *);
wasm_valtype_t *wasm_valtype_new(wasm_valkind_t);
wasm_valkind_t wasm_valtype_kind(const wasm_valtype_t *);
void wasm_valtype_vec_new(wasm_valtype_vec_t *, size_t, wasm_valtype_t *const[]);
wasm_functype_t *wasm_functype_new(wasm_valtype_vec_t *, wasm_valtype_vec_t *);
void wasm_functype_delete(wasm_functype_t *);
const wasm_valtype_vec_t *wasm_functype_params(const wasm_functype_t *);
const wasm_valtype_vec_t *wasm_functype_results(const wasm_functype_t *);
const wasm_functype_t *wasm_externtype_as_functype_const(const wasm_externtype_t *);
const wasm_name_t *wasm_importtype_module(const wasm_importtype_t *);
const wasm_name_t *wasm_importtype_name(const wasm_importtype_t *);
const wasm_externtype_t *wasm_importtype_type(const wasm_importtype_t *);
void wasm_importtype_vec_delete(wasm_importtype_vec_t *);
wasm_mutability_t wasm_globaltype_mutability(const wasm_globaltype_t *);
void wasm_globaltype_delete(wasm_globaltype_t *);
void wasm_trap_delete(wasm_trap_t *);
void wasm_trap_message(const wasm_trap_t *, wasm_message_t *);

/* wasmtime/config.h */
#define DECLARED_SETTING(name, type) void wasmtime_config_##name##_set(wasm_config_t *, type)
DECLARED_SETTING(async_stack_size, uint64_t);
DECLARED_SETTING(consume_fuel, bool);
DECLARED_SETTING(cranelift_opt_level, wasmtime_opt_level_t);
DECLARED_SETTING(debug_info, bool);
DECLARED_SETTING(epoch_interruption, bool);
DECLARED_SETTING(gc_support, bool);
DECLARED_SETTING(max_wasm_stack, size_t);
DECLARED_SETTING(memory_guard_size, uint64_t);
DECLARED_SETTING(memory_init_cow, bool);
DECLARED_SETTING(memory_may_move, bool);
DECLARED_SETTING(memory_reservation, uint64_t);
DECLARED_SETTING(native_unwind_info, bool);
DECLARED_SETTING(shared_memory, bool);
DECLARED_SETTING(signals_based_traps, bool);
DECLARED_SETTING(strategy, wasmtime_strategy_t);
DECLARED_SETTING(wasm_bulk_memory, bool);
DECLARED_SETTING(wasm_custom_page_sizes, bool);
DECLARED_SETTING(wasm_exceptions, bool);
DECLARED_SETTING(wasm_function_references, bool);
DECLARED_SETTING(wasm_gc, bool);
DECLARED_SETTING(wasm_memory64, bool);
DECLARED_SETTING(wasm_multi_memory, bool);
DECLARED_SETTING(wasm_multi_value, bool);
DECLARED_SETTING(wasm_reference_types, bool);
DECLARED_SETTING(wasm_relaxed_simd, bool);
DECLARED_SETTING(wasm_relaxed_simd_deterministic, bool);
DECLARED_SETTING(wasm_simd, bool);
DECLARED_SETTING(wasm_tail_call, bool);
DECLARED_SETTING(wasm_wide_arithmetic, bool);

/* the rest of wasmtime.h */
void wasmtime_error_message(const wasmtime_error_t *, wasm_name_t *);
void wasmtime_error_delete(wasmtime_error_t *);
wasmtime_error_t *wasmtime_module_new(wasm_engine_t *, const uint8_t *, size_t, wasmtime_module_t **);
void wasmtime_module_delete(wasmtime_module_t *);
wasmtime_error_t *wasmtime_module_serialize(const wasmtime_module_t *, wasm_byte_vec_t *);
wasmtime_error_t *wasmtime_module_deserialize(wasm_engine_t *, const uint8_t *, size_t, wasmtime_module_t **);
wasmtime_error_t *wasmtime_module_deserialize_file(wasm_engine_t *, const char *, wasmtime_module_t **);
void wasmtime_module_imports(const wasmtime_module_t *, wasm_importtype_vec_t *);
wasmtime_store_t *wasmtime_store_new(wasm_engine_t *, void *, void (*)(void *));
wasmtime_context_t *wasmtime_store_context(wasmtime_store_t *);
void wasmtime_store_limiter(wasmtime_store_t *, int64_t, int64_t, int64_t, int64_t, int64_t);
void wasmtime_func_new_unchecked(wasmtime_context_t *, const wasm_functype_t *,
				 wasmtime_func_unchecked_callback_t, void *, void (*)(void *),
				 wasmtime_func_t *);
wasm_functype_t *wasmtime_func_type(const wasmtime_context_t *, const wasmtime_func_t *);
wasmtime_error_t *wasmtime_func_call(wasmtime_context_t *, const wasmtime_func_t *, const void *, size_t, void *,
				     size_t, wasm_trap_t **);
wasmtime_error_t *wasmtime_func_call_unchecked(wasmtime_context_t *, const wasmtime_func_t *,
					       wasmtime_val_raw_t *, size_t, wasm_trap_t **);
wasmtime_error_t *wasmtime_instance_new(wasmtime_context_t *, const wasmtime_module_t *,
					const wasmtime_extern_t *, size_t, wasmtime_instance_t *,
					wasm_trap_t **);
bool wasmtime_instance_export_get(wasmtime_context_t *, const wasmtime_instance_t *, const char *, size_t,
				  wasmtime_extern_t *);
bool wasmtime_instance_export_nth(wasmtime_context_t *, const wasmtime_instance_t *, size_t, char **, size_t *,
				  wasmtime_extern_t *);
void wasmtime_store_delete(wasmtime_store_t *);
wasm_globaltype_t *wasmtime_global_type(const wasmtime_context_t *, const wasmtime_global_t *);
void wasmtime_global_get(wasmtime_context_t *, const wasmtime_global_t *, wasmtime_val_t *);
wasmtime_error_t *wasmtime_global_set(wasmtime_context_t *, const wasmtime_global_t *, const wasmtime_val_t *);
wasmtime_error_t *wasmtime_memory_grow(wasmtime_context_t *, const wasmtime_memory_t *, uint64_t, uint64_t *);
uint8_t *wasmtime_memory_data(wasmtime_context_t *, const wasmtime_memory_t *);
size_t wasmtime_memory_data_size(const wasmtime_context_t *, const wasmtime_memory_t *);
wasm_trap_t *wasmtime_trap_new(const char *, size_t);
bool wasmtime_trap_code(const wasm_trap_t *, wasmtime_trap_code_t *);

#endif /* SB_WASM_DECLARED_H */
