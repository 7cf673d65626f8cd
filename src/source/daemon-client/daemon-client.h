/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asking ttmemd. It knows every process of the machine: those that the asker may see come with their books,
 * which are then read like any other; of the rest there are totals. That is asked in its own protocol
 * (wire/native.h), which can carry descriptors. What it knows of the past and of itself are documents,
 * which come over HTTP on the same socket.
 *
 * Nothing depends on it. No daemon, one that hangs, or one that is run by somebody who is not believed
 * is an outcome, never a failure, and costs DAEMON_CLIENT_PATIENCE_NS at most, not again for a while. Believed
 * are root, ourselves and the user "ttmem"; and whoever is at the place that TTMEM_SOCKET names, because
 * then somebody has decided.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/native.h"

struct daemon_client;
struct scan;
struct snapshot;
struct snapshot_request;

#define DAEMON_CLIENT_PATIENCE_NS UINT64_C(2000000000) /* for a packet */
#define DAEMON_CLIENT_PAST_PATIENCE_NS \
	UINT64_C(15000000000) /* for one of a document, which takes longer */
#define DAEMON_CLIENT_ANSWER_NS UINT64_C(90000000000) /* for a whole answer */
#define DAEMON_CLIENT_PAUSE_NS UINT64_C(10000000000)  /* before one that hung is asked again */
#define DAEMON_CLIENT_TEXT_MAX (UINT64_C(128) << 20)
#define DAEMON_CLIENT_OTHERS_MAX 65536u /* processes without books */
#define DAEMON_CLIENT_PARTS_MAX 262144u

enum daemon_client_outcome {
	DAEMON_CLIENT_NONE = 1,     /* no daemon, or none is wanted */
	DAEMON_CLIENT_SILENT = 2,   /* does not answer in time */
	DAEMON_CLIENT_STRANGER = 3, /* somebody else's */
	DAEMON_CLIENT_REFUSED =
		4, /* it does not want to; daemon_client_reason() tells why, if it said so */
	DAEMON_CLIENT_GARBAGE = 5, /* what it says cannot be understood */
	DAEMON_CLIENT_OLDER = 6,   /* it knows nothing of HTTP, or not of this path */
};

/* Nothing is connected yet. 0 or -ENOMEM. */
int daemon_client_new(struct daemon_client **ret_remote);
struct daemon_client *daemon_client_free(struct daemon_client *remote);

/*
 * The document at @target, e.g. "/api/v1/leaks?limit=100" (docs/http.md), with a NUL behind it that is not
 * counted. 0, a daemon_client_outcome, or a negative errno.
 */
int daemon_client_get(struct daemon_client *remote, const char *target, char **ret_text,
		      size_t *ret_length);

/* A document that came whole is not what was asked for. Return: DAEMON_CLIENT_GARBAGE, which is then the outcome. */
int daemon_client_reject(struct daemon_client *remote);

/* Of the last question: 0, or why it was not answered. 0 before the first. */
int daemon_client_outcome(const struct daemon_client *remote);

/* For people, of the last outcome; never NULL. */
const char *daemon_client_reason(const struct daemon_client *remote);

/* The socket that was tried last; "" if none. */
const char *daemon_client_path(const struct daemon_client *remote);

/*
 * After a pass of @scan: hands it the books that it could not find itself, and remembers the totals of
 * the rest. 0, a daemon_client_outcome, or a negative errno.
 */
int daemon_client_refresh(struct daemon_client *remote, struct scan *scan);

/* Adds those of whom only totals are known, and as notes what went wrong. 0 or -ENOMEM. */
int daemon_client_collect(struct daemon_client *remote, const struct snapshot_request *request,
			  struct snapshot *snapshot);

/* Only the notes, for who needs no totals. */
void daemon_client_note(const struct daemon_client *remote, const struct snapshot_request *request,
			struct snapshot *snapshot);

/*
 * Adds what the daemon can read of tt-metal's regions, as claims. 0, a daemon_client_outcome, or a negative errno; also from
 * a daemon that may not read all of them either.
 */
int daemon_client_regions(struct daemon_client *remote, struct snapshot *snapshot);

/* How many there are. */
size_t daemon_client_count(const struct daemon_client *remote);

/* Whether this book is among them. */
bool daemon_client_has(const struct daemon_client *remote, dev_t device, ino_t inode);

/* For tests and fuzzing: one packet of a roster as daemon_client_refresh() takes it; the fd in any case. */
int daemon_client_take_consume(struct daemon_client *remote, struct scan *scan, const void *payload,
			       size_t length, int fd);
