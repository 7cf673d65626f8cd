/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks in readable form: one line, outermost frame first, as old clients sent them. Python frames
 * have names in the book. Native ones get theirs from a namer; without one, or if it knows none,
 * the file and the address in it are shown. model/sites/frames.h describes the format of a line.
 *
 * The line is written from its end, because the end is what must not be cut: the caller that asked
 * for the memory.
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
#include "model/sites/frames.h"
#include "model/sites/namer.h"
#include "model/snapshot-request.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define BOOK_STACK_TEXT POOL_TEXT_MAX
#define BOOK_STACKS_NEAR 16u /* slots that a text may occupy */
#define BOOK_FRAME_TEXT 2048u

static const char book_arrow[] = FRAMES_ARROW;
static const char book_more[] = "..."; /* replaces frames that did not fit */

struct book_line {
	char text[BOOK_STACK_TEXT];
	size_t start; /* the text extends from here to the end */
	bool full;
	bool is_cut;             /* the callers of the next frame could not be found */
	const char *skip_frames; /* of the book; NULL = none */
};

static void book_line_put(struct book_line *line, const char *text, size_t length)
{
	line->start -= length;
	memcpy(line->text + line->start, text, length);
}

/* Puts a frame in front of the line. @module: NULL = none. */
static void book_line_add(struct book_line *line, const struct namer_name *name, const char *module)
{
	char text[BOOK_FRAME_TEXT];
	size_t arrow = line->start < sizeof(line->text) ? sizeof(book_arrow) - 1 : 0;
	const char *function = name->function ? name->function : "?";
	const struct frame frame = {
		.function = name->function, .file = name->file, .module = module};
	const char *cut = line->is_cut ? FRAMES_CUT : "";
	const char *mark = frame_patterns_match(line->skip_frames, &frame) ? FRAMES_SKIPPED : "";
	size_t length;
	int n;

	if (line->full || (!name->function && !name->file))
		return;
	if (line->start == sizeof(line->text) && frames_is_reporting(name->function, module))
		return;
	if (name->file)
		n = snprintf(text, sizeof(text), "%s:%" PRIu32 ":%s%s%s%s%s", name->file,
			     name->line, function, mark, cut, module ? FRAMES_AT : "",
			     module ? module : "");
	else
		n = snprintf(text, sizeof(text), "%s%s%s%s%s", function, mark, cut,
			     module ? FRAMES_AT : "", module ? module : "");
	length = n < 0 ? 0 : bits_min((size_t)n, sizeof(text) - 1);
	/* Always leave room to say that something was cut. */
	if (length + 2 * sizeof(book_arrow) + sizeof(book_more) > line->start) {
		line->full = true;
		length = sizeof(book_more) - 1;
		memcpy(text, book_more, length);
	}
	book_line_put(line, book_arrow, arrow);
	book_line_put(line, text, length);
}

static void book_line_add_python(struct book_line *line, struct book_reading *reading,
				 const struct book_frame *frame)
{
	struct namer_name name = {
		.function = book_text(reading, (uint32_t)(frame->value >> 32)),
		.file = book_text(reading, (uint32_t)frame->value),
		.line = frame->module,
	};
	char text[BOOK_FRAME_TEXT];

	if (frame->flags & BOOK_FRAME_APPROXIMATE) {
		(void)snprintf(text, sizeof(text), "%s" FRAMES_APPROXIMATE,
			       name.function ? name.function : "?"); /* a name is far shorter */
		name.function = text;
	}
	book_line_add(line, &name, NULL);
}

/* A frame without a name; @place: NULL = its file is not known. */
static void book_line_add_place(struct book_line *line, const char *module, uint64_t address,
				const struct namer_place *place)
{
	char text[BOOK_FRAME_TEXT], id[2 * sizeof(((struct book_module *)0)->build_id) + 1] = "";
	const struct namer_name name = {.function = text};

	for (size_t i = 0; place && i < place->build_id_length; i++)
		(void)snprintf(id + 2 * i, 3, "%02x", place->build_id[i]); /* fits */
	(void)snprintf(text, sizeof(text), "%s+0x%" PRIx64 "%s%s%s", module ? module : "?", address,
		       *id ? FRAMES_BUILD : "", id, *id ? ")" : ""); /* cut if too long */
	book_line_add(line, &name, module);
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
		.pid = book->alive ? book->owner.pid : 0,
		.start_ticks = book->alive ? book->owner.start_ticks : 0,
		.base = module->base,
		.user = book_maker(book),
		.book = scan_book_number(book->device, book->inode, book->owner.start_ticks),
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

static void book_line_add_native(struct book_line *line, struct book_reading *reading,
				 const struct book_frame *frame)
{
	struct namer *namer = reading->request->namer;
	struct namer_name names[NAMER_NAMES_MAX];
	struct book_module module;
	size_t count = 0;
	struct namer_place place;

	if (book_module(reading, frame->module, &module) < 0) {
		book_line_add_place(line, NULL, frame->value, NULL);
		return;
	}
	if (book_place(reading->book, frame, &module, book_text(reading, module.path), &place) &&
	    namer && !line->full) {
		uint64_t from = clock_ns(CLOCK_MONOTONIC_COARSE);

		count = namer->find(namer, &place, names, NAMER_NAMES_MAX);
		/*
		 * Namers have limits of their own, and their time must not be charged to the book.
		 * Most answers come faster than a precise clock: ticks are right on average.
		 */
		reading->deadline += clock_ns(CLOCK_MONOTONIC_COARSE) - from;
	}
	/* Of inlined functions the last is the outermost. */
	for (size_t i = 0; i < count; i++) {
		line->is_cut = i + 1 == count && frame->flags & BOOK_FRAME_CUT;
		book_line_add(line, &names[i], book_module_name(place.path));
	}
	if (count == 0) {
		line->is_cut = frame->flags & BOOK_FRAME_CUT;
		book_line_add_place(line, book_module_name(place.path), frame->value, &place);
	}
	line->is_cut = false;
}

/*
 * The cache entry for a stack: in a free slot if there is one nearby, else in place of another.
 * Composing a text costs many reads, and most buffers have one of a few stacks. NULL: no memory.
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

const char *book_stack_text(struct book_reading *reading, uint32_t id)
{
	const char *text = NULL;
	struct book_frame frames[BOOK_STACK_FRAMES];
	uint8_t order[BOOK_STACK_FRAMES];
	struct book_line line;
	struct book_stack head;
	size_t count;
	struct book_stack_known *known;

	if (id == 0)
		return NULL;
	known = book_stack_known(reading, id);
	if (known && known->id == id)
		return known->text;
	line.start = sizeof(line.text);
	line.full = line.is_cut = false;
	line.skip_frames = book_text(reading, reading->book->reader.header.skip_frames);
	count = reader_stack(&reading->book->reader, id, &head, frames, BOOK_STACK_FRAMES);
	count = count ? book_merge(reading, frames, head.native, count, order) : 0;
	for (size_t i = 0; i < count; i++) {
		const struct book_frame *frame = &frames[order[i]];

		if (frame->flags & BOOK_FRAME_PYTHON)
			book_line_add_python(&line, reading, frame);
		else
			book_line_add_native(&line, reading, frame);
	}
	if (line.start < sizeof(line.text))
		text = snapshot_text(reading->snapshot, line.text + line.start,
				     sizeof(line.text) - line.start);
	if (known)
		*known = (struct book_stack_known){.id = id, .text = text};
	return text;
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
