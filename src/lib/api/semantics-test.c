/* SPDX-License-Identifier: Apache-2.0 */

/* The meaning of allocations and frees, through the public interface, checked from outside. */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "lib/testing/testing-observer.h"

static void semantics_open(struct observer *observer)
{
	assert(observer_open(observer, getpid()));
}

UNIT(alloc_and_free)
{
	struct observer w;
	struct book_hot hot;

	observer_track();
	assert(ttmem_enabled() == 1);
	ttmem_alloc(3, TTMEM_L1, 0x1000, 4096, "weights");
	ttmem_alloc(3, TTMEM_L1, 0x2000, 100, NULL);
	ttmem_alloc(3, TTMEM_DRAM, 0x1000, 7, "same address, other type");
	semantics_open(&w);
	hot = observer_hot(&w, 3, TTMEM_L1);
	assert(hot.bytes == 4196 && hot.buffers == 2 && hot.allocs == 2 && hot.frees == 0);
	assert(w.view.live == 3 && w.view.adds_up);
	assert(observer_row(&w, TTMEM_L1, 0x1000)->thread_space == (uint32_t)getpid());
	assert(strcmp(observer_text(&w, observer_row(&w, TTMEM_L1, 0x1000)->name), "weights") == 0);
	assert(observer_row(&w, TTMEM_L1, 0x2000)->name == 0);
	ttmem_free(3, TTMEM_L1, 0x1000);
	hot = observer_hot(&w, 3, TTMEM_L1);
	assert(hot.bytes == 100 && hot.buffers == 1 && hot.frees == 1 && hot.peak == 4196);
	assert(observer_hot(&w, 3, TTMEM_DRAM).bytes == 7);
	observer_close(&w);
}

UNIT(same_size_adds_a_reference)
{
	struct observer w;
	struct book_hot hot;

	observer_track();
	for (int i = 0; i < 3; i++)
		ttmem_alloc(0, TTMEM_CB, 0x10, 64, "cached");
	semantics_open(&w);
	hot = observer_hot(&w, 0, TTMEM_CB);
	assert(hot.bytes == 64 && hot.buffers == 1 && hot.allocs == 3);
	assert(w.view.cold[TTMEM_CB].realloc_live == 2);
	assert(book_meta_refs(observer_row(&w, TTMEM_CB, 0x10)->meta) == 3);
	ttmem_free(0, TTMEM_CB, 0x10);
	ttmem_free(0, TTMEM_CB, 0x10);
	assert(observer_hot(&w, 0, TTMEM_CB).bytes == 64);
	ttmem_free(0, TTMEM_CB, 0x10);
	hot = observer_hot(&w, 0, TTMEM_CB);
	assert(hot.bytes == 0 && hot.buffers == 0 && hot.frees == 3);
	observer_close(&w);
}

UNIT(other_size_replaces)
{
	struct book_incident incident;
	struct observer w;
	struct book_hot hot;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 0x10, 64, "old");
	ttmem_alloc(0, TTMEM_DRAM, 0x10, 64, "old");
	ttmem_alloc(0, TTMEM_DRAM, 0x10, 65, "new");
	semantics_open(&w);
	hot = observer_hot(&w, 0, TTMEM_DRAM);
	assert(hot.bytes == 65 && hot.buffers == 1 && hot.allocs == 3 && hot.frees == 1);
	assert(w.view.cold[TTMEM_DRAM].size_changes == 1);
	assert(book_meta_refs(observer_row(&w, TTMEM_DRAM, 0x10)->meta) == 1);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_SIZE_CHANGE, 0, &incident) == 0);
	assert(incident.first.size == 64 && incident.second.size == 65);
	assert(strcmp(observer_text(&w, incident.first.name), "old") == 0);
	assert(strcmp(observer_text(&w, incident.second.name), "new") == 0);
	observer_close(&w);
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
	struct observer w;

	observer_track();
	ttmem_free(1, TTMEM_DRAM, 0x9999); /* before any allocation */
	ttmem_alloc(1, TTMEM_DRAM, address, 512, "tensor");
	assert(pthread_create(&thread, NULL, semantics_free_elsewhere, &address) == 0);
	assert(pthread_join(thread, NULL) == 0);
	ttmem_free(1, TTMEM_DRAM, address);
	semantics_open(&w);
	cold = observer_cold(&w, 1, TTMEM_DRAM);
	assert(cold.unknown_frees == 1 && cold.double_frees == 1);
	assert(w.view.hot[TTMEM_DRAM].frees == 1 && w.view.hot[TTMEM_DRAM].bytes == 0);

	assert(reader_incident(&w.reader, BOOK_INCIDENT_UNKNOWN_FREE, 0, &incident) == 0);
	assert(incident.address == 0x9999 && incident.device == 1 && incident.count == 1);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_DOUBLE_FREE, 0, &incident) == 0);
	assert(incident.address == address && incident.size == 512);
	assert(incident.first.thread != (uint32_t)getpid());
	assert(strcmp(observer_text(&w, incident.first.name), "tensor") == 0);
	assert(strcmp(observer_text(&w, incident.first.phase), "elsewhere") == 0);
	assert(incident.second.thread == (uint32_t)getpid());
	assert(incident.second.time >= incident.first.time);

	/* A repetition is the same incident; a free of any type is a double free too. */
	ttmem_free(1, TTMEM_ANY, address);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_DOUBLE_FREE, 0, &incident) == 0);
	assert(incident.count == 2);
	assert(reader_incident(&w.reader, BOOK_INCIDENT_DOUBLE_FREE, 1, &incident) == -ENOENT);
	observer_close(&w);
}

