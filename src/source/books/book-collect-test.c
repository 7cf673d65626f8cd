/* SPDX-License-Identifier: Apache-2.0 */

/* Everything of a book that a snapshot has: what was written is what is shown, and nothing else. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "model/history.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"
#include "source/books/address-history.h"
#include "source/books/book-marks.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

static struct testing_book book;
static struct scan_book scan;
static struct view view;
static struct snapshot *snapshot;
static struct snapshot_request request;

static uint32_t text(const char *bytes)
{
	return intern_string(book.writer, bytes, strlen(bytes));
}

static uint32_t module(const char *path)
{
	const struct book_module one = {.base = 0x400000, .size = 0x10000, .path = text(path)};

	return intern_module(book.writer, &one);
}

static uint32_t stack(uint32_t in, uint64_t value)
{
	const struct book_frame frame = {.value = value, .module = in};

	return intern_stack_mixed(book.writer, &frame, 1, 0);
}

static void begin(void)
{
	testing_book_open(&book);
	scan = (struct scan_book){.owner = {.id.pid = 77, .ns_pid = 1, .comm = "many"},
				  .id.inode = 100,
				  .alive = true};
	assert(reader_init(&scan.reader, &book.file.file) == 0);
}

static void forget(void)
{
	snapshot = snapshot_free(snapshot);
}

static void end(void)
{
	forget();
	view_deinit(&view);
	totals_cache_deinit(&scan.totals_cache);
	reader_deinit(&scan.reader);
	testing_book_deinit(&book);
}

static void take(void)
{
	forget();
	snapshot = snapshot_new(1);
	assert(snapshot && book_collect(&scan, &request, &view, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0 && snapshot->process_count == 1);
}

UNIT(a_buffer_has_all_that_its_record_says)
{
	const struct book_shape shape = {.size_per_bank = 128, .banks = 3, .kernel_sort = 2};
	const struct shard_buffer full = {.address = 0x1000,
					  .size = 300,
					  .type = 1,
					  .flags = SNAPSHOT_FLAG_ALIAS,
					  .thread = 9,
					  .space = 2};
	struct shard_buffer buffer = full;
	const struct snapshot_buffer *row;

	begin();
	buffer.name = text("weights");
	buffer.phase = text("load");
	buffer.stack = stack(module("/lib/liba.so"), 0x101);
	buffer.shape = intern_shape(book.writer, &shape);
	writer_alloc(book.writer, 3, &buffer, 0);
	buffer = testing_buffer(0, 0x2000, 64);
	writer_alloc(book.writer, 3, &buffer, 0);
	writer_alloc(book.writer, 3, &buffer, 0); /* another reference */
	take();
	assert(snapshot->buffer_count == 0);
	request.buffers = true;
	take();
	assert(snapshot->buffer_count == 2 && snapshot->exact);
	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_PLACE);
	row = &snapshot->buffers[0];
	assert(row->address == 0x1000 && row->size == 300 && row->device == 3 && row->type == 1);
	assert(strcmp(row->name, "weights") == 0 && strcmp(row->phase, "load") == 0);
	assert(row->thread == 9 && row->space == 2 && row->refs == 1);
	assert(row->flags == SNAPSHOT_FLAG_ALIAS && row->banks == 3 && row->size_per_bank == 128);
	assert(row->kernel_sort == 2 && row->birth > 0 && row->born_ns > 0 && !row->closed);
	assert(strstr(testing_line(row->stack), "liba.so"));
	row = &snapshot->buffers[1];
	assert(row->refs == 2 && !row->name && !row->phase && !row->stack && row->banks == 0);
	/* Of another process, type or device nothing is listed. */
	request.filter = (struct filter){.has_type = true, .type = 0};
	take();
	assert(snapshot->buffer_count == 1 && snapshot->buffers[0].address == 0x2000);
	request.filter = (struct filter){.pid = 78};
	take();
	assert(snapshot->buffer_count == 0);
	request.filter = (struct filter){.device_count = 1, .devices = {{.value = 2}}};
	take();
	assert(snapshot->buffer_count == 0);
	end();
}

