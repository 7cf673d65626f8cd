# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem: a test that leaves device memory behind fails.

Each test runs in a phase of its own. After its fixtures have ended, it fails if buffers allocated in
it are still live, in this process or its children. docs/pytest.md describes its use; _judge.py
assigns buffers to tests, _result.py reports them.
"""

import contextlib
import gc
import os
import shlex
import sys
import time
import unittest
import warnings
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Set, TypeVar

import pytest
from _pytest import runner

import ttmem

from . import _judge, _metal, _options, _owners, _result
from ._offers import Offers

# What a check could not check does not pass: as the exit code of ttmem run.
EXIT_UNTRACKED = 87

_PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)

_SESSION = "ttmem session"
_RUNNER = "ttmem runner"
_IDLE = "between tests"

# Of an incident alloc_failed, in the result of a test.
_FAILURE = ("time_ns", "device", "type", "size", "largest_free", "explanation")

_MARK = "ttmem(allow=None, limit=None, warmup=0): what --ttmem accepts of this test"


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _hook(**options: bool) -> Callable[[_Function], _Function]:
    """pytest.hookimpl, typed: not all type checkers know that it returns its argument."""
    decorator: Callable[[_Function], _Function] = pytest.hookimpl(**options)
    return decorator


def pytest_addoption(parser: Any, pluginmanager: Any) -> None:
    _options.add(parser)
    _options.track_early(parser, pluginmanager.get_plugin("pytestconfig"))


@_hook(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    with contextlib.suppress(_metal.NotTracked):
        _options.track(early_config.known_args_namespace)


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", _MARK)
    options = config.option
    if not options.ttmem:
        given = [name for name, value in vars(options).items() if name.startswith("ttmem_") and value is not None]
        if given:
            raise pytest.UsageError(f"--{given[0].replace('_', '-')} needs --ttmem")
        return
    try:
        _options.track(options)
    except _metal.TooLate as error:
        words = shlex.join(["pytest", *map(str, config.invocation_params.args)])
        raise pytest.UsageError(f"--ttmem: {error}; start it as: ttmem run --metal -- {words}") from error
    except _metal.NotTracked as error:
        raise pytest.UsageError(f"--ttmem: {error}; --ttmem-no-metal does without") from error
    if not ttmem.enabled():
        raise pytest.UsageError(
            "--ttmem: tracking is off in this process; "
            + ("TTMEM=0 is set" if os.environ["TTMEM"] == "0" else "start pytest with TTMEM=1")
        )
    try:
        known = _result.read_baseline(options.ttmem_baseline)
        budget = _result.read_budget(options.ttmem_budget)
        ttmem.command("buffers", "--pid", os.getpid())
    except (OSError, ValueError, ttmem.CommandError) as error:
        raise pytest.UsageError(f"--ttmem: {error}") from error
    session = Session(config, known, budget)
    config.pluginmanager.register(session, _SESSION)
    config.pluginmanager.register(_Runner(session), _RUNNER)


class _Test:
    """A running test."""

    def __init__(self, nodeid: str, label: str) -> None:
        self.pid = os.getpid()
        self.nodeid = nodeid
        self.window = _judge.Window(label)
        self.peaks = _judge.Peaks()
        self.rules = _result.Rules()
        self.reports: List[Any] = []  # so far
        self.failures_before = 0  # of allocations, in children that exited before
        self.failed_allocation: Optional[Dict[str, Any]] = None
        self.is_forgotten = False  # some of what devices held when they were closed is not known
        self.expected = False  # it has raised an expected exception, or one that ends it early
        self.result: Optional[Dict[str, Any]] = None
        self.text = ""


class Session:
    """The hooks, while --ttmem is on. With xdist, each worker and the controller have one."""

    def __init__(self, config: Any, known: _result.Known, budget: List[_result.Limit]) -> None:
        self.config = config
        self.known = known
        given = [_result.Limit(text) for text in config.option.ttmem_limit or ()]
        self.limits = _result.limits_of(budget, given)
        self.is_worker = hasattr(config, "workerinput")
        self.report = _result.Report()
        self.is_summarised = False
        self.pid = os.getpid()
        self.serial = 0
        self.test: Optional[_Test] = None
        self.tests: List[_Test] = []  # leaks of their children may become known later
        self.highest: Dict[str, int] = {}  # peak of any test so far, by type
        self.phases = _judge.Phases()
        # xdist's controller runs no tests; all books would wait in its queue for nothing.
        is_controller = not self.is_worker and getattr(config.option, "dist", "no") != "no"
        self.offers = None if is_controller else Offers()
        self.finder = _judge.Finder(
            self.phases, self.offers, bool(config.option.ttmem_strict_close)
        )
        self.finder.ended()  # tells whether there is a daemon
        self.phases.switch(_IDLE)

    # Around a test

    @_hook(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self._begin(item)
        yield
        if os.getpid() == self.pid:
            self.phases.switch(_IDLE)
            self.test = None

    def _begin(self, item: Any) -> _Test:
        self.serial += 1
        label = _judge.label_of(self.serial, item.nodeid)
        self.test = _Test(item.nodeid, label)
        self.test.failures_before = self.finder.failures
        self.tests.append(self.test)
        self.phases.switch(label)
        return self.test

    @_hook(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        if self.test is None:
            return
        if self.test.reports:
            # A plugin reruns the test: what it left before does not belong to this run.
            self.tests.remove(self.test)
            self._begin(item)
        # The process that sets up a test checks it: one forked for it (--forked), or this one.
        self.test.pid = os.getpid()
        try:
            self.test.rules = _result.Rules.from_markers(item.iter_markers("ttmem"))
        except (TypeError, ValueError) as error:
            pytest.fail(f"@pytest.mark.ttmem: {error}", pytrace=False)
        self.test.rules.limits = self.limits

    @_hook(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """What a wider fixture holds is not a leak of the test that happened to be the first."""
        if fixturedef.scope == "function" or self.test is None:
            yield
            return
        with self._not_the_test(self.test, f"{fixturedef.scope} fixture {fixturedef.argname}"):
            yield

    @contextlib.contextmanager
    def _not_the_test(self, test: _Test, what: str) -> Iterator[None]:
        """What is allocated meanwhile belongs to no test, as a leak or in a peak."""
        label, start = self.phases.label, time.time_ns()
        test.peaks.pause()
        self.phases.switch(_judge.label_of(0, what))
        try:
            yield
        finally:
            self.phases.switch(label)
            test.peaks.go_on()
            test.window.holes.append((start, time.time_ns()))

    @_hook(tryfirst=True)
    def pytest_runtest_call(self, item: Any) -> None:
        """Warms up: what the first runs leave, for example in caches, is accepted."""
        test = self.test
        if test is None or not test.rules.warmup:
            return
        if issubclass(getattr(item, "cls", None) or object, unittest.TestCase):
            pytest.fail("@pytest.mark.ttmem: a unittest.TestCase has no warmup=", pytrace=False)
        with self._not_the_test(test, f"warm-up of {item.nodeid}"):
            for _ in range(test.rules.warmup):
                item.runtest()

    @_hook(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: Any) -> Iterator[None]:
        _clear_program_caches(item)
        yield
        if self.test is not None and os.getpid() == self.test.pid:
            self._judge(item, self.test)

    def _judge(self, item: Any, test: _Test) -> None:
        peaks, unknown = test.peaks.places(), ""
        at_peak = self._at_peak(test, peaks)
        # pytest itself would keep the fixtures' values alive until after the report.
        if getattr(item, "funcargs", None):
            item.funcargs.clear()
        if test.expected:
            _forget_exception()
        try:
            leaks = self._left(test)
            if test.is_forgotten:
                unknown = "ttmem: whether a device was closed with live buffers is not known: this test has "
                unknown += "more events than the history keeps (TTMEM_HISTORY)"
        except ttmem.CommandError as error:
            leaks, unknown = [], f"ttmem: what this test left is not known: {error}"
        test.result = _result.judge(item.nodeid, leaks, peaks, test.rules, self.known)
        test.result["at_peak"] = at_peak
        test.result["failed_allocation"] = test.failed_allocation
        if os.getpid() != self.pid:  # a process forked for this test: what it knows ends with it
            test.result["of_process"] = self._of_process(test.failures_before)
        test.text = "\n".join(filter(None, [unknown, _result.text_of(test.result)]))
        if test.result["leaks"]:
            test.text += _owners.describe(test.result["leaks"])
        # An earlier run of the same test may have left some.
        rest = [pair for pair in item.user_properties if not _result.is_property(pair[0])]
        item.user_properties[:] = rest + _result.properties(test.result)

    def _at_peak(self, test: _Test, peaks: _result.Peaks) -> List[Dict[str, Any]]:
        """What was live at peaks that are higher than those of all tests before, or above the limit."""
        peak = _judge.highest(peaks)
        least = {kind: self.highest.get(kind, 0) for kind in peak}
        for kind in _result.over(peaks, test.rules):
            least[kind] = 0
        least = {kind: size for kind, size in least.items() if peak[kind] > size}
        self.highest.update({kind: max(peak[kind], self.highest.get(kind, 0)) for kind in least})
        try:
            return test.peaks.live(least) if least else []
        except ttmem.CommandError:
            return []  # what the test left is asked next, and reported if that fails, too

    def _left(self, test: _Test) -> List[Dict[str, Any]]:
        leaks = self.finder.alive(test.window)
        if leaks:
            # What garbage holds is no leak. To collect it takes longer than all the rest.
            gc.collect()
            gc.collect()
            leaks = self.finder.alive(test.window)
        test.window.end = time.time_ns()
        leaks += self.finder.below(test.window, self.finder.ended())
        test.is_forgotten = self.finder.forgotten > test.window.start
        self.finder.forget(test.window)
        return leaks

    @_hook(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        report, test = outcome.get_result(), self.test
        if test is None:
            return
        test.reports.append(report)
        if report.failed and call.when != "teardown":
            failures = _judge.failed_allocations({os.getpid()})
            if failures and failures[-1]["last_ns"] >= test.window.start:
                test.failed_allocation = {name: failures[-1].get(name) for name in _FAILURE}
        if call.when == "call":
            test.expected = call.excinfo is not None and not report.failed
        if call.when != "teardown":
            return
        if test.result is not None:
            report.ttmem = test.result
        if not test.text:
            return
        main = test.reports[-2] if len(test.reports) > 1 else report
        if main.failed or report.failed or (main.skipped and hasattr(main, "wasxfail")):
            # A test that failed could not clean up, either: its leak is no second failure.
            report.sections.append(("ttmem at teardown", test.text))
            return
        leaked = main if main.when == "call" else report
        leaked.outcome = "failed"
        leaked.longrepr = test.text
        leaked.ttmem_failed = _result.verdict_of(test.result)
        vars(leaked).pop("wasxfail", None)  # an expected failure does not cover a leak

    def pytest_report_teststatus(self, report: Any) -> Any:
        verdict = getattr(report, "ttmem_failed", "")
        if report.failed and verdict:
            return "failed", verdict[0], verdict
        return None

    # After all tests

    @_hook(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        result = getattr(report, "ttmem", None)
        if result is not None:
            if not self.is_worker:  # a worker passes it on
                self.report.add(result.pop("of_process", {}))
            self.report.tests.append(result)

    @_hook(tryfirst=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        if os.getpid() != self.pid:
            return
        gc.collect()
        try:
            rest: Dict[str, Any] = {"remaining": self.finder.remaining(), "late": self._late()}
            rest["problem"] = self.finder.problem
            rest.update(self._of_process())
        except ttmem.CommandError as error:
            rest = {"problem": f"what the session left is not known: {error}"}
        if self.is_worker:
            self.config.workeroutput["ttmem"] = rest
            return
        self.report.add(rest)
        if self.config.option.ttmem_json:
            self.report.write(self.config.option.ttmem_json)
        failed = self.report.late or self.report.problem
        if failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.report.untracked and session.exitstatus in _PASSED:
            session.exitstatus = EXIT_UNTRACKED

    @_hook(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """xdist: a worker has ended. The report of one that crashed is lost."""
        self.report.add(getattr(node, "workeroutput", {}).get("ttmem", {}))

    def _of_process(self, failures_before: int = 0) -> Dict[str, Any]:
        """What is known of this process and its children, however many tests they ran."""
        mine = _judge.failed_allocations({os.getpid()})
        return {
            "used": self.finder.is_used(),
            "untracked": {str(pid): why for pid, why in self.finder.untracked.items()},
            "failures": self.finder.failures - failures_before + sum(row["count"] for row in mine),
        }

    def _late(self) -> List[Dict[str, Any]]:
        """Leaks of exited children that were not known yet when their test was checked."""
        rows = self.finder.ended(everything=True)
        told: Dict[str, Set[Any]] = {}
        for result in self.report.tests if rows else []:
            keys = told.setdefault(result["test"], set())
            keys.update(_judge.key_of(row) for row in _result.all_of(result))
        late: List[Dict[str, Any]] = []
        for test in self.tests if rows else []:
            mine = self.finder.below(test.window, rows)
            mine = [row for row in mine if _judge.key_of(row) not in told.get(test.nodeid, ())]
            late += _result.judge(test.nodeid, mine, {}, test.rules, self.known)["leaks"]
        return late

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self.is_summarised = True
        _result.summarise(terminalreporter, self.report, self.config.option.ttmem_peaks or 0)

    def pytest_unconfigure(self) -> None:
        if os.getpid() == self.pid:
            line = "" if self.is_summarised or self.is_worker else _result.untracked_line(self.report)
            if line:
                print(line, file=sys.stderr)
            self.phases.switch(None)
            if self.offers is not None:
                self.offers.close()


class _Runner:
    """Runs a test as pytest does, but reports it only at its end: leaks are known only after its
    fixtures have ended, and are a failure of the test itself."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Any:
        if self._is_run_by_others(item, nextitem):
            return True
        where = {"nodeid": item.nodeid, "location": item.location}
        item.ihook.pytest_runtest_logstart(**where)
        try:
            runner.runtestprotocol(item, log=False, nextitem=nextitem)
        finally:
            # Also if it was interrupted: report what there is.
            for report in self._session.test.reports if self._session.test else []:
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(**where)
        return True

    def _is_run_by_others(self, item: Any, nextitem: Any) -> bool:
        """Plugins that run tests themselves go first, in whatever order they were loaded."""
        values = {"item": item, "nextitem": nextitem}
        after = False
        for found in reversed(item.ihook.pytest_runtest_protocol.get_hookimpls()):
            if found.plugin is self:
                after = True
            elif after and found.plugin is not runner and not _is_wrapper(found):
                if found.function(*(values[name] for name in found.argnames)) is not None:
                    return True
        return False


