/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks through files that are unloaded, and through files that are loaded in their place. */

#include <ttmem/ttmem.h>

#undef NDEBUG
#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-calls.h"
#include "lib/testing/testing-observer.h"

#define UNLOAD_ROUNDS 40u
#define UNLOAD_THREADS 4u
#define UNLOAD_MANY 80u        /* more than lib/stack/unload-guard.h has entries */
#define UNLOAD_STRIDE 0x30000u /* addresses of a thread; an address modulo three gives the file */
#define UNLOAD_AGAIN 0x18000u  /* offset between the two calls of a round */
#define UNLOAD_STAY 1000u      /* events, at least, of the thread whose file stays loaded */

typedef void unload_call(void (*next)(uint64_t address), uint64_t address);
typedef void unload_inner(void (*alloc)(uint32_t, uint32_t, uint64_t, uint64_t, const char *),
			  uint64_t address);

static const char *const unload_names[] = {"first", "other", "third"};
static uint32_t unload_running;
static volatile uint32_t unload_often = 4; /* keeps a loop from being unrolled */
static bool unload_is_inner;               /* the innermost frame is in such a file */

/* A loaded file. */
struct unload_file {
	void *library;
	unload_call *call;
	unload_inner *inner;
};

static struct unload_file unload_loaded(void *library)
{
	struct unload_file file = {.library = library};
	void *found;

	assert(file.library);
	found = dlsym(file.library, "unload_plugin");
	assert(found);
	memcpy(&file.call, &found, sizeof(found)); /* C has no cast to a function pointer */
	found = dlsym(file.library, "unload_inner");
	assert(found);
	memcpy(&file.inner, &found, sizeof(found));
	return file;
}

static struct unload_file unload_open(const char *name, const char *mark)
{
	char text[64];

	snprintf(text, sizeof(text), "unload-%s-%s.so", name, mark);
	return unload_loaded(calls_load(text));
}

static struct unload_file unload_at(const char *path)
{
	return unload_loaded(dlopen(path, RTLD_NOW | RTLD_LOCAL));
}

static __attribute__((noinline)) void unload_alloc(uint64_t address)
{
	CALLS_FRAME_BEGIN();
	ttmem_alloc(0, TTMEM_DRAM, address, 64, NULL);
	CALLS_FRAME_END();
}

static const char *unload_name(uint64_t address)
{
	return unload_names[address % ARRAY_SIZE(unload_names)];
}

/* From the same place, until the stack is remembered in all ways. The last allocation stays. */
static __attribute__((noinline)) void unload_repeat(const struct unload_file *file,
						    uint64_t address)
{
	for (uint32_t i = 0; i < unload_often; i++) {
		if (i > 0)
			ttmem_free(0, TTMEM_DRAM, address);
		if (unload_is_inner)
			file->inner(ttmem_alloc, address);
		else
			file->call(unload_alloc, address);
	}
}

/* Loads the file for this address, and calls through it. Return: its place in memory. */
static uintptr_t unload_round(uint64_t address, const char *mark)
{
	struct unload_file file = unload_open(unload_name(address), mark);
	uintptr_t place = (uintptr_t)file.call;

	for (uint32_t i = 0; i < 2; i++)
		unload_repeat(&file, address + i * UNLOAD_AGAIN);
	assert(dlclose(file.library) == 0);
	return place;
}

/* Checks that the frame is in the file of that name. */
static void unload_check_name(struct observer *w, uint64_t address, size_t frame, const char *name)
{
	const struct book_record *row = observer_row(w, TTMEM_DRAM, address);
	struct book_frame frames[CALLS_FRAMES];
	struct book_module module;
	struct book_stack head;
	char expected[64];

	assert(row);
	assert(reader_stack(&w->reader, row->stack, &head, frames, CALLS_FRAMES) >= 2);
	assert(reader_module(&w->reader, frames[frame].module, &module) == 0);
	snprintf(expected, sizeof(expected), "/unload-%s-", name);
	assert(strstr(observer_text(w, module.path), expected));
}

/* Checks that the frame that called back is in the file for this address. */
static void unload_check_at(struct observer *w, uint64_t address, bool is_inner)
{
	unload_check_name(w, address, is_inner ? 0 : 1, unload_name(address));
}

