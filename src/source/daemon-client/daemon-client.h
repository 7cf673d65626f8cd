/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The client of ttmemd, which knows every process of the machine. Processes that the caller may see
 * come with their books, which are then read like any other; for the rest there are totals. These
 * use its native protocol (wire/native.h), which can carry descriptors. Its history and what it
 * reports about itself are documents, which come over HTTP on the same socket.
 *
 * Nothing depends on it. No daemon, one that hangs, or one run by an untrusted user is an outcome,
 * never a failure, and costs DAEMON_CLIENT_PATIENCE_NS at most, then nothing for a while. Trusted
 * are root, our own user and the user "ttmem"; and any server at the path in TTMEM_SOCKET, because
 * that was chosen explicitly.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/book-id.h"
#include "wire/native.h"

struct daemon_client;
struct query;
struct scan;
struct snapshot;
struct snapshot_claim;
struct snapshot_request;

#define DAEMON_CLIENT_PATIENCE_NS UINT64_C(2000000000) /* for a packet */
#define DAEMON_CLIENT_PAST_PATIENCE_NS \
	UINT64_C(15000000000) /* for one of a document, which takes longer */
#define DAEMON_CLIENT_ANSWER_NS UINT64_C(90000000000) /* for a whole answer */
#define DAEMON_CLIENT_PAUSE_NS UINT64_C(10000000000)  /* before one that hung is tried again */
#define DAEMON_CLIENT_TEXT_MAX (UINT64_C(128) << 20)
#define DAEMON_CLIENT_OTHERS_MAX 65536u /* processes without books */
#define DAEMON_CLIENT_PARTS_MAX 262144u

enum daemon_client_outcome {
	DAEMON_CLIENT_NONE = 1,     /* no daemon, or none wanted */
	DAEMON_CLIENT_SILENT = 2,   /* did not answer in time */
	DAEMON_CLIENT_STRANGER = 3, /* run by an untrusted user */
	DAEMON_CLIENT_REFUSED = 4,  /* daemon_client_reason() says why, if the daemon did */
	DAEMON_CLIENT_GARBAGE = 5,  /* its answer cannot be understood */
	DAEMON_CLIENT_OLDER = 6,    /* it does not know HTTP, or not this path */
};

/* Does not connect yet. Returns 0 or -ENOMEM. */
int daemon_client_new(struct daemon_client **ret_client);
struct daemon_client *daemon_client_free(struct daemon_client *remote);

/* For CLEANUP(). */
static inline void daemon_client_cleanup(struct daemon_client **client)
{
	daemon_client_free(*client);
}

/*
 * Gets the document at @path, such as "/api/v1/leaks" (docs/http.md), followed by a NUL that is not
 * counted. @query: NULL = without parameters. Returns 0, a daemon_client_outcome, or a negative errno.
 */
int daemon_client_get(struct daemon_client *remote, const char *path, const struct query *query,
		      char **ret_text, size_t *ret_length);

/*
 * The caller found a complete document to be wrong. Sets and returns the outcome
 * DAEMON_CLIENT_GARBAGE.
 */
int daemon_client_reject(struct daemon_client *remote);

/* Of the last request: 0, or why it was not answered. 0 before the first. */
int daemon_client_outcome(const struct daemon_client *remote);

/* A readable reason for the last outcome; never NULL. */
const char *daemon_client_reason(const struct daemon_client *remote);

/* Pid of the server as our pid namespace has it; 0 = it runs outside, or there was none. */
uint32_t daemon_client_server(const struct daemon_client *remote);

/* The socket that was tried last; "" if none. */
const char *daemon_client_path(const struct daemon_client *remote);

/*
 * After a pass of @scan: hands it the books that it could not find itself, and keeps the totals of
 * the rest. Returns 0, a daemon_client_outcome, or a negative errno.
 */
int daemon_client_refresh(struct daemon_client *remote, struct scan *scan);

/*
 * Adds processes of which only totals are known, and notes on what went wrong. Returns 0 or
 * -ENOMEM.
 */
int daemon_client_collect(struct daemon_client *remote, const struct snapshot_request *request,
			  struct snapshot *snapshot);

/* Adds only the notes, for callers that need no totals. */
void daemon_client_note(const struct daemon_client *remote, const struct snapshot_request *request,
			struct snapshot *snapshot);

/*
 * Adds what the daemon can read of tt-metal's regions, as claims. Returns 0, a
 * daemon_client_outcome, or a negative errno; 0 also if the daemon may not read all of them either.
 */
int daemon_client_regions(struct daemon_client *remote, struct snapshot *snapshot);

/*
 * Which processes have which of the driver's nodes open, as the daemon sees it, as claims with the number of the
 * node as device. The caller frees them. Returns 0; a daemon_client_outcome, DAEMON_CLIENT_NONE if the daemon
 * counts pids in another namespace than we do; or a negative errno.
 */
int daemon_client_openers(struct daemon_client *remote, struct snapshot *snapshot,
			  struct snapshot_claim **ret_claims, size_t *ret_count);

/*
 * Adds what the driver tells the daemon about its memory. Returns 0, a daemon_client_outcome, or a
 * negative errno. A daemon that does not know the question is no failure: then nothing is added.
 */
int daemon_client_driver_memory(struct daemon_client *remote, struct snapshot *snapshot);

/*
 * Gets a file of the flight recorder, named as in wire/native.h. Returns 0 and a descriptor for reading, a
 * daemon_client_outcome, or a negative errno.
 */
int daemon_client_recording(struct daemon_client *remote, const char *name, int *ret_fd);

/* The number of processes of which only totals are known. */
size_t daemon_client_count(const struct daemon_client *remote);

/* Whether this book is one of theirs. */
bool daemon_client_has(const struct daemon_client *remote, struct book_id id);

/*
 * For tests and fuzzing: takes one packet of a process list as daemon_client_refresh() does;
 * consumes the fd in any case.
 */
int daemon_client_take_consume(struct daemon_client *remote, struct scan *scan, const void *payload,
			       size_t length, int fd);
