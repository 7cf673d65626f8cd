/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random ways down the stack, taken again and again with small changes, so that the library keeps meeting
 * stacks that are the same as before, or nearly. Each function notes its return address on the way, and
 * the stack in the book must be exactly that.
 */

#include <ttmem/ttmem.h>

#undef NDEBUG
#include <alloca.h>
#include <assert.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/testing/testing-calls.h"
#include "lib/testing/testing-observer.h"

#define WAY_DEPTH 40u
#define WAY_USUAL 14u /* levels, at most */
#define WAY_SITES 3u
#define WAY_EVENTS 6000u
#define WAY_KEPT 16u /* frames of a stack */
#define WAY_MANY 64u
#define WAY_FIBER 131072u                                   /* bytes */
#define WAY_HAS_FIBERS (OBSERVER_ASAN + OBSERVER_TSAN == 0) /* sanitizers lose track of stacks */
#define WAY_DISTURB 1000000u                                /* the address that handlers allocate */

enum way_kind {
	WAY_FRAMED,
	WAY_BARE,
	WAY_ALIGNED,
	WAY_SIZED,
	WAY_PLUGIN,
	WAY_KINDS,
};

/* A frame that an event must have. */
struct way_frame {
	uintptr_t address;  /* 0 = not known, but it is in @function */
	uintptr_t function; /* 0 = any */
	uint32_t file;      /* one of way_files, plus one; 0 = the test itself */
};

struct way_event {
	struct way_frame frames[WAY_MANY]; /* innermost first */
	size_t count;
};

struct way {
	uint8_t kinds[WAY_DEPTH];
	uint8_t sites[WAY_DEPTH];
	uint8_t rooms[WAY_DEPTH];
	uint32_t depth;

	uint32_t at; /* the next level */
	struct way_frame trail[3 * WAY_DEPTH + 4];
	size_t count;
	uint64_t address;
	bool is_jumping;
	bool is_disturbed;
};

typedef void way_call(void (*next)(uint64_t), uint64_t address);

static const char *const way_files[] = {"first", "other", "third"};

static struct way way_now;
static struct way_event *way_events;
static sigjmp_buf way_jump;
static ucontext_t way_here, way_there;
static uint32_t way_levels, way_kept; /* at most */
static uint32_t way_file;
static void *way_library;
static way_call *way_plugin_call;

static void way_leaf(void);
static void way_framed(void);
static void way_bare(void);
static void way_aligned(void);
static void way_sized(void);
static void way_plugin(void);

static void (*volatile const way_functions[])(void) = {
	[WAY_FRAMED] = way_framed, [WAY_BARE] = way_bare,     [WAY_ALIGNED] = way_aligned,
	[WAY_SIZED] = way_sized,   [WAY_PLUGIN] = way_plugin,
};

static void way_mark(const void *address, uint32_t file)
{
	way_now.trail[way_now.count++] =
		(struct way_frame){.address = (uintptr_t)address, .file = file};
}

#define WAY_MARK() way_mark(__builtin_return_address(0), 0)

/* What follows the call is different in each case, so that the compiler merges none. */
#define WAY_SITE(number)                              \
	case number:                                  \
		next();                               \
		__asm__ volatile("" : : "i"(number)); \
		break

/* The next level, from one of several places in the calling function. */
static inline __attribute__((always_inline)) void way_step(void)
{
	uint32_t at = way_now.at++;
	void (*next)(void) = at < way_now.depth ? way_functions[way_now.kinds[at]] : way_leaf;

	switch (at < way_now.depth ? way_now.sites[at] : 0) {
		WAY_SITE(0);
		WAY_SITE(1);
		WAY_SITE(2);
	}
}

static __attribute__((noinline)) void way_framed(void)
{
	CALLS_FRAME_BEGIN();
	WAY_MARK();
	way_step();
	CALLS_FRAME_END();
}

static __attribute__((noinline)) void way_bare(void)
{
	volatile uint8_t room[200];

	WAY_MARK();
	room[way_now.at] = 1;
	way_step();
	(void)room[0];
}

