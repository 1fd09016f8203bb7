/* SPDX-License-Identifier: MIT */
/*
 * options.c - reads the words of a command line by the table.
 *
 * Options end at the first word that is none, or at "--".  "-e CODE" with --lang before it ends
 * them, too; without one they go on, since the language is still to come.
 */
#include "options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Growing lists ------------------------------------------------------------------------ */

static int no_memory(sb_error *err)
{
	return error_fill(err, SB_ERR_NO_MEMORY, "option", "out of memory");
}

static int list_add(cli_list *list, const char *text, sb_error *err)
{
	if (list->len + 2 > list->cap) {
		size_t cap = list->cap == 0 ? 8 : list->cap * 2;
		const char **at = realloc(list->at, cap * sizeof *at);
		if (at == NULL)
			return no_memory(err);
		list->at = at;
		list->cap = cap;
	}
	list->at[list->len++] = text;
	list->at[list->len] = NULL;
	return 0;
}

static int rule_add(cli_options *options, uint32_t access, const char *path, sb_error *err)
{
	size_t count = options->rule_count;

	if ((count & (count - 1)) == 0) { /* room for the next power of two */
		size_t cap = count == 0 ? 1 : count * 2;
		cli_rule *rules = realloc(options->rules, cap * sizeof *rules);
		if (rules == NULL)
			return no_memory(err);
		options->rules = rules;
	}
	options->rules[options->rule_count++] = (cli_rule){ .path = path, .access = access };
	return 0;
}

/* ---- Values ------------------------------------------------------------------------------- */

static int refuse(const cli_option *option, const char *value, const char *why, const char *example,
		  sb_error *err)
{
	return error_fill(err, SB_ERR_INVALID, "option", "--%s \"%.160s\" %s: write %s",
			  option->name, value, why, example);
}

static int read_number(const cli_option *option, const char *value, uint64_t *out, sb_error *err)
{
	char least[UNITS_TEXT];
	const char *example;
	int bad;

	if (strcmp(value, "unlimited") == 0) {
		*out = SB_UNLIMITED;
		return 0;
	}
	if (option->kind == OPTION_DURATION) {
		bad = units_duration(value, out);
		example = "it as 300ms, 1.5s, 5s, 2m or 1h, or unlimited";
	} else if (option->kind == OPTION_SIZE) {
		bad = units_size(value, out);
		example = "it as 64M, 64MiB, 2G or a whole number of bytes, or unlimited";
	} else {
		bad = units_count(value, out);
		example = "a whole number, such as 64, or unlimited";
	}
	if (bad != UNITS_OK)
		return refuse(option, value, units_problem(bad), example, err);
	if (*out < option->extra && option->kind == OPTION_SIZE &&
	    strspn(value, "0123456789") == strlen(value))
		return error_fill(err, SB_ERR_INVALID_LIMITS, "option",
				  "--%s \"%.160s\" is in bytes, and the least is %s: did you mean "
				  "%.160sM?",
				  option->name, value, units_size_text(option->extra, least), value);
	if (*out < option->extra)
		return error_fill(err, SB_ERR_INVALID_LIMITS, "option",
				  "--%s \"%.160s\" is below the least, which is %s", option->name,
				  value, units_size_text(option->extra, least));
	return 0;
}

static int read_word(const cli_option *option, const char *value, uint32_t *out, sb_error *err)
{
	int mode;

	for (const cli_word *word = option->words; word->word != NULL; word++)
		if (strcmp(word->word, value) == 0) {
			*out = word->value;
			return 0;
		}
	if (strcmp(option->name, "net") == 0 && sb_net_mode_parse(value, &mode) == 0)
		return error_fill(err, SB_ERR_UNSUPPORTED, "network",
				  "--net \"%.160s\" is not available in this version: choose %s",
				  value, option->value);
	return error_fill(err, SB_ERR_INVALID, "option", "--%s \"%.160s\" is not known: choose %s",
			  option->name, value, option->value);
}

