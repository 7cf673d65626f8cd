# SPDX-License-Identifier: Apache-2.0
"""Draw a terminal for the documentation: text with escape sequences on stdin, SVG on stdout.

    tmux capture-pane -N -e -p | python3 tools/dev/screenshot.py > docs/images/top.svg

Words are placed one by one with explicit lengths, so that columns line up in any font.
"""

import re
import sys
import unicodedata
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 8.4, 17, 12
PLAIN, PAPER = "#d0d0d0", "#16181d"
COLOURS = ["#16181d", "#e05561", "#8cc265", "#d9a343", "#3b6ea8", "#c162de", "#42b3c2", "#d7dae0"]


class Style:
    """The state after the escape sequences so far."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.ink = self.paper = None
        self.bold = self.dim = self.reverse = False

    def apply(self, codes):
        for code in codes:
            if code == 0:
                self.reset()
            elif code in (1, 2, 7):
                setattr(self, {1: "bold", 2: "dim", 7: "reverse"}[code], True)
            elif 30 <= code <= 37:
                self.ink = COLOURS[code - 30]
            elif 40 <= code <= 47:
                self.paper = COLOURS[code - 40]
            elif code == 39:
                self.ink = None
            elif code == 49:
                self.paper = None

    def look(self):
        """(ink, paper, bold, dim)"""
        ink, paper = self.ink or PLAIN, self.paper
        if self.reverse:
            ink, paper = paper or PAPER, ink
        return ink, paper, self.bold, self.dim


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pieces(line, style):
    """(text, look) in order; the style carries over to the next line."""
    for codes, text in re.findall(r"\x1b\[([\d;]*)m|([^\x1b]+)", line.replace("\x0f", "").replace("\x0e", "")):
        if text:
            yield text, style.look()
        else:
            style.apply([int(c or 0) for c in codes.split(";")])


def draw(lines):
    style, wide = Style(), 0
    body = []
    for row, line in enumerate(lines):
        column, top = 0, MARGIN + row * HEIGHT
        for text, (ink, paper, bold, dim) in pieces(line, style):
            x, length = MARGIN + column * WIDTH, columns(text) * WIDTH
            if paper:
                body.append(
                    f'<rect x="{x:.1f}" y="{top}" width="{length:.1f}" height="{HEIGHT}" fill="{paper}"/>'
                )
            looks = f' fill="{ink}"' + ' font-weight="bold"' * bold + ' opacity="0.6"' * dim
            # SVG collapses consecutive blanks.
            for word in re.finditer(r"\S+( \S+)*", text):
                x = MARGIN + (column + columns(text[: word.start()])) * WIDTH
                length = columns(word[0]) * WIDTH
                body.append(
                    f'<text x="{x:.1f}" y="{top + 13}" textLength="{length:.1f}"{looks}>{escape(word[0])}</text>'
                )
            column += columns(text)
        wide = max(wide, column)
    width, height = wide * WIDTH + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}"'
            ' font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
            "<!-- SPDX-License-Identifier: Apache-2.0; made by tools/dev/screenshot.py -->",
            f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>',
            *body,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(draw(sys.stdin.read().rstrip("\n").split("\n")))
