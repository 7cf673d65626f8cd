/* SPDX-License-Identifier: Apache-2.0 */

/* Each format of the old logs, line by line: what is an event, what is damaged, what is neither. */

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/testing/unit.h"
#include "legacy/analyze/log-reader.h"

#define EVENTS_MAX 64

static struct log_reader_event events[EVENTS_MAX];
static char stacks[EVENTS_MAX][256];
static size_t event_count;
static struct log_reader_counts counts;

static void keep(void *context, const struct log_reader_event *event)
{
	(void)context;
	assert(event_count < EVENTS_MAX);
	events[event_count] = *event;
	stacks[event_count][0] = '\0';
	if (event->stack) {
		assert(event->stack_length < sizeof(stacks[0]));
		memcpy(stacks[event_count], event->stack, event->stack_length);
		stacks[event_count][event->stack_length] = '\0';
	}
	event_count++;
}

/* Reads @text in pieces of @step bytes. */
static void read_in_steps(const char *text, size_t step)
{
	size_t length = strlen(text);
	struct log_reader *log = log_reader_new(keep, NULL);

	event_count = 0;
	for (size_t at = 0; at < length; at += step)
		log_reader_feed(log, text + at, bits_min(step, length - at));
	log_reader_finish(log);
	counts = *log_reader_counts(log);
	log_reader_free(log);
}

static const struct log_reader_event *one(const char *text)
{
	read_in_steps(text, strlen(text));
	assert(event_count == 1 && counts.events == 1 && counts.damaged == 0);
	return &events[0];
}

UNIT(server_allocations)
{
	const struct log_reader_event *event;

	event = one("✓ [PID 12] Allocated 524288 bytes of DRAM on device 2 (buffer_id=25718784)\n");
	assert(event->kind == LOG_READER_ALLOC && event->format == LOG_READER_SERVER);
	assert(event->has_pid && event->pid == 12 && event->device == 2 && event->type == 0);
	assert(event->address == 25718784 && event->size == 524288 && event->refs == 0);
	event = one("✓ [PID 12] Allocated 1 bytes of L1_SMALL on device 31 (buffer_id=0x18c6a00, "
		    "ref_count=3)");
	assert(event->address == 0x18c6a00 && event->refs == 3 && event->type == 3);
	/* As a journal shows it, and from a terminal that has no check marks. */
	event = one(
		"Nov 03 14:00:00 host server[9]: ? [PID 12] Allocated 7 bytes of TRACE on device "
		"0 (buffer_id=0x1)\r\n");
	assert(event->size == 7 && event->type == 4);
}

UNIT(server_frees)
{
	const struct log_reader_event *event;

	event = one("✗ [PID 12] Freed buffer 0x10 on device 1 (64 bytes, FINAL)\n");
	assert(event->kind == LOG_READER_FREE && event->refs == 0 && event->size == 64);
	event = one("✗ [PID 12] Freed buffer 16 on device 1 (64 bytes, ref_count=2 remaining)\n");
	assert(event->kind == LOG_READER_FREE && event->refs == 2 && event->address == 16);
	assert(event->type == LOG_READER_NO_TYPE);
	event = one("⚠ [PID 12] Deallocation for unknown buffer 0x10 on device 1 (allocated before "
		    "tracking started)\n");
	assert(event->kind == LOG_READER_UNKNOWN_FREE && event->address == 16);
	event = one("⚠ [PID 12] Deallocation for ALREADY FREED buffer 0x10 on device 1 (allocs=2 "
		    "frees=2)\n");
	assert(event->kind == LOG_READER_ALREADY_FREED && event->pid == 12);
	event = one("Deallocation for ALREADY FREED buffer 0x10 on device 1 (allocs=2 frees=2)\n");
	assert(event->kind == LOG_READER_ALREADY_FREED && !event->has_pid);
}

