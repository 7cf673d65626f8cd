/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames of another language: a tiny interpreter, which is only a function with variables on the
 * stack, and what another process reads of its frames from the book. The library is the real one.
 */

#include <ttmem/provider.h>
#include <ttmem/ttmem.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-observer.h"

#define FRAME_PROVIDER_FRAMES 64u

/* As in lib/testing/testing-calls.h: asking for the frame address forces a frame, using it prevents a tail call. */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define FRAME_PROVIDER_FRAME_BEGIN() void *volatile frame_here = __builtin_frame_address(0)
#define FRAME_PROVIDER_FRAME_END() (void)frame_here

/* One function, not cloned: the interpreter's loop is the code between its two calls. */
#ifdef __clang__
#define FRAME_PROVIDER_LOOP __attribute__((noinline))
#else
#define FRAME_PROVIDER_LOOP __attribute__((noinline, noclone))
#endif

/* What the interpreter will report. */
static uint64_t said_identity;
static struct ttmem_frame said[2 * FRAME_PROVIDER_FRAMES];
static size_t said_count;
static uint32_t said_often;

/* The places of its two runs, and their return addresses. */
static uintptr_t run_place[2];
static uintptr_t run_return[2];

static uint64_t look(uint32_t depth)
{
	assert(depth > 0);
	return said_identity;
}

static void tell(uint32_t depth, struct ttmem_frames *frames)
{
	said_often++;
	for (size_t i = 0; i < said_count; i++)
		ttmem_frames_add(frames, &said[i]);
}

static struct ttmem_provider provider = {
	.struct_size = sizeof(provider),
	.look = look,
	.tell = tell,
};

static void say(const char *function, uint32_t line, uint32_t flags, uintptr_t place)
{
	said[said_count++] = (struct ttmem_frame){
		.struct_size = sizeof(struct ttmem_frame),
		.flags = flags,
		.line = line,
		.function = function,
		.file = "model.py",
		.place = place,
	};
}

static __attribute__((noinline)) void leaf(uint64_t address)
{
	FRAME_PROVIDER_FRAME_BEGIN();
	run_return[0] = (uintptr_t)__builtin_return_address(0);
	ttmem_alloc(0, TTMEM_DRAM, address, 64, NULL);
	FRAME_PROVIDER_FRAME_END();
}

static FRAME_PROVIDER_LOOP void run(uint32_t outside, uint64_t address);

static __attribute__((noinline)) void between(uint64_t address)
{
	FRAME_PROVIDER_FRAME_BEGIN();
	run_return[1] = (uintptr_t)__builtin_return_address(0);
	run(0, address);
	FRAME_PROVIDER_FRAME_END();
}

/* One run of the interpreter: it calls the leaf, or code that runs the interpreter again. */
static FRAME_PROVIDER_LOOP void run(uint32_t outside, uint64_t address)
{
	FRAME_PROVIDER_FRAME_BEGIN();
	/* Not a variable's address: a sanitizer may keep those elsewhere. */
	run_place[outside] = (uintptr_t)frame_here - sizeof(uintptr_t);
	/* Filled in once the place is known. */
	for (size_t i = 0; i < said_count; i++) {
		if (said[i].place && said[i].reserved == outside)
			said[i].place = run_place[outside];
	}
	if (outside)
		between(address);
	else
		leaf(address);
	FRAME_PROVIDER_FRAME_END();
}

static void start(const char *stacks)
{
	observer_track();
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_STACKS", stacks, 1) == 0);
	assert(ttmem_provider(&provider) == 0);
	said_identity = 0x1234567;
}

/* Two frames in the inner run, one in the outer. */
static void say_three(bool with_places)
{
	say("inner", 3, 0, 0);
	say("middle", 2, TTMEM_FRAME_ENTRY, with_places);
	say("outer", 1, TTMEM_FRAME_ENTRY, with_places);
	said[2].reserved = 1;
}

struct found {
	struct book_stack head;
	struct book_frame frames[FRAME_PROVIDER_FRAMES];
	size_t count;
	uint64_t lost_frames;
	uint64_t lost_stacks;
	char names[FRAME_PROVIDER_FRAMES][16];
};

