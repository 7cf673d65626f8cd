/* SPDX-License-Identifier: Apache-2.0 */

/* The documents of the past, made from a real store and read back as JSON. */

#include "daemon/recorder/recorder-documents.h"
#include "model/query.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/emit.h"
#include "base/testing/unit.h"
#include "daemon/recorder/recorder-cursor.h"
#include "store/store.h"
#include "store/testing/store-testing.h"

static const struct recorder_scope everything;

typedef int recorder_fn(struct store_reader *reader, const struct query *query,
			const struct recorder_scope *scope, struct emit *json);

static json_t *parse(char *text, size_t length)
{
	json_t *document = json_loadb(text, length, 0, NULL);

	if (!document)
		fprintf(stderr, "%s\n", text);
	assert(document && text[length - 1] == '\n');
	free(text);
	return document;
}

static json_t *ask(struct testing_world *world, recorder_fn *fn, const struct query *query,
		   const struct recorder_scope *scope)
{
	struct store_reader *reader;
	size_t length;
	char *text;
	FILE *stream = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(stream);

	assert(store_reader_open(world->store, &reader) == 0);
	assert(fn(reader, query, scope, &json) == 0);
	store_reader_close(reader);
	assert(fclose(stream) == 0);
	return parse(text, length);
}

static json_t *ask_series(struct testing_world *world, const struct query *query)
{
	struct store_reader *reader;
	size_t length;
	char *text;
	FILE *stream = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(stream);

	assert(store_reader_open(world->store, &reader) == 0);
	assert(recorder_documents_series(reader, query, &json) == 0);
	store_reader_close(reader);
	assert(fclose(stream) == 0);
	return parse(text, length);
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

/* A process of 1000 + @pid that left @count buffers called @name. */
static void put_leak(struct testing_world *world, uint32_t pid, uint32_t uid, uint32_t count,
		     const struct ending *ending)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, pid, "train");

	testing_set_user(snapshot, process, uid);
	for (uint32_t i = 0; i < count; i++)
		testing_buffer(snapshot, process, 0, 0x1000 * (i + 1), i % 2 ? "odd" : "even",
			       "layer 3");
	store_put_leak(world->store, snapshot, process, ending);
	snapshot_free(snapshot);
	testing_flush(world);
}

UNIT(leaks_of_every_kind_of_end_are_listed)
{
	struct testing_world world;
	struct query query = {0};
	struct ending died = {.book = 1, .ended_ns = TESTING_START, .execed = true};
	struct ending closed = {.book = 2,
				.ended_ns = TESTING_START + 1,
				.closed = true,
				.has_status = true,
				.status = 3 << 8};
	struct ending killed = {
		.book = 3, .ended_ns = TESTING_START + 2, .has_status = true, .status = 9};
	json_t *document, *list, *row, *buffer;

	testing_init(&world);
	testing_open(&world);
	put_leak(&world, 11, 1000, 3, &died);
	put_leak(&world, 12, 1000, 1, &closed);
	put_leak(&world, 13, 1000, 1, &killed);
	document = ask(&world, recorder_documents_leaks, &query, &everything);
	assert(strcmp(text_of(document, "schema"), "ttmem.leaks/1") == 0);
	assert(json_is_null(json_object_get(document, "next")));
	list = json_object_get(document, "processes");
	assert(json_array_size(list) == 3);
	row = json_array_get(list, 0); /* newest first */
	assert(number_of(json_object_get(row, "exit"), "signal") == 9);
	assert(json_is_null(json_object_get(json_object_get(row, "exit"), "code")));
	row = json_array_get(list, 1);
	assert(strcmp(text_of(row, "how"), "closed") == 0);
	assert(json_is_false(json_object_get(row, "exec")));
	assert(number_of(json_object_get(row, "exit"), "code") == 3);
	row = json_array_get(list, 2);
	assert(number_of(row, "pid") == 11 && number_of(row, "user_id") == 1000);
	assert(strcmp(text_of(row, "how"), "died") == 0);
	assert(json_is_true(json_object_get(row, "exec")));
	assert(json_is_null(json_object_get(row, "exit")));
	assert(number_of(row, "bytes") == 3 * 4096 && number_of(row, "buffer_count") == 3);
	assert(json_array_size(json_object_get(row, "sites")) == 2);
	for (size_t i = 0; i < 2; i++) {
		json_t *site = json_array_get(json_object_get(row, "sites"), i);

		assert(strcmp(text_of(site, "phase"), "layer 3") == 0);
		assert(json_array_size(json_object_get(site, "phases")) == 1);
	}
	assert(json_array_size(json_object_get(row, "buffers")) == 3);
	buffer = json_array_get(json_object_get(row, "buffers"), 0);
	assert(number_of(buffer, "pid") == 11 && number_of(buffer, "size") == 4096);
	assert(strcmp(text_of(buffer, "device_uid"), "0xabc") == 0);
	assert(strcmp(text_of(buffer, "phase"), "layer 3") == 0);
	assert(number_of(buffer, "age_ns") > 0);
	json_decref(document);
	testing_close(&world);
}

