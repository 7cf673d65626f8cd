/* SPDX-License-Identifier: Apache-2.0 */

/* What is taken from the answers of other machines, and which of them comes first. */

#include "daemon/fleet/fleet-row.h"

#include <stdlib.h>
#include <string.h>

#include "base/emit.h"
#include "base/testing/unit.h"
#include "model/types.h"

#define DOCUMENT(members) "{\"schema\":\"ttmem.host/1\",\"status\":\"ok\"" members "}"

static struct fleet_row parsed(const char *text)
{
	struct fleet_row row = {.host = "a"};

	fleet_row_parse(&row, text, strlen(text));
	return row;
}

UNIT(a_row_has_the_numbers_of_its_document)
{
	struct fleet_row row = parsed(DOCUMENT(
		",\"devices\":2,\"processes\":3,\"bytes\":40,\"buffers\":5,\"start_ns\":6,"
		"\"memory\":{\"DRAM\":{\"used\":7,\"capacity\":80},\"L1\":{\"used\":9,"
		"\"capacity\":null}},\"fullest\":{\"device\":1,\"type\":\"L1\",\"used\":91,"
		"\"capacity\":100},\"hour\":{\"over_ns\":10,\"bytes\":-11,\"incidents\":12}"));

	assert(!*row.problem && !row.is_degraded);
	assert(row.facts.devices == 2 && row.facts.processes == 3 && row.facts.bytes == 40 &&
	       row.facts.buffers == 5);
	assert(row.facts.memory.dram.used == 7 && row.facts.memory.dram.capacity == 80 &&
	       row.facts.memory.l1.used == 9 && row.facts.memory.l1.capacity == 0);
	assert(row.facts.has_fullest && row.facts.fullest.device == 1 &&
	       row.facts.fullest.type == TYPES_L1);
	assert(row.facts.fullest.amount.used == 91 && row.facts.fullest.amount.capacity == 100);
	assert(row.facts.hour.over_ns == 10 && row.facts.hour.bytes == -11 &&
	       row.facts.hour.incidents == 12);
	assert(fleet_row_has(&row, FLEET_FULL) && fleet_row_has(&row, FLEET_INCIDENTS));
	assert(!fleet_row_has(&row, FLEET_GROWS) && !fleet_row_has(&row, FLEET_SILENT));
}

UNIT(documents_of_other_kinds_are_a_problem)
{
	static const char *const wrong[] = {"",
					    "{",
					    "[]",
					    "{}",
					    "{\"schema\":1}",
					    "{\"schema\":\"ttmem.host/2\"}",
					    "{\"schema\":\"ttmem.smi/1\"}",
					    "\xff"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct fleet_row row = parsed(wrong[i]);

		assert(fleet_row_has(&row, FLEET_SILENT));
	}
}

UNIT(invalid_numbers_are_zero)
{
	struct fleet_row row = parsed(
		DOCUMENT(",\"devices\":-1,\"bytes\":\"9\",\"memory\":[],\"fullest\":{\"used\":5},"
			 "\"hour\":{\"over_ns\":0,\"bytes\":999999999999,\"incidents\":1e300}"));

	assert(!*row.problem && row.facts.devices == 0 && row.facts.bytes == 0 &&
	       row.facts.memory.dram.used == 0);
	assert(!row.facts.has_fullest && row.facts.hour.incidents == 0);
	assert(row.facts.hour.bytes == 0); /* nobody knows since when */
}

static struct fleet_row row_of(const char *host)
{
	return (struct fleet_row){
		.host = host,
		.facts = {.has_fullest = true, .fullest.amount = {.used = 10, .capacity = 100}}};
}

UNIT(rows_are_sorted_by_trouble)
{
	struct fleet_row rows[9], *row = rows;
	const char *wanted[] = {"down-2",      "down-10",    "full",  "fuller than half",
				"3 incidents", "1 incident", "grows", "degraded",
				"fine"};

	*row++ = row_of("fine");
	*row = row_of("degraded");
	row++->is_degraded = true;
	*row = row_of("grows");
	row++->facts.hour.bytes = FLEET_GROWTH_MIN + 1;
	*row = row_of("1 incident");
	row++->facts.hour.incidents = 1;
	*row = row_of("3 incidents");
	row++->facts.hour.incidents = 3;
	*row = row_of("fuller than half");
	row++->facts.fullest.amount.used = 91;
	*row = row_of("full");
	row++->facts.fullest.amount.used = 99;
	*row = row_of("down-10");
	strcpy(row++->problem, "x");
	*row = row_of("down-2");
	strcpy(row++->problem, "x");
	qsort(rows, 9, sizeof(*rows), fleet_row_compare);
	for (size_t i = 0; i < 9; i++)
		assert(strcmp(rows[i].host, wanted[i]) == 0);
}
