/* SPDX-License-Identifier: Apache-2.0 */

/* All sources in one snapshot, wherever the books come from. */

#include "source/collect.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/host/testing/host-testing.h"
#include "source/proc/proc.h"
#include "source/source.h"

#define CHIP UINT64_C(77)
#define REGION "shm/tt_device_77_memory"

/* tt-metal's region of the chip, in version 4, with two processes. */
static void write_region(uint32_t with_book, uint32_t without)
{
	static unsigned char bytes[8576];
	const uint32_t version = 4, none = UINT32_MAX, ready = 0x52454459;
	const uint32_t pids[] = {with_book, without};
	const uint64_t chip = CHIP, dram = 700, stamp = clock_ns(CLOCK_MONOTONIC);

	memcpy(bytes, &version, sizeof(version));
	memcpy(bytes + 32, &chip, sizeof(chip));
	for (size_t i = 1; i < 16; i++)
		memcpy(bytes + 88 + i * 48, &none, sizeof(none));
	memcpy(bytes + 8536, &ready, sizeof(ready));
	for (size_t i = 0; i < 2; i++) {
		memcpy(bytes + 856 + i * 120, &pids[i], sizeof(pids[i]));
		memcpy(bytes + 864 + i * 120, &dram, sizeof(dram));
		memcpy(bytes + 904 + i * 120, &stamp, sizeof(stamp));
	}
	host_testing_write(REGION, bytes, sizeof(bytes));
}

static int play_books(struct source *source, const struct snapshot_request *request,
		      struct snapshot *snapshot)
{
	struct snapshot_process process = {.id.pid = 10,
					   .comm = "a",
					   .user = "u",
					   .source = "book",
					   .alive = true,
					   .exact = true};
	struct snapshot_part *part;
	struct proc proc;
	uint32_t index;

	assert(snapshot->process_count == 0 && snapshot->claim_count == 0); /* the first */
	assert(proc_open(&proc) == 0);
	process.id.start_ticks = proc_start_ticks(&proc, 10);
	proc_close(&proc);
	assert(snapshot_add_process(snapshot, &process, &index) == 0);
	part = snapshot_part(snapshot, index, 3);
	assert(part);
	part->facts.unique_id = CHIP;
	part->memory[TYPES_DRAM] = (struct snapshot_memory){.used = 100, .buffers = 1, .peak = 100};
	return 0;
}

static bool play_knows(const void *context, const struct kernel_holder *book)
{
	return false;
}

static struct snapshot *collect(void)
{
	static const struct source_ops ops = {.collect = play_books};
	static const struct snapshot_request request = {0};
	struct source books = {.ops = &ops};
	struct proc proc;
	struct collect_sources sources = {.books = &books, .knows = play_knows, .proc = &proc};
	struct snapshot *snapshot;

	assert(proc_open(&proc) == 0);
	assert(collect_machine(&sources, &request, &snapshot) == 0);
	proc_close(&proc);
	return snapshot;
}

UNIT(books_regions_and_cards_are_one_picture)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_process(10, "a", 60);
	host_testing_process(11, "b", 60);
	host_testing_text("sys/class/tenstorrent/tenstorrent!0/tt_asic_id", "000000000000004D\n");
	host_testing_text("sys/class/tenstorrent/tenstorrent!0/tt_card_type", "n150\n");
	write_region(10, 11);
	snapshot = collect();
	/*
	 * The book counts and is compared with its region; the other process has only its region.
	 */
	assert(snapshot->process_count == 2 && snapshot->device_count == 1);
	assert(snapshot->processes[0].books == 1 && snapshot->processes[0].differs);
	assert(snapshot->processes[1].books == 0 && snapshot->processes[1].id.pid == 11);
	assert(snapshot->devices[0].memory[TYPES_DRAM].used == 800);
	assert(snapshot->devices[0].present && snapshot->devices[0].processes == 2);
	assert(snapshot->closed_regions == 0);
	snapshot_free(snapshot);
}

UNIT(regions_that_nobody_may_read_are_counted_and_noted)
{
	struct snapshot *snapshot;

	host_testing_start();
	host_testing_process(10, "a", 60);
	write_region(10, 11);
	assert(chmod(unit_dir(), 0755) == 0);
	if (geteuid() == 0)
		assert(seteuid(65534) == 0);
	else
		unit_skip("only root has files that it can lose");
	snapshot = collect();
	assert(seteuid(0) == 0);
	assert(snapshot->closed_regions == 1 && snapshot->claim_count == 0);
	assert(snapshot->note_count == 1 && strstr(snapshot->notes[0], "other users"));
	snapshot_free(snapshot);
}
