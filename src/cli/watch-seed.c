/* SPDX-License-Identifier: Apache-2.0 */

/*
 * "ttmem watch --format seed": the lines of the old allocation server, letter for letter, because
 * scripts and people's eyes know them. What the old server never knew goes to stderr. A size change was
 * no event of its own there: it shows as a free and an allocation.
 */

#include "cli/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <ttmem/ttmem.h>

#include "core/types.h"
#include "source/scan.h"

#define SEED_MB (1024.0 * 1024.0)

static void watch_seed_id(const struct watch *watch, const char *before, uint64_t id)
{
	fputs(before, stdout);
	printf(watch->decimal ? "%" PRIu64 : "0x%" PRIx64, id);
}

/* Of all processes on the device, as the old server counted. */
static double watch_seed_total(const struct watch *watch, uint32_t device, uint32_t type)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < watch->count; i++) {
		const struct follow *follow = watch->follows[i];

		for (size_t k = 0; k < follow->count; k++) {
			if (follow->shards[k].device == device)
				bytes += follow->shards[k].hot[type].bytes;
		}
	}
	return (double)bytes / SEED_MB;
}

static bool watch_seed_is_free(uint32_t op)
{
	return op == BOOK_OP_FREE || op == BOOK_OP_UNREF;
}

/* Numbers as C++ streams print them: six significant digits. */
static void watch_seed_cb(const struct watch *watch, const struct follow_event *event, uint32_t op)
{
	uint32_t device = event->follow->shards[event->shard].device;
	double size = (double)event->event.record.size / SEED_MB;
	double total = watch_seed_total(watch, device, TTMEM_CB);

	if (watch_seed_is_free(op))
		printf("✗ [CB_FREE] Device %" PRIu32 ": -%g MB (Total: %g MB)\n", device, size,
		       total);
	else
		printf("✓ [CB_ALLOC] Device %" PRIu32 ": +%g MB (Total: %g MB)\n", device, size,
		       total);
}

static void watch_seed_kernel(const struct watch *watch, const struct follow_event *event,
			      uint32_t op)
{
	static const char *const sorts[] = {"Application", "Fabric", "Dispatch"};
	const struct book_record *record = &event->event.record;
	uint32_t device = event->follow->shards[event->shard].device;
	uint32_t sort = reader_shape(&event->follow->book->reader, record->shape).kernel_sort;
	const char *name = sorts[sort < 3 ? sort : 0];
	double size = (double)record->size / SEED_MB;
	double total = watch_seed_total(watch, device, TTMEM_KERNEL);

	if (watch_seed_is_free(op))
		printf("✗ [KERNEL_UNLOAD] %s kernel on Device %" PRIu32 ": -%g MB (Total: %g MB)\n",
		       name, device, size, total);
	else
		printf("✓ [KERNEL_LOAD] %s kernel on Device %" PRIu32 ": +%g MB (Total: %g MB)\n",
		       name, device, size, total);
}

static void watch_seed_alloc(const struct watch *watch, const struct follow_event *event,
			     uint32_t op)
{
	const struct book_record *record = &event->event.record;

	printf("✓ [PID %" PRIu32 "] Allocated %" PRIu64 " bytes of %s on device %" PRIu32,
	       event->follow->book->owner.pid, record->size,
	       types_name(book_meta_type(record->meta)),
	       event->follow->shards[event->shard].device);
	watch_seed_id(watch, " (buffer_id=", record->address);
	if (op == BOOK_OP_REF)
		printf(", ref_count=%" PRIu32, book_meta_refs(record->meta));
	puts(")");
}

