/* SPDX-License-Identifier: Apache-2.0 */

/* A namer that asks the thread for symbols, as long as there is time. */

#include "daemon/symbols-namer.h"

#include <string.h>

#include "base/bits.h"
#include "book/clock.h"

#define NAMER_MS UINT64_C(1000000)

static size_t symbols_namer_find(struct namer *namer, const struct namer_place *place,
				 struct namer_name *ret_names, size_t max)
{
	struct symbols_namer *self = container_of(namer, struct symbols_namer, namer);
	struct symbols_module module = {.path = place->path, .pid = self->pid, .user = self->user};
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t count;

	if (now >= self->deadline_ns || place->build_id_length > sizeof(module.build_id))
		return 0;
	module.build_id_length = place->build_id_length;
	memcpy(module.build_id, place->build_id, place->build_id_length);
	if (symbols_resolve(self->symbols, &module, place->address,
			    (int)((self->deadline_ns - now) / NAMER_MS) + 1, &self->answer) < 0)
		return 0; /* whatever it is, the name is not known */
	count = bits_min(self->answer.count, max);
	for (size_t i = 0; i < count; i++) {
		const struct resolve_frame *frame = &self->answer.frames[i];

		ret_names[i] = (struct namer_name){
			.function = frame->function[0] ? frame->function : NULL,
			.file = frame->file[0] ? frame->file : NULL,
			.line = frame->line,
		};
	}
	return count;
}

void symbols_namer_init(struct symbols_namer *namer, struct symbols *symbols, uint32_t user,
			uint32_t pid)
{
	*namer = (struct symbols_namer){
		.namer = {.find = symbols_namer_find},
		.symbols = symbols,
		.user = user,
		.pid = pid,
		.deadline_ns = clock_ns(CLOCK_MONOTONIC) + SYMBOLS_NAMER_MS * NAMER_MS,
	};
}