UNIT(a_device_has_all_that_was_declared)
{
	const struct writer_device declared = {
		.unique_id = 0xabc,
		.arch = "wormhole_b0",
		.card = "n300",
		.remote = 1,
		.l1_per_core = 7,
		.memory = {{.capacity = 1 << 20,
			    .bank_base = 64,
			    .bank_size = 1 << 17,
			    .banks = 8,
			    .alignment = 32}},
	};
	const struct snapshot_part *part;

	begin();
	writer_declare(book.writer, 2, &declared);
	writer_declare(book.writer, 9, &(struct writer_device){.arch = "blackhole"});
	writer_declare(book.writer, 10, &(struct writer_device){.unique_id = 5});
	writer_close_device(book.writer, 9);
	take();
	assert(snapshot->processes[0].part_count == 3);
	part = snapshot_find_part(snapshot, 0, 2);
	assert(part && part->facts.declared && part->facts.remote &&
	       part->facts.unique_id == 0xabc);
	assert(strcmp(part->facts.arch, "wormhole_b0") == 0);
	assert(strcmp(part->facts.card, "n300") == 0 && part->facts.l1_per_core == 7);
	assert(part->facts.capacity[0] == 1 << 20 && part->facts.capacity[1] == 0);
	assert(part->facts.windows[0].base == 64 && part->facts.windows[0].size == 1 << 17);
	assert(part->facts.windows[0].banks == 8 && part->facts.windows[0].alignment == 32);
	assert(part->facts.dram_banks == 8 && part->facts.dram_bank_size == 1 << 17);
	assert(part->facts.closed_ns == 0);
	part = snapshot_find_part(snapshot, 0, 9);
	assert(part && part->facts.closed_ns > 0 && !part->facts.card && !part->facts.remote);
	part = snapshot_find_part(snapshot, 0, 10);
	assert(part && part->facts.unique_id == 5 && !part->facts.arch);
	/* The second time they come from the cache. */
	take();
	assert(snapshot->processes[0].part_count == 3);
	assert(snapshot_find_part(snapshot, 0, 10)->facts.unique_id == 5);
	end();
}

static const struct snapshot_incident *incident(const char *kind)
{
	for (size_t i = 0; i < snapshot->incident_count; i++) {
		if (strcmp(snapshot->incidents[i].kind, kind) == 0)
			return &snapshot->incidents[i];
	}
	return NULL;
}

UNIT(incidents_have_their_parties)
{
	const struct writer_lack lack = {.largest_free = 512, .size_per_bank = 256};
	struct shard_buffer buffer = testing_buffer(1, 0x1000, 64), failed;
	const struct snapshot_incident *one;

	begin();
	request.incidents = true;
	buffer.name = text("kv");
	buffer.stack = stack(module("/lib/liba.so"), 0x101);
	writer_alloc(book.writer, 0, &buffer, 0);
	writer_free_buffer(book.writer, 0, &buffer);
	buffer.thread = 8;
	writer_free_buffer(book.writer, 0, &buffer);
	failed = testing_buffer(0, 0, 1 << 20);
	failed.phase = text("train");
	writer_failed(book.writer, 0, &failed, &lack);
	take();
	assert(snapshot->incident_count == 2);
	one = incident("double_free");
	assert(one && one->has_address && one->address == 0x1000 && one->count == 1);
	assert(one->type == 1 && one->device == 0 && one->first.known && one->second.known);
	assert(one->first.thread == 7 && one->second.thread == 8);
	assert(one->first.stack && one->second.stack && one->time_ns > 0);
	assert(one->first.time_ns <= one->second.time_ns && !one->explanation);
	one = incident("alloc_failed");
	assert(one && !one->has_address && one->size == 1 << 20 && one->largest_free == 512);
	assert(one->size_per_bank == 256 && strcmp(one->second.phase, "train") == 0);
	assert(!one->explanation && !one->first.known);
	/* Of another process they are not wanted. */
	request.filter = (struct filter){.pid = 78};
	take();
	assert(snapshot->incident_count == 0);
	request = (struct snapshot_request){.buffers = true};
	take();
	assert(snapshot->incident_count == 0);
	end();
}

/* Different sizes, so that each is an incident of its own. */
UNIT(the_newest_failures_are_explained)
{
	size_t explained;

	begin();
	for (uint64_t i = 1; i <= 5; i++) {
		const struct shard_buffer held = testing_buffer(0, 0x1000 * i, 64);
		struct shard_buffer failed = testing_buffer(0, 0, i << 20);

		failed.stack = stack(module("/lib/liba.so"), 0x101 + 16 * i);
		writer_alloc(book.writer, 0, &held, 0);
		writer_failed(book.writer, 0, &failed, &(struct writer_lack){.largest_free = 1});
	}
	/* Something later that is no failed allocation. */
	writer_free_buffer(book.writer, 0, &(struct shard_buffer){.address = 0x99000});
	for (uint32_t wanted = 0; wanted <= 6; wanted++) {
		request = (struct snapshot_request){.incidents = true, .explained = wanted};
		take();
		assert(snapshot->incident_count == 6);
		explained = 0;
		for (size_t i = 0; i < 6; i++) {
			const struct snapshot_incident *one = &snapshot->incidents[i];

			if (!one->explanation)
				continue;
			explained++;
			assert(strcmp(one->kind, "alloc_failed") == 0);
			assert(one->size > (uint64_t)(5 - (wanted < 5 ? wanted : 5)) << 20);
		}
		assert(explained == (wanted < 5 ? wanted : 5));
	}
	end();
}

