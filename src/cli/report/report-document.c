/* SPDX-License-Identifier: Apache-2.0 */

/* The document of a report: who, when, how much over time; the parts are in the other files. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "answers/ended.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "cli/common/must.h"
#include "cli/report/report.h"
#include "model/snapshot.h"

static void report_deinit(struct report *report)
{
	report_stacks_deinit(&report->stacks);
	report_walk_deinit(&report->walk);
	snapshot_free(report->peak);
	snapshot_free(report->end);
}

#define ROW struct report
#define FACT(...) FIELD_VIA(facts, struct recording_facts, __VA_ARGS__)

static const struct field report_facts[] = {
	FIELD("file", TEXT, file),
	FACT("command", TEXT, command),
	FACT("host", TEXT, host),
	FACT("start_ns", TIME, start_ns),
	FACT("end_ns", TIME, end_ns),
	FACT("events", NUMBER, events),
	FACT("missed", NUMBER, missed),
	FACT("complete", BOOL, is_complete),
	FACT("torn", BYTES, torn),
	FACT("process_count", NUMBER, books),
	FIELD_END,
};

struct report_process {
	const struct recording_owner *owner;
	const char *comm, *user, *container; /* NULL = not known */
	const struct ended_exit *exit;
};

#undef ROW
#define ROW struct ended_exit

static const struct field report_exit[] = {
	FIELD_IF(has_code, "code", SHORT, code),
	FIELD_OR_NULL("signal", SHORT, signal),
	FIELD_END,
};

#undef ROW
#define ROW struct report_process
#define OWNER(...) FIELD_VIA(owner, struct recording_owner, __VA_ARGS__)

static const struct field report_process[] = {
	OWNER("pid", SHORT, book.pid),
	FIELD("comm", TEXT, comm),
	FIELD("user", TEXT, user),
	FIELD("container", TEXT, container),
	OWNER("start_ns", TIME, book.start_ns),
	OWNER("ended_ns", TIME, ending.ended_ns,
	      .known = 1 + offsetof(struct recording_owner, has_ended)),
	FIELD_POINTED("exit", exit, report_exit),
	FIELD_END,
};

/* A field of the file, which need not end with a NUL. NULL if it is empty. */
static const char *report_text(struct report *report, const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	return length ? must_have(pool_text(&report->stacks.pool, text, length)) : NULL;
}

static void report_put_processes(struct report *report)
{
	emit_open_array(&report->json, "processes");
	for (size_t i = 0; i < bits_min(report->facts->books, REPORT_PROCESSES_MAX); i++) {
		const struct recording_owner *owner = recording_owner(report->recording, i);
		const struct recording_book *book = &owner->book;
		struct ended_room room;
		const struct report_process row = {
			.owner = owner,
			.comm = report_text(report, book->comm, sizeof(book->comm)),
			.user = report_text(report, book->user, sizeof(book->user)),
			.container = report_text(report, book->container, sizeof(book->container)),
			.exit = ended_exit_of(&owner->ending, &room),
		};

		fields_put_row(&report->json, report_process, &row);
	}
	emit_close_array(&report->json);
}

/* The numbers of a type, which are in the samples; UINT64_MAX = not known. */
struct report_series {
	const uint64_t *bytes, *high;
	size_t count;
	bool is_used;
};

struct report_chart {
	const struct recording_sample *samples;
	size_t count;
	struct report_series types[BOOK_TYPES];
};

#undef ROW
#define ROW struct report_series
#define SAMPLED(KEY, MEMBER)                                                    \
	{                                                                       \
		.key = (KEY), .kind = FIELD_NUMBERS, .has_nulls = true,         \
		.offset = offsetof(ROW, MEMBER), .count = offsetof(ROW, count), \
		.size = sizeof(struct recording_sample)                         \
	}

static const struct field report_series[] = {
	SAMPLED("bytes", bytes),
	SAMPLED("high", high),
	FIELD_END,
};

#undef ROW
#define ROW struct report_chart

static const struct field report_types[] = {
#define TTMEM_TYPE(number, name, ...)                                              \
	FIELD_STRUCT(#name, types[number], report_series, .absent = FIELD_NOTHING, \
		     .known = FIELD_KNOWN(types[number].is_used)),
#include <ttmem/types.def>
	FIELD_END,
};

