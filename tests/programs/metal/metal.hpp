/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A stand-in for tt-metal as libttmem-metal.so sees it: exported names, virtual tables, and objects whose
 * members lie elsewhere in each version. METAL_SHAPE is the release that it imitates: 62, 66 or 70. Other
 * macros make one thing different from all releases (METAL_OTHER_...) or leave one out (METAL_NO_...).
 */

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace tt::umd
{

class ClusterDescriptor
{
      public:
	static const ClusterDescriptor &instance();
	const std::unordered_map<int, std::uint64_t> &get_chip_unique_ids() const;
	std::uint64_t get_board_id_for_chip(int chip) const;
};

} /* namespace tt::umd */

#if METAL_SHAPE >= 70
namespace ttsl
#else
namespace tt::stl
#endif
{
/* A number of one kind. */
template <typename T, typename Tag> class StrongType
{
      public:
	explicit StrongType(T value) : value_(value)
	{
	}
	StrongType(const StrongType &) = default;
	T operator*() const
	{
		return value_;
	}

      private:
	T value_;
};

} /* namespace */

#if METAL_SHAPE >= 66
namespace tt::tt_metal
{
#endif

/* So many cores, of which each has a number. */
class CoreRangeSet
{
      public:
	explicit CoreRangeSet(std::uint32_t cores) : cores_(cores)
	{
	}
	std::uint32_t num_cores() const;

      private:
	std::uint32_t cores_;
};

#if METAL_SHAPE < 66
namespace tt::tt_metal
{
#endif

using DeviceAddr = std::uint64_t;

enum class BufferType {
	DRAM,
	L1,
	SYSTEM_MEMORY,
	L1_SMALL,
	TRACE
};
enum class HalMemType : std::uint8_t {
	L1,
	DRAM
};

struct Statistics {
	std::size_t total_allocatable_size_bytes = 0;
	std::size_t total_allocated_bytes = 0;
	std::size_t total_free_bytes = 0;
	std::size_t largest_free_block_bytes = 0;
};

struct Grid {
	std::size_t x, y;
};

struct CoreCoord {
	std::size_t x, y;
	bool operator==(const CoreCoord &) const = default;
};
struct CoreHash {
	std::size_t operator()(const CoreCoord &core) const
	{
		return core.x * 31 + core.y;
	}
};
using CoreAddresses = std::unordered_map<CoreCoord, DeviceAddr, CoreHash>;

class Buffer;

#if METAL_SHAPE >= 70
namespace experimental::per_core_allocation
{
bool is_per_core_allocation(const Buffer &buffer);
const CoreAddresses &get_per_core_addresses(const Buffer &buffer);
} /* namespace experimental::per_core_allocation */
#endif

/* The first place that is free. */
class
#if METAL_SHAPE >= 66
	AllocatorImpl
#else
	Allocator
#endif
{
      public:
	DeviceAddr allocate(BufferType type, DeviceAddr size);
	/* Throws if there is not enough. */
	DeviceAddr allocate_buffer(Buffer *buffer);
	/* Only on that core. */
	DeviceAddr allocate_on(std::size_t core, DeviceAddr size);
	void deallocate_on(std::size_t core, DeviceAddr address);
	/* So much at the beginning of its L1 belongs to sub-devices. */
	void shrink(DeviceAddr size);
	void deallocate(BufferType type, DeviceAddr address);
	std::uint32_t get_num_banks(const BufferType &type) const;
	DeviceAddr get_bank_size(const BufferType &type) const;
	DeviceAddr get_base_allocator_addr(const HalMemType &type) const;
	std::uint32_t get_alignment(BufferType type) const;
	Statistics get_statistics(const BufferType &type) const;
#if METAL_SHAPE >= 66
	std::size_t get_worker_l1_size() const;
#endif
	void clear();
	std::optional<DeviceAddr> lowest_l1()
	{
		const std::lock_guard<std::mutex> guard(mutex_);
		const auto &live = live_[BufferType::L1];

		return live.empty() ? std::nullopt : std::optional(live.begin()->first);
	}

      private:
	DeviceAddr shrunk_ = 0;
	mutable std::mutex mutex_;
	std::map<BufferType, std::map<DeviceAddr, DeviceAddr>> live_; /* address: end */
	std::map<std::size_t, std::map<DeviceAddr, DeviceAddr>> per_core_;
};

#if METAL_SHAPE >= 66
class Allocator
{
      public:
	explicit Allocator(AllocatorImpl *impl);
	std::uint32_t get_num_banks(const BufferType &type) const;
	DeviceAddr get_bank_size(const BufferType &type) const;
	DeviceAddr get_base_allocator_addr(const HalMemType &type) const;
	std::uint32_t get_alignment(BufferType type) const;
	Statistics get_statistics(const BufferType &type) const;
	std::size_t get_worker_l1_size() const;