static __attribute__((noinline)) void way_aligned(void)
{
	volatile uint8_t room[128] __attribute__((aligned(128)));

	WAY_MARK();
	room[way_now.at] = 1;
	way_step();
	(void)room[0];
}

static __attribute__((noinline)) void way_sized(void)
{
	volatile uint8_t *room = alloca(16 + 16 * (size_t)way_now.rooms[way_now.at - 1]);

	WAY_MARK();
	room[0] = 1;
	way_step();
}

/* Called by the plugin. */
static __attribute__((noinline)) void way_back(uint64_t context)
{
	CALLS_FRAME_BEGIN();
	(void)context;
	way_now.trail[way_now.count++] = (struct way_frame){.function = (uintptr_t)&way_plugin};
	way_mark(__builtin_return_address(0), way_file + 1);
	way_step();
	CALLS_FRAME_END();
}

static __attribute__((noinline)) void way_plugin(void)
{
	CALLS_FRAME_BEGIN();
	WAY_MARK();
	way_plugin_call(way_back, 0);
	CALLS_FRAME_END();
}

/* The stack is known here: what was marked on the way, in reverse. */
static __attribute__((noinline)) void way_leaf(void)
{
	struct way_event *event = &way_events[way_now.address];
	CALLS_FRAME_BEGIN();

	WAY_MARK();
	if (way_now.is_disturbed)
		assert(raise(SIGUSR1) == 0);
	ttmem_alloc(0, TTMEM_DRAM, way_now.address, 64, NULL);
	*event = (struct way_event){.frames = {{.function = (uintptr_t)&way_leaf}}, .count = 1};
	for (size_t i = way_now.count; i > 0 && event->count < way_kept; i--)
		event->frames[event->count++] = way_now.trail[i - 1];
	if (way_now.is_jumping)
		siglongjmp(way_jump, 1);
	CALLS_FRAME_END();
}

static void way_handler(int number)
{
	(void)number;
	ttmem_alloc(0, TTMEM_L1, WAY_DISTURB, 64, NULL);
	ttmem_free(0, TTMEM_L1, WAY_DISTURB);
}

/* Loads another file, most likely in the place of the last one. */
static void way_load(uint32_t file)
{
	char name[64];
	void *found;

	if (way_library)
		assert(dlclose(way_library) == 0);
	snprintf(name, sizeof(name), "unload-%s-sha1.so", way_files[file]);
	way_library = calls_load(name);
	assert(way_library);
	found = dlsym(way_library, "unload_plugin");
	assert(found);
	memcpy(&way_plugin_call, &found, sizeof(found)); /* C has no cast to a function pointer */
	way_file = file;
}

static uint8_t way_below(struct testing_rng *rng, uint32_t limit)
{
	return (uint8_t)testing_below(rng, limit);
}

static void way_draw(struct testing_rng *rng, struct way *way)
{
	way->depth = 1 + way_below(rng, way_levels);
	for (uint32_t i = 0; i < WAY_DEPTH; i++) {
		way->kinds[i] = way_below(rng, WAY_KINDS);
		way->sites[i] = way_below(rng, WAY_SITES);
		way->rooms[i] = way_below(rng, 8);
	}
}

/* Often nothing; else one call site, or one function, or one size, or the file that is loaded. */
static void way_change(struct testing_rng *rng, struct way *way)
{
	uint32_t level = way_below(rng, way->depth);

	switch (way_below(rng, 16)) {
	case 0:
	case 1:
	case 2:
		way->sites[level] = way_below(rng, WAY_SITES);
		break;
	case 3:
		way->kinds[level] = way_below(rng, WAY_KINDS);
		break;
	case 4:
		way->rooms[level] = way_below(rng, 8);
		break;
	case 5:
		way_load(way_below(rng, ARRAY_SIZE(way_files)));
		break;
	default:
		break;
	}
	way->is_jumping = way_below(rng, 4) == 0;
	way->is_disturbed = !OBSERVER_TSAN && way_below(rng, 8) == 0;
}

