/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The old system's debug logs. Nothing here takes a lock, not even one of libc's (its time
 * conversions do): a call may come from a signal handler.
 */

#include "lib/api/debug-log.h"

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
#include "legacy/debug-log/debug-log-names.h"
#include "legacy/debug-log/debug-log-text.h"
#include "legacy/debug-log/debug-log-zone.h"
#include "lib/process/append-file.h"
#include "lib/process/thread.h"

#define DEBUG_LOG_RECORD 3072u /* of a record without its symbols: the stack may be a small one */
#define DEBUG_LOG_PIECES (2 * DEBUG_LOG_NAMES_FRAMES + 1)
#define DEBUG_LOG_LOOK_BACK 64u /* events that are searched for the one of a free */

enum {
	DEBUG_LOG_BUFFER,
	DEBUG_LOG_DETAILED,
	DEBUG_LOG_STACK,
	DEBUG_LOG_LOGS,
};

/* One of the logs. */
struct debug_log_file {
	bool is_on;
	bool is_shared; /* the default path, in a world-writable directory */
	char path[PATH_MAX];
};

static struct debug_log_file debug_log_files[DEBUG_LOG_LOGS];
static struct debug_log_filter debug_log_wanted;
static bool debug_log_decided;
static bool debug_log_has_zone;
static struct debug_log_zone debug_log_zone;

static uint32_t debug_log_count;  /* allocations in the stack trace log, of this process */
static uint32_t debug_log_header; /* the process that has written its header there */

static const char *const debug_log_variables[DEBUG_LOG_LOGS] = {
	[DEBUG_LOG_BUFFER] = "TT_BUFFER_DEBUG_LOG",
	[DEBUG_LOG_DETAILED] = "TT_ALLOC_TRACKING_DETAILED",
	[DEBUG_LOG_STACK] = "TT_ALLOC_STACK_TRACE",
};

static const char *const debug_log_paths[DEBUG_LOG_LOGS] = {
	[DEBUG_LOG_BUFFER] = "/tmp/tt_buffer_debug.log",
	[DEBUG_LOG_DETAILED] = "/tmp/tt_alloc_detailed.log",
	[DEBUG_LOG_STACK] = "/tmp/tt_alloc_stack_traces.log",
};

static bool debug_log_is_asked_for(uint32_t log)
{
	const char *says = secure_getenv(debug_log_variables[log]);

	return says && strcmp(says, "1") == 0;
}

/* The buffer log never needed the server, so it needs no second setting here. */
bool debug_log_tracks(void)
{
	return debug_log_is_asked_for(DEBUG_LOG_BUFFER);
}

static void debug_log_find_zone(void)
{
	if (!debug_log_has_zone)
		debug_log_zone_learn(&debug_log_zone, time(NULL));
	debug_log_has_zone = true;
}

void debug_log_prepare(void)
{
	for (uint32_t i = 0; i < DEBUG_LOG_LOGS; i++) {
		if (debug_log_is_asked_for(i))
			debug_log_find_zone();
	}
}

static void debug_log_open_file(uint32_t log)
{
	struct debug_log_file *file = &debug_log_files[log];
	char name[64];
	const char *path;

	(void)snprintf(name, sizeof(name), "%s_FILE", debug_log_variables[log]); /* fits */
	path = secure_getenv(name);
	file->is_shared = !path || !*path;
	if (file->is_shared)
		path = debug_log_paths[log];
	if (!debug_log_is_asked_for(log) || strlen(path) >= sizeof(file->path))
		return;
	memcpy(file->path, path, strlen(path) + 1);
	file->is_on = true;
}

void debug_log_open(void)
{
	if (debug_log_decided)
		return;
	debug_log_decided = true;
	for (uint32_t i = 0; i < DEBUG_LOG_LOGS; i++)
		debug_log_open_file(i);
	if (!debug_log_is_on())
		return;
	debug_log_text_filter(&debug_log_wanted, secure_getenv("TT_BUFFER_DEBUG_DEVICE"),
			      secure_getenv("TT_BUFFER_DEBUG_TYPE"));
	debug_log_find_zone(); /* only if the program has set the variable itself */
}

bool debug_log_is_on(void)
{
	return !freeze_is_on() && (debug_log_files[DEBUG_LOG_BUFFER].is_on ||
				   debug_log_files[DEBUG_LOG_DETAILED].is_on ||
				   debug_log_files[DEBUG_LOG_STACK].is_on);
}

void debug_log_new_book(void)
{
	debug_log_names_open();
}

