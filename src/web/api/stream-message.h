/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The texts of the stream, each made once for all subscribers: plain, and compressed if one of them
 * accepts that. A text that cannot be made for lack of memory is NULL, and is not sent.
 */

#include <stdbool.h>
#include <stdint.h>

struct body;
struct body_purse;
struct snapshot;
struct web_incident;

struct stream_message {
	struct body *plain;
	struct body *packed; /* a piece of a gzip file */
};

#define STREAM_MESSAGE_NULL     \
	(struct stream_message) \
	{                       \
		NULL, NULL      \
	}

void stream_message_deinit(struct stream_message *message);

/* Borrowed; NULL = not made. */
struct body *stream_message_form(const struct stream_message *message, bool packed);

/* Adds the compressed form: with zlib, which takes time, or just in its format. */
void stream_message_pack(struct stream_message *message);
void stream_message_frame(struct stream_message *message);

/* "event: totals" with the whole document. */
void stream_message_totals(struct stream_message *message, struct body_purse *purse,
			   const struct snapshot *snapshot);

/*
 * "event: changes" between two of those. @after_ns: the time of the earlier one, so that a client
 * can check that it has that.
 */
void stream_message_changes(struct stream_message *message, const struct body *was,
			    const struct body *now, uint64_t after_ns);

/* "event: incident"; without @details only kind, pid and device. */
void stream_message_incident(struct stream_message *message, struct body_purse *purse,
			     const struct web_incident *incident, bool details);

/* "event: stored": the lists of incidents and leaks have changed. */
void stream_message_stored(struct stream_message *message, struct body_purse *purse,
			   uint64_t records);

/* Only to show that the connection is alive. */
void stream_message_alive(struct stream_message *message, struct body_purse *purse);
