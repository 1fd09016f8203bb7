/* SPDX-License-Identifier: MIT */
/*
 * record.c - the records of the public API grow at their end.  A caller built against an older
 * header hands over a shorter one (the rest is "default"), one built against a newer header a
 * longer one: fine as long as what we do not know is zero.
 */
#include "core.h"

#define RECORD_MAX 4096 /* no record will ever be longer: a size above it was never set */

static int record_size(const void *record, const char *name, size_t *size, sb_error *err)
{
	memcpy(size, record, sizeof *size);
	if (*size < sizeof *size || *size > RECORD_MAX)
		return error_set(err, SB_ERR_INVALID, "record",
				 "record \"%s\" has size %zu; set it to sizeof the record", name,
				 *size);
	return 0;
}

int record_read(void *out, size_t out_size, const void *in, const char *name, sb_error *err)
{
	const unsigned char *bytes = in;
	size_t size;

	if (in) {
		int rc = record_size(in, name, &size, err);

		if (rc < 0)
			return rc;
		for (size_t i = out_size; i < size; i++)
			if (bytes[i] != 0)
				return error_set(
					err, SB_ERR_UNSUPPORTED, "record",
					"record \"%s\" has members that this library does not "
					"know; use a newer library",
					name);
	}
	memset(out, 0, out_size);
	if (in)
		memcpy(out, in, size < out_size ? size : out_size);
	memcpy(out, &out_size, sizeof out_size);
	return 0;
}

int record_write(void *out, const void *in, size_t in_size, const char *name, sb_error *err)
{
	size_t size;
	int rc = record_size(out, name, &size, err);

	if (rc < 0)
		return rc;
	if (size > in_size)
		size = in_size;
	memcpy((char *)out + sizeof size, (const char *)in + sizeof size, size - sizeof size);
	return 0;
}
