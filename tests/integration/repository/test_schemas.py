# SPDX-License-Identifier: Apache-2.0
"""docs/schema/ is made from the tables of documents, and means what it meant in release 0.2.0."""

import fnmatch
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import jsonschema
import pytest
from conftest import ROOT
from nativesocket import document as document_of
from pretender import pretend  # noqa: F401 (fixture)
from ttmemd import get
from web import request_as
from world import read_schema, wait_for

HERE = Path(__file__).resolve().parent
INPUTS = ROOT / "tests/golden/inputs"
WRONG = (None, -1, 1.5, True, "?", [], {}, [None], 0)

COMMANDS = (
    ("smi",), ("smi", "--by", "user"), ("ps",), ("buffers",), ("buffers", "--by", "site"), ("incidents",), ("leaks",),
    ("growth",), ("peak",), ("map",), ("fit", "1G"), ("history", "0x1000"),
)  # fmt: skip

FILES = (
    pytest.param(("analyze", *sorted((ROOT / "tests/corpus/log-reader").iterdir())), marks=pytest.mark.legacy),
    ("diff", INPUTS / "story.ttrec@mistakes", INPUTS / "more.ttrec"),
    ("replay", INPUTS / "story.ttrec"),
    ("check", "--limit", "DRAM=1K", "--limit", "phase:none=1", INPUTS / "story.ttrec"),
)

LIVE = (
    ("smi",), ("ps",), ("status",), ("doctor",), ("/healthz",), ("/api/v1/host",), ("/api/v1/smi",), ("/api/v1/leaks",),
    ("/api/v1/ended",), ("/api/v1/incidents",), ("/api/v1/series", "series"), ("/api/v1/moments",),
    ("/api/devices",), ("/api/devices/0/stats",),
    ("/api/v1/fleet",), ("smi", "--host"),
)  # fmt: skip

HOST = {
    "schema": "ttmem.host/1", "status": "ok", "devices": 1, "hour": {"over_ns": 1},
    "fullest": {"device": 0, "type": "DRAM", "used": 10, "capacity": 10},
}  # fmt: skip

SAMPLES = {
    "status": "success",
    "data": {"resultType": "vector", "result": [
        {"metric": {"__name__": "ttmem_device_bytes", "instance": "a", "device": "0", "uid": "0x1", "type": "DRAM"}, "value": [0, "1"]},
        {"metric": {"__name__": "up", "instance": "b", "job": "ttmem"}, "value": [0, "0"]},
    ]},
}  # fmt: skip

# Where this release takes documents that 0.2.0 would refuse ("takes"), or the other way round, and why.
DIFFERENCES = [
    ("refuses", "*line", "-1", "a line is not negative"),
    ("refuses", "*callers", "[None]", "a caller is a frame"),
    ("refuses", "*name_count", "0", "where there are names, they are counted"),
    ("takes", "*name_count", "None", "groups and leaks have one table, and old leaks do not know the number"),
    ("takes", "*.next", "'?'", "all documents end in one way"),
    ("takes", "open.url", "'?'", "a text; what it is stands beside it"),
    ("takes", "open.code", "'?'", "likewise"),
    ("takes", "diff.rows.[].site.line", "0", "a site is described as everywhere, although diff never tells its line"),
    ("refuses", "smi.users.[].memory", "*", "a user has a member for each type, as a process has"),
    ("refuses", "*events.[]", "-site", "every stack has a site"),
    ("takes", "ended", "-hidden", "the three lists that may hide rows describe it once, and recordings hide none"),
    ("takes", "series.series.[].step_s", "*", "a number; docs/http.md lists the steps that there are"),
]


def validator(schema):
    return jsonschema.Draft202012Validator(schema)


def old_schema(name):
    with tarfile.open(HERE / "schemas-0.2.0.tar.xz") as archive:
        return json.load(archive.extractfile(f"{name}.json"))


def short(value):
    """Without all but the first elements of lists that describe the same."""
    if isinstance(value, dict):
        return {key: short(one) if key != "ages" else one for key, one in value.items()}
    if isinstance(value, list):
        return value if all(isinstance(one, int) for one in value) else [short(one) for one in value[:2]]
    return value


def mutants(value, path=""):
    """(path, what was done to it, the whole with it): a member less, or one of a wrong type."""
    if isinstance(value, dict):
        for key in value:
            yield path, f"-{key}", {one: other for one, other in value.items() if one != key}
            for wrong in WRONG:
                yield f"{path}.{key}", repr(wrong), value | {key: wrong}
            for place, what, inner in mutants(value[key], f"{path}.{key}"):
                yield place, what, value | {key: inner}
    elif isinstance(value, list):
        for i, one in enumerate(value):
            for place, what, inner in mutants(one, f"{path}.[]"):
                yield place, what, value[:i] + [inner] + value[i + 1 :]


