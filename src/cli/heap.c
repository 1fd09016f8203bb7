/* SPDX-License-Identifier: MIT */
/*
 * heap.c - memory of a program that runs one command and ends.
 *
 * The C library's heap maps and unmaps pages for every few objects, so that long-lived programs stay
 * small; that was a tenth of the time of a short run.  Here small objects lie one behind the other in a
 * pool that is part of the program's data, a freed one waits for the next of its size, and large ones
 * (captured output) are mapped one by one.  Most commands have one thread; those that open sessions say
 * so first (heap_share), and then a lock is taken, for the moment that it takes to link or unlink an
 * object.
 */
#include "heap.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN 16u
#define POOL_BYTES (256u << 10)
#define MORE_BYTES (1u << 20)   /* of each further pool */
#define SMALL_MOST 65536u       /* above: mapped */
#define FINE_MOST 1024u         /* up to here sizes are multiples of ALIGN, then powers of two */
#define CLASSES (FINE_MOST / ALIGN + 7)
#define IN_USE 0x5b0c5e1fu
#define IS_FREE 0x2d9a7734u

typedef struct piece {          /* in front of each object */
	size_t room;            /* bytes behind it */
	uint32_t state, reserved;
} piece;
_Static_assert(sizeof(piece) == ALIGN, "objects are aligned");

static _Alignas(ALIGN) char first_pool[POOL_BYTES];
static char *pool = first_pool;
static size_t pool_left = POOL_BYTES;
static void *waiting[CLASSES];  /* freed objects; the first word of each is the next one */

static bool shared;
static atomic_flag taken = ATOMIC_FLAG_INIT;

void heap_share(void)
{
	shared = true;
}

static void lock(void)
{
	while (shared && atomic_flag_test_and_set_explicit(&taken, memory_order_acquire))
		sched_yield();
}

static void unlock(void)
{
	if (shared)
		atomic_flag_clear_explicit(&taken, memory_order_release);
}

static piece *piece_of(void *object)
{
	return (piece *)object - 1;
}

static size_t class_room(size_t class)
{
	return class <= FINE_MOST / ALIGN ? class * ALIGN : (size_t)FINE_MOST << (class - FINE_MOST / ALIGN);
}

/* The least class whose room holds `size`. */
static size_t class_of(size_t size)
{
	size_t class = FINE_MOST / ALIGN;

	if (size <= FINE_MOST)
		return size ? (size + ALIGN - 1) / ALIGN : 1;
	while (class_room(class) < size)
		class++;
	return class;
}

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* A piece of the pool, never used: all zeros. */
static void *carve(size_t room)
{
	piece *p;

	if (room + sizeof *p > pool_left) {
		char *more = map(MORE_BYTES);

		if (!more)
			return NULL;
		pool = more;
		pool_left = MORE_BYTES;
	}
	p = (piece *)(void *)pool;
	pool += room + sizeof *p;
	pool_left -= room + sizeof *p;
	p->room = room;
	p->state = IN_USE;
	return p + 1;
}

static void *alloc_large(size_t size)
{
	size_t bytes = (size + sizeof(piece) + 4095) & ~(size_t)4095;
	piece *p = map(bytes);

	if (!p)
		return NULL;
	p->room = bytes - sizeof *p;
	p->state = IN_USE;
	return p + 1;
}

static void *alloc_small(size_t class, int *fresh)
{
	void *object = waiting[class];

	if (!object)
		return carve(class_room(class));
	memcpy(&waiting[class], object, sizeof(void *));
	piece_of(object)->state = IN_USE;
	*fresh = 0;
	return object;
}

static void *alloc(size_t size, int *fresh)
{
	void *object;

	*fresh = 1;
	if (size > PTRDIFF_MAX - 8192u) {
		errno = ENOMEM;
		return NULL;
	}
	if (size > SMALL_MOST)
		return alloc_large(size);
	lock();
	object = alloc_small(class_of(size), fresh);
	unlock();
	return object;
}

void *heap_alloc(size_t size)
{
	int fresh;

	return alloc(size, &fresh);
}

void *heap_alloc_zero(size_t count, size_t size)
{
	size_t bytes;
	void *object;
	int fresh;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	object = alloc(bytes, &fresh);
	return object && !fresh ? memset(object, 0, bytes) : object;
}

void heap_free(void *old)
{
	size_t class;
	int saved = errno;
	piece *p;

	if (!old)
		return;
	p = piece_of(old);
	if (p->state != IN_USE)
		__builtin_trap();
	p->state = IS_FREE;
	if (p->room > SMALL_MOST) {
		munmap(p, p->room + sizeof *p);
		errno = saved;
		return;
	}
	class = class_of(p->room);
	if (class_room(class) > p->room) /* an aligned one */
		class--;
	lock();
	memcpy(old, &waiting[class], sizeof(void *));
	waiting[class] = old;
	unlock();
}

static void *resize_large(piece *p, size_t size)
{
	size_t bytes = (size + sizeof *p + 4095) & ~(size_t)4095;
	void *at = mremap(p, p->room + sizeof *p, bytes, MREMAP_MAYMOVE);

	if (at == MAP_FAILED)
		return NULL;
	p = at;
	p->room = bytes - sizeof *p;
	return p + 1;
}

void *heap_resize(void *old, size_t size)
{
	void *object;
	piece *p;

	if (!old)
		return heap_alloc(size);
	p = piece_of(old);
	if (p->state != IN_USE)
		__builtin_trap();
	if (p->room > SMALL_MOST && size > SMALL_MOST && size <= PTRDIFF_MAX - 8192u)
		return resize_large(p, size);
	if (size <= p->room && p->room <= SMALL_MOST)
		return old;
	object = heap_alloc(size);
	if (!object)
		return NULL;
	memcpy(object, old, size < p->room ? size : p->room);
	heap_free(old);
	return object;
}

/* Out of a larger small one, whose beginning is lost; nobody here asks for large ones. */
void *heap_alloc_aligned(size_t align, size_t size)
{
	char *object, *aligned;
	size_t skip;

	if (align <= ALIGN)
		return heap_alloc(size);
	if (align & (align - 1) || align > SMALL_MOST || size > SMALL_MOST - align) {
		errno = align & (align - 1) ? EINVAL : ENOMEM;
		return NULL;
	}
	object = heap_alloc(size + align);
	if (!object)
		return NULL;
	skip = (align - ((uintptr_t)object & (align - 1))) & (align - 1);
	if (!skip)
		return object;
	aligned = object + skip;
	*piece_of(aligned) = (piece){ .room = piece_of(object)->room - skip, .state = IN_USE };
	return aligned;
}
