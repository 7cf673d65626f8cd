# SPDX-License-Identifier: Apache-2.0
"""A suite that no test is in is an error, so that a mistyped name is not a green run."""

import subprocess

from conftest import ROOT


def run_suite(name, folder):
    """Runs tools/dev/run-suite.sh with a meson that only prints what it is called with."""
    program = folder / "meson"
    program.write_text(
        "#!/bin/sh\n"
        'case $1 in introspect) echo \'[{"suite": ["ttmem:unit", "ttmem:unit-recording-read"]}]\' ;; *) echo "$@" ;; esac\n'
    )
    program.chmod(0o755)
    return subprocess.run(
        ["env", f"PATH={folder}:/usr/bin:/bin", "sh", "tools/dev/run-suite.sh", name],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip


def test_a_suite_without_tests_is_an_error(tmp_path):
    result = run_suite("unit-recordin", tmp_path)
    assert (result.returncode, result.stdout) == (1, "no test is in the suite unit-recordin\n")


def test_a_suite_without_tests_beside_others_is_an_error(tmp_path):
    (tmp_path / "meson").write_text("#!/bin/sh\necho '[{\"suite\": [\"ttmem:unit-book\"]}]'\n")
    (tmp_path / "meson").chmod(0o755)

    def check(*names):
        script = '. tools/dev/common.sh; must_have_suites build "$@"'
        return subprocess.run(
            ["env", f"PATH={tmp_path}:/usr/bin:/bin", "sh", "-c", script, "sh", *names],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip

    assert check("unit-book").returncode == 0
    result = check("unit-book", "unit-metal")
    assert (result.returncode, result.stdout) == (1, "no test is in the suite unit-metal\n")


def test_a_suite_has_the_suites_of_its_folders(tmp_path):
    result = run_suite("unit-recording", tmp_path)
    assert result.returncode == 0
    assert "--suite unit-recording-read" in result.stdout
