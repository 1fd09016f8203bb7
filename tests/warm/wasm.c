/* SPDX-License-Identifier: MIT */
/*
 * wasm.c - runs on the backend wasm that take waiting workers over: two tenants by turns, each of which
 * leaves itself wherever it can, and looks for the other.
 *
 * usage: wasm root|user DIRECTORY-OF-SB-LAUNCH.  $LONG: a thousand runs of each language, and ten thousand to look for leaks.
 */
#include "world.h"
#include "../../src/wasm/job.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static sb_sandbox *hot;
static size_t runs = 100, many = 1000; /* a tenth of those of $LONG */

static int begin(void **state)
{
	static const char *const order[] = { "wasm", NULL };
	const sb_sandbox_options options = { .size = sizeof options, .order = order, .flags = SB_SANDBOX_WARM,
		.helper_dir = world_helpers() };

	(void)state;
	return sb_sandbox_new(&options, NULL, &hot, &world_error) < 0;
}

static int end(void **state)
{
	(void)state;
	sb_sandbox_free(hot);
	return world_children("sb-launch", NULL, 0) != 0 || world_children("sb-wasm", NULL, 0) != 0 ||
	       world_children(JOB_HOLDER_NAME, NULL, 0) != 0;
}

/* Each prints what it found of another run, a random number, the seconds since its own start, and what must be the
 * same in every run: the next descriptor. */
#define JS_SPY \
	"const bad = [], me = process.argv[2], see = (what, found) => { if (found) bad.push(what) };\n" \
	"see('global', globalThis.leak); globalThis.leak = me;\n" \
	"see('prototype', Object.prototype.leak); Object.defineProperty(Object.prototype, 'leak', { value: me });\n" \
	"for (const p of ['/work/x', '/tmp/x', '/home/sandbox/x', '/out/x', '/in/x', '/run/code/x']) {\n" \
	"  see(p, std.open(p, 'r')); const f = std.open(p, 'w'); if (f) { f.puts(me); f.close() } }\n" \
	"see('environment', std.getenv('TENANT') !== me || std.getenv('OF_' + (me === 'A' ? 'B' : 'A')));\n" \
	"see('arguments', process.argv.length !== 3); see('folder', process.cwd() !== '/work');\n" \
	"see('input', std.in.readAsString() !== 'in ' + me);\n" \
	"const made = std.open('/work/m.mjs', 'w'); made.puts(`export default '${me}'`); made.close();\n" \
	"see('code', (await import('/work/m.mjs')).default !== me);\n" \
	"const fd = os.open('/work/d', os.O_RDWR | os.O_CREAT);\n" \
	"console.log(bad.join() + '|' + Math.random() + '|' + performance.now() / 1000 + '|' + fd);\n"
