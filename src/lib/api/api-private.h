/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the calls that report memory share: which calls are valid, deferring, old logs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "book/write/writer.h"
#include "lib/api/call.h"

struct debug_log_buffer;

#define API_EXPORT __attribute__((visibility("default")))
#define API_BODY static __attribute__((noinline)) void

/* Sizes are below 1 TiB: sixteen million of them cannot wrap a counter. */
#define API_SIZE_MAX ((UINT64_C(1) << 40) - 1)

/* Writes calls on the slow path to the old system's logs, which do not show rejected calls. */
void api_log_alloc(const struct call *call, const uint32_t *devices, size_t n,
		   const struct debug_log_buffer *buffer);
void api_log_free(const struct call *call, const uint32_t *devices, size_t n,
		  const struct debug_log_buffer *buffer);

/* An event from inside a signal handler that interrupted one of this thread's calls. */
void api_defer(struct writer *writer, uint32_t device, bool is_free,
	       const struct shard_buffer *buffer, uint64_t owner);

/* A mesh call inside an interrupted one: one event per device, as far as slots are free. */
void api_defer_mesh(struct call *call, const uint32_t *devices, size_t n, bool is_free,
		    const struct shard_buffer *buffer, uint64_t owner);

static inline bool api_alloc_is_plain(uint32_t device, uint32_t type, uint64_t size)
{
	return device < BOOK_DEVICES && type < BOOK_TYPES && size - 1 < API_SIZE_MAX;
}

static inline bool api_alloc_is_sane(struct writer *writer, uint32_t device, uint32_t type,
				     uint64_t size, uint32_t flags)
{
	struct book_rejected *rejected = &writer->header->rejected;

	if (likely(api_alloc_is_plain(device, type, size)))
		return true;
	if (device >= BOOK_DEVICES)
		writer_reject(&rejected->device);
	else if (type >= BOOK_TYPES)
		writer_reject(&rejected->type);
	else if (size == 0 && flags & (TTMEM_FLAG_ALIAS | TTMEM_FLAG_HOOKED))
		return true;
	else
		writer_reject(&rejected->size);
	return false;
}

static inline bool api_free_is_sane(struct writer *writer, uint32_t device, uint32_t type)
{
	if (likely(device < BOOK_DEVICES && (type < BOOK_TYPES || type == TTMEM_ANY)))
		return true;
	writer_reject(device >= BOOK_DEVICES ? &writer->header->rejected.device
					     : &writer->header->rejected.type);
	return false;
}
