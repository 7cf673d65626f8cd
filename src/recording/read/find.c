/* SPDX-License-Identifier: Apache-2.0 */

/* Moments as users write them. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/user-file.h"
#include "base/text.h"
#include "base/when.h"
#include "model/mark.h"
#include "model/snapshot.h"
#include "recording/read/recording-private.h"
#include "recording/read/restore-private.h"
#include "source/books/book-marks.h"
#include "source/books/scan.h"

#define FIND_MARKS_SHOWN 8u

struct find {
	struct recording *recording;
	const struct recording_filter *filter;
	const char *text;
	struct snapshot *snapshot; /* owns the texts of marks */
	struct mark_list marks;    /* of all books */
	uint64_t failed_ns;        /* the first one; 0 = none */
	uint32_t *phases;          /* of each book: the string; 0 = it has none of this name */
	bool has_phase;
	uint64_t time_ns; /* of the last event in the phase */
	struct recording_moment moment;
};

static void find_deinit(struct find *find)
{
	snapshot_free(find->snapshot);
	book_marks_deinit(&find->marks);
	free(find->phases);
}

/* "16:03", "16:03:12.5": the first such time that is not before the start. */
static bool find_time_of_day(const struct find *find, uint64_t *ret_time_ns)
{
	uint64_t start = find->recording->facts.start_ns;

	if (!when_time_of_day(find->text, start, ret_time_ns))
		return false;
	/* Users see no fractions of the second in which it starts. */
	if (*ret_time_ns + NS_PER_S <= start)
		*ret_time_ns += 24 * 3600 * NS_PER_S;
	return true;
}

static void find_failed(struct find *find, struct reader *reader,
			const struct recording_known *book)
{
	uint64_t count = bits_min(reader->header.incident_count[BOOK_INCIDENT_ALLOC_FAILED],
				  BOOK_INCIDENTS_PER_KIND);

	for (uint32_t i = 0; i < count; i++) {
		struct book_incident incident;
		uint64_t time_ns;

		if (reader_incident(reader, BOOK_INCIDENT_ALLOC_FAILED, i, &incident) < 0 ||
		    (find->filter->device != RECORDING_NONE &&
		     find->filter->device != incident.device))
			continue;
		time_ns = timebase_ns(&book->timebase, incident.second.time);
		if (time_ns && (!find->failed_ns || time_ns < find->failed_ns))
			find->failed_ns = time_ns;
	}
}

/* The string that a phase's name is in the book. */
static uint32_t find_phase(const struct find *find, struct reader *reader)
{
	size_t wanted = strlen(find->text), length;
	uint32_t id = 0;

	if (wanted == 0)
		return 0;
	while ((id = reader_find_string(reader, find->text, id)) != 0) {
		if (reader_string(reader, id, &length) && length == wanted)
			return id;
	}
	return 0;
}

/* What a book knew at its end. */
static int find_look(struct find *find, size_t number)
{
	const struct recording_known *known = &find->recording->books[number];
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	int r;

	if (find->filter->pid && find->filter->pid != known->owner.book.pid)
		return 0;
	r = recording_outline(find->recording, number, &book);
	if (r < 0)
		return r == -EBADMSG || r == -ENOENT ? 0 : r;
	find_failed(find, &book->reader, known);
	find->phases[number] = find_phase(find, &book->reader);
	find->has_phase = find->has_phase || find->phases[number];
	return recording_marks(find->recording, number, &book->reader, find->snapshot,
			       &find->marks);
}

static int find_look_all(struct find *find)
{
	int r = 0;

	find->snapshot = snapshot_new(0);
	find->phases = calloc(find->recording->facts.books + 1, sizeof(*find->phases));
	if (!find->snapshot || !find->phases)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < find->recording->facts.books; i++)
		r = find_look(find, i);
	return r;
}

