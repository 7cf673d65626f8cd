/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Converts a file of an earlier version, in one transaction: if it fails, or we are killed, the
 * file is as it was, and is converted the next time.
 */

#include <stdint.h>

struct store_db;

#define STORE_MIGRATE_FROM 3 /* the oldest */

/* 0 or -EIO, see store-db.h. */
int store_migrate(struct store_db *db, int64_t version);
