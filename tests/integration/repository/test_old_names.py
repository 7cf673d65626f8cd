# SPDX-License-Identifier: Apache-2.0
"""docs/from-the-old-tools.md: every name in it exists, and every old name leads to it."""

import re
import struct
import subprocess

import pytest

from conftest import ROOT
from cxx import run

PAGE = ROOT / "docs" / "from-the-old-tools.md"
SECTIONS = dict(re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", PAGE.read_text(), re.M))


def table(section):
    """Rows of cells."""
    lines = re.findall(r"^\| (.*) \|$", SECTIONS[section], re.M)
    return [[cell.strip() for cell in re.split(r" \| ?", line)] for line in lines[1:]]


def quoted(cell):
    return re.findall(r"`([^`]*)`", cell)


def sources(*patterns):
    return "".join(p.read_text() for pattern in patterns for p in sorted(ROOT.glob(pattern)) if "-test" not in p.name)


def test_old_commands_and_units_are_installed():
    """As data/meson.build lists them; test_install.py starts them."""
    build = (ROOT / "data" / "meson.build").read_text()
    names = [name for row in table("Commands that are installed under their old names") for name in quoted(row[0])]
    assert len(names) == 9
    for name in names:
        assert f"'{name}'" in build or f"'bin/{name}'" in build or f"'systemd/{name}'" in build, name
    installed = {path.name for path in (ROOT / "data" / "bin").iterdir()}
    assert installed <= set(names), "an old name that the page does not have"


def test_the_old_units_name_runs_both_services():
    """Whatever is done to it is done to them; test_systemd.py tries it."""
    folder = ROOT / "data" / "systemd"
    old = (folder / "tt-allocation-server.service").read_text()
    for name in ("ttmemd.service", "ttmem-legacy.service"):
        assert re.search(rf"^Requires=.*\b{re.escape(name)}", old, re.M), name
        assert re.search(rf"^PropagatesReloadTo=.*\b{re.escape(name)}", old, re.M), name
        assert "PartOf=tt-allocation-server.service" in (folder / f"{name}.in").read_text(), name


@pytest.mark.legacy
@pytest.mark.parametrize("path", sorted((ROOT / "data" / "bin").iterdir()), ids=lambda path: path.name)
def test_help_of_an_old_name_leads_to_the_page(path, build, tmp_path):
    """Of the servers, the unit test of the daemon's options checks it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / path.name).write_bytes(path.read_bytes())
    (folder / path.name).chmod(0o755)
    (folder / "ttmem").symlink_to(build / "src" / "cli" / "ttmem")
    for option in ("-h", "--help"):
        shown = run(folder / path.name, option)
        assert f"share/doc/ttmem/{PAGE.name}" in shown and "usage: " in shown


@pytest.mark.parametrize("path", sorted((ROOT / "data" / "bin").iterdir()), ids=lambda path: path.name)
def test_a_copy_of_an_old_name_finds_the_command(path, build, tmp_path):
    """S2 and S3 call them from the folder of an example: what was copied there has no ttmem beside it."""
    copy, ours = tmp_path / path.name, tmp_path / "ours"
    copy.write_bytes(path.read_bytes())
    copy.chmod(0o755)
    (tmp_path / "ttmem").mkdir()  # a folder, such as the Python package, is no command
    ours.mkdir()
    (ours / "ttmem").write_text('#!/bin/sh\necho "ttmem $*"\n')
    (ours / "ttmem").chmod(0o755)
    env = {"PATH": f"{ours}:/usr/bin:/bin", "TT_ALLOC_SERVER_SOCKET": str(tmp_path / "nobody")}
    called = run(copy, env=env).splitlines()[-1]
    assert called.split()[:2] in (["ttmem", word] for word in ("smi", "dump", "selftest"))
    lost = subprocess.run([copy], env={**env, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert (lost.returncode, lost.stdout) == (127, "")
    assert lost.stderr == (
        f"{path.name}: cannot find the command ttmem beside this file or on PATH: install the package ttmem\n"
    )


@pytest.mark.parametrize("module", ["allocation_client", "query_stats"])
def test_help_of_an_old_module_leads_to_the_page(module, build, clean_env):
    if not (build / "python" / "ttmem" / "_ttmem.abi3.so").exists():
        pytest.skip("the Python package is not built")
    env = {**clean_env, "PYTHONPATH": str(build / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    shown = run("/usr/bin/python3", "-m", module, "--help", env=env)
    assert f"share/doc/ttmem/{PAGE.name}" in " ".join(shown.split()) and f"usage: python3 -m {module}" in shown
    wrong = subprocess.run(["/usr/bin/python3", "-m", module, "x"], env=env, capture_output=True, text=True)
    assert wrong.returncode == 2 and "Traceback" not in wrong.stderr


# What the old documents name: tools, their options, scripts, variables, lines, files, documents.
NAMES = """
allocation_server_poc allocation_server_enhanced allocation_monitor_client dump_remaining_buffers.py tt_smi tt_smi_umd
debug_tracking.py tt-allocation-server -q -h -r -d -a -w --sysfs --no-cleanup --shm-only kill|-USR1 pkill|allocation_ser
allocation_client.py allocation_client.hpp allocation_client.cpp tt-metalium/allocation_client.hpp query_device()
query_stats.py analyze_buffer_log.py correlate_leaked_buffers.py realtime_monitor.py trace_remaining_l1.py conftest.py
ADD_BUFFER_DEBUG_LOGGING.patch patch|-R build_metal_with_flags.sh env_vars_setup.sh -rdynamic --asan extract_gpuinfo_tenstorrent.c
graph_tracking.cpp buffer.cpp device.cpp allocator.cpp send_buffer_allocation() gc.get_objects() Buffer::~Buffer()
TT_ALLOC_TRACKING_ENABLED TT_ALLOC_TRACKING_DETAILED TT_BUFFER_DEBUG_LOG /etc/environment
/tmp/tt_allocation_server.sock /tmp/tt_buffer_debug.log /tmp/tt_alloc_detailed.log /tmp/leaked_addresses.txt
/proc/driver/tenstorrent/N/pids /proc/driver/tenstorrent/N/allocations mappings TRACK_ALLOC TRACK_FREE QUERY_STATS
BUFFER|ALLOCATED BUFFER|DEALLOCATED Owns|Data: Hooked: Call|Stack: ALLOC:|pid= L1|Allocation: [DEBUG]|Tracking|buffer:
[DEBUG]|AllocationClient|NOT|enabled [SERVER]|Received|message|type: Active|allocations: Shared|across 📝 └─|📍 🔹|ID:
REMAINING|ALLOCATED|BUFFERS buffer_name stack_trace process_id timestamp ALLOC FREE QUERY RESPONSE DUMP_REMAINING
KMD_UMD_ONLY_ALLOCATION_TRACKING.md HOW_TO_TRACK_ALL_SUBPROCESS_ALLOCATIONS.md REALTIME_ALLOCATION_TRACKING_GUIDE.md
REALTIME_MONITORING_EXAMPLE.md KERNEL_VS_SERVER_COMPARISON.md TT_SMI_README.md TT_SMI_UMD_TELEMETRY_GUIDE.md
BUFFER_ALLOCATION_TRACING_GUIDE.md IMPLEMENTATION_COMPARISON.md
""".replace("|", "\0")


def test_nothing_of_the_old_documents_is_missing():
    text = PAGE.read_text()
    missing = [name for name in NAMES.split() if name.replace("\0", " ") not in text]
    assert not missing


def test_the_page_is_linked():
    for page in (ROOT / "README.md", ROOT / "docs" / "README.md", ROOT / "docs" / "old-clients.md"):
        assert PAGE.name in page.read_text(), page.name


def test_variables_are_read():
    code = sources("src/**/*.[ch]", "python/**/*.py")
    names = [name for row in table("Variables") for cell in row for name in quoted(cell) if name.isupper() and "_" in name]
    assert len(set(names)) == 10
    for name in names:
        assert f'"{name.removesuffix("_FILE")}"' in code, name


def test_files_are_known():
    code = sources("src/**/*.[ch]", "include/**/*.h", "kernel/*.[ch]")
    for path in ("/tmp/tt_allocation_server.sock", "/tmp/tt_buffer_debug.log", "/tmp/tt_alloc_detailed.log",
                 "/tmp/tt_alloc_stack_traces.log"):  # fmt: skip
        assert path in SECTIONS["Files"] and path in code, path
    for name in re.findall(r"TTMEM_IOC_\w+", SECTIONS["Files"]):
        assert f"define {name} " in code, name


def printed_texts():
    """The format strings of the sources, with a mark for each value."""
    text = sources("src/legacy/**/*.c", "src/answers/seed-lines.c", "src/answers/remaining-report.c", "src/daemon/notify/*.c", "src/daemon/*.c")
    text = re.sub(r'" *\n?\s*PRI\w+\s*"', "", text)
    text = re.sub(r'"\s*\n?\s*"', "", text)
    return re.sub(r"%[-+.0-9]*(?:z|l)*[a-zA-Z]?", "\0", text)


def test_lines_are_printed():
    texts = printed_texts()
    # Brackets and commas begin parts that are put together from several strings.
    values = re.compile(r"\b(?:P|N|D|X|Y|R|A|B|F|T|Ss|ID|TYPE|SORT)\b|, | \(")
    lines = [line for row in table("Lines") for line in quoted(row[0])]
    assert len(lines) > 20
    for line in lines:
        for part in values.split(line):
            assert part.strip(" ()") in texts, f"{line!r}: {part!r}"


def test_fields_of_the_protocol():
    """They fill each version without a gap, and the module of old unpacks them where they are."""
    rows = [(int(offset), int(size), field, where) for offset, size, field, where in table("The protocol")]
    for version in (72, 112, 128, 144, 648):
        fields = sorted(row for row in rows if row[3] == "all" or str(version) in row[3].split(", "))
        at = 0
        for offset, size, field, _ in fields:
            assert offset == at, (version, field)
            at += size
        assert at == version
    form = re.search(r'MESSAGE_FORMAT = "(.*)"', (ROOT / "python" / "allocation_client.py").read_text())[1]
    assert struct.calcsize(form) == 112
    names = re.findall(r"\b(\d+) ([A-Z_]+)\b", SECTIONS["The protocol"])
    enum = (ROOT / "src" / "legacy" / "wire" / "legacy.h").read_text()
    for number, name in names:
        if name not in ("DRAM", "L", "L1_SMALL", "TRACE", "SYSTEM_MEMORY"):
            assert re.search(rf"LEGACY_{name} = {number}\b", enum), name
