/* SPDX-License-Identifier: MIT */
/* files.c - PUT and the mount table: what the guest finds, may write, and cannot reach. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void up(fix *f)
{
	fix_open(f);
	fix_plan(f);
	fix_start(f, NULL, NULL);
}

static void make_dir(const fix *f, const char *name)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", f->ws, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void row(fix *f, int kind, const char *below_ws, int flags)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", f->ws, below_ws);
	lh_plan_mount(f->plan, kind, NULL, path, flags, 0);
}

static void sh_in_ws(fix *f, const char *script, fix_run *run)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };

	fix_run_argv(f, argv, f->ws, run);
}

/* ---- PUT ------------------------------------------------------------------------------------------ */

static void given_files(void **state)
{
	static const lh_file files[] = { { "in/a.txt", "alpha", 5, 0644 },
		{ "in/deep/er/b.bin", "\0\1\2", 3, 0600 }, { "in/empty", "", 0, 0644 },
		{ "code/main.sh", "echo code runs\n", 15, 0755 } };
	static const lh_file again = { "code/main.sh", "echo anew\n", 10, 0755 };
	sb_error err = { 0 };
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	assert_int_equal(lh_put(f.box, files, UNIT_LEN(files), 0, &err), 0);
	fix_sh(&f, "cat /in/a.txt; wc -c < /in/deep/er/b.bin; wc -c < /in/empty; sh /run/code/main.sh", &run);
	fix_expect_out(&run, "alpha3\n0\ncode runs\n");
	assert_int_equal(lh_put(f.box, &again, 1, 0, &err), 0);
	fix_sh(&f, "/run/code/main.sh", &run);
	fix_expect_out(&run, "anew\n");
	fix_close(&f);
}

/* The guest owns them, and yet cannot change them: the mounts are read-only. */
static void given_files_stay(void **state)
{
	static const lh_file files[] = { { "in/a", "alpha", 5, 0666 }, { "code/c", "code", 4, 0777 } };
	sb_error err = { 0 };
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	assert_int_equal(lh_put(f.box, files, 2, 0, &err), 0);
	fix_sh(&f, "for d in /in/a /run/code/c; do echo x >> $d; chmod 777 $d; rm -f $d; mv $d ${d}2; "
		   "ln $d /work/l; touch $d; (: > ${d}3); mkdir ${d}4; ln -s /tmp ${d}5; done 2>/dev/null; "
		   "rmdir /in 2>/dev/null; mv /in /in2 2>/dev/null; mount -o remount,rw /in 2>/dev/null; "
		   "cat /in/a /run/code/c; ls /in /run/code /work | tr '\\n' ' '", &run);
	fix_expect_out(&run, "alphacode/in: a  /run/code: c  /work: ");
	fix_close(&f);
}

static void no_space_for_files(void **state)
{
	static const char *const argv[] = { "/usr/bin/touch", "ran", NULL };
	size_t len = 9u << 20;
	void *data = calloc(1, len);
	lh_file file = { "in/big", data, len, 0644 };
	lh_answer answer;
	sb_error err = { 0 };
	int exited[2];
	lh_spawn s = { .argv = argv, .in = -1, .out = -1, .err = -1, .control = -1, .code = -1, .id = 1 };
	fix f;

	(void)state;
	assert_non_null(data);
	up(&f);
	assert_int_equal(pipe2(exited, O_CLOEXEC), 0);
	s.cwd = f.ws;
	s.exit_pipe = exited[1];
	assert_int_equal(lh_put(f.box, &file, 1, 0, &err), 0);
	/* At once: it lies in the queue when the files fail, or there is nobody any more. */
	if (lh_spawn_send(f.box, &s, &err))
		assert_int_equal(err.code, SB_ERR_CONNECTION_LOST);
	close(exited[0]);
	close(exited[1]);
	fix_next(&f, &answer, NULL);
	assert_int_equal(answer.head.kind, LP_FAILED);
	assert_string_equal(answer.failed.where, "put");
	assert_int_equal(answer.failed.os_errno, ENOSPC);
	fix_next(&f, &answer, NULL);
	assert_int_equal(answer.head.kind, LP_GONE);
	assert_false(fix_exists(f.ws, "ran"));
	fix_close(&f);
	free(data);
}

