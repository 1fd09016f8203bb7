/* SPDX-License-Identifier: MIT */
/*
 * Going out: TCP and UDP to listeners of this host over IPv4 and IPv6, by every way to write the
 * address, and a name asked of a DNS server.  Nothing leaves the machine, control or not.
 *
 * wall network
 * fixture tcp tcp6 udp
 * attempt tcp_loopback: open without netns
 * attempt tcp_any_address: open without netns
 * attempt tcp_mapped: open without netns
 * attempt tcp6_loopback: open without netns
 * attempt tcp_fast_open: open without netns
 * attempt udp_send: open without netns
 * attempt dns_query: open without netns
 * attempt sees_interfaces: open without netns
 */
#include "attempt.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

static int dial4(uint32_t address, int type, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(address) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	return verdict(connect(fd, (struct sockaddr *)&to, sizeof to));
}

static int dial6(const char *address, int port)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno == EAFNOSUPPORT ? NONE : errno;
	inet_pton(AF_INET6, address, &to.sin6_addr);
	return verdict(connect(fd, (struct sockaddr *)&to, sizeof to));
}

static int tcp_loopback(void)
{
	return dial4(INADDR_LOOPBACK, SOCK_STREAM, number("TCP_PORT"));
}

static int tcp_any_address(void)
{
	return dial4(INADDR_ANY, SOCK_STREAM, number("TCP_PORT"));
}

static int tcp_mapped(void)
{
	return dial6("::ffff:127.0.0.1", number("TCP_PORT"));
}

static int tcp6_loopback(void)
{
	if (number("TCP6_PORT") == 0)
		return NONE;
	return dial6("::1", number("TCP6_PORT"));
}

static int tcp_fast_open(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)number("TCP_PORT")),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	if (sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to) == 1)
		return 0;
	return errno == EOPNOTSUPP ? NONE : errno;
}

/* Sent into the void is not "got through": the listener answers, and the answer must come. */
static int udp_ask(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct pollfd wait = { .events = POLLIN };
	char answer[16];

	wait.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (wait.fd < 0)
		return errno;
	if (sendto(wait.fd, "ask", 3, 0, (struct sockaddr *)&to, sizeof to) < 0)
		return errno;
	if (poll(&wait, 1, 2000) <= 0)
		return ETIMEDOUT;
	return verdict(recv(wait.fd, answer, sizeof answer, 0));
}

static int udp_send(void)
{
	return udp_ask(number("UDP_PORT"));
}

/* A question in the form that a resolver sends, to the server that listens on that port. */
static int dns_query(void)
{
	static const unsigned char question[] =
		"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04test\x07invalid\x00\x00\x01\x00\x01";
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)number("UDP_PORT")),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct pollfd wait = { .events = POLLIN };
	char answer[64];

	wait.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (wait.fd < 0 || connect(wait.fd, (struct sockaddr *)&to, sizeof to) < 0)
		return errno;
	if (send(wait.fd, question, sizeof question - 1, 0) < 0)
		return errno;
	if (poll(&wait, 1, 2000) <= 0)
		return ETIMEDOUT;
	return verdict(recv(wait.fd, answer, sizeof answer, 0));
}

/* Any interface but the loopback tells where the guest runs. */
static int sees_interfaces(void)
{
	struct if_nameindex *all = if_nameindex();
	char line[512];
	FILE *f = fopen("/proc/net/dev", "re");
	int found = 0;

	if (all != NULL)
		for (struct if_nameindex *i = all; i->if_index != 0; i++)
			found |= strcmp(i->if_name, "lo") != 0;
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		found |= strchr(line, ':') != NULL && strstr(line, " lo:") == NULL;
	return found ? 0 : ENODEV;
}

ATTEMPTS({ "tcp_loopback", tcp_loopback }, { "tcp_any_address", tcp_any_address },
	 { "tcp_mapped", tcp_mapped }, { "tcp6_loopback", tcp6_loopback },
	 { "tcp_fast_open", tcp_fast_open }, { "udp_send", udp_send }, { "dns_query", dns_query },
	 { "sees_interfaces", sees_interfaces })
