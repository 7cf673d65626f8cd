# SPDX-License-Identifier: Apache-2.0
"""Pushing to a collector that is slow, strict, broken or an impostor; and the OTEL_ variables."""

import json
import ssl
import subprocess

import pytest

from collector import Collector, attributes, collector, counts  # noqa: F401 (fixture)
from conftest import LIMIT
from world import wait_for

SERVED = ("--http", "127.0.0.1:0")
RARELY = ("--otlp-interval", "1d")


@pytest.fixture
def pushing(ttmemd, collector):
    """A daemon whose first message was taken; metrics come no more, incidents do."""
    ttmemd.start("--otlp", collector.url, *RARELY, *SERVED)
    wait_for(lambda: counts(ttmemd)["sent"] == 1, "a first push")
    return ttmemd


def leak(ttmemd):
    """A process that leaves something behind; its pid as a collector is told it."""
    player = ttmemd.player("alloc 0 DRAM 0x1000 64")
    player.kill()
    return player.pid


def wait_for_counts(daemon, **wanted):
    wait_for(lambda: wanted.items() <= counts(daemon).items(), f"{wanted}")


def pids(collector):
    return [attributes(record)["process.pid"] for record in collector.incidents()]


def test_retry_after_of_the_collector_is_obeyed(ttmemd, collector):
    collector.status = 429
    collector.more_headers = {"Retry-After": "3"}
    ttmemd.start("--otlp", collector.url)
    times = collector.times["/v1/metrics"]
    wait_for(lambda: len(times) >= 2, "a second try")
    # By itself it would come again after a good second.
    assert times[1] - times[0] >= 2.9


def test_a_partial_success_counts_the_rest_as_dropped(pushing, collector):
    collector.body = json.dumps({"partialSuccess": {"rejectedLogRecords": "1"}}).encode()
    leak(pushing)
    wait_for_counts(pushing, partial=1, dropped=1, sent=2)
    # A count above what was sent, or one that is not a number, is ignored.
    collector.body = json.dumps({"partialSuccess": {"rejectedLogRecords": 10**18}}).encode()
    leak(pushing)
    wait_for_counts(pushing, partial=2, dropped=2, sent=3)
    collector.body = json.dumps({"partialSuccess": {"rejectedLogRecords": "-4", "errorMessage": "x"}}).encode()
    leak(pushing)
    wait_for_counts(pushing, partial=2, dropped=2, sent=4)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", id="breaks-off"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (1 << 20), id="giant"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n[[[[", id="no-json"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", id="empty"),
    ],
)
def test_a_malformed_success_answer_is_not_sent_again(pushing, collector, answer):
    collector.raw = {"/v1/logs": answer}
    first = leak(pushing)
    wait_for(lambda: counts(pushing)["sent"] == 2, "the incident")
    collector.raw = {}
    second = leak(pushing)
    wait_for(lambda: second in pids(collector), "the next one")
    assert pids(collector) == [first, second]
    assert counts(pushing)["failed"] == 0


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="hangs-up"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="another-protocol"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", id="only-promises"),
    ],
)
def test_a_broken_http_answer_is_retried(pushing, collector, answer):
    collector.raw = {"/v1/logs": answer}
    pid = leak(pushing)
    wait_for(lambda: counts(pushing)["failed"] >= 1, "a try that fails")
    collector.raw = {}
    wait_for(lambda: counts(pushing)["sent"] == 2, "the incident")
    assert set(pids(collector)) == {pid}
    wait_for(lambda: "works again" in pushing.text(), "the good news")
    assert counts(pushing)["dropped"] == 0
    assert pushing.text().count("cannot push to") == 1


def test_redirects_of_the_collector_are_not_followed(pushing, collector):
    """A key in a header is for one collector, not for whom it names."""
    other = Collector()
    collector.status = 307
    collector.more_headers = {"Location": other.url + "/v1/logs"}
    leak(pushing)
    wait_for(lambda: counts(pushing)["dropped"] == 1, "the drop")
    wait_for(lambda: "it answers 307" in pushing.text(), "the line")
    assert other.asked == 0
    other.close()


