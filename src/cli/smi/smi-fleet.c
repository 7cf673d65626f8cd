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

#define FLEET_HOST_MIN 12u
#define FLEET_HOST_MAX 64u
#define FLEET_KIND_MIN 10u
#define FLEET_KIND_MAX 20u
#define FLEET_REST 50u /* all other columns, and the gaps */

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

/*
 * On a terminal the host name may use what the minimal kind column leaves; the kind gets the rest.
 */
static void fleet_widths(size_t longest, int *ret_host, int *ret_kind)
{
	uint64_t host = bits_min(bits_max(longest, FLEET_HOST_MIN), FLEET_HOST_MAX);
	uint64_t kind = FLEET_KIND_MAX;

	if (output_is_terminal()) {
		uint64_t least = FLEET_HOST_MIN + FLEET_KIND_MIN;
		uint64_t room = bits_max(output_columns(), FLEET_REST + least) - FLEET_REST;

		host = bits_min(host, room - FLEET_KIND_MIN);
		kind = bits_min(kind, room - host);
	}
	*ret_host = (int)host;
	*ret_kind = (int)kind;
}

void smi_fleet_begin(struct smi_fleet *fleet, const char *kind, size_t longest)
{
	const struct table_column columns[SMI_FLEET_COLUMNS] = {
		{"HOST", 0, false, true}, {"DEV", 3, true, false},     {kind, 0, false, true},
		{"DRAM", 9, true, false}, {"%", 4, true, false},       {"L1", 9, true, false},
		{"%", 4, true, false},    {"BUFFERS", 7, true, false},
	};

	for (size_t i = 0; i < SMI_FLEET_COLUMNS; i++)
		fleet->columns[i] = columns[i];
	fleet->all = (struct smi_fleet_sums){0};
	fleet_widths(longest, &fleet->columns[0].width, &fleet->columns[2].width);
	table_begin_within(&fleet->table, stdout, fleet->columns, SMI_FLEET_COLUMNS,
			   output_width());
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

void smi_fleet_lack(const struct smi_fleet *fleet, const char *host, const char *why)
{
	size_t width = (size_t)fleet->columns[0].width, is = text_width(host);

	text_put(stdout, host);
	printf("%*s  (%s)\n", (int)(width - bits_min(width, is)), "", why);
}

void smi_fleet_end(const struct smi_fleet *fleet)
{
	char dram[TEXT_NUMBER_SIZE], l1[TEXT_NUMBER_SIZE];

	printf("%s of DRAM and %s of L1 in %" PRIu64 " buffer%s", text_size(fleet->all.dram, dram),
	       text_size(fleet->all.l1, l1), fleet->all.buffers,
	       fleet->all.buffers == 1 ? "" : "s");
}

void smi_fleet_end_json(struct emit *json)
{
	emit_close_array(json);
	document_list_end(json, true);
	document_close_bare(json);
}
