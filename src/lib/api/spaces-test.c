/* SPDX-License-Identifier: Apache-2.0 */

/* Allocators that hand out the same addresses, and what buffers occupy, through the public interface. */

#include <ttmem/ttmem.h>

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "lib/testing/testing-observer.h"

#define SPACES_ADDRESS 0x169000u

static struct ttmem_alloc_args spaces_args(uint32_t space, uint64_t size)
{
	return (struct ttmem_alloc_args){.struct_size = sizeof(struct ttmem_alloc_args),
					 .type = TTMEM_L1,
					 .address = SPACES_ADDRESS,
					 .size = size,
					 .space = space};
}

static void spaces_alloc(uint32_t space, uint64_t size)
{
	struct ttmem_alloc_args args = spaces_args(space, size);

	ttmem_alloc_ex(&args);
}

static void spaces_free(uint32_t space, uint32_t flags)
{
	ttmem_free_ex(&(struct ttmem_free_args){.struct_size = sizeof(struct ttmem_free_args),
						.type = TTMEM_L1,
						.flags = flags,
						.address = SPACES_ADDRESS,
						.space = space});
}

/* What two sub-devices of tt-metal were seen to do. */
UNIT(buffers_at_one_address_in_two_spaces_are_both_counted)
{
	struct book_hot hot;
	struct observer w;

	observer_track();
	spaces_alloc(1, 655360);
	spaces_alloc(2, 655360);
	assert(observer_open(&w, getpid()));
	hot = observer_hot(&w, 0, TTMEM_L1);
	assert(hot.bytes == 1310720 && hot.buffers == 2 && hot.allocs == 2);
	assert(w.view.live == 2 && w.view.adds_up && w.view.cold[TTMEM_L1].realloc_live == 0);
	spaces_free(1, 0);
	hot = observer_hot(&w, 0, TTMEM_L1);
	assert(hot.bytes == 655360 && hot.buffers == 1);
	assert(book_space(observer_row(&w, TTMEM_L1, SPACES_ADDRESS)->thread_space) == 2);
	spaces_free(2, 0);
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 0);
	observer_close(&w);
}

/* In each space on its own. */
UNIT(references_size_changes_and_double_frees_know_their_space)
{
	struct observer w;

	observer_track();
	spaces_alloc(1, 100);
	spaces_alloc(2, 100);
	spaces_alloc(1, 100); /* a reference */
	spaces_alloc(2, 200); /* a size change */
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 300);
	assert(w.view.cold[TTMEM_L1].realloc_live == 1 && w.view.cold[TTMEM_L1].size_changes == 1);
	spaces_free(2, 0);
	spaces_free(2, 0);
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 100);
	assert(w.view.cold[TTMEM_L1].double_frees == 1);
	spaces_free(3, 0); /* never had one */
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 100);
	assert(w.view.cold[TTMEM_L1].unknown_frees == 1);
	observer_close(&w);
}

UNIT(free_without_a_space_means_space_0_then_the_only_one)
{
	struct observer w;

	observer_track();
	spaces_alloc(0, 1);
	spaces_alloc(7, 2);
	ttmem_free(0, TTMEM_L1, SPACES_ADDRESS);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 2);
	spaces_free(0, TTMEM_FREE_IN_SPACE); /* double, though space 7 has one */
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 2);
	assert(w.view.cold[TTMEM_L1].double_frees == 1);
	ttmem_free(0, TTMEM_ANY, SPACES_ADDRESS);
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 0 &&
	       w.view.warm[TTMEM_L1].unplaced_frees == 0);
	observer_close(&w);
}

UNIT(free_without_a_space_ends_none_of_several)
{
	struct observer w;

	observer_track();
	spaces_alloc(7, 2);
	spaces_alloc(1023, 4);
	ttmem_free(0, TTMEM_L1, SPACES_ADDRESS);
	ttmem_free(0, TTMEM_ANY, SPACES_ADDRESS);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 6);
	assert(w.view.warm[TTMEM_L1].unplaced_frees == 1);
	assert(w.view.warm[TTMEM_DRAM].unplaced_frees == 1); /* no type: counted under 0 */
	assert(w.view.inexact & BOOK_INEXACT_HIGH << TTMEM_L1);
	observer_close(&w);
}

UNIT(end_of_a_space_frees_what_is_in_it)
{
	struct book_hot hot;
	struct observer w;

	observer_track();
	for (uint32_t i = 0; i < 300; i++) {
		struct ttmem_alloc_args args = spaces_args(i % 3, 10);

		args.address = i;
		args.type = i % TTMEM_TYPE_COUNT;
		ttmem_alloc_ex(&args);
		ttmem_alloc_ex(&args); /* however many references */
	}
	assert(ttmem_end_space(0, 2) == 100);
	assert(ttmem_end_space(0, 2) == 0);
	assert(ttmem_end_space(0, 9) == 0 && ttmem_end_space(1, 0) == 0);
	assert(ttmem_end_space(0, TTMEM_SPACE_COUNT) == 0);
	assert(ttmem_end_space(TTMEM_DEVICE_COUNT, 0) == 0);
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	assert(w.view.live == 200 && w.view.adds_up && w.view.inexact == 0);
	assert(observer_header(&w)->rejected.arguments == 1);
	assert(observer_header(&w)->rejected.device == 1);
	assert(ttmem_end_space(0, 0) == 100);
	hot = observer_hot(&w, 0, TTMEM_L1);
	for (struct view_iterator it = {0}; view_next(&w.view, &it);)
		assert(book_space(it.record->thread_space) == 1);
	assert(w.view.live == 100 && hot.frees > 0);
	observer_close(&w);
}