UNIT(what_an_exited_process_left_is_an_incident_for_each_type)
{
	const struct shard_buffer buffers[] = {testing_buffer(0, 0x1000, 10),
					       testing_buffer(2, 0x1000, 20),
					       testing_buffer(2, 0x2000, 30)};
	const struct shard_buffer other = testing_buffer(1, 0x1000, 40);
	static const uint32_t sizes[] = {10, 50, 40}, counts[] = {1, 2, 1}, types[] = {0, 2, 1};

	begin();
	for (size_t i = 0; i < 3; i++)
		writer_alloc(book.writer, 1, &buffers[i], 0);
	writer_alloc(book.writer, 4, &other, 0);
	request.incidents = true;
	take();
	assert(snapshot->incident_count == 0);
	scan.alive = false;
	take();
	assert(snapshot->incident_count == 3);
	for (size_t i = 0; i < 3; i++) {
		const struct snapshot_incident *leak = &snapshot->incidents[i];

		assert(strcmp(leak->kind, "leak") == 0 && leak->last_ns > 0);
		assert(leak->size == sizes[i] && leak->count == counts[i]);
		assert(leak->type == types[i]);
		assert(leak->device == (i < 2 ? 1 : 4));
	}
	end();
}

UNIT(what_closing_ended_is_told_by_call_site)
{
	const struct shard_buffer who = {.thread = 5};
	const struct snapshot_incident *one;
	struct shard_buffer buffer;
	uint32_t in;

	begin();
	in = module("/lib/liba.so");
	/* In turns, so that equal call sites are not neighbours in the log. */
	for (uint32_t i = 0; i < 6; i++) {
		buffer = testing_buffer(i == 5 ? 1 : 0, 0x1000 * (i + 1), 100 + i);
		buffer.stack = stack(in, i % 2 ? 0x101 : 0x201);
		writer_alloc(book.writer, 0, &buffer, 0);
	}
	buffer = testing_buffer(0, 0x90000, 1);
	writer_alloc(book.writer, 0, &buffer, 0);
	writer_free_buffer(book.writer, 0, &buffer); /* in order */
	buffer = testing_buffer(0, 0xa0000, 1);
	buffer.flags = SNAPSHOT_FLAG_ALIAS;
	writer_alloc(book.writer, 0, &buffer, 0);
	assert(writer_end_space(book.writer, 0, &who) == 7);
	request = (struct snapshot_request){.incidents = true};
	take();
	assert(snapshot->incident_count == 0);
	request.held_at_close = true;
	take();
	assert(snapshot->incident_count == 3);
	for (size_t i = 0; i < 3; i++) {
		one = &snapshot->incidents[i];
		assert(strcmp(one->kind, TYPES_HELD_AT_CLOSE) == 0 && one->second.thread == 5);
		assert(one->first.stack && one->largest_free == UINT64_MAX);
		if (one->type == 1)
			assert(one->count == 1 && one->size == 105 && one->address == 0x6000);
		else if (one->count == 3)
			assert(one->size == 100 + 102 + 104 && !one->has_address);
		else
			assert(one->count == 2 && one->size == 101 + 103 && one->type == 0);
	}
	request = (struct snapshot_request){.buffers = true, .closed = true};
	take();
	assert(snapshot->buffer_count == 6);
	for (size_t i = 0; i < 6; i++)
		assert(snapshot->buffers[i].closed && snapshot->buffers[i].stack);
	request.filter = (struct filter){.has_type = true, .type = 1};
	take();
	assert(snapshot->buffer_count == 1 && snapshot->buffers[0].address == 0x6000);
	end();
}

