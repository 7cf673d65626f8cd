/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The summary of a recording. Peaks of types come from the books. Those of phases and call sites are found
 * by adding up, event by event, what counts for each limit: the moment at which it was most gets into the
 * summary with everything that was live then.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "book/read/view.h"
#include "cli/budget/budget-summary.h"
#include "cli/budget/budget.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/options.h"
#include "cli/common/session.h"
#include "model/sites/site.h"
#include "model/snapshot-peak.h"
#include "model/snapshot.h"
#include "recording/read/recording.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

/*
 * Whether a phase or stack counts for a limit, by its id: texts are compared once for most of a million
 * events. Ids that share a place only cost another comparison.
 */
#define BUDGET_MEMO 1024u

struct budget_memo {
	uint32_t ids[BUDGET_MEMO]; /* 0 = empty: no text has it */
	bool counts[BUDGET_MEMO];
};

/* When a limit's phase or call site held most; of all processes, devices and types. */
struct budget_best {
	struct recording_most most;
	uint32_t type;
};

struct budget_recording {
	struct recording *recording;
	const struct budget *budget;
	struct budget_best *bests;    /* one for each limit */
	struct budget_best *others;   /* on any device and of any type: shows that a name exists */
	struct recording_most *mosts; /* of one device, for all types */
	struct budget_memo *memos;    /* of one book */
	bool is_exact;

	/* The book that is read, as it was at the end: it has all texts of before. */
	struct scan_book *book;
	struct stacks *stacks;
};

static void budget_recording_leave(struct budget_recording *self)
{
	self->stacks = stacks_free(self->stacks);
	scan_book_free(self->book);
	self->book = NULL;
}

static void budget_recording_deinit(struct budget_recording *self)
{
	budget_recording_leave(self);
	free(self->bests);
	free(self->others);
	free(self->mosts);
	free(self->memos);
}

static void budget_recording_init(struct budget_recording *self, struct recording *recording,
				  const struct budget *budget)
{
	size_t count = budget->count + 1; /* there may be none */

	*self = (struct budget_recording){
		.recording = recording,
		.budget = budget,
		.bests = must_alloc(count, sizeof(*self->bests)),
		.others = must_alloc(count, sizeof(*self->others)),
		.mosts = must_alloc(count * BOOK_TYPES, sizeof(*self->mosts)),
		.memos = must_alloc(count, sizeof(*self->memos)),
		.is_exact = true,
	};
}

static bool budget_recording_has_phase(struct budget_recording *self,
				       const struct budget_limit *limit, uint32_t id)
{
	size_t length;
	const char *text = reader_string(&self->book->reader, id, &length);
	CLEANUP_FREE char *phase = text ? must_have(strndup(text, length)) : NULL;
	const struct budget_part part = {.phase = phase};

	return budget_counts(limit, &part);
}

static bool budget_recording_has_site(struct budget_recording *self,
				      const struct budget_limit *limit, uint32_t id)
{
	struct budget_part part = {.name = NULL};
	const struct stack *stack = stacks_get(self->stacks, id);
	const struct frame *frame = site_find(stack);
	char calls[POOL_TEXT_MAX];

	if (frame)
		part.site.frame = *frame;
	if (stack)
		part.calls = stack_calls(stack, calls, sizeof(calls));
	return budget_counts(limit, &part);
}

/* Whether a buffer counts for a limit; types and devices are looked at afterwards. */
static bool budget_recording_has(void *context, size_t number, const struct book_record *record)
{
	struct budget_recording *self = context;
	const struct budget_limit *limit = &self->budget->limits[number];
	bool is_phase = limit->subject == BUDGET_PHASE;
	uint32_t id = is_phase ? record->phase : record->stack;
	struct budget_memo *memo = &self->memos[number];

	if (limit->subject == BUDGET_MEMORY || id == 0)
		return false;
	if (memo->ids[id % BUDGET_MEMO] != id) {
		memo->ids[id % BUDGET_MEMO] = id;
		memo->counts[id % BUDGET_MEMO] =
			is_phase ? budget_recording_has_phase(self, limit, id)
				 : budget_recording_has_site(self, limit, id);
	}
	return memo->counts[id % BUDGET_MEMO];
}

static void budget_recording_offer(struct budget_recording *self, size_t number, uint32_t device)
{
	const struct budget_limit *limit = &self->budget->limits[number];

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct recording_most *most = &self->mosts[number * BOOK_TYPES + type];
		bool counts = (limit->device == BUDGET_ANY || limit->device == device) &&
			      (limit->type == BUDGET_ANY || limit->type == type);
		struct budget_best *best = counts ? &self->bests[number] : &self->others[number];

		if (most->bytes > best->most.bytes)
			*best = (struct budget_best){.most = *most, .type = type};
	}
}

static int budget_recording_device(struct budget_recording *self, size_t book, uint32_t device)
{
	const struct recording_sets sets = {
		.count = self->budget->count,
		.has = budget_recording_has,
		.context = self,
	};
	bool is_exact;
	int r = recording_most(self->recording, book, device, &sets, self->mosts, &is_exact);

	if (r < 0) {
		/* Of a device whose events are not there, only peaks of types are known. */
		self->is_exact = false;
		return r == -ENOENT ? 0 : r;
	}
	self->is_exact &= is_exact;
	for (size_t i = 0; i < self->budget->count; i++)
		budget_recording_offer(self, i, device);
	return 0;
}

