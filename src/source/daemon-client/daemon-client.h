/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asking ttmemd. It knows every process of the machine: those that the asker may see come with their books,
 * which are then read like any other; of the rest there are totals. That is asked in its own protocol
 * (wire/native.h), which can carry descriptors. What it knows of the past and of itself are documents,
 * which come over HTTP on the same socket.
 *
 * Nothing depends on it. No daemon, one that hangs, or one that is run by somebody who is not believed
 * is an outcome, never a failure, and costs REMOTE_PATIENCE_NS at most, not again for a while. Believed
 * are root, ourselves and the user "ttmem"; and whoever is at the place that TTMEM_SOCKET names, because
 * then somebody has decided.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/native.h"

struct remote;
struct scan;
struct snapshot;
struct snapshot_request;

#define REMOTE_PATIENCE_NS UINT64_C(2000000000) /* for a packet */
#define REMOTE_PAST_PATIENCE_NS \
	UINT64_C(15000000000)                  /* for one of a document, which takes longer */
#define REMOTE_ANSWER_NS UINT64_C(90000000000) /* for a whole answer */
#define REMOTE_PAUSE_NS UINT64_C(10000000000)  /* before one that hung is asked again */
#define REMOTE_TEXT_MAX (UINT64_C(128) << 20)
#define REMOTE_OTHERS_MAX 65536u /* processes without books */
#define REMOTE_PARTS_MAX 262144u

enum remote_outcome {
	REMOTE_NONE = 1,     /* no daemon, or none is wanted */
	REMOTE_SILENT = 2,   /* does not answer in time */
	REMOTE_STRANGER = 3, /* somebody else's */
	REMOTE_REFUSED = 4,  /* it does not want to; remote_reason() tells why, if it said so */
	REMOTE_GARBAGE = 5,  /* what it says cannot be understood */
	REMOTE_OLDER = 6,    /* it knows nothing of HTTP, or not of this path */
};

/* Nothing is connected yet. 0 or -ENOMEM. */
int remote_new(struct remote **ret_remote);
struct remote *remote_free(struct remote *remote);

/*
 * The document at @target, e.g. "/api/v1/leaks?limit=100" (docs/http.md), with a NUL behind it that is not
 * counted. 0, a remote_outcome, or a negative errno.
 */
int remote_get(struct remote *remote, const char *target, char **ret_text, size_t *ret_length);

/* A document that came whole is not what was asked for. Return: REMOTE_GARBAGE, which is then the outcome. */
int remote_reject(struct remote *remote);

/* Of the last question: 0, or why it was not answered. 0 before the first. */
int remote_outcome(const struct remote *remote);

/* For people, of the last outcome; never NULL. */
const char *remote_reason(const struct remote *remote);

/* The socket that was tried last; "" if none. */
const char *remote_path(const struct remote *remote);

/*
 * After a pass of @scan: hands it the books that it could not find itself, and remembers the totals of
 * the rest. 0, a remote_outcome, or a negative errno.
 */
int remote_refresh(struct remote *remote, struct scan *scan);

/* Adds those of whom only totals are known, and as notes what went wrong. 0 or -ENOMEM. */
int remote_collect(struct remote *remote, const struct snapshot_request *request,
		   struct snapshot *snapshot);

/* Only the notes, for who needs no totals. */
void remote_note(const struct remote *remote, const struct snapshot_request *request,
		 struct snapshot *snapshot);

/*
 * Adds what the daemon can read of tt-metal's regions, as claims. 0, a remote_outcome, or a negative errno; also from
 * a daemon that may not read all of them either.
 */
int remote_regions(struct remote *remote, struct snapshot *snapshot);

/* How many there are. */
size_t remote_count(const struct remote *remote);

/* Whether this book is among them. */
bool remote_has(const struct remote *remote, dev_t device, ino_t inode);

/* For tests and fuzzing: one packet of a roster as remote_refresh() takes it; the fd in any case. */
int remote_take_consume(struct remote *remote, struct scan *scan, const void *payload,
			size_t length, int fd);
