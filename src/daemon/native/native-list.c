/* SPDX-License-Identifier: Apache-2.0 */

/* Processes and their totals, as packets. */

#include "daemon/native/native-list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "daemon/native/native-answer.h"
#include "daemon/native/native-server.h"
#include "daemon/registry/access.h"
#include "daemon/registry/tracked.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/proc/proc.h"
#include "wire/native.h"

_Static_assert(NATIVE_TYPES == BOOK_TYPES, "types");
_Static_assert(NATIVE_DEVICES == BOOK_DEVICES, "devices");
_Static_assert(sizeof(((struct native_process *)NULL)->rejected) == sizeof(struct book_rejected),
	       "rejected");
_Static_assert(SNAPSHOT_BY_NUMBER + 1 == NATIVE_PART_NUMBER_MAX &&
		       SNAPSHOT_UNMATCHED_TAKEN == NATIVE_PART_NUMBER_MAX,
	       "joined");
_Static_assert(sizeof(((struct native_process *)NULL)->container) == PROC_CONTAINER_SIZE,
	       "container");

#define NATIVE_LIST_PARTS_MAX 32768u /* 28 MiB; devices beyond it are left out */

/* One answer. */
struct native_list {
	const struct native_hooks *hooks;
	uint32_t want;    /* NATIVE_WANT_... */
	uint32_t accepts; /* NATIVE_ACCEPTS_... */
	uint64_t came_ns;
	const struct access_peer *asker;
	struct snapshot *snapshot; /* taken when totals are first needed; NULL until then */
	size_t hint, room;
};

/* A book, as it is put into packets. */
struct native_row {
	struct native_process process;
	struct native_part *parts;
	size_t count;
};

/* Copies text into a field and pads it with NULs. */
static void native_list_field(char *field, size_t size, const char *text)
{
	memset(field, 0, size);
	if (text)
		memcpy(field, text, strnlen(text, size - 1));
}

/* What is known without reading the book. */
static void native_list_identity(const struct tracked *tracked, struct native_process *ret_process)
{
	struct native_process process = {
		.book_device = tracked->id.device,
		.book_inode = tracked->id.inode,
		.start_ticks = tracked->process.start_ticks,
		.pid = tracked->process.pid,
		.user = tracked->user,
		.maker = tracked->maker,
		.source = tracked->source,
		.flags = NATIVE_ALIVE | NATIVE_EXACT,
	};
	const struct proc_facts *owner = &tracked->book->owner;

	process.ns_pid = owner->ns_pid;
	process.pid_namespace = owner->pid_namespace;
	native_list_field(process.comm, sizeof(process.comm), owner->comm);
	native_list_field(process.container, sizeof(process.container), tracked->book->container);
	process.start_ns = proc_started_ns(tracked->process.start_ticks);
	*ret_process = process;
}

static void native_list_memory(const struct snapshot_part *part, uint32_t type,
			       struct native_memory *ret_memory)
{
	const struct snapshot_memory *memory = &part->memory[type];

	*ret_memory = (struct native_memory){
		.used = memory->used,
		.buffers = memory->buffers,
		.peak = memory->peak,
		.allocs = memory->allocs,
		.frees = memory->frees,
		.unknown_frees = memory->unknown_frees,
		.double_frees = memory->double_frees,
		.size_changes = memory->size_changes,
		.realloc_live = memory->realloc_live,
		.ambiguous_frees = memory->ambiguous_frees,
		.hooked = memory->hooked,
		.overflow_frees = memory->overflow_frees,
		.last_ns = memory->last_ns,
		.capacity = part->facts.capacity[type],
		.bound = memory->bound,
		.flags = memory->peak_is_unknown ? NATIVE_PEAK_UNKNOWN : 0,
	};
}

/* The client cannot tell by itself: it may not read the descriptors of other users' processes. */
static uint32_t native_list_joined(const struct snapshot_part *part)
{
	return part->is_joined ? (part->joined + 1) << NATIVE_PART_JOINED |
					 part->unmatched << NATIVE_PART_UNMATCHED
			       : 0;
}

static void native_list_part(const struct snapshot_part *from, struct native_part *ret_part)
{
	struct native_part part = {
		.device = from->device,
		.flags = (from->facts.declared ? NATIVE_DECLARED : 0) |
			 (from->facts.remote ? NATIVE_REMOTE : 0),
		.unique_id = from->facts.unique_id,
		.closed_ns = from->facts.closed_ns,
	};

	native_list_field(part.arch, sizeof(part.arch), from->facts.arch);
	native_list_field(part.card, sizeof(part.card), from->facts.card);
	for (uint32_t type = 0; type < NATIVE_TYPES; type++)
		native_list_memory(from, type, &part.memory[type]);
	*ret_part = part;
}

/* What the part's own packet has no room for. False: there is nothing to tell. */
static bool native_list_occupied(const struct snapshot_part *from, struct native_part *ret_part)
{
	bool is_told = false;

	*ret_part = (struct native_part){.device = from->device, .flags = NATIVE_PART_OCCUPIED};
	for (uint32_t type = 0; type < NATIVE_TYPES; type++) {
		const struct snapshot_memory *memory = &from->memory[type];

		ret_part->memory[type].used = memory->occupied.bytes;
		ret_part->memory[type].buffers = memory->occupied.known;
		ret_part->memory[type].unknown_frees = memory->unplaced_frees;
		is_told = is_told || memory->occupied.known || memory->unplaced_frees;
	}
	return is_told;
}

