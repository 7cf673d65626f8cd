/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.map/1 and ttmem.fit/1. */

#include "base/emit.h"
#include "model/json/document.h"
#include "model/memory-map.h"
#include "model/snapshot.h"
#include "model/types.h"

/* Which memory it is, and how it stands. */
static void spaces_document_space(struct emit *json, const struct space *space)
{
	const struct holes *holes = &space->holes;

	emit_u64(json, "pid", space->process->pid);
	emit_string(json, "comm", space->process->comm);
	emit_u64(json, "device", space->device->device);
	document_uid(json, "uid", space->device->unique_id);
	emit_string(json, "type", types_name(space->type));
	emit_hex(json, "base", holes->base);
	emit_u64(json, "bank_size", holes->size);
	emit_u64(json, "banks", holes->banks);
	emit_u64(json, "alignment", holes->alignment);
	emit_u64(json, "used", holes->used);
	emit_u64(json, "free", holes->free);
	emit_u64(json, "largest", holes->largest);
	emit_double(json, "fragmentation", holes_fragmentation(holes));
	emit_u64(json, "blocks", holes->block_count);
	emit_u64(json, "guessed", holes->guessed);
	emit_u64(json, "unplaced", holes->unplaced);
}

static void spaces_document_hole(struct emit *json, uint64_t address, uint64_t length)
{
	emit_hex(json, "address", address);
	emit_u64(json, "size", length);
	emit_close_object(json);
}

void spaces_document_map(struct emit *json, const struct spaces *spaces,
			 const struct snapshot *snapshot)
{
	document_open(json, "ttmem.map/1", snapshot->time_ns);
	emit_open_array(json, "maps");
	for (size_t i = 0; i < spaces->count; i++) {
		const struct holes *holes = &spaces->list[i].holes;

		emit_open_object(json, NULL);
		spaces_document_space(json, &spaces->list[i]);
		emit_open_array(json, "holes");
		for (size_t k = 0; k < holes->hole_count; k++) {
			emit_open_object(json, NULL);
			spaces_document_hole(json, holes->holes[k].address, holes->holes[k].length);
		}
		emit_close_array(json);
		emit_close_object(json);
	}
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}

static void spaces_document_gone(struct emit *json, const struct space *space,
				 const struct holes_fit *fit)
{
	emit_open_array(json, "in_the_way");
	for (size_t i = 0; i < fit->count; i++) {
		const struct holes_block *block = &space->holes.blocks[fit->first + i];

		emit_open_object(json, NULL);
		emit_hex(json, "address", block->address);
		emit_u64(json, "size", block->buffer->size);
		emit_u64(json, "size_per_bank", block->length);
		emit_string(json, "type", types_name(block->buffer->type));
		emit_string(json, "name", block->buffer->name);
		emit_close_object(json);
	}
	emit_close_array(json);
}

void spaces_document_fit(struct emit *json, const struct spaces *spaces,
			 const struct snapshot *snapshot, const struct holes_fit *fits,
			 uint64_t size)
{
	static const char *const reasons[] = {
		[HOLES_FITS] = NULL,
		[HOLES_FULL] = "full",
		[HOLES_CUT] = "cut_up",
		[HOLES_LARGE] = "too_large",
	};

	document_open(json, "ttmem.fit/1", snapshot->time_ns);
	emit_u64(json, "size", size);
	emit_open_array(json, "answers");
	for (size_t i = 0; i < spaces->count; i++) {
		const struct holes_fit *fit = &fits[i];

		emit_open_object(json, NULL);
		spaces_document_space(json, &spaces->list[i]);
		emit_bool(json, "fits", fit->verdict == HOLES_FITS);
		emit_string(json, "reason", reasons[fit->verdict]);
		emit_u64(json, "need_per_bank", fit->need);
		if (fit->verdict == HOLES_FITS) {
			emit_open_object(json, "hole");
			spaces_document_hole(json, fit->address, fit->length);
		} else {
			emit_null(json, "hole");
		}
		spaces_document_gone(json, &spaces->list[i], fit);
		emit_close_object(json);
	}
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