/* Once a command has been there, directories may be links; none is followed. */
static void put_follows_no_link(void **state)
{
	static const lh_file through = { "work/link/x", "bad", 3, 0644 };
	static const lh_file over = { "work/file", "new", 3, 0644 };
	lh_answer answer;
	sb_error err = { 0 };
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	sh_in_ws(&f, "ln -s $PWD /work/link; echo mine > target; ln -s $PWD/target /work/file", &run);
	fix_expect_exit(&run, 0);
	assert_int_equal(lh_put(f.box, &through, 1, 0, &err), 0);
	fix_next(&f, &answer, NULL);
	assert_int_equal(answer.head.kind, LP_FAILED);
	assert_int_equal(answer.failed.os_errno, ELOOP);
	assert_false(fix_exists(f.ws, "x"));
	assert_int_equal(lh_put(f.box, &over, 1, 0, &err), 0);
	sh_in_ws(&f, "cat target /work/file", &run);
	fix_expect_out(&run, "mine\nnew");
	fix_close(&f);
}

/* One quota for all parts; the host sees it, and reads /out after the end. */
static void one_quota(void **state)
{
	char data[8] = "";
	fix_run run;
	int scratch, fd;
	fix f;

	(void)state;
	fix_open(&f);
	fix_plan(&f);
	fix_start(&f, NULL, &scratch);
	fix_sh(&f, "dd if=/dev/zero of=/tmp/a bs=1M count=5 2>/dev/null && "
		   "dd if=/dev/zero of=/work/b bs=1M count=5 2>/dev/null || echo full; "
		   "rm /work/b; echo -n result > /out/r", &run);
	fix_expect_out(&run, "full\n");
	assert_in_range(run.end.exited.usage.scratch_free_bytes, 2u << 20, 4u << 20);
	lh_close(f.box);
	f.box = NULL;
	fd = openat(scratch, "out/r", O_RDONLY | O_NOFOLLOW);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, data, sizeof data), 6);
	assert_memory_equal(data, "result", 6);
	close(fd);
	close(scratch);
	fix_close(&f);
}

/* ---- Rows ------------------------------------------------------------------------------------------ */

static void workspace_is_the_callers(void **state)
{
	struct stat st;
	char path[128];
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	fix_write(f.ws, "given", "text");
	snprintf(path, sizeof path, "%s/given", f.ws);
	assert_int_equal(chmod(path, 0600), 0);
	sh_in_ws(&f, "cat given; echo made > made; mkdir d; stat -c '%u %g' given made", &run);
	fix_expect_out(&run, "text1000 1000\n1000 1000\n");
	snprintf(path, sizeof path, "%s/made", f.ws);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, getuid());
	assert_int_equal(st.st_gid, getgid());
	assert_int_equal(st.st_mode & 07777, 0644);
	fix_close(&f);
}

static void hidden(void **state)
{
	lh_answer failed;
	fix_run run;
	fix f;

	(void)state;
	fix_open(&f);
	make_dir(&f, "secrets");
	fix_write(f.ws, "secrets/key", "KEY");
	fix_write(f.ws, "token", "TOKEN");
	fix_plan(&f);
	row(&f, LP_M_HIDE, "secrets", 0);
	row(&f, LP_M_HIDE, "token", 0);
	row(&f, LP_M_HIDE, "not-there", LP_F_OPTIONAL);
	fix_start(&f, NULL, NULL);
	sh_in_ws(&f, "cat token; chmod 644 token; cat token; rm -f token; mv token t2; ls secrets; "
		     "touch secrets/x; rmdir secrets; cat secrets/key; cat < token", &run);
	assert_int_equal(run.end.head.kind, LP_EXITED);
	assert_int_not_equal(run.end.exited.code, 0);
	assert_null(strstr(run.out, "TOKEN"));
	assert_null(strstr(run.out, "KEY"));
	assert_non_null(strstr(run.out, "token: Permission denied"));
	assert_non_null(strstr(run.out, "touch: cannot touch"));
	assert_true(fix_exists(f.ws, "token") && fix_exists(f.ws, "secrets/key"));
	assert_false(fix_exists(f.ws, "not-there"));
	fix_close(&f);

	fix_open(&f);
	fix_plan(&f);
	row(&f, LP_M_HIDE, "not-there", 0);
	fix_start_failed(&f, &failed);
	assert_non_null(strstr(failed.failed.message, "not-there"));
	fix_close(&f);
}

