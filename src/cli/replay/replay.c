/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem replay: would a recorded run have run on another card, or with another way to place buffers? */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/replay/replay-output.h"
#include "cli/replay/replay-walk.h"
#include "model/cards/card.h"
#include "model/types.h"

/* Besides the usual ones, as of ttmem fit; COMMAND_FAILED: it would not have run. */
#define REPLAY_EXIT_UNKNOWN 3

#define REPLAY_BANKS_MAX 4096u /* more than any chip has cores */

struct replay_options {
	struct replay_walk walk;
	bool json;
	const char *file;
};

/* Looked up after the other options, because a mistake is told with the names that there are. */
static int replay_find_card(struct replay_walk *walk)
{
	char names[512] = "";
	size_t length = 0;

	if (!walk->card_name)
		return 0;
	walk->card.facts = card_find(walk->card_name);
	if (walk->card.facts)
		return 0;
	for (size_t i = 0; card_at(i) && length < sizeof(names); i++)
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
					   i ? ", " : "", card_at(i)->card);
	return options_mistake("replay", "--card expects one of %s, got \"%s\"", names,
			       walk->card_name);
}

static int replay_parse_fit(void *target, const char *text)
{
	enum free_list_fit *fit = target;

	if (strcmp(text, "first") != 0 && strcmp(text, "best") != 0)
		return -EINVAL;
	*fit = strcmp(text, "best") == 0 ? FREE_LIST_BEST : FREE_LIST_FIRST;
	return 0;
}

/* "7" is of DRAM, "L1=56" of L1. */
static int replay_parse_banks(void *target, const char *text)
{
	struct refit_card *card = target;
	const char *number = strchr(text, '=');
	uint32_t type = TYPES_DRAM;
	char name[16] = "";
	uint64_t banks;

	if (number && (size_t)(number - text) < sizeof(name)) {
		memcpy(name, text, (size_t)(number - text));
		if (types_parse(name, &type) < 0 || (type != TYPES_DRAM && type != TYPES_L1))
			return -EINVAL;
	} else if (number) {
		return -EINVAL;
	}
	if (text_parse_u64(number ? number + 1 : text, &banks) < 0 || banks == 0 ||
	    banks > REPLAY_BANKS_MAX)
		return -EINVAL;
	*(type == TYPES_L1 ? &card->l1_banks : &card->dram_banks) = (uint32_t)banks;
	return 0;
}

static int replay_parse(struct replay_options *replay, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "card", "CARD", "on this card, such as n150 or p150 (the recorded one)",
		 &replay->walk.card_name, options_text},
		{0, "fit", "first|best",
		 "which free block a buffer gets: the first one that fits, as in tt-metal, or the "
		 "best",
		 &replay->walk.fit, replay_parse_fit},
		{0, "banks", "[L1=]N", "with so many banks of DRAM, or of L1; may be given twice",
		 &replay->walk.card, replay_parse_banks},
		{0, "json", NULL, "as JSON", &replay->json, NULL},
	};
	const struct options options = {
		.command = "replay",
		.arguments = "FILE",
		.summary =
			"Would a recorded run have run on another card? Exit code 0 if it would, "
			"1 if not, 3 if\nit is not known. What the program asked for is taken as "
			"it was recorded.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.shows_sizes = true,
	};
	int count = 0, r = options_parse(&options, argc, argv, &count);

	if (r != 0)
		return r;
	if (count != 1)
		return options_count(&options, "one recording", count);
	replay->file = argv[0];
	return replay_find_card(&replay->walk);
}

/* 0, or the exit code after the reason was reported. */
static int replay_open(const char *file, struct recording **ret_recording)
{
	char why[RECORDING_WHY_SIZE], reason[TEXT_ESCAPE_SIZE(RECORDING_WHY_SIZE)];

	if (recording_open(ret_recording, file, why) == 0)
		return 0;
	text_escape(why, reason, sizeof(reason)); /* with the file's name */
	fprintf(stderr, "ttmem replay: %s\n", reason);
	return COMMAND_FAILED;
}

static int replay_run(int argc, char **argv)
{
	CLEANUP(recording_cleanup) struct recording *recording = NULL;
	struct replay_options replay = {.json = false};
	CLEANUP(replay_walk_deinit) struct replay_walk walk = {.recording = NULL};
	int r = replay_parse(&replay, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	r = replay_open(replay.file, &recording);
	if (r != 0)
		return r;
	walk = replay.walk;
	walk.recording = recording;
	r = replay_walk(&walk);
	if (r < 0)
		return output_fail("replay", "cannot read the recording", r);
	if (replay.json)
		replay_json(&walk, clock_ns(CLOCK_REALTIME));
	else
		replay_text(&walk);
	r = output_finish();
	if (r != COMMAND_OK || walk.verdict == REPLAY_FAILS)
		return COMMAND_FAILED;
	return walk.verdict == REPLAY_NOT_KNOWN ? REPLAY_EXIT_UNKNOWN : COMMAND_OK;
}

const struct command replay_command = {
	.name = "replay",
	.summary = "would a recorded run have run on another card?",
	.run = replay_run,
};
