/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What "--log-events" prints: exactly the old server's lines, for every event of an old client.
 * They are made from the book's own log right after the event was written, so none is missed and
 * each shows what really happened. Lines are buffered and written once per turn.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct legacy_history;
struct legacy_log;
struct legacy_message;
struct log_writer;
struct proc_facts;
struct seed_lines_dead;
struct writer;

struct legacy_log_config {
	struct log_writer *log_writer;
	struct log_writer *errors; /* where refused messages are reported; NULL = there as well */
	struct legacy_history *history; /* NULL = lines without the history of a buffer */
	bool decimal_ids;
};

/* NULL: no memory. */
struct legacy_log *legacy_log_new(const struct legacy_log_config *config);
struct legacy_log *legacy_log_free(struct legacy_log *log);

void legacy_log_banner(struct legacy_log *log, const char *path);
void legacy_log_bad_device(struct legacy_log *log, const struct legacy_message *message);
void legacy_log_bad_size(struct legacy_log *log, const struct legacy_message *message);
void legacy_log_bad_type(struct legacy_log *log, const struct legacy_message *message);
void legacy_log_dead(struct legacy_log *log, const struct seed_lines_dead *dead);

/* Puts a long text out in whole lines, so that a slow reader loses some of them and not all. */
void legacy_log_pieces(struct log_writer *log_writer, const char *text, size_t length);

/* The sequence number of the last event on a device, 0 = none. */
uint64_t legacy_log_head(const struct writer *writer, uint32_t device);

/* A line for each event since @before. */
void legacy_log_events(struct legacy_log *log, const struct writer *writer,
		       const struct proc_facts *owner, uint32_t device, uint64_t before);

/* A process has exited and no longer counts in the totals. @log may be NULL. */
void legacy_log_subtract(struct legacy_log *log, uint32_t device, uint32_t type, uint64_t bytes);

/* A process that was taken over counts from now on. @log may be NULL. */
void legacy_log_add(struct legacy_log *log, uint32_t device, uint32_t type, uint64_t bytes);

/* Writes the buffered lines. @log may be NULL. */
void legacy_log_flush(struct legacy_log *log);

/* One line for a received message, for "--trace-wire". */
void legacy_log_wire(struct log_writer *log_writer, uint32_t pid,
		     const struct legacy_message *message);
