/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading the logs of the old system, as a stream of bytes that becomes a stream of events. Four formats
 * are told apart by their content, line by line, so that a file may mix them with each other and with
 * whatever a program prints besides:
 *
 *	server		the allocation server's output, of all its versions and of "ttmemd --log-events"
 *	buffer_debug	TT_BUFFER_DEBUG_LOG: a record of several lines for each event, without a pid
 *	detailed	TT_ALLOC_TRACKING_DETAILED: a line for each allocation, and none for frees
 *	stack_trace	TT_ALLOC_STACK_TRACE: a record of several lines, after a header with the pid
 *
 * What looks like an event and cannot be understood is counted as damaged and skipped. Nothing grows with
 * the input: a line is cut at LOGREAD_LINE_MAX, a stack at LOGREAD_STACK_MAX.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"

#define LOGREAD_LINE_MAX 8192u
#define LOGREAD_STACK_MAX 65536u /* bytes of a call stack: 15 frames of C++ at their longest */

#define LOGREAD_NO_TYPE BOOK_TYPES /* the log does not say which */

enum logread_format {
	LOGREAD_SERVER = 0,
	LOGREAD_BUFFER_DEBUG = 1,
	LOGREAD_DETAILED = 2,
	LOGREAD_STACK_TRACE = 3,
	LOGREAD_FORMATS = 4,
};

enum logread_kind {
	LOGREAD_ALLOC,
	LOGREAD_FREE,
	LOGREAD_UNKNOWN_FREE,  /* the server had no such buffer */
	LOGREAD_ALREADY_FREED, /* it had one, and remembers its free */
	LOGREAD_RESIZED,       /* live, and allocated again with another size */
	LOGREAD_COUNTED_ALLOC, /* a circular buffer or kernel: no address, no pid, a rounded size */
	LOGREAD_COUNTED_FREE,
	LOGREAD_DEAD,       /* a process has ended, what it had is removed */
	LOGREAD_REMOVED,    /* how much that was */
	LOGREAD_REJECTED,   /* the server refused a message */
	LOGREAD_STARTED,    /* the server has begun, and knows nothing yet */
	LOGREAD_DESTRUCTOR, /* a note that a free will follow */
};

struct logread_event {
	enum logread_kind kind;
	enum logread_format format;
	bool has_pid;
	bool has_size;
	bool is_hooked; /* no memory behind it */
	uint32_t pid;
	uint32_t device;
	uint32_t type; /* or LOGREAD_NO_TYPE */
	uint32_t
		refs; /* that the server has afterwards; 0 = the log does not say, or none are left */
	uint64_t address;
	uint64_t size;
	uint64_t count;    /* of LOGREAD_REMOVED */
	uint64_t line;     /* where it begins, from 1 on */
	const char *stack; /* lines, without the blanks before them; lives as long as the call */
	size_t stack_length;
};

struct logread_counts {
	uint64_t bytes;
	uint64_t lines;
	uint64_t events;
	uint64_t damaged;
	uint64_t other; /* lines that are no part of anything known; empty ones are not counted */
	uint64_t of_format[LOGREAD_FORMATS]; /* events */
	bool is_known; /* an event was seen, or another line that only such logs have */
};

/* 0, or a negative errno that ends the reading and is passed on. */
typedef int (*logread_take)(void *context, const struct logread_event *event);

struct logread;

/* 0 or -ENOMEM. */
int logread_new(struct logread **ret_log, logread_take take, void *context);
struct logread *logread_free(struct logread *log);

/* The next bytes, cut wherever. 0, or what the taker said. */
int logread_feed(struct logread *log, const char *bytes, size_t length);

/* There are no more. */
int logread_finish(struct logread *log);

const struct logread_counts *logread_counts(const struct logread *log);

/* Whether logs of that format tell frees; without them nobody knows what was left. */
bool logread_format_has_frees(enum logread_format format);

/* "server", "buffer_debug", "detailed", "stack_trace". */
const char *logread_format_name(enum logread_format format);
