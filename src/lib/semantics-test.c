/* SPDX-License-Identifier: Apache-2.0 */

/* What calls mean, told through the public interface and looked at from outside. */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unit.h"
#include "lib/witness.h"

static void semantics_open(struct witness *witness)
{
	assert(witness_open(witness, getpid()));
}

UNIT(alloc_and_free)
{
	struct witness w;
	struct book_hot hot;

	witness_track();
	assert(ttmem_enabled() == 1);
	ttmem_alloc(3, TTMEM_L1, 0x1000, 4096, "weights");
	ttmem_alloc(3, TTMEM_L1, 0x2000, 100, NULL);
	ttmem_alloc(3, TTMEM_DRAM, 0x1000, 7, "same address, other type");
	semantics_open(&w);
	hot = witness_hot(&w, 3, TTMEM_L1);
	assert(hot.bytes == 4196 && hot.buffers == 2 && hot.allocs == 2 && hot.frees == 0);
	assert(w.view.live == 3 && w.view.adds_up);
	assert(witness_row(&w, TTMEM_L1, 0x1000)->thread == (uint32_t)getpid());
	assert(strcmp(witness_text(&w, witness_row(&w, TTMEM_L1, 0x1000)->name), "weights") == 0);
	assert(witness_row(&w, TTMEM_L1, 0x2000)->name == 0);
	ttmem_free(3, TTMEM_L1, 0x1000);
	hot = witness_hot(&w, 3, TTMEM_L1);
	assert(hot.bytes == 100 && hot.buffers == 1 && hot.frees == 1 && hot.peak == 4196);
	assert(witness_hot(&w, 3, TTMEM_DRAM).bytes == 7);
	witness_close(&w);
}

UNIT(same_size_adds_a_reference)
{
	struct witness w;
	struct book_hot hot;

	witness_track();
	for (int i = 0; i < 3; i++)
		ttmem_alloc(0, TTMEM_CB, 0x10, 64, "cached");
	semantics_open(&w);
	hot = witness_hot(&w, 0, TTMEM_CB);
	assert(hot.bytes == 64 && hot.buffers == 1 && hot.allocs == 3);
	assert(w.view.cold[TTMEM_CB].realloc_live == 2);
	assert(book_meta_refs(witness_row(&w, TTMEM_CB, 0x10)->meta) == 3);
	ttmem_free(0, TTMEM_CB, 0x10);
	ttmem_free(0, TTMEM_CB, 0x10);
	assert(witness_hot(&w, 0, TTMEM_CB).bytes == 64);
	ttmem_free(0, TTMEM_CB, 0x10);
	hot = witness_hot(&w, 0, TTMEM_CB);
	assert(hot.bytes == 0 && hot.buffers == 0 && hot.frees == 3);
	witness_close(&w);
}

UNIT(other_size_replaces)
{
	struct book_incident incident;
	struct witness w;
	struct book_hot hot;

	witness_track();
	ttmem_alloc(0, TTMEM_DRAM, 0x10, 64, "old");
	ttmem_alloc(0, TTMEM_DRAM, 0x10, 64, "old");
	ttmem_alloc(0, TTMEM_DRAM, 0x10, 65, "new");
	semantics_open(&w);
	hot = witness_hot(&w, 0, TTMEM_DRAM);
	assert(hot.bytes == 65 && hot.buffers == 1 && hot.allocs == 3 && hot.frees == 1);
	assert(w.view.cold[TTMEM_DRAM].size_changes == 1);
	assert(book_meta_refs(witness_row(&w, TTMEM_DRAM, 0x10)->meta) == 1);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_SIZE_CHANGE, 0, &incident) == 0);
	assert(incident.first.size == 64 && incident.second.size == 65);
	assert(strcmp(witness_text(&w, incident.first.name), "old") == 0);
	assert(strcmp(witness_text(&w, incident.second.name), "new") == 0);
	witness_close(&w);
}

static void *semantics_free_elsewhere(void *context)
{
	ttmem_phase_push("elsewhere");
	ttmem_free(1, TTMEM_DRAM, *(const uint64_t *)context);
	return NULL;
}

