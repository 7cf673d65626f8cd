/* SPDX-License-Identifier: Apache-2.0 */

/* Interning: one id per content, no split characters, a full arena, threads. */

#include "book/write/intern.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"

/* Compares with the text as a reader of the book sees it. */
static bool ntest_is(struct testing_book *book, uint32_t id, const char *text)
{
	size_t length = 0;
	const char *read = reader_string(&book->reader, id, &length);

	return read && length == strlen(text) && memcmp(read, text, length) == 0;
}

UNIT(equal_texts_have_one_id)
{
	struct testing_book book;
	uint32_t a, b;

	testing_book_open(&book);
	assert(intern_find_string(book.writer, "a", BOOK_NAME_MAX) == 0);
	a = intern_string(book.writer, "a", BOOK_NAME_MAX);
	b = intern_string(book.writer, "b", BOOK_NAME_MAX);
	assert(a && b && a != b);
	assert(intern_string(book.writer, "a", BOOK_NAME_MAX) == a);
	assert(intern_find_string(book.writer, "b", BOOK_PATH_MAX) == b);
	assert(ntest_is(&book, a, "a") && ntest_is(&book, b, "b"));
	assert(intern_string(book.writer, NULL, BOOK_NAME_MAX) == 0);
	assert(intern_string(book.writer, "", BOOK_NAME_MAX) == 0);
	assert(intern_find_string(book.writer, "", BOOK_NAME_MAX) == 0);
	assert(!ntest_is(&book, 0, ""));
	assert(!ntest_is(&book, 1000000, ""));
	testing_book_deinit(&book);
}

/* Repeats @character up to 300 bytes, cuts at @max, and returns how many bytes are left. */
static size_t ntest_cut(struct testing_book *book, const char *character, size_t max)
{
	char text[300 + 8] = "x";
	size_t length = 0;
	uint32_t id;

	for (size_t n = 0; n < 300 || n % strlen(character); n++)
		text[1 + n] = character[n % strlen(character)];
	id = intern_string(book->writer, text, max);
	assert(id && reader_string(&book->reader, id, &length) && length <= max);
	return length;
}

UNIT(long_texts_are_cut_between_characters)
{
	struct testing_book book;

	testing_book_open(&book);
	assert(ntest_cut(&book, "a", BOOK_NAME_MAX) == 255);
	assert(ntest_cut(&book, "\xc3\xa4", 255) == 255);
	assert(ntest_cut(&book, "\xc3\xa4", 254) == 253);
	assert(ntest_cut(&book, "\xe2\x82\xac", 255) == 253);
	assert(ntest_cut(&book, "\xe2\x82\xac", 253) == 253);
	assert(ntest_cut(&book, "\xf0\x9f\xa6\x8a", 255) == 253);
	assert(ntest_cut(&book, "\xf0\x9f\xa6\x8a", 256) == 253);
	assert(ntest_cut(&book, "\xf0\x9f\xa6\x8a", 257) == 257);
	/* Not UTF-8: cut anywhere. */
	assert(ntest_cut(&book, "\x80", BOOK_NAME_MAX) == 255);
	testing_book_deinit(&book);
}

UNIT(a_cut_text_is_found_again)
{
	struct testing_book book;
	char text[400];
	uint32_t id;

	testing_book_open(&book);
	memset(text, 'q', sizeof(text));
	text[399] = '\0';
	id = intern_string(book.writer, text, BOOK_NAME_MAX);
	text[300] = 'r'; /* beyond the cut */
	assert(intern_string(book.writer, text, BOOK_NAME_MAX) == id);
	assert(intern_string(book.writer, text, BOOK_PATH_MAX) != id);
	testing_book_deinit(&book);
}

