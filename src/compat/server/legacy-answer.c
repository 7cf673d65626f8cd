/* SPDX-License-Identifier: Apache-2.0 */

/* Answers to old clients. */

#include "compat/server/legacy-answer.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/small-file.h"
#include "base/text.h"
#include "compat/logs/legacy-lines.h"
#include "compat/server/legacy-totals.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

#define ANSWER_CLASS "class/tenstorrent"
#define ANSWER_DEVICE "tenstorrent!" /* and the number */

static const struct {
	const char *name; /* as applications declare it */
	const char *pci;  /* as sysfs has it */
	uint8_t number;   /* as the old protocol has it */
} answer_archs[] = {
	{"grayskull", "0xfaca", 1}, {"wormhole_b0", "0x401e", 2}, {"wormhole", NULL, 2},
	{"blackhole", "0xb140", 3}, {"quasar", NULL, 4},
};

static uint8_t answer_arch(const char *name, const char *pci)
{
	for (size_t i = 0; i < ARRAY_SIZE(answer_archs); i++) {
		if ((name && strcasecmp(name, answer_archs[i].name) == 0) ||
		    (pci && answer_archs[i].pci && strcasecmp(pci, answer_archs[i].pci) == 0))
			return answer_archs[i].number;
	}
	return 0;
}

static uint8_t answer_read_arch(int folder, const char *name)
{
	char path[300], text[16];

	(void)snprintf(path, sizeof(path), "%s/device/device", name);
	if (small_file_read_line(folder, path, text, sizeof(text)) < 0)
		return 0;
	return answer_arch(NULL, text);
}

void legacy_answer_read_devices(struct legacy_answer_devices *ret_devices)
{
	const char *root = secure_getenv("TTMEM_SYS_ROOT");
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	const struct dirent *entry;
	char path[4096];

	memset(ret_devices, 0, sizeof(*ret_devices));
	(void)snprintf(path, sizeof(path), "%s/" ANSWER_CLASS, root && *root ? root : "/sys");
	listing = opendir(path);
	if (!listing)
		return;
	while ((entry = readdir(listing))) {
		size_t length = strlen(ANSWER_DEVICE);
		uint64_t number;

		if (strncmp(entry->d_name, ANSWER_DEVICE, length) != 0 ||
		    text_parse_u64(entry->d_name + length, &number) < 0 || number >= BOOK_DEVICES)
			continue;
		ret_devices->known[number] = 1;
		ret_devices->arch[number] = answer_read_arch(dirfd(listing), entry->d_name);
		ret_devices->count = (uint32_t)bits_max(ret_devices->count, number + 1);
	}
}

static void answer_totals(const struct snapshot *snapshot, int32_t device,
			  struct legacy_totals *ret_totals)
{
	if (device < 0 || legacy_totals_next(snapshot, (uint32_t)device, ret_totals) < 0 ||
	    ret_totals->device != (uint32_t)device)
		memset(ret_totals, 0, sizeof(*ret_totals));
}

static uint64_t answer_l1_small(const struct legacy_totals *totals)
{
	return merge_add(totals->types[TYPES_L1_SMALL].bytes,
			 totals->types[TYPES_SYSTEM_MEMORY].bytes);
}

void legacy_answer_query(const struct snapshot *snapshot, int32_t device,
			 struct legacy_answer *ret_answer)
{
	struct legacy_totals totals;

	answer_totals(snapshot, device, &totals);
	*ret_answer = (struct legacy_answer){
		.type = LEGACY_RESPONSE,
		.device = device,
		.dram = totals.types[TYPES_DRAM].bytes,
		.l1 = totals.types[TYPES_L1].bytes,
		.l1_small = answer_l1_small(&totals),
		.trace = totals.types[TYPES_TRACE].bytes,
		.cb = totals.types[TYPES_CB].bytes,
		.kernel = totals.types[TYPES_KERNEL].bytes,
	};
}

/* Clients ask for 0 to n - 1. */
static uint32_t answer_count(const struct snapshot *snapshot,
			     const struct legacy_answer_devices *devices)
{
	uint32_t count = devices->count, device = 0;
	struct legacy_totals totals;

	while (legacy_totals_next(snapshot, device, &totals) == 0) {
		device = totals.device + 1;
		count = (uint32_t)bits_max(count, device);
	}
	return count;
}

