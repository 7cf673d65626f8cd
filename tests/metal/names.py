# SPDX-License-Identifier: Apache-2.0
"""Whether the names that the preload library needs are still in a tt-metal: ./dev metal-test --names TREE.

TREE has tt-metal's sources, or an installed or built one, or both. In the sources each function that the preload
library stands in front of or calls (src/metal/metal-names.c, metal.map) must be declared with the same arguments and
result, not inline; in a library it must be exported. Two lines for each that is not: why, and what a user would read
or miss.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = "ttmem: tt-metal is not tracked: ... has no {name}; this version cannot be tracked by preloading"

# What is missing without one of them, by its field in struct metal_names.
LOSSES = {
    "take": "no incident when an allocation is refused",
    "track_cb": "circular buffers are not counted",
    "track_cb_end": "circular buffers are counted until their device is closed",
    "clear": "what a closed device or an unloaded sub-device had stays live",
    "device_close": "what is live when a device is closed stays live",
    "mesh_close": "what is live when a mesh is closed stays live",
    "program_cb": "how far circular buffers reach is not known",
    "program_cb_end": "circular buffers are counted until their device is closed",
    "program_check": "no incident when circular buffers clash with buffers of L1",
    "trace_begin": "no incident when a trace would overwrite a buffer",
    "trace_end": "captures of traces do not end",
    "trace_release": "traces are taken for live until their mesh is closed",
    "size_per_bank": "what a buffer takes in a bank is computed from its pages",
    "buffer_cores": "sharded buffers are taken for interleaved ones",
    "buffer_allocator": "buffers of sub-devices are taken for those of their device",
    "device_grid": "the cores of a device are not known",
    "device_is_local": "whether a chip is reached through another one is not known",
    "is_per_core": "buffers with an address for each core are taken for others",
    "per_core_addresses": "buffers with an address for each core are taken for others",
    "l1_end": "while sub-devices have local L1, where L1 ends is not known",
    "l1_per_core": "L1 of a core is not known",
    "cb_total": "circular buffers are counted as they are reported, until their device is closed",
    "mesh_ids": "chips of a mesh on other hosts are not told from its own",
    "bank_count": "banks are not known: no map, no fit",
    "bank_size": "banks are not known: no map, no fit",
    "bank_base": "banks are not known: no map, no fit",
    "alignment": "what buffers occupy is not known exactly",
    "statistics": "banks are not compared with what tt-metal says of them",
    "core_count": "circular buffers are counted on one core",
    "device_arch": "the architecture of a device is not known",
    "device_dram_channels": "numbers of devices are taken from their order",
}
CHIPS = "unique ids and boards of chips are not known"
OTHERS = "one of tt-metal's functions is not seen"

# One of each row is enough.
ALTERNATIVES = (
    ("take", "take_old"),
    ("trace_begin", "trace_begin_id", "trace_begin_on", "trace_begin_on_id"),
    ("trace_end", "trace_end_on"),
)

# What C++ has where metal-names.h has this as a result.
RESULTS = {
    "void": r"void",
    "bool": r"bool",
    "uint8_t": r"unsigned char",
    "uint32_t": r"unsigned int|StrongType<.*>|MeshTraceId",
    "int32_t": r"int|ARCH|signed int",
    "uint64_t": r"unsigned long",
    "const void *": r".*[*&]",
    "const void *const *": r"unique_ptr<Allocator> const&|.*[*&]",
    "struct metal_vector": r"vector<.*>",
    "struct metal_optional": r"optional<unsigned int>",
    "struct metal_grid": r"CoreCoord|Grid|xy_pair|tt_xy_pair",
    "struct metal_statistics": r"Statistics",
}
PLAIN = {
    "uint8_t": "unsigned char",
    "uint32_t": "unsigned int",
    "uint64_t": "unsigned long",
    "size_t": "unsigned long",
    "int32_t": "int",
    "unsigned": "unsigned int",
}
SCOPE = r"\b(?:class|struct|namespace)\s+(?:\[\[\w+\]\]\s*)?(?:\w+::)*(\w+)[^;{}()=]*\{"
SLOTS = ("arch", "id", "build_id", None, None, "num_dram_channels")  # virtual functions that are called by their place


class Name:
    """What one field of struct metal_names is looked up by."""

    def __init__(self, field, names, is_needed, result=None):
        self.field = field
        self.names = names
        self.is_needed = is_needed
        self.result = result

    def consequence(self):
        if self.is_needed:
            return NEEDED.format(name=self.names[0])
        return LOSSES.get(self.field) or (CHIPS if "ClusterDescriptor" in self.names[0] else OTHERS)


def our_names():
    """From metal-names.c after the preprocessor, with the results that metal-names.h has, and the rest of metal.map."""
    source = ROOT / "src/metal/metal-names.c"
    text = subprocess.run(
        ["cc", "-E", "-P", f"-I{ROOT}/src", f"-I{ROOT}/include", source], check=True, capture_output=True, text=True
    ).stdout
    results = {
        field: " ".join(result.split())
        for result, field in re.findall(r"([\w* ]+?)\(\*(\w+)\)\(", text[text.index("struct metal_names {") :])
    }
    names = []
    for row in re.findall(r"\{\s*__builtin_offsetof\s*\(\s*struct metal_names,\s*(\w+)\s*\),([^}]*)\}", text):
        field, rest = row
        strings = [joined(part) for part in re.split(r",(?![^\"]*\"(?:[^\"]*\"[^\"]*\")*[^\"]*$)", rest)]
        names.append(Name(field, [s for s in strings if s], rest.strip().endswith("1"), results.get(field)))
    known = {name for one in names for name in one.names}
    fronts = re.findall(r"^\t(_Z\w+);", (ROOT / "src/metal/metal.map").read_text(), re.M)
    return names + [Name(name, [name], False) for name in fronts if name not in known]


def joined(text):
    """Of neighbouring string literals."""
    return "".join(re.findall(r'"([^"]*)"', text))


def demangled(names):
    answer = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True)
    return dict(zip(names, answer.stdout.splitlines()))


class Tree:
    """Classes and namespaces of a tt-metal's sources, by what their headers say."""

    def __init__(self, folder):
        self.folder = folder
        self.bodies = {}  # by the name of a class or namespace: all texts
        self.aliases = {}
        for path in sorted(folder.rglob("*.h*")):
            if path.suffix in (".h", ".hpp") and path.is_file() and not path.name.startswith("mock"):
                self.read(path.read_text(errors="replace"))

    def read(self, text):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"^\s*#.*?(?<!\\)$", " ", text, flags=re.M)
        for name, other in re.findall(r"\busing\s+(\w+)\s*=\s*([^;{}]+);", text):
            self.aliases.setdefault(name, other)
        for match in re.finditer(SCOPE, text):
            body = inside(text, match.end() - 1, "{}")
            self.bodies.setdefault(match.group(1), []).append(body)

    def has_sources(self):
        return bool(self.bodies)

    def declarations(self, scope, function):
        """(result, arguments, is const, is inline) of all that a class has by this name."""
        found = []
        for body in self.bodies.get(scope, ()):
            for match in re.finditer(rf"([\w:<>,&*\s\[\]]*?)\b{function}\s*\(", body):
                arguments = inside(body, match.end() - 1, "()")
                after = body[match.end() + len(arguments) + 1 :]
                tail = re.match(r"\s*((?:const|noexcept|override|final|=\s*0|\s)*)([;{])", after)
                result = re.sub(
                    r"^.*\b(?:public|private|protected)\s*:|\b(?:virtual|static|inline|struct)\b|\[\[\w+\]\]", " ",
                    match.group(1), flags=re.S,
                )  # fmt: skip
                if tail and result.strip():
                    is_const = "const" in tail.group(1)
                    found.append((self.plain(result), self.arguments(arguments), is_const, tail.group(2) == "{"))
        return found

    def arguments(self, text):
        parts = split(re.sub(r"=[^,()]*(?:\([^)]*\))?", "", text))
        return [self.plain(without_name(part)) for part in parts]

    def plain(self, text, depth=6):
        """A type without its namespaces, in one order, with what it is another name for."""
        text = re.sub(r"\b(?:\w+::)+|\bstruct\s+", "", text)
        while depth:
            depth -= 1
            new = re.sub(r"\b[A-Za-z_]\w*\b", lambda word: self.meaning(word.group()), text)
            new = re.sub(r"\b(?:\w+::)+|\bstruct\s+", "", new)
            if new == text:
                break
            text = new
        text = re.sub(r"^\s*const\s+(?=[\w\s]*$)", "", text)  # of a value
        text = re.sub(r"\bconst\s+([\w<>, ]+?)\s*(?=[&*]|$)", r"\1 const", " ".join(text.split()))
        return re.sub(r"\s*([&*<>,])\s*", r"\1", text).strip()

    def meaning(self, word):
        if word in PLAIN:
            return PLAIN[word] if word != "unsigned" else word
        other = self.aliases.get(word, word)
        is_plain = re.fullmatch(r"[\w:<>, ]+", other.strip()) and not re.search(rf"\b{word}\b", other)
        return other if is_plain else word


