# SPDX-License-Identifier: Apache-2.0
"""How much other processes used the machine during a measurement, without which a figure says little."""

import os
import resource
import time
from pathlib import Path


def ours():
    """Processor time of this process and of its children that were waited for, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def everybodys():
    """Processor time of all processes, and the steal time, in seconds."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks[:8]
    unit = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / unit, steal / unit


class Company:
    def __init__(self):
        self.before = os.getloadavg()[0]
        self.since, self.ours, (self.all, self.stolen) = time.monotonic(), ours(), everybodys()

    def tell(self):
        """Percentages of all cores. To be called when all started processes have ended."""
        busy, stolen = everybodys()
        cores = len(os.sched_getaffinity(0))
        whole = (time.monotonic() - self.since) * cores / 100
        return {
            "cores": cores,
            "load_average_before": self.before,
            "others_percent": max(0.0, (busy - self.all - (ours() - self.ours)) / whole),
            "stolen_percent": (stolen - self.stolen) / whole,
        }


def sentence(told):
    return (
        f"{told['cores']} cores, load average {told['load_average_before']:.1f} before; of all processor time others "
        f"had {told['others_percent']:.0f} %, and {told['stolen_percent']:.0f} % was stolen by other machines"
    )
