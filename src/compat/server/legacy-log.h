/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What "--log-events" prints: the old server's lines, exactly, for every event of an old client. They are
 * taken from the book's own log right after the event was written, so none is missed and each tells what
 * really happened. Lines are gathered and put out once in a turn.
 */

#include <stdbool.h>
#include <stdint.h>

struct legacy_log;
struct legacy_message;
struct log_writer;
struct legacy_lines_dead;
struct writer;

/* The types that the old server did not keep with the buffers. */

/* NULL: no memory. */
struct legacy_log *legacy_log_new(struct log_writer *log_writer, bool decimal_ids);
struct legacy_log *legacy_log_free(struct legacy_log *log);

void legacy_log_banner(struct legacy_log *log, const char *path);
void legacy_log_print(struct legacy_log *log, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void legacy_log_bad_type(struct legacy_log *log, const struct legacy_message *message);
void legacy_log_dead(struct legacy_log *log, const struct legacy_lines_dead *dead);

/* The number of the last event on a device, 0 = none. */
uint64_t legacy_log_head(const struct writer *writer, uint32_t device);

/* A line for each event since @before. */
void legacy_log_events(struct legacy_log *log, const struct writer *writer, uint32_t pid,
		       uint32_t device, uint64_t before);

/* A process has ended and no longer counts in the totals. NULL is fine. */
void legacy_log_subtract(struct legacy_log *log, uint32_t device, uint32_t type, uint64_t bytes);

/* Likewise one that was taken over counts from now on. */
void legacy_log_add(struct legacy_log *log, uint32_t device, uint32_t type, uint64_t bytes);

/* Puts out what was gathered. NULL is fine. */
void legacy_log_flush(struct legacy_log *log);

/* One line for a message as it came in, for "--trace-wire". */
void legacy_log_wire(struct log_writer *log_writer, uint32_t pid,
		     const struct legacy_message *message);
