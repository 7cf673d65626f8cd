# SPDX-License-Identifier: Apache-2.0
"""ttmemd in a container, started in each way that data/fleet has, sees the processes of its host."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from common import LIMIT, wait_for
from conftest import HERE, ROOT, USER, ask, fetch, run

FLEET = ROOT / "data" / "fleet"
BUILD = Path(os.environ["TTMEM_BUILD"])
DASHBOARD = BUILD / "web" / "work" / "dist"  # as built by this machine's node
CAPABILITIES = (1 << 19) | (1 << 2)  # SYS_PTRACE and DAC_READ_SEARCH


class Player:
    """A program on the host, run by a user that exists only there."""

    def __init__(self, program, **env):
        self.process = subprocess.Popen(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", program],
            env={"PATH": os.environ["PATH"], "TTMEM": "1", "TTMEM_STACKS": "fp", "LD_LIBRARY_PATH": "/tmp", **env},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.process.stdin.write("alloc 0 DRAM 0x1000 4096 weights\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"
        self.pid = self.process.pid

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def program(folders):
    """A folder from which any user may run it."""
    run("cp", BUILD / "tests/programs/player", BUILD / "src/lib/libttmem.so.0", "/tmp")
    return "/tmp/player"


def by_hand():
    """With the command of docs/containers.md."""
    run(
        "podman", "run", "-d", "--name", "ttmemd", "--pid=host", "--network=host", "--cap-drop=ALL",
        "--cap-add=SYS_PTRACE", "--cap-add=DAC_READ_SEARCH", "-v", "/run/ttmem:/run/ttmem",
        "-v", "/var/lib/ttmem:/var/lib/ttmem", "-v", "/tmp:/tmp", "-v", "/dev/shm:/dev/shm:ro",
        "-v", "/etc/passwd:/etc/passwd:ro", "-v", "/etc/group:/etc/group:ro",
        "--security-opt", "apparmor=unconfined", "localhost/ttmemd", "--keeper", "no",
    )  # fmt: skip
    return lambda: run("podman", "rm", "-f", "-t", "10", "ttmemd")


def by_compose():
    """With Debian's docker-compose, which talks to Podman as if it were Docker."""
    socket = Path("/tmp/engine")
    engine = subprocess.Popen(["podman", "system", "service", "--time=0", f"unix://{socket}"])
    compose = ["docker-compose", "-f", FLEET / "compose.yaml"]
    where = {"DOCKER_HOST": f"unix://{socket}"}

    def stop():
        run(*compose, "down", **where)
        engine.terminate()
        engine.wait()

    try:
        wait_for(socket.is_socket, "the engine")
        run(*compose, "up", "-d", "--no-build", **where)
    except BaseException:
        engine.kill()
        raise
    return stop


def by_manifest():
    """With Debian's "podman play kube", in a network of its own. It supports neither DaemonSets nor hostPID: so the
    template is made into a Pod, and the host's pid namespace is an engine setting."""
    template = yaml.safe_load((FLEET / "ttmem-daemonset.yaml").read_text())["spec"]["template"]
    assert template["spec"]["hostPID"]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    pod["metadata"] = {"name": "ttmemd", **template["metadata"]}
    manifest, settings = Path("/tmp/pod.yaml"), Path("/tmp/pod.conf")
    manifest.write_text(yaml.safe_dump(pod))
    usual = Path(os.environ["CONTAINERS_CONF"]).read_text()
    settings.write_text(usual.replace("[containers]\n", '[containers]\npidns = "host"\n'))
    run("podman", "play", "kube", manifest, CONTAINERS_CONF=settings)
    check_probes(template["spec"]["containers"])
    return lambda: run("podman", "play", "kube", "--down", manifest)


