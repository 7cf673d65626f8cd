# SPDX-License-Identifier: Apache-2.0
"""Embed the dashboard in the daemon, and the page of "ttmem report" in the command.

Writes a C file with the table declared in web/server/assets.h, and one with the page of cli/report/report-page.h. A
source release ships both pages (shipped_page.py). Else npm builds them from web/, in a folder of its own under the build
folder. Without npm, or if its packages cannot be downloaded, the plain page is embedded instead, and there is no page for
reports, unless the mode is "enabled". With --ship, the pages are built and put where a release has them.
"""

import argparse
import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folder of the sources may belong to somebody else
import shipped_page  # noqa: E402

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}

# Of all files together, compressed: what a first visit downloads. Less than when a library drew the flame graph.
PACKED_MAX = 93 * 1024
SCRIPT_MAX = 226_082  # bytes of the scripts as a browser parses them: as many as there were then

NPM_SAYS = re.compile(r"npm (ERR!|error) ?")  # ERR! before npm 10, error since
NPM_NOISE = (" ", "errno ", "syscall ")
REASON_LINES = 2
REASON_MAX = 400


def reason(output):
    """npm's reason in a line or two: the log may be in a container that no longer exists."""
    said = [line[len(match[0]) :] for line in output.splitlines() if (match := NPM_SAYS.match(line))]
    told = [line for line in said if line.strip() and not line.startswith(NPM_NOISE)]
    return "; ".join(told[:REASON_LINES])[:REASON_MAX] or "no reason given"


def run(command, work, log):
    """Runs @command; its output goes to @log, and the reason of a failure into the exception."""
    result = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    log.write(f"$ {' '.join(command)}\n{result.stdout}{result.stderr}\n")
    if result.returncode != 0:
        why = reason(result.stderr)
        raise RuntimeError(f"{' '.join(command[:2])} failed: {why} (see {log.name})")


def install(work, npm, log):
    """Installs the packages of the lock file unless they are there already. None needs its own scripts."""
    digest = hashlib.sha256((work / "package-lock.json").read_bytes()).hexdigest()
    stamp = work / "node_modules" / ".installed"
    if stamp.exists() and stamp.read_text() == digest:
        return
    # Without a network, fail soon instead of hanging.
    quick = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"]
    run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", *quick], work, log)
    stamp.write_text(digest)


def build(source, work, npm):
    """Builds the dashboard and the report; their results are in dist and dist-report."""
    work.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.name in ("node_modules", "meson.build", shipped_page.FOLDER, *shipped_page.RESULTS):
            continue
        if entry.is_dir():
            shutil.rmtree(work / entry.name, ignore_errors=True)
            shutil.copytree(entry, work / entry.name)
        else:
            shutil.copy(entry, work / entry.name)
    with open(work / "build.log", "w", encoding="utf-8") as log:
        install(work, npm, log)
        for result in shipped_page.RESULTS:
            shutil.rmtree(work / result, ignore_errors=True)
        run([npm, "run", "--silent", "build"], work, log)


def use_shipped_or_build(source, work, npm):
    """The pages in dist and dist-report: those of the release if they are of these sources, else built."""
    unusable = shipped_page.use(source, work)
    if unusable == "":
        return
    if not npm:
        raise RuntimeError(unusable or "no npm")
    if unusable:
        print(unusable, file=sys.stderr)
    build(source, work, npm)


def text(value):
    return json.dumps(value)  # a JSON string of ASCII is also a C string


def array(name, data):
    lines = [f"static const unsigned char {name}[] = {{"]
    for at in range(0, len(data), 16):
        lines.append("\t" + "".join(f"0x{byte:02x}, " for byte in data[at : at + 16]).rstrip())
    return [*lines, "};"]