static int read_walls(const cli_option *option, const char *value, uint64_t *out, sb_error *err)
{
	for (const char *at = value;;) {
		char word[24];
		size_t len = strcspn(at, ",");
		int wall;
		snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : 0), at);
		if (sb_wall_parse(word, &wall) < 0) {
			cli_text walls = { 0 };
			for (int i = 0; i < SB_WALL_COUNT; i++)
				text_add_fmt(&walls, "%s%s", i == 0 ? "" : ", ", sb_wall_name(i));
			error_fill(err, SB_ERR_INVALID, "option",
				   "--%s \"%.160s\" is no wall: choose from %s", option->name,
				   value, walls.data == NULL ? "" : walls.data);
			text_release(&walls);
			return SB_ERR_INVALID;
		}
		*out |= SB_WALL_BIT(wall);
		if (at[len] == '\0')
			return 0;
		at += len + 1;
	}
}

static int read_backends(cli_options *options, const char *value, sb_error *err)
{
	char *copy = strdup(value);

	if (copy == NULL)
		return no_memory(err);
	free(options->backends_text);
	options->backends_text = copy;
	options->backends.len = 0;
	for (char *at = copy; at != NULL;) {
		char *comma = strchr(at, ',');
		const char *const *names;
		const char *name;
		if (comma != NULL)
			*comma++ = '\0';
		if (sb_backend_parse(at, &name) < 0 && sb_policy_parse(at, &names) < 0)
			return error_fill(
				err, SB_ERR_INVALID, "option",
				"--backend \"%.160s\" is not known: choose from linux, wasm, process, or "
				"a policy: WasmOnly, PreferWasm",
				at);
		if (list_add(&options->backends, at, err) < 0) /* in the caller's word for it */
			return err->code;
		at = comma;
	}
	return 0;
}

static int store(cli_options *options, const cli_option *option, const char *value, sb_error *err)
{
	void *at = (char *)options + option->offset;

	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)at = value;
		return 0;
	case OPTION_WORD:
		return read_word(option, value, at, err);
	case OPTION_LIST:
		return list_add(at, value, err);
	case OPTION_RULE:
		return rule_add(options, (uint32_t)option->extra, value, err);
	case OPTION_WALLS:
		return read_walls(option, value, at, err);
	case OPTION_BACKENDS:
		return read_backends(options, value, err);
	default:
		return read_number(option, value, at, err);
	}
}

/* ---- Words -------------------------------------------------------------------------------- */

static size_t distance(const char *a, const char *b)
{
	enum { MAX = 24 };
	size_t row[MAX + 1], la = strlen(a), lb = strlen(b);

	if (la > MAX || lb > MAX)
		return MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t corner = row[0];
		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t cost = corner + (a[i - 1] != b[j - 1]);
			corner = row[j];
			if (row[j] + 1 < cost)
				cost = row[j] + 1;
			if (row[j - 1] + 1 < cost)
				cost = row[j - 1] + 1;
			row[j] = cost;
		}
	}
	return row[lb];
}

/* Cut short or spelt out ("--time", "--network") is no slip. */
static size_t slips(const char *word, const char *name)
{
	size_t len = strlen(word), name_len = strlen(name), shared = len < name_len ? len : name_len;

	return shared >= 3 && strncmp(word, name, shared) == 0 ? 0 : distance(word, name);
}

const char *options_nearest(const char *word, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t len = strlen(word), least = len < 3 ? 1 : len < 5 ? 3 : 4; /* so many slips are too many */

	for (size_t i = 0; i < count; i++) {
		size_t d = slips(word, names[i]);
		if (d < least) {
			least = d;
			best = names[i];
		}
	}
	return best;
}

static const char *near_option(int command, const char *word)
{
	const char *names[CLI_OPTIONS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < option_count; i++)
		if ((option_table[i].commands & command) != 0)
			names[count++] = option_table[i].name;
	return options_nearest(word, names, count);
}

static const char *other_command(int command, const char *word, size_t len)
{
	static const struct { int command; const char *name; } others[] = {
		{ CLI_RUN, "run" }, { CLI_EXPLAIN, "explain" }, { CLI_DOCTOR, "doctor" }, { CLI_REPL, "repl" },
	};

	for (size_t i = 0; i < CLI_LEN(others); i++)
		if (others[i].command != command && option_find(others[i].command, word, len) != NULL)
			return others[i].name;
	return NULL;
}