static void unload_check(uint32_t threads)
{
	struct observer w;

	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	for (uint64_t i = 0; i < (uint64_t)threads * UNLOAD_ROUNDS; i++) {
		uint64_t address = i / UNLOAD_ROUNDS * UNLOAD_STRIDE + i % UNLOAD_ROUNDS;

		unload_check_at(&w, address, unload_is_inner);
		unload_check_at(&w, address + UNLOAD_AGAIN, unload_is_inner);
	}
	assert(observer_header(&w)->lost_stacks == 0);
	observer_close(&w);
}

/* With frame pointers only the innermost frame is certain, so only its file is read. */
static void unload_start(const char *how)
{
	unload_is_inner = strcmp(how, "fp") == 0;
	if (strcmp(how, "fp") == 0)
		calls_start(how);
	else
		calls_start_tables(how);
}

static void unload_replace(const char *how, const char *mark)
{
	uintptr_t last = 0;
	bool is_replaced = false;

	unload_start(how);
	for (uint64_t i = 0; i < UNLOAD_ROUNDS; i++) {
		uintptr_t place = unload_round(i, mark);

		is_replaced |= place == last;
		last = place;
	}
	unload_check(1);
	if (!is_replaced)
		unit_skip("the loader gave each another place");
}

UNIT(another_file_in_the_same_place_is_another_fp)
{
	unload_replace("fp", "sha1");
}

UNIT(another_file_in_the_same_place_is_another_auto)
{
	unload_replace("auto", "sha1");
}

UNIT(another_file_in_the_same_place_is_another_unwind)
{
	unload_replace("unwind", "sha1");
}

UNIT(files_without_a_build_id_are_known_by_their_path)
{
	unload_replace("fp", "none");
}

/* The file is not read: the innermost frame is in another file, and the others are not certain. */
UNIT(a_file_of_another_layout_is_another_fp)
{
	static const char *const names[] = {"first", "moved"};
	uintptr_t last = 0;
	bool is_replaced = false;
	struct observer w;

	calls_start("fp");
	for (uint64_t i = 0; i < UNLOAD_ROUNDS; i++) {
		struct unload_file file = unload_open(names[i % 2], "sha1");

		file.call(unload_alloc, i);
		is_replaced |= (uintptr_t)file.call == last;
		last = (uintptr_t)file.call;
		assert(dlclose(file.library) == 0);
	}
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	for (uint64_t i = 0; i < UNLOAD_ROUNDS; i++)
		unload_check_name(&w, i, 1, names[i % 2]);
	observer_close(&w);
	if (!is_replaced)
		unit_skip("the loader gave each another place");
}

/* As unload_repeat(), with another stack pointer. */
static __attribute__((noinline)) void unload_deeper(const struct unload_file *file,
						    uint64_t address)
{
	volatile char room[256] = {0};

	unload_repeat(file, address);
	(void)room[0];
}

/* What is remembered of the first file refers to the second now that this is known. */
static void unload_elsewhere(const char *how)
{
	uintptr_t last = 0;
	bool is_replaced = false;
	struct observer w;

	unload_start(how);
	for (uint64_t i = 0; i < UNLOAD_ROUNDS; i++) {
		struct unload_file file = unload_open(unload_name(i), "sha1");

		unload_deeper(&file, i + UNLOAD_AGAIN);
		unload_repeat(&file, i);
		is_replaced |= (uintptr_t)file.call == last;
		last = (uintptr_t)file.call;
		assert(dlclose(file.library) == 0);
	}
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	for (uint64_t i = 0; i < UNLOAD_ROUNDS; i++)
		unload_check_at(&w, i, unload_is_inner);
	observer_close(&w);
	if (!is_replaced)
		unit_skip("the loader gave each another place");
}

UNIT(a_file_that_was_met_elsewhere_first_is_another_fp)
{
	unload_elsewhere("fp");
}

UNIT(a_file_that_was_met_elsewhere_first_is_another_unwind)
{
	unload_elsewhere("unwind");
}

