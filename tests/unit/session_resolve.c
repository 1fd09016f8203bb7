/* SPDX-License-Identifier: MIT */
/* From what was asked to what runs: the object's options, the operator's word, walls, routes. */
#include "session_world.h"

/* ---- the object -------------------------------------------------------------------------------- */

static int made(sb_sandbox_options o)
{
	sb_sandbox *sandbox = NULL;

	o.size = o.size ? o.size : sizeof o;
	memset(&last, 0, sizeof last);
	int code = sb_sandbox_new(&o, NULL, &sandbox, &last);

	sb_sandbox_free(sandbox);
	return code;
}

static void object_options(void **state)
{
	const sb_backend *const twice[] = { &fake_backend, &fake_backend, NULL };
	sb_backend alias = fake_other_backend, broken = fake_other_backend;
	const char *const sham[] = { "sham", NULL };
	const sb_backend *const by_alias[] = { &fake_backend, &alias, NULL };
	const sb_backend *const lacking[] = { &broken, NULL };
	const sb_limits negative = { .size = sizeof negative, .wall_ms = (uint64_t)-5 };
	const sb_limits small = { .size = sizeof small, .memory_bytes = 512 << 10 };
	const sb_secret secret = { .size = sizeof secret, .name = "x" };
	const sb_secret *const secrets[] = { &secret, NULL };
	const sb_command named = { .size = sizeof named, .argv = sham };
	const sb_spec home_ws = { .size = sizeof home_ws, .workspace = home };

	(void)state;
	alias.aliases = sham;
	broken.reap = NULL;
	assert_int_equal(made((sb_sandbox_options){ .backends = both }), 0);
	assert_int_equal(made((sb_sandbox_options){ .backends = twice }), SB_ERR_CONFLICT);
	assert_int_equal(made((sb_sandbox_options){ .backends = by_alias }), SB_ERR_CONFLICT);
	assert_non_null(strstr(last.message, "sham"));
	assert_int_equal(made((sb_sandbox_options){ .backends = lacking }), SB_ERR_INVALID);
	assert_int_equal(made((sb_sandbox_options){ .order = LIST("linx") }), SB_ERR_NOT_FOUND);
	assert_int_equal(made((sb_sandbox_options){ .flags = 1u << 20 }), SB_ERR_UNSUPPORTED);
	assert_int_equal(made((sb_sandbox_options){ .flags = SB_SANDBOX_WARM }), 0);
	assert_int_equal(made((sb_sandbox_options){ .secrets = secrets }), SB_ERR_UNSUPPORTED);
	assert_int_equal(made((sb_sandbox_options){ .audit_fd = 999 }), SB_ERR_INVALID);
	assert_int_equal(made((sb_sandbox_options){ .audit_fd = -3 }), SB_ERR_INVALID);
	assert_int_equal(made((sb_sandbox_options){ .default_limits = &negative }),
			 SB_ERR_INVALID_LIMITS);
	assert_int_equal(made((sb_sandbox_options){ .default_limits = &small }),
			 SB_ERR_INVALID_LIMITS);
	assert_int_equal(made((sb_sandbox_options){ .operator_command = &named }),
			 SB_ERR_UNSUPPORTED);
	assert_int_equal(made((sb_sandbox_options){ .operator_spec = &home_ws }), SB_ERR_FORBIDDEN);
	assert_int_equal(sb_sandbox_new(NULL, NULL, NULL, &last), SB_ERR_INVALID);
	sb_sandbox_options short_one = { .size = 3 };

	assert_true(made(short_one) < 0 || short_one.size == 3);
	sb_sandbox_free(NULL);
}

