# SPDX-License-Identifier: Apache-2.0
"""ttmem replay: a recorded run is asked again of another memory, and fails where that would."""

import json
import subprocess

import pytest

from common import wait_for
from conftest import LIMIT
from world import check_schema

# A device with 8 banks of 64 KiB, and calls as the arguments tell: +NAME,SIZE,PAGE,ADDRESS allocates in pages,
# %NAME,SHARD,CORES,ADDRESS in shards of L1, -ADDRESS frees in DRAM, !SIZE fails, <PHASE begins a phase.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ttmem/ttmem.h>

static void declare(void)
{
	struct ttmem_device_args args = {.struct_size = sizeof(args), .card = getenv("CARD")};

	args.memory[TTMEM_DRAM] = (struct ttmem_memory_facts){.capacity = 8 << 16,
		.bank_base = 64, .bank_size = 1 << 16, .banks = 8, .alignment = 64};
	args.memory[TTMEM_L1] = (struct ttmem_memory_facts){.capacity = 16 << 16,
		.bank_base = 0, .bank_size = 1 << 16, .banks = 16, .alignment = 16};
	ttmem_device(&args);
}

__attribute__((noinline)) static void weights(char *text)
{
	struct ttmem_alloc_args args = {.struct_size = sizeof(args), .type = TTMEM_DRAM,
		.flags = TTMEM_FLAG_OWNS_DATA, .name = strsep(&text, ",")};

	args.size = strtoull(strsep(&text, ","), NULL, 0);
	args.page_size = strtoull(strsep(&text, ","), NULL, 0);
	args.shape_flags = TTMEM_SHAPE_INTERLEAVED;
	args.address = strtoull(strsep(&text, ","), NULL, 0);
	ttmem_alloc_ex(&args);
}

static void shards(char *text)
{
	struct ttmem_alloc_args args = {.struct_size = sizeof(args), .type = TTMEM_L1,
		.flags = TTMEM_FLAG_OWNS_DATA, .name = strsep(&text, ",")};

	args.size_per_bank = strtoull(strsep(&text, ","), NULL, 0);
	args.banks = strtoul(strsep(&text, ","), NULL, 0);
	args.size = args.size_per_bank * args.banks;
	args.page_size = 32;
	args.shape_flags = TTMEM_SHAPE_SHARDED;
	args.address = strtoull(strsep(&text, ","), NULL, 0);
	ttmem_alloc_ex(&args);
}