def embed(folders, ret_rows):
    """The C arrays of all files in the folders; appends their rows of the table to @ret_rows."""
    lines, packed_sum, script_sum = [], 0, 0
    files = [(f, p) for f in folders for p in sorted(f.rglob("*")) if p.suffix in TYPES]
    for number, (folder, path) in enumerate(files):
        plain = path.read_bytes()
        packed = gzip.compress(plain, 9, mtime=0)
        packed_sum += len(packed)
        script_sum += len(plain) if path.suffix == ".js" else 0
        name = "/" + path.relative_to(folder).as_posix()
        page = path.suffix == ".html"
        named = path.parent.name == "assets"
        tag = hashlib.sha256(plain).hexdigest()[:16]
        lines += array(f"plain_{number}", plain) + array(f"packed_{number}", packed)
        ret_rows.append(
            f"\t{{{text('/' if page else name)}, {text(TYPES[path.suffix])}, {text(chr(34) + tag + chr(34))}, "
            f"{str(page).lower()}, {str(named).lower()}, plain_{number}, packed_{number}, "
            f"sizeof(plain_{number}), sizeof(packed_{number})}},"
        )
    if script_sum > SCRIPT_MAX:
        raise SystemExit(f"the dashboard's scripts are {script_sum} bytes, more than {SCRIPT_MAX}")
    if packed_sum > PACKED_MAX:
        raise SystemExit(f"the dashboard is {packed_sum} bytes packed, more than {PACKED_MAX}")
    return lines


def source_hash(content):
    """What a policy calls an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def inline(path, end):
    """The content of a file, to stand between two tags."""
    content = path.read_text(encoding="utf-8")
    if "<!--" in content or end in content.lower():
        raise SystemExit(f"{path} cannot be part of a page")
    return content


def report_page(template, built):
    """The page of a report before and after its data. Its policy allows its own script and style, and nothing else."""
    script = inline(built / "report.js", "</script")
    style = inline(built / "report.css", "</style")
    policy = [
        "default-src 'none'",
        f"script-src {source_hash(script)}",
        f"style-src {source_hash(style)}",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    parts = {
        "@POLICY@": "; ".join(policy),
        "@STYLE@": style,
        "@LICENCES@": inline(built / "licences.txt", "</script"),
        "@SCRIPT@": script,
    }
    page = re.sub("|".join(parts), lambda match: parts[match[0]], template.read_text(encoding="utf-8"))
    (built / "page.html").write_text(page, encoding="utf-8")  # for tests that have data of their own
    return page.split("@DATA@")


def embed_report(parts):
    """The C file of the report's page; @parts: before and after its data, none if it could not be built."""
    lines = ['#include "cli/report/report-page.h"', ""]
    for name, part in zip(("head", "tail"), parts, strict=False):
        lines += array(name, part.encode())
    row = "head, sizeof(head), tail, sizeof(tail)" if parts else "NULL, 0, NULL, 0"
    return [*lines, f"const struct report_page report_page = {{{row}}};", ""]


def write(path, lines):
    temporary = Path(f"{path}.new")
    temporary.write_text("\n".join(lines), encoding="ascii")
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["auto", "enabled", "disabled"], default="enabled")
    parser.add_argument("--npm", default="")
    for name in ("--source", "--work"):
        parser.add_argument(name, type=Path, required=True)
    for name in ("--plain", "--output", "--report"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--ship", action="store_true")
    options = parser.parse_args()

    if options.ship:
        ship(options)
    else:
        make(options)


def ship(options):
    """Builds the pages into the folder of a release."""
    try:
        build(options.source, options.work, options.npm)
    except (RuntimeError, OSError) as error:
        raise SystemExit(f"the dashboard cannot be built: {error}") from error
    shipped_page.write(options.source, options.work)


def make(options):
    """Writes the C files."""

    folders, report = [options.plain, options.source / "public"], []
    if options.mode != "disabled":
        try:
            use_shipped_or_build(options.source, options.work, options.npm)
            folders = [options.work / "dist"]
            report = report_page(options.source / "report.html", options.work / "dist-report")
        except (RuntimeError, OSError) as error:
            if options.mode == "enabled":
                raise SystemExit(f"the dashboard cannot be built: {error}") from error
            print(f"the plain page instead of the dashboard: {error}", file=sys.stderr)
    rows = []
    lines = ['#include "web/server/assets.h"', "", *embed(folders, rows), ""]
    lines += ["const struct asset assets_table[] = {", *rows, "};"]
    lines += ["const size_t assets_count = sizeof(assets_table) / sizeof(*assets_table);", ""]
    write(options.output, lines)
    if options.report:
        write(options.report, embed_report(report))


main()
