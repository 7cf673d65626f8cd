/* SPDX-License-Identifier: Apache-2.0 */

/*
 * agree ARCH CHIPS SEED MOMENTS: random operations on a real tt-metal in mock mode. After each of them it
 * prints what tt-metal's own allocators hold and waits for a line, so that agree.py can compare this with
 * what ttmem says of this process:
 *
 *   b CHIP TYPE ADDRESS SIZE PER_BANK BANKS ALLOCATOR    a live buffer, once for each chip that has it
 *   s ALLOCATOR TYPE BYTES                               what an allocator says it has given out of a bank
 *   c CHIP BYTES                                         circular buffers on a chip
 *   r CHIP BYTES                                         how far they reach on a core
 *   k CHIP COUNT ADDRESS SIZE                            programs that were refused so far, and of the first
 *                                                        of them: which buffer was in the way, how far
 *   d CHIP ARCH CORES                                    a chip that is open
 *   . OPERATION                                          the end of a moment, and what was done
 */

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include <tt-metalium/allocator.hpp>
#include <tt-metalium/buffer.hpp>
#include <tt-metalium/circular_buffer_config.hpp>
#include <tt-metalium/experimental/mock_device/mock_device.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/mesh_buffer.hpp>
#include <tt-metalium/mesh_config.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <tt-metalium/sub_device.hpp>
#include <tt-metalium/tt_metal.hpp>

using namespace tt::tt_metal;
using namespace tt::tt_metal::distributed;

