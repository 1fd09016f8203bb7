# SPDX-License-Identifier: MIT
"""What escape attempts aim at: prepared on the host for one launch, looked at afterwards.

An Arena is a room with a workspace, a directory `outside` that anybody may write to, and the
fixtures that a file names; `variables` tells the attempt where they are.
"""
import ctypes
import json
import os
import pty
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time

from harness import Outcome, copy_program, start

SYS_LANDLOCK_CREATE_RULESET = 444


def features(stage, user):
    """What this machine has for that user, for `if` and `needs`."""
    found = set()
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, 1)
    if abi >= 1:
        found.add("landlock")
    if abi >= 3:
        found.add("landlock-truncate")
    if abi >= 6:
        found.add("scope")
    plan = stage.run(user, [stage.sandbox, "explain", "--json", "--backend", "linux", "--mem", "64M",
                            "--cpu", "1s", "--timeout", "9s", "--pids", "20", "--workspace", "none",
                            "--", "true"], stage.dir, timeout=30)
    try:
        lines = json.loads(plan.text())["plan"]
    except (ValueError, KeyError):
        return found
    for line in lines:
        if line["level"] == "hard" or "cgroup" in line["mechanism"]:
            found.add(f"{line['wall']}-cgroup")
        if line["mechanism"].startswith("landlock in the host's root"):
            found.add("in-place")
        if line["wall"] == "privileges" and "nested user namespace" not in line["mechanism"]:
            found.add("unmapped")
    if "in-place" not in found:
        found.add("own-root")
    return found


LEVELS = ("none", "cooperative", "sampled", "hard")


class Unusable(Exception):
    """The backend linux is not usable as that user, and why."""


def claims(stage, user):
    """Level of each wall of the backend linux, as doctor --json tells that user.

    Walls without a limit by default (time, cpu) hold nothing there: for them what explain says with one."""
    def weakest(lines):
        levels = {}
        for line in lines:
            at = LEVELS.index(line["level"])
            if not line.get("subject", "").startswith("/") or line["wall"] == "files":
                levels[line["wall"]] = min(at, levels.get(line["wall"], 3))
        return {wall: LEVELS[at] for wall, at in levels.items()}

    doctor = stage.run(user, [stage.sandbox, "doctor", "--json"], stage.dir, timeout=60)
    try:
        backend = next(b for b in json.loads(doctor.text())["backends"] if b["name"] == "linux")
    except (ValueError, StopIteration) as error:
        raise Unusable(f"doctor does not tell of it: {doctor}") from error
    if not backend["usable"]:
        raise Unusable(next((f"{c['what']}: {c['found']}" for c in backend["checks"] if not c["ok"]), "it does not say why"))
    levels = weakest(backend["walls"])
    plan = stage.run(user, [stage.sandbox, "explain", "--json", "--backend", "linux", "--cpu", "1s",
                            "--timeout", "9s", "--workspace", "none", "--", "true"], stage.dir, timeout=30)
    limited = weakest(json.loads(plan.text())["plan"])
    levels.update({wall: limited[wall] for wall in ("time", "cpu")})
    return levels


class Listener(threading.Thread):
    """Counts who comes; answers datagrams.  One thread, ended by close()."""

    def __init__(self, family, kind, address, mode=None):
        super().__init__(daemon=True)
        self.sock = socket.socket(family, kind)
        self.sock.bind(address)
        if mode is not None:
            os.chmod(address, mode)
        self.datagrams = kind == socket.SOCK_DGRAM
        if not self.datagrams:
            self.sock.listen(50)
        self.sock.settimeout(0.1)
        self.contacts = 0
        self.ended = False
        self.start()

    def run(self):
        while not self.ended:
            try:
                if self.datagrams:
                    _, peer = self.sock.recvfrom(512)
                    self.contacts += 1
                    if peer:
                        self.sock.sendto(b"answer", peer)
                else:
                    peer, _ = self.sock.accept()
                    self.contacts += 1
                    peer.close()
            except socket.timeout:
                continue
            except OSError:
                return

    def close(self):
        self.ended = True
        self.join(2)
        self.sock.close()


