/* SPDX-License-Identifier: MIT */
/* manifest.c - what a pack says of itself: a file that anybody may have written. */
#include "fuzz.h"

#include "../src/core/manifest.h"

static void check_text(const char *text, size_t cap)
{
	FUZZ_CHECK(memchr(text, 0, cap) && !strchr(text, '\n'));
}

static void check_file(const manifest_file *f)
{
	check_text(f->name, sizeof f->name);
	check_text(f->path, sizeof f->path);
	FUZZ_CHECK(f->name[0] && !strchr(f->name, '/') && strcmp(f->name, "..") && strlen(f->sha256) == 64);
}

int fuzz_one(uint8_t *data, size_t len)
{
	manifest m;
	sb_error err = { 0 };
	int code = manifest_parse((const char *)data, len, &m, &err);

	if (code < 0) {
		fuzz_check_why(err.message);
		return 0;
	}
	FUZZ_CHECK(len <= MANIFEST_MAX_BYTES && m.file_count <= MANIFEST_MAX_FILES);
	check_text(m.name, sizeof m.name);
	check_text(m.version, sizeof m.version);
	check_text(m.engine, sizeof m.engine);
	check_text(m.note, sizeof m.note);
	check_file(&m.module);
	for (size_t i = 0; i < m.file_count; i++) {
		check_file(&m.files[i]);
		FUZZ_CHECK(m.files[i].path[0] == '/' && !strstr(m.files[i].path, "/../"));
	}
	return 1;
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	static const char *const seeds[] = {
		"sandbox-pack 1\nname lua\nversion 5.4.7\nengine 48.0.8-crate-1\nmodule module.cwasm " HASH " 1100000\n",
		"sandbox-pack 1\nname python\nversion 3.13.5\nengine 48.0.8-crate-1\nmodule module.cwasm " HASH " 26000000\n"
		"source module.wasm " HASH " 8400000\nfile python313.zip " HASH " 3700000 /usr/local/lib/python313.zip\n"
		"note one line\n",
	};

	return fuzz_seed_text(seeds, sizeof seeds / sizeof *seeds, at, out, cap);
}
