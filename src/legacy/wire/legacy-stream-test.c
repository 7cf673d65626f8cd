/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Old clients are understood however their bytes arrive: every dialect with every type as its first
 * message, followed by every other, split at every byte, in variants that look like another
 * dialect, with the peer's pid known, wrong and not known. Silence, the end and garbage are in
 * legacy-guess-test.c.
 */

#include "legacy/wire/legacy-stream.h"

#include <errno.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "legacy/wire/testing/legacy-wire-testing.h"

#define TEST_SHORT (LEGACY_STREAM_SILENCE_NS - 1) /* the longest gap that is not silence */
#define TEST_LONG (UINT64_C(1) << 40)
#define TEST_CUTS 700u

static const int32_t test_pids[] = {LEGACY_TESTING_PID, 0, 77};

static struct legacy_testing_burst test_burst;
static struct legacy_testing_run test_run;

/*
 * Where to split: everywhere, except inside long texts, where bytes are alike: there only now and
 * then.
 */
static size_t test_cuts(size_t size, size_t length, uint16_t ret_cuts[TEST_CUTS])
{
	size_t n = 0;

	for (size_t at = 1; at < length; at++) {
		size_t offset = at % size;

		if (offset <= 152 || offset + 4 >= size || offset % 37 == 0) {
			assert(n < TEST_CUTS);
			ret_cuts[n++] = (uint16_t)at;
		}
	}
	return n;
}

/* Silence or the end of the stream ends the burst. */
static void test_finish(bool silence)
{
	if (silence)
		legacy_testing_wait(&test_run, LEGACY_STREAM_SILENCE_NS);
	legacy_testing_expect_all(&test_run);
	assert(test_run.outcome == -EAGAIN);
	legacy_testing_end(&test_run);
	assert(test_run.outcome == LEGACY_END);
}

static void test_one_cut(size_t cut, int32_t pid, bool silence)
{
	legacy_testing_begin(&test_run, &test_burst, pid);
	legacy_testing_feed(&test_run, cut);
	legacy_testing_wait(&test_run, TEST_SHORT);
	legacy_testing_feed(&test_run, test_burst.length);
	if (silence) {
		test_finish(true);
	} else {
		legacy_testing_end(&test_run);
		legacy_testing_expect_all(&test_run);
	}
}

/* A first message alone, then with each follower, split once at every byte. */
static void test_first(enum legacy_dialect dialect, enum legacy_type first, unsigned int variant)
{
	uint16_t cuts[TEST_CUTS];
	unsigned int follower = 0;
	size_t n;

	legacy_testing_start(&test_burst, dialect);
	legacy_testing_add(&test_burst, first, variant);
	n = test_cuts(legacy_size(dialect), test_burst.length, cuts);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(test_pids); k++) {
			test_one_cut(cuts[i], test_pids[k], true);
			test_one_cut(cuts[i], test_pids[k], false);
		}
	}
	for (enum legacy_type type; (type = legacy_testing_type(dialect, follower)); follower++) {
		legacy_testing_start(&test_burst, dialect);
		legacy_testing_add(&test_burst, first, variant);
		legacy_testing_add(&test_burst, type, follower % LEGACY_TESTING_VARIANTS);
		n = test_cuts(legacy_size(dialect), test_burst.length, cuts);
		for (size_t i = 0; i < n; i++)
			test_one_cut(cuts[i], test_pids[(i + follower) % ARRAY_SIZE(test_pids)],
				     (i + variant) % 2);
	}
}

static void test_dialect(enum legacy_dialect dialect)
{
	unsigned int n = 0;

	for (enum legacy_type type; (type = legacy_testing_type(dialect, n)); n++) {
		for (unsigned int variant = 0; variant < LEGACY_TESTING_VARIANTS; variant++)
			test_first(dialect, type, variant);
	}
	assert(n > 0);
}

UNIT(w32_any_first_any_next_any_cut)
{
	test_dialect(LEGACY_W32);
}

