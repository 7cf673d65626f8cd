/* SPDX-License-Identifier: Apache-2.0 */

/* Cards first, because regions are known by them; who has them open last, because that is asked of few. */

#include "source/machine.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "core/snapshot.h"
#include "source/driver.h"
#include "source/people.h"
#include "source/region.h"
#include "source/source.h"

static void machine_close(struct proc *proc)
{
	proc_close(proc);
}

static int machine_collect(struct source *source, const struct source_request *request,
			   struct snapshot *snapshot)
{
	CLEANUP(machine_close) struct proc proc = {.root = -1};
	CLEANUP(people_cleanup) struct people *people = NULL;
	int r;

	/* In a page only few processes are there: the others would look as if they had no books. */
	if (request->limit)
		return 0;
	r = proc_open(&proc);
	if (r == 0)
		r = people_new(&people, &proc, snapshot);
	if (r == 0)
		r = driver_collect_cards(snapshot);
	if (r == 0)
		r = region_collect(people, snapshot);
	if (r == 0)
		r = driver_collect_pids(people, snapshot);
	return r;
}

static void machine_free(struct source *source)
{
	free(source);
}

static const struct source_ops machine_ops = {
	.name = "machine",
	.collect = machine_collect,
	.free = machine_free,
};

int machine_source_new(struct source **ret_source)
{
	struct source *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->ops = &machine_ops;
	*ret_source = source;
	return 0;
}