static void packs_checked(void **state)
{
	const sb_pack_way way = { .size = sizeof way, .backend = "linux", .find = LIST("sh"),
				  .run = LIST("sh", "{code}", "{args}"), .code_file = "x.sh" };
	const sb_pack_way *const ways[] = { &way, NULL };
	const sb_pack one = { .size = sizeof one, .name = "one", .aliases = LIST("py"), .ways = ways };
	const sb_pack two = { .size = sizeof two, .name = "two", .aliases = LIST("py"), .ways = ways };
	const sb_pack *const clash[] = { &one, &two, NULL };
	const sb_pack *const fine[] = { &one, NULL };
	const sb_pack *pack = NULL;

	(void)state;
	assert_int_equal(made((sb_sandbox_options){ .packs = clash }), SB_ERR_INVALID_PACK);
	sb_sandbox *sandbox = make((sb_sandbox_options){ .packs = fine });

	assert_string_equal(sb_sandbox_languages(sandbox)[0], "one");
	assert_null(sb_sandbox_languages(sandbox)[1]);
	assert_int_equal(sb_sandbox_pack(sandbox, " PY ", &pack, NULL), 0);
	assert_string_equal(pack->name, "one");
	assert_ptr_not_equal(pack, &one); /* a copy: the caller's may go */
	assert_int_equal(sb_sandbox_pack(sandbox, "cobol", &pack, NULL), SB_ERR_UNKNOWN_LANGUAGE);
	sb_sandbox_free(sandbox);
}

/* ---- the operator's word ------------------------------------------------------------------------- */

static int overruled_count;
static int count_overruled(void *user, const sb_audit *audit)
{
	(void)user;
	overruled_count += audit->what == SB_AUDIT_OVERRULED;
	return 0;
}

static void merge_env_and_net(void **state)
{
	const sb_env fixed_env = { .size = sizeof fixed_env, .base = SB_ENV_LIST,
				   .allow = LIST("NOPE"), .inject = LIST("A=operator", "B=operator") };
	const sb_network deny = { .size = sizeof deny, .mode = SB_NET_DENY_ALL };
	const sb_network host = { .size = sizeof host, .mode = SB_NET_HOST };
	const sb_spec fixed = { .size = sizeof fixed, .env = &fixed_env, .network = &deny };
	const sb_env wide = { .size = sizeof wide, .base = SB_ENV_INHERIT,
			      .inject = LIST("A=caller", "C=caller") };
	const sb_spec spec = { .env = &wide, .network = &host };
	const sb_sandbox_options o = { .operator_spec = &fixed, .audit = count_overruled };

	(void)state;
	overruled_count = 0;
	for (int i = 0; i < 2; i++) { /* twice: nothing leaks from one call to the next */
		assert_int_equal(run_full(o, spec, (sb_command){ 0 }, NULL), 0);
		assert_int_equal(got.net_mode, SB_NET_DENY_ALL);
		assert_int_equal(got.env_count, 3);
		assert_true(has_env("A=caller") && has_env("B=operator") && has_env("C=caller"));
	}
	assert_int_equal(overruled_count, 4);
}

static void merge_unset_keeps(void **state)
{
	const sb_spec empty = { .size = sizeof empty };
	const sb_network deny = { .size = sizeof deny, .mode = SB_NET_DENY_ALL };
	const sb_limits mine = { .size = sizeof mine, .memory_bytes = 5 << 20, .wall_ms = 7000 };
	const sb_spec runner = { .network = &deny, .limits = &mine, .profile = SB_PROFILE_RUNNER };

	(void)state;
	assert_int_equal(run_full((sb_sandbox_options){ .operator_spec = &empty }, runner,
				  (sb_command){ 0 }, NULL),
			 0);
	assert_int_equal(got.net_mode, SB_NET_DENY_ALL);
	assert_int_equal(got.limits.memory_bytes, 5 << 20);
	assert_int_equal(got.limits.wall_ms, 7000);
}

