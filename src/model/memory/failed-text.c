/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the allocator said when it failed counts first. Where it said nothing, and for the buffers that would
 * have to be freed, the memory is laid out from the live buffers of that moment, as "ttmem fit" does. That
 * is one allocator's memory only if no two of its buffers overlap, all are of the same space, and as much is
 * free as the allocator said. For a request on single cores it is not: buffers on other cores are in it too.
 */

#include "model/memory/failed-text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "model/memory/free-blocks.h"
#include "model/sites/group.h"
#include "model/sites/site-rows.h"
#include "model/snapshot.h"
#include "model/test-phase.h"
#include "model/types.h"

#define FAILED_TEXT_SHOWN 5u /* call sites, and buffers that would have to be freed */
#define FAILED_TEXT_LINE 4096u

struct failed_text {
	const struct snapshot_incident *failed;
	struct snapshot *then;
	uint32_t memory; /* that the type lies in; BOOK_TYPES = not known */
	bool is_laid_out;
	struct free_blocks blocks; /* if it is */
	FILE *out;
};

static uint32_t failed_text_memory(uint32_t type)
{
	return type < BOOK_TYPES && type != TYPES_KERNEL ? types_place(type) : BOOK_TYPES;
}

static bool failed_text_is_one_memory(const struct failed_text *text)
{
	const struct free_blocks *blocks = &text->blocks;
	uint64_t end = blocks->base;

	for (size_t i = 0; i < blocks->block_count; i++) {
		const struct free_blocks_block *block = &blocks->blocks[i];

		if (block->buffer->space != text->failed->space || block->address < end)
			return false;
		end = block->address + block->length;
	}
	return blocks->unplaced == 0;
}

/* An allocator of L1 hands out buffers only: circular buffers lie where their programs place them. */
static void failed_text_drop_circular(struct snapshot *then)
{
	size_t kept = 0;

	for (size_t i = 0; i < then->buffer_count; i++) {
		if (then->buffers[i].type != TYPES_CB)
			then->buffers[kept++] = then->buffers[i];
	}
	then->buffer_count = kept;
}

static void failed_text_lay_out(struct failed_text *text)
{
	const struct snapshot_part *part =
		text->then ? snapshot_find_part(text->then, 0, text->failed->device) : NULL;

	if (text->then && text->failed->type != TYPES_CB)
		failed_text_drop_circular(text->then);
	if (!part || text->memory >= BOOK_TYPES || text->failed->is_per_core)
		return;
	snapshot_sort_buffers(text->then, SNAPSHOT_BY_PLACE);
	text->is_laid_out =
		free_blocks_find(text->then, 0, part, text->memory, &text->blocks) == 0 &&
		failed_text_is_one_memory(text) &&
		(!text->failed->bank_size || text->blocks.free == text->failed->bank_free);
}

static void failed_text_put_phase(const char *phase, FILE *out)
{
	char name[FAILED_TEXT_LINE];
	struct test_phase test;

	if (!phase || !*phase)
		return;
	if (test_phase_parse(phase, &test))
		(void)snprintf(name, sizeof(name), "%.*s%s%s", (int)test.length, test.name,
			       *test.inner ? "/" : "", test.inner); /* cut if it is too long */
	else
		(void)snprintf(name, sizeof(name), "phase %s", phase);
	fputs(" in ", out);
	text_put(out, name);
}

static void failed_text_put_request(const struct failed_text *text, uint32_t pid)
{
	const struct snapshot_incident *failed = text->failed;
	const char *type = types_name(failed->type);
	char number[TEXT_NUMBER_SIZE], line[FAILED_TEXT_LINE];

	fprintf(text->out, "%s of %s on device %" PRIu32,
		failed->size ? text_size(failed->size, number) : "an unknown number of bytes",
		type ? type : "memory", failed->device);
	if (failed->size_per_bank && failed->banks)
		fprintf(text->out, " (%s in each of %" PRIu32 " banks)",
			text_size(failed->size_per_bank, number), failed->banks);
	fputs(" were asked for", text->out);
	if (failed->second.stack) {
		fputs(" by ", text->out);
		text_put(text->out, site_rows_single(failed->second.stack, line, sizeof(line)));
	}
	failed_text_put_phase(failed->second.phase, text->out);
	fprintf(text->out, ", pid %" PRIu32, pid);
	if (failed->count > 1)
		fprintf(text->out, ", for the last of %" PRIu64 " times", failed->count);
	fputc('.', text->out);
}

