/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answers to /api/devices and /api/devices/N/stats: bytes in use, under the names of the old example dashboard. */

#include <stddef.h>
#include <stdint.h>

#include "model/types.h"

struct document;

struct devices_row {
	uint64_t device, used[BOOK_TYPES], buffers;
};

struct devices_answer {
	const struct devices_row *rows;
	size_t count;
};

extern const struct document devices_document, devices_one; /* their rows: an answer, a row */
