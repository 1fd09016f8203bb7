/* SPDX-License-Identifier: MIT */
/*
 * shell.c - is each segment of a shell line one that somebody allowed?
 *
 * Only what is plainly understood counts: words, quotes without expansion in them, and ; & && || |
 * or a new line between segments.  A dollar, a backquote, a redirection, a bracket, a brace, a
 * comment, an assignment in front: not understood, so somebody is asked.
 */
#include "session.h"

#include <fnmatch.h>

typedef struct segment {
	buf text;                     /* words as the shell would pass them, one blank between */
	bool in_word, any;
	bool plain;                   /* the word so far has no quotes: "=" in it may assign */
	bool first;                   /* still the first word */
} segment;

static void put(segment *s, char c, bool plain)
{
	if (!s->in_word) {
		if (s->any)
			buf_add_char(&s->text, ' ');
		s->first = !s->any;
		s->in_word = s->any = true;
		s->plain = true;
	}
	s->plain = s->plain && plain;
	buf_add_char(&s->text, c);
}

static bool matches(const segment *s, const char *const *globs)
{
	if (s->text.failed || !s->text.data)
		return false;
	for (size_t i = 0; globs && globs[i]; i++)
		if (fnmatch(globs[i], s->text.data, 0) == 0)
			return true;
	return false;
}

/* A quoted run from *at on, which stands on its quote; false = not understood. */
static bool quoted(segment *s, const char **at)
{
	char quote = **at;
	const char *c = *at + 1;

	if (!s->in_word) { /* "" is a word, too */
		put(s, 'x', false);
		s->text.data[--s->text.len] = 0;
	}
	s->plain = false;
	for (; *c && *c != quote; c++) {
		if (quote == '"' && (*c == '$' || *c == '`' || *c == '\\'))
			return false;
		put(s, *c, false);
	}
	*at = c;
	return *c == quote;
}

/* One character outside quotes; false = not understood. */
static bool bare(segment *s, const char **at)
{
	char c = **at;

	if (strchr("$`<>(){}!#", c) && !(c == '#' && s->in_word))
		return false;
	if (c == '\\') {
		if (!(*at)[1] || (*at)[1] == '\n')
			return false;
		put(s, *++*at, false);
		return true;
	}
	if (c == '\'' || c == '"')
		return quoted(s, at);
	if (c == ' ' || c == '\t') {
		s->in_word = false;
		return true;
	}
	if (c == '=' && s->in_word && s->first && s->plain)
		return false; /* LD_PRELOAD=x command */
	put(s, c, true);
	return true;
}

int shell_allowed(const char *line, const char *const *globs)
{
	segment s = { 0 };
	bool ok = true, some = false;

	buf_init(&s.text, 1 << 16);
	for (const char *at = line; ok; at++) {
		if (*at && !strchr(";&|\n", *at)) {
			ok = bare(&s, &at);
			continue;
		}
		if (s.any) {
			ok = matches(&s, globs);
			some = true;
		}
		if (!*at)
			break;
		buf_release(&s.text);
		s = (segment){ 0 };
		buf_init(&s.text, 1 << 16);
	}
	buf_release(&s.text);
	return ok && some;
}

const char *shell_line(const char *const *argv, bool *is_shell)
{
	static const char *const shells[] = { "sh",   "bash", "dash", "zsh", "ksh",
					      "mksh", "ash",  "fish", "csh", "tcsh",
					      "busybox", NULL };
	size_t options;

	*is_shell = argv && argv[0] && strv_has(shells, path_base(argv[0]));
	if (!*is_shell || !argv[1] || argv[1][0] != '-')
		return NULL;
	/* -c, -ec, -lc: any other option first is not understood ("--rcfile x -c") */
	options = strspn(argv[1] + 1, "eulx");
	if (strcmp(argv[1] + 1 + options, "c") != 0)
		return NULL;
	return argv[2];
}
