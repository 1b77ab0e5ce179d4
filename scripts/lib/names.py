#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds identifiers in words for which the field has others: poll, observe, handle, record, notify, report, request.

Reads C++ without its comments and strings. Prints each such identifier where it stands first in a file; exits with 1
when there is one.
"""
import pathlib
import re
import subprocess
import sys

WORDS = set("ask asked asks complain complained complaint eyes farewell fate forgive hands happen happened happening hear "
            "heard hears hearing judge judged judgement judges look looked looking looks meet met newborn patience settle "
            "settled settles sighting spoke surroundings take takes taking tell telling tells tidy told took wish wished "
            "wishes".split())
# Kubelet's own (takeByTopology), and what is compared with it.
KUBELETS = ("policy/allocate/", "tests/property/allocate/", "tests/conformance/")
TEXT = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*')
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_wrong(identifier, allowed):
    return any(part.lower() in WORDS - allowed for part in PART.findall(identifier))


def code_of(file):
    return TEXT.sub(lambda text: "\n" * text.group().count("\n"), file.read_text())


def main():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.cpp", "*.hpp"]
    wrong = 0
    for name in subprocess.check_output(command, text=True).splitlines():
        allowed = {"take", "takes"} if name.startswith(KUBELETS) else set()
        seen = set()
        for number, line in enumerate(code_of(pathlib.Path(name)).splitlines(), 1):
            for identifier in IDENTIFIER.findall(line):
                if identifier not in seen and is_wrong(identifier, allowed):
                    print(f"{name}:{number}: {identifier}")
                    wrong = 1
                seen.add(identifier)
    return wrong


sys.exit(main())
