/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records of several lines: of TT_BUFFER_DEBUG_LOG and of TT_ALLOC_STACK_TRACE. Both are a title and then
 * "Field: value"; a record goes on as long as its lines do, and ends with whatever is none of them.
 */

#include <string.h>

#include "base/bits.h"
#include "legacy/analyze/log-reader-private.h"

int log_reader_put_record(struct log_reader *log)
{
	struct log_reader_record *record = &log->record;
	struct log_reader_event *event = &record->event;
	bool needs_size = event->kind == LOG_READER_ALLOC;

	if (!record->is_open)
		return 0;
	record->is_open = false;
	if (!record->has_device || !record->has_address || (needs_size && !event->has_size)) {
		log->counts.damaged++;
		return 0;
	}
	if (event->format == LOG_READER_STACK_TRACE) {
		event->has_pid = log->has_pid;
		event->pid = log->pid;
	}
	event->stack = record->stack_length > 0 ? record->stack : NULL;
	event->stack_length = record->stack_length;
	return log_reader_put(log, event);
}

static void record_open(struct log_reader *log, enum log_reader_format format,
			enum log_reader_kind kind)
{
	struct log_reader_record *record = &log->record;

	record->is_open = true;
	record->has_device = record->has_address = false;
	record->in_stack = false;
	record->stack_length = 0;
	record->event = (struct log_reader_event){
		.format = format,
		.kind = kind,
		.type = LOG_READER_NO_TYPE,
		.line = log->counts.lines,
	};
}

/* Opens a record if @line is the title of one. */
static bool record_title(struct log_reader *log, const char *line)
{
	uint32_t number;

	if (strcmp(line, "BUFFER ALLOCATED") == 0)
		record_open(log, LOG_READER_BUFFER_DEBUG, LOG_READER_ALLOC);
	else if (strcmp(line, "BUFFER DEALLOCATED") == 0)
		record_open(log, LOG_READER_BUFFER_DEBUG, LOG_READER_FREE);
	else if (strncmp(line, "BUFFER DESTRUCTOR ", 18) == 0)
		record_open(log, LOG_READER_BUFFER_DEBUG, LOG_READER_DESTRUCTOR);
	else if (strcmp(line, "Deallocation") == 0)
		record_open(log, LOG_READER_STACK_TRACE, LOG_READER_FREE);
	else if (log_reader_eat(&line, "Allocation #") && log_reader_eat_small(&line, &number) &&
		 !*line)
		record_open(log, LOG_READER_STACK_TRACE, LOG_READER_ALLOC);
	else
		return false;
	return true;
}

/* Whether a line that is no title begins as one does. */
static bool record_is_title_damaged(const char *line)
{
	static const char *const titles[] = {
		"BUFFER ALLOCATED",
		"BUFFER DEALLOCATED",
		"BUFFER DESTRUCTOR ",
		"Allocation #",
	};

	for (size_t i = 0; i < ARRAY_SIZE(titles); i++) {
		if (strncmp(line, titles[i], strlen(titles[i])) == 0 ||
		    log_reader_is_begun(line, titles[i], sizeof("BUFFER A") - 1))
			return true;
	}
	return false;
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

static bool record_type(const char *at, struct log_reader_event *event)
{
	uint32_t number;

	/* By number, as the message has it, or by name. */
	if (log_reader_eat_small(&at, &number)) {
		event->type = number < BOOK_TYPES ? number : LOG_READER_NO_TYPE;
		return *at == '\0';
	}
	return log_reader_eat_type(&at, &event->type) && *at == '\0';
}

/* "n bytes (k KB)"; "unknown" is as good as nothing. */
static bool record_size(const char *at, struct log_reader_event *event)
{
	if (strncmp(at, "unknown", 7) == 0)
		return true;
	event->has_size = true;
	return log_reader_eat_number(&at, &event->size) && log_reader_eat(&at, " bytes");
}

/* A field of the open record. Return: enum log_reader_outcome; OTHER is a line that is no field. */
static int record_field(struct log_reader_record *record, const char *line)
{
	struct log_reader_event *event = &record->event;
	bool good = true;

	if (log_reader_eat(&line, "Device: ")) {
		good = log_reader_eat_device(&line, &event->device) && !*line;
		record->has_device = good;
	} else if (log_reader_eat(&line, "Address: ")) {
		good = log_reader_eat_id(&line, &event->address) && (*line == '\0' || *line == ' ');
		record->has_address = good;
	} else if (log_reader_eat(&line, "Size: "))
		good = record_size(line, event);
	else if (log_reader_eat(&line, "Type: "))
		good = record_type(line, event);
	else if (strcmp(line, "Hooked: yes") == 0)
		event->is_hooked = true;
	else if (strcmp(line, "Call Stack:") == 0 || strcmp(line, "Stack trace:") == 0)
		record->in_stack = true;
	else if (strncmp(line, "Time: ", 6) != 0 && strncmp(line, "Buffer*: ", 9) != 0 &&
		 strncmp(line, "Owns Data: ", 11) != 0 && strncmp(line, "Hooked: ", 8) != 0)
		return LOG_READER_OTHER;
	return good ? LOG_READER_TAKEN : LOG_READER_DAMAGED;
}

/* "PID: n" below the header of a stack trace log. */
static bool record_header(struct log_reader *log, const char *line)
{
	uint32_t pid;

	if (!log_reader_eat(&line, "PID: ") || !log_reader_eat_small(&line, &pid) || *line)
		return false;
	log->has_pid = true;
	log->pid = pid;
	return true;
}

int log_reader_record_line(struct log_reader *log, const char *line, int *ret_outcome)
{
	struct log_reader_record *record = &log->record;
	int outcome = LOG_READER_OTHER, r;

	if (record->is_open) {
		if (record->in_stack && line[0] == ' ' && line[1] == ' ') {
			record_frame(record, line + strspn(line, " "));
			outcome = LOG_READER_TAKEN;
		} else
			outcome = record_field(record, line);
		if (outcome == LOG_READER_TAKEN && log->is_cut && !record->in_stack)
			outcome = LOG_READER_DAMAGED;
		if (outcome == LOG_READER_DAMAGED) {
			/* The whole record is damaged, and is counted here, once. */
			record->is_open = false;
			log->counts.damaged++;
			outcome = LOG_READER_TAKEN;
		}
		if (outcome == LOG_READER_TAKEN) {
			*ret_outcome = outcome;
			return 0;
		}
		r = log_reader_put_record(log);
		if (r < 0)
			return r;
	}
	if (record_title(log, line) || record_header(log, line))
		outcome = LOG_READER_TAKEN;
	else if (record_is_title_damaged(line))
		outcome = LOG_READER_DAMAGED;
	*ret_outcome = outcome;
	return 0;
}
