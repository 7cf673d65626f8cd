/* SPDX-License-Identifier: Apache-2.0 */

/* The environment and the mappings of a process, over any bytes: its owner controls both. */

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "source/proc/process-env.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct process_env inside = {0};
	char *bytes = malloc(size + 1);

	assert(bytes);
	memcpy(bytes, data, size);
	/* Without a terminating NUL, as read from the file. */
	process_env_parse_environment((const char *)data, size, &inside);
	assert(inside.tracking <= PROCESS_ENV_OFF);
	bytes[size] = '\0';
	process_env_parse_mapping(bytes, &inside);
	assert(memchr(inside.library, '\0', sizeof(inside.library)));
	process_env_parse_limits(bytes, &inside);
	free(bytes);
	return 0;
}
