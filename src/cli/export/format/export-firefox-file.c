/* SPDX-License-Identifier: Apache-2.0 */

/* The file of Firefox Profiler: tables of columns, each with its length. */

#include <inttypes.h>
#include <stdio.h>
#include <ttmem/ttmem.h>

#include "base/emit.h"
#include "cli/export/format/export-firefox.h"
#include "cli/export/format/export-form.h"
#include "model/types.h"

#define FIREFOX_PROCESSED 48u /* the version of the format */
#define FIREFOX_GECKO 24u
#define NS_PER_MS 1000000u

/* Milliseconds since the start. */
static void firefox_put_time(struct emit *json, const struct firefox *firefox, const char *key,
			     uint64_t time_ns)
{
	uint64_t start = firefox->target->start_ns, ns = time_ns > start ? time_ns - start : 0;
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%06u", ns / NS_PER_MS,
		 (unsigned int)(ns % NS_PER_MS));
	emit_raw(json, key, text);
}

static void firefox_put_same(struct emit *json, const char *key, const char *value, size_t count)
{
	emit_open_array(json, key);
	for (size_t i = 0; i < count; i++)
		emit_raw(json, NULL, value);
	emit_close_array(json);
}

static void firefox_put_empty(struct emit *json, const char *table, const char *const *columns)
{
	emit_open_object(json, table);
	emit_u64(json, "length", 0);
	for (; *columns; columns++)
		firefox_put_same(json, *columns, NULL, 0);
	emit_close_object(json);
}

/* A function for each frame: it has the line of the frame. Texts are numbered from 0 in the file. */
static void firefox_put_functions(struct emit *json, const struct export_stacks *stacks)
{
	uint32_t count = stacks->frame_index.count;

	emit_open_object(json, "funcTable");
	emit_u64(json, "length", count);
	emit_open_array(json, "name");
	for (uint32_t i = 0; i < count; i++)
		emit_u64(json, NULL, stacks->frames[i].function - 1);
	emit_close_array(json);
	firefox_put_same(json, "isJS", "false", count);
	firefox_put_same(json, "relevantForJS", "false", count);
	firefox_put_same(json, "resource", "-1", count);
	emit_open_array(json, "fileName");
	for (uint32_t i = 0; i < count; i++) {
		const struct export_frame *frame = &stacks->frames[i];
		uint32_t file = frame->file ? frame->file : frame->module;

		if (file)
			emit_u64(json, NULL, file - 1);
		else
			emit_null(json, NULL);
	}
	emit_close_array(json);
	firefox_put_same(json, "lineNumber", "null", count);
	firefox_put_same(json, "columnNumber", "null", count);
	emit_close_object(json);
}

static void firefox_put_frames(struct emit *json, const struct export_stacks *stacks)
{
	uint32_t count = stacks->frame_index.count;

	emit_open_object(json, "frameTable");
	emit_u64(json, "length", count);
	firefox_put_same(json, "address", "-1", count);
	firefox_put_same(json, "inlineDepth", "0", count);
	firefox_put_same(json, "category", "0", count);
	firefox_put_same(json, "subcategory", "0", count);
	emit_open_array(json, "func");
	for (uint32_t i = 0; i < count; i++)
		emit_u64(json, NULL, i);
	emit_close_array(json);
	firefox_put_same(json, "nativeSymbol", "null", count);
	firefox_put_same(json, "innerWindowID", "0", count);
	firefox_put_same(json, "implementation", "null", count);
	emit_open_array(json, "line");
	for (uint32_t i = 0; i < count; i++) {
		if (stacks->frames[i].line)
			emit_u64(json, NULL, stacks->frames[i].line);
		else
			emit_null(json, NULL);
	}
	emit_close_array(json);
	firefox_put_same(json, "column", "null", count);
	emit_close_object(json);
}

