/* SPDX-License-Identifier: Apache-2.0 */

/* Every view as it is drawn, of the same small machine: what stands where, and what is left out for lack of room. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers/call-stack.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"
#include "tui/frame.h"
#include "tui/incident-rows.h"
#include "tui/model.h"
#include "tui/testing/testing-grid.h"

#define NOW (UINT64_C(1000) * NS_PER_S)
#define MIB UINT64_C(1048576)
#define WORKERS 9u

static uint32_t add_process(struct snapshot *snapshot, uint32_t pid, const char *comm,
			    const char *user)
{
	const struct snapshot_process process = {
		.id.pid = pid,
		.id.start_ticks = pid,
		.comm = comm,
		.user = user,
		.source = "book",
		.alive = pid != 300,
		.exact = true,
		.start_ns = NOW - pid * NS_PER_S,
		.last_ns = NOW - pid * NS_PER_S / 10,
	};
	uint32_t index;

	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	return index;
}

static struct snapshot_part *add_part(struct snapshot *snapshot, uint32_t process, uint32_t device)
{
	struct snapshot_part *part = snapshot_part(snapshot, process, device);

	assert(part);
	part->facts.unique_id = 100 + device;
	part->facts.remote = device == 1;
	part->facts.arch = "wormhole_b0";
	part->facts.card = device < 2 ? "n300" : NULL;
	if (device < 2) {
		part->facts.capacity[TYPES_DRAM] = 1024 * MIB;
		part->facts.capacity[TYPES_L1] = 64 * MIB;
	}
	return part;
}

static void add_memory(struct snapshot_part *part, uint32_t type, uint64_t used, uint64_t buffers)
{
	part->memory[type].used = used;
	part->memory[type].peak = 2 * used;
	part->memory[type].buffers = buffers;
	part->memory[type].allocs = 3 * buffers;
	part->memory[type].frees = 2 * buffers;
}

static void add_buffer(struct snapshot *snapshot, uint32_t process, uint32_t type, uint64_t address,
		       const char *stack)
{
	const struct snapshot_buffer buffer = {
		.process = process,
		.address = address,
		.size = address * 1024,
		.born_ns = NOW - address * NS_PER_S,
		.birth = address,
		.name = address % 3 ? "weights" : NULL,
		.phase = address % 2 ? "load" : NULL,
		.stack = testing_stack(stack),
		.thread = 11,
		.refs = 1,
		.type = (uint8_t)type,
	};

	assert(snapshot_add_buffer(snapshot, &buffer) == 0);
}

/* What the driver says: of the second all that it can, and that it does not answer. */
static void tell_of_cards(struct snapshot *snapshot)
{
	struct snapshot_device *device = &snapshot->devices[1];

	device->telemetry.known = (1u << SNAPSHOT_SENSORS) - 1;
	for (uint32_t i = 0; i < SNAPSHOT_SENSORS; i++)
		device->telemetry.value[i] = (i + 1) * 1111;
	device->condition.state = SNAPSHOT_NOT_ANSWERING;
}

/* Two who train and serve on two chips and something unknown, workers on the first chip, and one who has ended. */
static struct snapshot *take(bool has_buffers)
{
	struct snapshot *snapshot = snapshot_new(NOW);
	uint32_t train, serve, old;

