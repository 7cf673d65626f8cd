# SPDX-License-Identifier: Apache-2.0
"""A real terminal for tests: tmux with its own socket, keys in, screens out."""

import difflib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from conftest import LIMIT
from world import wait_for

SCREENS = Path(__file__).parent / "screens"

CONFIG = """
set -g default-terminal "{term}"
set -g status off
set -s escape-time 0
"""


class Terminal:
    """One program on one screen. Every wait has a generous time-out and no sleep."""

    def __init__(self, command, env, columns=80, rows=24, folder=None, term="tmux-256color"):
        # Paths of sockets must be short, so not below pytest's own folder.
        self.folder = Path(tempfile.mkdtemp(prefix="ttmem-tmux-"))
        config = self.folder / "config"
        config.write_text(CONFIG.format(term=term))
        self.base = ["tmux", "-u", "-S", self.folder / "s", "-f", config]
        # The program's own environment; tmux itself shows UTF-8 whatever the program thinks.
        words = ["env", "-i", *(f"{k}={v}" for k, v in env.items() if k != "TERM"), f"TERM={term}"]
        # A file signals the end: tmux 3.3 sometimes misses the exit of the program.
        self.end = self.folder / "end"
        script = '"$@"; echo $? > "$0.part"; mv "$0.part" "$0"; exec sleep 600'
        line = shlex.join(["sh", "-c", script, str(self.end), *words, *map(str, command)])
        self.tmux(
            "new-session", "-d", "-x", columns, "-y", rows, "-c", folder or self.folder, line
        )  # fmt: skip

    def tmux(self, *args):
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}
        result = subprocess.run(
            [*map(str, self.base), *map(str, args)], env=env, capture_output=True, text=True, timeout=LIMIT
        )
        assert result.returncode == 0, (args, result.stderr)
        return result.stdout

    def press(self, *keys):
        """Names of keys as tmux knows them ("Enter", "Down"), or characters."""
        for key in keys:
            self.tmux("send-keys", "--", key)

    def mouse(self, button, row, column):
        """0 = left, 64 = wheel up, 65 = wheel down. A press and its release at once, as a slow line brings them."""
        self.mouse_events([button] if button >= 64 else [button, 3], row, column)  # 3 = release

    def mouse_events(self, events, row, column):
        """In the old encoding that TERM implies."""
        codes = [code for event in events for code in (27, ord("["), ord("M"), 32 + event, 33 + column, 33 + row)]
        self.tmux("send-keys", "-H", *(f"{code:x}" for code in codes))

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", columns, "-y", rows)

    def lines(self, colours=False):
        text = self.tmux("capture-pane", "-p", *(["-e"] if colours else []))
        return text.split("\n")[:-1]

    def text(self):
        return "\n".join(self.lines())

    def wait(self, what):
        """Waits until a text, or what a function looks for, is on the screen."""
        shown = []

        def look():
            shown[:] = self.lines()
            text = "\n".join(shown)
            return what(text) if callable(what) else what in text

        try:
            wait_for(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n" + "\n".join(shown)) from None
        return shown

    def info(self, name):
        return self.tmux("display-message", "-p", f"#{{{name}}}").strip()

    def exit_code(self):
        """Waits for the end of the program."""
        wait_for(self.end.exists, "its end")
        return int(self.end.read_text())

    def compare(self, name, mask):
        """Waits until the masked screen equals the reviewed file; TTMEM_SCREENS=write rewrites it."""
        path = SCREENS / f"{name}.txt"
        shown = []

        def look():
            shown[:] = [line.rstrip() for line in mask(self.lines())]
            return shown == path.read_text().split("\n")[:-1]

        if os.environ.get("TTMEM_SCREENS") == "write":
            wait_for(lambda: stands_still(self, mask), "a picture that stands still")
            path.write_text("\n".join(line.rstrip() for line in mask(self.lines())) + "\n")
        try:
            wait_for(look, name)
        except AssertionError:
            wanted = path.read_text().split("\n")[:-1]
            difference = "\n".join(difflib.unified_diff(wanted, shown, "reviewed", "shown", lineterm=""))
            raise AssertionError(f"{name} looks otherwise:\n{difference}") from None

    def close(self):
        subprocess.run([*map(str, self.base), "kill-server"], capture_output=True, timeout=LIMIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def stands_still(terminal, mask):
    """Only for writing new files: three equal screens."""
    pictures = []
    for _ in range(3):
        pictures.append(mask(terminal.lines()))
        subprocess.run(["sleep", "0.5"], check=True)
    return pictures[0] == pictures[1] == pictures[2] and "reading..." not in "\n".join(pictures[0])


def masker(*pids):
    """Masks what differs from run to run: pids, times, and the lines of charts."""
    names = {str(pid): f"pid{i}" for i, pid in enumerate(pids)}

    def mask_columns(lines):
        """Pids in the columns that have them; elsewhere the same figures mean something else."""
        ends = []
        for line in lines:
            if re.match(r"[ A-Z0-9+%\u25b4\u25be]+$", line) and re.search(r"PID|THREAD|SIZE", line):
                ends = [found.end() for found in re.finditer(r"(PID|THREAD)[\u25b4\u25be]?", line)]
            for end in ends:
                name = names.get(line[end - 8 : end].strip())
                if name and len(line) > end:
                    line = line[: end - 8] + name.rjust(8) + line[end:]
            yield line

    def mask(lines):
        result = []
        for line in mask_columns(lines):
            for pid, name in names.items():
                line = re.sub(rf"\({pid}\)", f"({name})", line)
                line = re.sub(rf"\b(thread|pid) {pid}\b", rf"\1 {name}", line)
            line = re.sub(r"[\u2800-\u28ff]", " ", line)
            line = re.sub(r"\|[ .:#]*$", "|", line)
            line = re.sub(r"\d\d:\d\d:\d\d$", "hh:mm:ss", line.rstrip())
            line = re.sub(r"\d+ (ms|s|min) ago by", "N ago by", line)
            line = re.sub(r" +\d+ (ms|s|min)(?! ago)\b", lambda match: "T".rjust(len(match[0])), line)
            result.append(line)
        return result

    return mask