static void firefox_put_stacks(struct emit *json, const struct export_stacks *stacks)
{
	uint32_t count = stacks->node_index.count;

	emit_open_object(json, "stackTable");
	emit_u64(json, "length", count);
	emit_open_array(json, "prefix");
	for (uint32_t i = 0; i < count; i++) {
		if (stacks->nodes[i].parent)
			emit_u64(json, NULL, stacks->nodes[i].parent - 1);
		else
			emit_null(json, NULL);
	}
	emit_close_array(json);
	emit_open_array(json, "frame");
	for (uint32_t i = 0; i < count; i++)
		emit_u64(json, NULL, stacks->nodes[i].frame - 1);
	emit_close_array(json);
	firefox_put_same(json, "category", "0", count);
	firefox_put_same(json, "subcategory", "0", count);
	emit_close_object(json);
	emit_open_array(json, "stringArray");
	for (uint32_t i = 0; i < stacks->text_index.count; i++)
		emit_string(json, NULL, stacks->texts[i]);
	emit_close_array(json);
}

static void firefox_put_weight(struct emit *json, const struct firefox_row *row)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%" PRIu64, row->is_free ? "-" : "", row->bytes);
	emit_raw(json, NULL, text);
}

static void firefox_put_allocations(struct emit *json, const struct firefox *firefox,
				    const struct firefox_thread *thread)
{
	emit_open_object(json, "nativeAllocations");
	emit_u64(json, "length", thread->count);
	emit_open_array(json, "time");
	for (size_t i = 0; i < thread->count; i++)
		firefox_put_time(json, firefox, NULL, thread->rows[i].time_ns);
	emit_close_array(json);
	emit_open_array(json, "weight");
	for (size_t i = 0; i < thread->count; i++)
		firefox_put_weight(json, &thread->rows[i]);
	emit_close_array(json);
	emit_string(json, "weightType", "bytes");
	emit_open_array(json, "stack");
	for (size_t i = 0; i < thread->count; i++)
		emit_u64(json, NULL, thread->rows[i].node - 1);
	emit_close_array(json);
	emit_open_array(json, "memoryAddress");
	for (size_t i = 0; i < thread->count; i++)
		emit_u64(json, NULL, thread->rows[i].buffer);
	emit_close_array(json);
	emit_open_array(json, "threadId");
	for (size_t i = 0; i < thread->count; i++)
		emit_u64(json, NULL, thread->rows[i].thread);
	emit_close_array(json);
	emit_close_object(json);
}

/* Which the format wants, though nothing is known for them. */
static void firefox_put_rest(struct emit *json)
{
	static const char *const markers[] = {"category", "data",      "endTime", "name",
					      "phase",    "startTime", NULL};
	static const char *const symbols[] = {"address", "functionSize", "libIndex", "name", NULL};
	static const char *const resources[] = {"lib", "name", "host", "type", NULL};

	firefox_put_empty(json, "markers", markers);
	firefox_put_empty(json, "nativeSymbols", symbols);
	firefox_put_empty(json, "resourceTable", resources);
	firefox_put_same(json, "pausedRanges", NULL, 0);
	emit_open_object(json, "samples");
	emit_u64(json, "length", 0);
	firefox_put_same(json, "stack", NULL, 0);
	firefox_put_same(json, "time", NULL, 0);
	emit_null(json, "weight");
	emit_string(json, "weightType", "samples");
	emit_close_object(json);
}

static void firefox_put_thread(struct emit *json, const struct firefox *firefox, uint32_t number)
{
	const struct firefox_thread *thread = &firefox->threads[number];
	const struct export_owner *owner = &firefox->target->owners[thread->process];
	char pid[16], tid[16];

	snprintf(pid, sizeof(pid), "%" PRIu32, owner->pid);
	snprintf(tid, sizeof(tid), "%" PRIu32, number);
	emit_open_object(json, NULL);
	emit_string(json, "name", types_name(thread->type));
	emit_bool(json, "isMainThread", true);
	emit_string(json, "processName", owner->comm);
	emit_string(json, "processType", "default");
	emit_u64(json, "processStartupTime", 0);
	emit_null(json, "processShutdownTime");
	emit_u64(json, "registerTime", 0);
	emit_null(json, "unregisterTime");
	emit_string(json, "pid", pid);
	emit_string(json, "tid", tid);
	firefox_put_frames(json, &thread->stacks);
	firefox_put_functions(json, &thread->stacks);
	firefox_put_stacks(json, &thread->stacks);
	firefox_put_rest(json);
	firefox_put_allocations(json, firefox, thread);
	emit_close_object(json);
}