UNIT(free_without_type)
{
	struct observer w;

	observer_track();
	ttmem_alloc(0, TTMEM_L1, 0x40, 1, NULL);
	ttmem_free(0, TTMEM_ANY, 0x40);
	ttmem_alloc(0, TTMEM_DRAM, 0x40, 10, NULL);
	ttmem_alloc(0, TTMEM_TRACE, 0x40, 20, "younger");
	ttmem_free(0, TTMEM_ANY, 0x40);
	semantics_open(&w);
	assert(observer_hot(&w, 0, TTMEM_L1).frees == 1);
	assert(w.view.cold[TTMEM_L1].ambiguous_frees == 0);
	assert(w.view.hot[TTMEM_TRACE].bytes == 0 && w.view.hot[TTMEM_DRAM].bytes == 10);
	assert(w.view.cold[TTMEM_TRACE].ambiguous_frees == 1);
	observer_close(&w);
}

/* An old client's free has no type, and there may be a circular buffer at the same address. */
UNIT(free_of_a_buffer_spares_the_rest)
{
	struct ttmem_free_args args = {.struct_size = sizeof(args),
				       .type = TTMEM_ANY,
				       .flags = TTMEM_FREE_BUFFER,
				       .address = 0x40};
	struct observer w;

	observer_track();
	ttmem_alloc(0, TTMEM_L1, 0x40, 1, NULL);
	ttmem_alloc(0, TTMEM_CB, 0x40, 10, "younger");
	ttmem_alloc(0, TTMEM_KERNEL, 0x40, 100, "youngest");
	ttmem_free_ex(&args);
	semantics_open(&w);
	assert(observer_hot(&w, 0, TTMEM_L1).buffers == 0);
	assert(w.view.hot[TTMEM_CB].bytes == 10 && w.view.hot[TTMEM_KERNEL].bytes == 100);
	assert(w.view.cold[TTMEM_L1].ambiguous_frees == 0);
	/* Two candidate buffers are as ambiguous as before. */
	ttmem_alloc(0, TTMEM_L1, 0x40, 1, NULL);
	ttmem_alloc(0, TTMEM_DRAM, 0x40, 2, NULL);
	ttmem_free_ex(&args);
	assert(observer_hot(&w, 0, TTMEM_DRAM).buffers == 0);
	assert(w.view.cold[TTMEM_DRAM].ambiguous_frees == 1);
	ttmem_free_ex(&args);
	/* No candidate: a double free as with a known type, and nothing else is freed. */
	ttmem_free_ex(&args);
	assert(observer_hot(&w, 0, TTMEM_CB).buffers == 1);
	assert(w.view.hot[TTMEM_KERNEL].buffers == 1);
	assert(w.view.cold[TTMEM_L1].double_frees == 1 && w.view.adds_up);
	observer_close(&w);
}

UNIT(a_mesh_call_reaches_every_device)
{
	const uint32_t devices[] = {0, 5, 1023, 1024, 31};
	struct observer w;

	observer_track();
	ttmem_alloc_mesh(devices, 5, TTMEM_DRAM, 0x40, 8, "sharded");
	semantics_open(&w);
	for (uint32_t i = 0; i < 5; i++) {
		if (devices[i] < TTMEM_DEVICE_COUNT)
			assert(observer_hot(&w, devices[i], TTMEM_DRAM).bytes == 8);
	}
	assert(observer_header(&w)->rejected.device == 1);
	ttmem_free_mesh(devices, 3, TTMEM_DRAM, 0x40);
	assert(observer_hot(&w, 1023, TTMEM_DRAM).bytes == 0);
	assert(observer_hot(&w, 31, TTMEM_DRAM).bytes == 8);
	ttmem_alloc_mesh(devices, 0, TTMEM_DRAM, 0x40, 8, NULL);
	assert(observer_hot(&w, 0, TTMEM_DRAM).allocs == 1);
	observer_close(&w);
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
	struct observer w;

	observer_track();
	ttmem_alloc_ex(&args);
	ttmem_free_ex(&free_args);
	args = semantics_args(TTMEM_FLAG_ALIAS, 0x20, 100);
	ttmem_alloc_ex(&args);
	args = semantics_args(TTMEM_FLAG_ALIAS, 0x30, 0);
	ttmem_alloc_ex(&args);
	semantics_open(&w);
	assert(observer_cold(&w, 0, TTMEM_CB).hooked == 2);
	assert(w.view.hot[TTMEM_CB].bytes == 0 && w.view.hot[TTMEM_CB].buffers == 2);
	assert(w.view.hot[TTMEM_CB].allocs == 2 && w.view.adds_up);
	assert(observer_row(&w, TTMEM_CB, 0x20)->meta & BOOK_META_ALIAS);
	free_args.flags = 0;
	free_args.address = 0x20;
	ttmem_free_ex(&free_args);
	assert(observer_hot(&w, 0, TTMEM_CB).buffers == 1);
	observer_close(&w);
}

