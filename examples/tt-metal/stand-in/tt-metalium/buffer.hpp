/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stand-in: a buffer, with what an observer may ask of it. How one is made is the
 * stand-in's own.
 */

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tt-metalium/device.hpp>

namespace tt::tt_metal
{

using DeviceAddr = std::uint64_t;

enum class BufferType {
	DRAM,
	L1,
	SYSTEM_MEMORY,
	L1_SMALL,
	TRACE,
};

/* What the stand-in is told to make, in place of an allocator. */
struct BufferSetting {
	IDevice *device;
	BufferType type;
	DeviceAddr address;
	DeviceAddr size;
	bool owns_data = true;
	bool tells = true; /* whether it tells the GraphTracker of its birth */
};

class Buffer final : public std::enable_shared_from_this<Buffer>
{
      public:
	static std::shared_ptr<Buffer> create(const BufferSetting &setting);
	explicit Buffer(const BufferSetting &setting);
	~Buffer();

	Buffer(const Buffer &) = delete;
	Buffer &operator=(const Buffer &) = delete;

	IDevice *device() const
	{
		return device_;
	}

	DeviceAddr size() const
	{
		return size_;
	}

	BufferType buffer_type() const
	{
		return buffer_type_;
	}

	std::uint32_t address() const;
	DeviceAddr page_size() const;
	std::uint32_t num_pages() const;
	DeviceAddr aligned_size_per_bank() const;

	std::size_t unique_id() const
	{
		return unique_id_;
	}

      private:
	IDevice *const device_;
	const DeviceAddr size_;
	const BufferType buffer_type_;
	const bool owns_data_;
	DeviceAddr address_;
	std::size_t unique_id_;
};

} /* namespace tt::tt_metal */
