/* SPDX-License-Identifier: Apache-2.0 */

/* A list with kept stacks has the same bytes as its rows one by one. */

#include "answers/buffers.h"
#include "answers/document-stacks.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "base/emit.h"
#include "base/testing/unit.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"

#define STACKS 9000u /* more than are kept */
#define BUFFERS 20000u

static char *list_of(const struct snapshot *snapshot)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);

	buffers_put(&json, snapshot);
	assert(fclose(out) == 0);
	return text;
}

/* The same list, from rows that know nothing of each other. */
static char *rows_of(const struct snapshot *snapshot)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);

	document_begin(&json, &buffers_document, snapshot);
	emit_open_array(&json, "buffers");
	for (size_t i = 0; i < snapshot->buffer_count; i++)
		buffers_put_row(&json, snapshot, &snapshot->buffers[i]);
	emit_close_array(&json);
	emit_open_array(&json, "untracked");
	emit_close_array(&json);
	document_list_end(&json, true);
	document_close(&json, snapshot);
	assert(fclose(out) == 0);
	return text;
}

static struct snapshot *snapshot_with(size_t stacks)
{
	const struct snapshot_process process = {
		.id.pid = 7, .comm = "c", .user = "u", .source = "book", .alive = true};
	struct snapshot *snapshot = snapshot_new(1000);
	uint32_t index;

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0);
	for (size_t i = 0; i < BUFFERS; i++) {
		struct snapshot_buffer buffer = {
			.process = index, .address = i, .size = 4096, .born_ns = 1};
		char stack[128];
		(void)snprintf(stack, sizeof(stack), "m.py:%zu:f -> g @ libg.so",
			       i * 7 % stacks + 1);

		if (i % 5)
			buffer.stack = stack_parse(&snapshot->texts, stack);
		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	}
	return snapshot;
}

static void compare_with(size_t stacks)
{
	struct snapshot *snapshot = snapshot_with(stacks);
	char *list = list_of(snapshot), *rows = rows_of(snapshot);

	assert(strcmp(list, rows) == 0);
	free(list);
	free(rows);
	snapshot_free(snapshot);
}

UNIT(a_stack_that_many_buffers_have_is_written_for_each_of_them)
{
	compare_with(3);
}

UNIT(more_stacks_than_are_kept_are_written_right_too)
{
	compare_with(STACKS);
}
