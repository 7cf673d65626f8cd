/* SPDX-License-Identifier: Apache-2.0 */

/* Processes and their totals, as packets; the header tells the idea. */

#include "daemon/native-roster.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "book/clock.h"
#include "book/view.h"
#include "core/snapshot.h"
#include "daemon/access.h"
#include "daemon/native-answer.h"
#include "daemon/tracked.h"
#include "source/proc.h"
#include "source/source.h"

_Static_assert(NATIVE_TYPES == BOOK_TYPES, "types");
_Static_assert(NATIVE_DEVICES == BOOK_DEVICES, "devices");
_Static_assert(sizeof(((struct native_process *)NULL)->rejected) == sizeof(struct book_rejected),
	       "rejected");
_Static_assert(sizeof(((struct native_process *)NULL)->container) == PROC_CONTAINER_SIZE,
	       "container");

#define NATIVE_ROSTER_PARTS_MAX 32768u /* 28 MiB; beyond it devices are left out */

/* A book: its identity, and its parts at `first` in the list of all. */
struct native_row {
	struct native_process process;
	bool has_totals;
	size_t first, count;
};

struct native_roster {
	struct view view;
	uint64_t begun_ns;
	struct native_row *rows;
	size_t count, capacity;
	struct native_part *parts;
	size_t part_count, part_capacity;
};

struct native_roster *native_roster_new(void)
{
	struct native_roster *self = calloc(1, sizeof(*self));

	if (self)
		self->view = VIEW_NULL;
	return self;
}

struct native_roster *native_roster_free(struct native_roster *self)
{
	if (!self)
		return NULL;
	view_deinit(&self->view);
	free(self->rows);
	free(self->parts);
	free(self);
	return NULL;
}

/* Text into a field that is filled up with NULs. */
static void native_roster_field(char *field, size_t size, const char *text)
{
	memset(field, 0, size);
	if (text)
		memcpy(field, text, strnlen(text, size - 1));
}

/* What is known without reading the book. */
static void native_roster_identity(const struct tracked *tracked,
				   struct native_process *ret_process)
{
	struct native_process process = {
		.book_device = tracked->device,
		.book_inode = tracked->inode,
		.start_ticks = tracked->start_ticks,
		.pid = tracked->pid,
		.user = tracked->user,
		.maker = tracked->maker,
		.source = tracked->source,
		.flags = NATIVE_ALIVE | NATIVE_EXACT,
	};
	const struct proc_facts *owner = &tracked->book->owner;

	process.ns_pid = owner->ns_pid;
	process.pid_namespace = owner->pid_namespace;
	native_roster_field(process.comm, sizeof(process.comm), owner->comm);
	native_roster_field(process.container, sizeof(process.container), tracked->book->container);
	process.start_ns = proc_start_ns(tracked->start_ticks, clock_ns(CLOCK_BOOTTIME),
					 clock_ns(CLOCK_REALTIME));
	*ret_process = process;
}