	assert(snapshot);
	train = add_process(snapshot, 100, "train", "alice");
	serve = add_process(snapshot, 200, "serve", "bob");
	old = add_process(snapshot, 300, "old", "alice");
	add_memory(add_part(snapshot, train, 0), TYPES_DRAM, 512 * MIB, 3);
	add_memory(add_part(snapshot, train, 0), TYPES_L1, 16 * MIB, 2);
	add_memory(add_part(snapshot, train, 1), TYPES_DRAM, 768 * MIB, 1);
	add_memory(add_part(snapshot, serve, 0), TYPES_DRAM, 128 * MIB, 1);
	add_memory(add_part(snapshot, serve, 2), TYPES_L1, 3 * MIB, 7);
	add_part(snapshot, serve, 0)->memory[TYPES_DRAM].bound = SNAPSHOT_AT_LEAST;
	add_memory(add_part(snapshot, old, 1), TYPES_DRAM, 5 * MIB, 1);
	for (uint32_t i = 0; i < WORKERS; i++)
		add_memory(add_part(snapshot, add_process(snapshot, 401 + i, "worker", "carol"), 0),
			   TYPES_L1, 1024 * (i + 1), 1);
	if (has_buffers) {
		add_buffer(snapshot, train, TYPES_DRAM, 1, "/app/model.py:12:load");
		add_buffer(snapshot, train, TYPES_DRAM, 2, "/app/model.py:12:load");
		add_buffer(snapshot, train, TYPES_L1, 3,
			   "/app/run.py:7:main -> /app/model.py:20:step");
		add_buffer(snapshot, train, TYPES_L1, 4, NULL);
	}
	snapshot_note(snapshot, "pid 200: a note");
	assert(snapshot_finish(snapshot) == 0);
	tell_of_cards(snapshot);
	return snapshot;
}

static struct incident_rows *list_incidents(void)
{
	static const struct incident_rows_row rows[] = {
		{.time_ns = NOW - 90 * NS_PER_S,
		 .kind = "leak",
		 .pid = 300,
		 .comm = "old",
		 .bytes = 5 * MIB,
		 .count = 1,
		 .what = "killed by signal 9"},
		{.time_ns = NOW - 5 * NS_PER_S,
		 .kind = "double_free",
		 .pid = 100,
		 .comm = "train",
		 .has_device = true,
		 .device = 1,
		 .type = "DRAM",
		 .has_address = true,
		 .address = 0x1000,
		 .bytes = 64,
		 .count = 3,
		 .what = "weights"},
	};
	struct incident_rows *list = incident_rows_new();

	assert(list);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct incident_rows_row *row = incident_rows_add(list, &rows[i]);

		assert(row && incident_rows_line(list, row, "line %zu", i) == 0);
	}
	return list;
}

static void feed(struct model *model)
{
	struct poller_totals *totals = calloc(1, sizeof(*totals));
	const struct poller_wish wish = model_wish(model);
	struct poller_details *details;

	assert(totals);
	totals->time_ns = NOW;
	totals->snapshot = take(false);
	model_totals_consume(model, totals);
	if (model_wish(model).kind == POLLER_NOTHING)
		return;
	details = calloc(1, sizeof(*details));
	assert(details);
	details->wish = wish;
	if (wish.kind == POLLER_PAST)
		details->incident_rows = list_incidents();
	else
		details->snapshot = take(true);
	if (wish.kind == POLLER_SITES)
		assert(poller_details_group(details) == 0);
	model_details_consume(model, details);
}

/* What is drawn after these keys from a column on; '_' is the Enter key. */
static void check(const char *keys, unsigned int rows, unsigned int columns, unsigned int from,
		  const char *expected)
{
	CLEANUP(model_deinit) struct model model;
	struct grid grid = GRID_NULL, part = GRID_NULL;

	assert(setenv("TZ", "UTC", 1) ==
	       0); /* NOLINT(concurrency-mt-unsafe): there is one thread */
	tzset();
	model_init(&model);
	model.now_ns = NOW;
	feed(&model);
	for (; *keys; keys++) {
		const struct keys_event event = {.key = *keys == '_' ? KEYS_ENTER
								     : (unsigned char)*keys};

		frame_key(&model, &event);
		feed(&model);
	}
	assert(grid_begin(&grid, rows, columns) == 0);
	frame_draw(&model, &grid);
	assert(grid_begin(&part, rows, columns - from) == 0);
	for (unsigned int row = 0; row < rows; row++)
		memcpy(&part.cells[row * part.columns], &grid.cells[row * columns + from],
		       part.columns * sizeof(*part.cells));
	grid_deinit(&grid);
	testing_grid_is(&part, expected);
}

