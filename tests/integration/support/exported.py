# SPDX-License-Identifier: Apache-2.0
"""Readers of what ttmem export writes: of others where there are such, else by the rules of the formats."""

import collections
import gzip
import json
import pickle
import pickletools
import re
import subprocess

import pytest

from common import LIMIT

# What the profiles and traces of others have in these messages, for protoc.
PPROF = """
syntax = "proto3";
message ValueType { int64 type = 1; int64 unit = 2; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Mapping { uint64 id = 1; int64 filename = 5; bool has_functions = 7; bool has_filenames = 8;
                  bool has_line_numbers = 9; bool has_inline_frames = 10; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; }
message Profile { repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
                  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6;
                  int64 time_nanos = 9; int64 duration_nanos = 10; int64 default_sample_type = 14; }
"""
PERFETTO = """
syntax = "proto2";
message CounterDescriptor { optional uint32 unit = 3; }
message ProcessDescriptor { optional int32 pid = 1; optional string process_name = 6; }
message ThreadDescriptor { optional int32 pid = 1; optional int64 tid = 2; }
message TrackDescriptor { optional uint64 uuid = 1; optional string name = 2; optional ProcessDescriptor process = 3;
                          optional ThreadDescriptor thread = 4;
                          optional uint64 parent_uuid = 5; optional CounterDescriptor counter = 8; }
message TrackEvent { optional uint32 type = 9; optional uint64 track_uuid = 11; optional string name = 23;
                     optional int64 counter_value = 30; }
message TracePacket { optional uint64 timestamp = 8; optional uint32 trusted_packet_sequence_id = 10;
                      optional TrackEvent track_event = 11; optional uint32 sequence_flags = 13;
                      optional TrackDescriptor track_descriptor = 60; }
message Trace { repeated TracePacket packet = 1; }
"""

# All that memory_viz's own reader of pickles understands and we may need.
VIZ_OPERATIONS = {
    "PROTO", "EMPTY_DICT", "EMPTY_LIST", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "APPEND",
    "SETITEM", "LONG_BINPUT", "LONG_BINGET", "STOP",
}  # fmt: skip


def parse_proto(text):
    """What protoc prints, as dictionaries of lists."""
    root = collections.defaultdict(list)
    open_ones = [root]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            open_ones.pop()
        elif line.endswith("{"):
            made = collections.defaultdict(list)
            open_ones[-1][line.split()[0]].append(made)
            open_ones.append(made)
        else:
            key, _, value = line.partition(": ")
            open_ones[-1][key].append(json.loads(value.replace("\\'", "'")))
    return root


@pytest.fixture
def protoc(tmp_path):
    def decode(schema, message, data):
        (tmp_path / "schema.proto").write_text(schema)
        done = subprocess.run(
            ["protoc", f"--decode={message}", f"--proto_path={tmp_path}", "schema.proto"],
            input=data, capture_output=True, timeout=LIMIT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert not re.search(rb"^ *[0-9]+[:{ ]", done.stdout, re.M), "a field that is not in the schema"
        return parse_proto(done.stdout.decode())

    return decode


@pytest.fixture
def export(world):
    """What the command writes."""

    def run(form, *args):
        done = subprocess.run(
            [world.program, "export", "--format", form, *map(str, args)],
            env=world.env, capture_output=True, timeout=LIMIT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def read_pprof(protoc, data):
    """[({type: value}, [(function, file, line), ...] innermost first, {label: text})], and the profile."""
    profile = protoc(PPROF, "Profile", gzip.decompress(data))
    texts = profile["string_table"]
    assert texts[0] == "" and len(set(texts)) == len(texts)
    types = [texts[kind["type"][0]] for kind in profile["sample_type"]]
    functions = {f["id"][0]: (texts[f["name"][0]], texts[(f["filename"] or [0])[0]]) for f in profile["function"]}
    places = {}
    for place in profile["location"]:
        (line,) = place["line"]
        places[place["id"][0]] = (*functions[line["function_id"][0]], (line["line"] or [0])[0])
    assert texts[profile["default_sample_type"][0]] == "inuse_space"
    samples = []
    for sample in profile["sample"]:
        labels = {texts[label["key"][0]]: texts[label["str"][0]] for label in sample["label"]}
        values = dict(zip(types, sample["value"]))
        assert len(values) == len(types)
        samples.append((values, [places[number] for number in sample["location_id"]], labels))
    return samples, profile


def check_memory_viz(data):
    """What its functions rely on. Returns the document."""
    assert {operation.name for operation, _, _ in pickletools.genops(data)} <= VIZ_OPERATIONS
    document = pickle.loads(data)
    assert set(document) == {"segments", "device_traces"}
    ranges = collections.defaultdict(list)
    for segment in document["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at and block["size"] > 0
            assert block["state"] in ("active_allocated", "inactive")
            for frame in block["frames"]:
                assert set(frame) == {"name", "filename", "line"}
            at += block["size"]
        assert at == segment["address"] + segment["total_size"] < 1 << 53
        ranges[segment["device"]].append((segment["address"], at))
    for device, found in ranges.items():
        found.sort()
        assert all(a[1] <= b[0] for a, b in zip(found, found[1:])), "segments overlap"
        for event in document["device_traces"][device]:
            if event["action"] != "oom":
                assert any(low <= event["addr"] < high for low, high in found)
    return document
