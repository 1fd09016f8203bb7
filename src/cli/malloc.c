/* SPDX-License-Identifier: MIT */
/* malloc.c - puts heap.c in the place of the C library's heap.  Linked into the static command only. */
#include "heap.h"

#include <stdlib.h>

void *malloc(size_t size)
{
	return heap_alloc(size);
}

void *calloc(size_t count, size_t size)
{
	return heap_alloc_zero(count, size);
}

void *realloc(void *old, size_t size)
{
	return heap_resize(old, size);
}

void free(void *old)
{
	heap_free(old);
}

void *aligned_alloc(size_t align, size_t size)
{
	return heap_alloc_aligned(align, size);
}