def test_queued_incidents_are_sent_before_exit(pushing, collector):
    collector.gate.clear()
    first = leak(pushing)
    wait_for(lambda: collector.asked == 2, "the first on its way")
    second = leak(pushing)
    wait_for(lambda: counts(pushing)["queued"] == 2, "the second behind it")
    pushing.process.terminate()
    collector.gate.set()
    assert pushing.process.wait(LIMIT) == 0
    pushing.process = None
    assert pids(collector) == [first, second]


def test_otlp_counters_start_anew_after_a_restart(ttmemd, collector):
    start = []
    for _ in range(2):
        collector.taken["/v1/metrics"].clear()
        ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s", *SERVED)
        player = ttmemd.player("alloc 0 DRAM 0x1000 64")
        player.kill()
        ttmemd.wait_for_leak(player.pid)
        wait_for(
            lambda: collector.points("ttmem_processes_leaked").get((), {}).get("asInt") == "1",
            "the sum, from nothing",
        )
        row = collector.points("ttmem_processes_leaked")[()]
        start.append(int(row["startTimeUnixNano"]))
        assert start[-1] <= int(row["timeUnixNano"])
        ttmemd.stop()
    assert start[0] < start[1]


def run(*command):
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)


@pytest.fixture
def authority(tmp_path):
    """A certificate that nobody else trusts, for this address."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=collector",
        "-addext", "subjectAltName=IP:127.0.0.1",
    )  # fmt: skip
    return key, certificate


def secure(authority, wants_client=False):
    key, certificate = authority
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if wants_client:
        context.load_verify_locations(certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return Collector(context)


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_CERTIFICATE", "SSL_CERT_FILE"])
def test_a_configured_certificate_authority_is_trusted(ttmemd, authority, variable):
    collector = secure(authority)
    ttmemd.start("--otlp", collector.url, env={variable: str(authority[1])})
    wait_for(lambda: collector.taken["/v1/metrics"], "a push")
    collector.close()


def test_nothing_is_sent_to_an_untrusted_certificate(ttmemd, authority):
    collector = secure(authority)
    ttmemd.start("--otlp", collector.url, *SERVED)
    wait_for(lambda: counts(ttmemd)["failed"] >= 1, "a try")
    wait_for(lambda: "certificate" in ttmemd.text(), "the line")
    assert collector.asked == 0
    collector.close()


def test_a_client_certificate_is_presented(ttmemd, authority):
    collector = secure(authority, wants_client=True)
    key, certificate = map(str, authority)
    ttmemd.start(
        "--otlp",
        collector.url,
        env={
            "OTEL_EXPORTER_OTLP_CERTIFICATE": certificate,
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": certificate,
            "OTEL_EXPORTER_OTLP_CLIENT_KEY": key,
        },
    )
    wait_for(lambda: collector.taken["/v1/metrics"], "a push")
    collector.close()


def test_resource_attributes_come_from_otel_variables(ttmemd, collector):
    env = {
        "OTEL_SERVICE_NAME": "memory",
        "OTEL_RESOURCE_ATTRIBUTES": "host.name=node-7, service.name=other,k8s.cluster.name=a%2Cb%20c",
        "OTEL_EXPORTER_OTLP_HEADERS": " authorization = Bearer%20abc ,x=y=z",
    }
    ttmemd.start("--otlp", collector.url, env=env)
    wait_for(lambda: collector.taken["/v1/metrics"], "a push")
    resource = collector.taken["/v1/metrics"][0]["resourceMetrics"][0]["resource"]
    names = [row["key"] for row in resource["attributes"]]
    assert len(names) == len(set(names))
    said = attributes(resource)
    assert said["service.name"] == "memory" and said["host.name"] == "node-7"
    assert said["k8s.cluster.name"] == "a,b c" and said["service.version"]
    assert collector.headers["authorization"] == "Bearer abc" and collector.headers["x"] == "y=z"


@pytest.mark.parametrize(
    "variable, text",
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0aevil: 1"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=%4"),
        ("OTEL_RESOURCE_ATTRIBUTES", "nothing"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/nowhere/key.pem"),
    ],
)
def test_an_invalid_otel_variable_stops_the_start(ttmemd, collector, variable, text):
    done = subprocess.run(
        [*map(str, ttmemd.command("--otlp", collector.url))],
        env={**ttmemd.env, variable: text}, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 1
    assert "cannot push" in done.stderr and "OTEL_" in done.stderr
    assert collector.asked == 0
