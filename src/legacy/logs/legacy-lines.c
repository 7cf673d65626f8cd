/* SPDX-License-Identifier: Apache-2.0 */

/* The lines of the old allocation server. */

#include "legacy/logs/legacy-lines.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/append.h"
#include "base/bits.h"
#include "model/types.h"

static bool legacy_is_free(uint32_t op)
{
	return op == BOOK_OP_FREE || op == BOOK_OP_UNREF;
}

/* Whether something that the old server kept a record of was added or removed. */
static bool legacy_is_buffer(uint32_t op)
{
	return op == BOOK_OP_ALLOC || op == BOOK_OP_REF || op == BOOK_OP_LOST_ALLOC ||
	       legacy_is_free(op);
}

const char *legacy_lines_sort(uint32_t kernel_sort)
{
	static const char *const sorts[] = {"Application", "Fabric", "Dispatch"};

	return sorts[kernel_sort < ARRAY_SIZE(sorts) ? kernel_sort : 0];
}

static void legacy_id(struct append *text, const struct legacy_lines_event *event)
{
	if (event->decimal)
		append(text, "%" PRIu64, event->event->record.address);
	else
		append(text, "0x%" PRIx64, event->event->record.address);
}

static void legacy_cb(struct append *text, const struct legacy_lines_event *event, bool is_free)
{
	append(text,
	       is_free ? "✗ [CB_FREE] Device %" PRIu32 ": -%g MB (Total: %g MB)\n"
		       : "✓ [CB_ALLOC] Device %" PRIu32 ": +%g MB (Total: %g MB)\n",
	       event->device, (double)event->event->record.size / LEGACY_LINES_MB,
	       (double)event->total / LEGACY_LINES_MB);
}

static void legacy_kernel(struct append *text, const struct legacy_lines_event *event, bool is_free)
{
	append(text,
	       is_free ? "✗ [KERNEL_UNLOAD] %s kernel on Device %" PRIu32
			 ": -%g MB (Total: %g MB)\n"
		       : "✓ [KERNEL_LOAD] %s kernel on Device %" PRIu32 ": +%g MB (Total: %g MB)\n",
	       legacy_lines_sort(event->kernel_sort), event->device,
	       (double)event->event->record.size / LEGACY_LINES_MB,
	       (double)event->total / LEGACY_LINES_MB);
}

static void legacy_alloc(struct append *text, const struct legacy_lines_event *event, uint32_t op)
{
	const struct book_record *record = &event->event->record;

	append(text,
	       "✓ [PID %" PRIu32 "] Allocated %" PRIu64 " bytes of %s on device %" PRIu32
	       " (buffer_id=",
	       event->pid, record->size, types_name(book_meta_type(record->meta)), event->device);
	legacy_id(text, event);
	if (op == BOOK_OP_REF)
		append(text, ", ref_count=%" PRIu32, book_meta_refs(record->meta));
	append(text, ")\n");
}

static void legacy_free(struct append *text, const struct legacy_lines_event *event, uint32_t op)
{
	const struct book_record *record = &event->event->record;

	append(text, "✗ [PID %" PRIu32 "] Freed buffer ", event->pid);
	legacy_id(text, event);
	append(text, " on device %" PRIu32 " (%" PRIu64 " bytes, ", event->device, record->size);
	if (op == BOOK_OP_UNREF)
		append(text, "ref_count=%" PRIu32 " remaining)\n", book_meta_refs(record->meta));
	else
		append(text, "FINAL)%s\n",
		       event->event->op_slot & BOOK_OP_RESIZE ? LEGACY_LINES_RESIZED : "");
}

static void legacy_unknown(struct append *text, const struct legacy_lines_event *event)
{
	append(text, "⚠ [PID %" PRIu32 "] Deallocation for unknown buffer ", event->pid);
	legacy_id(text, event);
	append(text, " on device %" PRIu32 " (allocated before tracking started)\n", event->device);
}

bool legacy_lines_has_total(const struct book_event *event)
{
	uint32_t type = book_meta_type(event->record.meta);

	return (type == TYPES_CB || type == TYPES_KERNEL) &&
	       legacy_is_buffer(event->op_slot & BOOK_OP_MASK);
}

size_t legacy_lines_event(const struct legacy_lines_event *event, char ret_text[LEGACY_LINES_SIZE])
{
	struct append text = {.bytes = ret_text, .size = LEGACY_LINES_SIZE};
	uint32_t op = event->event->op_slot & BOOK_OP_MASK;
	uint32_t type = book_meta_type(event->event->record.meta);
	bool buffer = legacy_is_buffer(op);

	/* The type of a free that found nothing is not known. */
	if (op == BOOK_OP_UNKNOWN_FREE || op == BOOK_OP_DOUBLE_FREE || op == BOOK_OP_OVERFLOW_FREE)
		legacy_unknown(&text, event);
	else if (type >= BOOK_TYPES)
		return 0;
	else if (buffer && type == TYPES_CB)
		legacy_cb(&text, event, legacy_is_free(op));
	else if (buffer && type == TYPES_KERNEL)
		legacy_kernel(&text, event, legacy_is_free(op));
	else if (legacy_is_free(op))
		legacy_free(&text, event, op);
	else if (buffer)
		legacy_alloc(&text, event, op);
	return text.length;
}

static void legacy_removed(struct append *text, uint32_t pid, const char *word, uint64_t count,
			   uint64_t bytes)
{
	append(text, "   ✓ Removed %" PRIu64 " %s (%g MB) from PID %" PRIu32 "\n", count, word,
	       (double)bytes / LEGACY_LINES_MB, pid);
}

size_t legacy_lines_dead(const struct legacy_lines_dead *dead, char ret_text[LEGACY_LINES_SIZE])
{
	struct append text = {.bytes = ret_text, .size = LEGACY_LINES_SIZE};

	append(&text, "\n⚠️  Detected dead processes, cleaning up orphaned buffers...\n");
	append(&text, "   PID %" PRIu32 " is dead, removing its buffers...\n", dead->pid);
	legacy_removed(&text, dead->pid, "buffers", dead->buffers, dead->bytes);
	if (dead->cbs)
		legacy_removed(&text, dead->pid, "CBs", dead->cbs, dead->cb_bytes);
	if (dead->kernels)
		legacy_removed(&text, dead->pid, "kernels", dead->kernels, dead->kernel_bytes);
	return text.length;
}
