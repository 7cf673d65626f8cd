/* SPDX-License-Identifier: Apache-2.0 */

/* Invalid calls: counted, dropped, and never the application's problem. */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "lib/testing/testing-observer.h"

static const uint32_t misuse_devices[] = {1024, 1025, 0x7fffffff, 0x80000000, UINT32_MAX};
static const uint32_t misuse_types[] = {TTMEM_TYPE_COUNT, TTMEM_TYPE_COUNT + 1, 255, 0x7fffffff,
					UINT32_MAX - 1};

UNIT(devices_out_of_range)
{
	struct ttmem_alloc_args args = {.struct_size = sizeof(args), .address = 1, .size = 1};
	struct ttmem_free_args free_args = {.struct_size = sizeof(free_args)};
	struct ttmem_device_args device = {.struct_size = sizeof(device)};
	const uint64_t calls = 10 * ARRAY_SIZE(misuse_devices);
	struct observer w;

	observer_track();
	for (uint32_t i = 0; i < ARRAY_SIZE(misuse_devices); i++) {
		uint32_t bad = misuse_devices[i];

		args.device = free_args.device = device.device = bad;
		ttmem_alloc(bad, TTMEM_DRAM, 1, 1, "x");
		ttmem_free(bad, TTMEM_ANY, 1);
		ttmem_alloc_mesh(&bad, 1, TTMEM_DRAM, 1, 1, NULL);
		ttmem_free_mesh(&bad, 1, TTMEM_DRAM, 1);
		ttmem_alloc_ex(&args);
		ttmem_free_ex(&free_args);
		ttmem_free_all(bad, TTMEM_ANY, 0);
		ttmem_alloc_failed(bad, TTMEM_DRAM, 1, 1);
		ttmem_device(&device);
		ttmem_device_close(bad);
		ttmem_reset_peak(bad, TTMEM_ANY);
	}
	assert(observer_open(&w, getpid()));
	assert(observer_header(&w)->rejected.device == calls + ARRAY_SIZE(misuse_devices));
	assert(reader_next_shard(&w.reader, 0) == -ENXIO);
	observer_close(&w);
}

UNIT(types_out_of_range)
{
	struct ttmem_alloc_args args = {.struct_size = sizeof(args), .address = 1, .size = 1};
	struct ttmem_free_args free_args = {.struct_size = sizeof(free_args)};
	const uint32_t device = 0;
	struct observer w;

	observer_track();
	for (uint32_t i = 0; i < ARRAY_SIZE(misuse_types); i++) {
		uint32_t bad = misuse_types[i];

		args.type = free_args.type = bad;
		ttmem_alloc(0, bad, 1, 1, "x");
		ttmem_free(0, bad, 1);
		ttmem_alloc_mesh(&device, 1, bad, 1, 1, NULL);
		ttmem_free_mesh(&device, 1, bad, 1);
		ttmem_alloc_ex(&args);
		ttmem_free_ex(&free_args);
		ttmem_free_all(0, bad, 0);
		ttmem_alloc_failed(0, bad, 1, 1);
		ttmem_reset_peak(0, bad);
	}
	/* Only a free and a query may leave the type open. */
	args.type = TTMEM_ANY;
	ttmem_alloc(0, TTMEM_ANY, 1, 1, "x");
	ttmem_alloc_ex(&args);
	ttmem_alloc_mesh(&device, 1, TTMEM_ANY, 1, 1, NULL);
	ttmem_alloc_failed(0, TTMEM_ANY, 1, 1);
	assert(observer_open(&w, getpid()));
	assert(observer_header(&w)->rejected.type == 9 * ARRAY_SIZE(misuse_types) + 4);
	assert(reader_next_shard(&w.reader, 0) == -ENXIO);
	observer_close(&w);
}

