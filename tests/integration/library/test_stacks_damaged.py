# SPDX-License-Identifier: Apache-2.0
"""A library with damaged unwind tables: its process lives, and its stacks say that they are cut."""

import pytest

from conftest import ROOT
from cxx import run
from nativestacks import HEAD, frames, start

LIBRARY = """
void through(void (*next)(unsigned long), unsigned long n);
void through(void (*next)(unsigned long), unsigned long n)
{
	next(n);
	__asm__ volatile("");
}
"""

SOURCE = HEAD + """
void through(void (*next)(unsigned long), unsigned long n);

NOINLINE void take(unsigned long n)
{
	ttmem_alloc(0, TTMEM_DRAM, n * 4096, 4096, 0);
	KEEP();
}

int main(void)
{
	for (volatile unsigned long n = 1; n <= 5; n++)
		through(take, n);
	take(6);
	return ready();
}
"""


def damage_frames(data):
    """All of it: entries have no plausible length, version or instructions."""
    return b"\xff" * len(data)


def damage_versions(data):
    """Only the first entry, which the others refer to, has a version that does not exist."""
    return data[:8] + b"\x77" + data[9:]


def damage_index(data):
    """The index has an encoding that does not exist."""
    return data[:1] + b"\x7f" * 3 + data[4:]


DAMAGES = {"frames": (".eh_frame", damage_frames), "version": (".eh_frame", damage_versions),
           "index": (".eh_frame_hdr", damage_index)}


def patch(library, section, damage):
    """Changes a section in place, so that everything else stays where it is."""
    for line in run("readelf", "-SW", library).splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == section:
            at, size = int(words[4], 16), int(words[5], 16)
            data = library.read_bytes()
            library.write_bytes(data[:at] + damage(data[at:at + size]) + data[at + size:])
            assert library.read_bytes() != data
            return
    pytest.fail(f"there is no {section}")


@pytest.fixture
def program(build, tmp_path):
    ours = build / "src" / "lib"
    (tmp_path / "through.c").write_text(LIBRARY)
    (tmp_path / "app.c").write_text(SOURCE)
    run("gcc", "-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-shared", "-fPIC",
        tmp_path / "through.c", "-o", tmp_path / "libthrough.so")
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-I", ROOT / "include",
        tmp_path / "app.c", "-o", tmp_path / "app", "-L", ours, "-lttmem", "-L", tmp_path, "-lthrough",
        f"-Wl,-rpath,{ours}:{tmp_path}")
    return tmp_path / "app"


def rows_of(world):
    rows = sorted(world.json("buffers")["buffers"], key=lambda row: int(row["address"], 16))
    assert len(rows) == 6
    return rows


def names_of(row):
    return [name for name, _ in frames(row)]


def cuts_of(row):
    return [frame.get("cut", False) for frame in row["stack"]]


@pytest.mark.parametrize("how", ("auto", "unwind"))
def test_whole_tables_lead_to_main_and_nothing_is_cut(world, program, how):
    start(world, program, how)
    for row in rows_of(world):
        assert "main" in names_of(row)
        assert not any(cuts_of(row))


@pytest.mark.parametrize("how", ("auto", "unwind"))
@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_tables_cut_the_stack_and_harm_nobody(world, program, how, name):
    patch(program.parent / "libthrough.so", *DAMAGES[name])
    process = start(world, program, how)
    *damaged, whole = rows_of(world)
    for row in damaged:
        assert names_of(row) == ["take", "through"]
        assert cuts_of(row) == [False, True]
    assert names_of(whole)[:2] == ["take", "main"] and not any(cuts_of(whole))
    text = world.text("buffers", "--stacks").splitlines()
    cuts = [i for i, line in enumerate(text) if line.strip() == "(cut: no unwind information)"]
    assert cuts and all(text[i - 1].split()[0] == "through" for i in cuts)
    assert process.poll() is None
