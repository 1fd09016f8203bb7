#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The demo: an honest job, then six attempts.  For each: what the same script does without walls
(the control), what the guest saw, what the host saw, and the plan's line for that wall.

usage: show.py SANDBOX      exit 1 if an attempt gets through or a control fails
"""
import json
import os
import platform
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CANARY = "canary-" + secrets.token_hex(4)
LINUX = ["--backend", "linux"]  # the walls that are shown; a script could as well run on wasm
WIDTH = 110


class Listener:
    """Three sockets on this host; counts who comes."""

    def __init__(self, folder):
        self.path, self.name, self.calls = folder + "/sock", "sandbox-demo-" + secrets.token_hex(4), 0
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        for address in (None, self.path, "\0" + self.name):
            server = tcp
            if address is not None:
                server = socket.socket(socket.AF_UNIX)
                server.bind(address)
                server.listen()
            threading.Thread(target=self.serve, args=(server,), daemon=True).start()

    def serve(self, server):
        while True:
            conn, _ = server.accept()
            self.calls += 1
            with conn:
                conn.settimeout(2)
                conn.recv(64)

    def args(self):
        return [str(self.port), self.path, self.name]


class Demo:
    def __init__(self, sandbox, folder):
        self.sandbox, self.folder = os.path.abspath(sandbox), folder
        self.home, self.work, self.other = (os.path.join(folder, n) for n in ("home", "work", "other"))
        for path in (self.work, self.other, self.home + "/.ssh"):
            os.makedirs(path)
        self.key = self.write(self.home + "/.ssh/id_ed25519", CANARY)
        self.env = dict(os.environ, HOME=self.home)
        self.faults, self.attempts = [], 0
        # the guests are copied where every user can read them
        self.guests = shutil.copytree(HERE + "/guests", self.work + "/guests")

    @staticmethod
    def write(path, text):
        with open(path, "w") as f:
            f.write(text + "\n")
        return path

    @staticmethod
    def read(path):
        with open(path) as f:
            return f.read().strip()

    def guest(self, name):
        return f"{self.guests}/{name}.py"

    # -- what is printed --

    def title(self, text):
        self.attempts += 1
        print(f"\n{self.attempts}. {text}")

    def say(self, label, text):
        for i, line in enumerate(text.strip().splitlines() or ["(nothing)"]):
            line = line.replace(self.folder, "$T").replace(os.path.dirname(HERE) + "/", "")
            print(f"   {label if i == 0 else '':<12}{line if len(line) < WIDTH else line[:WIDTH - 3] + '...'}")

    def check(self, label, text, ok):
        self.say(label, ("" if ok else "FAILED: ") + text)
        if not ok:
            self.faults.append(f"{self.attempts}: {label}: {text}")
        sys.stdout.flush()

    # -- what is run --

    def outside(self, name, *args, timeout=10, limit=None):
        """The same script without walls; `limit` bounds what it can do to this machine."""
        run = subprocess.Popen([sys.executable, self.guest(name), *args], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.env, cwd=self.work,
                               start_new_session=True, text=True,
                               preexec_fn=limit)
        try:
            return run.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.reap(run)

    def reap(self, run):
        """Ends a control and all that it left in its group or wandered off with its script's path."""
        for pid in [run.pid, *self.left(self.guests)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.stdout.close()
        run.wait()

    def inside(self, options, words):
        """The sandbox runs it.  Output goes to files: what a guest leaves behind must not hold us."""
        start = time.monotonic()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            run = subprocess.Popen([self.sandbox, "run", *options, *words], stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, env=self.env, cwd=self.work)
            try:
                run.wait(timeout=50)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
            self.took = time.monotonic() - start
            out.seek(0)
            err.seek(0)
            run.stdout, run.stderr = out.read(), err.read()
        self.show_command(options, words)
        self.say("guest saw", run.stdout)
        if run.stderr:
            self.say("", run.stderr)
        return run

    def show_command(self, options, words):
        self.say("command", "sandbox run " + " ".join([*options, *words]))

    def wall(self, wall, options, words):
        """The plan's lines for one wall; none at all, or one that does not hold, is a fault."""
        out = subprocess.run([self.sandbox, "explain", "--json", *options, *words], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, env=self.env, cwd=self.work, timeout=60)
        try:
            lines = [l for l in json.loads(out.stdout)["plan"] if l["wall"] == wall]
        except (ValueError, KeyError):
            lines = []
        held = [l for l in lines if l["level"] != "none"]
        text = "\n".join(dict.fromkeys(f"{wall}: {l['level']}, {l['mechanism']}" for l in held[:3]))
        self.check("plan", text or f"no line for {wall}", bool(held))

    @staticmethod
    def left(token):
        """Processes of this machine that have `token` in their command line."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read()
            except OSError:
                continue
            if token.encode() in words and int(pid) != os.getpid():
                found.append(int(pid))
        return found

    def nobody_left(self, token):
        end = time.monotonic() + 2
        while self.left(token) and time.monotonic() < end:
            time.sleep(0.02)
        left = self.left(token)
        self.check("host saw", f"{len(left)} processes left of it", not left)
        for pid in left:
            os.kill(pid, signal.SIGKILL)

    # -- the attempts --

    def job(self):
        self.title("The job: a script totals a CSV file")
        data = HERE + "/sales.csv"
        want = (self.outside("total", data) or "").strip()
        self.check("control", want, "east" in want)
        out = self.folder + "/report"
        options = [*LINUX, "--file", f"sales.csv={data}", "--out", out]
        words = [self.guest("total"), "/in/sales.csv"]
        run = self.inside(options, words)
        report = self.read(out + "/report.json") if os.path.exists(out + "/report.json") else "no report.json"
        self.check("host saw", f"report.json: {report}",
                   run.returncode == 0 and run.stdout.strip() == want and report.startswith("{"))
        self.wall("files", options, words)

    def read_secrets(self):
        self.title("It reads ~/.ssh and /etc/shadow")
        paths = [self.key, "/etc/shadow"]
        control = self.outside("read_files", *paths) or ""
        shadow = "readable" if "READ /etc/shadow" in control else "not readable for this user anyhow"
        self.check("control", f"~/.ssh/id_ed25519 is readable; /etc/shadow is {shadow}", CANARY in control)
        words = ["--", "python3", "guests/read_files.py", *paths]
        run = self.inside([], words)
        self.check("host saw", "the key's text is not in what the guest printed",
                   CANARY not in run.stdout and "READ" not in run.stdout and run.stdout.count("Error") == 2)
        self.wall("files", [], words)

    def write_outside(self):
        self.title("It writes outside its workspace")
        target = self.write(self.other + "/notes.txt", CANARY)
        control = self.outside("write_files", target) or ""
        self.check("control", f"{control.strip()}", CANARY not in self.read(target))
        self.write(target, CANARY)
        planted = [f"{folder}/sandbox-demo-{CANARY}" for folder in ("/etc", "/usr", self.home)]
        words = ["--", "python3", "guests/write_files.py", "mine.txt", target, *planted]
        run = self.inside([], words)
        found = [p for p in planted if os.path.exists(p)]
        for path in found:
            os.unlink(path)
        kept = os.path.exists(self.work + "/mine.txt")
        self.check("host saw", "the canary is untouched, nothing was planted; mine.txt is in the workspace",
                   self.read(target) == CANARY and not found and kept and "WROTE mine.txt" in run.stdout)
        self.wall("files", [], words)

    def network(self):
        self.title("It dials listeners on this host")
        listener = Listener(self.folder)
        control = self.outside("connect", *listener.args()) or ""
        deadline = time.monotonic() + 3
        while listener.calls < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.check("control", f"{control.count('REACHED')} of 3 reached, {listener.calls} calls came in",
                   listener.calls == 3)
        listener.calls = 0
        words = [self.guest("connect"), *listener.args()]
        run = self.inside([*LINUX, "--timeout", "15s"], words)
        self.check("host saw", f"{listener.calls} calls came in",
                   listener.calls == 0 and "REACHED" not in run.stdout and run.stdout.count("for") == 3)
        self.wall("network", LINUX, words)

    def fork_bomb(self):
        self.title("A fork bomb")
        most, token = 60, secrets.token_hex(6)
        control = self.outside_output("fork_bomb", str(most), token, until="\n")
        self.check("control", control.strip(), f"BORN {most}" in control)
        words = [self.guest("fork_bomb"), str(most), token]
        for seconds in 1, 4, 16:  # more on a machine so busy that it did not come to the attempt
            options = [*LINUX, "--pids", "20", "--timeout", f"{seconds}s"]
            run = self.inside(options, words)
            if run.stdout:
                break
        self.check("exit code", f"{run.returncode} after {self.took:.1f} s",
                   run.returncode == 124 and "BORN" not in run.stdout and "Error" in run.stdout)
        self.nobody_left(token)
        self.wall("pids", options, words)

    def memory_hog(self):
        self.title("A memory hog")
        most, token = 256, secrets.token_hex(6)

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        control = self.outside("memory_hog", str(most), token, limit=limit) or ""
        self.check("control", control.strip()[-40:], "GOT IT ALL" in control)
        options, words = [*LINUX, "--mem", "64M"], [self.guest("memory_hog"), str(most), token]
        run = self.inside(options, words)
        self.check("exit code", str(run.returncode), run.returncode == 137 and "GOT" not in run.stdout)
        self.nobody_left(token)
        self.wall("memory", options, words)

    def endless(self):
        self.title("An endless loop, with a child that left the session and ignores TERM")
        token = secrets.token_hex(6)
        control = self.outside("endless", token, timeout=1.2)
        self.check("control", "still running after 1.2 s", control is None)
        options, words = [*LINUX, "--timeout", "700ms"], [self.guest("endless"), token]
        run = self.inside(options, words)
        self.check("exit code", f"{run.returncode} after {self.took:.1f} s",
                   run.returncode == 124 and self.took < 30 and "STILL" not in run.stdout)
        self.nobody_left(token)
        self.wall("time", options, words)

    def outside_output(self, name, *args, until):
        """The first output of a control that would go on."""
        run = subprocess.Popen([sys.executable, self.guest(name), *args], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.work,
                               start_new_session=True, text=True)
        try:
            return run.stdout.readline() if until == "\n" else ""
        finally:
            self.reap(run)

    def run(self):
        started = time.monotonic()
        version = subprocess.run([self.sandbox, "version"], capture_output=True, text=True).stdout.strip()
        print(f"{version} on {platform.system()} {platform.release()}, as uid {os.getuid()}; $T is a fresh folder")
        for attempt in (self.job, self.read_secrets, self.write_outside, self.network, self.fork_bomb,
                        self.memory_hog, self.endless):
            attempt()
        took = time.monotonic() - started
        print(f"\n{'ALL HELD' if not self.faults else 'FAILED'}: the job was done, and "
              f"{self.attempts - 1} attempts were made, in {took:.1f} s")
        for fault in self.faults:
            print("  " + fault.replace(self.folder, "$T"))
        return 1 if self.faults else 0


def main(argv):
    if len(argv) != 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="sandbox-demo-") as folder:
        return Demo(argv[1], folder).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
