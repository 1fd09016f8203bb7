/* SPDX-License-Identifier: MIT */
/*
 * compile.c - a module that came with a run.
 *
 * Whoever wrote it may know a hole in the compiler.  So it is compiled by a process that handles this one
 * module, behind the same walls as a run; what comes out can only be run behind those walls again.  It is
 * kept in this sandbox object's memory and in a folder of the caller's (cache.c), by the hash of what went in:
 * never where packs are loaded from.
 */
#include "wasm.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define COMPILE_MS 60000u
#define COMPILE_MEMORY ((uint64_t)1 << 30)
#define COMPILED_MAX ((uint64_t)512 << 20)
#define WAITS_WITH_MOST ((size_t)8 << 20) /* compiled, of what waiting workers hold ahead */
#define START_SECTION 8

/* Has it a start function?  What cannot be read counts as one. */
static bool has_start(const uint8_t *wasm, size_t len)
{
	size_t at = COMPILE_HEAD;

	while (at < len) {
		uint8_t section = wasm[at++];
		uint64_t size = 0;

		for (unsigned shift = 0; ; shift += 7) {
			if (at >= len || shift > 28)
				return true;
			size |= (uint64_t)(wasm[at] & 127) << shift;
			if (!(wasm[at++] & 128))
				break;
		}
		if (section == START_SECTION || size > len - at)
			return true;
		at += (size_t)size;
	}
	return false;
}

static const wasm_compiled *find(sb_state *state, const char *hash)
{
	for (size_t i = 0; i < WASM_CACHE_MAX; i++) {
		wasm_compiled *c = &state->cache[i];

		if (c->data && !strcmp(c->hash, hash)) {
			c->used = ++state->uses;
			return c;
		}
	}
	return NULL;
}

/* Takes `data` over; in place of what was not used for the longest time. */
static const wasm_compiled *keep(sb_state *state, const char *hash, bool starts, void *data, size_t len)
{
	wasm_compiled *c = &state->cache[0];

	for (size_t i = 1; i < WASM_CACHE_MAX; i++)
		if (state->cache[i].used < c->used)
			c = &state->cache[i];
	free(c->data);
	memcpy(c->hash, hash, SHA256_HEX);
	c->data = data;
	c->len = len;
	c->starts = starts;
	c->used = ++state->uses;
	return c;
}

/* Waits for the end of the compiler, and throws away what it says: its result is in the job.  Its stderr stays open
 * until then, or what it says as it gives up would end it, by another signal. */
static int wait_end(sb_guest_io *io, const sb_call *call, sb_error *err)
{
	int rc;

	fd_close(&io->in);
	fd_close(&io->out);
	rc = sb_call_wait(call, io->exited, POLLIN, err);
	fd_close(&io->err);
	fd_close(&io->exited);
	return rc;
}

static int failed(const result_head *r, const sb_guest_exit *end, sb_error *err)
{
	char how[64];

	snprintf(how, sizeof how, "the compiler ended %s %d", end->signal_number ? "by signal" : "with code",
		 end->signal_number ? end->signal_number : end->code);
	if (end->signal_number == SIGABRT) /* as it does when an allocation fails */
		snprintf(how, sizeof how, "it takes the compiler more than %u MiB of memory",
			 (unsigned)(COMPILE_MEMORY >> 20));
	else if (end->outcome == SB_OUTCOME_BUDGET_EXCEEDED || end->signal_number == SIGXCPU)
		snprintf(how, sizeof how, "it takes the compiler more than %u s", COMPILE_MS / 1000);
	return error_set(err, SB_ERR_INVALID_SPEC, "compile", "the module cannot be compiled: %s",
			 r && r->why[0] ? r->why : how);
}

static int take_result(wasm_box *own, const sb_limits *limits, const sb_guest_exit *end, void **out,
		       size_t *out_len, sb_error *err)
{
	const result_head *r = result_of(own, limits);
	uint64_t at = sizeof *r;
	const job_entry *e;
	const uint8_t *data;
	const char *path;

	if (result_foreign(r, end))
		return result_tell_foreign("sb-wasmc", err);
	if (!r || r->kind != RESULT_EXITED ||
	    !job_next(own->result, own->result_bytes, &at, &e, &path, &data) || e->kind != JOB_MODULE)
		return failed(r, end, err);
	*out = malloc(e->data_len ? e->data_len : 1);
	if (!*out)
		return error_no_memory(err, "compile");
	memcpy(*out, data, e->data_len);
	*out_len = e->data_len;
	return 0;
}

