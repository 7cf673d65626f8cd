/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers to old clients, from a finished snapshot: numbers over all processes, native ones included, as
 * the old server counted. SYSTEM_MEMORY was part of l1_small there, and still is.
 */

#include <stdint.h>
#include <stdio.h>

#include "legacy/wire/legacy-encode.h"

struct access_peer;
struct snapshot;

/* Longer answers to QUERY_ALL are cut, and say so. */
#define LEGACY_ANSWER_ROWS_MAX 4096u

void legacy_answer_query(const struct snapshot *snapshot, int32_t device,
			 struct legacy_answer *ret_answer);
/*
 * What is known about a device: from the processes that declared it, the driver, and the table of cards. A
 * device about which nothing is known is not available, even if a client uses its number.
 */
void legacy_answer_info(const struct snapshot *snapshot, int32_t device,
			struct legacy_answer *ret_answer);

/*
 * The text for QUERY_ALL, before legacy_encode_text(). Needs buffers. Sums are over all processes;
 * only buffers that @who may see are listed.
 */
void legacy_answer_text(FILE *out, const struct snapshot *snapshot, const struct access_peer *who);

/* Records for the 24-byte request. Return: bytes. */
void legacy_answer_statistics(FILE *out, const struct snapshot *snapshot);
