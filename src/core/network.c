/* SPDX-License-Identifier: MIT */
/*
 * network.c - is a network policy sound?  A rule that could never match, or whose writer meant
 * something else, is refused: it would be a hole or a wall that nobody knows of.
 */
#include "core.h"

#include <arpa/inet.h>
#include <strings.h>

#define NETWORK_NAME_MAX 253
#define NETWORK_LABEL_MAX 63

static int network_refuse(sb_error *err, const char *what, const char *subject, const char *why)
{
	return error_set(err, SB_ERR_INVALID_SPEC, "network", "%s \"%s\" %s", what, subject, why);
}

/* ---- Hosts ---- */

static bool network_is_address(const char *text, int *bits)
{
	unsigned char address[16];

	*bits = 32;
	if (inet_pton(AF_INET, text, address) == 1)
		return true;
	*bits = 128;
	return inet_pton(AF_INET6, text, address) == 1;
}

/* Decimal, no sign, no zero in front, at most `most`; -1 = something else. */
static long network_number(const char *text, size_t len, long most)
{
	long value = 0;

	if (len == 0 || len > 5 || (text[0] == '0' && len > 1))
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value <= most ? value : -1;
}

static const char *network_check_prefix(const char *host, const char *slash)
{
	char address[64];
	size_t n = (size_t)(slash - host);
	int bits;

	if (n >= sizeof address)
		return "is not an address with a prefix length";
	memcpy(address, host, n);
	address[n] = '\0';
	if (!network_is_address(address, &bits) ||
	    network_number(slash + 1, strlen(slash + 1), bits) < 0)
		return "is not an address with a prefix length; write \"10.0.0.0/8\"";
	return NULL;
}

static const char *network_check_label(const char *label, size_t n)
{
	if (n == 0)
		return "has an empty part";
	if (n > NETWORK_LABEL_MAX)
		return "has a part of more than 63 bytes";
	if (label[0] == '-' || label[n - 1] == '-')
		return "has a part that begins or ends with \"-\"";
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)label[i];

		if (c == '*')
			return "has \"*\" in it; only \"*.name\" is a pattern";
		if (c < 0x80 && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && c != '-' && c != '_')
			return "is not a name, an address or a prefix";
	}
	return NULL;
}

