# SPDX-License-Identifier: Apache-2.0
"""The documents are consistent: link targets, commands and options exist."""

import re

import pytest

from conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MANUALS = sorted(ROOT.glob("docs/man/*.scd"))


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    for target in re.findall(r"\]\(([^)#\s]*(?:#[^)\s]*)?)\)", page.read_text()):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        where = (page.parent / path) if path else page
        assert where.exists(), target
        if anchor and where.suffix == ".md":
            assert anchor in anchors(where), target


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text()
    for page in ROOT.glob("docs/*.md"):
        assert page.name == "README.md" or f"({page.name}" in index, page.name


def test_commands_and_options(world):
    """ttmem COMMAND --option, wherever it stands."""
    commands = set(re.findall(r"^  ([a-z]+) +\S", world.text("--help"), re.M))
    options = {}
    for page in [*PAGES, *MANUALS]:
        text = page.read_text().replace("*", "")
        for command, rest in re.findall(r"\bttmem ([a-z]+)\b([^\n`|\"]*)", text):
            if command not in commands:
                continue  # a sentence about ttmem
            if command not in options:
                helped = world.text(command, "--help")
                options[command] = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", helped))
            used = re.split(r" -- |[;(]", rest)[0]
            for option in re.findall(r"(?<=\s)(--[a-z][a-z-]*)", used):
                known = options[command] | {"--help"}
                assert option in known, f"{page.name}: ttmem {command} {option}"
    assert len(options) > 10


def test_pictures_of_terminals_look_the_same_in_any_font():
    """Each run of text has the width of its cells, and what a font may lack is drawn: tools/dev/screenshot.py."""
    for name in ("smi", "top"):
        picture = (ROOT / "docs" / "images" / f"{name}.svg").read_text()
        texts = re.findall(r"<text ([^>]*)>([^<]*)</text>", picture)
        assert len(texts) > 20
        for attributes, text in texts:
            assert "textLength=" in attributes and text.isascii(), text


def test_every_command_has_a_manual(world):
    for command in re.findall(r"^  ([a-z]+) +\S", world.text("--help"), re.M):
        manual = ROOT / "docs" / "man" / f"ttmem-{command}.1.scd"
        assert manual.exists(), command
        text = manual.read_text().replace("*", "").replace("\\", "")
        examples = text.partition("# EXAMPLES\n")[2]
        assert f"ttmem {command}" in examples, f"ttmem-{command}(1) has no example"
        helped = world.text(command, "--help")
        for option in re.findall(r"(?<!\w)(--[a-z][a-z-]*)", helped):
            if option not in ("--help", "--bytes"):
                assert option in text, f"ttmem-{command}(1) does not tell of {option}"
