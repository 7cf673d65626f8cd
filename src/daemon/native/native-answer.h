/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The packets of one answer, built in memory by a worker and then sent by the loop as the socket
 * accepts them. Their size is charged to the requesting user and to all users together before it is
 * allocated; a request that exceeds a limit gets an error instead.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "base/quota.h"
#include "wire/native.h"

struct local_request_answer;
struct tracked;

#define NATIVE_ANSWER_MAX (UINT64_C(64) << 20) /* per user */
#define NATIVE_ANSWERS_MAX (UINT64_C(256) << 20)

/* Answers that users have not received yet. It outlives them. */
struct native_room {
	pthread_mutex_t lock;
	struct quota bytes;
};

struct native_packet {
	struct native_packet *next;
	struct tracked *book; /* counted reference; its file is sent along; NULL = none */
	int file;             /* sent along; -1 = none */
	size_t length;
	uint8_t bytes[]; /* including the header */
};

struct native_answer {
	uint32_t kind;
	struct native_packet *first;
	struct native_packet **end;
	uint64_t text; /* bytes of the body of an HTTP response */
	struct native_room *room;
	uint32_t user;
	int error; /* the first one that occurred while building */
};

void native_answer_init(struct native_answer *answer, uint32_t kind, struct native_room *room,
			uint32_t user);
void native_answer_deinit(struct native_answer *answer);

/*
 * Adds a packet. @book may be NULL. 0, -ENOBUFS or -ENOMEM; after an error the answer is unusable.
 */
int native_answer_put(struct native_answer *answer, const void *payload, size_t length,
		      struct tracked *book);

/* Adds a packet with @file alone, which is consumed in any case. 0, -ENOBUFS or -ENOMEM. */
int native_answer_put_file_consume(struct native_answer *answer, int file);

/*
 * A stream for the body of an HTTP response, split into packets. The caller closes it and keeps the
 * buffer until then. NULL: no memory.
 */
FILE *native_answer_open(struct native_answer *answer, char buffer[NATIVE_PACKET_MAX]);

/* Puts the HTTP header before the body written so far, or replaces the body by @told->problem. */
void native_answer_end_http(struct native_answer *answer, const struct local_request_answer *told);

/*
 * Adds the last packet. Unless @status is 0 and no error occurred before, all other packets are
 * dropped and a text explains the status to people.
 */
void native_answer_end(struct native_answer *answer, int status);

/* Removes and returns the first packet; NULL if there is none. */
struct native_packet *native_answer_take(struct native_answer *answer);
struct native_packet *native_packet_free(struct native_packet *packet);

/*
 * Sends a packet, with the book's file if it has one. The file is reopened read-only, so that the
 * receiver shares no file description with us. A book that cannot be sent is left out, and the
 * packet says so. 0 or a negative errno; -EAGAIN: try again later.
 */
int native_packet_send(int fd, struct native_packet *packet);
