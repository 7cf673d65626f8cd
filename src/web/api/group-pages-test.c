/* SPDX-License-Identifier: Apache-2.0 */

/* Groups of buffers that are read in pages, and while one allocation fails: the document is whole, or there is none. */

#include "web/api/group-pages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/emit.h"
#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "web/server/web.h"

#define PAGES 3u

static enum group_kind kind;
static size_t limit;
static const struct stack *stacks[2];
static unsigned int pages;                    /* that were read; PAGES is the last */
static char document[65536], expected[65536]; /* what was written, and what shall be */

static int add_buffer(struct snapshot *snapshot, uint32_t process, uint32_t number)
{
	static const char *const names[] = {"weights", "cache", NULL, "weights"};
	struct snapshot_buffer buffer = {
		.process = process,
		.address = number + 1,
		.size = 100 * (number + 1),
		.phase = number % 2 ? "load" : NULL,
		.stack = stacks[number % 3 == 0],
		.thread = 11 + number % 2,
		.refs = 1,
	};

	if (names[number])
		buffer.name = snapshot_text(snapshot, names[number], strlen(names[number]));
	return names[number] && !buffer.name ? -ENOMEM : snapshot_add_buffer(snapshot, &buffer);
}

/* Each page has two buffers of each of two processes. */
static int take(void *context, const struct snapshot_request *request,
		struct snapshot **ret_snapshot)
{
	struct snapshot *snapshot = snapshot_new(1 + pages);
	int r = snapshot ? 0 : -ENOMEM;

	(void)context;
	assert(request->buffers && request->limit == GROUP_PAGES_PAGE);
	assert(request->has_after == (pages > 0) && (pages == 0 || request->after.slot == pages));
	for (uint32_t i = 0; r == 0 && i < 2; i++) {
		const struct snapshot_process process = {.id.pid = 7 + i,
							 .comm = "train",
							 .user = "me",
							 .source = "book",
							 .alive = true,
							 .exact = pages != 1};
		uint32_t index;

		r = snapshot_add_process(snapshot, &process, &index);
		for (uint32_t k = 0; r == 0 && k < 2; k++)
			r = add_buffer(snapshot, index, (pages + k) % 4);
	}
	if (r == 0)
		r = snapshot_finish(snapshot);
	if (r < 0) {
		snapshot_free(snapshot);
		return r;
	}
	snapshot->next.slot = ++pages;
	snapshot->has_next = pages < PAGES;
	*ret_snapshot = snapshot;
	return 0;
}

static int write_groups(void *context)
{
	const struct web_provider provider = {.snapshot = take};
	const struct snapshot_request like = {.buffers = true};
	FILE *out = fopen(unit_path("document"), "w+e");
	struct emit json = EMIT_INIT(out);
	int r;

	(void)context;
	assert(out);
	pages = 0;
	r = group_pages_write(&provider, &like, kind, limit, &json);
	unit_memory_spare();
	if (r == 0) {
		assert(pages == PAGES && fflush(out) == 0);
		rewind(out);
		document[fread(document, 1, sizeof(document) - 1, out)] = '\0';
		if (!*expected)
			strcpy(expected, document);
		assert(strcmp(document, expected) == 0);
	}
	assert(fclose(out) == 0);
	return r;
}

/* Writes the document. Return: its groups, up to the end. */
static const char *write_of(enum group_kind wanted, size_t most)
{
	static const char head[] =
		"{\"schema\":\"ttmem.buffers/1\",\"time_ns\":3,\"moment\":null,\"groups\":";

	kind = wanted;
	limit = most;
	stacks[0] = testing_stack("a.c:1:f @ app");
	stacks[1] = testing_stack("a.c:2:g @ app");
	*expected = '\0';
	assert(write_groups(NULL) == 0);
	assert(strncmp(document, head, sizeof(head) - 1) == 0);
	return document + sizeof(head) - 1;
}

/* One page is not exact. */
#define REST "],\"exact\":false,\"next\":null,\"notes\":[]}\n"

UNIT(buffers_of_all_pages_are_added_up)
{
	const char *text = write_of(GROUP_NAME, 10);

	assert(strcmp(text,
		      "[{\"key\":null,\"bytes\":1200,\"buffers\":4,\"oldest_ns\":0},"
		      "{\"key\":\"weights\",\"bytes\":1000,\"buffers\":4,\"oldest_ns\":0},"
		      "{\"key\":\"cache\",\"bytes\":800,\"buffers\":4,\"oldest_ns\":0}" REST) == 0);
	text = write_of(GROUP_PHASE, 10);
	assert(strcmp(text,
		      "[{\"key\":\"load\",\"bytes\":1600,\"buffers\":6,\"oldest_ns\":0},"
		      "{\"key\":null,\"bytes\":1400,\"buffers\":6,\"oldest_ns\":0}" REST) == 0);
	text = write_of(GROUP_THREAD, 10);
	assert(strcmp(text,
		      "[{\"key\":\"7/12\",\"bytes\":800,\"buffers\":3,\"oldest_ns\":0},"
		      "{\"key\":\"8/12\",\"bytes\":800,\"buffers\":3,\"oldest_ns\":0},"
		      "{\"key\":\"7/11\",\"bytes\":700,\"buffers\":3,\"oldest_ns\":0},"
		      "{\"key\":\"8/11\",\"bytes\":700,\"buffers\":3,\"oldest_ns\":0}" REST) == 0);
}

UNIT(call_sites_of_all_pages_have_their_names)
{
	const char *text = write_of(GROUP_SITE, 10);

	assert(strstr(text, "\"name_count\":2,\"names\":["
			    "{\"name\":null,\"phase\":null,\"bytes\":1200,\"buffers\":4},"
			    "{\"name\":\"cache\",\"phase\":null,\"bytes\":800,\"buffers\":4}],"
			    "\"bytes\":2000,\"buffers\":8,"));
	assert(strstr(text, "\"name_count\":1,\"names\":["
			    "{\"name\":\"weights\",\"phase\":null,\"bytes\":1000,\"buffers\":4}],"
			    "\"bytes\":1000,\"buffers\":4,"));
}

UNIT(groups_beyond_the_limit_are_counted)
{
	const char *text = write_of(GROUP_NAME, 2);

	assert(!strstr(text, "cache") && strstr(text, "\"weights\""));
	assert(strstr(text, "\"notes\":[\"the largest 2 of 3 groups\"]"));
	assert(!strstr(write_of(GROUP_NAME, 3), "the largest"));
}

UNIT(a_document_is_whole_or_there_is_none)
{
	static const enum group_kind kinds[] = {GROUP_NAME, GROUP_PHASE, GROUP_SITE, GROUP_THREAD};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		(void)write_of(kinds[i], 10);
		assert(unit_memory_sweep(write_groups, NULL) > 0);
	}
}