UNIT(sizes)
{
	struct ttmem_alloc_args args = {.struct_size = sizeof(args), .address = 9};
	const uint32_t device = 0;
	struct observer w;

	observer_track();
	ttmem_alloc(0, TTMEM_DRAM, 1, 0, NULL);
	ttmem_alloc(0, TTMEM_DRAM, 1, UINT64_C(1) << 40, NULL);
	ttmem_alloc(0, TTMEM_DRAM, 1, UINT64_MAX, NULL);
	ttmem_alloc_mesh(&device, 1, TTMEM_DRAM, 1, 0, NULL);
	ttmem_alloc_ex(&args);
	args.flags = TTMEM_FLAG_ALIAS;
	args.size = UINT64_MAX;
	ttmem_alloc_ex(&args);
	assert(observer_open(&w, getpid()));
	assert(observer_header(&w)->rejected.size == 6);
	/* Any address is valid, and so is the largest size. */
	ttmem_alloc(0, TTMEM_DRAM, 0, (UINT64_C(1) << 40) - 1, NULL);
	ttmem_alloc(0, TTMEM_DRAM, UINT64_MAX, 1, NULL);
	assert(observer_hot(&w, 0, TTMEM_DRAM).bytes == UINT64_C(1) << 40);
	ttmem_free(0, TTMEM_DRAM, UINT64_MAX);
	ttmem_free(0, TTMEM_DRAM, 0);
	assert(observer_hot(&w, 0, TTMEM_DRAM).buffers == 0);
	observer_close(&w);
}

/* The last bytes of a page that is followed by an unmapped one: reading a byte too many faults. */
static void *misuse_at_edge(size_t size)
{
	char *pages =
		mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert(pages != MAP_FAILED);
	assert(mprotect(pages + 4096, 4096, PROT_NONE) == 0);
	return pages + 4096 - size;
}

UNIT(structs_of_any_size)
{
	const size_t least = offsetof(struct ttmem_alloc_args, name);
	struct ttmem_alloc_args args = {.address = 1, .size = 1, .name = "x"};
	struct ttmem_free_args free_args = {.address = 1, .type = TTMEM_ANY};
	struct ttmem_device_args device = {.unique_id = 5, .arch = "a"};
	uint64_t rejected = 0;
	struct observer w;

	observer_track();
	ttmem_alloc_ex(NULL);
	ttmem_free_ex(NULL);
	ttmem_device(NULL);
	ttmem_alloc_mesh(NULL, 1, TTMEM_DRAM, 1, 1, NULL);
	ttmem_free_mesh(NULL, 1, TTMEM_DRAM, 1);
	ttmem_alloc_mesh(misuse_devices, SIZE_MAX, TTMEM_DRAM, 1, 1, NULL);
	ttmem_free_mesh(misuse_devices, 1025, TTMEM_DRAM, 1);
	rejected += 7;
	for (uint32_t size = 4; size < sizeof(args); size += 4) {
		char *edge = misuse_at_edge(size);

		args.struct_size = size;
		memcpy(edge, &args, size);
		ttmem_alloc_ex((const void *)edge);
		rejected += size < least;
		if (size <= sizeof(free_args)) {
			free_args.struct_size = size;
			memcpy(edge, &free_args, size);
			ttmem_free_ex((const void *)edge);
			rejected += size < offsetof(struct ttmem_free_args, space);
		}
	}
	for (uint32_t size = 4; size < sizeof(device); size += 4) {
		char *edge = misuse_at_edge(size);

		device.struct_size = size;
		memcpy(edge, &device, size);
		ttmem_device((const void *)edge);
		rejected += size < offsetof(struct ttmem_device_args, arch);
	}
	/* A later version's struct is longer and says so. */
	args.struct_size = free_args.struct_size = device.struct_size = UINT32_MAX;
	args.address = 2;
	ttmem_alloc_ex(&args);
	ttmem_free_ex(&free_args);
	ttmem_device(&device);
	assert(observer_open(&w, getpid()));
	assert(observer_header(&w)->rejected.arguments == rejected);
	assert(observer_look(&w, 0, VIEW_LIVING));
	assert(observer_row(&w, 0, 2) && observer_row(&w, 0, 1));
	observer_close(&w);
}

