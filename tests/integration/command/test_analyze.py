# SPDX-License-Identifier: Apache-2.0
"""ttmem analyze: the old logs, written by the library and by a daemon, compared with a model."""

import contextlib
import json
import os
import pty
import re
import resource
import subprocess

import pytest

from conftest import LIMIT
from oldlogs import Logs, Model, history, run_script
from world import check_schema, wait_for

pytestmark = pytest.mark.legacy


@pytest.fixture
def logs(tmp_path):
    return Logs(tmp_path)


def leaks(document):
    return sorted((leak["device"], int(leak["address"], 16)) for leak in document["leaks"])


def test_guide_script_is_right_without_reuse(world, logs, analyze):
    """No address repeats: the script of the guide and the command agree."""
    world.player(
        "alloc 0 DRAM 0x1000 524288", "alloc 0 L1 0x2000 1536", "alloc 1 L1 0x3000 64",
        "free 0 DRAM 0x1000", "free 1 L1 0x3000", "alloc 0 DRAM 0x4000 98304",
        **logs.settings(),
    )
    totals, rows = run_script(logs.buffer)
    assert totals == (4, 2, 2)
    assert rows == {"0x2000": (1.5, "L1"), "0x4000": (96.0, "DRAM")}
    assert leaks(analyze(logs.buffer)) == [(0, 0x2000), (0, 0x4000)]


def test_guide_script_is_wrong_with_reuse(world, logs, analyze, ttmem):
    """An address that leaks in its second life, and one that leaks on one device of two."""
    world.player(
        "alloc 0 DRAM 0x1000 64", "free 0 DRAM 0x1000", "alloc 0 DRAM 0x1000 128",
        "alloc 0 L1 0x2000 64", "alloc 1 L1 0x2000 64", "free 0 L1 0x2000",
        **logs.settings(),
    )
    assert run_script(logs.buffer)[1] == {}
    assert leaks(analyze(logs.buffer)) == [(0, 0x1000), (1, 0x2000)]
    assert leaks(analyze(logs.stack)) == [(0, 0x1000), (1, 0x2000)]
    done = ttmem("analyze", "--leaked-addresses", logs.buffer)
    assert done.stdout == "0x1000\n0x2000\n"
    done = ttmem("analyze", "--leaked-addresses", "--device", 1, logs.buffer)
    assert done.stdout == "0x2000\n"
    done = ttmem("analyze", "--leaked-addresses", "--type", "dram", logs.buffer)
    assert done.stdout == "0x1000\n"


def test_a_size_change_is_not_a_free(world, logs, analyze, ttmem):
    """Allocated again with another size: devices and call sites agree that there was no free."""
    world.player(
        "alloc 0 DRAM 0x1000 64", "alloc 0 DRAM 0x1000 128", "alloc 1 DRAM 0x1000 32",
        "alloc 1 L1 0x2000 16", "free 1 L1 0x2000", **logs.settings(),
    )
    for log in (logs.buffer, logs.stack):
        document = analyze(log)
        sites = document["sites"]
        assert sites and sum(site["frees"] for site in sites) == document["summary"]["frees"] == 1
        assert sum(site["replaced"] for site in sites) == 1
        assert sum(site["allocs"] for site in sites) == 4
        text = ttmem("analyze", log).stdout
        assert re.search(r"3 allocations of DRAM, 0 freed, 1 replaced, 160 B left", text), text
        # One line for an address, however many devices it leaked on.
        assert ttmem("analyze", "--leaked-addresses", log).stdout == "0x1000\n"