static void protected(void **state)
{
	char git[128];
	fix_run run;
	fix f;

	(void)state;
	fix_open(&f);
	make_dir(&f, ".git");
	make_dir(&f, ".git/hooks");
	fix_write(f.ws, ".git/hooks/h", "old\n");
	fix_write(f.ws, ".envrc", "old\n");
	fix_plan(&f);
	snprintf(git, sizeof git, "%s/.git", f.ws);
	lh_plan_mount_fd(f.plan, LP_M_BIND, open(git, O_PATH | O_CLOEXEC), git, git,
			 LP_F_WRITE | (fix_root ? LP_F_IDMAP : 0), 0); /* so that nobody renames it */
	row(&f, LP_M_PROTECT, ".git/hooks", LP_F_OPTIONAL);
	row(&f, LP_M_PROTECT, ".envrc", LP_F_OPTIONAL);
	row(&f, LP_M_PROTECT, ".idea", LP_F_OPTIONAL);
	fix_start(&f, NULL, NULL);
	sh_in_ws(&f, "(echo x > .git/hooks/h; echo x > .git/hooks/new; echo x > .envrc; rm -rf .git/hooks; "
		     "mv .git/hooks .git/h2; mv .git .git2; rm .envrc; chmod 600 .envrc) 2>/dev/null; "
		     "echo fine > .git/config && cat .git/hooks/h .envrc .git/config", &run);
	fix_expect_out(&run, "old\nold\nfine\n");
	assert_true(fix_exists(f.ws, ".git/hooks/h"));
	assert_false(fix_exists(f.ws, ".git/hooks/new"));
	assert_false(fix_exists(f.ws, ".idea"));
	fix_close(&f);
}

/* Links in a workspace lead to what the guest sees there, not to the host's files. */
static void links_lead_nowhere(void **state)
{
	char target[128], link[128];
	lh_answer failed;
	fix_run run;
	fix f;

	(void)state;
	fix_open(&f);
	snprintf(target, sizeof target, "%s/outside", f.dir);
	snprintf(link, sizeof link, "%s/link", f.ws);
	assert_int_equal(mkdir(target, 0777), 0);
	assert_int_equal(symlink(target, link), 0);
	fix_plan(&f);
	row(&f, LP_M_PROTECT, "link", LP_F_OPTIONAL);
	row(&f, LP_M_HIDE, "link/x", LP_F_OPTIONAL);
	fix_start(&f, NULL, NULL);
	sh_in_ws(&f, "ls link/ 2>/dev/null || echo nothing", &run);
	fix_expect_out(&run, "nothing\n");
	fix_close(&f);

	fix_open(&f);
	snprintf(target, sizeof target, "%s/outside", f.dir);
	snprintf(link, sizeof link, "%s/link", f.ws);
	assert_int_equal(mkdir(target, 0777), 0);
	assert_int_equal(symlink(target, link), 0);
	fix_plan(&f);
	row(&f, LP_M_TMPFS, "link/made", 0);
	fix_start_failed(&f, &failed);
	assert_string_equal(failed.failed.where, "mount");
	assert_false(fix_exists(target, "made"));
	fix_close(&f);
}

