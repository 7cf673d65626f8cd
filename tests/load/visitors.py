# SPDX-License-Identifier: Apache-2.0
"""Any number of simulated dashboards, without browsers: visitors.py HOST PORT COUNT.

Each keeps a stream of changes open, compressed, as a page does; one more reads it uncompressed. A line on stdin says which page
all of them show, and so what each requests at the intervals of web/src: "overview" for nothing, "process PID..." for
the buffers of one of these processes. Replies to each line with "ok", to "bytes" with what a stream has received
since the last "bytes" (the mean of those compressed, and the other), and to "end" with the number of answers received.
"""

import asyncio
import itertools
import random
import sys

BUFFERS_S = 3


class Visitors:
    def __init__(self, host, port):
        self.address = (host, int(port))
        self.answers = 0
        self.pollers = []
        self.received = {}

    async def request(self, path, *headers):
        reader, writer = await asyncio.open_connection(*self.address, limit=1 << 20)
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
        writer.write("\r\n".join(lines).encode())
        first = await reader.readline()
        if b" 200 " not in first:
            sys.exit(f"{path}: {first.decode()}")
        return reader, writer

    async def stream(self, name, *headers):
        reader, _writer = await self.request("/api/v1/stream?changes=1", *headers)
        self.received[name] = 0
        return asyncio.create_task(self.drain(name, reader))

    async def drain(self, name, reader):
        while piece := await reader.read(1 << 20):
            self.received[name] += len(piece)
        sys.exit("the stream has ended")

    def count(self):
        """What was received since the last time: compressed, on average, and uncompressed."""
        plain = self.received["plain"]
        packed = sum(self.received.values()) - plain
        self.received = dict.fromkeys(self.received, 0)
        return packed / (len(self.received) - 1), plain

    async def poll(self, path, every):
        await asyncio.sleep(random.random() * every)  # real users do not open their pages all at once
        while True:
            reader, writer = await self.request(path, "Accept-Encoding: gzip", "Connection: close")
            while await reader.read(1 << 20):
                pass
            writer.close()
            self.answers += 1
            await asyncio.sleep(every)

    def show(self, count, words):
        """Sends all dashboards to another page."""
        for poller in self.pollers:
            poller.cancel()
        turn = itertools.cycle(words[1:]) if words[0] == "process" else ()
        self.pollers = [
            asyncio.create_task(self.poll(f"/api/v1/buffers?pid={pid}&limit=10000", BUFFERS_S))
            for pid in itertools.islice(turn, count)
        ]


async def main():
    visitors, count = Visitors(*sys.argv[1:3]), int(sys.argv[3])
    streams = [await visitors.stream(i, "Accept-Encoding: gzip") for i in range(count)]
    streams.append(await visitors.stream("plain"))
    print("ok", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line == "end\n":
            print(visitors.answers, flush=True)
            break
        if line == "bytes\n":
            print(*visitors.count(), flush=True)
            continue
        visitors.show(count, line.split())
        print("ok", flush=True)


asyncio.run(main())
