/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The stacks of a book with the names of their frames. Python frames have names in the book. Native ones get
 * theirs from a namer; without one, or if it knows none, the file and the address in it are shown.
 *
 * As text a stack has a limit. It is cut at the outer end, because the caller that asked for the memory
 * is what must stay.
 */

#include "source/books/book-private.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/hash.h"
#include "model/sites/frame-patterns.h"
#include "model/sites/namer.h"
#include "model/sites/stack.h"
#include "model/snapshot-request.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define BOOK_STACKS_NEAR 16u /* slots that a stack may occupy */
#define BOOK_FRAME_TEXT 2048u

/* A stack that is being read. */
struct book_names {
	struct stack_maker maker;
	size_t room; /* that its line has */
	bool is_full;
	const char *skip_frames; /* of the book; NULL = none */
};

/* Adds the next frame outwards. */
static void book_names_add(struct book_names *names, struct frame frame)
{
	static const size_t arrow = sizeof(STACK_ARROW);
	bool is_first = !names->maker.stack;
	size_t length;

	if (names->is_full || (!frame.function && !frame.file && !frame.is_approximate))
		return;
	if (is_first && frame_is_reporting(frame.function, frame.module))
		return;
	frame.is_skipped |= frame_patterns_match(names->skip_frames, &frame);
	length = frame_line(&frame, NULL, 0);
	/* Always leave room to say that something was cut. */
	names->is_full = length + 2 * arrow + sizeof("...") > names->room;
	if (names->is_full)
		frame = (struct frame){.function = "..."};
	else
		names->room -= length + (is_first ? 0 : arrow - 1);
	stack_maker_add(&names->maker, &frame);
}

/* A frame without a name; @place: NULL = its file is not known. */
static void book_names_add_place(struct book_names *names, const struct namer_place *place,
				 struct frame frame, uint64_t address)
{
	char text[BOOK_FRAME_TEXT], id[2 * sizeof(((struct book_module *)0)->build_id) + 1] = "";

	for (size_t i = 0; place && i < place->build_id_length; i++)
		(void)snprintf(id + 2 * i, 3, "%02x", place->build_id[i]); /* fits */
	(void)snprintf(text, sizeof(text), "%s+0x%" PRIx64, frame.module ? frame.module : "?",
		       address); /* cut if too long */
	frame.function = text;
	frame.build_id = *id ? id : NULL;
	book_names_add(names, frame);
}

/* The last part of a path; NULL if unknown. */
static const char *book_module_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (slash)
		path = slash + 1;
	return path && *path ? path : NULL;
}

bool book_place(const struct scan_book *book, const struct book_frame *frame,
		const struct book_module *module, const char *path, struct namer_place *ret_place)
{
	*ret_place = (struct namer_place){
		.path = path,
		.build_id = module->build_id,
		.build_id_length =
			(uint32_t)bits_min(module->build_id_length, sizeof(module->build_id)),
		.process = book->alive ? book->owner.id : (struct process_id){0},
		.base = module->base,
		.user = book_maker(book),
		.book = scan_book_number(book->id, book->owner.id.start_ticks),
		/* The return address may already belong to another line, or another function. */
		.address = frame->value > 0 ? frame->value - 1 : 0,
	};
	/*
	 * A container's file at this path is gone; ours may be a different one, and only a build id
	 * can tell.
	 */
	ret_place->is_lost = !book->alive && *book->container && ret_place->build_id_length == 0;
	return path != NULL;
}

static void book_names_add_native(struct book_names *names, struct book_reading *reading,
				  const struct book_frame *from)
{
	struct namer *namer = reading->request->namer;
	struct namer_name found[NAMER_NAMES_MAX];
	struct frame frame = {.is_cut = from->flags & BOOK_FRAME_CUT};
	struct book_module module;
	struct namer_place place;
	size_t count = 0;

	if (book_module(reading, from->module, &module) < 0) {
		frame.is_cut = false;
		book_names_add_place(names, NULL, frame, from->value);
		return;
	}
	if (book_place(reading->book, from, &module, book_text(reading, module.path), &place) &&
	    namer && !names->is_full) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC_COARSE);

		count = namer->find(namer, &place, found, NAMER_NAMES_MAX);
		/*
		 * Namers have limits of their own, and their time must not be charged to the book.
		 * Most answers come faster than a precise clock: ticks are right on average.
		 */
		reading->deadline += clock_ns(CLOCK_MONOTONIC_COARSE) - start;
	}
	frame.module = book_module_name(place.path);
	if (count == 0)
		book_names_add_place(names, &place, frame, from->value);
	/* Of inlined functions the last is the outermost. */
	for (size_t i = 0; i < count; i++) {
		frame.function = found[i].function;
		frame.file = found[i].file;
		frame.line = found[i].line;
		frame.is_cut = i + 1 == count && from->flags & BOOK_FRAME_CUT;
		book_names_add(names, frame);
	}
}

