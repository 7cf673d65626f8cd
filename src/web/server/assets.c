/* SPDX-License-Identifier: Apache-2.0 */

/* A table of a few files: a search from the beginning is quick enough. */

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