static void merge_limits(void **state)
{
	static const struct {
		uint64_t fixed, caller, want;
	} wall[] = { { 0, 0, SB_UNLIMITED }, { 0, 500, 500 },	 { 900, 0, 900 },
		     { 900, 500, 500 },	     { 500, 900, 500 }, { 700, 700, 700 } };

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(wall); i++) {
		const sb_limits fixed = { .size = sizeof fixed, .wall_ms = wall[i].fixed,
					  .memory_bytes = 64 << 20 };
		const sb_limits caller = { .size = sizeof caller, .wall_ms = wall[i].caller,
					   .memory_bytes = 16ull << 30 };
		const sb_spec o = { .size = sizeof o, .limits = &fixed };

		assert_int_equal(run_full((sb_sandbox_options){ .operator_spec = &o },
					  (sb_spec){ .limits = &caller }, (sb_command){ 0 }, NULL),
				 0);
		assert_int_equal(got.limits.wall_ms, wall[i].want);
		assert_int_equal(got.limits.memory_bytes, 64 << 20);
	}
	const sb_limits defaults = { .size = sizeof defaults, .wall_ms = 3000 };
	const sb_limits memory = { .size = sizeof memory, .memory_bytes = 32 << 20 };

	assert_int_equal(run_full((sb_sandbox_options){ .default_limits = &defaults },
				  (sb_spec){ .limits = &memory }, (sb_command){ 0 }, NULL),
			 0);
	assert_int_equal(got.limits.wall_ms, 3000);
	assert_int_equal(got.limits.memory_bytes, 32 << 20);
}

static void merge_files(void **state)
{
	char data[PATH_MAX + 16], secret[PATH_MAX + 32];

	(void)state;
	snprintf(data, sizeof data, "%s/data", top);
	snprintf(secret, sizeof secret, "%s/data/a1", top);
	const sb_file_rule show = { .size = sizeof show, .path = data, .access = SB_FILE_READ };
	const sb_file_rule hide = { .size = sizeof hide, .path = secret, .access = SB_FILE_HIDE };
	const sb_file_rule grab = { .size = sizeof grab, .path = "/etc", .access = SB_FILE_WRITE };
	const sb_file_rule *const caller[] = { &grab, &hide, NULL };
	const sb_spec fixed = { .size = sizeof fixed, .files = ONE(show) };

	assert_int_equal(run_full((sb_sandbox_options){ .operator_spec = &fixed },
				  (sb_spec){ .files = caller }, (sb_command){ 0 }, NULL),
			 0);
	assert_true(has_rule("read %s", data) || has_rule("ro %s", data));
	assert_true(has_rule("hide %s", secret));
	for (size_t i = 0; i < got.rule_count; i++)
		assert_null(strstr(got.rules[i], " /etc"));
}

static void merge_command(void **state)
{
	const sb_command fixed = { .size = sizeof fixed, .cwd = "sub" };
	const sb_sandbox_options o = { .operator_command = &fixed };

	(void)state;
	assert_int_equal(run_full(o, (sb_spec){ 0 }, (sb_command){ 0 }, NULL), 0);
	assert_string_equal(got.cwd + strlen(ws), "/sub");
	assert_int_equal(run_full(o, (sb_spec){ 0 }, (sb_command){ .cwd = "." }, NULL), 0);
	assert_string_equal(got.cwd, ws);
}

/* What the operator asked for is not the caller's to give up. */
static void weaker_is_the_operators(void **state)
{
	uint32_t levels[SB_WALL_COUNT];
	const sb_spec fixed = { .size = sizeof fixed,
				.require = SB_WALL_BIT(SB_WALL_PROCESSES) };

	(void)state;
	for (int i = 0; i < SB_WALL_COUNT; i++)
		levels[i] = i == SB_WALL_PROCESSES ? SB_LEVEL_NONE : SB_LEVEL_HARD;
	const fake_script script = { .size = sizeof script, .backend = "fake", .levels = levels };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const sb_command c = { .size = sizeof c, .argv = LIST("true") };
	sb_spec spec = { .size = sizeof spec, .other_options = options,
			 .allow_weaker = SB_WALL_BIT(SB_WALL_PROCESSES) };
	sb_result *result = NULL;
	sb_sandbox *sandbox = make((sb_sandbox_options){ .operator_spec = &fixed });

	assert_int_equal(sb_run(sandbox, &spec, &c, NULL, &result, &last), SB_ERR_UNENFORCEABLE);
	assert_int_equal(fake_seen.called[FAKE_AT_CREATE], 0);
	assert_non_null(strstr(last.message, "processes"));
	sb_sandbox_free(sandbox);
	sandbox = make((sb_sandbox_options){ 0 });
	spec.require = 0;
	assert_int_equal(sb_run(sandbox, &spec, &c, NULL, &result, &last), 0);
	sb_result_free(result);
	sb_sandbox_free(sandbox);
}

