# SPDX-License-Identifier: Apache-2.0
"""docs/limits.md says what the sources and /metrics say."""

import re

import pytest
from conftest import ROOT

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

# Folders whose maxima all have to be in the list, because others can reach them.
LISTED = ("src/daemon", "src/legacy/program", "src/legacy/server", "src/store", "src/web", "kernel", "include/uapi")

# Sizes of texts, settings and buffers that are cut or refused where they are read, derived values, and
# bounds of our own work that nobody sees.
INTERNAL = {
    "ACCESS_ENTRY_MAX",
    "ACCESS_GROUPS_MAX",
    "ADOPT_REFS_MAX",
    "AUTH_HOST_MAX",
    "AUTH_TOKEN_MAX",
    "BOOK_SEARCH_DOUBTFUL_MAX",
    "CONFIG_BYTES_MAX",
    "CONFIG_COMMAND_MAX",
    "CONFIG_FLEET_MAX",
    "CONFIG_GROUP_MAX",
    "CONFIG_HTTP_MAX",
    "CONFIG_PATH_MAX",
    "CONFIG_SOCKET_MAX",
    "EVENT_SIZE_MAX",
    "FOLDER_FILES_MAX",
    "FOLLOW_ENDED_MAX",
    "FOLLOW_EVENTS_MAX",
    "GROUP_PAGES_PAGES_MAX",
    "HOLDER_FIGURE_MAX",
    "JOURNAL_COMM_MAX",
    "JOURNAL_STACK_MAX",
    "JOURNAL_TEXT_MAX",
    "KEEPER_QUEUE_MAX",
    "LINES_MAX",
    "PUSH_ANSWER_MAX",
    "PUSH_ATTRIBUTES_MAX",
    "PUSH_HEADER_MAX",
    "PUSH_URL_MAX",
    "RECORDER_ADDRESS_PAGES_MAX",
    "ROOM_MAX",
    "ROWS_COLUMNS_MAX",
    "ROWS_RAW_MAX",
    "SETTINGS_MAX",
    "STATE_LOCK_LINES_MAX",
    "STORE_LEAK_RAW_MAX",
    "STORE_NUMBER_MAX",
    "STORE_ROWS_TEXT_MAX",
    "STORE_TEXT_MAX",
    "SYMBOLS_PATH_MAX",
    "SYSTEMD_NAMES_MAX",
    "TRACKED_FILE_SIZE_MAX",
    "TURN_MAX",
    "WEB_JOBS_MAX",
}


UNIT_OF_SHIFT = {"10": ("KiB", 1 << 10), "20": ("MiB", 1 << 20), "30": ("GiB", 1 << 30)}


