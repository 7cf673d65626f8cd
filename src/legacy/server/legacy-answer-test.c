/* SPDX-License-Identifier: Apache-2.0 */

/* Answers to old clients, from made-up snapshots. */

#include "legacy/server/legacy-answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "daemon/registry/access.h"
#include "model/snapshot.h"

static struct snapshot *atest_snapshot(uint32_t processes)
{
	struct snapshot *snapshot = snapshot_new(1000);

	assert(snapshot);
	for (uint32_t i = 0; i < processes; i++) {
		struct snapshot_process process = {.id.pid = 100 + i,
						   .id.start_ticks = 1,
						   .comm = "x",
						   .user = "x",
						   .source = "book",
						   .alive = true};
		uint32_t index;

		assert(snapshot_add_process(snapshot, &process, &index) == 0 && index == i);
	}
	return snapshot;
}

static struct snapshot_part *atest_part(struct snapshot *snapshot, uint32_t process,
					uint32_t device)
{
	struct snapshot_part *part = snapshot_part(snapshot, process, device);

	assert(part);
	return part;
}

UNIT(facts_of_a_device)
{
	static const struct snapshot_card card = {.number = 1, .arch = "blackhole"};
	struct snapshot *snapshot = atest_snapshot(2);
	struct snapshot_part *part = atest_part(snapshot, 0, 3);
	struct legacy_answer answer;

	part->facts = (struct snapshot_facts){
		.declared = true,
		.arch = "wormhole_b0",
		.capacity = {[0] = UINT64_C(12) << 30, [1] = 100 << 20},
		.dram_banks = 12,
		.dram_bank_size = UINT64_C(1) << 30,
		.l1_per_core = 1499136,
	};
	/* Another process has it open but declares nothing. */
	(void)atest_part(snapshot, 1, 3);
	assert(snapshot_add_card(snapshot, &card) == 0);
	assert(snapshot_finish(snapshot) == 0);
	legacy_answer_info(snapshot, 3, &answer);
	assert(answer.type == LEGACY_DEVICE_INFO_RESPONSE && answer.device == 3);
	assert(answer.available && answer.arch == 2 && answer.dram_channels == 12);
	assert(answer.total_dram == UINT64_C(12) << 30 && answer.total_l1 == 100 << 20);
	assert(answer.dram_per_channel == UINT64_C(1) << 30 && answer.l1_per_core == 1499136);
	assert(answer.devices == 0);
	/* Only the driver knows it. */
	legacy_answer_info(snapshot, 1, &answer);
	assert(answer.available && answer.arch == 3 && answer.total_dram == 0);
	/* No one knows it. */
	legacy_answer_info(snapshot, 2, &answer);
	assert(!answer.available);
	legacy_answer_info(snapshot, INT32_MAX, &answer);
	assert(!answer.available);
	legacy_answer_info(snapshot, INT32_MIN, &answer);
	assert(!answer.available && answer.devices == 0);
	legacy_answer_info(snapshot, -1, &answer);
	assert(answer.available && answer.devices == 4);
	snapshot_free(snapshot);
}

UNIT(no_user_says_for_old_clients_what_a_device_is)
{
	struct snapshot *snapshot = atest_snapshot(2);
	struct legacy_answer answer;

	for (uint32_t i = 0; i < 2; i++) {
		snapshot->processes[i].user_id = 1000 + i;
		atest_part(snapshot, i, 3)->facts = (struct snapshot_facts){
			.declared = true,
			.arch = i ? "blackhole" : "wormhole_b0",
			.capacity = {[0] = (12 + UINT64_C(12) * i) << 30},
			.dram_banks = 12,
		};
	}
	assert(snapshot_finish(snapshot) == 0);
	legacy_answer_info(snapshot, 3, &answer);
	assert(answer.available && answer.arch == 0 && answer.total_dram == 0);
	assert(answer.dram_channels == 0);
	snapshot_free(snapshot);
}

/* Old clients declare nothing: what is known about the card comes from its name. */
UNIT(a_device_that_only_an_old_client_names)
{
	static const struct snapshot_card plain = {
		.number = 0, .arch = "wormhole_b0", .card = "n300"};
	static const struct snapshot_card named = {
		.number = 1, .unique_id = 0x1111, .arch = "blackhole", .card = "p150a"};
	struct snapshot *snapshot = atest_snapshot(1);
	struct legacy_answer answer;

	for (uint32_t device = 0; device < 3; device++)
		atest_part(snapshot, 0, device)->memory[0].used = 1 << 20;
	assert(snapshot_add_card(snapshot, &plain) == 0);
	assert(snapshot_add_card(snapshot, &named) == 0);
	assert(snapshot_finish(snapshot) == 0);
	legacy_answer_info(snapshot, 0, &answer);
	assert(answer.available && answer.arch == 2 && answer.dram_channels == 12);
	assert(answer.total_dram == UINT64_C(12) << 30);
	assert(answer.dram_per_channel == UINT64_C(1) << 30);
	assert(answer.l1_per_core == 1464 << 10 && answer.total_l1 == 64 * (1464 << 10));
	legacy_answer_info(snapshot, 1, &answer);
	assert(answer.available && answer.arch == 3 && answer.dram_channels == 8);
	assert(answer.total_dram == 8 * answer.dram_per_channel && answer.total_l1 > 0);
	/* There is no such card: nothing is known, and so nothing is available. */
	legacy_answer_info(snapshot, 2, &answer);
	assert(!answer.available && answer.arch == 0 && answer.total_dram == 0);
	assert(answer.total_l1 == 0 && answer.dram_channels == 0 && answer.l1_per_core == 0);
	/* But it counts, because somebody uses it. */
	legacy_answer_info(snapshot, -1, &answer);
	assert(answer.available && answer.devices == 3);
	snapshot_free(snapshot);
}

