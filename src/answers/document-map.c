/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.map/1 and ttmem.fit/1. */

#include "answers/document.h"
#include "answers/fields.h"
#include "base/bits.h"
#include "base/emit.h"
#include "model/memory/memory-map.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

/* What all processes of the device have of it together. */
struct map_shared {
	const struct space *space;
	uint64_t used, free, largest;
	bool is_placed;
};

struct map_row {
	const struct space *space;
	const struct map_shared *shared; /* NULL = no other process has any */
	uint64_t occupied, headroom;
	bool has_occupied, has_headroom;
	double fragmentation;
	struct map_shared room;
};

struct fit_row {
	struct map_row map;
	const struct snapshot *snapshot;
	const struct free_blocks_fit *fit;
	const char *reason;                  /* NULL: it fits */
	const struct free_blocks_hole *hole; /* where; NULL: it does not */
	bool fits;
	struct free_blocks_hole room;
};

#define ROW struct memory_holder

static const struct field map_others[] = {
	FIELD_VIA(process, struct snapshot_process, "pid", SHORT, id.pid),
	FIELD_VIA(process, struct snapshot_process, "comm", TEXT, comm),
	FIELD("bytes", BYTES, bytes,
	      .says = "in all banks together; where that is not known, the sum of sizes"),
	FIELD("placed", BOOL, is_placed),
	FIELD_END,
};

static const void *map_each_other(const void *context, size_t *at, struct fields_room *room)
{
	const struct map_shared *row = context;
	const struct memory_shared *shared = row->space->shared;

	(void)room;
	while (*at < shared->count) {
		const struct memory_holder *holder = &shared->holders[(*at)++];

		if (holder->process != row->space->process)
			return holder;
	}
	return NULL;
}

#undef ROW
#define ROW struct map_shared

static const struct field map_shared[] = {
	FIELD("used", BYTES, used, .says = "in each bank, like free and largest"),
	FIELD("free", BYTES, free),
	FIELD("largest", BYTES, largest,
	      .says = "free block between all buffers whose place is known"),
	FIELD("placed", BOOL, is_placed,
	      .says = "false: of some only the bytes are known, not their addresses"),
	FIELD_MADE("others", map_each_other, map_others,
		   .says = "the other processes that hold some of it"),
	FIELD_END,
};

#undef ROW
#define ROW struct space

static const struct field map_space[] = {
	FIELD_VIA(process, struct snapshot_process, "pid", SHORT, id.pid),
	FIELD_VIA(process, struct snapshot_process, "comm", TEXT, comm),
	FIELD_VIA(device, struct snapshot_device, "device", SHORT, device),
	FIELD_VIA(device, struct snapshot_device, "uid", HEX, unique_id, .absent = FIELD_NULL),
	FIELD("type", NAME, type, .names = types_name),
	FIELD("base", HEX, free_blocks.base, .says = "first address in each bank"),
	FIELD("bank_size", BYTES, free_blocks.size,
	      .says = "bytes in each bank; likewise used, free, largest"),
	FIELD("banks", SHORT, free_blocks.banks),
	FIELD("alignment", SHORT, free_blocks.alignment),
	FIELD("used", BYTES, free_blocks.used),
	FIELD("free", BYTES, free_blocks.free, .says = "in free blocks, after aligning them"),
	FIELD("largest", BYTES, free_blocks.largest, .says = "free block"),
	FIELD("blocks", NUMBER, free_blocks.block_count, .says = "buffers in it"),
	FIELD("guessed", NUMBER, free_blocks.guessed,
	      .says = "of them do not tell their share of a bank: taken as spread evenly"),
	FIELD("unplaced", NUMBER, free_blocks.unplaced, .says = "buffers that lie outside of it"),
	FIELD_END,
};

#undef ROW
#define ROW struct map_row
#define SPACE_FIELDS                                                            \
	{                                                                       \
		.key = "", .kind = FIELD_ALSO, .via = 1 + offsetof(ROW, space), \
		.fields = map_space                                             \
	}

