/* SPDX-License-Identifier: Apache-2.0 */

/* The calls that are not events: statistics, pausing, phases, marks, devices, identity. */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "lib/testing/testing-observer.h"

static void rest_open(struct observer *observer)
{
	assert(observer_open(observer, getpid()));
}

UNIT(peaks_and_figures)
{
	struct ttmem_stats stats = {.bytes = 77};
	struct observer w;

	observer_track();
	ttmem_alloc(2, TTMEM_DRAM, 1, 100, NULL);
	ttmem_alloc(2, TTMEM_L1, 1, 10, NULL);
	ttmem_free(2, TTMEM_DRAM, 1);
	ttmem_alloc(2, TTMEM_DRAM, 2, 30, NULL);
	assert(ttmem_stats(2, TTMEM_DRAM, &stats) == 0);
	assert(stats.bytes == 30 && stats.buffers == 1 && stats.peak_bytes == 100);
	assert(stats.allocs == 2 && stats.frees == 1);
	assert(ttmem_stats(2, TTMEM_ANY, &stats) == 0);
	assert(stats.bytes == 40 && stats.buffers == 2 && stats.peak_bytes == 110);
	ttmem_reset_peak(2, TTMEM_DRAM);
	assert(ttmem_stats(2, TTMEM_ANY, &stats) == 0 && stats.peak_bytes == 40);
	ttmem_alloc(2, TTMEM_DRAM, 3, 1, NULL);
	rest_open(&w);
	assert(observer_hot(&w, 2, TTMEM_DRAM).peak == 31);
	ttmem_free_all(2, TTMEM_ANY, 0);
	ttmem_reset_peak(2, TTMEM_ANY);
	assert(ttmem_stats(2, TTMEM_ANY, &stats) == 0 && stats.peak_bytes == 0);
	/* A device without events has zero counters; invalid arguments are refused. */
	assert(ttmem_stats(900, TTMEM_ANY, &stats) == 0 && stats.allocs == 0);
	stats.bytes = 77;
	assert(ttmem_stats(1024, TTMEM_ANY, &stats) == -EINVAL);
	assert(ttmem_stats(0, TTMEM_TYPE_COUNT, &stats) == -EINVAL);
	assert(ttmem_stats(0, 0, NULL) == -EINVAL);
	assert(stats.bytes == 77);
	observer_close(&w);
}

UNIT(figures_without_tracking)
{
	struct ttmem_stats stats = {.bytes = 77};

	observer_untrack();
	assert(ttmem_enabled() == 0);
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, NULL);
	assert(ttmem_stats(0, TTMEM_DRAM, &stats) == -ENODATA && stats.bytes == 77);
	assert(ttmem_intern("name") == 0);
	assert(observer_count(getpid()) == 0);
}

UNIT(pause_and_resume_nest)
{
	struct observer w;

	observer_track();
	ttmem_pause(); /* before there is a book */
	assert(ttmem_enabled() == 0);
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, NULL);
	rest_open(&w);
	assert(observer_header(&w)->paused == 1 && observer_header(&w)->rejected.paused == 1);
	ttmem_resume();
	assert(ttmem_enabled() == 1 && observer_header(&w)->paused == 0);
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, NULL);
	ttmem_pause();
	ttmem_pause();
	ttmem_free(0, TTMEM_DRAM, 1);
	ttmem_resume();
	ttmem_free(0, TTMEM_DRAM, 1);
	assert(observer_header(&w)->paused == 1 && ttmem_enabled() == 0);
	ttmem_resume();
	ttmem_resume(); /* one too many */
	assert(ttmem_enabled() == 1);
	assert(observer_header(&w)->rejected.paused == 3);
	assert(observer_hot(&w, 0, TTMEM_DRAM).bytes == 100);
	ttmem_free(0, TTMEM_DRAM, 1);
	assert(observer_hot(&w, 0, TTMEM_DRAM).frees == 1);
	observer_close(&w);
}

