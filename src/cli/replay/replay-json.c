/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.replay/1. */

#include <stdio.h>

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/emit.h"
#include "cli/replay/replay-output.h"
#include "cli/replay/replay-walk.h"
#include "model/types.h"

static const char *replay_fit_name(uint32_t fit)
{
	static const char *const names[] = {[FREE_LIST_FIRST] = "first", [FREE_LIST_BEST] = "best"};

	return fit < ARRAY_SIZE(names) ? names[fit] : NULL;
}

static const char *replay_verdict_name(uint32_t verdict)
{
	static const char *const names[] = {"runs", "fails", "unknown"};

	return verdict < ARRAY_SIZE(names) ? names[verdict] : NULL;
}

static const char *replay_why_name(uint32_t why)
{
	static const char *const names[] = {
		[REFIT_LARGE] = "too_large", [REFIT_FULL] = "full",   [REFIT_CUT] = "cut_up",
		[REFIT_SHARDS] = "shards",   [REFIT_CLASH] = "clash",
	};

	return why < ARRAY_SIZE(names) ? names[why] : NULL;
}

static const char *replay_at(const void *context, char *text)
{
	const struct replay_margin *row = context;

	(void)snprintf(text, FIELDS_TEXT, "%.3f s", (double)row->at_ns / (double)NS_PER_S);
	return text;
}

static const char *replay_share(const void *context, char *text)
{
	const struct refit_margin *margin = ((const struct replay_margin *)context)->margin;

	(void)snprintf(text, FIELDS_TEXT, "%.1f %%",
		       margin->size ? 100 * (double)margin->free / (double)margin->size : 0);
	return text;
}

#define ROW struct replay_margin
#define DEVICE(...) FIELD_VIA(device, struct replay_device, __VA_ARGS__, .absent = FIELD_COLUMN)
#define MARGIN(...) FIELD_VIA(margin, struct refit_margin, __VA_ARGS__)

const struct field replay_margin_fields[] = {
	DEVICE("pid", SHORT, pid, .column = {"PID", true}),
	DEVICE("device", SHORT, device, .column = {"DEVICE", true}),
	FIELD("type", NAME, type, .names = types_name, .column = {"TYPE"}),
	MARGIN("bank_size", BYTES, size, .column = {"BANK", true, .order = 3}),
	MARGIN("banks", SHORT, banks, .least = 1, .column = {"BANKS", true, .order = 2}),
	MARGIN("free", BYTES, free, .says = "the least", .column = {"LEAST FREE", true}),
	MARGIN("largest", BYTES, largest, .says = "free block at that moment",
	       .column = {"FREE BLOCK", true}),
	MARGIN("time_ns", TIME, moment, .says = "the first moment at which it was so"),
	FIELD("at_ns", SPAN, at_ns, .says = "since the start of the recording", .people = replay_at,
	      .column = {"AT", true, .order = 1}),
	{.key = "share", .absent = FIELD_COLUMN, .people = replay_share, .column = {"", true}},
	FIELD_END,
};

const void *replay_each_margin(const void *context, size_t *at, struct fields_room *room)
{
	const struct replay_device *device = context;
	struct replay_margin *row = FIELDS_IN(room, struct replay_margin);

	while (*at < REFIT_MARGINS && !refit_margins(device->refit)[*at].is_known)
		++*at;
	if (*at >= REFIT_MARGINS)
		return NULL;
	row->device = device;
	row->type = (uint32_t)*at;
	row->margin = &refit_margins(device->refit)[(*at)++];
	/* A file may say anything. */
	row->at_ns = row->margin->moment - bits_min(row->margin->moment, device->facts->start_ns);
	return row;
}

#undef ROW
#define ROW struct replay_device

