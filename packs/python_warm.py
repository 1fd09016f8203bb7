# SPDX-License-Identifier: MIT
# The code of a Python worker that waits for the one run that it is for.
#
# It stands where the run's own code will stand, so the interpreter has been started exactly as for a
# cold run.  Descriptor 3 brings two records.  The first: names of modules to load, each ended by a NUL; one
# byte in return says that this is done.  The second comes once the run's files are in place: "i" or "n"
# (standard input: as it is, or nothing) and the run's arguments, each ended by a NUL, or in the
# descriptor that comes along; one byte in return says that they were taken.  Then this file is read
# again, and is the run.
#
# What is printed while modules load would not be the run's own, so it is dropped.  All that exists by
# then is kept out of the garbage collector's way.  At the end the kernel takes apart what nobody would
# see being taken apart: always what was loaded here, and all of a run that left nothing with an end of
# its own (see quiet()).


def _warm():
    import atexit
    import gc
    import posix
    import sys

    import _io
    import _socket

    def load(names):
        out, err = posix.dup(1), posix.dup(2)
        null = posix.open("/dev/null", posix.O_RDWR)
        posix.dup2(null, 1)
        posix.dup2(null, 2)
        for name in names:
            try:
                __import__(name)
            except BaseException:  # the run will meet it, too, if it wants that module
                pass
        # what is done the first time only: a compiler's tables, an encoder
        text = _io.TextIOWrapper(_io.BufferedWriter(_io.FileIO(null, "w")), "utf-8")
        space = {"out": text, "__builtins__": __builtins__}
        exec(compile(b"for i in [1]:\n    print(f'{i}', file=out, flush=True)\n", "", "exec"), space)
        text.close()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass
        posix.dup2(out, 1)
        posix.dup2(err, 2)
        posix.close(out)
        posix.close(err)

    def plain():
        def inner():
            return inner

        return {
            dict, list, tuple, set, frozenset, property, staticmethod, classmethod, zip, map, enumerate,
            filter, type(sys), type(inner), type(inner.__closure__[0]), type(len), type(load.__get__(0)),
            type(iter([])), type(iter(())), type(iter({})), type(iter(set())), type(dict.__dict__),
        }

    # None of these is a file, a suspended generator, something with a __del__ or a callback.
    def quiet(made):
        if len(made) > 20000 or gc.get_freeze_count() > frozen:
            return False
        if sys.stdout is not streams[0] or sys.stderr is not streams[1]:
            return False
        classes = {id(thing) for thing in made if type(thing) is type}
        for thing in made:
            kind = type(thing)
            if kind in simple:
                continue
            if kind is type:
                if "__del__" in thing.__dict__:
                    return False
            elif kind is reference:
                if thing.__callback__ is not None:
                    return False
            elif id(kind) not in classes or any(id(b) not in classes for b in kind.__mro__[:-1]):
                return False
        return True

    def flush(made):
        for thing in made:
            if issubclass(type(thing), _io._IOBase):
                try:
                    thing.flush()
                except BaseException:  # it will say so itself when it is taken apart
                    pass

    # Of all that is done at the exit this is the last: it was asked for first.
    def leave():
        if frozen is None:
            return
        made = gc.get_objects()
        if status is not None and sys.modules.keys() <= known and quiet(made):
            try:
                streams[0].flush()
                streams[1].flush()
            except BaseException:  # the interpreter says so, in its own way
                return
            posix._exit(status)
        if len(made) <= 20000:
            flush(made)
            for name in known - {"sys", "builtins", "__main__"}:
                sys.modules.pop(name, None)

    def slurp(fd):
        parts = []
        while True:
            part = posix.read(fd, 1 << 20)
            if not part:
                posix.close(fd)
                return b"".join(parts)
            parts.append(part)

    def receive(wire):
        data, extra, _, _ = wire.recvmsg(65536, _socket.CMSG_SPACE(4))
        for _, _, fds in extra:
            data += slurp(int.from_bytes(fds[:4], sys.byteorder))
        if not data:
            posix._exit(1)
        return data

    def texts(data):
        return [text.decode("utf-8", "surrogateescape") for text in data.split(b"\0")[:-1]]

    status = frozen = None
    streams = sys.stdout, sys.stderr
    atexit.register(leave)
    wire = _socket.socket(fileno=3)
    posix.set_inheritable(3, False)
    simple, reference = plain(), __import__("_weakref").ref
    load(texts(receive(wire)))
    known = set(sys.modules)
    held = list(sys.modules.values())
    held.append(held)  # a ring, and frozen: what is in it stays
    path = sys.argv[0]
    gc.collect()
    gc.freeze()
    frozen = gc.get_freeze_count()

    wire.send(b"\0")
    order = receive(wire)
    wire.send(b"\1")
    wire.close()
    if order[:1] == b"n":
        null = posix.open("/dev/null", posix.O_RDONLY)
        posix.dup2(null, 0)
        posix.close(null)
    more = texts(order[1:])
    sys.argv += more
    if hasattr(sys, "orig_argv"):
        sys.orig_argv += more
    # not the one that is frozen: the collector must be able to take it apart
    main = type(sys)("__main__")
    main.__dict__.update(sys.modules["__main__"].__dict__)
    del main.__dict__["_warm"]
    sys.modules["__main__"] = main
    space = main.__dict__
    del main
    try:
        exec(compile(slurp(posix.open(path, posix.O_RDONLY)), path, "exec", dont_inherit=True), space)
        status = 0
    except SystemExit as end:
        if end.code is None or type(end.code) is int:
            status = (end.code or 0) & 255
        raise
    except BaseException:
        hook = sys.excepthook

        def excepthook(kind, value, trace):  # without the two frames of ours
            trace = trace and trace.tb_next and trace.tb_next.tb_next
            value.__traceback__ = trace
            sys.excepthook = hook
            hook(kind, value, trace)

        sys.excepthook = excepthook
        raise


_warm()