static int budget_recording_book(struct budget_recording *self, size_t number,
				 const struct recording_moment *end)
{
	int64_t device = 0;
	int r = recording_restore(self->recording, number, end, &self->book);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	memset(self->memos, 0, (self->budget->count + 1) * sizeof(*self->memos));
	r = stacks_new(&self->stacks, self->book, recording_namer(self->recording));
	while (r == 0) {
		device = reader_next_shard(&self->book->reader, (uint32_t)device);
		if (device < 0)
			break;
		r = budget_recording_device(self, number, (uint32_t)device++);
	}
	budget_recording_leave(self);
	return device < 0 && device != -ENXIO ? (int)device : r;
}

/* Adds what was live in a book, on a device and of a type; all of it, so that peaks can be told apart. */
static void budget_recording_add_live(struct budget_summary *summary,
				      const struct budget_best *best,
				      const struct snapshot *snapshot)
{
	struct budget_moment moment = {
		.device = best->most.moment.device,
		.type = best->type,
		.is_peak = true,
		.is_exact = true,
	};
	size_t index;

	if (snapshot->process_count == 0)
		return;
	moment.pid = snapshot->processes[0].id.pid;
	moment.comm = snapshot->processes[0].comm;
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		moment.bytes += snapshot_buffer_bytes(&snapshot->buffers[i]);
	index = budget_summary_begin(summary, &moment);
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		budget_summary_add_buffer(summary, index, &snapshot->buffers[i]);
}

static int budget_recording_add(struct budget_recording *self, const struct budget_best *best,
				struct budget_summary *summary)
{
	const struct recording_moment *moment = &best->most.moment;
	const struct snapshot_request request = {
		.buffers = true,
		.ended = true,
		.filter = {.device_count = 1,
			   .devices = {{.value = moment->device}},
			   .has_type = true,
			   .type = best->type},
		.namer = recording_namer(self->recording),
	};
	CLEANUP(snapshot_cleanup)
	struct snapshot *snapshot = must_have(snapshot_new(moment->time_ns));
	CLEANUP(view_deinit) struct view view = VIEW_NULL;
	int r = recording_restore(self->recording, moment->book, moment, &self->book);

	if (r == 0)
		r = book_collect(self->book, &request, &view, snapshot);
	if (r == 0)
		budget_recording_add_live(summary, best, snapshot);
	budget_recording_leave(self);
	return r;
}

static int budget_recording_find(struct budget_recording *self, const struct recording_moment *end,
				 struct budget_summary *summary)
{
	size_t books = recording_facts(self->recording)->books;
	int r = 0;

	for (size_t i = 0; r == 0 && i < books; i++)
		r = budget_recording_book(self, i, end);
	for (size_t i = 0; r == 0 && i < self->budget->count; i++) {
		if (self->bests[i].most.bytes > 0)
			r = budget_recording_add(self, &self->bests[i], summary);
		else if (self->others[i].most.bytes > 0)
			r = budget_recording_add(self, &self->others[i], summary);
	}
	return r;
}

static bool budget_recording_is_needed(const struct budget *budget)
{
	for (size_t i = 0; i < budget->count; i++) {
		if (budget->limits[i].subject != BUDGET_MEMORY)
			return true;
	}
	return false;
}

static int budget_recording_parts(struct session *session, const struct budget *budget,
				  struct budget_summary *summary)
{
	CLEANUP(budget_recording_deinit) struct budget_recording self;
	int r = 0;

	budget_recording_init(&self, session_recording(session), budget);
	if (budget_recording_is_needed(budget))
		r = budget_recording_find(&self, session_moment(session), summary);
	summary->has_all_parts = self.is_exact;
	return r;
}

static int budget_recording_peaks(struct session *session, struct budget_summary *summary)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct recording_facts *facts = recording_facts(session_recording(session));
	const struct snapshot_request request = {
		.buffers = true,
		.at_peak = true,
		.ended = true,
		.is_own = true,
		.namer = session_namer(session),
	};
	int r = session_take(session, &request, &snapshot);

	if (r < 0)
		return r;
	summary->is_tracked = facts->books > 0;
	summary->is_cut = !facts->is_complete;
	/* A book that cannot be read is left out by the session. */
	summary->is_incomplete = session_scan(session)->count < facts->books ||
				 snapshot->peak_count >= SNAPSHOT_PEAKS_MAX;
	budget_summary_look_for_gave_up(summary, snapshot);
	budget_summary_add_peaks(summary, snapshot);
	return 0;
}

int budget_summary_load_recording(const char *path, const struct budget *budget,
				  struct budget_summary *ret_summary)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	CLEANUP(budget_summary_deinit) struct budget_summary summary = BUDGET_SUMMARY_NULL;
	const struct options_from from = {.file = path};
	int r = session_start(&session, "check", &from, NULL);

	if (r != 0)
		return r;
	r = budget_recording_peaks(session, &summary);
	if (r == 0)
		r = budget_recording_parts(session, budget, &summary);
	if (r < 0) {
		(void)fputs("ttmem check: ", stderr);
		text_put(stderr, path);
		fprintf(stderr, ": %s\n", user_file_error(r));
		return COMMAND_FAILED;
	}
	budget_summary_finish(&summary);
	*ret_summary = summary;
	summary = BUDGET_SUMMARY_NULL;
	return 0;
}
