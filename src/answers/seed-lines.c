/* SPDX-License-Identifier: Apache-2.0 */

/* The lines of the old allocation server. */

#include "answers/seed-lines.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/append.h"
#include "base/bits.h"
#include "model/types.h"

static bool seed_is_free(uint32_t op)
{
	return op == BOOK_OP_FREE || op == BOOK_OP_UNREF;
}

/* Whether something that the old server kept a record of was added or removed. */
static bool seed_is_buffer(uint32_t op)
{
	return op == BOOK_OP_ALLOC || op == BOOK_OP_REF || op == BOOK_OP_LOST_ALLOC ||
	       seed_is_free(op);
}

const char *seed_lines_sort(uint32_t kernel_sort)
{
	static const char *const sorts[] = {"Application", "Fabric", "Dispatch"};

	return sorts[kernel_sort < ARRAY_SIZE(sorts) ? kernel_sort : 0];
}

static void seed_id(struct append *text, const struct seed_lines_event *event)
{
	if (event->decimal)
		append(text, "%" PRIu64, event->event->record.address);
	else
		append(text, "0x%" PRIx64, event->event->record.address);
}

static void seed_cb(struct append *text, const struct seed_lines_event *event, bool is_free)
{
	append(text,
	       is_free ? "✗ [CB_FREE] Device %" PRIu32 ": -%g MB (Total: %g MB)\n"
		       : "✓ [CB_ALLOC] Device %" PRIu32 ": +%g MB (Total: %g MB)\n",
	       event->device, (double)event->event->record.size / SEED_LINES_MB,
	       (double)event->total / SEED_LINES_MB);
}

static void seed_kernel(struct append *text, const struct seed_lines_event *event, bool is_free)
{
	append(text,
	       is_free ? "✗ [KERNEL_UNLOAD] %s kernel on Device %" PRIu32
			 ": -%g MB (Total: %g MB)\n"
		       : "✓ [KERNEL_LOAD] %s kernel on Device %" PRIu32 ": +%g MB (Total: %g MB)\n",
	       seed_lines_sort(event->kernel_sort), event->device,
	       (double)event->event->record.size / SEED_LINES_MB,
	       (double)event->total / SEED_LINES_MB);
}

static void seed_alloc(struct append *text, const struct seed_lines_event *event, uint32_t op)
{
	const struct book_record *record = &event->event->record;

	append(text,
	       "✓ [PID %" PRIu32 "] Allocated %" PRIu64 " bytes of %s on device %" PRIu32
	       " (buffer_id=",
	       event->pid, record->size, types_name(book_meta_type(record->meta)), event->device);
	seed_id(text, event);
	if (op == BOOK_OP_REF)
		append(text, ", ref_count=%" PRIu32, book_meta_refs(record->meta));
	append(text, ")\n");
}

static void seed_free(struct append *text, const struct seed_lines_event *event, uint32_t op)
{
	const struct book_record *record = &event->event->record;

	append(text, "✗ [PID %" PRIu32 "] Freed buffer ", event->pid);
	seed_id(text, event);
	append(text, " on device %" PRIu32 " (%" PRIu64 " bytes, ", event->device, record->size);
	if (op == BOOK_OP_UNREF)
		append(text, "ref_count=%" PRIu32 " remaining)\n", book_meta_refs(record->meta));
	else
		append(text, "FINAL)%s\n",
		       event->event->op_slot & BOOK_OP_RESIZE ? SEED_LINES_RESIZED : "");
}

static void seed_unknown(struct append *text, const struct seed_lines_event *event)
{
	append(text, "⚠ [PID %" PRIu32 "] Deallocation for unknown buffer ", event->pid);
	seed_id(text, event);
	append(text, " on device %" PRIu32 " (allocated before tracking started)\n", event->device);
}

bool seed_lines_has_total(const struct book_event *event)
{
	uint32_t type = book_meta_type(event->record.meta);

	return (type == TYPES_CB || type == TYPES_KERNEL) &&
	       seed_is_buffer(event->op_slot & BOOK_OP_MASK);
}

size_t seed_lines_event(const struct seed_lines_event *event, char ret_text[SEED_LINES_SIZE])
{
	struct append text = {.bytes = ret_text, .size = SEED_LINES_SIZE};
	uint32_t op = event->event->op_slot & BOOK_OP_MASK;
	uint32_t type = book_meta_type(event->event->record.meta);
	bool buffer = seed_is_buffer(op);

	/* The type of a free that found nothing is not known. */
	if (op == BOOK_OP_UNKNOWN_FREE || op == BOOK_OP_DOUBLE_FREE || op == BOOK_OP_OVERFLOW_FREE)
		seed_unknown(&text, event);
	else if (type >= BOOK_TYPES)
		return 0;
	else if (buffer && type == TYPES_CB)
		seed_cb(&text, event, seed_is_free(op));
	else if (buffer && type == TYPES_KERNEL)
		seed_kernel(&text, event, seed_is_free(op));
	else if (seed_is_free(op))
		seed_free(&text, event, op);
	else if (buffer)
		seed_alloc(&text, event, op);
	return text.length;
}

static void seed_removed(struct append *text, uint32_t pid, const char *word, uint64_t count,
			 uint64_t bytes)
{
	append(text, "   ✓ Removed %" PRIu64 " %s (%g MB) from PID %" PRIu32 "\n", count, word,
	       (double)bytes / SEED_LINES_MB, pid);
}

size_t seed_lines_dead(const struct seed_lines_dead *dead, char ret_text[SEED_LINES_SIZE])
{
	struct append text = {.bytes = ret_text, .size = SEED_LINES_SIZE};

	append(&text, "\n⚠️  Detected dead processes, cleaning up orphaned buffers...\n");
	append(&text, "   PID %" PRIu32 " is dead, removing its buffers...\n", dead->pid);
	seed_removed(&text, dead->pid, "buffers", dead->buffers, dead->bytes);
	if (dead->cbs)
		seed_removed(&text, dead->pid, "CBs", dead->cbs, dead->cb_bytes);
	if (dead->kernels)
		seed_removed(&text, dead->pid, "kernels", dead->kernels, dead->kernel_bytes);
	return text.length;
}
