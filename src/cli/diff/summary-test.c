/* SPDX-License-Identifier: Apache-2.0 */

/* Summaries, and what differs between two of them. */

#include "cli/diff/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "cli/diff/summary-diff.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"

static const struct summary_part everything = {SUMMARY_NO_DEVICE, BOOK_TYPES};

static const char *text(struct snapshot *snapshot, const char *bytes)
{
	return bytes ? snapshot_text(snapshot, bytes, strlen(bytes)) : NULL;
}

static struct snapshot *start(void)
{
	struct snapshot *snapshot = snapshot_new(1000);
	struct snapshot_process process = {
		.id.pid = 10, .alive = true, .exact = true, .comm = "test"};
	uint32_t index;

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0);
	return snapshot;
}

static void add(struct snapshot *snapshot, uint32_t device, uint8_t type, uint64_t size,
		struct summary_buffer about)
{
	struct snapshot_part *part = snapshot_part(snapshot, 0, device);
	struct snapshot_buffer buffer = {
		.device = device,
		.type = type,
		.size = size,
		.stack = about.stack,
		.name = text(snapshot, about.name),
		.phase = text(snapshot, about.phase),
		.refs = 1,
	};

	assert(part && snapshot_add_buffer(snapshot, &buffer) == 0);
	part->memory[type].used += size;
	part->memory[type].buffers++;
	part->memory[type].allocs++;
}

static void summarize(struct summary *summary, enum group_kind kind, struct snapshot *snapshot)
{
	*summary = SUMMARY_NULL;
	summary->kind = kind;
	summary_add_counters(summary, snapshot);
	summary_add_buffers(summary, snapshot, &everything, SUMMARY_END);
	summary_finish(summary);
	snapshot_free(snapshot);
}

static const struct summary_row *find(const struct summary *summary, uint32_t type, const char *key)
{
	for (size_t i = 0; i < summary->rows.count; i++) {
		const struct summary_row *row = &summary->rows.rows[i];

		if (row->type == type && (key ? row->key && !strcmp(row->key, key) : !row->key))
			return row;
	}
	abort();
}

UNIT(moved_lines_are_the_same_site)
{
	struct snapshot *a = start(), *b = start();
	struct summary before, after;
	struct summary_changes changes;

	add(a, 0, TYPES_DRAM, 100,
	    (struct summary_buffer){.stack = testing_stack("run.py:1:main -> m.py:7:load")});
	add(a, 0, TYPES_DRAM, 50,
	    (struct summary_buffer){.stack = testing_stack("run.py:1:main -> m.py:9:load")});
	add(b, 0, TYPES_DRAM, 150,
	    (struct summary_buffer){
		    .stack = testing_stack("/other/run.py:5:main -> /other/m.py:90:load")});
	add(b, 0, TYPES_L1, 8,
	    (struct summary_buffer){.stack = testing_stack("run.py:5:main -> m.py:90:load")});
	summarize(&before, GROUP_SITE, a);
	summarize(&after, GROUP_SITE, b);
	assert(before.rows.count == 1 && find(&before, TYPES_DRAM, "m.py:load <- run.py:main"));
	assert(strcmp(before.rows.rows[0].site->frame.function, "load") == 0);
	assert(strcmp(before.rows.rows[0].site->frame.file, "m.py") == 0 &&
	       before.rows.rows[0].site->frame.line == 0);
	changes = summary_diff(&before.rows, &after.rows, false);
	/* One buffer fewer, of as many bytes; and the other memory is another site. */
	assert(changes.count == 2);
	assert(changes.list[0].type == TYPES_L1);
	assert(changes.list[0].values[SUMMARY_END].change == 8);
	assert(changes.list[1].values[SUMMARY_END].change == 0);
	assert(changes.list[1].values[SUMMARY_BUFFERS].change == -1);
	summary_changes_deinit(&changes);
	summary_deinit(&before);
	summary_deinit(&after);
}