static int find_in_phase(void *context, const struct recording_event *event)
{
	struct find *find = context;

	if (event->event && find->phases[event->book] &&
	    event->event->record.phase == find->phases[event->book]) {
		find->time_ns = event->time_ns;
		find->moment = (struct recording_moment){
			.time_ns = event->time_ns,
			.book = (uint32_t)event->book,
			.device = event->device,
			.number = event->number,
		};
	}
	return 0;
}

static const struct mark *find_mark(const struct find *find)
{
	for (size_t i = 0; i < find->marks.count; i++) {
		const char *name = find->marks.list[i].name;

		if (name && strcmp(name, find->text) == 0)
			return &find->marks.list[i];
	}
	return NULL;
}

static int find_unknown(const struct find *find, char *ret_why)
{
	size_t length = 0, shown = 0;

	length = (size_t)snprintf(ret_why, RECORDING_WHY_SIZE,
				  "no time, mark or phase \"%.60s\"; try seconds, 16:03:12, start, "
				  "peak, failed, end%s",
				  find->text, find->marks.count ? ", or a mark: " : "");
	for (size_t i = 0; i < find->marks.count && length < RECORDING_WHY_SIZE; i++) {
		if (!find->marks.list[i].name)
			continue;
		length += (size_t)snprintf(
			ret_why + length, RECORDING_WHY_SIZE - length, "%s%s", shown ? ", " : "",
			shown < FIND_MARKS_SHOWN ? find->marks.list[i].name : "...");
		if (shown++ == FIND_MARKS_SHOWN)
			break;
	}
	return -ENOENT;
}

static int find_why(char *ret_why, const char *text)
{
	snprintf(ret_why, RECORDING_WHY_SIZE, "%s", text);
	return -ENOENT;
}

/* A name: what the books have to be asked for. */
static int find_name(struct find *find, char *ret_why)
{
	const struct mark *mark;
	int r = find_look_all(find);

	if (r < 0)
		return r;
	if (strcmp(find->text, "failed") == 0) {
		recording_moment_at(find->recording, find->failed_ns, &find->moment);
		return find->failed_ns ? 0 : find_why(ret_why, "no allocation failed in it");
	}
	mark = find_mark(find);
	if (mark) {
		recording_moment_at(find->recording, mark->time_ns, &find->moment);
		return 0;
	}
	if (find->has_phase)
		r = recording_walk(find->recording, find->filter, NULL, NULL, find_in_phase, find);
	if (r < 0)
		return r;
	return find->time_ns ? 0 : find_unknown(find, ret_why);
}

static int find_any(struct find *find, char *ret_why)
{
	const struct recording_facts *facts = &find->recording->facts;
	uint64_t ns, bytes;
	int r;

	if (strcmp(find->text, "start") == 0 || strcmp(find->text, "end") == 0) {
		recording_moment_at(find->recording, *find->text == 's' ? 0 : UINT64_MAX,
				    &find->moment);
		return 0;
	}
	if (strcmp(find->text, "peak") == 0) {
		r = recording_peak(find->recording, find->filter, &find->moment, &bytes);
		return r == -ENOENT ? find_why(ret_why, "nothing was allocated in it") : r;
	}
	if (when_duration(find->text, &ns))
		ns += facts->start_ns;
	else if (!find_time_of_day(find, &ns))
		return find_name(find, ret_why);
	if (ns > facts->end_ns + NS_PER_S)
		return find_why(ret_why, "the recording has ended before that");
	recording_moment_at(find->recording, ns, &find->moment);
	return 0;
}

int recording_find(struct recording *recording, const char *text,
		   const struct recording_filter *filter, struct recording_moment *ret_moment,
		   char ret_why[RECORDING_WHY_SIZE])
{
	CLEANUP(find_deinit)
	struct find find = {.recording = recording, .filter = filter, .text = text};
	int r = find_any(&find, ret_why);

	if (r == 0)
		*ret_moment = find.moment;
	else if (r != -ENOENT)
		snprintf(ret_why, RECORDING_WHY_SIZE, "%s: %s", recording->path,
			 user_file_error(r));
	return r;
}
