/* SPDX-License-Identifier: MIT */
/*
 * System calls that ordinary programs do without and that exploits begin with.  Arguments are such
 * that nothing happens on a machine that lets the call through.
 *
 * wall syscalls
 * attempt io_uring_setup: open without seccomp
 * attempt io_uring_enter: open without seccomp
 * attempt io_uring_register: open without seccomp
 * attempt bpf: open bare as root
 * attempt perf_event_open: open without seccomp
 * attempt add_key: open without seccomp
 * attempt request_key: open without seccomp
 * attempt keyctl: open without seccomp
 * attempt userfaultfd: open without seccomp
 * attempt kexec_load: open bare as root
 * attempt kexec_file_load: open bare as root
 * attempt init_module: open bare as root
 * attempt finit_module: open bare as root
 * attempt delete_module: open bare as root
 * attempt personality_page_zero: open without seccomp
 * attempt personality_read_exec: open without seccomp
 * attempt acct: open bare as root
 * attempt reboot: open bare as root
 * attempt settimeofday: open bare as root
 * attempt clock_settime: open bare as root
 * attempt adjtimex: open bare as root
 * attempt iopl: open bare as root
 * attempt ioperm: open bare as root
 * attempt modify_ldt: open without seccomp
 * attempt quotactl: open bare as root
 * attempt vhangup: no control, it would hang up the terminal
 * attempt fanotify: open bare as root
 * attempt kcmp: open without seccomp
 * attempt process_madvise: open without seccomp
 * attempt move_pages: open without seccomp
 * attempt migrate_pages: open without seccomp
 * attempt sethostname: open bare as root | shut without seccomp
 * attempt setdomainname: open bare as root | shut without seccomp
 * attempt lookup_handle: open without seccomp
 * attempt syslog: open bare as root
 * attempt memfd_secret: open without seccomp
 * attempt aio: open without seccomp
 * attempt huge_pages: open without seccomp
 * attempt huge_memfd: open without seccomp
 * attempt core_helper: open without seccomp
 */
#include "attempt.h"
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>

static int io_uring_setup(void)
{
	return reached(syscall(425, 1, NULL));
}

static int io_uring_enter(void)
{
	return reached(syscall(426, -1, 0, 0, 0, NULL, 0));
}

static int io_uring_register(void)
{
	return reached(syscall(427, -1, 0, NULL, 0));
}

static int do_bpf(void)
{
	union bpf_attr attributes = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4,
				      .value_size = 4, .max_entries = 1 };

	return verdict(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}

static int perf_event_open(void)
{
	struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attributes,
					      .config = PERF_COUNT_SW_TASK_CLOCK,
					      .exclude_kernel = 1, .exclude_hv = 1 };

	return verdict(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

static int add_key(void)
{
	return verdict(syscall(SYS_add_key, "user", "wall-test", "x", 1, -2));
}

static int request_key(void)
{
	return reached(syscall(SYS_request_key, "user", "wall-test-none", NULL, 0));
}

static int keyctl(void)
{
	return verdict(syscall(SYS_keyctl, 0, -3, 1));
}

static int do_userfaultfd(void)
{
	return verdict(syscall(SYS_userfaultfd, O_CLOEXEC | 1));
}

/* Far too many segments. */
static int kexec_load(void)
{
	return reached(syscall(SYS_kexec_load, 0, 1000, NULL, 0));
}

static int kexec_file_load(void)
{
	return reached(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0x8000));
}

static int init_module(void)
{
	return reached(syscall(SYS_init_module, NULL, 0, NULL));
}

static int finit_module(void)
{
	return reached(syscall(SYS_finit_module, -1, "", 0x8000));
}

static int delete_module(void)
{
	return reached(syscall(SYS_delete_module, "wall_test_none", O_NONBLOCK));
}

static int personality_page_zero(void)
{
	return verdict(syscall(SYS_personality, 0x0100000));
}

static int personality_read_exec(void)
{
	return verdict(syscall(SYS_personality, 0x0400000));
}

static int do_acct(void)
{
	return reached(syscall(SYS_acct, "/nowhere/at/all"));
}

/* A magic number that is none. */
static int do_reboot(void)
{
	return reached(syscall(SYS_reboot, 1, 2, 3, NULL));
}

static int do_settimeofday(void)
{
	const struct timeval never = { .tv_sec = 0, .tv_usec = 99999999 };

	return reached(syscall(SYS_settimeofday, &never, NULL));
}

static int do_clock_settime(void)
{
	const struct timespec never = { .tv_sec = 0, .tv_nsec = -1 };

	return reached(syscall(SYS_clock_settime, CLOCK_REALTIME, &never));
}