UNIT(leaks_in_pages_and_of_one_user)
{
	struct testing_world world;
	struct query query = {.limit = 2};
	const uint32_t user = 7;
	struct recorder_scope mine = {.sees = testing_sees(&user)};
	size_t seen = 0;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 1; i <= 5; i++) {
		struct ending ending = {.book = i, .ended_ns = TESTING_START + i};

		put_leak(&world, 10 + i, i == 3 ? 7 : 1000, 1, &ending);
	}
	for (char cursor[RECORDER_CURSOR_SIZE] = "";;) {
		json_t *document = ask(&world, recorder_documents_leaks, &query, &everything);
		const char *next = text_of(document, "next");

		seen += json_array_size(json_object_get(document, "processes"));
		if (next)
			snprintf(cursor, sizeof(cursor), "%s", next);
		json_decref(document);
		if (!next)
			break;
		assert(seen == 2 || seen == 4);
		query.cursor = cursor;
	}
	assert(seen == 5);
	query = (struct query){0};
	for (int i = 0; i < 2; i++) {
		json_t *document = ask(&world, recorder_documents_leaks, &query, &mine);
		json_t *list = json_object_get(document, "processes");

		assert(json_array_size(list) == 1);
		assert(number_of(json_array_get(list, 0), "pid") == 13);
		json_decref(document);
		query.filter.pid = 13;
	}
	testing_close(&world);
}

UNIT(leaks_of_one_address)
{
	struct testing_world world;
	struct query query = {0};
	struct recorder_scope scope = {.has_address = true, .address = 0x2000};
	struct ending first = {.book = 1, .ended_ns = TESTING_START};
	struct ending second = {.book = 2, .ended_ns = TESTING_START};
	json_t *document, *list;

	testing_init(&world);
	testing_open(&world);
	put_leak(&world, 11, 1000, 3, &first);
	put_leak(&world, 12, 1000, 1, &second); /* not this address */
	document = ask(&world, recorder_documents_leaks, &query, &scope);
	list = json_object_get(document, "processes");
	assert(json_array_size(list) == 1);
	assert(number_of(json_array_get(list, 0), "pid") == 11);
	list = json_object_get(json_array_get(list, 0), "buffers");
	assert(json_array_size(list) == 1);
	assert(strcmp(text_of(json_array_get(list, 0), "address"), "0x2000") == 0);
	json_decref(document);
	testing_close(&world);
}

/* The leaks at address 0x1000. */
static json_t *ask_address(struct testing_world *world, uint64_t until_ms, bool is_cut)
{
	const struct recorder_scope scope = {.has_address = true, .address = 0x1000};
	struct recorder_rows rows = {.leaks = NULL};
	struct store_reader *reader;
	json_t *array;

	assert(store_reader_open(world->store, &reader) == 0);
	assert(recorder_documents_address(reader, &scope, 0, until_ms, &rows) == 0);
	store_reader_close(reader);
	assert(rows.is_cut == is_cut);
	assert(strlen(rows.leaks) < RECORDER_ADDRESS_BYTES_MAX + 65536);
	array = json_loads(rows.leaks, 0, NULL);
	assert(json_is_array(array));
	recorder_documents_rows_deinit(&rows);
	return array;
}

/* A thousand buffers at one address, of different call sites. */
static void put_large_leak(struct testing_world *world, uint32_t pid)
{
	struct ending ending = {.book = pid, .ended_ns = TESTING_START + pid};
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, pid, "train");
	char name[2048];

	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%c%-2046u", 'a' + (char)(i / 50), pid);
		testing_buffer(snapshot, process, 0, 0x1000, name, NULL);
	}
	store_put_leak(world->store, snapshot, process, &ending);
	snapshot_free(snapshot);
	testing_flush(world);
}

UNIT(the_past_of_an_address_is_cut_where_it_is_too_large)
{
	struct testing_world world;
	json_t *rows;

	testing_init(&world);
	testing_open(&world);
	for (uint32_t i = 0; i < 10; i++) {
		put_large_leak(&world, 11 + i);
		if (i > 0 && i < 9)
			continue;
		rows = ask_address(&world, 0, i == 9);
		assert(number_of(json_array_get(rows, 0), "pid") == 11 + i); /* the newest */
		json_decref(rows);
	}
	testing_close(&world);
}

