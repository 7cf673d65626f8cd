/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes messages of the old protocol: answers with the size and offsets that the client was
 * compiled for, and requests, for tools and tests that act as an old client.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "legacy/wire/legacy.h"

/* The contents of an answer. A dialect omits what it has no member for. */
struct legacy_answer {
	enum legacy_type type; /* LEGACY_RESPONSE or LEGACY_DEVICE_INFO_RESPONSE */
	int32_t device;        /* as asked */

	/* Of a LEGACY_RESPONSE: bytes in use. */
	uint64_t dram;
	uint64_t l1;
	uint64_t l1_small;
	uint64_t trace;
	uint64_t cb;
	uint64_t kernel;

	/*
	 * Of a LEGACY_DEVICE_INFO_RESPONSE. For device -1, old servers sent only the last two; for
	 * a device, everything but the number of devices and the ring buffer.
	 */
	uint64_t total_dram;
	uint64_t total_l1;
	uint64_t dram_per_channel; /* sent as UINT32_MAX if it does not fit into 32 bits */
	uint64_t l1_per_core;
	uint64_t ring_total;
	uint64_t ring_used;
	uint32_t ring_programs;
	uint32_t arch;
	uint32_t dram_channels;
	bool available;
	uint32_t devices;
};

/*
 * One device in the answer to LEGACY_STATISTICS, as sent: one record follows another until the
 * connection ends.
 */
struct legacy_statistics {
	uint64_t device;
	uint64_t buffers;
	uint64_t dram;
	uint64_t l1;
	uint64_t l1_small;
	uint64_t trace;
};

_Static_assert(sizeof(struct legacy_statistics) == 48, "statistics record size");

/* The most bytes that legacy_encode_text() writes for @n bytes. */
#define LEGACY_ENCODE_TEXT_SIZE(n) ((n) + 2)

/* -EINVAL if there is no such answer in @dialect. */
int legacy_encode_response(enum legacy_dialect dialect, const struct legacy_answer *answer,
			   uint8_t ret_bytes[LEGACY_SIZE_MAX], size_t *ret_length);

/*
 * The answer to LEGACY_QUERY_ALL: the client reads up to the first blank line, so there is exactly
 * one, at the end. @text must be valid UTF-8: the client fails on anything else. @ret_bytes has
 * room for LEGACY_ENCODE_TEXT_SIZE(length) and must not be @text.
 */
void legacy_encode_text(const char *text, size_t length, char *ret_bytes, size_t *ret_length);

/*
 * A request as old clients send it: texts are cut to leave room for a NUL. Members that the dialect
 * does not have, and @message->dialect and raw, are ignored. -EINVAL if the dialect has no such
 * type.
 */
int legacy_encode_request(enum legacy_dialect dialect, const struct legacy_message *message,
			  uint8_t ret_bytes[LEGACY_SIZE_MAX], size_t *ret_length);