@pytest.mark.parametrize("seed", range(4))
def test_analysis_of_library_logs_matches_a_model(world, logs, analyze, seed):
    model, named = Model(), Model()
    calls = []
    player = world.player(show=False, **logs.settings())
    for op, device, type, address, *size in history(seed):
        calls.append(" ".join([op, str(device), type, hex(address), *map(str, size)]))
        getattr(model, op)((None, device, type, address), *size)
        getattr(named, op)((player.pid, device, type, address), *size)
    player.play(*calls)
    model.check(analyze(logs.buffer))
    named.check(analyze(logs.stack))
    allocs = sum(call.startswith("alloc") for call in calls)
    assert analyze(logs.detailed)["summary"]["allocs"] == allocs
    # All of them at once, from standard input: each format is analysed separately.
    mixed = b"".join(p.read_bytes() for p in (logs.detailed, logs.buffer, logs.stack))
    done = subprocess.run(
        [world.program, "analyze", "--json", "-"], input=mixed, capture_output=True, timeout=LIMIT
    )
    document = check_schema(json.loads(done.stdout))
    assert document["summary"]["leaks"] == 2 * len(model.live)
    assert document["files"][0]["formats"] == ["buffer_debug", "detailed", "stack_trace"]


@pytest.mark.parametrize("ids", ["hex", "decimal", "history"])
def test_analysis_of_server_logs_matches_a_model(ttmemd, analyze, ids):
    """A real daemon, a real old client, each event a line: the same verdict as the model's."""
    options = ["--log-history"] if ids == "history" else ["--log-events", "--ids", ids]
    daemon = ttmemd.start(*options)
    client, model = daemon.old_client(), Model()
    for op, device, type, address, *size in history(7):
        # The old protocol's free has no type: one type for each address.
        number = address >> 12 & 1
        place = (os.getpid(), device, ["DRAM", "L1"][number], address)
        getattr(model, op)(place, *size)
        if op == "alloc":
            client.alloc(device, number, address, *size)
        else:
            client.free(device, address)
    client.alloc(999, 0, 0x99000, 1)
    wait_for(lambda: "on device 999" in daemon.text(), "the last event")
    model.alloc((os.getpid(), 999, "DRAM", 0x99000), 1)
    client.close()
    model.check(analyze(daemon.log))


GUIDE = """\
✓ [PID 7] Allocated 524288 bytes of DRAM on device 2 (buffer_id=25718784)
✗ [PID 7] Freed buffer 25718784 on device 2 (524288 bytes, FINAL)
✓ [PID 7] Allocated 98304 bytes of DRAM on device 2 (buffer_id=25718784)
✗ [PID 7] Freed buffer 25718784 on device 2 (98304 bytes, FINAL)
⚠ [PID 7] Deallocation for unknown buffer 25718784 on device 2 (allocated before tracking started)
⚠ [PID 7] Deallocation for unknown buffer 99 on device 2 (allocated before tracking started)
✓ [PID 7] Allocated 64 bytes of L1 on device 0 (buffer_id=4096)
✓ [PID 7] Allocated 64 bytes of L1 on dev
"""


# As the tracing guide quotes its log, with numbers of lines and notes; pid, device and address are left out.
QUOTED = """\
Line 3945: ✓ Allocated 524288 bytes (buffer_id=25718784, device 2)
Line 3973: ✗ Freed 524288 bytes (FINAL)      ← Removed from tracking
Line 3981: ✓ Allocated 98304 bytes (buffer_id=25718784, device 2)  ← SAME ADDRESS, DIFFERENT SIZE
Line 4021: ✗ Freed 98304 bytes (FINAL)       ← Removed from tracking
Line 5300: ⚠ Deallocation for unknown buffer 25718784  ← Old pointer freed again!
Line 36539: Active allocations: 87
Line 36541: PID 314528 is dead, cleaning up orphaned buffers...
"""


def test_the_excerpt_in_the_tracing_guide_is_understood(analyze, tmp_path):
    log = tmp_path / "debug.log"
    log.write_text(QUOTED)
    document = analyze(log)
    summary = document["summary"]
    assert (summary["allocs"], summary["frees"], summary["leaks"]) == (2, 2, 0)
    (finding,) = document["findings"]
    assert (finding["kind"], finding["cause"], finding["device"]) == ("double_free", "address_reuse", 2)
    assert (int(finding["address"], 16), finding["size"]) == (25718784, 98304)
    log.write_text("✓ Freed 5 bytes (FINAL)\n✗ Freed 5 bytes (FINAL)\n⚠ Deallocation for unknown buffer 9\n")
    kinds = [f["kind"] for f in analyze(log)["findings"]]
    assert kinds == ["unknown_free"]


