/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Feeds arbitrary bytes as a configuration file. What is accepted must survive printing and
 * parsing; what is refused must give one line without control characters.
 */

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "daemon/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *printed(const struct config *config)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	config_print(config, stream);
	assert(fclose(stream) == 0);
	return text;
}

static void check_line(const char *errors)
{
	const char *end = strchr(errors, '\n');

	assert(end && !end[1]);
	for (; errors < end; errors++)
		assert((unsigned char)*errors >= 0x20 && *errors != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config, again;
	char *errors = NULL, *first, *second;
	size_t length;
	FILE *stream = open_memstream(&errors, &length);
	int r;

	assert(config_init(&config) == 0 && config_init(&again) == 0);
	r = config_parse_text(&config, "f", (const char *)data, size, stream);
	assert(fflush(stream) == 0);
	if (r == CONFIG_WRONG)
		check_line(errors);
	else
		assert(r == 0 && length == 0);

	first = printed(&config);
	rewind(stream);
	assert(config_parse_text(&again, "f", first, strlen(first), stream) == 0);
	second = printed(&again);
	assert(strcmp(first, second) == 0);

	assert(fclose(stream) == 0);
	free(errors);
	free(first);
	free(second);
	config_deinit(&config);
	config_deinit(&again);
	return 0;
}
