/* SPDX-License-Identifier: Apache-2.0 */

/* The table of devices of several machines. */

#include "cli/smi/smi-fleet.h"

#include <inttypes.h>
#include <stdio.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "model/merge.h"
#include "model/types.h"

void smi_fleet_add(struct smi_fleet_sums *sums, uint32_t type, uint64_t used, uint64_t capacity)
{
	if (types_folded(type) == TYPES_L1)
		sums->l1 = merge_add(sums->l1, used);
	else if (types_folded(type) == TYPES_DRAM)
		sums->dram = merge_add(sums->dram, used);
	if (type == TYPES_L1)
		sums->l1_capacity = bits_max(sums->l1_capacity, capacity);
	if (type == TYPES_DRAM)
		sums->dram_capacity = bits_max(sums->dram_capacity, capacity);
}

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
	fleet->all = (struct smi_fleet_sums){0};
	table_begin(&fleet->table, stdout, columns, ARRAY_SIZE(columns), output_width());
}

static void fleet_part(struct table *table, uint64_t used, uint64_t capacity)
{
	double percent = capacity ? 100.0 * (double)used / (double)capacity : 0;

	if (!capacity)
		table_text(table, "-");
	else if (percent > 999) /* one of the two is wrong */
		table_text(table, ">999");
	else
		table_format(table, "%.0f", percent);
}

void smi_fleet_row(struct smi_fleet *fleet, const char *host, const char *device, const char *kind,
		   const struct smi_fleet_sums *sums)
{
	struct table *table = &fleet->table;
	char number[TEXT_NUMBER_SIZE];

	table_text(table, host);
	table_text(table, device);
	table_text(table, *kind ? kind : "-");
	table_text(table, text_size(sums->dram, number));
	fleet_part(table, sums->dram, sums->dram_capacity);
	table_text(table, text_size(sums->l1, number));
	fleet_part(table, sums->l1, sums->l1_capacity);
	table_format(table, "%" PRIu64, sums->buffers);
	fleet->all.dram = merge_add(fleet->all.dram, sums->dram);
	fleet->all.l1 = merge_add(fleet->all.l1, sums->l1);
	fleet->all.buffers = merge_add(fleet->all.buffers, sums->buffers);
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
		       text_size(fleet->all.dram, dram), text_size(fleet->all.l1, l1),
		       fleet->all.buffers, fleet->all.buffers == 1 ? "" : "s");
	else
		puts("no machine has answered");
	return is_known;
}

void smi_fleet_end_json(struct emit *json)
{
	emit_close_array(json);
	document_list_end(json, true);
	document_close_bare(json);
}