static void find(uint64_t address, struct found *ret_found)
{
	const struct book_record *row;
	struct observer w;

	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	row = observer_row(&w, TTMEM_DRAM, address);
	assert(row);
	*ret_found = (struct found){
		.lost_frames = observer_header(&w)->lost_frames,
		.lost_stacks = observer_header(&w)->lost_stacks,
	};
	ret_found->count = reader_stack(&w.reader, row->stack, &ret_found->head, ret_found->frames,
					FRAME_PROVIDER_FRAMES);
	for (size_t i = ret_found->head.native; i < ret_found->count; i++) {
		const struct book_frame *frame = &ret_found->frames[i];

		assert(frame->flags & BOOK_FRAME_PYTHON);
		assert(strcmp(observer_text(&w, (uint32_t)frame->value), "model.py") == 0);
		strncpy(ret_found->names[i - ret_found->head.native],
			observer_text(&w, (uint32_t)(frame->value >> 32)),
			sizeof(ret_found->names[0]) - 1);
	}
	observer_close(&w);
}

static uint32_t outside_of(const struct found *found, size_t i)
{
	return found->frames[found->head.native + i].flags >> BOOK_FRAME_OUTSIDE_SHIFT;
}

static void check_three(const struct found *found, uint32_t flags)
{
	const struct book_frame *frames = found->frames + found->head.native;

	assert(found->head.python == 3 && found->count == found->head.native + 3u);
	assert(strcmp(found->names[0], "inner") == 0 && frames[0].module == 3);
	assert(strcmp(found->names[1], "middle") == 0 && frames[1].module == 2);
	assert(strcmp(found->names[2], "outer") == 0 && frames[2].module == 1);
	assert((frames[0].flags & 0xff) == (BOOK_FRAME_PYTHON | flags));
	assert((frames[1].flags & 0xff) == (BOOK_FRAME_PYTHON | BOOK_FRAME_ENTRY | flags));
	assert((frames[2].flags & 0xff) == (BOOK_FRAME_PYTHON | BOOK_FRAME_ENTRY | flags));
}

/* leaf, the inner run, between, the outer run, and its callers. */
static void check_merged(const struct found *found)
{
	check_three(found, 0);
	assert(found->head.native > 4);
	assert(outside_of(found, 0) == found->head.native - 2u);
	assert(outside_of(found, 1) == found->head.native - 2u);
	assert(outside_of(found, 2) == found->head.native - 4u);
}

UNIT(frames_are_put_where_their_runs_lie)
{
	struct found found;

	start("fp");
	say_three(true);
	run(1, 1);
	find(1, &found);
	check_merged(&found);
	assert(found.lost_frames == 0 && found.lost_stacks == 0);
}

UNIT(python_frames_go_where_the_interpreter_loop_is)
{
	struct found found;

	start("fp");
	run(1, 1);
	provider.loop_from = bits_min(run_return[0], run_return[1]) - 1;
	provider.loop_to = run_return[0] > run_return[1] ? run_return[0] : run_return[1];
	say_three(false);
	said_identity++;
	run(1, 2);
	find(2, &found);
	check_merged(&found);
}

UNIT(python_frames_go_around_all_if_no_place_is_known)
{
	struct found found;

	start("fp");
	say_three(false);
	run(1, 1);
	find(1, &found);
	check_three(&found, 0);
	for (size_t i = 0; i < 3; i++)
		assert(outside_of(&found, i) == 0);
}

UNIT(places_on_other_stacks_are_ignored)
{
	static uint64_t elsewhere;
	struct found found;

	start("fp");
	run(1, 1);
	provider.loop_from = bits_min(run_return[0], run_return[1]) - 1;
	provider.loop_to = run_return[0] > run_return[1] ? run_return[0] : run_return[1];
	say_three(false);
	said[1].place = said[2].place = (uintptr_t)&elsewhere;
	said[1].reserved = said[2].reserved = 2; /* which run() leaves unchanged */
	said_identity++;
	run(1, 2);
	find(2, &found);
	check_merged(&found);
}

UNIT(unchanged_python_frames_are_not_asked_again)
{
	struct found found;

	start("fp");
	say_three(true);
	for (uint64_t i = 1; i < 100; i++)
		run(1, i);
	assert(said_often == 1);
	said_identity++;
	said[0].line = 7;
	run(1, 200);
	assert(said_often == 2);
	find(200, &found);
	assert(found.frames[found.head.native].module == 7);
	find(1, &found);
	check_three(&found, 0);
}

/* The other ones come when the first are just remembered, and then again. */
UNIT(other_python_frames_from_the_same_place_are_another_stack)
{
	volatile uint64_t end = 18; /* keeps the loop from being unrolled */
	const char *name = "first";
	struct found found;

	start("auto");
	say(name, 1, TTMEM_FRAME_ENTRY, 0);
	for (uint64_t i = 0; i < end; i++) {
		if (i == 3) {
			name = NULL;
			said_identity = TTMEM_FRAMES_NONE;
		} else if (i == 9) {
			name = "second";
			said_count = 0;
			say(name, 2, TTMEM_FRAME_ENTRY, 0);
			said_identity = 0x7654321;
		}
		run(1, i);
		find(i, &found);
		assert(found.head.native > 4 && found.head.python == (name ? 1 : 0));
		assert(!name || strcmp(found.names[0], name) == 0);
	}
}