static const struct { const char *language, *code; } spies[] = {
	{ "lua",
	  "local bad, me = {}, arg[1]\n"
	  "local function see(what, found) if found then bad[#bad + 1] = what end end\n"
	  "see('global', leak) leak = me\n"
	  "see('table', string.leak) string.leak = me\n"
	  "see('registry', package.loaded.leak) package.loaded.leak = me\n"
	  "for _, p in ipairs{'/work/x', '/tmp/x', '/home/sandbox/x', '/out/x', '/in/x', '/run/code/x'} do\n"
	  "  see(p, io.open(p)) local f = io.open(p, 'w') if f then f:write(me) f:close() end end\n"
	  "see('environment', os.getenv('TENANT') ~= me or os.getenv('OF_' .. (me == 'A' and 'B' or 'A')))\n"
	  "see('arguments', #arg ~= 1) io.open('d', 'w') see('folder', not io.open('/work/d'))\n"
	  "see('input', io.read('a') ~= 'in ' .. me)\n"
	  "local f = io.open('/work/m.lua', 'w') f:write('return ...' .. ', \"' .. me .. '\"') f:close()\n"
	  "package.path = '/work/?.lua' local name = require 'm' see('code', select(2, dofile('/work/m.lua')) ~= me or name ~= 'm')\n"
	  "print(table.concat(bad, ',') .. '|' .. math.random(0) .. '|' .. os.clock() .. '|-')\n" },
	{ "js", JS_SPY },
	{ "ts", "enum Tenant { A, B }\ntype Text = string;\n" JS_SPY },
	{ "python",
	  "import sys, os, builtins, random, time\n"
	  "bad, me = [], sys.argv[1]\n"
	  "def see(what, found):\n  if found: bad.append(what)\n"
	  "see('builtins', hasattr(builtins, 'leak')); builtins.leak = me\n"
	  "see('modules', 'leak' in sys.modules); sys.modules['leak'] = sys\n"
	  "for p in ('/work/x', '/tmp/x', '/home/sandbox/x', '/out/x', '/in/x', '/run/code/x'):\n"
	  "  see(p, os.path.exists(p))\n"
	  "  try: open(p, 'w').write(me)\n"
	  "  except OSError: pass\n"
	  "see('environment', os.environ.get('TENANT') != me or 'OF_' + ('B' if me == 'A' else 'A') in os.environ)\n"
	  "see('arguments', len(sys.argv) != 2); see('folder', os.getcwd() != '/work')\n"
	  "see('input', sys.stdin.read() != 'in ' + me); os.chdir('/tmp')\n"
	  "open('/work/m.py', 'w').write('who = ' + repr(me)); sys.path.insert(0, '/work'); import m; see('code', m.who != me)\n"
	  "print(','.join(bad), random.random(), time.monotonic(), os.open('/work/d', os.O_RDWR | os.O_CREAT), sep='|')\n" },
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(const char *language, const char *code, size_t len, bool other, sb_result **result)
{
	const char *const args[] = { other ? "B" : "A", NULL };
	const char *const env[] = { other ? "TENANT=B" : "TENANT=A", other ? "OF_B=1" : "OF_A=1", NULL };
	const sb_command command = { .size = sizeof command, .language = language, .code = code,
		.code_len = len, .args = args, .env = env, .input_kind = SB_INPUT_BYTES,
		.input = other ? "in B" : "in A", .input_len = 4 };

	return sb_run(hot, NULL, &command, NULL, result, &world_error);
}

/* Or the next run would be a cold one: not what is tested.  Nothing but workers is there between two runs. */
static void await_worker(void)
{
	double began = now();

	while (!world_children("sb-wasm", NULL, 0)) {
		if (now() - began > 60)
			fail_msg("no worker was started");
		usleep(1000);
	}
}

/* The first run of a kind is cold, and starts the workers of those that follow. */
static bool warm(const char *language, const char *code, size_t len)
{
	sb_result *r;
	int rc = run(language, code, len, false, &r);

	if (rc == SB_ERR_NOT_FOUND || rc == SB_ERR_BACKEND_UNAVAILABLE) {
		print_message("%s: %s: skipped\n", language, world_error.message);
		return false;
	}
	if (rc < 0)
		fail_msg("%s: %s", language, world_error.message);
	sb_result_free(r);
	await_worker();
	return true;
}

static void look(const char *language, const char *code, bool other, double *number, char same[40])
{
	double began, seconds = 0;
	char seen[40] = "";
	sb_result *r;

	await_worker();
	began = now();
	if (run(language, code, strlen(code), other, &r) < 0)
		fail_msg("%s: %s", language, world_error.message);
	if (sscanf(world_out(r), "|%lf|%lf|%39[^\n]", number, &seconds, seen) != 3 || seconds > now() - began ||
	    (same[0] && strcmp(same, seen)))
		fail_msg("%s: found \"%s\" %s, not %s", language, world_out(r), world_err(r), same);
	memcpy(same, seen, sizeof seen);
	sb_result_free(r);
}

static void no_channel(void **state)
{
	double *numbers = calloc(runs, sizeof *numbers);

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(spies); i++) {
		char same[40] = "";

		end(NULL);
		assert_int_equal(begin(NULL), 0);
		if (!warm(spies[i].language, spies[i].code, strlen(spies[i].code)))
			continue;
		for (size_t n = 0; n < runs; n++) {
			look(spies[i].language, spies[i].code, n & 1, &numbers[n], same);
			for (size_t before = 0; before < n; before++)
				if (numbers[before] == numbers[n])
					fail_msg("%s: runs %zu and %zu draw the same number", spies[i].language, before, n);
		}
	}
	free(numbers);
}

/* Of a worker that has drawn a hash seed already each run has another one, or the one that it asks for; and what the
 * snapshot holds is found with either. */
