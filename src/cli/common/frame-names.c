/* SPDX-License-Identifier: Apache-2.0 */

/* A namer that asks the symbolizer until its time is used up. */

#include "cli/common/frame-names.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/common/debuginfod.h"
#include "symbol/symbolizer-memory.h"
#include "symbol/symbolizer-namer.h"

#define FRAME_NAMES_NS \
	UINT64_C(20000000000) /* for all lookups together; any later lookup fails at once */

struct frame_names {
	struct namer namer;
	struct symbolizer_fetcher fetcher;
	struct symbolizer *symbolizer;
	struct symbolizer_memory memory;
	struct debuginfod debuginfod;
	uint64_t questions;
	uint64_t deadline_ns;            /* 0 = no lookup yet */
	struct symbolizer_answer answer; /* the last names point into it */
};

/* Called when nothing on this machine knows more; a server may. */
static int frame_names_fetch(struct symbolizer_fetcher *fetcher,
			     const struct symbolizer_module *module, int *ret_fd)
{
	struct frame_names *self = container_of(fetcher, struct frame_names, fetcher);
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	int r = debuginfod_fetch(&self->debuginfod, module, ret_fd);

	self->deadline_ns += clock_ns(CLOCK_MONOTONIC) - start; /* has its own limit */
	return r;
}

/* 0, or any error: the name is unknown. */
static int frame_names_ask(struct frame_names *self, const struct symbolizer_module *module,
			   uint64_t address)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int r;

	if (!self->deadline_ns)
		self->deadline_ns = now + FRAME_NAMES_NS;
	if (now > self->deadline_ns)
		return -ETIMEDOUT;
	self->questions++;
	r = symbolizer_find(self->symbolizer, module, address, &self->answer);
	symbolizer_memory_put(&self->memory, module, address, r, &self->answer);
	return r;
}

static size_t frame_names_find(struct namer *namer, const struct namer_place *place,
			       struct namer_name *ret_names, size_t max)
{
	struct frame_names *self = container_of(namer, struct frame_names, namer);
	struct symbolizer_module module;
	int r;

	if (place->is_lost || !symbolizer_namer_module(place, &module))
		return 0;
	r = symbolizer_memory_find(&self->memory, &module, place->address, &self->answer);
	if (r == -EAGAIN)
		r = frame_names_ask(self, &module, place->address);
	return r == 0 ? symbolizer_namer_names(&self->answer, ret_names, max) : 0;
}

int frame_names_new(struct frame_names **ret_names)
{
	CLEANUP_FREE struct frame_names *names = calloc(1, sizeof(*names));
	struct symbolizer_config config = {
		.stop_fd = -1,
		.processes = SYMBOLIZER_PROCESSES_MAX,
		.served_max = UINT32_MAX, /* the process ends with the command */
		.bad_user = UINT32_MAX,   /* the time limit is enough */
		.own_rights = true,
		.keeps_files = true,
	};
	int r;

	if (!names)
		return -ENOMEM;
	names->namer.find = frame_names_find;
	names->fetcher.fetch = frame_names_fetch;
	names->debuginfod = DEBUGINFOD_INIT;
	config.fetcher = &names->fetcher;
	r = symbolizer_new(&names->symbolizer, &config);
	if (r < 0)
		return r;
	symbolizer_memory_init(&names->memory);
	*ret_names = cleanup_steal(names);
	return 0;
}

struct frame_names *frame_names_free(struct frame_names *names)
{
	if (!names)
		return NULL;
	symbolizer_free(names->symbolizer);
	symbolizer_memory_deinit(&names->memory);
	debuginfod_deinit(&names->debuginfod);
	free(names);
	return NULL;
}

void frame_names_renew(struct frame_names *names)
{
	names->deadline_ns = 0;
}

struct namer *frame_names_namer(struct frame_names *names)
{
	return &names->namer;
}

uint64_t frame_names_questions(const struct frame_names *names)
{
	return names->questions;
}
