/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The old system's debug logs. Nothing here takes a lock, not even one of libc's (its time
 * conversions do): a call may come from a signal handler.
 */

#include "compat/oldlog/oldlog.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "base/append.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/process/freeze.h"
#include "book/write/writer.h"
#include "compat/oldlog/oldlog-names.h"
#include "compat/oldlog/oldlog-text.h"
#include "compat/oldlog/oldlog-zone.h"
#include "lib/process/append-file.h"
#include "lib/process/thread.h"

#define OLDLOG_RECORD 3072u /* of a record without its symbols: the stack may be a small one */
#define OLDLOG_PIECES (2 * OLDLOG_NAMES_FRAMES + 1)
#define OLDLOG_LOOK_BACK 64u /* events that are searched for the one of a free */

enum {
	OLDLOG_BUFFER,
	OLDLOG_DETAILED,
	OLDLOG_STACK,
	OLDLOG_LOGS,
};

/* One of the logs. */
struct oldlog_file {
	bool is_on;
	bool is_shared; /* the default path, in a world-writable directory */
	char path[PATH_MAX];
};

static struct oldlog_file oldlog_files[OLDLOG_LOGS];
static struct oldlog_filter oldlog_wanted;
static bool oldlog_decided;
static struct oldlog_zone oldlog_zone;

static uint32_t oldlog_count;  /* allocations in the stack trace log, of this process */
static uint32_t oldlog_header; /* the process that has written its header there */

static void oldlog_open_file(struct oldlog_file *file, const char *variable, const char *usual)
{
	char name[64];
	const char *says = secure_getenv(variable);
	const char *path;

	(void)snprintf(name, sizeof(name), "%s_FILE", variable); /* fits */
	path = secure_getenv(name);
	file->is_shared = !path || !*path;
	if (file->is_shared)
		path = usual;
	if (!says || strcmp(says, "1") != 0 || strlen(path) >= sizeof(file->path))
		return;
	memcpy(file->path, path, strlen(path) + 1);
	file->is_on = true;
}

void oldlog_open(void)
{
	if (oldlog_decided)
		return;
	oldlog_decided = true;
	oldlog_open_file(&oldlog_files[OLDLOG_BUFFER], "TT_BUFFER_DEBUG_LOG",
			 "/tmp/tt_buffer_debug.log");
	oldlog_open_file(&oldlog_files[OLDLOG_DETAILED], "TT_ALLOC_TRACKING_DETAILED",
			 "/tmp/tt_alloc_detailed.log");
	oldlog_open_file(&oldlog_files[OLDLOG_STACK], "TT_ALLOC_STACK_TRACE",
			 "/tmp/tt_alloc_stack_traces.log");
	if (!oldlog_is_on())
		return;
	oldlog_text_filter(&oldlog_wanted, secure_getenv("TT_BUFFER_DEBUG_DEVICE"),
			   secure_getenv("TT_BUFFER_DEBUG_TYPE"));
	oldlog_zone_learn(&oldlog_zone, time(NULL));
}

bool oldlog_is_on(void)
{
	return !freeze_is_on() &&
	       (oldlog_files[OLDLOG_BUFFER].is_on || oldlog_files[OLDLOG_DETAILED].is_on ||
		oldlog_files[OLDLOG_STACK].is_on);
}

bool oldlog_has_stacks(void)
{
	return oldlog_files[OLDLOG_BUFFER].is_on || oldlog_files[OLDLOG_STACK].is_on;
}

/*
 * A record as it is put together. The symbols of C++ may be thousands of bytes each: they are written from
 * where they are kept, and only what stands between them is made here.
 */
struct oldlog_record {
	int count; /* of pieces */
	struct iovec pieces[OLDLOG_PIECES];
	size_t told; /* bytes that are in a piece */
	struct append text;
	char bytes[OLDLOG_RECORD];
};

