/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The names of the buffers of call sites, counted while the sites are grouped. There may be a name
 * for each buffer, so at most STORE_NAMES_GROUPED pairs of a site and a name are told apart; of each
 * site the largest are kept.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "store/store.h"

struct store_item;

#define STORE_NAMES_GROUPED (UINT32_C(1) << 17)
#define STORE_NAMES_TEXT 4096u /* bytes of a site's list; names that do not fit are only counted */

struct store_name {
	uint32_t group;   /* 1 + its index */
	const char *name; /* NULL = buffers without one */
	uint64_t bytes;
	uint64_t buffers;
};

/* Names are told apart by their addresses. */
struct store_names {
	struct map numbers; /* by name and group */
	struct store_name *list;
	size_t capacity;
};

/* The largest names of a group. */
struct store_names_top {
	uint32_t count; /* of all its names */
	uint32_t listed;
	const struct store_name *largest[STORE_NAMES_MAX];
};

/* One more buffer. Without memory it is not counted. */
void store_names_add(struct store_names *names, uint32_t group, const char *name, uint64_t bytes);

/* An array for all @groups, which the caller frees; NULL = no memory. */
struct store_names_top *store_names_rank(const struct store_names *names, size_t groups);

/* The list as one text, see struct store_part. 0 or -ENOMEM. */
int store_names_text(const struct store_names_top *top, struct store_item *item, uint32_t *ret_at);

void store_names_deinit(struct store_names *names);
