/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.replay/1. */

#include <stdio.h>
#include <string.h>

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/replay/replay-output.h"
#include "cli/replay/replay-walk.h"
#include "model/types.h"

#define REPLAY_TEXT TEXT_CLEAN_SIZE(256u) /* a name or a phase */

static void replay_json_who(struct emit *json, const struct replay_walk *walk,
			    const struct replay_device *device)
{
	const struct recording_owner *owner = recording_owner(walk->recording, device->book);
	char comm[TEXT_CLEAN_SIZE(sizeof(owner->book.comm))];

	text_clean(owner->book.comm, strnlen(owner->book.comm, sizeof(owner->book.comm)), comm);
	emit_u64(json, "pid", owner->book.pid);
	emit_string(json, "comm", comm);
	emit_u64(json, "device", device->device);
}

/* Since the start; a file may say anything. */
static void replay_json_at(struct emit *json, const struct replay_walk *walk, uint64_t time_ns)
{
	uint64_t start = recording_facts(walk->recording)->start_ns;

	emit_u64(json, "time_ns", time_ns);
	emit_u64(json, "at_ns", time_ns > start ? time_ns - start : 0);
}

static void replay_json_margin(struct emit *json, const struct replay_walk *walk, uint32_t type,
			       const struct refit_margin *margin)
{
	emit_open_object(json, NULL);
	emit_string(json, "type", types_name(type));
	emit_u64(json, "bank_size", margin->size);
	emit_u64(json, "banks", margin->banks);
	emit_u64(json, "free", margin->free);
	emit_u64(json, "largest", margin->largest);
	replay_json_at(json, walk, margin->moment);
	emit_close_object(json);
}

static void replay_json_devices(struct emit *json, const struct replay_walk *walk)
{
	emit_open_array(json, "devices");
	for (size_t i = 0; i < walk->count; i++) {
		const struct replay_device *device = &walk->devices[i];

		emit_open_object(json, NULL);
		replay_json_who(json, walk, device);
		emit_string(json, "recorded_on", *device->card ? device->card : NULL);
		emit_open_array(json, "margins");
		for (uint32_t type = 0; type < REFIT_MARGINS; type++) {
			const struct refit_margin *margin = &refit_margins(device->refit)[type];

			if (margin->is_known)
				replay_json_margin(json, walk, type, margin);
		}
		emit_close_array(json);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void replay_json_text(struct emit *json, const struct replay_walk *walk, const char *key,
			     uint32_t id)
{
	char text[REPLAY_TEXT];

	emit_string(json, key, replay_walk_text(walk, id, text, sizeof(text)) == 0 ? text : NULL);
}

static void replay_json_failed(struct emit *json, const struct replay_walk *walk)
{
	const struct replay_failed *failed = &walk->failed;
	const struct refit_failure *failure = &failed->failure;

	if (!walk->has_failed) {
		emit_null(json, "failed");
		return;
	}
	emit_open_object(json, "failed");
	replay_json_who(json, walk, &walk->devices[failed->device]);
	emit_string(json, "type", types_name(failed->buffer.type));
	emit_string(json, "memory", types_name(failure->memory));
	emit_string(json, "why", replay_why_name(failure->why));
	emit_u64(json, "event", failed->number);
	emit_bool(json, "from_table", failed->is_from_table);
	replay_json_at(json, walk, failed->time_ns);
	emit_u64(json, "size", failed->buffer.size);
	emit_u64(json, "page_size", failed->buffer.shape.page_size);
	emit_u64(json, "need", failure->need);
	emit_u64(json, "free", failure->free);
	emit_u64(json, "largest", failure->largest);
	emit_u64(json, "bank_size", failure->size);
	emit_u64(json, "banks", failure->banks);
	if (failure->why == REFIT_SHARDS)
		emit_u64(json, "shards", failure->shards);
	replay_json_text(json, walk, "name", failed->name);
	replay_json_text(json, walk, "phase", failed->phase);
	call_stack_put(json, replay_walk_stack(walk));
	emit_close_object(json);
}

void replay_json(const struct replay_walk *walk, uint64_t time_ns)
{
	static const char *const verdicts[] = {"runs", "fails", "unknown"};
	const struct recording_facts *facts = recording_facts(walk->recording);
	struct emit json = EMIT_INIT(stdout);
	struct refit_counts counts = replay_walk_counts(walk);
	char note[REPLAY_NOTE];

	document_open(&json, "ttmem.replay/1", time_ns);
	emit_string(&json, "file", facts->path);
	emit_string(&json, "command", facts->command);
	emit_string(&json, "card", walk->card_name);
	emit_string(&json, "fit", walk->fit == FREE_LIST_BEST ? "best" : "first");
	emit_string(&json, "verdict", verdicts[replay_verdict(walk)]);
	emit_bool(&json, "open_loop", true);
	emit_u64(&json, "events", walk->events);
	emit_u64(&json, "missed", walk->missed);
	emit_u64(&json, "allocations", counts.taken);
	emit_u64(&json, "guessed", counts.guessed);
	if (replay_walk_is_same(walk))
		emit_u64(&json, "same_address", counts.same);
	else
		emit_null(&json, "same_address");
	emit_u64(&json, "unjudged", counts.unjudged);
	emit_u64(&json, "from_table", walk->from_table);
	emit_u64(&json, "failed_then", walk->failed_then);
	emit_u64(&json, "failed_then_fit", walk->would_fit);
	emit_u64(&json, "failed_then_fail", walk->would_fail);
	replay_json_failed(&json, walk);
	replay_json_devices(&json, walk);
	document_list_end(&json, walk->missed == 0 && walk->from_table == 0 &&
					 counts.guessed == 0 && counts.unjudged == 0 &&
					 replay_walk_assumed(walk) == 0);
	emit_open_array(&json, "notes");
	for (unsigned int i = 0; replay_note(walk, i, note); i++)
		emit_string(&json, NULL, note);
	emit_close_array(&json);
	emit_close_object(&json);
	emit_end(&json);
}
