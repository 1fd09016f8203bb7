# SPDX-License-Identifier: MIT
"""The part of the driver that is Python: what a snapshot froze is renewed here, at each start.

Imported while the snapshot is made.  The modules imported below lie in it, so that programs find them
loaded; none of them may keep anything that start() does not renew (random, tempfile, uuid and the
like are left out for that).
"""
import sys
import atexit
import gc
import io
import os
import posix
# In the snapshot for programs that import them; what they draw in makes the rest of the start fast.
import codecs, collections, contextlib, copyreg, dataclasses, datetime, enum, functools, heapq  # noqa: F401,E401
import importlib.machinery, importlib.util, inspect, itertools, json, keyword, linecache, math, operator  # noqa: F401,E401
import re, reprlib, signal, string, struct, textwrap, threading, time, tokenize  # noqa: F401,E401
import traceback, types, typing, warnings, weakref, zipimport  # noqa: F401,E401
import encodings.ascii, encodings.latin_1, encodings.utf_8, encodings.utf_8_sig, encodings.idna  # noqa: F401,E401

_ABSENT = ("ssl", "_ssl", "ctypes", "_ctypes", "mmap", "bz2", "_bz2", "lzma", "_lzma", "multiprocessing",
           "_multiprocessing", "_socket", "fcntl", "pwd", "grp", "resource", "termios", "curses", "_curses",
           "readline", "tkinter", "_tkinter", "dbm", "venv", "ensurepip")

# What a Unix has of these modules, and WASI has not.
_ELSEWHERE = {
    "os": "chmod chown chroot copy_file_range dup2 eventfd execv execve fchdir fchmod fchown fork forkpty getegid geteuid getgid getgroups "
          "getloadavg getlogin getpgid getpgrp getppid getpriority getrandom getsid getuid getxattr initgroups kill killpg lchown listxattr "
          "memfd_create mkfifo mknod nice openpty pipe pipe2 popen posix_spawn posix_spawnp preadv pwritev readv sched_getaffinity "
          "sched_setaffinity sendfile setgid setpgid setpriority setsid setuid setxattr spawnl spawnlp spawnv spawnvp splice statvfs sync "
          "system tcgetpgrp tcsetpgrp ttyname umask wait wait3 wait4 waitid waitpid writev",
    "signal": "alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo "
              "SIGCHLD SIGWINCH ITIMER_REAL",
    "time": "clock_settime pthread_getcpuclockid thread_time tzset",
    "select": "epoll",
}


def _note(kind, value):
    """What to say of an error that another backend would not have made, or None."""
    text = str(value)
    if issubclass(kind, ImportError):
        name = (getattr(value, "name", None) or "").partition(".")[0]
        if name in _ABSENT:
            return f'"{name}" is not there behind the wasm walls; --backend linux has it'
        if issubclass(kind, ModuleNotFoundError) and name:
            return "only the standard library is there behind the wasm walls; --backend linux has the machine's packages"
    if issubclass(kind, RuntimeError) and "can't start new thread" in text:
        return "there are no threads behind the wasm walls; --backend linux has them"
    if issubclass(kind, OSError) and text == "[Errno 58] Not supported":
        return "sockets and the like are not there behind the wasm walls; --backend linux has them (a network with --net)"
    if issubclass(kind, OSError) and ("does not support processes" in text or "subprocess" in text):
        return "there are no other programs behind the wasm walls; --backend linux has them"
    if issubclass(kind, AttributeError):
        name, owner = getattr(value, "name", None), getattr(value, "obj", None)
        owner = getattr(owner, "__name__", None)
        if owner in ("socket", "_socket"):
            return "there is no network behind the wasm walls; --backend linux can have one (--net)"
        if name in _ELSEWHERE.get(owner, "").split():
            return f"{owner}.{name} is not there behind the wasm walls; --backend linux has it"
    return None


def _hook(kind, value, trace):
    sys.__excepthook__(kind, value, trace)
    note = _note(kind, value)
    if note is not None:
        print(f"note: {note}", file=sys.stderr)


def _stream(fd, mode, name, errors, lines):
    """A standard stream as CPython makes it."""
    raw = io.FileIO(fd, mode, closefd=False)
    raw.name = name
    buffered = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    text = io.TextIOWrapper(buffered, encoding="utf-8", errors=errors, newline=None if mode == "r" else "\n", line_buffering=lines)
    text.mode = mode
    return text


