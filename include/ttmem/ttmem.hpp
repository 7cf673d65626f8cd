/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_TTMEM_HPP
#define TTMEM_TTMEM_HPP

/*
 * libttmem for C++17 and later: ttmem.h with scopes instead of paired calls.
 *
 * It needs only ttmem.h, which documents each call; nothing throws, nothing allocates, and it compiles
 * without exceptions and without RTTI.
 */

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include <ttmem/ttmem.h>

namespace ttmem
{

/*
 * Kinds of memory, from dram = TTMEM_DRAM to kernel = TTMEM_KERNEL: the values are those of ttmem.h, so that
 * casts work in both directions.
 */
enum class memory : std::uint32_t {
#define TTMEM_TYPE(number, name, cpp, ...) cpp = TTMEM_##name,
#include <ttmem/types.def>
	any = TTMEM_ANY, /* in a free: not known; in a query: all */
};

/*
 * The devices of a mesh: a view of numbers stored elsewhere, like std::span<const std::uint32_t> in
 * C++20. Converts from a span, vector, array or C array. Only for arguments.
 */
class devices
{
	template <typename Range>
	using if_range = std::enable_if_t<
		std::is_convertible_v<decltype(std::declval<const Range &>().data()),
				      const std::uint32_t *> &&
		std::is_convertible_v<decltype(std::declval<const Range &>().size()), std::size_t>>;

      public:
	constexpr devices(const std::uint32_t *numbers, std::size_t count) noexcept
	    : numbers_(numbers), count_(count)
	{
	}

	template <std::size_t N>
	constexpr devices(const std::uint32_t (&numbers)[N]) noexcept : numbers_(numbers), count_(N)
	{
	}

	template <typename Range, typename = if_range<Range>>
	constexpr devices(const Range &range) noexcept
	    : numbers_(range.data()), count_(range.size())
	{
	}

	constexpr const std::uint32_t *data() const noexcept
	{
		return numbers_;
	}

	constexpr std::size_t size() const noexcept
	{
		return count_;
	}

      private:
	const std::uint32_t *numbers_;
	std::size_t count_;
};

inline bool enabled() noexcept
{
	return ttmem_enabled() != 0;
}

inline void alloc(std::uint32_t device, memory type, std::uint64_t address, std::uint64_t size,
		  const char *name = nullptr) noexcept
{
	ttmem_alloc(device, static_cast<std::uint32_t>(type), address, size, name);
}

inline void free(std::uint32_t device, memory type, std::uint64_t address) noexcept
{
	ttmem_free(device, static_cast<std::uint32_t>(type), address);
}

/* The same buffer on every device of @mesh; @size is per device. */
inline void alloc_mesh(devices mesh, memory type, std::uint64_t address, std::uint64_t size,
		       const char *name = nullptr) noexcept
{
	ttmem_alloc_mesh(mesh.data(), mesh.size(), static_cast<std::uint32_t>(type), address, size,
			 name);
}

inline void free_mesh(devices mesh, memory type, std::uint64_t address) noexcept
{
	ttmem_free_mesh(mesh.data(), mesh.size(), static_cast<std::uint32_t>(type), address);
}

/* In another space than 0, which the device's other allocators do not share: see ttmem.h. */
inline void alloc_in_space(std::uint32_t space, std::uint32_t device, memory type,
			   std::uint64_t address, std::uint64_t size,
			   const char *name = nullptr) noexcept
{
	struct ttmem_alloc_args args = {};

	args.struct_size = sizeof(args);
	args.device = device;
	args.type = static_cast<std::uint32_t>(type);
	args.address = address;
	args.size = size;
	args.name = name;
	args.space = space;
	ttmem_alloc_ex(&args);
}

inline void free_in_space(std::uint32_t space, std::uint32_t device, memory type,
			  std::uint64_t address) noexcept
{
	struct ttmem_free_args args = {};

	args.struct_size = sizeof(args);
	args.device = device;
	args.type = static_cast<std::uint32_t>(type);
	args.flags = TTMEM_FREE_IN_SPACE;
	args.address = address;
	args.space = space;
	ttmem_free_ex(&args);
}

/* An allocator was closed: whatever it had handed out is gone. Returns how many buffers that were. */
inline std::uint64_t end_space(std::uint32_t device, std::uint32_t space) noexcept
{
	return ttmem_end_space(device, space);
}

/* With the devices in braces. */
inline void alloc_mesh(std::initializer_list<std::uint32_t> mesh, memory type,
		       std::uint64_t address, std::uint64_t size,
		       const char *name = nullptr) noexcept
{
	alloc_mesh(devices(mesh.begin(), mesh.size()), type, address, size, name);
}

inline void free_mesh(std::initializer_list<std::uint32_t> mesh, memory type,
		      std::uint64_t address) noexcept
{
	free_mesh(devices(mesh.begin(), mesh.size()), type, address);
}

inline void alloc_failed(std::uint32_t device, memory type, std::uint64_t size,
			 std::uint64_t largest_free = TTMEM_UNKNOWN) noexcept
{
	ttmem_alloc_failed(device, static_cast<std::uint32_t>(type), size, largest_free);
}

inline void mark(const char *name) noexcept
{
	ttmem_mark(name);
}

/* This process's own figures; all 0 if there are none (tracking is off, no such device). */
inline struct ttmem_stats stats(std::uint32_t device, memory type = memory::any) noexcept
{
	struct ttmem_stats result = {};

	(void)::ttmem_stats(device, static_cast<std::uint32_t>(type), &result); /* then all 0 */
	return result;
}

/*
 * A phase for the rest of the scope, on this thread. Phases are a stack per thread, so the guard can
 * neither be copied nor moved: it must end in the scope where it began.
 */
class phase
{
      public:
	[[nodiscard]] explicit phase(const char *name) noexcept
	{
		ttmem_phase_push(name);
	}

