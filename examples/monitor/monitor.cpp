/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A monitor of one's own: devices with their totals, and the processes that hold something of them. Once,
 * or every second if a number of rounds is given.
 *
 *     g++ -std=c++17 monitor.cpp -o monitor $(pkg-config --cflags --libs ttmem-query)
 */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unistd.h>

#include <ttmem/query.h>

namespace
{

struct closer {
	void operator()(ttmem_query *query) const
	{
		ttmem_query_free(query);
	}
};

using query_ptr = std::unique_ptr<ttmem_query, closer>;

double mebibytes(const ttmem_query_memory &memory)
{
	return static_cast<double>(memory.bytes) / (1 << 20);
}

void show_devices(const ttmem_query *query)
{
	struct ttmem_query_device device = {};

	device.struct_size = sizeof(device);
	for (std::size_t i = 0; ttmem_query_device(query, i, &device) == 0; i++)
		std::printf("device %u %s: DRAM %.1f MiB, L1 %.1f MiB, %u processes\n",
			    device.device, device.card, mebibytes(device.memory[TTMEM_DRAM]),
			    mebibytes(device.memory[TTMEM_L1]), device.processes);
}

void show_processes(const ttmem_query *query)
{
	struct ttmem_query_process process = {};
	struct ttmem_query_share share = {};

	process.struct_size = sizeof(process);
	share.struct_size = sizeof(share);
	for (std::size_t i = 0; ttmem_query_process(query, i, &process) == 0; i++) {
		for (std::size_t k = 0; ttmem_query_share(query, i, k, &share) == 0; k++)
			std::printf(
				"  pid %u %s, device %u: DRAM %.1f MiB in %llu buffers, L1 %.1f "
				"MiB\n",
				process.pid, process.command, share.device,
				mebibytes(share.memory[TTMEM_DRAM]),
				static_cast<unsigned long long>(share.memory[TTMEM_DRAM].buffers),
				mebibytes(share.memory[TTMEM_L1]));
	}
}

} /* namespace */

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
	ttmem_query *opened = nullptr;
	int r = ttmem_query_new(&opened);
	const query_ptr query(opened);

	for (int round = 0; r == 0 && round < rounds; round++) {
		if (round > 0)
			sleep(1);
		r = ttmem_query_refresh(query.get());
		if (r == 0) {
			show_devices(query.get());
			show_processes(query.get());
		}
	}
	if (r < 0)
		std::fprintf(stderr, "monitor: %s\n", std::strerror(-r));
	return r < 0;
}
