/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cost KIND ARCH CHIPS PAIRS: what a create and a free cost on a real tt-metal in mock mode. For each line that it
 * reads, it makes and frees PAIRS buffers, one after the other, and prints the nanoseconds that this thread ran per
 * pair. cost.py has several of these take turns.
 */

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

#include <tt-metalium/buffer.hpp>
#include <tt-metalium/experimental/mock_device/mock_device.hpp>
#include <tt-metalium/mesh_buffer.hpp>
#include <tt-metalium/mesh_config.hpp>
#include <tt-metalium/mesh_device.hpp>

using namespace tt::tt_metal;
using namespace tt::tt_metal::distributed;

namespace
{

constexpr std::uint64_t page_size = 2048;
constexpr std::uint64_t pages = 32;

/* Of different size: what is learned needs two sizes. */
std::uint64_t size_of(long pair)
{
	return page_size * (pages << (pair & 1));
}

void one_mesh_buffer(MeshDevice &device, long pair)
{
	const DeviceLocalBufferConfig config{.page_size = page_size,
					     .buffer_type = BufferType::DRAM,
					     .sharding_args = {},
					     .bottom_up = std::nullopt};

	(void)MeshBuffer::create(ReplicatedBufferConfig{.size = size_of(pair)}, config, &device);
}

void one_buffer(MeshDevice &device, long pair)
{
	(void)Buffer::create(&device, size_of(pair), page_size, BufferType::DRAM);
}

/* The time that others on a busy machine run is not ours. */
std::uint64_t now()
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
	       static_cast<std::uint64_t>(time.tv_nsec);
}

} // namespace

int main(int count, char **words)
{
	char line[16];

	if (count != 5)
		return 2;
	experimental::configure_mock_mode(std::strcmp(words[2], "blackhole") ? tt::ARCH::WORMHOLE_B0
									     : tt::ARCH::BLACKHOLE,
					  static_cast<std::uint32_t>(std::atoi(words[3])));
	const auto one = std::strcmp(words[1], "Buffer") ? one_mesh_buffer : one_buffer;
	const long pairs = std::atol(words[4]);
	const std::shared_ptr<MeshDevice> device =
		MeshDevice::create(MeshDeviceConfig(std::nullopt), 32 << 10, 1 << 20);

	std::puts("ready");
	std::fflush(stdout);
	while (std::fgets(line, sizeof(line), stdin)) {
		const std::uint64_t begin = now();

		for (long i = 0; i < pairs; i++)
			one(*device, i);
		std::printf("%.1f\n",
			    static_cast<double>(now() - begin) / static_cast<double>(pairs));
		std::fflush(stdout);
	}
	device->close();
	return 0;
}
