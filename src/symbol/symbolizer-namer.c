/* SPDX-License-Identifier: Apache-2.0 */

/* Converts between the two forms. */

#include "symbol/symbolizer-namer.h"

#include <string.h>

#include "base/bits.h"

bool symbolizer_namer_module(const struct namer_place *place, struct symbolizer_module *ret_module)
{
	if (!place->path || place->build_id_length > sizeof(ret_module->build_id))
		return false;
	*ret_module = (struct symbolizer_module){
		.path = place->path,
		.process = place->process,
		.user = place->user,
		.book = place->book,
		.base = place->base,
		.only_held = place->is_lost,
		.build_id_length = place->build_id_length,
	};
	memcpy(ret_module->build_id, place->build_id, place->build_id_length);
	return true;
}

size_t symbolizer_namer_names(const struct symbolizer_answer *answer, struct namer_name *ret_names,
			      size_t max)
{
	size_t count = bits_min(answer->count, max);

	for (size_t i = 0; i < count; i++) {
		const struct resolve_frame *frame = &answer->frames[i];

		ret_names[i] = (struct namer_name){
			.function = frame->function[0] ? frame->function : NULL,
			.file = frame->file[0] ? frame->file : NULL,
			.line = frame->line,
		};
	}
	return count;
}