static void failed_text_put_largest(const struct failed_text *text)
{
	const struct snapshot_incident *failed = text->failed;
	char number[TEXT_NUMBER_SIZE];

	if (failed->largest_free == UINT64_MAX)
		fputs(" The largest free block is not known.", text->out);
	else
		fprintf(text->out, " The largest free block had %s%s.",
			text_size(failed->largest_free, number),
			failed->size_per_bank ? " in each bank" : "");
}

static void failed_text_put_free(const struct failed_text *text)
{
	const struct snapshot_incident *failed = text->failed;
	const struct free_blocks *blocks = &text->blocks;
	char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE], c[TEXT_NUMBER_SIZE];

	if (failed->bank_size) {
		fprintf(text->out, " %s were free of %s in each bank.",
			text_size(failed->bank_free, a), text_size(failed->bank_size, b));
	} else if (text->is_laid_out) {
		fprintf(text->out,
			" By its live buffers, %s were free of %s in each of %" PRIu32
			" banks, in blocks of at most %s%s.",
			text_size(blocks->free, a), text_size(blocks->size, b), blocks->banks,
			text_size(blocks->largest, c),
			blocks->guessed ? ", if they lie evenly in all banks" : "");
		if (failed->largest_free == UINT64_MAX)
			return;
	} else {
		fputs(" How much was free is not known.", text->out);
	}
	failed_text_put_largest(text);
}

static bool failed_text_is_in(const struct failed_text *text, const struct call_site *group)
{
	return group->bytes > 0 && (group->type == text->failed->type ||
				    failed_text_memory(group->type) == text->memory);
}

static void failed_text_put_holders(const struct failed_text *text)
{
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	const struct call_site *shown[FAILED_TEXT_SHOWN];
	char number[TEXT_NUMBER_SIZE], names[CALL_SITE_NAMES];
	uint64_t rest = 0;
	size_t count = 0, more = 0;

	if (!text->then || group_buffers(text->then, GROUP_SITE, false, &list) < 0) {
		fputs(" Who held the rest is not known any more.", text->out);
		return;
	}
	for (size_t i = 0; i < list.count; i++) {
		if (!failed_text_is_in(text, &list.groups[i]))
			continue;
		if (count < FAILED_TEXT_SHOWN) {
			shown[count++] = &list.groups[i];
			site_rows_add_stack(&rows, list.groups[i].stack);
		} else {
			rest += list.groups[i].bytes;
			more++;
		}
	}
	if (count == 0) {
		fputs(" This process held nothing of it.", text->out);
		return;
	}
	site_rows_finish(&rows);
	fputs(" It was held by: ", text->out);
	for (size_t i = 0; i < count; i++) {
		const char *site = site_rows_text(&rows, i);

		if (!*site)
			site = call_site_names(shown[i], names, sizeof(names));
		fprintf(text->out, "%s%s in %" PRIu64 " buffer%s, ", i ? "; " : "",
			text_size(shown[i]->bytes, number), shown[i]->buffers,
			shown[i]->buffers == 1 ? "" : "s");
		text_put(text->out, *site ? site : "(no stack)");
	}
	if (more)
		fprintf(text->out, "; %s at %zu more call site%s", text_size(rest, number), more,
			more == 1 ? "" : "s");
	fputc('.', text->out);
}

