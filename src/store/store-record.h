/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writing incidents and leak reports, and the processes whose they are. */

#include <stdint.h>

struct store_db;
struct store_item;

/* Each 0 or -EIO, see store-db.h. @at: which of the item's processes. */
int store_record_process(struct store_db *db, const struct store_item *item, uint32_t at,
			 int64_t *ret_id);
int store_record_incident(struct store_db *db, const struct store_item *item);
int store_record_leak(struct store_db *db, const struct store_item *item);
