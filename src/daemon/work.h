/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The daemon's workers: any number of jobs may wait, and all of them are finished in the loop. */

#include "base/worker.h"

#define work_job worker_job

struct work;

static inline int work_new(struct work **ret_work, struct loop *loop, const char *name)
{
	const struct worker_config config = {.name = name, .loop = loop};
	struct worker *worker;
	int r = worker_new(&worker, &config);

	if (r == 0)
		*ret_work = (struct work *)worker;
	return r;
}

static inline struct work *work_free(struct work *work)
{
	worker_free((struct worker *)work);
	return NULL;
}

static inline void work_put(struct work *work, struct work_job *job)
{
	(void)worker_put((struct worker *)work, job); /* refused only after the end */
}
