/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of asking share: daemon-client.c talks, the others ask for rosters, regions and documents. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "source/daemon-client/daemon-client.h"

/* A process whose book we do not have; its parts lie behind one another. */
struct daemon_client_other {
	struct native_process process;
	size_t first, count;
};

struct daemon_client {
	int fd; /* -1 = not connected */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int outcome; /* of the last try */
	uint32_t stranger;
	char reason[1100];
	uint64_t quiet_until; /* CLOCK_MONOTONIC: not asked before */
	uint8_t *packet;      /* room for one */

	struct daemon_client_other *others;
	size_t count, capacity;
	struct native_part *parts;
	size_t part_count, part_capacity;
	bool continues;      /* the next packet is of the last one of others */
	bool skips;          /* the next packet is of one that is not wanted */
	uint32_t lost_books; /* for lack of descriptors */
	bool lacks_totals;   /* of one whose book came, and was of no use */
};

/* One packet of an answer; the fd (-1 = none) is the callee's. 0, an outcome, or a negative errno. */
typedef int daemon_client_packet_fn(void *context, const void *payload, size_t length, int fd);

#define DAEMON_CLIENT_END 100 /* of a function that takes packets: this was the last */

/* One packet of ours, and who takes those of the answer. */
struct daemon_client_question {
	const void *bytes;
	size_t length;
	uint64_t patience_ns; /* for each of them */
	daemon_client_packet_fn *take;
	void *context;
};

/*
 * Connects if need be, asks, and hands over each packet. 0, a daemon_client_outcome, or what the function
 * returned; -EPIPE is DAEMON_CLIENT_REFUSED of one who hung up on a new connection without a word.
 */
int daemon_client_converse(struct daemon_client *remote,
			   const struct daemon_client_question *question);

/* Remembers an outcome, and what to tell of it. */
int daemon_client_settle(struct daemon_client *remote, int outcome);

/* Asks a native question and hands over each payload. 0, a daemon_client_outcome, or what the function returned. */
int daemon_client_talk(struct daemon_client *remote, const struct native_request *request,
		       daemon_client_packet_fn *fn, void *context);
