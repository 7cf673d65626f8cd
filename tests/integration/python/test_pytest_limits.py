# SPDX-License-Identifier: Apache-2.0
"""pytest --ttmem-limit: what no test may hold more of."""

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
    assert done.code == 4 and "need --ttmem" in done.text
