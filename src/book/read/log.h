/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading a shard's log while its owner keeps writing: events are copied out, and count as read
 * only if the ring had not wrapped over them by then.
 */

#include <stdint.h>

#include "book/read/reader.h"

/* Where a shard's log lies; taken from the shard's page and checked. */
struct log_place {
	uint32_t device;
	uint32_t events; /* a power of two */
	uint64_t offset;
};

/* Events first .. first + count - 1, without gaps. */
struct log {
	struct log_place place;
	uint64_t first;
	uint64_t count;
	uint64_t capacity;
	struct book_event *events;
};

/* No owner ever gets this far; sums with larger numbers could overflow. */
#define LOG_NUMBER_MAX (UINT64_C(1) << 62)

/* More than any owner can write while a snapshot is taken; beyond that, reading stops. */
#define LOG_EVENTS_MAX (UINT64_C(1) << 22)

/* -EBADMSG if the page names no log that could belong to the shard. */
int log_find(struct reader *reader, const struct book_shard *page, uint32_t device,
	     struct log_place *ret_place);

/* -EBADMSG if the head is beyond LOG_NUMBER_MAX. */
int log_head(struct reader *reader, uint32_t device, uint64_t *ret_head);

/* Start (again) before event @first; keeps the buffer. */
void log_start(struct log *log, const struct log_place *place, uint64_t first);

/*
 * Copy all events published since; -EOVERFLOW if the ring has wrapped over one of them, -EBADMSG if
 * the head went backwards, -ENOBUFS beyond LOG_EVENTS_MAX.
 */
int log_drain(struct log *log, struct reader *reader);

/*
 * The same for at most @max of them: a long ring is overtaken less easily in parts. @ret_left: how many
 * had been published beyond those.
 */
int log_drain_part(struct log *log, struct reader *reader, uint64_t max, uint64_t *ret_left);

/* Copy events from..to (both included) as they are, for an owner that no longer writes. */
int log_read(const struct log_place *place, struct reader *reader, uint64_t from, uint64_t to,
	     struct book_event *ret_events);

void log_deinit(struct log *log);