void debug_log_new_stack(uint32_t id, const uintptr_t *addresses, size_t count, size_t room)
{
	if (debug_log_files[DEBUG_LOG_BUFFER].is_on || debug_log_files[DEBUG_LOG_STACK].is_on)
		debug_log_names_learn(id, addresses, count, room);
}

/*
 * A record as it is put together. The symbols of C++ may be thousands of bytes each: they are written from
 * where they are kept, and only what stands between them is made here.
 */
struct debug_log_record {
	int count; /* of pieces */
	struct iovec pieces[DEBUG_LOG_PIECES];
	size_t told; /* bytes that are in a piece */
	struct append text;
	char bytes[DEBUG_LOG_RECORD];
};

static void debug_log_begin(struct debug_log_record *record)
{
	record->count = 0;
	record->told = 0;
	record->text = (struct append){.bytes = record->bytes, .size = sizeof(record->bytes)};
}

static void debug_log_add_piece(struct debug_log_record *record, const char *bytes, size_t length)
{
	/* There are never more; if that changes, losing a symbol is better than a crash. */
	if (length > 0 && record->count < (int)DEBUG_LOG_PIECES)
		record->pieces[record->count++] =
			(struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
}

/* What was added up to here becomes a piece. */
static void debug_log_tell(struct debug_log_record *record)
{
	debug_log_add_piece(record, record->bytes + record->told,
			    record->text.length - record->told);
	record->told = record->text.length;
}

/* Adds @text, which stays where it is. */
static void debug_log_add_kept(struct debug_log_record *record, const char *text)
{
	debug_log_tell(record);
	debug_log_add_piece(record, text, strlen(text));
}

static void debug_log_put(const struct debug_log_file *file, struct debug_log_record *record)
{
	debug_log_tell(record);
	append_file_record(file->path, file->is_shared, record->pieces, record->count);
}

/* How a log prints frames. */
struct debug_log_style {
	size_t frames; /* at most */
	const char *indent;
	const char *between; /* module and symbol */
	bool has_offset;     /* in the symbol, which is then not decoded */
};

static const struct debug_log_style debug_log_styles[DEBUG_LOG_LOGS] = {
	[DEBUG_LOG_BUFFER] = {.frames = 8, .indent = "    ", .between = ": "},
	[DEBUG_LOG_STACK] = {.frames = DEBUG_LOG_NAMES_FRAMES,
			     .indent = "  ",
			     .between = " : ",
			     .has_offset = true},
};

/* The call stack, one frame in a line. */
static void debug_log_stack(struct debug_log_record *record, const struct debug_log_buffer *buffer,
			    const struct debug_log_style *style)
{
	struct debug_log_frame frames[DEBUG_LOG_NAMES_FRAMES];
	size_t count = debug_log_names_find(buffer->stack, frames, style->frames);

	for (size_t i = 0; i < count; i++) {
		const struct debug_log_frame *frame = &frames[i];

		append(&record->text, "%s%s", style->indent, frame->module);
		if (*frame->symbol) {
			append(&record->text, "%s", style->between);
			debug_log_add_kept(record, style->has_offset ? frame->symbol : frame->name);
			if (style->has_offset)
				append(&record->text, "+0x%" PRIx64, frame->offset);
		} else
			append(&record->text, "(+0x%" PRIx64 ")", frame->offset);
		append(&record->text, "\n");
	}
	append(&record->text, "\n");
}

static int64_t debug_log_now(void)
{
	return debug_log_zone_local(&debug_log_zone, time(NULL));
}

static void debug_log_size(struct debug_log_record *record, const struct debug_log_buffer *buffer)
{
	char kb[DEBUG_LOG_TEXT_NUMBER];

	if (buffer->size == 0 && !buffer->has_flags)
		append(&record->text, "Size: unknown");
	else
		append(&record->text, "Size: %" PRIu64 " bytes (%s KB)", buffer->size,
		       debug_log_text_kb(buffer->size, kb));
}

/* The old system had no spaces: in all but the usual one, one address may have a buffer in each. */
static void debug_log_space(struct debug_log_record *record, const struct debug_log_buffer *buffer)
{
	if (buffer->space)
		append(&record->text, " in space %" PRIu32, buffer->space);
	append(&record->text, "\n");
}

static const char *debug_log_yes_or_no(const struct debug_log_buffer *buffer, uint32_t flag)
{
	if (!buffer->has_flags)
		return "unknown";
	return buffer->flags & flag ? "yes" : "no";
}

/* What a record of the buffer log tells; the titles are the old system's. */
enum debug_log_what {
	DEBUG_LOG_ALLOCATED,
	DEBUG_LOG_DEALLOCATED,
	DEBUG_LOG_DESTRUCTOR,
};

static const char *const debug_log_titles[] = {
	[DEBUG_LOG_ALLOCATED] = "ALLOCATED",
	[DEBUG_LOG_DEALLOCATED] = "DEALLOCATED",
	[DEBUG_LOG_DESTRUCTOR] = "DESTRUCTOR (still ALLOCATED - will deallocate)",
};

static void debug_log_buffer_record(const struct debug_log_buffer *buffer, enum debug_log_what what)
{
	struct debug_log_record record;
	int64_t seconds = debug_log_now();
	const char *type = debug_log_text_type(buffer->type);
	const char *short_type = debug_log_text_short_type(buffer->type);

	debug_log_begin(&record);
	if (!debug_log_text_wants(&debug_log_wanted, buffer->device, buffer->type))
		return;
	append(&record.text, DEBUG_LOG_TEXT_DOUBLE_LINE "\nBUFFER %s\n", debug_log_titles[what]);
	append(&record.text, "Time: %02d:%02d:%02d\n", (int)(seconds / 3600 % 24),
	       (int)(seconds / 60 % 60), (int)(seconds % 60));
	append(&record.text, "Device: %" PRIu32 "\nAddress: 0x%" PRIx64 " (%" PRIu64 ")",
	       buffer->device, buffer->address, buffer->address);
	debug_log_space(&record, buffer);
	debug_log_size(&record, buffer);
	/* Which one of the others it is, where the old system said nothing. */
	if (strcmp(type, short_type) != 0)
		append(&record.text, " of %s", type);
	append(&record.text, "\nType: %s\n", short_type);
	/* Circular buffers and kernels belong to a program or a device, which is no Buffer. */
	if (buffer->owner && buffer->type != TTMEM_CB && buffer->type != TTMEM_KERNEL)
		append(&record.text, "Buffer*: 0x%" PRIx64 "\n", buffer->owner);
	else
		append(&record.text, "Buffer*: unknown\n");
	if (what == DEBUG_LOG_ALLOCATED)
		append(&record.text, "Owns Data: %s\nHooked: %s\n",
		       debug_log_yes_or_no(buffer, TTMEM_FLAG_OWNS_DATA),
		       buffer->flags & TTMEM_FLAG_HOOKED ? "yes" : "no");
	else if (buffer->flags & TTMEM_FLAG_HOOKED)
		append(&record.text, "Hooked: yes\n");
	append(&record.text, "Call Stack:\n");
	debug_log_stack(&record, buffer, &debug_log_styles[DEBUG_LOG_BUFFER]);
	debug_log_put(&debug_log_files[DEBUG_LOG_BUFFER], &record);
}

static void debug_log_detailed_line(const struct debug_log_buffer *buffer)
{
	struct debug_log_record record;

	debug_log_begin(&record);
	append(&record.text,
	       "ALLOC: pid=%d device=%" PRIu32 " size=%" PRIu64 " type=%" PRIu32 " addr=0x%" PRIx64
	       " timestamp=%" PRIu64 "\n",
	       (int)getpid(), buffer->device, buffer->size, buffer->type, buffer->address,
	       clock_ns_kernel(CLOCK_REALTIME));
	debug_log_put(&debug_log_files[DEBUG_LOG_DETAILED], &record);
}

static void debug_log_stack_record(const struct debug_log_buffer *buffer, bool is_free)
{
	struct debug_log_record record;
	uint32_t pid = (uint32_t)getpid();
	char date[DEBUG_LOG_TEXT_NUMBER];

	debug_log_begin(&record);
	/* A forked child begins its own. */
	if (__atomic_exchange_n(&debug_log_header, pid, __ATOMIC_RELAXED) != pid) {
		__atomic_store_n(&debug_log_count, 0, __ATOMIC_RELAXED);
		append(&record.text,
		       "=== TT-Metal Buffer Allocation Stack Traces ===\nPID: %" PRIu32 "\n", pid);
	}
	append(&record.text, DEBUG_LOG_TEXT_LINE "\n");
	if (is_free)
		append(&record.text, "Deallocation\n");
	else
		append(&record.text, "Allocation #%" PRIu32 "\n",
		       __atomic_add_fetch(&debug_log_count, 1, __ATOMIC_RELAXED));
	append(&record.text, "Time: %s\nDevice: %" PRIu32 "\nType: %s\n",
	       debug_log_text_date(debug_log_now(), date), buffer->device,
	       debug_log_text_type(buffer->type));
	debug_log_size(&record, buffer);
	append(&record.text, "\nAddress: 0x%" PRIx64, buffer->address);
	debug_log_space(&record, buffer);
	append(&record.text, "Stack trace:\n");
	debug_log_stack(&record, buffer, &debug_log_styles[DEBUG_LOG_STACK]);
	debug_log_put(&debug_log_files[DEBUG_LOG_STACK], &record);
}

void debug_log_alloc(const struct debug_log_buffer *buffer)
{
	if (debug_log_files[DEBUG_LOG_BUFFER].is_on)
		debug_log_buffer_record(buffer, DEBUG_LOG_ALLOCATED);
	/* The other logs cannot express that there is no memory behind it. */
	if (buffer->flags & TTMEM_FLAG_HOOKED)
		return;
	if (debug_log_files[DEBUG_LOG_DETAILED].is_on)
		debug_log_detailed_line(buffer);
	if (debug_log_files[DEBUG_LOG_STACK].is_on)
		debug_log_stack_record(buffer, false);
}

uint64_t debug_log_mark(const struct writer *writer, uint32_t device)
{
	const struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);

	/* Pairs with the release in shard_publish(): an event is complete when its number is seen. */
	return shard ? __atomic_load_n(&shard->page->head, __ATOMIC_ACQUIRE) : 0;
}