static void seeds(void **state)
{
	static const char code[] =
		"import keyword, sys\n"
		"bad = [n for m in list(sys.modules.values()) for n, v in list(vars(m).items()) if vars(m).get((n + 'x')[:-1]) is not v]\n"
		"bad += [w for w in keyword.kwlist if sys.intern((w + 'x')[:-1]) is not w or not keyword.iskeyword((w + 'x')[:-1])]\n"
		"bad += [w for w in list(sys.stdlib_module_names) if (w + 'x')[:-1] not in sys.stdlib_module_names]\n"
		"print(hash('a'), bad)\n";
	char seen[12][80];

	(void)state;
	if (!warm("python", code, sizeof code - 1))
		return;
	for (size_t n = 0; n < UNIT_LEN(seen); n++) {
		const char *const asked[] = { "PYTHONHASHSEED=7", NULL }, *const none[] = { NULL };
		const sb_command command = { .size = sizeof command, .language = "python", .code = code,
					     .code_len = sizeof code - 1, .env = n % 3 == 2 ? asked : none };
		sb_result *r;

		await_worker();
		if (sb_run(hot, NULL, &command, NULL, &r, &world_error))
			fail_msg("%s", world_error.message);
		snprintf(seen[n], sizeof seen[n], "%s", world_out(r));
		if (!strstr(seen[n], " []\n") || (n % 3 == 2 && strcmp(seen[n], "-1366541292 []\n")))
			fail_msg("run %zu: \"%s\" \"%s\"", n, world_out(r), world_err(r));
		for (size_t before = 0; before < n; before++)
			if (n % 3 != 2 && !strcmp(seen[before], seen[n]))
				fail_msg("runs %zu and %zu have one seed", before, n);
		sb_result_free(r);
	}
}

/* Traps if its memory or its global is not as new; then says who it is. */
#define MODULE(who)                                                                                  \
	"\0asm\1\0\0\0\1\14\2\140\4\177\177\177\177\1\177\140\0\0"                                   \
	"\2\43\1\26wasi_snapshot_preview1\10fd_write\0\0\3\2\1\1\5\3\1\0\1\6\6\1\177\1\101\0\13"       \
	"\7\23\2\6memory\2\0\6_start\0\1\12\53\1\51\0\101\300\0\50\2\0\4\100\0\13\101\300\0\101\1\66\2\0" \
	"\43\0\4\100\0\13\101\1\44\0\101\1\101\0\101\1\101\14\20\0\32\13"                               \
	"\13\20\1\0\101\0\13\12\10\0\0\0\2\0\0\0" who "\n"

static void raw_modules(void **state)
{
	static const char a[] = MODULE("A"), b[] = MODULE("B");
	sb_result *r;

	(void)state;
	if (!warm("wasm", a, sizeof a - 1))
		return;
	for (size_t n = 0; n < runs; n++) {
		await_worker();
		if (run("wasm", n & 1 ? b : a, sizeof a - 1, n & 1, &r) < 0)
			fail_msg("%s", world_error.message);
		assert_string_equal(world_out(r), n & 1 ? "B\n" : "A\n");
		assert_int_equal(sb_result_code(r), 0);
		sb_result_free(r);
	}
}

/* Who is shown a directory finds it, and nobody else does: two tenants and one who is shown nothing, by turns,
 * each from a worker that waits with just that. */
static int run_shown(const char *dir, const char *code, sb_result **result)
{
	const sb_limits limits = { .size = sizeof limits, .fs_bytes = SB_UNLIMITED, .fs_nodes = SB_UNLIMITED };
	const sb_spec spec = { .size = sizeof spec, .limits = &limits, .workspace = dir,
			       .workspace_mode = dir ? SB_WORKSPACE_WRITE : SB_WORKSPACE_NONE };
	const sb_command command = { .size = sizeof command, .language = "lua", .code = code, .code_len = strlen(code),
				     .cwd = dir };

	return sb_run(hot, &spec, &command, NULL, result, &world_error);
}

