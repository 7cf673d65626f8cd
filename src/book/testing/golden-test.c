/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Books of every version, kept in tests/corpus/golden, for the promise that later readers read them:
 * reading each NAME.book must give exactly NAME.txt, with a dead and with a living owner.
 *
 * To regenerate those of this version (only while no book of this version is in use anywhere; a changed layout gets
 * a new version and new files beside the old ones):
 *
 *	TTMEM_TEST_GOLDEN=tests/corpus/golden build/src/book-golden-test make
 */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/format/event.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-memory.h"
#include "book/write/index.h"

static void golden_text(FILE *out, const char *text, size_t length)
{
	fputc('"', out);
	for (size_t i = 0; i < length; i++) {
		if (text[i] >= ' ' && text[i] < 127 && text[i] != '"' && text[i] != '\\')
			fputc(text[i], out);
		else
			fprintf(out, "\\x%02x", (uint8_t)text[i]);
	}
	fputc('"', out);
}

static void golden_string(FILE *out, struct reader *reader, uint32_t id)
{
	size_t length = 0;
	const char *text = reader_string(reader, id, &length);

	fprintf(out, " %u:", id);
	if (text)
		golden_text(out, text, length);
}

static void golden_header(FILE *out, struct reader *reader)
{
	const struct book_header *h = &reader->header;

	fprintf(out,
		"book version %u size %" PRIu64 " room %" PRIu64 " ring %u source %u clock %u\n",
		h->version, h->file_size, h->room, h->ring_events, h->source, h->clock);
	fprintf(out, "pid %u keeper %u uid %u euid %u ticks %" PRIu64 " namespace %" PRIu64 "\n",
		h->pid, h->keeper, h->uid, h->euid, h->start_ticks, h->pid_namespace);
	fprintf(out, "start %" PRIu64 " %" PRIu64 " %" PRIu64 " comm %s library %s cmdline ",
		h->clock_start, h->monotonic_start, h->realtime_start, h->comm, h->library);
	golden_text(out, h->cmdline, h->cmdline_length);
	fprintf(out,
		"\nstate %u paused %u closed %" PRIu64 " reserved %" PRIu64 " lost graves %" PRIu64
		"\n",
		h->state, h->paused, h->closed_time, h->reserved_bytes, h->lost_graves);
	fprintf(out,
		"rejected %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRIu64 "\n",
		h->rejected.device, h->rejected.type, h->rejected.size, h->rejected.arguments,
		h->rejected.room, h->rejected.reentry, h->rejected.lock, h->rejected.paused);
}

/* What version 2 added, after what version 1 had. */
static void golden_place(FILE *out, const struct book_record *record,
			 const struct book_shape *shape, uint64_t occupied)
{
	fprintf(out, " flags %#x page %" PRIu64 " space %u", shape->flags, shape->page_size,
		book_space(record->thread_space));
	if (occupied != EVENT_OCCUPIED_UNKNOWN)
		fprintf(out, " occupied %" PRIu64, occupied);
}

static void golden_row(FILE *out, struct reader *reader, const struct book_record *r)
{
	struct book_shape shape = reader_shape(reader, r->shape);

	fprintf(out,
		"  %#" PRIx64 " size %" PRIu64 " type %u refs %u flags %#x birth %" PRIu64
		" thread %u stack %u",
		r->address, r->size, book_meta_type(r->meta), book_meta_refs(r->meta),
		book_meta_flags(r->meta), r->birth, book_thread(r->thread_space), r->stack);
	golden_string(out, reader, r->name);
	golden_string(out, reader, r->phase);
	fprintf(out, " shape %u: %" PRIu64 " %u %u %u", r->shape, shape.size_per_bank, shape.banks,
		shape.first_bank, shape.kernel_sort);
	if (reader_has_warm(reader))
		golden_place(out, r, &shape, reader_occupied(reader, r));
	fputc('\n', out);
}

static void golden_shard(FILE *out, struct reader *reader, const struct view *view)
{
	struct view_iterator it = {0};

	fprintf(out, "shard %u event %" PRIu64 " inexact %" PRIx64 " live %" PRIu64 " adds up %d\n",
		view->device, view->number, view->inexact, view->live, view->adds_up);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_hot *h = &view->hot[type];
		const struct book_cold *c = &view->cold[type];

		fprintf(out,
			" type %u: bytes %" PRIu64 " buffers %" PRIu64 " peak %" PRIu64
			" at %" PRIu64 " allocs %" PRIu64 " frees %" PRIu64 " last %" PRIu64 ";",
			type, h->bytes, h->buffers, h->peak, h->peak_time, h->allocs, h->frees,
			h->last);
		fprintf(out,
			" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			" %" PRIu64,
			c->unknown_frees, c->double_frees, c->size_changes, c->realloc_live,
			c->ambiguous_frees, c->hooked, c->overflow_frees);
		if (reader_has_warm(reader))
			fprintf(out, "; occupied %" PRIu64 " known %u unplaced %u",
				view->warm[type].occupied, view->warm[type].known,
				view->warm[type].unplaced_frees);
		fputc('\n', out);
	}
	while (view_next(view, &it))
		golden_row(out, reader, it.record);
}

