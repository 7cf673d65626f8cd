/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An observer of tt-metal's buffers, for applications that can be compiled. On each thread that allocates:
 *
 *     ttmem_metal::Watch watch;
 *
 * Everything tt-metal reports on that thread from then on, and on its thread pool in the thread's name,
 * goes to ttmem until the end of the scope. Nothing here changes what tt-metal does, and nothing throws.
 * It compiles with tt-metal 0.62 and later.
 */

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tt-metalium/buffer.hpp>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/device.hpp>
#include <tt-metalium/graph_tracking.hpp>
#include <tt-metalium/mesh_device.hpp>

#include <ttmem/ttmem.h>

#include "ledger.hpp"

namespace ttmem_metal
{

using namespace tt::tt_metal; /* CoreRangeSet has moved between versions */

/* A mesh stands for its devices: tt-metal reports a buffer on it once, with the size per device. */
inline std::vector<std::uint32_t> devices_of(const IDevice *device)
{
	if (!device)
		return {};
	const auto *mesh = dynamic_cast<const distributed::MeshDevice *>(device);
	if (!mesh)
		return {static_cast<std::uint32_t>(device->id())};
	std::vector<std::uint32_t> devices;
	for (const IDevice *one : mesh->get_devices())
		devices.push_back(static_cast<std::uint32_t>(one->id()));
	return devices;
}

inline Facts facts_of(const Buffer &buffer)
{
	Facts facts;

	facts.devices = devices_of(buffer.device());
	facts.type = static_cast<std::uint32_t>(buffer.buffer_type());
	facts.size = buffer.size();
	if (facts.size == 0)
		return facts;
	facts.address = buffer.address();
	if (facts.address != 0)
		facts.size_per_bank = buffer.aligned_size_per_bank();
	return facts;
}

/* The second argument of a member function. That of track_function_start() was another one before 0.68. */
template <typename Function> struct Second;
template <typename Class, typename First, typename Argument>
struct Second<void (Class::*)(First, Argument)> {
	using type = Argument;
};
using FunctionArguments = Second<decltype(&IGraphProcessor::track_function_start)>::type;

class Observer : public IGraphProcessor
{
      public:
	/* In the background: nobody is capturing a graph. Older versions do not ask, hence no override. */
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winconsistent-missing-override"
#endif
	bool is_capture_processor() const
	{
		return false;
	}
#pragma GCC diagnostic pop

	void track_allocate(const Buffer *buffer) override
	{
		guarded([&] {
			Ledger::instance().allocated(buffer, buffer->weak_from_this(),
						     facts_of(*buffer));
		});
	}

	void track_deallocate(Buffer *buffer) override
	{
		guarded([&] {
			if (!Ledger::instance().deallocated(buffer))
				Ledger::instance().unknown(facts_of(*buffer));
		});
	}

	void track_allocate_cb(const CoreRangeSet &cores, std::uint64_t address, std::uint64_t size,
			       bool is_globally_allocated, const IDevice *device) override
	{
		guarded([&] {
			const Circular cb = {address, size, cores.num_cores(),
					     is_globally_allocated};

			Ledger::instance().circular(device, devices_of(device), cb);
		});
	}

	void track_deallocate_cb(const IDevice *device) override
	{
		guarded([&] { Ledger::instance().circular_end(device); });
	}

	void track_program(Program *program, const IDevice *device) override
	{
		guarded([&] { Ledger::instance().program(program, device, devices_of(device)); });
	}

	/* Operations are natural phases. */
	void track_function_start(std::string_view name, FunctionArguments) override
	{
		guarded([&] { ttmem_phase_push(std::string(name).c_str()); });
	}

	void track_function_end() override
	{
		ttmem_phase_pop();
	}

	void track_function_end(const std::any &) override
	{
		ttmem_phase_pop();
	}

      private:
	/* Whatever goes wrong here, the application's allocation has succeeded. */
	template <typename Work> static void guarded(Work &&work) noexcept
	{
		try {
			std::forward<Work>(work)();
		} catch (...) {
			Ledger::instance().lost();
		}
	}
};

/*
 * Observes on this thread until the end of the scope. tt-metal's processors are a stack per thread, and it
 * puts one of its own there when a device is opened: what lies above ours is put back.
 */
class Watch
{
      public:
	Watch() : observer_(std::make_shared<Observer>())
	{
		GraphTracker::instance().push_processor(observer_);
	}

	~Watch()
	{
		GraphTracker &tracker = GraphTracker::instance();
		const auto &processors = tracker.get_processors();
		std::vector<std::shared_ptr<IGraphProcessor>> above;

		/* Somebody may have taken ours away, with all others. */
		if (std::find(processors.begin(), processors.end(), observer_) == processors.end())
			return;
		for (; processors.back() != observer_; tracker.pop_processor())
			above.push_back(processors.back());
		tracker.pop_processor();
		for (; !above.empty(); above.pop_back())
			tracker.push_processor(above.back());
	}

	Watch(const Watch &) = delete;
	Watch &operator=(const Watch &) = delete;

      private:
	std::shared_ptr<IGraphProcessor> observer_;
};

} // namespace ttmem_metal
