# SPDX-License-Identifier: MIT
# python_driver.py - evaluates what comes over the control descriptor; see docs/internals/driver-protocol.md.
#
# It keeps to what the interpreter has built in, so that it starts fast.  Code shares its memory and can
# lie about its own value; everything else (a closed descriptor, a fork, a replaced stream, an exit)
# must leave the frames as they are.
import sys


class _Host:
    """The control descriptor and standard input on a machine with system calls of its own.  A guest of
    WebAssembly has the same by another name."""
    rests = False  # somebody calls when something has come

    def __init__(self):
        import _signal
        import fcntl
        import os
        import select
        self.os, self.select, self.pid = os, select.select, os.getpid()
        self.get, self.put, self.getpid = os.read, os.write, os.getpid  # code may name something else so
        self.set_wakeup_fd = _signal.set_wakeup_fd
        for least in (900, 240, 70, 3):
            try:
                self.fd = fcntl.fcntl(3, fcntl.F_DUPFD_CLOEXEC, least)
                break
            except OSError:
                continue
        if self.fd != 3:
            os.close(3)
        pair = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.rung, self.bell = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least) for fd in pair]
        for fd in pair:
            os.close(fd)
        os.register_at_fork(after_in_child=self.forget)

    def forget(self):
        # a child of fork() shares the descriptor: its word must not count
        self.pid = -1
        self.os.close(self.fd)

    def alone(self):
        return self.getpid() == self.pid

    def read(self, size):
        return self.get(self.fd, size)

    def write(self, data):
        if not self.alone():
            self.os._exit(0)
        while data:
            data = data[self.put(self.fd, data):]

    def wait(self):
        """Until there is something to be read.  A signal that comes in the instant before the sleep would wake
        nobody: its handler runs only when the interpreter has its turn again.  So it rings as well."""
        try:
            was = self.set_wakeup_fd(self.bell, warn_on_full_buffer=False)
        except (ValueError, OSError):  # a thread of the code's, where none arrives; or it has closed the bell
            self.select([self.fd], [], [])
            return
        try:
            while self.fd not in self.select([self.fd, self.rung], [], [])[0]:
                self.os.read(self.rung, 512)
        finally:
            try:
                self.set_wakeup_fd(was)
            except (ValueError, OSError):
                self.set_wakeup_fd(-1)

    def waiting(self):
        """Is there something to be read?"""
        return bool(self.select([self.fd], [], [], 0)[0])

    def become_input(self, fd):
        if fd == 0:  # the code had closed it
            self.os.set_inheritable(0, True)
            return
        self.os.dup2(fd, 0)
        self.os.close(fd)

    def give_input(self, data):
        fd = self.os.memfd_create("input", self.os.MFD_CLOEXEC)
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        self.os.lseek(fd, 0, self.os.SEEK_SET)
        self.become_input(fd)

    def take_input_back(self):
        self.become_input(self.os.open("/dev/null", self.os.O_RDONLY))


