/* SPDX-License-Identifier: Apache-2.0 */

/* Any file is either refused, or gives entries that are harmless to print. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "base/text.h"
#include "daemon/custody/tracked-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_BOOT "01234567-89ab-cdef-0123-456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tracked_file_contents found;
	struct tracked_file_entry *entries;
	size_t count;

	if (tracked_file_parse((const char *)data, size, FUZZ_BOOT, &found) < 0)
		return 0;
	entries = found.entries;
	count = found.count;
	assert(count <= TRACKED_FILE_ENTRIES_MAX);
	for (size_t i = 0; i < count; i++) {
		char again[TEXT_CLEAN_SIZE(TRACKED_FILE_COMM_SIZE)];
		size_t length = strnlen(entries[i].comm, TRACKED_FILE_COMM_SIZE);

		assert(entries[i].process.pid != 0 && length < TRACKED_FILE_COMM_SIZE);
		assert(text_clean(entries[i].comm, length, again) == length);
		for (size_t k = 0; k < length; k++)
			assert((unsigned char)entries[i].comm[k] >= 0x20);
	}
	free(entries);
	return 0;
}
