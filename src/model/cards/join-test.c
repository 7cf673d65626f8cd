/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rule as a table: what the driver, the process, its regions and its environment say, and which
 * card each device must be. Then all combinations of them against what no rule may ever do.
 */

#include "model/cards/join.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/cards/testing/join-table.h"
#include "model/snapshot.h"
#include "model/types.h"

static struct snapshot_process identity(uint32_t pid, const char *visible, bool nodes_known)
{
	return (struct snapshot_process){
		.id.pid = pid,
		.id.start_ticks = pid,
		.comm = "test",
		.user = "me",
		.source = "book",
		.alive = true,
		.exact = true,
		.visible = visible,
		.nodes_known = nodes_known,
	};
}

static void add_cards(struct snapshot *snapshot, const struct table_card *cards, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct snapshot_card card = {.number = (uint32_t)i,
					     .unique_id = cards[i].id,
					     .serial = cards[i].serial,
					     .bus = cards[i].bus,
					     .card = "n150"};

		assert(snapshot_add_card(snapshot, &card) == 0);
	}
}

/* A process with 1 byte of DRAM on each of its devices. */
static uint32_t add_process(struct snapshot *snapshot, const struct snapshot_process *process,
			    uint32_t open, const struct table_part *parts, size_t count)
{
	uint32_t index;

	assert(snapshot_add_process(snapshot, process, &index) == 0);
	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_claim claim = {.process = *process,
					       .device = i,
					       .facts = {.unique_id = ASIC(parts[i].region)},
					       .types = 0x7f,
					       .used = {1}};
		struct snapshot_part *part = snapshot_part(snapshot, index, i);
		struct snapshot_memory memory = {.used = 1, .buffers = 1, .peak = 1};

		assert(part);
		part->facts.unique_id = parts[i].id;
		part->facts.remote = parts[i].remote;
		snapshot_add_memory(&part->memory[TYPES_DRAM], &memory);
		if (parts[i].region)
			assert(snapshot_add_claim(snapshot, &claim) == 0);
	}
	for (uint32_t node = 0; open >> node; node++) {
		struct snapshot_claim claim = {
			.process = *process, .device = node, .is_open_only = true};

		claim.process.untracked = true;
		if (open >> node & 1)
			assert(snapshot_add_claim(snapshot, &claim) == 0);
	}
	return index;
}

static bool is_as_expected(const struct snapshot *snapshot, const struct table_row *row)
{
	const struct snapshot_process *process = &snapshot->processes[0];
	bool same = snapshot->device_count == row->rows && process->part_count == row->part_count;

	for (size_t i = 0; same && i < row->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];
		const struct table_part *want = &row->parts[i];
		const struct snapshot_device *device = &snapshot->devices[part->row];
		int card = part->card == SNAPSHOT_NO_CARD ? NONE
							  : (int)snapshot->cards[part->card].number;

		same = card == want->card && part->joined == want->joined &&
		       part->unmatched == want->unmatched &&
		       part->facts.unique_id == device->unique_id &&
		       device->present == (card != NONE) && device->memory[TYPES_DRAM].used == 1 &&
		       (card == NONE || (int)device->number == card);
		if (!same)
			printf("%s: device %zu is card %d, %s, unmatched %u\n", row->name, i, card,
			       join_name(part->joined), part->unmatched);
	}
	if (!same)
		printf("%s: %zu rows, should be %zu\n", row->name, snapshot->device_count,
		       row->rows);
	return same;
}

UNIT(every_device_is_on_its_card)
{
	bool same = true;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct table_row *row = &table[i];
		struct snapshot_process process = identity(10, row->visible, row->nodes_known);
		struct snapshot *snapshot = snapshot_new(1);

		process.umd = row->umd;
		assert(snapshot);
		add_cards(snapshot, row->cards, row->card_count);
		add_process(snapshot, &process, row->open, row->parts, row->part_count);
		assert(snapshot_finish(snapshot) == 0);
		same = is_as_expected(snapshot, row) && same;
		snapshot_free(snapshot);
	}
	assert(same);
}

UNIT(two_processes_that_number_differently_share_the_rows)
{
	static const struct table_card cards[] = {{ASIC(1), SERIAL}, {ASIC(2), SERIAL + 1}};
	static const struct table_part nothing[2] = {{.id = 0}};
	struct snapshot_process one = identity(10, NULL, true), other = identity(11, "1", true);
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_cards(snapshot, cards, 2);
	add_process(snapshot, &one, 0x3, nothing, 2);
	add_process(snapshot, &other, 0x2, nothing, 1);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2);
	assert(snapshot->devices[0].memory[TYPES_DRAM].used == 1);
	assert(snapshot->devices[1].memory[TYPES_DRAM].used == 2);
	assert(snapshot->processes[1].parts[0].device == 0);
	assert(snapshot->processes[1].parts[0].facts.unique_id == ASIC(2));
	assert(snapshot->devices[1].joined == SNAPSHOT_JOINED_OPEN);
	snapshot_free(snapshot);
}

