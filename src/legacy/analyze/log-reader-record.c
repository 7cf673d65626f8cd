/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records of several lines: of TT_BUFFER_DEBUG_LOG and of TT_ALLOC_STACK_TRACE. Both are a title and then
 * "Field: value"; a record goes on as long as its lines do, and ends with whatever is none of them.
 */

#include <string.h>

#include "base/bits.h"
#include "legacy/analyze/log-reader-private.h"

enum {
	RECORD_DEVICE = 1,
	RECORD_ADDRESS = 2,
	RECORD_SIZE = 4,
	RECORD_HOOKED = 8,
	RECORD_STACK = 16,
};

static const struct {
	const char *pattern;
	uint8_t kind, format;
} record_titles[] = {
	{"BUFFER ALLOCATED%!%$", LOG_READER_ALLOC, LOG_READER_BUFFER_DEBUG},
	{"BUFFER DEALLOCATED%!%$", LOG_READER_FREE, LOG_READER_BUFFER_DEBUG},
	{"BUFFER DESTRUCTOR ", LOG_READER_DESTRUCTOR, LOG_READER_BUFFER_DEBUG},
	{"Allocation #%!%n%$", LOG_READER_ALLOC, LOG_READER_STACK_TRACE},
	{"Deallocation%$", LOG_READER_FREE, LOG_READER_STACK_TRACE},
};

static const struct {
	const char *pattern;
	unsigned int has;
} record_fields[] = {
	{"Device: %!%d%$", RECORD_DEVICE},
	{"Address: %!%a%e", RECORD_ADDRESS},
	{"Size: unknown"},
	{"Size: %!%s bytes", RECORD_SIZE},
	{"Type: %!%t%$"},
	{"Hooked: yes%$", RECORD_HOOKED},
	{"Hooked: "},
	{"Call Stack:%$", RECORD_STACK},
	{"Stack trace:%$", RECORD_STACK},
	{"Time: "},
	{"Buffer*: "},
	{"Owns Data: "},
};

void log_reader_put_record(struct log_reader *log)
{
	struct log_reader_record *record = &log->record;
	struct log_reader_event *event = &record->event;
	unsigned int needs = RECORD_DEVICE | RECORD_ADDRESS;

	if (!record->is_open)
		return;
	record->is_open = false;
	if (event->kind == LOG_READER_ALLOC)
		needs |= RECORD_SIZE;
	if ((record->has & needs) != needs) {
		log->counts.damaged++;
		return;
	}
	if (event->format == LOG_READER_STACK_TRACE) {
		event->has_pid = log->header.has_pid;
		event->pid = log->header.pid;
	}
	event->is_hooked = record->has & RECORD_HOOKED;
	event->stack = record->stack_length > 0 ? record->stack : NULL;
	event->stack_length = record->stack_length;
	log_reader_put(log, event);
}

/* Opens a record if @line is the title of one. */
static enum log_scan record_title(struct log_reader *log, const char *line)
{
	struct log_reader_record *record = &log->record;
	struct log_reader_event header = {.line = 0};

	for (size_t i = 0; i < ARRAY_SIZE(record_titles); i++) {
		const char *pattern = record_titles[i].pattern;
		enum log_scan r = log_scan(line, pattern, &header);

		if (r == LOG_SCAN_DAMAGED || log_scan_is_cut(line, pattern, sizeof("BUFFER A") - 1))
			return LOG_SCAN_DAMAGED;
		if (r != LOG_SCAN_TAKEN)
			continue;
		record->is_open = true;
		record->in_stack = false;
		record->has = 0;
		record->stack_length = 0;
		record->event = (struct log_reader_event){
			.format = record_titles[i].format,
			.kind = record_titles[i].kind,
			.type = LOG_READER_NO_TYPE,
			.line = log->counts.lines,
		};
		return r;
	}
	/* Below the header of a log of stack traces. */
	if (log_scan(line, "PID: %p%$", &header) != LOG_SCAN_TAKEN)
		return LOG_SCAN_OTHER;
	log->header = header;
	return LOG_SCAN_TAKEN;
}

/* One more frame; what does not fit is left out. */
static void record_frame(struct log_reader_record *record, const char *line)
{
	size_t length = strlen(line);
	size_t comma = record->stack_length > 0;

	if (record->stack_length + comma + length > sizeof(record->stack))
		return;
	if (comma)
		record->stack[record->stack_length++] = '\n';
	memcpy(record->stack + record->stack_length, line, length);
	record->stack_length += length;
}

/* A line below the title. */
static enum log_scan record_line(struct log_reader_record *record, const char *line)
{
	enum log_scan r = LOG_SCAN_OTHER;

	if (record->in_stack && line[0] == ' ' && line[1] == ' ') {
		record_frame(record, line + strspn(line, " "));
		return LOG_SCAN_TAKEN;
	}
	for (size_t i = 0; r == LOG_SCAN_OTHER && i < ARRAY_SIZE(record_fields); i++) {
		r = log_scan(line, record_fields[i].pattern, &record->event);
		if (r == LOG_SCAN_TAKEN)
			record->has |= record_fields[i].has;
	}
	record->in_stack |= record->has & RECORD_STACK;
	return r;
}

enum log_scan log_reader_record_line(struct log_reader *log, const char *line)
{
	struct log_reader_record *record = &log->record;
	enum log_scan r = record->is_open ? record_line(record, line) : LOG_SCAN_OTHER;

	if (r == LOG_SCAN_OTHER) {
		log_reader_put_record(log);
		return record_title(log, line);
	}
	if (r == LOG_SCAN_DAMAGED || (log->is_cut && !record->in_stack)) {
		/* The whole record is damaged, and is counted here, once. */
		record->is_open = false;
		log->counts.damaged++;
	}
	return LOG_SCAN_TAKEN;
}
