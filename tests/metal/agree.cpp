/* SPDX-License-Identifier: Apache-2.0 */

/*
 * agree ARCH CHIPS SEED MOMENTS: random operations on a real tt-metal in mock mode. After each of them it
 * prints what tt-metal's own allocators hold (truth.hpp) and waits for a line, so that agree.py can compare
 * this with what ttmem says of this process.
 */

#include <array>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "truth.hpp"

namespace
{

std::shared_ptr<MeshBuffer> make_shared_buffer(Mesh &mesh, BufferType type)
{
	const std::uint64_t page = any_page();
	const std::uint64_t size = page * (1 + roll(type == BufferType::DRAM ? 3000 : 60));
	const DeviceLocalBufferConfig config{.page_size = page,
					     .buffer_type = type,
					     .sharding_args = {},
					     .bottom_up = roll(4) ? std::nullopt
								  : std::optional<bool>(roll(2))};

	return MeshBuffer::create(ReplicatedBufferConfig{.size = size}, config, mesh.device.get());
}

BufferType any_kind()
{
	const std::uint64_t n = roll(20);

	return n < 11 ? BufferType::DRAM : n < 19 ? BufferType::L1 : BufferType::TRACE;
}

std::string allocate(Mesh &mesh)
{
	mesh.shared.push_back(make_shared_buffer(mesh, any_kind()));
	return "allocate";
}

std::string allocate_single(Mesh &mesh)
{
	const std::uint64_t page = any_page();

	mesh.single.push_back(
		Buffer::create(mesh.device.get(), page * (1 + roll(100)), page, any_kind()));
	return "allocate a Buffer";
}

std::string allocate_sharded(Mesh &mesh)
{
	const std::uint32_t cores = 1 + static_cast<std::uint32_t>(roll(6));
	const std::uint32_t tiles = 1 + static_cast<std::uint32_t>(roll(3));

	mesh.single.push_back(Buffer::create(mesh.device.get(), std::uint64_t{cores} * tiles * 2048,
					     2048, roll(3) ? BufferType::L1 : BufferType::L1_SMALL,
					     shards(0, cores, tiles)));
	return "allocate sharded";
}

/* At an address that was given: nothing is allocated. */
std::string view(Mesh &mesh)
{
	const DeviceLocalBufferConfig config{.page_size = 2048,
					     .buffer_type = BufferType::DRAM,
					     .sharding_args = {},
					     .bottom_up = std::nullopt};

	mesh.shared.push_back(MeshBuffer::create(ReplicatedBufferConfig{.size = 4096}, config,
						 mesh.device.get(), DeviceAddr{0x200000}));
	return "view";
}

std::string release(Mesh &mesh)
{
	drop(mesh.shared);
	drop(mesh.single);
	return "free";
}

std::string release_early(Mesh &mesh)
{
	if (!mesh.shared.empty())
		mesh.shared[roll(mesh.shared.size())]->deallocate();
	return "deallocate";
}

std::string move(Mesh &mesh)
{
	if (mesh.shared.size() < 2)
		return "nothing";
	/* The one that is moved onto is freed. */
	*mesh.shared.front() = std::move(*mesh.shared.back());
	mesh.shared.pop_back();
	return "move";
}

std::string threads(Mesh &mesh)
{
	constexpr unsigned count = 4;
	std::array<std::vector<std::shared_ptr<MeshBuffer>>, count> made;
	std::vector<std::thread> workers;

	for (auto &list : made)
		workers.emplace_back([&mesh, &list] {
			const DeviceLocalBufferConfig config{.page_size = 1024,
							     .buffer_type = BufferType::DRAM,
							     .sharding_args = {},
							     .bottom_up = std::nullopt};

			for (unsigned i = 0; i < 40; i++) {
				list.push_back(MeshBuffer::create(
					ReplicatedBufferConfig{.size = 1024ull * (1 + i)}, config,
					mesh.device.get()));
				if (i % 3)
					list.erase(list.begin());
			}
		});
	for (std::thread &worker : workers)
		worker.join();
	for (auto &list : made)
		mesh.shared.insert(mesh.shared.end(), list.begin(), list.end());
	return "threads";
}

std::string circular(Mesh &mesh)
{
	IDevice *chip = mesh.device->get_devices().front();
	auto placed = std::make_shared<Placed>(Placed{CreateProgram(), chip->id(), 0});
	const CoreRange cores({0, 0}, {roll(3), roll(3)});

	for (std::uint8_t i = 0; i <= roll(3); i++) {
		const auto size = static_cast<std::uint32_t>(2048 * (1 + roll(4)));

		CreateCircularBuffer(placed->program, cores,
				     CircularBufferConfig(size, {{i, tt::DataFormat::Float16_b}})
					     .set_page_size(i, 2048));
		placed->reach += size;
	}
	tt::tt_metal::detail::LaunchProgram(chip, placed->program);
	mesh.programs.push_back(placed);
	if (mesh.programs.size() > 3)
		drop(mesh.programs);
	return "circular buffers";
}

/* One whose circular buffers grow into the lowest buffer of L1. */
std::string clash(Mesh &mesh)
{
	IDevice *chip = mesh.device->get_devices().front();
	const auto whole = chip->get_mesh_device();
	const IDevice *judge = whole ? whole.get() : chip;
	const auto lowest = judge->lowest_occupied_compute_l1_address();
	const std::uint64_t base = judge->allocator()->get_base_allocator_addr(HalMemType::L1);
	Program program = CreateProgram();

	if (!lowest || *lowest < base)
		return "nothing";
	const std::uint64_t size = (*lowest - base) / 2048 * 2048 + 2048;

	CreateCircularBuffer(program, CoreRange({0, 0}, {1, 1}),
			     CircularBufferConfig(static_cast<std::uint32_t>(size),
						  {{0, tt::DataFormat::Float16_b}})
				     .set_page_size(0, 2048));
	try {
		tt::tt_metal::detail::LaunchProgram(chip, program);
	} catch (const std::exception &) {
		for (const IDevice *one :
		     whole ? whole->get_devices() : std::vector<IDevice *>{chip})
			refused.try_emplace(one->id(), Refused{0, *lowest, base + size - *lowest})
				.first->second.count++;
		return "clash";
	}
	return "no clash";
}

std::string sub_devices(Mesh &mesh)
{
	const SubDevice first(std::array{CoreRangeSet(CoreRange({0, 0}, {1, 1}))});
	const SubDevice second(std::array{CoreRangeSet(CoreRange({2, 2}, {3, 3}))});

	if (mesh.device->get_active_sub_device_manager_id() !=
	    mesh.device->get_default_sub_device_manager_id()) {
		mesh.device->clear_loaded_sub_device_manager();
		return "clear sub-devices";
	}
	mesh.managers.push_back(mesh.device->create_sub_device_manager({first, second}, 64 << 10));
	mesh.device->load_sub_device_manager(mesh.managers.back());
	for (std::uint8_t i = 0; i < 2; i++) {
		const DeviceLocalBufferConfig config{.page_size = 2048,
						     .buffer_type = BufferType::L1,
						     .sharding_args = shards(2 * i, 2, 1),
						     .bottom_up = std::nullopt,
						     .sub_device_id = SubDeviceId{i}};

		mesh.shared.push_back(MeshBuffer::create(ReplicatedBufferConfig{.size = 4096},
							 config, mesh.device.get()));
	}
	return "load sub-devices";
}

std::string divide(Mesh &mesh)
{
	if (mesh.parent || mesh.device->num_devices() < 2 || meshes.size() > 4)
		return "nothing";
	meshes.push_back(std::make_unique<Mesh>());
	meshes.back()->device = mesh.device->create_submesh(MeshShape(1, 1));
	meshes.back()->parent = &mesh;
	return "submesh";
}

constexpr std::size_t small_region = 32 << 10, trace_region = 1 << 20;

std::string close_any()
{
	if (meshes.size() > 1 && roll(3)) {
		close_mesh(1 + roll(meshes.size() - 1));
		return "close a submesh";
	}
	close_meshes();
	tell("close all");
	open_mesh(small_region, trace_region);
	return "open again";
}

std::string act(bool slow)
{
	Mesh &mesh = *meshes.at(roll(meshes.size()));
	const std::uint64_t n = roll(100);

	try {
		return n < 40   ? allocate(mesh)
		       : n < 50 ? allocate_single(mesh)
		       : n < 55 ? allocate_sharded(mesh)
		       : n < 58 ? view(mesh)
		       : n < 75 ? release(mesh)
		       : n < 78 ? release_early(mesh)
		       : n < 81 ? move(mesh)
		       : n < 84 ? threads(mesh)
		       : n < 88 ? (slow ? circular(mesh) : sub_devices(mesh))
		       : n < 91 ? (slow ? clash(mesh) : divide(mesh))
		       : n < 93 ? divide(mesh)
		       : n < 97 ? close_any()
				: "nothing";
	} catch (const std::exception &error) {
		/* Full, or refused by tt-metal: both must leave the same books. */
		return std::string("refused: ") + std::string(error.what()).substr(0, 60);
	}
}

} // namespace

int main(int count, char **words)
{
	const char *dispatch = std::getenv("TT_METAL_SLOW_DISPATCH_MODE");

	if (count != 5)
		return 2;
	begin(words + 1);
	open_mesh(small_region, trace_region);
	for (int i = std::atoi(words[4]); i > 0; i--)
		tell(act(dispatch != nullptr));
	close_meshes();
	tell("closed");
	return 0;
}
