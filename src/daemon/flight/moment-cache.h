/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Snapshots of moments of the past, from what the flight recorder has. A file of it serves every
 * moment before it was written, so it is kept for whoever looks around; so are the moments that were
 * looked at last. Everything is dropped when nobody has looked for a while.
 *
 * From any thread but the loop's: one moment is restored at a time, the others wait.
 */

#include <stdint.h>

#include "base/clock.h"
#include "base/process-id.h"
#include "model/snapshot-moment.h"

struct black_box;
struct black_box_file;
struct moment_cache;
struct namer;
struct recording;
struct snapshot;
struct snapshot_request;

#define MOMENT_CACHE_MOMENTS 4u                 /* restored ones */
#define MOMENT_CACHE_BOOKS 512u                 /* of all of them but the last */
#define MOMENT_CACHE_SIZE (UINT64_C(256) << 20) /* likewise */
#define MOMENT_CACHE_IDLE_NS (30 * NS_PER_S)
#define MOMENT_CACHE_TAKE_NS (5 * NS_PER_S) /* a file may take so long */

/*
 * Between two files: at least so long, and so many times what the last one took, so that all of them
 * together take no more than that part of a processor.
 */
#define MOMENT_CACHE_AGAIN_MS 250u
#define MOMENT_CACHE_SHARE 10u
#define MOMENT_CACHE_WAIT_NS (2 * NS_PER_S) /* who has to wait longer tries again */

int moment_cache_new(struct moment_cache **ret_cache, struct black_box *box);
struct moment_cache *moment_cache_free(struct moment_cache *cache);

/*
 * The snapshot of request->at_ns, which the caller owns; native frames are named by the request's
 * namer, or by what was known when the file was written. 0; -ENODATA if nothing is known of that
 * moment; -EAGAIN if it has to wait too long for it; or another negative errno.
 */
int moment_cache_snapshot(struct moment_cache *cache, const struct snapshot_request *request,
			  struct snapshot **ret_snapshot);

/* Calls @fn with the recording of everything that is kept, no older than @until_ns. As above. */
int moment_cache_read(struct moment_cache *cache, uint64_t until_ns,
		      int (*fn)(void *context, struct recording *recording,
				const struct black_box_file *file),
		      void *context);

/* Calls @fn with each process of which something is kept, as above. 0 or a negative errno, also of @fn. */
int moment_cache_kept(struct moment_cache *cache, uint64_t until_ns,
		      int (*fn)(void *context, struct process_id process), void *context);

/* Since when moments are exact. */
uint64_t moment_cache_from(const struct moment_cache *cache);