def test_peaks_and_size_changes_are_those_of_ps(ttmemd, analyze):
    """Circular buffers are printed in megabytes of six digits: enough for sizes that end in some zero bits."""
    daemon = ttmemd.start("--log-events")
    sizes = [1499136, 12345, 33 << 20, 98304 * 1001]
    ended = daemon.player(*[f"alloc 901 CB {0x1000 * i:#x} {size}" for i, size in enumerate(sizes, 1)])
    wait_for(lambda: daemon.text().count("[CB_ALLOC] Device 901") == len(sizes), "the lines of the first")
    ended.kill()
    wait_for(lambda: "   ✓ Removed 4 CBs (" in daemon.text(), "its end")
    calls = [f"alloc 901 CB {0x1000 * i:#x} {size + 4096}" for i, size in enumerate(sizes, 1)]
    calls += ["free 901 CB 0x1000", "alloc 901 DRAM 0x1000 500", "alloc 901 DRAM 0x1000 600"]
    calls += ["alloc 901 DRAM 0x1000 400", "free 901 DRAM 0x1000", "alloc 901 DRAM 0x1000 7"]
    lives = daemon.player(*calls)
    wait_for(lambda: "Allocated 7 bytes of DRAM" in daemon.text(), "the lines of the second")
    document = analyze(daemon.log)
    (read,) = [d["types"] for d in document["devices"] if d["device"] == 901]
    read = {t["type"]: t for t in read}
    (process,) = [p for p in daemon.json("ps")["processes"] if p["pid"] == lives.pid]
    (device,) = process["devices"]
    for kind in ("CB", "DRAM"):
        assert read[kind]["peak_bytes"] == device["memory"][kind]["peak"], kind
        assert read[kind]["size_changes"] == device["memory"][kind]["size_changes"], kind
    assert read["DRAM"]["size_changes"] == 2


def test_analyze_prints_a_summary(ttmem, tmp_path):
    log = tmp_path / "server.log"
    log.write_text(GUIDE)
    done = ttmem("analyze", log)
    assert done.returncode == 0 and done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[0] == f"{log}: 8 lines, 7 events (server), 1 damaged and skipped"
    assert [line.split() for line in lines[1:5]] == [
        "LOG DEVICE TYPE ALLOCS FREES PEAK LEFT DOUBLE UNKNOWN RESIZED".split(),
        "server 0 L1 1 0 64 B 1 0 0 0".split(),
        "server 2 DRAM 2 2 512.0 KiB 0 1 0 0".split(),
        "server 2 ? 0 0 0 B 0 0 1 0".split(),
    ]
    assert lines[5:] == [
        "Not freed when the log ends: 1 buffer, 64 B",
        "        64 B  0x1000 on device 0, L1, pid 7, allocated in line 7",
        "Double frees: 1",
        "  0x1887000 on device 2, DRAM, pid 7, 98304 bytes, line 5",
        "      address reuse: it had several lives, and an old owner freed it again",
        "Unknown frees: 1",
        "  0x63 on device 2, pid 7, line 6",
        "      never seen: allocated before the log began, or never",
    ]


def test_text_of_several_processes(ttmem, tmp_path):
    log = tmp_path / "log"
    log.write_text(GUIDE + GUIDE.replace("[PID 7]", "[PID 8]") + "   PID 8 is dead, removing\n")
    text = ttmem("analyze", log).stdout
    rows = [line.split() for line in text.splitlines() if line.startswith("server ")]
    assert rows[-2:] == [
        "server 7 3 2 1 64 B 1 1 no".split(), "server 8 3 2 1 64 B 1 1 yes".split(),
    ]  # fmt: skip
    assert "Left by processes that ended: 1 buffer, 64 B" in text
    assert "ENDED" not in ttmem("analyze", "--type", "L1", log).stdout


