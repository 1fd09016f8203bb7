/* SPDX-License-Identifier: MIT */
/*
 * More memory than the limit, by each way that there is: 200 MiB under a limit of 48 MiB.  The
 * control takes them without the limit, which hurts no machine.
 *
 * wall memory
 * options --mem 48M --timeout 45s
 * each
 * backends linux process
 * attempt heap: open without memory | code memory_limit
 * attempt stack: open without memory | code memory_limit
 * attempt rested: open without memory | code memory_limit
 * attempt huge_pages: open without memory | code memory_limit
 * attempt shared_map: open without memory | code memory_limit
 * attempt children: open without memory | code memory_limit
 * attempt left_the_session: open without memory | code memory_limit
 * attempt tmpfs: open without memory+disk | code memory_limit fs_quota | needs memory-cgroup own-root
 * attempt memfd: open without memory | code memory_limit | needs memory-cgroup
 * attempt tcp_buffers: open without memory | needs memory-cgroup
 * attempt tcp_crowd: open without memory | code memory_limit | needs memory-cgroup own-root
 * attempt udp_buffers: open without memory | needs memory-cgroup
 * attempt netlink_queues: open without seccomp | needs memory-cgroup
 * attempt refused_is_told: open without memory | code memory_limit
 */
#include "attempt.h"
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { MIB = 1 << 20, WANTED = 200 };

/* A sampled limit needs something to see: what was taken is held for a while. */
static void hold(void)
{
	usleep(1500 * 1000);
}

static int touch(char *at, size_t mib)
{
	if (at == NULL || at == MAP_FAILED)
		return ENOMEM;
	for (size_t i = 0; i < mib * MIB; i += 4096)
		at[i] = 1;
	hold();
	return 0;
}

static int heap(void)
{
	return touch(malloc((size_t)WANTED * MIB), WANTED);
}

static void *deep(void *unused)
{
	volatile char frame[64 * 1024];

	frame[0] = frame[sizeof frame / 2] = 1;
	(void)unused;
	return NULL;
}

static int stack(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	char *at = mmap(NULL, (size_t)WANTED * MIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (touch(at, WANTED) != 0)
		return ENOMEM;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, at, (size_t)WANTED * MIB);
	if (pthread_create(&thread, &attributes, deep, NULL) != 0)
		return EAGAIN;
	pthread_join(thread, NULL);
	return 0;
}

/* Whoever watches has seen nothing but sleep. */
static int rested(void)
{
	usleep(400 * 1000);
	return heap();
}

/* They fill memory many times as fast. */
static int huge_pages(void)
{
	size_t bytes = (size_t)WANTED * MIB;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	madvise(at, bytes, MADV_HUGEPAGE);
	return touch(at, WANTED);
}

static int shared_map(void)
{
	return touch(mmap(NULL, (size_t)WANTED * MIB, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0), WANTED);
}

/* No single process is above the limit. */
static int children(void)
{
	int status, bad = 0;

	for (int i = 0; i < 8; i++) {
		if (fork() == 0)
			_exit(touch(malloc((size_t)WANTED / 8 * MIB), WANTED / 8));
	}
	while (wait(&status) > 0)
		bad |= status;
	return bad ? ENOMEM : 0;
}

static int left_the_session(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		_exit(fork() == 0 ? touch(malloc((size_t)WANTED * MIB), WANTED) : (wait(&status), status != 0));
	}
	waitpid(pid, &status, 0);
	return status ? ENOMEM : 0;
}

static int fill(int fd)
{
	static char chunk[MIB];
	int bad = 0;

	memset(chunk, 'x', sizeof chunk);
	for (int i = 0; i < WANTED && !bad; i++)
		bad = write(fd, chunk, sizeof chunk) != (ssize_t)sizeof chunk;
	hold();
	return bad ? ENOSPC : 0;
}