def check_probes(containers):
    """Podman would run a program that the image does not have, so this sends the probes as Kubernetes does."""
    (container,) = containers
    (port,) = container["ports"]
    for name in ("livenessProbe", "readinessProbe"):
        probe = container[name]["httpGet"]
        headers = {header["name"]: header["value"] for header in probe["httpHeaders"]}
        assert probe["port"] == port["name"]
        where = f"http://127.0.0.1:{port['containerPort']}"
        answer = wait_for(lambda: ask(probe["path"], where=where, **headers), name)
        assert answer["status"] == "ok"


def process(pid):
    document = ask("/api/v1/smi") or {"processes": []}
    return next((p for p in document["processes"] if p["pid"] == pid), None)


def leak(pid):
    token = Path("/var/lib/ttmem/http-token").read_text().strip()
    document = ask("/api/v1/leaks", Authorization=f"Bearer {token}")
    return next((p for p in document["processes"] if p["pid"] == pid), None)


def daemon():
    """The pid of the only ttmemd."""
    (pid,) = run("pgrep", "-x", "ttmemd").split()
    return pid


def check_rights():
    status = dict(
        line.split(":\t") for line in Path(f"/proc/{daemon()}/status").read_text().splitlines() if ":\t" in line
    )
    assert int(status["CapEff"], 16) == CAPABILITIES
    assert int(status["CapBnd"], 16) == CAPABILITIES


def check_page():
    """The full dashboard, if it could be built here: then npm's packages are available."""
    if not DASHBOARD.is_dir():
        return
    for path in DASHBOARD.rglob("*.*"):
        name = path.relative_to(DASHBOARD).as_posix()
        assert fetch("/" if name == "index.html" else f"/{name}") == path.read_bytes(), name


def check_prometheus():
    query = "/api/v1/query?query=ttmem_processes_leaked_total%7Bjob%3D%22ttmem%22%7D%3D%3D2"
    found = wait_for(
        lambda: (ask(query, where="http://127.0.0.1:9090") or {}).get("data", {}).get("result"),
        "a scrape that knows of both",
        LIMIT,
    )
    assert len(found) == 1


@pytest.mark.parametrize("start", [by_hand, by_compose, by_manifest], ids=lambda start: start.__name__)
def test_it_sees_the_host(program, start):
    # One process that the daemon must find, one that connects to it.
    early = Player(program, TTMEM_SOCKET="none")
    stop = start()
    try:
        wait_for(lambda: ask("/healthz"), f"an answer at {HERE}")
        late = Player(program)
        for player in (early, late):
            seen = wait_for(lambda: process(player.pid), f"process {player.pid}")
            assert (seen["user"], seen["user_id"], seen["comm"]) == ("tracked", USER, "player")
            assert seen["devices"][0]["memory"]["DRAM"]["used"] == 4096
        check_rights()
        check_page()
        for player in (early, late):
            player.kill()
            left = wait_for(lambda: leak(player.pid), f"the leak of {player.pid}")
            (buffer,) = left["buffers"]
            assert (left["how"], buffer["name"], buffer["size"]) == ("died", "weights", 4096)
        # The program's file is on the host.
        assert "play" in {frame["function"] for frame in buffer["stack"]}
        if start is by_compose:
            check_prometheus()
    finally:
        stop()
    assert not subprocess.run(["pgrep", "ttmem"], capture_output=True, text=True).stdout


def test_debians_own_node_makes_the_same_dashboard(machine):
    """The stage that builds the image has only what Debian 12 has: Node 18 and its npm."""
    if not DASHBOARD.is_dir():
        pytest.skip("the dashboard was not built here: see build/web/work/build.log")
    script = """
        node --version
        cd build-release/web/work
        npm test --silent >&2
        cd dist
        find . -type f -exec sha256sum {} +
    """
    said = run("podman", "run", "--rm", "--network=none", "localhost/ttmemd-build", "sh", "-ec", script)
    version, *sums = said.splitlines()
    assert version.startswith("v18.")
    assert dict(reversed(line.split("  ./")) for line in sums) == {
        path.relative_to(DASHBOARD).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in DASHBOARD.rglob("*.*")
    }