def declared():
    """(constant, what, when it is reached, metric) of each limit in quota.def; metric: "" if nothing is counted."""
    text = (ROOT / "src" / "base" / "quota.def").read_text(encoding="utf-8")
    text = re.sub(r'"\s*"', "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))  # without comments; strings in one piece
    for quota in re.split(r"^QUOTA\(", text, flags=re.M)[1:]:
        name = re.match(r'\w+,\s*(?:"(\w+)"|NULL)', quota)[1]
        metric = name + "_total" if name else ""
        for constant, what, reached in re.findall(r'LIMIT\((\w+),\s*"([^"]*)",\s*"([^"]*)"\)', quota):
            yield constant, what, reached, metric


def rows():
    for line in (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[1].startswith("`"):
            yield cells[1].strip("`"), cells[2], cells[4]


def sources():
    for folder in ("src", "kernel", "include"):
        for path in sorted([*(ROOT / folder).rglob("*.[ch]"), *(ROOT / folder).rglob("*.def")]):
            if not re.search(r"test|fuzz", path.stem):
                yield path


@pytest.fixture(scope="module")
def constants():
    """The expression of each constant, and the file that defines it."""
    found = {}
    for path in sources():
        text = re.sub(r"\\\n", " ", path.read_text(encoding="utf-8"))
        for name, value in re.findall(r"^#\s*define ([A-Z][A-Z0-9_]+)[ \t]+(.+)$", text, re.M):
            found.setdefault(name, (re.sub(r"/\*.*", "", value).strip(), path))
        for name, value in re.findall(r"^\t([A-Z][A-Z0-9_]+) = (\d+),", text, re.M):
            found.setdefault(name, (value, path))
    return found


def number(constants, name):
    """The value of a constant: an expression of integers and other constants."""
    text = re.sub(r"U?INT(?:32|64)_C\((\w+)\)", r"\1", constants[name][0])
    text = re.sub(r"\((?:size_t|uint32_t|uint64_t)\)", "", text)
    text = re.sub(r"\b(\d+|0x[0-9a-fA-F]+)[uUlL]+\b", r"\1", text)
    text = re.sub(r"\b[A-Z][A-Z0-9_]+\b", lambda match: str(number(constants, match[0])), text)
    assert re.fullmatch(r"[\d\sxa-fA-F()<*/+-]+", text), f"{name}: {text}"
    return eval(text.replace("/", "//"))  # noqa: S307: digits and operators only


def listed(name, value):
    """What the list says, in the constant's own unit."""
    amount, _, unit = value.partition(" ")
    if unit == "s":
        return int(amount) * (10**9 if name.endswith("_NS") else 1)
    return int(amount) * UNITS.get(unit, 1)


def test_limits_in_the_list_are_those_of_the_sources(constants):
    checked = 0
    for name, value, _metric in rows():
        assert name in constants, f"{name} is in docs/limits.md and not in the sources"
        assert listed(name, value) == number(constants, name), name
        checked += 1
    assert checked > 100


def test_every_limit_of_what_users_reach_is_in_the_list(constants):
    known = {name for name, _value, _metric in rows()} | INTERNAL
    missing = [
        name
        for name, (_value, path) in constants.items()
        if re.search(r"_(MAX|PER_USER|PER_PEER|PER_MINUTE|BURST)$", name)
        and str(path.relative_to(ROOT)).startswith(LISTED)
        and name not in known
    ]
    assert missing == []
    assert set(constants) >= INTERNAL


def test_declared_limits_are_in_the_list_as_they_are_declared(constants):
    page = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").splitlines()
    listed_rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page if line.startswith("|")]
    checked, missing = 0, []
    for constant, what, reached, metric in declared():
        shift, value = re.search(r"<< (\d+)\)?$", constants[constant][0]), number(constants, constant)
        unit, size = UNIT_OF_SHIFT[shift[1]] if shift else ("", 1)
        shown = f"{value // size} {unit}".strip()
        row = f"| {what} | `{constant}` | {shown} | {reached} | {metric and f'`{metric}`'} |"
        found = [
            cells for cells in listed_rows
            if cells[:4] == [what, f"`{constant}`", shown, reached] and (f"`{metric}`" in cells[4] or not metric)
        ]  # fmt: skip
        if len(found) != 1:
            missing.append(row)
        checked += 1
    assert not missing, "docs/limits.md should have each of these rows once, in a fitting table:\n" + "\n".join(missing)
    assert checked >= 20


def test_metrics_in_the_list_exist(ttmemd):
    ttmemd.start("--http", "127.0.0.1:0", "--otlp", "http://127.0.0.1:9")
    names = set(re.findall(r"^(ttmem_\w+)", ttmemd.fetch("/metrics")[1], re.M))
    wanted = {name for _name, _value, metric in rows() for name in re.findall(r"ttmem_\w+", metric)}
    assert wanted - names == set(), "metrics in docs/limits.md that /metrics lacks"
    described = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    missing = [name for name in sorted(wanted) if f"`{name}`" not in described]
    assert missing == [], "docs/http.md, section Metrics, should describe these"
