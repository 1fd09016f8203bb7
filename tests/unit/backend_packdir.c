/* SPDX-License-Identifier: MIT */
/* backend_packdir.c - packs on disk: whole ones, changed ones, and those that others could write. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/backend/packdir.h"

static char top[] = "/tmp/unit-packdir-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", top, name);
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void hash_text(const char *text, char out[SHA256_HEX])
{
	sha256 h;

	sha256_init(&h);
	sha256_add(&h, text, strlen(text));
	sha256_hex(&h, out);
}

/* A whole pack: "module" in module.cwasm, "data" in data. */
static int fill(void **state)
{
	char text[1024], module[SHA256_HEX], data[SHA256_HEX], path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof path, "%s/wasm/lua", top);
	assert_int_equal(chmod(path, 0755), 0);
	hash_text("module", module);
	hash_text("data", data);
	snprintf(text, sizeof text,
		 "sandbox-pack 1\nname lua\nversion 5.4\nengine e-1\nmodule module.cwasm %s 6\nfile data %s 4 /d\n",
		 module, data);
	put("wasm/engine", "e-1\n");
	put("wasm/lua/module.cwasm", "module");
	put("wasm/lua/data", "data");
	put("wasm/lua/manifest", text);
	snprintf(path, sizeof path, "%s/wasm/lua/stamp", top);
	unlink(path);
	return 0;
}

static void expect(int code, const char *words)
{
	packdir dir;
	sb_error err;

	assert_int_equal(packdir_open(&dir, top, "lua", &err), code);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" does not say \"%s\"", err.message, words);
	assert_int_equal(dir.fd, -1);
}

static void opens_a_whole_one(void **state)
{
	packdir dir;
	sb_error err;
	char text[8];

	(void)state;
	assert_int_equal(packdir_open(&dir, top, "lua", &err), 0);
	assert_int_equal(packdir_bytes(&dir), 10);
	int fd = packdir_file(&dir, &dir.of.module, false, &err);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof text), 6);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	packdir_close(&dir);
}

static void tells_what_is_wrong(void **state)
{
	packdir dir;
	sb_error err;
	char path[PATH_MAX];

	assert_int_equal(packdir_open(&dir, top, "perl", &err), SB_ERR_NOT_FOUND);
	assert_non_null(strstr(err.message, "sandbox packs build perl"));
	put("wasm/engine", "e-2\n");
	expect(SB_ERR_UNSUPPORTED, "another engine");
	fill(state);
	put("wasm/lua/manifest", "sandbox-pack 1\nname js\n");
	expect(SB_ERR_INVALID, "the pack \"lua\": the manifest has no line");
	fill(state);
	snprintf(path, sizeof path, "%s/wasm/lua/manifest", top);
	unlink(path);
	expect(SB_ERR_NOT_FOUND, "is not whole");
	fill(state);
	chmod(path, 0666);
	expect(SB_ERR_FORBIDDEN, "changed by other users");
	fill(state);
	snprintf(path, sizeof path, "%s/wasm/lua", top);
	chmod(path, 0777);
	expect(SB_ERR_FORBIDDEN, "changed by other users");
}

static int open_module(bool always, sb_error *err)
{
	packdir dir;

	assert_int_equal(packdir_open(&dir, top, "lua", err), 0);
	int fd = packdir_file(&dir, &dir.of.module, always, err);
	if (fd >= 0)
		close(fd);
	packdir_close(&dir);
	return fd < 0 ? fd : 0;
}

static void finds_changed_bytes(void **state)
{
	sb_error err;

	(void)state;
	put("wasm/lua/module.cwasm", "modulE");
	assert_int_equal(open_module(false, &err), SB_ERR_CHECKSUM);
	put("wasm/lua/module.cwasm", "module2");
	assert_int_equal(open_module(false, &err), SB_ERR_CHECKSUM);
	put("wasm/lua/module.cwasm", "module");
	assert_int_equal(open_module(false, &err), 0);
}

