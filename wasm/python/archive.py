# SPDX-License-Identifier: MIT
"""Puts a folder into an archive, the same bytes each time.  usage: archive.py FOLDER OUT

Nothing is compressed: the archive is mapped into the guest, and reading from it costs a copy.
"""
import os
import sys
import zipfile


def main(folder, out):
    names = sorted(os.path.relpath(os.path.join(at, f), folder) for at, _, files in os.walk(folder) for f in files)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.external_attr = 0o100644 << 16
            info.create_system = 3
            with open(os.path.join(folder, name), "rb") as f:
                archive.writestr(info, f.read())


main(*sys.argv[1:])