UNIT(devices_have_bars_and_charts)
{
	check("", 22, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      "  DEV▴ CARD             DRAM            USED     % L1              USED     %\n"
	      ">    0 n300 wormhole_b0 ██████░░░ >640.0 MiB  62.5 ██░░░░░░░   16.0 MiB  25.1\n"
	      "    1R n300 not answer~ ███████░░  768.0 MiB  75.0 ░░░░░░░░░        0 B   0.0\n"
	      "     2 wormhole_b0                       0 B     -              3.0 MiB     -\n"
	      "  R a remote chip, without a node of its own\n"
	      "           Device 0 DRAM 640.0 MiB of 1.0 GiB\n"
	      "   1.0 GiB│\n"
	      "          │                                                                  ⢠\n"
	      "          │                                                                  ⢸\n"
	      "          │                                                                  ⢸\n"
	      "         0└───────────────────────────────────────────────────────────────────\n"
	      "           60 s ago                                                        now\n"
	      "           Device 0 L1 16.0 MiB of 64.0 MiB\n"
	      "  64.0 MiB│\n"
	      "          │\n"
	      "          │\n"
	      "          │                                                                  ⢸\n"
	      "         0└───────────────────────────────────────────────────────────────────\n"
	      "           60 s ago                                                        now\n"
	      " Enter:processes t:time p:pause s:save ?:help q:quit\n");
}

UNIT(beside_the_charts_stand_types_and_the_largest_holders)
{
	check("", 24, 130, 72,
	      "ry                                              ttmem top\n"
	      "                          1 note (n)  no ttmemd  00:16:40\n"
	      " L1                          USED         OF     %  PROCS\n"
	      " █████░░░░░░░░░░░░░░░░   16.0 MiB   64.0 MiB  25.1     11\n"
	      " ░░░░░░░░░░░░░░░░░░░░░        0 B   64.0 MiB   0.0      1\n"
	      "                          3.0 MiB  not known     -      1\n"
	      "\n"
	      "   TYPE               USED     TAKES       PEAK  BUFFERS\n"
	      "   DRAM          640.0 MiB         -          -        4\n"
	      "⢀  L1             16.0 MiB         -          -       11\n"
	      "⢸  SYSTEM_MEMORY       0 B       0 B          -        0\n"
	      "⢸  L1_SMALL            0 B       0 B          -        0\n"
	      "⢸  TRACE               0 B       0 B          -        0\n"
	      "─  CB                  0 B       0 B          -        0\n"
	      "w  KERNEL              0 B       0 B          -        0\n"
	      "\n"
	      "   HELD BY\n"
	      "    528.0 MiB  train (100)\n"
	      "   >128.0 MiB  serve (200)\n"
	      "⢀     9.0 KiB  worker (409)\n"
	      "⢸     8.0 KiB  worker (408)\n"
	      "─     7.0 KiB  worker (407)\n"
	      "w     6.0 KiB  worker (406)\n"
	      "\n");
}

UNIT(with_little_room_no_holders_are_named)
{
	check("", 18, 130, 72,
	      "ry                                              ttmem top\n"
	      "                          1 note (n)  no ttmemd  00:16:40\n"
	      " L1                          USED         OF     %  PROCS\n"
	      " █████░░░░░░░░░░░░░░░░   16.0 MiB   64.0 MiB  25.1     11\n"
	      " ░░░░░░░░░░░░░░░░░░░░░        0 B   64.0 MiB   0.0      1\n"
	      "                          3.0 MiB  not known     -      1\n"
	      "\n"
	      "~  TYPE               USED     TAKES       PEAK  BUFFERS\n"
	      "   DRAM          640.0 MiB         -          -        4\n"
	      "   L1             16.0 MiB         -          -       11\n"
	      "   SYSTEM_MEMORY       0 B       0 B          -        0\n"
	      "   L1_SMALL            0 B       0 B          -        0\n"
	      "   TRACE               0 B       0 B          -        0\n"
	      "   CB                  0 B       0 B          -        0\n"
	      "   KERNEL              0 B       0 B          -        0\n"
	      "─\n"
	      "w\n"
	      "\n");
}

