/* SPDX-License-Identifier: Apache-2.0 */

/* The whole interface without a terminal: what keys do, and that no data or key can break it. */

#include "tui/frame.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "answers/call-stack.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/sites/group.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "tui/incident-rows.h"
#include "tui/model.h"

static uint64_t state = 1;

static uint32_t random_below(uint32_t limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % limit;
}

static uint64_t random_size(void)
{
	static const uint64_t sizes[] = {0, 1, 4096, UINT64_C(1) << 30, UINT64_MAX};

	return sizes[random_below(5)];
}

static const char *random_name(void)
{
	static const char *const names[] = {
		NULL,   "weights", "\033[2J", "重み重み重み", "a:1:f -> b:2:g -> :::",
		" -> ", "",        "\xff",
	};

	return names[random_below(8)];
}

static void add_process(struct snapshot *snapshot, uint32_t pid)
{
	const struct snapshot_process identity = {
		.id.pid = pid,
		.id.start_ticks = pid,
		.comm = random_below(2) ? "python" : "\033]0;x\007",
		.user = "me",
		.source = "book",
		.alive = random_below(5) > 0,
		.last_ns = random_below(2),
	};
	uint32_t index, devices = random_below(4);

	assert(snapshot_add_process(snapshot, &identity, &index) == 0);
	for (uint32_t i = 0; i < devices; i++) {
		struct snapshot_part *part = snapshot_part(snapshot, index, random_below(6));

		assert(part);
		part->facts.unique_id = random_below(2) ? part->device + 1000 : 0;
		part->facts.capacity[0] = random_size();
		part->facts.card = random_name();
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			part->memory[type].used = random_size();
			part->memory[type].buffers = random_size();
			part->memory[type].bound = random_below(3);
		}
	}
}

static void add_buffers(struct snapshot *snapshot)
{
	uint32_t count = snapshot->process_count ? random_below(60) : 0;

	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_buffer buffer = {
			.process = random_below((uint32_t)snapshot->process_count),
			.address = random_size(),
			.size = random_size(),
			.born_ns = random_size(),
			.name = random_name(),
			.phase = random_name(),
			.stack = testing_stack(random_name()),
			.type = (uint8_t)random_below(BOOK_TYPES),
		};

		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	}
}

static struct snapshot *some_snapshot(bool buffers)
{
	struct snapshot *snapshot = snapshot_new(1000 * NS_PER_S);
	uint32_t count = random_below(40);

	assert(snapshot);
	for (uint32_t i = 0; i < count; i++)
		add_process(snapshot, 1 + random_below(60));
	if (buffers)
		add_buffers(snapshot);
	if (random_below(4) == 0)
		snapshot_note(
			snapshot, "%s %s", random_below(2) ? "pid 7:" : "",
			"a long note, with words and withoutanyblanksatallforseventycolumns重み"
			"重み重み重み重み重み重み重み重み重み重み重み重み重み重み重み重み重み");
	assert(snapshot_finish(snapshot) == 0);
	return snapshot;
}

static struct poller_totals *some_totals(uint64_t time_ns)
{
	struct poller_totals *totals = calloc(1, sizeof(*totals));

	assert(totals);
	totals->time_ns = time_ns;
	totals->daemon = (enum poller_daemon)random_below(3);
	strcpy(totals->reason, "\033[31m%s%n");
	if (random_below(20) == 0)
		totals->error = -1;
	else
		totals->snapshot = some_snapshot(false);
	return totals;
}

static struct poller_details *some_details(const struct poller_wish *wish)
{
	struct poller_details *details = calloc(1, sizeof(*details));

	assert(details);
	details->wish = *wish;
	if (random_below(20) == 0) {
		details->error = -1;
		return details;
	}
	if (wish->kind == POLLER_PAST) {
		const struct incident_rows_row row = {
			.kind = "leak",
			.pid = random_below(100),
			.bytes = random_size(),
			.what = random_name(),
			.has_address = random_below(2),
		};
		struct incident_rows_row *added;
		struct call_stack_room room;
		const struct call_stack stack = call_stack_of(testing_stack(random_name()), &room);

		details->incident_rows = incident_rows_new();
		assert(details->incident_rows);
		added = incident_rows_add(details->incident_rows, &row);
		assert(added &&
		       incident_rows_line(details->incident_rows, added, "%s", "\033[0m") == 0);
		assert(incident_rows_stack(details->incident_rows, added, &stack) == 0);
		return details;
	}
	details->snapshot = some_snapshot(true);
	if (wish->kind == POLLER_SITES)
		assert(poller_details_group(details) == 0);
	return details;
}