static void native_list_cleanup_row(struct native_row *row)
{
	free(row->parts);
}

/*
 * Totals of one book. If they exceed what is left of the answer's limit, the process is marked
 * inexact.
 */
static int native_list_fill(struct native_list *self, const struct snapshot_process *process,
			    struct native_row *row)
{
	size_t *room = &self->room;

	row->process.last_ns = process->last_ns;
	memcpy(row->process.rejected, &process->rejected, sizeof(row->process.rejected));
	if (!process->exact || process->part_count > *room)
		row->process.flags &= ~NATIVE_EXACT;
	if (!process->alive)
		row->process.flags &= ~NATIVE_ALIVE;
	row->parts = calloc(2 * bits_min(process->part_count, *room) + 1, sizeof(*row->parts));
	if (!row->parts)
		return -ENOMEM;
	for (size_t i = 0; i<process->part_count && * room> 0; i++) {
		/* The client finds claims that only a region reports in the region itself. */
		if (process->parts[i].is_claim_only)
			continue;
		native_list_part(&process->parts[i], &row->parts[row->count]);
		if (self->accepts & NATIVE_ACCEPTS_JOINED)
			row->parts[row->count].flags |= native_list_joined(&process->parts[i]);
		row->count++;
		--*room;
		if (*room > 0 && self->accepts & NATIVE_ACCEPTS_OCCUPIED &&
		    native_list_occupied(&process->parts[i], &row->parts[row->count])) {
			row->count++;
			--*room;
		}
	}
	return 0;
}

/*
 * Reads a book by itself: the shared snapshot lacks it because the book is newer, or merges it with
 * another book of the same process, of which the client may have one as a file.
 */
static int native_list_alone(struct native_list *self, struct tracked *tracked,
			     struct native_row *row)
{
	static const struct snapshot_request request = {.buffers = false};
	CLEANUP(snapshot_cleanup)
	struct snapshot *snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	CLEANUP_FREE struct view *view = calloc(1, sizeof(*view));
	int r = snapshot && view ? 0 : -ENOMEM;

	if (r == 0)
		r = tracked_collect(tracked, &request, view, snapshot);
	if (view)
		view_deinit(view);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || snapshot->process_count == 0) {
		row->process.flags &= ~NATIVE_EXACT;
		return 0;
	}
	return native_list_fill(self, &snapshot->processes[0], row);
}

/* Sends one book in as many packets as it takes; its file goes with the first. */
static int native_list_put_row(const struct native_row *row, struct tracked *book,
			       struct native_answer *answer)
{
	CLEANUP_FREE uint8_t *payload = malloc(NATIVE_PAYLOAD_MAX);
	size_t done = 0;
	int r;

	if (!payload)
		return -ENOMEM;
	do {
		struct native_process process = row->process;
		size_t parts = bits_min(row->count - done, NATIVE_PARTS_MAX);
		size_t bytes = parts * sizeof(struct native_part);

		process.parts = (uint32_t)parts;
		if (book && done == 0)
			process.flags |= NATIVE_HAS_BOOK;
		if (done + parts < row->count)
			process.flags |= NATIVE_CONTINUES;
		memcpy(payload, &process, sizeof(process));
		if (bytes)
			memcpy(payload + sizeof(process), row->parts + done, bytes);
		r = native_answer_put(answer, payload, sizeof(process) + bytes,
				      done == 0 ? book : NULL);
		done += parts;
	} while (r == 0 && done < row->count);
	return r;
}

static int native_list_put_book(struct native_list *self, struct tracked *tracked,
				struct native_answer *answer)
{
	CLEANUP(native_list_cleanup_row) struct native_row row = {.parts = NULL};
	bool may_see = access_may_see(self->asker, tracked->maker, tracked->namespaces);
	bool sends = may_see && self->want & NATIVE_WANT_BOOKS;
	const struct snapshot_process *process;
	int r = 0;

	native_list_identity(tracked, &row.process);
	if (may_see)
		row.process.flags |= NATIVE_MAY_SEE;
	if (self->want & NATIVE_WANT_TOTALS || (self->want & NATIVE_WANT_REST && !sends)) {
		if (!self->snapshot)
			r = self->hooks->totals(self->hooks->context, self->came_ns,
						&self->snapshot);
		if (r < 0)
			return r;
		process = tracked_process(tracked, self->snapshot, &self->hint);
		r = process && process->books == 1 ? native_list_fill(self, process, &row)
						   : native_list_alone(self, tracked, &row);
	}
	return r < 0 ? r : native_list_put_row(&row, sends ? tracked : NULL, answer);
}

int native_list_put(const struct native_hooks *hooks, const struct native_request *request,
		    uint64_t came_ns, const struct access_peer *asker, struct native_answer *answer)
{
	struct native_list self = {
		.hooks = hooks,
		.want = request->want,
		.accepts = request->accepts,
		.came_ns = came_ns,
		.asker = asker,
		.room = NATIVE_LIST_PARTS_MAX,
	};
	struct book_list *book_list = hooks->book_list(hooks->context);
	int r = 0;

	for (size_t i = 0; r == 0 && i < book_list->count; i++)
		r = native_list_put_book(&self, book_list->list[i], answer);
	snapshot_free(self.snapshot);
	book_list_unref(book_list);
	return r;
}