      private:
	AllocatorImpl *impl_;
};
using Inner = AllocatorImpl;
#else
using Inner = Allocator;
#endif

/* The virtual functions that all releases begin with, and some of the others. */
class IDevice
{
      public:
	virtual ~IDevice() = default;
	virtual int arch() const = 0;
#ifdef METAL_OTHER_SLOTS
	virtual int something_new() const = 0;
#endif
	virtual int id() const = 0;
	virtual int build_id() const = 0;
	virtual std::uint8_t num_hw_cqs() const = 0;
	virtual bool is_initialized() const = 0;
	virtual int num_dram_channels() const = 0;
	virtual std::uint32_t l1_size_per_core() const = 0;
	virtual const std::unique_ptr<Allocator> &allocator() const = 0;
	virtual Inner *inner() const = 0;
	virtual bool close() = 0;
};

namespace detail
{

class ProgramImpl
{
      public:
	struct Circular {
		std::uint32_t cores;
		DeviceAddr address, size;
		bool global;
	};

	explicit ProgramImpl(std::vector<Circular> circulars) : circulars_(std::move(circulars))
	{
	}
	~ProgramImpl();
	void allocate_circular_buffers(const IDevice *device);
	void deallocate_circular_buffers();
	void validate_circular_buffer_region(const IDevice *device);
	const std::vector<Circular> &circulars() const;

      private:
	std::vector<Circular> circulars_;
	std::set<const IDevice *> devices_;
};

} /* namespace detail */

class Device : public IDevice
{
      public:
	explicit Device(int id);
	~Device() override;
	int arch() const override;
#ifdef METAL_OTHER_SLOTS
	int something_new() const override
	{
		return 4;
	}
#endif
	int id() const override
	{
		return id_;
	}
	int build_id() const override
	{
		return id_;
	}
	std::uint8_t num_hw_cqs() const override
	{
		return 1;
	}
	bool is_initialized() const override
	{
		return open_;
	}
	int num_dram_channels() const override;
	std::uint32_t l1_size_per_core() const override;
	Grid compute_with_storage_grid_size() const;
	bool is_mmio_capable() const;
	const std::unique_ptr<Allocator> &allocator() const override;
	Inner *inner() const override
	{
		return inner_.get();
	}
	bool close() override;

#if METAL_SHAPE >= 70
	void register_program(const detail::ProgramImpl *program);
	void unregister_program(const detail::ProgramImpl *program);
	std::uint64_t get_total_cb_allocated() const;
#endif

      private:
	int id_;
	bool open_ = true;
	std::unique_ptr<Inner> inner_;
	std::unique_ptr<Allocator> allocator_;
	std::set<const detail::ProgramImpl *> programs_;
};

namespace distributed
{

#if METAL_SHAPE >= 70
using MeshTraceId = ttsl::StrongType<std::uint32_t, struct MeshTraceIdTag>;
#else
using MeshTraceId = stl::StrongType<std::uint32_t, struct MeshTraceIdTag>;
#endif

class MeshCommandQueue
{
};

class MeshDevice : public IDevice, public std::enable_shared_from_this<MeshDevice>
{
      public:
	explicit MeshDevice(std::vector<IDevice *> devices);
	~MeshDevice() override;
	int arch() const override;
#ifdef METAL_OTHER_SLOTS
	int something_new() const override
	{
		return 4;
	}
#endif
	int id() const override; /* its own: none of the devices' */
	int build_id() const override;
	std::uint8_t num_hw_cqs() const override;
	bool is_initialized() const override;
	int num_dram_channels() const override;
	std::uint32_t l1_size_per_core() const override;
	const std::unique_ptr<Allocator> &allocator() const override;
	Inner *inner() const override;
	bool close() override;
	std::vector<IDevice *> get_devices() const;
	std::vector<int> get_device_ids() const;