UNIT(the_past_of_an_address_is_cut_when_its_time_is_over)
{
	struct ending ending = {.book = 1, .ended_ns = TESTING_START};
	struct testing_world world;
	json_t *rows;

	testing_init(&world);
	testing_open(&world);
	put_leak(&world, 11, 1000, 3, &ending);
	rows = ask_address(&world, 1, true);
	assert(json_array_size(rows) == 0);
	json_decref(rows);
	rows = ask_address(&world, UINT64_MAX, false);
	assert(json_array_size(rows) == 1);
	json_decref(rows);
	testing_close(&world);
}

/* A failed allocation of user 1000, and a double free, with another user's process beside it. */
static void put_incidents(struct testing_world *world)
{
	struct snapshot *snapshot = testing_snapshot(world->real_ns);
	uint32_t process = testing_process(snapshot, 21, "train");
	uint32_t other = testing_process(snapshot, 22, "serve");
	struct snapshot_incident incident = {
		.kind = "alloc_failed",
		.process = process,
		.size = 1 << 20,
		.largest_free = 4096,
		.count = 2,
		.time_ns = world->real_ns,
		.last_ns = world->real_ns,
		.second = {.known = true, .time_ns = world->real_ns, .size = 1 << 20, .thread = 5},
	};

	testing_set_user(snapshot, other, 7);
	testing_memory(snapshot, process, 0, 0, 4096, 1);
	testing_memory(snapshot, other, 0, 0, 8192, 2);
	testing_buffer(snapshot, other, 0, 0x1000, "secret", NULL);
	assert(snapshot_finish(snapshot) == 0);
	store_put_failure(world->store, snapshot, &incident);
	incident.kind = "double_free";
	incident.has_address = true;
	incident.address = 0x4000;
	incident.first = incident.second;
	store_put_incident(world->store, snapshot, &incident);
	snapshot_free(snapshot);
	testing_flush(world);
}

static json_t *find_kind(const json_t *document, const char *kind)
{
	const json_t *list = json_object_get(document, "incidents");
	json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		if (strcmp(text_of(row, "kind"), kind) == 0)
			return row;
	}
	return NULL;
}

UNIT(incidents_with_holders_and_sites)
{
	struct testing_world world;
	struct query query = {0};
	const uint32_t me = 1000, they = 7;
	struct recorder_scope mine = {.sees = testing_sees(&me)},
			      other = {.sees = testing_sees(&they)};
	json_t *document, *row;

	testing_init(&world);
	testing_open(&world);
	put_incidents(&world);
	document = ask(&world, recorder_documents_incidents, &query, &everything);
	row = find_kind(document, "double_free");
	assert(row && number_of(row, "count") == 2 && !json_object_get(row, "holders"));
	assert(strcmp(text_of(row, "address"), "0x4000") == 0);
	assert(number_of(json_object_get(row, "first"), "thread") == 5);
	row = find_kind(document, "alloc_failed");
	assert(row && number_of(row, "largest_free") == 4096);
	assert(json_array_size(json_object_get(row, "holders")) == 2);
	assert(number_of(json_array_get(json_object_get(row, "holders"), 0), "used") == 8192);
	assert(strcmp(text_of(json_array_get(json_object_get(row, "sites"), 0), "name"),
		      "secret") == 0);
	json_decref(document);
	/* Who sees only the own details sees the totals of others, but not their names. */
	document = ask(&world, recorder_documents_incidents, &query, &mine);
	row = find_kind(document, "alloc_failed");
	assert(row && json_array_size(json_object_get(row, "holders")) == 2);
	assert(json_array_size(json_object_get(row, "sites")) == 0);
	json_decref(document);
	document = ask(&world, recorder_documents_incidents, &query, &other);
	assert(json_array_size(json_object_get(document, "incidents")) == 0);
	json_decref(document);
	query.kind = "double_free";
	document = ask(&world, recorder_documents_incidents, &query, &everything);
	assert(json_array_size(json_object_get(document, "incidents")) == 1);
	json_decref(document);
	testing_close(&world);
}

/* A word that nobody has ever written is a mistake; one of a newer version is not. */
UNIT(unknown_incident_kinds_are_refused)
{
	struct testing_world world;
	struct query query = {.kind = "size_change"};
	struct emit json = EMIT_INIT(stderr);
	struct snapshot_incident incident = {.kind = "newer_kind"};
	struct store_reader *reader = NULL;
	struct snapshot *snapshot;
	json_t *document;

	testing_init(&world);
	testing_open(&world);
	put_incidents(&world);
	document = ask(&world, recorder_documents_incidents, &query, &everything);
	assert(json_array_size(json_object_get(document, "incidents")) == 0);
	json_decref(document);
	query.kind = incident.kind;
	assert(store_reader_open(world.store, &reader) == 0);
	assert(recorder_documents_incidents(reader, &query, &everything, &json) == -EINVAL);
	store_reader_close(reader);
	snapshot = testing_snapshot(world.real_ns);
	incident.process = testing_process(snapshot, 21, "train");
	incident.count = 1;
	incident.time_ns = incident.last_ns = world.real_ns;
	assert(snapshot_finish(snapshot) == 0);
	store_put_incident(world.store, snapshot, &incident);
	snapshot_free(snapshot);
	testing_flush(&world);
	document = ask(&world, recorder_documents_incidents, &query, &everything);
	assert(json_array_size(json_object_get(document, "incidents")) == 1);
	json_decref(document);
	testing_close(&world);
}