UNIT(goodbye_is_not_the_end)
{
	struct observer w;

	observer_track();
	ttmem_goodbye(); /* nothing to close yet */
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, NULL);
	rest_open(&w);
	assert(observer_header(&w)->state == BOOK_STATE_OPEN);
	ttmem_goodbye();
	assert(observer_header(&w)->state == BOOK_STATE_CLOSED);
	assert(observer_header(&w)->closed_time != 0);
	ttmem_free(0, TTMEM_DRAM, 1);
	ttmem_alloc(0, TTMEM_DRAM, 2, 5, NULL);
	assert(observer_hot(&w, 0, TTMEM_DRAM).bytes == 5);
	observer_close(&w);
}

UNIT(skipped_frames_are_in_the_book)
{
	struct observer w;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	rest_open(&w);
	assert(observer_header(&w)->skip_frames == 0);
	ttmem_skip_frames("pool::,take_*");
	assert(strcmp(observer_text(&w, observer_header(&w)->skip_frames), "pool::,take_*") == 0);
	ttmem_skip_frames("other");
	assert(strcmp(observer_text(&w, observer_header(&w)->skip_frames), "other") == 0);
	ttmem_skip_frames(NULL);
	assert(observer_header(&w)->skip_frames == 0);
	observer_close(&w);
}

UNIT(whoever_gives_up_is_remembered_for_good)
{
	struct observer w;

	observer_track();
	assert(!ttmem_gave_up());
	ttmem_alloc(3, TTMEM_DRAM, 1, 1, NULL);
	rest_open(&w);
	assert(observer_header(&w)->gave_up == 0);
	assert(observer_inexact(&w, 3) == 0);
	ttmem_give_up("the first reason");
	ttmem_give_up("another one");
	assert(strcmp(ttmem_gave_up(), "the first reason") == 0);
	assert(strcmp(observer_text(&w, observer_header(&w)->gave_up), "the first reason") == 0);
	/* Every type of every device, also of one that comes later. */
	assert(observer_inexact(&w, 3) == BOOK_INEXACT_LOW * ((1u << BOOK_TYPES) - 1));
	ttmem_alloc(4, TTMEM_L1, 1, 1, NULL);
	assert(observer_inexact(&w, 4) == BOOK_INEXACT_LOW * ((1u << BOOK_TYPES) - 1));
	observer_close(&w);
}

UNIT(giving_up_makes_a_book_and_is_in_that_of_a_child)
{
	struct observer w;
	pid_t child;
	int status = -1;

	observer_track();
	ttmem_give_up(NULL);
	rest_open(&w);
	assert(observer_header(&w)->gave_up == BOOK_GAVE_UP_UNSAID);
	assert(strcmp(ttmem_gave_up(), "") == 0);
	observer_close(&w);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
		rest_open(&w);
		_exit(observer_header(&w)->gave_up == BOOK_GAVE_UP_UNSAID ? 0 : 1);
	}
	assert(waitpid(child, &status, 0) == child && status == 0);
}

UNIT(giving_up_without_tracking_is_nothing)
{
	observer_untrack();
	ttmem_give_up("why");
	assert(!ttmem_gave_up());
}

