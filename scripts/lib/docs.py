#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/check asks of texts for people. In Markdown: links that lead somewhere, lines of a sane width, commands
and files that exist. In Markdown and in the string literals of sources: none of the phrases that we do not use.

    scripts/lib/docs.py FILE...
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
WIDTH = 120
# Not plain English, or not the field's words. What to write instead.
PHRASES = {
    r"somebody|someone else's|whoever|nobody": "name the actor: another program, kubelet, the operator",
    r"by who told": "by source",
    r"what is told|is told of|are told of": "reported",
    r"stands here": "appears",
    r"keeps? the promise": "isolation",
    r"look(s|ed)? afresh|read afresh": "re-read",
    r"in sentences": "drop it",
    r"is dear|are dear": "expensive",
    r"the run of": "may use",
    r"simply|obviously|just works": "drop it",
    r"was tried by hand|has been tried": "a row of docs/tested.md",
    r"folders?": "directory",
}
# Of messages, where a few words are all the context there is.
PHRASES_OF_MESSAGES = {
    r"tells?|told": "report, send",
    r"answer(s|ed)?": "respond, response",
    r"cut off": "truncated",
    r"hung up|hangs up": "closed the connection",
    r"(?<!there )(is|are) no(?! more| longer)": "is not a",
    r"giv(e|en) back": "release",
}
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
wrong = []


def check_phrases(name, number, text, phrases):
    for phrase, instead in phrases.items():
        if found := re.search(rf"\b(?:{phrase})\b", text, re.I):
            wrong.append(f"{name}:{number}: \"{found[0]}\": {instead}")


def anchor_of(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def anchors(page):
    return {anchor_of(match) for match in re.findall(r"^#+ +(.+)$", page.read_text(), re.M)}


def without_code(text):
    """The same lines, those of fenced and indented blocks empty."""
    fenced = False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        yield "" if fenced or fence or line.startswith("    ") else line


def check_links(file, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        page = (file.parent / path).resolve() if path else file
        if not page.exists():
            yield f"no such file: {target}"
        elif anchor and anchor not in anchors(page):
            yield f"no such heading: {target}"


def check_files(text):
    """Paths of the project that a page names."""
    for path in re.findall(r"`((?:scripts|tests|packaging|docs|cmake|policy|base|affinity|vmm|shim-ext|guest-agent)/[\w./-]+)", text):
        at = TOP / path.rstrip("/.")
        if "example" not in path and not at.exists() and not list(at.parent.glob(at.name + "*")):
            yield f"no such file: {path}"


def check_commands(text):
    declared = (file.read_text() for file in (TOP / "affinity/cli/command_line").glob("*.cpp"))
    commands = set(re.findall(r'"([a-z][a-z-]+)"', "".join(declared)))
    for name in re.findall(r"\bkata-affinityctl ([a-z][a-z-]+)", text):
        if name not in commands:
            yield f"no such command: kata-affinityctl {name}"


def value_of(name, source):
    """Of a constant, or of a member with a default; None where it is not a plain number."""
    found = re.search(rf"\b{name}\b(?: =|(?=\{{)) *([^;]+);", source)
    text = re.sub(r"[\w:]+\{([\d']+)\}|\{([\d']+)\}", r"\1\2", found[1]).replace("'", "") if found else ""
    text = re.sub(r"(\d)u\b", r"\1", text)
    return eval(text) if re.fullmatch(r"[\d <*]+", text) else None  # digits, shifts and products only


def written(value):
    sizes = [(value / (1 << bits), unit) for bits, unit in ((20, " MiB"), (10, " KiB"))]
    return [str(value), str(value - 1)] + [f"{size:g}{unit}" for size, unit in sizes if size == int(size)]


def check_limits(text):
    """Rows of a table of limits: "| input | limit | beyond it | `constants` (`file`) | tested |"."""
    if "| input | limit | beyond it | constant |" not in text:
        return
    for row in re.findall(r"^\|.*\(`.*\|$", text, re.M):
        limit, constants = row.split("|")[2], row.split("|")[4]
        for names, path in re.findall(r"((?:`\w+`,? )+)\(`([^`]+)`\)", constants):
            source = (TOP / path).read_text()
            for name in re.findall(r"\w+", names):
                if not re.search(rf"\b{name}\b *[={{]", source):
                    yield f"{path} has no limit {name}"
                value = value_of(name, source)
                if value is not None and not any(re.search(rf"(?<![\d.]){each}\b", limit) for each in written(value)):
                    yield f"{name} of {path} is {value}, and the table says{limit}"


def check(file):
    text = file.read_text()
    name = str(file.relative_to(TOP))
    lines = list(without_code(text))
    prose = "\n".join(lines)
    wrong.extend(f"{name}: {what}" for what in (*check_links(file, prose), *check_files(text), *check_limits(prose),
                                                *check_commands("\n".join(re.findall(r"`[^`]*`|^    .*", text, re.M)))))
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH and not line.lstrip().startswith("|"):
            wrong.append(f"{name}:{number}: {len(line)} columns, {WIDTH} are the limit")
        check_phrases(name, number, line, PHRASES)


def check_messages(file):
    """String literals of more than one word."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if line.lstrip().startswith(("//", "#include")):
            continue
        for literal in LITERAL.findall(line.split(" // ")[0]):
            if " " in literal.strip():
                check_phrases(str(file.relative_to(TOP)), number, literal, PHRASES | PHRASES_OF_MESSAGES)


for argument in sys.argv[1:]:
    path = (TOP / argument).resolve()
    (check if path.suffix == ".md" else check_messages)(path)
print("\n".join(wrong), end="\n" if wrong else "")
sys.exit(bool(wrong))
