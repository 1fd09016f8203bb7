/* SPDX-License-Identifier: MIT */
/*
 * seccomp_gen.c - compiles seccomp.table; runs at build time, on the building machine.
 *
 *   seccomp_gen filter TABLE OVER KEPT > seccomp_filter.h   both architectures, chosen by the compiler
 *   seccomp_gen oci TABLE OVER KEPT > seccomp_oci.c         the same list as OCI JSON, a C string
 *
 * Each comes five times: for a network of its own, and for the host's; then both once more with the
 * rules of OVER in the place of those of the same name; and with those of the names in KEPT alone.
 *
 * The filter is a balanced tree: each node compares the number with the beginning of a range, so that
 * any call is decided in about seven steps and the kernel, which tries every number once when the
 * filter is set (to remember which are always allowed), is done soon.  A block shares its leaves.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARCH_X86, ARCH_ARM, ARCHES };
enum { MAX_RULES = 600, MAX_NUMBER = 1024, MAX_CLAUSES = 8, MAX_CONDS = 3, MAX_VALUES = 16,
       MAX_CODE = 1024, MAX_LABELS = 2048, BLOCK_RANGES = 60 };
enum { ACTION_ALLOW = 0, ACTION_NET = -1, ACTION_DONE = -2, ACTION_ASK = -3 }; /* any other is an errno */

static bool host_net; /* what is made now: ACTION_NET allows then, and is EOPNOTSUPP else */

typedef struct cond {
	bool high; /* the upper half of the argument */
	uint32_t arg, mask, values[MAX_VALUES];
	uint32_t count;
} cond;
typedef struct clause {
	cond conds[MAX_CONDS];
	uint32_t count; /* 0: always */
	int action;
} clause;
typedef struct rule {
	char name[40];
	int number[ARCHES]; /* -1 = none */
	clause clauses[MAX_CLAUSES];
	uint32_t count;
} rule;

static rule rules[MAX_RULES];
static size_t rule_count;
static const char *file;
static int line;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s:%d: ", file, line);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(1);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static char *word(char **at)
{
	char *w = *at + strspn(*at, " \t");
	size_t len = strcspn(w, " \t\n");

	if (!len)
		return NULL;
	*at = w + len + (w[len] != 0);
	w[len] = 0;
	return w;
}

static uint32_t number(const char **at)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(*at, &end, 0);
	if (end == *at || errno || n > UINT32_MAX)
		die("\"%s\" is no number", *at);
	*at = end;
	return (uint32_t)n;
}

static int action(const char *name)
{
	static const struct {
		const char *name;
		int value;
	} known[] = { { "allow", ACTION_ALLOW }, { "net", ACTION_NET }, { "done", ACTION_DONE },
		{ "ask", ACTION_ASK }, { "eperm", 1 }, { "eacces", 13 }, { "enosys", 38 },
		{ "eprotonosupport", 93 }, { "eopnotsupp", 95 }, { "eafnosupport", 97 } };
	size_t i;

	for (i = 0; name && i < sizeof known / sizeof known[0]; i++)
		if (!strcmp(name, known[i].name))
			return known[i].value;
	die("\"%s\" is no action", name ? name : "");
}

/* aN[h][&MASK] in V,V.. */
static void read_cond(char **at, cond *c)
{
	const char *subject = word(at), *in = word(at), *list = word(at);

	if (!list || strcmp(in, "in") || subject[0] != 'a')
		die("a condition reads: aN[h][&MASK] in V,V");
	subject++;
	c->arg = number(&subject);
	c->mask = UINT32_MAX;
	c->high = *subject == 'h';
	subject += c->high;
	if (*subject == '&') {
		subject++;
		c->mask = number(&subject);
	}
	if (*subject || c->arg > 5)
		die("there is no such argument");
	for (;;) {
		if (c->count == MAX_VALUES)
			die("too many values");
		c->values[c->count++] = number(&list);
		if (*list != ',')
			break;
		list++;
	}
	if (*list)
		die("a value has a tail");
}