UNIT(phases)
{
	struct observer w;

	observer_track();
	assert(setenv("TTMEM_PHASE", "from outside", 1) == 0);
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	ttmem_phase_process("process");
	ttmem_alloc(0, TTMEM_DRAM, 2, 1, NULL);
	ttmem_phase_push("test");
	ttmem_phase_push("layer 3");
	ttmem_alloc(0, TTMEM_DRAM, 3, 1, NULL);
	ttmem_phase_pop();
	ttmem_phase_push("other");
	ttmem_alloc(0, TTMEM_DRAM, 4, 1, NULL);
	ttmem_phase_pop();
	ttmem_phase_pop();
	ttmem_phase_pop(); /* one too many */
	ttmem_alloc(0, TTMEM_DRAM, 5, 1, NULL);
	ttmem_phase_process(NULL);
	ttmem_alloc(0, TTMEM_DRAM, 6, 1, NULL);
	rest_open(&w);
	assert(observer_look(&w, 0, VIEW_LIVING));
#define PHASE(n) observer_text(&w, observer_row(&w, TTMEM_DRAM, n)->phase)
	assert(strcmp(PHASE(1), "from outside") == 0);
	assert(strcmp(PHASE(2), "process") == 0);
	assert(strcmp(PHASE(3), "test/layer 3") == 0);
	assert(strcmp(PHASE(4), "test/other") == 0);
	assert(strcmp(PHASE(5), "process") == 0);
	assert(strcmp(PHASE(6), "") == 0);
#undef PHASE
	observer_close(&w);
}

UNIT(phases_deeper_than_anybody_counts)
{
	struct observer w;

	observer_track();
	for (int i = 0; i < 2000; i++)
		ttmem_phase_push("a phase with a name that is rather long");
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	for (int i = 0; i < 1999; i++)
		ttmem_phase_pop();
	ttmem_alloc(0, TTMEM_DRAM, 2, 1, NULL);
	ttmem_phase_pop();
	ttmem_alloc(0, TTMEM_DRAM, 3, 1, NULL);
	rest_open(&w);
	assert(observer_look(&w, 0, VIEW_LIVING));
	assert(strlen(observer_text(&w, observer_row(&w, TTMEM_DRAM, 1)->phase)) <= BOOK_PATH_MAX);
	assert(strcmp(observer_text(&w, observer_row(&w, TTMEM_DRAM, 2)->phase),
		      "a phase with a name that is rather long") == 0);
	assert(observer_row(&w, TTMEM_DRAM, 3)->phase == 0);
	observer_close(&w);
}

UNIT(marks)
{
	struct book_mark mark;
	struct observer w;
	char name[32];

	observer_track();
	ttmem_phase_push("warm-up");
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "step %d", i);
		ttmem_mark(name);
	}
	ttmem_mark(NULL);
	rest_open(&w);
	assert(observer_header(&w)->mark_count == 301);
	assert(reader_mark(&w.reader, 0, &mark) == -ENOENT);
	assert(reader_mark(&w.reader, 299, &mark) == 0);
	assert(strcmp(observer_text(&w, mark.name), "step 299") == 0);
	assert(strcmp(observer_text(&w, mark.phase), "warm-up") == 0);
	assert(mark.thread == (uint32_t)getpid());
	observer_close(&w);
}

UNIT(devices)
{
	struct ttmem_device_args args = {
		.struct_size = sizeof(args),
		.device = 4,
		.unique_id = 0x1234,
		.arch = "wormhole_b0",
		.card = "n300",
		.remote = 1,
		.l1_per_core = 1499136,
		.cores = 64,
		.memory = {[TTMEM_DRAM] = {.capacity = UINT64_C(12) << 30, .banks = 12}},
	};
	struct book_device device;
	uint64_t reserved;
	struct observer w;

	observer_track();
	ttmem_device(&args);
	rest_open(&w);
	assert(reader_device(&w.reader, 4, &device) == 0);
	assert(device.unique_id == 0x1234 && device.remote == 1 && device.cores == 64);
	assert(strcmp(device.arch, "wormhole_b0") == 0 && strcmp(device.card, "n300") == 0);
	assert(device.memory[TTMEM_DRAM].banks == 12 && device.closed_time == 0);
	/* The short form of an older header, and an update. */
	args.struct_size = offsetof(struct ttmem_device_args, arch);
	args.unique_id = 0x5678;
	ttmem_device(&args);
	assert(reader_device(&w.reader, 4, &device) == 0);
	assert(device.unique_id == 0x5678 && device.arch[0] == '\0' && device.cores == 0);
	ttmem_device_close(4);
	assert(reader_device(&w.reader, 4, &device) == 0 && device.closed_time != 0);
	/* Repeating it takes no room. */
	reserved = observer_header(&w)->reserved_bytes;
	for (int i = 0; i < 1000; i++)
		ttmem_device(&args);
	assert(observer_header(&w)->reserved_bytes == reserved);
	assert(reader_device(&w.reader, 5, &device) == -ENOENT);
	observer_close(&w);
}