static void directories(void **state)
{
	char dir[2][40] = { "/tmp/sbtest-warm-A.XXXXXX", "/tmp/sbtest-warm-B.XXXXXX" }, code[600], path[80], said[40];
	sb_result *r;

	(void)state;
	if (!warm("lua", "print(1)", 8))
		return;
	for (int i = 0; i < 2; i++)
		assert_non_null(mkdtemp(dir[i]));
	for (size_t n = 0; n < (runs < 60 ? runs : 60); n++) {
		const char *mine = n % 3 == 2 ? NULL : dir[n % 3];

		snprintf(code, sizeof code,
			 "local seen = {} for _, d in ipairs{'%s', '%s'} do local f = io.open(d .. '/n', 'a+') "
			 "if f then f:seek('set') seen[#seen + 1] = d:match('-(%%u)') .. #f:read('a') f:write('x') f:close() end end "
			 "print(table.concat(seen, ','))", dir[0], dir[1]);
		if (n >= 3)
			await_worker();
		if (run_shown(mine, code, &r))
			fail_msg("%s", world_error.message);
		snprintf(said, sizeof said, mine ? "%c%zu\n" : "\n", "AB"[n % 3 % 2], n / 3);
		if (strcmp(world_out(r), said))
			fail_msg("run %zu: \"%s\" \"%s\", not \"%s\"", n, world_out(r), world_err(r), said);
		sb_result_free(r);
	}
	/* another directory at the same path is not what a worker waits with */
	snprintf(path, sizeof path, "%s/n", dir[0]);
	assert_int_equal(unlink(path) | rmdir(dir[0]) | mkdir(dir[0], 0755), 0);
	snprintf(code, sizeof code, "print(io.open('%s', 'r'))", path);
	assert_int_equal(run_shown(dir[0], code, &r), 0);
	assert_int_equal(strncmp(world_out(r), "nil", 3), 0);
	sb_result_free(r);
	snprintf(path, sizeof path, "%s/n", dir[1]);
	assert_int_equal(unlink(path) | rmdir(dir[0]) | rmdir(dir[1]), 0);
}

/* Its calls have the stack that was asked for, cold and warm, and a worker with another is not taken. */
static void stack(void **state)
{
	static const char code[] = "function f(n) { return n ? 1 + f(n - 1) : 0 }\nconsole.log(f(700))";
	static const uint64_t bytes[] = { 0, 128 << 10, 0, 128 << 10, 8 << 20 };

	(void)state;
	if (!warm("js", "1", 1))
		return;
	for (size_t n = 0; n < UNIT_LEN(bytes); n++) {
		const sb_wasm_options options = { .size = sizeof options, .stack_bytes = bytes[n] };
		const sb_spec spec = { .size = sizeof spec, .wasm_options = &options };
		const sb_command command = { .size = sizeof command, .language = "js", .code = code,
					     .code_len = sizeof code - 1 };
		bool small = bytes[n] && bytes[n] < 8 << 20;
		sb_result *r;

		await_worker();
		if (sb_run(hot, &spec, &command, NULL, &r, &world_error))
			fail_msg("%s", world_error.message);
		if (strcmp(world_out(r), small ? "" : "700\n") || (sb_result_outcome(r) == SB_OUTCOME_SIGNALED) != small)
			fail_msg("run %zu: %s", n, sb_result_json(r));
		sb_result_free(r);
	}
}

/* What a worker has rehearsed leaves nothing: a run that takes it over finds what a cold one finds. */
static void nothing_rehearsed(void **state)
{
	static const char code[] =
		"const walk = (o, at, depth) => { for (const k of Reflect.ownKeys(o)) {\n"
		"  const d = Object.getOwnPropertyDescriptor(o, k), v = d.value\n"
		"  console.log(`${at}.${String(k)} ${typeof v} ${d.enumerable}${d.configurable}${d.writable}`, typeof v === 'string' ? v : '')\n"
		"  if (depth && v && (typeof v === 'object' || typeof v === 'function') && v !== globalThis) walk(v, `${at}.${String(k)}`, depth - 1)\n"
		"} }\n"
		"walk(globalThis, '', 2)\n"
		"console.log(scriptArgs, process.argv, process.env, process.exitCode, std.getenviron())\n"
		"for (const d of ['/', '/tmp', '/work', '/in', '/out']) console.log(d, os.readdir(d), os.stat(d)[0]?.ino)\n"
		"console.count(); console.timeEnd('x'); console.log(new Error('e').stack)\n";
	static const char *const languages[] = { "js", "ts" };

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(languages); i++) {
		sb_result *r[2];
		size_t at;

		if (!warm(languages[i], "1", 1))
			continue;
		assert_int_equal(run(languages[i], code, sizeof code - 1, false, &r[1]), 0);
		sb_sandbox_free(hot);
		assert_int_equal(begin(NULL), 0); /* no worker waits */
		assert_int_equal(run(languages[i], code, sizeof code - 1, false, &r[0]), 0);
		for (at = 0; world_out(r[0])[at] && world_out(r[0])[at] == world_out(r[1])[at];)
			at++;
		if (at < 4096 || world_out(r[0])[at] != world_out(r[1])[at])
			fail_msg("%s: at %zu: cold \"%.80s\" warm \"%.80s\" %s", languages[i], at, world_out(r[0]) + at,
				 world_out(r[1]) + at, world_err(r[0]));
		sb_result_free(r[0]);
		sb_result_free(r[1]);
	}
}

