#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that folders depend on lower ones only, by the symbols that their objects need and define.

Includes prove nothing here: most declarations are in abi/, whoever defines them.

usage: check_layers.py [--upside-down] ROOMS BUILD OBJECTS FOLDER...
ROOMS lists folders, lowest first; folders on one line may not use one another, unless + joins them into one room.
A line that begins with * has the folders that put the program together: tables which anything may read and which may name anything.
BUILD has compile_commands.json, OBJECTS is parts of the objects' paths that tell the targets (core/lib/libggml.so.), with
commas between them. Every source in a FOLDER has to lie in one of ROOMS.
--upside-down reads the list as highest first: a test that this finds arrows upwards."""
import collections
import json
import os
import subprocess
import sys


def read_rooms(path, upside_down):
    """Returns {folder: (level, room)}, None for those of lines with *."""
    rooms = {}
    with open(path, encoding="utf-8") as file:
        rows = [line.split("#")[0].split() for line in file]
    rows = [row for row in rows if row]
    assembly = [row for row in rows if row[0] == "*"]
    rows = [row for row in rows if row[0] != "*"]
    for folder in (folder for row in assembly for folder in row[1:]):
        rooms[folder] = None
    for level, row in enumerate(reversed(rows) if upside_down else rows):
        for room in row:
            for folder in room.split("+"):
                rooms[folder] = (level, room)
    return rooms


def read_objects(build, targets, folders):
    """Returns [(source relative to the source root, object)]."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    objects = []
    for command in commands:
        source = os.path.relpath(os.path.normpath(os.path.join(command["directory"], command["file"])), root)
        if any(target in command["output"] for target in targets) and source.startswith(tuple(folder + "/" for folder in folders)):
            objects.append((source, os.path.join(command["directory"], command["output"])))
    return objects


def read_symbols(objects):
    """Returns {source: (global names that its object defines, names that it needs)}."""
    sources = {path: source for source, path in objects}
    symbols = {source: (set(), set()) for source in sources.values()}
    listing = subprocess.run(["nm", "-g", "-A", *sources], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        path, row = line.split(":", 1)
        *_, kind, name = row.split()
        symbols[sources[path]][kind in "Uvw"].add(name)
    return symbols


def find_arrows(objects):
    """Returns {(source that needs, source that defines): names}."""
    symbols = read_symbols(objects)
    home = {name: source for source, (defined, _) in symbols.items() for name in defined}
    arrows = collections.defaultdict(set)
    for source, (_, needed) in symbols.items():
        for name in needed:
            if home.get(name, source) != source:
                arrows[source, home[name]].add(name)
    return arrows


def main():
    arguments = sys.argv[1:]
    upside_down = arguments[0] == "--upside-down"
    rooms_path, build, targets, *folders = arguments[1:] if upside_down else arguments
    rooms = read_rooms(rooms_path, upside_down)
    objects = read_objects(build, targets.split(","), folders)
    if not objects:
        print(f"no objects of {targets}")
        return 1
    problems = [f"{source} lies in no folder of {rooms_path}" for source, _ in objects
                if os.path.dirname(source) not in rooms]
    for (user, used), names in sorted(find_arrows(objects).items()):
        upper, lower = rooms.get(os.path.dirname(user)), rooms.get(os.path.dirname(used))
        if upper and lower and upper[1] != lower[1] and lower[0] >= upper[0]:
            problems.append(f"{user} uses {', '.join(sorted(names))} of {used}, which is not below it")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