/* An event of the book's own log. False: it is not there, or was overwritten meanwhile. */
static bool debug_log_event(const struct writer *writer, uint32_t device, uint64_t number,
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
	return debug_log_mark(writer, device) + 2 < number + shard->ring_mask;
}

static void debug_log_freed(const struct debug_log_buffer *buffer)
{
	if (debug_log_files[DEBUG_LOG_BUFFER].is_on && buffer->flags & TTMEM_FREE_DESTRUCTOR)
		debug_log_buffer_record(buffer, DEBUG_LOG_DESTRUCTOR);
	if (debug_log_files[DEBUG_LOG_BUFFER].is_on)
		debug_log_buffer_record(buffer, DEBUG_LOG_DEALLOCATED);
	if (debug_log_files[DEBUG_LOG_STACK].is_on && !(buffer->flags & TTMEM_FLAG_HOOKED))
		debug_log_stack_record(buffer, true);
}

/*
 * Whether it is the event of the free of @buffer by @thread. In the event of a reference that ended, the thread
 * is that of the allocation.
 */
static bool debug_log_is_free_of(const struct book_event *event,
				 const struct debug_log_buffer *buffer, const struct thread *thread)
{
	uint32_t op = event->op_slot & BOOK_OP_MASK;

	if (event->record.address != buffer->address || event->op_slot & BOOK_OP_RESIZE ||
	    (buffer->type != TTMEM_ANY && book_meta_type(event->record.meta) != buffer->type))
		return false;
	if (op != BOOK_OP_FREE && op != BOOK_OP_DOUBLE_FREE && op != BOOK_OP_UNKNOWN_FREE &&
	    op != BOOK_OP_UNPLACED_FREE && op != BOOK_OP_OVERFLOW_FREE)
		return op == BOOK_OP_UNREF;
	return book_thread(event->record.thread_space) == thread->tid;
}

