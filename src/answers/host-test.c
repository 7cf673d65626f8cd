/* SPDX-License-Identifier: Apache-2.0 */

/* The row of a machine: sums over all devices, and the fullest memory among them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/host.h"
#include "base/bits.h"
#include "base/emit.h"
#include "base/testing/unit.h"
#include "model/health.h"
#include "model/snapshot.h"
#include "model/types.h"

/* Without blanks and line ends. */
static char *row_of(struct snapshot_device *devices, size_t count)
{
	const struct snapshot snapshot = {.devices = devices, .device_count = count};
	const struct health health = {.start_ns = 1};
	char *text = NULL;
	size_t length, n = 0;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);

	host_put(&json, &snapshot, &health, true);
	assert(fclose(out) == 0);
	for (const char *at = text; *at; at++) {
		if (*at != ' ' && *at != '\n')
			text[n++] = *at;
	}
	text[n] = 0;
	return text;
}

UNIT(devices_behind_one_that_is_less_full_are_counted)
{
	struct snapshot_device devices[] = {
		{.device = 0, .memory[TYPES_DRAM] = {.used = 30, .capacity = 100}},
		{.device = 1, .memory[TYPES_DRAM] = {.used = 20, .capacity = 100}},
		{.device = 2, .memory[TYPES_DRAM] = {.used = 50, .capacity = 100}},
	};
	char *row = row_of(devices, ARRAY_SIZE(devices));

	assert(strstr(row, "\"DRAM\":{\"used\":100,\"capacity\":300}"));
	assert(strstr(row, "\"fullest\":{\"device\":2,\"type\":\"DRAM\",\"used\":50,"));
	free(row);
}

UNIT(dram_and_l1_are_summed_apart)
{
	struct snapshot_device devices[] = {
		{.device = 0,
		 .memory[TYPES_DRAM] = {.used = 3, .capacity = 100},
		 .memory[TYPES_L1] = {.used = 40, .capacity = 50}},
		{.device = 1, .memory[TYPES_L1] = {.used = 2, .capacity = 50}},
	};
	char *row = row_of(devices, ARRAY_SIZE(devices));

	assert(strstr(row, "\"DRAM\":{\"used\":3,\"capacity\":100}"));
	assert(strstr(row, "\"L1\":{\"used\":42,\"capacity\":100}"));
	assert(strstr(row, "\"fullest\":{\"device\":0,\"type\":\"L1\",\"used\":40,"));
	free(row);
}
