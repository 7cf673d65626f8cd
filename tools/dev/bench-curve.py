# SPDX-License-Identifier: Apache-2.0
"""How costs grow with size, as a drawing: ./dev bench --curve [FILE], docs/images/growth.svg by default.

Three charts: an event against the live buffers of its device, against the devices of one call, and
against the tracked processes of the machine; the last one also has what each of them adds to
"ttmem smi". Flat is good. Needs nothing but Python's own library.

Sixteen million live buffers take about 1.2 GiB: sizes for which there is not enough memory are left
out, with a message.
"""

import math
import os
import resource
import statistics
import subprocess
import sys
import time
from xml.sax.saxutils import escape

TTMEM = "build-release/src/cli/ttmem"
LIVE = [1000, 4000, 16000, 64000, 250000, 1000000, 4000000, 16000000]
DEVICES = [1, 2, 4, 8, 16, 32, 64]
PROCESSES = [1, 10, 30, 100, 300, 1000]
FEW = 10  # processes; fewer are lost in what starting the command takes
BYTES_PER_BUFFER = 80  # record, index and the benchmark's own list of addresses
BATCHES = 4  # of an event child; what follows are single events
RUNS = 3

WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 220, 60, 50, 70
COLOURS = ["#1f6fb2", "#c4572a"]


def numbers(*arguments):
    """Run a child of the benchmark and return the numbers that it prints."""
    command = [TTMEM, "bench", "--child", *map(str, arguments)]
    return [float(line) for line in subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()]


def available():
    """Bytes of memory that can be used without swapping."""
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":") for line in file)
    return int(fields["MemAvailable"].split()[0]) * 1024


def event(live):
    return statistics.median(numbers("stack_off", live)[:BATCHES])


def by_live():
    points = []
    for live in LIVE:
        if live * BYTES_PER_BUFFER > available() / 2:
            print(f"{live} live buffers are left out: too little memory", file=sys.stderr)
            continue
        points.append((live, statistics.median(event(live) for _ in range(RUNS))))
    return points


def by_devices():
    return [(n, statistics.median(x for _ in range(RUNS) for x in numbers("mesh", n)[2:])) for n in DEVICES]


def children_us():
    """CPU time of all children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e6


def smi():
    """CPU time of "ttmem smi" without a daemon, in us."""
    spent = []
    for _ in range(2 * RUNS + 1):
        before = children_us()
        subprocess.run([TTMEM, "smi", "--json"], stdout=subprocess.DEVNULL, check=True)
        spent.append(children_us() - before)
    return statistics.median(spent)


def by_processes():
    held, events, readings = [], [], []
    environment = dict(os.environ, TTMEM_SOCKET="none")
    start = smi()  # with no process to read
    try:
        for count in PROCESSES:
            while len(held) < count:
                held.append(
                    subprocess.Popen(
                        [TTMEM, "bench", "--child", "hold"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        env=environment,
                    )
                )
            for process in held:
                if process.stdout:
                    process.stdout.readline()
                    process.stdout.close()
                    process.stdout = None
            events.append((count, statistics.median(event(1000) for _ in range(RUNS))))
            if count >= FEW:
                readings.append((count, (smi() - start) / count))
    finally:
        for process in held:
            process.stdin.close()
        for process in held:
            process.wait()
    return events, readings


def nice(value):
    for limit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{letter}"
    return f"{value:g}"


def chart(at, title, unit, curves):
    """One chart with logarithmic axes; the vertical one always spans a factor of a hundred or more."""
    points = [point for _, curve in curves for point in curve]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    high_y = 10 ** math.ceil(math.log10(max(y for _, y in points)))
    low_y = min(high_y / 100, 10 ** math.floor(math.log10(min(y for _, y in points))))

    def place(x, y):
        across = math.log(x / low_x) / math.log(high_x / low_x)
        up = math.log(y / low_y) / math.log(high_y / low_y)
        return at + across * WIDTH, TOP + (1 - up) * HEIGHT

    lines = [f'<text x="{at}" y="{TOP - 16}" class="title">{escape(title)}</text>']
    tick = low_y
    while tick <= high_y * 1.001:
        _, y = place(low_x, tick)
        lines.append(f'<line x1="{at}" y1="{y:.1f}" x2="{at + WIDTH}" y2="{y:.1f}" class="grid"/>')
        lines.append(f'<text x="{at - 6}" y="{y + 4:.1f}" text-anchor="end">{nice(tick)}</text>')
        tick *= 10
    for x in sorted({x for x, _ in points}):
        across, _ = place(x, low_y)
        lines.append(f'<text x="{across:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{nice(x)}</text>')
    lines.append(f'<text x="{at + WIDTH / 2}" y="{TOP + HEIGHT + 34}" text-anchor="middle">{escape(unit)}</text>')
    for (name, curve), colour in zip(curves, COLOURS):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in curve))
        lines.append(f'<polyline points="{path}" stroke="{colour}" class="curve"/>')
        for point in curve:
            x, y = place(*point)
            lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
            lines.append(f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle" class="value">{point[1]:.3g}</text>')
        _, y = place(*curve[0])
        lines.append(f'<text x="{at + 6}" y="{y + 18:.1f}" fill="{colour}">{escape(name)}</text>')
    return lines


def drawing(charts):
    width = LEFT + len(charts) * (WIDTH + GAP)
    height = TOP + HEIGHT + 50
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        "<style>text{font:11px sans-serif;fill:#444}.title{font-weight:bold;font-size:13px}.value{font-size:9px}"
        ".grid{stroke:#ddd}.curve{fill:none;stroke-width:2}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for i, one in enumerate(charts):
        lines += chart(LEFT + i * (WIDTH + GAP), *one)
    return "\n".join([*lines, "</svg>"]) + "\n"


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "docs/images/growth.svg"
    start = time.monotonic()
    live, devices = by_live(), by_devices()
    events, readings = by_processes()
    charts = [
        ("An event, ns", "live buffers on its device", [("event", live)]),
        ("An event of a mesh call, ns", "devices of the call", [("for each device", devices)]),
        (
            "With more processes",
            "tracked processes",
            [("event, ns", events), ("ttmem smi, \N{MICRO SIGN}s for each", readings)],
        ),
    ]
    with open(target, "w", encoding="utf-8") as file:
        file.write(drawing(charts))
    for title, _, curves in charts:
        for name, curve in curves:
            print(f"{title}, {name}: " + ", ".join(f"{nice(x)} {y:.3g}" for x, y in curve))
    print(f"{target}, in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