UNIT(mesh_calls_with_all_properties)
{
	static const uint32_t devices[] = {1, 4, TTMEM_DEVICE_COUNT};
	struct ttmem_alloc_args args = spaces_args(5, 4096);
	struct ttmem_free_args gone = {.struct_size = sizeof(gone),
				       .type = TTMEM_L1,
				       .address = SPACES_ADDRESS,
				       .space = 5};
	struct observer w;

	observer_track();
	args.size_per_bank = 1024;
	args.banks = 8;
	args.owner = 77;
	ttmem_alloc_mesh_ex(devices, 3, &args);
	ttmem_alloc_mesh_ex(NULL, 3, &args);
	assert(observer_open(&w, getpid()));
	assert(observer_header(&w)->rejected.device == 1);
	assert(observer_header(&w)->rejected.arguments == 1);
	for (int i = 0; i < 2; i++) {
		assert(observer_hot(&w, devices[i], TTMEM_L1).bytes == 4096);
		assert(w.view.warm[TTMEM_L1].occupied == 8192);
	}
	ttmem_free_all(1, TTMEM_L1, 77);
	assert(observer_hot(&w, 1, TTMEM_L1).bytes == 0);
	ttmem_free_mesh_ex(devices, 3, &gone);
	assert(observer_hot(&w, 4, TTMEM_L1).bytes == 0 && w.view.warm[TTMEM_L1].occupied == 0);
	assert(observer_hot(&w, 1, TTMEM_L1).bytes == 0);
	assert(w.view.cold[TTMEM_L1].double_frees == 1);
	observer_close(&w);
}

/* One page of 2 KiB, which tt-metal's allocator rounds up in each of twelve banks. */
UNIT(occupancy_is_counted_where_it_is_known)
{
	struct ttmem_alloc_args args = spaces_args(0, 2048);
	struct ttmem_device_args device = {.struct_size = sizeof(device)};
	struct observer w;

	observer_track();
	device.memory[TTMEM_L1].banks = 12;
	ttmem_device(&device);
	args.size_per_bank = 2048;
	args.page_size = 2048;
	args.shape_flags = TTMEM_SHAPE_BOTTOM_UP | TTMEM_SHAPE_INTERLEAVED;
	ttmem_alloc_ex(&args); /* with the banks that were declared */
	device.memory[TTMEM_L1].banks = 4;
	ttmem_device(&device);
	assert(observer_open(&w, getpid()));
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 2048);
	assert(w.view.warm[TTMEM_L1].occupied == 24576 && w.view.warm[TTMEM_L1].known == 1);
	args.address = 0;
	args.banks = 2;
	ttmem_alloc_ex(&args);
	ttmem_alloc(0, TTMEM_L1, 0x20, 64, NULL); /* nobody knows what it occupies */
	assert(observer_hot(&w, 0, TTMEM_L1).buffers == 3);
	assert(w.view.warm[TTMEM_L1].occupied == 28672 && w.view.warm[TTMEM_L1].known == 2);
	ttmem_free(0, TTMEM_L1, SPACES_ADDRESS);
	assert(observer_hot(&w, 0, TTMEM_L1).buffers == 2);
	assert(w.view.warm[TTMEM_L1].occupied == 4096 && w.view.warm[TTMEM_L1].known == 1);
	observer_close(&w);
}

/* As programs that were built with older headers pass them. */
UNIT(shorter_structs_mean_space_0_and_no_space_told)
{
	struct ttmem_alloc_args args = spaces_args(9, 50);
	struct ttmem_free_args gone = {.struct_size = offsetof(struct ttmem_free_args, space),
				       .type = TTMEM_L1,
				       .address = SPACES_ADDRESS,
				       .space = 9};
	struct observer w;

	observer_track();
	args.struct_size = offsetof(struct ttmem_alloc_args, space);
	ttmem_alloc_ex(&args);
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	assert(book_space(observer_row(&w, TTMEM_L1, SPACES_ADDRESS)->thread_space) == 0);
	ttmem_free_ex(&gone);
	assert(observer_hot(&w, 0, TTMEM_L1).bytes == 0 && w.view.live == 0);
	observer_close(&w);
}

UNIT(spaces_and_flags_that_do_not_exist_are_rejected)
{
	struct ttmem_alloc_args args = spaces_args(TTMEM_SPACE_COUNT, 50);
	struct observer w;

	observer_track();
	ttmem_alloc_ex(&args);
	args.space = 0;
	args.shape_flags = TTMEM_SHAPE_PER_CORE; /* only of failures */
	ttmem_alloc_ex(&args);
	spaces_free(TTMEM_SPACE_COUNT, 0);
	assert(observer_open(&w, getpid()));
	assert(observer_header(&w)->rejected.arguments == 3);
	observer_close(&w);
}
