/* SPDX-License-Identifier: MIT */
/*
 * completion.c - `completion`: what a shell needs to know of the tables of commands and options.
 *
 * The scripts know where options end: behind the guest's first word, or "--", they leave the words to
 * the shell.
 */
#include "options.h"
#include <string.h>
#include <unistd.h>

/* ---- What can stand behind an option -------------------------------------------------------- */

enum { VALUE_NONE = 0, VALUE_ANY, VALUE_FILE, VALUE_CHOICE };

static size_t choices(const cli_option *option, cli_text *text, char between)
{
	const sb_pack *const *packs = sb_packs_builtin();
	const char mark[2] = { between, '\0' };
	size_t count = 0;

	if (option->kind == OPTION_WALLS)
		for (int wall = 0; wall < SB_WALL_COUNT; wall++)
			text_add_fmt(text, "%s%s", count++ ? mark : "", sb_wall_name(wall));
	for (const cli_word *word = option->words; word != NULL && word->word != NULL; word++)
		text_add_fmt(text, "%s%s", count++ ? mark : "", word->word);
	if (strcmp(option->name, "lang") == 0)
		for (size_t i = 0; packs[i] != NULL; i++)
			text_add_fmt(text, "%s%s", count++ ? mark : "", packs[i]->name);
	return count;
}

static int value_kind(const cli_option *option)
{
	cli_text none = { 0 };
	size_t count;

	if (option->value == NULL)
		return VALUE_NONE;
	count = choices(option, &none, ' ');
	text_release(&none);
	if (count > 0)
		return VALUE_CHOICE;
	return strstr(option->value, "PATH") != NULL || strstr(option->value, "DIR") != NULL ||
			       strstr(option->value, "PARENT") != NULL
		       ? VALUE_FILE
		       : VALUE_ANY;
}

static void add_command_names(cli_text *text, bool with_options)
{
	size_t count = 0;

	for (size_t i = 0; i < command_count; i++)
		if (!with_options || command_table[i].options != 0)
			text_add_fmt(text, "%s%s", count++ > 0 ? " " : "", command_table[i].name);
}

