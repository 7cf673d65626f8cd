/* SPDX-License-Identifier: Apache-2.0 */

/* Command lines of any bytes: their process controls them. */

#include <string.h>

#include "base/testing/unit.h"
#include "source/proc/command-line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct command_line line;
	size_t words = 0;

	command_line_mask((const char *)data, size, &line);
	assert(line.length <= sizeof(line.words));
	assert(line.length == 0 || line.words[line.length - 1] == '\0');
	for (const char *word = NULL; (word = command_line_next(&line, word));)
		words++;
	assert(words <= size);
	return 0;
}
