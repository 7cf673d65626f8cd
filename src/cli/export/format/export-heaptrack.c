/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For heaptrack: its data file of version 3, lines of hexadecimal numbers. A line for a text, an
 * instruction, a trace (an instruction and its caller) or a kind of allocation (a size and a trace) gives it
 * the next number; "+" and "-" name the latter. The outermost frames are the process, if there are several,
 * and the type of memory, which heaptrack has no place for.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "book/format/layout.h"
#include "cli/common/must.h"
#include "cli/export/format/export-form.h"
#include "cli/export/visualizer/export-stacks.h"
#include "model/snapshot.h"
#include "model/types.h"

#define HEAPTRACK_VERSION "10400 3" /* of the program, 1.4.0, and of the file */
#define HEAPTRACK_PAGE 4096u
#define NS_PER_MS 1000000u

struct heaptrack {
	struct export_target *target;
	struct export_stacks stacks;
	struct map kinds;                          /* of allocations */
	uint32_t texts, frames, nodes, kind_count; /* that are written */
	uint64_t ms;                               /* that is written */
};

static void *heaptrack_begin(struct export_target *target)
{
	struct heaptrack *heaptrack = must_alloc(1, sizeof(*heaptrack));
	FILE *out = target->out;
	heaptrack->target = target;
	fprintf(out, "v " HEAPTRACK_VERSION "\nX ");
	text_put_line(out, target->command ? target->command : "ttmem");
	fprintf(out, "\nI %x 0\n", HEAPTRACK_PAGE);
	return heaptrack;
}

/* Writes what the tree has got since the last time. */
static void heaptrack_put_tree(struct heaptrack *heaptrack)
{
	const struct export_stacks *stacks = &heaptrack->stacks;
	FILE *out = heaptrack->target->out;

	while (heaptrack->texts < stacks->text_index.count) {
		const char *text = stacks->texts[heaptrack->texts++];

		fprintf(out, "s %zx %s\n", strlen(text), text);
	}
	while (heaptrack->frames < stacks->frame_index.count) {
		const struct export_frame *frame = &stacks->frames[heaptrack->frames++];

		/* There is no address: its number keeps it apart from others. */
		fprintf(out, "i %" PRIx32 " %" PRIx32 " %" PRIx32, heaptrack->frames, frame->module,
			frame->function);
		if (frame->file)
			fprintf(out, " %" PRIx32 " %" PRIx32, frame->file, frame->line);
		fputc('\n', out);
	}
	while (heaptrack->nodes < stacks->node_index.count) {
		const struct export_node *node = &stacks->nodes[heaptrack->nodes++];

		fprintf(out, "t %" PRIx32 " %" PRIx32 "\n", node->frame, node->parent);
	}
}

static uint32_t heaptrack_node(struct heaptrack *heaptrack, const struct export_event *event)
{
	const struct export_owner *owner = &heaptrack->target->owners[event->process];
	uint32_t root = 0;
	char text[64];

	snprintf(text, sizeof(text), "%s (pid %" PRIu32 ")", owner->comm, owner->pid);
	if (heaptrack->target->owner_count > 1)
		root = export_stacks_label(&heaptrack->stacks, root, text);
	root = export_stacks_label(&heaptrack->stacks, root, types_name(event->type));
	return export_stacks_site(&heaptrack->stacks, root, event->birth, event->name);
}

static void heaptrack_put_time(struct heaptrack *heaptrack, uint64_t time_ns)
{
	uint64_t start = heaptrack->target->start_ns;
	uint64_t ms = time_ns > start ? (time_ns - start) / NS_PER_MS : 0;

	if (ms > heaptrack->ms)
		fprintf(heaptrack->target->out, "c %" PRIx64 "\n", ms);
	heaptrack->ms = ms > heaptrack->ms ? ms : heaptrack->ms;
}

static void heaptrack_event(void *state, const struct export_event *event)
{
	struct heaptrack *heaptrack = state;
	FILE *out = heaptrack->target->out;
	uint32_t node, kind;

	if (event->kind != EXPORT_CALL || event->bytes == 0 ||
	    (event->op != BOOK_OP_ALLOC && event->op != BOOK_OP_FREE))
		return;
	node = heaptrack_node(heaptrack, event);
	kind = must_number(&heaptrack->kinds, event->bytes, node);
	heaptrack_put_tree(heaptrack);
	if (heaptrack->kinds.count > heaptrack->kind_count)
		fprintf(out, "a %" PRIx64 " %" PRIx32 "\n", event->bytes, node);
	heaptrack->kind_count = heaptrack->kinds.count;
	heaptrack_put_time(heaptrack, event->time_ns);
	/* The only numbers that begin with 0. */
	fprintf(out, "%c %" PRIx32 "\n", event->op == BOOK_OP_ALLOC ? '+' : '-', kind - 1);
}

static void heaptrack_finish(void *state)
{
	struct heaptrack *heaptrack = state;

	heaptrack_put_time(heaptrack, heaptrack->target->snapshot->time_ns);
}

static void heaptrack_free(void *state)
{
	struct heaptrack *heaptrack = state;

	export_stacks_deinit(&heaptrack->stacks);
	map_deinit(&heaptrack->kinds);
	free(heaptrack);
}

const struct export_form export_heaptrack = {
	.name = "heaptrack",
	.is_course = true,
	.begin = heaptrack_begin,
	.event = heaptrack_event,
	.finish = heaptrack_finish,
	.free = heaptrack_free,
};