static void read_clause(char *text, clause *c)
{
	char *w = word(&text);

	while (w && (!strcmp(w, "if") || !strcmp(w, "and"))) {
		if (c->count == MAX_CONDS)
			die("too many conditions");
		read_cond(&text, &c->conds[c->count++]);
		w = word(&text);
	}
	c->action = action(w);
	if (word(&text))
		die("a clause has a tail");
}

static int read_number(const char *w)
{
	if (!w)
		die("a number is missing");
	if (!strcmp(w, "-"))
		return -1;
	return (int)number(&w);
}

static void read_line(char *text)
{
	rule *r = &rules[rule_count];
	char *name = word(&text), *next;
	int i;

	if (!name || name[0] == '#')
		return;
	if (rule_count == MAX_RULES || strlen(name) >= sizeof r->name)
		die("too many rules, or too long a name");
	memcpy(r->name, name, strlen(name) + 1);
	for (i = 0; i < ARCHES; i++) {
		r->number[i] = read_number(word(&text));
		if (r->number[i] >= MAX_NUMBER)
			die("a number is too large");
	}
	for (; text; text = next) {
		next = strchr(text, ';');
		if (next)
			*next++ = 0;
		if (r->count == MAX_CLAUSES)
			die("too many clauses");
		read_clause(text, &r->clauses[r->count++]);
	}
	if (r->clauses[r->count - 1].count)
		die("the last clause is conditional");
	rule_count++;
}

static void read_lines(const char *path, void (*take)(char *))
{
	char text[400];
	FILE *f = fopen(path, "r");

	file = path;
	line = 0;
	if (!f)
		die("cannot be read");
	while (fgets(text, sizeof text, f)) {
		line++;
		if (!strchr(text, '\n'))
			die("the line is too long");
		*strchr(text, '\n') = 0;
		take(text);
	}
	fclose(f);
}

static bool kept[MAX_RULES];

static void keep(char *text)
{
	char *name = word(&text);
	size_t i;

	if (!name || name[0] == '#')
		return;
	for (i = 0; i < rule_count && strcmp(rules[i].name, name); i++)
		;
	if (i == rule_count || kept[i])
		die("\"%s\" stands for none, or twice", name);
	if (word(&text))
		die("a name has a tail");
	kept[i] = true;
}

static void drop_rest(void)
{
	size_t i, count = 0;

	for (i = 0; i < rule_count; i++)
		if (kept[i])
			rules[count++] = rules[i];
	rule_count = count;
}

/* ---- The filter ------------------------------------------------------------------------------ */

enum { OP_LD = 0x20, OP_AND = 0x54, OP_JEQ = 0x15, OP_JGE = 0x35, OP_RET = 0x06 };
enum { NEXT = -1 }; /* label: the next instruction */
#define RET_KILL 0x80000000u
#define RET_ERRNO 0x00050000u
#define RET_ALLOW 0x7fff0000u
#define RET_ASK 0x7fc00000u

typedef struct insn { uint32_t code, k; int jt, jf; } insn;
static insn code[MAX_CODE];
static int code_count, labels[MAX_LABELS], label_count;

static int emit(uint32_t op, uint32_t k, int jt, int jf)
{
	if (code_count == MAX_CODE)
		die("the filter is too long");
	code[code_count] = (insn){ op, k, jt, jf };
	return code_count++;
}

static int label_new(void)
{
	if (label_count == MAX_LABELS)
		die("too many labels");
	labels[label_count] = -1;
	return label_count++;
}

static void label_here(int label)
{
	labels[label] = code_count;
}

typedef struct leaf { const rule *rule; int action, label; } leaf; /* rule NULL: action alone */
static leaf leaves[64];
static int leaf_count;

static int leaf_find(const rule *r, int act)
{
	int i;

	if (r && r->count == 1) {
		act = r->clauses[0].action;
		r = NULL;
	}
	for (i = 0; i < leaf_count; i++)
		if (leaves[i].rule == r && (r || leaves[i].action == act))
			return i;
	if (leaf_count == 64)
		die("too many different rules");
	leaves[leaf_count] = (leaf){ r, act, NEXT };
	return leaf_count++;
}

typedef struct range { uint32_t first; int leaf; } range;