/* The driver numbers the nodes of a Galaxy by tray; UMD does not. */
UNIT(the_chips_of_a_galaxy_are_numbered_by_bus_address)
{
	static const uint32_t trays[2][4] = {{0xc, 0x8, 0x0, 0x4}, {0x0, 0x4, 0xc, 0x8}};

	for (size_t kind = 0; kind < 2; kind++) {
		struct snapshot_process process = identity(10, NULL, true);
		struct snapshot *snapshot = snapshot_new(1);
		const char *last = "";
		uint32_t index;

		assert(snapshot);
		for (uint32_t node = 0; node < 32; node++) {
			char bus[16];
			struct snapshot_card card = {.number = node, .unique_id = ASIC(node)};
			int n = snprintf(bus, sizeof(bus), "0000:%x%x:00.0", trays[kind][node / 8],
					 node % 8 + 1);

			card.bus = snapshot_text(snapshot, bus, (size_t)n);
			assert(snapshot_add_card(snapshot, &card) == 0);
		}
		assert(snapshot_add_process(snapshot, &process, &index) == 0);
		for (uint32_t i = 0; i < 32; i++) {
			struct snapshot_claim claim = {
				.process = process, .device = i, .is_open_only = true};

			claim.process.untracked = true;
			assert(snapshot_part(snapshot, index, i));
			assert(snapshot_add_claim(snapshot, &claim) == 0);
		}
		assert(snapshot_finish(snapshot) == 0 && snapshot->device_count == 32);
		for (uint32_t i = 0; i < 32; i++) {
			const struct snapshot_part *part = &snapshot->processes[0].parts[i];

			assert(part->device == i && part->joined == SNAPSHOT_JOINED_OPEN);
			assert(strcmp(last, snapshot->cards[part->card].bus) < 0);
			last = snapshot->cards[part->card].bus;
		}
		/* It is said that another order was possible. */
		assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "bus addresses"));
		snapshot_free(snapshot);
	}
}

UNIT(a_number_alone_counts_the_cards_that_are_there_and_says_in_which_order)
{
	static const struct table_card cards[] = {{ASIC(1), SERIAL, "0000:01:00.0"},
						  {ASIC(2), SERIAL + 1, "0000:03:00.0"},
						  {ASIC(3), SERIAL + 2, "0000:02:00.0"}};
	static const struct table_part nothing[2] = {{.id = 0}};
	struct snapshot_process process = identity(10, NULL, false);
	struct snapshot *snapshot = snapshot_new(1);
	const struct snapshot_part *parts;
	bool is_said = false;

	assert(snapshot);
	add_cards(snapshot, cards, 3);
	snapshot->cards[0].condition.state = SNAPSHOT_GONE;
	add_process(snapshot, &process, 0, nothing, 2);
	assert(snapshot_finish(snapshot) == 0);
	parts = snapshot->processes[0].parts;
	assert(parts[0].card == 2 && parts[1].card == 1);
	assert(parts[0].joined == SNAPSHOT_JOINED_NUMBER);
	for (size_t i = 0; i < snapshot->note_count; i++)
		is_said = is_said || strstr(snapshot->notes[i], "bus addresses");
	assert(is_said);
	snapshot_free(snapshot);
}

UNIT(a_device_that_was_closed_need_not_be_open)
{
	static const struct table_card cards[] = {{ASIC(1), SERIAL}};
	static const struct table_part nothing[] = {{.id = 0}};

	for (uint64_t closed_ns = 0; closed_ns < 2; closed_ns++) {
		struct snapshot_process process = identity(10, NULL, true);
		struct snapshot *snapshot = snapshot_new(1);

		assert(snapshot);
		add_cards(snapshot, cards, 1);
		add_process(snapshot, &process, 0, nothing, 1);
		snapshot->processes[0].parts[0].facts.closed_ns = closed_ns;
		assert(snapshot_finish(snapshot) == 0);
		assert(snapshot->processes[0].parts[0].card == (closed_ns ? 0 : SNAPSHOT_NO_CARD));
		snapshot_free(snapshot);
	}
}