int main(int argc, char **argv)
{
	if (!getenv("UNDECLARED"))
		declare();
	for (int i = 1; i < argc; i++) {
		switch (argv[i][0]) {
		case '+': weights(argv[i] + 1); break;
		case '%': shards(argv[i] + 1); break;
		case '-': ttmem_free(0, TTMEM_DRAM, strtoull(argv[i] + 1, NULL, 0)); break;
		case '!': ttmem_alloc_failed(0, TTMEM_DRAM, strtoull(argv[i] + 1, NULL, 0), 0); break;
		case '<': ttmem_phase_push(argv[i] + 1); break;
		}
	}
	return 0;
}
"""

# Three buffers of 16 KiB in each bank, one after another, and the first of them is freed.
THREE = ["+a,128K,1K,64", "+b,128K,1K,16448", "<load", "+c,128K,1K,32832", "-64"]


@pytest.fixture
def recorded(ttmem, compile_c, tmp_path):
    """Call as recorded(*words): a recording of the program with these calls."""
    program = compile_c(PROGRAM, "app", flags=["-O0", "-g", "-fno-omit-frame-pointer"])

    def run(*words, env=None):
        path = tmp_path / "run.ttrec"
        done = ttmem("run", "--record", path, "--", program, *map(expand, words), env=env)
        assert done.returncode == 0, done.stderr
        return path

    return run


def expand(word):
    """128K in bytes."""
    return ",".join(
        str(int(part[:-1]) * 1024) if part[:-1].isdigit() and part.endswith("K") else part
        for part in word.split(",")
    )


@pytest.fixture
def replay(ttmem):
    """Call as replay(file, "--card", "p150"): exit code and document, which conforms to its schema."""

    def run(*args):
        done = ttmem("replay", "--json", *args)
        assert done.stdout, done.stderr
        return done.returncode, check_schema(json.loads(done.stdout))

    return run


def test_what_ran_runs_again_at_the_same_addresses(recorded, replay):
    code, document = replay(recorded(*THREE))
    assert (code, document["verdict"], document["failed"]) == (0, "runs", None)
    assert document["allocations"] == document["same_address"] == 3
    assert document["open_loop"] and document["exact"] and document["events"] == 4
    (device,) = document["devices"]
    (dram,) = device["margins"]
    assert dram["type"] == "DRAM" and dram["banks"] == 8 and dram["bank_size"] == 65536
    assert dram["free"] == dram["largest"] == 65536 - 3 * 16384


def test_fewer_banks_fail_at_the_first_buffer_that_does_not_fit(recorded, replay, ttmem):
    file = recorded(*THREE)
    code, document = replay(file, "--banks", "4")  # 32 KiB in each bank: two fill it
    failed = document["failed"]
    assert (code, document["verdict"]) == (1, "fails")
    assert failed["name"] == "c" and failed["phase"] == "load" and failed["event"] == 3
    assert failed["why"] == "full" and failed["need"] == 32768 and failed["free"] == 0
    assert failed["banks"] == 4 and failed["size"] == 128 * 1024 and failed["page_size"] == 1024
    assert failed["stack"], "its call stack is shown"
    text = ttmem("replay", file, "--banks", "4")
    assert text.returncode == 1 and "would have failed" in text.stdout
    assert "needs 32.0 KiB in each of 4 banks, of which 0 B are free" in text.stdout
    assert "open loop" in text.stdout


def test_the_stack_of_the_failure_names_the_code(recorded, replay):
    _, document = replay(recorded(*THREE), "--banks", "4")
    assert document["failed"]["site"]["function"] == "weights"


def test_cut_up_memory_is_told_from_full_memory(recorded, replay):
    # 16 + 16 + 32 KiB; then the first and the last are freed: 48 KiB are free, at most 32 at once.
    calls = ["+a,128K,1K,64", "+b,128K,1K,16448", "+c,240K,1K,32832", "-64", "-32832"]
    file = recorded(*calls, "+d,320K,1K,64")  # wherever it lay
    code, document = replay(file)
    assert code == 1 and document["failed"]["name"] == "d"
    assert document["failed"]["why"] == "cut_up"
    assert document["failed"]["largest"] < document["failed"]["need"] <= document["failed"]["free"]


def test_best_fit_can_run_what_first_fit_cannot(recorded, replay):
    # Holes of 24 KiB at the bottom and of 8 KiB above it; 8 KiB are wanted, then 24.
    calls = ["+a,192K,1K,64", "+b,64K,1K,24640", "+c,64K,1K,32832", "+d,64K,1K,41024"]
    file = recorded(*calls, "+e,56K,1K,49216", "-64", "-32832", "+f,64K,1K,32832", "+g,192K,1K,64")
    first, document = replay(file)
    assert first == 1 and document["failed"]["name"] == "g"
    best, document = replay(file, "--fit", "best")
    assert best == 0 and document["fit"] == "best" and document["same_address"] is None


def test_another_card_has_its_own_sizes(recorded, replay):
    code, document = replay(recorded(*THREE), "--card", "p150")
    (margin,) = document["devices"][0]["margins"]
    assert code == 0 and document["card"] == "p150"
    assert margin["banks"] == 8 and margin["bank_size"] == 4278190080 - 64
    assert margin["free"] == margin["bank_size"] - 3 * 16384
    _, document = replay(recorded(*THREE), "--card", "n150")
    (margin,) = document["devices"][0]["margins"]
    # 128 pages in 12 banks: 11 in each.
    assert margin["banks"] == 12 and margin["free"] == (1 << 30) - 32 - 3 * 11 * 1024


def test_a_card_that_its_program_declared_is_taken_as_declared(recorded, replay):
    file = recorded(*THREE, env={"CARD": "n150"})
    _, document = replay(file, "--card", "n150")
    assert document["devices"][0]["recorded_on"] == "n150"
    assert document["devices"][0]["margins"][0]["bank_size"] == 65536


def test_a_card_is_enough_if_nothing_was_declared(recorded, replay):
    file = recorded(*THREE, env={"UNDECLARED": "1"})
    code, document = replay(file)
    assert (code, document["verdict"], document["unjudged"]) == (3, "unknown", 3)
    code, document = replay(file, "--card", "p150")
    assert (code, document["verdict"], document["unjudged"]) == (0, "runs", 0)


def test_shards_want_as_many_cores(recorded, replay):
    file = recorded("%act,1024,12,64512")
    code, document = replay(file, "--banks", "L1=12")
    assert code == 0 and document["devices"][0]["margins"][0]["free"] == 65536 - 1024
    code, document = replay(file, "--banks", "L1=11")
    assert code == 1 and document["failed"]["why"] == "shards"
    assert document["failed"]["shards"] == 12 and document["failed"]["banks"] == 11


@pytest.mark.parametrize("card, banks", [("n150", 64), ("n300", 56), ("p150", 110)])
def test_another_card_has_the_l1_banks_of_fast_dispatch(recorded, replay, card, banks):
    """All cores are there with slow dispatch only, so this is not exact; with the number it is."""
    code, document = replay(recorded(f"%act,1024,{banks},64512"), "--card", card)
    assert code == 0 and document["devices"][0]["margins"][0]["banks"] == banks
    assert not document["exact"] and any("fast dispatch" in note for note in document["notes"])
    file = recorded(f"%act,1024,{banks + 1},64512")
    code, document = replay(file, "--card", card)
    assert code == 1 and document["failed"]["why"] == "shards"
    code, document = replay(file, "--card", card, "--banks", f"L1={banks + 8}")
    assert code == 0 and document["exact"]


def test_what_failed_then_may_have_found_room(recorded, replay):
    file = recorded("+a,400K,1K,64", "!200000")
    _, document = replay(file)
    assert (document["failed_then"], document["failed_then_fit"]) == (1, 0)
    assert document["failed_then_fail"] == 1
    _, document = replay(file, "--card", "p150")
    assert (document["failed_then"], document["failed_then_fit"]) == (1, 1)
    assert any("would have found room" in note for note in document["notes"])


def test_pages_that_are_not_known_are_a_guess(recorded, replay):
    code, document = replay(recorded("+a,128K,0,64"))
    assert code == 0 and document["guessed"] == 1 and not document["exact"]


# Ten buffers that stay, and more events than a book remembers; then it waits for its input to end.
BUSY = r"""
#include <stdio.h>
#include <ttmem/ttmem.h>

