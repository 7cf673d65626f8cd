/* SPDX-License-Identifier: Apache-2.0 */

/* The picture of "ttmem smi": title, devices, processes, notes. */

#include "cli/smi/smi.h"

#include <time.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/smi/smi-picture.h"
#include "model/snapshot.h"

#define SMI_WIDE 100u /* minimum width for the sensor column */
#define SMI_SIZE 10u  /* "1023.9 GiB" */

/* With --bytes: up to 99 TB, which needs more than 80 columns. */
#define SMI_BYTES_SIZE 14u
#define SMI_BYTES_WIDTH 96u

static void smi_table_title(const struct smi_picture *picture)
{
	time_t seconds = (time_t)(picture->snapshot->time_ns / NS_PER_S);
	char when[32] = "", version[32], title[SMI_WIDTH_MAX + 1];
	struct tm local;
	int length;

	if (localtime_r(&seconds, &local))
		(void)strftime(when, sizeof(when), "%F %T", &local); /* it fits */
	length = snprintf(version, sizeof(version), "ttmem %d.%d.%d", TTMEM_VERSION_MAJOR,
			  TTMEM_VERSION_MINOR, TTMEM_VERSION_PATCH);
	snprintf(title, sizeof(title), "%s%*s", version, (int)picture->width - 4 - length, when);
	smi_picture_rule(picture);
	smi_picture_across(picture, title);
}

static void smi_table_notes(const struct smi_picture *picture)
{
	const struct snapshot *snapshot = picture->snapshot;

	for (size_t i = 0; i < snapshot->note_count; i++) {
		fputs("note: ", picture->out);
		if (picture->style->cuts)
			smi_picture_left(picture, snapshot->notes[i], picture->width - 6);
		else
			text_put(picture->out, snapshot->notes[i]);
		fputc('\n', picture->out);
	}
	if (snapshot->notes_lost)
		fprintf(picture->out, "note: and %zu more notes\n", snapshot->notes_lost);
}

void smi_table(FILE *out, const struct snapshot *snapshot, const struct filter *filter,
	       const struct smi_style *style)
{
	bool bytes = text_shows_bytes();
	unsigned int least = bytes ? SMI_BYTES_WIDTH : SMI_WIDTH_MIN;
	unsigned int width = (unsigned int)bits_min(bits_max(style->width, least), SMI_WIDTH_MAX);
	struct smi_picture picture = {
		.out = out,
		.snapshot = snapshot,
		.filter = filter,
		.style = style,
		.width = width,
		.is_wide = width >= SMI_WIDE + (bytes ? SMI_BYTES_WIDTH - SMI_WIDTH_MIN : 0),
		.size = bytes ? SMI_BYTES_SIZE : SMI_SIZE,
	};
	struct table table;

	picture.has_sensors = picture.is_wide && smi_devices_have_sensors(&picture);
	if (style->users)
		smi_users(&picture, style->users, &table);
	else
		smi_processes(&picture, &table);
	if (style->widens)
		table_widen(&table, SMI_WIDTH_MAX);
	picture.width = table.width;
	smi_table_title(&picture);
	smi_devices(&picture);
	table_end(&table);
	smi_table_notes(&picture);
}