static void emit_tree(const range *at, int count, int label)
{
	int half = count / 2, right, left;

	if (label != NEXT)
		label_here(label);
	right = count - half > 1 ? label_new() : leaves[at[half].leaf].label;
	left = half > 1 ? NEXT : leaves[at[0].leaf].label;
	emit(OP_JGE, at[half].first, right, left);
	if (half > 1)
		emit_tree(at, half, NEXT);
	if (count - half > 1)
		emit_tree(at + half, count - half, right);
}

static void emit_leaf(const leaf *l);

/* A stretch of ranges with its leaves behind it: a jump reaches 255 instructions and no more. */
static void emit_block(const range *at, int count, int label)
{
	int i, j, right;

	if (label != NEXT)
		label_here(label);
	if (count > BLOCK_RANGES) {
		right = label_new();
		emit(OP_JGE, at[count / 2].first, right, NEXT);
		emit_block(at, count / 2, NEXT);
		emit_block(at + count / 2, count - count / 2, right);
		return;
	}
	for (i = 0; i < leaf_count; i++)
		leaves[i].label = label_new();
	emit_tree(at, count, NEXT);
	for (i = 0; i < leaf_count; i++) {
		for (j = 0; j < count && at[j].leaf != i; j++)
			;
		if (j < count)
			emit_leaf(&leaves[i]);
	}
}

static void emit_cond(const cond *c, int fail)
{
	int pass = label_new();
	uint32_t i;

	emit(OP_LD, 16 + 8 * c->arg + (c->high ? 4 : 0), 0, 0); /* seccomp_data.args, little-endian */
	if (c->mask != UINT32_MAX)
		emit(OP_AND, c->mask, 0, 0);
	for (i = 0; i < c->count; i++)
		emit(OP_JEQ, c->values[i], pass, i + 1 < c->count ? NEXT : fail);
	label_here(pass);
}

static int in_force(int act)
{
	if (act != ACTION_NET)
		return act;
	return host_net ? ACTION_ALLOW : 95;
}

static uint32_t ret_value(int act)
{
	act = in_force(act);
	if (act == ACTION_DONE) /* an errno of 0: success, and nothing was done */
		return RET_ERRNO;
	if (act == ACTION_ASK)
		return RET_ASK;
	return act == ACTION_ALLOW ? RET_ALLOW : RET_ERRNO | (uint32_t)act;
}

static void emit_leaf(const leaf *l)
{
	uint32_t i, j;

	label_here(l->label);
	if (!l->rule) {
		emit(OP_RET, ret_value(l->action), 0, 0);
		return;
	}
	for (i = 0; i < l->rule->count; i++) {
		const clause *c = &l->rule->clauses[i];
		int fail = label_new();

		for (j = 0; j < c->count; j++)
			emit_cond(&c->conds[j], fail);
		emit(OP_RET, ret_value(c->action), 0, 0);
		label_here(fail);
	}
}

static int make_ranges(int arch, range *out)
{
	static int of[MAX_NUMBER + 1];
	int count = 0, unknown = leaf_find(NULL, 38);
	size_t i;

	for (i = 0; i <= MAX_NUMBER; i++)
		of[i] = unknown;
	for (i = 0; i < rule_count; i++) {
		int n = rules[i].number[arch];

		if (n >= 0 && of[n] != unknown)
			die("number %d is named twice", n);
		if (n >= 0)
			of[n] = leaf_find(&rules[i], 0);
	}
	for (i = 0; i <= MAX_NUMBER; i++)
		if (!i || of[i] != of[i - 1])
			out[count++] = (range){ (uint32_t)i, of[i] };
	return count;
}

static int distance(int from, int label)
{
	int d = label == NEXT ? 0 : labels[label] - from - 1;

	if (d < 0 || d > 255)
		die("a jump of the filter is too long");
	return d;
}

