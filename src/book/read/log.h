/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading a shard's log while its owner goes on writing: events are copied out, and counted as read
 * only if the ring had not come round to them by then.
 */

#include <stdint.h>

#include "book/read/reader.h"

/* Where a shard's log lies; from the shard's page, checked. */
struct log_place {
	uint32_t device;
	uint32_t events; /* a power of two */
	uint64_t offset;
};

/* Events first .. first + count - 1, without gap. */
struct log {
	struct log_place place;
	uint64_t first;
	uint64_t count;
	uint64_t capacity;
	struct book_event *events;
};

/* No owner ever gets this far; sums with anything larger could overflow. */
#define LOG_NUMBER_MAX (UINT64_C(1) << 62)

/* More than any owner can write while a snapshot is taken; what is more is not waited for. */
#define LOG_EVENTS_MAX (UINT64_C(1) << 22)

/* -EBADMSG if the page names no log that could be the shard's. */
int log_find(struct poller *reader, const struct book_shard *page, uint32_t device,
	     struct log_place *ret_place);

/* -EBADMSG beyond LOG_NUMBER_MAX. */
int log_head(struct poller *reader, uint32_t device, uint64_t *ret_head);

/* Start (again) before event @first; keeps the memory. */
void log_start(struct log *log, const struct log_place *place, uint64_t first);

/*
 * Copy all events published since; -EOVERFLOW if the ring has wrapped over one of them, -EBADMSG if the
 * head went back, -ENOBUFS beyond LOG_EVENTS_MAX.
 */
int log_drain(struct log *log, struct poller *reader);

/* Copy events from..to (both included) as they lie, for an owner that no longer writes. */
int log_read(const struct log_place *place, struct poller *reader, uint64_t from, uint64_t to,
	     struct book_event *ret_events);

void log_deinit(struct log *log);
