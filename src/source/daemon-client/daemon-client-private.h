/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the files of the daemon client: daemon-client.c does the I/O, the others request
 * process lists, regions and documents.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "source/daemon-client/daemon-client.h"

/* A process whose book we do not have; its parts are contiguous. */
struct daemon_client_other {
	struct native_process process;
	size_t first, count;
};

struct daemon_client {
	int fd; /* -1 = not connected */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int outcome; /* of the last attempt */
	uint32_t stranger;
	uint32_t server; /* pid of the one that was connected to last; 0 = not visible to us */
	char reason[1100];
	uint64_t quiet_until; /* CLOCK_MONOTONIC: no request before this */
	uint8_t *packet;      /* buffer for one */

	struct daemon_client_other *others;
	size_t count, capacity;
	struct native_part *parts;
	size_t part_count, part_capacity;
	bool continues;      /* the next packet continues the last of others */
	bool skips;          /* the next packet continues one that is not wanted */
	uint32_t lost_books; /* for lack of descriptors */
	bool lacks_totals;   /* of a process whose book came but could not be used */
};

/*
 * Takes one packet of an answer and owns the fd (-1 = none). Returns 0, an outcome, or a negative
 * errno.
 */
typedef int daemon_client_packet_fn(void *context, const void *payload, size_t length, int fd);

#define DAEMON_CLIENT_END 100 /* returned by such a function: this was the last packet */

/* One request packet, and the function that takes the packets of the answer. */
struct daemon_client_question {
	const void *bytes;
	size_t length;
	uint64_t patience_ns; /* for each of them */
	daemon_client_packet_fn *take;
	void *context;
};

/*
 * Connects if necessary, sends the request, and passes on each packet. Returns 0, a
 * daemon_client_outcome, or what the function returned. -EPIPE: DAEMON_CLIENT_REFUSED by a daemon
 * that hung up on a new connection without an answer.
 */
int daemon_client_converse(struct daemon_client *remote,
			   const struct daemon_client_question *question);

/* Records an outcome and its reason. */
int daemon_client_settle(struct daemon_client *remote, int outcome);

/*
 * Sends a native request and passes on each payload. Returns 0, a daemon_client_outcome, or what
 * the function returned.
 */
int daemon_client_talk(struct daemon_client *remote, const struct native_request *request,
		       daemon_client_packet_fn *fn, void *context);
