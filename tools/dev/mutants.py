# SPDX-License-Identifier: Apache-2.0
"""Small faults that can be put into C: where they can be, and the text that replaces the right one.

The operators work on text that clang-format has laid out: a function's body is between "{" and "}" at the start of
a line, and operators of two operands have blanks around them. Comments, texts and lines of the preprocessor are
left alone. So are asserts, which a release does not have, and statements that only give memory or descriptors back:
their loss is for the sanitizers to find.
"""

import re
from bisect import bisect
from collections import namedtuple

# at, end: where it is in the text. kind: the operator's name.
Mutant = namedtuple("Mutant", "path line at end kind old new")

QUIET = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^#(?:\\\n|[^\n])*', re.S | re.M)
BODY = re.compile(r"^\{\n.*?^\}", re.S | re.M)
ASSERT = re.compile(r"\b(?:_Static_)?assert\([^;]*;")

STATEMENT = re.compile(
    r"(?<=[;{}:)e]\n)\t+(?!return|goto|break|continue)(?:\(void\))?[\w>.\[\]*&-]+(?:\([^\n]*\)| [-+*/|&^]?= [^\n]*|\+\+|--);(?= *$)", re.M
)
RELEASE = re.compile(r"^\s*(?:\(void\))?(?:free|close|munmap|\w+_(?:free|deinit|destroy|cleanup|unref))\(")

SWAPS = {
    "boundary": {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > "},
    "equality": {" == ": " != ", " != ": " == "},
    "logic": {" && ": " || ", " || ": " && "},
    "arithmetic": {" + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += "},
    "jump": {"continue;": "break;", "break;": "continue;"},
    "result": {"return true;": "return false;", "return false;": "return true;", "return 0;": "return 1;", "return r;": "return 0;"},
}


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def code_of(text):
    """The text with blanks in place of all that is not code of functions; every offset stays."""
    quiet = QUIET.sub(blank, text)
    parts, done = [], 0
    for body in BODY.finditer(quiet):
        parts += [re.sub(r"[^\n]", " ", quiet[done : body.start()]), body.group()]
        done = body.end()
    parts.append(re.sub(r"[^\n]", " ", quiet[done:]))
    return ASSERT.sub(blank, "".join(parts))


def closing(code, at):
    """Where the bracket that opens at this place is closed."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] == "(") - (code[i] == ")")
        if depth == 0:
            return i
    return -1


def swaps(code):
    for kind, pairs in SWAPS.items():
        for old, new in pairs.items():
            for found in re.finditer(re.escape(old), code):
                yield found.start(), found.end(), kind, new


def conditions(code):
    for found in re.finditer(r"\b(?:if|while) \(", code):
        end = closing(code, found.end() - 1)
        if end > 0:
            yield found.end(), end, "negation", f"!({code[found.end() : end]})"


def numbers(code):
    # Not the size of an array, and not the 0 of an initializer.
    for found in re.finditer(r"(?<![\w.\[{'])(?<!return )(\d{1,5})(?=u?\b)(?!u?[\w.\]}])", code):
        yield found.start(), found.end(), "number", str(int(found[1]) + 1)


def failures(code):
    for found in re.finditer(r"return -E\w+;", code):
        yield found.start(), found.end(), "result", "return 0;"


def statements(code):
    for found in STATEMENT.finditer(code):
        begin = found.end() - len(found.group().lstrip("\t"))
        if not RELEASE.match(code[begin : found.end()]):
            yield begin, found.end(), "dropped", ";"


def mutants_of(path, text):
    """All mutants of a file, in the order of its text."""
    code = code_of(text)
    lines = [found.start() for found in re.finditer("\n", text)]
    found = []
    for operator in (swaps, conditions, numbers, failures, statements):
        for at, end, kind, new in operator(code):
            found.append(Mutant(path, bisect(lines, at) + 1, at, end, kind, text[at:end], new))
    return sorted(found, key=lambda mutant: (mutant.at, mutant.end, mutant.new))


def mutated(text, mutant):
    """The condition that is negated has its own text, with comments and texts."""
    new = f"!({mutant.old})" if mutant.kind == "negation" else mutant.new
    return text[: mutant.at] + new + text[mutant.end :]


def described(text, mutant):
    """In one line, with the line of the file where that helps."""
    old = " ".join(mutant.old.split())
    if mutant.kind == "negation":
        return f"not ({old})"
    if mutant.kind == "dropped":
        return f"without {old}"
    return f"{old} -> {mutant.new.strip()} in: {text.splitlines()[mutant.line - 1].strip()}"
