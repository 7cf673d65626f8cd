/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libttmem-metal.so: stands in front of tt-metal's GraphTracker in an application that was not compiled for
 * ttmem. Preloaded, its functions are found before tt-metal's of the same name; each tells the ledger and
 * calls on. They are called on whatever thread allocates, so no thread has to be registered.
 *
 * It is preloaded into every process that the application starts, most of which have no tt-metal. So it
 * refers to no symbol of tt-metal: what it needs beyond inline functions and virtual ones it looks up in
 * the library that calls it. That library is usually loaded by Python with RTLD_LOCAL, where
 * dlsym(RTLD_NEXT) does not find it.
 *
 * It is compiled against the headers of the tt-metal that runs. If that turns out to be another one, it
 * says so once, and from then on only calls on.
 */

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <tt-metalium/buffer.hpp>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/device.hpp>
#include <tt-metalium/graph_tracking.hpp>
#include <tt-metalium/mesh_device.hpp>

#include "ledger.hpp"

namespace ttmem_metal
{

using namespace tt::tt_metal;

namespace
{

std::atomic<bool> refused;
std::atomic<bool> called;

/* The one place that speaks: to standard error, once, in one write. */
__attribute__((format(printf, 1, 2))) void refuse(const char *format, ...)
{
	char text[1024] = "ttmem: tt-metal is not tracked: ";
	const std::size_t head = std::strlen(text);
	va_list arguments;

	if (refused.exchange(true))
		return;
	va_start(arguments, format);
	(void)vsnprintf(text + head, sizeof(text) - head - 1, format, arguments); /* cut is fine */
	va_end(arguments);
	std::strcat(text, "\n");
	(void)!write(STDERR_FILENO, text, std::strlen(text)); /* nobody else to tell */
}

/* The address of a member function that is not virtual: its first word, on Linux. */
template <typename Member> void *address_of(Member member)
{
	void *address;

	static_assert(sizeof(member) >= sizeof(address));
	std::memcpy(&address, &member, sizeof(address));
	return address;
}

/* One of our fronts, by the name that the compiler gave it: tt-metal's has the same. */
template <typename Member> const char *name_of(Member member)
{
	Dl_info info;

	return dladdr(address_of(member), &info) && info.dli_sname ? info.dli_sname : "";
}

/* @name in a library that is loaded already, or what it was linked with. */
void *find_in(const char *path, const char *name)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

	/* Never closed again: what is found must stay. */
	return handle ? dlsym(handle, name) : nullptr;
}

/* The library that @code lies in; "" for none. */
const char *library_of(void *code)
{
	Dl_info info;

	return dladdr(code, &info) && info.dli_fname ? info.dli_fname : "";
}

/* Adds the path of a loaded object, if it is one of tt-metal's. */
int collect(struct dl_phdr_info *info, size_t, void *list)
{
	const char *name = std::strrchr(info->dlpi_name, '/');

	name = name ? name + 1 : info->dlpi_name;
	if (std::strncmp(name, "libtt_metal.so", 14) == 0)
		static_cast<std::vector<std::string> *>(list)->push_back(info->dlpi_name);
	return 0;
}

/* Refuses a tt-metal that is loaded and does not know the names that we stand in front of. */
void inspect()
{
	std::vector<std::string> libraries;

	/* Looked at afterwards: dlopen() must not wait for a lock that the walk holds. Always 0. */
	(void)dl_iterate_phdr(collect, &libraries);
	for (const std::string &library : libraries)
		for (const char *name : {name_of(&GraphTracker::track_allocate),
					 name_of(&GraphTracker::track_deallocate)})
			if (!find_in(library.c_str(), name))
				refuse("%s has no %s; this version cannot be tracked by preloading",
				       library.c_str(), name);
}

/*
 * tt-metal's own functions, looked up when it calls for the first time. What they return is asked of the
 * headers: addresses have 32 bits in one version and may have 64 in another.
 */
struct Metal {
	void (*track_allocate)(GraphTracker *, const Buffer *);
	void (*track_deallocate)(GraphTracker *, Buffer *);
	void (*track_allocate_cb)(GraphTracker *, const CoreRangeSet &, std::uint64_t,
				  std::uint64_t, bool, const IDevice *);
	void (*track_deallocate_cb)(GraphTracker *, const IDevice *);
	void (*track_program)(GraphTracker *, Program *, const IDevice *);

