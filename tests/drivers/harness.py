# SPDX-License-Identifier: MIT
"""harness.py - a host for one driver, over a socket pair, without any sandbox."""
import fcntl
import os
import secrets
import select
import signal
import socket
import subprocess
import tempfile
import time

HEAD = 44


class Broken(Exception):
    """What came is no frame, or not one of this evaluation."""


class Result:
    def __init__(self):
        self.value = self.exception = None
        self.status = None          # None: unfinished, or the interpreter has gone
        self.unfinished = False
        self.gone = None            # what wait() says, once the process has ended
        self.out = self.err = b""

    def __repr__(self):
        return str({k: v for k, v in self.__dict__.items() if v not in (None, b"", False)})


class Driver:
    """argv with "{driver}" where the driver's file goes."""

    def __init__(self, argv, text, patience=20, cwd=None, env=None):
        self.patience = patience
        ours, theirs = socket.socketpair()
        self.file = tempfile.NamedTemporaryFile(suffix=".driver")
        self.file.write(text)
        self.file.flush()
        argv = [self.file.name if a == "{driver}" else a for a in argv]

        def place():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)
            os.setsid()

        low = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, 30)  # never 3 itself
        theirs.close()
        theirs = socket.socket(fileno=low)
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, close_fds=False, preexec_fn=place,
                                        cwd=cwd, env=env)
        theirs.close()
        self.control = ours
        self.buffer = b""
        for stream in (self.process.stdout, self.process.stderr):
            os.set_blocking(stream.fileno(), False)
        self.nonce = ""
        self.said = self.start()

    def start(self):
        self.nonce = secrets.token_hex(16)
        self.send("S", b"")
        kind, payload = self.frame(Result())
        if kind != "H":
            raise Broken(kind)
        return payload.decode()

    def send(self, kind, payload):
        self.control.sendall(b"%s %s %08x\n" % (kind.encode(), self.nonce.encode(), len(payload))
                             + payload)

    def streams(self, result):
        for name in ("out", "err"):
            stream = self.process.stdout if name == "out" else self.process.stderr
            while True:
                try:
                    data = os.read(stream.fileno(), 65536)
                except BlockingIOError:
                    break
                if not data:
                    break
                setattr(result, name, getattr(result, name) + data)

    def frame(self, result, deadline=None):
        """(kind, payload), or ("", b"") when the interpreter has gone."""
        deadline = deadline or time.monotonic() + self.patience
        while True:
            if len(self.buffer) >= HEAD:
                head = self.buffer[:HEAD]
                parts = head.split(b" ")
                if head[-1:] != b"\n" or len(parts) != 3 or len(parts[0]) != 1:
                    raise Broken(repr(head))
                if parts[1].decode() != self.nonce:
                    raise Broken("a frame of another evaluation")
                length = int(parts[2], 16)
                if len(self.buffer) >= HEAD + length:
                    payload = self.buffer[HEAD:HEAD + length]
                    self.buffer = self.buffer[HEAD + length:]
                    return parts[0].decode(), payload
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer; said so far: {result}")
            fds = [self.control, self.process.stdout, self.process.stderr]
            ready = select.select(fds, [], [], min(left, 0.2))[0]
            self.streams(result)
            if self.control in ready:
                data = self.control.recv(65536)
                if not data:
                    return "", b""
                self.buffer += data

    def eval(self, code, partial=False, ask=None, data=b"", interrupt_after=None, on_start=None):
        """`ask`: called for each question, gives bytes."""
        if isinstance(code, str):
            code = code.encode()
        self.nonce = secrets.token_hex(16)
        flags = (1 if partial else 0) | (2 if ask else 0)
        result = Result()
        self.send("E", b"%02x%08x" % (flags, len(code)) + code + data)
        if interrupt_after is not None:
            self.wait_for(result, interrupt_after)
            self.stop()
        return self.finish(result, ask)

    def wait_for(self, result, text):
        deadline = time.monotonic() + self.patience
        while text not in result.out + result.err:
            if time.monotonic() > deadline:
                raise TimeoutError(f"it never said {text}: {result}")
            select.select([self.process.stdout, self.process.stderr], [], [], 0.2)
            self.streams(result)

    def finish(self, result, ask):
        while True:
            kind, payload = self.frame(result)
            if kind == "":
                result.gone = self.process.wait(self.patience)
                self.streams(result)
                return result
            if kind == "Q":
                answer = ask()
                if answer is not None:
                    self.send("A", payload + answer)
            elif kind == "V":
                result.value = payload.decode(errors="replace")
            elif kind == "X":
                result.exception = payload.decode(errors="replace")
            elif kind in ("D", "U"):
                self.streams(result)
                result.unfinished = kind == "U"
                result.status = None if kind == "U" else int(payload)
                return result
            else:
                raise Broken(kind)

    def stop(self):
        """As the host does it: told in a frame first, then by the signal."""
        self.send("I", b"")
        self.interrupt()

    def interrupt(self):
        """As a terminal does it: all of the session's processes."""
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        self.control.close()
        self.file.close()