class Arena:
    def __init__(self, stage, user, name, wanted, apart=False):
        self.stage, self.user = stage, user
        self.room = stage.room(name, user)
        self.workspace = os.path.join(self.room, "ws")
        self.outside = os.path.join(self.room, "outside")
        os.mkdir(self.workspace, 0o755)
        self.listeners, self.undo, self.looks = [], [], []
        if apart:
            self.outside = tempfile.mkdtemp(prefix="walls-", dir="/var/tmp")
            self.undo.append(lambda: shutil.rmtree(self.outside, ignore_errors=True))
        else:
            os.mkdir(self.outside)
        os.chmod(self.outside, 0o777)
        user.own(self.workspace)
        self.variables = {"WORKSPACE": self.workspace, "OUTSIDE": self.outside,
                          **{f"HOST_{kind.upper()}NS": os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "ipc", "uts")}}
        self.leaks = ()
        self.caller_env = {}
        self.terminal = False
        self.wanted = wanted
        for fixture in wanted:
            getattr(self, "make_" + fixture.replace("-", "_"))()

    # -- fixtures: each prepares, names its variables, and says how the host's side is looked at --

    def write(self, path, text, mode=0o666, owned=False):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        if owned:
            self.user.own(path)
        return path

    def make_spares(self):
        """In the workspace, and the user's own."""
        for name in ("spare", "to-remove", "to-rename"):
            self.write(os.path.join(self.workspace, name), "spare\n", owned=True)

    def make_canary(self):
        secret = "secret-" + secrets.token_hex(8)
        self.canary_text = f"{secret}\n"
        canary = self.write(os.path.join(self.outside, "canary"), self.canary_text)
        for name in ("spare", "to-remove", "to-rename"):
            self.write(os.path.join(self.outside, name), "spare\n")
        self.user.own(os.path.join(self.outside, "spare"))
        self.variables.update(CANARY=canary, SECRET=secret,
                              SPARE=os.path.join(self.outside, "spare"))
        tmp = self.write(f"/tmp/walls-{secrets.token_hex(6)}", self.canary_text)
        self.undo.append(lambda: os.unlink(tmp))
        self.variables["TMP_NAME"] = os.path.basename(tmp)
        before = self.tree(self.outside)
        self.looks.append(lambda: "" if self.tree(self.outside) == before
                          else f"the directory beside the workspace has changed: {self.outside}")

    @staticmethod
    def tree(top):
        found = []
        for name in sorted(os.listdir(top)):
            path = os.path.join(top, name)
            st = os.lstat(path)
            content = b""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    content = f.read()
            found.append((name, st.st_mode, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns, content))
        return found

    def make_home(self):
        ssh = os.path.join(self.user.home, ".ssh")
        os.makedirs(ssh, 0o700, exist_ok=True)
        key = self.write(os.path.join(ssh, "id_rsa"), self.variables["SECRET"] + "\n", 0o600, True)
        self.user.own(ssh)
        self.variables.update(SSH_KEY=key, CALLER_HOME=self.user.home)

    def make_leak(self):
        self.leaks = (8, 9)

    def make_links(self):
        links = {"link-file": self.variables["CANARY"], "link-dir": self.outside,
                 "link-relative": "../outside/canary"}
        for name, to in links.items():
            os.symlink(to, os.path.join(self.workspace, name))

    def make_protected(self):
        hooks = os.path.join(self.workspace, ".git", "hooks")
        os.makedirs(hooks)
        self.write(os.path.join(self.workspace, ".git", "config"), "[core]\n", 0o644, True)
        self.write(os.path.join(self.workspace, ".envrc"), "true\n", 0o644, True)
        self.user.own(hooks, os.path.join(self.workspace, ".git"))
        self.looks.append(lambda: "" if os.listdir(hooks) == [] else "a git hook was planted")

    def make_hidden(self):
        secret = self.variables["SECRET"] = secrets.token_hex(16)
        file = self.write(os.path.join(self.workspace, "hidden-file"), secret, 0o644, True)
        os.symlink("hidden-file", os.path.join(self.workspace, "link"))
        above = os.path.join(self.workspace, "above")
        os.makedirs(os.path.join(above, "between"))
        self.user.own(above, os.path.join(above, "between"))
        self.write(os.path.join(above, "between", "hidden"), secret, 0o644, True)
        folders = [os.path.join(self.workspace, name) for name in ("hidden-folder", "own-folder")]
        for folder in folders:
            os.mkdir(folder)
            self.user.own(folder)
            self.write(os.path.join(folder, "secret"), secret, 0o644, True)
        self.looks.append(lambda: "" if open(file, encoding="utf-8").read() == secret else "the hidden file was changed")
        self.looks.append(lambda: "" if [os.listdir(f) for f in folders] == [["secret"]] * 2 else "a hidden folder was")

    def make_planted(self):
        def bits():
            for name in os.listdir(self.workspace):
                if os.lstat(os.path.join(self.workspace, name)).st_mode & (stat.S_ISUID | stat.S_ISGID):
                    return f"{name} was left with the owner's rights"
            return ""
        self.looks.append(bits)

    def make_unix(self):
        # a short path: the room's may be longer than an address holds
        short = f"/tmp/.w{secrets.token_hex(4)}"
        os.mkdir(short, 0o755)
        self.undo.append(lambda: shutil.rmtree(short, ignore_errors=True))
        path, datagram = short + "/s", short + "/d"
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, path, 0o777)
        self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, datagram, 0o777)
        link = f"/tmp/.l{secrets.token_hex(4)}"
        os.symlink(path, os.path.join(self.workspace, "socket-link"))
        self.variables.update(UNIX_PATH=path, UNIX_DATAGRAM=datagram, UNIX_LINK=link)

    def make_unix_shown(self):
        """A program of the host's has its socket where the guest may write."""
        folder = os.path.join(self.workspace, "run")
        os.mkdir(folder)
        path = os.path.join(folder, "s")
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, path, 0o777)
        self.user.own(folder, path)
        self.variables.update(SHOWN_SOCKET=path)
        self.looks.append(lambda: "" if os.path.exists(path) else "the socket was moved away")

    def make_abstract(self):
        name = "walls-" + secrets.token_hex(8)
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name)
        self.variables["UNIX_ABSTRACT"] = name

    def make_tcp(self):
        listener = self.listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.variables["TCP_PORT"] = str(listener.sock.getsockname()[1])

    def make_tcp6(self):
        try:
            listener = self.listen(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
            self.variables["TCP6_PORT"] = str(listener.sock.getsockname()[1])
        except OSError:
            self.variables["TCP6_PORT"] = "0"

    def make_udp(self):
        listener = self.listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self.variables["UDP_PORT"] = str(listener.sock.getsockname()[1])

    def listen(self, family, kind, address, mode=None):
        listener = Listener(family, kind, address, mode)
        self.listeners.append(listener)
        return listener

    def make_peer(self):
        """Inside the walls the reaper; in a control on the host, a process of the same user's."""
        if "VICTIM" not in self.variables:
            self.make_victim()
        self.variables["PEER"] = "1"

    def make_victim(self):
        code = ("import signal,time\n"
                "n=[0]\n"
                "def got(*_): n[0]+=1; print('signal',flush=True)\n"
                "signal.signal(signal.SIGUSR1,got)\n"
                "print('up',flush=True)\n"
                "end=time.monotonic()+120\n"
                "while time.monotonic()<end: time.sleep(.5)\n")
        self.victim = start(["python3", "-c", code], stdout=subprocess.PIPE, cwd="/",
                            stdin=subprocess.DEVNULL,
                            env=self.stage.environment(self.user, **self.caller_env),
                            **self.user.popen_args())
        self.victim.stdout.readline()
        os.set_blocking(self.victim.stdout.fileno(), False)
        self.undo.append(self.end_victim)
        self.variables["VICTIM"] = str(self.victim.pid)
        self.looks.append(self.look_at_victim)

    def look_at_victim(self):
        if self.victim.poll() is not None:
            return "the victim has died"
        if self.victim.stdout.read():
            return "a signal reached the victim"
        return ""

    def end_victim(self):
        self.victim.kill()
        self.victim.wait()
        self.victim.stdout.close()

    def make_ipc(self):
        key = secrets.randbelow(1 << 30) + 1
        libc = ctypes.CDLL(None, use_errno=True)
        shm = libc.shmget(key, 4096, 0o1666)
        msg = libc.msgget(key, 0o1666)
        sem = libc.semget(key, 1, 0o1666)
        name = f"/walls-{secrets.token_hex(6)}"
        posix = self.write("/dev/shm" + name, "canary\n")
        rt = ctypes.CDLL("librt.so.1", use_errno=True)
        old = os.umask(0)
        queue = rt.mq_open(name.encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
        os.umask(old)

        def undo():
            libc.shmctl(shm, 0, None)
            libc.msgctl(msg, 0, None)
            libc.semctl(sem, 0, 0)
            rt.mq_close(queue)
            rt.mq_unlink(name.encode())
            os.unlink(posix)

        self.undo.append(undo)
        self.variables.update(SYSV_KEY=str(key), POSIX_NAME=name)

    def make_secret_env(self):
        self.caller_env = {"WALLS_SECRET_VARIABLE": secrets.token_hex(8)}

    def make_terminal(self):
        self.terminal = True

    def make_setuid(self):
        self.variables.update(SETUID_FILE="/nowhere", CAPABLE_FILE="/nowhere")
        if os.getuid() != 0:
            return
        for name, variable in (("setuid-file", "SETUID_FILE"), ("capable-file", "CAPABLE_FILE")):
            path = os.path.join(self.workspace, name)
            copy_program(os.path.join(self.stage.bin, "setuid"), path)
            os.chown(path, 0, 0)
            os.chmod(path, 0o4755 if name == "setuid-file" else 0o755)
            self.variables[variable] = path
        # version 2, effective: chown and net_admin
        os.setxattr(path, "security.capability",
                    bytes.fromhex("01000002" + "01100000" + "00000000" * 3))

    def make_device(self):
        if os.getuid() == 0:
            path = os.path.join(self.workspace, "node")
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
            os.chmod(path, 0o666)
        names = [n for n in os.listdir("/dev/pts") if n.isdigit()]
        if not names:
            master, slave = pty.openpty()
            names = [os.path.basename(os.ttyname(slave))]
            self.undo.append(lambda: (os.close(master), os.close(slave)))
        # the highest: a fresh devpts counts from 0 again
        self.variables["PTS"] = max(names, key=int)
        if self.variables["PTS"] == "0":
            pairs = [pty.openpty() for _ in range(2)]
            self.variables["PTS"] = os.path.basename(os.ttyname(pairs[1][1]))
            self.undo.append(lambda: [os.close(fd) for pair in pairs for fd in pair])

    # -- use --

    def place(self, program):
        """A copy in the workspace, where an argv run sees it."""
        target = os.path.join(self.workspace, "attempt-" + os.path.basename(program))
        return copy_program(program, target)

    def execute(self, argv, env):
        env = dict(env, **self.caller_env)
        if self.terminal:
            return self.execute_on_terminal(argv, env)
        if not self.leaks:
            return self.stage.run(self.user, argv, self.workspace, env=env)
        # the caller's own descriptors 8 and 9, and a working directory outside the workspace
        code = ("import os,sys\n"
                "os.dup2(os.open(sys.argv[1]+'/canary',os.O_RDONLY),8)\n"
                "os.dup2(os.open(sys.argv[1],os.O_RDONLY),9)\n"
                "os.set_inheritable(8,True);os.set_inheritable(9,True)\n"
                "os.execv(sys.argv[2],sys.argv[2:])\n")
        return self.stage.run(self.user, ["python3", "-c", code, self.outside] + argv, self.outside,
                              env=env)

    def execute_on_terminal(self, argv, env):
        """The caller has a controlling terminal; what is pushed into it must not arrive."""
        master, slave = pty.openpty()
        name = os.ttyname(slave)
        os.chmod(name, 0o666)
        env = dict(env)
        if argv[0].endswith("/sandbox") or argv[0].endswith("/control"):
            at = argv.index("--")
            argv = argv[:at] + ["--env", f"TERMINAL={name}"] + argv[at:]
        else:
            env["TERMINAL"] = name
        out_r, out_w = os.pipe()

        def adopt():
            os.setsid()
            import fcntl
            import termios
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            if self.user.switch:
                os.setgroups([])
                os.setgid(self.user.uid)
                os.setuid(self.user.uid)

        process = start(argv, cwd=self.workspace, env=env, stdin=slave, stdout=out_w,
                        stderr=slave, preexec_fn=adopt)
        os.close(out_w)
        os.close(slave)
        began = time.monotonic()
        out = b""
        with os.fdopen(out_r, "rb") as f:
            out = f.read()
        code = process.wait(30)
        os.close(master)
        return Outcome(code, out, b"", time.monotonic() - began)

    def watches(self):
        return bool(self.looks or self.listeners)

    def host_faults(self):
        """After a run behind every wall: nothing may have been touched."""
        faults = [look() for look in self.looks]
        for listener in self.listeners:
            if listener.contacts:
                faults.append(f"a listener of the host was contacted: {listener.sock}")
        return [fault for fault in faults if fault]

    def control_faults(self):
        """After a control on sockets: the listeners do notice, or their silence proves nothing."""
        return []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for listener in self.listeners:
            listener.close()
        for undo in reversed(self.undo):
            undo()
        shutil.rmtree(self.room, ignore_errors=True)