UNIT(server_rest)
{
	const struct log_reader_event *event;

	event = one("⚠ [PID 3] Buffer reused with DIFFERENT size: old=10 new=20 (buffer_id=0x10, "
		    "device=1)\n");
	assert(event->kind == LOG_READER_RESIZED && event->size == 20 && event->device == 1);
	event = one("✓ [CB_ALLOC] Device 3: +0.5 MB (Total: 1e+01 MB)\n");
	assert(event->kind == LOG_READER_COUNTED_ALLOC && event->type == 5 &&
	       event->size == 524288);
	event = one("✗ [KERNEL_UNLOAD] Dispatch kernel on Device 3: -1.5e-05 MB (Total: 0 MB)\n");
	assert(event->kind == LOG_READER_COUNTED_FREE && event->type == 6 && event->size == 16);
	event = one("   PID 77 is dead, removing its buffers...\n");
	assert(event->kind == LOG_READER_DEAD && event->pid == 77);
	event = one("   ✓ Removed 3 buffers (1.5 MB) from PID 77\n");
	assert(event->kind == LOG_READER_REMOVED && event->count == 3 && event->pid == 77);
	event = one("   ✓ Removed 2 kernels (1.5 MB) from PID 77\n");
	assert(event->kind == LOG_READER_REMOVED && event->type == 6);
	assert(one("🚀 Allocation Server started\n")->kind == LOG_READER_STARTED);
	assert(one("⚠️  Invalid device_id 2657333 - ignoring message\n")->kind ==
	       LOG_READER_REJECTED);
	assert(one("⚠ [PID 1] Invalid buffer_type 9 for buffer 5 on device 0\n")->kind ==
	       LOG_READER_REJECTED);
}

UNIT(what_a_process_left)
{
	const char *text = "⚠️  Process 12 exited but left 3 buffers allocated:\n"
			   "    [Device 2] Buffer 0x1000: 64 bytes L1 (age: 15s)\n"
			   "    [Device 0] Buffer 0x2000: 32 bytes DRAM (age: 1s) \"weights\"\n"
			   "    ... and 1 more: see \"ttmem leaks --pid 12\"\n";

	read_in_steps(text, 7);
	assert(event_count == 3 && counts.damaged == 0 && counts.other == 0);
	assert(events[0].kind == LOG_READER_LEFT && events[0].pid == 12 && events[0].count == 3);
	assert(events[1].kind == LOG_READER_LEFT_BUFFER && events[1].pid == 12);
	assert(events[1].device == 2 && events[1].size == 64 && events[1].type == 1);
	assert(events[2].has_pid && events[2].address == 0x2000 && events[2].type == 0);
	assert(one("⚠️  Process 7 (a (b)) exited but left 5.0 MiB allocated, as tt-metal's "
		   "region "
		   "tells; its buffers are not known\n")
		       ->kind == LOG_READER_LEFT);
	/* Buffers of nobody, and the beginning of one. */
	read_in_steps("    [Device 2] Buffer 0x1000: 64 bytes L1 (age: 15s)\n", 99);
	assert(event_count == 0 && counts.damaged == 0 && counts.other == 1);
	read_in_steps("    [Device 2] Buffer 0x10", 99);
	assert(event_count == 0 && counts.damaged == 1);
}

UNIT(what_ttmemd_says_of_itself)
{
	static const char *const known[] = {
		"ttmemd 0.3.0: serving on /run/ttmemd.sock",
		"ttmemd: old clients on /tmp/tt_allocation_server.sock",
		"ttmemd: http://127.0.0.1:8877/",
		"⚠️  overlap: pid 12 (app), device 0, DRAM, address 0x1000, 64 B",
		"⚠️  held_at_close: pid 12 (app), device 0, L1, 12.0 KiB, 3 times",
		"    ... and 1 more: see \"ttmem leaks --pid 12\"",
		"wire: pid 12 w72 alloc device=0",
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		read_in_steps(known[i], 1000);
		assert(event_count == 0 && counts.damaged == 0 && counts.other == 0);
		assert(counts.is_known);
	}
	/* Not what a shell says where it is not installed. */
	read_in_steps("bash: line 1: ttmemd: command not found", 1000);
	assert(counts.other == 1 && !counts.is_known);
}