	/* The forms that a release has call each other. */
	void begin_mesh_trace(std::uint8_t queue, const MeshTraceId &id);
	void end_mesh_trace(std::uint8_t queue, const MeshTraceId &id);
	void release_mesh_trace(const MeshTraceId &id);
#if METAL_SHAPE >= 66
	MeshTraceId begin_mesh_trace(std::uint8_t queue);
#endif
#if METAL_SHAPE >= 70
	MeshTraceId begin_mesh_trace(MeshCommandQueue &queue);
	void begin_mesh_trace(MeshCommandQueue &queue, const MeshTraceId &id);
	void end_mesh_trace(MeshCommandQueue &queue, const MeshTraceId &id);
#endif

      private:
	std::vector<IDevice *> devices_;
	std::unique_ptr<Inner> inner_;
	std::unique_ptr<Allocator> allocator_;
};

} /* namespace distributed */

class Buffer final : public std::enable_shared_from_this<Buffer>
{
      public:
	struct Setting {
		IDevice *device;
		DeviceAddr size;
		DeviceAddr page_size;
		BufferType type;
		std::uint32_t cores = 0;    /* 0 = interleaved */
		Inner *allocator = nullptr; /* a sub-device's */
		bool hooked = false;
		std::vector<std::size_t> per_core = {}; /* an address on each of these instead */
	};

	static std::shared_ptr<Buffer> create(const Setting &setting);
	explicit Buffer(const Setting &setting);
	~Buffer();

	std::uint32_t address() const;
	DeviceAddr page_size() const;
	std::uint32_t num_pages() const;
	bool is_l1() const;
	bool is_dram() const;
	bool is_trace() const;
	DeviceAddr aligned_size_per_bank() const;
#if METAL_SHAPE == 66
	__attribute__((visibility("hidden")))
#endif
	std::optional<std::uint32_t>
	num_cores() const;
#if METAL_SHAPE >= 66
	Allocator *allocator() const;
#endif
	const CoreAddresses &per_core() const
	{
		return per_core_;
	}
	BufferType type() const
	{
		return type_;
	}
	DeviceAddr size() const
	{
		return size_;
	}

      private:
#if METAL_SHAPE == 66
	std::uint64_t new_members_[3] = {1, 2, 3};
	std::uint32_t cores_;
	DeviceAddr address_ = 0;
#endif
#if defined METAL_OTHER_DEVICE
	std::uintptr_t device_; /* in a way that nobody knows */
#else
	IDevice *const device_;
#endif
	const DeviceAddr size_;
	const BufferType type_;
	bool bottom_up_ = true;
	bool hooked_;
	Inner *allocator_;
#if METAL_SHAPE == 70
	std::uint64_t new_members_[2] = {1, 2};
#endif
#if METAL_SHAPE != 66
	DeviceAddr address_ = 0;
	std::uint32_t cores_;
#endif
	DeviceAddr page_size_;
	CoreAddresses per_core_;
	std::uint64_t rest_[16] = {};
};

class GraphTracker
{
      public:
	static GraphTracker &instance();
	void track_allocate(const Buffer *buffer);
	void track_deallocate(Buffer *buffer);
	void track_allocate_cb(const CoreRangeSet &cores, std::uint64_t address, std::uint64_t size,
			       bool is_globally_allocated, const IDevice *device);
	void track_deallocate_cb(const IDevice *device);
};

/* How often tt-metal's own functions were reached, for the test. */
extern std::size_t tracked;

} /* namespace tt::tt_metal */