UNIT(processes_are_listed_by_what_they_hold)
{
	check("2", 14, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " Processes: 11\n"
	      "      PID USER     COMMAND         DEV      DRAM▾         L1  BUFFERS    IDLE\n"
	      ">     100 alice    train           0,1    1.2 GiB   16.0 MiB        6    10 s\n"
	      "      200 bob      serve           0,2 >128.0 MiB    3.0 MiB        8    20 s\n"
	      "      401 carol    worker            0        0 B    1.0 KiB        1    40 s\n"
	      "      402 carol    worker            0        0 B    2.0 KiB        1    40 s\n"
	      "      403 carol    worker            0        0 B    3.0 KiB        1    40 s\n"
	      "      404 carol    worker            0        0 B    4.0 KiB        1    40 s\n"
	      "      405 carol    worker            0        0 B    5.0 KiB        1    40 s\n"
	      "      406 carol    worker            0        0 B    6.0 KiB        1    40 s\n"
	      "      407 carol    worker            0        0 B    7.0 KiB        1    40 s\n"
	      " Enter:buffers <>:sort /:filter T:tree K:kill p:pause s:save ?:help q:quit\n");
}

UNIT(processes_of_one_device_say_so)
{
	check("j_", 10, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " Processes with device 1R: 1 (2: all)\n"
	      "      PID USER     COMMAND         DEV      DRAM▾         L1  BUFFERS    IDLE\n"
	      ">     100 alice    train           0,1    1.2 GiB   16.0 MiB        6    10 s\n"
	      "\n"
	      "\n"
	      "\n"
	      "\n"
	      " Enter:buffers <>:sort /:filter T:tree K:kill p:pause s:save ?:help q:quit\n");
}

UNIT(typing_filters)
{
	check("2/work", 12, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " Processes: 9\n"
	      "      PID USER     COMMAND         DEV      DRAM▾         L1  BUFFERS    IDLE\n"
	      ">     401 carol    worker            0        0 B    1.0 KiB        1    40 s\n"
	      "      402 carol    worker            0        0 B    2.0 KiB        1    40 s\n"
	      "      403 carol    worker            0        0 B    3.0 KiB        1    40 s\n"
	      "      404 carol    worker            0        0 B    4.0 KiB        1    40 s\n"
	      "      405 carol    worker            0        0 B    5.0 KiB        1    40 s\n"
	      "      406 carol    worker            0        0 B    6.0 KiB        1    40 s\n"
	      "      407 carol    worker            0        0 B    7.0 KiB        1    40 s\n"
	      " filter: work_                                           Enter:keep  Esc:drop\n");
}

UNIT(a_list_that_is_turned_around_begins_with_the_least)
{
	check("2rj", 11, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " Processes: 11\n"
	      "      PID USER     COMMAND         DEV      DRAM▴         L1  BUFFERS    IDLE\n"
	      "      401 carol    worker            0        0 B    1.0 KiB        1    40 s\n"
	      ">     402 carol    worker            0        0 B    2.0 KiB        1    40 s\n"
	      "      403 carol    worker            0        0 B    3.0 KiB        1    40 s\n"
	      "      404 carol    worker            0        0 B    4.0 KiB        1    40 s\n"
	      "      405 carol    worker            0        0 B    5.0 KiB        1    40 s\n"
	      "      406 carol    worker            0        0 B    6.0 KiB        1    40 s\n"
	      " Enter:buffers <>:sort /:filter T:tree K:kill p:pause s:save ?:help q:quit\n");
}

