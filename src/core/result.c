/* SPDX-License-Identifier: MIT */
/* result.c - how a run ended and what it left, whole and unchanging. */
#include "plan.h"

#define RESULT_JSON_MAX SIZE_MAX /* bounded by what was captured, which has its own limits */
#define RESULT_STREAMS 4

int result_new(sb_result **result, sb_error *err)
{
	sb_result *r = calloc(1, sizeof *r);

	if (!r)
		return error_no_memory(err, "result");
	r->code = -1;
	r->usage.size = sizeof r->usage;
	if (sb_tree_new(0, 0, &r->files, err) < 0) {
		free(r);
		return SB_ERR_NO_MEMORY;
	}
	*result = r;
	return 0;
}

void sb_result_free(sb_result *result)
{
	if (!result)
		return;
	for (size_t i = 0; i < RESULT_STREAMS; i++)
		free(result->output[i]);
	sb_tree_free(result->files);
	strv_free_list(result->appeared);
	free(result->backend);
	free(result->language);
	free(result->value);
	free(result->exception);
	plan_unref(result->plan);
	free(result->json_text);
	free(result);
}

/* What each member promises, whatever the parts that filled it wrote. */
int result_finish(sb_result *result, sb_error *err)
{
	if (result->outcome != SB_OUTCOME_EXITED)
		result->code = -1;
	if (result->outcome != SB_OUTCOME_SIGNALED)
		result->signal_number = 0;
	result->failure.kind = sb_error_kind(result->failure.code);
	for (size_t i = 0; i < RESULT_STREAMS; i++) {
		if (result->output[i])
			continue;
		result->output_len[i] = 0;
		result->output[i] = calloc(1, 1);
		if (!result->output[i])
			return error_no_memory(err, "result");
	}
	return 0;
}

int sb_result_outcome(const sb_result *result)
{
	return result->outcome;
}

int sb_result_error(const sb_result *result)
{
	return result->failure.code;
}

const sb_error *sb_result_failure(const sb_result *result)
{
	return result->failure.code ? &result->failure : NULL;
}

int sb_result_code(const sb_result *result)
{
	return result->code;
}

int sb_result_signal(const sb_result *result)
{
	return result->signal_number;
}

static bool result_has_stream(int stream)
{
	return stream == SB_STDOUT || stream == SB_STDERR || stream == SB_TTY;
}

const void *sb_result_output(const sb_result *result, int stream, size_t *len)
{
	bool known = result_has_stream(stream) && result->output[stream];

	if (len)
		*len = known ? result->output_len[stream] : 0;
	return known ? result->output[stream] : "";
}

int sb_result_truncated(const sb_result *result)
{
	return result->truncated != 0;
}

uint64_t sb_result_dropped(const sb_result *result, int stream, size_t *at)
{
	bool known = result_has_stream(stream);

	if (at)
		*at = known ? result->gap_at[stream] : 0;
	return known ? result->dropped[stream] : 0;
}

int sb_result_incomplete(const sb_result *result)
{
	return result->incomplete != 0;
}

const sb_tree *sb_result_files(const sb_result *result)
{
	return result->files;
}

const char *const *sb_result_appeared(const sb_result *result)
{
	static const char *const none[] = { NULL };

	return result->appeared ? (const char *const *)result->appeared : none;
}

void sb_result_usage(const sb_result *result, sb_usage *usage)
{
	record_write(usage, &result->usage, sizeof result->usage, "sb_usage", NULL);
}

void sb_result_teardown(const sb_result *result, sb_teardown *teardown)
{
	record_write(teardown, &result->teardown, sizeof result->teardown, "sb_teardown", NULL);
}

const char *sb_result_backend(const sb_result *result)
{
	return result->backend ? result->backend : "";
}

const char *sb_result_value(const sb_result *result)
{
	return result->value ? result->value : "";
}

const char *sb_result_exception(const sb_result *result)
{
	return result->exception ? result->exception : "";
}

int sb_result_restarted(const sb_result *result)
{
	return result->restarted;
}

int sb_result_unfinished(const sb_result *result)
{
	return result->unfinished;
}

const sb_plan *sb_result_plan(const sb_result *result)
{
	return result->plan;
}

/* ---- JSON ---- */

static void result_end(json *j, const sb_result *result)
{
	json_member_text(j, "outcome", sb_outcome_name(result->outcome));
	json_name(j, "exit_code");
	if (result->outcome == SB_OUTCOME_EXITED)
		json_int(j, result->code);
	else
		json_null(j);
	json_name(j, "signal");
	if (result->outcome == SB_OUTCOME_SIGNALED)
		json_int(j, result->signal_number);
	else
		json_null(j);
	json_name(j, "error");
	plan_text_error(j, &result->failure);
}

