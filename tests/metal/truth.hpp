/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a real tt-metal in mock mode holds by its own account, printed after each operation (agree.cpp,
 * scenes.cpp). Then the program waits for a line, so that agree.py can compare this moment with what ttmem
 * says of this process:
 *
 *   b CHIP TYPE ADDRESS SIZE PER_BANK BANKS ALLOCATOR    a live buffer, once for each chip that has it
 *   s ALLOCATOR TYPE BYTES                               what an allocator says it has given out of a bank
 *   w CHIP TYPE BANKS BYTES BASE                         banks of a chip as they were when it was opened;
 *                                                        BASE is - where tt-metal does not tell it
 *   v CHIP TYPE USED LARGEST                             of each bank, by detail::GetMemoryView(), where the
 *                                                        chip has one allocator only
 *   c CHIP BYTES                                         circular buffers on a chip
 *   r CHIP BYTES                                         how far they reach on a core
 *   k CHIP COUNT ADDRESS SIZE                            programs that were refused so far, and of the first
 *                                                        of them: which buffer was in the way, how far
 *   f SITE CHIP CHIPS TYPE SIZE PER_BANK LARGEST         an allocation that was refused, by the text of the
 *                                                        exception; CHIP is the first of the mesh's CHIPS
 *   h CHIP TYPE SIZE                                     was live when its device was closed, so far
 *   d CHIP ARCH CORES                                    a chip that is open
 *   . OPERATION                                          the end of a moment, and what was done
 */

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include <tt-metalium/allocator.hpp>
#include <tt-metalium/buffer.hpp>
#include <tt-metalium/circular_buffer_config.hpp>
#include <tt-metalium/experimental/mock_device/mock_device.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/memory_reporter.hpp>
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
	std::vector<std::string> windows;
	Mesh *parent;
};

struct Refused {
	unsigned count;
	std::uint64_t address, size;
};

std::map<int, Refused> refused; /* by chip */
std::vector<std::string> notes; /* lines that stay, in every moment from then on */
std::mt19937_64 dice;
std::vector<std::unique_ptr<Mesh>> meshes;

std::uint64_t roll(std::uint64_t below)
{
	return dice() % below;
}

/* Each core has an allocator of its own beside the one for all. */
bool is_hybrid()
{
	return std::getenv("TT_METAL_ALLOCATOR_MODE_HYBRID") != nullptr;
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

void tell_allocator(const std::vector<IDevice *> &chips, const Allocator &allocator,
		    unsigned number)
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

		for (const IDevice *chip : chips)
			std::printf("b %d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u\n",
				    chip->id(), name_of(type),
				    static_cast<std::uint64_t>(buffer->address()),
				    static_cast<std::uint64_t>(buffer->size()), per_bank, banks,
				    number);
	}
	for (const BufferType type : kinds)
		/* Those of L1 are of one of many allocators then. */
		if (type != BufferType::L1 || !is_hybrid())
			std::printf("s %u %s %zu\n", number, name_of(type),
				    allocator.get_statistics(type).total_allocated_bytes);
}

/* Before sub-devices are loaded: these cut the banks of L1 shorter. */
void learn_windows(Mesh &mesh)
{
	const Allocator &allocator = *mesh.device->allocator();

	for (const IDevice *chip : mesh.device->get_devices())
		for (const BufferType type : kinds) {
			const bool is_told = type == BufferType::DRAM || type == BufferType::L1;
			const std::uint64_t base = allocator.get_base_allocator_addr(
				type == BufferType::DRAM ? HalMemType::DRAM : HalMemType::L1);

			mesh.windows.push_back("w " + std::to_string(chip->id()) + " " +
					       name_of(type) + " " +
					       std::to_string(allocator.get_num_banks(type)) + " " +
					       std::to_string(allocator.get_bank_size(type)) + " " +
					       (is_told ? std::to_string(base) : "-"));
		}
}

