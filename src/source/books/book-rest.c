/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A book is read whole into a snapshot of its own, which is then summed up: what a reader sees who
 * sums up later, as declared.c does, is the same.
 */

#include "source/books/book-rest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "model/cards/declared.h"
#include "model/merge.h"
#include "model/stray-frees.h"
#include "source/books/book-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

void book_rest_drop(struct scan_book *book)
{
	free(book->rest);
	book->rest = NULL;
}

/* A head that is still the same has no newer events behind it, see idle-counters.c. */
static bool book_rest_is_head(struct scan_book *book, const struct book_rest_head *head)
{
	struct book_shard now;

	/* Only its front, up to what is compared. */
	return file_read(book->reader.file, book_shard_offset(head->device), &now,
			 offsetof(struct book_shard, graves)) == 0 &&
	       now.head == head->number && now.inexact == head->inexact;
}

static bool book_rest_holds(struct scan_book *book, const struct book_rest_wish *wish,
			    size_t *looks)
{
	const struct book_rest *rest = book->rest;

	if (!rest || !rest->changes || rest->head_count > BOOK_REST_HEADS_MAX || !rest->is_exact ||
	    rest->keep != wish->keep || rest->cards != declared_cards(wish->cards))
		return false;
	++*looks;
	if (reader_refresh(&book->reader) < 0 || book->reader.header.changes != rest->changes)
		return false;
	for (size_t i = 0; i < rest->head_count; i++) {
		++*looks;
		if (!book_rest_is_head(book, &rest->heads[i]))
			return false;
	}
	return true;
}

uint32_t book_rest_next_single(const struct book_rest *rest, uint32_t device)
{
	while (device < BOOK_DEVICES) {
		uint64_t bits = rest->singles[device / 64] >> device % 64;

		if (bits)
			return device + (uint32_t)__builtin_ctzll(bits);
		device = (device / 64 + 1) * 64;
	}
	return BOOK_DEVICES;
}

int book_rest_collect(const struct book_reading *reading)
{
	const struct book_rest *rest = reading->rest;
	struct snapshot_process *process = book_process(reading);

	process->capacities_refused += rest->refused;
	process->stray_frees = merge_add(process->stray_frees, rest->stray_frees);
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		process->last_ns = bits_max(process->last_ns, rest->sum.memory[type].last_ns);
	if (!rest->is_exact || !rest->is_current)
		process->exact = false;
	if (!rest->is_exact)
		snapshot_note(reading->snapshot,
			      "pid %" PRIu32 ": not all of its devices could be summed up",
			      process->id.pid);
	if (!rest->is_current)
		reading->snapshot->devices_old += rest->sum.summed;
	return rest->sum.summed ? snapshot_add_sum(reading->snapshot, reading->process, &rest->sum)
				: 0;
}

void book_rest_add_head(struct book_rest *rest, const struct view *view)
{
	if (rest->head_count < BOOK_REST_HEADS_MAX)
		rest->heads[rest->head_count] = (struct book_rest_head){
			.device = view->device,
			.number = view->number,
			.inexact = view->inexact,
		};
	rest->head_count++;
}

/* Only those of the sum matter: the others are read anyway. */
static void book_rest_keep_heads(struct book_rest *rest)
{
	size_t count = 0;

	if (rest->head_count > BOOK_REST_HEADS_MAX)
		return;
	for (size_t i = 0; i < rest->head_count; i++) {
		if (book_rest_has(rest, rest->heads[i].device))
			rest->heads[count++] = rest->heads[i];
	}
	rest->head_count = count;
}

static void book_rest_sum(struct book_rest *rest, const struct book_rest_wish *wish,
			  struct snapshot_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->part_count; i++) {
		struct snapshot_part *part = &process->parts[i];
		uint64_t strays = stray_frees_of(part);

		if (declared_may_be_card(wish->cards, part) || (!strays && kept++ < wish->keep)) {
			rest->singles[part->device / 64] |= UINT64_C(1) << part->device % 64;
			continue;
		}
		rest->stray_frees += strays;
		if (strays)
			continue;
		rest->refused += declared_refuse_part(part);
		declared_add(&rest->sum, part);
	}
	declared_sign(&rest->sum, process->user_id);
	rest->is_exact = process->exact;
}

static int book_rest_read(struct scan_book *book, const struct book_rest_wish *wish,
			  struct view *view, size_t *looks)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = snapshot_new(0);
	CLEANUP_FREE struct book_rest *rest = calloc(1, sizeof(*rest));
	int r = snapshot && rest ? 0 : -ENOMEM;

	if (r == 0)
		r = book_collect_whole(book, view, snapshot, rest);
	if (r < 0)
		return r;
	*looks += snapshot->processes[0].part_count + rest->head_count;
	rest->changes = book->reader.header.changes;
	rest->cards = declared_cards(wish->cards);
	rest->keep = wish->keep;
	book_rest_sum(rest, wish, &snapshot->processes[0]);
	book_rest_keep_heads(rest);
	book_rest_drop(book);
	book->rest = cleanup_steal(rest);
	return 0;
}

int book_rest_renew(struct scan_book *book, const struct book_rest_wish *wish, struct view *view,
		    size_t *looks)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int r = book_rest_holds(book, wish, looks) ? 0 : book_rest_read(book, wish, view, looks);

	if (r == 0) {
		book->rest->read_ns = now;
		book->rest->is_current = true;
	}
	return r;
}
