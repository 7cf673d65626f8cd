/* SPDX-License-Identifier: Apache-2.0 */

/* The rules of counting: every byte of device memory once, whoever looks at it. */

#include "ledger.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <pthread.h>

#include <ttmem/ttmem.h>

namespace ttmem_metal
{

namespace
{

/* Kernels are told when they are used and not when they go: those of programs nobody keeps pile up. */
constexpr std::size_t kernels_max = 65536;

struct ttmem_alloc_args arguments(std::uint32_t device, std::uint32_t type, std::uint64_t address,
				  std::uint64_t size)
{
	struct ttmem_alloc_args args = {};

	args.struct_size = sizeof(args);
	args.device = device;
	args.type = type;
	args.address = address;
	args.size = size;
	return args;
}

/* Whether the log of the old system is written, which shows the Buffer's address. */
bool logs_buffers()
{
	static const bool is_on = [] {
		const char *says = std::getenv("TT_BUFFER_DEBUG_LOG");

		return says && std::strcmp(says, "1") == 0;
	}();

	return is_on;
}

std::uint64_t bytes(const Circular &cb)
{
	return cb.size * cb.cores;
}

/* Whether @fresh says more of an address than @known: real memory before an alias, then the larger. */
bool is_more(const Circular &fresh, const Circular &known)
{
	if (fresh.global != known.global)
		return known.global;
	return bytes(fresh) > bytes(known);
}

} /* namespace */

/* A child begins with an empty book, hence with an empty ledger; no lock may be held over a fork. */
Ledger &Ledger::instance() noexcept
{
	static Ledger *const ledger = [] {
		(void)pthread_atfork([] { instance().mutex_.lock(); },
				     [] { instance().mutex_.unlock(); },
				     [] {
					     instance().records_.clear();
					     instance().holders_.clear();
					     instance().circulars_.clear();
					     instance().kernels_.clear();
					     instance().totals_ = Totals();
					     instance().mutex_.unlock();
				     }); /* out of memory: then a child may report too much */
		return new Ledger();
	}();

	return *ledger;
}

/* Frees what was reported for @buffer, where it was reported. */
void Ledger::end(const void *buffer)
{
	const auto found = records_.find(buffer);
	const Record &record = found->second;

	for (const std::uint32_t device : record.devices) {
		const auto holder = holders_.find({device, record.type, record.address});

		if (holder == holders_.end() || holder->second != buffer)
			continue;
		holders_.erase(holder);
		ttmem_free(device, record.type, record.address);
	}
	records_.erase(found);
}

/*
 * Whether @buffer is the one that @key is counted for. If another one is, and that one is still there,
 * the two share memory (a view, a buffer made over an address that was handed in). If it is gone, its end
 * was not told: tt-metal says nothing of buffers that outlive their device.
 */
bool Ledger::claim(const Key &key, const void *buffer)
{
	const auto found = holders_.find(key);

	if (found != holders_.end()) {
		const void *other = found->second;

		if (!records_.at(other).life.expired())
			return false;
		totals_.silent++;
		end(other);
	}
	holders_[key] = buffer;
	return true;
}

/* Graph capture: no memory, hence no record; ttmem counts that it happened. */
void Ledger::hooked(const Facts &facts)
{
	totals_.hooked++;
	for (const std::uint32_t device : facts.devices) {
		struct ttmem_alloc_args args = arguments(device, facts.type, 0, facts.size);

		args.flags = TTMEM_FLAG_HOOKED;
		ttmem_alloc_ex(&args);
	}
}

void Ledger::allocated(const void *buffer, const std::weak_ptr<const void> &life, Facts facts)
{
	const std::lock_guard<std::mutex> lock(mutex_);

	/* The object's own place was used again: the one before has ended. */
	if (records_.count(buffer)) {
		totals_.silent++;
		end(buffer);
	}
	if (facts.size == 0) {
		totals_.empty++;
		return;
	}
	Record &record = records_[buffer];
	record.life = life;
	record.type = facts.type;
	record.address = facts.address;
	if (facts.address == 0) {
		hooked(facts);
		return;
	}
	for (const std::uint32_t device : facts.devices) {
		if (!claim({device, facts.type, facts.address}, buffer))
			continue;
		struct ttmem_alloc_args args =
			arguments(device, facts.type, facts.address, facts.size);

		args.flags = TTMEM_FLAG_OWNS_DATA;
		if (logs_buffers())
			args.owner = reinterpret_cast<std::uintptr_t>(buffer);
		args.size_per_bank = facts.size_per_bank;
		record.devices.push_back(device);
		ttmem_alloc_ex(&args);
	}
	if (record.devices.empty())
		totals_.guests++;
	else
		totals_.buffers++;
}

bool Ledger::deallocated(const void *buffer)
{
	const std::lock_guard<std::mutex> lock(mutex_);

	if (!records_.count(buffer))
		return false;
	end(buffer);
	return true;
}

/* Allocated before anybody watched. ttmem counts it as a free of something unknown, which it is. */
void Ledger::unknown(const Facts &facts)
{
	const std::lock_guard<std::mutex> lock(mutex_);

	if (facts.size == 0 || facts.address == 0)
		return;
	totals_.unknown++;
	ttmem_free_mesh(facts.devices.data(), facts.devices.size(), facts.type, facts.address);
}

/*
 * Circular buffers of cached programs lie over each other, and only one program runs: an address is
 * counted once, at its largest. A globally allocated one lies in an L1 buffer: listed, with 0 bytes.
 */
void Ledger::circular(const void *owner, const std::vector<std::uint32_t> &devices,
		      const Circular &cb)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	CircularSet &set = circulars_[owner];