static void make_filter(const char *name, int arch, const char *macro, uint32_t audit)
{
	static range ranges[MAX_NUMBER + 1];
	int count, i;

	code_count = label_count = leaf_count = 0;
	emit(OP_LD, 4, 0, 0); /* seccomp_data.arch */
	emit(OP_JEQ, audit, label_new(), NEXT);
	emit(OP_RET, RET_KILL, 0, 0);
	label_here(0);
	emit(OP_LD, 0, 0, 0); /* seccomp_data.nr */
	count = make_ranges(arch, ranges);
	emit_block(ranges, count, NEXT);
	printf("#if defined(%s) /* %d ranges */\nstatic const struct sock_filter seccomp_%s[] = {\n",
	       macro, count, name);
	for (i = 0; i < code_count; i++) {
		bool jump = code[i].code == OP_JEQ || code[i].code == OP_JGE;

		printf("\t{ 0x%02x, %d, %d, 0x%08x },\n", code[i].code,
		       jump ? distance(i, code[i].jt) : 0, jump ? distance(i, code[i].jf) : 0,
		       code[i].k);
	}
	printf("};\n#endif\n");
}

/* ---- OCI text ---------------------------------------------------------------------------------- */

static bool first_entry;

static void oci_begin(void)
{
	printf("\t\"%s\\n\"\n\t\"    { \\\"names\\\": [", first_entry ? "" : ",");
	first_entry = false;
}

static void oci_action(int act)
{
	if (act == ACTION_ALLOW)
		printf("], \\\"action\\\": \\\"SCMP_ACT_ALLOW\\\"");
	else if (act == ACTION_ASK)
		printf("], \\\"action\\\": \\\"SCMP_ACT_NOTIFY\\\"");
	else
		printf("], \\\"action\\\": \\\"SCMP_ACT_ERRNO\\\", \\\"errnoRet\\\": %d", act);
}

static void oci_simple(int act)
{
	size_t i;
	bool first = true;

	for (i = 0; i < rule_count; i++) {
		if (rules[i].count != 1 || in_force(rules[i].clauses[0].action) != act)
			continue;
		if (first)
			oci_begin();
		printf("%s\\\"%s\\\"", first ? "" : ", ", rules[i].name);
		first = false;
	}
	if (first)
		return;
	oci_action(act);
	printf(" }\"\n");
}

typedef struct test { uint32_t arg; uint64_t mask, value; } test;

static void oci_allow(const rule *r, int act, const test *tests, uint32_t count)
{
	uint32_t i;

	oci_begin();
	printf("\\\"%s\\\"", r->name);
	oci_action(act);
	printf(", \\\"args\\\": [");
	for (i = 0; i < count; i++)
		printf("%s{ \\\"index\\\": %u, \\\"value\\\": %llu, \\\"valueTwo\\\": %llu, "
		       "\\\"op\\\": \\\"SCMP_CMP_MASKED_EQ\\\" }",
		       i ? ", " : "", tests[i].arg, (unsigned long long)tests[i].mask,
		       (unsigned long long)tests[i].value);
	printf("] }\"\n");
}

/* Each combination of the conditions' values. */
static void oci_clause(const rule *r, const clause *c, uint32_t depth, test *tests)
{
	uint32_t i;

	if (depth == c->count || depth == MAX_CONDS) {
		oci_allow(r, in_force(c->action), tests, depth);
		return;
	}
	for (i = 0; i < c->conds[depth].count; i++) {
		const cond *at = &c->conds[depth];
		unsigned shift = at->high ? 32 : 0;

		tests[depth] = (test){ at->arg, (uint64_t)at->mask << shift,
			(uint64_t)at->values[i] << shift };
		oci_clause(r, c, depth + 1, tests);
	}
}

/* Everything but the values of c: OCI's loaders take several rules of one name as "or" and lose an
 * errno rule beside an unconditional allow, so the rest is written as prefixes that hold none. */
static void oci_rest(const rule *r, const cond *c, uint32_t bit, uint32_t mask, uint32_t value)
{
	bool touched = false;
	uint32_t i;

	for (i = 0; i < c->count; i++)
		touched |= (c->values[i] & mask) == value;
	if (!touched) {
		test t = { c->arg, mask, value };

		oci_allow(r, ACTION_ALLOW, &t, 1);
		return;
	}
	while (bit && !(c->mask & bit))
		bit >>= 1;
	if (!bit)
		return;
	oci_rest(r, c, bit >> 1, mask | bit, value);
	oci_rest(r, c, bit >> 1, mask | bit, value | bit);
}

