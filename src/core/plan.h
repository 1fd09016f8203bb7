/* SPDX-License-Identifier: MIT */
/*
 * plan.h - the plan's own memory, shared by plan.c (facts), plan_text.c (words) and the JSON of
 * reports and results.  Built by one thread, then handed out and never changed.
 */
#ifndef SB_CORE_PLAN_H
#define SB_CORE_PLAN_H

#include "core.h"

#define PLAN_FIRST_BYTES 4096

typedef struct plan_line {
	const char *mechanism, *caveat, *subject, *test;
	uint32_t wall, level, required;
} plan_line;

typedef struct plan_path {
	const char *path, *why;
	int access;
} plan_path;

typedef struct plan_text {
	const char *format, *text;
} plan_text;

struct sb_plan {
	unsigned refs;
	char *backend, *workspace;
	plan_line *lines;
	size_t line_count;
	plan_path *paths;
	size_t path_count;
	const char *above; /* plan_set_above(), or NULL */
	plan_text *texts; /* a backend's own: "seccomp"... */
	size_t text_count;
	char **argv, **env_names; /* NULL = none, or not told */
	uint64_t caps, must;	  /* must: SB_WALL_BITs of walls that plan_check() marked */
	sb_enforcement enforcement;
	sb_limits limits;
	sb_error failure;	 /* code 0 = it would start */
	char *as_text, *as_json; /* made when first asked for */
	void *kept;		 /* plan_keep() */
	plan_rest_fn *rest;
	bool is_short;		 /* the rest was left out */
	void (*kept_release)(void *kept);
	arena mem;		      /* all strings but those that are pointers to char above */
	char first[PLAN_FIRST_BYTES]; /* its first piece: most plans need no other */
};

/* {"code", "kind", "where", "message", "errno"}, or null. */
void plan_text_error(json *j, const sb_error *error);
/* The array of lines: what holds; also whether it was asked for; also subject and test. */
enum { PLAN_LINES_HELD = 0, PLAN_LINES_ASKED, PLAN_LINES_ALL };
void plan_text_lines(json *j, const sb_plan *plan, int detail);
void plan_text_caps(json *j, uint64_t caps); /* an array of SB_CAP_* by name */
void plan_text_limits(json *j, const sb_limits *limits);
/* Makes *slot once, whoever comes first, and returns it; text NULL (no memory) stays NULL. */
const char *plan_text_publish(char **slot, char *text);

#endif /* SB_CORE_PLAN_H */