/* With a stamp nothing is hashed, as long as the file is the one that was. */
static void stamps_what_it_hashed(void **state)
{
	packdir dir;
	sb_error err;
	char path[PATH_MAX], to[PATH_MAX], stamp[600];
	struct stat st;

	(void)state;
	assert_int_equal(packdir_open(&dir, top, "lua", &err), 0);
	assert_int_equal(packdir_verify(&dir, &err), 0);
	packdir_close(&dir);
	/* a stamp that says of changed bytes that they are known: taken, so the stamp is what was read */
	put("wasm/lua/module.cwasm", "modulE");
	assert_int_equal(open_module(false, &err), SB_ERR_CHECKSUM);
	snprintf(path, sizeof path, "%s/wasm/lua/module.cwasm", top);
	assert_int_equal(stat(path, &st), 0);
	char hex[SHA256_HEX];
	hash_text("module", hex);
	snprintf(stamp, sizeof stamp, "%s %llu %llu %lld %lld.%09ld %lld.%09ld\n", hex,
		 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, (long long)st.st_size,
		 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec,
		 st.st_ctim.tv_nsec);
	put("wasm/lua/stamp", stamp);
	assert_int_equal(open_module(false, &err), 0);
	assert_int_equal(open_module(true, &err), SB_ERR_CHECKSUM);
	/* one that others could have written is none */
	snprintf(to, sizeof to, "%s/wasm/lua/stamp", top);
	chmod(to, 0666);
	assert_int_equal(open_module(false, &err), SB_ERR_CHECKSUM);
}

static int check_all(sb_error *err)
{
	packdir dir;

	assert_int_equal(packdir_open(&dir, top, "lua", err), 0);
	int code = packdir_check(&dir, err);
	packdir_close(&dir);
	return code;
}

static uint64_t stamp_inode(void)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof path, "%s/wasm/lua/stamp", top);
	return stat(path, &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* Data as well as the module; and a stamp of other files is renewed, once. */
static void checks_all_that_is_used(void **state)
{
	sb_error err;

	(void)state;
	assert_int_equal(check_all(&err), 0);
	uint64_t first = stamp_inode();

	assert_true(first != 0);
	assert_int_equal(check_all(&err), 0);
	assert_int_equal(stamp_inode(), first);
	put("wasm/lua/data", "datA");
	assert_int_equal(check_all(&err), SB_ERR_CHECKSUM);
	assert_non_null(strstr(err.message, "/data\" is not what the manifest pins"));
	assert_non_null(strstr(err.message, "packs build lua"));
	put("wasm/lua/data", "data");
	put("wasm/lua/module.cwasm", "modulE");
	assert_int_equal(check_all(&err), SB_ERR_CHECKSUM);
	put("wasm/lua/module.cwasm", "module");
	assert_int_equal(check_all(&err), 0);
	uint64_t renewed = stamp_inode();

	assert_int_equal(check_all(&err), 0);
	assert_int_equal(stamp_inode(), renewed);
}

static int make_top(void **state)
{
	char path[PATH_MAX];

	(void)state;
	if (!mkdtemp(top) || chmod(top, 0755) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/wasm", top);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s/wasm/lua", top);
	return mkdir(path, 0755);
}

static int drop_top(void **state)
{
	static const char *const names[] = { "wasm/lua/manifest", "wasm/lua/module.cwasm", "wasm/lua/data",
					     "wasm/lua/stamp", "wasm/engine" };
	char path[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof path, "%s/%s", top, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof path, "%s/wasm/lua", top);
	rmdir(path);
	snprintf(path, sizeof path, "%s/wasm", top);
	rmdir(path);
	return rmdir(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(opens_a_whole_one, fill),
		cmocka_unit_test_setup(tells_what_is_wrong, fill),
		cmocka_unit_test_setup(finds_changed_bytes, fill),
		cmocka_unit_test_setup(stamps_what_it_hashed, fill),
		cmocka_unit_test_setup(checks_all_that_is_used, fill),
	};

	return cmocka_run_group_tests(tests, make_top, drop_top);
}