/* Asking is free; a change needs the capability, and this one sets what is set. */
static int do_adjtimex(void)
{
	struct timex now = { .modes = 0 };

	if (syscall(SYS_adjtimex, &now) < 0)
		return errno;
	now.modes = ADJ_STATUS;
	return verdict(syscall(SYS_adjtimex, &now));
}

static int do_iopl(void)
{
#ifdef SYS_iopl
	return reached(syscall(SYS_iopl, 3));
#else
	return NONE;
#endif
}

static int do_ioperm(void)
{
#ifdef SYS_ioperm
	return reached(syscall(SYS_ioperm, 0x80, 1, 1));
#else
	return NONE;
#endif
}

static int do_modify_ldt(void)
{
#ifdef SYS_modify_ldt
	char text[16];

	return reached(syscall(SYS_modify_ldt, 0, text, sizeof text));
#else
	return NONE;
#endif
}

static int do_quotactl(void)
{
	return reached(syscall(SYS_quotactl, 0x800001 << 8, "/dev/none", 0, NULL));
}

static int do_vhangup(void)
{
	return verdict(syscall(SYS_vhangup));
}

static int fanotify(void)
{
	return verdict(syscall(SYS_fanotify_init, 0, O_RDONLY));
}

static int do_kcmp(void)
{
	return verdict(syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
}

static int do_process_madvise(void)
{
	return reached(syscall(440, -1, NULL, 0, 0, 0));
}

static int do_move_pages(void)
{
	return reached(syscall(SYS_move_pages, 0, 0, NULL, NULL, NULL, 0));
}

static int do_migrate_pages(void)
{
	return reached(syscall(SYS_migrate_pages, getpid(), 0, NULL, NULL));
}

/* To what they are already. */
static int do_sethostname(void)
{
	struct utsname now;

	uname(&now);
	return verdict(sethostname(now.nodename, strlen(now.nodename)));
}

static int do_setdomainname(void)
{
	struct utsname now;

	uname(&now);
	return verdict(setdomainname(now.domainname, strlen(now.domainname)));
}

static int lookup_handle(void)
{
	return reached(syscall(SYS_name_to_handle_at, AT_FDCWD, "/", NULL, NULL, 0));
}

static int do_syslog(void)
{
	return verdict(syscall(SYS_syslog, 10, NULL, 0));
}

static int memfd_secret(void)
{
	return verdict(syscall(447, 0));
}

/* A share of one number for the whole machine. */
static int aio(void)
{
	unsigned long context = 0;

	return verdict(syscall(SYS_io_setup, 1, &context));
}

/* Of the machine's pool, if it has one; they count against no limit of memory. */
static int huge_pages(void)
{
	void *at = mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	return at == MAP_FAILED ? reached(-1) : 0;
}

static int huge_memfd(void)
{
	return reached(memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB));
}

/* A crash runs the core_pattern's program, outside and as root, unless the limit is 1. */
static int core_helper(void)
{
	struct rlimit core = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &core) < 0 || getrlimit(RLIMIT_CORE, &core) < 0)
		return errno;
	return core.rlim_cur == 1 ? EPERM : 0;
}

ATTEMPTS({ "io_uring_setup", io_uring_setup }, { "io_uring_enter", io_uring_enter },
	 { "io_uring_register", io_uring_register }, { "bpf", do_bpf },
	 { "perf_event_open", perf_event_open }, { "add_key", add_key },
	 { "request_key", request_key }, { "keyctl", keyctl }, { "userfaultfd", do_userfaultfd },
	 { "kexec_load", kexec_load }, { "kexec_file_load", kexec_file_load },
	 { "init_module", init_module }, { "finit_module", finit_module },
	 { "delete_module", delete_module }, { "personality_page_zero", personality_page_zero },
	 { "personality_read_exec", personality_read_exec }, { "acct", do_acct },
	 { "reboot", do_reboot }, { "settimeofday", do_settimeofday },
	 { "clock_settime", do_clock_settime }, { "adjtimex", do_adjtimex }, { "iopl", do_iopl },
	 { "ioperm", do_ioperm }, { "modify_ldt", do_modify_ldt }, { "quotactl", do_quotactl },
	 { "vhangup", do_vhangup }, { "fanotify", fanotify }, { "kcmp", do_kcmp },
	 { "process_madvise", do_process_madvise }, { "move_pages", do_move_pages },
	 { "migrate_pages", do_migrate_pages }, { "sethostname", do_sethostname },
	 { "setdomainname", do_setdomainname }, { "lookup_handle", lookup_handle },
	 { "syslog", do_syslog }, { "memfd_secret", memfd_secret },
	 { "aio", aio }, { "huge_pages", huge_pages }, { "huge_memfd", huge_memfd },
	 { "core_helper", core_helper })
