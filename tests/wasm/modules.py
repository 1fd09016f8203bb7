# SPDX-License-Identifier: MIT
"""Small WebAssembly modules for tests, made byte by byte: name -> bytes."""


def leb(n):
    out = b""
    while True:
        out += bytes([n & 127 | (128 if n >> 7 else 0)])
        n >>= 7
        if not n:
            return out


def vec(items):
    return leb(len(items)) + b"".join(items)


def text(data):
    return leb(len(data)) + data


def section(number, body):
    return bytes([number]) + leb(len(body)) + body


def module(code, imports=(), memory=b"\x00\x01", start=b"_start", data=b"", locals_=b"\x00", tables=()):
    """One function of no type; `imports`: (module, name, number of i32 arguments or types), each returning one i32."""
    types = [b"\x60\x00\x00"] + [b"\x60" + vec([b"\x7f"] * n if isinstance(n, int) else [bytes([t]) for t in n]) + b"\x01\x7f" for _, _, n in imports]
    body = locals_ + code + b"\x0b"
    exports = [text(b"memory") + b"\x02\x00"] + ([text(start) + b"\x00" + leb(len(imports))] if start else [])
    return (b"\0asm\1\0\0\0" + section(1, vec(types)) +
            section(2, vec([text(m) + text(n) + b"\x00" + leb(i + 1) for i, (m, n, _) in enumerate(imports)])) +
            section(3, vec([b"\x00"])) + (section(4, vec(list(tables))) if tables else b"") + section(5, vec([memory])) + section(7, vec(exports)) +
            section(10, vec([text(body)])) + section(11, vec([data] if data else [])))


WRITE = (b"wasi_snapshot_preview1", b"fd_write", 4)
HELLO = b"\x00\x41\x00\x0b" + text((8).to_bytes(4, "little") + (6).to_bytes(4, "little") + b"hello\n")
SAY = b"\x41\x01\x41\x00\x41\x01\x41\x14\x10\x00\x1a"  # fd_write(1, 0, 1, 20)

ARGS = [WRITE, (b"wasi_snapshot_preview1", b"args_sizes_get", 2), (b"wasi_snapshot_preview1", b"args_get", 2)]
TAKE_ARGS = b"\x41\x00\x41\x04\x10\x01\x1a" b"\x41\xc0\x00\x41\x80\x02\x10\x02\x1a"  # lengths to 0 and 4; pointers to 64, texts to 256
OPEN = (b"wasi_snapshot_preview1", b"path_open", b"\x7f\x7f\x7f\x7f\x7f\x7e\x7e\x7f\x7f")

MODULES = {
    "hello": module(SAY, [WRITE], data=HELLO),
    "old": module(SAY, [(b"wasi_unstable", b"fd_write", 4)], data=HELLO),
    "unreachable": module(SAY + b"\x00", [WRITE], data=HELLO),
    "spin": module(SAY + b"\x03\x40\x0c\x00\x0b", [WRITE], data=HELLO),
    "outside": module(b"\x41\x7f\x28\x02\x00\x1a"),
    "deep": module(b"\x10\x00"),
    # writes its arguments, each with the zero byte behind it
    "args": module(TAKE_ARGS + b"\x41\x08\x41\x80\x02\x36\x02\x00\x41\x0c\x41\x04\x28\x02\x00\x36\x02\x00" + b"\x41\x01\x41\x08\x41\x01\x41\x14\x10\x00\x1a", ARGS),
    # makes the file whose path, from "/", is its one argument, and traps if it may not
    "touch": module(TAKE_ARGS + b"\x41\x03\x41\x00\x41\xc4\x00\x28\x02\x00\x41\xff\x01\x41\x04\x28\x02\x00\x6a\x41\xc4\x00\x28\x02\x00\x6b"
                    b"\x41\x01\x42\x40\x42\x7f\x41\x00\x41\x14\x10\x03\x04\x40\x00\x0b", [*ARGS, OPEN]),
    # asks for a page at a time until it is refused, then ends with a trap; the second one ends well
    "greedy": module(b"\x03\x40\x41\x10\x40\x00\x41\x7f\x47\x0d\x00\x0b\x00"),
    "modest": module(b"\x03\x40\x41\x10\x40\x00\x41\x7f\x47\x0d\x00\x0b"),
    "unknown": module(b"\x10\x00\x1a", [(b"env", b"system", 0)]),
    "mistyped": module(b"\x10\x00\x1a", [(b"wasi_snapshot_preview1", b"fd_write", 0)]),
    "no_start": module(b"", start=None),
    "huge": module(b"", memory=b"\x00" + leb(60000)),
    "data_outside": module(b"", data=b"\x00\x41\xff\xff\xff\x07\x0b" + text(b"x")),
    "huge_table": module(b"", tables=[b"\x70\x00" + leb(9_000_000)]),
    "many_tables": module(b"", tables=[b"\x70\x00" + leb(1_000_000)] * 64),
    # a table grown until that is refused, then a trap
    "greedy_table": module(b"\x03\x40\xd0\x70\x41" + b"\x80\x80\x04" + b"\xfc\x0f\x00\x41\x7f\x47\x0d\x00\x0b\x00", tables=[b"\x70\x00\x01"]),
    "memory64": module(b"", memory=b"\x04\x01"),
    "shared": module(b"", memory=b"\x03\x01\x02"),
    "empty": b"",
    "mixed": module(SAY, [WRITE, (b"wasi_unstable", b"fd_write", 4)], data=HELLO),
    "strange_names": module(b"\x10\x00\x1a", [(b"e\x1b[31mv\nx", "\u4e2d\u202e".encode(), 0)]),
    "long_names": module(b"\x10\x00\x1a", [(b"e" * 90000, b"x" * 90000, 0)]),
    "no_text": module(b"\x10\x00\x1a", [(b"\xff\xfe", b"x", 0)]),
    "many_locals": module(b"", locals_=b"\1" + leb(4_000_000_000) + b"\x7f"),
    "nested": module(b"\x02\x40" * 200_000 + b"\x0b" * 200_000),
    "text": b"(module)\n",
    "component": b"\0asm\x0d\0\1\0" + bytes(64),
    "later": b"\0asm\2\0\0\0" + bytes(64),
    "short": b"\0asm\1",
    "rubbish": b"\0asm\1\0\0\0" + bytes(range(256)) * 4,
}
MODULES["cut"] = MODULES["hello"][:-5]


def vast():
    """More functions than a compiler has memory for."""
    n = 900_000
    return (b"\0asm\1\0\0\0" + section(1, vec([b"\x60\x00\x00"])) + section(3, leb(n) + b"\0" * n) + section(5, vec([b"\0\1"])) +
            section(7, vec([text(b"_start") + b"\0\0", text(b"memory") + b"\2\0"])) + section(10, leb(n) + b"\2\0\x0b" * n))