void debug_log_free(struct writer *writer, const struct debug_log_buffer *buffer,
		    const struct thread *thread)
{
	struct debug_log_buffer told = *buffer;
	bool is_recorded = thread && !(buffer->flags & TTMEM_FLAG_HOOKED);
	uint64_t head = is_recorded ? debug_log_mark(writer, buffer->device) : 0;
	struct book_event event;

	for (uint64_t n = head; n > 0 && head - n < DEBUG_LOG_LOOK_BACK; n--) {
		if (!debug_log_event(writer, buffer->device, n, &event))
			break;
		if (!debug_log_is_free_of(&event, buffer, thread))
			continue;
		/* Of a buffer that was never there, nothing else is known. */
		if (event.record.size) {
			told.size = event.record.size;
			told.type = book_meta_type(event.record.meta);
			told.space = book_space(event.record.thread_space);
		}
		break;
	}
	debug_log_freed(&told);
}

void debug_log_free_all(struct writer *writer, uint32_t device, uint64_t mark,
			const struct thread *thread)
{
	uint64_t head = debug_log_mark(writer, device);
	struct book_event event;

	for (uint64_t n = mark + 1; n <= head; n++) {
		if (!debug_log_event(writer, device, n, &event) ||
		    (event.op_slot & BOOK_OP_MASK) != BOOK_OP_FREE ||
		    book_thread(event.record.thread_space) != thread->tid)
			continue;
		debug_log_freed(&(struct debug_log_buffer){
			.address = event.record.address,
			.size = event.record.size,
			.device = device,
			.type = book_meta_type(event.record.meta),
			.space = book_space(event.record.thread_space),
			.stack = event.stack,
		});
	}
}
