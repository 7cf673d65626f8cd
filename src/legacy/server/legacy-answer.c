/* SPDX-License-Identifier: Apache-2.0 */

/* Answers to old clients. */

#include "legacy/server/legacy-answer.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "answers/seed-lines.h"
#include "base/bits.h"
#include "base/text.h"
#include "daemon/registry/access.h"
#include "legacy/server/legacy-totals.h"
#include "model/cards/card.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

static const struct {
	const char *name; /* as applications declare it */
	uint8_t number;   /* as the old protocol has it */
} answer_archs[] = {
	{"grayskull", 1}, {"wormhole_b0", 2}, {"wormhole", 2}, {"blackhole", 3}, {"quasar", 4},
};

static uint8_t answer_arch(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(answer_archs); i++) {
		if (name && strcasecmp(name, answer_archs[i].name) == 0)
			return answer_archs[i].number;
	}
	return 0;
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
static uint32_t answer_count(const struct snapshot *snapshot)
{
	struct legacy_totals totals;
	uint32_t count = 0, device = 0;

	for (size_t i = 0; i < snapshot->device_count; i++) {
		if (snapshot->devices[i].present)
			count = (uint32_t)bits_max(count, snapshot->devices[i].number + 1);
	}
	while (legacy_totals_next(snapshot, device, &totals) == 0) {
		device = totals.device + 1;
		count = (uint32_t)bits_max(count, device);
	}
	return count;
}

/*
 * What a row does not have, of processes that declare what the row shows: it has what the driver
 * says, and what users agree on.
 */
static void answer_facts(const struct snapshot_facts *facts, const struct snapshot_device *row,
			 struct legacy_answer *answer)
{
	uint64_t dram = facts->capacity[TYPES_DRAM], l1 = facts->capacity[TYPES_L1];

	if (dram && dram == row->memory[TYPES_DRAM].capacity) {
		answer->total_dram = bits_max(answer->total_dram, dram);
		answer->dram_per_channel =
			bits_max(answer->dram_per_channel, facts->dram_bank_size);
		answer->dram_channels =
			(uint32_t)bits_max(answer->dram_channels, facts->dram_banks);
	}
	if (l1 && l1 == row->memory[TYPES_L1].capacity) {
		answer->total_l1 = bits_max(answer->total_l1, l1);
		answer->l1_per_core = bits_max(answer->l1_per_core, facts->l1_per_core);
	}
	if (facts->declared || facts->unique_id)
		answer->available = true;
}

/* The driver and the table of cards fill in what no process declared. */
static void answer_row(const struct snapshot_device *row, struct legacy_answer *answer)
{
	static const struct card_facts none = {.card = NULL};
	const struct card_facts *card = card_find(row->card);

	if (!card)
		card = &none;
	if (!answer->total_dram)
		answer->total_dram = row->memory[TYPES_DRAM].capacity;
	if (!answer->total_l1)
		answer->total_l1 = row->memory[TYPES_L1].capacity;
	if (!answer->dram_per_channel)
		answer->dram_per_channel = card->dram_bank_size;
	if (!answer->dram_channels)
		answer->dram_channels = card->dram_banks;
	if (!answer->l1_per_core)
		answer->l1_per_core = card->l1_per_core;
	if (!answer->arch)
		answer->arch = answer_arch(row->arch);
	if (row->present || answer->total_dram || answer->total_l1 || answer->arch)
		answer->available = true;
}

/* The card with that number: for a device that no process has, or none of them described. */
static void answer_card(const struct snapshot *snapshot, uint32_t device,
			struct legacy_answer *answer)
{
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *row = &snapshot->devices[i];

		if (row->present && row->number == device)
			answer_row(row, answer);
	}
}

void legacy_answer_info(const struct snapshot *snapshot, int32_t device,
			struct legacy_answer *ret_answer)
{
	struct legacy_answer answer = {.type = LEGACY_DEVICE_INFO_RESPONSE, .device = device};

	if (device < 0) {
		if (device == -1)
			answer.devices = answer_count(snapshot);
		answer.available = answer.devices > 0;
		*ret_answer = answer;
		return;
	}
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_part *part =
			snapshot_find_part(snapshot, (uint32_t)i, (uint32_t)device);

		if (!part || !snapshot->processes[i].alive)
			continue;
		answer_facts(&part->facts, &snapshot->devices[part->row], &answer);
		answer_row(&snapshot->devices[part->row], &answer);
	}
	if (!answer.available)
		answer_card(snapshot, (uint32_t)device, &answer);
	*ret_answer = answer;
}

/* An answer to QUERY_ALL that is being written. */
struct answer_text {
	FILE *out;
	const struct snapshot *snapshot;
	const struct access_peer *who;
	size_t rows; /* one more than the limit: there are too many */
};

static bool answer_text_sees(const struct answer_text *text, const struct snapshot_buffer *buffer)
{
	const struct snapshot_process *process = &text->snapshot->processes[buffer->process];

	return access_may_see(text->who, process->maker_id, process->namespaces);
}

/* How many buffers are not listed because they are others'. */
static uint64_t answer_text_hidden(const struct answer_text *text)
{
	const struct snapshot *snapshot = text->snapshot;
	uint64_t hidden = 0;

	for (size_t i = 0; i < snapshot->buffer_count; i++)
		hidden += snapshot->processes[snapshot->buffers[i].process].alive &&
			  !answer_text_sees(text, &snapshot->buffers[i]);
	return hidden;
}

static void answer_text_rows(struct answer_text *text, uint32_t device, uint32_t type)
{
	const struct snapshot *snapshot = text->snapshot;

	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		const struct snapshot_process *process = &snapshot->processes[buffer->process];

		if (buffer->device != device || buffer->type != type || !process->alive ||
		    !answer_text_sees(text, buffer))
			continue;
		if (++text->rows > LEGACY_ANSWER_ROWS_MAX)
			return;
		fprintf(text->out,
			"    - Buffer 0x%" PRIx64 ": %g KB (PID %" PRIu32 ", ref_count=%" PRIu32
			")",
			buffer->address, (double)buffer->size / 1024.0, process->id.pid,
			buffer->refs);
		if (buffer->name) {
			fputc(' ', text->out);
			text_put(text->out, buffer->name);
		}
		fputc('\n', text->out);
	}
}

void legacy_answer_text(FILE *out, const struct snapshot *snapshot, const struct access_peer *who)
{
	struct answer_text text = {.out = out, .snapshot = snapshot, .who = who};
	struct legacy_totals totals;
	uint64_t buffers = 0, hidden;
	uint32_t device = 0;

	while (legacy_totals_next(snapshot, device, &totals) == 0) {
		device = totals.device + 1;
		fprintf(out, "Device %" PRIu32 ":\n", totals.device);
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			if (totals.types[type].buffers == 0)
				continue;
			buffers = merge_add(buffers, totals.types[type].buffers);
			fprintf(out, "  %s: %" PRIu64 " buffers, %.2f MB total\n", types_name(type),
				totals.types[type].buffers,
				(double)totals.types[type].bytes / SEED_LINES_MB);
			answer_text_rows(&text, totals.device, type);
		}
	}
	hidden = answer_text_hidden(&text);
	if (hidden > 0)
		fprintf(out, "Not listed: %" PRIu64 " buffers of other users\n", hidden);
	if (text.rows > LEGACY_ANSWER_ROWS_MAX)
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
