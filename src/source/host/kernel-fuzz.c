/* SPDX-License-Identifier: Apache-2.0 */

/* The parser of /proc/driver/ttmem/totals over any text: names in it are chosen by processes. */

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "source/host/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int kernel_fuzz_holder(void *context, const struct kernel_holder *holder)
{
	assert(memchr(holder->comm, '\0', sizeof(holder->comm)) && holder->pid <= INT32_MAX);
	return 0;
}

static int kernel_fuzz_memory(void *context, uint32_t device, uint32_t type,
			      const struct snapshot_memory *memory, bool is_torn)
{
	assert(device < BOOK_DEVICES && type < BOOK_TYPES && memory->bound <= SNAPSHOT_AT_MOST);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct kernel_parser parser = {
		.holder = kernel_fuzz_holder,
		.memory = kernel_fuzz_memory,
	};
	struct kernel_text state = {0};
	struct kernel_share share = {0};
	size_t used;
	char *text = malloc(size ? size : 1); /* exact size, so that reads beyond it are caught */

	assert(text);
	memcpy(text, data, size);
	(void)kernel_parse_more(&state, text, size, &parser, &used); /* any result is fine */
	if (kernel_parse_share(text, size, &share))
		assert(share.is_of_all || size > 4);
	free(text);
	return 0;
}
