/* SPDX-License-Identifier: MIT */
/* The command's own heap. */
#include "unit.h"

#include <errno.h>
#include <stdint.h>

#include "../../src/cli/heap.h"

static bool is_filled(const unsigned char *at, unsigned char with, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (at[i] != with)
			return false;
	return true;
}

static void objects_do_not_overlap(void **state)
{
	enum { COUNT = 400 };
	static unsigned char *at[COUNT];
	static size_t size[COUNT];
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 40; round++) {
		for (size_t i = 0; i < COUNT; i++) {
			random = random * 1664525u + 1013904223u;
			if (at[i]) {
				unit_row(i, is_filled(at[i], (unsigned char)i, size[i]));
				if (random >> 30 == 0) {
					heap_free(at[i]);
					at[i] = NULL;
					continue;
				}
			}
			size_t next = (random >> 8) % (random >> 28 ? 300 : 200000);
			unsigned char *moved = heap_resize(at[i], next);

			assert_non_null(moved);
			assert_int_equal((uintptr_t)moved % 16, 0);
			if (at[i])
				unit_row(i, is_filled(moved, (unsigned char)i,
						      next < size[i] ? next : size[i]));
			at[i] = moved;
			size[i] = next;
			memset(moved, (unsigned char)i, next);
		}
	}
	for (size_t i = 0; i < COUNT; i++)
		heap_free(at[i]);
}

static void zeroed_ones_are_zero(void **state)
{
	static const size_t sizes[] = { 1, 100, 1000, 1024, 1025, 5000, 65536, 65537, 1 << 20 };

	(void)state;
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < UNIT_LEN(sizes); i++) {
			unsigned char *at = heap_alloc_zero(1, sizes[i]);

			assert_non_null(at);
			unit_row(i, is_filled(at, 0, sizes[i]));
			memset(at, 0xff, sizes[i]);
			heap_free(at);
		}
}

static void a_freed_one_is_used_again(void **state)
{
	char *first = heap_alloc(48), *second;

	(void)state;
	heap_free(first);
	second = heap_alloc(40); /* of the same class */
	assert_ptr_equal(first, second);
	heap_free(second);
	heap_free(NULL);
}

static void aligned_ones(void **state)
{
	static const size_t aligns[] = { 8, 16, 32, 64, 4096 };

	(void)state;
	for (int round = 0; round < 20; round++)
		for (size_t i = 0; i < UNIT_LEN(aligns); i++) {
			char *at = heap_alloc_aligned(aligns[i], 100);

			assert_non_null(at);
			unit_row(i, (uintptr_t)at % aligns[i] == 0);
			memset(at, 1, 100);
			heap_free(at);
			at = heap_alloc(100 + aligns[i]); /* may be what is left of it */
			memset(at, 2, 100 + aligns[i]);
			heap_free(at);
		}
	errno = 0;
	assert_null(heap_alloc_aligned(24, 8));
	assert_int_equal(errno, EINVAL);
}

static void too_much_is_refused(void **state)
{
	char *small = heap_alloc(10);

	(void)state;
	errno = 0;
	assert_null(heap_alloc(SIZE_MAX - 4));
	assert_int_equal(errno, ENOMEM);
	assert_null(heap_alloc((size_t)PTRDIFF_MAX));
	assert_null(heap_alloc_zero(SIZE_MAX / 2, 4));
	memset(small, 7, 10);
	assert_null(heap_resize(small, SIZE_MAX - 100));
	assert_true(is_filled((unsigned char *)small, 7, 10));
	heap_free(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_do_not_overlap),    cmocka_unit_test(zeroed_ones_are_zero),
		cmocka_unit_test(a_freed_one_is_used_again), cmocka_unit_test(aligned_ones),
		cmocka_unit_test(too_much_is_refused),
	};

	return cmocka_run_group_tests_name("cli_heap", tests, NULL, NULL);
}