	decltype(std::declval<const Buffer &>().address()) (*address)(const Buffer *);
	decltype(std::declval<const Buffer &>().page_size()) (*page_size)(const Buffer *);
	decltype(std::declval<const Buffer &>().num_pages()) (*num_pages)(const Buffer *);
	decltype(std::declval<const Buffer &>().aligned_size_per_bank()) (*aligned_size_per_bank)(
		const Buffer *);
	decltype(std::declval<const distributed::MeshDevice &>().get_devices()) (*get_devices)(
		const distributed::MeshDevice *);
	decltype(std::declval<const CoreRangeSet &>().num_cores()) (*num_cores)(
		const CoreRangeSet *);

	explicit Metal(void *caller)
	{
		const std::string cores = std::string("_ZNK") + nested(typeid(CoreRangeSet).name());

		inspect();
		library = library_of(caller);
		find(track_allocate, name_of(&GraphTracker::track_allocate));
		find(track_deallocate, name_of(&GraphTracker::track_deallocate));
		find_optional(track_allocate_cb, name_of(&GraphTracker::track_allocate_cb));
		find_optional(track_deallocate_cb, name_of(&GraphTracker::track_deallocate_cb));
		find_optional(track_program, name_of(&GraphTracker::track_program));
		find(address, "_ZNK2tt8tt_metal6Buffer7addressEv");
		find(page_size, "_ZNK2tt8tt_metal6Buffer9page_sizeEv");
		find(num_pages, "_ZNK2tt8tt_metal6Buffer9num_pagesEv");
		find_optional(aligned_size_per_bank,
			      "_ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv");
		find(get_devices, "_ZNK2tt8tt_metal11distributed10MeshDevice11get_devicesEv");
		find_optional(num_cores, (cores + "9num_coresEv").c_str());
	}

	/* Of a class's mangled name the part that its members' names begin with. */
	static std::string nested(const char *name)
	{
		const std::string whole = name;

		return whole[0] == 'N' ? whole.substr(1, whole.size() - 2) : whole;
	}

	template <typename Function> void find_optional(Function &function, const char *name)
	{
		void *found = dlsym(RTLD_NEXT, name);

		if (!found)
			found = find_in(library, name);
		std::memcpy(&function, &found, sizeof(function));
	}

	template <typename Function> void find(Function &function, const char *name)
	{
		find_optional(function, name);
		if (!function)
			refuse("%s has no %s; this version cannot be tracked by preloading",
			       library, name);
	}