UNIT(unknown_and_double_free_name_both)
{
	uint64_t address = 0x7000;
	struct book_incident incident;
	struct book_cold cold;
	pthread_t thread;
	struct witness w;

	witness_track();
	ttmem_free(1, TTMEM_DRAM, 0x9999); /* before any allocation */
	ttmem_alloc(1, TTMEM_DRAM, address, 512, "tensor");
	assert(pthread_create(&thread, NULL, semantics_free_elsewhere, &address) == 0);
	assert(pthread_join(thread, NULL) == 0);
	ttmem_free(1, TTMEM_DRAM, address);
	semantics_open(&w);
	cold = witness_cold(&w, 1, TTMEM_DRAM);
	assert(cold.unknown_frees == 1 && cold.double_frees == 1);
	assert(w.view.hot[TTMEM_DRAM].frees == 1 && w.view.hot[TTMEM_DRAM].bytes == 0);

	assert(reader_incident(&w.reader, BOOK_INCIDENT_UNKNOWN_FREE, 0, &incident) == 0);
	assert(incident.address == 0x9999 && incident.device == 1 && incident.count == 1);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_DOUBLE_FREE, 0, &incident) == 0);
	assert(incident.address == address && incident.size == 512);
	assert(incident.first.thread != (uint32_t)getpid());
	assert(strcmp(witness_text(&w, incident.first.name), "tensor") == 0);
	assert(strcmp(witness_text(&w, incident.first.phase), "elsewhere") == 0);
	assert(incident.second.thread == (uint32_t)getpid());
	assert(incident.second.time >= incident.first.time);

	/* The same again is the same incident; a free by any type is as double. */
	ttmem_free(1, TTMEM_ANY, address);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_DOUBLE_FREE, 0, &incident) == 0);
	assert(incident.count == 2);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_DOUBLE_FREE, 1, &incident) == -ENOENT);
	witness_close(&w);
}

UNIT(free_without_type)
{
	struct witness w;

	witness_track();
	ttmem_alloc(0, TTMEM_L1, 0x40, 1, NULL);
	ttmem_free(0, TTMEM_ANY, 0x40);
	ttmem_alloc(0, TTMEM_DRAM, 0x40, 10, NULL);
	ttmem_alloc(0, TTMEM_TRACE, 0x40, 20, "younger");
	ttmem_free(0, TTMEM_ANY, 0x40);
	semantics_open(&w);
	assert(witness_hot(&w, 0, TTMEM_L1).frees == 1);
	assert(w.view.cold[TTMEM_L1].ambiguous_frees == 0);
	assert(w.view.hot[TTMEM_TRACE].bytes == 0 && w.view.hot[TTMEM_DRAM].bytes == 10);
	assert(w.view.cold[TTMEM_TRACE].ambiguous_frees == 1);
	witness_close(&w);
}

UNIT(mesh)
{
	const uint32_t devices[] = {0, 5, 1023, 1024, 31};
	struct witness w;

	witness_track();
	ttmem_alloc_mesh(devices, 5, TTMEM_DRAM, 0x40, 8, "sharded");
	semantics_open(&w);
	for (uint32_t i = 0; i < 5; i++) {
		if (devices[i] < TTMEM_DEVICE_COUNT)
			assert(witness_hot(&w, devices[i], TTMEM_DRAM).bytes == 8);
	}
	assert(witness_header(&w)->rejected.device == 1);
	ttmem_free_mesh(devices, 3, TTMEM_DRAM, 0x40);
	assert(witness_hot(&w, 1023, TTMEM_DRAM).bytes == 0);
	assert(witness_hot(&w, 31, TTMEM_DRAM).bytes == 8);
	ttmem_alloc_mesh(devices, 0, TTMEM_DRAM, 0x40, 8, NULL);
	assert(witness_hot(&w, 0, TTMEM_DRAM).allocs == 1);
	witness_close(&w);
}

static struct ttmem_alloc_args semantics_args(uint32_t flags, uint64_t address, uint64_t size)
{
	return (struct ttmem_alloc_args){
		.struct_size = sizeof(struct ttmem_alloc_args),
		.type = TTMEM_CB,
		.flags = flags,
		.address = address,
		.size = size,
	};
}

UNIT(hooked_and_alias)
{
	struct ttmem_alloc_args args = semantics_args(TTMEM_FLAG_HOOKED, 0x10, 100);
	struct ttmem_free_args free_args = {.struct_size = sizeof(free_args),
					    .type = TTMEM_CB,
					    .flags = TTMEM_FLAG_HOOKED,
					    .address = 0x10};
	struct witness w;

	witness_track();
	ttmem_alloc_ex(&args);
	ttmem_free_ex(&free_args);
	args = semantics_args(TTMEM_FLAG_ALIAS, 0x20, 100);
	ttmem_alloc_ex(&args);
	args = semantics_args(TTMEM_FLAG_ALIAS, 0x30, 0);
	ttmem_alloc_ex(&args);
	semantics_open(&w);
	assert(witness_cold(&w, 0, TTMEM_CB).hooked == 2);
	assert(w.view.hot[TTMEM_CB].bytes == 0 && w.view.hot[TTMEM_CB].buffers == 2);
	assert(w.view.hot[TTMEM_CB].allocs == 2 && w.view.adds_up);
	assert(witness_row(&w, TTMEM_CB, 0x20)->meta & BOOK_META_ALIAS);
	free_args.flags = 0;
	free_args.address = 0x20;
	ttmem_free_ex(&free_args);
	assert(witness_hot(&w, 0, TTMEM_CB).buffers == 1);
	witness_close(&w);
}

