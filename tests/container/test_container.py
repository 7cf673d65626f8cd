# SPDX-License-Identifier: Apache-2.0
"""ttmemd in a container, started in each way that data/fleet has, sees the processes of its host."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from conftest import HERE, ROOT, USER, ask, run, wait_for

FLEET = ROOT / "data" / "fleet"
BUILD = Path(os.environ["TTMEM_BUILD"])
CAPABILITIES = (1 << 19) | (1 << 2)  # SYS_PTRACE and DAC_READ_SEARCH


class Player:
    """A program on the host, of a user whom only the host knows."""

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
    """Where any user may run it from."""
    run("cp", BUILD / "tests/programs/player", BUILD / "src/lib/libttmem.so.0", "/tmp")
    return "/tmp/player"


def by_hand():
    """As docs/containers.md says."""
    run(
        "podman", "run", "-d", "--name", "ttmemd", "--pid=host", "--network=host", "--cap-drop=ALL",
        "--cap-add=SYS_PTRACE", "--cap-add=DAC_READ_SEARCH", "-v", "/run/ttmem:/run/ttmem",
        "-v", "/var/lib/ttmem:/var/lib/ttmem", "-v", "/tmp:/tmp", "-v", "/dev/shm:/dev/shm:ro",
        "-v", "/etc/passwd:/etc/passwd:ro", "-v", "/etc/group:/etc/group:ro",
        "--security-opt", "apparmor=unconfined", "localhost/ttmemd", "--keeper", "no",
    )  # fmt: skip
    return lambda: run("podman", "rm", "-f", "-t", "10", "ttmemd")


# What each member of a service means to "podman run". Debian's podman-compose does not know half of them.
MEMBERS = {
    "image": lambda text: [],
    "build": lambda build: [],
    "command": lambda words: [],
    "restart": lambda text: [f"--restart={text}"],
    "pid": lambda text: [f"--pid={text}"],
    "network_mode": lambda text: [f"--network={text}"],
    "user": lambda text: [f"--user={text}"],
    "cap_drop": lambda names: [f"--cap-drop={name}" for name in names],
    "cap_add": lambda names: [f"--cap-add={name}" for name in names],
    "security_opt": lambda options: [f"--security-opt={option}" for option in options],
    "read_only": lambda yes: ["--read-only"] if yes else [],
    "volumes": lambda mounts: [f"--volume={mount}" for mount in mounts],
}


def by_compose():
    services = yaml.safe_load((FLEET / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        options = [word for key, value in service.items() for word in MEMBERS[key](value)]
        image = f"localhost/{service['image']}"
        run("podman", "run", "-d", "--name", name, *options, image, *service.get("command", ()))
    return lambda: run("podman", "rm", "-f", "-t", "10", *services)


def by_manifest():
    """What the DaemonSet makes of a node, but for the network of its own. Debian's "podman play kube" does not
    know hostPID, so here too each member is said in the words of "podman run"; test_fleet.py knows them all."""
    daemons = yaml.safe_load((FLEET / "ttmem-daemonset.yaml").read_text())
    spec = daemons["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    rights = container["securityContext"]
    places = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
    options = [f"--user={rights['runAsUser']}", "--network=host"]
    options += ["--pid=host"] if spec["hostPID"] else []
    options += ["--read-only"] if rights["readOnlyRootFilesystem"] else []
    options += [] if rights["allowPrivilegeEscalation"] else ["--security-opt=no-new-privileges"]
    options += [f"--cap-drop={name}" for name in rights["capabilities"]["drop"]]
    options += [f"--cap-add={name}" for name in rights["capabilities"]["add"]]
    for mount in container["volumeMounts"]:
        mode = "ro" if mount.get("readOnly") else "rw"
        options.append(f"--volume={places[mount['name']]}:{mount['mountPath']}:{mode}")
    run("podman", "run", "-d", "--name", "ttmemd", *options, "localhost/ttmemd", *container["args"])
    (port,) = container["ports"]
    for name in ("livenessProbe", "readinessProbe"):
        probe = container[name]["httpGet"]
        headers = {header["name"]: header["value"] for header in probe["httpHeaders"]}
        assert probe["port"] == port["name"]
        where = f"http://127.0.0.1:{port['containerPort']}"
        answer = wait_for(lambda: ask(probe["path"], where=where, **headers), name)
        assert answer["status"] == "ok"
    return lambda: run("podman", "rm", "-f", "-t", "10", "ttmemd")


def process(pid):
    document = ask("/api/v1/smi") or {"processes": []}
    return next((p for p in document["processes"] if p["pid"] == pid), None)


def leak(pid):
    token = Path("/var/lib/ttmem/http-token").read_text().strip()
    document = ask("/api/v1/leaks", Authorization=f"Bearer {token}")
    return next((p for p in document["processes"] if p["pid"] == pid), None)


def daemon():
    """The pid of the one ttmemd there is."""
    (pid,) = run("pgrep", "-x", "ttmemd").split()
    return pid


def check_rights():
    status = dict(
        line.split(":\t") for line in Path(f"/proc/{daemon()}/status").read_text().splitlines() if ":\t" in line
    )
    assert int(status["CapEff"], 16) == CAPABILITIES
    assert int(status["CapBnd"], 16) == CAPABILITIES


def check_prometheus():
    query = "/api/v1/query?query=ttmem_processes_leaked_total%7Bjob%3D%22ttmem%22%7D%3D%3D2"
    found = wait_for(
        lambda: (ask(query, where="http://127.0.0.1:9090") or {}).get("data", {}).get("result"),
        "a scrape that knows of both",
    )
    assert len(found) == 1


@pytest.mark.parametrize("start", [by_hand, by_compose, by_manifest], ids=lambda start: start.__name__)
def test_it_sees_the_host(program, start):
    # One that the daemon must find, one that comes to it.
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
        for player in (early, late):
            player.kill()
            left = wait_for(lambda: leak(player.pid), f"the leak of {player.pid}")
            (buffer,) = left["buffers"]
            assert (left["how"], buffer["name"], buffer["size"]) == ("died", "weights", 4096)
        # The program's own file is the host's.
        assert "play" in {frame["function"] for frame in buffer["stack"]}
        if start is by_compose:
            check_prometheus()
    finally:
        stop()
    assert not subprocess.run(["pgrep", "ttmem"], capture_output=True, text=True).stdout