static int tmpfs(void)
{
	int fd = open("/tmp/hog", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 ? errno : fill(fd);
}

static int memfd(void)
{
	int fd = memfd_create("hog", MFD_CLOEXEC);

	return fd < 0 ? errno : fill(fd);
}

/* Bytes that the kernel holds for a socket: SK_MEMINFO_RMEM_ALLOC and SK_MEMINFO_WMEM_QUEUED. */
static size_t held(int fd)
{
	uint32_t info[9] = { 0 };
	socklen_t size = sizeof info;

	getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &size);
	return info[0] + info[5];
}

static void many_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int bound(int kind, struct sockaddr_in *to)
{
	socklen_t size = sizeof *to;
	int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);

	*to = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(fd, (struct sockaddr *)to, size) < 0 ||
	    getsockname(fd, (struct sockaddr *)to, &size) < 0)
		return -1;
	return fd;
}

/* As long as it takes something; `patience` times it may take nothing. */
static void stuff(int fd, int patience)
{
	static char chunk[64 * 1024];

	while (patience > 0) {
		if (send(fd, chunk, sizeof chunk, MSG_DONTWAIT) > 0)
			continue;
		patience--;
		usleep(200);
	}
}

/* Connections that nobody reads from, each filled until its buffers take no more. */
static int connections(int most, int patience)
{
	struct sockaddr_in to;
	int listener = bound(SOCK_STREAM, &to);
	size_t got = 0;

	many_descriptors();
	if (listen(listener, 8) < 0)
		return errno;
	for (int i = 0; i < most && got < (size_t)WANTED * MIB; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;

		if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
			return errno;
		peer = accept(listener, NULL, NULL);
		stuff(fd, patience);
		stuff(peer, patience);
		got += held(fd) + held(peer);
	}
	hold();
	return got < (size_t)WANTED * MIB ? ENOBUFS : 0;
}

static int tcp_buffers(void)
{
	return connections(400, 3);
}

/* However little is left, the kernel lets each socket have a first packet: so take many. */
static int tcp_crowd(void)
{
	return connections(4000, 1);
}

static int udp_buffers(void)
{
	static char text[1000];
	struct sockaddr_in to;
	int from = bound(SOCK_DGRAM, &to);
	size_t got = 0;

	many_descriptors();
	for (int i = 0; i < 4000 && got < (size_t)WANTED * MIB; i++) {
		int fd = bound(SOCK_DGRAM, &to);

		if (fd < 0)
			return errno;
		for (int j = 0; j < 150; j++)
			sendto(from, text, sizeof text, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to);
		got += held(fd);
	}
	hold();
	return got < (size_t)WANTED * MIB ? ENOBUFS : 0;
}

/* Answers of the kernel that nobody fetches. */
static int netlink_queues(void)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} ask = { { sizeof ask, RTM_GETLINK, NLM_F_REQUEST, 0, 0 }, { .ifi_index = 1 } };
	size_t got = 0;

	many_descriptors();
	for (int i = 0; i < 4000 && got < (size_t)WANTED * MIB; i++) {
		int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

		if (fd < 0)
			return errno;
		for (int j = 0; j < 100 && send(fd, &ask, sizeof ask, MSG_DONTWAIT) > 0; j++)
			continue;
		got += held(fd);
	}
	hold();
	return got < (size_t)WANTED * MIB ? ENOBUFS : 0;
}

/* Ends by itself with an error once memory is refused: it still counts as the limit. */
static int refused_is_told(void)
{
	char *at[WANTED];

	for (int i = 0; i < WANTED; i++) {
		at[i] = malloc(MIB);
		if (at[i] == NULL)
			return ENOMEM;
		memset(at[i], 1, MIB);
	}
	hold();
	return 0;
}

ATTEMPTS({ "heap", heap }, { "stack", stack }, { "rested", rested }, { "huge_pages", huge_pages },
	 { "shared_map", shared_map },
	 { "children", children }, { "left_the_session", left_the_session }, { "tmpfs", tmpfs },
	 { "memfd", memfd }, { "tcp_buffers", tcp_buffers }, { "tcp_crowd", tcp_crowd },
	 { "udp_buffers", udp_buffers }, { "netlink_queues", netlink_queues }, { "refused_is_told", refused_is_told })
