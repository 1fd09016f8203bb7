/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "../../src/core/core.h"

#define NET(...)                                                                                   \
	{                                                                                          \
		.size = sizeof(sb_network), __VA_ARGS__                                            \
	}

static int with_rule(sb_net_rule rule, sb_error *err)
{
	const sb_net_rule *rules[] = { &rule, NULL };
	const sb_network n = NET(.mode = SB_NET_ALLOW_LIST, .rules = rules);

	rule.size = sizeof rule;
	return sb_network_validate(&n, err);
}

static void host_patterns_are_strict(void **state)
{
	static const char *const good[] = {
		"example.com",
		"EXAMPLE.com.",
		"*.example.com",
		"a",
		"localhost",
		"x_y.test",
		"1a.test",
		"xn--mnchen-3ya.example",
		"M\xc3\x9cNCHEN.EXAMPLE",
		"1.2.3.4",
		"::1",
		"fe80::1",
		"10.0.0.0/8",
		"0.0.0.0/0",
		"fc00::/7",
		"::ffff:1.2.3.4/128",
		"a-b.c",
		"3scale",
		"a.1b",
		"0xg",
		"63aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b",
	};
	static const char *const bad[] = {
		"",
		"*",
		"*.",
		"*.*",
		"**.a",
		"a*b.x",
		"a.*.b",
		"a.*",
		"*a.test",
		"x:443",
		"1.2.3.4:80",
		"[::1]",
		"[::1]:80",
		"https://x",
		"http://x/y",
		"x/y",
		"a b",
		" a",
		"a ",
		"a..b",
		".a",
		"-a.b",
		"a-.b",
		"1.2.3",
		"1.2.3.4.5",
		"256.1.1.1",
		"1.2.3.04.",
		"10.0.0.0/33",
		"10.0.0.0/-1",
		"10.0.0.0/08",
		"10.0.0.0/",
		"a.test/8",
		"fc00::/129",
		"a\nb",
		"a\xff",
		"u@h",
		"*.1.2.3.4",
		"64aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b",
		".",
		"*..",
		"127",
		"0x7f.0x1",
		"fe80::1%eth0",
	};
	sb_error err;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(good); i++)
		unit_row(i, with_rule((sb_net_rule){ .host = good[i], .action = SB_ALLOW }, NULL) ==
				    0);
	for (size_t i = 0; i < UNIT_LEN(bad); i++) {
		memset(&err, 0, sizeof err);
		unit_row(i, with_rule((sb_net_rule){ .host = bad[i], .action = SB_ALLOW }, &err) ==
				    SB_ERR_INVALID_SPEC);
		unit_row(i, strlen(err.message) > 10);
	}
}

static void rules_are_checked(void **state)
{
	static const struct {
		sb_net_rule rule;
		int rc;
	} rows[] = {
		{ { .host = "a.test" }, 0 }, /* a rule's zero denies */
		{ { .host = "a.test", .port = 443, .action = SB_ALLOW, .flavour = SB_HOST_EXACT },
		  0 },
		{ { .host = "a.test", .port = 8000, .port_last = 8080 }, 0 },
		{ { .host = "a.test", .port = 8080, .port_last = 8000 }, SB_ERR_INVALID_SPEC },
		{ { .host = "a.test", .port_last = 8000 }, SB_ERR_INVALID_SPEC },
		{ { .host = "a.test", .action = SB_LATER }, SB_ERR_INVALID_SPEC },
		{ { .host = "a.test", .flavour = 2 }, SB_ERR_INVALID_SPEC },
		{ { .host = NULL }, SB_ERR_INVALID_SPEC },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, with_rule(rows[i].rule, NULL) == rows[i].rc);
}

static int decide(void *user, const sb_net_entry *entry)
{
	(void)user;
	(void)entry;
	return SB_DENY;
}