const struct field memory_map_space_fields[] = {
	SPACE_FIELDS,
	FIELD_IF(has_occupied, "occupied", BYTES, occupied,
		 .says = "what its blocks take in all banks; null: not known of all of them"),
	FIELD("fragmentation", DOUBLE, fragmentation, .most = 1,
	      .says = "share of the free bytes that is not in the largest free block"),
	FIELD_POINTED("shared", shared, map_shared, .is_later = true,
		      .says = "null: no other process holds any of this memory"),
	FIELD_END,
};

#undef ROW
#define ROW struct free_blocks_hole

const struct field memory_map_hole_fields[] = {
	FIELD("address", HEX, address),
	FIELD("size", BYTES, length),
	FIELD_END,
};

#undef ROW
#define ROW struct free_blocks

static const struct field map_holes[] = {
	FIELD_ARRAY_AT("holes", ROWS, holes, hole_count, .fields = memory_map_hole_fields,
		       .says = "by address; what can be had at an aligned one"),
	FIELD_END,
};

#undef ROW
#define ROW struct map_row

static const struct field map_headroom[] = {
	FIELD_IF(has_headroom, "headroom", BYTES, headroom,
		 .says = "only of L1: bytes on each core from the farthest circular buffer to the "
			 "lowest buffer, 0 if they meet; null: not known"),
	FIELD_END,
};

/* Only of L1. */
static void map_put_headroom(struct emit *json, const char *key, const void *context)
{
	const struct map_row *row = context;

	(void)key;
	if (row->space->type == TYPES_L1)
		fields_put(json, map_headroom, row);
}

static void map_put_holes(struct emit *json, const char *key, const void *context)
{
	const struct map_row *row = context;

	(void)key;
	fields_put(json, map_holes, &row->space->free_blocks);
}

static const struct field map_fields[] = {
	FIELD_MORE(memory_map_space_fields),
	FIELD_CODED("headroom", map_put_headroom, .fields = map_headroom,
		    .absent = FIELD_ELSEWHERE),
	FIELD_CODED("holes", map_put_holes, .fields = map_holes),
	FIELD_END,
};

static void map_fill(struct map_row *row, const struct space *space)
{
	const struct memory_shared *shared = space->shared;

	*row = (struct map_row){.space = space};
	row->has_occupied = free_blocks_occupied(&space->free_blocks, &row->occupied);
	row->has_headroom = free_blocks_headroom(&space->free_blocks, &row->headroom);
	row->fragmentation = free_blocks_fragmentation(&space->free_blocks);
	if (!shared)
		return;
	row->room = (struct map_shared){
		.space = space,
		.used = merge_add(shared->all.used, shared->unplaced),
		.free = shared->all.free - bits_min(shared->all.free, shared->unplaced),
		.largest = shared->all.largest,
		.is_placed = shared->unplaced == 0,
	};
	row->shared = &row->room;
}

static const void *map_each(const void *context, size_t *at, struct fields_room *room)
{
	const struct memory_map *memory_map = context;
	struct map_row *row = FIELDS_IN(room, struct map_row);

	if (*at >= memory_map->count)
		return NULL;
	map_fill(row, &memory_map->list[(*at)++]);
	return row;
}

#undef ROW
#define ROW struct memory_map

static const struct field map_members[] = {
	FIELD_MADE("maps", map_each, map_fields),
	FIELD_END,
};

const struct document map_document = {
	.schema = "ttmem.map/1",
	.title = "ttmem map --json, /api/v1/map: blocks and free blocks, as each process's "
		 "allocator has them",
	.members = map_members,
	.has = DOCUMENT_FROM | DOCUMENT_MOMENT | DOCUMENT_LIST,
};

void memory_map_put_space(struct emit *json, const char *key, const void *space)
{
	struct map_row row;

	(void)key;
	map_fill(&row, space);
	fields_put(json, memory_map_space_fields, &row);
}

void memory_map_document_map(struct emit *json, const struct memory_map *memory_map,
			     const struct snapshot *snapshot)
{
	document_put(json, &map_document, snapshot, memory_map);
}

/* A block that would have to go. */
struct fit_block {
	const struct free_blocks_block *block;
	const struct snapshot_buffer *buffer;
	const struct snapshot_process *process;
	uint32_t type;
};