static void press(struct model *model, uint32_t key)
{
	const struct keys_event event = {
		.key = key,
		.row = random_below(40),
		.column = random_below(100),
	};

	frame_key(model, &event);
}

static uint32_t random_key(void)
{
	static const char letters[] = "123456\t\r\033/jk<>rtanp?sweiKTW ";

	if (random_below(2))
		return (unsigned char)letters[random_below(sizeof(letters) - 1)];
	return KEYS_UP + random_below(KEYS_WHEEL_DOWN - KEYS_UP + 1);
}

/* Nothing is drawn outside the grid, and nothing in it can control a terminal. */
static void draw(struct model *model)
{
	struct grid grid = GRID_NULL;

	assert(grid_begin(&grid, random_below(60), random_below(220)) == 0);
	grid.ascii = random_below(2);
	frame_draw(model, &grid);
	for (size_t i = 0; i < (size_t)grid.rows * grid.columns; i++) {
		uint32_t character = grid.cells[i].character;

		assert(character >= 0x20 && !(character >= 0x7f && character < 0xa0));
		assert(grid.cells[i].style < GRID_STYLES);
	}
	grid_deinit(&grid);
}

UNIT(random_keys_and_sizes_do_not_break_the_frame)
{
	struct model model;

	model_init(&model);
	draw(&model);
	for (uint64_t i = 0; i < 4000; i++) {
		struct poller_wish wish = model_wish(&model);

		model.now_ns = i * NS_PER_S / 10;
		if (random_below(3) == 0)
			model_totals_consume(&model, some_totals(model.now_ns + 1));
		if (wish.kind != POLLER_NOTHING && random_below(3) == 0)
			model_details_consume(&model, some_details(&wish));
		press(&model, random_key());
		draw(&model);
	}
	model_deinit(&model);
}

static void show(struct model *model)
{
	struct poller_totals *totals = calloc(1, sizeof(*totals));
	const struct snapshot_process one = {.id.pid = 7, .comm = "a", .user = "b", .alive = true};
	struct snapshot_part *part;
	uint32_t index;

	assert(totals);
	totals->snapshot = snapshot_new(NS_PER_S);
	assert(totals->snapshot);
	assert(snapshot_add_process(totals->snapshot, &one, &index) == 0);
	part = snapshot_part(totals->snapshot, index, 3);
	assert(part);
	part->memory[0].used = part->memory[0].buffers = 5;
	assert(snapshot_finish(totals->snapshot) == 0);
	model_totals_consume(model, totals);
}

UNIT(who_is_only_in_a_region_is_shown_with_its_device)
{
	const struct snapshot_device device = {.closed = true, .stale = 1},
				     closed = {.closed = true};
	const struct snapshot_process stale = {.stale = true}, ended = {.alive = false};
	struct model model;

	model_init(&model);
	show(&model);
	assert(model_shows_device(&model, &device) && !model_shows_device(&model, &closed));
	assert(model_shows_process(&model, &stale) && !model_shows_process(&model, &ended));
	model_deinit(&model);
}

UNIT(enter_goes_deeper_and_escape_comes_back)
{
	struct model model;

	model_init(&model);
	show(&model);
	assert(model_wish(&model).kind == POLLER_NOTHING);
	press(&model, KEYS_ENTER);
	assert(model.view == MODEL_PROCESSES && model.has_device);
	press(&model, KEYS_ENTER);
	assert(model.view == MODEL_BUFFERS && model_wish(&model).pid == 7);
	assert(model_wish(&model).limit > 0);
	/* A search goes through all of them. */
	press(&model, '/');
	press(&model, 'q');
	press(&model, KEYS_ENTER);
	assert(!model.wants_quit && model_wish(&model).limit == 0);
	press(&model, KEYS_ESCAPE);
	assert(model.view == MODEL_BUFFERS && model_wish(&model).limit > 0);
	press(&model, KEYS_ESCAPE);
	assert(model.view == MODEL_PROCESSES && model.has_device);
	press(&model, KEYS_ESCAPE);
	assert(model.view == MODEL_DEVICES && !model.has_device);
	press(&model, KEYS_ESCAPE);
	assert(model.view == MODEL_DEVICES);
	press(&model, 'q');
	assert(model.wants_quit);
	model_deinit(&model);
}