UNIT(unknown_flags_and_sorts)
{
	struct ttmem_alloc_args args = {.struct_size = sizeof(args), .address = 1, .size = 1};
	struct ttmem_free_args free_args = {.struct_size = sizeof(free_args)};
	struct observer w;

	observer_track_without_stacks(); /* they have strings of their own */
	for (uint32_t bit = 4; bit < 32; bit++) {
		args.flags = free_args.flags = 1u << bit;
		ttmem_alloc_ex(&args);
		if (free_args.flags != TTMEM_FREE_DESTRUCTOR &&
		    free_args.flags != TTMEM_FREE_CLOSED &&
		    free_args.flags != TTMEM_FREE_IN_SPACE) /* valid with every free */
			ttmem_free_ex(&free_args);
	}
	args.flags = 0;
	args.kernel_sort = 3;
	ttmem_alloc_ex(&args);
	assert(observer_open(&w, getpid()));
	assert(observer_header(&w)->rejected.arguments == 28 + 25 + 1);
	assert(reader_next_shard(&w.reader, 0) == -ENXIO);
	/* A rejected call leaves no name behind. */
	args.name = "never";
	ttmem_alloc_ex(&args);
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, "seen");
	assert(observer_look(&w, 0, VIEW_LIVING));
	assert(observer_row(&w, 0, 1)->name == 1);
	observer_close(&w);
}

/* More than 300 bytes of characters that do not end at byte 255. */
UNIT(names_are_cut_between_characters)
{
	static const char *const characters[] = {"a", "\xc3\xa4", "\xe2\x82\xac",
						 "\xf0\x9f\xa6\x8a"};
	char name[1200];
	struct observer w;

	observer_track();
	for (uint32_t i = 0; i < ARRAY_SIZE(characters); i++) {
		size_t width = strlen(characters[i]);

		for (size_t at = 0; at < 1200 - width; at += width)
			memcpy(name + at, characters[i], width + 1);
		ttmem_phase_push(name);
		ttmem_alloc(0, TTMEM_DRAM, i, 1, name);
		ttmem_phase_pop();
		ttmem_phase_process(name);
		ttmem_alloc(0, TTMEM_DRAM, 100 + i, 1, name);
	}
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	for (uint32_t i = 0; i < ARRAY_SIZE(characters); i++) {
		const struct book_record *row = observer_row(&w, TTMEM_DRAM, i);
		size_t width = strlen(characters[i]);

		assert(strlen(observer_text(&w, row->name)) == 255 / width * width);
		assert(strlen(observer_text(&w, row->phase)) == 255 / width * width);
		row = observer_row(&w, TTMEM_DRAM, 100 + i);
		assert(strlen(observer_text(&w, row->phase)) == 1023 / width * width);
	}
	observer_close(&w);
}

UNIT(invalid_utf8_names_are_kept_valid)
{
	char name[400];
	struct observer w;

	observer_track();
	memset(name, 0x80, sizeof(name) - 1); /* only continuation bytes */
	name[sizeof(name) - 1] = '\0';
	ttmem_alloc(0, TTMEM_DRAM, 1, 1, name);
	ttmem_alloc(0, TTMEM_DRAM, 2, 1, "\xff\xfe\n\x1b[31m");
	ttmem_alloc(0, TTMEM_DRAM, 3, 1, "");
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	assert(strlen(observer_text(&w, observer_row(&w, 0, 1)->name)) == 255);
	assert(strcmp(observer_text(&w, observer_row(&w, 0, 2)->name), "\xff\xfe\n\x1b[31m") == 0);
	assert(observer_row(&w, 0, 3)->name == 0);
	observer_close(&w);
}