UNIT(failed_allocation)
{
	struct book_incident incident;
	struct observer w;

	observer_track();
	ttmem_alloc_failed(0, TTMEM_L1, 4096, 1024);
	ttmem_alloc_failed(0, TTMEM_DRAM, 1, TTMEM_UNKNOWN);
	rest_open(&w);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_ALLOC_FAILED, 0, &incident) == 0);
	assert(incident.size == 4096 && incident.largest_free == 1024 && incident.type == TTMEM_L1);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_ALLOC_FAILED, 1, &incident) == 0);
	assert(incident.largest_free == UINT64_MAX);
	assert(observer_hot(&w, 0, TTMEM_L1).allocs == 0);
	observer_close(&w);
}

UNIT(failed_allocation_with_all_that_is_known)
{
	struct ttmem_failed_args args = {
		.struct_size = sizeof(args),
		.device = 2,
		.type = TTMEM_DRAM,
		.space = 3,
		.size = 12288,
		.largest_free = 512,
		.size_per_bank = 1024,
		.bank_size = 4096,
		.bank_free = 900,
		.banks = 12,
		.shape_flags = TTMEM_SHAPE_PER_CORE,
		.name = "weights",
	};
	struct book_incident incident;
	struct observer w;

	observer_track();
	for (int i = 0; i < 3; i++) /* one line of code: one entry */
		ttmem_alloc_failed_ex(&args);
	args.shape_flags |= TTMEM_SHAPE_SHARDED;
	ttmem_alloc_failed_ex(&args);
	args.shape_flags = 0;
	args.type = TTMEM_ANY;
	ttmem_alloc_failed_ex(&args);
	ttmem_alloc_failed_ex(NULL);
	rest_open(&w);
	assert(observer_header(&w)->incident_count[BOOK_INCIDENT_ALLOC_FAILED] == 1);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_ALLOC_FAILED, 0, &incident) == 0);
	assert(incident.count == 3 && incident.device == 2 && incident.space == 3);
	assert(incident.size == 12288 && incident.largest_free == 512);
	assert(incident.size_per_bank == 1024 && incident.banks == 12);
	assert(incident.bank_size == 4096 && incident.bank_free == 900);
	assert(incident.shape_flags == BOOK_SHAPE_PER_CORE);
	assert(strcmp(observer_text(&w, incident.second.name), "weights") == 0);
	assert(observer_header(&w)->rejected.type == 1);
	assert(observer_header(&w)->rejected.arguments == 2);
	observer_close(&w);
}

UNIT(clash)
{
	struct ttmem_clash_args args = {
		.struct_size = sizeof(args),
		.type = TTMEM_L1,
		.address = 0x9000,
		.wanted_address = 0x1000,
		.wanted_size = 0x8800,
		.name = "circular buffers",
	};
	struct book_incident incident;
	struct observer w;

	observer_track();
	ttmem_alloc(0, TTMEM_L1, 0x9000, 4096, "kv");
	ttmem_clash(&args);
	args.wanted_size = 0x8000; /* it ends where the buffer begins */
	ttmem_clash(&args);
	args.wanted_size = UINT64_MAX;
	ttmem_clash(&args);
	args.wanted_size = 0x8800;
	args.space = TTMEM_SPACE_COUNT;
	ttmem_clash(&args);
	args.space = 0;
	args.type = TTMEM_ANY;
	ttmem_clash(&args);
	rest_open(&w);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_CLASH, 0, &incident) == 0);
	assert(incident.size == 0x800 && incident.first.size == 4096 && incident.first.name);
	assert(incident.second.size == 0x8800 && incident.second.name && incident.count == 1);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_CLASH, 1, &incident) == -ENOENT);
	assert(observer_header(&w)->rejected.arguments == 3);
	assert(observer_header(&w)->rejected.type == 1);
	observer_close(&w);
}

