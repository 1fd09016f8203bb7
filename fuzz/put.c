/* SPDX-License-Identifier: MIT */
/* put.c - the archive of PUT. */
#include "fuzz.h"

#include "../src/launch/protocol.h"

int fuzz_one(uint8_t *data, size_t len)
{
	const lp_put_entry *entry;
	const char *why = NULL, *path;
	const void *content;
	size_t at = 0, before = 0, sum = 0, i;
	int rc;

	while ((rc = lp_decode_put(data, len, &at, &entry, &path, &content, &why)) == 1) {
		const uint8_t *bytes = content;

		FUZZ_CHECK(at > before && at <= len);
		before = at;
		FUZZ_CHECK(path[0] && path[0] != '/' && strlen(path) + 1 == entry->path_len);
		FUZZ_CHECK(strcmp(path, "..") && strncmp(path, "../", 3) && !strstr(path, "/../"));
		FUZZ_CHECK(bytes + entry->data_len <= data + len);
		for (i = 0; i < entry->data_len; i++)
			sum += bytes[i];
	}
	FUZZ_CHECK(sum <= len * 255);
	if (rc < 0)
		fuzz_check_why(why);
	else
		FUZZ_CHECK(at == len);
	return rc == 0;
}

static size_t entry_add(uint8_t *out, const char *path, const char *data)
{
	lp_put_entry e = { (uint32_t)strlen(path) + 1, 0644, strlen(data) };
	size_t path_room = (e.path_len + LP_PUT_ALIGN - 1) & ~(size_t)(LP_PUT_ALIGN - 1);
	size_t data_room = (e.data_len + LP_PUT_ALIGN - 1) & ~(size_t)(LP_PUT_ALIGN - 1);

	memset(out, 0, sizeof e + path_room + data_room);
	memcpy(out, &e, sizeof e);
	memcpy(out + sizeof e, path, e.path_len);
	memcpy(out + sizeof e + path_room, data, e.data_len);
	return sizeof e + path_room + data_room;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	size_t len;

	if (at > 2 || cap < 512)
		return 0;
	len = entry_add(out, "in/a.txt", "hello");
	if (at == 1)
		len += entry_add(out + len, "in/b", "");
	if (at == 2) {
		len += entry_add(out + len, "code/main.py", "print(6 * 7)\n");
		len += entry_add(out + len, "in/deep/er/data.json", "{ \"a\": [1, 2, 3] }");
	}
	return len;
}
