# SPDX-License-Identifier: MIT
"""Takes memory, and touches it, up to the MiB given, in case no wall stands."""
import sys

most, held = int(sys.argv[1]), []
for mib in range(0, most, 8):
    held.append(bytearray(b"x" * (8 << 20)))
    print(mib + 8, end=" ", flush=True)
print("MiB: GOT IT ALL")
