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
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/pool.h"
#include "model/sites/namer.h"
#include "recording/format/texts.h"
#include "recording/write/recorder-private.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

#define NAMES_STACKS 256u /* in a step of the tour */
#define NAMES_MAX 262144u /* places of a book; of more only these get names */

/* A namer between the tour and the real one. */
struct names {
	struct namer namer;
	struct namer *real;
	struct pool texts;
	struct recording_place *places;
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
	struct namer_name copy[NAMER_NAMES_MAX] = {{NULL}};
	struct recording_place *places =
		array_grow(names->places, &names->capacity, names->count + 1, sizeof(*places));

	if (!places)
		return; /* one name less */
	names->places = places;
	count = bits_min(count, ARRAY_SIZE(copy));
	for (size_t i = 0; i < count; i++) {
		copy[i].function = names_text(names, found[i].function);
		copy[i].file = names_text(names, found[i].file);
		copy[i].line = found[i].line;
	}
	places += names->count;
	*places = (struct recording_place){
		.path = names_text(names, place->path),
		.build_id = names_build_id(names, place),
		.address = place->address,
		.names = pool_block(&names->texts, copy, count * sizeof(*copy)),
		.count = count,
	};
	names->count += places->names != NULL;
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
	const struct recording_place *a = left, *b = right;
	int order = strcmp(a->path ? a->path : "", b->path ? b->path : "");

	if (order == 0)
		order = strcmp(a->build_id ? a->build_id : "", b->build_id ? b->build_id : "");
	return order ? order : bits_compare(a->address, b->address);
}

/* Files, each with its places. 0 or -ENOMEM. */
static int names_write(struct recorder *recorder, struct recorder_book *book, struct names *names)
{
	CLEANUP_FREE struct recording_names_file *files = calloc(names->count, sizeof(*files));
	struct recording_entry entry = recorder_entry(book, RECORDING_NAMES, RECORDING_NONE);
	struct recording_names sorted = {.files = files};
	int r;

	if (!files)
		return -ENOMEM;
	qsort(names->places, names->count, sizeof(*names->places), names_compare);
	for (const struct recording_place *place = names->places;
	     place < names->places + names->count; place++) {
		struct recording_names_file *file = files + sorted.count;

		if (sorted.count == 0 || file[-1].path != place->path ||
		    file[-1].build_id != place->build_id) {
			*file = (struct recording_names_file){place->path, place->build_id, place};
			sorted.count++;
		}
		files[sorted.count - 1].count++;
	}
	entry.count = (uint32_t)names->count;
	r = recorder_put_text(recorder, &entry, recording_names_fields, &sorted);
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
	free(names.places);
	map_deinit(&names.asked);
	pool_deinit(&names.texts);
	return r;
}
