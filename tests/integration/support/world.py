# SPDX-License-Identifier: Apache-2.0
"""A small world of processes for the tests of the reading commands.

The commands look for processes under TTMEM_PROC_ROOT. A world is such a folder with links to the
processes that the test started, so that no other process of the machine is seen.
"""

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import threading

import jsonschema

from common import wait_for
from conftest import LIMIT, ROOT

TYPES = re.findall(r"^TTMEM_TYPE\(\d+, (\w+),", (ROOT / "include/ttmem/types.def").read_text(), re.M)
TYPES_TEXT = " or ".join([", ".join(TYPES[:-1]), TYPES[-1]])  # as in messages


def close_objects(schema):
    """The published schemas let later versions add members; tests must know every one."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            close_objects(value)
    elif isinstance(schema, list):
        for value in schema:
            close_objects(value)
    return schema


def read_schema(name):
    """A schema of docs/schema/, and in it the types of memory, which are in a file of their own."""
    text = (ROOT / "docs/schema" / f"{name}.json").read_text()
    schema = json.loads(text.replace('"types.json#', '"#/$defs/types'))
    parts = json.loads((ROOT / "docs/schema/types.json").read_text())["$defs"]
    parts["each_type"]["propertyNames"] = parts["type"]
    schema.setdefault("$defs", {})["types"] = {"$defs": parts}
    return schema


@functools.cache
def validator(name):
    schema = read_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(close_objects(schema))


LOOKED_AT = 50  # rows at each end of a list: those in between are like them, and looking at one takes a millisecond


def ends_of_lists(value):
    if isinstance(value, dict):
        return {key: ends_of_lists(one) for key, one in value.items()}
    if isinstance(value, list):
        few = value if len(value) <= 2 * LOOKED_AT else value[:LOOKED_AT] + value[-LOOKED_AT:]
        return [ends_of_lists(one) for one in few]
    return value


def check_schema(document):
    """The document conforms to its schema in docs/schema/."""
    name = document["schema"].split(".")[1].split("/")[0]
    validator(name).validate(ends_of_lists(document))
    return document


def descriptors(pid):
    """The open files of a process, as one text."""
    names = []
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return " ".join(names)


class Player:
    """tests/programs/player.c: play("alloc 0 DRAM 0x1000 64 name") makes the call and returns."""

    def __init__(self, command, env, opened=()):
        files = [os.open(path, os.O_RDONLY) for path in opened]
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=files
        )
        for file in files:
            os.close(file)
        self.pid = self.process.pid

    def play(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
            if answer.isdigit():
                assert self.process.stdout.readline().strip() == "ok"
                return int(answer)
            assert answer == "ok", (line, answer)
        return None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(timeout=LIMIT)


class World:
    def __init__(self, build, env, folder):
        self.build = build
        self.root = folder / "proc"
        self.root.mkdir()
        # Not the machine's own: whoever ran ttmemd there may have left its socket.
        self.env = {**env, "TTMEM_PROC_ROOT": str(self.root), "TT_ALLOC_SERVER_SOCKET": str(folder / "old.sock")}
        self.program = build / "src" / "cli" / "ttmem"
        self.players = []
        self.others = []
        self.limits = []

    def show(self, pid):
        """Lets the commands see a process."""
        (self.root / str(pid)).symlink_to(f"/proc/{pid}")

    def player(self, *lines, before=(), show=True, opened=(), **settings):
        """opened: files that it has open, such as the nodes of cards."""
        command = [*before, self.build / "tests" / "programs" / "player"]
        env = {**self.env, "TTMEM": "1", **settings}
        player = Player([str(word) for word in command], env, opened)
        self.players.append(player)
        if show:
            self.show(player.pid)
        player.play(*(lines or ["ready"]))  # until it runs, its libraries may not be there
        return player

    def adopt(self, process):
        """Another process, killed at the end."""
        self.others.append(process)
        return process

    def run(self, *args, **options):
        options.setdefault("env", self.env)
        return subprocess.run(
            [self.program, *map(str, args)],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            **options,
        )

    def text(self, *args, **options):
        """The output of a command; it must succeed and print nothing on stderr."""
        result = self.run(*args, **options)
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        return result.stdout

    def json(self, *args, **options):
        """The document of a command, checked against its schema."""
        return check_schema(json.loads(self.text(*args, "--json", **options)))

    def start(self, *args, **options):
        """A command that keeps running."""
        process = subprocess.Popen(
            [self.program, *map(str, args)],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        # Reading from it must not block for ever.
        limit = threading.Timer(LIMIT, process.kill)
        limit.daemon = True
        limit.start()
        self.limits.append(limit)
        return self.adopt(process)

    def watch(self, *args):
        """A "ttmem watch" that has scanned once: processes that start now are shown from their start."""
        self.player("alloc 999 DRAM 0x1 1")
        watch = self.start("watch", *args)
        wait_for(lambda: "[pidfd]" in descriptors(watch.pid), "the first look")
        if "seed" not in args:
            watch.stdout.readline()  # that the player above is being watched
        return watch

    def close(self):
        for limit in self.limits:
            limit.cancel()
        for player in self.players:
            player.kill()
            player.process.stdin.close()
            player.process.stdout.close()
        for process in self.others:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


def end_children(*pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def used(document, pid):
    """{(device, type): bytes} of a process, without zeros."""
    (process,) = [p for p in document["processes"] if p["pid"] == pid]
    return {
        (device["device"], name): memory["used"]
        for device in process["devices"]
        for name, memory in device["memory"].items()
        if memory["used"]
    }