/* In single quotes; of `special` each with a backslash before it. */
static void add_quoted(cli_text *text, const char *words, const char *special, const char *quote)
{
	for (; *words != '\0'; words++) {
		if (*words == '\'')
			text_add(text, quote);
		else
			text_add_fmt(text, "%s%c", strchr(special, *words) != NULL ? "\\" : "", *words);
	}
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_names(cli_text *text, int command, int kind_from)
{
	for (size_t i = 0; i < option_count; i++) {
		const cli_option *option = &option_table[i];

		if ((option->commands & command) == 0 || value_kind(option) < kind_from)
			continue;
		text_add_fmt(text, " --%s", option->name);
		if (option->letter != 0)
			text_add_fmt(text, " -%c", option->letter);
	}
}

static void bash_values(cli_text *text)
{
	for (size_t i = 0; i < option_count; i++) {
		const cli_option *option = &option_table[i];
		int kind = value_kind(option);

		if (kind == VALUE_NONE)
			continue;
		text_add_fmt(text, "\t--%s", option->name);
		if (option->letter != 0)
			text_add_fmt(text, " | -%c", option->letter);
		if (kind == VALUE_CHOICE) {
			text_add(text, ") _sandbox_offer -W \"");
			choices(option, text, ' ');
			text_add(text, "\" -- \"$cur\" ;;\n");
		} else {
			text_add(text, kind == VALUE_FILE ? ") _sandbox_offer -f -- \"$cur\" ;;\n" : ") ;;\n");
		}
	}
}

static void bash(cli_text *text)
{
	text_add(text, "# Completion of `sandbox` for bash, made by `sandbox completion bash`.\n"
		       "_sandbox_offer() {\n\tmapfile -t COMPREPLY < <(compgen \"$@\")\n}\n"
		       "_sandbox() {\n"
		       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} options valued word value='' i\n"
		       "\tCOMPREPLY=()\n"
		       "\t[[ $cur == \"=\" ]] && cur=\n"
		       "\tif ((COMP_CWORD == 1)); then\n\t\t_sandbox_offer -W \"");
	add_command_names(text, false);
	text_add(text, "\" -- \"$cur\"\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; i < command_count; i++) {
		if (command_table[i].options == 0)
			continue;
		text_add_fmt(text, "\t%s)\n\t\toptions=\"", command_table[i].name);
		bash_names(text, command_table[i].options, VALUE_NONE);
		text_add(text, "\"\n\t\tvalued=\"");
		bash_names(text, command_table[i].options, VALUE_ANY);
		text_add(text, " \"\n\t\t;;\n");
	}
	text_add(text, "\thelp) _sandbox_offer -W \"");
	add_command_names(text, true);
	text_add(text, "\" -- \"$cur\"; return ;;\n"
		       "\tcompletion) _sandbox_offer -W \"bash zsh fish\" -- \"$cur\"; return ;;\n"
		       "\t*) return ;;\n\tesac\n"
		       "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n\t\tword=${COMP_WORDS[i]}\n"
		       "\t\tcase $word in\n"
		       "\t\t--)\n"
		       "\t\t\tif ((i == COMP_CWORD - 1)); then _sandbox_offer -c -- \"$cur\"\n"
		       "\t\t\telse _sandbox_offer -f -- \"$cur\"; fi\n"
		       "\t\t\treturn ;;\n"
		       "\t\t-*)\n"
		       "\t\t\tif [[ $valued == *\" $word \"* ]]; then\n"
		       "\t\t\t\t((i++))\n\t\t\t\t[[ ${COMP_WORDS[i]} == \"=\" ]] && ((i++))\n"
		       "\t\t\t\t((i >= COMP_CWORD)) && value=$word\n"
		       "\t\t\tfi ;;\n"
		       "\t\t*) _sandbox_offer -f -- \"$cur\"; return ;;\n"
		       "\t\tesac\n\tdone\n"
		       "\tcase $value in\n");
	bash_values(text);
	text_add(text, "\t*) if [[ $cur == -* ]]; then _sandbox_offer -W \"$options\" -- \"$cur\"; else "
		       "_sandbox_offer -f -- \"$cur\"; fi ;;\n\tesac\n}\n"
		       "complete -o filenames -F _sandbox sandbox\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void zsh_spec(cli_text *text, const cli_option *option, bool letter)
{
	int kind = value_kind(option);
	bool again = option->kind == OPTION_LIST || option->kind == OPTION_RULE || option->kind == OPTION_WALLS;

	text_add_fmt(text, " \\\n\t\t\t'%s", again ? "*" : "");
	if (letter)
		text_add_fmt(text, "-%c%s[", option->letter, kind == VALUE_NONE ? "" : "+");
	else
		text_add_fmt(text, "--%s%s[", option->name, kind == VALUE_NONE ? "" : "=");
	add_quoted(text, option->help, "[]:\\", "'\\''");
	text_add(text, "]");
	if (kind != VALUE_NONE) {
		text_add_fmt(text, ":%s:", option->value);
		if (kind == VALUE_CHOICE) {
			text_add(text, "(");
			choices(option, text, ' ');
			text_add(text, ")");
		} else if (kind == VALUE_FILE) {
			text_add(text, "_files");
		}
	}
	text_add(text, "'");
}

static void zsh(cli_text *text)
{
	text_add(text, "#compdef sandbox\n"
		       "# Completion of `sandbox` for zsh, made by `sandbox completion zsh`.\n"
		       "_sandbox_rest() {\n"
		       "\tif ((CURRENT == 1)); then\n"
		       "\t\t_alternative 'files:file:_files' 'commands:command:_command_names -e'\n"
		       "\telse\n\t\t_normal\n\tfi\n}\n"
		       "_sandbox() {\n"
		       "\tlocal curcontext=\"$curcontext\"\n\tlocal -a commands\n\tcommands=(");
	for (size_t i = 0; i < command_count; i++) {
		text_add_fmt(text, "\n\t\t'%s:", command_table[i].name);
		add_quoted(text, command_table[i].help, ":\\", "'\\''");
		text_add(text, "'");
	}
	text_add(text, "\n\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
		       "\tshift words\n\t((CURRENT--))\n\tcase $words[1] in\n");
	for (size_t c = 0; c < command_count; c++) {
		if (command_table[c].options == 0)
			continue;
		text_add_fmt(text, "\t%s)\n\t\t_arguments -s -S", command_table[c].name);
		for (size_t i = 0; i < option_count; i++) {
			if ((option_table[i].commands & command_table[c].options) == 0)
				continue;
			zsh_spec(text, &option_table[i], false);
			if (option_table[i].letter != 0)
				zsh_spec(text, &option_table[i], true);
		}
		text_add(text, " \\\n\t\t\t'*:: :_sandbox_rest'\n\t\t;;\n");
	}
	text_add(text, "\thelp) ((CURRENT == 2)) && _describe command commands ;;\n"
		       "\tcompletion) ((CURRENT == 2)) && _values shell bash zsh fish ;;\n"
		       "\tesac\n}\n"
		       "if [[ $funcstack[1] == _sandbox ]]; then\n\t_sandbox \"$@\"\n"
		       "else\n\tcompdef _sandbox sandbox\nfi\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_option(cli_text *text, const cli_option *option)
{
	int kind = value_kind(option);

	text_add(text, "complete -c sandbox -n '__sandbox_in");
	for (size_t i = 0; i < command_count; i++)
		if ((option->commands & command_table[i].options) != 0)
			text_add_fmt(text, " %s", command_table[i].name);
	text_add_fmt(text, "' -l %s", option->name);
	if (option->letter != 0)
		text_add_fmt(text, " -s %c", option->letter);
	if (kind == VALUE_CHOICE) {
		text_add(text, " -x -a '");
		choices(option, text, ' ');
		text_add(text, "'");
	} else if (kind != VALUE_NONE) {
		text_add(text, kind == VALUE_FILE ? " -r -F" : " -x");
	}
	text_add(text, " -d '");
	add_quoted(text, option->help, "\\", "\\'");
	text_add(text, "'\n");
}

static void fish(cli_text *text)
{
	text_add(text, "# Completion of `sandbox` for fish, made by `sandbox completion fish`.\n"
		       "function __sandbox_first\n"
		       "\ttest (count (commandline -opc)) -eq 1\n"
		       "end\n"
		       "function __sandbox_in\n"
		       "\tset -l words (commandline -opc)\n"
		       "\ttest (count $words) -ge 2; and contains -- $words[2] $argv; and not contains -- -- $words\n"
		       "end\n");
	for (size_t i = 0; i < command_count; i++) {
		text_add_fmt(text, "complete -c sandbox -n __sandbox_first -f -a %s -d '", command_table[i].name);
		add_quoted(text, command_table[i].help, "\\", "\\'");
		text_add(text, "'\n");
	}
	for (size_t i = 0; i < option_count; i++)
		fish_option(text, &option_table[i]);
	text_add(text, "complete -c sandbox -n '__sandbox_in help' -f -a '");
	add_command_names(text, true);
	text_add(text, "'\ncomplete -c sandbox -n '__sandbox_in completion' -f -a 'bash zsh fish'\n");
}

/* ----------------------------------------------------------------------------------------------- */

int completion_main(char **words)
{
	static const struct { const char *name; void (*write)(cli_text *text); } shells[] = {
		{ "bash", bash }, { "zsh", zsh }, { "fish", fish },
	};
	cli_text text = { 0 };
	sb_error err;

	for (size_t i = 0; words[0] != NULL && words[1] == NULL && i < CLI_LEN(shells); i++)
		if (strcmp(words[0], shells[i].name) == 0) {
			shells[i].write(&text);
			return output_text(STDOUT_FILENO, &text, 0);
		}
	error_fill(&err, SB_ERR_INVALID, "command", "completion takes the name of a shell: bash, zsh or fish");
	return cli_fail(&err, options_want_json(words), false);
}
