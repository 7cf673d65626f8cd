/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the tests and the fuzzer of the old protocol: messages of every dialect and type in
 * variants that are hard to tell apart, and a run that feeds a stream and checks its output.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "legacy/wire/legacy-stream.h"
#include "legacy/wire/legacy.h"

#define LEGACY_TESTING_VARIANTS 6u
#define LEGACY_TESTING_PID 4242 /* of the client, in most variants */
#define LEGACY_TESTING_BYTES 65536u
#define LEGACY_TESTING_MESSAGES 8192u

/* Bytes, and the messages of one dialect that they consist of. */
struct legacy_testing_burst {
	enum legacy_dialect dialect;
	size_t length;
	size_t count;
	uint8_t bytes[LEGACY_TESTING_BYTES];
};

/* A stream that is being fed, and its output. */
struct legacy_testing_run {
	const struct legacy_testing_burst *burst;
	struct legacy_stream stream;
	uint64_t now_ns;
	int32_t peer_pid;
	size_t fed;
	size_t count;                /* messages */
	size_t consumed;             /* bytes: those of the burst, without a gap */
	enum legacy_dialect dialect; /* of all messages so far */
	int outcome;                 /* of the last call that returned no message */
	uint64_t wait_until_ns;      /* set if that was -EAGAIN */
};

/* The n-th type that clients of @dialect send, 0 beyond the last. */
enum legacy_type legacy_testing_type(enum legacy_dialect dialect, unsigned int n);

void legacy_testing_message(enum legacy_type type, unsigned int variant, bool is_w32,
			    struct legacy_message *ret_message);

void legacy_testing_start(struct legacy_testing_burst *burst, enum legacy_dialect dialect);
void legacy_testing_append(struct legacy_testing_burst *burst,
			   const struct legacy_message *message);
void legacy_testing_add(struct legacy_testing_burst *burst, enum legacy_type type,
			unsigned int variant);

void legacy_testing_begin(struct legacy_testing_run *run, const struct legacy_testing_burst *burst,
			  int32_t peer_pid);

/* Feeds the burst up to byte @to and takes the messages. Every message is checked. */
void legacy_testing_feed(struct legacy_testing_run *run, size_t to);

/* Lets time pass without a byte. */
void legacy_testing_wait(struct legacy_testing_run *run, uint64_t ns);

void legacy_testing_end(struct legacy_testing_run *run);

/* All messages of the burst arrived unchanged. */
void legacy_testing_expect_all(const struct legacy_testing_run *run);
