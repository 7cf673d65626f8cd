/* SPDX-License-Identifier: Apache-2.0 */

/* Rules, cells and bars. */

#include "cli/smi/smi-picture.h"

#include <string.h>

#include "base/table.h"
#include "base/text.h"
#include "cli/smi/smi.h"
#include "model/amount.h"
#include "model/filter.h"
#include "model/merge.h"
#include "model/snapshot.h"

void smi_picture_rule(const struct smi_picture *picture)
{
	table_rule(picture->out, picture->width);
}

void smi_picture_across(const struct smi_picture *picture, const char *text)
{
	size_t width = text_width(text), inside = picture->width - 4;

	fprintf(picture->out, "| %s%*s |\n", text, width < inside ? (int)(inside - width) : 0, "");
}

void smi_picture_right(const struct smi_picture *picture, const char *text, unsigned int width)
{
	size_t used = text_width(text);

	fprintf(picture->out, "%*s%s", used < width ? (int)(width - used) : 0, "", text);
}

void smi_picture_left(const struct smi_picture *picture, const char *text, unsigned int width)
{
	char cell[TEXT_ESCAPE_SIZE(SMI_WIDTH_MAX)];

	text_fit(text, width, cell, sizeof(cell));
	fprintf(picture->out, "%s%*s", cell, (int)(width - text_width(cell)), "");
}

const char *smi_picture_bound(const struct smi_picture *picture, uint32_t bound)
{
	if (bound == SNAPSHOT_EXACT)
		return "";
	if (bound == SNAPSHOT_AT_LEAST)
		return picture->style->utf8 ? "\u2265" : ">";
	return picture->style->utf8 ? "\u2264" : "<";
}

void smi_picture_size(const struct smi_picture *picture, const struct snapshot_memory *amount,
		      unsigned int width)
{
	char number[TEXT_NUMBER_SIZE], cell[TEXT_NUMBER_SIZE + 8], *point;

	snprintf(cell, sizeof(cell), "%s%s", smi_picture_bound(picture, amount->bound),
		 text_size(amount->used, number));
	point = strchr(cell, '.');
	if (text_width(cell) > width && point) /* drop the tenths rather than break the alignment */
		memmove(point, point + 2, strlen(point + 2) + 1);
	smi_picture_right(picture, cell, width);
}

void smi_picture_cell(const struct smi_picture *picture, struct table *table,
		      const struct snapshot_memory *amount)
{
	char number[TEXT_NUMBER_SIZE];

	table_format(table, "%s%s", smi_picture_bound(picture, amount->bound),
		     text_size(amount->used, number));
}

void smi_picture_bar(const struct smi_picture *picture, double share, unsigned int width)
{
	const char *full = picture->style->utf8 ? "\u2588" : "#";
	const char *empty = picture->style->utf8 ? "\u2591" : ".";
	const char *colour = share >= 0.9 ? "\033[31m" : share >= 0.75 ? "\033[33m" : "\033[32m";

	if (picture->style->colours)
		fputs(colour, picture->out);
	for (unsigned int i = 0; i < width; i++)
		fputs(share * width >= i + 0.5 ? full : empty, picture->out);
	if (picture->style->colours)
		fputs("\033[0m", picture->out);
}

bool smi_picture_shows_device(const struct smi_picture *picture,
			      const struct snapshot_device *device)
{
	uint64_t buffers = 0;

	if (!filter_wants_device(picture->filter, device->device, device->unique_id))
		return false;
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		buffers |= device->memory[type].buffers;
	/* Show the device of a process that is only in a region, see below. */
	return picture->style->all || picture->filter->device_count || buffers || !device->closed ||
	       device->present || device->condition.state == SNAPSHOT_GONE || device->stale;
}

bool smi_picture_shows_process(const struct smi_picture *picture,
			       const struct snapshot_process *process)
{
	/* A process that is only in a region is shown to explain why the region is full. */
	return (process->alive || process->stale || picture->style->all) &&
	       filter_wants_user(picture->filter, process->user, process->user_id);
}
