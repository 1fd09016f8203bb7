/* SPDX-License-Identifier: MIT */
/* utf8.h - what linenoise wants to know of UTF-8, under the names that it uses. */
#ifndef UTF8_UTIL_H
#define UTF8_UTIL_H

#define MAX_UTF8_LEN 4

int utf8_strlen(const char *text, int bytes);           /* characters; bytes -1 = to the NUL */
int utf8_strwidth(const char *text, int characters);    /* columns */
int utf8_charlen(int first);                            /* bytes of a character; -1 = none begins so */
int utf8_index(const char *text, int character);        /* byte offset */
int utf8_tounicode(const char *text, int *out);         /* bytes taken, at least 1 */
int utf8_fromunicode(char *out, unsigned code);         /* bytes written */
int utf8_width(int code);

#endif