UNIT(without_a_stack_the_name_without_numbers_or_the_phase_is_the_site)
{
	struct snapshot *snapshot = start();
	struct summary summary;

	add(snapshot, 0, TYPES_DRAM, 1, (struct summary_buffer){.name = "kv.1", .phase = "x"});
	add(snapshot, 1, TYPES_DRAM, 2, (struct summary_buffer){.name = "kv.22"});
	add(snapshot, 0, TYPES_DRAM, 4, (struct summary_buffer){.phase = "warm up"});
	add(snapshot, 0, TYPES_DRAM, 8, (struct summary_buffer){0});
	summarize(&summary, GROUP_SITE, snapshot);
	assert(summary.rows.count == 3 && summary.totals.count == 2);
	assert(find(&summary, TYPES_DRAM, "kv.#")->values[SUMMARY_END] == 3);
	assert(find(&summary, TYPES_DRAM, "kv.#")->values[SUMMARY_BUFFERS] == 2);
	assert(find(&summary, TYPES_DRAM, "in warm up")->values[SUMMARY_END] == 4);
	assert(find(&summary, TYPES_DRAM, NULL)->values[SUMMARY_END] == 8);
	summary_deinit(&summary);
}

UNIT(rows_can_be_names_or_phases)
{
	for (int by_name = 0; by_name < 2; by_name++) {
		struct snapshot *snapshot = start();
		struct summary summary;

		add(snapshot, 0, TYPES_DRAM, 1,
		    (struct summary_buffer){
			    .stack = testing_stack("a.py:1:f"), .name = "w.1", .phase = "load"});
		add(snapshot, 0, TYPES_DRAM, 2,
		    (struct summary_buffer){
			    .stack = testing_stack("a.py:2:g"), .name = "w.1", .phase = "step"});
		add(snapshot, 0, TYPES_DRAM, 4, (struct summary_buffer){.name = "w.2"});
		summarize(&summary, by_name ? GROUP_NAME : GROUP_PHASE, snapshot);
		if (by_name) {
			assert(find(&summary, TYPES_DRAM, "w.1")->values[SUMMARY_END] == 3);
			assert(find(&summary, TYPES_DRAM, "w.2")->values[SUMMARY_END] == 4);
		} else {
			assert(find(&summary, TYPES_DRAM, "load")->values[SUMMARY_END] == 1);
			assert(find(&summary, TYPES_DRAM, "step")->values[SUMMARY_END] == 2);
			assert(find(&summary, TYPES_DRAM, NULL)->values[SUMMARY_END] == 4);
		}
		summary_deinit(&summary);
	}
}

static void add_row(struct summary *summary, const char *key, enum summary_value value,
		    uint64_t amount)
{
	const struct summary_name name = {.key = key};

	summary_add_row(summary, TYPES_DRAM, &name, value, amount);
}

UNIT(only_what_both_know_is_compared)
{
	struct summary before = SUMMARY_NULL, after = SUMMARY_NULL;
	struct summary_changes changes;

	add_row(&before, "a", SUMMARY_END, 5);
	add_row(&after, "a", SUMMARY_END, 5);
	add_row(&after, "a", SUMMARY_ALLOCS, 900);
	summary_finish(&before);
	summary_finish(&after);
	changes = summary_diff(&before.rows, &after.rows, false);
	assert(changes.count == 0 && changes.known == 1u << SUMMARY_END);
	summary_changes_deinit(&changes);
	summary_deinit(&before);
	summary_deinit(&after);
}

UNIT(the_largest_change_comes_first_whatever_its_sign)
{
	struct summary before = SUMMARY_NULL, after = SUMMARY_NULL;
	struct summary_changes changes;

	add_row(&before, "shrinks", SUMMARY_END, 1000);
	add_row(&after, "shrinks", SUMMARY_END, 100);
	add_row(&after, "new", SUMMARY_END, 500);
	add_row(&before, "gone", SUMMARY_END, 700);
	add_row(&before, "huge", SUMMARY_END, 0);
	add_row(&after, "huge", SUMMARY_END, UINT64_MAX);
	summary_finish(&before);
	summary_finish(&after);
	changes = summary_diff(&before.rows, &after.rows, false);
	assert(changes.count == 4);
	assert(changes.list[0].values[SUMMARY_END].change == INT64_MAX);
	assert(changes.list[1].values[SUMMARY_END].change == -900);
	assert(changes.list[2].values[SUMMARY_END].change == -700);
	assert(changes.list[3].values[SUMMARY_END].change == 500);
	summary_changes_deinit(&changes);
	summary_deinit(&before);
	summary_deinit(&after);
}