/* ---- walls ------------------------------------------------------------------------------------------ */

static int with_level(int wall, uint32_t level, sb_spec spec)
{
	uint32_t levels[SB_WALL_COUNT];
	sb_result *result = NULL;

	for (int i = 0; i < SB_WALL_COUNT; i++)
		levels[i] = i == wall ? level : SB_LEVEL_HARD;
	const fake_script script = { .size = sizeof script, .backend = "fake", .levels = levels };
	const sb_other_options *const options[] = { FAKE_OPTIONS(&script), NULL };
	const sb_command c = { .size = sizeof c, .argv = LIST("true") };
	sb_sandbox *sandbox = make((sb_sandbox_options){ 0 });

	spec.size = sizeof spec;
	spec.other_options = options;
	int code = sb_run(sandbox, &spec, &c, NULL, &result, &last);
	int created = fake_seen.called[FAKE_AT_CREATE];

	sb_result_free(result);
	sb_sandbox_free(sandbox);
	assert_int_equal(created, code == 0);
	return code;
}

static void never_weaker_in_silence(void **state)
{
	static const int profile[] = { SB_WALL_FILES, SB_WALL_NETWORK, SB_WALL_SYSCALLS,
				       SB_WALL_PRIVILEGES, SB_WALL_MEMORY };
	const sb_limits cpu = { .size = sizeof cpu, .cpu_ms = 1000 };
	const sb_network host = { .size = sizeof host, .mode = SB_NET_HOST };
	const sb_spec none = { 0 };

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(profile); i++) {
		int wall = profile[i];
		const sb_spec weaker = { .allow_weaker = SB_WALL_BIT(wall) };
		const sb_spec hard = { .flags = SB_SPEC_REQUIRE_HARD };

		assert_int_equal(with_level(wall, SB_LEVEL_NONE, none), SB_ERR_UNENFORCEABLE);
		assert_non_null(strstr(last.message, sb_wall_name(wall)));
		assert_int_equal(with_level(wall, SB_LEVEL_SAMPLED, none), 0);
		assert_int_equal(with_level(wall, SB_LEVEL_SAMPLED, hard), SB_ERR_UNENFORCEABLE);
		assert_int_equal(with_level(wall, SB_LEVEL_NONE, weaker), 0);
	}
	/* told, not asked for; unless somebody does */
	assert_int_equal(with_level(SB_WALL_PROCESSES, SB_LEVEL_NONE, none), 0);
	assert_int_equal(with_level(SB_WALL_PROCESSES, SB_LEVEL_NONE,
				    (sb_spec){ .require = SB_WALL_BIT(SB_WALL_PROCESSES) }),
			 SB_ERR_UNENFORCEABLE);
	assert_int_equal(with_level(SB_WALL_PIDS, SB_LEVEL_COOPERATIVE, none), 0);
	assert_int_equal(with_level(SB_WALL_PIDS, SB_LEVEL_NONE, none), SB_ERR_UNENFORCEABLE);
	assert_int_equal(with_level(SB_WALL_CPU, SB_LEVEL_NONE, none), 0);
	assert_int_equal(with_level(SB_WALL_CPU, SB_LEVEL_NONE, (sb_spec){ .limits = &cpu }),
			 SB_ERR_UNENFORCEABLE);
	assert_int_equal(with_level(SB_WALL_NETWORK, SB_LEVEL_NONE, (sb_spec){ .network = &host }), 0);
}

