/* SPDX-License-Identifier: MIT */
/*
 * look.c - does code name what an interpreter behind the engine does not have?
 *
 * Asked where nobody has named a backend and another one could run the code, too: both stand behind walls,
 * so this decides what works and how fast it starts, never how strongly it is held.  The text is not parsed:
 * words in comments and strings count, and what is not known to be there counts as missing.  It errs
 * towards the other backend, which is the one that has everything.
 */
#include "wasm.h"
#include "../../core/core.h"

#define LOOK_MOST ((size_t)64 << 10) /* of code; more is not looked at */

typedef struct look_words {
	const char *pack;
	const char *machine;  /* words that stand for the machine, or for what is left out */
	const char *modules;  /* that may be imported; NULL: there is no such statement */
	const char *os;       /* what may follow "os." */
} look_words;

/* Every list is words between blanks, with one at each end. */
static const look_words words[] = {
	{ "python",
	  " __import__ importlib ctypes Thread Process to_thread run_in_executor open_connection start_server"
	  " create_subprocess_exec create_subprocess_shell symlink_to hardlink_to chmod expanduser tzset"
	  " setrecursionlimit executable platform __file__ ",
	  " __future__ abc argparse array ast base64 bisect binascii calendar cmath codecs collections"
	  " collections.abc colorsys configparser contextlib copy csv dataclasses datetime decimal difflib enum"
	  " fnmatch fractions functools glob graphlib hashlib heapq hmac html html.parser io itertools json"
	  " keyword math numbers operator os os.path pathlib pickle pprint random re secrets shlex sqlite3"
	  " statistics string struct sys textwrap time timeit tomllib traceback types typing unicodedata unittest"
	  " urllib.parse warnings weakref xml.etree.ElementTree zipfile zlib ",
	  " SEEK_CUR SEEK_END SEEK_SET _exit chdir environ error fspath getcwd getenv linesep listdir makedirs"
	  " mkdir path pathsep remove removedirs rename replace rmdir scandir sep stat truncate unlink urandom"
	  " walk " },
	{ "js",
	  " import require module exports __dirname __filename Buffer fetch URL URLSearchParams Worker"
	  " crypto setImmediate Intl WebAssembly XMLHttpRequest WebSocket AbortController AbortSignal Blob File"
	  " FormData Headers Request Response ReadableStream WritableStream TransformStream EventTarget Event"
	  " BroadcastChannel MessageChannel navigator SharedArrayBuffer Atomics Deno Bun toLocaleString"
	  " toLocaleDateString toLocaleTimeString localeCompare getBuiltinModule binding nextTick memoryUsage"
	  " cpuUsage uptime pid versions kill stdin ", NULL, NULL },
	{ "lua", " execute popen require package loadlib tmpname tmpfile setlocale ffi jit ", NULL, NULL },
};

static const char places[] = " proc etc usr dev sys var root lib lib64 bin sbin opt mnt home boot run srv ";

static bool is_word(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c >= 0x80;
}

typedef struct text {
	const char *at, *end;
} text;

static size_t word_len(const text *t)
{
	size_t n = 0;

	while (t->at + n < t->end && is_word((unsigned char)t->at[n]))
		n++;
	return n;
}

static bool listed(const char *list, const char *word, size_t len)
{
	for (const char *p = list + 1; *p;) {
		size_t n = strcspn(p, " ");

		if (n == len && !memcmp(p, word, len))
			return true;
		p += n + 1;
	}
	return false;
}

static bool says(const char *word, size_t len, const char *what)
{
	return len == strlen(what) && !memcmp(word, what, len);
}

static void skip_blanks(text *t)
{
	while (t->at < t->end && (*t->at == ' ' || *t->at == '\t'))
		t->at++;
}

/* A name with dots in it. */
static size_t dotted_len(const text *t)
{
	size_t n = 0;

	while (t->at + n < t->end && (is_word((unsigned char)t->at[n]) || t->at[n] == '.'))
		n++;
	return n;
}

/* Behind "import" or "from": every module is one that is there, under its own name. */
static bool imports(const look_words *w, text t, bool from)
{
	for (;;) {
		skip_blanks(&t);
		size_t len = dotted_len(&t);

		if (!listed(w->modules, t.at, len) || (from && says(t.at, len, "os")))
			return false;
		bool os = says(t.at, len, "os");

		t.at += len;
		skip_blanks(&t);
		len = word_len(&t);
		if (from || (!len && (t.at >= t.end || *t.at != ',')))
			return true;
		if (says(t.at, len, "as")) {
			if (os)
				return false;
			t.at += len;
			skip_blanks(&t);
			t.at += word_len(&t);
			skip_blanks(&t);
		}
		if (t.at >= t.end || *t.at != ',')
			return true;
		t.at++;
	}
}

static bool begins_statement(const char *begin, const char *at)
{
	while (at > begin && (at[-1] == ' ' || at[-1] == '\t'))
		at--;
	return at == begin || at[-1] == '\n' || at[-1] == '\r' || at[-1] == ';' || at[-1] == ':';
}

/* "os" at `t`, and what is wanted of it. */
static bool of_os(const look_words *w, const char *begin, text t)
{
	const char *line = t.at;

	t.at += 2;
	if (t.at < t.end && *t.at == '.') {
		t.at++;
		return listed(w->os, t.at, word_len(&t));
	}
	/* in a list of modules */
	while (line > begin && line[-1] != '\n' && line[-1] != '\r' && line[-1] != ';')
		line--;
	t.at = line;
	skip_blanks(&t);
	return word_len(&t) == 6 && !memcmp(t.at, "import", 6);
}

static bool fine(const look_words *w, const char *begin, const text *t, size_t len)
{
	text behind = { t->at + len, t->end };

	if (listed(w->machine, t->at, len))
		return false;
	if (t->at - begin >= 2 && t->at[-1] == '/' && strchr("\"'`[", t->at[-2]) && listed(places, t->at, len))
		return false;
	if (!w->modules)
		return true;
	if ((says(t->at, len, "import") || says(t->at, len, "from")) && begins_statement(begin, t->at))
		return imports(w, behind, *t->at == 'f');
	return !says(t->at, len, "os") || of_os(w, begin, *t);
}

bool look_suits(const char *pack, const void *code, size_t len)
{
	const look_words *w = words;
	text t = { code, (const char *)code + len };

	while (w < words + BASE_ARRAY_LEN(words) && strcmp(w->pack, pack) != 0)
		w++;
	if (w == words + BASE_ARRAY_LEN(words))
		return true;
	if (!code || len > LOOK_MOST)
		return !code;
	while (t.at < t.end) {
		size_t n = word_len(&t);

		if (n && !fine(w, code, &t, n))
			return false;
		t.at += n ? n : 1;
	}
	return true;
}
