/* SPDX-License-Identifier: Apache-2.0 */

/* Comparing a view with the model, field by field, and printing the differences. */

#include "book/testing/testing-model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

static bool testing_differs(const char *what, uint32_t type, uint64_t is, uint64_t should)
{
	if (is == should)
		return false;
	printf("%s of type %u is %" PRIu64 " (%#" PRIx64 "), should be %" PRIu64 " (%#" PRIx64
	       ")\n",
	       what, type, is, is, should, should);
	return true;
}

static bool testing_hot_is(uint32_t type, const struct book_hot *is, const struct book_hot *should)
{
	return !testing_differs("bytes", type, is->bytes, should->bytes) &&
	       !testing_differs("buffers", type, is->buffers, should->buffers) &&
	       !testing_differs("peak", type, is->peak, should->peak) &&
	       !testing_differs("peak_time", type, is->peak_time, should->peak_time) &&
	       !testing_differs("allocs", type, is->allocs, should->allocs) &&
	       !testing_differs("frees", type, is->frees, should->frees) &&
	       !testing_differs("last", type, is->last, should->last);
}

static bool testing_cold_is(uint32_t type, const struct book_cold *is,
			    const struct book_cold *should)
{
	return !testing_differs("unknown_frees", type, is->unknown_frees, should->unknown_frees) &&
	       !testing_differs("double_frees", type, is->double_frees, should->double_frees) &&
	       !testing_differs("size_changes", type, is->size_changes, should->size_changes) &&
	       !testing_differs("realloc_live", type, is->realloc_live, should->realloc_live) &&
	       !testing_differs("ambiguous_frees", type, is->ambiguous_frees,
				should->ambiguous_frees) &&
	       !testing_differs("hooked", type, is->hooked, should->hooked) &&
	       !testing_differs("overflow_frees", type, is->overflow_frees, should->overflow_frees);
}

static bool testing_warm_is(uint32_t type, const struct book_warm *is,
			    const struct book_warm *should)
{
	return !testing_differs("occupied", type, is->occupied, should->occupied) &&
	       !testing_differs("known", type, is->known, should->known) &&
	       !testing_differs("unplaced_frees", type, is->unplaced_frees, should->unplaced_frees);
}

static bool testing_name_is(struct reader *reader, uint32_t id, uint32_t number)
{
	const char *should = testing_text(number);
	size_t length = 0;
	const char *text = reader_string(reader, id, &length);

	if (!should && id == 0)
		return true;
	if (should && text && length == strlen(should) && memcmp(text, should, length) == 0)
		return true;
	printf("name %u is \"%.*s\", should be \"%s\"\n", id, text ? (int)length : 6,
	       text ? text : "(none)", should ? should : "(none)");
	return false;
}

static bool testing_row_is(struct reader *reader, const struct book_record *is,
			   const struct book_record *should)
{
	uint32_t type = book_meta_type(is->meta);

	if (testing_differs("size", type, is->size, should->size) ||
	    testing_differs("birth", type, is->birth, should->birth) ||
	    testing_differs("stack", type, is->stack, should->stack) ||
	    testing_differs("phase", type, is->phase, should->phase) ||
	    testing_differs("thread and space", type, is->thread_space, should->thread_space) ||
	    testing_differs("meta", type, is->meta, should->meta) ||
	    testing_differs("shape", type, is->shape, should->shape) ||
	    !testing_name_is(reader, is->name, should->name)) {
		printf("... in the row at %#" PRIx64 "\n", is->address);
		return false;
	}
	return true;
}

static bool testing_rows_are(struct testing_model *model, uint32_t device, struct reader *reader,
			     const struct view *view)
{
	struct view_iterator it = {0};

	model->stamp++;
	while (view_next(view, &it)) {
		struct testing_row *row =
			testing_model_find(model, device, index_key_of(it.record));

		if (!row || row->stamp == model->stamp) {
			printf("row at %#" PRIx64 " of type %u is %s\n", it.record->address,
			       book_meta_type(it.record->meta),
			       row ? "there twice" : "there, but should not be");
			return false;
		}
		row->stamp = model->stamp;
		if (!testing_row_is(reader, it.record, &row->record))
			return false;
	}
	for (uint32_t i = 0; i < model->count; i++) {
		const struct testing_row *row = &model->rows[i];

		if (view_is_live(&row->record) && row->device == device &&
		    row->stamp != model->stamp) {
			printf("row at %#" PRIx64 " of type %u is missing\n", row->record.address,
			       book_meta_type(row->record.meta));
			return false;
		}
	}
	return true;
}

bool testing_model_is(struct testing_model *model, uint32_t device, struct reader *reader,
		      const struct view *view)
{
	const struct testing_shard *shard = &model->shards[device];
	bool same = true;

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		same = testing_hot_is(type, &view->hot[type], &shard->hot[type]) &&
		       testing_cold_is(type, &view->cold[type], &shard->cold[type]) &&
		       testing_warm_is(type, &view->warm[type], &shard->warm[type]) && same;
	same = testing_rows_are(model, device, reader, view) && same;
	same = !testing_differs("number", 0, view->number, shard->number) && same;
	same = !testing_differs("live", 0, view->live, shard->live) && same;
	same = !testing_differs("bad_rows", 0, view->bad_rows, 0) && same;
	same = !testing_differs("rows_exact", 0, view->rows_exact, true) && same;
	same = !testing_differs("adds_up", 0, view->adds_up, true) && same;
	same = !testing_differs("inexact", 0, view->inexact & ~shard->inexact_soon,
				shard->inexact & ~shard->inexact_soon) &&
	       same;
	if (!same)
		printf("... on device %u at event %" PRIu64 "\n", device, view->number);
	return same;
}

bool testing_model_is_book(struct testing_model *model, struct reader *reader)
{
	static const enum view_owner ways[] = {VIEW_DEAD, VIEW_LIVING};
	struct view *view = calloc(1, sizeof(*view));
	bool same = true;

	assert(view);
	for (uint32_t device = 0; device < TESTING_DEVICES; device++) {
		for (int way = 0; way < 2; way++) {
			int r = view_read(view, reader, device, ways[way]);

			if (!model->shards[device].exists && r == -ENOENT)
				continue;
			if (r < 0) {
				printf("device %u cannot be read: error %d\n", device, -r);
				same = false;
			} else if (!testing_model_is(model, device, reader, view)) {
				printf("... %s\n", way ? "living" : "dead");
				same = false;
			}
		}
	}
	view_deinit(view);
	free(view);
	return same;
}
