/* SPDX-License-Identifier: MIT */
/* Sockets of the host's programs: those that are named, and those that lie in what is shown. */
#include "session_world.h"

#include <sys/socket.h>
#include <sys/un.h>

static int bind_at(const char *fmt, const char *dir)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(snprintf(name.sun_path, sizeof name.sun_path, fmt, dir) < (int)sizeof name.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
	return fd;
}

static int with_sockets(uint32_t flags, const char *fmt, const char *arg)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, fmt, arg);
	const sb_network network = { .size = sizeof network, .mode = SB_NET_DENY_ALL, .flags = flags,
				     .unix_sockets = LIST(path) };

	return run((sb_spec){ .network = &network }, (sb_command){ 0 });
}

static void named_ones_must_be_there(void **state)
{
	int fd = bind_at("%s/s", top);

	(void)state;
	assert_int_equal(with_sockets(0, "%s/s", top), 0);
	assert_int_equal(with_sockets(0, "%s/none", top), SB_ERR_NOT_FOUND);
	assert_non_null(strstr(last.message, "/none"));
	assert_int_equal(with_sockets(0, "%s/data/a1", top), SB_ERR_INVALID_SPEC);
	assert_int_equal(with_sockets(0, "%s", "s"), SB_ERR_INVALID_SPEC); /* not absolute */
	close(fd);
}

static void daemons_need_a_word_of_their_own(void **state)
{
	static const char *const theirs[] = {
		"/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
		"/run/user/1000/bus", "/run/user/0/systemd/private", "/run/dbus/system_bus_socket",
		"/run/systemd/private", "/run/user/1000/docker.sock",
	};
	static const char *const others[] = { "/run/postgresql/.s.PGSQL.5432", "/tmp/docker.sock",
					      "/run/user/1000/app/bus.sock", "/srv/run/docker.sock" };

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(theirs); i++)
		assert_true(sockets_is_daemon(theirs[i]));
	for (size_t i = 0; i < BASE_ARRAY_LEN(others); i++)
		assert_false(sockets_is_daemon(others[i]));
}

static void others_are_hidden_where_they_are_seen(void **state)
{
	int fds[] = { bind_at("%s/sub/in-workspace", ws), bind_at("%s/data/shown", top),
		      bind_at("%s/beside", top) };
	char data[PATH_MAX + 16], named[PATH_MAX + 16];

	(void)state;
	snprintf(data, sizeof data, "%s/data", top);
	snprintf(named, sizeof named, "%s/data/shown", top);
	const sb_file_rule shown = { .size = sizeof shown, .path = "/srv/x", .source = data,
				     .access = SB_FILE_READ };
	const sb_file_rule same = { .size = sizeof same, .path = named, .access = SB_FILE_WRITE };
	const sb_file_rule hidden = { .size = sizeof hidden, .path = data, .access = SB_FILE_HIDE };
	const sb_file_rule *const all[] = { &shown, &same, NULL };

	assert_int_equal(run((sb_spec){ .files = ONE(shown) }, (sb_command){ 0 }), 0);
	assert_true(has_rule("hide %s/sub/in-workspace", ws));
	assert_true(has_rule("hide /srv/x/shown"));
	assert_false(has_rule("hide %s/beside", top));
	/* what is named stays, by a rule or by the network's list */
	assert_int_equal(run((sb_spec){ .files = all }, (sb_command){ 0 }), 0);
	assert_false(has_rule("hide %s", named));
	assert_int_equal(with_sockets(0, "%s/sub/in-workspace", ws), 0);
	assert_false(has_rule("hide %s/sub/in-workspace", ws));
	/* beneath what is hidden already, and without a place where it is seen, there is nothing to do */
	assert_int_equal(run((sb_spec){ .files = ONE(hidden) }, (sb_command){ 0 }), 0);
	assert_false(has_rule("hide %s", named));
	assert_int_equal(run((sb_spec){ .workspace_mode = SB_WORKSPACE_NONE }, (sb_command){ 0 }), 0);
	assert_int_equal(got.rule_count, 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(fds); i++)
		close(fds[i]);
}

/* As "/var/run" leads to "/run". */
static void a_name_through_a_link_is_followed(void **state)
{
	char link[PATH_MAX + 16];
	int fds[2];

	(void)state;
	snprintf(link, sizeof link, "%s/link", top);
	assert_int_equal(symlink(ws, link), 0);
	fds[0] = bind_at("%s/link/by-link", top);
	fds[1] = bind_at("%s/sub/../sub/by-dots", ws);
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ 0 }), 0);
	assert_true(has_rule("hide %s/by-link", ws));
	assert_true(has_rule("hide %s/sub/by-dots", ws));
	unlink(link);
	close(fds[0]);
	close(fds[1]);
}

static void too_many_are_told(void **state)
{
	int fds[130];

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(fds); i++) {
		struct sockaddr_un to = { .sun_family = AF_UNIX };

		assert_true(snprintf(to.sun_path, sizeof to.sun_path, "%s/sub/many%zu", ws, i) <
			    (int)sizeof to.sun_path);
		fds[i] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fds[i], (struct sockaddr *)&to, sizeof to), 0);
	}
	assert_int_equal(run((sb_spec){ 0 }, (sb_command){ 0 }), SB_ERR_INVALID_SPEC);
	assert_non_null(strstr(last.message, "/sub/many"));
	for (size_t i = 0; i < BASE_ARRAY_LEN(fds); i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_ones_must_be_there),
		cmocka_unit_test(daemons_need_a_word_of_their_own),
		cmocka_unit_test(others_are_hidden_where_they_are_seen),
		cmocka_unit_test(a_name_through_a_link_is_followed),
		cmocka_unit_test(too_many_are_told),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
