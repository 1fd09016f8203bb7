/* SPDX-License-Identifier: MIT */
/* modules.c - which packs have a module for the backend wasm, and whether that is whole. */
#include "../backend/packdir.h"
#include "../core/core.h"
#include "../launch/host.h"

struct sb_modules {
	arena mem;
	char *programs;
	sb_module *at;
	size_t count;
};

static const char *const order[] = { "lua", "js", "ts", "python" }; /* as they are built: quickest first */

static int state_of(int code)
{
	return code == 0			 ? SB_MODULE_READY
	       : code == SB_ERR_NOT_FOUND	 ? SB_MODULE_MISSING
	       : code == SB_ERR_UNSUPPORTED	 ? SB_MODULE_STALE
						 : SB_MODULE_DAMAGED;
}

/* All files are looked at: one that is gone, or of another length, is found without hashing. */
static int check_files(const packdir *dir, bool verify, sb_error *err)
{
	int code = verify ? packdir_verify(dir, err) : 0;

	for (size_t i = 0; code == 0 && !verify && i <= dir->of.file_count; i++) {
		int fd FD_AUTO = packdir_file(dir, i == 0 ? &dir->of.module : &dir->of.files[i - 1], false, err);

		code = fd < 0 ? fd : 0;
	}
	return code == SB_ERR_NOT_FOUND ? SB_ERR_CHECKSUM : code;
}

static void look_at(sb_modules *modules, const char *name, bool verify)
{
	sb_module *m = &modules->at[modules->count++];
	sb_error why = { 0 };
	packdir dir;

	int code = packdir_open(&dir, modules->programs, name, &why);
	if (code == 0)
		code = check_files(&dir, verify, &why);
	*m = (sb_module){ .size = sizeof *m, .name = arena_text(&modules->mem, name),
			  .version = arena_text(&modules->mem, dir.of.version),
			  .path = arena_text(&modules->mem, dir.path),
			  .note = arena_text(&modules->mem, dir.of.note),
			  .problem = arena_text(&modules->mem, code == 0 ? "" : why.message),
			  .bytes = packdir_bytes(&dir), .state = state_of(code) };
	packdir_close(&dir);
}

static int find_programs(sb_modules *modules, const char *helper_dir, sb_error *err)
{
	char *path = NULL;
	int code = lh_find(helper_dir, &path, err);

	if (code == 0) {
		*strrchr(path, '/') = '\0';
		modules->programs = arena_text(&modules->mem, path);
	}
	free(path);
	return code;
}

int sb_modules_read(const char *helper_dir, uint64_t flags, sb_modules **modules, sb_error *err)
{
	if (flags & ~(uint64_t)SB_MODULES_VERIFY)
		return error_set(err, SB_ERR_UNSUPPORTED, "modules", "the flags have a bit that is not known");
	sb_modules *m = calloc(1, sizeof *m);
	if (!m)
		return error_no_memory(err, "modules");
	m->at = arena_alloc(&m->mem, BASE_ARRAY_LEN(order) * sizeof *m->at);
	int code = find_programs(m, helper_dir, err);
	for (size_t i = 0; code == 0 && m->at && i < BASE_ARRAY_LEN(order); i++)
		look_at(m, order[i], flags & SB_MODULES_VERIFY);
	if (code == 0 && m->mem.failed)
		code = error_no_memory(err, "modules");
	if (code < 0) {
		sb_modules_free(m);
		return code;
	}
	*modules = m;
	return 0;
}

size_t sb_modules_count(const sb_modules *modules)
{
	return modules ? modules->count : 0;
}

int sb_modules_at(const sb_modules *modules, size_t index, sb_module *module)
{
	if (!modules || index >= modules->count)
		return SB_ERR_INVALID;
	return record_write(module, &modules->at[index], sizeof *module, "sb_module", NULL);
}

const char *sb_modules_programs(const sb_modules *modules)
{
	return modules->programs;
}

void sb_modules_free(sb_modules *modules)
{
	if (!modules)
		return;
	arena_release(&modules->mem);
	free(modules);
}
