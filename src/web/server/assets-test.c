/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The built-in files, whichever they are: there is a page, each is compressed and plain, none is
 * there twice.
 */

#include "web/server/assets.h"

#include <string.h>

#include "base/testing/unit.h"

UNIT(the_page_is_among_the_assets)
{
	const struct asset *page = assets_find("/");

	assert(page && page->is_page && !page->is_named);
	assert(strncmp(page->type, "text/html", 9) == 0);
	assert(!assets_find("/there/is/none"));
	assert(!assets_find(""));
}

UNIT(every_file_is_there_in_both_forms)
{
	for (size_t i = 0; i < assets_count; i++) {
		const struct asset *asset = &assets_table[i];

		assert(assets_find(asset->path) == asset); /* none is there twice */
		assert(asset->path[0] == '/' && asset->type[0]);
		assert(asset->plain_size > 0 && asset->packed_size > 0);
		assert(asset->packed[0] == 0x1f && asset->packed[1] == 0x8b);
	}
}