/* A worker that is killed while it waits is no failure of a run. */
static void killed(void **state)
{
	static const char code[] = "print(1)";
	sb_result *r;
	pid_t pids[8];

	(void)state;
	if (!warm("lua", code, sizeof code - 1))
		return;
	for (size_t i = 0, count = world_children("sb-wasm", pids, 8); i < count && i < 8; i++) {
		kill(pids[i], SIGKILL);
		while (!kill(pids[i], 0))
			usleep(1000);
	}
	assert_int_equal(run("lua", code, sizeof code - 1, false, &r), 0);
	assert_string_equal(world_out(r), "1\n");
	sb_result_free(r);
}

/* Limits are the worker's as much as a cold run's, and each ends as that does. */
static void limits(void **state)
{
	static const struct { const char *code; int outcome, error; } rows[] = {
		{ "local t = {} while true do t[#t + 1] = ('x'):rep(1 << 20) .. #t end", SB_OUTCOME_BUDGET_EXCEEDED,
		  SB_ERR_MEMORY_LIMIT },
		{ "while true do end", SB_OUTCOME_BUDGET_EXCEEDED, SB_ERR_CPU_LIMIT },
		{ "os.exit(7)", SB_OUTCOME_EXITED, 0 },
	};
	const sb_limits few = { .size = sizeof few, .memory_bytes = 32u << 20, .cpu_ms = 2000, .wall_ms = 100000 };
	const sb_spec spec = { .size = sizeof spec, .limits = &few };

	(void)state;
	for (size_t i = 0; i < 2 * UNIT_LEN(rows); i++) { /* the first one is cold */
		const char *code = rows[i % UNIT_LEN(rows)].code;
		const sb_command command = { .size = sizeof command, .language = "lua", .code = code,
			.code_len = strlen(code) };
		sb_result *r;
		int rc = sb_run(hot, &spec, &command, NULL, &r, &world_error);

		if (rc == SB_ERR_NOT_FOUND || rc == SB_ERR_BACKEND_UNAVAILABLE)
			return;
		if (rc < 0)
			fail_msg("%s", world_error.message);
		if (sb_result_outcome(r) != rows[i % UNIT_LEN(rows)].outcome ||
		    sb_result_error(r) != rows[i % UNIT_LEN(rows)].error)
			fail_msg("row %zu: %s", i, sb_result_json(r));
		sb_result_free(r);
	}
}

/* More than the pipes hold, at once and after a while, and what is said before a long silence. */
static void output(void **state)
{
	static const char code[] = "for i = 1, 30 do io.write(('x'):rep(10000)) io.stderr:write(('y'):rep(5000)) end "
				   "local t = os.clock() while os.clock() - t < 0.02 do end io.write('z')";

	(void)state;
	if (!warm("lua", code, sizeof code - 1))
		return;
	for (size_t n = 0; n < 10; n++) {
		size_t out = 0, err = 0;
		sb_result *r;

		await_worker();
		assert_int_equal(run("lua", code, sizeof code - 1, false, &r), 0);
		assert_non_null(strchr(sb_result_output(r, SB_STDOUT, &out), 'z'));
		sb_result_output(r, SB_STDERR, &err);
		assert_int_equal(out, 300001);
		assert_int_equal(err, 150000);
		sb_result_free(r);
	}
}

