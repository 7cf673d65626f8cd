# SPDX-License-Identifier: Apache-2.0
"""Python frames in the stacks of what C++ code allocates, through a real extension."""

import json
import os
import subprocess
import textwrap

import pytest

from pystacks import (  # noqa: F401 (fixtures)
    IN_C,
    SOURCE,
    Program,
    extensions,
    frame_name,
    program,
)
from pythons import every_python, every_reader

BOTH_WAYS = """
    def load(layer):
        return step.take("weights")  # load
    def layer():
        load(3)  # layer
    class Model:
        def run(self):
            step.call(layer)  # run
    def main():
        Model().run()  # main
    main()  # module
    show()
"""

@every_python
def test_python_through_c_and_back(program):
    """Frame pointers end at the interpreter, which has none: what it calls is known all the same."""
    stack = program.stacks(BOTH_WAYS)["weights"]
    if any(frame_name(frame) == "c:step_call" for frame in stack):
        # An interpreter with frame pointers: then nothing is missing.
        program.check(stack, *IN_C, "load", "layer", "c:step_call", "run", "main",
                      ("<module>", "module"))
    else:
        program.check(stack, *IN_C, "load", "layer", "run", "main", ("<module>", "module"))
    source = SOURCE.read_text().splitlines()
    assert [source[frame["line"] - 1].split("/* ")[1] for frame in stack[:3]] == [
        "place */", "load */", "take */",
    ]


@pytest.mark.parametrize("pointers", [True, False])
@pytest.mark.parametrize("how", ["unwind", "auto"])
@every_python
def test_nothing_is_missing_when_unwound(python, extensions, tmp_path, pointers, how):
    program = Program(python, extensions(pointers), tmp_path)
    stack = program.stacks(BOTH_WAYS, TTMEM_STACKS=how)["weights"]
    if not stack:
        pytest.skip(f"stacks cannot be taken by {how} here")
    program.check(stack, *IN_C, "load", "layer", "c:step_call", "run", "main",
                  ("<module>", "module"))


@every_python
def test_code_without_frame_pointers(python, extensions, tmp_path):
    """The native frames go astray behind the first; Python's do not."""
    program = Program(python, extensions(False), tmp_path)
    stack = program.stacks(BOTH_WAYS)["weights"]
    assert frame_name(stack[0]) == "c:place"
    program.check(program.python_part(stack), "load", "layer", "run", "main",
                  ("<module>", "module"))


def test_only_python(program):
    stack = program.stacks(BOTH_WAYS, TTMEM_STACKS="python")["weights"]
    program.check(stack, "load", "layer", "run", "main", ("<module>", "module"))


def test_the_depth_is_a_setting(program):
    stack = program.stacks(BOTH_WAYS, TTMEM_STACKS="python", TTMEM_STACK_DEPTH="2")["weights"]
    program.check(stack, "load", "layer")


@pytest.mark.parametrize("how", ["off", "OFF", "0", "none"])
def test_without_stacks(program, how):
    assert program.stacks(BOTH_WAYS, TTMEM_STACKS=how)["weights"] == []


@every_python
def test_importing_is_enough(program):
    """Nobody set TTMEM_STACKS."""
    stack = program.stacks(BOTH_WAYS, TTMEM_STACKS=None)["weights"]
    program.check(program.python_part(stack), "load", "layer", "run", "main",
                  ("<module>", "module"))
    assert [frame_name(frame) for frame in stack[:3]] == IN_C


LATE = """\
import json, os, threading
import step

begun, may_go = threading.Event(), threading.Event()
def work():
    step.take("early")
    begun.set()
    may_go.wait()
    step.take("late")  # work
worker = threading.Thread(target=work)
worker.start()
begun.wait()
step.take("before")
import ttmem
step.take("after")  # after
may_go.set()
worker.join()
child = os.fork()
if child == 0:
    step.take("child")  # child
rows = ttmem.buffers(pid=os.getpid())
if child:
    os.waitpid(child, 0)
print(json.dumps({row["name"]: row["stack"] for row in rows}), flush=True)
os._exit(0)
"""


