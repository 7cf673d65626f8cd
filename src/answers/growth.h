/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.growth/1: call sites of living processes whose bytes keep growing. */

struct document;
struct emit;
struct growth;
struct snapshot;

extern const struct document growth_document;

void growth_put(struct emit *json, const struct snapshot *snapshot, const struct growth *growth);

/* The rows of "sites" alone. */
void growth_put_sites(struct emit *json, const struct growth *growth);
