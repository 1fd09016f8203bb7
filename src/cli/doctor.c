/* SPDX-License-Identifier: MIT */
/* doctor.c - `sandbox doctor`: what works on this machine, as this user, by doing it. */
#include "cli.h"
#include <string.h>
#include <unistd.h>

typedef struct marks {
	const char *good, *bad, *off; /* colours, or "" */
} marks;

static marks marks_for(int fd)
{
	if (output_colour(fd))
		return (marks){ "\x1b[32m", "\x1b[31m", "\x1b[0m" };
	return (marks){ "", "", "" };
}

static void show_walls(const sb_plan *plan, const marks *m, cli_text *text)
{
	sb_plan_line line = { .size = sizeof line };

	for (size_t i = 0; plan != NULL && i < sb_plan_count(plan); i++) {
		if (sb_plan_at(plan, i, &line) < 0)
			continue;
		bool held = line.level >= SB_LEVEL_SAMPLED;
		text_add_fmt(text, "  %-11s %s%-12s%s ", sb_wall_name((int)line.wall),
			     held ? m->good : m->bad, sb_level_name((int)line.level), m->off);
		text_add_plain(text, line.mechanism[0] != '\0' ? line.mechanism : "-");
		text_add(text, "\n");
	}
}

/* The checks of one backend; what works says so in a line, what does not says what to change. */
static void show_checks(const sb_report *report, const char *backend, const marks *m,
			cli_text *text)
{
	sb_check check = { .size = sizeof check };

	for (size_t i = 0; i < sb_report_count(report); i++) {
		if (sb_report_at(report, i, &check) < 0 || strcmp(check.backend, backend) != 0)
			continue;
		text_add_fmt(text, "  %s%s%s %s%s", check.ok ? m->good : m->bad,
			     check.ok ? "ok" : "no", m->off, check.what,
			     check.found[0] != '\0' ? ": " : "");
		text_add_plain(text, check.found);
		text_add(text, check.remedy[0] != '\0' ? "\n     to change that: " : "");
		text_add_plain(text, check.remedy);
		text_add(text, "\n");
	}
}

/* One that holds nothing, and says so, is for tests: no news for a reader. */
static bool worth_showing(const sb_report *report, const char *backend)
{
	const sb_plan *plan = sb_report_plan(report, backend);

	for (int wall = 0; plan != NULL && wall < SB_WALL_COUNT; wall++)
		if (sb_plan_level(plan, wall) > SB_LEVEL_NONE)
			return true;
	return plan == NULL;
}

static bool seen_before(const sb_report *report, size_t index, const char *backend)
{
	sb_check check = { .size = sizeof check };

	for (size_t i = 0; i < index; i++)
		if (sb_report_at(report, i, &check) == 0 && strcmp(check.backend, backend) == 0)
			return true;
	return false;
}

static void show_report(const sb_report *report, cli_text *text)
{
	marks m = marks_for(STDOUT_FILENO);
	sb_check check = { .size = sizeof check };

	for (size_t i = 0; i < sb_report_count(report); i++) {
		if (sb_report_at(report, i, &check) < 0 || seen_before(report, i, check.backend))
			continue;
		if (!worth_showing(report, check.backend))
			continue;
		int usable = sb_report_usable(report, check.backend);
		text_add_fmt(text, "%s: %s%s%s\n", check.backend, usable ? m.good : m.bad,
			     usable ? "usable" : "not usable", m.off);
		show_checks(report, check.backend, &m, text);
		show_walls(sb_report_plan(report, check.backend), &m, text);
		text_add(text, "\n");
	}
	text_add(text, sb_report_usable(report, NULL)
			       ? "Code can be run behind walls here.\n"
			       : "Nothing here holds code back: change one of the above.\n");
}

static int doctor(const cli_options *options)
{
	/* each step has a bound of its own; all of them together may take a busy machine long */
	static const sb_wait patient = { .size = sizeof patient, .timeout_ms = 60000 };
	sb_sandbox *sandbox = NULL;
	sb_report *report = NULL;
	cli_text text = { 0 };
	sb_error err;
	int code;

	if (cli_sandbox(options, &sandbox, &err) < 0 || sb_doctor(sandbox, &patient, &report, &err) < 0)
		code = cli_fail(&err, options->json, false);
	else {
		if (options->json)
			text_add_fmt(&text, "%s\n", sb_report_json(report));
		else
			show_report(report, &text);
		code = output_text(STDOUT_FILENO, &text,
				   sb_report_usable(report, NULL) ? 0 : CLI_EXIT_OURS);
	}
	sb_report_free(report);
	sb_sandbox_free(sandbox);
	return code;
}

int doctor_main(char **words)
{
	cli_options options;
	sb_error err;
	int code;

	if (options_parse(CLI_DOCTOR, words, &options, &err) < 0)
		code = cli_fail(&err, options_want_json(words), false);
	else if (options.help)
		code = help_show(CLI_DOCTOR);
	else if (options.rest_count > 0) {
		error_fill(&err, SB_ERR_INVALID, "option", "doctor takes no \"%.160s\"",
			   options.rest[0]);
		code = cli_fail(&err, options.json, false);
	} else
		code = doctor(&options);
	options_release(&options);
	return code;
}