/* ---- environment, language, route ------------------------------------------------------------------------------ */

static void environment(void **state)
{
	const sb_env list = { .size = sizeof list, .base = SB_ENV_LIST, .allow = LIST("RESOLVE_TEST") };
	const sb_env nope = { .size = sizeof nope, .base = SB_ENV_LIST, .allow = LIST("NOPE") };
	const sb_env none = { .size = sizeof none, .base = SB_ENV_NONE, .inject = LIST("X=1") };
	const sb_env unset = { .size = sizeof unset, .inject = LIST("X=1", "HOME=/x") };
	const sb_env bad = { .size = sizeof bad, .inject = LIST("=x") };

	(void)state;
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ 0 }), 0);
	assert_int_equal(got.env_count, 5);
	assert_true(has_env("PATH=/usr/local/bin:/usr/bin:/bin") && has_env("TMPDIR=/tmp") &&
		    has_env("LANG=C.UTF-8") && has_env("HOME=/home/sandbox"));
	assert_int_equal(run((sb_spec){ .env = &unset }, (sb_command){ .env = LIST("X=2") }), 0);
	assert_true(has_env("X=2") && has_env("HOME=/x") && has_env("TMPDIR=/tmp"));
	assert_int_equal(got.env_count, 6);
	assert_int_equal(run((sb_spec){ .env = &list }, (sb_command){ 0 }), 0);
	assert_true(got.env_count == 1 && has_env("RESOLVE_TEST=here"));
	setenv("RESOLVE_TEST", "changed", 1);
	assert_int_equal(run((sb_spec){ .env = &list }, (sb_command){ 0 }), 0);
	assert_true(has_env("RESOLVE_TEST=changed")); /* as it is at the call */
	assert_int_equal(run((sb_spec){ .env = &nope }, (sb_command){ 0 }), 0);
	assert_int_equal(got.env_count, 0);
	assert_int_equal(run((sb_spec){ .env = &none }, (sb_command){ 0 }), 0);
	assert_true(got.env_count == 1 && has_env("X=1"));
	assert_int_equal(run((sb_spec){ .env = &bad }, (sb_command){ 0 }), SB_ERR_INVALID_SPEC);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ .env = LIST("NOVALUE") }),
			 SB_ERR_INVALID_SPEC);
	assert_int_equal(run((sb_spec){ .profile = SB_PROFILE_RUNNER }, (sb_command){ 0 }), 0);
	assert_true(has_env("RESOLVE_TEST=changed"));
}

static void bad_commands(void **state)
{
	const sb_file file = { .size = sizeof file, .path = "x", .data = "y", .len = 1 };
	const sb_file *const files[] = { &file, NULL };
	const char *const none[] = { NULL };

	(void)state;
	assert_true(run((sb_spec){ 0 }, (sb_command){ .argv = none }) < 0);
	assert_true(run((sb_spec){ 0 }, (sb_command){ .argv = LIST("") }) < 0);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ .language = " ", .code = "x" }),
			 SB_ERR_INVALID_SPEC);
	assert_int_equal(run((sb_spec){ 0 },
			     (sb_command){ .language = "cobol", .code = "x", .code_len = 1 }),
			 SB_ERR_UNKNOWN_LANGUAGE);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ .flags = SB_COMMAND_TTY }),
			 SB_ERR_UNSUPPORTED);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ .flags = SB_COMMAND_DETACHED }),
			 SB_ERR_UNSUPPORTED);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ .flags = 1u << 30 }), SB_ERR_UNSUPPORTED);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ .input_kind = SB_INPUT_OPEN }),
			 SB_ERR_INVALID);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ .files = files }), SB_ERR_INVALID_SPEC);
	assert_int_equal(run((sb_spec){ .flags = 1u << 30 }, (sb_command){ 0 }), SB_ERR_UNSUPPORTED);
}

