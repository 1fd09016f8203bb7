/* SPDX-License-Identifier: MIT */
/* heap.h - the command's own heap: see heap.c.  As the C library's functions of these names. */
#ifndef SB_CLI_HEAP_H
#define SB_CLI_HEAP_H

#include <stddef.h>

void *heap_alloc(size_t size);          /* NULL and ENOMEM */
void *heap_alloc_zero(size_t count, size_t size);
void *heap_resize(void *old, size_t size);
void heap_free(void *old);              /* what is not in use ends the program */
void *heap_alloc_aligned(size_t align, size_t size);

/* From now on there are several threads. */
void heap_share(void);

#endif /* SB_CLI_HEAP_H */