static void result_outputs(json *j, const sb_result *result)
{
	json_member_bytes(j, "stdout", result->output[SB_STDOUT], result->output_len[SB_STDOUT]);
	json_member_bytes(j, "stderr", result->output[SB_STDERR], result->output_len[SB_STDERR]);
	if (result->output_len[SB_TTY] > 0 || result->dropped[SB_TTY] > 0)
		json_member_bytes(j, "tty", result->output[SB_TTY], result->output_len[SB_TTY]);
	json_member_bool(j, "truncated", result->truncated);
	json_member_bool(j, "incomplete", result->incomplete);
	json_name(j, "dropped");
	json_open(j, '{');
	for (int stream = SB_STDOUT; stream <= SB_TTY; stream++) {
		if (stream == SB_TTY && result->dropped[stream] == 0)
			continue;
		json_name(j, sb_stream_name(stream));
		json_uint(j, result->dropped[stream]);
	}
	json_close(j, '}');
}

static void result_files(json *j, const sb_tree *files)
{
	size_t count = sb_tree_count(files);

	json_name(j, "files");
	json_open(j, '[');
	for (size_t i = 0; i < count; i++) {
		sb_node node = { .size = sizeof node };

		if (sb_tree_at(files, i, &node) < 0 || node.what != SB_NODE_FILE)
			continue;
		json_open(j, '{');
		json_member_bytes(j, "path", node.path, strlen(node.path));
		json_member_uint(j, "bytes", node.len);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_name(j, "files_left_out");
	json_open(j, '{');
	for (int why = SB_LEFT_LINK; why < SB_LEFT_COUNT; why++) {
		json_name(j, sb_left_name(why));
		json_uint(j, sb_tree_left_out(files, why));
	}
	json_close(j, '}');
}

static void result_usage(json *j, const sb_usage *usage)
{
	const struct {
		const char *name;
		uint64_t value;
		bool time;
	} members[] = {
		{ "wall_ms", usage->wall_us, true },
		{ "user_ms", usage->user_us, true },
		{ "system_ms", usage->system_us, true },
		{ "peak_memory_bytes", usage->peak_memory_bytes, false },
		{ "memory_refused", usage->memory_refused, false },
		{ "oom_kills", usage->oom_kills, false },
		{ "pids_refused", usage->pids_refused, false },
		{ "disk_refused", usage->disk_refused, false },
		{ "fs_bytes", usage->fs_bytes, false },
		{ "fs_nodes", usage->fs_nodes, false },
		{ "net_requests", usage->net_requests, false },
		{ "net_sent_bytes", usage->net_sent_bytes, false },
		{ "net_received_bytes", usage->net_received_bytes, false },
	};

	json_name(j, "usage");
	json_open(j, '{');
	for (size_t i = 0; i < BASE_ARRAY_LEN(members); i++) {
		json_name(j, members[i].name);
		if (members[i].time)
			json_milli(j, members[i].value);
		else
			json_uint(j, members[i].value);
	}
	json_close(j, '}');
}

static void result_teardown(json *j, const sb_teardown *teardown)
{
	json_name(j, "teardown");
	json_open(j, '{');
	json_member_uint(j, "killed", teardown->killed);
	json_member_uint(j, "left", teardown->left);
	json_member_milli(j, "took_ms", teardown->took_us);
	json_close(j, '}');
}

static void result_empty_list(json *j, const char *name)
{
	json_name(j, name);
	json_open(j, '[');
	json_close(j, ']');
}

static char *result_json(const sb_result *result)
{
	buf out;
	json j;

	buf_init(&out, RESULT_JSON_MAX);
	json_init(&j, &out);
	json_open(&j, '{');
	json_member_uint(&j, "schema", 1);
	result_end(&j, result);
	result_outputs(&j, result);
	json_member_text(&j, "backend", sb_result_backend(result));
	json_member_text(&j, "language", result->language);
	json_name(&j, "value");
	json_text(&j, result->value);
	json_name(&j, "exception");
	json_text(&j, result->exception);
	json_member_bool(&j, "restarted", result->restarted);
	result_files(&j, result->files);
	result_usage(&j, &result->usage);
	result_teardown(&j, &result->teardown);
	json_name(&j, "plan");
	plan_text_lines(&j, result->plan, PLAN_LINES_ASKED);
	json_name(&j, "appeared");
	json_open(&j, '[');
	for (const char *const *path = sb_result_appeared(result); *path; path++)
		json_text(&j, *path);
	json_close(&j, ']');
	result_empty_list(&j, "net_log");
	result_empty_list(&j, "denials");
	json_close(&j, '}');
	return buf_take(&out, NULL);
}

const char *sb_result_json(const sb_result *result)
{
	sb_result *r = (sb_result *)result; /* the cache only */
	const char *ready = __atomic_load_n(&r->json_text, __ATOMIC_ACQUIRE);

	return ready ? ready : plan_text_publish(&r->json_text, result_json(result));
}