static void watch_seed_free(const struct watch *watch, const struct follow_event *event,
			    uint32_t op)
{
	const struct book_record *record = &event->event.record;

	printf("✗ [PID %" PRIu32 "] Freed buffer ", event->follow->book->owner.pid);
	watch_seed_id(watch, "", record->address);
	printf(" on device %" PRIu32 " (%" PRIu64 " bytes, ",
	       event->follow->shards[event->shard].device, record->size);
	if (op == BOOK_OP_UNREF)
		printf("ref_count=%" PRIu32 " remaining)\n", book_meta_refs(record->meta));
	else
		puts("FINAL)");
}

static void watch_seed_unknown(const struct watch *watch, const struct follow_event *event)
{
	printf("⚠ [PID %" PRIu32 "] Deallocation for unknown buffer ",
	       event->follow->book->owner.pid);
	watch_seed_id(watch, "", event->event.record.address);
	printf(" on device %" PRIu32 " (allocated before tracking started)\n",
	       event->follow->shards[event->shard].device);
}

static void watch_seed_event(const struct watch *watch, const struct follow_event *event)
{
	uint32_t op = event->event.op_slot & BOOK_OP_MASK;
	uint32_t type = book_meta_type(event->event.record.meta);
	bool buffer = op == BOOK_OP_ALLOC || op == BOOK_OP_REF || op == BOOK_OP_LOST_ALLOC ||
		      watch_seed_is_free(op);

	if (type >= BOOK_TYPES)
		return;
	if (buffer && type == TTMEM_CB)
		watch_seed_cb(watch, event, op);
	else if (buffer && type == TTMEM_KERNEL)
		watch_seed_kernel(watch, event, op);
	else if (watch_seed_is_free(op))
		watch_seed_free(watch, event, op);
	else if (buffer)
		watch_seed_alloc(watch, event, op);
	else if (op == BOOK_OP_UNKNOWN_FREE || op == BOOK_OP_DOUBLE_FREE ||
		 op == BOOK_OP_OVERFLOW_FREE)
		watch_seed_unknown(watch, event);
}

static void watch_seed_missed(const struct watch *watch, const struct follow_event *event)
{
	(void)watch;
	fprintf(stderr, "note: pid %" PRIu32 ", device %" PRIu32 ": %" PRIu64 " events missed\n",
		event->follow->book->owner.pid, event->follow->shards[event->shard].device,
		event->missed);
}

static void watch_seed_started(const struct watch *watch, const struct follow *follow)
{
	(void)watch;
	(void)follow; /* the old server said nothing either */
}

static void watch_seed_ended(const struct watch *watch, const struct follow *follow)
{
	static const struct {
		uint32_t type;
		const char *word;
	} others[] = {{TTMEM_CB, "CBs"}, {TTMEM_KERNEL, "kernels"}};
	uint32_t pid = follow->book->owner.pid;
	uint64_t bytes, buffers, other_bytes[2], other_buffers[2];

	(void)watch;
	watch_totals(follow, BOOK_TYPES, &bytes, &buffers);
	if (buffers == 0)
		return;
	for (size_t i = 0; i < 2; i++) {
		watch_totals(follow, others[i].type, &other_bytes[i], &other_buffers[i]);
		bytes -= other_bytes[i];
		buffers -= other_buffers[i];
	}
	puts("\n⚠️  Detected dead processes, cleaning up orphaned buffers...");
	printf("   PID %" PRIu32 " is dead, removing its buffers...\n", pid);
	printf("   ✓ Removed %" PRIu64 " buffers (%g MB) from PID %" PRIu32 "\n", buffers,
	       (double)bytes / SEED_MB, pid);
	for (size_t i = 0; i < 2; i++) {
		if (other_buffers[i])
			printf("   ✓ Removed %" PRIu64 " %s (%g MB) from PID %" PRIu32 "\n",
			       other_buffers[i], others[i].word, (double)other_bytes[i] / SEED_MB,
			       pid);
	}
}

const struct watch_form watch_seed = {
	.name = "seed",
	.event = watch_seed_event,
	.missed = watch_seed_missed,
	.started = watch_seed_started,
	.ended = watch_seed_ended,
};