def verdicts(old, new, document):
    """{(path, what): (whether 0.2.0 takes it, whether this release does)}; an element stands for its list."""
    seen = {}
    for path, what, mutant in mutants(document):
        if (path, what) not in seen:
            seen[path, what] = old.is_valid(mutant), new.is_valid(mutant)
    return seen


def is_known(path, what, seen):
    """Whether 0.2.0's schema describes the member: it refuses something there."""
    if what.startswith("-"):
        path, what = f"{path}.{what[1:]}", None
    return any(not old for (place, _), (old, _) in seen.items() if place == path or place.startswith(f"{path}."))


def is_explained(word, place, what):
    return any(
        word == expected and fnmatch.fnmatchcase(place, pattern.replace("[]", "[[]]")) and change in (what, "*")
        for expected, pattern, change, _ in DIFFERENCES
    )


def test_schemas_are_those_of_the_tables(build):
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "tools/build/schemas.py", "--check", build], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"run tools/build/schemas.py {build}:\n{done.stdout}{done.stderr}"


def compare(document):
    name = document.get("schema", "ttmem.devices/1").split("/")[0].removeprefix("ttmem.")  # that one does not say
    document = short(document)
    old, new = validator(old_schema(name)), validator(read_schema(name))
    old.validate(document)
    new.validate(document)
    seen = verdicts(old, new, document)
    assert sum(not is_valid for _, is_valid in seen.values()) > 20, "hardly anything is refused"
    wrong = []
    for (path, what), (before, now) in seen.items():
        # A later member may be anything, but it may be missing: earlier documents lack it.
        is_later = before and not is_known(path, what, seen)
        is_missing = what.startswith("-") and what[1:].isidentifier() and is_known(path, "", seen)
        if before == now or (is_later and not is_missing):
            continue
        word = "takes" if now else "refuses"
        if not is_explained(word, name + path, what):
            wrong.append(f"{word} {name}{path} {what}")
    assert not wrong


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_documents_mean_what_they_meant(build, words):
    command = [build / "src/cli/ttmem", *words, "--from", INPUTS / "story.ttrec", "--at", "peak", "--json"]
    compare(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


@pytest.mark.parametrize("words", FILES, ids=lambda words: words[0])
def test_documents_of_files_mean_what_they_meant(build, words):
    compare(json.loads(subprocess.run([build / "src/cli/ttmem", *words, "--json"], check=False, stdout=subprocess.PIPE).stdout))


@pytest.mark.parametrize("words", LIVE, ids=" ".join)
def test_documents_of_living_processes_mean_what_they_meant(ttmemd, pretend, words):  # noqa: F811
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", f"{pretend(HOST).name},127.0.0.1:1")
    ttmemd.player("device 0 0xabc wormhole n150 0 1000 1000")
    ttmemd.player("alloc 0 DRAM 0x1000 100 weights", "free 0 DRAM 0x7000", "alloc 1 L1 0x2000 7")
    ttmemd.player("alloc 0 DRAM 0x5000 100 weights").kill()
    wait_for(lambda: get(ttmemd, "/api/v1/leaks")["processes"], "the leak")
    if words[0].startswith("/"):
        wait_for(lambda: not words[1:] or get(ttmemd, words[0])[words[1]], "rows")
        compare(get(ttmemd, words[0]))
    else:
        hosts = (ttmemd.address(), "--host", "127.0.0.1:1") if words[-1] == "--host" else ()
        compare(json.loads(ttmemd.run(*words, *hosts, "--json").stdout))


def test_documents_for_browsers_mean_what_they_meant(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0")
    link = document_of(ttmemd, "/api/v1/open")
    compare(link)
    address, code = ttmemd.address(), f"Code {link['code']}"
    _, headers, body = request_as((), address, "POST", "/api/v1/sign-in", Authorization=code)
    compare(json.loads(body))
    cookie = headers["Set-Cookie"].split(";")[0]
    compare(json.loads(request_as((), address, "GET", "/healthz", Cookie=cookie)[2]))


def test_documents_of_prometheus_mean_what_they_meant(ttmemd, pretend):  # noqa: F811
    server = pretend(SAMPLES)
    compare(json.loads(ttmemd.run("smi", "--prometheus", server.name, "--json").stdout))
