# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem-limit and --ttmem-budget: what no test may hold more of."""

import json

import pytest

from world import check_schema


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_limits_for_all_tests(run_pytest, tmp_path, workers):
    """Of a type, on a device, or of each type; a marker counts instead."""
    path = tmp_path / "result.json"
    done = run_pytest(
        """
        def test_dram():
            clean("short", 65536)

        def test_l1():
            clean("short", 65536, "L1")

        def test_small():
            clean("short", 1000, "L1")
            clean("short", 1000)

        @pytest.mark.ttmem(limit="1M")
        def test_may():
            clean("short", 65536)

        @pytest.mark.ttmem(limit=1)
        def test_may_not():
            clean("short", 10)
        """,
        *workers, "--ttmem-limit", "dram=64000", "--ttmem-limit", "0:L1=1k",
        "--ttmem-limit", "7:L1=0", "--ttmem-limit", "1T", "--ttmem-json", str(path),
    )
    assert done.over == {"test_dram", "test_l1", "test_may_not"} and not done.leaked | done.failed
    assert "held 64.0 KiB of DRAM on device 0, the limit is dram=64000" in done.text
    assert "held 64.0 KiB of L1 on device 0, the limit is 0:L1=1k" in done.text
    document = check_schema(json.loads(path.read_text()))
    found = {test["test"].rpartition("::")[2]: test for test in document["tests"]}
    assert found["test_l1"]["exceeded"] == [
        {"limit": "0:L1=1k", "bytes": 1024, "device": 0, "type": "L1", "held": 65536}
    ]
    assert found["test_l1"]["over"] == {"L1": 65536} and found["test_l1"]["limit"] is None
    assert found["test_may_not"]["exceeded"] == [] and found["test_may"]["over"] == {}


@pytest.mark.parametrize(
    "limit, reason",
    [
        ("DRM=4G", "there is no type"),
        ("DRAM=", "is no size"),
        ("DRAM", "is no size"),
        ("1024:L1=1", "there is no device"),
        ("x:L1=1", "there is no device"),
        ("phase:decode=1", "are for ttmem run"),
        ("0:DRAM:site:f=1", "are for ttmem run"),
    ],
)
def test_a_limit_that_is_none_is_said(run_pytest, limit, reason):
    done = run_pytest("def test_it():\n    pass\n", "--ttmem-limit", limit)
    assert done.code == 4 and reason in done.text


def test_limits_need_the_plugin_s_switch(run_pytest):
    done = run_pytest("def test_it():\n    pass\n", "--ttmem-limit", "1G", ttmem=None)
    assert done.code == 4 and "needs --ttmem" in done.text


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_limits_from_a_budget(run_pytest, tmp_path, workers):
    """What is typed counts instead of the same limit in the file."""
    budget = tmp_path / "budget.json"
    budget.write_text('{"schema": "ttmem.budget/1", "limits": {"DRAM": "1k", "0:L1": 2048, "dram": 1}}')
    done = run_pytest(
        """
        def test_dram():
            clean("short", 5000)

        def test_l1():
            clean("short", 5000, "L1")

        def test_small():
            clean("short", 1000, "L1")
            clean("short", 3000)
        """,
        *workers, "--ttmem-budget", str(budget), "--ttmem-limit", "DRAM=4k",
    )
    assert done.over == {"test_dram", "test_l1"} and not done.leaked | done.failed
    assert "on device 0, the limit is DRAM=4k" in done.text
    assert "on device 0, the limit is 0:L1=2048" in done.text


@pytest.mark.parametrize(
    "content, reason",
    [
        ("{", "line 1"),
        ('{"limits": {}}', "is no budget"),
        ('{"schema": "ttmem.budget/1", "limits": [1]}', "has no limits"),
        ('{"schema": "ttmem.budget/1", "limits": {"DRAM": -1}}', "is no size"),
        ('{"schema": "ttmem.budget/1", "limits": {"L9": 1}}', "there is no type"),
        # Nobody must believe that they are checked.
        ('{"schema": "ttmem.budget/1", "limits": {"phase:decode": 1}}', "are for ttmem run"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(run_pytest, tmp_path, content, reason):
    budget = tmp_path / "budget.json"
    budget.write_text(content)
    done = run_pytest("def test_it():\n    pass\n", "--ttmem-budget", str(budget))
    assert done.code == 4 and reason in done.text


def test_a_budget_that_is_not_there_is_said(run_pytest, tmp_path):
    done = run_pytest("def test_it():\n    pass\n", "--ttmem-budget", str(tmp_path / "none"))
    assert done.code == 4 and "none" in done.text
    done = run_pytest("def test_it():\n    pass\n", "--ttmem-budget", str(tmp_path / "none"), ttmem=None)
    assert done.code == 4 and "needs --ttmem" in done.text