/* It gave only a number, and holds nothing of the card that is back: what was seen before tells. */
UNIT(memory_from_before_a_removal_is_of_the_card_that_is_back)
{
	static const struct table_card cards[] = {{ASIC(1), SERIAL, "0000:01:00.0"},
						  {ASIC(2), SERIAL + 1, "0000:02:00.0"}};
	static const struct table_part nothing[] = {{.id = 0}};
	const struct snapshot_left left = {.process.pid = 10,
					   .process.start_ticks = 10,
					   .device = 0,
					   .node = 1,
					   .bus = "0000:02:00.0"};
	struct snapshot_process process = identity(10, NULL, true);
	struct snapshot *snapshot = snapshot_new(1);
	const struct snapshot_part *part;

	assert(snapshot);
	add_cards(snapshot, cards, 2);
	assert(snapshot_add_left(snapshot, &left) == 0);
	add_process(snapshot, &process, 0, nothing, 1);
	assert(snapshot_finish(snapshot) == 0);
	part = &snapshot->processes[0].parts[0];
	assert(part->card == 1 && part->unmatched == SNAPSHOT_MATCHED);
	assert(snapshot->device_count == 2);
	snapshot_free(snapshot);
}

UNIT(a_removed_node_keeps_its_place_in_the_order)
{
	static const struct table_card cards[] = {{ASIC(1), SERIAL, "0000:03:00.0"},
						  {ASIC(2), SERIAL + 1, "0000:02:00.0"},
						  {ASIC(3), SERIAL + 2, "0000:01:00.0"}};
	static const struct table_part nothing[3] = {{.id = 0}};
	/* Node 1 was removed; its card is back, or is not known any more. */
	for (uint32_t count = 2; count <= 3; count++) {
		struct snapshot_process process = identity(10, NULL, true);
		const struct snapshot_left left = {.process.pid = 10,
						   .process.start_ticks = 10,
						   .device = UINT32_MAX,
						   .node = 7 - 2 * count};
		struct snapshot *snapshot = snapshot_new(1);
		const struct snapshot_part *parts;

		assert(snapshot);
		add_cards(snapshot, cards, count);
		assert(snapshot_add_left(snapshot, &left) == 0);
		add_process(snapshot, &process, count == 3 ? 0x5 : 0x3, nothing, 3);
		assert(snapshot_finish(snapshot) == 0);
		parts = snapshot->processes[0].parts;
		assert(parts[0].card == (count == 3 ? 2 : 0));
		assert(parts[1].card == 1 && parts[1].before_reset == (count == 3));
		assert(parts[2].card == (count == 3 ? 0 : SNAPSHOT_NO_CARD));
		assert(parts[2].before_reset == (count == 2));
		snapshot_free(snapshot);
	}
}

UNIT(a_chip_without_a_node_is_of_its_boards_kind)
{
	static const struct table_card cards[] = {{0, SERIAL}};
	static const struct table_part chips[] = {{.id = BOARD(0, 0)},
						  {.id = BOARD(0, 1), .remote = true},
						  {.id = BOARD(1, 1), .remote = true}};
	struct snapshot_process process = identity(10, NULL, true);
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_cards(snapshot, cards, 1);
	add_process(snapshot, &process, 1, chips, 3);
	assert(snapshot_finish(snapshot) == 0 && snapshot->device_count == 3);
	assert(snapshot->devices[1].remote && !snapshot->devices[1].present);
	assert(strcmp(snapshot->devices[1].card, "n150") == 0);
	assert(snapshot->devices[1].memory[TYPES_DRAM].capacity == UINT64_C(12) << 30);
	assert(!snapshot->devices[2].card && !snapshot->devices[2].memory[TYPES_DRAM].capacity);
	snapshot_free(snapshot);
}

UNIT(the_weakest_way_is_that_of_the_row)
{
	static const struct table_card cards[] = {{ASIC(1), SERIAL}};
	static const struct table_part knows[] = {{.id = ASIC(1)}}, nothing[] = {{.id = 0}};
	struct snapshot_process one = identity(10, NULL, true), other = identity(11, NULL, false);
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_cards(snapshot, cards, 1);
	add_process(snapshot, &one, 1, knows, 1);
	add_process(snapshot, &other, 0, nothing, 1);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 1 && snapshot->devices[0].is_joined);
	assert(snapshot->devices[0].joined == SNAPSHOT_JOINED_NUMBER);
	assert(snapshot->processes[0].parts[0].joined == SNAPSHOT_JOINED_UID);
	snapshot_free(snapshot);
}

