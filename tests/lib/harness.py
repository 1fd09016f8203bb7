# SPDX-License-Identifier: MIT
"""What every driver under tests/ shares: who runs what where, how it is counted and reported.

A driver makes one Stage (a world-readable temporary directory with copies of the programs, so that
an unprivileged user can run them wherever the clone lies), runs its checks two at a time, and ends
with finish(), which prints "<part>: N passed, N failed, N skipped" and sets the exit code.
"""
import concurrent.futures
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PATH = "/usr/local/bin:/usr/bin:/bin"
if os.path.isdir("/usr/local/go/bin"):  # where Go's own archive puts it
    PATH += ":/usr/local/go/bin"
PLAIN_ID = 1000
SLOW = int(os.environ.get("SANDBOX_SLOW", "1"))  # a machine so many times slower than others: an emulated one

# Held while a program is copied and while one is started: a child forked in between would hold the
# copy open for writing, and running it would fail with "text file busy".
START = threading.Lock()

# What we ignore (nohup, a shell in the background) everything started from here would ignore, too; a handler
# that does nothing ends with us.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

# A hang alone breaks a bound of time: what takes moments may take this many seconds where much else runs.
HANG_S = 30.0


def copy_program(source, target, mode=0o755):
    with START:
        shutil.copy(source, target)
        os.chmod(target, mode)
    return target


def start(argv, **options):
    with START:
        return subprocess.Popen(argv, **options)


class Tally:
    """Counts, with one line printed per failure or skip as it happens."""

    def __init__(self, part, verbose=False):
        self.part, self.verbose = part, verbose
        self.passed = self.failed = 0
        self.skips = []
        self.lock = threading.Lock()

    def ok(self, name):
        with self.lock:
            self.passed += 1
            if self.verbose:
                print(f"ok   {name}", flush=True)

    def fail(self, name, why):
        with self.lock:
            self.failed += 1
            print(f"FAIL {name}: {why}", flush=True)

    def skip(self, name, why):
        with self.lock:
            self.skips.append((name, why))
            print(f"skip {name}: {why}", flush=True)

    def check(self, name, held, why=""):
        if held:
            self.ok(name)
        else:
            self.fail(name, why)
        return held

    def finish(self):
        """Prints the counts, adds them to the file that $SANDBOX_TALLY names, returns the exit code."""
        if not self.passed and not self.failed and not self.skips:
            self.fail(self.part, "nothing was run")
        print(f"{self.part}: {self.passed} passed, {self.failed} failed, {len(self.skips)} skipped",
              flush=True)
        tally = os.environ.get("SANDBOX_TALLY")
        if tally:
            with open(tally, "a", encoding="utf-8") as out:
                out.write(f"{self.part}\t{self.passed}\t{self.failed}\t{len(self.skips)}\n")
        return 1 if self.failed else 0


class User:
    """Somebody who runs the product: the one who runs the tests, or, for root, also uid 1000."""

    def __init__(self, name, uid, home):
        self.name, self.uid, self.home = name, uid, home
        self.switch = uid != os.getuid()

    def popen_args(self):
        if not self.switch:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": []}

    def own(self, *paths):
        if self.switch:
            for path in paths:
                os.lchown(path, self.uid, self.uid)


class Stage:
    """The temporary directory of one driver; use as a context manager."""

    def __init__(self, label, programs=("sandbox", "sb-launch"), more=()):
        # a driver that is told to end still takes its directory along
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.dir = tempfile.mkdtemp(prefix=f"sbtest-{label}.")
        os.chmod(self.dir, 0o755)
        self.bin = os.path.join(self.dir, "bin")
        os.mkdir(self.bin, 0o755)
        for program in programs:
            source = os.path.join(BUILD, program)
            if not os.path.exists(source):
                shutil.rmtree(self.dir)
                sys.exit(f"{label}: {source} is not there (run make first)")
            self.add(source)
        for path in more:
            self.add(path)
        self.sandbox = os.path.join(self.bin, "sandbox")
        self.users = self._users()

    def add(self, source, name=None):
        target = os.path.join(self.bin, name or os.path.basename(source))
        return copy_program(source, target)

    def _users(self):
        users = []
        me = os.getuid()
        wanted = [("root", 0), ("user", PLAIN_ID)] if me == 0 else [("user", me)]
        only = os.environ.get("SANDBOX_TEST_USERS")
        wanted = [(name, uid) for name, uid in wanted if not only or name == only]
        for name, uid in wanted:
            home = os.path.join(self.dir, f"home-{name}")
            os.mkdir(home, 0o700)
            user = User(name, uid, home)
            user.own(home)
            users.append(user)
        return users

    def room(self, name, user):
        """A fresh directory of that user's, for one check."""
        path = tempfile.mkdtemp(prefix="".join(c if c.isalnum() else "-" for c in name)[:40] + ".",
                                dir=self.dir)
        os.chmod(path, 0o755)
        user.own(path)
        return path

    def environment(self, user, **more):
        env = {"HOME": user.home, "PATH": PATH, "LANG": "C.UTF-8", "USER": user.name,
               "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
        env.update(more)
        return env

    def run(self, user, argv, cwd, env=None, stdin=b"", timeout=60, pass_fds=()):
        """subprocess.run with both streams kept; a hang is told as return code None."""
        began = time.monotonic()
        process = start(argv, cwd=cwd, env=self.environment(user) if env is None else env,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        pass_fds=pass_fds, start_new_session=True, **user.popen_args())
        try:
            out, err = process.communicate(stdin, timeout * SLOW)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            code = None
        return Outcome(code, out, err, time.monotonic() - began)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)


class Outcome:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def text(self):
        return self.out.decode("utf-8", "replace")

    def error_text(self):
        return self.err.decode("utf-8", "replace")

    def __str__(self):
        code = "did not end" if self.code is None else f"exit {self.code}"
        parts = [code]
        for name, data in (("stdout", self.out), ("stderr", self.err)):
            if data:
                parts.append(f"{name} {data[-300:]!r}")
        return ", ".join(parts)


def add_seed(parser):
    """--seed: the same dice in every run, so that what passes once passes again; "random" where new ones are wanted."""
    parser.add_argument("--seed", type=lambda text: secrets.randbelow(1 << 30) if text == "random" else int(text), default=1,
                        help="a number, or random (default: 1)")


def parallel(jobs, tally, width=2):
    """Runs callables, `width` at a time; an exception in one is a failure of that name."""
    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        futures = {pool.submit(job): name for name, job in jobs}
        for future in concurrent.futures.as_completed(futures):
            error = future.exception()
            if error is not None:
                tally.fail(futures[future], f"{type(error).__name__}: {error}")


def processes_with(token):
    """Process ids whose command line holds the token; ours left out."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as f:
                if token.encode() in f.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def wait_gone(token, seconds=HANG_S):
    """The processes that still hold the token after a bounded wait."""
    end = time.monotonic() + seconds
    while True:
        left = processes_with(token)
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)
