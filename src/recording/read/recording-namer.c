/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names for native frames, from the file. They are read when the first frame of a book is asked
 * for. A book may lie about its files, so the names of one are never used for another.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document-take.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/pool.h"
#include "model/sites/namer.h"
#include "recording/format/texts.h"
#include "recording/read/recording-private.h"
#include "source/books/scan.h"

/* Of a file that anybody may have written. */
#define NAMER_PLACES_MAX (UINT32_C(1) << 20)

struct namer_known {
	uint32_t first, count;
};

struct recording_namer {
	struct namer namer;
	struct recording *recording;
	bool *has_read; /* of each book */
	struct pool texts;
	struct namer_name *names;
	size_t name_count, name_capacity;
	struct map places; /* by hash of book, file and address */
	struct namer_known *known;
	size_t known_capacity;
};

void recording_namer_free(struct recording_namer *namer)
{
	if (!namer)
		return;
	free(namer->has_read);
	free(namer->names);
	map_deinit(&namer->places);
	free(namer->known);
	pool_deinit(&namer->texts);
	free(namer);
}

static uint64_t namer_key(uint64_t book, const char *path, const char *build_id, uint64_t address)
{
	uint64_t file = hash_fold(hash_bytes(path, strlen(path)) ^ HASH_K0,
				  hash_bytes(build_id, strlen(build_id)) ^ HASH_K1);

	return hash_fold(file ^ hash_u64(book), hash_u64(address) ^ HASH_K0);
}

static const char *namer_text(struct recording_namer *namer, const char *text)
{
	return text ? pool_text(&namer->texts, text, strlen(text)) : NULL;
}

static int namer_add(struct recording_namer *namer, uint64_t key,
		     const struct recording_place *place)
{
	size_t count = bits_min(place->count, NAMER_NAMES_MAX);
	struct namer_known *known;
	struct namer_name *names;
	uint32_t number;

	if (count == 0 || namer->places.count >= NAMER_PLACES_MAX)
		return 0;
	names = array_grow(namer->names, &namer->name_capacity, namer->name_count + count,
			   sizeof(*names));
	if (!names)
		return -ENOMEM;
	namer->names = names;
	known = array_grow(namer->known, &namer->known_capacity, (size_t)namer->places.count + 1,
			   sizeof(*known));
	if (!known)
		return -ENOMEM;
	namer->known = known;
	if (map_add(&namer->places, key, 0, &number) < 0)
		return -ENOMEM;
	known[number - 1] = (struct namer_known){(uint32_t)namer->name_count, (uint32_t)count};
	for (size_t i = 0; i < count; i++)
		names[namer->name_count++] = (struct namer_name){
			.function = namer_text(namer, place->names[i].function),
			.file = namer_text(namer, place->names[i].file),
			.line = place->names[i].line,
		};
	return 0;
}

static int namer_add_file(struct recording_namer *namer, uint64_t book,
			  const struct recording_names_file *file)
{
	const char *path = file->path ? file->path : "";
	const char *build_id = file->build_id ? file->build_id : "";
	int r = 0;

	for (size_t i = 0; r == 0 && i < file->count; i++)
		r = namer_add(namer, namer_key(book, path, build_id, file->places[i].address),
			      &file->places[i]);
	return r;
}

/* Without memory, or with a chunk that cannot be read, frames have no names. */
static void namer_read(struct recording_namer *namer, size_t number, uint64_t id)
{
	struct recording *recording = namer->recording;
	const struct recording_known *book = &recording->books[number];

	for (size_t i = 0; i < book->count; i++) {
		const struct recording_entry *entry = recording_entry(recording, book->chunks[i]);
		CLEANUP(document_unload) struct json_t *text = NULL;
		CLEANUP(pool_deinit) struct pool pool = POOL_NULL;
		struct recording_names names;

		if (entry->kind != RECORDING_NAMES || recording_read(recording, entry) < 0)
			continue;
		text = document_load((const char *)recording->contents.bytes,
				     recording->contents.size);
		if (fields_take(text, recording_names_fields, &names, &pool) < 0)
			continue;
		for (size_t k = 0; k < names.count; k++)
			(void)namer_add_file(namer, id,
					     &names.files[k]); /* then fewer have names */
	}
}

/* Which book asks; see restore_own(). */
static uint64_t namer_book(const struct recording *recording, size_t number)
{
	return scan_book_number((struct book_id){.inode = number + 1},
				recording->books[number].owner.book.start_ticks);
}

static size_t recording_namer_find(struct namer *base, const struct namer_place *place,
				   struct namer_name *ret_names, size_t max)
{
	struct recording_namer *namer = container_of(base, struct recording_namer, namer);
	char build_id[2 * sizeof(((struct book_module *)NULL)->build_id) + 1] = "";
	const struct namer_known *known;
	uint32_t number;
	size_t count;

	for (size_t i = 0; i < namer->recording->facts.books; i++) {
		if (namer->has_read[i] || namer_book(namer->recording, i) != place->book)
			continue;
		namer->has_read[i] = true;
		namer_read(namer, i, place->book);
	}
	for (uint32_t i = 0; i < place->build_id_length && 2 * i + 2 < sizeof(build_id); i++)
		snprintf(build_id + (size_t)2 * i, 3, "%02x", place->build_id[i]);
	number = map_find(
		&namer->places,
		namer_key(place->book, place->path ? place->path : "", build_id, place->address),
		0);
	if (!number)
		return 0;
	known = &namer->known[number - 1];
	count = bits_min(known->count, max);
	if (count > 0)
		memcpy(ret_names, namer->names + known->first, count * sizeof(*ret_names));
	return count;
}

struct namer *recording_namer(struct recording *recording)
{
	struct recording_namer *namer;

	if (recording->namer)
		return &recording->namer->namer;
	namer = calloc(1, sizeof(*namer));
	if (!namer)
		return NULL;
	namer->has_read = calloc(recording->facts.books + 1, sizeof(*namer->has_read));
	if (!namer->has_read) {
		free(namer);
		return NULL;
	}
	namer->texts = POOL_NULL;
	namer->namer.find = recording_namer_find;
	namer->recording = recording;
	recording->namer = namer;
	return &namer->namer;
}
