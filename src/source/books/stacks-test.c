/* SPDX-License-Identifier: Apache-2.0 */

/* Many buffers with few stacks: every text is right, and the namer is not asked twice. */

#include "source/books/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "model/sites/namer.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define BUFFERS 10000u
#define STACKS 500u
#define FRAMES 16u

static struct testing_book book;
static struct scan_book scan;
static uint32_t ids[STACKS];

/* Names an address after itself, and counts. */
static struct counting {
	struct namer namer;
	uint64_t asked;
	int width; /* of a name, at least */
	char text[1024];
} counting;

static size_t counting_find(struct namer *namer, const struct namer_place *place,
			    struct namer_name *ret_names, size_t max)
{
	assert(namer == &counting.namer && max > 0);
	assert(strcmp(place->path, "/lib/libplay.so") == 0 && place->process.pid == 77);
	counting.asked++;
	(void)snprintf(counting.text, sizeof(counting.text), "f%0*" PRIu64, counting.width,
		       place->address);
	ret_names[0] = (struct namer_name){.function = counting.text, .file = "a.c", .line = 7};
	return 1;
}

/* Frame @i of a stack returns to just after address i * 10000 + the stack's number. */
static uint32_t make_stack(uint32_t module, uint32_t number)
{
	struct book_frame frames[FRAMES];

	for (uint32_t i = 0; i < FRAMES; i++)
		frames[i] = (struct book_frame){
			.value = i * 10000 + number + 1,
			.module = module,
		};
	return intern_stack_mixed(book.writer, frames, FRAMES, 0);
}

static void begin(void)
{
	struct book_module module = {.base = 0x400000, .size = 0x10000};

	counting = (struct counting){.namer = {.find = counting_find}};
	testing_book_open(&book);
	module.path = intern_string(book.writer, "/lib/libplay.so", BOOK_PATH_MAX);
	for (uint32_t i = 0; i < STACKS; i++)
		ids[i] = make_stack(intern_module(book.writer, &module), i);
	for (uint32_t i = 0; i < BUFFERS; i++) {
		struct shard_buffer buffer = testing_buffer(0, 0x1000 * (i + UINT64_C(1)), 64);

		/* An order that defeats a simple cache. */
		buffer.stack = ids[i * 7919 % STACKS];
		writer_alloc(book.writer, 0, &buffer, 0);
	}
	scan = (struct scan_book){
		.owner = {.id.pid = 77, .ns_pid = 1, .comm = "many"},
		.id.inode = 100,
		.alive = true,
	};
	assert(reader_init(&scan.reader, &book.file.file) == 0);
}

static void end(void)
{
	reader_deinit(&scan.reader);
	testing_book_deinit(&book);
}

static bool is_stack(const struct stack *stack, uint32_t number)
{
	char outermost[64], innermost[64];
	const char *text = testing_line(stack);
	size_t length = strlen(text);

	(void)snprintf(outermost, sizeof(outermost), "a.c:7:f%u @ libplay.so -> ",
		       (FRAMES - 1) * 10000 + number);
	(void)snprintf(innermost, sizeof(innermost), " -> a.c:7:f%u @ libplay.so", number);
	return strncmp(text, outermost, strlen(outermost)) == 0 && length > strlen(innermost) &&
	       strcmp(text + length - strlen(innermost), innermost) == 0;
}

UNIT(each_stack_of_a_snapshot_is_asked_for_once)
{
	const struct snapshot_request request = {.buffers = true, .namer = &counting.namer};
	struct snapshot *snapshot = snapshot_new(1);
	struct view view = VIEW_NULL;

	begin();
	assert(book_collect(&scan, &request, &view, snapshot) == 0);
	assert(snapshot->buffer_count == BUFFERS);
	for (uint32_t i = 0; i < BUFFERS; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		uint32_t number = (uint32_t)(buffer->address / 0x1000 - 1);

		assert(is_stack(buffer->stack, number * 7919 % STACKS));
	}
	assert(counting.asked == STACKS * FRAMES);
	view_deinit(&view);
	snapshot_free(snapshot);
	end();
}

/* In pieces, including stacks that are added later. */
/* A frame has a line of 520 bytes, and an arrow of 4 to the next. */
UNIT(a_stack_that_is_too_long_says_that_it_was_cut)
{
	const struct snapshot_request request = {.buffers = true, .namer = &counting.namer};
	struct snapshot *snapshot = snapshot_new(1);
	struct view view = VIEW_NULL;
	const struct stack *stack;

	begin();
	counting.width = 500;
	assert(book_collect(&scan, &request, &view, snapshot) == 0);
	stack = snapshot->buffers[0].stack;
	assert(frame_line(&stack->frames[0], NULL, 0) == 520);
	assert(stack->count == 8 && strcmp(stack->frames[7].function, "...") == 0);
	assert(strlen(testing_line(stack)) == 7 * 524 + 3);
	view_deinit(&view);
	snapshot_free(snapshot);
	end();
}

UNIT(a_tour_sees_each_stack_once)
{
	struct pool texts = POOL_NULL;
	uint32_t next = 0, before;
	int seen = 0, n;

	begin();
	do {
		n = stacks_tour(&scan, &counting.namer, &texts, 64, &next);
		assert(n >= 0);
		seen += n;
	} while (n == 64);
	assert(seen == STACKS && counting.asked == STACKS * FRAMES);
	before = next;
	assert(stacks_tour(&scan, &counting.namer, &texts, 64, &next) == 0 && next == before);
	assert(make_stack(1, 9999));
	assert(stacks_tour(&scan, &counting.namer, &texts, 64, &next) == 1);
	assert(counting.asked == (STACKS + 1) * FRAMES);
	pool_deinit(&texts);
	end();
}

UNIT(stacks_have_texts_for_watch)
{
	struct stacks *stacks = NULL;

	begin();
	assert(stacks_new(&stacks, &scan, &counting.namer) == 0);
	assert(!stacks_get(stacks, 0) && !stacks_get(stacks, 0xffffff));
	for (uint32_t i = 0; i < BUFFERS; i++)
		assert(is_stack(stacks_get(stacks, ids[i % STACKS]), i % STACKS));
	/* Texts are discarded now and then, so that memory does not grow without bound. */
	assert(counting.asked > STACKS * FRAMES && counting.asked <= 3 * STACKS * FRAMES);
	assert(!stacks_free(stacks));
	end();
}
