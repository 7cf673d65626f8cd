/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A book has the phase of each allocation, and no time at which the program entered or left it. So a
 * phase begins with its first allocation, and the events are walked through, as many as that may
 * take. A test of pytest is a phase too, and is told by its own name.
 */

#include "daemon/flight/moment-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/process-id.h"
#include "book/format/layout.h"
#include "book/read/reader.h"
#include "daemon/flight/black-box.h"
#include "daemon/registry/access.h"
#include "model/mark.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/test-phase.h"
#include "recording/read/recording.h"
#include "source/books/book-marks.h"
#include "source/books/scan.h"

struct moment_phases {
	uint32_t *ids; /* sorted */
	size_t count, capacity;
	uint64_t test;             /* the key of the last test; 0 = none */
	struct scan_book *outline; /* for their names; NULL = not needed yet */
};

/* Of one recording. */
struct moment_walk {
	struct moment_list *list;
	struct recording *recording;
	const struct black_box_file *file;
	struct moment_phases *phases; /* of each book */
	uint64_t left;                /* events that may be looked at */
};

int moment_list_init(struct moment_list *list, const struct query *query,
		     const struct query_asker *asker)
{
	*list = (struct moment_list){.query = query, .asker = asker, .texts = snapshot_new(0)};
	return list->texts ? 0 : -ENOMEM;
}

void moment_list_deinit(struct moment_list *list)
{
	snapshot_free(list->texts);
	free(list->list);
	*list = (struct moment_list){.texts = NULL};
}

static int moment_list_text(struct moment_list *list, const char **text)
{
	if (!*text)
		return 0;
	*text = snapshot_text(list->texts, *text, strlen(*text));
	return *text ? 0 : -ENOMEM;
}

static bool moment_list_wants(const struct moment_list *list, const struct moment_list_one *one)
{
	const struct query *query = list->query;

	if (one->time_ns < query->from_ns || one->time_ns > query->to_ns)
		return false;
	if (one->process.pid && !filter_wants_pid(&query->filter, one->process.pid))
		return false;
	return !one->has_device || !query->filter.device_count ||
	       filter_wants_device(&query->filter, one->device, 0);
}

int moment_list_add(struct moment_list *list, const struct moment_list_one *one)
{
	struct moment_list_one *to;
	int r;

	if (!moment_list_wants(list, one))
		return 0;
	if (list->count >= MOMENT_LIST_MAX) {
		list->is_cut = true;
		return 0;
	}
	to = array_grow(list->list, &list->capacity, list->count + 1, sizeof(*to));
	if (!to)
		return -ENOMEM;
	list->list = to;
	to += list->count;
	*to = *one;
	r = moment_list_text(list, &to->comm);
	if (r == 0)
		r = moment_list_text(list, &to->name);
	if (r == 0)
		r = moment_list_text(list, &to->incident);
	list->count += r == 0;
	return r;
}

bool moment_list_has(const struct moment_list *list, struct process_id process)
{
	for (size_t i = 0; i < list->count; i++) {
		if (process_id_equal(list->list[i].process, process))
			return true;
	}
	return false;
}

bool moment_list_has_kind(const struct moment_list *list, const char *kind, uint64_t time_ns)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->list[i].time_ns == time_ns && strcmp(list->list[i].kind, kind) == 0)
			return true;
	}
	return false;
}

static bool moment_list_may_see(const struct moment_list *list, const struct black_box_owner *owner)
{
	const struct query_asker *asker = list->asker;

	return !asker || asker->sees_all ||
	       (asker->peer && access_may_see(asker->peer, owner->maker, owner->namespaces));
}

static int moment_list_add_marks(const struct moment_walk *walk, size_t number,
				 struct moment_list_one one)
{
	struct moment_list *list = walk->list;
	struct mark_list marks = MARK_LIST_NULL;
	struct scan_book *book = NULL;
	int r = recording_outline(walk->recording, number, &book);

