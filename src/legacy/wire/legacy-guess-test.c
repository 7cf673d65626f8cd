/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the bytes of an old client alone do not decide: silence, the end of the stream and the
 * peer's pid; and garbage, each time with exactly one thing wrong. Cases that no rule can get right
 * for everyone are here with the answer that was chosen.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "legacy/wire/legacy-stream.h"
#include "legacy/wire/testing/legacy-wire-testing.h"

#define TEST_SILENCE LEGACY_STREAM_SILENCE_NS

static const int32_t test_pids[] = {LEGACY_TESTING_PID, 0, 77};

static struct legacy_testing_burst test_burst;
static struct legacy_testing_run test_run;

static void test_make(enum legacy_dialect dialect, enum legacy_type type, unsigned int variant)
{
	legacy_testing_start(&test_burst, dialect);
	legacy_testing_add(&test_burst, type, variant);
}

/* Arbitrary bytes, for invalid streams. */
static void test_raw(const void *bytes, size_t length)
{
	test_burst.dialect = LEGACY_UNDECIDED;
	test_burst.count = 0;
	test_burst.length = length;
	memcpy(test_burst.bytes, bytes, length);
}

/* Calls @check for every dialect, type and variant. */
static void test_each(void (*check)(enum legacy_dialect, enum legacy_type, unsigned int))
{
	for (unsigned int d = LEGACY_W32; d < LEGACY_DIALECTS; d++) {
		unsigned int n = 0;

		for (enum legacy_type type; (type = legacy_testing_type((enum legacy_dialect)d, n));
		     n++) {
			for (unsigned int v = 0; v < LEGACY_TESTING_VARIANTS; v++)
				check((enum legacy_dialect)d, type, v);
		}
	}
}

/*
 * What the first @length bytes are, if a decision is forced: the shortest dialect of which they are
 * whole messages, and at the end of a stream perhaps the beginning of one more.
 */
static enum legacy_dialect test_guess(const uint8_t *bytes, size_t length, bool end, int32_t pid)
{
	int32_t pid_long, pid_short;

	for (unsigned int d = LEGACY_TEXT; d < LEGACY_DIALECTS; d++) {
		enum legacy_dialect dialect = (enum legacy_dialect)d;
		size_t size = legacy_size(dialect);
		size_t at = 0;

		if (length < size || (!end && length % size != 0))
			continue;
		while (length - at >= size && legacy_check(dialect, bytes + at))
			at += size;
		if (length - at >= size ||
		    !legacy_check_beginning(dialect, bytes + at, length - at))
			continue;
		memcpy(&pid_long, bytes + 20, 4);
		memcpy(&pid_short, bytes + 24, 4);
		if (dialect == LEGACY_W32 && pid > 0 && pid_long == pid && pid_short != pid &&
		    legacy_check_beginning(LEGACY_W144, bytes, length))
			continue;
		if (dialect != LEGACY_W24 || length == size)
			return dialect;
	}
	return LEGACY_UNDECIDED;
}

/* A pause inside the first message matters only where a shorter dialect is complete. */
static void test_pause(enum legacy_dialect dialect, enum legacy_type type, unsigned int variant)
{
	test_make(dialect, type, variant);
	for (size_t cut = 1; cut < test_burst.length; cut++) {
		for (size_t k = 0; k < ARRAY_SIZE(test_pids); k++) {
			enum legacy_dialect guess =
				test_guess(test_burst.bytes, cut, false, test_pids[k]);

			legacy_testing_begin(&test_run, &test_burst, test_pids[k]);
			legacy_testing_feed(&test_run, cut);
			assert(test_run.count == 0);
			legacy_testing_wait(&test_run, TEST_SILENCE - 1);
			assert(test_run.count == 0);
			legacy_testing_wait(&test_run, 1);
			assert(test_run.dialect == guess);
			legacy_testing_wait(&test_run, TEST_SILENCE * 1000);
			assert(test_run.dialect == guess);
			legacy_testing_feed(&test_run, test_burst.length);
			if (guess == LEGACY_UNDECIDED) {
				legacy_testing_end(&test_run);
				legacy_testing_expect_all(&test_run);
			} else {
				assert(guess < dialect);
			}
		}
	}
}

UNIT(pauses_inside_the_first_message)
{
	test_each(test_pause);
}

