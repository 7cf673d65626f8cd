/* SPDX-License-Identifier: Apache-2.0 */

/* The names of a call site's buffers as one text. */

#include "store/store-item-names.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "store/store-item.h"
#include "store/store-rows.h"

UNIT(a_name_that_does_not_fit_leaves_room_for_shorter_ones)
{
	struct store_item *item = store_item_new(STORE_ITEM_LEAK, 1);
	struct store_names names = {.list = NULL};
	struct store_names_top *tops;
	char large[STORE_NAMES_TEXT + 1];
	uint32_t at;

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	store_names_add(&names, 1, "first", 3);
	store_names_add(&names, 1, large, 2);
	store_names_add(&names, 1, "third", 1);
	tops = store_names_rank(&names, 1);
	assert(item && tops && tops->count == 3);
	assert(store_names_text(tops, item, &at) == 0);
	assert(strncmp(store_item_text(item, at), "3 1 first", 9) == 0);
	assert(strlen(store_item_text(item, at)) == strlen("3 1 first_1 1 third"));
	assert(strstr(store_item_text(item, at), "1 1 third"));
	free(tops);
	store_names_deinit(&names);
	store_item_free(item);
}