def test_exit_codes_and_mistakes(ttmem, tmp_path):
    log = tmp_path / "log"
    log.write_text(GUIDE)
    clean = tmp_path / "clean"
    clean.write_text("".join(GUIDE.splitlines(True)[:4]))
    assert ttmem("analyze", "--fail-on-leak", log).returncode == 86
    assert ttmem("analyze", "--fail-on-leak", "--type", "DRAM", log).returncode == 0
    done = ttmem("analyze", "--fail-on-leak", clean)
    assert done.returncode == 0
    assert "nothing was left, freed twice or freed without being known" in done.stdout
    done = ttmem("analyze", clean, tmp_path / "missing")
    assert done.returncode == 1 and done.stdout == ""
    assert "missing: No such file or directory" in done.stderr
    assert ttmem("analyze", tmp_path).returncode == 1
    assert ttmem("analyze").returncode == 2
    assert ttmem("analyze", "--json", "--leaked-addresses", log).returncode == 2
    assert ttmem("analyze", "--device", "0x55", log).returncode == 2
    assert ttmem("analyze", "--device", "4096", log).returncode == 2


def test_a_file_that_is_no_log_fails_the_gate(ttmem, analyze, tmp_path):
    leaky, clean, wrong, empty = (tmp_path / name for name in ("leaky", "clean", "wrong", "empty"))
    leaky.write_text(GUIDE)
    clean.write_text("".join(GUIDE.splitlines(True)[:4]))
    wrong.write_bytes(bytes(range(256)) * 64)
    empty.write_bytes(b"")
    reason = f"ttmem analyze: {wrong}: nothing in it is of a known log\n"
    for option in ("--fail-on-leak", "--leaked-addresses", "--top=5", "--json"):
        done = ttmem("analyze", option, wrong)
        assert done.returncode == 1 and done.stderr == reason, option
        assert "no events" not in done.stdout, option  # it is reported once, with the reason
    # The others are analysed nevertheless, and their leaks count.
    done = ttmem("analyze", wrong, clean)
    assert done.returncode == 1 and done.stderr == reason
    assert "nothing was left" in done.stdout
    done = ttmem("analyze", "--fail-on-leak", wrong, leaky)
    assert done.returncode == 86 and done.stderr == reason
    # Damaged lines alone are no result.
    wrong.write_text("✓ [PID 7] Allocated 64 bytes of L1 on dev\n")
    done = ttmem("analyze", "--fail-on-leak", wrong)
    assert done.returncode == 1 and done.stderr == reason
    # An empty file may be a log without events, unless leaks are asked for.
    reason = f"ttmem analyze: {empty}: it is empty: what was left cannot be told\n"
    assert analyze(empty)["summary"]["events"] == 0
    assert ttmem("analyze", empty).stdout == f"{empty}: 0 lines, 0 events\n\nno events\n"
    for option in ("--fail-on-leak", "--leaked-addresses"):
        done = ttmem("analyze", option, clean, empty)
        assert done.returncode == 1 and done.stderr == reason, option
    assert ttmem("analyze", "--fail-on-leak", empty).stdout == f"{empty}: 0 lines, 0 events\n"
    assert ttmem("analyze", "--fail-on-leak", leaky, empty).returncode == 86
    done = ttmem("analyze", "--fail-on-leak", "-", input="")
    assert "standard input: it is empty" in done.stderr and done.returncode == 1


@pytest.mark.parametrize(
    "line",
    [
        "🚀 Allocation Server started",
        "🔄 Background cleanup thread started (checking every 10s)",
        "📊 Current Statistics:",
        "=== TT-Metal Buffer Allocation Stack Traces ===",
    ],
)
def test_a_log_without_events_has_no_leaks(ttmem, tmp_path, line):
    log = tmp_path / "log"
    log.write_text(f"\n{line}\n")
    done = ttmem("analyze", "--fail-on-leak", log)
    assert done.returncode == 0 and done.stderr == ""


DETAILED = "ALLOC: pid=7 device=0 size=64 type=1 addr=0x1000 timestamp=170\n"


