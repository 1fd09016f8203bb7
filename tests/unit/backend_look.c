/* SPDX-License-Identifier: MIT */
/* What code names decides whether it may start behind the engine where nobody has named a backend. */
#include "unit.h"
#include "../../src/backend/wasm/wasm.h"

#include <string.h>

static bool suits(const char *pack, const char *code)
{
	return look_suits(pack, code, strlen(code));
}

static void python_that_fits(void **state)
{
	static const char *const codes[] = {
		"", "print(6*7)", "import json\nprint(json)", "import json, re, datetime as d\n",
		"import os\nprint(os.path.join('a', 'b'), os.getcwd())", "import os, sys\nos.makedirs('/out/a')",
		"import sys,os\n", "from collections import Counter, deque\n", "from json import (loads,\n\tdumps)\n",
		"from os.path import join", "if 1: import math", "x = 1; import math", "def f():\n\timport math\n",
		"raise ValueError from None", "def g():\n    yield from range(3)\n", "open('/in/a').read()",
		"open('/tmp/etc')", "a = 6 /usr", "# \xc3\xa4\nprint('\xc3\xa4')", "pos.thing()", "import xml.etree.ElementTree as E",
	};

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(codes); i++)
		if (!suits("python", codes[i]))
			fail_msg("sent away: %s", codes[i]);
}

static void python_that_needs_more(void **state)
{
	static const char *const codes[] = {
		"import socket", "import json, socket", "import json as j, numpy as np", "x = 1; import numpy",
		"if 1: import ctypes", "\timport threading", "from . import a", "from os import fork", "from os import *",
		"import os as o", "import os, sys\nos.fork()", "import os\nf = getattr(os, 'fork')", "import os\nx = os\n",
		"__import__('x')", "import importlib", "import \\\n socket", "from numpy import array", "import a_file_of_mine",
		"import urllib.request", "import xml.sax", "open('/etc/passwd')", "open(\"/proc/self/status\")", "import",
		"from", "import json,", "import os\nos", "from multiprocessing.pool import ThreadPool", "import sys\nsys.executable",
	};

	(void)state;
	for (size_t i = 0; i < BASE_ARRAY_LEN(codes); i++)
		if (suits("python", codes[i]))
			fail_msg("kept: %s", codes[i]);
}

static void other_languages(void **state)
{
	(void)state;
	assert_true(suits("js", "console.log([1, 2].map((x) => x * 2))"));
	assert_true(suits("js", "std.out.puts(scriptArgs[0])"));
	assert_true(suits("js", "process.stdout.write(process.argv[2])"));
	assert_false(suits("js", "const fs = require('fs')"));
	assert_false(suits("js", "import fs from 'node:fs'"));
	assert_false(suits("js", "fetch('http://a.test')"));
	assert_false(suits("js", "Buffer.from('a')"));
	assert_true(suits("lua", "print(('x'):rep(3))"));
	assert_false(suits("lua", "os.execute('ls')"));
	assert_false(suits("lua", "require 'posix'"));
	assert_false(suits("lua", "io.open('/etc/passwd')"));
	/* of which nothing is known: its pack says that it runs there */
	assert_true(suits("cobol", "import socket"));
}

static void bytes_and_sizes(void **state)
{
	static char large[(64 << 10) + 1];

	(void)state;
	assert_true(look_suits("python", NULL, 0));
	assert_true(look_suits("python", "import json\0import x", 11));
	assert_false(look_suits("python", "x\0\nimport ctypes", 16));
	assert_false(look_suits("python", "import os.path", strlen("import os."))); /* not a byte behind the end */
	memset(large, ' ', sizeof large);
	assert_true(look_suits("python", large, sizeof large - 1));
	assert_false(look_suits("python", large, sizeof large));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_that_fits),
		cmocka_unit_test(python_that_needs_more),
		cmocka_unit_test(other_languages),
		cmocka_unit_test(bytes_and_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