static const struct field report_chart[] = {
	FIELD_ARRAY_AT("times_ns", NUMBERS, samples, count), /* their first member */
	{.key = "types", .kind = FIELD_OBJECT, .fields = report_types},
	FIELD_END,
};

/* By its events, or, if they are too many to read, by the recording's index. */
static int report_put_timeline(struct report *report)
{
	CLEANUP_FREE struct recording_sample *read = NULL;
	const struct recording_filter all = RECORDING_FILTER_ALL;
	struct recording_sample *samples = report->walk.timeline.samples;
	struct report_chart chart = {.count = REPORT_SAMPLES};
	int r = 0;

	if (!report->walk.is_done) {
		samples = read = must_alloc(REPORT_SAMPLES, sizeof(*read));
		r = recording_timeline(report->recording, &all, NULL, read, REPORT_SAMPLES);
	}
	if (r < 0)
		return r;
	chart.samples = samples;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct report_series *series = &chart.types[type];

		*series = (struct report_series){samples->bytes + type, samples->high + type,
						 REPORT_SAMPLES, false};
		for (size_t i = 0; i < REPORT_SAMPLES; i++) {
			uint64_t *bytes = &samples[i].bytes[type], *high = &samples[i].high[type];

			series->is_used |= *bytes || *high;
			if (samples[i].unknown >> type & 1)
				*bytes = UINT64_MAX;
			*high = bits_max(*high, *bytes);
		}
	}
	fields_put_object(&report->json, "timeline", report_chart, &chart);
	return 0;
}

/* The highest moment: by its events if they were read, because the index may not tell two close ones apart. */
static int report_look_at_peak(struct report *report)
{
	const struct recording_filter all = RECORDING_FILTER_ALL;
	const struct report_timeline *timeline = &report->walk.timeline;
	int r = recording_peak(report->recording, &all, &report->peak_moment, &report->peak_bytes);

	if (r == -ENOENT)
		report->peak_bytes = 0; /* nothing was ever in use */
	else if (r < 0)
		return r;
	if (report->walk.is_done && timeline->peak_bytes > report->peak_bytes) {
		report->peak_bytes = timeline->peak_bytes;
		report->peak_moment = timeline->peak;
	}
	return report->peak_bytes > 0
		       ? report_take(report, &report->peak_moment, false, &report->peak)
		       : 0;
}

/* The two moments that most of the document is about, and the way between. */
static int report_look(struct report *report)
{
	int r;

	report->end_moment = (struct recording_moment){
		.time_ns = report->facts->end_ns,
		.book = RECORDING_NONE,
		.device = RECORDING_NONE,
	};
	r = report_take(report, &report->end_moment, true, &report->end);
	if (r == 0)
		r = report_walk(&report->walk, report->recording, report->end);
	return r < 0 ? r : report_look_at_peak(report);
}

static int report_put(struct report *report)
{
	struct emit *json = &report->json;
	int r;

	document_open(json, "ttmem.report/1", report->facts->end_ns);
	fields_put(json, report_facts, report);
	report_put_processes(report);
	report_put_incidents(report);
	r = report_put_timeline(report);
	if (r == 0)
		r = report_put_held(report, "peak", report->peak, report->peak_bytes);
	if (r == 0)
		r = report_put_held(report, "end", report->end, 0);
	if (r == 0)
		r = report_put_books(report);
	if (r == 0)
		r = report_put_moments(report);
	if (r == 0)
		r = report_put_maps(report);
	if (r < 0)
		return r;
	report_stacks_put(&report->stacks, json);
	if (!report->walk.is_done)
		snapshot_note(report->end, "there are too many events to read each of them: phases "
					   "and gaps are not shown");
	document_list_end(json, report->facts->missed == 0 && report->end->exact);
	document_close(json, report->end);
	return ferror(json->out) ? -EIO : 0;
}

int report_document(struct recording *recording, FILE *out)
{
	const struct recording_facts *facts = recording_facts(recording);
	const char *slash = strrchr(facts->path, '/');
	CLEANUP(report_deinit)
	struct report report = {
		.recording = recording,
		.facts = facts,
		.file = slash ? slash + 1 : facts->path,
		.json = EMIT_INIT(out),
	};
	int r = report_look(&report);

	return r < 0 ? r : report_put(&report);
}