/* Brings the question about process 7 onto the screen. */
static void ask_to_kill(struct model *model)
{
	press(model, '2');
	press(model, 'K');
	assert(model->kill.wants && model->kill.process.pid == 7 && model->kill.signal == 0);
	kill_result(model, 0);
	assert(model->kill.asks && !model->kill.wants);
}

UNIT(a_process_is_ended_only_after_a_question)
{
	struct model model;

	model_init(&model);
	press(&model, 'K');
	assert(!model.kill.wants && !model.kill.asks); /* there is none yet */
	show(&model);
	ask_to_kill(&model);
	press(&model, 'y');
	assert(!model.kill.asks && !model.kill.wants && strstr(model.notice, "goes on"));
	ask_to_kill(&model);
	press(&model, 't');
	assert(model.kill.wants && model.kill.signal == SIGTERM);
	kill_result(&model, 0);
	assert(strstr(model.notice, "SIGTERM was sent to"));
	model.now_ns += KILL_PATIENCE_NS;
	show(&model);
	assert(!strstr(model.notice, "has not ended yet"));
	model.now_ns++;
	show(&model);
	assert(strstr(model.notice, "has not ended yet"));
	ask_to_kill(&model);
	press(&model, '9');
	assert(model.kill.wants && model.kill.signal == SIGKILL);
	kill_result(&model, 0);
	model.totals->snapshot->processes[0].alive = false;
	kill_watch(&model);
	assert(strstr(model.notice, "has ended") && !model.kill.waits);
	model_deinit(&model);
}

UNIT(keys_that_move_in_a_list_end_no_process)
{
	static const uint32_t keys[] = {'k', 'j', 'g', 'G', 'K', '\r', KEYS_UP, KEYS_DOWN};
	struct model model;

	model_init(&model);
	show(&model);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		ask_to_kill(&model);
		press(&model, keys[i]);
		assert(!model.kill.asks && !model.kill.wants);
	}
	model_deinit(&model);
}

UNIT(what_may_not_be_ended_is_not_asked_about)
{
	struct model model;

	model_init(&model);
	show(&model);
	press(&model, '2');
	press(&model, 'K');
	kill_result(&model, -EPERM);
	assert(!model.kill.asks && strstr(model.notice, "you may not end"));
	press(&model, 'K');
	kill_result(&model, -ESRCH);
	assert(!model.kill.asks && strstr(model.notice, "already ended"));
	model_deinit(&model);
}

UNIT(a_paused_one_keeps_what_it_shows)
{
	struct model model;
	const struct snapshot *before;

	model_init(&model);
	show(&model);
	before = model_snapshot(&model);
	press(&model, 'p');
	show(&model);
	assert(model_snapshot(&model) == before);
	press(&model, 'p');
	show(&model);
	assert(model_snapshot(&model) != before);
	model_deinit(&model);
}

/* The buffer of process 7, read at a moment when its birth is converted to @born_ns. */
static struct poller_details *read_buffer(const struct poller_wish *wish, uint64_t birth,
					  uint64_t born_ns)
{
	struct poller_details *details = calloc(1, sizeof(*details));
	const struct snapshot_process one = {.id.pid = 7, .comm = "a", .user = "b", .alive = true};
	struct snapshot_buffer buffer = {.address = 64,
					 .size = 5,
					 .birth = birth,
					 .born_ns = born_ns,
					 .stack = testing_stack("a.c:1:f")};

	assert(details);
	details->wish = *wish;
	details->snapshot = snapshot_new(NS_PER_S);
	assert(details->snapshot);
	assert(snapshot_add_process(details->snapshot, &one, &buffer.process) == 0);
	assert(snapshot_add_buffer(details->snapshot, &buffer) == 0);
	assert(snapshot_finish(details->snapshot) == 0);
	return details;
}

