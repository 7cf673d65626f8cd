/* SPDX-License-Identifier: Apache-2.0 */

/* View 3: the buffers of one process. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answers/buffers.h"
#include "base/bits.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/amount.h"
#include "model/snapshot.h"
#include "tui/pane.h"
#include "tui/stack-lines.h"

#define BUFFERS_FACTS 4u /* lines before the frames of an unfolded row */

static const struct list_column buffers_columns[] = {
	{"size", .width = 10},
	{"type", .width = 8, .wide = 13},
	{"device", .width = 4},
	{"address", .width = 12},
	{"refs", .width = 5, .least = 100},
	{"born_ns", "AGE", .width = 7, .right = true},
	{"thread", "THREAD", .width = 8, .right = true, .least = 120},
	{"name", .width = 16, .grows = true, .none = "-"},
	{"phase", .width = 10, .grows = true},
};

static const struct snapshot_buffer *buffers_at(const void *context, size_t item)
{
	return &model_details(context, POLLER_BUFFERS)->snapshot->buffers[item];
}

static const void *buffers_row(const void *context, size_t item, struct fields_room *room)
{
	struct buffers_row *row = FIELDS_IN(room, struct buffers_row);

	*row = buffers_row_of(model_details(context, POLLER_BUFFERS)->snapshot,
			      buffers_at(context, item));
	return row;
}

static uint64_t buffers_now(const void *context)
{
	return model_details(context, POLLER_BUFFERS)->snapshot->time_ns;
}

/* Equal rows need a stable order: they are read in any order. */
static int buffers_compare(const void *context, size_t a, size_t b)
{
	return snapshot_compare_buffers(buffers_at(context, b), buffers_at(context, a),
					SNAPSHOT_BY_SIZE);
}

static uint64_t buffers_key(const void *context, size_t item)
{
	const struct snapshot_buffer *buffer = buffers_at(context, item);
	uint64_t hash = hash_fold(buffer->address ^ HASH_K0, buffer->birth ^ HASH_K1);

	return hash_u64(hash ^ ((uint64_t)buffer->device << 8 | buffer->type)) | 1;
}

static const char *buffers_source(const void *context, const struct snapshot_buffer *buffer)
{
	const struct snapshot *snapshot = model_details(context, POLLER_BUFFERS)->snapshot;
	const char *source = snapshot->processes[buffer->process].source;

	return source ? source : "";
}

static size_t buffers_line_count(const void *context, size_t item)
{
	const struct stack *stack = buffers_at(context, item)->stack;

	return BUFFERS_FACTS + (stack ? stack_lines_count(stack) : 1);
}

static void buffers_line(const void *context, size_t item, size_t line, char *text)
{
	const struct snapshot_buffer *buffer = buffers_at(context, item);
	char frame[LIST_CELL_SIZE - 8], takes[AMOUNT_TAKES_SIZE];

	if (line == 0) {
		snprintf(text, LIST_CELL_SIZE, "name:  %s", buffer->name ? buffer->name : "none");
	} else if (line == 1) {
		snprintf(text, LIST_CELL_SIZE, "phase: %s", buffer->phase ? buffer->phase : "none");
	} else if (line == 2) {
		snprintf(text, LIST_CELL_SIZE,
			 "%" PRIu64 " bytes, allocated by thread %" PRIu32 ", %" PRIu32
			 " reference%s",
			 buffer->size, buffer->thread, buffer->refs, buffer->refs == 1 ? "" : "s");
	} else if (line == 3) {
		snprintf(text, LIST_CELL_SIZE, "%s",
			 *amount_takes(buffer, takes) ? takes
						      : "what it takes of each bank was not told");
	} else if (!buffer->stack) {
		snprintf(text, LIST_CELL_SIZE, "%s",
			 strcmp(buffers_source(context, buffer), "socket") == 0
				 ? "no stack was sent by its client"
				 : "no stack was recorded (ttmem doctor says why)");
	} else {
		stack_lines_text(buffer->stack, line - BUFFERS_FACTS, frame, sizeof(frame));
		snprintf(text, LIST_CELL_SIZE, "at %s", frame);
	}
}

static const struct list_rows buffers_rows = {
	.columns = buffers_columns,
	.column_count = ARRAY_SIZE(buffers_columns),
	.none = "nothing is alive, or it may not be seen",
	.fields = buffers_fields,
	.row = buffers_row,
	.now = buffers_now,
	.sought = "name,phase,type,address",
	.compare = buffers_compare,
	.key = buffers_key,
	.line_count = buffers_line_count,
	.line = buffers_line,
};

enum snapshot_order pane_buffers_order(const struct list *list)
{
	bool is_by_age = strcmp(buffers_columns[list->sort].key, "born_ns") == 0;

	return is_by_age && list->falling ? SNAPSHOT_BY_AGE : SNAPSHOT_BY_SIZE;
}

static void buffers_draw(struct model *model, struct grid *grid, const struct grid_area *area)
{
	const struct snapshot_process *process = model_process(model);
	const struct poller_details *details = model_details(model, POLLER_BUFFERS);
	const struct list *list = &model->lists[MODEL_BUFFERS];
	char title[256], number[TEXT_NUMBER_SIZE], rows[64] = "";
	struct snapshot_memory all;

	if (!details) {
		grid_text(grid, area->row + 1, area->column + 2, area->columns - 2, GRID_FAINT,
			  !model->has_process ? "no process is chosen"
			  : process           ? "reading..."
					      : "the process has ended; Esc goes back");
		return;
	}
	if (process) {
		all = amount_of_process(process, AMOUNT_ANYWHERE, AMOUNT_ALL);
		if (details->wish.limit && all.buffers > details->snapshot->buffer_count &&
		    details->snapshot->buffer_count >= details->wish.limit)
			snprintf(rows, sizeof(rows), "; the %zu %s",
				 details->snapshot->buffer_count,
				 details->wish.order == SNAPSHOT_BY_AGE ? "oldest" : "largest");
		else if (*list->filter)
			snprintf(rows, sizeof(rows), "; %zu shown", list->count);
		snprintf(title, sizeof(title), "%.64s (%" PRIu32 "): %" PRIu64 " buffer%s, %s%s",
			 process->comm, process->id.pid, all.buffers, all.buffers == 1 ? "" : "s",
			 amount_text(&all, number), rows);
	} else {
		snprintf(title, sizeof(title), "pid %" PRIu32 " has ended; Esc goes back",
			 model->process.pid);
	}
	pane_draw_list(model, grid, area, title);
}

static size_t buffers_count(const struct model *model)
{
	const struct poller_details *details = model_details(model, POLLER_BUFFERS);

	return details ? details->snapshot->buffer_count : 0;
}

static void buffers_enter(struct model *model, size_t item)
{
	(void)item; /* the selected one */
	list_toggle(&model->lists[MODEL_BUFFERS], &buffers_rows, model);
}

const struct pane pane_buffers = {
	.name = "Buffers",
	.keys = "Enter:stack <>:sort r:reverse /:filter",
	.rows = &buffers_rows,
	.falling = true,
	.count = buffers_count,
	.draw = buffers_draw,
	.enter = buffers_enter,
};
