/* SPDX-License-Identifier: MIT */
/* args.c - the argument block of SPAWN. */
#include "fuzz.h"

#include "../src/launch/protocol.h"

enum { ARGS = 40, ENVS = 60 };

static void use_list(char *const *list, uint32_t count, const char *data, size_t len)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		FUZZ_CHECK(list[i] >= data + 8 && list[i] < data + len);
		FUZZ_CHECK(list[i] + strlen(list[i]) < data + len);
	}
	FUZZ_CHECK(!list[count]);
}

int fuzz_one(uint8_t *data, size_t len)
{
	/* of the heap: one pointer too many is seen */
	char **argv = malloc(ARGS * sizeof *argv), **envp = malloc(ENVS * sizeof *envp);
	const char *why = NULL;
	uint32_t argc, envc;
	int valid = 0;

	if (argv && envp) {
		if (!lp_decode_args((char *)data, len, argv, ARGS, envp, ENVS, &argc, &envc, &why)) {
			valid = 1;
			FUZZ_CHECK(argc > 0);
			use_list(argv, argc, (char *)data, len);
			use_list(envp, envc, (char *)data, len);
		} else {
			fuzz_check_why(why);
		}
	}
	free(argv);
	free(envp);
	return valid;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	static const struct {
		uint32_t counts[2];
		const char *text;
		size_t len;
	} seeds[] = { { { 1, 0 }, "true", 5 }, { { 3, 2 }, "sh\0-c\0echo\0A=1\0PATH=/bin", 25 },
		{ { 2, 0 }, "\0", 2 }, { { 39, 0 }, NULL, 39 } };
	size_t n = sizeof seeds[0].counts;

	if (at >= sizeof seeds / sizeof seeds[0] || n + seeds[at].len > cap)
		return 0;
	memcpy(out, seeds[at].counts, n);
	memset(out + n, 0, seeds[at].len);
	if (seeds[at].text)
		memcpy(out + n, seeds[at].text, seeds[at].len);
	return n + seeds[at].len;
}
