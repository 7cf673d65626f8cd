/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes every kind of report that tt-metal may make, and prints what this process's book has after each
 * step. It knows nothing of ttmem. With an argument it stops at the step of that name and waits for its
 * input to close, so that others can look.
 */

#include "metal.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tt::tt_metal;
using detail::ProgramImpl;

namespace
{

using Buffers = std::vector<std::shared_ptr<Buffer>>;
using Cards = std::vector<std::unique_ptr<Device>>;

/* As ttmem.h has it; asked for by name, because this is not linked with it. */
struct Figures {
	std::uint64_t bytes, buffers, peak, allocs, frees;
};

void say(const char *step)
{
	static const char *const types[] = {"DRAM",  "L1", "SYSTEM_MEMORY", "L1_SMALL",
					    "TRACE", "CB", "KERNEL"};
	const auto ask = reinterpret_cast<int (*)(std::uint32_t, std::uint32_t, Figures *)>(
		dlsym(RTLD_DEFAULT, "ttmem_stats"));
	const char *stop = std::getenv("PLAY_STOP");
	std::string line = std::string(step) + ":";

	for (std::uint32_t device = 0; ask && device < 64; device++) {
		for (std::uint32_t type = 0; type < 7; type++) {
			Figures figures = {};

			if (ask(device, type, &figures) == 0 && figures.buffers)
				line += " " + std::to_string(device) + "/" + types[type] + "=" +
					std::to_string(figures.bytes) + "/" +
					std::to_string(figures.buffers);
		}
	}
	std::puts(line.c_str());
	std::fflush(stdout);
	while (stop && std::strcmp(stop, step) == 0 && std::getchar() != EOF)
		;
}

void singles(Cards &cards, Buffers &kept)
{
	kept.push_back(Buffer::create({cards[0].get(), 65536, 2048, BufferType::DRAM}));
	say("one");
	kept.push_back(Buffer::create({cards[1].get(), 4096, 1024, BufferType::L1}));
	kept.push_back(Buffer::create({cards[1].get(), 512, 64, BufferType::L1_SMALL, 8}));
	kept.push_back(Buffer::create({cards[1].get(), 3072, 1024, BufferType::TRACE}));
	kept.push_back(Buffer::create({cards[1].get(), 128, 128, BufferType::SYSTEM_MEMORY}));
	kept.push_back(Buffer::create({cards[1].get(), 8192, 2048, BufferType::L1, 4}));
	say("types");
	(void)Buffer::create({cards[2].get(), 1024, 1024, BufferType::DRAM, 0, nullptr, true});
	say("hooked");
}

/* Two allocators, one address. */
void meshes(Cards &cards, Buffers &kept)
{
	auto mesh = std::make_shared<distributed::MeshDevice>(std::vector<IDevice *>{
		cards[3].get(), cards[2].get(), cards[1].get(), cards[0].get()});
	auto part =
		std::make_shared<distributed::MeshDevice>(std::vector<IDevice *>{cards[2].get()});
	auto first = Buffer::create({mesh.get(), 16384, 1024, BufferType::DRAM});
	say("mesh");
	auto second = Buffer::create({part.get(), 4096, 1024, BufferType::DRAM});
	say("submesh at the same address");
	first.reset();
	say("mesh buffer freed");
	first = Buffer::create({mesh.get(), 2048, 1024, BufferType::L1});
	part->close();
	say("submesh closed");
	second.reset();
	mesh->close();
	say("mesh closed");
	first.reset();
	say("its buffer dropped");
	kept.push_back(Buffer::create({cards[3].get(), 96, 32, BufferType::L1_SMALL, 3}));
}

void sub_devices(Cards &cards)
{
	Inner of_sub_device;
	auto global = Buffer::create({cards[3].get(), 1024, 1024, BufferType::TRACE});
	auto local = Buffer::create({cards[3].get(), 640, 64, BufferType::L1, 2, &of_sub_device});
	say("sub-device");
	of_sub_device.clear();
	say("sub-device ended");
}

void programs(Cards &cards)
{
	auto p = std::make_unique<ProgramImpl>(std::vector<ProgramImpl::Circular>{
		{4, 0x10000, 256, false}, {4, 0x20000, 512, true}});
	auto q = std::make_unique<ProgramImpl>(
		std::vector<ProgramImpl::Circular>{{2, 0x10080, 512, false}});

	p->allocate_circular_buffers(cards[0].get());
	p->allocate_circular_buffers(cards[0].get());
	say("program");
	q->allocate_circular_buffers(cards[0].get());
	say("another");
	p.reset();
	say("the first ends");
	q.reset();
	say("programs end");
}

__attribute__((noinline)) std::shared_ptr<Buffer> make_tensor(IDevice *device)
{
	return Buffer::create({device, 2048, 32, BufferType::L1, 2});
}

__attribute__((noinline)) void run_program(ProgramImpl &program, IDevice *device)
{
	program.allocate_circular_buffers(device);
	program.validate_circular_buffer_region(device);
}

/* One that fits, one that does not, on a device and on a mesh. */
void refusals(Cards &cards)
{
	for (const bool on_mesh : {false, true}) {
		auto mesh = std::make_shared<distributed::MeshDevice>(
			std::vector<IDevice *>{cards[2].get(), cards[3].get()});
		IDevice *device = on_mesh ? static_cast<IDevice *>(mesh.get()) : cards[0].get();
		ProgramImpl fits({{2, 0x8000, 256, false}});
		ProgramImpl clashes({{2, 0x10000, 128, false}, {2, 0x10080, 128, false}});
		auto tensor = make_tensor(device);

		run_program(fits, device);
		for (int i = 0; i < 2; i++) {
			try {
				run_program(clashes, device);
				std::puts("it was not refused");
			} catch (const std::runtime_error &) {
			}
		}
		say(on_mesh ? "refused on a mesh" : "refused");
		tensor.reset();
		mesh->close();
	}
}

void crowd(Cards &cards)
{
	std::vector<std::thread> threads;

	for (std::size_t i = 0; i < 4; i++)
		threads.emplace_back([&cards, i] {
			for (DeviceAddr n = 1; n <= 500; n++)
				(void)Buffer::create(
					{cards[i].get(), n * 32, 32, BufferType::L1_SMALL, 2});
		});
	for (auto &thread : threads)
		thread.join();
	say("threads");
}

/* A child begins with nothing: what its parent holds is not counted twice. */
void child(Cards &cards)
{
	const pid_t pid = fork();

	if (pid == 0) {
		auto own = Buffer::create({cards[2].get(), 320, 32, BufferType::DRAM});

		say("child");
		own.reset();
		_exit(0);
	}
	(void)waitpid(pid, nullptr, 0); /* what it has to say it prints */
}

/* Sub-devices have most of L1 before the device's own allocator gives out its first buffer. */
void shrunk(Cards &cards, Buffers &kept)
{
#if METAL_SHAPE >= 66
	cards[1]->inner()->shrink(0x100000);
#else
	cards[1]->allocator()->shrink(0x100000);
#endif
	kept.push_back(Buffer::create({cards[1].get(), 1024, 1024, BufferType::L1}));
	kept.push_back(Buffer::create({cards[1].get(), 64, 32, BufferType::L1_SMALL, 2}));
	say("sub-devices first");
}

/* One address is live on several cores. Others have no such buffers. */
void per_core(Cards &cards)
{
#if METAL_SHAPE >= 70
	const auto make = [&cards](DeviceAddr size, std::vector<std::size_t> on) {
		return Buffer::create({cards[2].get(), size, 1024, BufferType::L1,
				       static_cast<std::uint32_t>(on.size()), nullptr, false, on});
	};
	auto a = make(4096, {0, 1}), b = make(2048, {2}), c = make(1024, {3}), d = make(8192, {1});

	say("per core");
	b.reset();
	say("one of them ends");
	b = make(3072, {2});
	a.reset();
	say("another comes");
#else
	(void)cards;
#endif
}

Cards open_cards()
{
	Cards cards;

	for (int id : {0, 1, 2, 3})
		cards.push_back(std::make_unique<Device>(id));
	return cards;
}

} /* namespace */

/* So that it can also be a module that somebody loads, as Python loads its own. */
extern "C" int play()
{
	Cards cards = open_cards();
	Buffers kept;

	say("open");
	singles(cards, kept);
	meshes(cards, kept);
	sub_devices(cards);
	programs(cards);
	refusals(cards);
	crowd(cards);
	child(cards);
	say("full");
	for (auto &card : cards)
		card->close();
	say("closed");
	kept.clear();
	cards = open_cards();
	kept.push_back(Buffer::create({cards[0].get(), 96, 32, BufferType::DRAM}));
	say("open again");
	if (std::getenv("PLAY_LEAK"))
		_exit(0);
	shrunk(cards, kept);
	kept.clear();
	per_core(cards);
	say("end");
	std::printf("tracked %zu\n", tracked);
	return 0;
}

int main()
{
	return play();
}
