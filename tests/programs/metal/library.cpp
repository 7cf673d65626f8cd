/* SPDX-License-Identifier: Apache-2.0 */

/* The stand-in's devices, allocators and buffers. */

#include "metal.hpp"

#include <algorithm>

#if METAL_SHAPE >= 66
namespace tt::tt_metal
{
#endif
std::uint32_t CoreRangeSet::num_cores() const
{
	return cores_;
}
#if METAL_SHAPE < 66
namespace tt::tt_metal
{
#endif

namespace
{

constexpr DeviceAddr dram_base = 0x100000, dram_size = 0x4000000, trace_size = 0x100000;
constexpr DeviceAddr l1_per_core = 1499136;
constexpr DeviceAddr l1_base = 0x10000, small_size = 0x8000,
		     l1_size = l1_per_core - small_size - l1_base;

DeviceAddr base_of(BufferType type)
{
	switch (type) {
	case BufferType::DRAM:
		return dram_base;
	case BufferType::TRACE:
		return dram_base + dram_size;
	case BufferType::L1_SMALL:
		return l1_base + l1_size;
	default:
		return l1_base;
	}
}

bool is_on_chip(BufferType type)
{
	return type == BufferType::L1 || type == BufferType::L1_SMALL;
}

} /* namespace */

/* Like tt-metal's: system memory has no banks. */
std::uint32_t Inner::get_num_banks(const BufferType &type) const
{
	if (type == BufferType::SYSTEM_MEMORY)
		throw "no banks";
	return is_on_chip(type) ? 8 : 4;
}

DeviceAddr Inner::get_bank_size(const BufferType &type) const
{
	switch (type) {
	case BufferType::DRAM:
		return dram_size;
	case BufferType::TRACE:
		return trace_size;
	case BufferType::L1:
		return l1_size - shrunk_;
	case BufferType::L1_SMALL:
		return small_size;
	default:
		throw "no banks";
	}
}

DeviceAddr Inner::get_base_allocator_addr(const HalMemType &type) const
{
	return type == HalMemType::L1 ? l1_base : dram_base;
}

std::uint32_t Inner::get_alignment(BufferType type) const
{
	return is_on_chip(type) ? 32 : 128;
}

Statistics Inner::get_statistics(const BufferType &type) const
{
	Statistics statistics;

	statistics.total_allocatable_size_bytes = get_bank_size(type);
#ifdef METAL_OTHER_STATISTICS
	if (!is_on_chip(type))
		statistics.total_allocatable_size_bytes++;
#endif
	const std::lock_guard<std::mutex> lock(mutex_);
	const auto live = live_.find(type);

	if (live != live_.end())
		for (const auto &[start, end] : live->second)
			statistics.total_allocated_bytes += end - start;
	/* As far as the stand-in goes, what is free is one block. */
	if (statistics.total_allocated_bytes < statistics.total_allocatable_size_bytes)
		statistics.total_free_bytes = statistics.largest_free_block_bytes =
			statistics.total_allocatable_size_bytes - statistics.total_allocated_bytes;
	return statistics;
}

DeviceAddr Inner::allocate(BufferType type, DeviceAddr size)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	DeviceAddr address = base_of(type) + (type == BufferType::L1 ? shrunk_ : 0);

	for (const auto &[start, end] : live_[type]) {
		if (start >= address + size)
			break;
		address = (end + 31) / 32 * 32;
	}
	live_[type][address] = address + size;
	return address;
}

/* Where those for all cores do not come. */
DeviceAddr Inner::allocate_on(std::size_t core, DeviceAddr size)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	DeviceAddr address = l1_base + l1_size / 2;

	for (const auto &[start, end] : per_core_[core]) {
		if (start >= address + size)
			break;
		address = (end + 31) / 32 * 32;
	}
	per_core_[core][address] = address + size;
	return address;
}

void Inner::deallocate_on(std::size_t core, DeviceAddr address)
{
	const std::lock_guard<std::mutex> lock(mutex_);

	per_core_[core].erase(address);
}