	const char *library;
};

/* @caller: where the first call came from, which is inside tt-metal. */
const Metal &metal(void *caller)
{
	static const Metal found(caller);

	called.store(true, std::memory_order_relaxed);
	return found;
}

/* By name: a dynamic_cast would need a symbol of tt-metal's. */
bool is_mesh(const IDevice *device)
{
	return std::strcmp(typeid(*device).name(), "N2tt8tt_metal11distributed10MeshDeviceE") == 0;
}

std::vector<std::uint32_t> devices_of(const Metal &next, const IDevice *device)
{
	if (!device)
		return {};
	if (!is_mesh(device))
		return {static_cast<std::uint32_t>(device->id())};
	std::vector<std::uint32_t> devices;
	for (const IDevice *one :
	     next.get_devices(static_cast<const distributed::MeshDevice *>(device)))
		devices.push_back(static_cast<std::uint32_t>(one->id()));
	return devices;
}

/*
 * Inline functions read members where our headers have them, the exported ones where the library has
 * them. Before anything is believed or called, both must tell the same size.
 */
bool layout_is_ours(const Metal &next, const Buffer *buffer)
{
	const DeviceAddr page = next.page_size(buffer);

	if (buffer->size() == page * next.num_pages(buffer) || page == 0)
		return static_cast<std::uint32_t>(buffer->buffer_type()) <= 4;
	return false;
}

bool usable(const Metal &next, const Buffer *buffer)
{
	if (refused.load(std::memory_order_relaxed))
		return false;
	if (layout_is_ours(next, buffer))
		return true;
	refuse("libttmem-metal.so was built with the headers of another version than %s; "
	       "build it again",
	       next.library);
	return false;
}

Facts facts_of(const Metal &next, const Buffer *buffer)
{
	Facts facts;

	facts.devices = devices_of(next, buffer->device());
	facts.type = static_cast<std::uint32_t>(buffer->buffer_type());
	facts.size = buffer->size();
	if (facts.size == 0)
		return facts;
	facts.address = next.address(buffer);
	if (facts.address != 0 && next.aligned_size_per_bank)
		facts.size_per_bank = next.aligned_size_per_bank(buffer);
	return facts;
}

/* Whatever goes wrong here, the application's allocation has succeeded. */
template <typename Work> void guarded(Work &&work) noexcept
{
	try {
		work();
	} catch (...) {
		Ledger::instance().lost();
	}
}

/* An application that is linked with tt-metal is told before it starts. */
__attribute__((constructor)) void at_start()
{
	inspect();
}

/* One that loaded it later is told at the end: if we were called, the names are there. */
__attribute__((destructor)) void at_end()
{
	if (!called.load(std::memory_order_relaxed))
		inspect();
}

} /* namespace */

} // namespace ttmem_metal

namespace tt::tt_metal
{

using ttmem_metal::Ledger;

void GraphTracker::track_allocate(const Buffer *buffer)
{
	const auto &next = ttmem_metal::metal(__builtin_return_address(0));

	if (next.track_allocate)
		next.track_allocate(this, buffer);
	if (ttmem_metal::usable(next, buffer))
		ttmem_metal::guarded([&] {
			Ledger::instance().allocated(buffer, buffer->weak_from_this(),
						     ttmem_metal::facts_of(next, buffer));
		});
}

/* First the ledger: after the call the address may be somebody else's. */
void GraphTracker::track_deallocate(Buffer *buffer)
{
	const auto &next = ttmem_metal::metal(__builtin_return_address(0));

	if (ttmem_metal::usable(next, buffer))
		ttmem_metal::guarded([&] {
			if (!Ledger::instance().deallocated(buffer))
				Ledger::instance().unknown(ttmem_metal::facts_of(next, buffer));
		});
	if (next.track_deallocate)
		next.track_deallocate(this, buffer);
}

void GraphTracker::track_allocate_cb(const CoreRangeSet &cores, std::uint64_t address,
				     std::uint64_t size, bool is_globally_allocated,
				     const IDevice *device)
{
	const auto &next = ttmem_metal::metal(__builtin_return_address(0));

	if (next.track_allocate_cb)
		next.track_allocate_cb(this, cores, address, size, is_globally_allocated, device);
	if (next.num_cores && !ttmem_metal::refused.load(std::memory_order_relaxed))
		ttmem_metal::guarded([&] {
			Ledger::instance().circular(
				device, ttmem_metal::devices_of(next, device),
				{address, size, next.num_cores(&cores), is_globally_allocated});
		});
}

void GraphTracker::track_deallocate_cb(const IDevice *device)
{
	const auto &next = ttmem_metal::metal(__builtin_return_address(0));

	ttmem_metal::guarded([&] { Ledger::instance().circular_end(device); });
	if (next.track_deallocate_cb)
		next.track_deallocate_cb(this, device);
}

void GraphTracker::track_program(Program *program, const IDevice *device)
{
	const auto &next = ttmem_metal::metal(__builtin_return_address(0));

	if (next.get_devices && !ttmem_metal::refused.load(std::memory_order_relaxed))
		ttmem_metal::guarded([&] {
			Ledger::instance().program(program, device,
						   ttmem_metal::devices_of(next, device));
		});
	if (next.track_program)
		next.track_program(this, program, device);
}

} /* namespace tt::tt_metal */