namespace
{

constexpr std::array kinds{BufferType::DRAM, BufferType::L1, BufferType::L1_SMALL,
			   BufferType::TRACE};
constexpr std::array names{"DRAM", "L1", "L1_SMALL", "TRACE"};

struct Placed {
	Program program;
	int chip;
	std::uint64_t reach;
};

struct Mesh {
	std::shared_ptr<MeshDevice> device;
	std::vector<std::shared_ptr<MeshBuffer>> shared;
	std::vector<std::shared_ptr<Buffer>> single;
	std::vector<std::shared_ptr<Placed>> programs;
	std::vector<SubDeviceManagerId> managers;
	Mesh *parent;
};

struct Refused {
	unsigned count;
	std::uint64_t address, size;
};

std::map<int, Refused> refused; /* by chip */
std::mt19937_64 dice;
std::vector<std::unique_ptr<Mesh>> meshes;

std::uint64_t roll(std::uint64_t below)
{
	return dice() % below;
}

const char *name_of(BufferType type)
{
	const auto at = std::find(kinds.begin(), kinds.end(), type);

	return at == kinds.end() ? "?" : names.at(static_cast<std::size_t>(at - kinds.begin()));
}

/* An allocator of a sub-device, or none where it has none of its own. */
Allocator *allocator_of(const MeshDevice &device, std::uint32_t sub_device)
{
	try {
		return device.allocator(SubDeviceId{static_cast<std::uint8_t>(sub_device)}).get();
	} catch (const std::exception &) {
		return nullptr;
	}
}

void tell_allocator(const Mesh &mesh, const Allocator &allocator, unsigned number)
{
	for (const Buffer *buffer : allocator.get_allocated_buffers()) {
		const BufferType type = buffer->buffer_type();
		const unsigned banks = is_sharded(buffer->buffer_layout()) && buffer->num_cores()
					       ? *buffer->num_cores()
					       : allocator.get_num_banks(type);

		/* What is given out is aligned as DRAM is, in L1 too: on Blackhole that is more than pages are. */
		const std::uint64_t unit = allocator.get_alignment(BufferType::DRAM);
		const std::uint64_t per_bank =
			(buffer->aligned_size_per_bank() + unit - 1) / unit * unit;

		for (const IDevice *chip : mesh.device->get_devices())
			std::printf("b %d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u\n",
				    chip->id(), name_of(type),
				    static_cast<std::uint64_t>(buffer->address()),
				    static_cast<std::uint64_t>(buffer->size()), per_bank, banks,
				    number);
	}
	for (const BufferType type : kinds)
		std::printf("s %u %s %zu\n", number, name_of(type),
			    allocator.get_statistics(type).total_allocated_bytes);
}

/* Circular buffers by tt-metal's own account, which has no header. */
void tell_circular(const Mesh &mesh)
{
	using Total = std::uint64_t (*)(const IDevice *);
	const auto total = reinterpret_cast<Total>(
		dlsym(RTLD_DEFAULT, "_ZNK2tt8tt_metal6Device22get_total_cb_allocatedEv"));

	if (total && !mesh.parent)
		for (const IDevice *chip : mesh.device->get_devices())
			std::printf("c %d %" PRIu64 "\n", chip->id(), total(chip));
}

/* All circular buffers of a program are on the same cores here, one behind the other. */
void tell_reach()
{
	std::map<int, std::uint64_t> reach;

	for (const auto &mesh : meshes)
		for (const auto &placed : mesh->programs)
			reach[placed->chip] = std::max(reach[placed->chip], placed->reach);
	for (const auto &[chip, bytes] : reach)
		std::printf("r %d %" PRIu64 "\n", chip, bytes);
}

void tell_chips(const Mesh &mesh)
{
	for (const IDevice *chip : mesh.device->get_devices()) {
		const CoreCoord grid = chip->compute_with_storage_grid_size();

		std::printf("d %d %s %zu\n", chip->id(),
			    chip->arch() == tt::ARCH::BLACKHOLE ? "blackhole" : "wormhole_b0",
			    grid.x * grid.y);
	}
}

void tell(const std::string &operation)
{
	std::map<const Allocator *, unsigned> seen;
	char answer[16];

	for (const auto &mesh : meshes) {
		std::set<Allocator *> all{mesh->device->allocator().get()};

		for (std::uint32_t i = 0; i < mesh->device->num_sub_devices(); i++)
			if (Allocator *own = allocator_of(*mesh->device, i))
				all.insert(own);
		for (Allocator *one : all)
			if (const auto at = seen.emplace(one, seen.size()); at.second)
				tell_allocator(*mesh, *one, at.first->second);
		tell_circular(*mesh);
		tell_chips(*mesh);
	}
	tell_reach();
	for (const auto &[chip, first] : refused)
		std::printf("k %d %u %" PRIu64 " %" PRIu64 "\n", chip, first.count, first.address,
			    first.size);
	std::printf(". %s\n", operation.c_str());
	std::fflush(stdout);
	if (!std::fgets(answer, sizeof(answer), stdin))
		std::exit(0);
}

std::uint64_t any_page()
{
	return 32ull << roll(7);
}

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

/* What L1_SMALL and sub-devices ask for: one shard of @tiles tiles on each of @cores cores, from (@x, @x) on. */
BufferShardingArgs shards(std::uint32_t x, std::uint32_t cores, std::uint32_t tiles)
{
	const CoreRangeSet grid(CoreRange({x, x}, {x + cores - 1, x}));
	const ShardSpecBuffer spec(grid, {32 * tiles, 32}, ShardOrientation::ROW_MAJOR, {32, 32},
				   {cores * tiles, 1});

	return {spec, TensorMemoryLayout::HEIGHT_SHARDED};
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

template <typename List> void drop(List &list)
{
	if (list.empty())
		return;
	std::swap(list[roll(list.size())], list.back());
	list.pop_back();
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

void open_mesh()
{
	meshes.push_back(std::make_unique<Mesh>());
	meshes.back()->device =
		MeshDevice::create(MeshDeviceConfig(std::nullopt), 32 << 10, 1 << 20);
	meshes.back()->parent = nullptr;
}

/* In every order: buffers before, after, or in between. */
void close_mesh(std::size_t at)
{
	const std::unique_ptr<Mesh> mesh = std::move(meshes.at(at));

	meshes.erase(meshes.begin() + static_cast<std::ptrdiff_t>(at));
	mesh->programs.clear();
	if (roll(2))
		mesh->shared.clear();
	if (roll(2))
		mesh->single.clear();
	mesh->device->close();
}

std::string close_any()
{
	if (meshes.size() > 1 && roll(3)) {
		close_mesh(1 + roll(meshes.size() - 1));
		return "close a submesh";
	}
	while (meshes.size() > 1)
		close_mesh(meshes.size() - 1);
	close_mesh(0);
	tell("close all");
	open_mesh();
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
	experimental::configure_mock_mode(std::strcmp(words[1], "blackhole") ? tt::ARCH::WORMHOLE_B0
									     : tt::ARCH::BLACKHOLE,
					  static_cast<std::uint32_t>(std::atoi(words[2])));
	dice.seed(std::strtoull(words[3], nullptr, 10));
	open_mesh();
	for (int i = std::atoi(words[4]); i > 0; i--)
		tell(act(dispatch != nullptr));
	while (!meshes.empty())
		close_mesh(meshes.size() - 1);
	tell("closed");
	return 0;
}