UNIT(a_card_without_an_id_is_one_chip_only)
{
	static const struct table_card cards[] = {{0, 0}};
	static const struct table_part first[] = {{.id = ASIC(1)}}, second[] = {{.id = ASIC(2)}};
	struct snapshot_process one = identity(10, NULL, true), other = identity(11, NULL, true);
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	add_cards(snapshot, cards, 1);
	add_process(snapshot, &one, 1, first, 1);
	add_process(snapshot, &other, 1, second, 1);
	assert(snapshot_finish(snapshot) == 0);
	assert(snapshot->device_count == 2);
	assert(snapshot->processes[1].parts[0].unmatched == SNAPSHOT_UNMATCHED_TAKEN);
	snapshot_free(snapshot);
}

/* Anybody can declare any id: it neither names the card nor keeps others off it. */
UNIT(nobody_names_a_card_for_others)
{
	static const struct table_part liar[] = {{.id = ASIC(9)}}, honest[] = {{.id = ASIC(1)}};

	for (uint64_t serial = 0; serial <= SERIAL; serial += SERIAL) {
		const struct table_card cards[] = {{0, serial}};
		struct snapshot_process one = identity(10, NULL, true);
		struct snapshot_process other = identity(11, NULL, true);
		struct snapshot *snapshot = snapshot_new(1);

		assert(snapshot);
		other.user_id = 1000;
		add_cards(snapshot, cards, 1);
		add_process(snapshot, &one, 1, liar, 1);
		add_process(snapshot, &other, 1, honest, 1);
		assert(snapshot_finish(snapshot) == 0);
		assert(snapshot->device_count == 1);
		assert(snapshot->devices[0].unique_id == serial << 8);
		assert(snapshot->devices[0].memory[TYPES_DRAM].used == 2);
		for (size_t i = 0; i < 2; i++)
			assert(snapshot->processes[i].parts[0].facts.unique_id == serial << 8);
		snapshot_free(snapshot);
	}
}

/* A process of another user, of which only a daemon may see the descriptors. */
UNIT(what_a_daemon_has_found_holds)
{
	static const struct {
		struct table_part told;
		int card;
		uint32_t joined, unmatched;
	} cases[] = {
		{{.id = ASIC(2), .joined = WAY(OPEN)}, 1, WAY(OPEN), SNAPSHOT_MATCHED},
		{{.id = ASIC(2), .joined = WAY(UID)}, 1, WAY(UID), SNAPSHOT_MATCHED},
		{{.id = BOARD(1, 0), .joined = WAY(NUMBER)}, 1, WAY(NUMBER), SNAPSHOT_MATCHED},
		{{.id = ASIC(9), .joined = WAY(REGION), .unmatched = WHY(ID)},
		 NONE,
		 WAY(REGION),
		 WHY(ID)},
		{{.joined = SNAPSHOT_BY_NUMBER, .unmatched = WHY(NO_NODE)},
		 NONE,
		 SNAPSHOT_BY_NUMBER,
		 WHY(NO_NODE)},
		/* The daemon does not see our cards. */
		{{.joined = SNAPSHOT_BY_NUMBER, .unmatched = WHY(NUMBER)},
		 0,
		 WAY(NUMBER),
		 SNAPSHOT_MATCHED},
		/* A card without any id: there is nothing to know it by. */
		{{.joined = WAY(OPEN)}, 0, WAY(NUMBER), SNAPSHOT_MATCHED},
	};
	static const struct table_card cards[] = {{ASIC(1), SERIAL}, {ASIC(2), SERIAL + 1}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct snapshot_process process = identity(10, NULL, false);
		struct snapshot *snapshot = snapshot_new(1);
		struct snapshot_part *part;

		assert(snapshot);
		add_cards(snapshot, cards, 2);
		add_process(snapshot, &process, 0, &cases[i].told, 1);
		part = &snapshot->processes[0].parts[0];
		part->is_told = true;
		part->joined = cases[i].told.joined;
		part->unmatched = cases[i].told.unmatched;
		assert(snapshot_finish(snapshot) == 0);
		part = &snapshot->processes[0].parts[0];
		assert((int)part->card == cases[i].card && part->joined == cases[i].joined);
		assert(part->unmatched == cases[i].unmatched);
		snapshot_free(snapshot);
	}
}