UNIT(shapes_sorts_and_kept_names)
{
	struct ttmem_alloc_args args = semantics_args(0, 0x10, 100);
	struct book_shape shape;
	struct witness w;
	uint32_t id;

	witness_track();
	id = ttmem_intern("kept");
	assert(id != 0 && id == ttmem_intern("kept") && id != ttmem_intern("other"));
	assert(ttmem_intern("") == 0 && ttmem_intern(NULL) == 0);
	args.type = TTMEM_KERNEL;
	args.kernel_sort = TTMEM_KERNEL_DISPATCH;
	args.name_id = id;
	ttmem_alloc_ex(&args);
	args.address = 0x20;
	args.type = TTMEM_DRAM; /* the sort is a kernel's alone */
	args.size_per_bank = 25;
	args.banks = 4;
	args.first_bank = 2;
	args.name = "said";
	ttmem_alloc_ex(&args);
	args.address = 0x30;
	args.name = NULL;
	args.name_id = id ^ 1u << 30; /* never handed out by this process */
	ttmem_alloc_ex(&args);

	semantics_open(&w);
	assert(witness_look(&w, 0, VIEW_LIVING));
	shape = reader_shape(&w.reader, witness_row(&w, TTMEM_KERNEL, 0x10)->shape);
	assert(shape.kernel_sort == TTMEM_KERNEL_DISPATCH && shape.banks == 0);
	assert(strcmp(witness_text(&w, witness_row(&w, TTMEM_KERNEL, 0x10)->name), "kept") == 0);
	shape = reader_shape(&w.reader, witness_row(&w, TTMEM_DRAM, 0x20)->shape);
	assert(shape.size_per_bank == 25 && shape.banks == 4 && shape.first_bank == 2);
	assert(shape.kernel_sort == 0);
	assert(strcmp(witness_text(&w, witness_row(&w, TTMEM_DRAM, 0x20)->name), "said") == 0);
	assert(witness_row(&w, TTMEM_DRAM, 0x30)->name == 0);
	witness_close(&w);
}

UNIT(free_all_of_an_owner)
{
	struct ttmem_alloc_args args = semantics_args(0, 0, 10);
	struct witness w;

	witness_track();
	for (uint64_t i = 0; i < 300; i++) {
		args.address = i;
		args.owner = 1 + i % 3;
		args.type = i % 2 ? TTMEM_CB : TTMEM_L1;
		ttmem_alloc_ex(&args);
		if (i % 5 == 0)
			ttmem_alloc_ex(&args); /* ends whatever its references */
	}
	ttmem_free_all(0, TTMEM_CB, 1);
	semantics_open(&w);
	assert(witness_hot(&w, 0, TTMEM_CB).buffers == 100);
	assert(witness_hot(&w, 0, TTMEM_L1).buffers == 150);
	ttmem_free_all(0, TTMEM_ANY, 2);
	assert(witness_hot(&w, 0, TTMEM_CB).buffers == 50);
	assert(witness_hot(&w, 0, TTMEM_L1).buffers == 100);
	ttmem_free_all(0, TTMEM_ANY, 77);
	ttmem_free_all(9, TTMEM_ANY, 1); /* a device that never had an event */
	assert(w.view.live == 150);
	ttmem_free_all(0, TTMEM_ANY, 0);
	assert(witness_hot(&w, 0, TTMEM_L1).buffers == 0 && w.view.live == 0);
	assert(w.view.adds_up && w.view.inexact == 0);
	witness_close(&w);
}

/* A cached program's circular buffers are reported at every run, by the same owner. */
UNIT(references_do_not_use_up_owners)
{
	struct ttmem_alloc_args args = semantics_args(0, 0, 10);
	struct witness w;

	witness_track();
	args.owner = 1;
	args.address = 1;
	for (uint32_t i = 0; i < (1u << 20) + 10; i++)
		ttmem_alloc_ex(&args);
	args.owner = 2;
	for (args.address = 2; args.address < 500; args.address++)
		ttmem_alloc_ex(&args);
	ttmem_free_all(0, TTMEM_CB, 2);
	semantics_open(&w);
	assert(witness_hot(&w, 0, TTMEM_CB).buffers == 1);
	witness_close(&w);
}

