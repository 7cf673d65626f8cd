#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the JSON schemas in docs/schema/ that the tables of documents determine.

    tools/build/schemas.py BUILD           writes the files that differ, and prints their names
    tools/build/schemas.py --check BUILD   only prints them, and fails if there are any

BUILD/tests/programs/schemas prints what the tables say. What occurs several times in a document gets a name in "$defs".
"""

import json
import pathlib
import re
import subprocess
import sys
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = 120
WORTH_A_NAME = 200  # bytes


TYPES = json.loads((ROOT / "docs/schema/types.json").read_text())["$defs"]


def with_types(schema):
    """The lists of memory types stand in types.json alone."""
    if isinstance(schema, dict):
        for name, listed in TYPES.items():
            if "enum" in schema and schema["enum"] == listed.get("enum"):
                return {key: value for key, value in schema.items() if key != "enum"} | {"$ref": f"types.json#/$defs/{name}"}
        return {key: with_types(value) for key, value in schema.items()}
    return [with_types(value) for value in schema] if isinstance(schema, list) else schema


def laid_out(value, indent=0):
    """JSON, in one line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, (dict, list)) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            return filled([json.dumps(one) for one in value], indent)
        parts = [laid_out(one, indent + 2) for one in value]
        return "[\n" + ",\n".join(inner + part for part in parts) + "\n" + " " * indent + "]"
    parts = [f"{json.dumps(key)}: {laid_out(one, indent + 2)}" for key, one in value.items()]
    return "{\n" + ",\n".join(inner + part for part in parts) + "\n" + " " * indent + "}"


def filled(words, indent):
    """A list of words, several in a line."""
    lines = [" " * (indent + 2)]
    for word in words:
        if len(lines[-1]) + len(word) > WIDTH:
            lines.append(" " * (indent + 2))
        lines[-1] += ("" if lines[-1].isspace() else " ") + word + ","
    return "[\n" + "\n".join(lines)[:-1] + "\n" + " " * indent + "]"


def objects(schema, key=""):
    """(key, schema) of all objects inside, the innermost first."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            yield from objects(value, key if name in ("properties", "items", "anyOf") or name.isupper() else name)
        if "properties" in schema:
            yield key, schema
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value, key)


def replaced(schema, text, reference):
    if isinstance(schema, dict):
        if json.dumps(schema) == text:
            return {"$ref": reference}
        return {name: replaced(value, text, reference) for name, value in schema.items()}
    if isinstance(schema, list):
        return [replaced(value, text, reference) for value in schema]
    return schema


def with_names(document):
    """The document, with names for what occurs several times in it."""
    names = {}
    while True:
        counts, keys = Counter(), {}
        for key, schema in [*objects(document.get("properties", {})), *objects(document.get("oneOf", [])), *objects(names)]:
            text = json.dumps(schema)
            if schema is not document and len(text) >= WORTH_A_NAME and schema not in names.values():
                counts[text] += 1
                keys.setdefault(text, key)
        text = next((text for text in counts if counts[text] > 1), None)
        if not text:
            break
        name = keys[text]
        while name in names:
            name += "_"
        names = {one: replaced(schema, text, f"#/$defs/{name}") for one, schema in names.items()}
        names[name] = json.loads(text)
        document = replaced(document, text, f"#/$defs/{name}")
    return document | ({"$defs": names} if names else {})


def joined(documents):
    """The schemas of one document that has several forms."""
    if len(documents) == 1:
        return documents[0]
    first = documents[0]
    required = [key for key in first["required"] if all(key in one["required"] for one in documents)]
    if not required:
        head = {key: first[key] for key in ("$schema", "title")}
        return head | {"oneOf": [{key: one[key] for key in one if key not in head} for one in documents]}
    properties = {}
    for one in documents:
        properties |= one["properties"]
    forms = [{"required": [key for key in one["required"] if key not in required]} for one in documents]
    return first | {"required": required, "properties": properties, "oneOf": forms}


def main():
    words = sys.argv[1:]
    is_check = words[:1] == ["--check"]
    program = pathlib.Path(words[-1], "tests/programs/schemas")
    documents = {}
    printed = iter(json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout))
    for name, document in zip(printed, printed):
        name = re.fullmatch(r"ttmem\.(\w+)/\d+", name)[1]
        documents.setdefault(name, []).append(document)
    wrong = []
    for name, forms in documents.items():
        path = ROOT / "docs/schema" / f"{name}.json"
        text = laid_out(with_names(with_types(joined(forms)))) + "\n"
        if not path.exists() or path.read_text() != text:
            wrong.append(str(path.relative_to(ROOT)))
            if not is_check:
                path.write_text(text)
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if is_check and wrong else 0)


if __name__ == "__main__":
    main()