/* ---- What holds a worker's memory ------------------------------------------------------------------ */

static bool read_of(pid_t pid, const char *name, char *text, size_t cap)
{
	char path[64];
	FILE *f;
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, cap - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	return n > 0;
}

static bool is_killed(pid_t pid)
{
	static const char *const rows[] = { "SigPnd:\t%llx", "ShdPnd:\t%llx" };
	char text[4096];
	unsigned flags = 0;

	if (!read_of(pid, "stat", text, sizeof text) || /* it is gone; or is on its way (PF_EXITING) */
	    (sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & 4))
		return true;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		unsigned long long pending = 0;
		const char *at = read_of(pid, "status", text, sizeof text) ? strstr(text, i ? "ShdPnd:" : "SigPnd:") : NULL;

		if (!at || (sscanf(at, rows[i], &pending) == 1 && pending >> (SIGKILL - 1) & 1))
			return true;
	}
	return false;
}

/* Its worker is there: it belongs to one that waits. */
static bool has_worker(pid_t pid)
{
	char text[512], parent[512];
	int number = 0;

	return read_of(pid, "stat", text, sizeof text) && sscanf(strrchr(text, ')') + 1, " %*c %d", &number) == 1 &&
	       read_of(number, "stat", parent, sizeof parent) && strstr(parent, "(sb-wasm)") && !strstr(parent, ") Z");
}

/* With the answer nothing of a run can run any more: of its worker there is but a process that has been killed. */
static void nothing_runs(void **state)
{
	static const char *const programs[][2] = { { "lua", "print(1)" }, { "lua", "error('x')" }, { "js", "console.log(1)" } };
	size_t held = 0, taken_apart = 0;

	(void)state;
	for (size_t n = 0; n < 3 * runs; n++) {
		const char *language = programs[n / runs][0], *code = programs[n / runs][1];
		pid_t pids[64];
		sb_result *r;

		if (n % runs == 0 && !warm(language, code, strlen(code)))
			return;
		await_worker();
		assert_int_equal(run(language, code, strlen(code), false, &r), 0);
		size_t count = world_children(JOB_HOLDER_NAME, pids, UNIT_LEN(pids));

		for (size_t i = 0; i < count && i < UNIT_LEN(pids); i++) {
			held++;
			if (has_worker(pids[i]))
				continue;
			taken_apart++;
			if (!is_killed(pids[i]))
				fail_msg("%s, run %zu: process %d could still run", language, n, (int)pids[i]);
		}
		sb_result_free(r);
	}
	print_message("%zu looks at processes that hold memory, %zu of them of an ended worker\n", held, taken_apart);
	assert_true(held > 0);
}

/* ---- A module that comes again and again is loaded before its run ------------------------------------- */

/* It has a start function, which runs as it is instantiated. */
#define STARTS                                                                                              \
	"\0asm\1\0\0\0\1\22\3`\4\177\177\177\177\1\177`\0\0`\2\177\177\1\177\2K\2\26wasi_snapshot_preview1"   \
	"\10fd_write\0\0\26wasi_snapshot_preview1\16args_sizes_get\0\2\3\3\2\1\1\5\3\1\0\1\7\23\2\6memory\2" \
	"\0\6_start\0\3\10\1\2\n)\2\13\0A\300\0A\304\0\20\1\32\13\33\0A\10A0A\300\0(\2\0j:\0\0A\1A\0A\1A\14" \
	"\20\0\32\13\13\20\1\0A\0\13\n\10\0\0\0\2\0\0\0000\n"

/* A worker that waits and has a memory of a guest's: 0 = there is none. */
static pid_t with_memory(void)
{
	pid_t pids[64];
	size_t count = world_children("sb-wasm", pids, UNIT_LEN(pids));

	for (size_t i = 0; i < count && i < UNIT_LEN(pids); i++) {
		char text[4096];
		unsigned long kib = 0;
		const char *at = read_of(pids[i], "status", text, sizeof text) ? strstr(text, "VmSize:") : NULL;

		if (at && sscanf(at, "VmSize: %lu", &kib) == 1 && kib >= 4ul << 20)
			return pids[i];
	}
	return 0;
}