/*
 * The cache entry for a stack: in a free slot if there is one nearby, else in place of another.
 * Reading a stack costs many reads, and most buffers have one of a few stacks. NULL: no memory.
 */
static struct book_stack_known *book_stack_known(struct book_reading *reading, uint32_t id)
{
	uint64_t hash = hash_u64(id);

	if (!reading->stacks)
		reading->stacks = calloc(BOOK_STACKS, sizeof(*reading->stacks));
	for (uint64_t i = 0; reading->stacks && i < BOOK_STACKS_NEAR; i++) {
		struct book_stack_known *known = &reading->stacks[(hash + i) % BOOK_STACKS];

		if (known->id == 0 || known->id == id)
			return known;
	}
	return reading->stacks ? &reading->stacks[hash % BOOK_STACKS] : NULL;
}

/* Frames of old clients that are not of Python's form have all of their text as the function. */
static void book_names_add_python(struct book_names *names, struct book_reading *reading,
				  const struct book_frame *from)
{
	struct frame frame = {
		.function = book_text(reading, (uint32_t)(from->value >> 32)),
		.file = book_text(reading, (uint32_t)from->value),
		.line = from->module,
		.is_approximate = from->flags & BOOK_FRAME_APPROXIMATE,
	};
	char text[BOOK_FRAME_TEXT];

	if (frame.function && !frame.file) {
		(void)snprintf(text, sizeof(text), "%s", frame.function);
		frame = frame_parse(text);
	}
	book_names_add(names, frame);
}

static const struct stack *book_stack_read(struct book_reading *reading, uint32_t id)
{
	struct book_frame frames[BOOK_STACK_FRAMES];
	uint8_t order[BOOK_STACK_FRAMES];
	struct book_stack head;
	struct book_names names = {
		.maker = STACK_MAKER_INIT(&reading->snapshot->texts),
		.room = POOL_TEXT_MAX,
		.skip_frames = book_text(reading, reading->book->reader.header.skip_frames),
	};
	size_t count = reader_stack(&reading->book->reader, id, &head, frames, BOOK_STACK_FRAMES);

	count = count ? book_merge(reading, frames, head.native, count, order) : 0;
	for (size_t i = 0; i < count; i++) {
		const struct book_frame *frame = &frames[order[i]];

		if (frame->flags & BOOK_FRAME_PYTHON)
			book_names_add_python(&names, reading, frame);
		else
			book_names_add_native(&names, reading, frame);
	}
	return stack_maker_finish(&names.maker);
}

const struct stack *book_stack(struct book_reading *reading, uint32_t id)
{
	struct book_stack_known *known;
	const struct stack *stack;

	if (id == 0)
		return NULL;
	known = book_stack_known(reading, id);
	if (known && known->id == id)
		return known->stack;
	stack = book_stack_read(reading, id);
	if (known)
		*known = (struct book_stack_known){.id = id, .stack = stack};
	return stack;
}

static uint64_t book_key_text(uint64_t key, const char *text)
{
	return hash_fold(key ^ HASH_K0, text ? hash_bytes(text, strlen(text)) : HASH_K1);
}

/* Of native code the place in its file, which is known by its build id, or else by its path. */
static uint64_t book_key_frame(struct book_reading *reading, uint64_t key,
			       const struct book_frame *frame)
{
	struct book_module module;

	if (frame->flags & BOOK_FRAME_PYTHON) {
		key = book_key_text(key, book_text(reading, (uint32_t)(frame->value >> 32)));
		key = book_key_text(key, book_text(reading, (uint32_t)frame->value));
		return hash_fold(key ^ HASH_K0, HASH_K1 + frame->module);
	}
	if (book_module(reading, frame->module, &module) == 0) {
		size_t length = bits_min(module.build_id_length, sizeof(module.build_id));

		key = length ? hash_fold(key ^ HASH_K0, hash_bytes(module.build_id, length))
			     : book_key_text(key, book_text(reading, module.path));
	}
	return hash_fold(key ^ HASH_K0, HASH_K1 + frame->value);
}

uint64_t book_stack_key(struct book_reading *reading, uint32_t id)
{
	struct book_frame frames[BOOK_STACK_FRAMES];
	struct book_stack head;
	uint64_t key = HASH_K1;
	size_t count;

	if (id == 0)
		return 0;
	count = reader_stack(&reading->book->reader, id, &head, frames, BOOK_STACK_FRAMES);
	for (size_t i = 0; i < count; i++)
		key = book_key_frame(reading, key, &frames[i]);
	return count ? key | 1 : 0;
}