static void nothing_is_made_on_the_host(void **state)
{
	static const int kinds[] = { LP_M_DIR, LP_M_TMPFS, LP_M_FILE, LP_M_SYMLINK, LP_M_BIND };
	lh_answer failed;
	char path[128];
	size_t i;
	fix f;

	(void)state;
	for (i = 0; i < UNIT_LEN(kinds); i++) {
		fix_open(&f);
		fix_plan(&f);
		snprintf(path, sizeof path, "%s/new", f.ws);
		lh_plan_mount(f.plan, kinds[i], kinds[i] == LP_M_BIND ? "/usr" : "text", path, 0,
			      kinds[i] == LP_M_DIR ? 0755 : 0);
		fix_start_failed(&f, &failed);
		unit_row(i, !strcmp(failed.failed.where, "mount"));
		unit_row(i, !fix_exists(f.ws, "new"));
		fix_close(&f);
	}
}

static void own_tmpfs(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	fix_open(&f);
	make_dir(&f, "cache");
	fix_write(f.ws, "cache/old", "");
	fix_plan(&f);
	lh_plan_mount(f.plan, LP_M_TMPFS, NULL, "/var/lib/x", LP_F_WRITE, 1u << 20);
	row(&f, LP_M_TMPFS, "cache", LP_F_WRITE);
	fix_start(&f, NULL, NULL);
	sh_in_ws(&f, "ls cache; echo a > cache/new; echo b > /var/lib/x/f; cat cache/new; "
		     "dd if=/dev/zero of=/var/lib/x/big bs=1M count=2 2>/dev/null || echo full; "
		     "touch /var/lib/y 2>/dev/null || echo ro", &run);
	fix_expect_out(&run, "a\nfull\nro\n");
	assert_true(fix_exists(f.ws, "cache/old"));
	assert_false(fix_exists(f.ws, "cache/new"));
	fix_close(&f);
}

/* No device node, no set-uid, and the system read-only. */
static void mounts_are_restricted(void **state)
{
	fix_run run;
	fix f;

	(void)state;
	up(&f);
	fix_sh(&f, "while read a b c d p o rest; do case $p in /dev/pts|/dev/shm) ;; "
		   "/dev/*) case $o in *nodev*) echo bad $p;; esac; continue;; esac; "
		   "case $o in *nosuid*) ;; *) echo suid $p;; esac; "
		   "case $p,$o in /dev/pts,*) ;; *,*nodev*) ;; *) echo dev $p;; esac; "
		   "case $p,$o in /usr,ro*|/,ro*|/in,ro*|/run/code,ro*) ;; "
		   "/usr,*|/,*|/in,*|/run/code,*) echo rw $p;; esac; "
		   "done < /proc/self/mountinfo; echo x > /dev/null && echo end", &run);
	fix_expect_out(&run, "end\n");
	fix_sh(&f, "for p in sys/kernel/hostname sysrq-trigger irq/default_smp_affinity; do "
		   "(echo 1 > /proc/$p) 2>/dev/null && echo wrote $p; done; "
		   "for p in kcore keys kallsyms timer_list key-users kmsg sched_debug cmdline sys/kernel/random/boot_id; do "
		   "cat /proc/$p 2>/dev/null; done; ls /proc/acpi /proc/scsi 2>/dev/null | grep -v :; "
		   "ls /dev/pts; echo end", &run);
	fix_expect_out(&run, "ptmx\nend\n");
	fix_close(&f);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_files), cmocka_unit_test(given_files_stay),
		cmocka_unit_test(no_space_for_files), cmocka_unit_test(put_follows_no_link),
		cmocka_unit_test(one_quota), cmocka_unit_test(workspace_is_the_callers),
		cmocka_unit_test(hidden), cmocka_unit_test(protected),
		cmocka_unit_test(links_lead_nowhere), cmocka_unit_test(nothing_is_made_on_the_host),
		cmocka_unit_test(own_tmpfs), cmocka_unit_test(mounts_are_restricted) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return fix_main(argc, argv, run);
}