static void network_of_later(void **state)
{
	const sb_net_rule rule = { .size = sizeof rule, .host = "a.test", .action = SB_ALLOW };
	const sb_net_rule *const rules[] = { &rule, NULL };
	const sb_network allow = { .size = sizeof allow, .mode = SB_NET_ALLOW_LIST, .rules = rules };

	(void)state;
	assert_int_equal(run((sb_spec){ .network = &allow }, (sb_command){ 0 }), SB_ERR_UNSUPPORTED);
}

static void languages(void **state)
{
	const sb_file file = { .size = sizeof file, .path = "in.txt", .data = "y", .len = 1 };
	const sb_file big = { .size = sizeof big, .path = "big", .data = ws, .len = sizeof ws };
	const sb_file *const files[] = { &file, NULL }, *const bigs[] = { &big, NULL };
	const sb_pack_way way = { .size = sizeof way, .backend = "fake",
				  .run = LIST("sh", "{code}", "{args}"), .code_file = "x.sh" };
	const sb_pack_way *const ways[] = { &way, NULL };
	const sb_pack one = { .size = sizeof one, .name = "one", .aliases = LIST("uno"), .ways = ways };
	const sb_pack *const packs[] = { &one, NULL };
	const sb_sandbox_options o = { .packs = packs };
	const sb_limits tiny = { .size = sizeof tiny, .fs_bytes = 100 };
	sb_command c = { .language = " UNO ", .code = "exit", .code_len = 4, .args = LIST("a", "b"),
			 .files = files };
	sb_result *result = NULL;

	(void)state;
	assert_int_equal(run_full(o, (sb_spec){ 0 }, c, &result), 0);
	assert_string_equal(got.argv[0], "sh");
	assert_string_equal(got.argv[1], "/run/code/x.sh");
	assert_string_equal(got.argv[2], "a");
	assert_string_equal(got.argv[3], "b");
	assert_string_equal(got.cwd, "/work");
	assert_string_equal(got.workspace, ""); /* code sees none unless it is named */
	assert_int_equal(got.limits.memory_bytes, 128 << 20);
	assert_int_equal(got.limits.wall_ms, 10000);
	assert_int_equal(fake_seen.called[FAKE_AT_PUT], 2);
	assert_int_equal(fake_seen.called[FAKE_AT_COLLECT], 1);
	sb_result_free(result);
	/* where it does not run, it is said where it does */
	assert_int_equal(run_full(o, (sb_spec){ .backends = LIST("other") }, c, NULL), SB_ERR_BACKEND_UNAVAILABLE);
	assert_non_null(strstr(last.message, "can run \"one\" here, but it runs on fake; there are: fake, other"));
	assert_int_equal(run_full(o, (sb_spec){ .workspace = ws }, c, NULL), 0);
	assert_string_equal(got.workspace, ws);
	/* what does not fit is told before anything runs */
	c.files = bigs;
	assert_int_equal(run_full(o, (sb_spec){ .limits = &tiny }, c, NULL), SB_ERR_FS_QUOTA);
	assert_int_equal(fake_seen.called[FAKE_AT_SPAWN], 0);
}

static void routes(void **state)
{
	(void)state;
	assert_int_equal(run((sb_spec){ .backends = LIST("no-such-backend") }, (sb_command){ 0 }),
			 SB_ERR_BACKEND_UNAVAILABLE);
	assert_non_null(strstr(last.message, "no-such-backend"));
	assert_non_null(strstr(last.message, "fake"));
	/* a slip is not passed over for what stands behind it */
	assert_int_equal(run((sb_spec){ .backends = LIST("fakee", "other") }, (sb_command){ 0 }),
			 SB_ERR_BACKEND_UNAVAILABLE);
	/* a known one that is not here is */
	assert_int_equal(run((sb_spec){ .backends = LIST("docker", "SHAM", "fake") },
			     (sb_command){ 0 }) == 0 ||
				 last.code == SB_ERR_BACKEND_UNAVAILABLE,
			 1);
	assert_int_equal(run((sb_spec){ .backends = LIST("container", "sham") }, (sb_command){ 0 }), 0);
	assert_int_equal(run((sb_spec){ .backends = LIST("container") }, (sb_command){ 0 }),
			 SB_ERR_BACKEND_UNAVAILABLE);
	/* it runs no language, and says what does */
	assert_int_equal(run((sb_spec){ .backends = LIST("other") },
			     (sb_command){ .language = "sh", .code = "x", .code_len = 1 }),
			 SB_ERR_BACKEND_UNAVAILABLE);
	assert_non_null(strstr(last.message, "no backend of \"other\" can run \"bash\" here, but it runs on fake"));
}

