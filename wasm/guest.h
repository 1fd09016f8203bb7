/* SPDX-License-Identifier: MIT */
/* guest.h - what the drivers of all languages share; they run inside the guest, on wasi-libc. */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUEST_NO_PROGRAMS "there are no other programs behind the wasm walls; use --backend linux"

/* At the top of main(): goes to $PWD, which WASI does not know.  One line and exit 1 where that fails. */
void guest_start(void);
/* Fills it from the machine's randomness, which never fails here. */
void guest_random(void *data, size_t len);

#endif /* GUEST_H */
