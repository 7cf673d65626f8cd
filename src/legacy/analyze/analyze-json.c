/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.analyze/1. */

#include <stdio.h>
#include <string.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/emit.h"
#include "legacy/analyze/analyze.h"
#include "model/types.h"

#define FORMAT FIELD("format", NAME, format, .names = log_reader_format_name)
#define ANALYZE_NO_TYPE "null: the log does not tell"
#define TYPE FIELD_OR_NULL("type", NAME, type, .names = types_name, .says = ANALYZE_NO_TYPE)

/* Of an array "found". */
static const struct field analyze_found[] = {
	{.key = "double_frees", .offset = sizeof(uint64_t) * LOG_ANALYSIS_DOUBLE_FREE},
	{.key = "unknown_frees", .offset = sizeof(uint64_t) * LOG_ANALYSIS_UNKNOWN_FREE},
	{.key = "size_changes", .offset = sizeof(uint64_t) * LOG_ANALYSIS_SIZE_CHANGE},
	FIELD_END,
};

#define ROW struct analyze_file

static const struct field analyze_file[] = {
	FIELD("path", TEXT, path),
	FIELD("bytes", BYTES, counts.bytes),
	FIELD("lines", NUMBER, counts.lines),
	FIELD("events", NUMBER, counts.events),
	FIELD("damaged", NUMBER, counts.damaged, .says = "looked like events and were skipped"),
	FIELD("other_lines", NUMBER, counts.other,
	      .says = "no part of anything known; without empty ones"),
	FIELD("frees_known", NOT, counts.lacks_frees,
	      .says = "false: what was left of some of its events cannot be told"),
	FIELD("formats", FLAGS, counts.formats, .names = log_reader_format_name),
	FIELD_END,
};

#undef ROW
#define ROW struct log_analysis

static const struct field analyze_told[] = {
	FIELD("unseen_left", NUMBER, unseen,
	      .says = "buffers of ended processes that were allocated before the log, or left "
		      "out of a list in it"),
	FIELD("rejected", NUMBER, rejected, .says = "messages that the server refused"),
	FIELD("starts", NUMBER, restarts, .says = "of the server, in this log"),
	FIELD("merged", NUMBER, merged,
	      .says = "allocations that the server took for references to another process's "
		      "buffer"),
	FIELD_END,
};

#undef ROW
#define ROW struct analyze

static const struct field analyze_summary[] = {
	FIELD("events", NUMBER, counts.events),
	FIELD("damaged", NUMBER, counts.damaged),
	FIELD("frees_known", NOT, counts.lacks_frees, .says = "of all files"),
	FIELD("allocs", NUMBER, totals.allocs),
	FIELD("frees", NUMBER, totals.frees),
	FIELD("leaks", NUMBER, totals.leaks),
	FIELD("leaked_bytes", BYTES, totals.leaked_bytes),
	FIELD_MORE_OF(totals.found, analyze_found),
	FIELD("reuses", NUMBER, totals.reuses,
	      .says = "allocations of an address that had been freed"),
	FIELD("early_frees", NUMBER, totals.early_frees,
	      .says = "of buffers that the server knew and that were allocated before the log"),
	FIELD("unnamed_left", NUMBER, unnamed,
	      .says = "circular buffers and kernels, for which the server's log has no addresses"),
	FIELD("unnamed_left_bytes", BYTES, unnamed_bytes, .says = "rounded in the log"),
	FIELD_MORE_AT(analysis, analyze_told),
	FIELD_END,
};

static const void *analyze_each_sum(const void *context, size_t *at, struct fields_room *room)
{
	static const struct log_analysis_sum none;
	const struct log_analysis_sum *sums = ((const struct log_analysis_device *)context)->sums;

	(void)room;
	while (*at < LOG_ANALYSIS_TYPES &&
	       memcmp(&sums[*at], &none, offsetof(struct log_analysis_sum, type)) == 0)
		++*at;
	return *at < LOG_ANALYSIS_TYPES ? &sums[(*at)++] : NULL;
}

#undef ROW
#define ROW struct log_analysis_sum