static void down_does_not_fall_through(void **state)
{
	const sb_command c = { .size = sizeof c, .argv = LIST("true") };
	const sb_spec spec = { .size = sizeof spec, .backends = LIST("fake", "other") };
	sb_sandbox *sandbox = make((sb_sandbox_options){ 0 });
	sb_result *result = NULL;
	sb_plan *plan = NULL;

	(void)state;
	fake_down = 1;
	assert_int_equal(sb_run(sandbox, &spec, &c, NULL, &result, &last),
			 SB_ERR_BACKEND_UNAVAILABLE);
	assert_int_equal(fake_seen.called[FAKE_AT_CREATE], 0);
	/* a plan comes all the same, and says so */
	assert_int_equal(sb_explain(sandbox, &spec, &c, &plan, &last), 0);
	assert_int_equal(sb_plan_failure(plan)->code, SB_ERR_BACKEND_UNAVAILABLE);
	assert_string_equal(sb_plan_backend(plan), "fake");
	sb_plan_free(plan);
	sb_sandbox_free(sandbox);
}

static void explanations(void **state)
{
	sb_sandbox *sandbox = make((sb_sandbox_options){ 0 });
	const sb_command c = { .size = sizeof c, .argv = LIST("true") };
	sb_report *report = NULL;
	sb_plan *plan = NULL;
	uint64_t removed = 0;

	(void)state;
	assert_int_equal(sb_explain(sandbox, NULL, NULL, &plan, &last), 0);
	assert_null(sb_plan_failure(plan));
	assert_int_equal(sb_plan_level(plan, SB_WALL_OUTPUT), SB_LEVEL_HARD);
	assert_int_equal(sb_plan_level(plan, SB_WALL_ENV), SB_LEVEL_HARD);
	sb_plan_free(plan);
	assert_int_equal(sb_explain(sandbox, NULL, &c, &plan, &last), 0);
	assert_int_equal(fake_seen.called[FAKE_AT_CREATE], 0);
	assert_int_equal(fake_seen.probes_tried, 1); /* by real operations, once */
	sb_plan_free(plan);
	assert_int_equal(sb_doctor(sandbox, NULL, &report, &last), 0);
	assert_non_null(strstr(sb_report_json(report), "\"name\":\"fake\""));
	sb_report_free(report);
	assert_int_equal(sb_sweep(sandbox, NULL, &removed, &last), 0);
	assert_int_equal(removed, 2);
	sb_sandbox_free(sandbox);
	assert_int_equal(fake_seen.states, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object_options),
		cmocka_unit_test(packs_checked),
		cmocka_unit_test(merge_env_and_net),
		cmocka_unit_test(merge_unset_keeps),
		cmocka_unit_test(merge_limits),
		cmocka_unit_test(merge_files),
		cmocka_unit_test(merge_command),
		cmocka_unit_test(weaker_is_the_operators),
		cmocka_unit_test(never_weaker_in_silence),
		cmocka_unit_test(environment),
		cmocka_unit_test(bad_commands),
		cmocka_unit_test(network_of_later),
		cmocka_unit_test(languages),
		cmocka_unit_test(routes),
		cmocka_unit_test(down_does_not_fall_through),
		cmocka_unit_test(explanations),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
