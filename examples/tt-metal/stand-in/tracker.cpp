/* SPDX-License-Identifier: Apache-2.0 */

/* The stand-in's half that passes on what it is told, to the processors of the thread. */

#include <tt-metalium/graph_tracking.hpp>

namespace tt::tt_metal
{

thread_local std::vector<std::shared_ptr<IGraphProcessor>> GraphTracker::processors;

GraphTracker &GraphTracker::instance()
{
	static GraphTracker tracker;

	return tracker;
}

void GraphTracker::push_processor(const std::shared_ptr<IGraphProcessor> &processor)
{
	processors.push_back(processor);
}

void GraphTracker::pop_processor()
{
	processors.pop_back();
}

const std::vector<std::shared_ptr<IGraphProcessor>> &GraphTracker::get_processors() const
{
	return processors;
}

void GraphTracker::track_allocate(const Buffer *buffer)
{
	for (const auto &processor : processors)
		processor->track_allocate(buffer);
}

void GraphTracker::track_deallocate(Buffer *buffer)
{
	for (const auto &processor : processors)
		processor->track_deallocate(buffer);
}

void GraphTracker::track_allocate_cb(const CoreRangeSet &cores, std::uint64_t address,
				     std::uint64_t size, bool is_globally_allocated,
				     const IDevice *device)
{
	for (const auto &processor : processors)
		processor->track_allocate_cb(cores, address, size, is_globally_allocated, device);
}

void GraphTracker::track_deallocate_cb(const IDevice *device)
{
	for (const auto &processor : processors)
		processor->track_deallocate_cb(device);
}

void GraphTracker::track_program(Program *program, const IDevice *device)
{
	for (const auto &processor : processors)
		processor->track_program(program, device);
}

} /* namespace tt::tt_metal */