UNIT(shapes_sorts_and_kept_names)
{
	struct ttmem_alloc_args args = semantics_args(0, 0x10, 100);
	struct book_shape shape;
	struct observer w;
	uint32_t id;

	observer_track();
	id = ttmem_intern("kept");
	assert(id != 0 && id == ttmem_intern("kept") && id != ttmem_intern("other"));
	assert(ttmem_intern("") == 0 && ttmem_intern(NULL) == 0);
	args.type = TTMEM_KERNEL;
	args.kernel_sort = TTMEM_KERNEL_DISPATCH;
	args.name_id = id;
	ttmem_alloc_ex(&args);
	args.address = 0x20;
	args.type = TTMEM_DRAM; /* the sort applies only to kernels */
	args.size_per_bank = 25;
	args.banks = 4;
	args.first_bank = 2;
	args.name = "said";
	ttmem_alloc_ex(&args);
	args.address = 0x30;
	args.name = NULL;
	args.name_id = id ^ 1u << 30; /* never issued by this process */
	ttmem_alloc_ex(&args);

	semantics_open(&w);
	assert(observer_look(&w, 0, VIEW_LIVING));
	shape = reader_shape(&w.reader, observer_row(&w, TTMEM_KERNEL, 0x10)->shape);
	assert(shape.kernel_sort == TTMEM_KERNEL_DISPATCH && shape.banks == 0);
	assert(strcmp(observer_text(&w, observer_row(&w, TTMEM_KERNEL, 0x10)->name), "kept") == 0);
	shape = reader_shape(&w.reader, observer_row(&w, TTMEM_DRAM, 0x20)->shape);
	assert(shape.size_per_bank == 25 && shape.banks == 4 && shape.first_bank == 2);
	assert(shape.kernel_sort == 0);
	assert(strcmp(observer_text(&w, observer_row(&w, TTMEM_DRAM, 0x20)->name), "said") == 0);
	assert(observer_row(&w, TTMEM_DRAM, 0x30)->name == 0);
	observer_close(&w);
}

UNIT(free_all_of_an_owner)
{
	struct ttmem_alloc_args args = semantics_args(0, 0, 10);
	struct observer w;

	observer_track();
	for (uint64_t i = 0; i < 300; i++) {
		args.address = i;
		args.owner = 1 + i % 3;
		args.type = i % 2 ? TTMEM_CB : TTMEM_L1;
		ttmem_alloc_ex(&args);
		if (i % 5 == 0)
			ttmem_alloc_ex(&args); /* ended regardless of its references */
	}
	ttmem_free_all(0, TTMEM_CB, 1);
	semantics_open(&w);
	assert(observer_hot(&w, 0, TTMEM_CB).buffers == 100);
	assert(observer_hot(&w, 0, TTMEM_L1).buffers == 150);
	ttmem_free_all(0, TTMEM_ANY, 2);
	assert(observer_hot(&w, 0, TTMEM_CB).buffers == 50);
	assert(observer_hot(&w, 0, TTMEM_L1).buffers == 100);
	ttmem_free_all(0, TTMEM_ANY, 77);
	ttmem_free_all(9, TTMEM_ANY, 1); /* a device that never had an event */
	assert(w.view.live == 150);
	ttmem_free_all(0, TTMEM_ANY, 0);
	assert(observer_hot(&w, 0, TTMEM_L1).buffers == 0 && w.view.live == 0);
	assert(w.view.adds_up && w.view.inexact == 0);
	observer_close(&w);
}

/* A cached program's circular buffers are reported at every run by the same owner. */
UNIT(references_do_not_use_up_owners)
{
	struct ttmem_alloc_args args = semantics_args(0, 0, 10);
	struct observer w;

	observer_track();
	args.owner = 1;
	args.address = 1;
	for (uint32_t i = 0; i < (1u << 20) + 10; i++)
		ttmem_alloc_ex(&args);
	args.owner = 2;
	for (args.address = 2; args.address < 500; args.address++)
		ttmem_alloc_ex(&args);
	ttmem_free_all(0, TTMEM_CB, 2);
	semantics_open(&w);
	assert(observer_hot(&w, 0, TTMEM_CB).buffers == 1);
	observer_close(&w);
}
