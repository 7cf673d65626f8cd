# SPDX-License-Identifier: Apache-2.0
"""Files for many hosts: checked by promtool, and every query run on a real Prometheus with a real ttmemd."""

import json
import os
import re
import shutil
import subprocess
import urllib.request

import jsonschema
import pytest

import machines
from conftest import LIMIT, ROOT
from test_web_metrics import free_port, need, query
from world import wait_for

FLEET = ROOT / "data" / "fleet"


def promtool(*args):
    need("promtool")
    done = subprocess.run(
        ["promtool", *args], cwd=FLEET, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rules():
    assert "SUCCESS" in promtool("test", "rules", "ttmem.rules.test.yml")


def test_every_alert_has_a_test():
    rules = (FLEET / "ttmem.rules.yml").read_text()
    tests = (FLEET / "ttmem.rules.test.yml").read_text()
    alerts = re.findall(r"- alert: (\w+)", rules)
    assert len(alerts) >= 5
    for alert in alerts:
        assert f"alertname: {alert}\n" in tests, alert


def test_recorded_names_follow_the_custom():
    """level:metric:operation; and the labels of a level are those that it says."""
    rules = (FLEET / "ttmem.rules.yml").read_text()
    for name, expression in re.findall(r"- record: (\S+)\n +expr: (?:\|\n)?([^-]*)", rules):
        assert re.fullmatch(r"[a-z_]+:ttmem_[a-z0-9_]+:(sum|ratio|increase1h)", name), name
        labels = "(cluster, site, type)" if name.startswith("cluster_site:") else "(cluster, job, instance"
        assert labels in expression, name


def test_commands_in_alert_texts_exist(ttmemd):
    """The commands in their texts exist, with those options."""
    ttmemd.start()
    rules = (FLEET / "ttmem.rules.yml").read_text()
    commands = re.findall(r"ttmem (?:leaks|smi|buffers|growth|doctor)[^,\"]*", rules)
    assert len(commands) == 7
    for command in commands:
        plain = re.sub(r"\{\{ (if|else|end).*?\}\}", "", command)
        words = re.sub(r"\{\{.*?\}\}", "1", plain).split()[1:]
        shown = ttmemd.run(*words)
        assert shown.returncode in (0, 1) or words == ["doctor"], (words, shown.stderr)


def test_settings(tmp_path):
    promtool("check", "config", "prometheus.yml")
    # Debian's Prometheus cannot ask Kubernetes; what is done with the answer can be checked.
    text = (FLEET / "kubernetes.yml").read_text()
    found = "kubernetes_sd_configs:\n      - role: pod\n"
    assert found in text
    (tmp_path / "kubernetes.yml").write_text(text.replace(found, "static_configs: [{targets: ['a:1']}]\n"))
    promtool("check", "config", str(tmp_path / "kubernetes.yml"))
    # The third file needs the daemons' token.
    for name in ("sites.yml", "targets.json"):
        shutil.copy(FLEET / name, tmp_path)
    (tmp_path / "http-token").write_text("0123456789abcdef")
    promtool("check", "config", str(tmp_path / "sites.yml"))
    assert "job_name: sites-of-ttmem\n" in (tmp_path / "sites.yml").read_text()  # no second "up" of a host
    jobs = re.findall(r"job_name: (\S+)", (FLEET / "prometheus.yml").read_text() + (FLEET / "kubernetes.yml").read_text())
    assert len(jobs) == 2 and all(job.startswith("ttmem") for job in jobs)


def test_yaml_files():
    yaml = pytest.importorskip("yaml")
    (daemons,) = yaml.safe_load_all((FLEET / "ttmem-daemonset.yaml").read_text())
    template = daemons["spec"]["template"]
    scraping = (FLEET / "kubernetes.yml").read_text()
    names = [name for name in template["metadata"]["annotations"] if name.startswith("ttmem/")]
    assert names
    for name in names:
        assert "annotation_" + name.replace("/", "_") in scraping
    (container,) = template["spec"]["containers"]
    known = {volume["name"] for volume in template["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == known
    assert container["securityContext"]["capabilities"]["add"] == ["SYS_PTRACE", "DAC_READ_SEARCH"]
    compose = yaml.safe_load((FLEET / "compose.yaml").read_text())
    assert (FLEET / compose["services"]["ttmemd"]["build"]["context"]).resolve() == ROOT
    yaml.safe_load(scraping)


def fields(**known):
    """An object of Kubernetes: a member that the published interface does not have is a mistake in ours."""
    return {"type": "object", "additionalProperties": False, "properties": known}


def many(item):
    return {"type": "array", "minItems": 1, "items": item}


TEXT, NUMBER, YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
WORDS = {"type": "object", "additionalProperties": TEXT}
PROBE = fields(
    httpGet=fields(path=TEXT, port={"type": ["string", "integer"]}, httpHeaders=many(fields(name=TEXT, value=TEXT))),
    initialDelaySeconds=NUMBER, periodSeconds=NUMBER, timeoutSeconds=NUMBER,
    successThreshold=NUMBER, failureThreshold=NUMBER,
)  # fmt: skip
CONTAINER = fields(
    name=TEXT, image=TEXT, imagePullPolicy={"enum": ["Always", "Never", "IfNotPresent"]},
    command=many(TEXT), args=many(TEXT), env=many(fields(name=TEXT, value=TEXT)),
    ports=many(fields(name={**TEXT, "maxLength": 15}, containerPort=NUMBER, hostPort=NUMBER, protocol=TEXT)),
    livenessProbe=PROBE, readinessProbe=PROBE, resources=fields(requests=WORDS, limits=WORDS),
    securityContext=fields(
        runAsUser=NUMBER, allowPrivilegeEscalation=YES, readOnlyRootFilesystem=YES, privileged=YES,
        capabilities=fields(add=many(TEXT), drop=many(TEXT)),
    ),
    volumeMounts=many(fields(name=TEXT, mountPath=TEXT, readOnly=YES)),
)  # fmt: skip
PLACE = fields(path=TEXT, type={"enum": ["DirectoryOrCreate", "Directory", "FileOrCreate", "File"]})
POD = fields(
    hostPID=YES, automountServiceAccountToken=YES, nodeSelector=WORDS,
    containers=many(CONTAINER), volumes=many(fields(name=TEXT, hostPath=PLACE)),
)  # fmt: skip
META = fields(name=TEXT, labels=WORDS, annotations=WORDS)
DAEMON_SET = fields(
    apiVersion={"const": "apps/v1"}, kind={"const": "DaemonSet"}, metadata=META,
    spec=fields(selector=fields(matchLabels=WORDS), template=fields(metadata=META, spec=POD)),
)  # fmt: skip


def test_the_manifest_has_only_published_members():
    yaml = pytest.importorskip("yaml")
    manifest = yaml.safe_load((FLEET / "ttmem-daemonset.yaml").read_text())
    jsonschema.Draft202012Validator(DAEMON_SET).validate(manifest)
    template = manifest["spec"]["template"]
    assert manifest["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    assert f"container.apparmor.security.beta.kubernetes.io/{container['name']}" in template["metadata"]["annotations"]


def test_the_daemon_takes_the_arguments_of_the_manifest(build, tmp_path):
    yaml = pytest.importorskip("yaml")
    daemons = yaml.safe_load((FLEET / "ttmem-daemonset.yaml").read_text())
    args = daemons["spec"]["template"]["spec"]["containers"][0]["args"]
    command = [build / "src/daemon/ttmemd", "--config", "none", "--check", *args]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr


def test_the_image_has_what_the_programs_need(build):
    """The libraries that they name are in packages that the Dockerfile names."""
    if not shutil.which("dpkg"):
        pytest.skip("not a Debian")
    text = (FLEET / "Dockerfile").read_text()
    packages = set(re.findall(r"no-install-recommends ([^\n\\]*)", text)[-1].split())
    # In every Debian image.
    packages |= {"libc6", "libstdc++6", "libgcc-s1"}
    needed = set()
    for program in ("src/daemon/ttmemd", "src/cli/ttmem"):
        names = subprocess.check_output(["readelf", "-d", build / program], text=True)
        needed |= set(re.findall(r"NEEDED.*\[(.*)\]", names))
    needed = {one for one in needed if not one.startswith(("libttmem", "ld-linux", "libasan", "libubsan", "libtsan"))}
    # Once for all of them: it reads the lists of all packages.
    owners = subprocess.check_output(["dpkg", "-S", *(f"*/{library}" for library in needed)], text=True)
    for library in needed:
        owner = {line.split(":")[0] for line in owners.splitlines() if line.endswith(f"/{library}")}
        assert owner & packages, library


def test_no_registry_is_named():
    for file in FLEET.iterdir():
        assert not re.search(r"(docker|ghcr|quay)\.io|registry", file.read_text()), file.name


def go_wrong(player):
    player.play("alloc 0 DRAM 0x900000 5", "free 0 DRAM 0x900000", "free 0 DRAM 0x900000")


@pytest.fixture(scope="module")
def scraped(shared_ttmemd, tmp_path_factory):
    """A daemon with something of everything, and a Prometheus that looks at it with our rules."""
    ttmemd = shared_ttmemd
    machine = machines.Machine(ttmemd.folder / "machine")  # only its card: the processes are real
    machine.card(0, "n150", "wormhole_b0", chip=0xABC)
    ttmemd.start("--http", "127.0.0.1:0", "--fleet", "127.0.0.1:1", env={"TTMEM_SYS_ROOT": str(machine.sys)})
    where = ttmemd.address()
    busy = ttmemd.player(
        "device 0 0xabc wormhole_b0 n150 0 1000000 100000",
        "alloc 0 DRAM 0x1000 400000 weights",
        "alloc 0 L1 0x1000 1000",
    )
    port = prometheus(ttmemd, tmp_path_factory.mktemp("prometheus"), where)
    wait_for(lambda: query(port, "up == 1"), "a first scrape")
    go_wrong(busy)
    ttmemd.player("alloc 0 DRAM 0x2000 7").kill()
    return port


def prometheus(ttmemd, tmp_path, *targets):
    """One with our rules; returns its port."""
    need("prometheus")
    port = free_port()
    shutil.copy(FLEET / "ttmem.rules.yml", tmp_path)
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
        "rule_files: [ttmem.rules.yml]\n"
        "scrape_configs:\n"
        "  - job_name: ttmem\n"
        f"    static_configs: [{{targets: {json.dumps(targets)}, labels: {{cluster: east}}}}]\n"
        "  - job_name: sites-of-ttmem\n"
        "    metrics_path: /metrics/sites\n"
        f"    authorization: {{credentials_file: {ttmemd.state / 'http-token'}}}\n"
        f"    static_configs: [{{targets: {json.dumps(targets)}, labels: {{cluster: east}}}}]\n"
    )
    ttmemd.adopt(
        subprocess.Popen(
            [
                "prometheus", f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}", "--log.level=warn",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
    )  # fmt: skip
    return port


def queries(cluster):
    """(title, query) of each panel, with the dashboard's variables filled in: that cluster, and all of it."""
    dashboard = json.loads((FLEET / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            text = re.sub(r"\$(instance|device)\b", ".*", target["expr"]).replace("$cluster", cluster)
            yield panel["title"], text.replace("$__rate_interval", "30s")


def test_the_dashboard_explains_itself_and_stays_small():
    """Every panel says what it is; none is bound to a host or a data source, or draws ten thousand lines."""
    dashboard = json.loads((FLEET / "grafana-dashboard.json").read_text())
    known = {}
    for variable in dashboard["templating"]["list"]:
        # Each narrows what the next one offers. The fleet's page is on any host of the cluster.
        query = variable["query"]
        narrow = ["cluster"] if variable["name"] == "fleet" else [name for name in known if name != "datasource"]
        assert all(f'{name}=~"${name}"' in query for name in narrow), query
        known[variable["name"]] = variable
    assert list(known) == ["datasource", "cluster", "instance", "device", "fleet"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            continue
        title = panel["title"]
        assert title and panel["description"] and panel["fieldConfig"]["defaults"]["unit"], title
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, title
        for target in panel["targets"]:
            selectors = re.findall(r"\{(.*?)\}", target["expr"])
            assert selectors and all('cluster=~"$cluster", instance=~"$instance"' in s for s in selectors), title
            few = ("topk(", "-topk(", "sum(", "count(", "sum by (type)", "sum by (kind)")
            assert target["expr"].startswith(few), title


def test_every_panel_shows_something(scraped):
    asked = list(queries("east"))
    assert len(asked) > 15
    for title, text in asked:
        assert "$" not in text, title
        wait_for(lambda: query(scraped, text), f"{title}: {text}")
    # Whoever chooses another cluster sees nothing of this one.
    for title, text in queries("west"):
        assert {row["value"][1] for row in query(scraped, text)} <= {"0"}, f"{title}: {text}"
    # The variables are labels that exist.
    dashboard = json.loads((FLEET / "grafana-dashboard.json").read_text())
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\(([\w:]+)(?:\{.*\})?, (\w+)\)", variable["query"])
            assert found[2] in query(scraped, found[1])[0]["metric"]


def test_hosts_that_answer_are_zero_when_all_are_down(ttmemd, tmp_path):
    """Not "no data", neither before the first scrape nor after it."""
    port = prometheus(ttmemd, tmp_path, "127.0.0.1:1", "127.0.0.2:1")
    answer, silent = [text for title, text in queries("east") if title == "Hosts"]
    wait_for(lambda: query(port, 'count(up{job="ttmem"} == 0) == 2'), "two scrapes that fail")
    assert [row["value"][1] for row in query(port, answer)] == ["0"]
    assert [row["value"][1] for row in query(port, silent)] == ["2"]
    # Nor where Prometheus knows of no host.
    for title, text in queries("west"):
        if title == "Hosts":
            assert [row["value"][1] for row in query(port, text)] == ["0"]


def grafana():
    return json.loads((FLEET / "grafana-dashboard.json").read_text())


def test_incidents_are_annotations(scraped, shared_ttmemd):
    go_wrong(shared_ttmemd.players[0])  # they are marked for a minute
    (marks,) = grafana()["annotations"]["list"]
    assert marks["enable"] and marks["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    text = marks["expr"].replace("$instance", ".*").replace("$cluster", "east")
    rows = wait_for(lambda: query(scraped, text), "an incident")
    labels = set(re.findall(r"\{\{(\w+)\}\}", marks["titleFormat"])) | set(marks["tagKeys"].split(","))
    assert labels == rows[0]["metric"].keys()
    wait_for(lambda: {row["metric"]["kind"] for row in query(scraped, text)} >= {"double_free"}, "the double free")


def test_panels_with_hosts_link_to_them(scraped):
    """Every line that has a host in its legend, and every row of a table, opens a page that exists there."""
    linked = 0
    for panel in grafana()["panels"]:
        legends = " ".join(target.get("legendFormat", "") for target in panel.get("targets", ()))
        texts = " ".join(target["expr"] for target in panel.get("targets", ()))
        if "{{instance}}" not in legends and not (panel["type"] == "table" and "(cluster, instance" in texts):
            continue
        (link,) = panel["fieldConfig"]["defaults"]["links"]
        named = set(re.findall(r"\$\{__(?:field\.labels|data\.fields)\.(\w+)\}", link["url"] + link["title"]))
        assert re.match(r"http://\$\{__(field\.labels|data\.fields)\.instance\}/", link["url"]), panel["title"]
        for target in panel["targets"]:
            text = re.sub(r"\$(instance|device|cluster)\b", ".*", target["expr"]).replace("$__rate_interval", "30s")
            rows = wait_for(lambda: query(scraped, text), panel["title"])
            assert all(named <= row["metric"].keys() for row in rows), panel["title"]
        linked += 1
    assert linked >= 14


def test_the_dashboard_links_to_the_fleet_page(scraped):
    """Which host has it, Prometheus knows."""
    (where,) = [one["query"] for one in grafana()["templating"]["list"] if one["name"] == "fleet"]
    name = re.match(r"label_values\((\w+)", where)[1]
    (row,) = wait_for(lambda: query(scraped, name), "the page")
    links = [*grafana()["links"], *(link for panel in grafana()["panels"] for link in panel.get("links", ()))]
    assert len(links) >= 4
    for link in links:
        url = link["url"].replace("${fleet}", row["metric"]["instance"])
        with urllib.request.urlopen(url.split("#")[0] + "api/v1/fleet", timeout=60) as answer:
            assert url.endswith("/#/fleet") and json.load(answer)["schema"] == "ttmem.fleet/1"


def test_legends_of_devices_have_their_unique_id(scraped):
    """Two cards may have had one number, one after the other."""
    for panel in grafana()["panels"]:
        for target in panel.get("targets", ()):
            legend = target.get("legendFormat", "")
            assert ("{{device}}" in legend) == ("{{uid}}" in legend), panel["title"]
            if "{{uid}}" in legend:
                text = re.sub(r"\$(instance|device|cluster)\b", ".*", target["expr"]).replace("$__rate_interval", "30s")
                # A process that declares nothing may have a row without one.
                wait_for(lambda: "0xabc" in [row["metric"].get("uid") for row in query(scraped, text)], panel["title"])


def test_panels_and_alerts_count_the_same_leaks(tmp_path):
    """What a daemon found at its start was never counted up: an increase would not have it. What was before a restart
    is not lost either, and nothing counts twice."""
    leaks = {title: text for title, text in queries("") if "ttmem_processes_leaked_total" in text}
    assert len(leaks) == 2
    series = {  # what was counted, when the daemon started, and what is to be shown
        "start": ("_x5 3x5", "_x5 290x5", 3),
        "later": ("_x5 3x3 5x1", "_x5 290x5", 5),
        "restart": ("0x2 4x2 1x5", "-100000x4 290x5", 5),
        "same": ("1x4 1x5", "-100000x4 290x5", 1),
        "old": ("7x10", "-100000x10", 0),
    }
    case = {
        "interval": "1m",
        "input_series": [
            {"series": f'{name}{{cluster="", job="ttmem", instance="{host}"}}', "values": values}
            for host, both in series.items()
            for name, values in zip(("ttmem_processes_leaked_total", "process_start_time_seconds"), both)
        ],
        "promql_expr_test": [
            {
                "expr": f"round({text})",
                "eval_time": "9m",
                "exp_samples": [{"labels": "{}", "value": sum(row[2] for row in series.values())}]
                if text.startswith("sum(")
                else [{"labels": f'{{instance="{host}"}}', "value": row[2]} for host, row in series.items()],
            }
            for text in leaks.values()
        ],
    }
    (tmp_path / "test.json").write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "test.json"))
    # And the alert asks the same, of another time.
    rules = (FLEET / "ttmem.rules.yml").read_text()
    alert = re.search(r"- alert: TtmemLeakFound\n\s+expr: \|\n\s+\((.*?)\) > 0\n", rules, re.S)[1]
    alert = " ".join(alert.split()).replace("[10m]", "[24h]").replace("< 600", "< 86400")
    for title, text in leaks.items():
        assert alert in re.sub(r"\{.*?\}", "", text), title


def test_smi_of_a_prometheus(shared_ttmemd, scraped):
    """All that it scrapes, in one table."""
    ttmemd = shared_ttmemd
    url = f"http://127.0.0.1:{scraped}/"
    wait_for(lambda: "390.6 KiB" in ttmemd.run("smi", "--prometheus", url).stdout, "the device")
    shown = ttmemd.run("smi", "--prometheus", url)
    assert shown.returncode == 0 and shown.stderr == ""
    (row,) = [line.split() for line in shown.stdout.splitlines() if line.startswith("127.")]
    assert row[1:3] == ["0", "0xabc"] and row[5] == "40" and row[-1] == "2"
    (device,) = ttmemd.json("smi", "--prometheus", url)["devices"]
    assert (device["device"], device["uid"], device["problem"]) == ("0", "0xabc", None)
    assert device["memory"]["DRAM"] == {"used": 400000, "buffers": 1, "capacity": 1000000}
    assert device["memory"]["L1"]["used"] == 1000 and device["memory"]["CB"]["capacity"] is None
    nobody = ttmemd.run("smi", "--prometheus", "http://127.0.0.1:1")
    assert nobody.returncode == 1 and "http://127.0.0.1:1" in nobody.stderr


def test_recorded_rules(scraped):
    rules = re.findall(r"- record: (\S+)", (FLEET / "ttmem.rules.yml").read_text())
    for rule in rules:
        wait_for(lambda: query(scraped, rule), rule)
    (row,) = query(scraped, 'instance_device:ttmem_dram_used:ratio{device="0"}')
    assert float(row["value"][1]) == 0.4
    # One process was killed while it held seven bytes.
    firing = 'ALERTS{alertname="TtmemLeakFound", alertstate="firing"}'
    wait_for(lambda: query(scraped, firing), "the alert")


def test_leaks_of_one_site_are_one_row_of_the_fleet(scraped):
    """The player that was killed, by the line that allocated what it left."""
    (row,) = wait_for(lambda: query(scraped, "cluster_site:ttmem_leaked_bytes:increase1h"), "the recorded series")
    assert row["metric"].keys() == {"__name__", "cluster", "site", "type"} and row["value"][1] == "7"
    assert row["metric"]["site"] not in ("", "other") and row["metric"]["type"] == "DRAM"