	if (bytes(cb) == 0) {
		totals_.empty++;
		return;
	}
	const auto known = set.by_address.find(cb.address);
	const bool replaces = known != set.by_address.end();

	if (replaces && !is_more(cb, known->second))
		return;
	set.devices = devices;
	set.by_address[cb.address] = cb;
	for (const std::uint32_t device : devices) {
		struct ttmem_alloc_args args = arguments(device, TTMEM_CB, cb.address, bytes(cb));

		if (replaces)
			ttmem_free(device, TTMEM_CB, cb.address);
		args.flags = cb.global ? TTMEM_FLAG_ALIAS : 0;
		args.owner = reinterpret_cast<std::uintptr_t>(owner);
		args.size_per_bank = cb.size;
		args.banks = cb.cores;
		ttmem_alloc_ex(&args);
	}
}

/* The end of what is on @owner. */
void Ledger::end_kernels(const void *owner)
{
	for (auto at = kernels_.begin(); at != kernels_.end();) {
		if (at->second.owner != owner) {
			++at;
			continue;
		}
		ttmem_free(at->first.second, TTMEM_KERNEL, at->second.number);
		at = kernels_.erase(at);
	}
}

/* All of them go: tt-metal names the device only. */
void Ledger::circular_end(const void *owner)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	const auto found = circulars_.find(owner);

	if (owner)
		end_kernels(owner);
	if (found == circulars_.end())
		return;
	for (const std::uint32_t device : found->second.devices)
		ttmem_free_all(device, TTMEM_CB, reinterpret_cast<std::uintptr_t>(owner));
	circulars_.erase(found);
}

/*
 * The binaries of a program's kernels lie in a DRAM buffer that tt-metal tells as any other, so their bytes
 * are counted: a program is listed, with 0 bytes. It has no address of its own; that it has a number keeps it
 * apart from others.
 */
void Ledger::program(const void *program, const void *owner,
		     const std::vector<std::uint32_t> &devices)
{
	const std::lock_guard<std::mutex> lock(mutex_);
	const std::uint64_t number = last_number_ + 1;

	totals_.programs++;
	if (!program)
		return;
	for (const std::uint32_t device : devices) {
		const auto known = kernels_.find({program, device});

		if (known != kernels_.end()) {
			known->second.owner = owner;
			continue;
		}
		if (kernels_.size() >= kernels_max) {
			totals_.lost++;
			return;
		}
		struct ttmem_alloc_args args = arguments(device, TTMEM_KERNEL, number, 0);

		kernels_[{program, device}] = {number, owner};
		last_number_ = number;
		args.flags = TTMEM_FLAG_ALIAS;
		args.name = "kernels of a program";
		args.kernel_sort = TTMEM_KERNEL_APPLICATION;
		ttmem_alloc_ex(&args);
	}
}

void Ledger::lost() noexcept
{
	const std::lock_guard<std::mutex> lock(mutex_);

	totals_.lost++;
}

Totals Ledger::totals()
{
	const std::lock_guard<std::mutex> lock(mutex_);

	return totals_;
}

} // namespace ttmem_metal