UNIT(incidents_of_one_address_and_leaks_as_incidents)
{
	struct testing_world world;
	struct query query = {0};
	struct recorder_scope scope = {.has_address = true, .address = 0x4000};
	struct ending ending = {.book = 1, .ended_ns = TESTING_START};
	json_t *document, *row;

	testing_init(&world);
	testing_open(&world);
	put_incidents(&world);
	put_leak(&world, 11, 1000, 3, &ending);
	document = ask(&world, recorder_documents_incidents, &query, &scope);
	assert(json_array_size(json_object_get(document, "incidents")) == 1);
	assert(find_kind(document, "double_free"));
	json_decref(document);
	query.kind = "leak";
	document = ask(&world, recorder_documents_incidents, &query, &everything);
	assert(json_array_size(json_object_get(document, "incidents")) == 2); /* even and odd */
	row = find_kind(document, "leak");
	assert(number_of(row, "size") == 4096 * number_of(row, "count"));
	assert(json_is_null(json_object_get(row, "address")));
	json_decref(document);
	testing_close(&world);
}

UNIT(series_have_their_points)
{
	struct testing_world world;
	struct query query = {.from_ns = TESTING_START, .step_ms = 1000};
	json_t *document, *list, *row, *points;

	testing_init(&world);
	testing_open(&world);
	for (uint64_t i = 0; i < 5; i++) {
		struct snapshot *snapshot = testing_snapshot(world.real_ns);
		uint32_t process = testing_process(snapshot, 31, "train");

		testing_memory(snapshot, process, 0, 0, 100 * (i + 1), i + 1);
		testing_memory(snapshot, process, 0, 1, 7, 1);
		assert(snapshot_finish(snapshot) == 0);
		store_put_sample(world.store, snapshot);
		snapshot_free(snapshot);
		testing_flush(&world);
		testing_pass(&world, TESTING_S);
	}
	document = ask_series(&world, &query);
	list = json_object_get(document, "series");
	assert(json_array_size(list) >= 2);
	json_decref(document);
	query.filter = (struct filter){.pid = 31, .has_type = true, .type = 0};
	document = ask_series(&world, &query);
	list = json_object_get(document, "series");
	assert(json_array_size(list) == 1);
	row = json_array_get(list, 0);
	assert(number_of(row, "pid") == 31 && number_of(row, "step_s") == 1);
	assert(strcmp(text_of(row, "type"), "DRAM") == 0);
	points = json_object_get(row, "points");
	assert(json_array_size(points) == 5);
	for (size_t i = 0; i < 5; i++)
		assert(json_integer_value(json_array_get(json_array_get(points, i), 1)) ==
		       (json_int_t)(100 * (i + 1)));
	json_decref(document);
	query.filter = (struct filter){.device_count = 1, .devices = {{.value = 5}}};
	document = ask_series(&world, &query);
	assert(json_array_size(json_object_get(document, "series")) == 0);
	json_decref(document);
	testing_close(&world);
}

UNIT(invalid_cursors_are_refused)
{
	static const char *const wrong[] = {"1",
					    "0000000000000001",
					    "0000000000000001-000000000000000g",
					    "8000000000000000-0000000000000001",
					    "0000000000000001-00000000000000011",
					    "0000000000000001 0000000000000001"};
	struct store_cursor cursor = {.major = 5, .minor = 0x1234, .more = true}, got;
	char text[RECORDER_CURSOR_SIZE];
	struct testing_world world;
	struct query query = {.cursor = "rubbish"};
	struct store_reader *reader;
	struct emit json = EMIT_INIT(stderr);

	assert(recorder_cursor_read(recorder_cursor_write(&cursor, text), &got) == 0);
	assert(got.major == 5 && got.minor == 0x1234);
	assert(recorder_cursor_read(NULL, &got) == 0 && got.major == 0 && got.minor == 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert(recorder_cursor_read(wrong[i], &got) == -EINVAL);
	cursor.more = false;
	assert(!recorder_cursor_write(&cursor, text));
	testing_init(&world);
	testing_open(&world);
	assert(store_reader_open(world.store, &reader) == 0);
	assert(recorder_documents_leaks(reader, &query, &everything, &json) == -EINVAL);
	assert(recorder_documents_incidents(reader, &query, &everything, &json) == -EINVAL);
	store_reader_close(reader);
	testing_close(&world);
}
