/* SPDX-License-Identifier: Apache-2.0 */

/* The model that tests compare books with. */

#include "lib/testing/testing-thread-model.h"

#include <ttmem/ttmem.h>

static void thread_model_end(struct thread_model *thread_model, const struct thread_model_op *op)
{
	struct thread_model_row *row = &thread_model->rows[op->device][op->type][op->key];
	struct thread_model_counters *counters = &thread_model->counters[op->device][op->type];

	counters->frees++;
	counters->buffers--;
	counters->bytes -= row->size;
	*row = (struct thread_model_row){0};
}

void thread_model_alloc(struct thread_model *thread_model, const struct thread_model_op *op)
{
	struct thread_model_row *row = &thread_model->rows[op->device][op->type][op->key];
	struct thread_model_counters *counters = &thread_model->counters[op->device][op->type];

	counters->allocs++;
	if (row->size == op->size) {
		row->refs++;
		row->owners |= op->owner ? 1u << op->owner : 0;
		counters->realloc_live++;
		return;
	}
	if (row->size) {
		counters->size_changes++;
		thread_model_end(thread_model, op);
	}
	counters->buffers++;
	counters->bytes += op->size;
	*row = (struct thread_model_row){.size = op->size,
					 .born = thread_model->operations,
					 .refs = 1,
					 .name = op->name,
					 .owners = op->owner ? 1u << op->owner : 0};
}

/* The type that a free without a type refers to: the youngest buffer's. */
static uint32_t thread_model_youngest(const struct thread_model *thread_model,
				      const struct thread_model_op *op, uint32_t *ret_found)
{
	uint32_t youngest = TTMEM_ANY;
	uint64_t born = 0;

	*ret_found = 0;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct thread_model_row *row = &thread_model->rows[op->device][type][op->key];

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

bool thread_model_knows_free(const struct thread_model *thread_model,
			     const struct thread_model_op *op)
{
	uint32_t found;

	return op->type != TTMEM_ANY ||
	       thread_model_youngest(thread_model, op, &found) != TTMEM_ANY;
}

void thread_model_free(struct thread_model *thread_model, const struct thread_model_op *op)
{
	struct thread_model_op meant = *op;
	struct thread_model_row *row;
	uint32_t found = 1;

	if (op->type == TTMEM_ANY)
		meant.type = thread_model_youngest(thread_model, op, &found);
	row = &thread_model->rows[meant.device][meant.type][meant.key];
	if (found > 1)
		thread_model->counters[meant.device][meant.type].ambiguous_frees++;
	if (!row->size) {
		thread_model->counters[meant.device][meant.type].no_frees++;
	} else if (row->refs > 1) {
		thread_model->counters[meant.device][meant.type].frees++;
		row->refs--;
	} else {
		thread_model_end(thread_model, &meant);
	}
}

void thread_model_free_all(struct thread_model *thread_model, const struct thread_model_op *op)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (op->type != TTMEM_ANY && op->type != type)
			continue;
		for (uint32_t key = 0; key < THREAD_MODEL_KEYS; key++) {
			struct thread_model_op row = {
				.device = op->device, .type = type, .key = key};

			if (thread_model->rows[op->device][type][key].owners >> op->owner & 1)
				thread_model_end(thread_model, &row);
		}
	}
}