static const struct field replay_owner[] = {
	FIELD("pid", SHORT, pid),
	FIELD("comm", TEXT, comm),
	FIELD("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD_END,
};

static const struct field replay_device[] = {
	FIELD_MORE(replay_owner),
	FIELD_OR_NULL("recorded_on", TEXT, card, .says = "the card that the process declared"),
	FIELD_MADE("margins", replay_each_margin, replay_margin_fields,
		   .says = "how tight it was, in each bank; of CB: between circular buffers and "
			   "the buffers of L1"),
	FIELD_END,
};

#undef ROW
#define ROW struct replay_failed

static void replay_put_stack(struct emit *json, const char *key, const void *row)
{
	(void)key;
	call_stack_put(json, ((const struct replay_failed *)row)->stack);
}

static const struct field replay_failed[] = {
	FIELD_MORE_AT(owner, replay_owner),
	FIELD("type", NAME, buffer.type, .names = types_name),
	FIELD("memory", NAME, failure.memory, .names = types_name,
	      .says = "where it would have to lie"),
	FIELD("why", NAME, failure.why, .names = replay_why_name,
	      .says = "too_large: for an empty memory; full: fewer bytes are free; cut_up: no "
		      "free block is large enough; shards: more than there are banks; clash: "
		      "circular buffers would reach into L1 buffers"),
	FIELD("event", NUMBER, number, .says = "its number"),
	FIELD("from_table", BOOL, is_from_table),
	FIELD("time_ns", TIME, time_ns),
	FIELD("at_ns", SPAN, at_ns, .says = "since the start of the recording"),
	FIELD("size", BYTES, buffer.size),
	FIELD("page_size", BYTES, buffer.shape.page_size, .says = "0: not known"),
	FIELD("need", BYTES, failure.need),
	FIELD("free", BYTES, failure.free),
	FIELD("largest", BYTES, failure.largest,
	      .says = "free block; of a clash: what is free below the buffers of L1"),
	FIELD("bank_size", BYTES, failure.size),
	FIELD("banks", SHORT, failure.banks, .least = 1),
	FIELD_OR_NOTHING("shards", SHORT, failure.shards, .least = 1),
	FIELD_OR_NULL("name", TEXT, name),
	FIELD_OR_NULL("phase", TEXT, phase),
	FIELD_CODED("stack", replay_put_stack, .fields = call_stack_fields),
	FIELD_END,
};

#undef ROW
#define ROW struct replay_walk
#define FACT(...) FIELD_VIA(facts, struct recording_facts, __VA_ARGS__)

static const struct field replay_members[] = {
	FACT("file", TEXT, path),
	FACT("command", TEXT, command, .absent = FIELD_NULL),
	FIELD_OR_NULL("card", TEXT, card_name,
		      .says = "as it was given; null: the one that it was recorded on"),
	FIELD("fit", NAME, fit, .names = replay_fit_name),
	FIELD("verdict", NAME, verdict, .names = replay_verdict_name,
	      .says = "unknown: nothing could be judged"),
	FIELD("open_loop", NOT, is_closed_loop,
	      .says = "what the program asked for is taken as it was recorded"),
	FIELD("events", NUMBER, events,
	      .says = "that were replayed: all, or up to the one that failed"),
	FIELD("missed", NUMBER, missed, .says = "events that are not in the recording"),
	FIELD("allocations", NUMBER, counts.taken),
	FIELD("guessed", NUMBER, counts.guessed,
	      .says = "of them, those whose share of a bank had to be guessed"),
	FIELD_IF(is_same, "same_address", NUMBER, counts.same,
		 .says = "of them, those that lie where they were recorded; null: card, banks or "
			 "fit are others"),
	FIELD("unjudged", NUMBER, counts.unjudged,
	      .says = "buffers in a memory of which nothing is known"),
	FIELD("from_table", NUMBER, from_table,
	      .says = "buffers that were there without an event: before the recording, or after "
		      "a gap"),
	FIELD("failed_then", NUMBER, failed_then,
	      .says = "allocations that failed when they were recorded"),
	FIELD("failed_then_fit", NUMBER, would_fit,
	      .says = "of them, those for which there would have been room"),
	FIELD("failed_then_fail", NUMBER, would_fail,
	      .says = "of them, those for which there would not; of the others it is not known"),
	FIELD_STRUCT("failed", failed, replay_failed, .absent = FIELD_NULL,
		     .known = FIELD_KNOWN(has_failed),
		     .says = "the first allocation that would have failed; sizes are in each bank "
			     "but for size and page_size"),
	FIELD_ARRAY_AT("devices", ROWS, devices, count, .fields = replay_device),
	FIELD_END,
};

const struct document replay_document = {
	.schema = "ttmem.replay/1",
	.title = "ttmem replay --json",
	.members = replay_members,
	.has = DOCUMENT_LIST,
};

void replay_json(const struct replay_walk *walk, uint64_t time_ns)
{
	struct emit json = EMIT_INIT(stdout);
	char texts[REPLAY_NOTES][REPLAY_NOTE];
	const char *notes[REPLAY_NOTES];
	struct document_about about = {
		.time_ns = time_ns,
		.is_partial = walk->missed || walk->from_table || walk->counts.guessed ||
			      walk->counts.unjudged || walk->assumed,
		.notes = notes,
	};

	for (unsigned int i = 0; i < REPLAY_NOTES && replay_note(walk, i, texts[i]); i++)
		notes[about.note_count++] = texts[i];
	document_put_about(&json, &replay_document, &about, walk);
}
