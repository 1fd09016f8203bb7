/* SPDX-License-Identifier: MIT */
/*
 * Sockets that are no TCP or UDP: a listener of the host by path and by abstract name, and the
 * families that reach into the kernel.
 *
 * wall network
 * fixture canary unix unix_shown abstract
 * attempt unix_path: open without root+landlock | shut without landlock
 * attempt unix_datagram: open without root+landlock | shut without landlock
 * attempt unix_by_link: open without root+landlock | shut without landlock
 * attempt shown: open without hide
 * attempt shown_moved: open bare | shut without hide
 * attempt shown_linked: open bare | shut without hide
 * attempt abstract: open without netns+scope | shut without scope | shut without netns if scope
 * attempt netlink_change: open bare as root
 * attempt netlink_diag: open without seccomp
 * attempt netlink_xfrm: open without seccomp
 * attempt netlink_netfilter: open without seccomp
 * attempt netlink_generic: open without seccomp
 * attempt netlink_audit: open without seccomp
 * attempt netlink_kobject: open without seccomp
 * attempt vsock: open without seccomp
 * attempt packet: open bare as root | only root
 * attempt raw: open bare as root | only root
 * attempt raw6: open bare as root | only root
 * attempt alg: open without seccomp
 * attempt bluetooth: open without seccomp
 * attempt key: open without seccomp
 * attempt unknown_family: open without seccomp
 */
#include "attempt.h"
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static int dial_path(const char *path, int type)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
		return errno;
	return type == SOCK_STREAM ? 0 : verdict(send(fd, "x", 1, MSG_NOSIGNAL));
}

static int unix_path(void)
{
	return dial_path(target("UNIX_PATH"), SOCK_STREAM);
}

static int unix_datagram(void)
{
	return dial_path(target("UNIX_DATAGRAM"), SOCK_DGRAM);
}

static int unix_by_link(void)
{
	char path[96];

	snprintf(path, sizeof path, "%s/socket-link", target("WORKSPACE"));
	return dial_path(path, SOCK_STREAM);
}

/* In the workspace, where its file may be written. */
static int shown(void)
{
	return dial_path(target("SHOWN_SOCKET"), SOCK_STREAM);
}

/* By another name of its directory, for this run or for the next one. */
static int shown_moved(void)
{
	const char *from = target("WORKSPACE");
	char old[4096], new[4096], path[4110];
	int got;

	snprintf(old, sizeof old, "%s/run", from);
	snprintf(new, sizeof new, "%s/moved", from);
	if (rename(old, new) < 0)
		return errno;
	snprintf(path, sizeof path, "%s/s", new);
	got = dial_path(path, SOCK_STREAM);
	rename(new, old);
	return got;
}

static int shown_linked(void)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/second-name", target("WORKSPACE"));
	if (link(target("SHOWN_SOCKET"), path) < 0)
		return errno;
	int got = dial_path(path, SOCK_STREAM);

	unlink(path);
	return got;
}

static int abstract(void)
{
	const char *name = target("UNIX_ABSTRACT");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "%s", name);
	return verdict(connect(fd, (struct sockaddr *)&to,
			       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))));
}

/* A family that this kernel was built without shows the same errno with and without the wall. */
static int make(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	return errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT ? EAFNOSUPPORT :
											      errno;
}

/* Asking for routes is an ordinary thing (getifaddrs does it); changing an interface is not: the
 * loopback set up as it is already. */
static int netlink_change(void)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} ask = { .head = { .nlmsg_len = sizeof ask, .nlmsg_type = RTM_NEWLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		  .link = { .ifi_index = 1, .ifi_change = IFF_UP, .ifi_flags = IFF_UP } };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return errno;
	if (send(fd, &ask, sizeof ask, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0)
		return errno;
	return answer.head.nlmsg_type == NLMSG_ERROR ? -answer.error.error : 0;
}

static int netlink_diag(void)
{
	return make(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
}

static int netlink_xfrm(void)
{
	return make(AF_NETLINK, SOCK_RAW, NETLINK_XFRM);
}

static int netlink_netfilter(void)
{
	return make(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

static int netlink_generic(void)
{
	return make(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
}

static int netlink_audit(void)
{
	return make(AF_NETLINK, SOCK_RAW, 9);
}

static int netlink_kobject(void)
{
	return make(AF_NETLINK, SOCK_RAW, 15);
}

static int vsock(void)
{
	return make(AF_VSOCK, SOCK_STREAM, 0);
}

static int packet(void)
{
	return make(AF_PACKET, SOCK_RAW, htons(3));
}

static int raw(void)
{
	return make(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int raw6(void)
{
	return make(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}

static int alg(void)
{
	return make(AF_ALG, SOCK_SEQPACKET, 0);
}

static int bluetooth(void)
{
	return make(31, SOCK_RAW, 1);
}

static int key(void)
{
	return make(15, SOCK_RAW, 2);
}

/* RDS: a family with a history. */
static int unknown_family(void)
{
	return make(21, SOCK_SEQPACKET, 0);
}

ATTEMPTS({ "unix_path", unix_path }, { "unix_datagram", unix_datagram },
	 { "unix_by_link", unix_by_link }, { "shown", shown }, { "shown_moved", shown_moved },
	 { "shown_linked", shown_linked }, { "abstract", abstract },
	 { "netlink_change", netlink_change },
	 { "netlink_diag", netlink_diag }, { "netlink_xfrm", netlink_xfrm },
	 { "netlink_netfilter", netlink_netfilter }, { "netlink_generic", netlink_generic }, { "netlink_audit", netlink_audit },
	 { "netlink_kobject", netlink_kobject }, { "vsock", vsock }, { "packet", packet },
	 { "raw", raw }, { "raw6", raw6 }, { "alg", alg }, { "bluetooth", bluetooth },
	 { "key", key }, { "unknown_family", unknown_family })
