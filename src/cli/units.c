/* SPDX-License-Identifier: MIT */
/* units.c - sizes, durations and counts: text to numbers, all of it or nothing. */
#include "cli.h"
#include <stdio.h>
#include <string.h>

typedef unsigned __int128 wide; /* an unsigned 64-bit number times a unit never overflows it */

enum { MAX_WHOLE_DIGITS = 20, MAX_FRACTION_DIGITS = 9 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* A decimal number: whole + fraction / scale. */
typedef struct number {
	wide whole, fraction, scale;
	bool has_fraction;
} number;

/* Digits, and a fraction if there is one; *at is moved behind it. */
static int number_read(const char **at, number *out)
{
	const char *p = *at;
	size_t digits = 0;

	*out = (number){ .scale = 1 };
	if (*p == '-')
		return is_digit(p[1]) || p[1] == '.' ? UNITS_NEGATIVE : UNITS_SYNTAX;
	for (; is_digit(*p); p++) {
		if (++digits > MAX_WHOLE_DIGITS)
			return UNITS_RANGE;
		out->whole = out->whole * 10 + (wide)(*p - '0');
	}
	if (digits == 0)
		return UNITS_SYNTAX;
	if (*p == '.') {
		out->has_fraction = true;
		digits = 0;
		for (p++; is_digit(*p); p++) {
			if (++digits > MAX_FRACTION_DIGITS)
				return UNITS_SYNTAX;
			out->fraction = out->fraction * 10 + (wide)(*p - '0');
			out->scale *= 10;
		}
		if (digits == 0)
			return UNITS_SYNTAX;
	}
	*at = p;
	return UNITS_OK;
}

/* The exponent of 1024 behind a unit, -1 = none such. */
static int size_exponent(const char *unit)
{
	static const char letters[] = "kmgtpe";
	const char *letter;

	if (lower(unit[0]) == 'b' && unit[1] == '\0')
		return 0;
	letter = unit[0] == '\0' ? NULL : strchr(letters, lower(unit[0]));
	if (letter == NULL)
		return -1;
	unit++;
	if (lower(unit[0]) == 'i' && lower(unit[1]) == 'b')
		unit++;
	if (lower(unit[0]) == 'b')
		unit++;
	return *unit == '\0' ? (int)(letter - letters) + 1 : -1;
}

int units_size(const char *text, uint64_t *bytes)
{
	const char *at = text;
	number n;
	int exponent = 0;

	if (*text == '\0')
		return UNITS_EMPTY;
	int bad = number_read(&at, &n);
	if (bad != UNITS_OK)
		return bad;
	if (*at != '\0' && (exponent = size_exponent(at)) < 0)
		return UNITS_UNIT;
	if (n.has_fraction && exponent == 0)
		return UNITS_SYNTAX; /* half a byte */
	wide unit = (wide)1 << (10 * exponent);
	wide value = n.whole * unit + n.fraction * unit / n.scale;
	if (value > (wide)INT64_MAX)
		return UNITS_RANGE;
	if (value == 0)
		return UNITS_ZERO;
	*bytes = (uint64_t)value;
	return UNITS_OK;
}

static const struct duration_unit {
	const char *name;
	uint64_t ns;
} duration_units[] = {
	{ "d", 86400000000000 }, { "h", 3600000000000 }, { "m", 60000000000 },
	{ "s", 1000000000 },	 { "ms", 1000000 },	 { "us", 1000 },
};

/* Index of the unit at `*at`, which is moved behind it; -1 = none such. */
static int duration_unit_read(const char **at)
{
	size_t len = 0;

	while ((*at)[len] != '\0' && !is_digit((*at)[len]))
		len++;
	for (size_t i = 0; i < CLI_LEN(duration_units); i++) {
		const char *name = duration_units[i].name;
		if (strlen(name) == len && memcmp(name, *at, len) == 0) {
			*at += len;
			return (int)i;
		}
	}
	return -1;
}

int units_duration(const char *text, uint64_t *ms)
{
	const char *at = text;
	wide total = 0;
	int last = -1;

	if (*text == '\0')
		return UNITS_EMPTY;
	do {
		number n;
		int bad = number_read(&at, &n);
		if (bad != UNITS_OK)
			return last < 0 ? bad : bad == UNITS_RANGE ? bad : UNITS_SYNTAX;
		if (*at == '\0')
			return UNITS_NO_UNIT;
		int unit = duration_unit_read(&at);
		if (unit < 0)
			return UNITS_UNIT;
		if (unit <= last || (n.has_fraction && *at != '\0'))
			return UNITS_SYNTAX; /* "1s1m", "1.5m30s" */
		last = unit;
		total += n.whole * duration_units[unit].ns;
		total += n.fraction * duration_units[unit].ns / n.scale;
	} while (*at != '\0');
	total = (total + 999999) / 1000000;
	if (total > (wide)INT64_MAX)
		return UNITS_RANGE;
	if (total == 0)
		return UNITS_ZERO;
	*ms = (uint64_t)total;
	return UNITS_OK;
}

int units_count(const char *text, uint64_t *count)
{
	const char *at = text;
	number n;

	if (*text == '\0')
		return UNITS_EMPTY;
	int bad = number_read(&at, &n);
	if (bad != UNITS_OK)
		return bad;
	if (*at != '\0' || n.has_fraction)
		return UNITS_SYNTAX;
	if (n.whole > (wide)INT64_MAX)
		return UNITS_RANGE;
	if (n.whole == 0)
		return UNITS_ZERO;
	*count = (uint64_t)n.whole;
	return UNITS_OK;
}

const char *units_problem(int code)
{
	switch (code) {
	case UNITS_EMPTY:
		return "is empty";
	case UNITS_NEGATIVE:
		return "is negative";
	case UNITS_NO_UNIT:
		return "has no unit";
	case UNITS_UNIT:
		return "has an unknown unit";
	case UNITS_RANGE:
		return "is out of range";
	case UNITS_ZERO:
		return "is zero, which no limit can be";
	default:
		return "is not a number";
	}
}

/* Whole, or with one decimal. */
static void scaled_text(uint64_t value, uint64_t unit, const char *name, char text[UNITS_TEXT])
{
	uint64_t tenths = value % unit * 10 / unit;

	if (tenths == 0)
		snprintf(text, UNITS_TEXT, "%llu %s", (unsigned long long)(value / unit), name);
	else
		snprintf(text, UNITS_TEXT, "%llu.%llu %s", (unsigned long long)(value / unit),
			 (unsigned long long)tenths, name);
}

const char *units_errno_text(int os_errno, char text[UNITS_TEXT])
{
	snprintf(text, UNITS_TEXT, "%s", strerror(os_errno));
	if (text[0] != '\0' && lower(text[1]) == text[1])
		text[0] = lower(text[0]);
	return text;
}

const char *units_size_text(uint64_t bytes, char text[UNITS_TEXT])
{
	static const char *const names[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t i = 0;

	if (bytes == SB_UNLIMITED)
		return "unlimited";
	while (i + 1 < CLI_LEN(names) && bytes >> (10 * (i + 1)) != 0)
		i++;
	scaled_text(bytes, (uint64_t)1 << (10 * i), names[i], text);
	return text;
}

const char *units_duration_text(uint64_t ms, char text[UNITS_TEXT])
{
	if (ms == SB_UNLIMITED)
		return "unlimited";
	if (ms < 1000)
		scaled_text(ms, 1, "ms", text);
	else if (ms < 120000)
		scaled_text(ms, 1000, "s", text);
	else
		scaled_text(ms, 60000, "min", text);
	return text;
}
