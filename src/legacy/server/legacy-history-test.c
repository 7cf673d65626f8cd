/* SPDX-License-Identifier: Apache-2.0 */

/* The lines of allocation_server_enhanced, and that memory stays bounded. */

#include "legacy/server/legacy-history.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/testing/unit.h"

#define HTEST_PID 77u

enum {
	HTEST_DRAM = 0,
	HTEST_L1 = 1,
	HTEST_CB = 5,
	HTEST_NO_TYPE = 7
};

static char htest_text[LEGACY_HISTORY_SIZE];

/* Whose process makes the events. */
static uint32_t htest_uid;

/* The lines of one event on device 2. */
static const char *htest_event(struct legacy_history *history, uint32_t op, uint64_t address,
			       uint64_t size, uint32_t refs)
{
	struct book_event event = {
		.op_slot = op,
		.record = {.address = address, .size = size, .meta = book_meta(HTEST_L1, 0, refs)},
	};
	struct seed_lines_event line = {
		.event = &event, .uid = htest_uid, .pid = HTEST_PID, .device = 2};

	htest_text[legacy_history_event(history, &line, htest_text)] = '\0';
	return htest_text;
}

static void htest_expect_text(const char *got, const char *expected)
{
	if (strcmp(got, expected) != 0)
		fprintf(stderr, "expected:\n%sgot:\n%s", expected, got);
	assert(strcmp(got, expected) == 0);
}

static void htest_expect_dump(struct legacy_history *history, uint64_t address,
			      const char *expected)
{
	const struct legacy_history_key key = {htest_uid, HTEST_PID, 2, HTEST_L1, address};
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	assert(out);
	legacy_history_put(history, out, &key);
	assert(fclose(out) == 0);
	htest_expect_text(text, expected);
}

static void htest_expect_double_freed(struct legacy_history *history, const char *expected)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	assert(out);
	legacy_history_put_double_freed(history, out);
	assert(fclose(out) == 0);
	htest_expect_text(text, expected);
}

UNIT(without_a_history_the_lines_are_those_of_the_first_server)
{
	htest_expect_text(htest_event(NULL, BOOK_OP_UNKNOWN_FREE, 0x10, 0, 0),
			  "⚠ [PID 77] Deallocation for unknown buffer 0x10 on device 2 (allocated "
			  "before tracking started)\n");
	assert(legacy_history_double_freed(NULL) == 0);
	htest_expect_dump(NULL, 0x10, "");
}

UNIT(a_double_free_shows_the_last_five_events_newest_first)
{
	struct legacy_history *history = legacy_history_new();

	htest_expect_text(htest_event(history, BOOK_OP_ALLOC, 0x18c6a00, 524288, 1),
			  "✓ [PID 77] Allocated 524288 bytes of L1 on device 2 "
			  "(buffer_id=0x18c6a00)\n");
	htest_event(history, BOOK_OP_FREE, 0x18c6a00, 524288, 0);
	htest_event(history, BOOK_OP_ALLOC, 0x18c6a00, 262144, 1);
	htest_expect_text(htest_event(history, BOOK_OP_REF, 0x18c6a00, 262144, 2),
			  "✓ [PID 77] Allocated 262144 bytes of L1 on device 2 "
			  "(buffer_id=0x18c6a00, ref_count=2)\n");
	htest_event(history, BOOK_OP_UNREF, 0x18c6a00, 262144, 1);
	htest_event(history, BOOK_OP_FREE, 0x18c6a00, 262144, 0);
	htest_expect_text(htest_event(history, BOOK_OP_DOUBLE_FREE, 0x18c6a00, 0, 0),
			  "⚠ [PID 77] Deallocation for ALREADY FREED buffer 0x18c6a00 on device 2 "
			  "(allocs=3 frees=4)\n"
			  "   Last 5 events for this buffer:\n"
			  "     FREE size=262144 pid=77 ref=0\n"
			  "     FREE size=262144 pid=77 ref=0\n"
			  "     FREE size=262144 pid=77 ref=1\n"
			  "     REUSE size=262144 pid=77 ref=2\n"
			  "     ALLOC size=262144 pid=77 ref=1\n");
	assert(legacy_history_double_freed(history) == 1);
	htest_expect_double_freed(history, "Buffer 0x18c6a00 on device 2:\n"
					   "  Total allocs: 3, Total frees: 4\n"
					   "  History:\n"
					   "    ALLOC size=524288 pid=77 ref=1\n"
					   "    FREE size=524288 pid=77 ref=0\n"
					   "    ALLOC size=262144 pid=77 ref=1\n"
					   "    REUSE size=262144 pid=77 ref=2\n"
					   "    FREE size=262144 pid=77 ref=1\n"
					   "    FREE size=262144 pid=77 ref=0\n"
					   "    FREE size=262144 pid=77 ref=0\n");
	legacy_history_free(history);
}

