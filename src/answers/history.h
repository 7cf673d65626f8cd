/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.history/1: what happened at an address. */

#include <stdint.h>

struct document;
struct history;
struct snapshot;

/* The daemon's record of an address: rows of the leaks and incidents documents, as JSON arrays. */
struct history_rows {
	const char *leaks;
	const char *incidents;
};

struct history_answer {
	const struct snapshot *snapshot;
	const struct history *history;
	const struct history_rows *past; /* NULL = there was no daemon to ask */
	uint64_t address;
};

extern const struct document history_document; /* its row: an answer */
