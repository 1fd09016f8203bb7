/* SPDX-License-Identifier: MIT */
/* outlog.c - a ring of bytes and a ring of runs under one budget; see outlog.h. */
#include "outlog.h"

#include <stdlib.h>

enum { FIRST_BYTES = 1024, FIRST_RUNS = 4 };

void outlog_init(outlog *log, uint64_t budget)
{
	*log = (outlog){ .budget = budget < OUTLOG_LEAST ? OUTLOG_LEAST : budget };
}

void outlog_release(outlog *log)
{
	free(log->ring);
	free(log->runs);
	log->ring = NULL;
	log->runs = NULL;
	log->alloc = log->run_alloc = log->run_first = log->run_count = 0;
	log->oldest = log->end;
}

static outlog_run *run_at(const outlog *log, size_t index)
{
	return &log->runs[(log->run_first + index) % log->run_alloc];
}

static size_t retained(const outlog *log)
{
	return (size_t)(log->end - log->oldest);
}

uint64_t outlog_used(const outlog *log)
{
	return retained(log) + log->run_count * sizeof(outlog_run);
}

static uint64_t run_end(const outlog *log, size_t index)
{
	return index + 1 < log->run_count ? run_at(log, index + 1)->start : log->end;
}

/* The oldest bytes, and runs of which nothing is left. */
static void drop(outlog *log, uint64_t bytes)
{
	log->oldest += bytes < retained(log) ? bytes : retained(log);
	while (log->run_count && run_end(log, 0) <= log->oldest) {
		log->run_first = (log->run_first + 1) % log->run_alloc;
		log->run_count--;
	}
}

/* Until `more` bytes of budget are free. */
static void make_way(outlog *log, uint64_t more)
{
	while (log->run_count && outlog_used(log) + more > log->budget) {
		uint64_t over = outlog_used(log) + more - log->budget;
		uint64_t first = run_end(log, 0) - log->oldest;

		drop(log, over < first ? over : first);
	}
}

static void ring_write(outlog *log, uint64_t cursor, const char *data, size_t len)
{
	size_t at = (size_t)(cursor % log->alloc);
	size_t first = len < log->alloc - at ? len : log->alloc - at;

	memcpy(log->ring + at, data, first);
	memcpy(log->ring, data + first, len - first);
}

static void ring_read(const outlog *log, uint64_t cursor, char *data, size_t len)
{
	size_t at = (size_t)(cursor % log->alloc);
	size_t first = len < log->alloc - at ? len : log->alloc - at;

	memcpy(data, log->ring + at, first);
	memcpy(data + first, log->ring, len - first);
}

/* Room for `need` retained bytes: doubled, but never above the budget. */
static bool grow_ring(outlog *log, size_t need)
{
	uint64_t want = log->alloc ? (uint64_t)log->alloc * 2 : FIRST_BYTES;
	size_t len = retained(log), at, first;
	char *ring;

	if (need <= log->alloc)
		return true;
	want = want < need ? need : want;
	want = want > log->budget ? log->budget : want;
	ring = malloc((size_t)want);
	if (!ring)
		return false;
	if (len) {
		/* in two pieces at most: as the ring is read, so it is laid down again */
		at = (size_t)(log->oldest % want);
		first = len < want - at ? len : (size_t)want - at;
		ring_read(log, log->oldest, ring + at, first);
		ring_read(log, log->oldest + first, ring, len - first);
	}
	free(log->ring);
	log->ring = ring;
	log->alloc = (size_t)want;
	return true;
}

static bool grow_runs(outlog *log)
{
	size_t want = log->run_alloc ? log->run_alloc * 2 : FIRST_RUNS, i;
	outlog_run *runs;

	if (log->run_count < log->run_alloc)
		return true;
	runs = calloc(want, sizeof *runs);
	if (!runs)
		return false;
	for (i = 0; i < log->run_count; i++)
		runs[i] = *run_at(log, i);
	free(log->runs);
	log->runs = runs;
	log->run_alloc = want;
	log->run_first = 0;
	return true;
}

/* A run of `stream` ends the list, or false: no memory. */
static bool open_run(outlog *log, uint32_t stream)
{
	if (log->run_count && run_at(log, log->run_count - 1)->stream == stream)
		return true;
	make_way(log, sizeof(outlog_run) + 1);
	if (!grow_runs(log))
		return false;
	*run_at(log, log->run_count++) = (outlog_run){ .start = log->end, .stream = stream };
	return true;
}

/* Nothing is kept any more: a gap up to here. */
static void forget_all(outlog *log)
{
	log->oldest = log->end;
	log->run_count = 0;
}

void outlog_add(outlog *log, uint32_t stream, const void *data, size_t len)
{
	const char *bytes = data;
	uint64_t most = log->budget - sizeof(outlog_run);

	if (!len)
		return;
	if (len > most) { /* only the end of it can stay */
		log->end += len - most;
		forget_all(log);
		bytes += len - most;
		len = (size_t)most;
	}
	if (!open_run(log, stream)) {
		log->end += len;
		forget_all(log);
		return;
	}
	make_way(log, len);
	/* what was open may have been dropped whole to make way */
	if (!open_run(log, stream) || !grow_ring(log, retained(log) + len)) {
		log->end += len;
		forget_all(log);
		return;
	}
	ring_write(log, log->end, bytes, len);
	log->end += len;
}

/* The run that holds `cursor`. */
static size_t find_run(const outlog *log, uint64_t cursor)
{
	size_t low = 0, high = log->run_count;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (run_at(log, mid)->start <= cursor)
			low = mid;
		else
			high = mid;
	}
	return low;
}

size_t outlog_read(const outlog *log, uint64_t cursor, void *to, size_t cap, uint32_t *stream)
{
	size_t index, len;

	if (cursor < log->oldest || cursor >= log->end)
		return 0;
	index = find_run(log, cursor);
	len = (size_t)(run_end(log, index) - cursor);
	len = len < cap ? len : cap;
	ring_read(log, cursor, to, len);
	*stream = run_at(log, index)->stream;
	return len;
}
