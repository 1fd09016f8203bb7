/* SPDX-License-Identifier: MIT */
/*
 * guest.c - the same loops as a program of this machine and as a module: what computing costs, and what a call of
 * the interface does.  Prints "compute NS", "clock NS" for one look at the clock, and, as a module, "fdstat NS" for one
 * call that finds a descriptor and fills a record.
 *
 * As a module it has no library: clang --target=wasm32 -nostdlib.
 */
#include <stdint.h>

#define CALLS 2000000u
#define SIDE 96
#define SIEVE 200000u

#ifdef __wasm__
#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))
WASI(clock_time_get) int clock_time_get(int id, int64_t precision, uint64_t *out);
WASI(fd_fdstat_get) int fd_fdstat_get(int fd, void *out);
WASI(fd_write) int fd_write(int fd, const void *iov, int count, uint32_t *done);
#else
#include <time.h>
#include <unistd.h>
#endif

static uint64_t now(void)
{
#ifdef __wasm__
	uint64_t t = 0;

	clock_time_get(1, 1, &t);
	return t;
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

static void say(const char *name, uint64_t number)
{
	char line[64], digits[24];
	uint32_t n = 0, d = 0;

	while (*name)
		line[n++] = *name++;
	line[n++] = ' ';
	do
		digits[d++] = (char)('0' + number % 10);
	while (number /= 10);
	while (d)
		line[n++] = digits[--d];
	line[n++] = '\n';
#ifdef __wasm__
	const struct { const char *at; uint32_t len; } iov = { line, n };
	uint32_t done;

	fd_write(1, &iov, 1, &done);
#else
	if (write(1, line, n) < 0)
		return;
#endif
}

/* ---- The loops: numbers that wrap, a sieve, fractions in a matrix, bytes ----------------------------- */

static double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
static uint8_t composite[SIEVE];

static uint64_t mix(uint64_t seed)
{
	for (uint32_t i = 0; i < 3000000; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed = seed * 6364136223846793005u + 1;
	}
	return seed;
}

static uint64_t sieve(void)
{
	uint64_t primes = 0;

	for (uint32_t i = 0; i < SIEVE; i++)
		composite[i] = 0;
	for (uint32_t i = 2; i < SIEVE; i++) {
		if (composite[i])
			continue;
		primes++;
		for (uint32_t j = i + i; j < SIEVE; j += i)
			composite[j] = 1;
	}
	return primes;
}

static double multiply(void)
{
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			a[i][j] = i + j;
			b[i][j] = i - j;
		}
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			double sum = 0;

			for (int k = 0; k < SIDE; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
	return c[3][5];
}

static uint32_t hash(uint32_t h)
{
	for (int round = 0; round < 20; round++)
		for (uint32_t i = 0; i < SIEVE; i++)
			h = (h ^ composite[i] ^ (i & 255)) * 16777619u;
	return h;
}

static void compute(void)
{
	uint64_t begin = now(), sum = 0;

	for (int round = 0; round < 10; round++)
		sum += mix(sum) + sieve() + (uint64_t)(int64_t)multiply() + hash((uint32_t)sum);
	say("compute", now() - begin);
	say("sum", sum); /* the same everywhere, and so not left out */
}

static void clocks(void)
{
	static volatile uint64_t last;
	uint64_t begin = now();

	for (uint32_t i = 0; i < CALLS; i++)
		last = now();
	say("clock", (now() - begin) / CALLS);
}

#ifdef __wasm__
static void calls(void)
{
	static uint64_t out[3];
	uint64_t begin = now();

	for (uint32_t i = 0; i < CALLS; i++)
		fd_fdstat_get(1, out);
	say("fdstat", (now() - begin) / CALLS);
}

__attribute__((export_name("_start"))) void _start(void)
{
	calls();
	clocks();
	compute();
}
#else
int main(void)
{
	clocks();
	compute();
	return 0;
}
#endif