static const struct field analyze_sum[] = {
	TYPE,
	FIELD("allocs", NUMBER, allocs),
	FIELD("frees", NUMBER, frees),
	FIELD("bytes", BYTES, bytes, .says = "allocated in all"),
	FIELD("peak_bytes", BYTES, peak_bytes),
	FIELD("live", NUMBER, live, .says = "at the end of the log"),
	FIELD("live_bytes", BYTES, live_bytes),
	FIELD("leaks", NUMBER, leaks),
	FIELD("leaked_bytes", BYTES, leaked_bytes),
	FIELD_MORE_OF(found, analyze_found),
	FIELD("reuses", NUMBER, reuses),
	FIELD("early_frees", NUMBER, early_frees),
	FIELD("hooked", NUMBER, hooked, .says = "without memory behind them"),
	FIELD_END,
};

/* The next of an array of pointers, some of which may be NULL. */
static const void *analyze_next(const void *array, size_t count, size_t *at)
{
	void *const *rows = array;

	while (*at < count && !rows[*at])
		++*at;
	return *at < count ? rows[(*at)++] : NULL;
}

static const void *analyze_each_device(const void *context, size_t *at, struct fields_room *room)
{
	const struct log_analysis *analysis = ((const struct analyze *)context)->analysis;

	(void)room;
	return analyze_next(analysis->devices, ARRAY_SIZE(analysis->devices), at);
}

static const void *analyze_each_process(const void *context, size_t *at, struct fields_room *room)
{
	const struct log_analysis *analysis = ((const struct analyze *)context)->analysis;

	(void)room;
	return analyze_next(analysis->processes, analysis->process_count, at);
}

static const void *analyze_each_site(const void *context, size_t *at, struct fields_room *room)
{
	const struct analyze *analyze = context;

	(void)room;
	return analyze_next(analyze->analysis->sites, bits_min(analyze->site_count, analyze->top),
			    at);
}

#undef ROW
#define ROW struct log_analysis_device

static const struct field analyze_device[] = {
	FORMAT,
	FIELD("device", SHORT, number, .most = BOOK_DEVICES - 1),
	FIELD("frees_known", BOOL, has_frees,
	      .says = "false: the format has no frees, so what is 0 below was not found to be "
		      "none"),
	FIELD_MADE("types", analyze_each_sum, analyze_sum),
	FIELD_END,
};

#undef ROW
#define ROW struct log_analysis_process

static const struct field analyze_pid[] = {
	FIELD_IF(has_pid, "pid", SHORT, pid, .says = "null: the log does not tell"),
	FIELD_END,
};

static const struct field analyze_process[] = {
	FORMAT,
	FIELD_MORE(analyze_pid),
	FIELD("ended", BOOL, has_ended, .says = "the server says so"),
	FIELD("frees_known", BOOL, has_frees, .says = "as of devices"),
	FIELD("allocs", NUMBER, sum.allocs),
	FIELD("frees", NUMBER, sum.frees),
	FIELD("leaks", NUMBER, sum.leaks),
	FIELD("leaked_bytes", BYTES, sum.leaked_bytes),
	FIELD_MORE_OF(sum.found, analyze_found),
	FIELD_END,
};

#undef ROW
#define ROW struct log_analysis_site

static const struct field analyze_stack[] = {
	FIELD_MORE_OF(stack, analyze_stack_fields),
	FIELD_END,
};

static const struct field analyze_site[] = {
	FORMAT,
	FIELD_OR_NULL("type", NAME, sum.type, .names = types_name, .says = ANALYZE_NO_TYPE),
	FIELD("allocs", NUMBER, sum.allocs),
	FIELD("frees", NUMBER, sum.frees),
	FIELD("replaced", NUMBER, sum.replaced,
	      .says = "allocated again at the same place, without a free in between"),
	FIELD("bytes", BYTES, sum.bytes),
	FIELD("leaks", NUMBER, sum.leaks),
	FIELD("leaked_bytes", BYTES, sum.leaked_bytes),
	FIELD_MORE(analyze_stack),
	FIELD_END,
};