UNIT(stacks_are_interned_once)
{
	struct book_frame frames[INTERN_FRAMES_MAX + 1], read[INTERN_FRAMES_MAX + 1];
	struct testing_book book;
	struct book_stack head;
	uint32_t one, two, most;

	testing_book_open(&book);
	memset(frames, 0, sizeof(frames));
	for (uint32_t i = 0; i <= INTERN_FRAMES_MAX; i++)
		frames[i] = (struct book_frame){
			.value = UINT64_C(7) << 32 | i, .module = i, .flags = 1};
	assert(intern_stack(book.writer, frames, 0) == 0);
	one = intern_stack(book.writer, frames, 1);
	two = intern_stack(book.writer, frames, 2);
	most = intern_stack(book.writer, frames, INTERN_FRAMES_MAX + 1);
	assert(one && two && most && one != two && two != most);
	assert(intern_stack(book.writer, frames, 2) == two);
	assert(reader_stack(&book.reader, two, &head, read, 64) == 2);
	assert(head.python == 2 && head.native == 0 &&
	       memcmp(read, frames, 2 * sizeof(*read)) == 0);
	assert(reader_stack(&book.reader, most, &head, read, 65) == INTERN_FRAMES_MAX);
	assert(reader_stack(&book.reader, most, &head, read, 3) == 3);
	assert(reader_stack(&book.reader, 0, &head, read, 64) == 0);
	assert(reader_stack(&book.reader, 1000000, &head, read, 64) == 0);
	testing_book_deinit(&book);
}

UNIT(native_and_python_stacks_are_interned)
{
	struct book_frame frames[2 * INTERN_FRAMES_MAX], read[2 * INTERN_FRAMES_MAX];
	struct testing_book book;
	struct book_stack head;
	uint32_t mixed;

	testing_book_open(&book);
	memset(frames, 0, sizeof(frames));
	for (uint32_t i = 0; i < 2 * INTERN_FRAMES_MAX; i++)
		frames[i].value = i;
	assert(intern_stack_mixed(book.writer, frames, 0, 0) == 0);
	mixed = intern_stack_mixed(book.writer, frames, 2, 3);
	assert(mixed && intern_stack_mixed(book.writer, frames, 3, 2) != mixed);
	assert(reader_stack(&book.reader, mixed, &head, read, 64) == 5);
	assert(head.native == 2 && head.python == 3);
	assert(memcmp(read, frames, 5 * sizeof(*read)) == 0);
	/* The owner reads the same. */
	memset(read, 0xff, sizeof(read));
	assert(intern_frames(book.writer, mixed, &head, read, 64) == 5);
	assert(head.native == 2 && head.python == 3);
	assert(memcmp(read, frames, 5 * sizeof(*read)) == 0);
	assert(intern_frames(book.writer, mixed, &head, read, 3) == 3);
	assert(intern_frames(book.writer, 0, &head, read, 64) == 0);
	assert(intern_frames(book.writer, 1000000, &head, read, 64) == 0);
	mixed = intern_stack_mixed(book.writer, frames, INTERN_FRAMES_MAX - 1, 5);
	assert(reader_stack(&book.reader, mixed, &head, read, 128) == INTERN_FRAMES_MAX);
	assert(head.native == INTERN_FRAMES_MAX - 1 && head.python == 1);
	mixed = intern_stack_mixed(book.writer, frames, INTERN_FRAMES_MAX + 1, 5);
	assert(reader_stack(&book.reader, mixed, &head, read, 128) == INTERN_FRAMES_MAX);
	assert(head.native == INTERN_FRAMES_MAX && head.python == 0);
	testing_book_deinit(&book);
}

UNIT(modules_are_interned_with_generations)
{
	struct book_module one = {.base = 1, .path = 2, .build_id_length = 20}, two = {.base = 2};
	struct testing_book book;
	struct book_module read;
	uint32_t a, b;

	testing_book_open(&book);
	a = intern_module(book.writer, &one);
	b = intern_module(book.writer, &two);
	assert(a && b && a != b && intern_module(book.writer, &one) == a);
	assert(reader_module(&book.reader, a, &read) == 0 && memcmp(&read, &one, sizeof(one)) == 0);
	assert(reader_module(&book.reader, 0, &read) == -ENOENT);
	assert(reader_module(&book.reader, b + 1, &read) == -ENOENT);
	two.build_id_length = 33; /* longer than the field */
	assert(reader_module(&book.reader, intern_module(book.writer, &two), &read) == 0);
	assert(read.build_id_length == 0);
	testing_book_deinit(&book);
}

UNIT(shapes_are_interned_once)
{
	struct book_shape one = {.size_per_bank = 1, .banks = 2}, two = {.size_per_bank = 2};
	struct testing_book book;
	struct book_shape read;
	uint32_t a, b;

	testing_book_open(&book);
	a = intern_shape(book.writer, &one);
	b = intern_shape(book.writer, &two);
	assert(a && b && a != b && intern_shape(book.writer, &one) == a);
	read = reader_shape(&book.reader, a);
	assert(memcmp(&read, &one, sizeof(one)) == 0);
	read = reader_shape(&book.reader, b + 1);
	assert(read.banks == 0 && read.size_per_bank == 0);
	testing_book_deinit(&book);
}

