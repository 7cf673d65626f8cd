/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.peak/1: what was live at the highest moments. */

#include "answers/fields.h"
#include "model/sites/group.h"

struct document;
struct emit;
struct snapshot;
struct snapshot_peak;

extern const struct document peak_document;
extern const struct field peak_fields[]; /* of a row */

/* The document; and one of its rows. 0 or -ENOMEM. */
int peak_put(struct emit *json, const struct snapshot *snapshot, enum group_kind kind);
int peak_put_row(struct emit *json, const char *key, const struct snapshot *snapshot,
		 const struct snapshot_peak *peak, enum group_kind kind);