UNIT(environment_turns_tracking_on_and_off)
{
	static const struct {
		const char *ttmem, *old;
		int on;
	} cases[] = {
		{NULL, NULL, 0},   {"0", NULL, 0},  {"1", NULL, 1},  {"", NULL, 0},
		{"yes", NULL, 0},  {"01", NULL, 0}, {"1 ", NULL, 0}, {NULL, "1", 1},
		{NULL, "0", 0},    {"0", "1", 0},   {"1", "0", 1},   {"garbage", "1", 1},
		{NULL, "true", 0},
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool refused = cases[i].ttmem && strcmp(cases[i].ttmem, "0") == 0;
		int on = cases[i].on || (observer_has_kernel() && !refused);
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0) {
			setenv("TTMEM_SOCKET", "none", 1);
			if (cases[i].ttmem)
				setenv("TTMEM", cases[i].ttmem, 1);
			if (cases[i].old)
				setenv("TT_ALLOC_TRACKING_ENABLED", cases[i].old, 1);
			ttmem_alloc(0, TTMEM_DRAM, 1, 1, NULL);
			_exit(ttmem_enabled() == on && observer_count(getpid()) == (uint32_t)on
				      ? 0
				      : 1);
		}
		observer_wait(child);
	}
}

/* Every call, three times: the first makes the book, the second grows it, the third is warm. */
UNIT(calls_do_not_change_errno)
{
	struct ttmem_alloc_args args = {
		.struct_size = sizeof(args), .address = 1, .size = 1, .owner = 1, .banks = 1};
	struct ttmem_free_args free_args = {.struct_size = sizeof(free_args), .address = 5};
	struct ttmem_device_args device = {.struct_size = sizeof(device)};
	struct ttmem_clash_args clash = {.struct_size = sizeof(clash), .wanted_size = 1};
	struct ttmem_trace_overlap_args overlap = {.struct_size = sizeof(overlap)};
	const uint32_t mesh[] = {0, 1, 2};
	struct ttmem_stats stats;

	observer_track();
#define STAYS(call)                      \
	do {                             \
		errno = ENOTTY;          \
		call;                    \
		assert(errno == ENOTTY); \
	} while (0)
	for (int i = 0; i < 3; i++) {
		STAYS(ttmem_free(0, TTMEM_DRAM, 7));
		STAYS(ttmem_alloc(0, TTMEM_DRAM, 5, 1, "name"));
		STAYS(ttmem_alloc_mesh(mesh, 3, TTMEM_L1, 5, 1, "mesh"));
		STAYS(ttmem_free_mesh(mesh, 3, TTMEM_L1, 5));
		STAYS(ttmem_alloc_ex(&args));
		STAYS(ttmem_free_ex(&free_args));
		STAYS(ttmem_free_all(0, TTMEM_ANY, 1));
		STAYS(ttmem_alloc_failed(0, TTMEM_DRAM, 1, 1));
		STAYS(ttmem_clash(&clash));
		STAYS(ttmem_here(&overlap.traced));
		STAYS(ttmem_trace_overlap(&overlap));
		STAYS(ttmem_device(&device));
		STAYS(ttmem_device_close(0));
		STAYS(ttmem_phase_push("phase"));
		STAYS(ttmem_phase_process("process"));
		STAYS(ttmem_mark("mark"));
		STAYS((void)ttmem_intern("interned"));
		STAYS((void)ttmem_stats(0, TTMEM_ANY, &stats));
		STAYS(ttmem_reset_peak(0, TTMEM_ANY));
		STAYS(ttmem_pause());
		STAYS(ttmem_free(0, TTMEM_DRAM, 7));
		STAYS(ttmem_resume());
		STAYS(ttmem_goodbye());
		STAYS((void)ttmem_enabled());
		STAYS(ttmem_phase_pop());
	}
	for (uint64_t i = 0; i < 100000; i++)
		STAYS(ttmem_alloc(0, TTMEM_DRAM, 64 * i, 1, "grows"));
#undef STAYS
}

#define MISUSE_EVENTS (testing_quick() ? UINT64_C(5000) : UINT64_C(50000))