UNIT(marks_come_in_their_order)
{
	struct mark_list marks = MARK_LIST_NULL;
	uint64_t lost = 7;
	char name[16];

	begin();
	snapshot = snapshot_new(1);
	assert(book_marks_read(&scan, snapshot, &marks, &lost) == 0);
	assert(marks.count == 0 && lost == 0);
	writer_mark(book.writer, text("first"), 1, text("load"));
	writer_mark(book.writer, 0, 1, 0);
	assert(book_marks_read(&scan, snapshot, &marks, &lost) == 0 && lost == 0);
	assert(marks.count == 2 && strcmp(marks.list[0].name, "first") == 0);
	assert(strcmp(marks.list[0].phase, "load") == 0 && !marks.list[1].name);
	assert(!marks.list[1].phase && marks.list[0].stamp <= marks.list[1].stamp);
	assert(marks.list[0].time_ns > 0);
	book_marks_deinit(&marks);
	for (uint32_t i = 0; i < BOOK_MARKS; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		writer_mark(book.writer, text(name), 1, 0);
	}
	assert(book_marks_read(&scan, snapshot, &marks, &lost) == 0 && lost == 2);
	assert(marks.count == BOOK_MARKS && strcmp(marks.list[0].name, "m0") == 0);
	book_marks_deinit(&marks);
	end();
}

/* One that its owner is just writing has not been there yet, or no more. */
UNIT(a_mark_that_is_half_written_is_left_out)
{
	struct mark_list marks = MARK_LIST_NULL;
	struct book_mark *half;
	uint64_t lost;

	begin();
	snapshot = snapshot_new(1);
	writer_mark(book.writer, text("a"), 1, 0);
	writer_mark(book.writer, text("b"), 1, 0);
	writer_mark(book.writer, text("c"), 1, 0);
	half = (void *)(book.base + BOOK_MARKS_OFFSET);
	half[1].commit = 0;
	assert(book_marks_read(&scan, snapshot, &marks, &lost) == 0 && lost == 1);
	assert(marks.count == 2 && strcmp(marks.list[0].name, "a") == 0);
	assert(strcmp(marks.list[1].name, "c") == 0);
	book_marks_deinit(&marks);
	end();
}

/* Native frames, innermost first, and Python ones with so many native ones outside of them. */
static const char *merged(const char *const *paths, size_t native, const uint32_t *outside,
			  size_t python)
{
	struct book_frame frames[16];
	struct shard_buffer buffer = testing_buffer(0, 0x1000, 64);
	const char *line;

	begin();
	for (size_t i = 0; i < native; i++)
		frames[i] = (struct book_frame){.value = 0x100 * (i + 1) + 1,
						.module = module(paths[i])};
	for (size_t i = 0; i < python; i++) {
		char function[32];

		snprintf(function, sizeof(function), "py%zu", i);
		frames[native + i] = (struct book_frame){
			.value = (uint64_t)text(function) << 32 | text("m.py"),
			.module = (uint32_t)i + 1,
			.flags = BOOK_FRAME_PYTHON | outside[i] << BOOK_FRAME_OUTSIDE_SHIFT,
		};
	}
	buffer.stack = intern_stack_mixed(book.writer, frames, native, python);
	writer_alloc(book.writer, 0, &buffer, 0);
	request.buffers = true;
	take();
	assert(snapshot->buffer_count == 1 && snapshot->buffers[0].stack);
	line = testing_line(snapshot->buffers[0].stack);
	end();
	return line;
}

/* Lines begin with the outermost frame. */
UNIT(python_frames_take_the_place_of_the_interpreter)
{
	static const char *const plain[] = {"/l/liba.so", "/l/libb.so"};
	static const char *const interpreted[] = {"/l/liba.so",    "/u/libpython3.11.so",
						  "/l/libb.so",    "/u/bin/python3",
						  "/u/bin/python", "/lib/libc.so.6"};
	static const char *const started[] = {"/l/liba.so", "/l/ld-linux.so", "/l/libc.so.6"};
	static const uint32_t outside[] = {4, 1};
	static const uint32_t none[] = {0, 0};

	assert(strcmp(merged(plain, 2, NULL, 0),
		      "libb.so+0x201 @ libb.so -> liba.so+0x101 @ liba.so") == 0);
	/* py1 has called b, and py0 has called a. */
	assert(strcmp(merged(interpreted, 6, outside, 2),
		      "m.py:2:py1 -> libb.so+0x301 @ libb.so -> m.py:1:py0 -> "
		      "liba.so+0x101 @ liba.so") == 0);
	/* Without an interpreter the start of the program is shown, too. */
	assert(strcmp(merged(started, 3, none, 2),
		      "m.py:2:py1 -> m.py:1:py0 -> libc.so.6+0x301 @ libc.so.6 -> "
		      "ld-linux.so+0x201 @ ld-linux.so -> liba.so+0x101 @ liba.so") == 0);
	/* Without Python frames the interpreter is a library like any other. */
	assert(strcmp(merged(&interpreted[1], 3, NULL, 0),
		      "python3+0x301 @ python3 -> libb.so+0x201 @ libb.so -> "
		      "libpython3.11.so+0x101 @ libpython3.11.so") == 0);
}