	/* A std::string, or anything else with c_str(). */
	template <typename Text, typename = decltype(std::declval<const Text &>().c_str())>
	[[nodiscard]] explicit phase(const Text &name) noexcept : phase(name.c_str())
	{
	}

	~phase()
	{
		ttmem_phase_pop();
	}

	phase(const phase &) = delete;
	phase &operator=(const phase &) = delete;
};

/* Nothing is recorded for the rest of the scope, in the whole process; unrecorded events are counted. */
class pause
{
      public:
	[[nodiscard]] pause() noexcept
	{
		ttmem_pause();
	}

	~pause()
	{
		ttmem_resume();
	}

	pause(const pause &) = delete;
	pause &operator=(const pause &) = delete;
};

/*
 * One buffer, reported as allocated by the constructor and as freed by the destructor. It does not
 * allocate: put it beside whatever owns the memory. An empty guard does nothing.
 */
class buffer
{
      public:
	buffer() noexcept = default;

	[[nodiscard]] buffer(std::uint32_t device, memory type, std::uint64_t address,
			     std::uint64_t size, const char *name = nullptr) noexcept
	    : address_(address), size_(size), device_(device), type_(type), live_(true)
	{
		alloc(device, type, address, size, name);
	}

	buffer(buffer &&other) noexcept
	    : address_(other.address_), size_(other.size_), device_(other.device_),
	      type_(other.type_), live_(std::exchange(other.live_, false))
	{
	}

	buffer &operator=(buffer &&other) noexcept
	{
		if (this != &other) {
			reset();
			address_ = other.address_;
			size_ = other.size_;
			device_ = other.device_;
			type_ = other.type_;
			live_ = std::exchange(other.live_, false);
		}
		return *this;
	}

	~buffer()
	{
		reset();
	}

	buffer(const buffer &) = delete;
	buffer &operator=(const buffer &) = delete;

	/* Report the free now. */
	void reset() noexcept
	{
		if (std::exchange(live_, false))
			free(device_, type_, address_);
	}

	/* Other code will report the free. */
	void release() noexcept
	{
		live_ = false;
	}

	explicit operator bool() const noexcept
	{
		return live_;
	}

	std::uint32_t device() const noexcept
	{
		return device_;
	}

	memory type() const noexcept
	{
		return type_;
	}

	std::uint64_t address() const noexcept
	{
		return address_;
	}

	std::uint64_t size() const noexcept
	{
		return size_;
	}

      private:
	std::uint64_t address_ = 0;
	std::uint64_t size_ = 0;
	std::uint32_t device_ = 0;
	memory type_ = memory::dram;
	bool live_ = false;
};

} /* namespace ttmem */

#endif
