#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""drivers_test.py - each driver against the protocol and its language's own console, with no walls.

usage: drivers_test.py SOURCE-ROOT CONTROL-MODULE
"""
import contextlib
import os
import re
import shutil
import sys
import threading
import time
import unittest

ROOT, MODULE = sys.argv[1:3]
sys.path.insert(0, os.path.join(ROOT, "tests", "drivers"))
from harness import Broken, Driver, Result  # noqa: E402

HEX = open(MODULE, "rb").read().hex()
ESCAPED = re.sub("..", r"\\x\g<0>", HEX)


def text_of(name):
    with open(os.path.join(ROOT, "packs", name), encoding="utf-8") as file:
        text = file.read()
    return text.replace("@MODULE_HEX@", HEX).replace("@MODULE_ESCAPED@", ESCAPED).encode()


class Common:
    """What holds for every language; a class below says how its language says it."""

    @classmethod
    def setUpClass(cls):
        program = next((p for p in cls.programs if shutil.which(p)), None)
        if program is None:
            raise unittest.SkipTest(f"none of {cls.programs} is here")
        cls.argv = [program, *cls.options, "{driver}"]
        cls.text = text_of(cls.file)

    def setUp(self):
        env = {k: os.environ[k] for k in ("PATH", "HOME", "PYENV_VERSION") if k in os.environ}
        self.driver = Driver(self.argv, self.text, env={**env, "LANG": "C.UTF-8"})
        self.addCleanup(self.driver.close)

    def ok(self, code, out=b"", **how):
        result = self.driver.eval(code, **how)
        self.assertEqual((result.status, result.out), (0, out), f"{code!r}: {result}")
        return result

    def stopped(self, code, mark=b"go"):
        """Interrupted once, when the mark has come."""
        result = self.driver.eval(code, interrupt_after=mark)
        self.assertNotEqual(result.status, 0, result)
        self.assertIsNone(result.gone, result)
        self.assertIn("nterrupt", result.exception, result)
        return result

    @staticmethod
    def sockets(fds):
        found = []
        for fd in os.listdir(fds):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found += [int(fd)] if os.readlink(f"{fds}/{fd}").startswith("socket:") else []
        return found

    def test_hello(self):
        self.assertRegex(self.driver.said, rf"^1 (\w+ )*{self.name} \d+\.")

    def test_descriptor_is_out_of_the_way(self):
        self.ok(self.assign)
        fds, end = f"/proc/{self.driver.process.pid}/fd", time.monotonic() + 20
        while len(ours := self.sockets(fds)) != 1 and time.monotonic() < end:
            time.sleep(0.01)  # bash has it as 1 too while its builtin writes an answer
        self.assertEqual(len(ours), 1, ours)
        self.assertGreaterEqual(ours[0], 70)
        with open(f"/proc/{self.driver.process.pid}/fdinfo/{ours[0]}") as info:
            flags = int(re.search(r"flags:\s*(\d+)", info.read()).group(1), 8)
        self.assertTrue(flags & 0o2000000, "closed on exec")

    def test_state_persists(self):
        self.ok(self.assign)
        self.ok(self.show_assigned, b"21\n")

    def test_value(self):
        if not self.expression:
            self.skipTest("this language's statements have no value")
        result = self.ok(self.expression, b"42\n")
        self.assertEqual(result.value, "42")

    def test_no_value(self):
        self.assertIsNone(self.ok(self.assign).value)

    def test_exception_survives(self):
        result = self.driver.eval(self.raising)
        self.assertEqual(result.status, 1)
        self.assertIn(b"boom", result.err)
        if self.expression:
            self.assertIn("boom", result.exception)
        self.assertNotIn(b"driver", result.err, "a frame of ours is shown")
        self.ok(self.assign)

    def test_syntax_error_survives(self):
        result = self.driver.eval(self.unfinished)
        self.assertNotEqual(result.status, 0)
        self.assertTrue(result.err)
        self.ok(self.assign)

    def test_unfinished_is_told_and_not_run(self):
        self.assertTrue(self.driver.eval(self.unfinished, partial=True).unfinished)
        result = self.driver.eval(self.unfinished + self.rest, partial=True)
        self.assertEqual((result.status, result.out), (0, b"done\n"), result)

    def test_wrong_partial_code_is_an_error(self):
        result = self.driver.eval(self.wrong, partial=True)
        self.assertFalse(result.unfinished)
        self.assertNotEqual(result.status, 0)

    def test_streams_apart(self):
        result = self.driver.eval(self.both_streams)
        self.assertEqual((result.out, result.err), (b"to out\n", b"to err\n"))

    def test_stdin_is_at_its_end(self):
        self.ok(self.read_all, b"[]\n")
        self.ok(self.assign)

    def test_input_of_one_evaluation(self):
        self.ok(self.read_all, b"[some bytes]\n", data=b"some bytes")
        self.ok(self.read_all, b"[]\n")

    def test_interrupt_of_a_loop(self):
        for _ in range(3):
            self.stopped(self.loop)
        self.ok(self.assign)

    def test_interrupt_before_it_begins(self):
        """Whatever the moment: with the code, in the middle of it, just before it runs."""
        for i in range(30):
            late = threading.Timer(i * 0.0001, self.driver.interrupt)
            self.driver.nonce = "1" * 31 + "%x" % (i % 16)
            code = self.loop.encode()
            self.driver.send("E", b"00%08x" % len(code) + code)
            if i % 3 == 0:
                time.sleep(i * 0.0001)
            self.driver.send("I", b"")
            late.start()
            result = self.driver.finish(Result(), None)
            late.join()
            self.assertIsNone(result.gone, result)
            self.assertNotEqual(result.status, 0, result)
            self.assertIn("nterrupt", result.exception, result)
        self.ok(self.assign)
        self.ok(self.show_assigned, b"21\n")

    def test_interrupt_of_another_evaluation(self):
        """One that is over, or has never been: the next one knows nothing of it."""
        self.ok(self.assign)
        for _ in range(3):
            self.driver.send("I", b"")
            self.driver.interrupt()
            self.ok(self.show_assigned, b"21\n")

    def test_interrupt_while_idle(self):
        self.ok(self.assign)
        for _ in range(3):
            self.driver.interrupt()
            time.sleep(0.02)
        self.ok(self.show_assigned, b"21\n")

    def test_exit(self):
        self.assertEqual(self.driver.eval(self.leave).gone, 3)

    def test_prints_of_frames_are_output(self):
        mark = f"D {'0' * 32} 00000001"
        self.ok(self.printing.replace("TEXT", mark), mark.encode() + b"\n")

    def test_low_descriptors(self):
        self.driver.eval(self.junk)
        self.ok(self.assign)
        self.ok(self.show_assigned, b"21\n")

    def test_low_descriptors_closed(self):
        self.driver.eval(self.close_low)
        self.ok(self.assign)

    def test_output_replaced(self):
        self.driver.eval(self.replace_output)
        result = self.driver.eval(self.assign)
        self.assertEqual(result.status, 0)

    def test_large_source(self):
        self.ok(self.comment * (10 << 20))
        self.ok(self.assign)

    def test_large_output(self):
        result = self.driver.eval(self.megabyte)
        self.assertEqual((result.status, len(result.out)), (0, (1 << 20) + 1))

    def test_answer_that_nobody_waits_for(self):
        self.driver.send("A", b"00000001late\n")
        self.ok(self.assign)
        self.ok(self.show_assigned, b"21\n")

    def test_files_and_folder_persist(self):
        self.ok(self.write_file)
        self.ok(self.read_file, b"kept\n")


class Python(Common, unittest.TestCase):
    name, file, programs, options = "python", "python_driver.py", ["python3"], ["-B"]
    assign, show_assigned, expression = "x = 21", "print(x)", "x = 21\nx * 2"
    raising = "def f():\n    raise ValueError('boom')\n\nf()"
    unfinished, rest, wrong = "if True:", "\n    print('done')\n", "1 +* 2"
    both_streams = "import sys\nprint('to out')\nprint('to err', file=sys.stderr)"
    read_all = "import sys\nprint('[' + sys.stdin.read() + ']')"
    loop, leave = "print('go')\nwhile True: pass", "import os\nos._exit(3)"
    printing, comment = "print('TEXT')", "#"
    junk = ("import os\nfor f in range(1, 64):\n    try: os.write(f, b'{}\\n' * 99)\n"
            "    except OSError: pass\n")
    close_low = "import os\nos.closerange(3, 64)\nos.close(0)"
    replace_output = "import sys\nsys.stdout = None"
    megabyte = "print('m' * (1 << 20))"
    write_file = "import os, tempfile\nd = tempfile.mkdtemp()\nos.chdir(d)\nopen('f', 'w').write('kept')\nNone"
    read_file = "print(open('f').read()); os.remove('f'); os.chdir('/'); os.rmdir(d)"

    def test_value_forms(self):
        self.assertEqual(self.driver.eval("'a\\nb'").value, "'a\\nb'")
        self.assertIsNone(self.driver.eval("None").value)
        self.assertEqual(self.ok("_ + 'c'", b"'a\\nbc'\n").value, "'a\\nbc'")
        self.assertEqual(len(self.driver.eval("'v' * 200000").value), 65536)

    def test_lines_as_at_the_console(self):
        block = "class A:\n    x = 1\n\n    def f(self):\n        return self.x"
        self.assertTrue(self.driver.eval(block, partial=True).unfinished)
        self.ok(block + "\n", partial=True)
        self.assertEqual(self.ok("A().f()", b"1\n", partial=True).value, "1")
        self.ok("for i in (1, 2):\n    i\n", b"1\n2\n", partial=True)  # each value is shown
        self.ok("from __future__ import annotations", partial=True)
        self.ok("def g(a: nowhere): pass\n", partial=True)

    def test_whole_cell_with_blank_lines(self):
        self.ok("class B:\n\n    y = 2\n\n    def f(self):\n\n        return 3\n\nB().f()", b"3\n")

    def test_traceback_is_the_consoles(self):
        result = self.driver.eval("1/0")
        self.assertEqual(result.err.decode(), "Traceback (most recent call last):\n"
                         "  File \"<stdin>\", line 1, in <module>\n"
                         "ZeroDivisionError: division by zero\n")
        self.assertEqual(result.exception, "ZeroDivisionError: division by zero")

    def test_syntax_error_is_the_consoles(self):
        said = "  File \"<stdin>\", line 1\n    x = )\n        ^\nSyntaxError: unmatched ')'\n"
        for partial in (False, True):
            result = self.driver.eval("x = )", partial=partial)
            self.assertEqual((result.status, result.err.decode()), (1, said))
        self.assertIn("Traceback", self.driver.eval("compile(')', 'f', 'exec')").err.decode())  # of the code's own

    def test_bytes_that_are_no_text(self):
        for partial in (False, True):
            result = self.driver.eval(b"x = '\xff'", partial=partial)
            self.assertEqual((result.status, result.exception[:12]), (1, "SyntaxError:"), result)
            self.assertNotIn(b"Traceback", result.err)
        self.ok("'\u00e4'".encode(), "'\u00e4'\n".encode(), partial=True)

    def test_exception_that_cannot_be_shown(self):
        result = self.driver.eval("class E(Exception):\n    def __str__(self): raise E\n\nraise E")
        self.assertEqual(result.status, 1)
        self.assertIn("E", result.exception)
        self.ok("1", b"1\n")

    def test_hooks_that_fail(self):
        self.driver.eval("import sys\nsys.excepthook = None")
        self.assertEqual(self.driver.eval("1/0").status, 1)
        self.driver.eval("sys.displayhook = None")
        self.assertEqual(self.driver.eval("5").status, 1)
        self.assertEqual(self.driver.eval("None").status, 1)
        self.ok("sys.displayhook = sys.__displayhook__")
        self.ok("5", b"5\n")

    def test_text_that_cannot_be_encoded(self):
        result = self.driver.eval("raise ValueError('a\\ud800\\0b')")
        self.assertEqual(result.err, b"Traceback (most recent call last):\n"
                         b"  File \"<stdin>\", line 1, in <module>\nValueError: a\\ud800\0b\n")
        self.ok("type('R', (), {'__repr__': lambda self: '<\\ud800\u00e4>'})()", b"<\\ud800\xc3\xa4>\n")
        self.ok("import sys\nprint('\\udcff', end='')\nsys.stderr.write('\\udcff')\nNone", b"\xff")
        self.assertIn("UnicodeEncodeError", self.driver.eval("print('\\ud800')").exception)

    def test_streams_taken_away(self):
        self.assertEqual(self.ok("import sys\ndel sys.stdout, sys.stderr\n5").value, "5")
        self.assertEqual(self.driver.eval("1/0").status, 1)
        self.ok("sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__")
        self.ok("5", b"5\n")

    def test_functions_of_the_module_os_replaced(self):
        self.ok("import os\nwas = os.getpid\nos.getpid = lambda: 1\nos.read = os.write = None")
        self.ok("import ctypes\n_ = ctypes.CDLL(None).fork()")
        self.ok("was() == os.getpid()", b"False\n")

    def test_sys_exit_exits(self):
        result = self.driver.eval("import sys\nsys.exit(4)")
        self.assertEqual(result.gone, 4)

    def test_fork(self):
        for _ in range(3):
            result = self.driver.eval("import os\npid = os.fork()\nif pid: _p = os.waitpid(pid, 0)")
            self.assertEqual(result.status, 0, result)
        self.ok("import os\n_p = os.fork()\nif _p: _p = os.waitpid(_p, 0)[1]\nelse: 1/0")
        self.ok("2", b"2\n")

    def test_fork_without_hooks(self):
        self.driver.eval("import ctypes\npid = ctypes.CDLL(None).fork()")
        self.ok("3", b"3\n")

    def test_other_program_in_its_place(self):
        result = self.driver.eval("import os\nos.execvp('sleep', ['sleep', '0.1'])")
        self.assertEqual(result.gone, 0)

    def test_thread_goes_on(self):
        self.ok("import threading, time\nt = threading.Thread(target=lambda: [time.sleep(.05), print('late')])\n"
                "t.start()")
        self.assertEqual(self.driver.eval("t.join()").out, b"late\n")

    def test_input_asked_for(self):
        answers = iter([b"one\n", b"two\n"])
        result = self.driver.eval("a = input('? ')\nb = input()\n(a, b)", ask=lambda: next(answers))
        self.assertEqual(result.value, "('one', 'two')")
        self.assertEqual(result.out, b"? ('one', 'two')\n")
        self.assertIn("EOFError", self.driver.eval("input()", ask=lambda: b"").exception)
        self.assertIn("EOFError", self.driver.eval("input()").exception)

    def test_interrupt_while_it_waits_for_input(self):
        self.ok("x = 1")

        def interrupt():
            self.driver.interrupt()

        result = self.driver.eval("input('? ')", ask=interrupt)
        self.assertEqual(result.exception, "KeyboardInterrupt")
        self.ok("print(x)", b"1\n")

    def test_interrupt_at_any_moment_of_a_question(self):
        """Also in the instant in which it goes to sleep."""
        for i in range(400):
            def interrupt():
                until = time.perf_counter() + i % 100 * 2e-6
                self.driver.send("I", b"")
                while time.perf_counter() < until:
                    pass
                self.driver.interrupt()

            result = self.driver.eval("input()", ask=interrupt)
            self.assertEqual(result.exception, "KeyboardInterrupt", i)

    def test_debugger_asks(self):
        answers = iter([b"p 6 * 7\n", b"c\n"])
        result = self.driver.eval("def f():\n    breakpoint()\n    return 1\n\nf()",
                                  ask=lambda: next(answers))
        self.assertEqual(result.status, 0, result)
        self.assertIn(b"42", result.out)

    def test_raises_of_anything(self):
        for raised, said in (("BaseException", "BaseException"), ("GeneratorExit", "GeneratorExit"),
                             ("KeyboardInterrupt", "KeyboardInterrupt"), ("type('E', (BaseException,), {})(1)", "E: 1"),
                             ("type('F', (Exception,), {'__str__': 1})", "F: <exception str() failed>"),
                             ("None", "TypeError: exceptions must derive from BaseException"),
                             ("ExceptionGroup('g', [OSError(1)])", "ExceptionGroup: g (1 sub-exception)")):
            if "Group" in raised and sys.version_info < (3, 11):
                continue
            result = self.driver.eval(f"raise {raised}")
            self.assertEqual((result.status, result.exception), (1, said), result)
        self.ok("x = 21")

    def test_main_is_clean(self):
        names = self.driver.eval("sorted(globals())").value
        self.assertEqual(eval(names), ["__builtins__", "__doc__", "__loader__", "__name__",
                                       "__package__", "__spec__"])
        self.ok("import __main__\nx = 5\nprint(__main__.x)", b"5\n")
        self.ok("import pickle\nclass C: pass\n\nprint(type(pickle.loads(pickle.dumps(C()))) is C)", b"True\n")

    def test_closed_control_ends_it(self):
        result = self.driver.eval("import os\nos.closerange(3, 1024)")
        self.assertIsNotNone(result.gone)

    def test_junk_on_the_descriptor_is_seen(self):
        with self.assertRaises(Broken):
            self.driver.eval("import os\nfor f in range(64, 1024):\n    try: os.write(f, b'x' * 99)\n"
                             "    except OSError: pass\n")


class Js(Common, unittest.TestCase):
    name, file, programs, options = "js", "js_driver.js", ["node", "nodejs"], []
    assign, show_assigned, expression = "var x = 21", "console.log(x)", "const y = 21; y * 2"
    raising = "function f() { throw new Error('boom') }\nf()"
    unfinished, rest, wrong = "if (true) {", "\nconsole.log('done') }", "1 +* 2"
    both_streams = "console.log('to out'); console.error('to err')"
    read_all = "console.log('[' + require('fs').readFileSync(0, 'latin1') + ']')"
    loop, leave = "console.log('go'); while (true);", "process.exit(3)"
    printing, comment = "console.log('TEXT')", "//"
    # the lowest are its event loop's: junk there is the end of any Node
    junk = "for (let i = 24; i < 64; i++) try { fs.writeSync(i, '{}\\n'.repeat(99)) } catch {}"
    close_low = "try { fs.closeSync(0) } catch {}"  # the others are its event loop's
    replace_output = "process.stdout.write = () => true"
    megabyte = "console.log('m'.repeat(1 << 20))"
    write_file = ("const d = fs.mkdtempSync(os.tmpdir() + '/t'); process.chdir(d);"
                  "fs.writeFileSync('f', 'kept')")
    read_file = ("console.log(fs.readFileSync('f', 'utf8')); fs.unlinkSync('f');"
                 "process.chdir('/'); fs.rmdirSync(d)")

    def test_global_scope(self):
        self.ok("const k = 1; let l = 2; function m() { return k + l } class N {}")
        self.ok("m()", b"3\n")
        self.ok("typeof N", b"'function'\n")
        self.ok("_", b"'function'\n")
        self.assertIsNone(self.ok("undefined").value)

    def test_throws_of_anything(self):
        for thrown in ("undefined", "null", "0", "''", "false"):
            result = self.driver.eval(f"throw {thrown}")
            self.assertEqual((result.status, result.exception), (1, thrown), result)
            self.assertIn(b"Uncaught", result.err)
            result = self.driver.eval(f"await Promise.reject({thrown})")
            self.assertEqual((result.status, result.exception), (1, thrown), result)
        self.ok("undefined")

    def test_await(self):
        self.ok("const a = await new Promise((r) => setTimeout(() => r('late'), 20)); a", b"'late'\n")
        self.ok("a", b"'late'\n")

    def test_rejections_are_told_at_once(self):
        for code in ("Promise.reject(5); undefined", "Promise.reject(5); null.x", "await Promise.reject(5).catch(() => {}); Promise.reject(5); 1"):
            self.assertIn(b"UnhandledPromiseRejection", self.driver.eval(code).err)
            self.assertIn(b"TypeError", self.driver.eval("null.x").err)
            self.ok("7", b"7\n")
        self.ok("let when = 'now'; queueMicrotask(() => { when = 'later' }); ({ when })", b"{ when: 'now' }\n")
        self.ok("globalThis.setImmediate = () => {}; 1", b"1\n")
        self.ok("2", b"2\n")

    def test_interrupt_of_what_is_awaited(self):
        for _ in range(3):
            self.stopped("console.log('go'); await new Promise(() => setTimeout(() => {}, 1e6))")
        self.ok("5", b"5\n")

    def test_error_has_message_and_stack(self):
        result = self.driver.eval("function f() { throw new TypeError('boom') }\nf()")
        self.assertRegex(result.err.decode(), r"^Uncaught TypeError: boom\n    at f \(REPL\d+:1:\d+\)\n"
                         r"    at REPL\d+:2:1\n$")
        self.assertEqual(result.exception, "TypeError: boom")

    def test_errors_show_frames_of_the_code_alone(self):
        """As values, within values, as causes, and with members of their own, whose braces stay whole."""
        inner = r"Error: i\n +at REPL\d+:1:\d+\n"
        for code, shown in (
                ("new Error('i')", rf"^{inner}$"),
                ("[new Error('i')]", rf"^\[\n  {inner}\]\n$"),
                ("Object.assign(new Error('o'), {code: 3})", r"^Error: o\n +at REPL\d+:1:\d+ {\n  code: 3\n}\n$"),
                ("new Error('o', {cause: new Error('i')})",
                 rf"^Error: o\n +at REPL\d+:1:\d+ {{\n  \[cause\]: {inner}}}\n$")):
            self.assertRegex(self.driver.eval(code).out.decode(), shown)
            self.assertRegex(self.driver.eval(f"throw {code}").err.decode(), shown.replace("^", "^Uncaught ", 1))
        self.assertRegex(self.driver.eval("fs.readFileSync('/nowhere/at/all')").err.decode(),
                         r"    at REPL\d+:1:\d+ {\n  errno: -2,\n(.*\n)*}\n$")

    def test_error_of_a_timer(self):
        self.ok("setTimeout(() => { throw new Error('later') }, 50); 0", b"0\n")
        self.assertIn(b"later", self.driver.eval("await new Promise((r) => setTimeout(r, 200))").err)
        self.ok("1", b"1\n")

    def test_process_taken_away(self):
        self.ok("const { process: mine } = globalThis; delete globalThis.process; 5", b"5\n")
        self.ok("await 6", b"6\n")
        self.stopped("mine.stdout.write('go'); while (true);")
        self.ok("7", b"7\n")

    def test_object_literal(self):
        self.ok("{ a: 1 }", b"{ a: 1 }\n")


class Lua(Common, unittest.TestCase):
    name, file, programs, options = "lua", "lua_driver.lua", ["lua5.4", "lua5.3", "lua"], []
    assign, show_assigned, expression = "x = 21", "print(x)", "local y = 21\ny * 2"
    raising = "function f() error('boom') end\nf()"
    unfinished, rest, wrong = "if true then", "\nprint('done') end", "x = = 1"
    both_streams = "print('to out') io.stderr:write('to err\\n')"
    read_all = "print('[' .. io.read('a') .. ']')"
    loop, leave = "print('go') while true do end", "os.exit(3)"
    printing, comment = "print('TEXT')", "--"
    junk = "for i = 1, 9 do os.execute('echo junk >&' .. i .. ' 2>/dev/null') end"
    close_low = "io.stdin:close()"
    replace_output = "print = nil io.write = nil"
    megabyte = "print(string.rep('m', 1 << 20))"
    write_file = "name = os.tmpname() f = io.open(name, 'w') f:write('kept') f:close()"
    read_file = "print(io.open(name):read('a')) os.remove(name)"

    def test_values(self):
        self.ok("return 1, 'a', nil", b"1\ta\tnil\n")
        self.ok("1 + 1", b"2\n")
        self.ok("t = setmetatable({}, { __tostring = function() return 'shown' end })")
        self.assertEqual(self.ok("t", b"shown\n").value, "shown")

    def test_error_as_at_the_console(self):
        result = self.driver.eval("function f() error('boom') end\nf()")
        self.assertEqual(result.err.decode(), "stdin:1: boom\nstack traceback:\n\t[C]: in function 'error'\n"
                         "\tstdin:1: in function 'f'\n\tstdin:2: in main chunk\n")

    def test_error_objects(self):
        for thrown, said in (("nil", "nil"), ("{}", "table"), ("true", "boolean"), ("print", "function")):
            result = self.driver.eval(f"error({thrown})")
            self.assertEqual((result.status, result.exception), (1, f"(error object is a {said} value)"))
        self.assertEqual(self.driver.eval("error(7)").exception, "7")
        self.assertEqual(self.driver.eval("error(setmetatable({}, {__tostring = function() return 'own' end}))").exception,
                         "own")
        self.assertEqual(self.driver.eval("error(setmetatable({}, { __tostring = error }))").status, 1)
        self.ok("1", b"1\n")

    def test_expression_behind_an_equals_sign(self):
        self.assertEqual(self.ok("= 1,\n2", b"1\t2\n", partial=True).value, "1\t2")
        self.assertTrue(self.driver.eval("=1 +", partial=True).unfinished)
        self.assertEqual(self.driver.eval("=5").status, 1)

    def test_zero_bytes(self):
        self.ok("#'a\0b'", b"3\n")


class Bash(Common, unittest.TestCase):
    name, file, programs, options = "bash", "bash_driver.sh", ["bash"], []
    assign, show_assigned, expression = "x=21", "echo $x", None
    raising = "echo boom >&2; false"
    unfinished, rest, wrong = "if true; then", "\necho done; fi", "if then"
    both_streams = "echo to out; echo to err >&2"
    read_all = 'echo "[$(cat)]"'
    loop, leave = "echo go; while :; do :; done", "exit 3"
    printing, comment = "echo 'TEXT'", "#"
    junk = "for f in {1..63}; do { echo junk >&$f; } 2>/dev/null; done"
    close_low = "for f in {3..63}; do eval \"exec $f>&-\"; done; exec <&-"
    replace_output = "exec >/dev/null"
    megabyte = "printf 'm%.0s' {1..1048576}; echo"
    write_file = "d=$(mktemp -d); cd $d; echo kept >f"
    read_file = "cat f; rm f; cd /; rmdir $d"

    def test_global_scope(self):
        self.ok("declare -a a=(1 2 3); f() { echo in f $1; }; alias g='echo aliased'")
        self.ok("echo ${a[2]}; f x; g", b"3\nin f x\naliased\n")

    def test_status(self):
        self.assertEqual(self.driver.eval("(exit 7)").status, 7)
        self.ok("echo $?", b"7\n")

    def test_errors_do_not_end_it(self):
        self.assertNotEqual(self.driver.eval('echo "${nowhere:?is not set}"').status, 0)
        self.assertNotEqual(self.driver.eval("return 3").status, 0)
        self.driver.eval("break; continue 5")
        self.ok("echo alive", b"alive\n")

    def test_options_of_the_code(self):
        self.ok("set -u; set -f")
        self.ok("echo *", b"*\n")
        result = self.driver.eval("set -x; :")
        self.assertNotIn(b"nonce", result.err)
        result = self.driver.eval("echo hi")
        self.assertEqual(result.out, b"hi\n")
        self.assertNotIn(b"nonce", result.err)

    def test_interrupt_of_a_child(self):
        for _ in range(2):
            result = self.stopped("f() { echo go; sleep 100; echo never; }; f; echo never")
            self.assertEqual((result.status, result.out), (130, b"go\n"))
        self.ok("echo alive", b"alive\n")

    def test_interrupt_at_any_moment(self):
        """In the middle of a fork, say: the child must not outlive it."""
        for i in range(60):
            result = self.driver.eval("f() { echo go; sleep 100; echo never; }; f; echo never",
                                      interrupt_after=b"") if i % 2 else self.pressed_later(i)
            self.assertEqual(result.status, 130, result)
            self.assertNotIn(b"never", result.out)
        self.ok("echo alive", b"alive\n")

    def test_trap_of_the_code(self):
        """It runs once for each interrupt, and the code goes on; a later evaluation has none."""
        result = self.driver.eval("trap 'echo got' INT; echo go; sleep 1; echo end; (:); /bin/true", interrupt_after=b"go\n")
        self.assertEqual((result.status, result.out, result.exception), (0, b"go\ngot\nend\n", None), result)
        self.stopped("echo go; sleep 30", mark=b"go\n")

    def pressed_later(self, i):
        press = threading.Timer(i * 0.00005, self.driver.stop)
        code = b"echo go; sleep 100; echo never"
        self.driver.nonce = "2" * 30 + "%02x" % i
        self.driver.send("E", b"00%08x" % len(code) + code)
        press.start()
        result = self.driver.finish(Result(), None)
        press.join()
        return result

    def test_goes_on_after_a_backslash_and_in_a_document(self):
        for code in ("echo a \\", "cat <<E\na", "echo 'a"):
            self.assertTrue(self.driver.eval(code, partial=True).unfinished, code)
        self.ok("cat <<E\na\nE", b"a\n", partial=True)

    def test_other_program_in_its_place(self):
        self.assertEqual(self.driver.eval("exec sleep 0.1").gone, 0)
        self.setUp()
        self.assertIsNotNone(self.driver.eval("exec bash").gone)

    def test_children_do_not_have_the_descriptor(self):
        self.assertNotIn(b"socket", self.driver.eval("ls -l /proc/self/fd").out)

    def test_background_goes_on(self):
        self.ok("d=$(mktemp -d); mkfifo $d/go; (read x <$d/go; echo late) & :")
        self.assertEqual(self.driver.eval("echo >$d/go; wait; rm -r $d").out, b"late\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