/* A client that dies in mid-message: whole messages count, and it is not a clean end. */
static void test_death(enum legacy_dialect dialect, enum legacy_type type, unsigned int variant)
{
	size_t size = legacy_size(dialect);
	size_t cut;

	test_make(dialect, type, variant);
	legacy_testing_add(&test_burst, type, variant);
	for (cut = 1; cut < test_burst.length; cut++) {
		for (size_t k = 0; k < ARRAY_SIZE(test_pids); k++) {
			enum legacy_dialect guess =
				test_guess(test_burst.bytes, cut, true, test_pids[k]);

			legacy_testing_begin(&test_run, &test_burst, test_pids[k]);
			legacy_testing_feed(&test_run, cut);
			legacy_testing_end(&test_run);
			if (cut >= size) {
				assert(test_run.dialect == dialect && test_run.count == cut / size);
				assert(test_run.outcome ==
				       (cut % size ? LEGACY_TRUNCATED : LEGACY_END));
			} else {
				assert(test_run.dialect == guess);
				assert(guess || test_run.outcome == LEGACY_TRUNCATED);
			}
		}
	}
}

UNIT(death_in_mid_message)
{
	test_each(test_death);
}

UNIT(a_silent_connection_has_no_message)
{
	test_raw("", 0);
	legacy_testing_begin(&test_run, &test_burst, 0);
	legacy_testing_wait(&test_run, TEST_SILENCE * 10);
	assert(test_run.outcome == -EAGAIN && test_run.wait_until_ns == LEGACY_STREAM_NEVER);
	legacy_testing_end(&test_run);
	assert(test_run.outcome == LEGACY_END && test_run.count == 0);
}

/* When to ask again: 20 ms after the last byte if that would decide, else never. */
UNIT(when_to_ask_again)
{
	struct legacy_message message;
	struct legacy_stream *stream = &test_run.stream;
	uint64_t wait = 0;

	test_make(LEGACY_W144, LEGACY_QUERY, 0);
	legacy_stream_init(stream);
	assert(legacy_stream_feed(stream, test_burst.bytes, 71) == 71);
	assert(legacy_stream_next(stream, 1000, 0, &message, &wait) == -EAGAIN);
	assert(wait == LEGACY_STREAM_NEVER);
	assert(legacy_stream_feed(stream, test_burst.bytes + 71, 1) == 1);
	assert(legacy_stream_next(stream, 2000, 0, &message, &wait) == -EAGAIN);
	assert(wait == 2000 + TEST_SILENCE);
	assert(legacy_stream_next(stream, 3000, 0, &message, &wait) == -EAGAIN);
	assert(wait == 2000 + TEST_SILENCE); /* asking again changes nothing */
	assert(legacy_stream_next(stream, 1, 0, &message, &wait) == -EAGAIN);
	assert(wait == 2000 + TEST_SILENCE); /* a clock that goes backwards is not silence */

	/* Bytes that arrived earlier but are only read now break the silence. */
	assert(legacy_stream_feed(stream, test_burst.bytes + 72, 40) == 40);
	assert(legacy_stream_next(stream, TEST_SILENCE * 5, 0, &message, &wait) == -EAGAIN);
	assert(wait == TEST_SILENCE * 6);
	assert(legacy_stream_feed(stream, test_burst.bytes + 112, 32) == 32);
	assert(legacy_stream_next(stream, TEST_SILENCE * 5, 0, &message, &wait) == -EAGAIN);
	assert(legacy_stream_next(stream, TEST_SILENCE * 6 - 1, 0, &message, &wait) == -EAGAIN);
	assert(legacy_stream_next(stream, TEST_SILENCE * 6, 0, &message, &wait) == 0);
	assert(message.dialect == LEGACY_W144 && message.type == LEGACY_QUERY);

	/* From now on nothing waits. */
	assert(legacy_stream_feed(stream, test_burst.bytes, 144) == 144);
	assert(legacy_stream_next(stream, 0, 0, &message, &wait) == 0);
	assert(legacy_stream_next(stream, 0, 0, &message, &wait) == -EAGAIN);
	assert(wait == LEGACY_STREAM_NEVER);
}