void Inner::shrink(DeviceAddr size)
{
	shrunk_ = size;
}

#if METAL_SHAPE >= 66
std::size_t Inner::get_worker_l1_size() const
{
	return l1_per_core;
}
#endif

void Inner::deallocate(BufferType type, DeviceAddr address)
{
	const std::lock_guard<std::mutex> lock(mutex_);

	live_[type].erase(address);
}

void Inner::clear()
{
	live_.clear();
}

#if METAL_SHAPE >= 66
Allocator::Allocator(AllocatorImpl *impl) : impl_(impl)
{
}

std::uint32_t Allocator::get_num_banks(const BufferType &type) const
{
	return impl_->get_num_banks(type);
}

DeviceAddr Allocator::get_bank_size(const BufferType &type) const
{
	return impl_->get_bank_size(type);
}

DeviceAddr Allocator::get_base_allocator_addr(const HalMemType &type) const
{
	return impl_->get_base_allocator_addr(type);
}

std::uint32_t Allocator::get_alignment(BufferType type) const
{
	return impl_->get_alignment(type);
}

Statistics Allocator::get_statistics(const BufferType &type) const
{
	return impl_->get_statistics(type);
}

std::size_t Allocator::get_worker_l1_size() const
{
	return impl_->get_worker_l1_size();
}
#endif

/* Before 0.66 the two are one, and inner_ has nothing. */
static void make(std::unique_ptr<Inner> &inner, std::unique_ptr<Allocator> &allocator)
{
#if METAL_SHAPE >= 66
	inner = std::make_unique<Inner>();
	allocator = std::make_unique<Allocator>(inner.get());
#else
	(void)inner;
	allocator = std::make_unique<Allocator>();
#endif
}

static Inner *inner_of(const IDevice *device)
{
#if METAL_SHAPE >= 66
	return device->inner();
#else
	return device->allocator().get();
#endif
}

Device::Device(int id) : id_(id)
{
	make(inner_, allocator_);
#if METAL_SHAPE >= 70
	const auto &chips = umd::ClusterDescriptor::instance();

	(void)chips.get_chip_unique_ids().at(id); /* for its regions */
	(void)chips.get_board_id_for_chip(id);
#endif
}

Device::~Device()
{
	if (open_)
		close();
}

int Device::arch() const
{
	return 2;
}

int Device::num_dram_channels() const
{
	return 4;
}

Grid Device::compute_with_storage_grid_size() const
{
	return {4, 2};
}

bool Device::is_mmio_capable() const
{
	return id_ < 2;
}

std::uint32_t Device::l1_size_per_core() const
{
	return l1_per_core;
}

const std::unique_ptr<Allocator> &Device::allocator() const
{
	return allocator_;
}

/* Its allocator is deleted and nothing is told. */
bool Device::close()
{
	open_ = false;
	allocator_.reset();
	inner_.reset();
	return true;
}

#if METAL_SHAPE >= 70
void Device::register_program(const detail::ProgramImpl *program)
{
	programs_.insert(program);
}

void Device::unregister_program(const detail::ProgramImpl *program)
{
	programs_.erase(program);
}

/* Each byte of each core once. */
std::uint64_t Device::get_total_cb_allocated() const
{
	std::set<std::pair<std::uint32_t, DeviceAddr>> bytes;

	for (const auto *program : programs_)
		for (const auto &circular : program->circulars())
			for (std::uint32_t core = 0; core < circular.cores && !circular.global;
			     core++)
				for (DeviceAddr at = 0; at < circular.size; at++)
					bytes.insert({core, circular.address + at});
	return bytes.size();
}
#endif