def without_name(argument):
    """Its type: the last word is its name unless it is the only one."""
    words = re.findall(r"\w+", re.sub(r"<.*>", "", argument))
    plain = [word for word in words if word not in ("const", "unsigned", "struct")]
    if len(plain) > 1 or argument.strip()[-1:] not in "&*>":
        return re.sub(r"(?<=[\w&*>])\s*\b(?!const\b)\w+\s*$", "", argument)
    return argument


def inside(text, start, pair):
    """Between two brackets, without them."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == pair[0]) - (text[at] == pair[1])
        if not depth:
            return text[start + 1 : at]
    return text[start + 1 :]


def split(text):
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [one for one in (*parts, part) if one.strip()]


def differs(tree, text, result):
    """What is wrong with the declaration of a function, whose demangled name is @text; None: nothing."""
    match = re.fullmatch(r"(?:.*?\b)?(\w+)::(\w+)\((.*)\)( const)?", text)
    scope, function, arguments, const = match.groups()
    if scope not in tree.bodies:
        return f"no {scope}"
    found = tree.declarations(scope, function)
    if not found:
        return f"{scope} declares no {function}()"
    wanted = [tree.plain(part) for part in split(arguments)]
    alike = [one for one in found if one[1] == wanted and one[2] == bool(const)]
    if not alike:
        others = " or ".join(f"{function}({', '.join(one[1])}){' const' * one[2]}" for one in found)
        return f"declared as {others}"
    if all(one[3] for one in alike):
        return "declared inline: it has no symbol"
    if result and not any(re.fullmatch(RESULTS.get(result, ".*"), one[0]) for one in alike):
        return f"returns {alike[0][0]}, not {result}"
    return None


def slots_differ(tree):
    """IDevice's virtual functions are called by their places."""
    for body in tree.bodies.get("IDevice", ()):
        order = [name for name in re.findall(r"\bvirtual\b[^;{}]*?(~?\w+)\s*\(", body) if not name.startswith("~")]
        return [
            f"IDevice: virtual function {place} is {order[place] if place < len(order) else 'missing'}, not {name}"
            for place, name in enumerate(SLOTS)
            if name and order[place : place + 1] != [name]
        ]
    return ["IDevice: no such class"]