/* The peer's pid: a W144 message whose first 32 bytes are a valid W32 message. */
UNIT(pid_holds_back)
{
	struct legacy_message message;

	test_make(LEGACY_W144, LEGACY_CB_ALLOC, 0);
	legacy_testing_begin(&test_run, &test_burst, LEGACY_TESTING_PID);
	legacy_testing_feed(&test_run, 32);
	assert(test_run.wait_until_ns == LEGACY_STREAM_NEVER);
	legacy_testing_wait(&test_run, TEST_SILENCE * 1000);
	legacy_testing_feed(&test_run, 144);
	legacy_testing_end(&test_run);
	legacy_testing_expect_all(&test_run);

	/* The end does not make it a short message either. */
	legacy_testing_begin(&test_run, &test_burst, LEGACY_TESTING_PID);
	legacy_testing_feed(&test_run, 32);
	legacy_testing_end(&test_run);
	assert(test_run.count == 0 && test_run.outcome == LEGACY_TRUNCATED);

	/* A pid from another namespace, or none: 32 bytes and silence are W32. */
	for (size_t k = 1; k < ARRAY_SIZE(test_pids); k++) {
		legacy_testing_begin(&test_run, &test_burst, test_pids[k]);
		legacy_testing_feed(&test_run, 32);
		assert(test_run.wait_until_ns == test_run.now_ns + TEST_SILENCE);
		legacy_testing_wait(&test_run, TEST_SILENCE);
		assert(test_run.count == 1 && test_run.dialect == LEGACY_W32);
		legacy_testing_feed(&test_run, 144);
		assert(test_run.outcome == LEGACY_GARBAGE);
	}

	/* Cannot be right for both: a kernel of program 4242, from pid 4242 that calls itself 1. */
	legacy_testing_message(LEGACY_KERNEL_LOAD, 0, true, &message);
	message.id = (UINT64_C(4242) << 32) + 3;
	message.pid = 1;
	legacy_testing_start(&test_burst, LEGACY_W32);
	legacy_testing_append(&test_burst, &message);
	legacy_testing_append(&test_burst, &message);
	legacy_testing_begin(&test_run, &test_burst, 4242);
	legacy_testing_feed(&test_run, 32);
	legacy_testing_wait(&test_run, TEST_SILENCE);
	assert(test_run.count == 0);
	legacy_testing_feed(&test_run, 64); /* but it waits only for the next one */
	legacy_testing_expect_all(&test_run);
}

/* Cannot be right for both: a FREE of nothing, split after 24 bytes, and the monitor's request. */
UNIT(w24_and_a_free_are_told_apart)
{
	test_make(LEGACY_W72, LEGACY_FREE, 1);
	legacy_testing_begin(&test_run, &test_burst, 0);
	legacy_testing_feed(&test_run, 24);
	legacy_testing_wait(&test_run, TEST_SILENCE);
	assert(test_run.count == 1 && test_run.dialect == LEGACY_W24);
	legacy_testing_feed(&test_run, 25);
	assert(test_run.outcome == LEGACY_GARBAGE);

	/* No device, size or pid, but an id: the 25th byte shows that it is not W24. */
	test_burst.bytes[24] = 2;
	legacy_testing_begin(&test_run, &test_burst, 0);
	legacy_testing_feed(&test_run, 48);
	legacy_testing_wait(&test_run, TEST_SILENCE);
	assert(test_run.count == 0 && test_run.wait_until_ns == LEGACY_STREAM_NEVER);
	legacy_testing_feed(&test_run, 72);
	legacy_testing_wait(&test_run, TEST_SILENCE);
	legacy_testing_expect_all(&test_run);
}

/*
 * Cannot be right for both: a W648 name of one control character and no stack, and two W72
 * messages.
 */
UNIT(name_that_is_a_header)
{
	for (unsigned int c = 1; c <= 31; c++) {
		bool is_type = legacy_has(LEGACY_W72, (enum legacy_type)c);

		test_make(LEGACY_W648, LEGACY_FREE, 1);
		test_burst.bytes[72] = (uint8_t)c;
		legacy_testing_begin(&test_run, &test_burst, 0);
		legacy_testing_feed(&test_run, 648);
		assert(test_run.dialect == (is_type ? LEGACY_W72 : LEGACY_W648));

		/* Anything longer is a name, even if it takes a wait. */
		for (size_t more = 73; more <= 75; more++) {
			test_make(LEGACY_W648, LEGACY_FREE, 1);
			test_burst.bytes[72] = (uint8_t)c;
			test_burst.bytes[more] = 'x';
			legacy_testing_begin(&test_run, &test_burst, 0);
			for (size_t at = 1; at <= 648; at++)
				legacy_testing_feed(&test_run, at);
			legacy_testing_expect_all(&test_run);
		}
	}
}