UNIT(peaks_and_figures)
{
	struct ttmem_stats stats = {.bytes = 77};
	struct witness w;

	witness_track();
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
	semantics_open(&w);
	assert(witness_hot(&w, 2, TTMEM_DRAM).peak == 31);
	ttmem_free_all(2, TTMEM_ANY, 0);
	ttmem_reset_peak(2, TTMEM_ANY);
	assert(ttmem_stats(2, TTMEM_ANY, &stats) == 0 && stats.peak_bytes == 0);
	/* A device without events has no figures to speak of; nonsense is refused. */
	assert(ttmem_stats(900, TTMEM_ANY, &stats) == 0 && stats.allocs == 0);
	stats.bytes = 77;
	assert(ttmem_stats(1024, TTMEM_ANY, &stats) == -EINVAL);
	assert(ttmem_stats(0, 7, &stats) == -EINVAL);
	assert(ttmem_stats(0, 0, NULL) == -EINVAL);
	assert(stats.bytes == 77);
	witness_close(&w);
}

UNIT(figures_without_tracking)
{
	struct ttmem_stats stats = {.bytes = 77};

	assert(ttmem_enabled() == 0);
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, NULL);
	assert(ttmem_stats(0, TTMEM_DRAM, &stats) == -ENODATA && stats.bytes == 77);
	assert(ttmem_intern("name") == 0);
	assert(witness_count(getpid()) == 0);
}

UNIT(pause_and_resume_nest)
{
	struct witness w;

	witness_track();
	ttmem_pause(); /* before there is a book */
	assert(ttmem_enabled() == 0);
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, NULL);
	semantics_open(&w);
	assert(witness_header(&w)->paused == 1 && witness_header(&w)->rejected.paused == 1);
	ttmem_resume();
	assert(ttmem_enabled() == 1 && witness_header(&w)->paused == 0);
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, NULL);
	ttmem_pause();
	ttmem_pause();
	ttmem_free(0, TTMEM_DRAM, 1);
	ttmem_resume();
	ttmem_free(0, TTMEM_DRAM, 1);
	assert(witness_header(&w)->paused == 1 && ttmem_enabled() == 0);
	ttmem_resume();
	ttmem_resume(); /* one too many */
	assert(ttmem_enabled() == 1);
	assert(witness_header(&w)->rejected.paused == 3);
	assert(witness_hot(&w, 0, TTMEM_DRAM).bytes == 100);
	ttmem_free(0, TTMEM_DRAM, 1);
	assert(witness_hot(&w, 0, TTMEM_DRAM).frees == 1);
	witness_close(&w);
}

UNIT(goodbye_is_not_the_end)
{
	struct witness w;

	witness_track();
	ttmem_goodbye(); /* nothing to close yet */
	ttmem_alloc(0, TTMEM_DRAM, 1, 100, NULL);
	semantics_open(&w);
	assert(witness_header(&w)->state == BOOK_STATE_OPEN);
	ttmem_goodbye();
	assert(witness_header(&w)->state == BOOK_STATE_CLOSED);
	assert(witness_header(&w)->closed_time != 0);
	ttmem_free(0, TTMEM_DRAM, 1);
	ttmem_alloc(0, TTMEM_DRAM, 2, 5, NULL);
	assert(witness_hot(&w, 0, TTMEM_DRAM).bytes == 5);
	witness_close(&w);
}

UNIT(phases)
{
	struct witness w;

	witness_track();
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
	semantics_open(&w);
	assert(witness_look(&w, 0, VIEW_LIVING));
#define PHASE(n) witness_text(&w, witness_row(&w, TTMEM_DRAM, n)->phase)
	assert(strcmp(PHASE(1), "from outside") == 0);
	assert(strcmp(PHASE(2), "process") == 0);
	assert(strcmp(PHASE(3), "test/layer 3") == 0);
	assert(strcmp(PHASE(4), "test/other") == 0);
	assert(strcmp(PHASE(5), "process") == 0);
	assert(strcmp(PHASE(6), "") == 0);
#undef PHASE
	witness_close(&w);
}

