/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_COMPAT_ALLOCATION_CLIENT_HPP
#define TTMEM_COMPAT_ALLOCATION_CLIENT_HPP

/*
 * The old client library's interface on top of libttmem: code written for it compiles unchanged, and its
 * events go into the process's book instead of a socket. Nothing is sent, so nothing waits, is lost or
 * needs a server.
 *
 * With the flags of "pkg-config ttmem-compat" it is found under both old names, allocation_client.hpp and
 * tt-metalium/allocation_client.hpp. Old examples use the names without their namespace; define
 * TTMEM_COMPAT_NO_GLOBAL_NAMES before including this if they conflict.
 */

#include <cstdint>
#include <iostream> /* the old example prints with std::cout and includes nothing else */

#include <ttmem/compat/query_device.hpp>
#include <ttmem/ttmem.h>

namespace tt
{
namespace tt_metal
{

/* Every call is thread-safe and costs nothing while tracking is off. */
class AllocationClient
{
      public:
	AllocationClient() = delete;

	/* @buffer_type: tt-metal's BufferType, 0 (DRAM) to 4 (TRACE); others are counted as rejected. */
	static void report_allocation(int device_id, std::uint64_t size, std::uint8_t buffer_type,
				      std::uint64_t buffer_id) noexcept
	{
		/* 5 and 6 are types of ttmem that the old client did not have. */
		ttmem_alloc(static_cast<std::uint32_t>(device_id),
			    buffer_type <= TTMEM_TRACE ? buffer_type : TTMEM_TYPE_COUNT, buffer_id,
			    size, nullptr);
	}

	/*
	 * The old call does not know the type; where DRAM and L1 share the address, the ambiguity is counted.
	 * It never frees a circular buffer, although a globally allocated one has its buffer's address.
	 */
	static void report_deallocation(int device_id, std::uint64_t buffer_id) noexcept
	{
		struct ttmem_free_args args = {};

		args.struct_size = sizeof(args);
		args.device = static_cast<std::uint32_t>(device_id);
		args.type = TTMEM_ANY;
		args.flags = TTMEM_FREE_BUFFER;
		args.address = buffer_id;
		ttmem_free_ex(&args);
	}

	static void report_cb_allocation(int device_id, std::uint64_t size,
					 std::uint64_t cb_id) noexcept
	{
		ttmem_alloc(static_cast<std::uint32_t>(device_id), TTMEM_CB, cb_id, size, nullptr);
	}

	/* The book knows the size, so a wrong one can no longer wrap a counter. */
	static void report_cb_deallocation(int device_id, std::uint64_t /* size */,
					   std::uint64_t cb_id) noexcept
	{
		ttmem_free(static_cast<std::uint32_t>(device_id), TTMEM_CB, cb_id);
	}

	/* @kernel_type: 0 application, 1 fabric, 2 dispatch. */
	static void report_kernel_load(int device_id, std::uint64_t size, std::uint64_t kernel_id,
				       std::uint8_t kernel_type = 0) noexcept
	{
		struct ttmem_alloc_args args = {};

		args.struct_size = sizeof(args);
		args.device = static_cast<std::uint32_t>(device_id);
		args.type = TTMEM_KERNEL;
		args.address = kernel_id;
		args.size = size;
		/* An unknown kind is no reason to lose the bytes. */
		args.kernel_sort = kernel_type <= TTMEM_KERNEL_DISPATCH ? kernel_type
									: TTMEM_KERNEL_APPLICATION;
		ttmem_alloc_ex(&args);
	}

	static void report_kernel_unload(int device_id, std::uint64_t /* size */,
					 std::uint64_t kernel_id) noexcept
	{
		ttmem_free(static_cast<std::uint32_t>(device_id), TTMEM_KERNEL, kernel_id);
	}

	static bool is_enabled() noexcept
	{
		return ttmem_enabled() != 0;
	}
};

} /* namespace tt_metal */
} /* namespace tt */

#ifndef TTMEM_COMPAT_NO_GLOBAL_NAMES
using tt::tt_metal::AllocationClient;
using tt::tt_metal::query_device;
#endif

#endif
