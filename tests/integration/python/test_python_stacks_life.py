# SPDX-License-Identifier: Apache-2.0
"""Python frames in stacks at the edges of an interpreter's lifetime: children, subinterpreters, exit."""

import json

import pytest

from pystacks import IN_C, extensions, frame_name, program  # noqa: F401 (fixtures)
from pythons import every_python
from world import check_schema


@every_python
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(program, method):
    text = program.run("""
        import multiprocessing
        def work(name):
            step.take(name)  # work
            rows = ttmem.buffers(pid=os.getpid())
            return [{row["name"]: row["stack"] for row in rows}]
        def child(queue):
            queue.put(work("first"))  # child
            queue.put(work("second"))
        if __name__ == "__main__":
            step.take("parent")
            context = multiprocessing.get_context(sys.argv[1] if sys.argv[1:] else METHOD)
            queue = context.Queue()
            process = context.Process(target=child, args=(queue,))
            process.start()
            queue.get()
            (stacks,) = queue.get()
            process.join()
            assert process.exitcode == 0
            print(json.dumps(stacks))
    """.replace("sys.argv[1] if sys.argv[1:] else METHOD", repr(method))).stdout
    stacks = json.loads(text)
    # The parent's buffer is not the child's.
    assert sorted(stacks) == ["first", "second"]
    for frames in stacks.values():
        assert [frame_name(frame) for frame in frames[:3]] == IN_C
        program.check(frames[3:4], "work")
        assert frames[4]["function"] == "child"


@every_python
def test_a_subinterpreter_is_off_and_counted(program, world):
    stacks = program.stacks("""
        step.take("before")  # before
        inside = "import sys; sys.path[:] = %r; import ttmem, step; step.take('inside')"
        inside %= (sys.path,)
        step.subinterpreter(inside)
        step.take("after")  # after
        rows = ttmem.command("buffers", "--pid", str(os.getpid()))
        print(json.dumps({**{r["name"]: r["stack"] for r in rows["buffers"]},
                          "notes": rows["notes"]}))
    """)
    program.check(stacks["before"], *IN_C, ("<module>", "before"))
    assert not program.python_part(stacks["inside"])
    assert frame_name(stacks["inside"][0]) == "c:place"
    program.check(stacks["after"], *IN_C, ("<module>", "after"))
    (note,) = [note for note in stacks["notes"] if "Python frames" in note]
    assert "1 events have no Python frames" in note


def test_stacks_that_are_off_are_counted(program):
    """As in a free-threaded build."""
    stacks = program.stacks("""
        from ttmem import _frames
        assert _frames.start("off") == "off"
        step.take("with"); step.released("without")
        rows = ttmem.command("buffers", "--pid", str(os.getpid()))
        print(json.dumps({**{r["name"]: r["stack"] for r in rows["buffers"]},
                          "notes": rows["notes"]}))
    """)
    for name in ("with", "without"):
        assert frame_name(stacks[name][0]) == "c:place"
        assert not program.python_part(stacks[name])
    assert any("2 events have no Python frames" in note for note in stacks["notes"])


def leaks_of(program, world, tmp_path, text, **changes):
    """What a program left, by name."""
    report = tmp_path / "report.json"
    program.run(text, world.program, "run", "--json", report, "--", **changes)
    document = check_schema(json.loads(report.read_text()))
    return {
        leak["name"]: leak["stacks"][0]["stack"] if leak["stacks"] else []
        for leak in document["leaks"]
    }


@every_python
def test_allocations_at_interpreter_exit_have_stacks(program, world, tmp_path):
    stacks = leaks_of(program, world, tmp_path, """
        import atexit
        def early():
            step.take("early")  # early
        atexit.register(early)
        sys.modules["kept"] = step.holder("holder")
        class Late:
            take = step.take
            def __del__(self):
                Late.take("late")
        late = Late()
        step.at_exit("destructor")
    """)
    # An exit handler is Python code like any other.
    program.check(stacks["early"], *IN_C, "early")
    # From then on there are no frames; and no crash.
    for name in ("holder", "late", "destructor"):
        assert frame_name(stacks[name][0]) == "c:place"
        assert not program.python_part(stacks[name])


@every_python
def test_threads_without_the_gil_at_the_end(program):
    """They are in the middle of looking while the interpreter takes their state away."""
    for number in range(8):
        result = program.run(f"""
            import threading, time
            for device in (1, 2, 3):
                threading.Thread(target=step.churn, args=(device,), daemon=True).start()
            while not all(ttmem.memory_stats(device).allocs > {number} for device in (1, 2, 3)):
                time.sleep(0.001)
            print("over")
        """)
        assert result.stdout == "over\n" and result.stderr == ""
