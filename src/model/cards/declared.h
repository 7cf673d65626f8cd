/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How far the word of a process about its devices goes. Any process can declare a thousand devices
 * with ids that no card has, of any size. What it says counts for its own rows; what is shown to
 * everybody is bounded for each user:
 *
 * - sizes that no card has are refused, and counted;
 * - of the devices that no card of the driver's stands for, a user has DECLARED_USER_MAX rows in all
 *   processes, but no fewer than DECLARED_PROCESS_MIN in each. The rest is summed up in one row.
 *   A source that knows them from an earlier snapshot may have summed them up already.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;
struct snapshot_part;
struct snapshot_process;

#define DECLARED_USER_MAX 1024u
#define DECLARED_PROCESS_MIN 8u

/* The largest memory of a card, and of a host, that is believed. */
#define DECLARED_CARD_MAX (UINT64_C(1) << 40)
#define DECLARED_HOST_MAX (UINT64_C(1) << 46)

/* The id of the row that sums up a user's devices; a process that declares such an id has none. */
#define DECLARED_SUM_ID UINT64_C(0xffffffff00000000)

/* Adds a device, or a sum, to a sum that begins as all zeros. */
void declared_add(struct snapshot_part *sum, const struct snapshot_part *part);

/* Makes the sum the part of a process of that user. */
void declared_sign(struct snapshot_part *sum, uint32_t user);

/* Whether a device may turn out to be one of the cards, before it is joined. */
bool declared_may_be_card(const struct snapshot *snapshot, const struct snapshot_part *part);

/* A number for all that declared_may_be_card() knows of the cards. */
uint64_t declared_cards(const struct snapshot *snapshot);

/* Refuses sizes of one device. Returns how many. */
size_t declared_refuse_part(struct snapshot_part *part);

/* Before devices are joined to cards. */
void declared_refuse(struct snapshot *snapshot);

/* When they are joined. 0 or -ENOMEM. */
int declared_sum_up(struct snapshot *snapshot);