	if (r < 0) /* what cannot be read has no marks */
		return r == -ENOMEM ? r : 0;
	r = recording_marks(walk->recording, number, &book->reader, list->texts, &marks);
	one.kind = "mark";
	for (size_t i = 0; r == 0 && i < marks.count; i++) {
		one.time_ns = marks.list[i].time_ns;
		one.name = marks.list[i].name;
		r = moment_list_add(list, &one);
	}
	book_marks_deinit(&marks);
	scan_book_free(book);
	return r;
}

static struct moment_list_one moment_list_of(const struct recording_owner *owner, char comm[17])
{
	memcpy(comm, owner->book.comm, sizeof(owner->book.comm));
	comm[16] = '\0';
	return (struct moment_list_one){
		.process = recording_process(&owner->book),
		.comm = comm,
	};
}

static int moment_list_add_book(const struct moment_walk *walk, size_t number)
{
	const struct recording_owner *owner = recording_owner(walk->recording, number);
	char comm[17];
	struct moment_list_one one = moment_list_of(owner, comm);
	int r;

	one.kind = "start";
	one.time_ns = owner->book.start_ns;
	r = moment_list_add(walk->list, &one);
	if (r == 0 && owner->has_ended) {
		one.kind = "end";
		one.time_ns = owner->ending.ended_ns;
		r = moment_list_add(walk->list, &one);
	}
	if (r == 0 && moment_list_may_see(walk->list, &walk->file->owners[number]))
		r = moment_list_add_marks(walk, number, one);
	return r;
}

/* Whether a phase is seen for the first time. */
static bool moment_list_is_new(struct moment_phases *phases, uint32_t id)
{
	size_t from = 0, to = phases->count;
	uint32_t *ids;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (phases->ids[middle] < id)
			from = middle + 1;
		else
			to = middle;
	}
	if (from < phases->count && phases->ids[from] == id)
		return false;
	if (phases->count >= MOMENT_LIST_PHASES_MAX)
		return false;
	ids = array_grow(phases->ids, &phases->capacity, phases->count + 1, sizeof(*ids));
	if (!ids)
		return false;
	phases->ids = ids;
	memmove(ids + from + 1, ids + from, (phases->count++ - from) * sizeof(*ids));
	ids[from] = id;
	return true;
}

/* Once for all phases of a test. */
static int moment_list_add_test(struct moment_list *list, struct moment_phases *phases,
				struct moment_list_one one, const struct test_phase *test)
{
	if (test->key == phases->test)
		return 0;
	phases->test = test->key;
	one.kind = "test";
	one.name = snapshot_text(list->texts, test->name, test->length);
	return one.name ? moment_list_add(list, &one) : -ENOMEM;
}

static int moment_list_add_phase(const struct moment_walk *walk, size_t number, uint32_t id,
				 uint64_t time_ns)
{
	char comm[17];
	struct moment_list_one one = moment_list_of(recording_owner(walk->recording, number), comm);
	struct moment_phases *phases = &walk->phases[number];
	struct test_phase test;
	const char *bytes;
	size_t length;
	int r = phases->outline ? 0 : recording_outline(walk->recording, number, &phases->outline);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	bytes = reader_string(&phases->outline->reader, id, &length);
	one.kind = "phase";
	one.time_ns = time_ns;
	one.name = bytes ? snapshot_text(walk->list->texts, bytes, length) : NULL;
	if (!one.name)
		return 0;
	if (test_phase_parse(one.name, &test)) {
		r = moment_list_add_test(walk->list, phases, one, &test);
		one.name = test.inner;
	}
	return r == 0 && *one.name ? moment_list_add(walk->list, &one) : r;
}

static int moment_list_see_event(void *context, const struct recording_event *event)
{
	struct moment_walk *walk = context;
	uint32_t phase;

	if (walk->left == 0) {
		walk->list->is_cut = true;
		return 1;
	}
	walk->left--;
	if (!event->event || event->book >= walk->file->count)
		return 0;
	phase = event->event->record.phase;
	if (!phase || (event->event->op_slot & BOOK_OP_MASK) != BOOK_OP_ALLOC ||
	    !moment_list_may_see(walk->list, &walk->file->owners[event->book]) ||
	    !moment_list_is_new(&walk->phases[event->book], phase))
		return 0;
	return moment_list_add_phase(walk, event->book, phase, event->time_ns);
}

