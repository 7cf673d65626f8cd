# SPDX-License-Identifier: Apache-2.0
"""A scene of a transcript: an empty folder, programs that are started one by one, and what can be done with them.

Each method that begins with "do_" is a verb of the transcripts; its docstring is the manual.
"""

import contextlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from otlp import Collector, metric_lines
from prometheus import Prometheus
from settle import settle

HERE = Path(__file__).resolve().parent
SUPPORT = HERE.parent / "integration"
sys.path[:0] = [str(SUPPORT), str(SUPPORT / "support")]
from unit import Unit, out_of_the_way  # noqa: E402

PLACE = Path("/mnt/scene")
LIMIT = 240  # seconds; ends a hang and judges nothing
PORT = 5392
FIRST_PID = 5000
TTMEM = "/mnt/command/src/cli/ttmem"
LIBRARIES = "/mnt/library/src/lib"


def next_pid(pid):
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))


class Scene:
    def __init__(self, keep=False):
        self.keep = keep
        shutil.rmtree(PLACE, ignore_errors=True)
        shutil.copytree(HERE / "inputs", PLACE)
        subprocess.run(["chmod", "-R", "go=", PLACE / "history"], check=True)
        shutil.copy("/mnt/worker", PLACE)
        for name in ("runtime", "shm", "sys", "dev"):
            (PLACE / name).mkdir(mode=0o700)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(PLACE), "LC_ALL": "C.UTF-8", "TZ": "UTC",
            "XDG_RUNTIME_DIR": f"{PLACE}/runtime",
            "TTMEM_SOCKET": "none", "TT_ALLOC_SERVER_SOCKET": f"{PLACE}/old", "TTMEM_SHM_DIR": f"{PLACE}/shm",
            "TTMEM_SYS_ROOT": f"{PLACE}/sys", "TTMEM_DEV_ROOT": f"{PLACE}/dev", "DEBUGINFOD_URLS": "",
        }  # fmt: skip
        self.processes = {}
        self.screens = {}
        self.collector = self.prometheus = self.unit = None
        self.expected = []  # what the next step may print; nothing while it is written
        self.is_live = False
        self.next = FIRST_PID

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for screen in self.screens.values():
            screen.close()
        for server in filter(None, (self.collector, self.prometheus, self.unit)):
            server.close()
        for process in self.processes.values():
            process.kill()
            process.communicate()
        # A keeper outlives its daemon. This is the first process of a namespace in which all others are the scene's.
        assert os.getpid() == 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()

    def step(self, line):
        if os.environ.get("TTMEM_GOLDEN_TRACE"):
            print("+", line, file=sys.stderr)
        verb, _, rest = line.partition(" ")
        return getattr(self, "do_" + verb.replace("-", "_"))(rest) or []

    def start(self, name, command, **options):
        """Starts a process with the next round pid, so that pids are the same in every run."""
        self.is_live = True
        self.next += 100
        for _ in range(100):
            next_pid(self.next)
            process = subprocess.Popen(command, cwd=PLACE, **options)
            if process.pid == self.next:
                break
            process.kill()  # another process was quicker
            process.wait()
        assert process.pid == self.next, "another process keeps the pid"
        self.processes[name] = process
        return process

    def run(self, words, **env):
        done = subprocess.run(
            words, cwd=PLACE, env={**self.env, **env}, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT
        )
        return self.shown(done.stdout, done.stderr, done.returncode)

    def shown(self, out, errors, code):
        lines = settle(out, self.is_live) + [f"! {line}".rstrip() for line in settle(errors, self.is_live)]
        return lines + ([f"[{code}]"] if code else [])

    def do_ttmem(self, rest):
        """ttmem ARGUMENT...: standard output, then standard error with "!", then the exit code unless it is 0."""
        words = shlex.split(rest)
        env = {}
        while words and "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            env[name] = value
        self.is_live |= words[:1] in (["run"], ["selftest"])
        next_pid(self.next + 50)
        return self.run([TTMEM, *words], **env)

    def do_options(self, rest):
        """options COMMAND: the options that --help lists, without their explanations."""
        text = subprocess.run([TTMEM, rest, "--help"], env=self.env, capture_output=True, text=True, check=True).stdout
        return [" ".join(re.findall(r"^ +((?:-\w, )?--[\w-]+\S*(?: [A-Z[][^ ]*)?)", text, re.M))]

    def do_begin(self, rest):
        """begin NAME ARGUMENT...: starts a ttmem that goes on until "finish NAME"."""
        name, *words = shlex.split(rest)
        self.start(name, [TTMEM, *words], env=self.env, stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)  # fmt: skip

    def do_follows(self, rest):
        """follows NAME: until a ttmem that was begun follows a process; it sees the next processes from their start."""
        folder = Path(f"/proc/{self.processes[rest].pid}/fd")

        def is_pidfd(file):
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                return "pidfd" in os.readlink(file)

        while not any(map(is_pidfd, folder.iterdir())):
            time.sleep(0.02)

    def do_hear(self, rest):
        """hear NAME TEXT: the output of a ttmem that was begun, up to the next line with this text."""
        name, _, text = rest.partition(" ")
        heard = [b""]
        while text not in heard[-1].decode() and (line := self.processes[name].stdout.readline()):
            heard.append(line)
        return settle(b"".join(heard), self.is_live)

    def do_finish(self, rest):
        """finish NAME: its output, after SIGINT if it still runs."""
        process = self.processes.pop(rest)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=LIMIT)
        return self.shown(out, errors, process.returncode)

    def do_screen(self, rest):
        """screen NAME COLUMNSxROWS ARGUMENT...: starts a ttmem on a terminal of that size."""
        from terminal import Terminal

        name, size, *words = shlex.split(rest)
        next_pid(self.next + 50)
        self.screens[name] = Terminal([TTMEM, *words], self.env, *size.split("x"), folder=PLACE)

    def do_story(self, rest):
        """story SECONDS: the incidents of "ttmem demo", without sizes and pids and in alphabetical order."""
        from terminal import Terminal

        next_pid(self.next + 50)
        screen = self.screens["story"] = Terminal([TTMEM, "demo", "--keep", "--seconds", rest], self.env, 100, 60)
        events = "double free", "failed alloc", "killed -9", "most of it"
        screen.wait(lambda text: all(event in text for event in events))
        lines = screen.text().split("+---")[0].splitlines()
        lines = [re.sub(r"(?<!-)\d[\d.]*( [KMG]iB)?", "*", line).rstrip() for line in lines]
        self.do_leave("story")
        return [lines[0], *sorted(filter(None, lines[1:]))]

    def do_press(self, rest):
        """press NAME KEY...: keys, as tmux calls them."""
        name, *keys = rest.split()
        self.screens[name].press(*keys)

    def do_look(self, rest):
        """look NAME: the screen, as soon as it is as expected; while a transcript is written, as soon as it stands still."""
        end, shown = time.monotonic() + LIMIT / 4, []
        while time.monotonic() < end:
            before, shown = shown, self.picture(rest)
            if shown in self.expected:
                break
            if not self.expected and shown == before and shown and "reading..." not in str(shown):
                break
            time.sleep(0.05 if self.expected else 1)
        return shown

    def picture(self, name):
        from terminal import masker

        lines = masker()(self.screens[name].lines())
        return settle("\n".join(lines).rstrip().encode(), self.is_live)

    def do_leave(self, rest):
        """leave NAME: presses q, and waits for the end of what is on this screen."""
        screen = self.screens.pop(rest)
        screen.press("q")
        code = screen.exit_code()
        screen.close()
        return [f"[{code}]"] if code else []

    def do_sleep(self, rest):
        """sleep SECONDS: only while inputs are made."""
        time.sleep(float(rest) if self.keep else 0)

    def do_set(self, rest):
        """set NAME=VALUE: for all programs from here on."""
        name, _, value = rest.partition("=")
        self.env[name] = value

    def do_player(self, rest):
        """player NAME [VARIABLE=VALUE]...: a process that makes calls of the library, see tests/programs/player.c."""
        name, *settings = shlex.split(rest)
        program = PLACE / name
        shutil.copy("/mnt/library/tests/programs/player", program)
        env = {**self.env, "TTMEM": "1", "TTMEM_STACKS": "off", "LD_LIBRARY_PATH": LIBRARIES}
        env.update(setting.split("=", 1) for setting in settings)
        self.start(name, [f"./{name}"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do_worker(self, rest):
        """worker NAME [VARIABLE=VALUE]... [ARGUMENT]...: starts worker.c, and waits until it waits."""
        name, *words = shlex.split(rest)
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        words = [word for word in words if "=" not in word]
        env = {**self.env, "TTMEM": "1", **settings}
        process = self.start(name, ["./worker", *words, "wait"], env=env, stdin=subprocess.PIPE)
        while Path(f"/proc/{process.pid}/wchan").read_text() not in ("pipe_read", "anon_pipe_read"):
            time.sleep(0.01)

    def do_old(self, rest):
        """old NAME SIZE: a client of the allocation server's protocol with messages of SIZE bytes, see oldclient.py."""
        name, size = rest.split()
        shutil.copy(HERE / "oldclient.py", PLACE)
        command = ["/usr/bin/python3", "-B", "oldclient.py", f"{PLACE}/old", size]
        self.start(name, command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do_play(self, rest):
        """play NAME CALL[; CALL]...: lets a player or an old client make calls, waits for each and prints its answer."""
        name, _, calls = rest.partition(" ")
        process, said = self.processes[name], []
        for call in calls.split(";"):
            process.stdin.write(call.strip() + "\n")
            process.stdin.flush()
            while (line := process.stdout.readline()) not in ("ok\n", "unknown\n", ""):
                said.append(line.rstrip("\n"))
        return settle("\n".join(said).encode(), self.is_live)

    def do_kill(self, rest):
        """kill NAME: with SIGKILL."""
        process = self.processes.pop(rest)
        process.kill()
        process.wait()

    def do_end(self, rest):
        """end NAME: lets a player end by itself."""
        process = self.processes.pop(rest)
        process.stdin.close()
        process.wait(timeout=LIMIT)

    def do_ttmemd(self, rest):
        """ttmemd ARGUMENT...: starts the daemon; returns when it serves."""
        words = shlex.split(rest)
        self.state = Path(words[words.index("--state") + 1]) if "--state" in words else PLACE / "state"
        self.env["TTMEM_SOCKET"] = f"{PLACE}/socket"
        return self.start_daemon("ttmemd", "daemon", PLACE, PORT, ["--state", str(self.state), *words], self.env)

    def do_take_over(self, rest):
        """take-over ARGUMENT...: kills the daemon, and starts its successor; keeper: yes."""
        if daemon := self.processes.pop("ttmemd", None):
            daemon.kill()
            daemon.wait(timeout=LIMIT)
        words = ["--state", str(self.state), *shlex.split(rest)]
        return self.start_daemon("ttmemd", "successor", PLACE, PORT, words, self.env)

    def do_systemd(self, _):
        """systemd: starts all following daemons as systemd does, with sockets and stored descriptors."""
        self.unit = Unit(PLACE)

    def do_stored(self, _):
        """stored: the names of the descriptors that systemd keeps for the daemon, without times and inodes."""
        return sorted(re.sub(r"\.\w+", ".*", name) for name in self.unit.names())

    def do_host(self, rest):
        """host NAME PORT PROCESS...: a ttmemd with everything of its own, which sees only these processes."""
        name, port, *names = rest.split()
        folder = PLACE / name
        (folder / "proc").mkdir(parents=True)
        for pid in (str(self.processes[one].pid) for one in names):
            (folder / "proc" / pid).symlink_to(f"/proc/{pid}")
        env = {**self.env, "TTMEM_PROC_ROOT": str(folder / "proc")}
        return self.start_daemon(name, "daemon", folder, int(port), ["--state", str(folder / "state")], env)

    def start_daemon(self, name, role, folder, port, words, env):
        reading, low = os.pipe()
        writing = out_of_the_way(low)
        os.close(low)
        command = [
            f"/mnt/{role}/src/daemon/ttmemd", "--socket", f"{folder}/socket", "--legacy-socket", f"{folder}/old",
            "--http", f"127.0.0.1:{port}", "--keeper", "no", "--config", "none",
            "--log", f"{folder}/log", "--ready-fd", str(writing), *words,
        ]  # fmt: skip
        command, env, fds = self.unit.start(command, env) if self.unit else (command, env, [])
        self.start(name, command, env=env, pass_fds=[writing, *fds], stdin=subprocess.DEVNULL)
        os.close(writing)
        ready = os.read(reading, 1)
        os.close(reading)
        while ready == b"\n" and not self.is_serving(port):  # another thread begins with it
            time.sleep(0.01)
        # A keeper that is still starting could get the pid of the next process.
        while ready == b"\n" and "yes" in words and not self.has_keeper():
            time.sleep(0.01)
        return [] if ready == b"\n" else ["it did not start", *self.do_show(folder / "log")]

    def do_stop(self, _):
        """stop: ends the daemon, and prints its log."""
        process = self.processes.pop("ttmemd")
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=LIMIT)
        return self.do_show("log") + ([f"[{code}]"] if code else [])

    def has_keeper(self):
        for path in Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):  # it has exited
                if path.read_text() == "ttmem-keeper\n":
                    return True
        return False

    def is_serving(self, port):
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    def token(self):
        return {"Authorization": "Bearer " + (self.state / "http-token").read_text().strip()}

    def fetch(self, path, token):
        """A path may begin with the port of a host, which is asked without a token."""
        port, _, path = path.partition("/")
        connection = http.client.HTTPConnection("127.0.0.1", int(port or PORT), timeout=LIMIT)
        connection.request("GET", "/" + path, headers=self.token() if token and not port else {})
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()

    def do_get(self, rest, token=True):
        """get [PORT]PATH: a document of the daemon's HTTP, with the token; of the host at PORT, without a token."""
        status, kind, body = self.fetch(rest, token)
        return [f"{status} {kind}", *settle(body, self.is_live)]

    def do_get_open(self, rest):
        """get-open PATH: without the token."""
        return self.do_get(rest, token=False)

    def do_queries(self, rest):
        """queries FILE: each metric that the file names, and how many series of it there are."""
        found = Counter(re.findall(rb"^(\w+)[ {]", self.fetch("/metrics", True)[2], re.M))
        return [f"{name} {found[name.encode()]}" for name in (PLACE / rest).read_text().split()]

    def do_ask(self, rest):
        """ask PATH: the same document over the daemon's unix socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(LIMIT)
            connection.connect(f"{PLACE}/socket")
            connection.send(f"GET {rest} HTTP/1.1\r\n\r\n".encode())
            head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            while len(body) < int(re.search(rb"Content-Length: (\d+)", head)[1]):
                body += connection.recv(65536)
        return [head.decode().splitlines()[0], *settle(body, self.is_live)]

    def do_collector(self, _):
        """collector: from here on something listens where "ttmemd --otlp http://127.0.0.1:4318" pushes to."""
        self.collector = Collector()

    def do_prometheus(self, rest):
        """prometheus [CLUSTER/]HOST:PORT...: listens at 127.0.0.1:9090, and has the metrics of these."""
        if self.prometheus:
            self.prometheus.close()
        self.prometheus = Prometheus(rest.split())

    def do_asked(self, _):
        """asked: the requests that the Prometheus has got since this was last asked."""
        return self.prometheus.take_asked()

    def do_metrics(self, _):
        """metrics: those of a push that began after this step."""
        taken = self.collector.take_metrics(LIMIT)
        return settle("\n".join(metric_lines(taken)).encode(), True) if taken else ["waited in vain"]

    def do_records(self, rest):
        """records COUNT: the next so many incidents that are pushed, in alphabetical order, and where they are from."""
        taken = self.collector.take_records(int(rest), LIMIT)
        return settle(json.dumps(taken).encode(), True) if taken else ["waited in vain"]

    def do_pytest(self, rest):
        """pytest OPTION...: suite.py, with the plugin of the Python package."""
        shutil.copy(HERE / "suite.py", PLACE)
        self.is_live = True
        next_pid(self.next + 50)
        command = ["/usr/bin/python3", "-B", "-m", "pytest", "-p", "no:cacheprovider", "-p", "ttmem.pytest_plugin"]
        return self.run([*command, "--no-header", "-q", *shlex.split(rest), "suite.py"], TTMEM_COMMAND=TTMEM,
                        PYTHONPATH="/mnt/python", LD_LIBRARY_PATH=LIBRARIES, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # fmt: skip

    def do_stream(self, rest):
        """stream PATH: the kind of the first message that a page gets, and its keys."""
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=LIMIT)
        connection.request("GET", rest, headers=self.token())
        answer, lines = connection.getresponse(), []
        while len(lines) < 2 and (line := answer.readline().decode()):
            line = line.rstrip("\n")
            if line.startswith("event: "):
                lines.append(line)
            elif line.startswith("data: "):
                lines.append(" ".join(sorted(json.loads(line[6:]))))
        connection.close()
        return [f"{answer.status}", *lines]

    def do_wait(self, rest):
        """wait [PORT]PATH [!]TEXT: until the document has this text, or has it no more."""
        path, _, text = rest.partition(" ")
        deadline = time.monotonic() + LIMIT
        while (text.removeprefix("!").encode() in self.fetch(path, True)[2]) == text.startswith("!"):
            if time.monotonic() > deadline:
                return ["waited in vain"]
            time.sleep(0.02)
        return []

    def do_until(self, rest):
        """until [!]WORD STEP: repeats a step, and prints nothing, until its output has this word or has it no more."""
        word, _, step = rest.partition(" ")
        deadline = time.monotonic() + LIMIT
        while (word.removeprefix("!") in "\n".join(self.step(step))) == word.startswith("!"):
            if time.monotonic() > deadline:
                return ["waited in vain"]
            time.sleep(0.05)
        return []

    def do_machine(self, rest):
        """machine NAME: the files of a sample machine, see tests/integration/support/machines.py."""
        from machines import SAMPLES

        self.is_live = True
        shutil.rmtree(PLACE / "machine", ignore_errors=True)
        self.env.update(SAMPLES[rest](PLACE / "machine").env())

    def do_input(self, rest):
        """input PATH: a file of the repository."""
        shutil.copy(HERE.parents[1] / rest, PLACE)

    def do_tables(self, rest):
        """tables FOLDER: the rows of all SQLite files there, and the names of the other files."""
        lines = []
        for path in sorted(path for path in (PLACE / rest).rglob("*") if path.is_file()):
            lines.append(str(path.relative_to(PLACE)))
            if path.suffix in (".db", ".sqlite"):
                with contextlib.closing(sqlite3.connect(path)) as database:
                    lines += [line for line in database.iterdump() if not line.startswith(("BEGIN", "COMMIT"))]
        return settle("\n".join(lines).encode(), self.is_live)

    def do_show(self, rest):
        """show FILE: a file that a program has written."""
        return settle((PLACE / rest).read_bytes(), self.is_live)

    def do_keep(self, rest):
        """keep FILE [NAME]: with --keep, an input for the other transcripts; a folder with all its files."""
        source, _, name = rest.partition(" ")
        copy = HERE / "inputs" / (name or source)
        if self.keep and (PLACE / source).is_dir():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(PLACE / source, copy)
        elif self.keep:
            shutil.copyfile(PLACE / source, copy)
