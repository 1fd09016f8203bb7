/* SPDX-License-Identifier: MIT */
/* options.h - the one table of options: parsing, usage errors, help and manual come from it. */
#ifndef SB_CLI_OPTIONS_H
#define SB_CLI_OPTIONS_H

#include "cli.h"

enum { OPTION_FLAG = 0,   /* bool */
       OPTION_TEXT,       /* const char * */
       OPTION_DURATION,   /* uint64_t, ms; "unlimited" */
       OPTION_SIZE,       /* uint64_t, bytes; "unlimited" */
       OPTION_COUNT,      /* uint64_t; "unlimited" */
       OPTION_WORD,       /* uint32_t, one of `words` */
       OPTION_LIST,       /* cli_list, one more each time */
       OPTION_RULE,       /* a cli_rule with access `extra`, one more each time */
       OPTION_WALLS,      /* uint64_t of SB_WALL_BITs, one or more more each time */
       OPTION_BACKENDS }; /* names between commas */

typedef struct cli_word {
	const char *word; /* NULL ends the list */
	uint32_t value;
} cli_word;

typedef struct cli_option {
	const char *name;
	char letter;           /* 0 = none */
	uint8_t kind;          /* OPTION_* */
	uint8_t commands;      /* CLI_* that know it */
	const char *value;     /* what it takes, as in help; NULL = nothing */
	size_t offset;         /* in cli_options */
	uint64_t extra;        /* RULE: access; SIZE: least */
	const cli_word *words; /* WORD; BACKENDS: the names, for completions */
	const char *help;
} cli_option;

enum { CLI_OPTIONS_MAX = 64 }; /* more than the table has: it is checked when it is compiled */
extern const cli_option option_table[];
extern const size_t option_count;

/* "--name" or "-x" without its value; NULL = no such option of this command. */
const cli_option *option_find(int command, const char *name, size_t len);

#endif /* SB_CLI_OPTIONS_H */
