/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the log reader share: the state of a reading, and a cursor over a line. */

#include "legacy/analyze/log-reader.h"

enum log_reader_outcome {
	LOG_READER_OTHER = 0,   /* not part of our formats */
	LOG_READER_TAKEN = 1,   /* an event, filled in; or a part of one */
	LOG_READER_DAMAGED = 2, /* looks like an event, but is not valid */
};

/* The part of a record of several lines that has been seen. */
struct log_reader_record {
	bool is_open;
	bool has_device, has_address;
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
	bool has_pid; /* of the last header of a stack_trace log */
	uint32_t pid;
	bool is_cut; /* the line is longer than there is room for */
	size_t length;
	char line[LOG_READER_LINE_MAX + 1];
};

/* Moves on over a text or a number, or stays and says false. Lines end in NUL. */
bool log_reader_eat(const char **at, const char *text);
bool log_reader_eat_number(const char **at, uint64_t *ret_value); /* decimal */
bool log_reader_eat_small(const char **at, uint32_t *ret_value);  /* decimal, up to INT32_MAX */
bool log_reader_eat_id(const char **at, uint64_t *ret_value); /* decimal, or hexadecimal with 0x */
bool log_reader_eat_device(const char **at, uint32_t *ret_device);

/* Whether the line ends in the middle of @text, after @least bytes of it at least. */
bool log_reader_is_begun(const char *at, const char *text, size_t least);

/* The name of a type up to a blank or the end; one that is no name of ours is LOG_READER_NO_TYPE. */
bool log_reader_eat_type(const char **at, uint32_t *ret_type);

/* Whether a line that is no event shows what the file is, such as a server's statistics. */
bool log_reader_is_known_line(const char *line);

/* A line of the old server, or of the detailed log. Return: enum log_reader_outcome. */
int log_reader_server_line(const char *line, struct log_reader_event *ret_event);
/* "[CB_ALLOC] Device ...", "[KERNEL_LOAD] SORT kernel on Device ..."; what follows "Removed ". */
int log_reader_counters(const char *line, struct log_reader_event *ret_event);
int log_reader_removed(const char *at, struct log_reader_event *ret_event);
int log_reader_detailed_line(const char *line, struct log_reader_event *ret_event);

/*
 * A line of a record. LOG_READER_TAKEN: it belongs to one. If the line ends a record, that goes to
 * log_reader_put_record() first, and then the line is examined again.
 */
int log_reader_record_line(struct log_reader *log, const char *line, int *ret_outcome);

/* Ends the open record, if there is one. 0, or what the taker said. */
int log_reader_put_record(struct log_reader *log);

/* Counts an event and hands it on. */
int log_reader_put(struct log_reader *log, const struct log_reader_event *event);
