/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The stand-in's tracker, and its check of circular buffers, in a file of their own: as in tt-metal, calls to
 * them go from one file to another.
 */

#include "metal.hpp"

#include <atomic>
#include <stdexcept>

namespace tt::tt_metal
{

std::size_t tracked;

static void count()
{
	__atomic_fetch_add(&tracked, 1, __ATOMIC_RELAXED);
}

GraphTracker &GraphTracker::instance()
{
	static GraphTracker tracker;

	return tracker;
}

void GraphTracker::track_allocate(const Buffer *)
{
	count();
}

void GraphTracker::track_deallocate(Buffer *)
{
	count();
}

void GraphTracker::track_allocate_cb(const CoreRangeSet &, std::uint64_t, std::uint64_t, bool,
				     const IDevice *)
{
	count();
}

void GraphTracker::track_deallocate_cb(const IDevice *)
{
	count();
}

DeviceAddr Inner::allocate_buffer(Buffer *buffer)
{
	if (buffer->type() != BufferType::SYSTEM_MEMORY &&
	    buffer->aligned_size_per_bank() >
		    get_statistics(buffer->type()).largest_free_block_bytes)
		throw std::runtime_error("not enough memory");
	return allocate(buffer->type(), buffer->size());
}

namespace detail
{

void ProgramImpl::validate_circular_buffer_region(const IDevice *device)
{
#if METAL_SHAPE >= 66
	const auto lowest = device->inner()->lowest_l1();
#else
	const auto lowest = device->allocator()->lowest_l1();
#endif

	for (const auto &circular : circulars_) {
		if (!circular.global &&
		    circular.address + circular.size > device->l1_size_per_core())
			throw std::runtime_error("circular buffers do not fit into L1");
		if (lowest && !circular.global && *lowest < circular.address + circular.size)
			throw std::runtime_error("circular buffers clash with L1 buffers");
	}
}

} /* namespace detail */

} /* namespace tt::tt_metal */
