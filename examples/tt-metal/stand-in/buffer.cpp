/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The stand-in's half that makes buffers and devices. It must not be compiled together with the tracker:
 * as in tt-metal, the calls to it go from one translation unit to another.
 */

#include <atomic>

#include <tt-metalium/buffer.hpp>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/graph_tracking.hpp>
#include <tt-metalium/mesh_device.hpp>

namespace tt::tt_metal
{

namespace
{

constexpr DeviceAddr page = 16;
constexpr DeviceAddr banks = 8;
std::atomic<std::size_t> next_id;

} /* namespace */

std::uint32_t CoreRangeSet::num_cores() const
{
	return cores_;
}

Buffer::Buffer(const BufferSetting &setting)
    : device_(setting.device), size_(setting.size), buffer_type_(setting.type),
      owns_data_(setting.owns_data), address_(setting.address), unique_id_(next_id++)
{
}

std::shared_ptr<Buffer> Buffer::create(const BufferSetting &setting)
{
	auto buffer = std::make_shared<Buffer>(setting);

	if (setting.tells)
		GraphTracker::instance().track_allocate(buffer.get());
	return buffer;
}

/* Of a buffer that outlives its device nothing is told. */
Buffer::~Buffer()
{
	if (owns_data_ && device_->is_initialized() && size_ != 0)
		GraphTracker::instance().track_deallocate(this);
}

std::uint32_t Buffer::address() const
{
	return static_cast<std::uint32_t>(address_);
}

DeviceAddr Buffer::page_size() const
{
	return page;
}

std::uint32_t Buffer::num_pages() const
{
	return static_cast<std::uint32_t>(size_ / page);
}

DeviceAddr Buffer::aligned_size_per_bank() const
{
	return (num_pages() + banks - 1) / banks * page;
}

namespace distributed
{

MeshDevice::MeshDevice(std::vector<IDevice *> devices) : devices_(std::move(devices))
{
}

MeshDevice::~MeshDevice() = default;

/* Its number is none of the devices': an observer that believed it would count on a device of its own. */
int MeshDevice::id() const
{
	return 1000;
}

bool MeshDevice::is_initialized() const
{
	return !devices_.empty();
}

std::vector<IDevice *> MeshDevice::get_devices() const
{
	return devices_;
}

} /* namespace distributed */

} /* namespace tt::tt_metal */