def test_a_log_that_records_no_frees_is_not_judged(ttmem, analyze, tmp_path):
    """Nothing is said about what was left in it; what other logs tell is not touched by that."""
    blind, clean, both = tmp_path / "blind", tmp_path / "clean", tmp_path / "both"
    blind.write_text(DETAILED)
    clean.write_text("".join(GUIDE.splitlines(True)[:4]))
    both.write_text(DETAILED + clean.read_text())
    reason = "this log has no frees: what was left cannot be told"
    done = ttmem("analyze", blind)
    assert done.returncode == 0 and done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines[:2] == [f"{blind}: 1 line, 1 event (detailed)", f"  {reason}"]
    assert lines[-1].split() == "detailed 0 L1 1 0 ? ? 0 0 0".split()
    assert "nothing was left" not in done.stdout
    for option in ("--fail-on-leak", "--leaked-addresses"):
        done = ttmem("analyze", option, blind, clean)
        assert done.returncode == 1, option
        assert done.stderr == f"ttmem analyze: {blind}: {reason}\n"
    document = analyze(blind, clean, both)
    assert [file["frees_known"] for file in document["files"]] == [False, True, False]
    known = {row["format"]: row["frees_known"] for row in document["devices"]}
    assert known == {"detailed": False, "server": True}
    assert {row["format"]: row["frees_known"] for row in document["processes"]} == known
    assert document["summary"]["frees_known"] is False and document["notes"]
    document = analyze(clean)
    assert document["summary"]["frees_known"] is True and document["notes"] == []
    text = ttmem("analyze", both).stdout
    assert "\n  a part of this log has no frees: what was left of it cannot be told\n" in text
    assert "of what has frees in the log, nothing was left" in text


def test_top_limits_the_leaks_that_are_listed(analyze, tmp_path):
    log = tmp_path / "log"
    with log.open("w") as out:
        for i in range(1, 31):
            out.write(f"✓ [PID 7] Allocated {i} bytes of L1 on device 0 (buffer_id={i})\n")
    assert len(analyze(log)["leaks"]) == 30
    assert [leak["size"] for leak in analyze("--top", 3, log)["leaks"]] == [30, 29, 28]


NAMES = """\
BUFFER ALLOCATED
Device: 0
Address: 0x1000 (4096)
Size: 64 bytes (0.0625 KB)
Type: L1
Call Stack:
    /lib/libtt.so: _ZN2tt8tt_metal6Buffer13allocate_implEv
    /lib/libtt.so: a_Zcode_ZN1aEv
    app(_ZN1aEv+0x12) [0x55]
    app: %s

"""


def test_cxx_names_in_logs_are_demangled(analyze, tmp_path):
    """C++ names as people wrote them; one that the decoder refuses stays as it is."""
    log = tmp_path / "log"
    log.write_text(NAMES % "main")
    decoded = [
        "/lib/libtt.so: tt::tt_metal::Buffer::allocate_impl()",
        "/lib/libtt.so: a_Zcode_ZN1aEv", "app(a()+0x12) [0x55]", "app: main",
    ]  # fmt: skip
    leak = analyze(log)["leaks"][0]
    assert leak["stack"] == decoded
    # tt-metal's own frames do not stand for the stack.
    site = {"function": "a_Zcode_ZN1aEv", "file": None, "line": None, "module": "libtt.so"}
    assert site.items() <= leak["site"].items() and site.items() <= analyze(log)["sites"][0]["site"].items()
    log.write_text((NAMES % "main").replace("a_Zcode_ZN1aEv", "_ZN2tt8tt_metal1bEv"))
    site = {**site, "function": "a()", "module": "app"}
    via = {**site, "function": "tt::tt_metal::b()", "module": "libtt.so"}
    callers = [{**site, "function": "main"}]
    assert analyze(log)["sites"][0]["site"] == {**site, "user": site, "via": via, "callers": callers}
    hostile = "_Z" + "P" * 3000 + "i"
    log.write_text(NAMES % "main" + (NAMES % hostile).replace("0x1000", "0x2000"))
    first, second = analyze(log)["sites"]
    assert first["stack"] == decoded
    assert second["stack"] == [*decoded[:3], f"app: {hostile}"]