def _drive(host):
    import _ast
    import builtins
    import io
    import os
    import signal

    TEXT_MAX = 65536
    OURS = _drive.__code__.co_filename
    FUTURE = 0x1FE0000  # CO_FUTURE_*
    running = False  # an interrupt strikes
    struck = False  # one came while that was not so
    buffered = bytearray()
    nonce = b""
    value = None
    asked = 0
    flags = 0
    single = None

    # ---- frames ---------------------------------------------------------------------------------
    def frame(kind, payload=b""):
        return kind + b" " + nonce + b" %08x\n" % len(payload) + payload

    def send(kind, payload=b""):
        host.write(frame(kind, payload))

    def draw(size):
        got = host.read(size)
        if not got:
            os._exit(0)  # the host has gone
        buffered.extend(got)

    def fill(least):
        while len(buffered) < least:
            draw(1 << 20 if least - len(buffered) > 65536 else 65536)

    def receive():
        fill(44)
        kind, given, length = bytes(buffered[:44]).split()
        length = int(length, 16)
        fill(44 + length)
        payload = bytes(buffered[44:44 + length])
        del buffered[:44 + length]
        return kind, given, payload

    def told_to_stop():
        """Was the code interrupted before it began?  Once it has, signals tell."""
        if not buffered and host.waiting():
            draw(65536)
        if not buffered:
            return False
        fill(44)
        return buffered[:34] == b"I " + nonce

    # ---- input that is asked for ----------------------------------------------------------------
    class Asking(io.TextIOBase):
        """Input that the host gives when the code asks: one line, or what there is."""
        name, encoding, errors, mode = "<stdin>", "utf-8", "surrogateescape", "r"
        line, ended = "", False

        def readable(self):
            return True

        def more(self):
            nonlocal running, struck, asked
            flush()
            asked += 1
            send(b"Q", b"%08x" % asked)
            was, kind = running, b""
            while kind != b"A" or given != nonce or payload[:8] != b"%08x" % asked:
                if not buffered:
                    host.wait()  # here an interrupt may strike
                running = False
                try:
                    kind, given, payload = receive()
                finally:
                    running = was
                if struck:
                    struck = False
                    raise KeyboardInterrupt
            self.ended = len(payload) == 8
            self.line += payload[8:].decode("utf-8", "surrogateescape")

        def readline(self, size=-1):
            while "\n" not in self.line and not self.ended and not 0 <= size <= len(self.line):
                self.more()
            self.ended = False
            at = self.line.find("\n") + 1 or len(self.line)
            return self.cut(at if size is None or size < 0 else min(at, size))

        def read(self, size=-1):
            while not self.ended and (size is None or size < 0 or len(self.line) < size):
                self.more()
            self.ended = False
            return self.cut(len(self.line) if size is None or size < 0 else size)

        def cut(self, at):
            text, self.line = self.line[:at], self.line[at:]
            return text

    nothing = sys.stdin

    def give_input(ask, data):
        if ask:
            sys.stdin = Asking()
        elif data:
            host.give_input(data)
            sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
        else:
            return False
        return True

    def take_input_back(data):
        sys.stdin = nothing
        if data:
            host.take_input_back()

    # ---- what the code says ---------------------------------------------------------------------
    streams = [s for s in (sys.stdout, sys.stderr) if s is not None]
    for stream in streams:
        # a traceback is always written, whatever is in its message
        errors = "backslashreplace" if stream is sys.stderr else "surrogateescape"
        stream.reconfigure(line_buffering=True, errors=errors)

    def flush():
        # as the streams were, and as the code may have replaced them, or taken them away
        for stream in (getattr(sys, "stdout", None), getattr(sys, "stderr", None), *streams):
            try:
                stream.flush()
            except BaseException:
                pass

    def cut(text):
        data = text.encode("utf-8", "backslashreplace")
        if len(data) <= TEXT_MAX:
            return data
        return data[:TEXT_MAX].decode("utf-8", "ignore").encode()

    def show(result):
        nonlocal value
        if result is None:
            return
        builtins._ = None
        text = repr(result)
        out = getattr(sys, "stdout", None)
        if out is not None:
            try:
                out.write(text)
            except UnicodeEncodeError:
                out.write(text.encode(out.encoding, "backslashreplace").decode(out.encoding))
            out.write("\n")
        builtins._ = result
        value = text

    sys.displayhook = sys.__displayhook__ = show

    def words(error):
        name = type(error).__qualname__
        try:
            text = str(error)
        except BaseException:
            text = "<exception str() failed>"
        return cut(f"{name}: {text}" if text else name)

    def report(error):
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == OURS:
            trace = trace.tb_next
        error.__traceback__ = at = trace
        while at is not None and at.tb_next is not None:
            if at.tb_next.tb_frame.f_code.co_filename == OURS:
                at.tb_next = None
            at = at.tb_next
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        try:
            sys.excepthook(type(error), error, trace)
        except SystemExit:
            raise
        except BaseException as second:
            try:
                sys.__excepthook__(type(second), second, second.__traceback__)
            except BaseException:
                pass

    # ---- code -----------------------------------------------------------------------------------
    def remember(code):
        nonlocal flags
        flags |= code.co_flags & FUTURE
        return code

    def one_statement(source):
        """As the console reads it: NULL = it goes on."""
        nonlocal single
        if single is None:
            import codeop
            single = codeop.CommandCompiler()
        single.compiler.flags |= flags
        text = source.decode("utf-8", "surrogateescape")
        if not text.isascii() and text.encode("utf-8", "replace") != source:
            return whole(source)  # says which byte is none of UTF-8
        code = single(text, "<stdin>", "single")
        return code if code is None else [remember(code)]

    def whole(source):
        tree = compile(source, "<stdin>", "exec", _ast.PyCF_ONLY_AST | flags, True)
        last = []
        if tree.body and isinstance(tree.body[-1], _ast.Expr):
            last.append(_ast.Interactive([tree.body.pop()]))
        parts = []
        if tree.body:
            parts.append(remember(compile(tree, "<stdin>", "exec", flags, True)))
        for end in last:
            parts.append(remember(compile(end, "<stdin>", "single", flags, True)))
        return parts

    def compiled(source, partial):
        try:
            return one_statement(source) if partial else whole(source)
        except Exception as error:
            raise error.with_traceback(None)  # nothing of the code's has run: a console names its place alone

    def evaluate(source, partial):
        """Status, exception; None = unfinished."""
        nonlocal running, struck
        try:
            try:
                struck = False
                told = told_to_stop()
                running = True
                if told or struck:
                    raise KeyboardInterrupt
                parts = compiled(source, partial)
                if parts is None:
                    return None, None
                for part in parts:
                    exec(part, space)
            finally:
                running = False
        except SystemExit:
            raise
        except BaseException as error:
            running = False
            if host.alone():
                report(error)
                return 1, words(error)
            report(error)
            flush()
            os._exit(1)
        return 0, None

    def step():
        nonlocal nonce, value
        kind, nonce, payload = receive()
        if kind == b"S":
            send(b"H", b"1 ask int python %d.%d.%d" % sys.version_info[:3])
        if kind != b"E":
            return
        value = None
        asks, length = int(payload[:2], 16), int(payload[2:10], 16)
        data = payload[10 + length:]
        given = give_input(asks & 2, data)
        status, exception = evaluate(payload[10:10 + length], asks & 1)
        if given:
            take_input_back(data)
        flush()
        if status is None:
            send(b"U")
            return
        end = frame(b"D", b"%d" % status)
        if exception is not None:
            end = frame(b"X", exception) + end
        elif value is not None:
            end = frame(b"V", cut(value)) + end
        host.write(end)

    def turn():
        """What has come, and what has come with it."""
        step()
        while buffered:
            step()

    def interrupted(number, frame):
        nonlocal struck
        if running:
            raise KeyboardInterrupt
        struck = True

    signal.signal(signal.SIGINT, interrupted)
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    space = main.__dict__
    space["__builtins__"] = builtins
    sys.argv[:] = [""]
    sys.path[:1] = [""]
    while not host.rests:
        turn()
    return turn


if __name__ == "__main__":
    _drive(_Host())