int main(void)
{
	for (int i = 0; i < 10; i++)
		ttmem_alloc(0, TTMEM_DRAM, 0x100000 * (i + 1), 1 << 20, "stays");
	for (int i = 0; i < 20000; i++) {
		ttmem_alloc(0, TTMEM_DRAM, 64, 4096, "comes and goes");
		ttmem_free(0, TTMEM_DRAM, 64);
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
"""


def events_of(ttmem, file):
    """How many events are in a recording; 0 if there is none yet."""
    done = ttmem("replay", "--json", file)
    return json.loads(done.stdout)["events"] if done.stdout else 0


def test_what_was_there_before_counts(ttmem, compile_c, build, clean_env, replay, tmp_path):
    file = tmp_path / "run.ttrec"
    program = compile_c(BUSY, "busy")
    recorder = None
    env = {**clean_env, "TTMEM": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([program], env=env, text=True, **pipes) as busy:
        assert busy.stdout.readline() == "ready\n"
        command = [build / "src" / "cli" / "ttmem", "record", str(busy.pid), "-o", file]
        recorder = subprocess.Popen(command, env=clean_env, stderr=subprocess.DEVNULL)
        # A file that is still being written can be replayed, too.
        wait_for(lambda: events_of(ttmem, file) > 0, "the recording to begin")
        busy.stdin.close()
    assert recorder.wait(timeout=LIMIT) == 0
    code, document = replay(file, "--card", "n150")
    assert (code, document["verdict"]) == (0, "runs")
    assert document["from_table"] == 10 and not document["exact"]
    assert any("10 buffers were there before the recording" in n for n in document["notes"])
    (margin,) = document["devices"][0]["margins"]
    # All eleven at once: a twelfth of each, in whole units of 32 bytes.
    share = -(-(1 << 20) // 12 // 32) * 32
    assert margin["bank_size"] - margin["free"] == 10 * share + 352


def test_simulated_cards_agree(ttmem, build, replay, tmp_path):
    """The demonstration's processes ran on simulated cards, one of them until nothing was left."""
    file = tmp_path / "demo.ttrec"
    program = build / "src" / "cli" / "ttmem"
    ttmem("run", "--record", file, "--", program, "demo", "--seconds", "1")
    code, document = replay(file)
    assert (code, document["verdict"]) == (0, "runs")
    assert document["guessed"] == document["unjudged"] == 0
    # What the simulated allocator refused is refused here, too.
    assert document["failed_then"] == document["failed_then_fail"] > 0


@pytest.mark.parametrize(
    "options",
    [
        ["--card", "p999"],
        ["--fit", "worst"],
        ["--banks", "0"],
        ["--banks", "many"],
        ["--banks", "TRACE=4"],
        ["--banks", "L1="],
        ["--banks", "A_LONG_NAME_OF_MEMORY=4"],
        ["other.ttrec"],
    ],
)
def test_mistakes_are_refused(ttmem, options):
    assert ttmem("replay", "run.ttrec", *options).returncode == 2
    assert ttmem("replay").returncode == 2


def test_a_mistake_is_answered_with_what_there_is(ttmem):
    assert '--card expects one of e75,' in ttmem("replay", "run.ttrec", "--card", "p999").stderr
    assert '--fit expects first or best, got "worst"' in ttmem("replay", "run.ttrec", "--fit", "worst").stderr


def test_a_recording_of_nothing_is_no_answer(ttmem, tmp_path):
    path = tmp_path / "nothing.ttrec"
    ttmem("run", "--record", path, "--", "true")
    done = ttmem("replay", path)
    assert done.returncode == 3 and "nothing was allocated in the recording" in done.stdout


def test_what_is_no_recording_is_refused_with_one_line(ttmem, tmp_path):
    bad = tmp_path / "bad.ttrec"
    for content in (b"", b"{}", b"\x5d\x2a\x4d\x18" + b"\0" * 400):
        bad.write_bytes(content)
        done = ttmem("replay", bad)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("ttmem replay: ") and done.stdout == ""
    done = ttmem("replay", tmp_path / "nothing")
    assert (done.returncode, done.stderr) == (1, f"ttmem replay: {tmp_path}/nothing: No such file or directory\n")