static void each_mode_takes_its_members(void **state)
{
	static const sb_net_rule rule = { .size = sizeof rule,
					  .host = "a.test",
					  .action = SB_ALLOW };
	static const sb_net_rule *const rules[] = { &rule, NULL };
	static const sb_net_rule *const none[] = { NULL };
	static const uint16_t ports[] = { 80, 443 }, zero[] = { 80, 0 };
	static const char *const sockets[] = { "/run/a.sock", NULL },
				 *const relative[] = { "a.sock", NULL },
				 *const secrets[] = { "token", NULL };
	static const sb_mitm mitm = { .size = sizeof mitm },
			     flagged = { .size = sizeof mitm, .flags = 4 };
	static const char *const empty[] = { "", NULL };
	static const sb_mitm hostless = { .size = sizeof mitm, .hosts = empty };
	static const struct {
		sb_network n;
		int rc;
	} rows[] = {
		{ NET(.mode = SB_NET_DEFAULT), 0 },
		{ NET(.mode = SB_NET_HOST), 0 },
		{ NET(.mode = SB_NET_DENY_ALL), 0 },
		{ NET(.mode = 5), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_DENY_ALL, .unix_sockets = sockets), 0 },
		{ NET(.mode = SB_NET_DEFAULT, .rules = rules), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_HOST, .rules = rules), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_DENY_ALL, .rules = rules), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_HOST, .rules = none), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_DENY_ALL, .upstream = "http://p:1"), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_DENY_ALL, .mitm = &mitm), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_DENY_ALL, .decide = decide), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_DENY_ALL, .ports = ports, .port_count = 2),
		  SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_DENY_ALL, .secrets = secrets), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = none), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST, .decide = decide), 0 },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules), 0 },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .ports = ports, .port_count = 2),
		  0 },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .ports = zero, .port_count = 2),
		  SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .port_count = 2),
		  SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .upstream = "http://p:1"),
		  SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .unix_sockets = relative),
		  SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .mitm = &mitm), 0 },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .mitm = &flagged),
		  SB_ERR_UNSUPPORTED },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .mitm = &hostless),
		  SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .flags = 4), SB_ERR_UNSUPPORTED },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .max_bytes = (uint64_t)-9),
		  SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_ALLOW_LIST, .rules = rules, .secrets = empty),
		  SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_PROXY), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_PROXY, .upstream = ""), SB_ERR_INVALID_SPEC },
		{ NET(.mode = SB_NET_PROXY, .upstream = "http://p:1"), 0 },
		{ NET(.mode = SB_NET_PROXY, .upstream = "http://p:1", .rules = rules), 0 },
	};

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++)
		unit_row(i, sb_network_validate(&rows[i].n, NULL) == rows[i].rc);
	assert_int_equal(sb_network_validate(NULL, NULL), 0);
}

static void upstreams_are_checked(void **state)
{
	static const struct {
		const char *url;
		int rc;
	} rows[] = {
		{ "http://proxy.test:3128", 0 },
		{ "HTTP://proxy.test:3128/", 0 },
		{ "http://user:pa:ss@proxy.test:3128", 0 },
		{ "http://user@proxy.test:1", 0 },
		{ "socks5://1.2.3.4:1080", 0 },
		{ "socks5h://[::1]:1080", 0 },
		{ "https://proxy.test:3128", -1 },
		{ "ftp://x:1", -1 },
		{ "proxy.test:3128", -1 },
		{ "http://", -1 },
		{ "http://:80", -1 },
		{ "http://proxy.test", -1 },
		{ "http://proxy.test:0", -1 },
		{ "http://proxy.test:65536", -1 },
		{ "http://proxy.test:x", -1 },
		{ "http://proxy.test:80/path", -1 },
		{ "http://:pw@proxy.test:80", -1 },
		{ "http://@proxy.test:80", -1 },
		{ "socks5://[::1]", -1 },
		{ "socks5://[1.2.3.4]:1", -1 },
		{ "socks5://[]:1", -1 },
		{ "http://a b:1", -1 },
		{ "http://*.test:1", -1 },
	};
	sb_error err;

	(void)state;
	for (size_t i = 0; i < UNIT_LEN(rows); i++) {
		const sb_network n = NET(.mode = SB_NET_PROXY, .upstream = rows[i].url);

		unit_row(i,
			 sb_network_validate(&n, NULL) == (rows[i].rc ? SB_ERR_INVALID_SPEC : 0));
	}
	{
		const sb_network n =
			NET(.mode = SB_NET_PROXY, .upstream = "http://u:hunter2@proxy.test");

		assert_int_equal(sb_network_validate(&n, &err), SB_ERR_INVALID_SPEC);
		assert_null(strstr(err.message, "hunter2"));
		assert_non_null(strstr(err.message, "proxy.test"));
	}
}

/* Any text as a host: an answer, and nothing read that is not there. */
static void any_host_gets_an_answer(void **state)
{
	static const char letters[] = "ab01.:*-/[]_%\xc3\x9c\xff";
	uint64_t seed = 7;
	size_t good = 0;

	(void)state;
	for (int round = 0; round < 50000; round++) {
		size_t len = unit_random(&seed) % 12;
		char *host = calloc(1, len + 1);

		for (size_t i = 0; i < len; i++)
			host[i] = letters[unit_random(&seed) % (sizeof letters - 1)];
		good += with_rule((sb_net_rule){ .host = host }, NULL) == 0;
		free(host);
	}
	assert_true(good > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_patterns_are_strict),
		cmocka_unit_test(rules_are_checked),
		cmocka_unit_test(each_mode_takes_its_members),
		cmocka_unit_test(upstreams_are_checked),
		cmocka_unit_test(any_host_gets_an_answer),
	};

	return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