static const struct history_life *life(const struct history *history, uint32_t device,
				       uint32_t type)
{
	for (size_t i = 0; i < history->count; i++) {
		if (history->lives[i].device == device && history->lives[i].type == type)
			return &history->lives[i];
	}
	return NULL;
}

UNIT(an_address_has_its_own_history_on_each_device)
{
	struct snapshot_request wanted = {.filter = {.pid = 0}};
	struct history history = HISTORY_NULL;
	const struct history_life *one;

	begin();
	snapshot = snapshot_new(1);
	for (uint32_t device = 0; device < 3; device++) {
		for (uint64_t i = 1; i <= 3; i++) {
			const struct shard_buffer buffer =
				testing_buffer(device, 0x1000 * i, 10 * i);

			writer_alloc(book.writer, device, &buffer, 0);
			if (device > 0)
				writer_free_buffer(book.writer, device, &buffer);
		}
	}
	assert(address_history_collect(&scan, 0x2000, &wanted, &view, snapshot, &history) == 0);
	assert(history.count == 3);
	for (uint32_t device = 0; device < 3; device++) {
		one = life(&history, device, device);
		assert(one && one->address == 0x2000 && one->allocs == 1 && one->complete);
		assert(one->frees == (device > 0) && one->live == (device == 0));
		assert(one->count == 1 + one->frees && one->events[0].size == 20);
	}
	history_deinit(&history);
	history = HISTORY_NULL;
	wanted.filter = (struct filter){.has_type = true, .type = 1};
	assert(address_history_collect(&scan, 0x2000, &wanted, &view, snapshot, &history) == 0);
	assert(history.count == 1 && life(&history, 1, 1));
	history_deinit(&history);
	history = HISTORY_NULL;
	wanted.filter = (struct filter){.pid = 78};
	assert(address_history_collect(&scan, 0x2000, &wanted, &view, snapshot, &history) == 0);
	assert(history.count == 0);
	wanted.filter = (struct filter){.pid = 0};
	assert(address_history_collect(&scan, 0x9000, &wanted, &view, snapshot, &history) == 0);
	assert(history.count == 0);
	history_deinit(&history);
	end();
}

/* When the log has wrapped, graves still know frees, and records what lives. */
UNIT(what_the_log_has_forgotten_is_in_graves_and_records)
{
	const struct snapshot_request wanted = {.filter = {.pid = 0}};
	struct history history = HISTORY_NULL;
	const struct history_life *one;
	struct shard_buffer buffer = testing_buffer(0, 0x1000, 10);

	testing_book_init(&book, TESTING_SIZE, BOOK_RING_MIN);
	testing_book_write(&book);
	testing_book_read(&book);
	scan = (struct scan_book){.owner = {.id.pid = 77, .ns_pid = 1, .comm = "many"},
				  .alive = true};
	assert(reader_init(&scan.reader, &book.file.file) == 0);
	snapshot = snapshot_new(1);
	writer_alloc(book.writer, 0, &buffer, 0);
	writer_free_buffer(book.writer, 0, &buffer);
	buffer.size = 20;
	writer_alloc(book.writer, 0, &buffer, 0);
	for (uint64_t i = 0; i < BOOK_RING_MIN; i++) {
		const struct shard_buffer other = testing_buffer(0, 0x100000 + 0x1000 * i, 1);

		writer_alloc(book.writer, 0, &other, 0);
		if (i < 100)
			writer_free_buffer(book.writer, 0, &other);
	}
	assert(address_history_collect(&scan, 0x1000, &wanted, &view, snapshot, &history) == 0);
	one = life(&history, 0, 0);
	assert(history.count == 1 && one && one->live && !one->complete);
	assert(one->count == 3 && one->events[0].size == 10 && one->events[2].size == 20);
	assert(one->events[0].number == 0 && one->frees == 1 && one->allocs == 2);
	history_deinit(&history);
	end();
}