UNIT(a_filter_that_is_kept_stands_in_the_title)
{
	check("3/load_", 11, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " train (100): 6 buffers, 1.3 GiB; 2 shown  filter: load\n"
	      "      SIZE▾ TYPE      DEV ADDRESS          AGE NAME              PHASE\n"
	      ">   3.0 KiB L1          0 0x3              3 s -                 load\n"
	      "    1.0 KiB DRAM        0 0x1              1 s weights           load\n"
	      "\n"
	      "\n"
	      "\n"
	      "\n"
	      " Enter:stack <>:sort r:reverse /:filter p:pause s:save ?:help q:quit\n");
}

UNIT(a_buffer_unfolds_into_its_stack)
{
	check("3j_", 14, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " train (100): 6 buffers, 1.3 GiB\n"
	      "      SIZE▾ TYPE      DEV ADDRESS          AGE NAME              PHASE\n"
	      "    4.0 KiB L1          0 0x4              4 s weights           -\n"
	      ">   3.0 KiB L1          0 0x3              3 s -                 load\n"
	      "      name:  none\n"
	      "      phase: load\n"
	      "      3072 bytes, allocated by thread 11, 1 reference\n"
	      "      what it takes of each bank was not told\n"
	      "      at step (/app/model.py:20)\n"
	      "      at main (/app/run.py:7)\n"
	      "    2.0 KiB DRAM        0 0x2              2 s weights           -\n"
	      " Enter:stack <>:sort r:reverse /:filter p:pause s:save ?:help q:quit\n");
}

UNIT(a_buffer_without_a_stack_says_so)
{
	check("3_", 14, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " train (100): 6 buffers, 1.3 GiB\n"
	      "      SIZE▾ TYPE      DEV ADDRESS          AGE NAME              PHASE\n"
	      ">   4.0 KiB L1          0 0x4              4 s weights           -\n"
	      "      name:  weights\n"
	      "      phase: none\n"
	      "      4096 bytes, allocated by thread 11, 1 reference\n"
	      "      what it takes of each bank was not told\n"
	      "      no stack was recorded (ttmem doctor says why)\n"
	      "    3.0 KiB L1          0 0x3              3 s -                 load\n"
	      "    2.0 KiB DRAM        0 0x2              2 s weights           -\n"
	      "    1.0 KiB DRAM        0 0x1              1 s weights           load\n"
	      " Enter:stack <>:sort r:reverse /:filter p:pause s:save ?:help q:quit\n");
}

UNIT(call_sites_are_lines_with_their_sums)
{
	check("4j_", 11, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " Call sites: 3 of 4 buffers\n"
	      "     BYTES▾  BUFFERS  OLDEST COMMAND      TYPE     CALL SITE\n"
	      "    4.0 KiB        1     4 s train        L1       weights\n"
	      ">   3.0 KiB        2     2 s train        DRAM     weights, load (model.py:1~\n"
	      "      at load (/app/model.py:12)\n"
	      "    3.0 KiB        1     3 s train        L1       in load, step (model.py:2~\n"
	      "\n"
	      "\n"
	      " Enter:stack <>:sort r:reverse /:filter p:pause s:save ?:help q:quit\n");
}

UNIT(incidents_are_listed_newest_first)
{
	check("5j_", 11, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      " Leaks and incidents: 2 of living processes (only ttmemd remembers the ended)\n"
	      "    AGO▴ KIND              PID COMMAND     DEV       SIZE  COUNT WHAT\n"
	      "     5 s double_free       100 train         1       64 B      3 weights\n"
	      ">   90 s leak              300 old           -    5.0 MiB      1 killed by s~\n"
	      "      line 0\n"
	      "\n"
	      "\n"
	      "\n"
	      " Enter:details <>:sort r:reverse /:filter p:pause s:save ?:help q:quit\n");
}

UNIT(telemetry_has_units)
{
	check("6", 11, 110, 32,
	      "rs  4 Call sites  5 Incidents  6 Telemetry                          ttmem top\n"
	      "esses, 3 devices                              1 note (n)  no ttmemd  00:16:40\n"
	      "it\n"
	      "                       TEMP     POWER     CLOCK       FAN   VOLTAGE   CURRENT\n"
	      "                  not known not known not known not known not known not known\n"
	      "                      1.1 C     2.2 W  5555 MHz  8888 rpm    3.33 V     4.4 A\n"
	      "                  not known not known not known not known not known not known\n"
	      "\n"
	      "\n"
	      "\n"
	      "use s:save ?:help q:quit\n");
}

