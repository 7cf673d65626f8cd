/* SPDX-License-Identifier: Apache-2.0 */

/* The pages of the document of leaks, made from a real store and read back as JSON. */

#include <jansson.h>
#include <string.h>

#include "base/emit.h"
#include "base/testing/unit.h"
#include "daemon/recorder/recorder-cursor.h"
#include "daemon/recorder/recorder-documents.h"
#include "model/query.h"
#include "store/store.h"
#include "store/testing/store-testing.h"

static json_t *ask(struct testing_world *world, const struct query *query)
{
	static const struct recorder_scope everything;
	struct store_reader *reader;
	json_t *document;
	size_t length;
	char *text;
	FILE *stream = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(stream);

	assert(store_reader_open(world->store, &reader) == 0);
	assert(recorder_documents_leaks(reader, query, &everything, &json) == 0);
	store_reader_close(reader);
	assert(fclose(stream) == 0);
	document = json_loadb(text, length, 0, NULL);
	assert(document);
	free(text);
	return document;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static int64_t number_of(const json_t *object, const char *key)
{
	assert(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

static void put_leak(struct testing_world *world, uint32_t pid, uint32_t count, uint64_t book)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, pid, "train");
	struct ending ending = {.book = book, .ended_ns = TESTING_START};

	for (uint32_t i = 0; i < count; i++)
		testing_buffer(snapshot, process, 0, 0x1000 * (i + 1), i % 2 ? "odd" : "even",
			       "layer 3");
	store_put_leak(world->store, snapshot, process, &ending);
	snapshot_free(snapshot);
	testing_flush(world);
}

/* Reads all pages; the rows of one process come one after the other. Return: their number. */
static size_t read_pages(struct testing_world *world, struct query *query, size_t *ret_pages)
{
	static char cursor[RECORDER_CURSOR_SIZE];
	size_t seen = 0;

	*ret_pages = 0;
	for (;;) {
		json_t *document = ask(world, query);
		const char *next = text_of(document, "next");
		char *text = json_dumps(document, JSON_COMPACT);
		json_t *row, *offset;
		size_t i;

		assert(strlen(text) < RECORDER_PAGE_BYTES + 65536);
		free(text);
		json_array_foreach(json_object_get(document, "processes"), i, row)
		{
			offset = json_object_get(row, "offset");
			if (number_of(row, "pid") == 11) {
				assert((offset ? (size_t)json_integer_value(offset) : 0) == seen);
				assert((json_array_size(json_object_get(row, "sites")) == 0) ==
				       (seen > 0));
				assert(number_of(row, "listed") == 9000);
				seen += json_array_size(json_object_get(row, "buffers"));
			} else {
				assert(!offset);
			}
		}
		(*ret_pages)++;
		if (next)
			snprintf(cursor, sizeof(cursor), "%s", next);
		assert(json_is_true(json_object_get(document, "exact")));
		json_decref(document);
		if (!next)
			return seen;
		query->cursor = cursor;
	}
}

UNIT(pages_of_leaks_end_by_their_bytes)
{
	struct testing_world world;
	struct query query = {.limit = 1000};
	size_t pages;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < 3; i++)
		put_leak(&world, 10 + i, i == 1 ? 9000 : 3, i + 1);
	assert(read_pages(&world, &query, &pages) == 9000);
	assert(pages > 2);
	/* Without lists it is a short page. */
	query = (struct query){.given = QUERY_BUFFERS};
	assert(read_pages(&world, &query, &pages) == 0 && pages == 1);
	query = (struct query){.given = QUERY_BUFFERS, .buffers_max = 2500};
	assert(read_pages(&world, &query, &pages) == 2500);
	testing_close(&world);
}

UNIT(a_report_that_lost_its_list_says_so)
{
	struct testing_world world;
	struct query query = {0};
	json_t *document, *row;

	testing_init(&world);
	testing_open(&world);
	put_leak(&world, 11, 3, 1);
	document = ask(&world, &query);
	assert(json_is_true(json_object_get(document, "exact")));
	assert(json_array_size(json_object_get(document, "notes")) == 0);
	row = json_array_get(json_object_get(document, "processes"), 0);
	assert(number_of(row, "listed") == 3 && number_of(row, "buffer_count") == 3);
	json_decref(document);
	testing_sql(&world, "DELETE FROM leak_chunks");
	document = ask(&world, &query);
	assert(json_is_false(json_object_get(document, "exact")));
	assert(strcmp(json_string_value(json_array_get(json_object_get(document, "notes"), 0)),
		      "pid 11: 0 of its 3 buffers are listed; the sums are of all") == 0);
	row = json_array_get(json_object_get(document, "processes"), 0);
	assert(number_of(row, "listed") == 0 && number_of(row, "buffer_count") == 3);
	assert(number_of(row, "bytes") == 3 * 4096);
	json_decref(document);
	testing_close(&world);
}
