/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the queries of lists share. */

#include <stddef.h>
#include <stdint.h>

#include "store/store-reader.h"

/*
 * Parameters of every list: ?1 whether some rows are hidden, ?2 pid, ?3 since, ?4 and ?5 the cursor,
 * ?6 the limit.
 */
#define STORE_QUERY_VALUES 6

void store_query_values(const struct store_filter *filter,
			struct store_value ret_values[STORE_QUERY_VALUES]);
size_t store_query_limit(size_t limit);

/*
 * Between begin and end; knows the type of @rows. 0: complete, 1: there may be more, or a negative
 * errno.
 */
typedef int store_query_list_fn(struct store_reader *reader, const struct store_filter *filter,
				const void *rows, struct store_cursor *next);

/* One page of a list. 0 or a negative errno. */
int store_query_page(struct store_reader *reader, const struct store_filter *filter,
		     const void *rows, store_query_list_fn *list, struct store_cursor *ret_next);

/* A number of rows that @sees does not see. 0 or a negative errno. */
int store_query_count(struct store_reader *reader, const char *sql, const struct store_sees *sees,
		      uint64_t *ret_count);