UNIT(w72_any_first_any_next_any_cut)
{
	test_dialect(LEGACY_W72);
}

UNIT(w112_any_first_any_next_any_cut)
{
	test_dialect(LEGACY_W112);
}

UNIT(w128_any_first_any_next_any_cut)
{
	test_dialect(LEGACY_W128);
}

UNIT(w144_any_first_any_next_any_cut)
{
	test_dialect(LEGACY_W144);
}

UNIT(w648_any_first_any_next_any_cut)
{
	test_dialect(LEGACY_W648);
}

/* The two requests that no old server understood. */
UNIT(text_any_cut)
{
	test_dialect(LEGACY_TEXT);
}

UNIT(w24_any_cut)
{
	legacy_testing_start(&test_burst, LEGACY_W24);
	legacy_testing_add(&test_burst, LEGACY_STATISTICS, 0);
	for (size_t cut = 1; cut < test_burst.length; cut++) {
		test_one_cut(cut, 0, true);
		test_one_cut(cut, LEGACY_TESTING_PID, false);
	}
}

/* Every pair of splits, over every first message; followers and variants take turns. */
static void test_two_cuts(enum legacy_dialect dialect)
{
	uint16_t cuts[TEST_CUTS];
	unsigned int n = 0;
	size_t count;

	for (enum legacy_type type; (type = legacy_testing_type(dialect, n)); n++) {
		enum legacy_type next = legacy_testing_type(dialect, n + 1);

		legacy_testing_start(&test_burst, dialect);
		legacy_testing_add(&test_burst, type, n % LEGACY_TESTING_VARIANTS);
		legacy_testing_add(&test_burst, next ? next : type, 1);
		count = test_cuts(legacy_size(dialect), test_burst.length, cuts);
		for (size_t i = 0; i < count; i++) {
			for (size_t k = i + 1; k < count; k++) {
				legacy_testing_begin(&test_run, &test_burst,
						     test_pids[(i + k) % ARRAY_SIZE(test_pids)]);
				legacy_testing_feed(&test_run, cuts[i]);
				legacy_testing_wait(&test_run, TEST_SHORT);
				legacy_testing_feed(&test_run, cuts[k]);
				legacy_testing_wait(&test_run, TEST_SHORT);
				legacy_testing_feed(&test_run, test_burst.length);
				test_finish(true);
			}
		}
	}
}

UNIT(two_cuts)
{
	for (unsigned int d = LEGACY_W32; d < LEGACY_W648; d++)
		test_two_cuts((enum legacy_dialect)d);
}

UNIT(two_cuts_w648)
{
	test_two_cuts(LEGACY_W648);
}

/* One byte at a time, each as late as possible. */
UNIT(byte_by_byte)
{
	for (unsigned int d = LEGACY_W32; d < LEGACY_DIALECTS; d++) {
		unsigned int n = 0;

		for (enum legacy_type type; (type = legacy_testing_type((enum legacy_dialect)d, n));
		     n++) {
			for (unsigned int v = 0; v < LEGACY_TESTING_VARIANTS; v++) {
				legacy_testing_start(&test_burst, (enum legacy_dialect)d);
				legacy_testing_add(&test_burst, type, v);
				legacy_testing_add(&test_burst, type, v);
				legacy_testing_begin(&test_run, &test_burst, test_pids[v % 3]);
				for (size_t at = 1; at <= test_burst.length; at++) {
					legacy_testing_feed(&test_run, at);
					legacy_testing_wait(&test_run, TEST_SHORT);
				}
				test_finish(true);
			}
		}
	}
}

