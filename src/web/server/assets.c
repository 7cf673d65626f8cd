/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file has the same tag whether compressed or not, so the tag is weak. Weak tags match with or
 * without "W/", so it is enough that ours occurs in the header.
 */

#include "web/server/assets.h"

#include <string.h>

const struct asset *assets_find(const char *path)
{
	for (size_t i = 0; i < assets_count; i++) {
		if (strcmp(assets_table[i].path, path) == 0)
			return &assets_table[i];
	}
	return NULL;
}

bool assets_is_known(const struct asset *asset, const char *if_none_match)
{
	if (!if_none_match)
		return false;
	return strcmp(if_none_match, "*") == 0 || strstr(if_none_match, asset->etag) != NULL;
}
