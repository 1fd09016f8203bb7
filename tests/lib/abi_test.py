#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/abi tells what breaks programs that were built before from what is only new."""
import importlib.machinery
import importlib.util
import os
import sys

sys.dont_write_bytecode = True
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "abi")
loader = importlib.machinery.SourceFileLoader("abi", PATH)
abi = importlib.util.module_from_spec(importlib.util.spec_from_loader("abi", loader))
loader.exec_module(abi)

RECORD = ["sb_a 16", "sb_a.size 0 8", "sb_a.x 8 8"]
FIXED = ["sb_e 8", "sb_e.code 0 4", "sb_e.kind 4 4"]
ROWS = [  # what, kind, before, after, breaks, is new
    ("nothing", "symbols", ["sb_a@V FUNC"], ["sb_a@V FUNC"], 0, 0),
    ("a function", "symbols", ["sb_a@V FUNC"], ["sb_a@V FUNC", "sb_b@V FUNC"], 0, 1),
    ("a function less", "symbols", ["sb_a@V FUNC", "sb_b@V FUNC"], ["sb_a@V FUNC"], 1, 0),
    ("another version", "symbols", ["sb_a@V0 FUNC"], ["sb_a@V1 FUNC"], 1, 1),
    ("a member at the end", "sizes", RECORD, ["sb_a 24", *RECORD[1:], "sb_a.y 16 8"], 0, 2),
    ("a member before others", "sizes", RECORD, ["sb_a 24", "sb_a.size 0 8", "sb_a.y 8 8", "sb_a.x 16 8"], 2, 1),
    ("a member in a gap", "sizes", ["sb_a 16", "sb_a.size 0 8", "sb_a.x 8 4"],
     ["sb_a 16", "sb_a.size 0 8", "sb_a.x 8 4", "sb_a.y 12 4"], 1, 0),
    ("a member of another size", "sizes", RECORD, ["sb_a 16", "sb_a.size 0 8", "sb_a.x 8 4"], 1, 0),
    ("a shorter record", "sizes", RECORD, ["sb_a 8", "sb_a.size 0 8"], 2, 0),
    ("a record without its size grows", "sizes", FIXED, ["sb_e 12", *FIXED[1:], "sb_e.x 8 4"], 1, 1),
    ("a constant", "constants", ["SB_A 1"], ["SB_A 1", "SB_B 2"], 0, 1),
    ("another number", "constants", ["SB_A 1"], ["SB_A 2"], 1, 0),
    ("a count that grows", "constants", ["SB_A_COUNT 1"], ["SB_A_COUNT 2"], 0, 1),
    ("a count that shrinks", "constants", ["SB_A_COUNT 2"], ["SB_A_COUNT 1"], 1, 0),
]
HEADER = """
typedef struct sb_a { size_t size; const char *x, *const *y; int (*call)(void *user, int n); char text[4][5]; } sb_a;
struct sb_b { size_t size; uint64_t z; };
enum { SB_X = 1, SB_Y,
       SB_Z = SB_X };
#define SB_W 3
"""
bad = []
for what, kind, before, after, breaks, new in ROWS:
    broken, fresh = abi.compare(kind, before, after)
    if (len(broken), len(fresh)) != (breaks, new):
        bad.append(f"{what}: {broken}, {fresh}")
if list(abi.records(HEADER)) != [("sb_a", ["size", "x", "y", "call", "text"]), ("struct sb_b", ["size", "z"])]:
    bad.append(f"records: {list(abi.records(HEADER))}")
if list(abi.constants(HEADER)) != ["SB_X", "SB_Y", "SB_Z", "SB_W"]:
    bad.append(f"constants: {list(abi.constants(HEADER))}")
print("\n".join(bad) or f"{len(ROWS)} changes are told apart")
sys.exit(1 if bad else 0)