static int run_compiler(sb_box *box, const sb_call *call, const sb_limits *limits, uint32_t flags,
			const void *wasm, size_t len, void **out, size_t *out_len, sb_error *err)
{
	static const char *const argv[] = { JOB_COMPILER_PATH, "--job", "3", NULL };
	static const char *const env[] = { NULL };
	const sb_guest_request request = { .size = sizeof request, .id = "compile", .argv = argv, .env = env,
		.cwd = "/", .limits = limits, .flags = SB_GUEST_LAST };
	sb_guest_io io = { .size = sizeof io, .in = -1, .out = -1, .err = -1, .exited = -1, .control = -1 };
	sb_guest_exit end = { .size = sizeof end };
	lh_spawn spawn = { .flags = LP_S_CODE_FD };
	wasm_box *own = box_own(box);
	sb_guest *guest = NULL;
	int rc;

	job_add(own, JOB_SOURCE, 0, "", wasm, len);
	own->fd = job_make(own, limits, 0, false, flags, err);
	if (own->fd < 0)
		return own->fd;
	spawn.code = own->fd;
	rc = launched_spawn(box, &request, &spawn, call, &guest, &io, err);
	if (rc)
		return rc;
	rc = wait_end(&io, call, err);
	if (!rc)
		rc = launched_reap(guest, &end, err);
	if (!rc)
		rc = take_result(own, limits, &end, out, out_len, err);
	launched_release(guest);
	return rc;
}

int compile_module(sb_state *state, const sb_call *call, uint32_t flags, const void *wasm, size_t len,
		   void **out, size_t *out_len, sb_error *err)
{
	const sb_limits limits = { .size = sizeof limits, .memory_bytes = COMPILE_MEMORY,
		.cpu_ms = COMPILE_MS, .fs_bytes = COMPILED_MAX, .collect_bytes = COMPILED_MAX,
		.fs_nodes = SB_UNLIMITED };
	uint64_t bound = clock_deadline_ns(clock_now_ns(), COMPILE_MS);
	sb_call mine = *call;
	sb_box *box = box_new(&limits);
	int rc = box ? 0 : error_no_memory(err, "compile");

	if (bound < mine.deadline_ns)
		mine.deadline_ns = bound;
	if (!rc)
		rc = box_launch(state, NULL, "sb-wasmc", JOB_COMPILER_PATH, NULL, NULL, &limits, &mine, box, err);
	if (!rc)
		rc = run_compiler(box, &mine, &limits, flags, wasm, len, out, out_len, err);
	box_destroy(box);
	return rc;
}

static int no_module(sb_error *err, const char *why)
{
	return error_set(err, SB_ERR_INVALID_SPEC, "compile", "the code is no WebAssembly module: %s", why);
}

int compile_check(const void *wasm, size_t len, sb_error *err)
{
	const uint8_t *b = wasm;

	if (len == 0)
		return no_module(err, "it is empty");
	if (b[0] == '(' || (b[0] == ';' && len > 1 && b[1] == ';'))
		return no_module(err, "it is one as text; make a binary of it (wat2wasm)");
	if (len < 4 || memcmp(wasm, "\0asm", 4) != 0)
		return no_module(err, "it does not begin with \"\\0asm\"");
	if (len < COMPILE_HEAD)
		return no_module(err, "it is cut within its first 8 bytes");
	/* the layer of components in the upper half of the version */
	if (b[6] == 1 && b[7] == 0)
		return no_module(err, "it is a component, and what runs here is modules for WASI preview 1; "
				      "build it for the target wasm32-wasip1");
	if (memcmp(b + 4, "\1\0\0\0", 4) != 0)
		return no_module(err, "it is of another version of the format than 1, the only one known here");
	return 0;
}

bool compile_add_known(sb_state *state, const char *hash, wasm_box *box)
{
	const wasm_compiled *found;
	bool fits;

	pthread_mutex_lock(&state->lock);
	found = find(state, hash);
	fits = found && found->len <= WAITS_WITH_MOST;
	if (fits) {
		job_add(box, JOB_MODULE, 0, "", found->data, found->len);
		box->ready = !found->starts;
	}
	pthread_mutex_unlock(&state->lock);
	return fits;
}

int compile_add(sb_state *state, const sb_call *call, const void *wasm, size_t len, const char *known, wasm_box *box,
		sb_error *err)
{
	char hash[SHA256_HEX];
	const wasm_compiled *found;
	void *data = NULL;
	size_t data_len = 0;
	int rc;

	rc = compile_check(wasm, len, err);
	if (rc)
		return rc;
	if (known)
		memcpy(hash, known, sizeof hash);
	else
		sha256_data(wasm, len, hash);
	pthread_mutex_lock(&state->lock);
	found = find(state, hash);
	if (found)
		job_add(box, JOB_MODULE, 0, "", found->data, found->len);
	pthread_mutex_unlock(&state->lock);
	if (found)
		return 0;
	if (!cache_load(state, hash, &data, &data_len)) {
		rc = compile_module(state, call, 0, wasm, len, &data, &data_len, err);
		if (rc)
			return rc;
		cache_store(state, hash, data, data_len);
	}
	job_add(box, JOB_MODULE, 0, "", data, data_len);
	pthread_mutex_lock(&state->lock);
	if (find(state, hash))
		free(data);
	else
		keep(state, hash, has_start(wasm, len), data, data_len);
	pthread_mutex_unlock(&state->lock);
	return 0;
}
