#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes where the library is, as seen from the package's folder.

Usage: gen_where.py FOLDER LIBRARY OUTPUT"""
import os
import sys

folder, library, output = sys.argv[1:]
with open(output, "w", encoding="utf-8") as stream:
    stream.write('# SPDX-License-Identifier: MIT\n"""Made by gen_where.py."""\nLIBRARY = %r\n' % os.path.relpath(library, folder))
