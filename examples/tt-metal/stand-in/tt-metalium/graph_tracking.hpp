/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stand-in: the public names by which tt-metal tells what it does with memory. */

#include <any>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tt-metalium/buffer.hpp>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/device.hpp>

namespace tt::tt_metal
{

class Program;

#ifdef STAND_IN_BEFORE_68
using Argument = std::any;
#else
struct TrackedArgument {
	std::any value;
	std::string (*to_string_fn)(const std::any &);
};
using Argument = TrackedArgument;
#endif

class IGraphProcessor
{
      public:
	enum class RunMode {
		NORMAL,
		NO_DISPATCH,
	};

	virtual ~IGraphProcessor() = default;

	virtual bool is_capture_processor() const
	{
		return true;
	}

	virtual void track_allocate(const Buffer *)
	{
	}

	virtual void track_deallocate(Buffer *)
	{
	}

	virtual void track_allocate_cb(const CoreRangeSet &, std::uint64_t, std::uint64_t, bool,
				       const IDevice *)
	{
	}

	virtual void track_deallocate_cb(const IDevice *)
	{
	}

	virtual void track_program(Program *, const IDevice *)
	{
	}

	virtual void track_function_start(std::string_view, std::span<Argument>)
	{
	}

	virtual void track_function_end()
	{
	}

	virtual void track_function_end(const std::any &)
	{
	}

	virtual void begin_capture(RunMode)
	{
	}
};

class GraphTracker
{
      public:
	GraphTracker(const GraphTracker &) = delete;
	GraphTracker &operator=(const GraphTracker &) = delete;

	static GraphTracker &instance();

	void push_processor(const std::shared_ptr<IGraphProcessor> &processor);
	void pop_processor();
	const std::vector<std::shared_ptr<IGraphProcessor>> &get_processors() const;

	void track_allocate(const Buffer *buffer);
	void track_deallocate(Buffer *buffer);
	void track_allocate_cb(const CoreRangeSet &cores, std::uint64_t address, std::uint64_t size,
			       bool is_globally_allocated, const IDevice *device);
	void track_deallocate_cb(const IDevice *device);
	void track_program(Program *program, const IDevice *device);

      private:
	GraphTracker() = default;

	static thread_local std::vector<std::shared_ptr<IGraphProcessor>> processors;
};

} /* namespace tt::tt_metal */