def _is_wrapper(found: Any) -> bool:
    return bool(found.hookwrapper or getattr(found, "wrapper", False))


def _forget_exception() -> None:
    """For an expected exception: pytest keeps the last one for a debugger, and its frames keep their
    locals alive."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)


def _clear_program_caches(item: Any) -> None:
    """Programs that ttnn caches for the next call are not leaks. Devices come from fixtures."""
    ttnn = sys.modules.get("ttnn")
    if ttnn is None:
        return
    devices: List[Any] = list((getattr(item, "funcargs", None) or {}).values())
    try:
        devices.append(ttnn.GetDefaultDevice())
    except Exception:  # whatever ttnn raises if there is none
        pass
    cleared: List[Any] = []
    for device in devices:
        # Only for ttnn's own classes: a mock has every attribute.
        if not type(device).__module__.startswith("ttnn") or any(device is c for c in cleared):
            continue
        clear = getattr(device, "clear_program_cache", None)
        clear = clear or getattr(device, "disable_and_clear_program_cache", None)
        if clear is None:
            continue
        cleared.append(device)
        try:
            clear()
        except Exception as error:
            warnings.warn(f"ttmem: a program cache could not be cleared: {error}", stacklevel=1)


class Tracker:
    """What the running test holds; see ttmem_tracker."""

    def __init__(self, session: Session, test: _Test) -> None:
        self._session = session
        self._test = test

    @property
    def phase(self) -> str:
        """The phase of this test's allocations."""
        return f"{self._session.phases.run}/{self._test.window.label}"

    def buffers(self) -> List[Dict[str, Any]]:
        """The test's live buffers, including its children's; largest first."""
        return self._session.finder.alive(self._test.window)

    def peak(self) -> Dict[str, int]:
        """For each type the peak on one device so far, above what was held before the test."""
        return self._test.peaks.now()

    def allow(self, *patterns: str) -> None:
        """Like the marker's allow=, for what is known only when the test runs."""
        self._test.rules.add_allowed(list(patterns))

    def check(self) -> None:
        """Fails the test at once if it holds anything that is not allowed."""
        gc.collect()
        left = [leak for leak in self.buffers() if not self._test.rules.allows(leak)]
        if left:
            pytest.fail(f"ttmem: {len(left)} buffers are alive here\n{_judge.table(left)}", pytrace=False)


def _session_of(request: Any) -> Session:
    session: Optional[Session] = request.config.pluginmanager.get_plugin(_SESSION)
    if session is None:
        pytest.skip("needs --ttmem")
    return session


@pytest.fixture
def ttmem_tracker(request: Any) -> Tracker:
    """What this test holds so far: buffers(), peak(), check(), allow(...), phase."""
    session = _session_of(request)
    assert session.test is not None
    return Tracker(session, session.test)


@pytest.fixture(scope="session")
def ttmem_report(request: Any) -> _result.Report:
    """Peaks and leaks of finished tests; with xdist, of this worker."""
    return _session_of(request).report