static int moment_list_add_phases(struct moment_walk *walk)
{
	const struct query_asker *asker = walk->list->asker;
	struct recording_filter filter = RECORDING_FILTER_ALL;
	int r;

	if (asker && !asker->sees_all && !asker->peer)
		return 0;
	walk->phases = calloc(walk->file->count + 1, sizeof(*walk->phases));
	if (!walk->phases)
		return -ENOMEM;
	filter.pid = walk->list->query->filter.pid;
	r = recording_walk(walk->recording, &filter, NULL, NULL, moment_list_see_event, walk);
	for (size_t i = 0; i < walk->file->count; i++) {
		scan_book_free(walk->phases[i].outline);
		free(walk->phases[i].ids);
	}
	free(walk->phases);
	return r > 0 ? 0 : r;
}

int moment_list_add_recording(void *context, struct recording *recording,
			      const struct black_box_file *file)
{
	struct moment_walk walk = {
		.list = context,
		.recording = recording,
		.file = file,
		.left = MOMENT_LIST_EVENTS_MAX,
	};
	size_t books = bits_min(recording_facts(recording)->books, file->count);
	int r = 0;

	for (size_t i = 0; r == 0 && i < books; i++)
		r = moment_list_add_book(&walk, i);
	return r < 0 ? r : moment_list_add_phases(&walk);
}

static int moment_list_compare(const void *left, const void *right)
{
	const struct moment_list_one *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return bits_compare(a->time_ns, b->time_ns);
	if (a->process.pid != b->process.pid)
		return bits_compare(a->process.pid, b->process.pid);
	return strcmp(b->kind, a->kind); /* a start before an end */
}

void moment_list_finish(struct moment_list *list)
{
	size_t limit = list->query->limit, extra = list->count > limit ? list->count - limit : 0;

	if (list->count > 0)
		qsort(list->list, list->count, sizeof(*list->list), moment_list_compare);
	if (extra == 0)
		return;
	list->is_cut = true;
	memmove(list->list, list->list + extra, limit * sizeof(*list->list));
	list->count = limit;
}

static const char *moment_list_kind(uint32_t kind)
{
	static const char *const names[] = {"mark", "phase", "test",  "incident", "restart",
					    "stop", "lost",  "start", "end"};

	return kind < ARRAY_SIZE(names) ? names[kind] : NULL;
}

#define ROW struct moment_list_one

static const struct field moment_list_fields[] = {
	FIELD("time_ns", TIME, time_ns),
	FIELD("kind", TEXT, kind, .names = moment_list_kind,
	      .says = "start and end of a process; of processes whose details the client may see, "
		      "a mark, and the first allocation in a phase or in a test of pytest; an "
		      "incident; restart: the daemon was started; stop: it ended in order; lost: "
		      "it ended otherwise, and this is its last sign of life"),
	FIELD_OR_NULL("pid", SHORT, process.pid),
	FIELD_OR_NULL("comm", TEXT, comm),
	FIELD_IF(has_device, "device", SHORT, device),
	FIELD_OR_NULL("name", TEXT, name, .says = "of a mark, a phase or a test"),
	FIELD_OR_NULL("incident", TEXT, incident, .says = "its kind"),
	FIELD_END,
};

#undef ROW
#define ROW struct moment_list

static const struct field moment_list_members[] = {
	FIELD_MORE_OF(reach, document_reach_fields),
	FIELD_ARRAY_AT("moments", ROWS, list, count, .fields = moment_list_fields,
		       .says = "in the order of time"),
	FIELD_END,
};

const struct document moment_list_document = {
	.schema = "ttmem.moments/1",
	.title = "/api/v1/moments: what happened, and when",
	.members = moment_list_members,
	.has = DOCUMENT_LIST,
};

void moment_list_write(struct emit *json, const struct moment_list *list, uint64_t now_ns)
{
	static const char *const more[] = {"there are more: choose a shorter time or a process"};
	const struct document_about about = {
		.time_ns = now_ns,
		.is_partial = list->is_cut,
		.notes = more,
		.note_count = list->is_cut,
	};

	document_put_about(json, &moment_list_document, &about, list);
}