static void oldlog_begin(struct oldlog_record *record)
{
	record->count = 0;
	record->told = 0;
	record->text = (struct append){.bytes = record->bytes, .size = sizeof(record->bytes)};
}

static void oldlog_add_piece(struct oldlog_record *record, const char *bytes, size_t length)
{
	/* There are never more; if that changes, losing a symbol is better than a crash. */
	if (length > 0 && record->count < (int)OLDLOG_PIECES)
		record->pieces[record->count++] =
			(struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
}

/* What was added up to here becomes a piece. */
static void oldlog_tell(struct oldlog_record *record)
{
	oldlog_add_piece(record, record->bytes + record->told, record->text.length - record->told);
	record->told = record->text.length;
}

/* Adds @text, which stays where it is. */
static void oldlog_add_kept(struct oldlog_record *record, const char *text)
{
	oldlog_tell(record);
	oldlog_add_piece(record, text, strlen(text));
}

static void oldlog_put(const struct oldlog_file *file, struct oldlog_record *record)
{
	oldlog_tell(record);
	append_file_record(file->path, file->is_shared, record->pieces, record->count);
}

/* How a log prints frames. */
struct oldlog_style {
	size_t frames; /* at most */
	const char *indent;
	const char *between; /* module and symbol */
	bool has_offset;     /* in the symbol, which is then not decoded */
};

static const struct oldlog_style oldlog_styles[OLDLOG_LOGS] = {
	[OLDLOG_BUFFER] = {.frames = 8, .indent = "    ", .between = ": "},
	[OLDLOG_STACK] = {.frames = OLDLOG_NAMES_FRAMES,
			  .indent = "  ",
			  .between = " : ",
			  .has_offset = true},
};

/* The call stack, one frame in a line. */
static void oldlog_stack(struct oldlog_record *record, const struct oldlog_buffer *buffer,
			 const struct oldlog_style *style)
{
	struct oldlog_frame frames[OLDLOG_NAMES_FRAMES];
	size_t count = oldlog_names_find(buffer->stack, frames, style->frames);

	for (size_t i = 0; i < count; i++) {
		const struct oldlog_frame *frame = &frames[i];

		append(&record->text, "%s%s", style->indent, frame->module);
		if (*frame->symbol) {
			append(&record->text, "%s", style->between);
			oldlog_add_kept(record, style->has_offset ? frame->symbol : frame->name);
			if (style->has_offset)
				append(&record->text, "+0x%" PRIx64, frame->offset);
		} else
			append(&record->text, "(+0x%" PRIx64 ")", frame->offset);
		append(&record->text, "\n");
	}
	append(&record->text, "\n");
}

static int64_t oldlog_now(void)
{
	return oldlog_zone_local(&oldlog_zone, time(NULL));
}

static void oldlog_size(struct oldlog_record *record, const struct oldlog_buffer *buffer)
{
	char kb[OLDLOG_TEXT_NUMBER];

	if (buffer->size == 0 && !buffer->has_flags)
		append(&record->text, "Size: unknown\n");
	else
		append(&record->text, "Size: %" PRIu64 " bytes (%s KB)\n", buffer->size,
		       oldlog_text_kb(buffer->size, kb));
}

static const char *oldlog_yes_or_no(const struct oldlog_buffer *buffer, uint32_t flag)
{
	if (!buffer->has_flags)
		return "unknown";
	return buffer->flags & flag ? "yes" : "no";
}

/* What a record of the buffer log tells; the titles are the old system's. */
enum oldlog_what {
	OLDLOG_ALLOCATED,
	OLDLOG_DEALLOCATED,
	OLDLOG_DESTRUCTOR,
};

static const char *const oldlog_titles[] = {
	[OLDLOG_ALLOCATED] = "ALLOCATED",
	[OLDLOG_DEALLOCATED] = "DEALLOCATED",
	[OLDLOG_DESTRUCTOR] = "DESTRUCTOR (still ALLOCATED - will deallocate)",
};

static void oldlog_buffer_record(const struct oldlog_buffer *buffer, enum oldlog_what what)
{
	struct oldlog_record record;
	int64_t seconds = oldlog_now();

	oldlog_begin(&record);
	if (!oldlog_text_wants(&oldlog_wanted, buffer->device, buffer->type))
		return;
	append(&record.text, OLDLOG_TEXT_DOUBLE_LINE "\nBUFFER %s\n", oldlog_titles[what]);
	append(&record.text, "Time: %02d:%02d:%02d\n", (int)(seconds / 3600 % 24),
	       (int)(seconds / 60 % 60), (int)(seconds % 60));
	append(&record.text, "Device: %" PRIu32 "\nAddress: 0x%" PRIx64 " (%" PRIu64 ")\n",
	       buffer->device, buffer->address, buffer->address);
	oldlog_size(&record, buffer);
	append(&record.text, "Type: %s\n", oldlog_text_short_type(buffer->type));
	/* Circular buffers and kernels belong to a program or a device, which is no Buffer. */
	if (buffer->owner && buffer->type != TTMEM_CB && buffer->type != TTMEM_KERNEL)
		append(&record.text, "Buffer*: 0x%" PRIx64 "\n", buffer->owner);
	else
		append(&record.text, "Buffer*: unknown\n");
	if (what == OLDLOG_ALLOCATED)
		append(&record.text, "Owns Data: %s\nHooked: %s\n",
		       oldlog_yes_or_no(buffer, TTMEM_FLAG_OWNS_DATA),
		       buffer->flags & TTMEM_FLAG_HOOKED ? "yes" : "no");
	append(&record.text, "Call Stack:\n");
	oldlog_stack(&record, buffer, &oldlog_styles[OLDLOG_BUFFER]);
	oldlog_put(&oldlog_files[OLDLOG_BUFFER], &record);
}

static void oldlog_detailed_line(const struct oldlog_buffer *buffer)
{
	struct oldlog_record record;

	oldlog_begin(&record);
	append(&record.text,
	       "ALLOC: pid=%d device=%" PRIu32 " size=%" PRIu64 " type=%" PRIu32 " addr=0x%" PRIx64
	       " timestamp=%" PRIu64 "\n",
	       (int)getpid(), buffer->device, buffer->size, buffer->type, buffer->address,
	       clock_ns_kernel(CLOCK_REALTIME));
	oldlog_put(&oldlog_files[OLDLOG_DETAILED], &record);
}

static void oldlog_stack_record(const struct oldlog_buffer *buffer, bool is_free)
{
	struct oldlog_record record;
	uint32_t pid = (uint32_t)getpid();
	char date[OLDLOG_TEXT_NUMBER];

	oldlog_begin(&record);
	/* A forked child begins its own. */
	if (__atomic_exchange_n(&oldlog_header, pid, __ATOMIC_RELAXED) != pid) {
		__atomic_store_n(&oldlog_count, 0, __ATOMIC_RELAXED);
		append(&record.text,
		       "=== TT-Metal Buffer Allocation Stack Traces ===\nPID: %" PRIu32 "\n", pid);
	}
	append(&record.text, OLDLOG_TEXT_LINE "\n");
	if (is_free)
		append(&record.text, "Deallocation\n");
	else
		append(&record.text, "Allocation #%" PRIu32 "\n",
		       __atomic_add_fetch(&oldlog_count, 1, __ATOMIC_RELAXED));
	append(&record.text, "Time: %s\nDevice: %" PRIu32 "\nType: %s\n",
	       oldlog_text_date(oldlog_now(), date), buffer->device,
	       oldlog_text_type(buffer->type));
	oldlog_size(&record, buffer);
	append(&record.text, "Address: 0x%" PRIx64 "\nStack trace:\n", buffer->address);
	oldlog_stack(&record, buffer, &oldlog_styles[OLDLOG_STACK]);
	oldlog_put(&oldlog_files[OLDLOG_STACK], &record);
}

void oldlog_alloc(const struct oldlog_buffer *buffer)
{
	if (oldlog_files[OLDLOG_BUFFER].is_on)
		oldlog_buffer_record(buffer, OLDLOG_ALLOCATED);
	/* The other logs cannot express that there is no memory behind it. */
	if (buffer->flags & TTMEM_FLAG_HOOKED)
		return;
	if (oldlog_files[OLDLOG_DETAILED].is_on)
		oldlog_detailed_line(buffer);
	if (oldlog_files[OLDLOG_STACK].is_on)
		oldlog_stack_record(buffer, false);
}

uint64_t oldlog_mark(const struct writer *writer, uint32_t device)
{
	const struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);

	/* Pairs with the release in shard_publish(): an event is complete when its number is seen. */
	return shard ? __atomic_load_n(&shard->page->head, __ATOMIC_ACQUIRE) : 0;
}

