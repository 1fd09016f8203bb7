/* SPDX-License-Identifier: MIT */
/*
 * control.c - what languages that cannot move a descriptor need of the machine.
 *
 * A shared object of its own, without any library: drivers carry it as text and have their
 * interpreter load it (dlopen of Node, bash and Lua).  Loading alone moves the control descriptor
 * from 3 to a number that code does not meet by accident, closed on exec.  For Lua, which has
 * neither descriptors nor signals, there are functions besides.
 */
#include <stddef.h>

#if defined(__x86_64__)
enum {
	SYS_READ = 0,
	SYS_WRITE = 1,
	SYS_OPEN_AT = 257,
	SYS_CLOSE = 3,
	SYS_SIGACTION = 13,
	SYS_SIGPROCMASK = 14,
	SYS_RETURN = 15,
	SYS_GETPID = 39,
	SYS_KILL = 62,
	SYS_SIGPENDING = 127,
	SYS_EXIT_GROUP = 231,
	SYS_PPOLL = 271,
	SYS_DUP3 = 292
};

static long call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long out;

	__asm__ volatile("syscall"
			 : "=a"(out)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
			 : "rcx", "r11", "memory");
	return out;
}

__attribute__((naked)) static void give_back(void)
{
	__asm__ volatile("mov %0, %%eax\n\tsyscall" : : "i"(SYS_RETURN));
}
#define RESTORER 0x04000000ul
#elif defined(__aarch64__)
enum {
	SYS_READ = 63,
	SYS_WRITE = 64,
	SYS_OPEN_AT = 56,
	SYS_CLOSE = 57,
	SYS_SIGACTION = 134,
	SYS_SIGPROCMASK = 135,
	SYS_GETPID = 172,
	SYS_KILL = 129,
	SYS_SIGPENDING = 136,
	SYS_EXIT_GROUP = 94,
	SYS_PPOLL = 73,
	SYS_DUP3 = 24
};

static long call(long number, long a, long b, long c, long d)
{
	register long n __asm__("x8") = number;
	register long first __asm__("x0") = a;
	register long second __asm__("x1") = b;
	register long third __asm__("x2") = c;
	register long fourth __asm__("x3") = d;

	__asm__ volatile("svc 0"
			 : "+r"(first)
			 : "r"(n), "r"(second), "r"(third), "r"(fourth)
			 : "memory");
	return first;
}
#define give_back NULL
#define RESTORER 0ul
#else
#error "drivers are made for x86-64 and aarch64"
#endif

enum { AS_GIVEN = 3, CLOSE_ON_EXEC = 02000000, AT_CWD = -100, INTERRUPTED = -4, SIGINT_NUMBER = 2 };

/* As the kernel has it. */
typedef struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
} kernel_action;

static int control = -1;
static long owner;

/* The least of the numbers that the limit of open files allows. */
__attribute__((constructor)) static void move(void)
{
	static const int places[] = { 900, 240, 70 };
	size_t i;

	for (i = 0; control < 0 && i < sizeof places / sizeof places[0]; i++)
		if (call(SYS_DUP3, AS_GIVEN, places[i], CLOSE_ON_EXEC, 0) == places[i])
			control = places[i];
	if (control >= 0)
		call(SYS_CLOSE, AS_GIVEN, 0, 0, 0);
	owner = call(SYS_GETPID, 0, 0, 0, 0);
}

/* ---- Bash
 *
 * A child is forked with the shell's handler, which forgets what strikes it before it is another program; a
 * signal that came while the shell had it blocked, around the fork, is the shell's alone; and one that comes
 * as a child ends by itself counts as that child's.  Each time the shell then goes on as if nothing had
 * been.  So a child has no handler from its first moment on, what is pending at a fork is sent to
 * the whole group again, and whoever forks looks whether the host has told of an interrupt (its frame stays
 * unread for as long as code runs) that code has no trap for. */
typedef void (*fork_fn)(void);
#define WEAK extern __attribute__((weak))
WEAK int __register_atfork(fork_fn prepare, fork_fn parent, fork_fn child, void *dso);
WEAK int pthread_atfork(fork_fn prepare, fork_fn parent, fork_fn child);
WEAK int signal_is_trapped(int number);
WEAK int signal_is_pending(int number);
WEAK volatile int interrupt_state;

/* Is there something to be read? */
static int told(void)
{
	struct {
		int fd;
		short events, revents;
	} poll = { control, 1, 0 };
	long now[2] = { 0, 0 };

	return call(SYS_PPOLL, (long)&poll, 1, (long)now, 0) > 0;
}

static void interrupt(long pid)
{
	call(SYS_KILL, pid, SIGINT_NUMBER, 0, 0);
}

static void before_fork(void)
{
	if (!signal_is_trapped(SIGINT_NUMBER) && told())
		interrupt(call(SYS_GETPID, 0, 0, 0, 0));
}

static void in_parent(void)
{
	unsigned long pending = 0;

	call(SYS_SIGPENDING, (long)&pending, sizeof pending, 0, 0);
	if (pending >> (SIGINT_NUMBER - 1) & 1)
		interrupt(0);
}

