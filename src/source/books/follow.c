/* SPDX-License-Identifier: Apache-2.0 */

/* Follows a live book. */

#include "source/books/follow.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/event.h"
#include "book/read/view.h"
#include "model/timebase.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

/* The arguments of follow_poll(), for its helpers. */
struct follow_round {
	struct follow *follow;
	struct view *view;
	struct log *log;
	struct timebase timebase;
	follow_fn *fn;
	void *context;
};

int follow_open_owner(const struct scan_book *book, const struct proc *proc)
{
	return book->alive ? proc_pid_fd(proc, book->owner.id) : -1;
}

int follow_new(struct follow **ret_follow, struct scan_book *book, const struct proc *proc,
	       bool from_start)
{
	struct follow *follow = calloc(1, sizeof(*follow));

	if (!follow)
		return -ENOMEM;
	follow->book = book;
	follow->from_start = from_start;
	follow->pid_fd = follow_open_owner(book, proc);
	*ret_follow = follow;
	return 0;
}

struct follow *follow_free(struct follow *follow)
{
	if (!follow)
		return NULL;
	if (follow->pid_fd >= 0)
		close(follow->pid_fd);
	stacks_free(follow->stacks);
	free(follow->shards);
	free(follow);
	return NULL;
}

static bool follow_owner_has_ended(const struct follow *follow)
{
	struct pollfd wait = {.fd = follow->pid_fd, .events = POLLIN};

	return follow->pid_fd < 0 || poll(&wait, 1, 0) > 0;
}

/*
 * Takes exact counters and continues after them. -EAGAIN: the owner is writing too fast right now.
 */
static int follow_resync(struct follow_round *round, struct follow_shard *shard)
{
	int r = view_read_totals(round->view, &round->follow->book->reader, shard->device,
				 VIEW_LIVING);

	if (r < 0)
		return r;
	shard->next = round->view->number + 1;
	return 0;
}

static int follow_add_shard(struct follow_round *round, uint32_t device)
{
	struct follow *follow = round->follow;
	struct reader *reader = &follow->book->reader;
	struct follow_shard shard = {.device = device, .next = 1};
	struct book_shard page;
	struct follow_shard *shards;
	int r;

	shards = array_grow(follow->shards, &follow->capacity, follow->count + 1, sizeof(*shards));
	if (!shards)
		return -ENOMEM;
	follow->shards = shards;
	r = file_read(reader->file, book_shard_offset(device), &page, sizeof(page));
	if (r == 0)
		r = log_find(reader, &page, device, &shard.place);
	if (r == 0 && !follow->from_start) {
		r = follow_resync(round, &shard);
		if (r == 0)
			memcpy(shard.hot, round->view->hot, sizeof(shard.hot));
	}
	if (r < 0)
		return r;
	shards[follow->count++] = shard;
	return 0;
}

/*
 * Finds shards that have come into use. A device's first event creates one, so none can be missed.
 */
static int follow_find_shards(struct follow_round *round)
{
	struct follow *follow = round->follow;
	int64_t device = reader_next_shard(&follow->book->reader, 0);

	while (device >= 0) {
		bool known = false;
		int r = 0;

		for (size_t i = 0; i < follow->count && !known; i++)
			known = follow->shards[i].device == (uint32_t)device;
		if (!known)
			r = follow_add_shard(round, (uint32_t)device);
		if (r < 0 && r != -EAGAIN) /* then try in the next round */
			return r;
		device = reader_next_shard(&follow->book->reader, (uint32_t)device + 1);
	}
	follow->from_start = true; /* for shards that are created from now on */
	return device == -ENXIO ? 0 : (int)device;
}

int follow_begin(struct follow *follow, struct view *view)
{
	struct follow_round round = {.follow = follow, .view = view};

	return follow_find_shards(&round);
}

/* Times within a shard may be out of order by as long as two threads waited for the lock. */
static uint64_t follow_time(struct follow_round *round, struct follow_shard *shard, uint64_t stamp)
{
	shard->time_ns = bits_max(shard->time_ns, timebase_ns(&round->timebase, stamp));
	return shard->time_ns;
}

static int follow_gap(struct follow_round *round, uint32_t index)
{
	struct follow_shard *shard = &round->follow->shards[index];
	uint64_t first = shard->next;
	struct follow_event gap = {.follow = round->follow, .shard = index};
	int r = follow_resync(round, shard);

	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	if (shard->next <= first)
		return 0;
	gap.missed = shard->next - first;
	gap.number = shard->next - 1;
	gap.time_ns = shard->time_ns = bits_max(shard->time_ns, round->timebase.now);
	memcpy(shard->after_gap, round->view->hot, sizeof(shard->after_gap));
	return round->fn(round->context, &gap);
}

static int follow_poll_shard(struct follow_round *round, uint32_t index)
{
	struct follow *follow = round->follow;
	struct follow_shard *shard = &follow->shards[index];
	struct log *log = round->log;
	struct book_device facts;
	int r;

	log_start(log, &shard->place, shard->next);
	r = log_drain(log, &follow->book->reader);
	if (r == -EOVERFLOW || r == -ENOBUFS)
		return follow_gap(round, index);
	if (r < 0 || log->count == 0)
		return r;
	if (!shard->unique_id && reader_device(&follow->book->reader, shard->device, &facts) == 0)
		shard->unique_id = facts.unique_id;
	shard->next = log->first + log->count;
	for (uint64_t i = 0; r == 0 && i < log->count; i++) {
		struct follow_event event = {
			.follow = follow,
			.shard = index,
			.number = log->first + i,
			.event = log->events[i],
		};

		event.time_ns = follow_time(round, shard, event.event.time);
		r = round->fn(round->context, &event);
	}
	return r;
}

int follow_poll(struct follow *follow, struct view *view, struct log *log, follow_fn *fn,
		void *context)
{
	struct follow_round round = {
		.follow = follow, .view = view, .log = log, .fn = fn, .context = context};
	/* Checked first, so that what is read afterwards is all there will ever be. */
	bool ended = follow_owner_has_ended(follow);
	int r;

	book_timebase(follow->book, &round.timebase);
	r = follow_find_shards(&round);
	for (size_t i = 0; r == 0 && i < follow->count; i++)
		r = follow_poll_shard(&round, (uint32_t)i);
	if (ended)
		follow->is_over = true;
	return r;
}

void follow_apply(const struct follow_event *event)
{
	struct follow_shard *shard = &event->follow->shards[event->shard];
	uint32_t type = book_meta_type(event->event.record.meta);

	if (event->missed)
		memcpy(shard->hot, shard->after_gap, sizeof(shard->hot));
	else if (type < BOOK_TYPES)
		event_count_hot(event->event.op_slot & 0xff, event->event.time,
				&event->event.record, &shard->hot[type]);
}

int follow_compare(const void *left, const void *right)
{
	const struct follow_event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return bits_compare(a->time_ns, b->time_ns);
	if (a->follow != b->follow)
		return bits_compare((uintptr_t)a->follow, (uintptr_t)b->follow);
	if (a->shard != b->shard)
		return bits_compare(a->shard, b->shard);
	return bits_compare(a->number, b->number);
}
