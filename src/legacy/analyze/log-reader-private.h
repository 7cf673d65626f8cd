/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the log reader share: the state of a reading. */

#include "legacy/analyze/log-scan.h"

/* The part of a record of several lines that has been seen. */
struct log_reader_record {
	bool is_open;
	unsigned int has; /* bits: fields without which it is damaged */
	bool in_stack;
	struct log_reader_event event;
	size_t stack_length;
	char stack[LOG_READER_STACK_MAX];
};

struct log_reader {
	log_reader_take take;
	void *context;
	struct log_reader_counts counts;
	struct log_reader_record record;
	struct log_reader_event header; /* of a stack_trace log: its pid */
	struct log_reader_event left;   /* the last line of a process that left buffers */
	bool is_cut;                    /* the line is longer than there is room for */
	size_t length;
	char line[LOG_READER_LINE_MAX + 1];
};

/* An event of one line: of a server, or of the detailed log. */
enum log_scan log_reader_event_line(const char *line, struct log_reader_event *ret_event);

/*
 * A line of a record. LOG_SCAN_TAKEN: it belongs to one. If the line ends a record, that is handed on first, and
 * then the line is examined again.
 */
enum log_scan log_reader_record_line(struct log_reader *log, const char *line);

/* Ends the open record, if there is one. */
void log_reader_put_record(struct log_reader *log);

/* Counts an event and hands it on. */
void log_reader_put(struct log_reader *log, const struct log_reader_event *event);