static pid_t await_memory(void)
{
	double began = now();
	pid_t pid;

	while (!(pid = with_memory())) {
		if (now() - began > 60)
			fail_msg("no worker waits with the module");
		usleep(1000);
	}
	return pid;
}

static void say(const char *code, size_t len, bool other, const char *said)
{
	sb_result *r;

	await_worker();
	if (run("wasm", code, len, other, &r) < 0)
		fail_msg("%s", world_error.message);
	if (strcmp(world_out(r), said) || sb_result_code(r))
		fail_msg("\"%s\" \"%s\", not \"%s\"", world_out(r), world_err(r), said);
	sb_result_free(r);
}

static void ahead(void **state)
{
	static const char a[] = MODULE("A"), b[] = MODULE("B");
	size_t all = runs < 60 ? runs : 60;
	pid_t waits;

	(void)state;
	if (!warm("wasm", a, sizeof a - 1))
		return;
	assert_int_equal(with_memory(), 0);
	say(a, sizeof a - 1, false, "A\n");
	waits = await_memory();
	/* as two runs in a row were its, it waits with this one: for it, and for no other */
	for (double began = now(); !is_killed(waits);) {
		assert_true(now() - began < 60);
		say(a, sizeof a - 1, false, "A\n");
	}
	waits = await_memory();
	say(b, sizeof b - 1, true, "B\n");
	assert_false(is_killed(waits));
	say(b, sizeof b - 1, true, "B\n");
	for (double began = now(); !is_killed(waits); usleep(1000))
		assert_true(now() - began < 60); /* what it waits for does not come any more */
	for (size_t n = 0; n < all; n++) {
		bool other = n / 3 & 1;

		say(other ? b : a, sizeof a - 1, other, other ? "B\n" : "A\n");
		if (n % 3 == 1)
			await_memory();
	}
}

/* Nothing of a module runs ahead: what has a start function gets its memory when its run is there. */
static void not_started(void **state)
{
	static const char starts[] = STARTS;

	(void)state;
	if (!warm("wasm", starts, sizeof starts - 1))
		return;
	for (size_t n = 0; n < 20; n++) {
		assert_int_equal(with_memory(), 0);
		say(starts, sizeof starts - 1, n & 1, "0\n");
	}
}

static void descriptors(void **state)
{
	static const char code[] = "print(1)";
	sb_result *r;
	int before;

	(void)state;
	if (!warm("lua", code, sizeof code - 1))
		return;
	sb_sandbox_free(hot);
	before = open_descriptors();
	assert_int_equal(begin(NULL), 0);
	for (size_t n = 0; n < runs; n++) {
		assert_int_equal(run("lua", code, sizeof code - 1, n & 1, &r), 0);
		sb_result_free(r);
	}
	sb_sandbox_free(hot);
	hot = NULL;
	assert_int_equal(open_descriptors(), before);
}

/* ---- Before a run -------------------------------------------------------------------------------- */

enum { PARTS = 1200, PART = 12000 };

static uint8_t *number(uint8_t *at, uint32_t n)
{
	for (; n >= 128; n >>= 7)
		*at++ = (uint8_t)(n | 128);
	*at++ = (uint8_t)n;
	return at;
}

/* A module that takes a compiler seconds, and is another one each time: PARTS functions, each of PART bytes of sums.
 * free() it. */
static uint8_t *large_module(size_t *len)
{
	static const uint8_t head[] = "\0asm\1\0\0\0" "\1\4\1\x60\0\0" "\3";
	static const uint8_t exports[] = "\5\3\1\0\1" "\7\x13\2\6memory\2\0\6_start\0\0" "\12";
	uint8_t *data = malloc((size_t)PARTS * (PART + 16) + 4096), *at = data, *size, *begin;

	assert_non_null(data);
	memcpy(at, head, sizeof head - 1);
	at = number(at + sizeof head - 1, PARTS + 2);
	at = number(at, PARTS);
	memset(at, 0, PARTS);
	at += PARTS;
	memcpy(at, exports, sizeof exports - 1);
	size = at + sizeof exports - 1;
	begin = at = number(size, PARTS * (PART + 8)); /* of as many bytes as what it becomes has */
	at = number(at, PARTS);
	for (int n = 0; n < PARTS; n++) {
		uint8_t *body = number(at, PART), *end = body + PART;

		memcpy(body, "\1\1\177\40\0", 5); /* a local of type i32, on the stack */
		for (at = body + 5; end - at > 8; at += 5)
			memcpy(at, n & 1 ? "\40\0\x6c\x45\x45" : "\x41\7\x6a\x45\x69", 5);
		while (at < end - 2)
			*at++ = 1; /* nop */
		memcpy(at, "\32\13", 2);
		at = end;
	}
	assert_ptr_equal(number(size, (uint32_t)(at - begin)), begin);
	/* a section of nobody's, so that no cache has ever seen it */
	memcpy(at, "\0\21\0", 3);
	snprintf((char *)at + 3, 17, "%016lx", (unsigned long)(now() * 1e9));
	*len = (size_t)(at + 3 + 16 - data);
	return data;
}

