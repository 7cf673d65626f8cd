/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs short of memory in every way, and survives it; then closes devices and meshes that still have buffers.
 * It knows nothing of ttmem. With SHORT_FATAL the last refusal ends it.
 */

#include "metal.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

using namespace tt::tt_metal;
using detail::ProgramImpl;
using distributed::MeshDevice;

namespace
{

constexpr DeviceAddr mib = 1 << 20;

__attribute__((noinline)) void want(const Buffer::Setting &setting, int times = 1)
{
	for (int i = 0; i < times; i++) {
		try {
			(void)Buffer::create(setting);
			std::puts("it was not refused");
		} catch (const std::runtime_error &) {
		}
	}
}

void refusals(Device &first, Device &second)
{
	MeshDevice mesh({&first, &second});
	ProgramImpl large({{2, 1499136 - 4096, 8192, false}}); /* the end of L1 is in it */

	want({&first, 512 * mib, 2048, BufferType::DRAM}); /* before there was any other buffer */
	auto kept = Buffer::create({&first, 4096, 1024, BufferType::L1});
	want({&first, 16 * mib, 1024, BufferType::L1}, 3);
	want({&first, 8 * mib, 1024, BufferType::L1, 4});
	want({&first, mib / 2, 1024, BufferType::L1_SMALL, 8});
	want({&first, 32 * mib, 1024, BufferType::L1_SMALL, 8}); /* nor would it be in L1 */
	want({&first, 8 * mib, 1024, BufferType::TRACE});
	want({&mesh, 1024 * mib, 1024, BufferType::DRAM});
	std::thread([&second] { want({&second, 2048 * mib, 1024, BufferType::DRAM}); }).join();
	/* More pages than num_pages() can count: what it says is 0. */
	want({&second, mib * mib, 32, BufferType::DRAM});
	large.allocate_circular_buffers(&first);
	try {
		large.validate_circular_buffer_region(&first);
		std::puts("it was not refused");
	} catch (const std::runtime_error &) {
	}
}

/* What is closed while it has buffers. */
void closings(Device &first, Device &second)
{
	MeshDevice mesh({&first, &second}), part({&second});
	auto on_mesh = Buffer::create({&mesh, 4096, 1024, BufferType::DRAM});
	auto on_part = Buffer::create({&part, 2048, 1024, BufferType::L1});
	auto on_device = Buffer::create({&first, mib, 1024, BufferType::DRAM});
	auto freed = Buffer::create({&first, 65536, 1024, BufferType::DRAM});

	freed.reset();
	part.close();
	mesh.close();
	first.close();
}

} /* namespace */

int main()
{
	Device first(0), second(1);

	refusals(first, second);
	closings(first, second);
	if (std::getenv("SHORT_FATAL"))
		(void)Buffer::create({&second, 4096 * mib, 1024, BufferType::DRAM});
	return 0;
}