/* An event of the book's own log. False: it is not there, or was overwritten meanwhile. */
static bool oldlog_event(const struct writer *writer, uint32_t device, uint64_t number,
			 struct book_event *ret_event)
{
	const struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);

	if (!shard || number == 0)
		return false;
	bits_copy(ret_event, &shard->ring[number & shard->ring_mask], sizeof(*ret_event));
	/*
	 * Pairs with the barrier in shard_publish(): if a byte of a newer event was copied, head is
	 * seen at least as new as the event before it. Acquire alone would allow the copy to happen
	 * after the load of head. Two events at a time may be in flight.
	 */
	bits_load_barrier();
	return oldlog_mark(writer, device) + 2 < number + shard->ring_mask;
}

static void oldlog_freed(const struct oldlog_buffer *buffer)
{
	if (oldlog_files[OLDLOG_BUFFER].is_on && buffer->flags & TTMEM_FREE_DESTRUCTOR)
		oldlog_buffer_record(buffer, OLDLOG_DESTRUCTOR);
	if (oldlog_files[OLDLOG_BUFFER].is_on)
		oldlog_buffer_record(buffer, OLDLOG_DEALLOCATED);
	if (oldlog_files[OLDLOG_STACK].is_on && !(buffer->flags & TTMEM_FLAG_HOOKED))
		oldlog_stack_record(buffer, true);
}