/* Its counts are differences, of which the first is not looked at. */
static void firefox_put_counter(struct emit *json, const struct firefox *firefox, uint32_t number)
{
	const struct firefox_thread *thread = &firefox->threads[number];
	char pid[16];

	snprintf(pid, sizeof(pid), "%" PRIu32, firefox->target->owners[thread->process].pid);
	emit_open_object(json, NULL);
	emit_string(json, "name", types_name(thread->type));
	emit_string(json, "category", "Memory");
	emit_string(json, "description", "device memory in use");
	emit_string(json, "pid", pid);
	emit_u64(json, "mainThreadIndex", number);
	emit_open_object(json, "samples");
	emit_u64(json, "length", thread->count + 1);
	emit_open_array(json, "time");
	firefox_put_time(json, firefox, NULL, 0);
	for (size_t i = 0; i < thread->count; i++)
		firefox_put_time(json, firefox, NULL, thread->rows[i].time_ns);
	emit_close_array(json);
	emit_open_array(json, "count");
	emit_u64(json, NULL, 0);
	for (size_t i = 0; i < thread->count; i++)
		firefox_put_weight(json, &thread->rows[i]);
	emit_close_array(json);
	emit_close_object(json);
	emit_close_object(json);
}

static void firefox_put_meta(struct emit *json, const struct firefox *firefox)
{
	char product[32], start[32];

	snprintf(product, sizeof(product), "ttmem %d.%d.%d", TTMEM_VERSION_MAJOR,
		 TTMEM_VERSION_MINOR, TTMEM_VERSION_PATCH);
	snprintf(start, sizeof(start), "%" PRIu64, firefox->target->start_ns / NS_PER_MS);
	emit_open_object(json, "meta");
	emit_u64(json, "version", FIREFOX_GECKO);
	emit_u64(json, "preprocessedProfileVersion", FIREFOX_PROCESSED);
	emit_string(json, "product", product);
	emit_string(json, "importedFrom", "ttmem");
	emit_raw(json, "startTime", start);
	emit_u64(json, "interval", 1);
	emit_u64(json, "processType", 0);
	emit_u64(json, "stackwalk", 1);
	emit_u64(json, "debug", 0);
	emit_bool(json, "symbolicated", true);
	emit_bool(json, "usesOnlyOneStackType", true);
	emit_bool(json, "doesNotUseFrameImplementation", true);
	emit_bool(json, "sourceCodeIsNotOnSearchfox", true);
	emit_raw(json, "categories",
		 "[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}]");
	emit_raw(json, "extensions", "{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]}");
	emit_raw(json, "markerSchema", "[]");
	emit_close_object(json);
}

void firefox_finish(void *state)
{
	const struct firefox *firefox = state;
	struct emit json = EMIT_INIT(firefox->target->out);

	emit_open_object(&json, NULL);
	firefox_put_meta(&json, firefox);
	emit_raw(&json, "libs", "[]");
	emit_raw(&json, "pages", "[]");
	emit_open_array(&json, "threads");
	for (uint32_t i = 0; i < firefox->index.count; i++)
		firefox_put_thread(&json, firefox, i);
	emit_close_array(&json);
	emit_open_array(&json, "counters");
	for (uint32_t i = 0; i < firefox->index.count; i++)
		firefox_put_counter(&json, firefox, i);
	emit_close_array(&json);
	emit_close_object(&json);
	emit_end(&json);
}
