/* SPDX-License-Identifier: MIT */
/* report.c - what works on this machine: checks by backend, and each backend's verdict. */
#include "plan.h"

#define REPORT_CHECKS_MAX 4096
#define REPORT_TEXT_MAX ((size_t)16 << 20)

typedef struct report_check {
	char *backend, *what, *found, *remedy;
	bool ok;
} report_check;

typedef struct report_verdict {
	char *name;
	sb_plan *plan;
	uint64_t caps;
	bool usable;
} report_verdict;

struct sb_report {
	report_check *checks;
	size_t check_count, check_cap;
	report_verdict *verdicts; /* in order of first mention */
	size_t verdict_count;
	char *as_json;
};

int report_new(sb_report **report, sb_error *err)
{
	sb_report *r = calloc(1, sizeof *r);

	if (!r)
		return error_no_memory(err, "doctor");
	*report = r;
	return 0;
}

static void report_changed(sb_report *report)
{
	free(report->as_json);
	report->as_json = NULL;
}

static void report_check_release(report_check *check)
{
	free(check->backend);
	free(check->what);
	free(check->found);
	free(check->remedy);
}

void sb_report_free(sb_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->check_count; i++)
		report_check_release(&report->checks[i]);
	for (size_t i = 0; i < report->verdict_count; i++) {
		free(report->verdicts[i].name);
		plan_unref(report->verdicts[i].plan);
	}
	free(report->checks);
	free(report->verdicts);
	report_changed(report);
	free(report);
}

static report_verdict *report_mention(sb_report *report, const char *name)
{
	report_verdict *at;

	for (size_t i = 0; i < report->verdict_count; i++)
		if (strcmp(report->verdicts[i].name, name) == 0)
			return &report->verdicts[i];
	at = realloc(report->verdicts, (report->verdict_count + 1) * sizeof *at);
	if (!at)
		return NULL;
	report->verdicts = at;
	at += report->verdict_count;
	*at = (report_verdict){ .name = strdup(name) };
	if (!at->name)
		return NULL;
	report->verdict_count++;
	return at;
}

static int report_push(sb_report *report, const report_check *check)
{
	report_check *at = buf_grow(report->checks, report->check_count, &report->check_cap, sizeof *at);

	if (!at)
		return SB_ERR_NO_MEMORY;
	report->checks = at;
	report->checks[report->check_count++] = *check;
	return 0;
}

int sb_report_add(sb_report *report, const sb_check *check, sb_error *err)
{
	sb_check in;
	report_check copy;
	int rc = record_read(&in, sizeof in, check, "sb_check", err);

	if (rc < 0)
		return rc;
	if (report->check_count >= REPORT_CHECKS_MAX)
		return error_set(err, SB_ERR_INVALID, "doctor", "too many checks in one report");
	copy = (report_check){ strdup(in.backend ? in.backend : ""), strdup(in.what ? in.what : ""),
			       strdup(in.found ? in.found : ""), strdup(in.remedy ? in.remedy : ""),
			       in.ok != 0 };
	if (!copy.backend || !copy.what || !copy.found || !copy.remedy ||
	    !report_mention(report, copy.backend) || report_push(report, &copy) < 0) {
		report_check_release(&copy);
		return error_no_memory(err, "doctor");
	}
	report_changed(report);
	return 0;
}

int report_backend(sb_report *report, const char *name, bool usable, uint64_t caps, const sb_plan *plan,
		   sb_error *err)
{
	report_verdict *verdict = report_mention(report, name);
	sb_plan *old;

	if (!verdict)
		return error_no_memory(err, "doctor");
	old = verdict->plan;
	verdict->plan = plan_ref((sb_plan *)plan); /* its count of references only */
	verdict->usable = usable;
	verdict->caps = caps;
	plan_unref(old);
	report_changed(report);
	return 0;
}

size_t sb_report_count(const sb_report *report)
{
	return report->check_count;
}

int sb_report_at(const sb_report *report, size_t index, sb_check *check)
{
	sb_check out = { .size = sizeof out };
	const report_check *from;

	if (index >= report->check_count)
		return SB_ERR_INVALID;
	from = &report->checks[index];
	out.backend = from->backend;
	out.what = from->what;
	out.found = from->found;
	out.remedy = from->remedy;
	out.ok = from->ok;
	return record_write(check, &out, sizeof out, "sb_check", NULL);
}

/* Does it keep anything back?  A backend that is usable but shows all files is no sandbox. */
static bool report_isolates(const report_verdict *verdict)
{
	return verdict->usable && verdict->plan &&
	       sb_plan_level(verdict->plan, SB_WALL_FILES) >= SB_LEVEL_SAMPLED;
}

static const report_verdict *report_find(const sb_report *report, const char *name)
{
	for (size_t i = 0; i < report->verdict_count; i++)
		if (strcmp(report->verdicts[i].name, name) == 0)
			return &report->verdicts[i];
	return NULL;
}

int sb_report_usable(const sb_report *report, const char *backend)
{
	const report_verdict *verdict = backend ? report_find(report, backend) : NULL;

	if (backend)
		return verdict != NULL && verdict->usable;
	for (size_t i = 0; i < report->verdict_count; i++)
		if (report_isolates(&report->verdicts[i]))
			return 1;
	return 0;
}

const sb_plan *sb_report_plan(const sb_report *report, const char *backend)
{
	const report_verdict *verdict = report_find(report, backend);

	return verdict ? verdict->plan : NULL;
}

static void report_checks(json *j, const sb_report *report, const char *backend)
{
	json_open(j, '[');
	for (size_t i = 0; i < report->check_count; i++) {
		const report_check *check = &report->checks[i];

		if (strcmp(check->backend, backend) != 0)
			continue;
		json_open(j, '{');
		json_member_text(j, "what", check->what);
		json_member_bool(j, "ok", check->ok);
		json_member_text(j, "found", check->found);
		json_member_text(j, "remedy", check->remedy);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static char *report_json(const sb_report *report)
{
	buf out;
	json j;

	buf_init(&out, REPORT_TEXT_MAX);
	json_init(&j, &out);
	json_open(&j, '{');
	json_member_uint(&j, "schema", 1);
	json_member_text(&j, "version", SB_VERSION_TEXT);
	json_member_bool(&j, "usable", sb_report_usable(report, NULL));
	json_name(&j, "backends");
	json_open(&j, '[');
	for (size_t i = 0; i < report->verdict_count; i++) {
		const report_verdict *verdict = &report->verdicts[i];

		json_open(&j, '{');
		json_member_text(&j, "name", verdict->name);
		json_member_bool(&j, "usable", verdict->usable);
		json_name(&j, "caps");
		plan_text_caps(&j, verdict->caps);
		json_name(&j, "walls");
		plan_text_lines(&j, verdict->plan, PLAN_LINES_HELD);
		json_name(&j, "checks");
		report_checks(&j, report, verdict->name);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	return buf_take(&out, NULL);
}

const char *sb_report_json(const sb_report *report)
{
	sb_report *r = (sb_report *)report; /* the cache only */
	const char *ready = __atomic_load_n(&r->as_json, __ATOMIC_ACQUIRE);

	return ready ? ready : plan_text_publish(&r->as_json, report_json(report));
}
