/* SPDX-License-Identifier: MIT */
/* utf8.h - what is text, and what a terminal would obey: the one rule, for the command as well. */
#ifndef SB_BASE_UTF8_H
#define SB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

bool utf8_valid(const char *data, size_t len);
/* Length of the valid sequence at data (1..4), 0 = none (one bad byte). */
size_t utf8_sequence(const char *data, size_t len);
/* Would a terminal obey this sequence: a control character (C0, DEL, C1), a separator of lines, a
 * mark of direction or without width? */
bool utf8_is_control(const char *data, size_t n);
/* In place: those, and bytes that are not UTF-8, become '?'.  The length left. */
size_t utf8_make_plain(char *text);

#endif /* SB_BASE_UTF8_H */
