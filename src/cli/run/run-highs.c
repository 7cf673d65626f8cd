/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the counters of each book on its own. */

#include "cli/run/run-highs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "book/read/view.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-source.h"

static int run_highs_add(struct run_highs *highs, const struct run_high *high)
{
	struct run_high *rows =
		array_grow(highs->rows, &highs->capacity, highs->count + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	highs->rows = rows;
	rows[highs->count++] = *high;
	return 0;
}

static int run_highs_take(struct run_highs *highs, const struct snapshot_process *own,
			  struct run_high high)
{
	int r = 0;

	for (size_t i = 0; i < own->part_count; i++) {
		const struct snapshot_part *part = &own->parts[i];

		high.device = part->device;
		for (high.type = 0; r == 0 && high.type < BOOK_TYPES; high.type++) {
			high.bytes = part->memory[high.type].peak;
			if (high.bytes > 0)
				r = run_highs_add(highs, &high);
		}
	}
	return r;
}

int run_highs_read(struct run_highs *highs, struct scan_book *book, uint32_t process, bool execed)
{
	static const struct snapshot_request totals = {0};
	const struct run_high high = {.process = process, .is_exact = true, .execed = execed};
	struct snapshot *own = snapshot_new(0);
	struct view *view = calloc(1, sizeof(*view));
	int r = own && view ? book_collect(book, &totals, view, own) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < own->process_count; i++)
		r = run_highs_take(highs, &own->processes[i], high);
	if (view)
		view_deinit(view);
	free(view);
	snapshot_free(own);
	return r;
}

static int run_highs_compare(const void *left, const void *right)
{
	const struct run_high *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->type > b->type) - (a->type < b->type);
}

void run_highs_finish(struct run_highs *highs)
{
	struct run_high *rows = highs->rows;
	size_t n = 0;

	if (highs->count == 0)
		return;
	qsort(rows, highs->count, sizeof(*rows), run_highs_compare);
	for (size_t i = 0; i < highs->count; i++) {
		struct run_high *last = n > 0 ? &rows[n - 1] : NULL;

		if (!last || run_highs_compare(last, &rows[i]) != 0) {
			rows[n++] = rows[i];
			continue;
		}
		/* After exec one book follows the other; otherwise both were written. */
		if (!last->execed && !rows[i].execed)
			last->is_exact = false;
		last->bytes = bits_max(last->bytes, rows[i].bytes);
		last->execed &= rows[i].execed;
	}
	highs->count = n;
}
