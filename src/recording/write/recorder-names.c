/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names for native frames, so that a recording can be read where the programs are not. A tour
 * through the book's stacks asks for each frame; what is answered is noted on the way.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/emit.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/pool.h"
#include "model/sites/namer.h"
#include "recording/write/recorder-private.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

#define NAMES_STACKS 256u /* in a step of the tour */
#define NAMES_MAX 262144u /* places of a book; of more only these get names */

struct names_place {
	const char *path; /* these all in the pool */
	const char *build_id;
	uint64_t address;
	uint32_t count;
	struct namer_name *names;
};

/* A namer between the tour and the real one. */
struct names {
	struct namer namer;
	struct namer *real;
	struct pool texts;
	struct names_place *places;
	size_t count, capacity;
	struct map asked; /* hashes, so that a place is asked for once */
};

static uint64_t names_hash(const struct namer_place *place)
{
	uint64_t path = hash_bytes(place->path, strlen(place->path));
	uint64_t id = hash_bytes(place->build_id, place->build_id_length);

	return hash_fold(path ^ place->address, id ^ HASH_K1);
}

/* Whether this place is asked for the first time. */
static bool names_is_new(struct names *names, uint64_t hash)
{
	uint32_t before = names->asked.count, number;

	return map_add(&names->asked, hash, 0, &number) == 0 && number > before;
}

static const char *names_text(struct names *names, const char *text)
{
	return text ? pool_text(&names->texts, text, strlen(text)) : NULL;
}

static const char *names_build_id(struct names *names, const struct namer_place *place)
{
	char text[2 * sizeof(((struct book_module *)NULL)->build_id) + 1] = "";
	uint32_t length = (uint32_t)bits_min(place->build_id_length, (sizeof(text) - 1) / 2);

	for (uint32_t i = 0; i < length; i++)
		(void)snprintf(text + (size_t)2 * i, 3, "%02x", place->build_id[i]);
	return names_text(names, text);
}

static void names_note(struct names *names, const struct namer_place *place,
		       const struct namer_name *found, size_t count)
{
	struct namer_name *copy = malloc(count * sizeof(*copy));
	struct names_place *places =
		array_grow(names->places, &names->capacity, names->count + 1, sizeof(*places));

	if (places)
		names->places = places;
	if (!places || !copy) {
		free(copy); /* one name less */
		return;
	}
	for (size_t i = 0; i < count; i++)
		copy[i] = (struct namer_name){
			.function = names_text(names, found[i].function),
			.file = names_text(names, found[i].file),
			.line = found[i].line,
		};
	names->places[names->count++] = (struct names_place){
		.path = names_text(names, place->path),
		.build_id = names_build_id(names, place),
		.address = place->address,
		.count = (uint32_t)count,
		.names = copy,
	};
}

static size_t names_find(struct namer *namer, const struct namer_place *place,
			 struct namer_name *ret_names, size_t max)
{
	struct names *names = container_of(namer, struct names, namer);
	size_t count;

	if (!place->path || names->count >= NAMES_MAX || !names_is_new(names, names_hash(place)))
		return 0;
	count = names->real->find(names->real, place, ret_names, max);
	if (count > 0)
		names_note(names, place, ret_names, count);
	return count;
}

static int names_compare(const void *left, const void *right)
{
	const struct names_place *a = left, *b = right;
	int order = strcmp(a->path ? a->path : "", b->path ? b->path : "");

	if (order == 0)
		order = strcmp(a->build_id ? a->build_id : "", b->build_id ? b->build_id : "");
	return order ? order : bits_compare(a->address, b->address);
}

static void names_emit_place(struct emit *json, const struct names_place *place)
{
	emit_open_object(json, NULL);
	emit_u64(json, "address", place->address);
	emit_open_array(json, "frames");
	for (uint32_t i = 0; i < place->count; i++) {
		emit_open_object(json, NULL);
		emit_string(json, "function", place->names[i].function);
		emit_string(json, "file", place->names[i].file);
		emit_u64(json, "line", place->names[i].line);
		emit_close_object(json);
	}
	emit_close_array(json);
	emit_close_object(json);
}

/* Files, each with its places. */
static void names_emit(struct emit *json, const struct names *names)
{
	const struct names_place *before = NULL;

	emit_open_object(json, NULL);
	emit_open_array(json, "files");
	for (size_t i = 0; i < names->count; i++) {
		const struct names_place *place = &names->places[i];

		if (!before || before->path != place->path || before->build_id != place->build_id) {
			if (before) {
				emit_close_array(json);
				emit_close_object(json);
			}
			emit_open_object(json, NULL);
			emit_string(json, "path", place->path);
			emit_string(json, "build_id", place->build_id);
			emit_open_array(json, "names");
		}
		names_emit_place(json, place);
		before = place;
	}
	if (before) {
		emit_close_array(json);
		emit_close_object(json);
	}
	emit_close_array(json);
	emit_close_object(json);
}

static int names_write(struct recorder *recorder, struct recorder_book *book, struct names *names)
{
	struct recording_entry entry = recorder_entry(book, RECORDING_NAMES, RECORDING_NONE);
	struct chunk_part part = {0};
	char *text = NULL;
	FILE *stream = open_memstream(&text, &part.length);
	struct emit json;
	int r;

	if (!stream)
		return -ENOMEM;
	qsort(names->places, names->count, sizeof(*names->places), names_compare);
	json = EMIT_INIT(stream);
	names_emit(&json, names);
	r = fclose(stream) == 0 ? 0 : -ENOMEM;
	part.bytes = text;
	entry.count = (uint32_t)names->count;
	if (r == 0)
		r = chunk_writer_add(recorder->writer, &entry, &part, 1);
	free(text);
	return r == -EMSGSIZE ? 0 : r; /* without names rather than without the rest */
}

int recorder_names_write(struct recorder *recorder, struct recorder_book *book, struct namer *namer)
{
	struct names names = {.namer.find = names_find, .real = namer, .texts = POOL_NULL};
	int r = NAMES_STACKS;

	if (!namer)
		return 0;
	while (r == (int)NAMES_STACKS)
		r = stacks_tour(book->book, &names.namer, &names.texts, NAMES_STACKS,
				&book->next_stack);
	/* A book whose stacks cannot be read has no names. */
	r = names.count > 0 ? names_write(recorder, book, &names) : 0;
	for (size_t i = 0; i < names.count; i++)
		free(names.places[i].names);
	free(names.places);
	map_deinit(&names.asked);
	pool_deinit(&names.texts);
	return r;
}