/* No top-level name is a number: "1.2.3", "256.1.1.1" and "127.0x1" are mistyped addresses. */
static bool network_is_number(const char *label, size_t n)
{
	if (n > 2 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X'))
		return strspn(label + 2, "0123456789abcdefABCDEF") >= n - 2;
	return strspn(label, "0123456789") >= n;
}

static const char *network_check_name(const char *name)
{
	size_t len = strlen(name), n = 0;
	const char *label = name, *why = NULL;

	if (len > 0 && name[len - 1] == '.') /* the root's dot says nothing */
		len--;
	if (len == 0)
		return "is empty";
	if (len > NETWORK_NAME_MAX)
		return "is longer than 253 bytes";
	if (!utf8_valid(name, len))
		return "is not UTF-8";
	while (!why) {
		size_t left = len - (size_t)(label - name);

		n = 0;
		while (n < left && label[n] != '.')
			n++;
		why = network_check_label(label, n);
		if (why || n == left)
			break;
		label += n + 1;
	}
	return why			     ? why
	       : network_is_number(label, n) ? "is not a name, and not an address either"
					     : NULL;
}

static const char *network_check_host(const char *host)
{
	const char *slash = strchr(host, '/');
	int bits;

	if (!host[0])
		return "is empty";
	if (strstr(host, "://"))
		return "is a URL; name the host alone";
	if (network_is_address(host, &bits))
		return NULL;
	if (slash)
		return network_check_prefix(host, slash);
	if (host[0] == '[')
		return "has brackets; write the address without";
	if (strchr(host, ':'))
		return "has a port; use the rule's port";
	if (host[0] == '*' && host[1] == '.')
		return network_check_name(host + 2);
	return network_check_name(host);
}

static int network_check_rule(const sb_net_rule *in, sb_error *err)
{
	sb_net_rule rule;
	const char *why;
	int rc = record_read(&rule, sizeof rule, in, "sb_net_rule", err);

	if (rc < 0)
		return rc;
	if (!rule.host)
		return error_set(err, SB_ERR_INVALID_SPEC, "network", "a network rule has no host");
	why = network_check_host(rule.host);
	if (why)
		return network_refuse(err, "host pattern", rule.host, why);
	if (rule.action != SB_DENY && rule.action != SB_ALLOW)
		return network_refuse(err, "rule for", rule.host, "neither allows nor denies");
	if (rule.flavour != SB_HOST_SUFFIX && rule.flavour != SB_HOST_EXACT)
		return network_refuse(err, "rule for", rule.host, "has no known flavour");
	if (rule.port_last != 0 && (rule.port == 0 || rule.port_last < rule.port))
		return network_refuse(err, "rule for", rule.host,
				      "has a range of ports that is empty");
	return 0;
}

/* ---- Upstream ---- */

static const char *network_check_upstream(const char *url)
{
	static const char *const schemes[] = { "http://", "socks5://", "socks5h://" };
	const char *rest = NULL, *at, *colon;
	char host[NETWORK_NAME_MAX + 2];
	size_t n;
	int bits;

	for (size_t i = 0; i < BASE_ARRAY_LEN(schemes); i++)
		if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0)
			rest = url + strlen(schemes[i]);
	if (!rest)
		return "is not http://, socks5:// or socks5h://";
	at = strrchr(rest, '@');
	if (at && (at == rest || rest[0] == ':'))
		return "has a password without a user";
	if (at)
		rest = at + 1;
	n = strcspn(rest, "/?#");
	if (rest[n] != '\0' && strcmp(rest + n, "/") != 0)
		return "has a path; a proxy has none";
	if (rest[0] == '[') {
		colon = strchr(rest, ']');
		colon = colon && colon[1] == ':' ? colon + 1 : NULL;
	} else {
		colon = memchr(rest, ':', n);
	}
	if (!colon || network_number(colon + 1, (size_t)(rest + n - colon - 1), 65535) < 1)
		return "has no port; write scheme://host:port";
	n = (size_t)(colon - rest);
	if (n == 0 || n >= sizeof host)
		return "has no host";
	memcpy(host, rest, n);
	host[n] = '\0';
	if (host[0] == '[') {
		host[n - 1] = '\0';
		return network_is_address(host + 1, &bits) && bits == 128 ? NULL : "has no host";
	}
	return network_is_address(host, &bits) ? NULL : network_check_name(host);
}

/* The part before "@" stays out of messages: it may be a password. */
static int network_refuse_upstream(sb_error *err, const char *url, const char *why)
{
	const char *at = strrchr(url, '@');

	return network_refuse(err, "upstream", at ? at + 1 : url, why);
}

/* ---- The whole ---- */

static int network_check_mode(const sb_network *n, sb_error *err)
{
	bool rules = n->rules && n->rules[0];
	bool gate = n->mode == SB_NET_ALLOW_LIST || n->mode == SB_NET_PROXY;
	const char *name = sb_net_mode_name((int)n->mode), *extra = NULL;

	if (n->mode > SB_NET_PROXY)
		return error_set(err, SB_ERR_INVALID_SPEC, "network", "unknown network mode %u",
				 n->mode);
	if (!gate) {
		extra = n->rules	  ? "rules"
			: n->upstream	  ? "upstream"
			: n->mitm	  ? "mitm"
			: n->decide	  ? "decide callback"
			: n->port_count	  ? "ports"
			: n->secrets	  ? "secrets"
			: n->max_requests ? "max_requests"
			: n->max_bytes	  ? "max_bytes"
					  : NULL;
	} else if (n->mode == SB_NET_ALLOW_LIST && n->upstream) {
		extra = "upstream";
	}
	if (extra)
		return error_set(err, SB_ERR_INVALID_SPEC, "network",
				 "network mode \"%s\" takes no %s; use %s", name, extra,
				 gate ? "proxy" : "allow_list or proxy");
	if (n->mode == SB_NET_ALLOW_LIST && !rules && !n->decide)
		return error_set(
			err, SB_ERR_INVALID_SPEC, "network",
			"network mode \"allow_list\" has no rules; add one, or use deny_all");
	if (n->mode == SB_NET_PROXY && !n->upstream)
		return error_set(err, SB_ERR_INVALID_SPEC, "network",
				 "network mode \"proxy\" has no upstream; give one");
	return 0;
}