UNIT(phases_deeper_than_anybody_counts)
{
	struct witness w;

	witness_track();
	for (int i = 0; i < 2000; i++)
		ttmem_phase_push("a phase with a name that is rather long");
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
	for (int i = 0; i < 1999; i++)
		ttmem_phase_pop();
	ttmem_alloc(0, TTMEM_DRAM, 2, 1, NULL);
	ttmem_phase_pop();
	ttmem_alloc(0, TTMEM_DRAM, 3, 1, NULL);
	semantics_open(&w);
	assert(witness_look(&w, 0, VIEW_LIVING));
	assert(strlen(witness_text(&w, witness_row(&w, TTMEM_DRAM, 1)->phase)) <= BOOK_PATH_MAX);
	assert(strcmp(witness_text(&w, witness_row(&w, TTMEM_DRAM, 2)->phase),
		      "a phase with a name that is rather long") == 0);
	assert(witness_row(&w, TTMEM_DRAM, 3)->phase == 0);
	witness_close(&w);
}

UNIT(marks)
{
	struct book_mark mark;
	struct witness w;
	char name[32];

	witness_track();
	ttmem_phase_push("warm-up");
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "step %d", i);
		ttmem_mark(name);
	}
	ttmem_mark(NULL);
	semantics_open(&w);
	assert(witness_header(&w)->mark_count == 301);
	assert(reader_mark(&w.reader, 0, &mark) == -ENOENT);
	assert(reader_mark(&w.reader, 299, &mark) == 0);
	assert(strcmp(witness_text(&w, mark.name), "step 299") == 0);
	assert(strcmp(witness_text(&w, mark.phase), "warm-up") == 0);
	assert(mark.thread == (uint32_t)getpid());
	witness_close(&w);
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
	struct witness w;

	witness_track();
	ttmem_device(&args);
	semantics_open(&w);
	assert(reader_device(&w.reader, 4, &device) == 0);
	assert(device.unique_id == 0x1234 && device.remote == 1 && device.cores == 64);
	assert(strcmp(device.arch, "wormhole_b0") == 0 && strcmp(device.card, "n300") == 0);
	assert(device.memory[TTMEM_DRAM].banks == 12 && device.closed_time == 0);
	/* The short form of an older header, and a correction. */
	args.struct_size = offsetof(struct ttmem_device_args, arch);
	args.unique_id = 0x5678;
	ttmem_device(&args);
	assert(reader_device(&w.reader, 4, &device) == 0);
	assert(device.unique_id == 0x5678 && device.arch[0] == '\0' && device.cores == 0);
	ttmem_device_close(4);
	assert(reader_device(&w.reader, 4, &device) == 0 && device.closed_time != 0);
	/* Saying it again costs no room. */
	reserved = witness_header(&w)->reserved_bytes;
	for (int i = 0; i < 1000; i++)
		ttmem_device(&args);
	assert(witness_header(&w)->reserved_bytes == reserved);
	assert(reader_device(&w.reader, 5, &device) == -ENOENT);
	witness_close(&w);
}

UNIT(failed_allocation)
{
	struct book_incident incident;
	struct witness w;

	witness_track();
	ttmem_alloc_failed(0, TTMEM_L1, 4096, 1024);
	ttmem_alloc_failed(0, TTMEM_DRAM, 1, TTMEM_UNKNOWN);
	semantics_open(&w);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_ALLOC_FAILED, 0, &incident) == 0);
	assert(incident.size == 4096 && incident.largest_free == 1024 && incident.type == TTMEM_L1);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_ALLOC_FAILED, 1, &incident) == 0);
	assert(incident.largest_free == UINT64_MAX);
	assert(witness_hot(&w, 0, TTMEM_L1).allocs == 0);
	witness_close(&w);
}

/* Identity is what keeps a book from being taken for another's. */
UNIT(identity)
{
	const struct book_header *header;
	struct witness w;
	char comm[32] = "";
	FILE *file;

	witness_track();
	ttmem_alloc(0, TTMEM_L1, 1, 1, NULL);
	semantics_open(&w);
	header = witness_header(&w);
	assert(header->pid == (uint32_t)getpid() && header->uid == getuid());
	assert(header->euid == geteuid() && header->start_ticks > 0 && header->pid_namespace > 0);
	assert(header->source == BOOK_SOURCE_LIBRARY && header->keeper == 0);
	assert(memcmp(header->boot_id, "\0\0\0\0\0\0\0\0", 8) != 0);
	file = fopen("/proc/self/comm", "re");
	assert(file && fscanf(file, "%15s", comm) == 1);
	fclose(file);
	assert(strcmp(header->comm, comm) == 0);
	assert(strcmp(header->library, ttmem_version()) == 0);
	assert(header->cmdline_length > 0 && strstr(header->cmdline, "semantics"));
	witness_close(&w);
}