/* Hundreds of messages of all types, in reads of many sizes, even larger than the stream's room. */
UNIT(bursts_of_any_read_size_are_decoded)
{
	static const size_t reads[] = {1,   2,   3,   5,   7,   24,  31,   32,   33,   48,   71,
				       72,  73,  96,  111, 112, 113, 127,  128,  129,  143,  144,
				       145, 200, 500, 647, 648, 649, 1000, 2047, 2048, 2049, 50000};

	for (unsigned int d = LEGACY_W32; d < LEGACY_DIALECTS; d++) {
		legacy_testing_start(&test_burst, (enum legacy_dialect)d);
		for (unsigned int n = 0; test_burst.length < 50000; n++) {
			enum legacy_type type = legacy_testing_type((enum legacy_dialect)d, n % 11);

			if (type)
				legacy_testing_add(&test_burst, type,
						   n / 11 % LEGACY_TESTING_VARIANTS);
		}
		for (size_t i = 0; i < ARRAY_SIZE(reads); i++) {
			legacy_testing_begin(&test_run, &test_burst, test_pids[i % 3]);
			for (size_t at = 0; at < test_burst.length;) {
				at = bits_min(at + reads[i], test_burst.length);
				legacy_testing_feed(&test_run, at);
			}
			test_finish(false);
		}
	}
}

/* The first message decides for good: after it, a client may pause anywhere. */
UNIT(pauses_after_the_first_message)
{
	for (unsigned int d = LEGACY_W32; d < LEGACY_DIALECTS; d++) {
		enum legacy_type type = legacy_testing_type((enum legacy_dialect)d, 0);
		size_t size = legacy_size((enum legacy_dialect)d);

		for (unsigned int v = 0; v < LEGACY_TESTING_VARIANTS; v++) {
			legacy_testing_start(&test_burst, (enum legacy_dialect)d);
			for (unsigned int n = 0; n < 3; n++)
				legacy_testing_add(&test_burst, type, (v + n) % 6);
			for (size_t cut = size; cut <= test_burst.length; cut++) {
				legacy_testing_begin(&test_run, &test_burst, 0);
				legacy_testing_feed(&test_run, cut);
				legacy_testing_wait(&test_run, TEST_LONG);
				/*
				 * The beginning of the second message may delay the decision about
				 * the first.
				 */
				assert(test_run.count == cut / size ||
				       (test_run.count == 0 && cut > size && cut < 2 * size));
				legacy_testing_feed(&test_run, test_burst.length);
				test_finish(false);
			}
		}
	}
}

/* W648 messages may hold any bytes in their texts. */
UNIT(texts_of_any_bytes)
{
	for (unsigned int value = 0; value < 256; value++) {
		legacy_testing_start(&test_burst, LEGACY_W648);
		legacy_testing_add(&test_burst, LEGACY_ALLOC, 0);
		legacy_testing_add(&test_burst, LEGACY_ALLOC, 0);
		for (size_t at = 72; at < 648; at++) {
			if (at != 72 && at != 136) /* the first bytes stay */
				test_burst.bytes[at] = (uint8_t)value;
			test_burst.bytes[648 + at] = (uint8_t)(value + at);
		}
		for (size_t cut = 60; cut < 160; cut++)
			test_one_cut(cut, 0, cut % 2);
	}
}

/* What the daemon relies on: there is room after -EAGAIN, and never more is taken than fits. */
UNIT(the_stream_takes_no_more_than_its_room)
{
	struct legacy_message message;
	uint64_t wait;

	legacy_testing_start(&test_burst, LEGACY_W648);
	for (unsigned int n = 0; n < 8; n++)
		legacy_testing_add(&test_burst, LEGACY_ALLOC, 0);
	legacy_stream_init(&test_run.stream);
	assert(legacy_stream_feed(&test_run.stream, test_burst.bytes, 0) == 0);
	assert(legacy_stream_feed(&test_run.stream, test_burst.bytes, test_burst.length) ==
	       LEGACY_STREAM_ROOM);
	assert(legacy_stream_feed(&test_run.stream, test_burst.bytes, 1) == 0);
	assert(legacy_stream_next(&test_run.stream, 0, 0, &message, &wait) == 0);
	assert(legacy_stream_feed(&test_run.stream, test_burst.bytes + LEGACY_STREAM_ROOM,
				  test_burst.length - LEGACY_STREAM_ROOM) == 648);
}