static __attribute__((noinline)) struct ttmem_origin rest_capture(void)
{
	struct ttmem_origin origin;

	ttmem_phase_push("capture");
	ttmem_here(&origin);
	ttmem_phase_pop();
	return origin;
}

UNIT(trace_overlap)
{
	struct ttmem_trace_overlap_args args = {
		.struct_size = sizeof(args),
		.device = 3,
		.type = TTMEM_L1,
		.space = 2,
		.address = 0x9000,
		.size = 64,
		.trace = "trace 7",
		.traced_size = 4096,
	};
	struct book_incident incident;
	struct observer w;

	observer_track();
	args.traced = rest_capture();
	ttmem_trace_overlap(&args);
	args.space = TTMEM_SPACE_COUNT;
	ttmem_trace_overlap(&args);
	args.space = 0;
	args.type = TTMEM_ANY;
	ttmem_trace_overlap(&args);
	args.type = TTMEM_L1;
	args.struct_size = offsetof(struct ttmem_trace_overlap_args, address);
	ttmem_trace_overlap(&args);
	ttmem_trace_overlap(NULL);
	ttmem_here(NULL);
	rest_open(&w);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_TRACE_OVERLAP, 0, &incident) == 0);
	assert(incident.device == 3 && incident.type == TTMEM_L1 && incident.space == 2);
	assert(incident.address == 0x9000 && incident.size == 64 && incident.count == 1);
	assert(incident.first.size == 4096 && incident.first.name && incident.first.phase);
	assert(incident.first.time && incident.first.time <= incident.second.time);
	assert(incident.first.stack && incident.second.stack);
	assert(incident.first.phase != incident.second.phase);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_TRACE_OVERLAP, 1, &incident) == -ENOENT);
	assert(observer_header(&w)->rejected.arguments == 3);
	assert(observer_header(&w)->rejected.type == 1);
	observer_close(&w);
}

UNIT(nobody_is_an_origin_while_tracking_is_off)
{
	struct ttmem_origin origin = {.time = 5, .stack = 5};

	assert(setenv("TTMEM", "0", 1) == 0);
	ttmem_here(&origin);
	assert(origin.time == 0 && origin.stack == 0);
}

/* The identity keeps a book from being mistaken for another process's. */
UNIT(the_header_identifies_the_process)
{
	const struct book_header *header;
	struct observer w;
	char comm[32] = "";
	FILE *file;

	observer_track();
	ttmem_alloc(0, TTMEM_L1, 1, 1, NULL);
	rest_open(&w);
	header = observer_header(&w);
	assert(header->pid == (uint32_t)getpid() && header->uid == getuid());
	assert(header->euid == geteuid() && header->start_ticks > 0 && header->pid_namespace > 0);
	assert(header->source ==
	       (observer_has_kernel() ? BOOK_SOURCE_KERNEL : BOOK_SOURCE_LIBRARY));
	assert(header->keeper == 0);
	assert(memcmp(header->boot_id, "\0\0\0\0\0\0\0\0", 8) != 0);
	file = fopen("/proc/self/comm", "re");
	assert(file && fscanf(file, "%15s", comm) == 1);
	fclose(file);
	assert(strcmp(header->comm, comm) == 0);
	assert(strcmp(header->library, ttmem_version()) == 0);
	assert(header->cmdline_length > 0 && strstr(header->cmdline, "misc"));
	observer_close(&w);
}
