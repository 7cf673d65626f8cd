/* SPDX-License-Identifier: Apache-2.0 */

/* Lines over time as JSON, and back. */

#include "answers/series.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "base/emit.h"
#include "base/pool.h"
#include "base/testing/unit.h"
#include "model/types.h"

static const struct series_point points[] = {{1000, 1, 2, 3}, {2000, 4, 5, 6}};

static char *written(const struct series_answer *answer, const struct document_about *about)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);

	document_put_about(&json, &series_document, about, answer);
	assert(fclose(out) == 0);
	return text;
}

UNIT(points_are_arrays_of_their_numbers)
{
	const struct series_row row = {
		.device = 1, .type = TYPES_L1, .step_s = 0.1, .points = points, .point_count = 2};
	char *text =
		written(&(struct series_answer){&row, 1}, &(struct document_about){.time_ns = 7});

	assert(strcmp(text,
		      "{\"schema\":\"ttmem.series/1\",\"time_ns\":7,\"series\":["
		      "{\"pid\":null,\"device\":1,\"uid\":null,\"type\":\"L1\",\"step_s\":0.1,"
		      "\"points\":[[1000,1,2,3],[2000,4,5,6]]}],"
		      "\"exact\":true,\"next\":null,\"notes\":[]}\n") == 0);
	free(text);
}

UNIT(the_last_members_say_what_is_missing)
{
	static const char *const notes[] = {"a", "b"};
	const struct document_about about = {
		.is_partial = true, .next = "0-1", .notes = notes, .note_count = 2};
	char *text = written(&(struct series_answer){NULL, 0}, &about);

	assert(strstr(text,
		      "\"series\":[],\"exact\":false,\"next\":\"0-1\",\"notes\":[\"a\",\"b\"]}"));
	free(text);
}

UNIT(series_are_read_as_they_are_written)
{
	const struct series_row rows[] = {
		{.pid = 5, .device = 2, .device_uid = 0x1f, .type = TYPES_DRAM, .step_s = 60},
		{.device = 3, .points = points, .point_count = 2},
	};
	char *text =
		written(&(struct series_answer){rows, 2}, &(struct document_about){.time_ns = 7});
	json_t *document = json_loads(text, 0, NULL);
	struct pool pool = POOL_NULL;
	struct document_about about;
	struct series_answer answer;

	assert(document_take(document, &series_document, &about, &answer, &pool) == 0);
	assert(about.time_ns == 7 && !about.is_partial && !about.next && about.note_count == 0);
	assert(answer.count == 2 && answer.rows[0].pid == 5 && answer.rows[0].device == 2);
	assert(answer.rows[0].device_uid == 0x1f && answer.rows[0].type == TYPES_DRAM);
	assert(answer.rows[0].step_s >= 60 && answer.rows[0].point_count == 0);
	assert(answer.rows[1].pid == 0 && answer.rows[1].point_count == 2);
	assert(memcmp(answer.rows[1].points, points, sizeof(points)) == 0);
	pool_deinit(&pool);
	json_decref(document);
	free(text);
}

UNIT(a_document_that_is_another_one_is_refused)
{
	static const char *const texts[] = {"[]", "{\"series\":[]}",
					    "{\"schema\":\"ttmem.series/2\",\"series\":[]}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *document = json_loads(texts[i], 0, NULL);
		struct pool pool = POOL_NULL;
		struct document_about about;
		struct series_answer answer;

		assert(document_take(document, &series_document, &about, &answer, &pool) ==
		       -EINVAL);
		pool_deinit(&pool);
		json_decref(document);
	}
}

UNIT(points_of_another_shape_have_zeros)
{
	json_t *row = json_loads("{\"points\":[[9],7,[1,-2,\"3\",4,5]]}", 0, NULL);
	struct pool pool = POOL_NULL;
	struct series_row taken;

	assert(fields_take(row, series_fields, &taken, &pool) == 0 && taken.point_count == 3);
	assert(taken.points[0].time_ns == 9 && taken.points[0].used_max == 0);
	assert(taken.points[1].time_ns == 0 && taken.points[2].used == 0);
	assert(taken.points[2].time_ns == 1 && taken.points[2].used_max == 4);
	pool_deinit(&pool);
	json_decref(row);
}