/* One nonzero byte behind the head of a QUERY: its offset tells the dialect. */
UNIT(first_byte_behind_the_head)
{
	static const uint8_t values[] = {LEGACY_QUERY, 'x', LEGACY_CB_FREE, LEGACY_DUMP_KERNELS};

	for (size_t at = 40; at < 200; at++) {
		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			uint8_t value = values[k];
			enum legacy_dialect expected = LEGACY_UNDECIDED;

			if (at == 72)
				expected = value == LEGACY_QUERY ? LEGACY_W72 : LEGACY_W648;
			else if (at == 112 && value == LEGACY_QUERY)
				expected = LEGACY_W112;
			else if (at == 128 && value != 'x')
				expected = LEGACY_W128;
			else if (at == 144 && value != 'x')
				expected = LEGACY_W144;
			else if (at == 136 || at > 144)
				expected = LEGACY_W648;
			test_make(LEGACY_W648, LEGACY_QUERY, 1);
			test_burst.bytes[at] = value;
			legacy_testing_begin(&test_run, &test_burst, 0);
			legacy_testing_feed(&test_run, 648);
			assert(test_run.dialect == expected);
			if (expected == LEGACY_UNDECIDED)
				assert(test_run.outcome == LEGACY_GARBAGE);
		}
	}
}

/* Feeds byte by byte. Return: how many bytes it took to detect garbage; 0 = never. */
static size_t test_garbage_at(size_t from)
{
	legacy_testing_begin(&test_run, &test_burst, 0);
	legacy_testing_feed(&test_run, from);
	for (size_t at = from; at < test_burst.length; at++) {
		legacy_testing_feed(&test_run, at + 1);
		if (test_run.outcome == LEGACY_GARBAGE)
			return at + 1;
		assert(test_run.outcome == -EAGAIN);
	}
	return 0;
}

UNIT(garbage_first_byte)
{
	for (unsigned int value = 0; value < 256; value++) {
		uint8_t byte = (uint8_t)value;
		bool good = value == 'Q' || legacy_has(LEGACY_W144, (enum legacy_type)value);

		test_raw(&byte, 1);
		assert(test_garbage_at(0) == (good ? 0 : 1));
	}
}

/* In a running stream: each byte that must be zero is not, each wrong type; detected at once. */
static void test_wrong(enum legacy_dialect dialect, enum legacy_type type, unsigned int variant)
{
	size_t size = legacy_size(dialect);

	test_make(dialect, type, variant);
	legacy_testing_add(&test_burst, type, variant);
	legacy_testing_add(&test_burst, type, variant);
	for (size_t offset = 0; offset < size; offset++) {
		size_t at = 2 * size + offset;
		uint8_t good = test_burst.bytes[at];

		for (unsigned int value = 0; value < 256; value += offset ? 51 : 1) {
			bool fits = legacy_fits_at(dialect, offset, (uint8_t)value);

			test_burst.bytes[at] = (uint8_t)value;
			assert(test_garbage_at(2 * size) == (fits ? 0 : at + 1));
			assert(test_run.count == (fits ? 3 : 2));
		}
		test_burst.bytes[at] = good;
	}
}

UNIT(garbage_in_a_running_stream)
{
	static const enum legacy_dialect dialects[] = {LEGACY_TEXT, LEGACY_W32,  LEGACY_W72,
						       LEGACY_W112, LEGACY_W128, LEGACY_W144};

	for (size_t i = 0; i < ARRAY_SIZE(dialects); i++)
		test_wrong(dialects[i], legacy_testing_type(dialects[i], 0), 0);
}