static void golden_party(FILE *out, struct reader *reader, const struct book_party *party)
{
	fprintf(out, "  time %" PRIu64 " size %" PRIu64 " thread %u stack %u", party->time,
		party->size, party->thread, party->stack);
	golden_string(out, reader, party->name);
	golden_string(out, reader, party->phase);
	fputc('\n', out);
}

static void golden_rest(FILE *out, struct reader *reader)
{
	struct book_incident incident;
	struct book_device device;
	struct book_mark mark;

	for (uint32_t kind = 0; kind < BOOK_INCIDENT_KINDS; kind++) {
		for (uint32_t i = 0; reader_incident(reader, kind, i, &incident) == 0; i++) {
			fprintf(out,
				"incident %u: %#" PRIx64 " size %" PRIu64 " free %" PRIu64
				" device %u type %u count %" PRIu64 " last %" PRIu64,
				kind, incident.address, incident.size, incident.largest_free,
				incident.device, incident.type, incident.count, incident.last_time);
			if (reader_has_warm(reader))
				fprintf(out, " space %u", incident.space);
			fputc('\n', out);
			golden_party(out, reader, &incident.first);
			golden_party(out, reader, &incident.second);
		}
	}
	for (uint64_t n = 0; reader_mark(reader, n, &mark) == 0; n++) {
		fprintf(out, "mark %" PRIu64 ": time %" PRIu64 " thread %u", n, mark.time,
			mark.thread);
		golden_string(out, reader, mark.name);
		fputc('\n', out);
	}
	for (uint32_t n = 0; n < BOOK_DEVICES; n++) {
		if (reader_device(reader, n, &device) < 0)
			continue;
		fprintf(out,
			"device %u: id %" PRIx64 " remote %u arch %s card %s cores %u l1 %u closed"
			" %" PRIu64 " capacity %" PRIu64 "\n",
			n, device.unique_id, device.remote, device.arch, device.card, device.cores,
			device.l1_per_core, device.closed_time, device.memory[0].capacity);
	}
}

/* The whole contents of a book, as text; the caller frees it. */
static char *golden_print(struct testing_memory *memory, enum view_owner owner)
{
	struct view *view = calloc(1, sizeof(*view));
	struct reader reader;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert(view && out);
	assert(reader_init(&reader, &memory->file) == 0);
	golden_header(out, &reader);
	for (int64_t device = reader_next_shard(&reader, 0); device >= 0;
	     device = reader_next_shard(&reader, (uint32_t)device + 1)) {
		assert(view_read(view, &reader, (uint32_t)device, owner) == 0);
		assert(view->rows_exact);
		golden_shard(out, &reader, view);
	}
	golden_rest(out, &reader);
	assert(fclose(out) == 0);
	view_deinit(view);
	free(view);
	reader_deinit(&reader);
	return text;
}

static void golden_check(const char *name)
{
	struct testing_memory memory;
	char path[PATH_MAX];
	char *expected = calloc(1, 1u << 20);
	FILE *in;

	assert(expected);
	snprintf(path, sizeof(path), "%s/golden/%s.txt", testing_corpus(), name);
	in = fopen(path, "re");
	assert(in && fread(expected, 1, (1u << 20) - 1, in) > 0);
	fclose(in);
	snprintf(path, sizeof(path), "%s/golden/%s.book", testing_corpus(), name);
	testing_memory_load(&memory, path);
	for (int owner = VIEW_LIVING; owner <= VIEW_DEAD; owner++) {
		char *text = golden_print(&memory, (enum view_owner)owner);

		if (strcmp(text, expected) != 0)
			printf("%s, owner %d, is not as expected but:\n%s", name, owner, text);
		assert(strcmp(text, expected) == 0);
		free(text);
	}
	testing_memory_deinit(&memory);
	free(expected);
}

UNIT(empty_book_is_read_as_ever)
{
	golden_check("v1-empty");
	golden_check("v2-empty");
}

UNIT(full_book_is_read_as_ever)
{
	golden_check("v1-everything");
	golden_check("v2-everything");
}

