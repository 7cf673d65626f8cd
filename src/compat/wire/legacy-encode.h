/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing messages of the old protocol: answers in the size and with the offsets that the asker was
 * compiled for, and requests, for tools and tests that speak as an old client.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compat/wire/legacy.h"

/* What an answer can tell. A dialect that has no place for something leaves it out. */
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
	 * Of a LEGACY_DEVICE_INFO_RESPONSE. Asked about device -1, old servers told only the last
	 * two; asked about a device, everything but the number of devices and the ring buffer.
	 */
	uint64_t total_dram;
	uint64_t total_l1;
	uint64_t dram_per_channel; /* sent as the largest number if it does not fit 32 bits */
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
 * One device in the answer to LEGACY_STATISTICS, as it goes over the wire: records follow one
 * another, and the end of the connection ends them.
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

/* What legacy_encode_text() makes of @n bytes, at most. */
#define LEGACY_ENCODE_TEXT_SIZE(n) ((n) + 2)

/* -EINVAL if there is no such answer in @dialect. */
int legacy_encode_response(enum legacy_dialect dialect, const struct legacy_answer *answer,
			   uint8_t ret_bytes[LEGACY_SIZE_MAX], size_t *ret_length);

/*
 * The answer to LEGACY_QUERY_ALL: the asker reads until the first blank line, so there is exactly
 * one, at the end. @text is valid UTF-8: the asker fails on anything else. @ret_bytes has room for
 * LEGACY_ENCODE_TEXT_SIZE(length) and is not @text.
 */
void legacy_encode_text(const char *text, size_t length, char *ret_bytes, size_t *ret_length);

/*
 * A request as old clients send it: texts are cut to leave room for a NUL. Members that have no
 * place in the dialect, and @message->dialect and raw, are ignored. -EINVAL if the dialect has no
 * such type.
 */
int legacy_encode_request(enum legacy_dialect dialect, const struct legacy_message *message,
			  uint8_t ret_bytes[LEGACY_SIZE_MAX], size_t *ret_length);