def exported(folder):
    """By all libraries of a build; None if there is none."""
    libraries = [path for path in folder.rglob("libtt_metal.so") if path.is_file()]
    if not libraries:
        return None
    files = {libraries[0], *libraries[0].resolve().parent.glob("*.so*")}
    text = "".join(
        subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True).stdout for path in files
    )
    return set(re.findall(r" [A-Za-z] (\S+?)(?:@.*)?$", text, re.M))


def faults(names, tree, symbols):
    """(name, what is wrong) of each that is gone or differs."""
    texts = demangled([name for one in names for name in one.names])
    wrong = {}
    for one in names:
        reasons = []
        for name in one.names:
            reason = None
            if symbols is not None and name not in symbols and name != "_ZdlPv":
                reason = "not exported"
            elif tree.has_sources() and name.startswith("_ZTV"):
                reason = None if name and texts[name].split("::")[-1] in tree.bodies else "no such class"
            elif tree.has_sources() and name != "_ZdlPv":
                reason = differs(tree, texts[name], one.result)
            reasons.append(reason)
        if None not in reasons:
            wrong[one.field] = (one, texts[one.names[0]], reasons[0])
    for row in ALTERNATIVES:
        if any(field not in wrong for field in row):
            for field in row:
                wrong.pop(field, None)
        for field in row[1:]:
            wrong.pop(field, None)
    return list(wrong.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--library", type=Path, help="a folder with libtt_metal.so, if it is not below TREE")
    arguments = parser.parse_args()
    names = our_names()
    tree = Tree(arguments.tree)
    symbols = exported(arguments.library or arguments.tree)
    if not tree.has_sources() and symbols is None:
        sys.exit(f"{arguments.tree} has neither headers nor libtt_metal.so: nothing was checked")
    wrong = faults(names, tree, symbols)
    slots = slots_differ(tree) if tree.has_sources() else []
    for one, text, reason in wrong:
        print(f"{text}: {reason}")
        print(f"    {one.consequence()}")
    for text in slots:
        print(text)
        print("    " + NEEDED.format(name="id() where it was"))
    parts = ["declarations"] * tree.has_sources() + ["symbols"] * (symbols is not None)
    print(f"{len(names)} names, {' and '.join(parts)} compared, gone or different: {len(wrong) + len(slots)}")
    sys.exit(bool(wrong or slots))


if __name__ == "__main__":
    main()