namespace distributed
{

MeshDevice::MeshDevice(std::vector<IDevice *> devices) : devices_(std::move(devices))
{
	make(inner_, allocator_);
}

MeshDevice::~MeshDevice()
{
	if (!devices_.empty())
		close();
}

int MeshDevice::arch() const
{
	return 2;
}

int MeshDevice::id() const
{
	return 77;
}

int MeshDevice::build_id() const
{
	return 78;
}

std::uint8_t MeshDevice::num_hw_cqs() const
{
	return 1;
}

bool MeshDevice::is_initialized() const
{
	return !devices_.empty();
}

int MeshDevice::num_dram_channels() const
{
	return 4;
}

std::uint32_t MeshDevice::l1_size_per_core() const
{
	return l1_per_core;
}

const std::unique_ptr<Allocator> &MeshDevice::allocator() const
{
	return allocator_;
}

Inner *MeshDevice::inner() const
{
	return inner_.get();
}

bool MeshDevice::close()
{
	inner_of(this)->clear();
	devices_.clear();
	return true;
}

/* What a capture has is no concern of the stand-in; one that has begun cannot begin again. */
static std::set<const MeshDevice *> capturing;

void MeshDevice::begin_mesh_trace(std::uint8_t, const MeshTraceId &)
{
	if (!capturing.insert(this).second)
		throw "already";
}

void MeshDevice::end_mesh_trace(std::uint8_t, const MeshTraceId &)
{
	capturing.erase(this);
}

void MeshDevice::release_mesh_trace(const MeshTraceId &)
{
}

#if METAL_SHAPE >= 66
MeshTraceId MeshDevice::begin_mesh_trace(std::uint8_t queue)
{
	static std::uint32_t last;
	const MeshTraceId id(++last);

	begin_mesh_trace(queue, id);
	return id;
}
#endif

#if METAL_SHAPE >= 70
MeshTraceId MeshDevice::begin_mesh_trace(MeshCommandQueue &)
{
	return begin_mesh_trace(0);
}

void MeshDevice::begin_mesh_trace(MeshCommandQueue &, const MeshTraceId &id)
{
	begin_mesh_trace(0, id);
}

void MeshDevice::end_mesh_trace(MeshCommandQueue &, const MeshTraceId &id)
{
	end_mesh_trace(0, id);
}
#endif

std::vector<IDevice *> MeshDevice::get_devices() const
{
	return devices_;
}

std::vector<int> MeshDevice::get_device_ids() const
{
	std::vector<int> ids;

	for (const auto *device : devices_)
		ids.push_back(device->id());
#ifdef METAL_OTHER_IDS
	std::reverse(ids.begin(), ids.end());
#endif
	return ids;
}

} /* namespace distributed */

Buffer::Buffer(const Setting &setting)
    :
#if METAL_SHAPE == 66
      cores_(setting.cores),
#endif
#ifdef METAL_OTHER_DEVICE
      device_(reinterpret_cast<std::uintptr_t>(setting.device) + 1),
#else
      device_(setting.device),
#endif
      size_(setting.size), type_(setting.type), hooked_(setting.hooked),
      allocator_(setting.allocator ? setting.allocator : inner_of(setting.device)),
#if METAL_SHAPE != 66
      cores_(setting.cores),
#endif
      page_size_(setting.page_size)
{
}

std::shared_ptr<Buffer> Buffer::create(const Setting &setting)
{
	auto buffer = std::make_shared<Buffer>(setting);

	for (const auto core : setting.per_core)
		buffer->per_core_[{core, 1}] =
			buffer->allocator_->allocate_on(core, buffer->aligned_size_per_bank());
	if (!setting.per_core.empty())
		buffer->address_ = buffer->per_core_.at({setting.per_core[0], 1});
	else if (!setting.hooked)
		buffer->address_ = buffer->allocator_->allocate_buffer(buffer.get());
	GraphTracker::instance().track_allocate(buffer.get());
	return buffer;
}

/* Of a buffer that outlives its device nothing is told. */
Buffer::~Buffer()
{
#ifdef METAL_OTHER_DEVICE
	const auto *device = reinterpret_cast<IDevice *>(device_ - 1);
#else
	const auto *device = device_;
#endif
	if (!device->is_initialized())
		return;
	GraphTracker::instance().track_deallocate(this);
	for (const auto &[core, address] : per_core_)
		allocator_->deallocate_on(core.x, address);
	if (!hooked_ && per_core_.empty())
		allocator_->deallocate(type_, address_);
}