static void way_begin(void)
{
	CALLS_FRAME_BEGIN();
	way_now.at = 0;
	way_now.count = 0;
	if (sigsetjmp(way_jump, 0) == 0)
		way_step();
	CALLS_FRAME_END();
}

/* On a stack of its own that is part of the thread's. */
static __attribute__((noinline)) void way_on_fiber(void)
{
	uint8_t room[WAY_FIBER];

	assert(getcontext(&way_there) == 0);
	way_there.uc_stack.ss_sp = room;
	way_there.uc_stack.ss_size = sizeof(room);
	way_there.uc_link = &way_here;
	makecontext(&way_there, way_begin, 0);
	assert(swapcontext(&way_here, &way_there) == 0);
}

static __attribute__((noinline)) void way_go(bool is_fiber)
{
	if (is_fiber)
		way_on_fiber();
	else
		way_begin();
}

static void way_check_frame(struct observer *w, const struct book_frame *found,
			    const struct way_frame *expected)
{
	struct book_module module;
	char name[64];
	uintptr_t address;

	assert(reader_module(&w->reader, found->module, &module) == 0);
	address = found->value + module.base;
	if (expected->address)
		assert(address == expected->address);
	else
		assert(calls_is_in(address, expected->function));
	if (!expected->file)
		return;
	snprintf(name, sizeof(name), "/unload-%s-sha1.so", way_files[expected->file - 1]);
	assert(strstr(observer_text(w, module.path), name));
}

static void way_check(uint64_t from, uint64_t to)
{
	struct view_iterator it = {0};
	uint64_t seen = 0;
	struct observer w;

	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	while (view_next(&w.view, &it)) {
		struct book_frame frames[CALLS_FRAMES];
		struct book_stack head;
		const struct way_event *event = &way_events[it.record->address];
		size_t n = reader_stack(&w.reader, it.record->stack, &head, frames, CALLS_FRAMES);

		assert(it.record->address >= from && it.record->address < to);
		assert(n >= event->count);
		for (size_t i = 0; i < event->count; i++)
			way_check_frame(&w, &frames[i], &event->frames[i]);
		seen++;
	}
	assert(seen == to - from);
	observer_close(&w);
}

static void way_take(struct testing_rng *rng, uint64_t from, uint64_t to)
{
	static struct way way; /* a child goes on with its parent's */
	static bool is_fiber;

	for (uint64_t i = from; i < to; i++) {
		if (i == 0 || way_below(rng, 64) == 0) {
			way_draw(rng, &way);
			is_fiber = WAY_HAS_FIBERS && way_below(rng, 4) == 0;
		}
		way_change(rng, &way);
		way_now = way;
		way_now.address = i;
		way_go(is_fiber);
	}
	way_check(from, to);
}

static void way_random(const char *how, uint32_t levels, uint32_t kept)
{
	struct testing_rng rng = testing_rng_new();
	char depth[16];
	uint64_t events = testing_quick() ? WAY_EVENTS / 20 : WAY_EVENTS;
	pid_t child;

	calls_start_tables(how);
	snprintf(depth, sizeof(depth), "%u", kept);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_STACK_DEPTH", depth, 1) == 0);
	way_levels = levels;
	way_kept = kept;
	way_events = calloc(2 * events, sizeof(*way_events));
	assert(way_events);
	observer_handle(SIGUSR1, way_handler, 0);
	way_load(0);
	way_take(&rng, 0, events);
	/* What the parent remembers is of another book. */
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		way_take(&rng, events, 2 * events);
		_exit(0);
	}
	observer_wait(child);
	assert(dlclose(way_library) == 0);
	free(way_events);
}

UNIT(random_ways_are_told_apart_auto)
{
	way_random("auto", WAY_USUAL, WAY_KEPT);
}

UNIT(random_ways_are_told_apart_unwind)
{
	way_random("unwind", WAY_USUAL, WAY_KEPT);
}

/* Many are too long to be remembered whole. */
UNIT(long_random_ways_are_told_apart)
{
	way_random("unwind", WAY_DEPTH, WAY_MANY);
}
