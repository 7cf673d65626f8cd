# SPDX-License-Identifier: Apache-2.0
"""A leak: two objects that know each other live until the garbage collector comes by."""

import gc
import itertools
import os
import subprocess

import ttmem

MIB = 1 << 20
addresses = itertools.count(MIB, MIB)


class Tensor:
    def __init__(self, graph):
        self.graph = graph
        self.address = next(addresses)
        ttmem.alloc(0, "DRAM", self.address, MIB, "activation")

    def __del__(self):
        ttmem.free(0, self.address, "DRAM")


class Graph:
    def __init__(self):
        self.output = Tensor(self)  # and the tensor knows the graph


def held():
    return f"{ttmem.memory_allocated(0) // MIB} MiB"


gc.disable()  # as it is in effect while few Python objects are made
for step in range(3):
    with ttmem.phase(f"step {step}"):
        Graph()
print("held after three steps:", held(), flush=True)
subprocess.run(["ttmem", "buffers", "--pid", str(os.getpid()), "--by", "phase"], check=True)
gc.collect()
print("held after gc.collect():", held())
