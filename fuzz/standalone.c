/* SPDX-License-Identifier: MIT */
/*
 * standalone.c - runs a harness as a plain test.
 *
 *   fuzz-NAME [CORPUS_DIR [ROUNDS]]    seeds, every file of the directory, ROUNDS mutations
 *   fuzz-NAME --write DIR              writes the seeds there, to begin a corpus
 *
 * The mutations come of a fixed start value: a failure comes again.
 */
#include "fuzz.h"

#include <dirent.h>

#define MAX_INPUTS 512
#define MAX_LEN (1u << 17)

typedef struct input {
	uint8_t *data;
	size_t len;
} input;
static input inputs[MAX_INPUTS];
static size_t input_count;
static uint64_t state = 0x5eed;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static int run(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len + !len);
	int valid;

	if (!copy)
		exit(2);
	if (len)
		memcpy(copy, data, len);
	valid = fuzz_one(copy, len);
	free(copy);
	return valid;
}

static void keep(const uint8_t *data, size_t len)
{
	input *in = &inputs[input_count];

	if (input_count == MAX_INPUTS)
		return;
	in->data = malloc(len + !len);
	if (!in->data)
		exit(2);
	memcpy(in->data, data, len);
	in->len = len;
	input_count++;
}

static void load_seeds(void)
{
	static uint8_t data[MAX_LEN];
	size_t i, len;

	for (i = 0; (len = fuzz_seed(i, data, sizeof data)); i++) {
		keep(data, len);
		FUZZ_CHECK(run(data, len) == 1);
	}
}

static void load_corpus(const char *dir)
{
	static uint8_t data[MAX_LEN];
	struct dirent *entry;
	char path[1024];
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d))) {
		FILE *f;

		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		f = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
		if (f) {
			keep(data, fread(data, 1, sizeof data, f));
			fclose(f);
		}
	}
	if (d)
		closedir(d);
}

static uint8_t *place(uint8_t *data, size_t len)
{
	/* half of them near the beginning, where the heads and counts are */
	return data + draw(draw(2) && len > 64 ? 64 : (uint32_t)len);
}

static void mutate(uint8_t *data, size_t *len)
{
	static const uint32_t odd[] = { 0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff,
		0x80000000, 0xffffffff };
	uint32_t value = odd[draw(sizeof odd / sizeof odd[0])];
	uint8_t *at = place(data, *len);
	size_t left = (size_t)(data + *len - at);

	switch (draw(6)) {
	case 0:
		*at ^= (uint8_t)(1u << draw(8));
		break;
	case 1:
		*at = (uint8_t)draw(256);
		break;
	case 2:
		memcpy(at, &value, left < 4 ? left : 4);
		break;
	case 3:
		value = draw((uint32_t)*len + 9);
		memcpy(at, &value, left < 4 ? left : 4);
		break;
	case 4:
		memmove(at, place(data, *len - left + 1), left / 2 < *len - left ? left / 2 : 0);
		break;
	default:
		*len = (size_t)(at - data) + 1;
		break;
	}
}

static void run_mutations(size_t rounds)
{
	static uint8_t data[MAX_LEN];
	size_t i, len;
	uint32_t times;

	for (i = 0; i < rounds; i++) {
		const input *in = &inputs[draw((uint32_t)input_count)];

		memcpy(data, in->data, in->len);
		len = in->len;
		for (times = 1 + draw(4); times && len; times--)
			mutate(data, &len);
		run(data, len);
	}
}

static int write_seeds(const char *dir)
{
	char path[1024];
	size_t i;

	load_seeds();
	for (i = 0; i < input_count; i++) {
		FILE *f;

		snprintf(path, sizeof path, "%s/seed-%zu", dir, i);
		f = fopen(path, "wb");
		if (!f || fwrite(inputs[i].data, 1, inputs[i].len, f) != inputs[i].len || fclose(f)) {
			fprintf(stderr, "cannot write \"%s\"\n", path);
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000, i;

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_seeds(argv[2]);
	load_seeds();
	if (argc > 1)
		load_corpus(argv[1]);
	run(NULL, 0);
	for (i = 0; i < input_count; i++)
		run(inputs[i].data, inputs[i].len);
	if (input_count)
		run_mutations(rounds);
	for (i = 0; i < input_count; i++)
		free(inputs[i].data);
	printf("%zu inputs, %zu mutations\n", input_count, rounds);
	return input_count ? 0 : 1;
}