static int unknown_option(int command, const char *word, size_t len, sb_error *err)
{
	char name[64];

	snprintf(name, sizeof name, "%.*s", (int)len, word);
	const char *other = other_command(command, word, len);
	if (other != NULL)
		return error_fill(err, SB_ERR_INVALID, "option",
				  "option \"%s\" belongs to `sandbox %s`", name, other);
	const char *near = len > 3 ? near_option(command, name + 2) : NULL;
	if (near != NULL)
		return error_fill(err, SB_ERR_INVALID, "option",
				  "unknown option \"%s\": did you mean --%s?", name, near);
	if (command == CLI_DOCTOR)
		return error_fill(err, SB_ERR_INVALID, "option",
				  "unknown option \"%s\": see `sandbox help doctor`", name);
	return error_fill(err, SB_ERR_INVALID, "option",
			  "unknown option \"%s\": see `sandbox help %s`; a command goes behind --", name,
			  command == CLI_RUN ? "run" : command == CLI_REPL ? "repl" : "explain");
}

/* One option at words[*i]; *i is moved to its last word. */
static int read_option(int command, char **words, size_t *i, cli_options *options,
		       const cli_option **found, sb_error *err)
{
	const char *word = words[*i];
	const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
	size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
	const cli_option *option = option_find(command, word, len);
	const char *value = NULL;

	*found = option;
	if (option == NULL)
		return unknown_option(command, word, len, err);
	if (option->value == NULL && equals != NULL)
		return error_fill(err, SB_ERR_INVALID, "option",
				  "--%s takes no value, but has \"%.160s\"", option->name,
				  equals + 1);
	if (option->value != NULL) {
		value = equals != NULL ? equals + 1 : words[*i + 1];
		if (value == NULL)
			return error_fill(err, SB_ERR_INVALID, "option",
					  "--%s needs a value: --%s %s", option->name, option->name,
					  option->value);
		*i += equals == NULL;
	}
	return store(options, option, value, err);
}

int options_parse(int command, char **words, cli_options *options, sb_error *err)
{
	size_t i = 0;

	*options = (cli_options){ 0 };
	for (; words[i] != NULL && words[i][0] == '-' && words[i][1] != '\0'; i++) {
		const cli_option *found;
		if (strcmp(words[i], "--") == 0) {
			options->dashes = true;
			i++;
			break;
		}
		int rc = read_option(command, words, &i, options, &found, err);
		if (rc < 0)
			return rc;
		if (found->letter == 'e' && options->lang != NULL) {
			i++;
			if (words[i] != NULL && strcmp(words[i], "--") == 0)
				i++;
			break;
		}
		if (options->help)
			return 0;
	}
	options->rest = words + i;
	while (options->rest[options->rest_count] != NULL)
		options->rest_count++;
	return 0;
}

void options_release(cli_options *options)
{
	free(options->backends_text);
	free(options->backends.at);
	free(options->env.at);
	free(options->files.at);
	free(options->rules);
	*options = (cli_options){ 0 };
}

bool options_want_json(char **words)
{
	for (; *words != NULL && strcmp(*words, "--") != 0; words++)
		if (strcmp(*words, "--json") == 0)
			return true;
	return false;
}

void options_help(int command, cli_text *text)
{
	for (size_t i = 0; i < option_count; i++) {
		const cli_option *option = &option_table[i];
		char left[64];
		if ((option->commands & command) == 0)
			continue;
		int len = option->letter != 0 ? snprintf(left, sizeof left, "-%c, --%s",
							 option->letter, option->name)
					      : snprintf(left, sizeof left, "--%s", option->name);
		if (option->value != NULL)
			snprintf(left + len, sizeof left - (size_t)len, " %s", option->value);
		text_add_fmt(text, "  %-28s%s%s\n", left,
			     strlen(left) > 26 ? "\n                              " : "",
			     option->help);
	}
}