def test_from_the_import_on(program):
    """Also in a thread that had events before, and in a child."""
    program.path.write_text(LATE)
    program.text = LATE
    env = program.settings({"TTMEM_STACKS": None})
    result = subprocess.run([program.python.which.path, program.path], env=env, text=True,
                            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)
    child, parent = map(json.loads, result.stdout.splitlines())
    for name in ("early", "before"):
        assert parent[name] and program.python_part(parent[name]) == []
    program.check(parent["after"][-1:], ("<module>", "after"))
    late = program.python_part(parent["late"])
    program.check(late[:1], "work")
    assert list(child) == ["child"]
    program.check(child["child"][-1:], ("<module>", "child"))


@every_python
def test_what_python_itself_reports(program):
    """The package's own frames are not shown."""
    stacks = program.stacks("""
        def direct():
            ttmem.alloc(0, "L1", 64, 64, "direct")  # direct
        direct()  # module
        show()
    """)
    program.check(stacks["direct"], "direct", ("<module>", "module"))


@every_python
def test_all_sorts_of_functions(program):
    stacks = program.stacks("""
        import functools
        def steps():
            step.take("generator")  # steps
            yield 1
        def through():
            yield from steps()  # through
        for _ in through(): pass  # generator

        def decorated(function):
            @functools.wraps(function)
            def wrapper(*args):
                return function(*args)  # wrapper
            return wrapper
        @decorated
        def inside():
            step.take("decorated")  # inside
        inside()  # decorator

        list(map(lambda n: step.take(n), ["lambda"]))  # lambda

        class Buffer:
            def __init__(self):
                step.take("object")  # __init__
            def __del__(self):
                step.take("deleted")  # __del__
            @property
            def size(self):
                return step.take("property")  # size
        def owner():
            buffer = Buffer()  # owner
            buffer.size  # ask
            del buffer  # drop
        owner()  # class

        def raises():
            try:
                1 / 0
            except ZeroDivisionError:
                step.take("handler")  # raises
        raises()  # exception

        def recurse(n):
            return recurse(n - 1) if n else step.take("deep")  # recurse
        recurse(2)  # recursion
        show()
    """)
    program.check(stacks["generator"], *IN_C, "steps", "through", ("<module>", "generator"))
    program.check(stacks["decorated"], *IN_C, "inside", "wrapper", ("<module>", "decorator"))
    program.check(stacks["lambda"], *IN_C, ("<lambda>", "lambda"), ("<module>", "lambda"))
    program.check(stacks["object"], *IN_C, "__init__", "owner", ("<module>", "class"))
    program.check(stacks["property"], *IN_C, "size", ("owner", "ask"), ("<module>", "class"))
    program.check(stacks["deleted"], *IN_C, "__del__", ("owner", "drop"), ("<module>", "class"))
    program.check(stacks["handler"], *IN_C, "raises", ("<module>", "exception"))
    program.check(stacks["deep"], *IN_C, *["recurse"] * 3, ("<module>", "recursion"))


@every_python
def test_asyncio(program):
    stacks = program.stacks("""
        import asyncio
        async def leaf(name):
            await asyncio.sleep(0)
            step.take(name)  # leaf
        async def task(name):
            await leaf(name)  # task
        async def main():
            await asyncio.gather(task("one"), task("two"))
        asyncio.run(main())
        show()
    """)
    for name in ("one", "two"):
        stack = stacks[name]
        own = [frame for frame in stack if program.is_own(frame)]
        # Below is asyncio's loop: it resumed the task, main() did not call it.
        program.check(own[:2], "leaf", "task")
        assert [frame_name(frame) for frame in stack[:3]] == IN_C
        assert own[2]["function"] == "<module>" and len(own) == 3
        library = [frame for frame in stack if frame["python"] and not program.is_own(frame)]
        assert {os.path.basename(os.path.dirname(f["file"])) for f in library} == {"asyncio"}
        assert all(frame["python"] for frame in stack[3:])


@every_python
def test_threads(program):
    stacks = program.stacks("""
        import threading
        def work():
            step.take("of python")  # work
        thread = threading.Thread(target=work)
        thread.start(); thread.join()
        step.bare("bare")
        def called():
            step.take("called back")  # called
        step.callback(called)
        show()
    """)
    stack = stacks["of python"]
    assert [frame_name(frame) for frame in stack[:3]] == IN_C
    program.check(stack[3:4], "work")
    assert {os.path.basename(frame["file"]) for frame in stack[4:]} == {"threading.py"}
    # A thread without Python has the native frames alone.
    assert frame_name(stacks["bare"][0]) == "c:place"
    assert not program.python_part(stacks["bare"])
    program.check(stacks["called back"][:4], *IN_C, "called")
    assert len(program.python_part(stacks["called back"])) == 1


