/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where books come from: the command finds them in /proc, the daemon has a list of them. All other
 * sources are the same for both; collect.h combines them.
 */

#include <stdbool.h>
#include <stddef.h>

#include "model/snapshot-request.h"

struct snapshot;
struct source;

struct source_ops {
	const char *name;
	/*
	 * Adds to @snapshot. Returns 0 or a negative errno; what single processes do wrong becomes
	 * a note.
	 */
	int (*collect)(struct source *source, const struct snapshot_request *request,
		       struct snapshot *snapshot);
	void (*free)(struct source *source);
};

struct source {
	const struct source_ops *ops;
};

static inline int source_collect(struct source *source, const struct snapshot_request *request,
				 struct snapshot *snapshot)
{
	return source->ops->collect(source, request, snapshot);
}

static inline struct source *source_free(struct source *source)
{
	if (source)
		source->ops->free(source);
	return NULL;
}
