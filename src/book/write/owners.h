/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which buffers an owner (e.g. a program) has on one device: private, for ttmem_free_all(). An
 * entry is not removed when its buffer ends; it is checked against the record when it is used, and
 * swept when the list has doubled. The caller holds the shard's lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/write/records.h"

struct owners;

/* Remember that the record in @slot belongs to @owner. False if out of memory. */
bool owners_add(struct owners **owners, const struct records *records, uint64_t owner,
		uint32_t slot);

/* Take one live slot of that owner and type (or INDEX_ANY) out of the list; INDEX_NONE = no more. */
uint32_t owners_take(struct owners *owners, const struct records *records, uint64_t owner,
		     uint32_t type);

void owners_free(struct owners *owners);
