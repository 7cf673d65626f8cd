# SPDX-License-Identifier: Apache-2.0
"""Any number of simulated dashboards, without browsers: visitors.py HOST PORT COUNT.

Each keeps a stream open. A line on stdin says which page all of them show, and so what each requests at the
intervals of web/src: "overview" for incidents, "process PID..." for the buffers of one of these processes.
Replies to each line with "ok", and to "end" with the number of answers received.
"""

import asyncio
import itertools
import random
import sys
import time

INCIDENTS_S = 10
BUFFERS_S = 3


class Visitors:
    def __init__(self, host, port):
        self.address = (host, int(port))
        self.answers = 0
        self.pollers = []

    async def request(self, path, close):
        reader, writer = await asyncio.open_connection(*self.address, limit=1 << 20)
        ending = "Connection: close\r\n" if close else ""
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{ending}\r\n".encode())
        first = await reader.readline()
        if b" 200 " not in first:
            sys.exit(f"{path}: {first.decode()}")
        return reader, writer

    async def stream(self):
        reader, _writer = await self.request("/api/v1/stream", close=False)
        return asyncio.create_task(self.drain(reader))

    async def drain(self, reader):
        while await reader.read(1 << 20):
            pass
        sys.exit("the stream has ended")

    async def poll(self, path, every):
        await asyncio.sleep(random.random() * every)  # real users do not open their pages all at once
        while True:
            reader, writer = await self.request(path(), close=True)
            while await reader.read(1 << 20):
                pass
            writer.close()
            self.answers += 1
            await asyncio.sleep(every)

    def show(self, count, words):
        """Sends all dashboards to another page."""
        for poller in self.pollers:
            poller.cancel()
        if words[0] == "overview":
            # The last hour, as the page requests it.
            def path():
                return f"/api/v1/incidents?since={time.time_ns() - 3600 * 10**9}&limit=1000"

            paths, every = [path] * count, INCIDENTS_S
        else:
            turn = itertools.cycle(words[1:])
            every = BUFFERS_S
            paths = [
                lambda pid=pid: f"/api/v1/buffers?pid={pid}&limit=10000"
                for pid in itertools.islice(turn, count)
            ]
        self.pollers = [asyncio.create_task(self.poll(path, every)) for path in paths]


async def main():
    visitors, count = Visitors(*sys.argv[1:3]), int(sys.argv[3])
    streams = [await visitors.stream() for _ in range(count)]
    print("ok", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line == "end\n":
            print(visitors.answers, flush=True)
            break
        visitors.show(len(streams), line.split())
        print("ok", flush=True)


asyncio.run(main())
