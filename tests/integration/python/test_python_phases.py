# SPDX-License-Identifier: Apache-2.0
"""Phases in Python: every buffer has the phase of the code that allocated it, also where generators
and tasks take turns on one thread."""

from pythons import every_python


@every_python
def test_phases_of_plain_code(python):
    python.run("""
        def alloc(n):
            ttmem.alloc(0, ttmem.DRAM, n, 1)

        p = ttmem.phase("again")
        with ttmem.phase("a"):
            with p, p:
                alloc(1)
            alloc(2)

        @ttmem.phase("fn")
        def decorated(n, *, fail=False):
            "Text."
            alloc(n)
            if fail:
                raise KeyError(n)
            return n

        assert decorated(3) == 3 and decorated.__doc__ == "Text."
        try:
            decorated(4, fail=True)
        except KeyError:
            alloc(5)

        @ttmem.phase("gen")
        def generator():
            try:
                got = yield alloc(6)
            except KeyError:
                got = "thrown"
            alloc(7)
            yield got
            try:
                yield
            finally:
                alloc(9)

        g = generator()
        next(g)
        assert g.throw(KeyError()) == "thrown"
        alloc(8)
        next(g)
        g.close()
        ttmem.process_phase("whole")
        alloc(10)
        phases = {row[2]: row[5] for row in mine()}
        assert phases == {
            "0x1": "a/again/again", "0x2": "a", "0x3": "fn", "0x4": "fn", "0x5": None,
            "0x6": "gen", "0x7": "gen", "0x8": None, "0x9": "gen", "0xa": "whole",
        }, phases
    """)


@every_python
def test_phases_of_asynchronous_code(python):
    """Tasks take turns at every await; each buffer is born in the phase of its own task."""
    python.run("""
        import asyncio, inspect

        def alloc(n):
            ttmem.alloc(0, ttmem.DRAM, n, 1)

        def task(name, first):
            @ttmem.phase(name)
            async def body():
                for i in range(5):
                    alloc(first + i)
                    await asyncio.sleep(0)
                return name
            assert inspect.iscoroutinefunction(body)
            return body()

        @ttmem.phase("items")
        async def items():
            got = None
            try:
                while True:
                    alloc(100 if got is None else got)
                    await asyncio.sleep(0)
                    try:
                        got = yield got
                    except KeyError:
                        got = 102
            finally:
                await asyncio.sleep(0)
                alloc(103)

        async def cancelled():
            @ttmem.phase("cancelled")
            async def body():
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    alloc(200)
                    raise
            one = asyncio.ensure_future(body())
            await asyncio.sleep(0)
            one.cancel()
            try:
                await one
            except asyncio.CancelledError:
                return True

        async def main():
            assert await asyncio.gather(task("x", 1), task("y", 11)) == ["x", "y"]
            iterator = items()
            assert await iterator.asend(None) is None
            assert await iterator.asend(101) == 101
            assert await iterator.athrow(KeyError()) == 102
            alloc(104)
            await iterator.aclose()
            assert await cancelled()

        asyncio.run(main())
        want = {hex(n): "x" for n in range(1, 6)}
        want.update({hex(n): "y" for n in range(11, 16)})
        want.update({hex(n): "items" for n in range(100, 104)})
        want.update({hex(104): None, hex(200): "cancelled"})
        phases = {row[2]: row[5] for row in mine()}
        assert phases == want, phases
    """)


def test_phases_that_end_out_of_order(python):
    python.run("""
        a, b = ttmem.phase("a"), ttmem.phase("b")
        a.__enter__()
        b.__enter__()
        a.__exit__()
        ttmem.alloc(0, ttmem.DRAM, 1, 1)
        b.__exit__()
        ttmem.alloc(0, ttmem.DRAM, 2, 1)
        with b:
            try:
                a.__exit__()
            except RuntimeError as error:
                assert "was not entered by this thread" in str(error)
            else:
                sys.exit("ended twice without a word")
            ttmem.alloc(0, ttmem.DRAM, 3, 1)
        assert [row[5] for row in mine()] == ["b", None, "b"], mine()
    """)


@every_python
def test_a_fork_inside_a_phase(python):
    """The child goes on in it, and leaves it for itself."""
    python.run("""
        with ttmem.phase("parent"):
            child = os.fork()
            ttmem.alloc(0, ttmem.DRAM, 1, 1)
        ttmem.alloc(0, ttmem.DRAM, 2, 1)
        right = [row[5] for row in mine()] == ["parent", None]
        if not child:
            os._exit(0 if right else 1)
        assert right and os.waitpid(child, 0)[1] == 0
    """)


@every_python
def test_phases_of_methods_and_classes(python):
    """Above and below the decorators of methods; a class has nothing that could be run in a phase."""
    python.run("""
        class Layer:
            @ttmem.phase("static")
            @staticmethod
            def above(n):
                ttmem.alloc(0, ttmem.DRAM, n, 1)

            @staticmethod
            @ttmem.phase("static")
            def below(n):
                ttmem.alloc(0, ttmem.DRAM, n, 1)

            @ttmem.phase("class")
            @classmethod
            def of_class(cls, n):
                assert cls is Layer
                ttmem.alloc(0, ttmem.DRAM, n, 1)

        Layer.above(1), Layer().above(2), Layer().below(3), Layer.of_class(4), Layer().of_class(5)
        phases = {row[2]: row[5] for row in mine()}
        assert phases == {
            "0x1": "static", "0x2": "static", "0x3": "static", "0x4": "class", "0x5": "class",
        }, phases
        for wrong, said in [(Layer, "not classes: decorate the methods of Layer"), (7, "not int")]:
            try:
                ttmem.phase("x")(wrong)
            except TypeError as error:
                assert said in str(error), error
            else:
                assert False
    """)
