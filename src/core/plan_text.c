/* SPDX-License-Identifier: MIT */
/* plan_text.c - a plan in words: for people, and as JSON. */
#include "plan.h"

#define PLAN_TEXT_MAX ((size_t)16 << 20)

void plan_text_error(json *j, const sb_error *error)
{
	if (!error || error->code == 0) {
		json_null(j);
		return;
	}
	json_open(j, '{');
	json_member_text(j, "code", sb_code_name(error->code));
	json_member_text(j, "kind", sb_kind_name(error->kind));
	json_member_text(j, "where", error->where);
	json_member_text(j, "message", error->message);
	json_member_int(j, "errno", error->os_errno);
	json_close(j, '}');
}

void plan_text_lines(json *j, const sb_plan *plan, int detail)
{
	json_open(j, '[');
	for (size_t i = 0; plan && i < plan->line_count; i++) {
		const plan_line *line = &plan->lines[i];

		json_open(j, '{');
		json_member_text(j, "wall", sb_wall_name((int)line->wall));
		json_member_text(j, "level", sb_level_name((int)line->level));
		json_member_text(j, "mechanism", line->mechanism);
		json_member_text(j, "caveat", line->caveat);
		if (detail >= PLAN_LINES_ASKED)
			json_member_bool(j, "required", line->required);
		if (detail >= PLAN_LINES_ALL) {
			json_member_text(j, "subject", line->subject);
			json_member_text(j, "test", line->test);
		}
		json_close(j, '}');
	}
	json_close(j, ']');
}

void plan_text_caps(json *j, uint64_t caps)
{
	json_open(j, '[');
	for (int bit = 0; bit < 31; bit++)
		if (caps & (uint64_t)1 << bit)
			json_text(j, sb_cap_name(1 << bit));
	json_close(j, ']');
}

/* No limit is null: a number that no reader of JSON can hold would be worse. */
static void plan_text_limit(json *j, const char *name, uint64_t value)
{
	json_name(j, name);
	if (value == SB_UNLIMITED)
		json_null(j);
	else
		json_uint(j, value);
}

void plan_text_limits(json *j, const sb_limits *limits)
{
	json_open(j, '{');
	plan_text_limit(j, "memory_bytes", limits->memory_bytes);
	plan_text_limit(j, "wall_ms", limits->wall_ms);
	plan_text_limit(j, "cpu_ms", limits->cpu_ms);
	plan_text_limit(j, "cpu_millicores", limits->cpu_millicores);
	plan_text_limit(j, "cpu_budget_millicores", limits->cpu_budget_millicores);
	plan_text_limit(j, "out_total_bytes", limits->out_total_bytes);
	plan_text_limit(j, "out_stream_bytes", limits->out_stream_bytes);
	plan_text_limit(j, "log_bytes", limits->log_bytes);
	plan_text_limit(j, "fs_bytes", limits->fs_bytes);
	plan_text_limit(j, "fs_nodes", limits->fs_nodes);
	plan_text_limit(j, "collect_bytes", limits->collect_bytes);
	plan_text_limit(j, "procs", limits->procs);
	plan_text_limit(j, "user_procs", limits->user_procs);
	plan_text_limit(j, "open_files", limits->open_files);
	plan_text_limit(j, "grace_ms", limits->grace_ms);
	json_member_text(j, "out_mode", limits->out_mode == SB_OUT_STOP ? "stop" : "truncate");
	json_member_text(j, "out_keep", limits->out_keep == SB_KEEP_HEAD_TAIL ? "head_tail" : "head");
	json_close(j, '}');
}

static void plan_text_list(json *j, char *const *list)
{
	json_open(j, '[');
	for (; list && *list; list++)
		json_text(j, *list);
	json_close(j, ']');
}

