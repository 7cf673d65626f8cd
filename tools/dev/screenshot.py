# SPDX-License-Identifier: Apache-2.0
"""Draw a terminal for the documentation: text with escape sequences on stdin, SVG on stdout.

    tmux capture-pane -N -e -p | python3 tools/dev/screenshot.py > docs/images/top.svg

It looks the same in any font: words are placed one by one and stretched to the width of their cells, and what a
font may lack or draw wider (bars, lines, braille dots, arrows) is drawn as shapes.
"""

import re
import sys
import unicodedata
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 8.4, 17, 12
DIM = ' opacity="0.6"'
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


# Braille: the bit of each dot, by column and row. Lines: which of left, right, up, down meet in the middle.
DOTS = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
LINES = {"─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "rud", "┤": "lud", "┬": "lrd",
         "┴": "lru", "┼": "lrud", "━": "lr", "╌": "lr", "╎": "ud"}  # fmt: skip
SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75, "█": 1}
ARROWS = {"▴": "up", "▲": "up", "▾": "down", "▼": "down", "▸": "right", "▶": "right", "◂": "left", "◀": "left",
          "↑": "up", "↓": "down", "→": "right", "←": "left"}  # fmt: skip


def rectangle(x, y, width, height, looks):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{looks}/>'


def block(cell, x, y, looks):
    """Parts of a cell from below (U+2581 on) or from the left (U+2589 on)."""
    code = ord(cell)
    if cell == "▀":
        return rectangle(x, y, WIDTH, HEIGHT / 2, looks)
    if code < 0x2589:
        part = (code - 0x2580) / 8
        return rectangle(x, y + HEIGHT * (1 - part), WIDTH, HEIGHT * part, looks)
    return rectangle(x, y, WIDTH * (0x2590 - code) / 8, HEIGHT, looks)


def arrow(direction, x, y, looks):
    middle, across, along = (x + WIDTH / 2, y + HEIGHT / 2), WIDTH * 0.4, WIDTH * 0.35
    corners = [(-across, along), (across, along), (0, -along)]  # up
    turn = {"up": lambda p: p, "down": lambda p: (p[0], -p[1]), "right": lambda p: (-p[1], p[0]),
            "left": lambda p: (p[1], p[0])}[direction]  # fmt: skip
    points = " ".join(f"{middle[0] + dx:.1f},{middle[1] + dy:.1f}" for dx, dy in map(turn, corners))
    return f'<polygon points="{points}"{looks}/>'


def shape(cell, x, y, looks):
    """What stands for a character that is not a letter; None: it is text."""
    if "\u2800" <= cell <= "\u28ff":
        bits, step = ord(cell) - 0x2800, HEIGHT / 4
        dots = "".join(
            f"M{x + column * WIDTH / 2 + 0.6:.1f} {y + row * step + 0.8:.1f}h3v2.6h-3z"
            for bit, (column, row) in enumerate(DOTS)
            if bits >> bit & 1
        )
        return f'<path d="{dots}"{looks}/>'
    if "\u2580" <= cell <= "\u2593" and cell != "▐":
        return block(cell, x, y, looks)
    if cell in LINES:
        wide, high, ends = WIDTH / 2, HEIGHT / 2, {"l": (0, 0.5), "r": (0.5, 0.5), "u": (0, 0), "d": (0.5, 0)}
        return "".join(
            rectangle(x + ends[end][0] * WIDTH - 0.5 * (end == "r"), y + high - 0.5, wide + 0.5, 1, looks) if end in "lr"
            else rectangle(x + wide - 0.5, y + (high if end == "d" else 0), 1, high, looks)
            for end in LINES[cell]
        )  # fmt: skip
    if cell in ARROWS:
        return arrow(ARROWS[cell], x, y, looks)
    return None


def cells(text, column, top, looks, dim):
    """Shapes and words of a piece of text that begins at a column."""
    # A bar is one shape: cells side by side would show seams.
    for bar in re.finditer(r"█+|▓+|▒+|░+", text):
        x, shade = MARGIN + (column + columns(text[: bar.start()])) * WIDTH, SHADES[bar[0][0]]
        yield rectangle(x, top, len(bar[0]) * WIDTH, HEIGHT, looks + DIM * dim + f' fill-opacity="{shade}"')
    words = ""
    for cell in re.sub("[█▓▒░]", " ", text):
        x = MARGIN + (column + columns(words)) * WIDTH
        drawn = shape(cell, x, top, looks + DIM * dim)
        if drawn is not None:
            yield drawn
        words += " " if drawn is not None else cell
    # SVG collapses consecutive blanks.
    for word in re.finditer(r"\S+( \S+)*", words):
        x = MARGIN + (column + columns(words[: word.start()])) * WIDTH
        length = columns(word[0]) * WIDTH
        yield (
            f'<text x="{x:.1f}" y="{top + 13}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"'
            f"{looks}{DIM * dim}>{escape(word[0])}</text>"
        )


def draw(lines):
    style, wide = Style(), 0
    body = []
    for row, line in enumerate(lines):
        column, top = 0, MARGIN + row * HEIGHT
        for text, (ink, paper, bold, dim) in pieces(line, style):
            if paper:
                body.append(
                    rectangle(MARGIN + column * WIDTH, top, columns(text) * WIDTH, HEIGHT, f' fill="{paper}"')
                )
            body += cells(text, column, top, f' fill="{ink}"' + ' font-weight="bold"' * bold, dim)
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