static void in_child(void)
{
	kernel_action action = { 0 }, none = { 0 };

	call(SYS_SIGACTION, SIGINT_NUMBER, 0, (long)&action, sizeof action.mask);
	if ((unsigned long)action.handler <= 1) /* default, or ignored: as it was */
		return;
	call(SYS_SIGACTION, SIGINT_NUMBER, (long)&none, 0, sizeof none.mask);
	/* the shell was struck, and has not got to it, or to its trap */
	if (interrupt_state || (signal_is_pending && signal_is_pending(SIGINT_NUMBER)))
		interrupt(call(SYS_GETPID, 0, 0, 0, 0));
}

__attribute__((constructor)) static void watch_forks(void)
{
	if (!signal_is_trapped || !&interrupt_state) /* another interpreter */
		return;
	if (__register_atfork)
		__register_atfork(before_fork, in_parent, in_child, NULL);
	else if (pthread_atfork)
		pthread_atfork(before_fork, in_parent, in_child);
}

/* `__sandbox_hold 1` and `__sandbox_hold`, as builtins are declared: interrupts wait, and no longer do.
 * Bash gives a signal its default action, which ends it, on the way from ignored to its own handler. */
static int hold(void *words)
{
	unsigned long interrupts = 1ul << (SIGINT_NUMBER - 1);

	call(SYS_SIGPROCMASK, words ? 0 : 1, (long)&interrupts, 0, sizeof interrupts);
	return 0;
}

static char *const no_help[] = { NULL };

__attribute__((visibility("default"))) const struct {
	const char *name;
	int (*function)(void *words);
	int flags;
	char *const *help;
	const char *usage;
	char *handle;
} __sandbox_hold_struct = { "__sandbox_hold", hold, 1, no_help, "__sandbox_hold", NULL };

/* ---- Lua: the part of its interface that is the same from 5.1 on; weak, for others load this, too
 * ---- */
typedef struct lua_State lua_State;
typedef int (*lua_fn)(lua_State *);
WEAK void lua_pushboolean(lua_State *L, int value);
WEAK void lua_pushcclosure(lua_State *L, lua_fn fn, int n);
WEAK const char *lua_pushlstring(lua_State *L, const char *text, size_t len);
WEAK const char *lua_tolstring(lua_State *L, int at, size_t *len);
WEAK int lua_sethook(lua_State *L, void (*hook)(lua_State *, void *), int mask, int count);
WEAK int lua_error(lua_State *L);

static lua_State *volatile listening; /* code runs that an interrupt may stop */

static void stop(lua_State *L, void *at)
{
	(void)at;
	lua_sethook(L, NULL, 0, 0);
	lua_pushlstring(L, "interrupted!", 12);
	lua_error(L);
}

static void on_interrupt(int number)
{
	(void)number;
	if (listening)
		lua_sethook(listening, stop, 15,
			    1); /* at the next call, return, line or instruction */
}

static int lua_listen(lua_State *L)
{
	listening = L;
	return 0;
}

static int lua_deaf(lua_State *L)
{
	listening = NULL;
	lua_sethook(L, NULL, 0, 0);
	return 0;
}

static int lua_waiting(lua_State *L)
{
	lua_pushboolean(L, told());
	return 1;
}

/* What has come; "" = the host has gone. */
static int lua_read(lua_State *L)
{
	static char piece[65536];
	long n;

	do
		n = call(SYS_READ, control, (long)piece, sizeof piece, 0);
	while (n == INTERRUPTED);
	lua_pushlstring(L, piece, n > 0 ? (size_t)n : 0);
	return 1;
}

static int lua_write(lua_State *L)
{
	size_t len, at = 0;
	const char *text = lua_tolstring(L, 1, &len);

	if (call(SYS_GETPID, 0, 0, 0, 0) != owner) /* a child of a fork must not speak */
		call(SYS_EXIT_GROUP, 0, 0, 0, 0);
	while (text && at < len) {
		long n = call(SYS_WRITE, control, (long)(text + at), (long)(len - at), 0);

		if (n > 0)
			at += (size_t)n;
		else if (n != INTERRUPTED)
			call(SYS_EXIT_GROUP, 0, 0, 0, 0);
	}
	return 0;
}

/* This file becomes the standard input. */
static int lua_input(lua_State *L)
{
	long fd = call(SYS_OPEN_AT, AT_CWD, (long)lua_tolstring(L, 1, NULL), 0, 0);

	if (fd <= 0)
		return 0;
	call(SYS_DUP3, fd, 0, 0, 0);
	call(SYS_CLOSE, fd, 0, 0, 0);
	return 0;
}

__attribute__((visibility("default"))) int luaopen_control(lua_State *L);
int luaopen_control(lua_State *L)
{
	static const lua_fn functions[] = { lua_read, lua_write, lua_listen, lua_deaf, lua_input,
					    lua_waiting };
	const kernel_action action = { on_interrupt, RESTORER, give_back, 0 };
	int i, count = sizeof functions / sizeof functions[0];

	if (control < 0)
		return 0;
	call(SYS_SIGACTION, SIGINT_NUMBER, (long)&action, 0, sizeof action.mask);
	for (i = 0; i < count; i++)
		lua_pushcclosure(L, functions[i], 0);
	return count;
}
