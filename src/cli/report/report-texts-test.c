/* SPDX-License-Identifier: Apache-2.0 */

/* Each stack and frame is in a report once. */

#include "cli/report/report-texts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/emit.h"
#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"

struct put {
	struct report_index stack;
};

#define ROW struct put

static const struct field put_fields[] = {
	REPORT_STACK,
	FIELD_END,
};

/* The parsed document of what was put; the caller owns it. */
static json_t *stacks_of(const char *const *lines, size_t count)
{
	struct report_stacks stacks = {0};
	CLEANUP_FREE char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct emit json = EMIT_INIT(out);
	json_t *document;

	emit_open_object(&json, NULL);
	emit_open_array(&json, "put");
	for (size_t i = 0; i < count; i++) {
		const struct put put = {report_stacks_index(&stacks, testing_stack(lines[i]))};

		fields_put_row(&json, put_fields, &put);
	}
	emit_close_array(&json);
	report_stacks_put(&stacks, &json);
	emit_close_object(&json);
	emit_end(&json);
	assert(fclose(out) == 0);
	report_stacks_deinit(&stacks);
	document = json_loads(text, 0, NULL);
	assert(document);
	return document;
}

static const char *function_of(const json_t *document, size_t stack, size_t frame)
{
	const json_t *one = json_array_get(json_object_get(document, "stacks"), stack);
	const json_t *number = json_array_get(json_object_get(one, "frames"), frame);

	return json_string_value(json_object_get(json_array_get(json_object_get(document, "frames"),
								(size_t)json_integer_value(number)),
						 "function"));
}

UNIT(a_frame_that_many_stacks_have_is_there_once)
{
	static const char *const lines[] = {
		"run.py:1:main -> run.py:7:step -> model.py:3:load",
		"run.py:1:main -> run.py:7:step -> model.py:9:save",
		NULL,
		"run.py:1:main -> run.py:7:step -> model.py:3:load",
	};
	json_t *document = stacks_of(lines, 4), *put = json_object_get(document, "put");

	assert(json_array_size(json_object_get(document, "stacks")) == 2);
	assert(json_array_size(json_object_get(document, "frames")) == 4);
	assert(strcmp(function_of(document, 0, 0), "load") == 0); /* innermost first */
	assert(strcmp(function_of(document, 0, 2), "main") == 0);
	assert(strcmp(function_of(document, 1, 0), "save") == 0);
	assert(json_integer_value(json_object_get(json_array_get(put, 1), "stack")) == 1);
	assert(json_is_null(json_object_get(json_array_get(put, 2), "stack")));
	assert(json_integer_value(json_object_get(json_array_get(put, 3), "stack")) == 0);
	json_decref(document);
}

UNIT(the_site_of_a_stack_is_one_of_its_frames)
{
	static const char *const lines[] = {"run.py:1:main -> model.py:3:load"};
	json_t *document = stacks_of(lines, 1);
	const json_t *stack = json_array_get(json_object_get(document, "stacks"), 0);

	assert(json_integer_value(json_object_get(stack, "site")) ==
	       json_integer_value(json_array_get(json_object_get(stack, "frames"), 0)));
	json_decref(document);
}