/* What holds for any two runs. */

static void random_run(struct summary *summary, enum group_kind kind, unsigned int *seed)
{
	struct snapshot *snapshot = start();
	unsigned int count = (unsigned int)rand_r(seed) % 300;

	for (unsigned int i = 0; i < count; i++) {
		char stack[64], name[32], phase[32];
		struct summary_buffer about = {0};

		(void)snprintf(stack, sizeof(stack), "run.py:%d:main -> m.py:%d:f%d",
			       rand_r(seed) % 9, rand_r(seed) % 9, rand_r(seed) % 6);
		(void)snprintf(name, sizeof(name), "t%c.%d", 'a' + rand_r(seed) % 4,
			       rand_r(seed) % 9);
		(void)snprintf(phase, sizeof(phase), "phase %d", rand_r(seed) % 3);
		about.stack = rand_r(seed) % 4 ? testing_stack(stack) : NULL;
		about.name = rand_r(seed) % 4 ? name : NULL;
		about.phase = rand_r(seed) % 4 ? phase : NULL;
		add(snapshot, (uint32_t)rand_r(seed) % 3, (uint8_t)((unsigned int)rand_r(seed) % 7),
		    (uint64_t)rand_r(seed), about);
	}
	summarize(summary, kind, snapshot);
}

static int64_t sum(const struct summary_changes *changes, uint32_t type, enum summary_value value)
{
	int64_t all = 0;

	for (size_t i = 0; i < changes->count; i++) {
		if (changes->list[i].type == type)
			all += changes->list[i].values[value].change;
	}
	return all;
}

static void check_sums(const struct summary *a, const struct summary *b)
{
	struct summary_changes rows, totals;

	rows = summary_diff(&a->rows, &b->rows, false);
	totals = summary_diff(&a->totals, &b->totals, true);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		assert(sum(&rows, type, SUMMARY_END) == sum(&totals, type, SUMMARY_END));
		assert(sum(&rows, type, SUMMARY_BUFFERS) == sum(&totals, type, SUMMARY_BUFFERS));
	}
	summary_changes_deinit(&rows);
	summary_changes_deinit(&totals);
}

static void check_reverse(const struct summary *a, const struct summary *b)
{
	struct summary_changes there, back;

	there = summary_diff(&a->rows, &b->rows, false);
	back = summary_diff(&b->rows, &a->rows, false);
	assert(there.count == back.count);
	for (size_t i = 0; i < there.count; i++) {
		const struct summary_change *x = &there.list[i], *y = &back.list[i];

		assert(x->type == y->type && !x->key == !y->key);
		assert(!x->key || strcmp(x->key, y->key) == 0);
		for (uint32_t value = 0; value < SUMMARY_VALUES; value++)
			assert(x->values[value].change == -y->values[value].change);
	}
	summary_changes_deinit(&there);
	summary_changes_deinit(&back);
}

static void check_self(const struct summary *a)
{
	struct summary_changes changes;

	changes = summary_diff(&a->rows, &a->rows, false);
	assert(changes.count == 0);
	summary_changes_deinit(&changes);
	changes = summary_diff(&a->totals, &a->totals, false);
	assert(changes.count == 0);
	summary_changes_deinit(&changes);
}

UNIT(differences_cancel_out_reverse_and_add_up)
{
	static const enum group_kind kinds[] = {GROUP_SITE, GROUP_NAME, GROUP_PHASE};

	for (unsigned int round = 1; round <= 60; round++) {
		unsigned int seed = round;
		struct summary a, b;

		/* Printed only if the test fails: the last line is the seed to reproduce. */
		printf("seed %u\n", round);
		(void)fflush(stdout);
		random_run(&a, kinds[round % 3], &seed);
		random_run(&b, kinds[round % 3], &seed);
		check_self(&a);
		check_reverse(&a, &b);
		check_sums(&a, &b);
		summary_deinit(&a);
		summary_deinit(&b);
	}
}