static void *unload_thread(void *context)
{
	const uint64_t *base = context;

	for (uint64_t i = 0; i < UNLOAD_ROUNDS; i++)
		(void)unload_round(*base + i, "sha1"); /* at any place */
	__atomic_fetch_sub(&unload_running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Called from a file, which therefore stays loaded, until all other threads have ended. */
static __attribute__((noinline)) void unload_stay(uint64_t address)
{
	CALLS_FRAME_BEGIN();
	for (uint32_t i = 0;
	     i < UNLOAD_STAY || __atomic_load_n(&unload_running, __ATOMIC_ACQUIRE) > 0; i++) {
		ttmem_alloc(0, TTMEM_DRAM, address, 64, NULL);
		ttmem_free(0, TTMEM_DRAM, address);
	}
	ttmem_alloc(0, TTMEM_DRAM, address, 64, NULL);
	CALLS_FRAME_END();
}

/* Two of them use files at the same place, all use files that others load too. */
static void unload_crowd(const char *how)
{
	uint64_t bases[UNLOAD_THREADS];
	pthread_t threads[UNLOAD_THREADS];
	struct unload_file stay;
	struct observer w;
	uint64_t address = (uint64_t)UNLOAD_THREADS * UNLOAD_STRIDE;

	unload_start(how);
	stay = unload_open(unload_name(address), "none");
	unload_running = UNLOAD_THREADS;
	for (uint64_t i = 0; i < UNLOAD_THREADS; i++) {
		bases[i] = i * UNLOAD_STRIDE;
		assert(pthread_create(&threads[i], NULL, unload_thread, &bases[i]) == 0);
	}
	stay.call(unload_stay, address);
	for (uint32_t i = 0; i < UNLOAD_THREADS; i++)
		assert(pthread_join(threads[i], NULL) == 0);
	assert(dlclose(stay.library) == 0);
	unload_check(UNLOAD_THREADS);
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	unload_check_at(&w, address, false);
	observer_close(&w);
}

UNIT(many_come_and_go_and_one_stays_fp)
{
	unload_crowd("fp");
}

UNIT(many_come_and_go_and_one_stays_auto)
{
	unload_crowd("auto");
}

UNIT(many_come_and_go_and_one_stays_unwind)
{
	unload_crowd("unwind");
}

static void unload_copy(const char *from, const char *to)
{
	char bytes[4096];
	FILE *in = fopen(from, "re");
	FILE *out = fopen(to, "we");
	size_t n;

	assert(in && out);
	while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
		assert(fwrite(bytes, 1, n, out) == n);
	assert(fclose(in) == 0 && fclose(out) == 0);
}

/* More files than can be guarded: stacks through the others are right too, but not cached. */
UNIT(very_many_files)
{
	struct unload_file file = unload_open("first", "sha1");
	char path[PATH_MAX], name[16];
	struct calls_found found;
	Dl_info info;

	unload_start("fp");
	assert(dladdr((void *)(uintptr_t)file.call, &info));
	for (uint32_t i = 1; i <= UNLOAD_MANY; i++) {
		snprintf(name, sizeof(name), "/%u.so", i);
		snprintf(path, sizeof(path), "%s%s", unit_dir(), name);
		unload_copy(info.dli_fname, path);
		unload_at(path).inner(ttmem_alloc, i); /* stays loaded */
	}
	for (uint32_t i = 1; i <= UNLOAD_MANY; i++) {
		snprintf(name, sizeof(name), "/%u.so", i);
		snprintf(path, sizeof(path), "%s%s", unit_dir(), name);
		unload_at(path).inner(ttmem_alloc, UNLOAD_MANY + i);
		for (uint32_t k = 0; k < 2; k++) {
			calls_read(i + k * UNLOAD_MANY, &found);
			assert(found.count > 1 && strstr(found.path, name));
		}
	}
	assert(calls_lost() == 0);
}

static void *unload_idle(void *context)
{
	while (__atomic_load_n(&unload_running, __ATOMIC_ACQUIRE) > 0)
		(void)usleep(1000); /* may return early */
	return context;
}

/* In a child of a parent with several threads files are looked up without the loader's list. */
static void unload_in_child(const char *how)
{
	pthread_t thread;
	pid_t child;

	if (OBSERVER_TSAN)
		unit_skip("TSan sees threads in a child that are the parent's");
	unload_start(how);
	(void)unload_round(UNLOAD_STRIDE, "sha1"); /* the parent has a book too */
	unload_running = 1;
	assert(pthread_create(&thread, NULL, unload_idle, NULL) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		for (uint64_t i = 0; i < UNLOAD_ROUNDS; i++)
			(void)unload_round(i, "sha1"); /* at any place */
		unload_check(1);
		_exit(0);
	}
	observer_wait(child);
	__atomic_store_n(&unload_running, 0, __ATOMIC_RELEASE);
	assert(pthread_join(thread, NULL) == 0);
}

UNIT(a_child_meets_them_one_by_one_fp)
{
	unload_in_child("fp");
}

UNIT(a_child_meets_them_one_by_one_unwind)
{
	unload_in_child("unwind");
}
