#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The README's program is the sample application, and every file that it links to exists. Speaks TAP."""
import os
import re
import sys

root = sys.argv[1]
with open(os.path.join(root, "README.md"), encoding="utf-8") as stream:
    readme = stream.read()
with open(os.path.join(root, "tests", "clients", "one-binary", "main.c"), encoding="utf-8") as stream:
    sample = re.sub(r"\A(//.*\n)+", "", stream.read())  # without the licence and what the file is for
blocks = re.findall(r"```c\n(.*?)```", readme, re.S)
links = [link for link in re.findall(r"\]\(([^)#]+)\)", readme) if "://" not in link]
missing = [link for link in links if not os.path.exists(os.path.join(root, link))]
print("1..2")
print("ok" if blocks == [sample] else "not ok", "1 - the README shows the sample application")
print("not ok" if missing or not links else "ok", "2 - every linked file exists", *missing)
sys.exit(0 if blocks == [sample] and links and not missing else 1)