/* In the first message only what no dialect allows is garbage, and it is detected at once. */
UNIT(garbage_in_the_first_message)
{
	static const uint16_t wrong[] = {1, 2, 3, 17, 18, 19, 40, 47, 71, 73, 111, 127, 135, 143};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		test_make(LEGACY_W144, LEGACY_FREE, 0);
		test_burst.bytes[wrong[i]] = 0x80;
		assert(test_garbage_at(0) == wrong[i] + 1u);
		assert(test_run.count == 0);
	}

	/* No W72 or W648 client asks for device info, and none of them knows circular buffers. */
	test_make(LEGACY_W144, LEGACY_DEVICE_INFO_QUERY, 0);
	test_burst.bytes[72] = LEGACY_DEVICE_INFO_QUERY;
	assert(test_garbage_at(0) == 73);
	test_make(LEGACY_W144, LEGACY_CB_ALLOC, 0);
	test_burst.bytes[72] = LEGACY_CB_ALLOC;
	assert(test_garbage_at(0) == 73);

	/* Not W32 because of its second padding, not W128 or W144 because of the first. */
	test_make(LEGACY_W32, LEGACY_CB_ALLOC, 0);
	test_burst.bytes[17] = 1;
	assert(test_garbage_at(0) == 0);
	test_burst.bytes[28] = 1;
	assert(test_garbage_at(0) == 29);
}

UNIT(unknown_text_commands_are_garbage)
{
	static const char *const lines[] = {"QUERY_ALL\r\n", "QUERY_AL\n", "QUERY ALL\n",
					    "Query_all\n", "QUERY_ALL \n"};
	static const size_t at[] = {10, 9, 6, 2, 10};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		test_raw(lines[i], strlen(lines[i]));
		assert(test_garbage_at(0) == at[i]);
	}
	test_raw("QUERY_ALL", 9); /* an unfinished line is waited for, not guessed */
	assert(test_garbage_at(0) == 0);
	legacy_testing_wait(&test_run, TEST_SILENCE * 1000);
	legacy_testing_end(&test_run);
	assert(test_run.count == 0 && test_run.outcome == LEGACY_TRUNCATED);
}

/* A process that has spoken a dialect before is answered at once; others as long as before. */
UNIT(an_expected_dialect_needs_no_silence)
{
	for (uint32_t d = LEGACY_W72; d <= LEGACY_W144; d++) {
		enum legacy_dialect dialect = (enum legacy_dialect)d;

		test_make(dialect, LEGACY_QUERY, 0);
		legacy_testing_begin(&test_run, &test_burst, 0);
		legacy_testing_feed(&test_run, test_burst.length);
		assert(test_run.outcome == -EAGAIN && test_run.count == 0);
		legacy_testing_begin(&test_run, &test_burst, 0);
		test_run.stream.expected = dialect;
		legacy_testing_feed(&test_run, test_burst.length);
		legacy_testing_expect_all(&test_run);
	}
	/* The beginning of a message of another size is still that. */
	test_make(LEGACY_W144, LEGACY_QUERY, 0);
	legacy_testing_begin(&test_run, &test_burst, 0);
	test_run.stream.expected = LEGACY_W144;
	legacy_testing_feed(&test_run, 72);
	assert(test_run.outcome == -EAGAIN && test_run.count == 0);
	legacy_testing_feed(&test_run, test_burst.length);
	legacy_testing_expect_all(&test_run);
}

/* Other programs that might find the socket. */
UNIT(other_protocols_are_garbage)
{
	static const char *const others[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "\r\n",
					     "help\n", "{\"query\": \"all\"}"};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		test_raw(others[i], strlen(others[i]));
		legacy_testing_begin(&test_run, &test_burst, 0);
		legacy_testing_feed(&test_run, test_burst.length);
		assert(test_run.outcome == LEGACY_GARBAGE && test_run.count == 0);
	}
}

/* Garbage stays garbage, whatever follows: it is not searched for messages. */
UNIT(garbage_is_final)
{
	test_make(LEGACY_W72, LEGACY_ALLOC, 0);
	legacy_testing_add(&test_burst, LEGACY_FREE, 0);
	legacy_testing_add(&test_burst, LEGACY_ALLOC, 0);
	legacy_testing_add(&test_burst, LEGACY_ALLOC, 0);
	test_burst.bytes[144] = 0xff;
	legacy_testing_begin(&test_run, &test_burst, 0);
	legacy_testing_feed(&test_run, 145);
	assert(test_run.outcome == LEGACY_GARBAGE && test_run.count == 2);
	legacy_testing_feed(&test_run, test_burst.length);
	legacy_testing_wait(&test_run, TEST_SILENCE * 2);
	legacy_testing_end(&test_run);
	assert(test_run.outcome == LEGACY_GARBAGE && test_run.count == 2);
}
