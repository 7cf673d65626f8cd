/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_COMPAT_TT_TRACK_H
#define TTMEM_COMPAT_TT_TRACK_H

/*
 * The three calls of the old kernel-only design. They use the kernel module if it is loaded, otherwise the
 * book of libttmem (link with -lttmem), which the daemon and the commands read. For code that already has
 * these calls; new code should call ttmem_alloc() and ttmem_free(), which cost a fraction and use the
 * kernel's book automatically.
 *
 * All of them are thread-safe. They return 0, or a negative errno as documented at each.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ttmem/ttmem.h>
#include <uapi/ttmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the calling process, on one device. */
struct tt_allocation_stats {
	uint64_t dram_bytes, l1_bytes, l1_small_bytes, trace_bytes;
	uint64_t total_buffers;
	uint64_t dram_buffers, l1_buffers, l1_small_buffers, trace_buffers;
};

/* The node of this process, opened at the first call and kept open: the kernel forgets reports at close. */
static inline int tt_track_node(void)
{
	static int node = -1; /* -2 = there is none */
	int fd = __atomic_load_n(&node, __ATOMIC_ACQUIRE);
	int none = -1;

	if (fd != -1)
		return fd;
	fd = open(TTMEM_NODE, O_RDWR); /* NOLINT(android-cloexec-open): below */
	if (fd >= 0)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* O_CLOEXEC is not in every C mode */
	if (!__atomic_compare_exchange_n(&node, &none, fd < 0 ? -2 : fd, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		if (fd >= 0)
			(void)close(fd); /* another thread was faster */
		return none;
	}
	return fd < 0 ? -2 : fd;
}

/* -EINVAL; by the kernel also -EEXIST (live with another size), -ENOSPC, -ENOMEM. */
static inline int tt_track_allocation(uint32_t device, uint64_t id, uint64_t size, uint32_t type)
{
	struct ttmem_ioc_track_alloc args;
	int node = tt_track_node();

	if (device >= TTMEM_UAPI_DEVICES || type >= TTMEM_UAPI_TYPES || size == 0)
		return -EINVAL;
	if (node < 0) {
		ttmem_alloc(device, type, id, size, NULL);
		return 0;
	}
	memset(&args, 0, sizeof(args));
	args.argsz = (uint32_t)sizeof(args);
	args.device = device;
	args.type = type;
	args.address = id;
	args.size = size;
	return ioctl(node, TTMEM_IOC_TRACK_ALLOC, &args) < 0 ? -errno : 0;
}

/* -EINVAL; by the kernel also -ENOENT. */
static inline int tt_track_deallocation(uint32_t device, uint64_t id)
{
	struct ttmem_ioc_track_free args;
	int node = tt_track_node();

	if (device >= TTMEM_UAPI_DEVICES)
		return -EINVAL;
	if (node < 0) {
		ttmem_free(device, TTMEM_ANY, id);
		return 0;
	}
	memset(&args, 0, sizeof(args));
	args.argsz = (uint32_t)sizeof(args);
	args.device = device;
	args.type = TTMEM_UAPI_ANY;
	args.address = id;
	return ioctl(node, TTMEM_IOC_TRACK_FREE, &args) < 0 ? -errno : 0;
}

/* What is live of each type, from the kernel or from the book. */
static inline int tt_track_read(uint32_t device, struct ttmem_ioc_memory memory[TTMEM_UAPI_TYPES])
{
	struct ttmem_ioc_query_stats args;
	struct ttmem_stats stats;
	int node = tt_track_node();
	uint32_t type;

	memset(&args, 0, sizeof(args));
	args.argsz = (uint32_t)sizeof(args);
	args.device = device;
	if (node >= 0 && ioctl(node, TTMEM_IOC_QUERY_STATS, &args) < 0)
		return -errno;
	for (type = 0; node < 0 && type < TTMEM_UAPI_TYPES; type++) {
		int r = ttmem_stats(device, type, &stats);

		if (r < 0)
			return r;
		args.own[type].bytes = stats.bytes;
		args.own[type].buffers = stats.buffers;
	}
	memcpy(memory, args.own, sizeof(args.own));
	return 0;
}

/* -EINVAL; -ENODATA if neither the kernel nor the library tracks this process. */
static inline int tt_query_allocation_stats(uint32_t device, struct tt_allocation_stats *ret_stats)
{
	struct ttmem_ioc_memory memory[TTMEM_UAPI_TYPES];
	uint32_t type;
	int r;

	if (!ret_stats || device >= TTMEM_UAPI_DEVICES)
		return -EINVAL;
	memset(memory, 0, sizeof(memory));
	r = tt_track_read(device, memory);
	if (r < 0)
		return r;
	memset(ret_stats, 0, sizeof(*ret_stats));
	ret_stats->dram_bytes = memory[TTMEM_DRAM].bytes;
	ret_stats->l1_bytes = memory[TTMEM_L1].bytes;
	ret_stats->l1_small_bytes = memory[TTMEM_L1_SMALL].bytes;
	ret_stats->trace_bytes = memory[TTMEM_TRACE].bytes;
	for (type = 0; type < TTMEM_UAPI_TYPES; type++)
		ret_stats->total_buffers += memory[type].buffers;
	ret_stats->dram_buffers = memory[TTMEM_DRAM].buffers;
	ret_stats->l1_buffers = memory[TTMEM_L1].buffers;
	ret_stats->l1_small_buffers = memory[TTMEM_L1_SMALL].buffers;
	ret_stats->trace_buffers = memory[TTMEM_TRACE].buffers;
	return 0;
}

#ifdef __cplusplus
}
#endif

#endif