UNIT(an_unfolded_buffer_stays_unfolded_while_it_lives)
{
	struct model model;
	struct poller_wish wish;

	model_init(&model);
	show(&model);
	press(&model, '3');
	wish = model_wish(&model);
	model_details_consume(&model, read_buffer(&wish, 1000, 500));
	press(&model, KEYS_ENTER);
	assert(model.lists[MODEL_BUFFERS].open_place == 0);
	model_details_consume(&model, read_buffer(&wish, 1000, 501));
	assert(model.lists[MODEL_BUFFERS].open_place == 0);
	/* Another one at the same address. */
	model_details_consume(&model, read_buffer(&wish, 1001, 501));
	assert(model.lists[MODEL_BUFFERS].open_place == SIZE_MAX);
	model_deinit(&model);
}

UNIT(a_chart_begins_with_what_the_daemon_knows)
{
	const struct series_key key = {99, 1};
	const struct series_sample sample = {.time_ns = NS_PER_S, .values = {5, 6}};
	struct poller_totals *totals = calloc(1, sizeof(*totals));
	struct model model;

	assert(totals);
	totals->time_ns = 2 * NS_PER_S;
	totals->snapshot = snapshot_new(NS_PER_S);
	assert(totals->snapshot && snapshot_finish(totals->snapshot) == 0);
	assert(series_add(&totals->before, &key, &sample) == 0);
	model_init(&model);
	model_totals_consume(&model, totals);
	assert(series_find(&model.series, &key));
	model_deinit(&model);
}

static bool shows(struct model *model, const char *text)
{
	struct grid grid = GRID_NULL;
	bool found = false;

	assert(grid_begin(&grid, 24, 120) == 0);
	frame_draw(model, &grid);
	for (unsigned int row = 0; row < grid.rows && !found; row++) {
		char line[121] = "";

		for (unsigned int i = 0; i < grid.columns; i++) {
			uint32_t character = grid.cells[row * grid.columns + i].character;

			line[i] = character < 0x7f ? (char)character : '?';
		}
		found = strstr(line, text) != NULL;
	}
	grid_deinit(&grid);
	return found;
}

UNIT(incidents_of_other_users_are_counted_in_the_title)
{
	struct model model;

	model_init(&model);
	show(&model);
	press(&model, '5');
	for (uint64_t hidden = 0; hidden <= 3; hidden += 3) {
		struct poller_details *details = calloc(1, sizeof(*details));

		assert(details);
		details->wish = model_wish(&model);
		details->from_daemon = true;
		details->incident_rows = incident_rows_new();
		assert(details->incident_rows);
		details->incident_rows->hidden = hidden;
		model_details_consume(&model, details);
		assert(shows(&model, "Leaks and incidents: 0"));
		assert(shows(&model, "and 3 of other users hidden") == (hidden > 0));
	}
	model_deinit(&model);
}

UNIT(keys_go_to_other_moments_of_a_recording)
{
	static const uint64_t incidents[] = {1200, 1500, 1500, 2000};
	static const struct model_recording recording = {.start_ns = 1000,
							 .end_ns = 2000,
							 .peak_ns = 1700,
							 .incidents = incidents,
							 .incident_count = 4};
	static const struct {
		uint32_t key;
		uint64_t at_ns;
	} steps[] = {
		{'p', 1700},       {KEYS_LEFT, 1690}, {KEYS_RIGHT, 1700}, {KEYS_HOME, 1000},
		{KEYS_LEFT, 1000}, {'i', 1200},       {'i', 1500},        {'i', 2000},
		{'i', 2000},       {KEYS_END, 2000},  {KEYS_RIGHT, 2000}, {' ', 2000},
	};
	CLEANUP(model_deinit) struct model model;

	model_init(&model);
	model_show_recording(&model, &recording, 1000);
	assert(model.seconds == 1);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct keys_event event = {.key = steps[i].key};

		frame_key(&model, &event);
		assert(model.at_ns == steps[i].at_ns && model_wish(&model).at_ns == model.at_ns);
		assert(!model.paused);
	}
	assert(*model.notice);
}
