# SPDX-License-Identifier: MIT
"""Compiles the standard library for the guest.  usage: library.py LIB FOLDER-OF-OURS OUT

Run by the interpreter that was built for it.  What can do nothing in the guest is left out; asyncio
gets a tail of ours (see asyncio_tail.py).  No source: the files are read where they are needed, and a
path in a traceback is the one inside the archive.
"""
import importlib._bootstrap_external as bootstrap
import marshal
import os
import sys

LEFT_OUT = {"test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data", "__pycache__", "venv",
            "turtle.py", "msilib"}
INSIDE = "/usr/local/lib/python313.zip/"
SYSCONFIG = "_sysconfigdata__wasi_wasm32-wasi.py"


def compile_one(text, name, out):
    code = compile(text, INSIDE + name, "exec", dont_inherit=True)
    data = bytearray(bootstrap.MAGIC_NUMBER)
    data += (1).to_bytes(4, "little") + bytes(8)  # by a hash that nobody checks: no time of the build
    data += marshal.dumps(code)
    path = os.path.join(out, name + "c")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def modules(lib):
    for folder, folders, files in os.walk(lib):
        folders[:] = sorted(d for d in folders if d not in LEFT_OUT)
        for name in sorted(files):
            if name.endswith(".py") and name not in LEFT_OUT:
                yield os.path.relpath(os.path.join(folder, name), lib)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def main(lib, ours, out):
    tail = read(os.path.join(ours, "asyncio_tail.py"))
    for name in modules(lib):
        text = read(os.path.join(lib, name))
        if name == "asyncio/selector_events.py":
            text += b"\n" + tail
        compile_one(text, name, out)
    for name, path in (("_guest.py", "_guest.py"), ("_session.py", "../../packs/python_driver.py")):
        compile_one(read(os.path.join(ours, path)), name, out)
    variables = {"prefix": "/usr/local", "exec_prefix": "/usr/local", "VERSION": "3.13", "EXT_SUFFIX": ".wasm",
                 "SOABI": "cpython-313-wasm32-wasi", "HOST_GNU_TYPE": "wasm32-unknown-wasip1", "Py_DEBUG": 0, "Py_GIL_DISABLED": 0,
                 "LIBDIR": "/usr/local/lib", "BINDIR": "/usr/local/bin", "abs_builddir": "/", "srcdir": "/", "WITH_PYMALLOC": 1,
                 "SIZEOF_VOID_P": 4, "Py_ENABLE_SHARED": 0, "MULTIARCH": "wasm32-wasi", "TZPATH": ""}
    compile_one(f"build_time_vars = {variables!r}\n", SYSCONFIG, out)


main(*sys.argv[1:])