/* Fills all 64 MiB with long strings, so that each segment ends in a gap. */
UNIT(a_full_arena_gives_no_id)
{
	const uint64_t size = BOOK_POOL_OFFSET + UINT64_C(80) * 1024 * 1024;
	char text[BOOK_PATH_MAX + 1];
	struct testing_book book;
	struct book_arena arena;
	uint32_t *ids = calloc(80000, sizeof(*ids));
	uint32_t count = 0;

	testing_book_init(&book, size, BOOK_RING_MIN);
	testing_book_write(&book);
	testing_book_read(&book);
	memset(text, '-', BOOK_PATH_MAX);
	text[BOOK_PATH_MAX] = '\0';
	do {
		snprintf(text, 16, "%015u", count);
		text[15] = '-';
		ids[count] = intern_string(book.writer, text, BOOK_PATH_MAX);
	} while (ids[count] && ++count < 80000);
	assert(count == BOOK_ARENA_SEGMENTS * (1048576 / 1032) - 1 ||
	       count == BOOK_ARENA_SEGMENTS * (1048576 / 1032));
	for (uint32_t i = 0; i < count; i += 101) {
		snprintf(text, 16, "%015u", i);
		text[15] = '-';
		assert(intern_string(book.writer, text, BOOK_PATH_MAX) == ids[i]);
		assert(ntest_is(&book, ids[i], text));
	}
	assert(reader_arena(&book.reader, BOOK_ARENA_STRINGS, &arena) == 0);
	assert(arena.lost == 1 && arena.used <= arena.capacity);
	assert(intern_string(book.writer, "short enough?", BOOK_NAME_MAX) == 0 ||
	       arena.used < arena.capacity);
	free(ids);
	testing_book_deinit(&book);
}

UNIT(interning_without_room_gives_no_id)
{
	struct testing_book book;
	struct book_arena arena;

	testing_book_init(&book, TESTING_SIZE, BOOK_RING_MIN);
	book.room = BOOK_PAGE;
	testing_book_write(&book);
	testing_book_read(&book);
	assert(intern_string(book.writer, "there is a page", BOOK_NAME_MAX) != 0);
	assert(intern_shape(book.writer, &(struct book_shape){.banks = 1}) == 0);
	assert(intern_shape(book.writer, &(struct book_shape){.banks = 1}) == 0);
	assert(reader_arena(&book.reader, BOOK_ARENA_SHAPES, &arena) == 0 && arena.lost == 2);
	assert(reader_arena(&book.reader, BOOK_ARENA_STRINGS, &arena) == 0 && arena.lost == 0);
	testing_book_deinit(&book);
}

#define NTEST_TEXTS 5000u

struct ntest_thread {
	struct writer *writer;
	pthread_t id;
	uint32_t ids[NTEST_TEXTS];
};

static void *ntest_thread(void *context)
{
	struct ntest_thread *thread = context;

	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < NTEST_TEXTS; i++) {
			char text[32];
			uint32_t id;

			snprintf(text, sizeof(text), "text number %u", i);
			id = intern_string(thread->writer, text, BOOK_NAME_MAX);
			assert(id && (round == 0 || thread->ids[i] == id));
			thread->ids[i] = id;
		}
	}
	return NULL;
}

UNIT(threads_get_the_same_id)
{
	struct ntest_thread *threads = calloc(3, sizeof(*threads));
	struct testing_book book;

	testing_book_open(&book);
	for (uint32_t i = 0; i < 3; i++) {
		threads[i].writer = book.writer;
		assert(pthread_create(&threads[i].id, NULL, ntest_thread, &threads[i]) == 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(threads[i].id, NULL);
	for (uint32_t i = 0; i < NTEST_TEXTS; i++) {
		char text[32];

		snprintf(text, sizeof(text), "text number %u", i);
		assert(threads[0].ids[i] == threads[1].ids[i]);
		assert(threads[0].ids[i] == threads[2].ids[i]);
		assert(ntest_is(&book, threads[0].ids[i], text));
	}
	free(threads);
	testing_book_deinit(&book);
}