def _make_streams():
    """For the snapshot: the host's streams can never be sought, and what is written to them goes out line by line
    wherever it goes (a run may be ended at any time), so these hold nothing that a start would have to make anew."""
    sys.stdin = sys.__stdin__ = _stream(0, "r", "<stdin>", "surrogateescape", False)
    sys.stdout = sys.__stdout__ = _stream(1, "w", "<stdout>", "surrogateescape", True)
    sys.stderr = sys.__stderr__ = _stream(2, "w", "<stderr>", "backslashreplace", True)


def _starting():
    """start(), which finds all that it needs beside itself: a table that nobody looks into costs a run nothing."""
    tables = posix.environ, os.environ._data
    argv_list, orig_argv, path = sys.argv, sys.orig_argv, sys.path
    main = sys.modules["__main__"]
    loader, isatty, stream = importlib.machinery.SourceFileLoader, os.isatty, _stream

    def start(argv, environ):
        """argv[0] is the interpreter, environ a list of NAME=value as bytes."""
        for table in tables:
            table.clear()
            for entry in environ:
                name, _, value = entry.partition(b"=")
                table[name] = value
        argv_list[:] = argv[1:]
        orig_argv[:] = argv
        folder, slash, _ = argv[1].rpartition("/")
        path.insert(0, folder or slash)
        main.__file__ = argv[1]
        main.__cached__ = None
        main.__loader__ = loader("__main__", argv[1])
        if isatty(0):
            sys.stdin = sys.__stdin__ = stream(0, "r", "<stdin>", "surrogateescape", True)

    return start


start = _starting()


def _forget_places():
    linecache.clearcache()
    for path in list(sys.path_importer_cache):
        if not path.startswith("/usr/local/lib/python313.zip"):
            del sys.path_importer_cache[path]


_SAMPLE = """
import sys, os
class Sample:
    def __init__(self, *words): self.words = {w: len(w) for w in words}
def text(n): return "".join(f"{i:02d} " for i in range(n))
try: print(text(3), Sample("a", "b").words, file=out)
except ValueError as error: pass
"""


def rehearse():
    """In a worker that waits, before there is a run: a start and a small program.  The next start makes all
    that this one makes anew; what is left of it is memory that was used."""
    path = list(sys.path)
    start(["python3", "/run/code/main.py"], [])
    exec(compile(_SAMPLE, "/run/code/main.py", "exec"), {"out": io.StringIO(), "__name__": "__rehearsal__"})
    sys.path[:] = path
    _forget_places()
    flush()
    gc.collect()


# ---- An evaluation session ---------------------------------------------------------------------------

class _Host:
    """In the place of the one in packs/python_driver.py."""
    rests = True

    def __init__(self):
        import _control
        self.read, self.write, self.input = _control.read, _control.write, _control.input
        self.listen, self.wait, self.waiting = _control.listen, _control.wait, _control.waiting

    def alone(self):
        return True

    def give_input(self, data):
        name = f"/tmp/.input-{time.monotonic_ns()}"
        with open(name, "wb") as file:
            file.write(data)
        self.input(name)
        os.unlink(name)

    def take_input_back(self):
        self.input("/dev/null")


def session():
    import _session
    host = _Host()
    host.listen()
    return _session._drive(host)


def renew():
    """In a copy of a guest that rests: what os.register_at_fork() and a new process number have renewed elsewhere."""
    random, tempfile = sys.modules.get("random"), sys.modules.get("tempfile")
    try:
        if random is not None:
            random._inst.seed()
        if tempfile is not None and tempfile._name_sequence is not None:
            tempfile._name_sequence._rng_pid = None
    except Exception:  # the code has other modules by these names
        pass


# ---- The end of a program ----------------------------------------------------------------------------

_kept = []


def freeze():
    """At the end of the snapshot: what is there now belongs to no program, and no collection looks at it."""
    _make_streams()
    _forget_places()
    sys.excepthook = _hook
    re.purge()
    _kept[:] = sys.modules
    for cache in gc.get_objects():
        if isinstance(cache, functools._lru_cache_wrapper):
            cache.cache_clear()
    del cache
    gc.collect()
    gc.freeze()


def status(error):
    """The exit status of an exit; None of any other exception."""
    if not isinstance(error, SystemExit):
        return None
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 255
    flush()
    print(error.code, file=sys.stderr)
    return 1


def run_exit_functions():
    threading._shutdown()
    atexit._run_exitfuncs()
    return flush()


def drop_modules():
    names = [name for name in sys.modules]  # list() would ask each for its hash, and so would a set
    if names[:len(_kept)] == _kept:
        del names[:len(_kept)]
    else:
        kept = set(_kept)
        names = [name for name in names if name not in kept]
    for name in names:
        del sys.modules[name]


def flush():
    fine = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError, AttributeError):
            fine = fine and stream is not sys.stdout
    return fine
