/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes incidents, leak reports and ends, and the processes they belong to. */

#include <stdint.h>

struct store_chunk;
struct store_db;
struct store_item;

/* Each returns 0 or -EIO, see store-db.h. @at: index of the item's process. */
int store_record_process(struct store_db *db, const struct store_item *item, uint32_t at,
			 int64_t *ret_id);
int store_record_incident(struct store_db *db, const struct store_item *item);
int store_record_leak(struct store_db *db, const struct store_item *item);
int store_record_ending(struct store_db *db, const struct store_item *item);
int store_record_chunk(struct store_db *db, int64_t leak, const struct store_chunk *chunk);