static char *plan_text_json(const sb_plan *plan)
{
	buf out;
	json j;

	buf_init(&out, PLAN_TEXT_MAX);
	json_init(&j, &out);
	json_open(&j, '{');
	json_member_uint(&j, "schema", 1);
	json_member_text(&j, "backend", plan->backend);
	json_member_bool(&j, "would_run", plan->failure.code == 0);
	json_name(&j, "error");
	plan_text_error(&j, &plan->failure);
	if (plan->workspace) {
		json_member_bytes(&j, "workspace", plan->workspace, strlen(plan->workspace));
	} else {
		json_name(&j, "workspace");
		json_null(&j);
	}
	json_name(&j, "argv");
	plan_text_list(&j, plan->argv);
	json_name(&j, "limits");
	plan_text_limits(&j, &plan->limits);
	json_name(&j, "env");
	plan_text_list(&j, plan->env_names);
	json_name(&j, "caps");
	plan_text_caps(&j, plan->caps);
	json_name(&j, "plan");
	plan_text_lines(&j, plan, PLAN_LINES_ALL);
	json_close(&j, '}');
	return buf_take(&out, NULL);
}

/* An argument as a person can read it: quoted where it has blanks, controls escaped. */
static void plan_text_word(buf *out, const char *word)
{
	bool plain = word[0] != '\0';

	for (const char *p = word; *p && plain;) {
		size_t n = utf8_sequence(p, strnlen(p, 4));

		plain = n > 0 && *p != ' ' && *p != '"' && *p != '\\' && !utf8_is_control(p, n);
		p += n;
	}
	if (plain) {
		buf_add_str(out, word);
	} else {
		json j;

		json_init(&j, out);
		json_text(&j, word);
	}
}

/* What paths and the like have in them must not be obeyed by a terminal. */
static void plan_text_plain(buf *out, const char *text)
{
	size_t from = out->len;

	buf_add_str(out, text);
	if (!out->failed && out->len > from)
		out->len = from + utf8_make_plain(out->data + from);
}

static void plan_text_wall(buf *out, const plan_line *line)
{
	buf_add_fmt(out, "%-11s %-11s ", sb_wall_name((int)line->wall),
		    sb_level_name((int)line->level));
	plan_text_plain(out, line->mechanism[0] ? line->mechanism : "-");
	if (line->subject[0])
		buf_add_str(out, ": ");
	plan_text_plain(out, line->subject);
	if (line->required)
		buf_add_str(out, "  [required]");
	if (line->caveat[0])
		buf_add_fmt(out, "\n%-23s  but: ", "");
	plan_text_plain(out, line->caveat);
	buf_add_char(out, '\n');
}

static char *plan_text_words(const sb_plan *plan)
{
	buf out;

	buf_init(&out, PLAN_TEXT_MAX);
	buf_add_fmt(&out, "backend     %s\n", plan->backend);
	if (plan->workspace) {
		buf_add_str(&out, "workspace   ");
		plan_text_word(&out, plan->workspace);
		buf_add_char(&out, '\n');
	}
	if (plan->argv) {
		buf_add_str(&out, "command    ");
		for (char **word = plan->argv; *word; word++) {
			buf_add_char(&out, ' ');
			plan_text_word(&out, *word);
		}
		buf_add_char(&out, '\n');
	}
	if (plan->env_names) {
		buf_add_str(&out, "variables  ");
		for (char **name = plan->env_names; *name; name++) {
			buf_add_char(&out, ' ');
			plan_text_word(&out, *name);
		}
		buf_add_str(&out, plan->env_names[0] ? "\n" : " none\n");
	}
	buf_add_char(&out, '\n');
	for (size_t i = 0; i < plan->line_count; i++)
		plan_text_wall(&out, &plan->lines[i]);
	if (plan->failure.code)
		buf_add_fmt(&out, "\nwould not run: %s\n", plan->failure.message);
	return buf_take(&out, NULL);
}

const char *plan_text_publish(char **slot, char *text)
{
	char *empty = NULL;

	if (__atomic_compare_exchange_n(slot, &empty, text, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return text;
	free(text); /* another thread was first */
	return empty;
}

const char *sb_plan_text(const sb_plan *plan, const char *format)
{
	sb_plan *p = (sb_plan *)plan; /* the two caches only; everything else stays */
	bool text = strcmp(format, "text") == 0;
	char **slot = text ? &p->as_text : &p->as_json;
	const char *ready;

	for (size_t i = 0; i < plan->text_count; i++)
		if (strcmp(plan->texts[i].format, format) == 0)
			return plan->texts[i].text;
	if (!text && strcmp(format, "json") != 0)
		return NULL;
	ready = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	return ready ? ready
		     : plan_text_publish(slot, text ? plan_text_words(plan) : plan_text_json(plan));
}
