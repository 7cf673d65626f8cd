/* SPDX-License-Identifier: Apache-2.0 */

/* The table of devices of several machines. */

#include "cli/smi/smi-fleet.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "model/amount.h"
#include "model/merge.h"
#include "model/types.h"

void smi_fleet_begin(struct smi_fleet *fleet, const char *kind)
{
	static struct table_column columns[] = {
		{"HOST", .cut = true, .least = 12},
		{"DEV"},
		{"", .cut = true, .least = 10},
		{"DRAM", true},
		{"%", true},
		{"L1", true},
		{"%", true},
		{"BUFFERS", true},
	};

	columns[2].title = kind;
	fleet->dram = fleet->l1 = fleet->buffers = 0;
	table_begin(&fleet->table, stdout, columns, ARRAY_SIZE(columns), output_width());
}

/* What is used of one memory, and of how much; added to the sum. */
static void fleet_put(struct table *table, const struct snapshot_memory *memory, uint64_t *sum)
{
	double percent =
		memory->capacity ? 100.0 * (double)memory->used / (double)memory->capacity : 0;
	char number[TEXT_NUMBER_SIZE];

	*sum = merge_add(*sum, memory->used);
	table_text(table, text_size(memory->used, number));
	if (!memory->capacity)
		table_text(table, "-");
	else if (percent > 999) /* one of the two is wrong */
		table_text(table, ">999");
	else
		table_format(table, "%.0f", percent);
}

void smi_fleet_row(struct smi_fleet *fleet, const char *host, const char *number, const char *kind,
		   const struct snapshot_device *device)
{
	const struct snapshot_memory dram = amount_of_device(device, TYPES_DRAM);
	const struct snapshot_memory l1 = amount_of_device(device, TYPES_L1);
	uint64_t buffers = amount_of_device(device, AMOUNT_ALL).buffers;

	table_text(&fleet->table, host);
	table_text(&fleet->table, number);
	table_text(&fleet->table, kind && *kind ? kind : "-");
	fleet_put(&fleet->table, &dram, &fleet->dram);
	fleet_put(&fleet->table, &l1, &fleet->l1);
	table_format(&fleet->table, "%" PRIu64, buffers);
	fleet->buffers = merge_add(fleet->buffers, buffers);
}

void smi_fleet_lack(struct smi_fleet *fleet, const char *host, const char *why)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "(%s)", why); /* truncation is fine */
	table_text(&fleet->table, host);
	table_span(&fleet->table, fleet->table.count - 1, text);
}

bool smi_fleet_end(struct smi_fleet *fleet, bool is_known)
{
	char dram[TEXT_NUMBER_SIZE], l1[TEXT_NUMBER_SIZE];

	table_end(&fleet->table);
	if (is_known)
		printf("%s of DRAM and %s of L1 in %" PRIu64 " buffer%s",
		       text_size(fleet->dram, dram), text_size(fleet->l1, l1), fleet->buffers,
		       fleet->buffers == 1 ? "" : "s");
	else
		puts("no machine has answered");
	return is_known;
}