@every_reader
def test_without_the_gil(program):
    """Twice: what was seen without the GIL only, and what was seen with it before."""
    stacks = program.stacks("""
        def inner(name):
            step.released(name)  # inner
        def outer(name):
            inner(name)  # outer
        outer("first")  # first
        def held(take, name):
            take(name)  # held
        held(step.take, "with")  # with
        held(step.released, "without")  # without
        show()
    """)
    native = ["c:place", "c:step_released"]
    program.check(stacks["first"], *native, "inner", "outer", ("<module>", "first"))
    program.check(stacks["with"], *IN_C, "held", ("<module>", "with"))
    program.check(stacks["without"], *native, "held", ("<module>", "without"))
    assert not any("approximate" in frame for stack in stacks.values() for frame in stack)


@every_reader
def test_threads_that_look_at_once(program):
    """Each in its own function, with the GIL and without: none ever has another's frames."""
    text = program.run("""
        import threading
        functions = []
        for i in range(6):
            exec(compile(f"def f{i}():\\n" + "\\n" * i + f"    step.released('{i}'); step.take('{i}')",
                         f"file{i}.py", "exec"))
            functions.append(globals()[f"f{i}"])
        def work(function):
            for _ in range(300):
                function()
        threads = [threading.Thread(target=work, args=(f,)) for f in functions]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        seen = {}
        for row in ttmem.buffers(pid=os.getpid()):
            top = [f for f in row["stack"] if f["python"]][0]
            key = row["name"], top["function"], top["file"], top["line"]
            seen[key] = seen.get(key, 0) + 1
        print(json.dumps(sorted(map(list, seen.items()))))
    """).stdout
    assert json.loads(text) == [[[f"{i}", f"f{i}", f"file{i}.py", i + 2], 600] for i in range(6)]


@every_reader
def test_code_that_takes_anothers_place(program):
    """Each piece comes to lie where the one before it lay, and is known as itself."""
    text = program.run("""
        places = set()
        def one(i, take):
            text = "\\n" * (i % 50) + f"{take}('{i}')"
            code = compile(text, "made.py", "exec")
            places.add(id(code))
            exec(code, {"step": step})
        for i in range(0, 200):
            one(i, "step.released")
        for i in range(200, 400):
            one(i, "step.take")
        tops = {}
        for row in ttmem.buffers(pid=os.getpid()):
            frame = [f for f in row["stack"] if f["python"]][0]
            tops[row["name"]] = [frame["file"], frame["line"]]
        print(json.dumps([len(places), tops]))
    """).stdout
    places, tops = json.loads(text)
    assert tops == {str(i): ["made.py", i % 50 + 1] for i in range(400)}
    assert places < 400, "no piece came to lie where another was"


@every_python
def test_the_last_frames_are_approximate(program):
    """Where memory is not read: as of a CPython that nothing is known of."""
    stacks = program.stacks("""
        from ttmem import _frames
        assert _frames.start("public") == "public"
        def seen():
            step.take("exact")  # seen
        def unseen():
            step.released("guess")
        step.released("nothing")
        seen()  # module
        unseen()
        show()
    """)
    program.check(stacks["exact"], *IN_C, "seen", ("<module>", "module"))
    assert not program.python_part(stacks["nothing"])
    guess = stacks["guess"]
    program.check(guess, "c:place", "c:step_released", "seen", ("<module>", "module"))
    assert [frame.get("approximate") for frame in guess] == [None, None, True, True]
    assert not any("approximate" in frame for frame in stacks["exact"])


@every_python
def test_public_functions_say_the_same(program):
    stack = program.stacks("from ttmem import _frames; _frames.start('public')\n" +
                           textwrap.dedent(BOTH_WAYS))["weights"]
    program.check(stack, *IN_C, "load", "layer", "run", "main", ("<module>", "module"))


@every_python
def test_the_reader_is_used_where_it_is_known(program):
    """What the self-check allows is not to be lost unnoticed."""
    text = program.run("""
        from ttmem import _stacks
        print(_stacks.start(), _stacks._is_right())
    """).stdout
    assert text.split() == (["reader", "True"] if program.python.which.reads_memory else
                            ["public", "False"])