UNIT(the_drivers_word_about_a_card_wins)
{
	static const struct table_card cards[] = {{ASIC(1), SERIAL}};
	static const struct table_part knows[] = {{.id = ASIC(1)}};
	struct snapshot_process process = identity(10, NULL, true);
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_facts *facts;

	assert(snapshot);
	add_cards(snapshot, cards, 1);
	add_process(snapshot, &process, 1, knows, 1);
	facts = &snapshot->processes[0].parts[0].facts;
	facts->card = "evilcard";
	facts->remote = true;
	facts->capacity[TYPES_DRAM] = UINT64_C(1) << 60;
	assert(snapshot_finish(snapshot) == 0);
	assert(strcmp(snapshot->devices[0].card, "n150") == 0 && !snapshot->devices[0].remote);
	assert(snapshot->devices[0].memory[TYPES_DRAM].capacity == UINT64_C(12) << 30);
	assert(snapshot->note_count == 2);
	snapshot_free(snapshot);
}

/*
 * Every combination of what can be said: no two devices of a process on one card, nothing lost, no
 * device on a card that contradicts it, no more rows than chips.
 */
static void check_combination(const struct snapshot *snapshot, uint32_t open, bool nodes_known)
{
	const struct snapshot_process *process = &snapshot->processes[0];
	bool is_filtered = process->visible && process->visible[0] == '1';
	uint64_t used = 0;

	for (size_t i = 0; i < snapshot->device_count; i++)
		used += snapshot->devices[i].memory[TYPES_DRAM].used;
	assert(used == process->part_count);
	assert(snapshot->device_count <= snapshot->card_count + process->part_count);
	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];
		const struct snapshot_card *card;

		assert(part->is_joined);
		if (part->card == SNAPSHOT_NO_CARD) {
			assert(part->unmatched != SNAPSHOT_MATCHED || !snapshot->card_count);
			continue;
		}
		card = &snapshot->cards[part->card];
		assert(!part->facts.remote || part->joined < SNAPSHOT_JOINED_OPEN);
		assert(part->joined != SNAPSHOT_JOINED_OPEN || open >> card->number & 1);
		assert(part->joined != SNAPSHOT_JOINED_NUMBER ||
		       ((is_filtered || card->number == part->device) &&
			((!open && !nodes_known) || (!card->unique_id && !card->serial))));
		assert(part->joined != SNAPSHOT_JOINED_UID ||
		       card->unique_id == part->facts.unique_id);
		for (size_t k = 0; k < i; k++)
			assert(process->parts[k].card != part->card);
	}
}

UNIT(no_combination_puts_two_devices_on_one_card_or_loses_one)
{
	static const struct table_card cards[][2] = {
		{{0, 0}, {0, 0}},
		{{0, SERIAL}, {0, SERIAL}},
		{{0, SERIAL}, {0, SERIAL + 1}},
		{{ASIC(1), SERIAL}, {ASIC(2), SERIAL + 1}},
		{{ASIC(1), SERIAL}, {0, SERIAL}},
		{{ASIC(1), 0}, {ASIC(2), 0}},
	};
	static const struct table_part parts[] = {
		{.id = 0},           {.remote = true},
		{.region = 1},       {.region = 2},
		{.id = ASIC(1)},     {.id = ASIC(2)},
		{.id = BOARD(0, 0)}, {.id = BOARD(0, 1)},
		{.id = ASIC(9)},     {.id = ASIC(8), .remote = true},
	};
	static const char *const visible[] = {NULL, "1", "1,0", "", "7"};
	size_t kinds = ARRAY_SIZE(parts);

	for (size_t n = 0; n < ARRAY_SIZE(cards) * 4 * 2 * ARRAY_SIZE(visible) * kinds * kinds;
	     n++) {
		size_t rest = n;
		const struct table_card *set = cards[rest % ARRAY_SIZE(cards)];
		uint32_t open = (uint32_t)(rest /= ARRAY_SIZE(cards)) % 4;
		bool nodes_known = (rest /= 4) % 2;
		const char *list = visible[(rest /= 2) % ARRAY_SIZE(visible)];
		struct table_part both[2] = {parts[(rest /= ARRAY_SIZE(visible)) % kinds],
					     parts[rest / kinds % kinds]};
		struct snapshot_process process = identity(10, list, nodes_known);
		struct snapshot *snapshot = snapshot_new(1);
		bool is_same_chip = both[0].id && both[0].id == both[1].id;

		assert(snapshot);
		add_cards(snapshot, set, 2);
		add_process(snapshot, &process, open, both, 2);
		assert(snapshot_finish(snapshot) == 0);
		/* Two numbers for one id are one chip. */
		if (!is_same_chip && !(both[0].region && both[0].region == both[1].region) &&
		    snapshot->processes[0].parts[0].facts.unique_id !=
			    snapshot->processes[0].parts[1].facts.unique_id)
			check_combination(snapshot, open, nodes_known);
		snapshot_free(snapshot);
	}
}