static int network_check_list(const char *const *list, const char *what, sb_error *err)
{
	for (; list && *list; list++)
		if (!**list)
			return network_refuse(err, what, "", "is empty");
	return 0;
}

static int network_check_mitm(const sb_mitm *in, sb_error *err)
{
	sb_mitm mitm;
	int rc = record_read(&mitm, sizeof mitm, in, "sb_mitm", err);

	if (rc == 0 && mitm.flags & ~(uint64_t)(SB_MITM_BODIES | SB_MITM_BODIES_REQUIRED))
		rc = error_set(err, SB_ERR_UNSUPPORTED, "network",
			       "mitm has a flag that this library "
			       "does not know");
	if (rc == 0 && mitm.max_body_bytes > INT64_MAX && mitm.max_body_bytes != SB_UNLIMITED)
		rc = error_set(err, SB_ERR_INVALID_SPEC, "network",
			       "mitm max_body_bytes is negative");
	if (rc == 0)
		rc = network_check_list(mitm.hosts, "mitm host", err);
	if (rc == 0)
		rc = network_check_list(mitm.exclude, "mitm host", err);
	return rc;
}

static int network_check_numbers(const sb_network *n, sb_error *err)
{
	if (n->flags & ~(uint32_t)(SB_NETWORK_ALLOW_PRIVATE | SB_NETWORK_ALLOW_DAEMONS))
		return error_set(err, SB_ERR_UNSUPPORTED, "network",
				 "the network policy has a flag that this library does not know");
	if ((n->max_requests > INT64_MAX && n->max_requests != SB_UNLIMITED) ||
	    (n->max_bytes > INT64_MAX && n->max_bytes != SB_UNLIMITED))
		return error_set(err, SB_ERR_INVALID_SPEC, "network",
				 "a network limit is negative");
	if (n->port_count > 0 && !n->ports)
		return error_set(err, SB_ERR_INVALID_SPEC, "network",
				 "ports is NULL, port_count is not 0");
	for (size_t i = 0; i < n->port_count; i++)
		if (n->ports[i] == 0)
			return error_set(err, SB_ERR_INVALID_SPEC, "network",
					 "port 0 is not a port");
	return 0;
}

int sb_network_validate(const sb_network *network, sb_error *err)
{
	sb_network n;
	const char *why;
	int rc = record_read(&n, sizeof n, network, "sb_network", err);

	if (rc == 0)
		rc = network_check_numbers(&n, err);
	if (rc == 0)
		rc = network_check_mode(&n, err);
	for (size_t i = 0; rc == 0 && n.rules && n.rules[i]; i++)
		rc = network_check_rule(n.rules[i], err);
	if (rc == 0 && n.upstream && (why = network_check_upstream(n.upstream)))
		rc = network_refuse_upstream(err, n.upstream, why);
	for (size_t i = 0; rc == 0 && n.unix_sockets && n.unix_sockets[i]; i++)
		if (!path_is_clean_absolute(n.unix_sockets[i]))
			rc = network_refuse(err, "unix socket", n.unix_sockets[i],
					    "is not an absolute path without \".\" and \"..\"");
	if (rc == 0)
		rc = network_check_list(n.secrets, "secret", err);
	if (rc == 0 && n.mitm)
		rc = network_check_mitm(n.mitm, err);
	return rc;
}