static void oci_conditional(const rule *r)
{
	test tests[MAX_CONDS];
	bool refused = false;
	uint32_t i;

	for (i = 0; i + 1 < r->count; i++) {
		int act = in_force(r->clauses[i].action);

		if (act != ACTION_ALLOW && act != ACTION_ASK) {
			refused = true;
			continue;
		}
		if (refused) /* what an earlier clause refused must not be allowed by this one */
			die("rule \"%s\" cannot be written as OCI", r->name);
		oci_clause(r, &r->clauses[i], 0, tests);
	}
	if (r->clauses[r->count - 1].action != ACTION_ALLOW)
		return;
	if (r->count != 2 || r->clauses[0].count != 1)
		die("rule \"%s\" cannot be written as OCI", r->name);
	oci_rest(r, &r->clauses[0].conds[0], 0x80000000u, 0, 0);
}

static void make_oci(const char *name)
{
	size_t i;

	first_entry = true;
	printf("extern const char %s[];\nconst char %s[] =\n"
	       "\t\"{\\n\"\n\t\"  \\\"defaultAction\\\": \\\"SCMP_ACT_ERRNO\\\",\\n\"\n"
	       "\t\"  \\\"defaultErrnoRet\\\": 38,\\n\"\n"
	       "\t\"  \\\"architectures\\\": [\\\"SCMP_ARCH_X86_64\\\", \\\"SCMP_ARCH_AARCH64\\\"],\\n\"\n"
	       "\t\"  \\\"syscalls\\\": [\"\n",
	       name, name);
	oci_simple(ACTION_ALLOW);
	oci_simple(ACTION_ASK);
	oci_simple(1);
	oci_simple(13);
	oci_simple(38);
	oci_simple(95);
	for (i = 0; i < rule_count; i++)
		if (rules[i].count > 1)
			oci_conditional(&rules[i]);
	printf("\t\"\\n  ]\\n}\\n\";\n");
}

/* The rules from `first` on take the place of those of the same name. */
static void lay_over(size_t first)
{
	size_t i, j;

	for (i = first; i < rule_count; i++) {
		for (j = 0; j < first && strcmp(rules[j].name, rules[i].name); j++)
			;
		if (j == first)
			die("rule \"%s\" stands for none", rules[i].name);
		rules[j] = rules[i];
	}
	rule_count = first;
}

static void make_one(bool oci, const char *filter, const char *text)
{
	if (oci) {
		make_oci(text);
		return;
	}
	make_filter(filter, ARCH_X86, "__x86_64__", 0xc000003eu);
	make_filter(filter, ARCH_ARM, "__aarch64__", 0xc00000b7u);
}

int main(int argc, char **argv)
{
	static const char *const filters[] = { "code", "host_net", "place", "place_net" };
	static const char *const texts[] = { "lh_seccomp_oci_json", "lh_seccomp_oci_host_net",
		"lh_seccomp_oci_place", "lh_seccomp_oci_place_net" };
	bool oci = argc > 1 && !strcmp(argv[1], "oci");
	size_t first;
	int turn;

	if (argc != 5)
		return 2;
	read_lines(argv[2], read_line);
	printf("/* SPDX-License-Identifier: MIT */\n/* Generated by seccomp_gen.c out of "
	       "seccomp.table, seccomp_place.table and seccomp_worker.table. */\n");
	for (turn = 0; turn < 4; turn++) {
		if (turn == 2) {
			first = rule_count;
			read_lines(argv[3], read_line);
			lay_over(first);
		}
		host_net = turn & 1;
		make_one(oci, filters[turn], texts[turn]);
	}
	host_net = false;
	rule_count = 0;
	memset(rules, 0, sizeof rules);
	read_lines(argv[2], read_line);
	read_lines(argv[4], keep);
	drop_rest();
	make_one(oci, "worker", "lh_seccomp_oci_worker");
	return fflush(stdout) || ferror(stdout);
}