UNIT(notes_lie_over_the_view)
{
	check("n", 13, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      "  DEV▴ CARD             DRAM            USED     % L1              USED     %\n"
	      ">    0 n300 wormhole_b0 ██████░░░ >640.0 MiB  62.5 ██░░░░░░░   16.0 MiB  25.1\n"
	      "    1R n300 not answer~ ███████░░  768.0 MiB  75.0 ░░░░░░░░░        0 B   0.0\n"
	      "                                                                            -\n"
	      "  R   pid 200: a note\n"
	      "                                                                          64.~\n"
	      "   1.0 GiB│                           ⢀  64.0 MiB│\n"
	      "          │                           ⢸          │                           ⢠\n"
	      "         0└────────────────────────────         0└────────────────────────────\n"
	      "           60 s ago                 now           60 s ago                 now\n"
	      " Enter:processes t:time p:pause s:save ?:help q:quit\n");
}

UNIT(the_help_lies_over_the_view)
{
	check("?", 34, 78, 0,
	      " 1 Devices  2 Processes  3 Buffers  4 Call sites  5 Incidents  6 Telemetry\n"
	      " >1.4 GiB in 23 buffers, 11 processes, 3 dev~ 1 note (n)  no ttmemd  00:16:40\n"
	      "  DEV▴ CARD             DRAM            USED     % L1              USED     %\n"
	      ">    0 n300 wormhole_b0 ██████░░░ >640.0 MiB  62.5 ██░░░░░░░   16.0 MiB  25.1\n"
	      "    1R n300 not answer~ ███████░░  768.0 MiB  75.0 ░░░░░░░░░        0 B   0.0\n"
	      "                                                                            -\n"
	      "  R   1 to 6            the views; also a click on its name\n"
	      "      Tab               the next view\n"
	      "   1  Up, Down, j, k    choose; PgUp, PgDn, Home, End; wheel, click\n"
	      "      Left, Right       between devices; in lists the column to sort by\n"
	      "      Enter             deeper: device, processes, buffers, stack\n"
	      "      Esc               back: folds, drops the filter, last view             ⢀\n"
	      "      < >  r            sort by another column, the other way round;         ⢸\n"
	      " 512                    also a click on its title                            ⢸\n"
	      "      /                 filter: letters that a row must have                 ⢸\n"
	      "      t                 charts over 30, 60, 120, 300 seconds                 ⢸\n"
	      "      n                 notes: what could not be read, and why               ⢸\n"
	      "      a                 also ended processes and closed devices              ⢸\n"
	      "      T                 processes as a tree: below those that started     ────\n"
	      "      them                                                                 now\n"
	      "      K                 end the selected process; asks first\n"
	      "  64  p                 pause; charts go on in the background\n"
	      "      s                 save what is shown as JSON in this folder\n"
	      "      W                 save view, order and charts for the next start\n"
	      "      ?                 this; any key closes it\n"
	      "      q                 quit\n"
	      "  32  1R                device 1: a remote chip, without a node of its\n"
	      "      own\n"
	      "                                                                             ⢠\n"
	      "          │                                                                  ⢸\n"
	      "          │                                                                  ⢸\n"
	      "         0└───────────────────────────────────────────────────────────────────\n"
	      "           60 s ago                                                        now\n"
	      " Enter:processes t:time p:pause s:save ?:help q:quit\n");
}

UNIT(a_terminal_that_is_too_small_shows_how_to_end)
{
	check("", 9, 40, 0,
	      "too small; q quits\n"
	      "\n"
	      "\n"
	      "\n"
	      "\n"
	      "\n"
	      "\n"
	      "\n"
	      "\n");
}
