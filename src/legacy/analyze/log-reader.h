/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading the logs of the old system, as a stream of bytes that becomes a stream of events. Four formats
 * are told apart by their content, line by line, so that a file may mix them with each other and with
 * whatever a program prints besides:
 *
 *	server		the allocation server's output, of all its versions, and that of ttmemd
 *	buffer_debug	TT_BUFFER_DEBUG_LOG: a record of several lines for each event, without a pid
 *	detailed	TT_ALLOC_TRACKING_DETAILED: a line for each allocation, and none for frees
 *	stack_trace	TT_ALLOC_STACK_TRACE: a record of several lines, after a header with the pid
 *
 * What looks like an event and cannot be understood is counted as damaged and skipped. Nothing grows with
 * the input: a line is cut at LOG_READER_LINE_MAX, a stack at LOG_READER_STACK_MAX.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"

#define LOG_READER_LINE_MAX 8192u
#define LOG_READER_STACK_MAX 65536u /* bytes of a call stack: 15 frames of C++ at their longest */

#define LOG_READER_NO_TYPE BOOK_TYPES /* the log does not say which */

enum log_reader_format {
	LOG_READER_SERVER = 0,
	LOG_READER_BUFFER_DEBUG = 1,
	LOG_READER_DETAILED = 2,
	LOG_READER_STACK_TRACE = 3,
	LOG_READER_FORMATS = 4,
};

enum log_reader_kind {
	LOG_READER_KNOWN,      /* no event: what the file is can be seen by it */
	LOG_READER_DESTRUCTOR, /* a note that a free will follow */
	LOG_READER_REJECTED,   /* the server refused a message */
	LOG_READER_STARTED,    /* the server has begun, and knows nothing yet */
	LOG_READER_DEAD,       /* a process has ended, what it had is removed */
	LOG_READER_REMOVED,    /* how much that was */
	LOG_READER_LEFT, /* a process has ended; what it left follows, as far as it is listed */
	LOG_READER_LEFT_BUFFER, /* listed there */

	/* What happens on a device: */
	LOG_READER_ALLOC,
	LOG_READER_FREE,
	LOG_READER_UNKNOWN_FREE,  /* the server had no such buffer */
	LOG_READER_ALREADY_FREED, /* it had one, and remembers its free */
	LOG_READER_RESIZED,       /* live, and allocated again with another size */
	LOG_READER_COUNTED_ALLOC, /* a circular buffer or kernel: no address, no pid, a rounded size */
	LOG_READER_COUNTED_FREE,
};

struct log_reader_event {
	enum log_reader_kind kind;
	enum log_reader_format format;
	bool has_pid;
	bool has_size;
	bool is_hooked; /* no memory behind it */
	bool is_resize; /* a free that is the first half of a size change */
	bool is_report; /* of ttmemd, which prints the event itself elsewhere, or nowhere */
	bool has_total;
	bool lacks_device, lacks_address; /* a line that somebody has shortened */
	uint32_t pid;
	uint32_t device;
	uint32_t type; /* or LOG_READER_NO_TYPE */
	uint32_t
		refs; /* that the server has afterwards; 0 = the log does not say, or none are left */
	uint64_t address;
	uint64_t size;
	uint64_t count;         /* of LOG_READER_REMOVED, LOG_READER_LEFT and reports */
	uint64_t total;         /* bytes of that type on the device afterwards */
	uint64_t total_rounded; /* that may be so much more or less */
	uint64_t line;          /* where it begins, from 1 on */
	const char *stack; /* lines, without the blanks before them; lives as long as the call */
	size_t stack_length;
};

struct log_reader_counts {
	uint64_t bytes;
	uint64_t lines;
	uint64_t events;
	uint64_t damaged;
	uint64_t other;   /* lines that are no part of anything known; empty ones are not counted */
	uint64_t blind;   /* of the events: of formats that do not record frees */
	uint32_t formats; /* bits: those of the events */
	bool lacks_frees;
	bool is_known; /* an event was seen, or another line that only such logs have */
};

typedef void (*log_reader_take)(void *context, const struct log_reader_event *event);

struct log_reader;

struct log_reader *log_reader_new(log_reader_take take, void *context);
struct log_reader *log_reader_free(struct log_reader *log);

/* The next bytes, cut wherever. */
void log_reader_feed(struct log_reader *log, const char *bytes, size_t length);

/* There are no more. */
void log_reader_finish(struct log_reader *log);

const struct log_reader_counts *log_reader_counts(const struct log_reader *log);

/* Whether logs of that format record frees; without them leaks cannot be determined. */
bool log_reader_format_has_frees(enum log_reader_format format);

/* "server", "buffer_debug", "detailed", "stack_trace"; NULL: there is no such format. */
const char *log_reader_format_name(uint32_t format);
