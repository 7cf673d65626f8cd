/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bytes of one read may arrive in any order, whatever pread() does today. Here they arrive from
 * the end, and the owner continues before the first eight, which hold the words that say whether
 * the rest is complete.
 */

#include "book/read/reader.h"

#include <errno.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/testing-memory.h"
#include "book/write/writer.h"

struct backward {
	struct book_file file;
	struct testing_memory memory;
	void (*step)(struct testing_memory *memory); /* NULL once it was made */
};

static int backward_read_at(struct book_file *file, uint64_t offset, void *buffer, size_t length)
{
	struct backward *backward = container_of(file, struct backward, file);
	const uint8_t *from = backward->memory.base + offset;
	size_t last = length > 8 ? 8 : 0;

	memcpy((uint8_t *)buffer + last, from + last, length - last);
	if (last && backward->step) {
		backward->step(&backward->memory);
		backward->step = NULL;
	}
	memcpy(buffer, from, last);
	return 0;
}

static const struct book_file_ops backward_ops = {.read_at = backward_read_at};

static void backward_init(struct backward *backward)
{
	testing_memory_init(&backward->memory, TESTING_MEMORY_SIZE);
	backward->file =
		(struct book_file){.ops = &backward_ops, .size = backward->memory.file.size};
	backward->step = NULL;
}

static void backward_write(struct testing_memory *memory)
{
	testing_memory_write(memory, BOOK_RING_MIN);
}

static void backward_mark(struct testing_memory *memory)
{
	writer_mark(memory->writer, 77, 0, 0);
}

static void backward_intern(struct testing_memory *memory)
{
	assert(intern_string(memory->writer, "a name", BOOK_NAME_MAX) != 0);
}

UNIT(a_book_that_is_being_made_is_not_taken_for_a_bad_one)
{
	struct backward backward;
	struct reader reader;

	backward_init(&backward);
	backward.step = backward_write;
	assert(reader_init(&reader, &backward.file) == READER_NOT_YET);
	backward_write(&backward.memory);
	backward.step = NULL;
	assert(reader_init(&reader, &backward.file) == 0);
	reader_deinit(&reader);
	testing_memory_deinit(&backward.memory);
}

UNIT(a_mark_is_not_put_together_from_two)
{
	struct backward backward;
	struct book_mark mark;
	struct reader reader;

	backward_init(&backward);
	backward_write(&backward.memory);
	assert(reader_init(&reader, &backward.file) == 0);
	for (uint32_t i = 0; i < BOOK_MARKS; i++)
		writer_mark(backward.memory.writer, 1, 0, 0);
	backward.step = backward_mark;
	assert(reader_mark(&reader, BOOK_MARKS, &mark) == -ENOENT);
	if (backward.step)
		backward_mark(&backward.memory);
	backward.step = NULL;
	assert(reader_mark(&reader, BOOK_MARKS, &mark) == 0 && mark.name == 77);
	reader_deinit(&reader);
	testing_memory_deinit(&backward.memory);
}

UNIT(a_string_that_is_counted_can_be_found)
{
	struct backward backward;
	struct book_arena arena;
	struct reader reader;

	backward_init(&backward);
	backward_write(&backward.memory);
	assert(reader_init(&reader, &backward.file) == 0);
	backward.step = backward_intern;
	assert(reader_arena(&reader, BOOK_ARENA_STRINGS, &arena) == 0);
	assert(!backward.step && arena.used > 8 && arena.directory[0] != 0);
	reader_deinit(&reader);
	testing_memory_deinit(&backward.memory);
}
