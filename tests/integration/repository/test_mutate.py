# SPDX-License-Identifier: Apache-2.0
"""The faults that ./dev mutate puts into the code."""

import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools" / "dev"))

from mutants import described, mutants_of, mutated  # noqa: E402
from mutate import TABLE  # noqa: E402

SOURCE = """\
#define LIMIT (1 + 2) /* a < b */
static const int table[] = {7, 8};

static int sum(const int *values, int count)
{
\tint r = 0, spare[4] = {0};

\tassert(count > 0);
\tfor (int i = 0; i < count; i++) {
\t\tif (values[i] == 5 && i > 1) /* values[i] != 5 */
\t\t\tcontinue;
\t\tr += values[i];
\t\tput("a < b", '+');
\t}
\tfree(values);
\treturn r;
}
"""


def test_every_operator_finds_its_places():
    found = {(mutant.kind, mutant.line, mutant.old.strip(), mutant.new.strip()) for mutant in mutants_of("x.c", SOURCE)}
    assert found == {
        ("number", 6, "0", "1"), ("number", 9, "0", "1"), ("boundary", 9, "<", "<="),
        ("equality", 10, "==", "!="), ("number", 10, "5", "6"), ("logic", 10, "&&", "||"),
        ("boundary", 10, ">", ">="), ("number", 10, "1", "2"),
        ("negation", 10, "values[i] == 5 && i > 1", "!(values[i] == 5 && i > 1)"),
        ("jump", 11, "continue;", "break;"), ("arithmetic", 12, "+=", "-="),
        ("dropped", 12, "r += values[i];", ";"), ("dropped", 13, """put("a < b", '+');""", ";"),
        ("result", 16, "return r;", "return 0;"),
    }  # fmt: skip


def test_a_mutant_changes_one_place_and_no_line_number():
    for mutant in mutants_of("x.c", SOURCE):
        text = mutated(SOURCE, mutant)
        lines = zip(SOURCE.splitlines(), text.splitlines(), strict=True)
        assert [i for i, (old, new) in enumerate(lines, 1) if old != new] == [mutant.line]
        assert "\n" not in described(SOURCE, mutant)


def test_the_integration_tests_of_every_folder_or_file_are_there():
    for place, names in TABLE.items():
        assert (ROOT / "src" / place).is_dir() or list((ROOT / "src").glob(f"{place}*.c")), place
        for name in names:
            assert (ROOT / "tests" / "integration" / name).exists(), name