void tell_views(const Mesh &mesh)
{
	if (is_hybrid() || meshes.size() > 1 ||
	    mesh.device->get_active_sub_device_manager_id() !=
		    mesh.device->get_default_sub_device_manager_id())
		return;
	for (const BufferType type : kinds) {
		const auto view = tt::tt_metal::detail::GetMemoryView(mesh.device.get(), type);

		for (const IDevice *chip : mesh.device->get_devices())
			std::printf("v %d %s %zu %zu\n", chip->id(), name_of(type),
				    view.total_bytes_allocated_per_bank,
				    view.largest_contiguous_bytes_free_per_bank);
	}
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

/* Those of a mesh hold what all its chips have; a chip's own one, what was made for that chip. */
void tell_allocators(const Mesh &mesh, std::map<const Allocator *, unsigned> &seen)
{
	std::set<Allocator *> all{mesh.device->allocator().get()};

	for (std::uint32_t i = 0; i < mesh.device->num_sub_devices(); i++)
		if (Allocator *own = allocator_of(*mesh.device, i))
			all.insert(own);
	for (const Allocator *one : all)
		if (const auto at = seen.emplace(one, seen.size()); at.second)
			tell_allocator(mesh.device->get_devices(), *one, at.first->second);
	if (is_hybrid())
		for (IDevice *chip : mesh.device->get_devices()) {
			const Allocator *one = chip->allocator().get();

			if (const auto at = seen.emplace(one, seen.size()); at.second)
				tell_allocator({chip}, *one, at.first->second);
		}
}

void tell(const std::string &operation)
{
	std::map<const Allocator *, unsigned> seen;
	char answer[16];

	for (const auto &mesh : meshes) {
		tell_allocators(*mesh, seen);
		tell_views(*mesh);
		tell_circular(*mesh);
		tell_chips(*mesh);
		for (const std::string &line : mesh->windows)
			std::puts(line.c_str());
	}
	tell_reach();
	for (const auto &[chip, first] : refused)
		std::printf("k %d %u %" PRIu64 " %" PRIu64 "\n", chip, first.count, first.address,
			    first.size);
	for (const std::string &line : notes)
		std::puts(line.c_str());
	std::printf(". %s\n", operation.c_str());
	std::fflush(stdout);
	if (!std::fgets(answer, sizeof(answer), stdin))
		std::exit(0);
}

std::uint64_t any_page()
{
	return 32ull << roll(7);
}

/* What L1_SMALL and sub-devices ask for: one shard of @tiles tiles on each of @cores cores, from (@x, @x) on. */
BufferShardingArgs shards(std::uint32_t x, std::uint32_t cores, std::uint32_t tiles)
{
	const CoreRangeSet grid(CoreRange({x, x}, {x + cores - 1, x}));
	const ShardSpecBuffer spec(grid, {32 * tiles, 32}, ShardOrientation::ROW_MAJOR, {32, 32},
				   {cores * tiles, 1});

	return {spec, TensorMemoryLayout::HEIGHT_SHARDED};
}

template <typename List> void drop(List &list)
{
	if (list.empty())
		return;
	std::swap(list[roll(list.size())], list.back());
	list.pop_back();
}

void open_mesh(std::size_t small, std::size_t trace)
{
	meshes.push_back(std::make_unique<Mesh>());
	meshes.back()->device = MeshDevice::create(MeshDeviceConfig(std::nullopt), small, trace);
	meshes.back()->parent = nullptr;
	learn_windows(*meshes.back());
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

void close_meshes()
{
	while (!meshes.empty())
		close_mesh(meshes.size() - 1);
}

/* Words of the command line: the architecture, how many chips, and what the dice begin with. */
void begin(char **words)
{
	experimental::configure_mock_mode(std::strcmp(words[0], "blackhole") ? tt::ARCH::WORMHOLE_B0
									     : tt::ARCH::BLACKHOLE,
					  static_cast<std::uint32_t>(std::atoi(words[1])));
	dice.seed(std::strtoull(words[2], nullptr, 10));
}

} // namespace