/* The caller's deadline covers what comes before the guest, and nothing of that goes on afterwards. */
static void preparation(void **state)
{
	const sb_wait wait = { .size = sizeof wait, .timeout_ms = 200 };
	sb_command command = { .size = sizeof command, .language = "wasm" };
	uint8_t *module = large_module(&command.code_len);
	const double before = now();
	sb_result *r = NULL;

	(void)state;
	command.code = module;
	int rc = sb_run(hot, NULL, &command, &wait, &r, &world_error);

	free(module);
	if (rc == SB_ERR_BACKEND_UNAVAILABLE)
		return;
	assert_int_equal(rc, SB_ERR_TIMEOUT);
	assert_null(r);
	assert_true(now() - before < 30);
	world_await("sb-wasmc", 0);
	assert_int_equal(sb_run(hot, NULL, &(sb_command){ .size = sizeof command, .language = "lua", .code = "print(1)",
							  .code_len = 8 }, NULL, &r, &world_error), 0);
	sb_result_free(r);
}

/* ---- What is left of many runs ------------------------------------------------------------------- */

typedef struct held { size_t descriptors, mounts, bytes; } held;

static size_t resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t mounts(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	size_t n = 0;

	for (int c; f && (c = fgetc(f)) != EOF;)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

static void run_many(size_t count)
{
	static const char code[] = "print(1)";
	sb_result *r;

	for (size_t n = 0; n < count; n++) {
		if (run("lua", code, sizeof code - 1, n & 1, &r) < 0)
			fail_msg("%s", world_error.message);
		assert_string_equal(world_out(r), "1\n");
		sb_result_free(r);
	}
}

/* Counted while the object's workers are gone, of which there are sometimes more and sometimes fewer. */
static held look_at_rest(void)
{
	sb_sandbox_free(hot);
	hot = NULL;
	world_await("sb-launch", 0);
	return (held){ .descriptors = open_descriptors(), .mounts = mounts(), .bytes = resident() };
}

static void no_leak(void **state)
{
	static const char code[] = "print(1)";
	held before, after;

	(void)state;
	if (!warm("lua", code, sizeof code - 1))
		return;
	run_many(many / 20);
	before = look_at_rest();
	assert_int_equal(begin(NULL), 0);
	run_many(many);
	after = look_at_rest();
	assert_int_equal(after.descriptors, before.descriptors);
	assert_int_equal(after.mounts, before.mounts);
	assert_int_equal(world_children("sb-wasm", NULL, 0), 0);
	print_message("memory: %zu, then %zu KiB\n", before.bytes / 1024, after.bytes / 1024);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(after.bytes < before.bytes + before.bytes / 100 + 256 * 1024 * (many < 10000));
#endif
}

#define ALONE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv)
{
	/* each with a sandbox object of its own: what waits is of one kind, or of the test's own kinds */
	const struct CMUnitTest tests[] = {
		ALONE(no_channel), ALONE(seeds), ALONE(raw_modules), ALONE(ahead), ALONE(not_started), ALONE(killed),
		ALONE(directories), ALONE(stack), ALONE(nothing_rehearsed), ALONE(limits), ALONE(output), ALONE(nothing_runs), ALONE(descriptors),
		ALONE(preparation), ALONE(no_leak),
	};
	int rc = world_begin(argc, argv);

	if (getenv("LONG")) {
		runs *= 10;
		many *= 10;
	}
	return rc ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