UNIT(what_was_never_seen_is_told_from_what_was_freed)
{
	struct legacy_history *history = legacy_history_new();

	htest_expect_text(htest_event(history, BOOK_OP_UNKNOWN_FREE, 0x10, 0, 0),
			  "⚠ [PID 77] Deallocation for unknown buffer 0x10 on device 2 (never "
			  "tracked or allocated before server started)\n");
	assert(legacy_history_double_freed(history) == 0);
	/* The book has forgotten that it was freed; this has not. */
	htest_event(history, BOOK_OP_ALLOC, 0x20, 5, 1);
	htest_event(history, BOOK_OP_FREE, 0x20, 5, 0);
	assert(strstr(htest_event(history, BOOK_OP_UNKNOWN_FREE, 0x20, 0, 0), "ALREADY FREED"));
	/* And the other way round. */
	assert(strstr(htest_event(history, BOOK_OP_DOUBLE_FREE, 0x30, 0, 0),
		      "ALREADY FREED buffer 0x30 on device 2 (allocs=0 frees=1)"));
	assert(legacy_history_double_freed(history) == 2);
	legacy_history_free(history);
}

UNIT(another_size_at_a_live_address_is_one_line_and_one_event)
{
	struct legacy_history *history = legacy_history_new();

	htest_event(history, BOOK_OP_ALLOC, 0x10, 1000, 1);
	htest_expect_text(htest_event(history, BOOK_OP_FREE | BOOK_OP_RESIZE, 0x10, 1000, 0), "");
	htest_expect_text(
		htest_event(history, BOOK_OP_ALLOC, 0x10, 400, 1),
		"⚠ [PID 77] Buffer reused with DIFFERENT size: old=1000 new=400 (buffer_id=0x10, "
		"device=2)\n"
		"✓ [PID 77] Allocated 400 bytes of L1 on device 2 (buffer_id=0x10)\n");
	htest_expect_dump(history, 0x10,
			  "      History (allocs=2 frees=0):\n"
			  "        ALLOC size=1000 pid=77 ref=1\n"
			  "        REUSE size=400 pid=77 ref=1\n");
	legacy_history_free(history);
}

UNIT(types_at_one_address_have_histories_of_their_own)
{
	struct legacy_history *history = legacy_history_new();
	struct book_event event = {
		.op_slot = BOOK_OP_ALLOC,
		.record = {.address = 0x10, .size = 9, .meta = book_meta(HTEST_DRAM, 0, 1)},
	};
	struct seed_lines_event line = {.event = &event, .pid = HTEST_PID, .device = 2};

	assert(legacy_history_event(history, &line, htest_text) > 0);
	htest_event(history, BOOK_OP_ALLOC, 0x10, 5, 1);
	htest_event(history, BOOK_OP_FREE, 0x10, 5, 0);
	/* Of no known type: that of L1, which was freed before. */
	event.op_slot = BOOK_OP_UNKNOWN_FREE;
	event.record.meta = book_meta(HTEST_NO_TYPE, 0, 0);
	htest_text[legacy_history_event(history, &line, htest_text)] = '\0';
	assert(strstr(htest_text, "ALREADY FREED buffer 0x10 on device 2 (allocs=1 frees=2)"));
	legacy_history_free(history);
}

UNIT(circular_buffers_have_no_history)
{
	struct legacy_history *history = legacy_history_new();
	struct book_event event = {
		.op_slot = BOOK_OP_ALLOC,
		.record = {.address = 0x10, .size = 1, .meta = book_meta(HTEST_CB, 0, 1)},
	};
	struct seed_lines_event line = {.event = &event, .pid = HTEST_PID, .device = 2};

	assert(legacy_history_event(history, &line, htest_text) > 0);
	htest_expect_dump(history, 0x10, "");
	legacy_history_free(history);
}