static void failed_text_put_buffers(const struct failed_text *text,
				    const struct free_blocks_fit *fit)
{
	size_t shown = bits_min(fit->count, FAILED_TEXT_SHOWN);
	char number[TEXT_NUMBER_SIZE], line[FAILED_TEXT_LINE];

	if (fit->verdict == FREE_BLOCKS_CUT)
		fputs(" That much is free, but fragmented.", text->out);
	fprintf(text->out, " It would have fit without %s, %s in each bank: ",
		fit->count == 1 ? "this buffer" : "these buffers", text_size(fit->bytes, number));
	for (size_t i = 0; i < shown; i++) {
		const struct snapshot_buffer *buffer = fit->of->blocks[fit->first + i].buffer;

		fputs(i ? "; " : "", text->out);
		if (buffer->name && *buffer->name) {
			text_put(text->out, buffer->name);
			fputc(' ', text->out);
		}
		fprintf(text->out, "at 0x%" PRIx64 " (%s", buffer->address,
			text_size(buffer->size, number));
		if (buffer->stack) {
			fputs(", ", text->out);
			text_put(text->out, site_rows_single(buffer->stack, line, sizeof(line)));
		}
		fputc(')', text->out);
	}
	if (fit->count > shown)
		fprintf(text->out, "; and %zu more", fit->count - shown);
	fputc('.', text->out);
}

/* What is certain of what has to go, without a layout. */
static void failed_text_put_least(const struct failed_text *text)
{
	const struct snapshot_incident *failed = text->failed;
	uint64_t need = failed->size_per_bank;
	char number[TEXT_NUMBER_SIZE];

	if (failed->is_per_core)
		fputs(" It was requested on single cores, each with its own addresses; which "
		      "buffers "
		      "would have to go is not known.",
		      text->out);
	else if (!need || !failed->bank_size)
		fputs(" What would have to go is not known.", text->out);
	else if (need > failed->bank_free)
		fprintf(text->out,
			" At least %s in each bank would have to go; which buffers is not known.",
			text_size(need - failed->bank_free, number));
	else
		fputs(" That much is free, but fragmented; which buffers would have to go is not "
		      "known.",
		      text->out);
}

static void failed_text_put_gone(const struct failed_text *text)
{
	const struct snapshot_incident *failed = text->failed;
	const struct free_blocks_request request = {.size = failed->size,
						    .per_bank = failed->size_per_bank};
	struct free_blocks_fit fit = {.count = 0};
	char number[TEXT_NUMBER_SIZE];

	if (failed->type == TYPES_CB && failed->size_per_bank > failed->bank_free) {
		/* They begin where no buffer can. */
		fprintf(text->out,
			" Freeing buffers does not help: the circular buffers have to become %s "
			"smaller.",
			text_size(failed->size_per_bank - failed->bank_free, number));
		return;
	}
	if (text->is_laid_out && failed->size)
		free_blocks_fit(&text->blocks, &request, &fit);
	if ((failed->bank_size && failed->size_per_bank > failed->bank_size) ||
	    (fit.of && fit.verdict == FREE_BLOCKS_LARGE))
		fputs(" No bank is that large: whatever goes, it does not fit.", text->out);
	else if (fit.count)
		failed_text_put_buffers(text, &fit);
	else
		failed_text_put_least(text);
}

char *failed_text(const struct snapshot_incident *failed, uint32_t pid, struct snapshot *then)
{
	struct failed_text text = {
		.failed = failed, .then = then, .memory = failed_text_memory(failed->type)};
	char *line = NULL;
	size_t length = 0;

	text.out = open_memstream(&line, &length);
	if (!text.out)
		return NULL;
	failed_text_lay_out(&text);
	failed_text_put_request(&text, pid);
	failed_text_put_free(&text);
	failed_text_put_holders(&text);
	failed_text_put_gone(&text);
	free_blocks_deinit(&text.blocks);
	if (fclose(text.out) == 0)
		return line;
	free(line);
	return NULL;
}