/* Processes may claim any figure; sums saturate. Exited processes do not count. */
UNIT(sums_saturate_and_skip_the_dead)
{
	struct snapshot *snapshot = atest_snapshot(3);
	struct legacy_answer answer;

	atest_part(snapshot, 0, 0)->memory[2].used = UINT64_MAX - 1;
	atest_part(snapshot, 1, 0)->memory[3].used = 5;
	atest_part(snapshot, 0, 0)->memory[0].used = 7;
	atest_part(snapshot, 1, 0)->memory[0].used = 8;
	atest_part(snapshot, 2, 0)->memory[0].used = 1000;
	snapshot->processes[2].alive = false;
	assert(snapshot_finish(snapshot) == 0);
	legacy_answer_query(snapshot, 0, &answer);
	assert(answer.l1_small == UINT64_MAX && answer.dram == 15);
	legacy_answer_query(snapshot, 1, &answer);
	assert(answer.l1_small == 0 && answer.dram == 0 && answer.device == 1);
	snapshot_free(snapshot);
}

static char *atest_text(const struct snapshot *snapshot, const struct access_peer *who)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert(out);
	legacy_answer_text(out, snapshot, who);
	assert(fclose(out) == 0);
	return text;
}

/* What is listed of so many buffers. */
static char *atest_list(uint64_t count)
{
	struct snapshot *snapshot = atest_snapshot(1);
	char *text;

	for (uint64_t i = 0; i < count; i++) {
		struct snapshot_buffer buffer = {.address = i, .size = 1024, .refs = 1};

		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
		atest_part(snapshot, 0, 0)->memory[0].buffers++;
	}
	assert(snapshot_finish(snapshot) == 0);
	text = atest_text(snapshot, &(struct access_peer){.sees_all = true});
	snapshot_free(snapshot);
	return text;
}

static size_t atest_lines(const char *text)
{
	size_t lines = 0;

	for (const char *at = text; (at = strstr(at, "    - Buffer ")); at++)
		lines++;
	return lines;
}

UNIT(a_long_list_is_cut)
{
	CLEANUP_FREE char *text = atest_list(LEGACY_ANSWER_ROWS_MAX + 10);

	assert(atest_lines(text) == LEGACY_ANSWER_ROWS_MAX);
	assert(strstr(text, "Not all are listed: the first 4096 only\n"));
	assert(strstr(text, "Total remaining buffers: 4106\n"));
}

UNIT(the_longest_list_that_is_not_cut_is_complete)
{
	CLEANUP_FREE char *text = atest_list(LEGACY_ANSWER_ROWS_MAX);

	assert(atest_lines(text) == LEGACY_ANSWER_ROWS_MAX);
	assert(!strstr(text, "Not all are listed"));
}

UNIT(only_buffers_of_the_asker_are_listed)
{
	static const char *const names[] = {"mine", "of another user", "of a container", "unknown"};
	struct snapshot *snapshot = atest_snapshot(4);
	const struct access_peer peer = {.uid = 5};
	CLEANUP_FREE char *text = NULL;

	for (uint32_t i = 0; i < 4; i++) {
		struct snapshot_buffer buffer = {
			.process = i, .address = i, .size = 1024, .refs = 1, .name = names[i]};

		snapshot->processes[i].maker_id = i == 1 ? 6 : 5;
		snapshot->processes[i].namespaces = i == 2 ? "|b/1.2" : i == 3 ? NULL : "";
		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
		atest_part(snapshot, i, 0)->memory[0].buffers++;
	}
	assert(snapshot_finish(snapshot) == 0);
	text = atest_text(snapshot, &peer);
	assert(strstr(text, "Buffer 0x0") && strstr(text, "mine"));
	for (uint32_t i = 1; i < 4; i++)
		assert(!strstr(text, names[i]));
	assert(!strstr(text, "Buffer 0x1") && !strstr(text, "Buffer 0x2"));
	assert(strstr(text, "DRAM: 4 buffers") && strstr(text, "Total remaining buffers: 4\n"));
	assert(strstr(text, "Not listed: 3 buffers of other users\n"));
	snapshot_free(snapshot);
}
