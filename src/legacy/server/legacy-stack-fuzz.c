/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arbitrary bytes as the stack of an old client. The book must hold a stack with one frame per
 * part, each with a function, and the same bytes must always give the same stack.
 */

#include "legacy/server/legacy-stack.h"

#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "book/write/writer.h"
#include "legacy/wire/legacy.h"

#define FUZZ_SIZE (BOOK_POOL_OFFSET + 256u * BOOK_UNIT)

static int fuzz_reserve(void *context, uint64_t offset, uint64_t length)
{
	(void)context;
	(void)length;
	return offset < FUZZ_SIZE ? 0 : -1;
}

static struct writer *fuzz_writer(void)
{
	static const struct writer_identity identity = {.pid = 1, .source = BOOK_SOURCE_SOCKET};
	struct writer_config config = {
		.size = FUZZ_SIZE,
		.room = FUZZ_SIZE,
		.ring_events = BOOK_RING_MIN,
		.clock = BOOK_CLOCK_MONOTONIC,
		.reserve = fuzz_reserve,
		.identity = &identity,
	};
	struct writer *writer = NULL;

	config.base = mmap(NULL, FUZZ_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (config.base == MAP_FAILED || writer_new(&writer, &config) < 0)
		__builtin_trap();
	return writer;
}

/* As stored in the book: the first unit of the arena holds everything from one run. */
static const struct book_stack *fuzz_stack(const struct writer *writer, uint32_t id)
{
	const struct book_arena *arena = writer->intern.arenas[BOOK_ARENA_STACKS].page;

	return (const struct book_stack *)(const void *)(writer->base +
							 book_unit_offset(arena->directory[0]) +
							 (uint64_t)id * sizeof(struct book_stack));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct writer *writer = fuzz_writer();
	const char *text = (const char *)data;
	const struct book_stack *stack;
	const struct book_frame *frames;
	size_t length, parts = 0;
	uint32_t id;

	/* The decoder ends a text at its first NUL, so it never passes one on. */
	length = strnlen(text, bits_min(size, LEGACY_STACK_SIZE));
	id = legacy_stack_intern(writer, text, length);
	if (legacy_stack_intern(writer, text, length) != id)
		__builtin_trap();
	for (size_t i = 0; i < length; i++)
		parts += text[i] == '>';
	if (id) {
		stack = fuzz_stack(writer, id);
		frames = (const struct book_frame *)(const void *)(stack + 1);
		if (stack->native != 0 || stack->python == 0 || stack->python > parts + 1)
			__builtin_trap();
		for (size_t i = 0; i < stack->python; i++) {
			if (frames[i].value >> 32 == 0 || frames[i].flags != 1)
				__builtin_trap();
		}
	} else if (length > 0 && strncmp(text, " -> ", bits_min(length, 4)) != 0) {
		__builtin_trap();
	}
	(void)munmap(writer->base, FUZZ_SIZE); /* a whole mapping of ours: cannot fail */
	writer_free(writer);
	return 0;
}
