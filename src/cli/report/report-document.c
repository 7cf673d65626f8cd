/* SPDX-License-Identifier: Apache-2.0 */

/* The document of a report: who, when, how much over time; the parts are in the other files. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "cli/report/report.h"
#include "model/snapshot.h"
#include "model/types.h"

static void report_deinit(struct report *report)
{
	report_stacks_deinit(&report->stacks);
	report_walk_deinit(&report->walk);
	snapshot_free(report->peak);
	snapshot_free(report->end);
}

/* The recording's file without its folders: where it lay is nobody's business. */
static const char *report_file(const struct report *report)
{
	const char *slash = strrchr(report->facts->path, '/');

	return slash ? slash + 1 : report->facts->path;
}

static void report_put_facts(struct report *report)
{
	const struct recording_facts *facts = report->facts;
	struct emit *json = &report->json;

	emit_string(json, "file", report_file(report));
	emit_string(json, "command", facts->command);
	emit_string(json, "host", facts->host);
	emit_u64(json, "start_ns", facts->start_ns);
	emit_u64(json, "end_ns", facts->end_ns);
	emit_u64(json, "events", facts->events);
	emit_u64(json, "missed", facts->missed);
	emit_bool(json, "complete", facts->is_complete);
	emit_u64(json, "torn", facts->torn);
}

/* A field of the file, which need not end with a NUL. */
static void report_put_text(struct emit *json, const char *key, const char *text, size_t size)
{
	char copy[256];
	size_t length = strnlen(text, bits_min(size, sizeof(copy) - 1));

	memcpy(copy, text, length);
	copy[length] = '\0';
	emit_string(json, key, length > 0 ? copy : NULL);
}

static void report_put_exit(struct emit *json, const struct ending *ending)
{
	if (!ending->has_status) {
		emit_null(json, "exit");
		return;
	}
	emit_open_object(json, "exit");
	if (WIFEXITED(ending->status))
		emit_u64(json, "code", (uint64_t)WEXITSTATUS(ending->status));
	else
		emit_null(json, "code");
	if (WIFSIGNALED(ending->status))
		emit_u64(json, "signal", (uint64_t)WTERMSIG(ending->status));
	else
		emit_null(json, "signal");
	emit_close_object(json);
}

static void report_put_process(struct emit *json, const struct recording_owner *owner)
{
	emit_open_object(json, NULL);
	emit_u64(json, "pid", owner->book.pid);
	report_put_text(json, "comm", owner->book.comm, sizeof(owner->book.comm));
	report_put_text(json, "user", owner->book.user, sizeof(owner->book.user));
	report_put_text(json, "container", owner->book.container, sizeof(owner->book.container));
	emit_u64(json, "start_ns", owner->book.start_ns);
	if (owner->has_ended) {
		emit_u64(json, "ended_ns", owner->ending.ended_ns);
		report_put_exit(json, &owner->ending);
	} else {
		emit_null(json, "ended_ns");
		emit_null(json, "exit");
	}
	emit_close_object(json);
}

static void report_put_processes(struct report *report)
{
	size_t books = report->facts->books;

	emit_u64(&report->json, "process_count", books);
	emit_open_array(&report->json, "processes");
	for (size_t i = 0; i < bits_min(books, REPORT_PROCESSES_MAX); i++) {
		const struct recording_owner *owner = recording_owner(report->recording, i);

		if (owner)
			report_put_process(&report->json, owner);
	}
	emit_close_array(&report->json);
}

static void report_put_value(struct emit *json, uint64_t value, bool is_unknown)
{
	if (is_unknown)
		emit_null(json, NULL);
	else
		emit_u64(json, NULL, value);
}

/* Whether a type was ever in use. */
static bool report_is_used(const struct recording_sample *samples, uint32_t type)
{
	for (size_t i = 0; i < REPORT_SAMPLES; i++) {
		if (samples[i].high[type] || samples[i].bytes[type])
			return true;
	}
	return false;
}

static void report_put_type(struct emit *json, const struct recording_sample *samples,
			    uint32_t type)
{
	emit_open_object(json, types_name(type));
	emit_open_array(json, "bytes");
	for (size_t i = 0; i < REPORT_SAMPLES; i++)
		report_put_value(json, samples[i].bytes[type], samples[i].unknown >> type & 1);
	emit_close_array(json);
	emit_open_array(json, "high");
	for (size_t i = 0; i < REPORT_SAMPLES; i++)
		report_put_value(json, bits_max(samples[i].high[type], samples[i].bytes[type]),
				 samples[i].unknown >> type & 1);
	emit_close_array(json);
	emit_close_object(json);
}

static void report_put_samples(struct emit *json, const struct recording_sample *samples)
{
	emit_open_object(json, "timeline");
	emit_open_array(json, "times_ns");
	for (size_t i = 0; i < REPORT_SAMPLES; i++)
		emit_u64(json, NULL, samples[i].time_ns);
	emit_close_array(json);
	emit_open_object(json, "types");
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (report_is_used(samples, type))
			report_put_type(json, samples, type);
	}
	emit_close_object(json);
	emit_close_object(json);
}

/* By its events, or, if they are too many to read, by the recording's index. */
static int report_put_timeline(struct report *report)
{
	CLEANUP_FREE struct recording_sample *samples = NULL;
	const struct recording_filter all = RECORDING_FILTER_ALL;
	int r;

	if (report->walk.is_done) {
		report_put_samples(&report->json, report->walk.timeline.samples);
		return 0;
	}
	samples = must_alloc(REPORT_SAMPLES, sizeof(*samples));
	r = recording_timeline(report->recording, &all, NULL, samples, REPORT_SAMPLES);
	if (r == 0)
		report_put_samples(&report->json, samples);
	return r;
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
	report_put_facts(report);
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
	report_stacks_emit(&report->stacks, json);
	if (!report->walk.is_done)
		snapshot_note(report->end, "there are too many events to read each of them: phases "
					   "and gaps are not shown");
	document_list_end(json, report->facts->missed == 0 && report->end->exact);
	document_close(json, report->end);
	return ferror(json->out) ? -EIO : 0;
}

int report_document(struct recording *recording, FILE *out)
{
	CLEANUP(report_deinit)
	struct report report = {
		.recording = recording,
		.facts = recording_facts(recording),
		.json = EMIT_INIT(out),
	};
	int r = report_look(&report);

	return r < 0 ? r : report_put(&report);
}
