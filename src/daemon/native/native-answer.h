/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The packets of one answer, built in memory by a worker and then sent by the loop as the socket takes
 * them. What they hold is charged to the user who asked and to all users together before it is
 * allocated; who asks for too much gets an error instead.
 */

#include <stdint.h>
#include <stdio.h>

#include "wire/native.h"

struct local_request_answer;
struct tracked;

#define NATIVE_ANSWER_MAX (UINT64_C(64) << 20) /* of one user */
#define NATIVE_ANSWERS_MAX (UINT64_C(256) << 20)

struct native_packet {
	struct native_packet *next;
	struct tracked *book; /* counted: its file goes along; NULL = none */
	size_t length;
	uint8_t bytes[]; /* with the head */
};

struct native_answer {
	uint32_t kind;
	struct native_packet *first;
	struct native_packet **end;
	uint64_t bytes;
	uint64_t text;          /* of them in the body of an HTTP response */
	uint64_t *held_by_user; /* atomic counters; they outlive the answer */
	uint64_t *held_by_all;
	int error; /* the first that occurred while building */
};

void native_answer_init(struct native_answer *answer, uint32_t kind, uint64_t *held_by_user,
			uint64_t *held_by_all);
void native_answer_deinit(struct native_answer *answer);

/* Adds a packet. @book may be NULL. 0, -ENOBUFS or -ENOMEM; then the answer is spoilt. */
int native_answer_put(struct native_answer *answer, const void *payload, size_t length,
		      struct tracked *book);

/*
 * A stream for the body of an HTTP response, cut into packets; the caller closes it, and has the buffer until
 * then. NULL: no memory.
 */
FILE *native_answer_open(struct native_answer *answer, char buffer[NATIVE_PACKET_MAX]);

/* The head of an HTTP response before what was written; or its @told->problem instead of that. */
void native_answer_end_http(struct native_answer *answer, const struct local_request_answer *told);

/*
 * The last packet. Unless @status is 0 (and nothing went wrong before), all the others are dropped and
 * a text tells people what the number means.
 */
void native_answer_end(struct native_answer *answer, int status);

/* Takes out the first packet; NULL if there is none. */
struct native_packet *native_answer_take(struct native_answer *answer);
struct native_packet *native_packet_free(struct native_packet *packet);

/*
 * Sends a packet, with the book's file if it has one: opened anew for reading only, so that the receiver
 * shares nothing with us. A book that cannot go along is left out, and the packet says so. 0 or a
 * negative errno; after -EAGAIN it can be tried again.
 */
int native_packet_send(int fd, struct native_packet *packet);