/* A thread with a pending cancellation is not cancelled inside our calls. */
static void *misuse_cancelled(void *context)
{
	uint64_t *reached = context;

	pthread_cancel(pthread_self());
	for (uint64_t i = 0; i < MISUSE_EVENTS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n %d", (int)i);
		ttmem_alloc((uint32_t)i % 4, TTMEM_DRAM, i, 1, name);
	}
	ttmem_phase_push("phase");
	ttmem_mark("mark");
	ttmem_pause();
	ttmem_resume();
	*reached = 1;
	pthread_testcancel();
	*reached = 2;
	return NULL;
}

static void misuse_cancel(void)
{
	uint64_t reached = 0;
	pthread_t thread;
	struct observer w;
	void *result;

	assert(pthread_create(&thread, NULL, misuse_cancelled, &reached) == 0);
	assert(pthread_join(thread, &result) == 0);
	assert(result == PTHREAD_CANCELED && reached == 1);
	assert(observer_open(&w, getpid()));
	for (uint32_t device = 0; device < 4; device++)
		assert(observer_hot(&w, device, TTMEM_DRAM).buffers == MISUSE_EVENTS / 4);
	observer_close(&w);
}

UNIT(cancellation)
{
	observer_track();
	misuse_cancel();
}

UNIT(cancellation_while_debugging)
{
	char path[256];

	observer_track();
	snprintf(path, sizeof(path), "%s/debug", unit_dir());
	assert(setenv("TTMEM_DEBUG", path, 1) == 0);
	misuse_cancel();
}

static pthread_key_t misuse_key;

static void misuse_key_end(void *value)
{
	ttmem_phase_push("late");
	ttmem_alloc(0, TTMEM_DRAM, 0x100, 1, "in a destructor");
	ttmem_phase_push("later");
	ttmem_alloc(0, TTMEM_DRAM, 0x200, 1, "in a destructor");
}

static void *misuse_thread_with_key(void *context)
{
	ttmem_phase_push("early");
	ttmem_alloc(0, TTMEM_DRAM, 0x300, 1, NULL);
	/* Created after the library's own key, so its destructor runs afterwards. */
	assert(pthread_key_create(&misuse_key, misuse_key_end) == 0);
	assert(pthread_setspecific(misuse_key, misuse_types) == 0);
	return NULL;
}

UNIT(events_after_our_own_thread_destructor)
{
	pthread_t thread;
	struct observer w;

	observer_track();
	assert(pthread_create(&thread, NULL, misuse_thread_with_key, NULL) == 0);
	assert(pthread_join(thread, NULL) == 0);
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	assert(w.view.live == 3);
	assert(strcmp(observer_text(&w, observer_row(&w, 0, 0x300)->phase), "early") == 0);
	assert(strcmp(observer_text(&w, observer_row(&w, 0, 0x100)->phase), "late") == 0);
	assert(strcmp(observer_text(&w, observer_row(&w, 0, 0x200)->phase), "late/later") == 0);
	observer_close(&w);
}

/* When the arena of names is full, new buffers have no name, and that is counted. */
UNIT_LONG(endless_new_names_fill_the_arena_and_are_counted, 120)
{
	struct book_arena arena;
	char name[256];
	struct observer w;

	observer_track();
	assert(setenv("TTMEM_ROOM", "8M", 1) == 0);
	memset(name, 'x', 255);
	name[255] = '\0';
	for (uint32_t i = 0; i < 50000; i++) {
		for (uint32_t k = 0; k < 8; k++)
			name[k] = (char)('a' + (i >> 4 * k & 15));
		ttmem_alloc(0, TTMEM_DRAM, i, 1, name);
		ttmem_free(0, TTMEM_DRAM, i);
	}
	assert(observer_open(&w, getpid()));
	assert(reader_arena(&w.reader, BOOK_ARENA_STRINGS, &arena) == 0);
	assert(arena.lost > 0 && arena.used > 4 << 20);
	assert(observer_hot(&w, 0, TTMEM_DRAM).frees == 50000);
	assert(w.view.inexact == 0 && w.view.live == 0);
	observer_close(&w);
}
