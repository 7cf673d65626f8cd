/* SPDX-License-Identifier: Apache-2.0 */

/*
 * scenes SCENE ARCH CHIPS SEED MOMENTS: random operations of one kind on a real tt-metal in mock mode, which
 * scenes.py compares moment by moment as agree.py does (truth.hpp):
 *
 *   sub-devices    layouts with local L1 from none to half of it, loaded before and after the first buffer
 *   hybrid         an address for each core (TT_METAL_ALLOCATOR_MODE_HYBRID=1)
 *   regions        L1_SMALL and TRACE of every size, until they are full
 *   refused        allocations that fail, at one call site and at many, on several threads
 *   close          devices, meshes and submeshes that are closed while buffers are live
 *   circular       programs whose circular buffers grow beyond L1, next to programs that run (slow dispatch)
 */

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tt-metalium/experimental/per_core_allocation/buffer.hpp>

#include "truth.hpp"

namespace
{

constexpr std::uint64_t unit = 64; /* what all sizes of regions are aligned to */
constexpr std::uint64_t tile = 2048;
constexpr std::uint64_t small_region = 32 << 10, trace_region = 1 << 20;

Mesh &any_mesh()
{
	return *meshes.at(roll(meshes.size()));
}

/* Where a buffer is asked for, and what for. */
struct Wish {
	BufferType type = BufferType::DRAM;
	std::uint64_t size = tile, page = tile;
	BufferShardingArgs sharding;
	std::optional<SubDeviceId> sub_device;
	IDevice *chip = nullptr; /* a Buffer of this one, or of the mesh */
	bool is_single = false;  /* a Buffer, not a MeshBuffer */
};

/* What the text of tt-metal's exception says; false if it is another one. */
bool read_refusal(const char *text, std::uint64_t *per_bank, std::uint64_t *largest)
{
	const char *across = std::strstr(text, " across ");
	const char *block = std::strstr(text, "largest free block: ");
	unsigned banks;

	return std::strstr(text, "Out of Memory") && across && block &&
	       (std::sscanf(across, " across %u banks, where each bank needs to store %" SCNu64,
			    &banks, per_bank) == 2 ||
		std::sscanf(across, " across %u banks (%" SCNu64, &banks, per_bank) == 2) &&
	       std::sscanf(block, "largest free block: %" SCNu64, largest) == 1;
}

void note_refusal(unsigned site, const Mesh &mesh, const Wish &wish, const char *text)
{
	static std::mutex mutex;
	const std::scoped_lock lock(mutex);
	const auto chips = mesh.device->get_devices();
	std::uint64_t per_bank, largest;

	if (!read_refusal(text, &per_bank, &largest))
		return;
	notes.push_back("f " + std::to_string(site) + " " +
			std::to_string((wish.chip ? wish.chip : chips.front())->id()) + " " +
			std::to_string(wish.chip ? 1 : chips.size()) + " " + name_of(wish.type) +
			" " + std::to_string(wish.size) + " " + std::to_string(per_bank) + " " +
			std::to_string(largest));
}

constexpr unsigned any_site = 1000; /* one of those that ask for something else each time */

void make(Mesh &mesh, const Wish &wish, unsigned site = any_site)
{
	const DeviceLocalBufferConfig config{.page_size = wish.page,
					     .buffer_type = wish.type,
					     .sharding_args = wish.sharding,
					     .bottom_up = std::nullopt,
					     .sub_device_id = wish.sub_device};

	try {
		if (wish.is_single || wish.chip)
			mesh.single.push_back(Buffer::create(
				wish.chip ? wish.chip : mesh.device.get(), wish.size, wish.page,
				wish.type, wish.sharding, std::nullopt, wish.sub_device));
		else
			mesh.shared.push_back(
				MeshBuffer::create(ReplicatedBufferConfig{.size = wish.size},
						   config, mesh.device.get()));
	} catch (const std::exception &error) {
		note_refusal(site, mesh, wish, error.what());
		throw;
	}
}

Wish sharded(BufferType type, std::uint32_t x, std::uint32_t cores, std::uint32_t tiles)
{
	Wish wish;

	wish.type = type;
	wish.size = std::uint64_t{cores} * tiles * tile;
	wish.sharding = shards(x, cores, tiles);
	return wish;
}

Wish interleaved(BufferType type, std::uint64_t most)
{
	Wish wish;

	wish.type = type;
	wish.page = any_page();
	wish.size = wish.page * (1 + roll(most));
	return wish;
}

std::uint32_t few(std::uint32_t most)
{
	return 1 + static_cast<std::uint32_t>(roll(most));
}

Wish any_wish()
{
	const std::uint64_t n = roll(10);
	Wish wish = n < 3   ? interleaved(BufferType::DRAM, 3000)
		    : n < 6 ? interleaved(BufferType::L1, 60)
		    : n < 7 ? interleaved(BufferType::TRACE, 60)
		    : n < 9 ? sharded(BufferType::L1, 0, few(6), few(3))
			    : sharded(BufferType::L1_SMALL, 0, few(6), 1);

	wish.is_single = roll(2) != 0;
	return wish;
}

std::string allocate()
{
	const Wish wish = any_wish();

	make(any_mesh(), wish);
	return std::string("allocate ") + name_of(wish.type);
}

std::string release()
{
	Mesh &mesh = any_mesh();

	drop(mesh.shared);
	drop(mesh.single);
	return "free";
}

std::string divide()
{
	Mesh &mesh = *meshes.front();

	if (mesh.device->num_devices() < 2 || meshes.size() > 3)
		return "nothing";
	meshes.push_back(std::make_unique<Mesh>());
	meshes.back()->device = mesh.device->create_submesh(MeshShape(1, 1));
	meshes.back()->parent = &mesh;
	return "submesh";
}

/* From none to half of what a core has: as often a little as much. */
std::uint64_t any_local(const Mesh &mesh)
{
	const Allocator &allocator = *mesh.device->allocator();
	const std::uint64_t half = (allocator.get_worker_l1_size() -
				    allocator.get_base_allocator_addr(HalMemType::L1)) /
				   2;
	const std::uint64_t n = roll(4);

	return n == 0 ? 0 : (1 + roll(n == 1 ? 200 : half / unit)) * unit;
}

/* tt-metal ends a program that frees one of them while other sub-devices are loaded. */
std::vector<std::shared_ptr<void>> locals;

std::string lay_out()
{
	Mesh &mesh = *meshes.front();
	const std::uint64_t local = any_local(mesh);
	const std::uint32_t count = few(3);
	std::vector<SubDevice> parts;

	locals.clear();
	for (std::uint32_t i = 0; i < count; i++)
		parts.emplace_back(std::array{
			CoreRangeSet(CoreRange({2 * i, 2 * i}, {2 * i + 1, 2 * i + 1}))});
	mesh.managers.push_back(mesh.device->create_sub_device_manager(
		ttsl::Span<const SubDevice>(parts.data(), parts.size()), local));
	mesh.device->load_sub_device_manager(mesh.managers.back());
	return "load sub-devices with " + std::to_string(local);
}

std::string allocate_local()
{
	Mesh &mesh = *meshes.front();
	const std::uint32_t count = mesh.device->num_sub_devices();
	const auto i = static_cast<std::uint32_t>(roll(count));
	Wish wish = sharded(BufferType::L1, 2 * i, few(2), few(3));

	if (!allocator_of(*mesh.device, i))
		return "nothing";
	wish.sub_device = SubDeviceId{static_cast<std::uint8_t>(i)};
	make(mesh, wish);
	locals.push_back(mesh.shared.back());
	mesh.shared.pop_back();
	return "allocate local L1";
}

void open_any()
{
	open_mesh(roll(3) ? unit * (1 + roll(1000)) : 0, roll(3) ? (1 + roll(64)) << 16 : 0);
}

std::string open_again()
{
	if (roll(2))
		locals.clear();
	close_meshes();
	locals.clear();
	tell("close all");
	open_any();
	return "open again";
}

/* Two of three times the allocator is met for the first time while sub-devices have cut its banks. */
std::string begin_sub_devices()
{
	if (!roll(3))
		return "open again";
	const std::string told = lay_out();

	if (!roll(3))
		return told + " and " + allocate_local();
	make(*meshes.front(), interleaved(BufferType::L1, 60));
	return told + " and allocate L1";
}

std::string play_sub_devices()
{
	const std::uint64_t n = roll(100);

	if (n < 12) {
		open_again();
		return begin_sub_devices();
	}
	if (n < 20)
		return lay_out();
	if (n < 24) {
		locals.clear();
		meshes.front()->device->clear_loaded_sub_device_manager();
		return "clear sub-devices";
	}
	if (n < 30)
		drop(locals);
	return n < 40 ? allocate_local() : n < 80 ? allocate() : release();
}

/* Each core has an address of its own, and other buffers have the same one on other cores. */
std::string allocate_per_core(std::uint32_t tiles)
{
	Mesh &mesh = any_mesh();
	const std::uint32_t cores = few(4);
	Wish wish = sharded(BufferType::L1, few(4) - 1, cores, tiles);
	const auto chips = mesh.device->get_devices();

	experimental::per_core_allocation::set_per_core_allocation(wish.sharding, true);
	if (roll(2))
		wish.chip = chips[roll(chips.size())];
	make(mesh, wish);
	return "allocate per core";
}

constexpr std::uint32_t more_than_l1 = 1000; /* tiles */

std::string play_hybrid()
{
	const std::uint64_t n = roll(100);

	return n < 45   ? allocate_per_core(few(3))
	       : n < 50 ? allocate_per_core(more_than_l1)
	       : n < 70 ? allocate()
	       : n < 97 ? release()
			: open_again();
}

std::string play_regions()
{
	const std::uint64_t n = roll(100);

	if (n < 6)
		return open_again();
	if (n < 60) {
		Wish wish = roll(2) ? sharded(BufferType::L1_SMALL, 0, few(6), few(4))
				    : interleaved(BufferType::TRACE, 200);

		wish.is_single = roll(2) != 0;
		make(any_mesh(), wish);
		return std::string("allocate ") + name_of(wish.type);
	}
	return n < 75 ? allocate() : release();
}

/* One call site for each number: what is asked for at one must always be the same. */
template <unsigned Site> [[gnu::noinline]] void ask(Mesh &mesh, const Wish &wish)
{
	try {
		make(mesh, wish, Site);
	} catch (const std::exception &) {
		/* Noted. */
	}
}

template <std::size_t... Sites> constexpr auto all_sites(std::index_sequence<Sites...> /*unused*/)
{
	return std::array{&ask<Sites>...};
}

constexpr auto sites = all_sites(std::make_index_sequence<48>());

/* More than there is, of each kind. */
Wish wish_of(unsigned site)
{
	const std::uint64_t extra = site / 6;
	const auto tiles = static_cast<std::uint32_t>(1000 + extra);
	Wish wish;

	switch (site % 6) {
	case 0:
	case 1:
		wish.page = 1 << 20;
		wish.size = (40960 + extra) << 20;
		break;
	case 2:
		wish.type = BufferType::L1;
		wish.size = (256 + extra) << 20;
		break;
	case 3:
		wish = sharded(BufferType::L1, 0, 2, tiles);
		break;
	case 4:
		wish = sharded(BufferType::L1_SMALL, 0, 1 + site % 3, tiles);
		break;
	default:
		wish.type = BufferType::TRACE;
		wish.size = (64 + extra) << 20;
		break;
	}
	wish.is_single = site / 6 % 2 != 0;
	return wish;
}

std::string ask_for_too_much()
{
	const auto site = static_cast<unsigned>(roll(sites.size() - 1));

	sites[site](any_mesh(), wish_of(site));
	return "ask for too much";
}

std::string ask_on_threads()
{
	std::vector<std::thread> workers;

	for (unsigned i = 0; i < 4; i++)
		workers.emplace_back(
			[&mesh = any_mesh(), site = static_cast<unsigned>(roll(sites.size() - 1))] {
				for (unsigned k = 0; k < 5; k++)
					sites[site](mesh, wish_of(site));
			});
	for (std::thread &worker : workers)
		worker.join();
	return "threads";
}

/* Enough is free, but not in one piece: every second of the blocks that fill L1. */
std::string ask_for_a_piece()
{
	Mesh &mesh = *meshes.front();
	const std::uint64_t banks = mesh.device->allocator()->get_num_banks(BufferType::L1);
	std::vector<std::shared_ptr<MeshBuffer>> kept;
	Wish block;

	block.type = BufferType::L1;
	block.size = banks * 32 * tile;
	mesh.shared.clear();
	mesh.single.clear();
	for (unsigned i = 0; i < 15; i++)
		make(mesh, block);
	for (unsigned i = 0; i < mesh.shared.size(); i += 2)
		kept.push_back(mesh.shared[i]);
	mesh.shared = std::move(kept);
	block.size *= 8;
	sites.back()(mesh, block);
	return "fragmented";
}

std::string play_refused()
{
	const std::uint64_t n = roll(100);

	return n < 50   ? ask_for_too_much()
	       : n < 60 ? ask_on_threads()
	       : n < 68 ? ask_for_a_piece()
	       : n < 74 ? divide()
	       : n < 88 ? allocate()
			: release();
}

void note_held(const Mesh &mesh)
{
	std::set<Allocator *> all{mesh.device->allocator().get()};

	for (std::uint32_t i = 0; i < mesh.device->num_sub_devices(); i++)
		if (Allocator *own = allocator_of(*mesh.device, i))
			all.insert(own);
	for (const Allocator *allocator : all)
		for (const Buffer *buffer : allocator->get_allocated_buffers())
			for (const IDevice *chip : mesh.device->get_devices())
				notes.push_back("h " + std::to_string(chip->id()) + " " +
						name_of(buffer->buffer_type()) + " " +
						std::to_string(buffer->size()));
}

std::string close_one()
{
	const std::size_t at = meshes.size() - 1;
	const std::unique_ptr<Mesh> mesh = std::move(meshes.at(at));

	meshes.pop_back();
	note_held(*mesh);
	mesh->device->close();
	if (!meshes.empty())
		return "close a submesh";
	tell("close all");
	open_any();
	return "open again";
}

/* As programs do that know nothing of meshes. */
std::string close_device()
{
	while (!meshes.empty()) {
		const std::unique_ptr<Mesh> mesh = std::move(meshes.back());

		meshes.pop_back();
		mesh->shared.clear();
		mesh->single.clear();
		mesh->device->close();
	}
	IDevice *device = CreateDevice(0, 1, small_region, trace_region);
	const auto buffer = Buffer::create(device, tile * few(9), tile, BufferType::DRAM);
	const auto other = Buffer::create(device, tile * few(9), tile, BufferType::L1);

	notes.push_back("h 0 DRAM " + std::to_string(buffer->size()));
	notes.push_back("h 0 L1 " + std::to_string(other->size()));
	CloseDevice(device);
	tell("close all");
	open_any();
	return "open again";
}

std::string play_close()
{
	const std::uint64_t n = roll(100);

	return n < 45   ? allocate()
	       : n < 65 ? release()
	       : n < 78 ? divide()
	       : n < 96 ? close_one()
			: close_device();
}

/* One core or several, with as much as @size together. */
Program program_of(std::uint64_t size)
{
	const std::uint64_t last = roll(3);
	Program program = CreateProgram();

	CreateCircularBuffer(program, CoreRange({0, 0}, {last, last}),
			     CircularBufferConfig(static_cast<std::uint32_t>(size),
						  {{0, tt::DataFormat::Float16_b}})
				     .set_page_size(0, tile));
	return program;
}

std::string run_program()
{
	Mesh &mesh = *meshes.front();
	IDevice *chip = mesh.device->get_devices().front();
	const std::uint64_t size = tile * few(8);
	auto placed = std::make_shared<Placed>(Placed{program_of(size), chip->id(), size});

	tt::tt_metal::detail::LaunchProgram(chip, placed->program);
	mesh.programs.push_back(placed);
	if (mesh.programs.size() > 3)
		drop(mesh.programs);
	return "circular buffers";
}

/*
 * What the text of tt-metal's exception says of circular buffers that begin at @base. It judges a program of a chip
 * by the whole mesh, and does not say which chip it was.
 */
void note_beyond(unsigned site, std::uint64_t base, const char *text)
{
	const auto chips = meshes.front()->device->get_devices();
	const char *grow = std::strstr(text, "grow to ");
	std::uint64_t end, most;

	if (!grow ||
	    std::sscanf(grow, "grow to %" SCNu64 " B which is beyond max L1 size of %" SCNu64, &end,
			&most) != 2)
		throw std::runtime_error(text);
	notes.push_back("f " + std::to_string(site) + " " + std::to_string(chips.front()->id()) +
			" " + std::to_string(chips.size()) + " CB " + std::to_string(end - base) +
			" " + std::to_string(end - base) + " " + std::to_string(most - base));
}

/* As above: one call site for each size. */
template <unsigned Site> [[gnu::noinline]] void launch(IDevice &chip)
{
	const std::uint64_t base = chip.allocator()->get_base_allocator_addr(HalMemType::L1);
	const std::uint64_t room = chip.allocator()->get_worker_l1_size() - base;
	Program program = program_of((room / tile + 1 + Site) * tile);

	try {
		tt::tt_metal::detail::LaunchProgram(&chip, program);
	} catch (const std::exception &error) {
		note_beyond(Site, base, error.what());
	}
}

template <std::size_t... Sites>
constexpr auto all_launches(std::index_sequence<Sites...> /*unused*/)
{
	return std::array{&launch<Sites>...};
}

constexpr auto launches = all_launches(std::make_index_sequence<8>());

std::string grow_beyond()
{
	const auto chips = meshes.front()->device->get_devices();

	launches[roll(launches.size())](*chips[roll(chips.size())]);
	return "grow beyond L1";
}

std::string play_circular()
{
	const std::uint64_t n = roll(100);

	return n < 45   ? grow_beyond()
	       : n < 65 ? run_program()
	       : n < 80 ? allocate()
	       : n < 96 ? release()
			: open_again();
}

using Play = std::string (*)();

const std::map<std::string, Play> plays{
	{"sub-devices", play_sub_devices}, {"hybrid", play_hybrid}, {"regions", play_regions},
	{"refused", play_refused},         {"close", play_close},   {"circular", play_circular}};

} // namespace

int main(int count, char **words)
{
	if (count != 6 || !plays.contains(words[1]))
		return 2;
	const Play play = plays.at(words[1]);

	begin(words + 2);
	open_mesh(small_region, trace_region);
	if (play == play_sub_devices)
		tell(begin_sub_devices());
	for (int i = std::atoi(words[5]); i > 0; i--) {
		try {
			tell(play());
		} catch (const std::exception &error) {
			/* Full, or refused by tt-metal: both must leave the same books. */
			tell(std::string("refused: ") + std::string(error.what()).substr(0, 60));
		}
	}
	locals.clear();
	for (const auto &mesh : meshes) {
		mesh->shared.clear();
		mesh->single.clear();
	}
	close_meshes();
	tell("closed");
	return 0;
}