/* Two buffers at one key but for their space; counters of what is occupied, in a checkpoint too. */
UNIT(spaces_and_occupancy_are_read_as_ever)
{
	golden_check("v2-spaces");
}

/* The ring has wrapped; more buffers than a page of records holds; the book was closed. */
UNIT(wrapped_ring_is_read_as_ever)
{
	golden_check("v1-wrapped");
	golden_check("v2-wrapped");
}

/* The owner died after it had published a size change and before it applied any of it. */
UNIT(death_in_a_size_change_is_read_as_ever)
{
	golden_check("v1-died");
	golden_check("v2-died");
}

static void golden_make_wrapped(struct testing_memory *memory)
{
	for (uint32_t i = 0; i < 600; i++) {
		struct shard_buffer buffer = testing_buffer(i % 3, i * 64, 64 + i);

		writer_alloc(memory->writer, 7, &buffer, 0);
		if (i >= 120) {
			buffer = testing_buffer((i - 120) % 3, (i - 120) * 64, 0);
			writer_free_buffer(memory->writer, 7, &buffer);
		}
	}
	writer_goodbye(memory->writer);
}

static void golden_make_spaces(struct testing_memory *memory)
{
	const struct book_shape shapes[] = {
		{.size_per_bank = 2048,
		 .banks = 12,
		 .flags = BOOK_SHAPE_BOTTOM_UP | BOOK_SHAPE_INTERLEAVED,
		 .page_size = 2048},
		{.size_per_bank = 102400, .banks = 8, .flags = BOOK_SHAPE_SHARDED},
		{.banks = 3},
	};
	struct writer *writer = memory->writer;

	for (uint32_t i = 0; i < 300; i++) {
		struct shard_buffer buffer = testing_buffer(i % 2, 0x169000 + i / 9 * 64, 2048 + i);

		buffer.space = i % 3 == 2 ? BOOK_SPACES - 1 : i % 3;
		buffer.shape = i % 5 ? intern_shape(writer, &shapes[i % 3]) : 0;
		writer_alloc(writer, 3, &buffer, 0);
		if (i % 4 == 0) {
			buffer.space = 0;
			writer_free_buffer(writer, 3, &buffer);
		}
	}
	(void)writer_end_space(writer, 3, &(struct shard_buffer){.space = 1, .thread = 8});
}

/* Record and counters as they were before the last operation; head and log as they are after it. */
static void golden_make_died(struct testing_memory *memory)
{
	const struct book_shape shape = {.size_per_bank = 64, .banks = 2};
	struct shard_buffer buffer = testing_buffer(2, 0x1000, 100);
	struct book_record *record, before;
	struct book_shard page;
	struct shard *shard;

	buffer.shape = intern_shape(memory->writer, &shape);
	writer_alloc(memory->writer, 0, &buffer, 0);
	writer_alloc(memory->writer, 0, &buffer, 0);
	shard = memory->writer->shards[0];
	record = records_at(&shard->records, 0);
	page = *shard->page;
	before = *record;
	buffer.size = 70;
	writer_alloc(memory->writer, 0, &buffer, 0);
	*record = before;
	memcpy(shard->page->hot, page.hot, sizeof(page.hot));
	memcpy(shard->page->cold, page.cold, sizeof(page.cold));
	memcpy(shard->page->warm, page.warm, sizeof(page.warm));
}

static void golden_make_nothing(struct testing_memory *memory)
{
}

static void golden_make(const char *name, void (*fill)(struct testing_memory *memory))
{
	const char *folder = getenv("TTMEM_TEST_GOLDEN");
	struct testing_memory memory;
	char path[PATH_MAX];
	char *text;
	FILE *out;

	testing_memory_init(&memory, TESTING_MEMORY_SIZE);
	testing_memory_write(&memory, BOOK_RING_MIN);
	fill(&memory);
	snprintf(path, sizeof(path), "%s/%s.book", folder, name);
	testing_memory_save(&memory, path);
	text = golden_print(&memory, VIEW_DEAD);
	snprintf(path, sizeof(path), "%s/%s.txt", folder, name);
	out = fopen(path, "we");
	assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
	free(text);
	testing_memory_deinit(&memory);
}

UNIT(golden_files_are_made_on_request)
{
	if (!getenv("TTMEM_TEST_GOLDEN"))
		return; /* not requested */
	golden_make("v2-empty", golden_make_nothing);
	golden_make("v2-everything", testing_memory_fill);
	golden_make("v2-wrapped", golden_make_wrapped);
	golden_make("v2-died", golden_make_died);
	golden_make("v2-spaces", golden_make_spaces);
}