UNIT(the_oldest_buffers_and_events_make_room)
{
	struct legacy_history *history = legacy_history_new();

	htest_event(history, BOOK_OP_ALLOC, 1, 5, 1);
	htest_event(history, BOOK_OP_FREE, 1, 5, 0);
	htest_event(history, BOOK_OP_DOUBLE_FREE, 1, 0, 0);
	/* Its events are overwritten; that it was freed twice is still known. */
	for (uint32_t i = 0; i < LEGACY_HISTORY_EVENTS; i++)
		htest_event(history, i % 2 ? BOOK_OP_FREE : BOOK_OP_ALLOC, 2, 6, 1);
	htest_expect_double_freed(history, "Buffer 0x1 on device 2:\n"
					   "  Total allocs: 1, Total frees: 2\n"
					   "  History:\n");
	for (uint64_t address = 3; address <= LEGACY_HISTORY_BUFFERS + 1; address++)
		htest_event(history, BOOK_OP_ALLOC, address, 7, 1);
	assert(legacy_history_double_freed(history) == 0);
	htest_expect_dump(history, 1, "");
	htest_expect_dump(history, LEGACY_HISTORY_BUFFERS + 1,
			  "      History (allocs=1 frees=0):\n"
			  "        ALLOC size=7 pid=77 ref=1\n");
	legacy_history_free(history);
}

/* Buffers that were freed twice, at addresses from 1 on. */
static void htest_free_twice(struct legacy_history *history, uint32_t uid, uint64_t count)
{
	htest_uid = uid;
	for (uint64_t address = 1; address <= count; address++) {
		htest_event(history, BOOK_OP_ALLOC, address, uid, 1);
		htest_event(history, BOOK_OP_FREE, address, uid, 0);
		htest_event(history, BOOK_OP_DOUBLE_FREE, address, 0, 0);
	}
}

UNIT(one_user_does_not_make_the_history_of_another_be_forgotten)
{
	struct legacy_history *history = legacy_history_new();

	htest_uid = 1000;
	htest_event(history, BOOK_OP_ALLOC, 1, 5, 1);
	htest_event(history, BOOK_OP_FREE, 1, 5, 0);
	/* All buffers and events that a user may have, and one more. */
	htest_free_twice(history, 1001, LEGACY_HISTORY_EVENTS / 3 + 1);
	htest_uid = 1000;
	htest_expect_dump(history, 1,
			  "      History (allocs=1 frees=1):\n"
			  "        ALLOC size=5 pid=77 ref=1\n"
			  "        FREE size=5 pid=77 ref=0\n");
	/* The same process number and address, but another user's. */
	htest_expect_text(htest_event(history, BOOK_OP_DOUBLE_FREE, 1, 0, 0),
			  "⚠ [PID 77] Deallocation for ALREADY FREED buffer 0x1 on device 2 "
			  "(allocs=1 frees=2)\n"
			  "   Last 5 events for this buffer:\n"
			  "     FREE size=5 pid=77 ref=0\n"
			  "     FREE size=5 pid=77 ref=0\n"
			  "     ALLOC size=5 pid=77 ref=1\n");
	assert(legacy_history_double_freed(history) == LEGACY_HISTORY_BUFFERS + 1);
	legacy_history_free(history);
}

UNIT(the_list_of_double_frees_has_those_of_every_user)
{
	struct legacy_history *history = legacy_history_new();
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *out;

	htest_free_twice(history, 1001, 2000);
	htest_free_twice(history, 1000, 1);
	out = open_memstream(&text, &length);
	assert(out);
	legacy_history_put_double_freed(history, out);
	assert(fclose(out) == 0);
	assert(strstr(text, "Buffer 0x1f4 on device 2:") && !strstr(text, "Buffer 0x1f5 "));
	assert(strstr(text, "    ALLOC size=1000 pid=77 ref=1\n"));
	assert(strstr(text, "... and 1500 more\n"));
	legacy_history_free(history);
}

UNIT(of_too_many_users_the_quiet_one_is_forgotten)
{
	struct legacy_history *history = legacy_history_new();

	for (htest_uid = 0; htest_uid < LEGACY_HISTORY_USERS; htest_uid++)
		htest_event(history, BOOK_OP_ALLOC, 1, 5, 1);
	htest_uid = 0;
	htest_event(history, BOOK_OP_ALLOC, 2, 6, 1);
	htest_uid = LEGACY_HISTORY_USERS;
	htest_event(history, BOOK_OP_ALLOC, 1, 5, 1);
	for (htest_uid = 0; htest_uid <= LEGACY_HISTORY_USERS; htest_uid++)
		htest_expect_dump(history, 1,
				  htest_uid == 1 ? ""
						 : "      History (allocs=1 frees=0):\n"
						   "        ALLOC size=5 pid=77 ref=1\n");
	legacy_history_free(history);
}
