/* SPDX-License-Identifier: Apache-2.0 */

/* The model that tests compare books with. */

#include "lib/testing/testing-thread-model.h"

#include <ttmem/ttmem.h>

static void share_end(struct share *share, const struct share_op *op)
{
	struct share_row *row = &share->rows[op->device][op->type][op->key];
	struct share_counters *counters = &share->counters[op->device][op->type];

	counters->frees++;
	counters->buffers--;
	counters->bytes -= row->size;
	*row = (struct share_row){0};
}

void share_alloc(struct share *share, const struct share_op *op)
{
	struct share_row *row = &share->rows[op->device][op->type][op->key];
	struct share_counters *counters = &share->counters[op->device][op->type];

	counters->allocs++;
	if (row->size == op->size) {
		row->refs++;
		row->owners |= op->owner ? 1u << op->owner : 0;
		counters->realloc_live++;
		return;
	}
	if (row->size) {
		counters->size_changes++;
		share_end(share, op);
	}
	counters->buffers++;
	counters->bytes += op->size;
	*row = (struct share_row){.size = op->size,
				  .born = share->operations,
				  .refs = 1,
				  .name = op->name,
				  .owners = op->owner ? 1u << op->owner : 0};
}

/* The type that a free without a type refers to: the youngest buffer's. */
static uint32_t share_youngest(const struct share *share, const struct share_op *op,
			       uint32_t *ret_found)
{
	uint32_t youngest = TTMEM_ANY;
	uint64_t born = 0;

	*ret_found = 0;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct share_row *row = &share->rows[op->device][type][op->key];

		if (!row->size)
			continue;
		++*ret_found;
		if (youngest == TTMEM_ANY || row->born > born) {
			youngest = type;
			born = row->born;
		}
	}
	return youngest;
}

bool share_knows_free(const struct share *share, const struct share_op *op)
{
	uint32_t found;

	return op->type != TTMEM_ANY || share_youngest(share, op, &found) != TTMEM_ANY;
}

void share_free(struct share *share, const struct share_op *op)
{
	struct share_op meant = *op;
	struct share_row *row;
	uint32_t found = 1;

	if (op->type == TTMEM_ANY)
		meant.type = share_youngest(share, op, &found);
	row = &share->rows[meant.device][meant.type][meant.key];
	if (found > 1)
		share->counters[meant.device][meant.type].ambiguous_frees++;
	if (!row->size) {
		share->counters[meant.device][meant.type].no_frees++;
	} else if (row->refs > 1) {
		share->counters[meant.device][meant.type].frees++;
		row->refs--;
	} else {
		share_end(share, &meant);
	}
}

void share_free_all(struct share *share, const struct share_op *op)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (op->type != TTMEM_ANY && op->type != type)
			continue;
		for (uint32_t key = 0; key < SHARE_KEYS; key++) {
			struct share_op row = {.device = op->device, .type = type, .key = key};

			if (share->rows[op->device][type][key].owners >> op->owner & 1)
				share_end(share, &row);
		}
	}
}
