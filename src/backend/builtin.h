/* SPDX-License-Identifier: MIT */
/* builtin.h - the tables of the backends that are built in. */
#ifndef SB_BACKEND_BUILTIN_H
#define SB_BACKEND_BUILTIN_H

#include <sandbox/backend.h>

extern const sb_backend backend_wasm, backend_linux, backend_process, backend_noop, backend_seatbelt;

#endif /* SB_BACKEND_BUILTIN_H */
