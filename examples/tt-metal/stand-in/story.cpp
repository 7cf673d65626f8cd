/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A scripted sequence of everything that tt-metal may tell its observers, with the figures after each step.
 * At the end it waits for its input to close, so that others can look.
 */

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <tt-metalium/graph_tracking.hpp>
#include <tt-metalium/mesh_device.hpp>

#include "../observer.hpp"

using namespace tt::tt_metal;

namespace
{

class Device : public IDevice
{
      public:
	explicit Device(int id) : id_(id)
	{
	}

	int id() const override
	{
		if (!open)
			touched++;
		return id_;
	}

	bool is_initialized() const override
	{
		return open;
	}

	bool open = true;
	static inline int touched = 0; /* asked for its number when there was none to ask */

      private:
	int id_;
};

void say(const char *step)
{
	static const char *const types[] = {"DRAM",  "L1", "SYSTEM_MEMORY", "L1_SMALL",
					    "TRACE", "CB", "KERNEL"};
	std::string line = std::string(step) + ":";

	for (std::uint32_t device = 0; device < 1024; device++) {
		for (std::uint32_t type = 0; type < 7; type++) {
			struct ttmem_stats figures = {};

			if (ttmem_stats(device, type, &figures) == 0 && figures.buffers)
				line += " " + std::to_string(device) + "/" + types[type] + "=" +
					std::to_string(figures.bytes) + "/" +
					std::to_string(figures.buffers);
		}
	}
	std::puts(line.c_str());
}

using Cards = std::vector<std::unique_ptr<Device>>;

void meshes(Cards &cards, distributed::MeshDevice &mesh)
{
	auto backing = Buffer::create({&mesh, BufferType::L1, 0x2000, 4096});
	say("mesh");
	std::vector<std::shared_ptr<Buffer>> looks;
	for (auto &card : cards) /* as tt-metal makes them: they do not tell */
		looks.push_back(
			Buffer::create({card.get(), BufferType::L1, 0x2000, 4096, false, false}));
	for (auto &card : cards) /* as an older version did */
		looks.push_back(
			Buffer::create({card.get(), BufferType::L1, 0x2000, 4096, false, true}));
	looks.push_back(
		Buffer::create({cards[3].get(), BufferType::L1, 0x2000, 2048, false, true}));
	say("views");
	GraphTracker::instance().track_deallocate(looks.back().get());
	looks.clear();
	say("views end");

	const IDevice *first = cards[0].get();
	GraphTracker &tracker = GraphTracker::instance();
	tracker.track_allocate_cb(CoreRangeSet(4), 0x100, 256, false, first);
	say("cb");
	tracker.track_allocate_cb(CoreRangeSet(2), 0x100, 256, false, first);
	say("cb of another program, smaller");
	tracker.track_allocate_cb(CoreRangeSet(8), 0x100, 256, false, first);
	say("cb of another program, larger");
	tracker.track_allocate_cb(CoreRangeSet(4), 0x2000, 128, true, first);
	say("global cb");
	tracker.track_allocate_cb(CoreRangeSet(4), 0x700, 0, false, first);
	tracker.track_allocate_cb(CoreRangeSet(2), 0x300, 16, false, &mesh);
	say("mesh cb");
	tracker.track_deallocate_cb(first);
	say("cb end");
	tracker.track_deallocate_cb(&mesh);
	tracker.track_deallocate_cb(&mesh);
	say("mesh cb end");
	backing.reset();
	say("mesh end");
}

/* Of programs only their addresses are known, and nobody looks into them. */
Program *program_of(int n)
{
	static char programs[8];

	return reinterpret_cast<Program *>(&programs[n]);
}

void programs(Cards &cards, distributed::MeshDevice &mesh)
{
	const IDevice *first = cards[0].get();
	GraphTracker &tracker = GraphTracker::instance();

	tracker.track_program(program_of(0), first);
	say("program");
	for (int i = 0; i < 100; i++)
		tracker.track_program(program_of(0), first);
	tracker.track_program(nullptr, first);
	tracker.track_program(program_of(0), nullptr);
	say("the same program");
	tracker.track_program(program_of(1), &mesh);
	say("mesh program");
	tracker.track_program(program_of(1), first);
	tracker.track_program(program_of(1), &mesh);
	say("mesh program on a device of it");
	tracker.track_deallocate_cb(first);
	say("program end");
	tracker.track_program(program_of(0), first);
	say("program runs again");
	tracker.track_deallocate_cb(&mesh);
	say("mesh program end");
	tracker.track_deallocate_cb(first);
	say("all programs end");
}

/* Of these no end is told: at the exit of the process they are not there all the same. */
void programs_that_stay(Cards &cards, distributed::MeshDevice &mesh)
{
	GraphTracker::instance().track_program(program_of(2), &mesh);
	GraphTracker::instance().track_program(program_of(3), cards[0].get());
}

void singles(Cards &cards)
{
	auto plain = Buffer::create({cards[0].get(), BufferType::DRAM, 0x1000, 1024});
	say("plain");
	auto handed = Buffer::create({cards[1].get(), BufferType::DRAM, 0x9000, 64, false, true});
	say("preallocated");
	handed.reset();
	auto next = Buffer::create({cards[1].get(), BufferType::DRAM, 0x9000, 128});
	say("preallocated ends unsaid");
	auto hooked = Buffer::create({cards[0].get(), BufferType::DRAM, 0, 512});
	say("hooked");
	hooked.reset();
	say("hooked end");
	auto empty = Buffer::create({cards[0].get(), BufferType::DRAM, 0x6000, 0});
	empty.reset();
	say("empty");
	auto stranger = Buffer::create({cards[4].get(), BufferType::L1, 0x40, 16, true, false});
	stranger.reset();
	say("unknown");
}

void ends(Cards &cards)
{
	auto outlives = Buffer::create({cards[2].get(), BufferType::TRACE, 0x5000, 256});
	cards[2]->open = false;
	outlives.reset();
	say("device closed first");
	cards[2]->open = true;
	auto successor = Buffer::create({cards[2].get(), BufferType::TRACE, 0x5000, 512});
	say("its memory used again");
	auto late = Buffer::create({cards[3].get(), BufferType::TRACE, 0x5000, 32});
	cards[3]->open = false;
	GraphTracker::instance().track_deallocate(late.get());
	late.reset();
	cards[3]->open = true;
	say("late free");
	std::printf("touched %d\n", Device::touched);
}

void crowd(Cards &cards, std::vector<std::shared_ptr<Buffer>> &kept)
{
	std::vector<std::thread> threads;

	kept.resize(4);
	for (std::size_t i = 0; i < kept.size(); i++)
		threads.emplace_back([&cards, &kept, i] {
			ttmem_metal::Watch watch;

			for (DeviceAddr n = 1; n <= 1000; n++)
				(void)Buffer::create(
					{cards[i].get(), BufferType::L1_SMALL, n * 64, 32});
			kept[i] = Buffer::create({cards[i].get(), BufferType::L1_SMALL, 0x40, 32});
		});
	for (auto &thread : threads)
		thread.join();
	say("threads");
}

/* A child begins with nothing: what its parent holds is not counted twice. */
void child(Cards &cards)
{
	std::fflush(stdout);
	const pid_t pid = fork();

	if (pid == 0) {
		auto own = Buffer::create({cards[5].get(), BufferType::DRAM, 0x1000, 80});

		say("child");
		std::fflush(stdout);
		_exit(0);
	}
	(void)waitpid(pid, nullptr, 0); /* what it has to say it prints */
}

} /* namespace */

int main()
{
	ttmem_metal::Watch watch;
	Cards cards;
	std::vector<IDevice *> all;
	std::vector<std::shared_ptr<Buffer>> kept;

	for (int i = 0; i < 8; i++) {
		cards.push_back(std::make_unique<Device>(i));
		all.push_back(cards.back().get());
	}
	distributed::MeshDevice mesh(all);

	if (std::getenv("STORY_OF_PROGRAMS")) {
		programs_that_stay(cards, mesh);
		say("programs stay");
		return 0;
	}
	meshes(cards, mesh);
	programs(cards, mesh);
	singles(cards);
	ends(cards);
	crowd(cards, kept);
	child(cards);
	for (const auto &processor : GraphTracker::instance().get_processors())
		processor->track_function_start("ttnn::matmul", {});
	kept.push_back(Buffer::create({cards[7].get(), BufferType::DRAM, 0x7000, 4096}));
	for (const auto &processor : GraphTracker::instance().get_processors())
		processor->track_function_end();
	programs_that_stay(cards, mesh);
	say("end");
	std::fflush(stdout);
	while (std::getchar() != EOF)
		;
	/* Gone without a word: what is left is what a process leaves that ends here. */
	for (auto &card : cards)
		card->open = false;
	return 0;
}