UNIT(what_ttmemd_reports)
{
	const struct log_reader_event *event = one("⚠️  double_free: pid 12 (a, b), device 3, "
						   "L1, address 0x1000, 64 B, \"x, y\"\n");

	assert(event->kind == LOG_READER_ALREADY_FREED && event->is_report && event->pid == 12);
	assert(event->device == 3 && event->type == 1 && event->address == 0x1000);
	assert(event->count == 1);
	event = one("⚠️  unknown_free: pid 12 (a), device 3, address 0x1000, 5 times\n");
	assert(event->kind == LOG_READER_UNKNOWN_FREE && event->count == 5);
	assert(event->type == LOG_READER_NO_TYPE);
	event = one("⚠️  size_change: pid 12 (a), device 3, DRAM, address 0x1000, 64 B\n");
	assert(event->kind == LOG_READER_RESIZED && event->is_report);
}

UNIT(six_digits_are_the_roundest_size)
{
	static const struct {
		const char *line;
		uint64_t size;
	} cases[] = {
		{"✓ [CB_ALLOC] Device 0: +1.42969 MB (Total: 1.42969 MB)\n", 1499136},
		{"✓ [CB_ALLOC] Device 0: +93.8438 MB (Total: 93.8438 MB)\n", 98402304},
		{"✓ [CB_ALLOC] Device 0: +0.0117731 MB (Total: 0.0117731 MB)\n", 12345},
		{"✓ [CB_ALLOC] Device 0: +9.53674e-07 MB (Total: 1 MB)\n", 1},
		{"✗ [CB_FREE] Device 0: -0 MB (Total: 0 MB)\n", 0},
		{"✗ [CB_FREE] Device 0: -1e-300 MB (Total: 0 MB)\n", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct log_reader_event *event = one(cases[i].line);

		assert(event->size == cases[i].size && event->has_total);
	}
	/* What an old server that had counted below zero printed is no total. */
	assert(!one("✗ [CB_FREE] Device 0: -1 MB (Total: 1.75922e+13 MB)\n")->has_total);
}

UNIT(quoted_lines_lack_what_people_left_out)
{
	const struct log_reader_event *event;

	event = one("Line 3945: ✓ Allocated 524288 bytes (buffer_id=25718784, device 2)\n");
	assert(event->kind == LOG_READER_ALLOC && event->size == 524288 && event->device == 2);
	assert(event->address == 25718784 && !event->has_pid && !event->lacks_device);
	event = one("✗ Freed 98304 bytes (FINAL)       <- removed\n");
	assert(event->kind == LOG_READER_FREE && event->size == 98304 && event->lacks_address);
	event = one("⚠ Deallocation for unknown buffer 25718784  <- freed again\n");
	assert(event->kind == LOG_READER_UNKNOWN_FREE && event->lacks_device);
	/* The same words without the mark are anybody's. */
	read_in_steps("Freed 98304 bytes (FINAL)\nAllocated 5 bytes (buffer_id=1, device 2)\n", 99);
	assert(event_count == 0 && counts.damaged == 0);
}

UNIT(other_lines_are_skipped)
{
	static const char *const lines[] = {
		"",
		"📊 Current Statistics:",
		"    - Buffer 0x10: 4 KB (PID 12, ref_count=1)",
		"     ALLOC size=64 pid=3 ref=1",
		"[PID 5] hello",
		"[PID x] hello",
		"[PID 5] All is well",
		"[Device 0] ALLOC: 64 bytes DRAM by PID 5 (buffer 0x1000)",
		"✓ [100 %] done",
		"BUFFER",
		"Allocations: 7",
		"Removed the old folder",
		"PID 5 is fine",
		"DEALLOCATED",
		"  Active allocations: 87",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		read_in_steps(lines[i], 1000);
		assert(event_count == 0 && counts.damaged == 0);
		assert(counts.other == (*lines[i] != '\0') - (uint64_t)counts.is_known);
	}
}

UNIT(damaged_lines)
{
	static const char *const lines[] = {
		"✓ [PID 1] Allocated 524288 bytes of L1 on device 2 (buff",
		"✓ [PID 1] Allocated 52428888888888888888888 bytes of L1 on device 2 (buffer_id=1)",
		"✓ [PID 1] Allocated 0 bytes of L1 on device 2 (buffer_id=1)",
		"✓ [PID 1] Allocated 1 bytes of L1 on device 1024 (buffer_id=1)",
		"✓ [PID 1] Allocated 1 bytes of L1 on device -1 (buffer_id=1)",
		"✓ [PID 1] Allocated 1 bytes of L1 on device 1 (buffer_id=0x)",
		"✓ [PID 1] Allocated 1 bytes of L1 on device 1 (buffer_id=0x11112222333344445)",
		"✓ [PID 1] Allocated 1 bytes of L1 on device 1 (buffer_id=1) ✓ [PID 13] Alloc",
		"✗ [PID 1] Freed buffer 0x10 on device 1 (64 bytes, ref_count= remaining)",
		"✓ [CB_ALLOC] Device 3: +inf MB (Total: 0.5 MB)",
		"✓ [CB_ALLOC] Device 3: +0x10 MB (Total: 0.5 MB)",
		"ALLOC: pid=5 device=1 size=64 type=1 addr=0x1000 timest",
		"ALLOC: pi",
		"✓ [PID -1] Allocated 5 bytes of L1 on device 1 (buffer_id=1)",
		"[PID x] Allocated 5 bytes of L1 on device 1 (buffer_id=1)",
		"[PID 99999999999] Freed buffer 0x10 on device 1 (64 bytes, FINAL)",
		"✓ [PID 1] Alloc",
		"[PID 1] Alloc",
		"✗ [PID 1] Freed buf",
		"⚠ [PID 1] Dealloc",
		"✓ [PID 1] ",
		"✓ [PID 12",
		"Nov 03 14:00:00 host server[9]: ✓ [PI",
		"✗ [KERNEL_UNL",
		"✓ [CB_ALLOC] Device 3",
		"BUFFER ALL",
		"BUFFER DEALLOCATE",
		"BUFFER ALLOCATED✓ [PID",
		"Allocation #1x",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		read_in_steps(lines[i], 1000);
		assert(event_count == 0 && counts.damaged == 1 && counts.other == 0);
	}
}

#define RECORD                                                                                                                                                                                \
	"═══════════════════════════════════════════════════════════\n" \
	"BUFFER ALLOCATED\nTime: 14:32:15\nDevice: 3\n"                                                                                                                                       \
	"Address: 0x18862c0 (25718464)\nSize: 524288 bytes (512 KB)\nType: DRAM\n"

UNIT(buffer_debug_records)
{
	const char *text =
		RECORD "Buffer*: 0x7f8a4c001230\n"
		       "Owns Data: yes\nHooked: no\nCall Stack:\n"
		       "    lib.so: a()\n    python3: main\n\n"
		       "═══\nBUFFER DEALLOCATED\nDevice: 3\nAddress: 0x18862c0 (25718464)\n"
		       "Size: unknown\nType: unknown\nCall Stack:\n"
		       "BUFFER DESTRUCTOR (still ALLOCATED - will deallocate)\nDevice: 1\n"
		       "Address: 0x1\n";

	for (size_t step = 1; step < 300; step += 7) {
		read_in_steps(text, step);
		assert(event_count == 3 && counts.damaged == 0);
		assert(events[0].kind == LOG_READER_ALLOC &&
		       events[0].format == LOG_READER_BUFFER_DEBUG);
		assert(!events[0].has_pid && events[0].device == 3 && events[0].type == 0);
		assert(events[0].address == 0x18862c0 && events[0].size == 524288);
		assert(events[0].line == 2 && !events[0].is_hooked);
		assert(strcmp(stacks[0], "lib.so: a()\npython3: main") == 0);
		assert(events[1].kind == LOG_READER_FREE && !events[1].has_size);
		assert(events[1].type == LOG_READER_NO_TYPE && !events[1].stack);
		assert(events[2].kind == LOG_READER_DESTRUCTOR);
	}
}

UNIT(records_that_are_cut)
{
	const char *text = RECORD;
	size_t whole = (size_t)(strstr(text, "Type:") - text);

	for (size_t length = (size_t)(strstr(text, "Time:") - text); length < whole; length++) {
		CLEANUP_FREE char *part = strndup(text, length);

		read_in_steps(part, 50);
		assert(event_count + counts.damaged == 1);
		/* All that is needed is there once the size is. */
		assert(event_count == (length >= (size_t)(strstr(text, " bytes") - text) + 6));
	}
	read_in_steps("BUFFER ALLOCATED\nDevice: 9999\nAddress: 0x1\nSize: 1 bytes\n", 9);
	assert(event_count == 0 && counts.damaged == 1);
}

UNIT(hooked)
{
	assert(one(RECORD "Hooked: yes\n")->is_hooked);
}

UNIT(stack_traces)
{
	read_in_steps("=== TT-Metal Buffer Allocation Stack Traces ===\nPID: 4711\n────\n"
		      "Allocation #1\nTime: 2025-11-03 14:32:15\nDevice: 2\nType: L1\n"
		      "Size: 64 bytes (0.0625 KB)\nAddress: 0x40\nStack trace:\n"
		      "  lib.so : f+0x10\n\n────\nDeallocation\nTime: x\nDevice: 2\nType: 1\n"
		      "Address: 0x40\nStack trace:\n",
		      13);
	assert(event_count == 2 && counts.formats == 1u << LOG_READER_STACK_TRACE);
	assert(events[0].kind == LOG_READER_ALLOC && events[0].pid == 4711 && events[0].type == 1);
	assert(strcmp(stacks[0], "lib.so : f+0x10") == 0);
	assert(events[1].kind == LOG_READER_FREE && events[1].type == 1 && !events[1].has_size);
}

UNIT(detailed)
{
	const struct log_reader_event *event =
		one("ALLOC: pid=5 device=1 size=64 type=3 addr=0x1000 timestamp=170\n");

	assert(event->format == LOG_READER_DETAILED && event->pid == 5 && event->type == 3);
	assert(event->address == 0x1000 && event->size == 64 && event->device == 1);
}

UNIT(mixed)
{
	read_in_steps(RECORD "✗ [PID 12] Freed buffer 0x10 on device 1 (64 bytes, FINAL)\n"
			     "hello\nALLOC: pid=5 device=1 size=64 type=3 addr=0x1000 "
			     "timestamp=170\n" RECORD,
		      11);
	assert(event_count == 4 && counts.damaged == 0);
	assert(events[0].format == LOG_READER_BUFFER_DEBUG &&
	       events[1].format == LOG_READER_SERVER);
	assert(events[2].format == LOG_READER_DETAILED &&
	       events[3].format == LOG_READER_BUFFER_DEBUG);
}

/* Longer than there is room for, and with NULs: skipped, and the next line is whole again. */
UNIT(long_lines_and_holes)
{
	static char text[3 * LOG_READER_LINE_MAX];
	const char *good = "\n✗ [PID 12] Freed buffer 0x10 on device 1 (64 bytes, FINAL)\n";
	struct log_reader *log;

	memset(text, 'x', sizeof(text) - 1);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(text, good + 1, strlen(good) - 2);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(text + 2 * LOG_READER_LINE_MAX, good, strlen(good));
	read_in_steps(text, 777);
	assert(event_count == 1 && counts.damaged == 1);
	event_count = 0;
	log = log_reader_new(keep, NULL);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(text, "\0\0\0\0\0", 5);
	log_reader_feed(log, text, 5);
	log_reader_feed(log, good, strlen(good));
	log_reader_finish(log);
	assert(event_count == 1);
	log_reader_free(log);
}