/* What processes declared; of two that differ, the larger figure. */
static void answer_facts(const struct snapshot_facts *facts, struct legacy_answer *answer)
{
	uint8_t arch = answer_arch(facts->arch, NULL);

	answer->total_dram = bits_max(answer->total_dram, facts->capacity[TYPES_DRAM]);
	answer->total_l1 = bits_max(answer->total_l1, facts->capacity[TYPES_L1]);
	answer->dram_per_channel = bits_max(answer->dram_per_channel, facts->dram_bank_size);
	answer->l1_per_core = bits_max(answer->l1_per_core, facts->l1_per_core);
	answer->dram_channels = (uint32_t)bits_max(answer->dram_channels, facts->dram_banks);
	if (arch)
		answer->arch = arch;
}

void legacy_answer_info(const struct snapshot *snapshot,
			const struct legacy_answer_devices *devices, int32_t device,
			struct legacy_answer *ret_answer)
{
	struct legacy_answer answer = {.type = LEGACY_DEVICE_INFO_RESPONSE, .device = device};

	if (device < 0) {
		if (device == -1)
			answer.devices = answer_count(snapshot, devices);
		answer.available = answer.devices > 0;
		*ret_answer = answer;
		return;
	}
	if ((uint32_t)device < BOOK_DEVICES && devices->known[device]) {
		answer.available = true;
		answer.arch = devices->arch[device];
	}
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_part *part =
			snapshot_find_part(snapshot, (uint32_t)i, (uint32_t)device);

		if (!part || !snapshot->processes[i].alive)
			continue;
		answer.available = true;
		answer_facts(&part->facts, &answer);
	}
	*ret_answer = answer;
}

static void answer_text_rows(FILE *out, const struct snapshot *snapshot,
			     const struct legacy_totals *totals, uint32_t type, size_t *rows)
{
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		if (buffer->device != totals->device || buffer->type != type ||
		    !snapshot->processes[buffer->process].alive)
			continue;
		if (++*rows > LEGACY_ANSWER_ROWS_MAX)
			return;
		fprintf(out,
			"    - Buffer 0x%" PRIx64 ": %g KB (PID %" PRIu32 ", ref_count=%" PRIu32
			")",
			buffer->address, (double)buffer->size / 1024.0,
			snapshot->processes[buffer->process].pid, buffer->refs);
		if (buffer->name) {
			fputc(' ', out);
			text_put(out, buffer->name);
		}
		fputc('\n', out);
	}
}

void legacy_answer_text(FILE *out, const struct snapshot *snapshot)
{
	struct legacy_totals totals;
	uint64_t buffers = 0;
	uint32_t device = 0;
	size_t rows = 0;

	while (legacy_totals_next(snapshot, device, &totals) == 0) {
		device = totals.device + 1;
		fprintf(out, "Device %" PRIu32 ":\n", totals.device);
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			if (totals.types[type].buffers == 0)
				continue;
			buffers = merge_add(buffers, totals.types[type].buffers);
			fprintf(out, "  %s: %" PRIu64 " buffers, %.2f MB total\n", types_name(type),
				totals.types[type].buffers,
				(double)totals.types[type].bytes / LEGACY_LINES_MB);
			answer_text_rows(out, snapshot, &totals, type, &rows);
		}
	}
	if (rows > LEGACY_ANSWER_ROWS_MAX)
		fprintf(out, "Not all are listed: the first %u only\n", LEGACY_ANSWER_ROWS_MAX);
	fprintf(out, "Total remaining buffers: %" PRIu64 "\n", buffers);
}

void legacy_answer_statistics(FILE *out, const struct snapshot *snapshot)
{
	struct legacy_totals totals;
	uint32_t device = 0;

	while (legacy_totals_next(snapshot, device, &totals) == 0) {
		const struct legacy_statistics record = {
			.device = totals.device,
			.buffers = legacy_totals_sum(&totals, 0, LEGACY_TOTALS_BUFFERS).buffers,
			.dram = totals.types[TYPES_DRAM].bytes,
			.l1 = totals.types[TYPES_L1].bytes,
			.l1_small = answer_l1_small(&totals),
			.trace = totals.types[TYPES_TRACE].bytes,
		};

		device = totals.device + 1;
		(void)fwrite(&record, sizeof(record), 1, out); /* into memory; checked at the end */
	}
}
