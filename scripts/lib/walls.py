#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every include between rooms with the table of cmake/Rooms.cmake, and the rooms with that of the documentation.

A target sees more than its own edges, as rooms pass their headers on: an include that no edge allows would compile.
Prints each include without an edge, each edge without an include, each edge that leads to a top-level directory of the same
floor or a higher one, and each room that docs/develop/architecture.md does not list; exits with 1 when there is one.
"""
import pathlib
import re
import subprocess
import sys

COMMENT = re.compile(r"#.*")
EDGE = re.compile(r"set\(KA_EDGES_(\w+)\s+([^)]*)\)")
ROOM = re.compile(r"ka_room\((\w+)\s+([\w/-]+)")
INCLUDE = re.compile(r'^\s*#include "([^"]+)"')
FLOORS = {"policy": 0, "base": 1, "guest-agent": 2, "vmm": 2, "shim-ext": 3, "affinity": 4}
ARCHITECTURE = pathlib.Path("docs/develop/architecture.md")


def listed(*patterns):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    return [pathlib.Path(line) for line in subprocess.check_output(command, text=True).splitlines()]


def allowed_edges():
    table = pathlib.Path("cmake/Rooms.cmake").read_text()
    return {room: set(others.replace('"', "").split()) for room, others in EDGE.findall(COMMENT.sub("", table))}


def rooms_by_folder():
    found = {folder: room for file in listed("*CMakeLists.txt") for room, folder in ROOM.findall(file.read_text())}
    return found | {"shim-ext/proto": "proto"}  # generated, so no room by ka_room()


def includes(file):
    for number, line in enumerate(file.read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1)


def listed_folders():
    """In the first column of the table of rooms; a name without "/" lies beside the one before it."""
    table = ARCHITECTURE.read_text().partition("\n## Rooms\n")[2].partition("\n#")[0]
    folders = set()
    for cell in re.findall(r"^\| (`[^|]*) \|", table, re.M):
        beside = pathlib.PurePath()
        for name in re.findall(r"`([^`]+)`", cell):
            folder = pathlib.PurePath(name) if "/" in name else beside / name
            beside = folder.parent
            folders.add(str(folder))
    return folders


def leads_up(folder, other):
    """Whether one top-level directory may not use the other."""
    above, below = folder.partition("/")[0], other.partition("/")[0]
    return above != below and FLOORS[above] <= FLOORS[below]


def main():
    edges, rooms = allowed_edges(), rooms_by_folder()
    used, wrong = {room: set() for room in edges}, 0
    for folder in sorted(set(rooms) - {"shim-ext/proto"} - listed_folders()):
        print(f"{ARCHITECTURE}: the table of rooms does not list {folder}")
        wrong = 1
    for file in listed("*.cpp", "*.hpp"):
        room = rooms.get(str(file.parent))
        for number, header in includes(file) if room else ():
            other = rooms.get(str(pathlib.PurePath(header).parent))
            if other is None or other == room:
                continue
            used[room].add(other)
            if other not in edges[room]:
                print(f"{file}:{number}: room {room} includes {header}, but has no edge to {other}")
                wrong = 1
    folders = {room: folder for folder, room in rooms.items()}
    for room, others in sorted(edges.items()):
        for other in sorted(others):
            if leads_up(folders[room], folders[other]):
                print(f"cmake/Rooms.cmake: {folders[room]} is no floor above {folders[other]}")
                wrong = 1
        for other in sorted(others - used[room]):
            print(f"cmake/Rooms.cmake: room {room} has an edge to {other} and includes nothing of it")
            wrong = 1
    return wrong


sys.exit(main())