UNIT(python_only_stacks_have_no_native_frames)
{
	struct found found;

	start("python");
	say_three(true);
	run(1, 1);
	find(1, &found);
	check_three(&found, 0);
	assert(found.head.native == 0);
	/* And with none at all. */
	said_identity = TTMEM_FRAMES_NONE;
	run(1, 2);
	find(2, &found);
	assert(found.count == 0 && found.lost_stacks == 1 && found.lost_frames == 0);
}

UNIT(a_thread_without_frames_has_native_ones)
{
	struct found found;

	start("fp");
	said_identity = TTMEM_FRAMES_NONE;
	run(1, 1);
	find(1, &found);
	assert(found.head.python == 0 && found.head.native > 4 && found.lost_frames == 0);
}

UNIT(what_must_not_be_looked_at_is_counted)
{
	struct found found;

	start("fp");
	said_identity = TTMEM_FRAMES_OFF;
	run(1, 1);
	find(1, &found);
	assert(found.head.python == 0 && found.head.native > 4 && found.lost_frames == 1);
}

UNIT(the_last_ones_are_approximate)
{
	struct found found;

	start("fp");
	say_three(true);
	said_identity = TTMEM_FRAMES_LAST;
	run(1, 1); /* there are none yet */
	said_identity = 5;
	run(1, 2);
	said_identity = TTMEM_FRAMES_LAST;
	leaf(3);
	leaf(4);
	assert(said_often == 1);
	find(1, &found);
	assert(found.head.python == 0 && found.lost_frames == 1);
	find(3, &found);
	check_three(&found, BOOK_FRAME_APPROXIMATE);
	for (size_t i = 0; i < 3; i++)
		assert(outside_of(&found, i) == 0);
	find(4, &found);
	check_three(&found, BOOK_FRAME_APPROXIMATE);
	assert(found.lost_frames == 1);
}

static void many(const char *depth, size_t native, size_t python)
{
	struct found found;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_STACK_DEPTH", depth, 1) == 0);
	start("fp");
	for (uint32_t i = 0; i < 2 * FRAME_PROVIDER_FRAMES; i++)
		say("f", i + 1, TTMEM_FRAME_ENTRY, 0);
	run(1, 1);
	find(1, &found);
	assert(found.head.native >= 2 && found.head.native <= native);
	assert(found.head.python == bits_min(python, FRAME_PROVIDER_FRAMES - found.head.native));
	for (size_t i = 0; i < found.head.python; i++)
		assert(found.frames[found.head.native + i].module == i + 1);
}

UNIT(the_innermost_are_kept)
{
	many("2", 2, 2);
}

UNIT(both_lists_have_room)
{
	many("64", 32, 64);
}

UNIT(a_forked_child_has_no_last_ones)
{
	struct found found;
	pid_t child;

	start("fp");
	say_three(true);
	run(1, 1);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		said_identity = TTMEM_FRAMES_LAST;
		run(1, 2);
		find(2, &found);
		assert(found.head.python == 0 && found.lost_frames == 1);
		said_identity = 9;
		run(1, 3);
		find(3, &found);
		check_merged(&found);
		_exit(0);
	}
	observer_wait(child);
}

UNIT(one_provider_at_a_time)
{
	struct ttmem_provider other = provider, broken = provider;
	struct found found;

	start("fp");
	assert(ttmem_provider(&provider) == 0); /* the same one again */
	assert(ttmem_provider(&other) == -EBUSY);
	assert(ttmem_provider(NULL) == 0 && ttmem_provider(NULL) == 0);
	say_three(true);
	run(1, 1);
	find(1, &found);
	assert(found.head.python == 0 && found.head.native > 4 && said_often == 0);
	broken.struct_size = 8;
	assert(ttmem_provider(&broken) == -EINVAL);
	broken = provider;
	broken.look = NULL;
	assert(ttmem_provider(&broken) == -EINVAL);
	broken = provider;
	broken.tell = NULL;
	assert(ttmem_provider(&broken) == -EINVAL);
	assert(ttmem_provider(&other) == 0);
	assert(ttmem_provider(NULL) == 0);
}

UNIT(a_frame_of_another_size_is_dropped)
{
	struct found found;

	start("fp");
	say_three(true);
	said[1].struct_size = 4;
	run(1, 1);
	find(1, &found);
	assert(found.head.python == 2);
}