std::uint32_t Buffer::address() const
{
#ifdef METAL_OTHER_ADDRESS
	return static_cast<std::uint32_t>(address_ / 4);
#else
	return static_cast<std::uint32_t>(address_);
#endif
}

DeviceAddr Buffer::page_size() const
{
	return page_size_;
}

std::uint32_t Buffer::num_pages() const
{
#ifdef METAL_OTHER_SIZE
	return static_cast<std::uint32_t>(size_ / page_size_ * 2);
#else
	return static_cast<std::uint32_t>(size_ / page_size_);
#endif
}

bool Buffer::is_l1() const
{
	return is_on_chip(type_);
}

bool Buffer::is_dram() const
{
	return type_ == BufferType::DRAM || type_ == BufferType::TRACE;
}

bool Buffer::is_trace() const
{
	return type_ == BufferType::TRACE;
}

DeviceAddr Buffer::aligned_size_per_bank() const
{
	const DeviceAddr banks = cores_ ? cores_ : allocator_->get_num_banks(type_);

	return (size_ / page_size_ + banks - 1) / banks * ((page_size_ + 31) / 32 * 32);
}

std::optional<std::uint32_t> Buffer::num_cores() const
{
	if (!cores_)
		return std::nullopt;
	return cores_;
}

#if METAL_SHAPE >= 66
Allocator *Buffer::allocator() const
{
	/* As far as the stand-in goes, sub-devices have a face that lives as long as they do. */
	static std::mutex mutex;
	static std::map<Inner *, std::unique_ptr<Allocator>> faces;
#ifdef METAL_OTHER_DEVICE
	const auto *device = reinterpret_cast<IDevice *>(device_ - 1);
#else
	const auto *device = device_;
#endif

	if (allocator_ == inner_of(device))
		return device->allocator().get();
	const std::lock_guard<std::mutex> lock(mutex);
	auto &face = faces[allocator_];
	if (!face)
		face = std::make_unique<Allocator>(allocator_);
	return face.get();
}
#endif

#if METAL_SHAPE >= 70
bool experimental::per_core_allocation::is_per_core_allocation(const Buffer &buffer)
{
	return !buffer.per_core().empty();
}

const CoreAddresses &experimental::per_core_allocation::get_per_core_addresses(const Buffer &buffer)
{
	return buffer.per_core();
}
#endif

namespace detail
{

ProgramImpl::~ProgramImpl()
{
	deallocate_circular_buffers();
}

const std::vector<ProgramImpl::Circular> &ProgramImpl::circulars() const
{
	return circulars_;
}

/* Since 0.70 for each device of a mesh, with an account; before once, for whatever was handed in. */
void ProgramImpl::allocate_circular_buffers(const IDevice *device)
{
	std::vector<IDevice *> devices = {const_cast<IDevice *>(device)};
#if METAL_SHAPE >= 70
	if (const auto *mesh = dynamic_cast<const distributed::MeshDevice *>(device))
		devices = mesh->get_devices();
#endif
	for (auto *one : devices) {
		if (!devices_.insert(one).second)
			continue;
		for (const auto &circular : circulars_)
			GraphTracker::instance().track_allocate_cb(CoreRangeSet(circular.cores),
								   circular.address, circular.size,
								   circular.global, one);
#if METAL_SHAPE >= 70
		dynamic_cast<Device *>(one)->register_program(this);
#endif
	}
}

void ProgramImpl::deallocate_circular_buffers()
{
#if METAL_SHAPE >= 70
	for (const auto *device : devices_)
		GraphTracker::instance().track_deallocate_cb(device);
	for (const auto *device : devices_)
		dynamic_cast<Device *>(const_cast<IDevice *>(device))->unregister_program(this);
#endif
	devices_.clear();
}

} /* namespace detail */

} /* namespace tt::tt_metal */