static void native_roster_memory(const struct snapshot_part *part, uint32_t type,
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

static int native_roster_add_part(struct native_roster *self, const struct snapshot_part *from)
{
	struct native_part *parts, *part;

	if (self->part_count >= NATIVE_ROSTER_PARTS_MAX)
		return -ENOBUFS;
	parts = array_grow(self->parts, &self->part_capacity, self->part_count + 1, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	self->parts = parts;
	part = &parts[self->part_count++];
	*part = (struct native_part){
		.device = from->device,
		.flags = (from->facts.declared ? NATIVE_DECLARED : 0) |
			 (from->facts.remote ? NATIVE_REMOTE : 0),
		.unique_id = from->facts.unique_id,
		.closed_ns = from->facts.closed_ns,
	};
	native_roster_field(part->arch, sizeof(part->arch), from->facts.arch);
	native_roster_field(part->card, sizeof(part->card), from->facts.card);
	for (uint32_t type = 0; type < NATIVE_TYPES; type++)
		native_roster_memory(from, type, &part->memory[type]);
	return 0;
}

static void native_roster_cleanup(struct snapshot **snapshot)
{
	snapshot_free(*snapshot);
}

/* Reads the totals of a book. What cannot be read makes the process inexact. */
static int native_roster_totals(struct native_roster *self, struct tracked *tracked,
				struct native_row *row)
{
	static const struct source_request request = {.buffers = false};
	CLEANUP(native_roster_cleanup)
	struct snapshot *snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	const struct snapshot_process *process;
	int r = snapshot ? tracked_collect(tracked, &request, &self->view, snapshot) : -ENOMEM;

	if (r == -ENOMEM)
		return r;
	if (r < 0 || snapshot->process_count == 0) {
		row->process.flags &= ~NATIVE_EXACT;
		return 0;
	}
	process = &snapshot->processes[0];
	row->process.last_ns = process->last_ns;
	memcpy(row->process.rejected, &process->rejected, sizeof(row->process.rejected));
	if (!process->exact)
		row->process.flags &= ~NATIVE_EXACT;
	if (!process->alive)
		row->process.flags &= ~NATIVE_ALIVE;
	row->has_totals = true;
	row->first = self->part_count;
	for (size_t i = 0; r == 0 && i < process->part_count; i++)
		r = native_roster_add_part(self, &process->parts[i]);
	row->count = self->part_count - row->first;
	if (r == -ENOBUFS)
		row->process.flags &= ~NATIVE_EXACT;
	return r == -ENOBUFS ? 0 : r;
}

/* Who there is. */
static int native_roster_begin(struct native_roster *self, const struct roster *roster)
{
	self->begun_ns = clock_ns(CLOCK_MONOTONIC);
	self->count = self->part_count = 0;
	for (size_t i = 0; i < roster->count; i++) {
		struct native_row *rows =
			array_grow(self->rows, &self->capacity, self->count + 1, sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		self->rows = rows;
		rows[self->count] = (struct native_row){.has_totals = false};
		native_roster_identity(roster->list[i], &rows[self->count].process);
		self->count++;
	}
	return 0;
}

/* Whether the rows are of the same books. They are not held: those of ended processes must go. */
static bool native_roster_is_of(const struct native_roster *self, const struct roster *roster)
{
	if (self->count != roster->count)
		return false;
	for (size_t i = 0; i < self->count; i++) {
		if (self->rows[i].process.book_inode != roster->list[i]->inode ||
		    self->rows[i].process.book_device != roster->list[i]->device)
			return false;
	}
	return true;
}

/* One book in as many packets as it takes; its file goes with the first. */
static int native_roster_put_row(const struct native_roster *self, const struct native_row *row,
				 struct tracked *book, struct native_answer *answer)
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
			memcpy(payload + sizeof(process), &self->parts[row->first + done], bytes);
		r = native_answer_put(answer, payload, sizeof(process) + bytes,
				      done == 0 ? book : NULL);
		done += parts;
	} while (r == 0 && done < row->count);
	return r;
}

int native_roster_put(struct native_roster *self, struct roster *roster, uint32_t want,
		      uint64_t came_ns, const struct access_peer *asker,
		      struct native_answer *answer)
{
	int r = 0;

	if (self->begun_ns < came_ns || !native_roster_is_of(self, roster))
		r = native_roster_begin(self, roster);
	for (size_t i = 0; r == 0 && i < self->count; i++) {
		bool may_see = access_may_see(asker, self->rows[i].process.maker);
		bool sends = may_see && want & NATIVE_WANT_BOOKS;
		bool counts = want & NATIVE_WANT_TOTALS || (want & NATIVE_WANT_REST && !sends);
		struct native_row row;

		if (counts && !self->rows[i].has_totals)
			r = native_roster_totals(self, roster->list[i], &self->rows[i]);
		if (r < 0)
			break;
		row = self->rows[i];
		if (may_see)
			row.process.flags |= NATIVE_MAY_SEE;
		if (!counts)
			row.count = 0;
		r = native_roster_put_row(self, &row, sends ? roster->list[i] : NULL, answer);
	}
	if (r < 0)
		self->begun_ns = 0; /* not for the next one */
	return r;
}
