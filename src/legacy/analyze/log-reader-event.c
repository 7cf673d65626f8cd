/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events of one line: of the old servers, of ttmemd, and of the detailed log. Anything may precede them, such as the
 * time and host of a journal. They are recognized by their words, not by the check marks, which some terminals lose.
 */

#include <string.h>

#include "answers/seed-lines.h"
#include "base/bits.h"
#include "legacy/analyze/log-reader-private.h"
#include "model/types.h"

struct log_line {
	const char *pattern; /* see log-scan.h */
	uint8_t kind;
	uint8_t type; /* 0 = what the line says */
	uint8_t format;
	bool is_resize, is_report, lacks_device, lacks_address;
};

#define ID " (buffer_id=%a"
#define REPORT(KIND) KIND ": pid %p (%*), device %d"

/* Behind "[PID P] ". */
static const struct log_line event_lines[] = {
	{"Allocated %!%S bytes of %t on device %d" ID ")", LOG_READER_ALLOC},
	{"Allocated %!%S bytes of %t on device %d" ID ", ref_count=%r)", LOG_READER_ALLOC},
	{"Freed buffer %!%a on device %d (%s bytes, FINAL)" SEED_LINES_RESIZED, LOG_READER_FREE,
	 .is_resize = true},
	{"Freed buffer %!%a on device %d (%s bytes, FINAL)", LOG_READER_FREE},
	{"Freed buffer %!%a on device %d (%s bytes, ref_count=%r remaining)", LOG_READER_FREE},
	{"Deallocation for unknown buffer %!%a on device %d%e", LOG_READER_UNKNOWN_FREE},
	{"Deallocation for ALREADY FREED buffer %!%a on device %d%e", LOG_READER_ALREADY_FREED},
	{"Buffer reused with DIFFERENT size: %!old=%n new=%s" ID ", device=%d)",
	 LOG_READER_RESIZED},
	{"Invalid buffer_type ", LOG_READER_REJECTED},
};

/* Anywhere in a line; the first that is right counts. */
static const struct log_line lines[] = {
	{"[CB_ALLOC] %!%*evice %d: +%m%? (Total: %M", LOG_READER_COUNTED_ALLOC, TYPES_CB},
	{"[CB_FREE] %!%*evice %d: -%m%? (Total: %M", LOG_READER_COUNTED_FREE, TYPES_CB},
	{"[KERNEL_LOAD] %!%*evice %d: +%m%? (Total: %M", LOG_READER_COUNTED_ALLOC, TYPES_KERNEL},
	{"[KERNEL_UNLOAD] %!%*evice %d: -%m%? (Total: %M", LOG_READER_COUNTED_FREE, TYPES_KERNEL},
	{"Deallocation for ALREADY FREED buffer %!%a on device %d%e", LOG_READER_ALREADY_FREED},

	/* As the tracing guide quotes them; without the marks the words may be anybody's. */
	{"✓ Allocated %S bytes" ID ", device %d)", LOG_READER_ALLOC},
	{"✗ Freed %s bytes (FINAL)", LOG_READER_FREE, .lacks_address = true},
	{"⚠ Deallocation for unknown buffer %a%e", LOG_READER_UNKNOWN_FREE, .lacks_device = true},

	{"PID %p is dead, ", LOG_READER_DEAD},
	{"Removed %c buffers (%!%m) from PID %p", LOG_READER_REMOVED},
	{"Removed %c CBs (%!%m) from PID %p", LOG_READER_REMOVED, TYPES_CB},
	{"Removed %c kernels (%!%m) from PID %p", LOG_READER_REMOVED, TYPES_KERNEL},
	{"Allocation Server started", LOG_READER_STARTED},
	{"Invalid device_id ", LOG_READER_REJECTED},
	{"Invalid size ", LOG_READER_REJECTED},
	{"Invalid buffer_type ", LOG_READER_REJECTED},

	/* What ttmemd prints of its own accord. */
	{"Process %p exited but left %c buffers allocated:", LOG_READER_LEFT},
	{"Process %p (%*) exited but left %*allocated, as tt-metal's region tells",
	 LOG_READER_LEFT},
	{REPORT("double_free") ", %t, address %a", LOG_READER_ALREADY_FREED, .is_report = true},
	{REPORT("double_free") ", address %a", LOG_READER_ALREADY_FREED, .is_report = true},
	{REPORT("unknown_free") ", %t, address %a", LOG_READER_UNKNOWN_FREE, .is_report = true},
	{REPORT("unknown_free") ", address %a", LOG_READER_UNKNOWN_FREE, .is_report = true},
	{REPORT("size_change") ", %t, address %a", LOG_READER_RESIZED, .is_report = true},
	{"[Device %d] Buffer %!%a: %s bytes %t (age: ", LOG_READER_LEFT_BUFFER},

	{"ALLOC: pid=%!%p device=%d size=%s type=%y addr=%a timestamp=%n%$", LOG_READER_ALLOC,
	 .format = LOG_READER_DETAILED},
};

