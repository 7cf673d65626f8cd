# SPDX-License-Identifier: Apache-2.0
"""The old debug logs for tests: where the library writes them, a plain model, the guide's script."""

import random
import re
import subprocess
import sys

# Exactly as printed in the buffer debug logging guide.
SCRIPT = r"""#!/usr/bin/env python3
import re
from collections import defaultdict

def parse_buffer_log(filename):
    with open(filename, 'r') as f:
        content = f.read()

    # Split by separator
    events = content.split('═══════════════════════════════════════════════════════════')

    allocated = {}
    deallocated = set()

    for event in events:
        if 'BUFFER ALLOCATED' in event:
            addr_match = re.search(r'Address: (0x[0-9a-f]+)', event)
            if addr_match:
                addr = addr_match.group(1)
                allocated[addr] = event
        elif 'BUFFER DEALLOCATED' in event:
            addr_match = re.search(r'Address: (0x[0-9a-f]+)', event)
            if addr_match:
                deallocated.add(addr_match.group(1))

    # Find leaks
    leaked = {addr: info for addr, info in allocated.items() if addr not in deallocated}

    print(f"Total allocations: {len(allocated)}")
    print(f"Total deallocations: {len(deallocated)}")
    print(f"Leaked buffers: {len(leaked)}")
    print()

    if leaked:
        print("LEAKED BUFFERS:")
        print("=" * 80)
        for addr, info in list(leaked.items())[:10]:  # Show first 10
            print(f"\nAddress: {addr}")
            # Extract key info
            size_match = re.search(r'Size: (\d+)', info)
            type_match = re.search(r'Type: (\w+)', info)
            stack_match = re.search(r'Call Stack:\n((?:    .*\n)+)', info)

            if size_match:
                print(f"Size: {int(size_match.group(1)) / 1024:.1f} KB")
            if type_match:
                print(f"Type: {type_match.group(1)}")
            if stack_match:
                print("Call stack:")
                print(stack_match.group(1))

if __name__ == '__main__':
    parse_buffer_log('/tmp/tt_buffer_debug.log')
"""


class Logs:
    """Files for all three logs, and the settings that make a program write them."""

    def __init__(self, folder):
        self.buffer = folder / "buffer.log"
        self.detailed = folder / "detailed.log"
        self.stack = folder / "stack.log"

    def settings(self, **more):
        return {
            "TT_BUFFER_DEBUG_LOG": "1",
            "TT_BUFFER_DEBUG_LOG_FILE": str(self.buffer),
            "TT_ALLOC_TRACKING_DETAILED": "1",
            "TT_ALLOC_TRACKING_DETAILED_FILE": str(self.detailed),
            "TT_ALLOC_STACK_TRACE": "1",
            "TT_ALLOC_STACK_TRACE_FILE": str(self.stack),
            **more,
        }


def run_script(log):
    """{address: (KB, type)} of what the guide's script calls leaked, and its three totals."""
    # Not as the main program: that would read the one file in /tmp.
    start = f"namespace = {{}}; exec({SCRIPT!r}, namespace); "
    start += f"namespace['parse_buffer_log']({str(log)!r})"
    done = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=True
    )
    totals = tuple(int(n) for n in re.findall(r"^[TL].*: (\d+)$", done.stdout, re.M))
    rows = re.findall(r"^Address: (0x\S+)\nSize: (\S+) KB\nType: (\w+)$", done.stdout, re.M)
    return totals, {address: (float(kb), type) for address, kb, type in rows}


class Model:
    """What a book would contain after the same calls: {place: [size, refs]}, and what went wrong."""

    def __init__(self):
        self.live = {}
        self.known = set()
        self.double_frees = self.unknown_frees = self.size_changes = 0

    def alloc(self, place, size):
        if place in self.live and self.live[place][0] == size:
            self.live[place][1] += 1
            return
        self.size_changes += place in self.live
        self.live[place] = [size, 1]
        self.known.add(place)

    def free(self, place):
        if place not in self.live:
            self.double_frees += place in self.known
            self.unknown_frees += place not in self.known
            return
        self.live[place][1] -= 1
        if self.live[place][1] == 0:
            del self.live[place]

    def check(self, document):
        """The document agrees."""
        rows = {
            (leak["pid"], leak["device"], leak["type"], int(leak["address"], 16)): [
                leak["size"], leak["refs"],
            ]
            for leak in document["leaks"]
        }
        assert rows == self.live
        summary = document["summary"]
        assert summary["double_frees"] == self.double_frees
        assert summary["unknown_frees"] == self.unknown_frees
        assert summary["size_changes"] == self.size_changes
        assert summary["damaged"] == 0


def events(log):
    """What the buffer log says of each event: its title and a field for each line, "Space" included."""
    for text in log.read_text().split("═" * 59 + "\n")[1:]:
        title, *lines = text.partition("\nCall Stack:\n")[0].split("\n")
        fields = dict(line.split(": ", 1) for line in lines)
        address, space = re.fullmatch(r"(0x[0-9a-f]+) \(\d+\)(?: in space (\d+))?", fields["Address"]).groups()
        size, type = re.fullmatch(r"(?:unknown|(\d+) bytes \(\S+ KB\))(?: of (\w+))?", fields["Size"]).groups()
        assert (type is not None) == (fields["Type"] == "OTHER")
        yield title, {**fields, "Address": int(address, 16), "Space": int(space or 0), "Size": size and int(size),
                      "Type": type or fields["Type"]}  # fmt: skip


def replay(log):
    """The Model of a buffer log, by device, type, address and space."""
    model = Model()
    for title, fields in events(log):
        place = (int(fields["Device"]), fields["Type"], fields["Address"], fields["Space"])
        if fields.get("Hooked") == "yes":
            continue
        if title == "BUFFER ALLOCATED":
            model.alloc(place, fields["Size"])
        elif title == "BUFFER DEALLOCATED":
            model.free(place)
    return model


def agrees(model, report):
    """The report of "ttmem run" says the same as the log."""
    buffers = [buffer for process in report["processes"] for buffer in process["buffers"]]
    left = sorted((b["device"], b["type"], int(b["address"], 16), b["size"], b["refs"]) for b in buffers)
    assert left == sorted((*place[:3], *state) for place, state in model.live.items())
    counts = {"double_free": 0, "unknown_free": 0, "size_change": 0}
    for incident in report["incidents"]:
        if incident["kind"] in counts:
            counts[incident["kind"]] += incident["count"]
    assert list(counts.values()) == [model.double_frees, model.unknown_frees, model.size_changes]


def history(seed, steps=300):
    """Random calls: ("alloc", device, type, address, size) or ("free", device, type, address)."""
    dice = random.Random(seed)
    for _ in range(steps):
        device, type = dice.randrange(3), dice.choice(["DRAM", "L1"])
        address = dice.randrange(1, 9) << 12
        if dice.random() < 0.5:
            yield "alloc", device, type, address, dice.choice([64, 4096])
        else:
            yield "free", device, type, address