@every_reader
def test_memory_says_what_python_says_everywhere(program):
    """At every line of a good deal of the standard library, and at every call and return of it."""
    text = program.run("""
        import argparse, ast, asyncio, contextlib, dataclasses, inspect, textwrap, tokenize
        from ttmem import _frames
        seen, wrong = set(), []
        def look(frame, event, value):
            seen.add((frame.f_code, frame.f_lineno))
            if not _frames.check():
                wrong.append((event, frame.f_code.co_filename, frame.f_lineno))
            return look
        def work():
            source = inspect.getsource(textwrap.indent)
            ast.unparse(ast.parse(source))
            list(tokenize.tokenize(iter(source.encode().splitlines(True)).__next__))
            parser = argparse.ArgumentParser(prog="x", description="words " * 10)
            parser.add_argument("--number", type=int, default=3, help="some help")
            parser.parse_args(["--number", "4"])
            parser.format_help()
            dataclasses.make_dataclass("C", ["a", ("b", int, 5)])(1)
            async def sleep(): await asyncio.gather(*[asyncio.sleep(0) for _ in range(3)])
            asyncio.run(sleep())
            with contextlib.suppress(ValueError), contextlib.ExitStack():
                raise ValueError
        for install in (sys.settrace, sys.setprofile):
            install(look)
            try:
                work()
            finally:
                install(None)
        print(len(seen), wrong[:5])
    """, TTMEM="0").stdout
    count, wrong = text.split(maxsplit=1)
    assert wrong == "[]\n" and int(count) > 500


def test_a_wrong_layout_is_noticed(program):
    """Of another size than is written down: nothing of it is believed."""
    text = program.run("""
        import types
        from ttmem import _frames, _stacks
        assert _frames.init(sys.hexversion, types.CodeType.__basicsize__ + 8)
        print(_stacks._is_right(), _frames.start("reader"))
        assert _frames.init(0x030e00f0, types.CodeType.__basicsize__)
        print(_stacks._is_right(), _frames.start("reader"))
    """).stdout
    assert text.split() == ["False", "public"] * 2


@every_python
def test_an_exception_is_left_alone(program):
    """By either way: what is allocated while an exception is on its way."""
    for way in ("reader", "public"):
        text = program.run(f"""
            from ttmem import _frames
            _frames.start("{way}")
            def fail():
                step.fail("on the way")
            try:
                fail()
            except KeyError as error:
                print(error)
            [row] = ttmem.buffers(pid=os.getpid())
            print(*[frame["function"] for frame in row["stack"] if frame["python"]])
        """).stdout
        assert text == "'this'\nfail <module>\n"


def test_text_is_as_people_write_it(program, world):
    program.write(BOTH_WAYS.replace("show()", 'print("ready", flush=True); sys.stdin.read()'))
    process = subprocess.Popen(
        [program.python.which.path, program.path],
        env=program.settings({"TTMEM_STACKS": "python"}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    world.adopt(process)
    assert process.stdout.readline() == "ready\n"
    world.show(process.pid)
    text = world.text("buffers", "--stacks")
    for name in ("load", "layer", "run", "main"):
        assert f"{name} ({program.path}:{program.line(name)})" in text
    (group,) = world.json("buffers", "--by", "site")["groups"]
    path = str(program.path)
    chain = [("<module>", "module"), ("main", "main"), ("run", "run"), ("layer", "layer"),
             ("load", "load")]
    assert group["key"].endswith(
        " -> ".join(f"{path}:{program.line(mark)}:{name}" for name, mark in chain)
    )


@every_python
def test_a_wrapper_can_be_named(python):
    """The constructor of a tensor class is in every stack: who called it is what one wants to know."""
    python.run(
        """
        class Tensor:
            def __init__(self):
                ttmem.alloc(0, ttmem.DRAM, 0x1000, 1)

        def model():
            Tensor()

        def site():
            (row,) = [row for row in ttmem.buffers() if row["pid"] == os.getpid()]
            return row["site"]["function"]

        model()
        assert site() == "__init__", site()
        ttmem.skip_frames("__init__,other_*")
        assert site() == "model", site()
        ttmem.skip_frames("")
        assert site() == "__init__", site()
        """,
        TTMEM_STACKS="python",
    )