void oldlog_free(struct writer *writer, const struct oldlog_buffer *buffer)
{
	struct oldlog_buffer told = *buffer;
	uint64_t head = oldlog_mark(writer, buffer->device);
	struct book_event event;

	for (uint64_t n = head; n > 0 && head - n < OLDLOG_LOOK_BACK; n--) {
		uint32_t type;

		if (!oldlog_event(writer, buffer->device, n, &event))
			break;
		type = book_meta_type(event.record.meta);
		if (event.record.address != buffer->address ||
		    (buffer->type != TTMEM_ANY && type != buffer->type))
			continue;
		told.size = event.record.size;
		told.type = type < BOOK_TYPES ? type : buffer->type;
		break;
	}
	oldlog_freed(&told);
}

void oldlog_free_all(struct writer *writer, uint32_t device, uint64_t mark,
		     const struct thread *thread)
{
	uint64_t head = oldlog_mark(writer, device);
	struct book_event event;

	for (uint64_t n = mark + 1; n <= head; n++) {
		if (!oldlog_event(writer, device, n, &event) ||
		    (event.op_slot & BOOK_OP_MASK) != BOOK_OP_FREE ||
		    book_thread(event.record.thread_space) != thread->tid)
			continue;
		oldlog_freed(&(struct oldlog_buffer){
			.address = event.record.address,
			.size = event.record.size,
			.device = device,
			.type = book_meta_type(event.record.meta),
			.stack = event.stack,
		});
	}
}