#undef ROW
#define ROW struct log_analysis_leak

static const struct field analyze_leak[] = {
	FORMAT,
	FIELD("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD_MORE_AT(process, analyze_pid),
	TYPE,
	FIELD("address", HEX, address),
	FIELD("size", BYTES, size),
	FIELD("refs", SHORT, refs),
	FIELD("how", NAME, how, .names = log_analysis_how_name,
	      .says = "alive when the log ends, or left by a process that ended before"),
	FIELD("path", TEXT, path,
	      .says = "of the file with the allocation, or with the list of what was left"),
	FIELD("line", NUMBER, line, .least = 1),
	FIELD_MORE_AT(site, analyze_stack),
	FIELD_END,
};

#undef ROW
#define ROW struct log_analysis_finding

static const struct field analyze_finding[] = {
	FIELD("kind", NAME, kind, .names = log_analysis_kind_name),
	FIELD("cause", NAME, cause, .names = log_analysis_cause_name),
	FORMAT,
	FIELD("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD_MORE_AT(process, analyze_pid),
	TYPE,
	FIELD("address", HEX, address),
	FIELD_OR_NULL("size", BYTES, size, .says = "as allocated; null: not known"),
	FIELD_OR_NULL("other_size", BYTES, other_size,
		      .says = "what this event says, if it differs"),
	FIELD("count", NUMBER, count),
	FIELD("path", TEXT, path),
	FIELD("line", NUMBER, line, .least = 1, .says = "the first time"),
	FIELD("last_path", TEXT, last_path),
	FIELD("last_line", NUMBER, last_line, .least = 1),
	FIELD_END,
};

#undef ROW
#define ROW struct log_analysis

static const struct field analyze_rows[] = {
	FIELD_ARRAY_AT("leaks", ROWS, leaks, leak_count, .fields = analyze_leak,
		       .says = "largest first"),
	FIELD_ARRAY_AT("findings", ROWS, findings, finding_count, .fields = analyze_finding,
		       .says = "double frees, then unknown frees, then size changes; one row for "
			       "all of a kind, cause and buffer"),
	FIELD_END,
};

#undef ROW
#define ROW struct analyze

static const struct field analyze_members[] = {
	FIELD_ARRAY_AT("files", ROWS, files, file_count, .fields = analyze_file,
		       .says = "in the order in which they were read, as one log"),
	{.key = "summary", .kind = FIELD_OBJECT, .fields = analyze_summary},
	FIELD_MADE("devices", analyze_each_device, analyze_device),
	FIELD_MADE("processes", analyze_each_process, analyze_process,
		   .says = "in the order in which they appear; not narrowed by --type"),
	FIELD_MORE_AT(analysis, analyze_rows),
	FIELD_MADE("sites", analyze_each_site, analyze_site,
		   .says = "call sites, as far as the log has call stacks; most left first, then "
			   "most allocated"),
	FIELD_END,
};

const struct document analyze_document = {
	.schema = "ttmem.analyze/1",
	.title = "ttmem analyze --json: what logs of the old system tell",
	.members = analyze_members,
	.has = DOCUMENT_LIST,
};

void analyze_json(const struct analyze *analyze, uint64_t time_ns)
{
	struct log_analysis *analysis = analyze->analysis;
	struct emit json = EMIT_INIT(stdout);
	const char *notes[2];
	struct document_about about = {
		.time_ns = time_ns,
		.is_partial = analysis->is_inexact || analysis->dropped > 0,
		.notes = notes,
	};

	analysis->leak_count = bits_min(analysis->leak_count, analyze->top);
	analysis->finding_count = bits_min(analysis->finding_count, analyze->top);
	if (analyze->counts.lacks_frees)
		notes[about.note_count++] =
			"where frees_known is false the log has no frees: what was left "
			"cannot be told";
	if (about.is_partial)
		notes[about.note_count++] = "there is more in these logs than is kept: lists and "
					    "causes may be incomplete";
	document_put_about(&json, &analyze_document, &about, analyze);
}
