/* SPDX-License-Identifier: Apache-2.0 */

/* Names from the file. */

#include <stdlib.h>

#include "model/sites/namer.h"
#include "recording/read/recording-private.h"

struct recording_namer {
	struct namer namer;
};

void recording_namer_free(struct recording_namer *namer)
{
	free(namer);
}

static size_t recording_namer_find(struct namer *namer, const struct namer_place *place,
				   struct namer_name *ret_names, size_t max)
{
	return 0;
}

struct namer *recording_namer(struct recording *recording)
{
	if (!recording->namer)
		recording->namer = calloc(1, sizeof(*recording->namer));
	if (!recording->namer)
		return NULL;
	recording->namer->namer.find = recording_namer_find;
	return &recording->namer->namer;
}