#undef ROW
#define ROW struct fit_block
#define BUFFER(...) FIELD_VIA(buffer, struct snapshot_buffer, __VA_ARGS__)
#define BLOCK(...) FIELD_VIA(block, struct free_blocks_block, __VA_ARGS__)

static const struct field fit_blocks[] = {
	FIELD_VIA(process, struct snapshot_process, "pid", SHORT, id.pid),
	FIELD_VIA(process, struct snapshot_process, "comm", TEXT, comm),
	BLOCK("address", HEX, address),
	BUFFER("size", BYTES, size),
	BLOCK("size_per_bank", BYTES, length),
	FIELD("type", NAME, type, .names = types_name),
	BUFFER("name", TEXT, name, .absent = FIELD_NULL),
	FIELD_END,
};

static const void *fit_each_block(const void *context, size_t *at, struct fields_room *room)
{
	const struct fit_row *row = context;
	struct fit_block *made = FIELDS_IN(room, struct fit_block);

	if (*at >= row->fit->count)
		return NULL;
	made->block = &row->fit->of->blocks[row->fit->first + (*at)++];
	made->buffer = made->block->buffer;
	made->process = &row->snapshot->processes[made->buffer->process];
	made->type = made->buffer->type;
	return made;
}

/* NULL: it fits, or there is no such verdict. */
static const char *fit_reason(uint32_t verdict)
{
	static const char *const reasons[] = {
		[FREE_BLOCKS_FITS] = NULL,
		[FREE_BLOCKS_FULL] = "full",
		[FREE_BLOCKS_CUT] = "cut_up",
		[FREE_BLOCKS_LARGE] = "too_large",
		[FREE_BLOCKS_CORES] = "depends_on_cores",
		[FREE_BLOCKS_HELD] = "held_by_others",
		[FREE_BLOCKS_TAKEN] = "taken_by_others",
	};

	return verdict < ARRAY_SIZE(reasons) ? reasons[verdict] : NULL;
}

#undef ROW
#define ROW struct fit_row

static const struct field fit_fields[] = {
	FIELD_MORE_OF(map, memory_map_space_fields),
	FIELD("fits", BOOL, fits),
	FIELD_OR_NULL("reason", TEXT, reason, .names = fit_reason),
	FIELD_VIA(fit, struct free_blocks_fit, "need_per_bank", BYTES, need),
	FIELD_POINTED("hole", hole, memory_map_hole_fields),
	FIELD_MADE("in_the_way", fit_each_block, fit_blocks),
	FIELD_END,
};

struct fit_answer {
	const struct memory_map *memory_map;
	const struct snapshot *snapshot;
	const struct free_blocks_fit *fits;
	uint64_t size;
};

static const void *fit_each(const void *context, size_t *at, struct fields_room *room)
{
	const struct fit_answer *answer = context;
	struct fit_row *row = FIELDS_IN(room, struct fit_row);
	const struct free_blocks_fit *fit = &answer->fits[*at];

	if (*at >= answer->memory_map->count)
		return NULL;
	map_fill(&row->map, &answer->memory_map->list[(*at)++]);
	row->snapshot = answer->snapshot;
	row->fit = fit;
	row->reason = fit_reason(fit->verdict);
	row->fits = fit->verdict == FREE_BLOCKS_FITS;
	row->room = (struct free_blocks_hole){.address = fit->address, .length = fit->length};
	row->hole = row->fits ? &row->room : NULL;
	return row;
}

#undef ROW
#define ROW struct fit_answer

static const struct field fit_members[] = {
	FIELD("size", BYTES, size),
	FIELD_MADE("answers", fit_each, fit_fields),
	FIELD_END,
};

const struct document fit_document = {
	.schema = "ttmem.fit/1",
	.title = "ttmem fit --json, /api/v1/fit: whether an allocation of some size would succeed",
	.members = fit_members,
	.has = DOCUMENT_FROM | DOCUMENT_MOMENT | DOCUMENT_LIST,
};

void memory_map_document_fit(struct emit *json, const struct memory_map *memory_map,
			     const struct snapshot *snapshot, const struct free_blocks_fit *fits,
			     uint64_t size)
{
	const struct fit_answer answer = {memory_map, snapshot, fits, size};

	document_put(json, &fit_document, snapshot, &answer);
}