TRACE = """\
PID: 4711

Allocation #1
Device: 2
Type: L1
Size: 64 bytes (1 KB)
Address: 0x40
Stack trace:
  libtt_metal.so : _ZN2tt8tt_metal6Buffer6createEPNS0_7IDeviceEmNS0_10BufferTypeE+0x10
  app : _ZNSt6vectorIiSaIiEE9push_backERKi+0x1a
  app : main.cold+0x1
"""


def test_cxx_names_with_offsets_are_demangled(analyze, ttmem, tmp_path):
    """As the library writes them into the log of stack traces, where the process has no decoder; in the text, too."""
    log = tmp_path / "log"
    log.write_text(TRACE)
    decoded = [
        "libtt_metal.so : tt::tt_metal::Buffer::create(tt::tt_metal::IDevice*, unsigned long, tt::tt_metal::BufferType)+0x10",
        "app : std::vector<int, std::allocator<int> >::push_back(int const&)+0x1a",
        "app : main.cold+0x1",
    ]
    document = analyze(log)
    assert document["leaks"][0]["stack"] == document["sites"][0]["stack"] == decoded
    assert document["leaks"][0]["site"]["via"]["function"] == decoded[0].split(" : ")[1].removesuffix("+0x10")
    text = ttmem("analyze", log).stdout
    assert all(text.count(f"  {line}\n") == 2 for line in decoded)


def test_several_files_are_one_log(analyze, tmp_path):
    lines = GUIDE.splitlines(True)
    (tmp_path / "1").write_text("".join(lines[:3]))
    (tmp_path / "2").write_text("".join(lines[3:7]))
    document = analyze(tmp_path / "1", tmp_path / "2")
    assert document["summary"]["leaks"] == 1 and document["summary"]["double_frees"] == 1
    (finding, _) = document["findings"]
    assert (finding["path"], finding["line"]) == (str(tmp_path / "2"), 2)


def test_large_logs_are_streamed(build, clean_env):
    """100 MB from a pipe, ever new addresses, in a fraction of that memory."""
    size, room = 100 << 20, 64 << 20
    program = [build / "src" / "cli" / "ttmem", "analyze", "--json", "-"]
    process = subprocess.Popen(
        program,
        env=clean_env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (room, room)),
    )
    written = number = 0
    while written < size:
        block = "".join(
            f"✓ [PID 7] Allocated 4096 bytes of L1 on device 0 (buffer_id={i << 12:#x})\n"
            f"✗ [PID 7] Freed buffer {i << 12:#x} on device 0 (4096 bytes, FINAL)\n"
            for i in range(number, number + 20000)
        ).encode()
        number += 20000
        process.stdin.write(block)
        written += len(block)
    process.stdin.write("✓ [PID 7] Allocated 5 bytes of L1 on device 0 (buffer_id=0x1)\n".encode())
    out, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    document = check_schema(json.loads(out))
    assert document["summary"]["frees"] == number and leaks(document) == [(0, 1)]
    assert document["exact"] is True


def test_progress_on_a_terminal_only(build, clean_env, tmp_path):
    """A bar on stderr if that is a terminal, gone at the end; standard output is the same."""
    log = tmp_path / "log"
    log.write_text(GUIDE * 200000)
    program = [build / "src" / "cli" / "ttmem", "analyze", "--json", log]
    plain = subprocess.run(program, env=clean_env, capture_output=True, timeout=LIMIT)
    assert plain.stderr == b""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(program, env=clean_env, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    out, _ = process.communicate(timeout=LIMIT)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    assert b"\r[" in shown and b" %" in shown and shown.endswith(b"\r\x1b[K")
    first, second = json.loads(plain.stdout), json.loads(out)
    first.pop("time_ns"), second.pop("time_ns")
    assert first == second
