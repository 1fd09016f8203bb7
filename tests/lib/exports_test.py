#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every function that the public headers declare is in the libraries, and no other name is.

usage: exports_test.py ROOT LIBRARY...
"""
import os
import re
import subprocess
import sys


def declared(root):
    names = set()
    for header in ("sandbox.h", "backend.h"):
        with open(os.path.join(root, "include", "sandbox", header), encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
        text = re.sub(r"typedef[^;{]*\(\*[^;]*;", " ", text)  # callbacks
        names |= set(re.findall(r"\b(sb_\w+)\s*\(", text))
    return names


def exported(library):
    options = ["-D"] if ".so" in os.path.basename(library) else ["-g"]
    out = subprocess.run(["nm", *options, "--defined-only", library], check=True, text=True,
                         capture_output=True).stdout
    found = set()
    for line in out.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] not in "A":
            found.add(words[2].split("@")[0])
    return found


def main(root, libraries):
    wanted, bad = declared(root), []
    if len(wanted) < 90:
        bad.append(f"only {len(wanted)} declarations were found")
    for library in libraries:
        got = exported(library)
        bad += [f"{os.path.basename(library)}: {n} is declared and not there" for n in sorted(wanted - got)]
        bad += [f"{os.path.basename(library)}: {n} is exported" for n in sorted(got - wanted)]
    print("\n".join(bad) or f"{len(wanted)} functions, nothing else")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