/* No events, but only such logs have them. */
static const char *const known_lines[] = {
	"=== TT-Metal Buffer Allocation Stack Traces ===",
	"Background cleanup thread started (checking every ",
	"Current Statistics:",
	"  Active allocations: ",
	"REMAINING ALLOCATED BUFFERS",
	"No buffers remaining - perfect cleanup!",
	"  History (allocs=",
	"DOUBLE-FREED BUFFERS",
	"Allocation Server stopped",
	"ttmemd %*: serving on ",
	"ttmemd: old clients on ",
	"ttmemd: http://",
	" more: see \"ttmem leaks --pid ",
	("⚠️  " REPORT("%*")),
	"wire: pid %p ",
};

static enum log_scan scan_lines(const struct log_line *some, size_t count, const char *line,
				bool anywhere, struct log_reader_event *event)
{
	enum log_scan outcome = LOG_SCAN_OTHER;

	for (size_t i = 0; i < count; i++) {
		const char *at = anywhere ? log_scan_find(line, some[i].pattern) : line;
		struct log_reader_event found = *event;
		enum log_scan r = at ? log_scan(at, some[i].pattern, &found) : LOG_SCAN_OTHER;

		if (r != LOG_SCAN_OTHER)
			outcome = r;
		if (r != LOG_SCAN_TAKEN)
			continue;
		found.kind = some[i].kind;
		found.format = some[i].format;
		found.type = some[i].type ? some[i].type : found.type;
		found.is_resize = some[i].is_resize;
		found.is_report = some[i].is_report;
		found.lacks_device = some[i].lacks_device;
		found.lacks_address = some[i].lacks_address;
		*event = found;
		break;
	}
	return outcome;
}

static enum log_scan scan_words(const char *at, struct log_reader_event *event)
{
	return scan_lines(event_lines, ARRAY_SIZE(event_lines), at, false, event);
}

/* Where the last mark of an event is in a line, with the bracket that follows it; NULL = nowhere. */
static const char *event_mark(const char *line)
{
	static const char *const marks[] = {"✓ [", "✗ [", "⚠ ["};
	const char *last = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		for (const char *at = strstr(line, marks[i]); at; at = strstr(at + 1, marks[i]))
			last = at > last ? at : last;
	}
	return last ? strchr(last, '[') : NULL;
}

/* Whether a line ends in the middle of the words that begin an event, or of what stands in its brackets. */
static bool event_is_cut(const char *at, const char *bracket)
{
	for (size_t i = 0; at && i < ARRAY_SIZE(event_lines); i++) {
		if (log_scan_is_cut(at, event_lines[i].pattern, 4))
			return true;
	}
	for (size_t i = 0; bracket && i < ARRAY_SIZE(lines); i++) {
		if (*lines[i].pattern == '[' && log_scan_is_cut(bracket, lines[i].pattern, 2))
			return true;
	}
	return bracket && log_scan_is_cut(bracket, "[PID ", 2);
}

/* @at: "[PID " in the line. */
static enum log_scan event_of_process(const char *line, const char *at,
				      struct log_reader_event *event)
{
	enum log_scan outcome = LOG_SCAN_OTHER;
	const char *words = strstr(at, "] ");

	if (log_scan(at, "[PID %p] ", event) == LOG_SCAN_TAKEN) {
		outcome = scan_words(words + 2, event);
		/* One line was printed into another: neither can be trusted. */
		if ((outcome == LOG_SCAN_TAKEN && strstr(words, "[PID ")) ||
		    (outcome == LOG_SCAN_OTHER && event_is_cut(words + 2, NULL)))
			return LOG_SCAN_DAMAGED;
	} else if (words && scan_words(words + 2, event) != LOG_SCAN_OTHER) {
		/* With words that only an event has: its pid is what is wrong. */
		return LOG_SCAN_DAMAGED;
	}
	return outcome == LOG_SCAN_OTHER && event_mark(line) ? LOG_SCAN_DAMAGED : outcome;
}

/* A report may be of several. */
static void event_count(const char *line, struct log_reader_event *event)
{
	const char *comma = strrchr(line, ',');

	if (event->is_report && (!comma || log_scan(comma, ", %c times", event) != LOG_SCAN_TAKEN))
		event->count = 1;
}

enum log_scan log_reader_event_line(const char *line, struct log_reader_event *ret_event)
{
	const char *at = strstr(line, "[PID ");
	enum log_scan outcome;

	outcome = at ? event_of_process(line, at, ret_event)
		     : scan_lines(lines, ARRAY_SIZE(lines), line, true, ret_event);
	event_count(line, ret_event);
	if (outcome == LOG_SCAN_OTHER &&
	    ((!at && event_is_cut(NULL, event_mark(line))) || strncmp(line, "ALLOC:", 6) == 0))
		return LOG_SCAN_DAMAGED;
	for (size_t i = 0; outcome == LOG_SCAN_OTHER && i < ARRAY_SIZE(known_lines); i++) {
		struct log_reader_event any;

		at = log_scan_find(line, known_lines[i]);
		if (!at || log_scan(at, known_lines[i], &any) != LOG_SCAN_TAKEN)
			continue;
		ret_event->kind = LOG_READER_KNOWN;
		outcome = LOG_SCAN_TAKEN;
	}
	return outcome;
}
