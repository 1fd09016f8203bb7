/* SPDX-License-Identifier: MIT */
/* arena.c - many small things that end together. */
#include "base.h"

#include <stdio.h>
#include <stdlib.h>

struct arena_chunk {
	arena_chunk *next;
	max_align_t data[];
};

enum { CHUNK = 8192 };

void *arena_alloc(arena *mem, size_t size)
{
	if (mem->failed)
		return NULL;
	if (size > SIZE_MAX / 2) {
		mem->failed = true;
		return NULL;
	}
	size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (size > mem->left) {
		size_t room = size > CHUNK / 2 ? size : CHUNK;
		arena_chunk *chunk = malloc(sizeof *chunk + room);

		if (!chunk) {
			mem->failed = true;
			return NULL;
		}
		chunk->next = mem->chunks;
		mem->chunks = chunk;
		if (room == size) /* of its own: the piece in use goes on */
			return memset(chunk->data, 0, size);
		mem->at = (char *)chunk->data;
		mem->left = room;
	}
	void *out = mem->at;

	mem->at += size;
	mem->left -= size;
	return memset(out, 0, size);
}

void *arena_copy(arena *mem, const void *data, size_t size)
{
	void *out = arena_alloc(mem, size);

	if (out && size)
		memcpy(out, data, size);
	return out;
}

char *arena_text_len(arena *mem, const char *text, size_t len)
{
	char *out = arena_alloc(mem, len + 1);

	if (out)
		memcpy(out, text, len);
	return out;
}

char *arena_text(arena *mem, const char *text)
{
	return text ? arena_text_len(mem, text, strlen(text)) : NULL;
}

char *arena_fmt(arena *mem, const char *fmt, ...)
{
	char text[256], *out = NULL;
	va_list args;

	va_start(args, fmt);
	int len = vsnprintf(text, sizeof text, fmt, args);

	va_end(args);
	if (len >= 0)
		out = arena_alloc(mem, (size_t)len + 1);
	if (!out || (size_t)len < sizeof text)
		return out ? memcpy(out, text, (size_t)len + 1) : NULL;
	va_start(args, fmt);
	vsnprintf(out, (size_t)len + 1, fmt, args);
	va_end(args);
	return out;
}

const char *const *arena_list(arena *mem, const char *const *list)
{
	if (!list)
		return NULL;
	size_t count = strv_count(list);
	const char **out = arena_alloc(mem, (count + 1) * sizeof *out);

	for (size_t i = 0; out && i < count; i++)
		out[i] = arena_text(mem, list[i]);
	return mem->failed ? NULL : out;
}

void arena_release(arena *mem)
{
	while (mem->chunks) {
		arena_chunk *next = mem->chunks->next;

		free(mem->chunks);
		mem->chunks = next;
	}
	*mem = (arena){ 0 };
}
