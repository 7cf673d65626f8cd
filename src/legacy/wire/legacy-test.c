/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The old protocol's messages at their offsets, repeated here as numbers: the structs must not be
 * checked against themselves.
 */

#include "legacy/wire/legacy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "legacy/wire/legacy-encode.h"

static uint64_t test_get(const uint8_t *bytes, size_t offset, size_t width)
{
	uint64_t value = 0;

	for (size_t i = 0; i < width; i++)
		value |= (uint64_t)bytes[offset + i] << (8 * i);
	return value;
}

static void test_put(uint8_t *bytes, size_t offset, size_t width, uint64_t value)
{
	for (size_t i = 0; i < width; i++)
		bytes[offset + i] = (uint8_t)(value >> (8 * i));
}

static void test_put_text(uint8_t *bytes, size_t offset, const char *text)
{
	for (size_t i = 0; text[i]; i++)
		bytes[offset + i] = (uint8_t)text[i];
}

/* Every byte that no field of @fields (offset, width) covers is zero. */
static void test_rest_is_zero(const uint8_t *bytes, size_t length, const uint16_t (*fields)[2],
			      size_t count)
{
	for (size_t i = 0; i < length; i++) {
		bool covered = false;

		for (size_t k = 0; k < count; k++)
			covered |= i >= fields[k][0] && i < (size_t)fields[k][0] + fields[k][1];
		assert(covered || bytes[i] == 0);
	}
}

/* Which types each dialect's clients send, according to the documents. */
static const struct {
	enum legacy_dialect dialect;
	size_t size;
	const char *name;
	uint16_t types[16];
} test_dialects[] = {
	{LEGACY_TEXT, 10, "text", {LEGACY_QUERY_ALL}},
	{LEGACY_W24, 24, "W24", {LEGACY_STATISTICS}},
	{LEGACY_W32, 32, "W32", {8, 9, 10, 11}},
	{LEGACY_W72, 72, "W72", {1, 2, 3, 5}},
	{LEGACY_W112, 112, "W112", {1, 2, 3, 5, 6}},
	{LEGACY_W128, 128, "W128", {1, 2, 3, 5, 6, 8, 9, 10, 11, 12}},
	{LEGACY_W144, 144, "W144", {1, 2, 3, 5, 6, 8, 9, 10, 11, 12}},
	{LEGACY_W648, 648, "W648", {1, 2, 3, 5}},
};

static bool test_has(size_t row, unsigned int type)
{
	for (size_t i = 0; test_dialects[row].types[i]; i++) {
		if (test_dialects[row].types[i] == type)
			return true;
	}
	return false;
}

UNIT(sizes_and_types)
{
	assert(ARRAY_SIZE(test_dialects) == LEGACY_DIALECTS - 1);
	assert(legacy_size(LEGACY_UNDECIDED) == 0);
	for (size_t row = 0; row < ARRAY_SIZE(test_dialects); row++) {
		enum legacy_dialect dialect = test_dialects[row].dialect;

		assert(legacy_size(dialect) == test_dialects[row].size);
		assert(strcmp(legacy_dialect_name(dialect), test_dialects[row].name) == 0);
		for (unsigned int type = 0; type < 256; type++)
			assert(legacy_has(dialect, (enum legacy_type)type) == test_has(row, type));
	}
	for (unsigned int type = 0; type < 256; type++)
		assert(!legacy_has(LEGACY_UNDECIDED, (enum legacy_type)type));
	assert(strcmp(legacy_dialect_name((enum legacy_dialect)99), "unknown") == 0);
	assert(strcmp(legacy_type_name(LEGACY_DUMP_KERNELS), "DUMP_KERNELS") == 0);
	assert(strcmp(legacy_type_name((enum legacy_type)0), "unknown") == 0);
	assert(strcmp(legacy_type_name((enum legacy_type)50), "unknown") == 0);
	assert(strcmp(legacy_type_name((enum legacy_type) - 1), "unknown") == 0);
}

/* A valid request, built by hand. */
static void test_request(enum legacy_dialect dialect, unsigned int type, uint8_t *bytes)
{
	memset(bytes, 0, LEGACY_SIZE_MAX);
	if (dialect == LEGACY_TEXT) {
		test_put_text(bytes, 0, "QUERY_ALL\n");
		return;
	}
	bytes[0] = dialect == LEGACY_W24 ? 2 : (uint8_t)type;
	if (dialect == LEGACY_W24)
		return;
	test_put(bytes, 4, 4, (uint32_t)-7);
	test_put(bytes, 8, 8, 0x1112131415161718);
	if (dialect == LEGACY_W32) {
		test_put(bytes, 16, 8, 0x2122232425262728);
		test_put(bytes, 24, 4, 0x31323334);
		return;
	}
	bytes[16] = 0xa5;
	test_put(bytes, 20, 4, 0x31323334);
	test_put(bytes, 24, 8, 0x2122232425262728);
	test_put(bytes, 32, 8, 0x4142434445464748);
	if (dialect == LEGACY_W648) {
		test_put_text(bytes, 72, "weights");
		test_put_text(bytes, 136, "a.py:1:f -> b.py:2:g");
	}
}

static void test_decoded(enum legacy_dialect dialect, unsigned int type, const uint8_t *bytes)
{
	bool odd = dialect == LEGACY_TEXT || dialect == LEGACY_W24;
	bool kernel = type == 10 || type == 11;
	bool head = dialect >= LEGACY_W72;
	struct legacy_message message;

	memset(&message, 0xff, sizeof(message));
	assert(legacy_decode(dialect, bytes, &message) == 0);
	assert(message.dialect == dialect);
	assert(message.type == type);
	assert(message.device == (odd ? 0 : -7));
	assert(message.size == (odd ? 0 : 0x1112131415161718));
	assert(message.id == (odd ? 0 : 0x2122232425262728));
	assert(message.pid == (odd ? 0 : 0x31323334));
	assert(message.timestamp == (head ? 0x4142434445464748 : 0));
	assert(message.buffer_type == (head && !kernel ? 0xa5 : 0));
	assert(message.kernel_sort == (head && kernel ? 0xa5 : 0));
	assert(message.raw == bytes);
	if (dialect == LEGACY_W648) {
		assert(message.name_length == 7 && memcmp(message.name, "weights", 7) == 0);
		assert(message.stack_length == 20 && memcmp(message.stack, "a.py:1:f", 8) == 0);
	} else {
		assert(message.name_length == 0 && *message.name == 0);
		assert(message.stack_length == 0 && *message.stack == 0);
	}
}

UNIT(requests_at_their_offsets)
{
	uint8_t bytes[LEGACY_SIZE_MAX], again[LEGACY_SIZE_MAX];
	struct legacy_message message;
	size_t length;

	for (size_t row = 0; row < ARRAY_SIZE(test_dialects); row++) {
		enum legacy_dialect dialect = test_dialects[row].dialect;

		for (size_t i = 0; test_dialects[row].types[i]; i++) {
			unsigned int type = test_dialects[row].types[i];

			test_request(dialect, type, bytes);
			test_decoded(dialect, type, bytes);

			/* The encoder produces exactly the same bytes. */
			assert(legacy_decode(dialect, bytes, &message) == 0);
			memset(again, 0xee, sizeof(again));
			length = 0;
			assert(legacy_encode_request(dialect, &message, again, &length) == 0);
			assert(length == test_dialects[row].size);
			assert(memcmp(bytes, again, length) == 0);
			assert(length == LEGACY_SIZE_MAX || again[length] == 0xee);
		}
	}
}

UNIT(encoding_what_a_dialect_has_not)
{
	struct legacy_message message = {0};
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length = 77;

	for (size_t row = 0; row < ARRAY_SIZE(test_dialects); row++) {
		for (unsigned int type = 0; type < 128; type++) {
			message.type = (enum legacy_type)type;
			if (!test_has(row, type))
				assert(legacy_encode_request(test_dialects[row].dialect, &message,
							     bytes, &length) == -EINVAL);
		}
	}
	assert(length == 77);
}

/* One byte of a valid request changed to each value: the fast check agrees with the slow one. */
UNIT(every_byte_of_every_request)
{
	uint8_t bytes[LEGACY_SIZE_MAX];
	struct legacy_message message;

	for (size_t row = 0; row < ARRAY_SIZE(test_dialects); row++) {
		enum legacy_dialect dialect = test_dialects[row].dialect;

		test_request(dialect, test_dialects[row].types[0], bytes);
		for (size_t at = 0; at < legacy_size(dialect); at++) {
			uint8_t good = bytes[at];

			for (unsigned int value = 0; value < 256; value++) {
				bool fits = legacy_fits_at(dialect, at, (uint8_t)value);
				int r;

				bytes[at] = (uint8_t)value;
				assert(legacy_check(dialect, bytes) == fits);
				r = legacy_decode(dialect, bytes, &message);
				assert(r == (fits ? 0 : -EBADMSG));
				assert(legacy_check_beginning(dialect, bytes, at));
				if (at + 1 < legacy_size(dialect))
					assert(legacy_check_beginning(dialect, bytes, at + 1) ==
					       fits);
			}
			bytes[at] = good;
		}
	}
}

/* What must be zero, repeated as a list of ranges; the ends are exclusive. */
UNIT(reserved_bytes_must_be_zero)
{
	static const uint16_t zero[][LEGACY_DIALECTS] = {
		/* text, then W24, W32, W72, W112, W128, W144, W648 */
		{0, 0, 1, 1, 1, 1, 1, 1, 1},       {0, 0, 4, 4, 4, 4, 4, 4, 4},
		{0, 0, 4, 28, 17, 17, 17, 17, 17}, {0, 0, 24, 32, 20, 20, 20, 20, 20},
		{0, 0, 0, 0, 40, 40, 40, 40, 40},  {0, 0, 0, 0, 72, 112, 128, 144, 72},
	};

	for (unsigned int d = LEGACY_W24; d < LEGACY_DIALECTS; d++) {
		for (size_t at = 1; at < legacy_size((enum legacy_dialect)d); at++) {
			bool must = false;

			for (size_t k = 0; k < ARRAY_SIZE(zero); k += 2)
				must |= at >= zero[k][d] && at < zero[k + 1][d];
			assert(legacy_fits_at((enum legacy_dialect)d, at, 0));
			for (unsigned int value = 1; value < 256; value++)
				assert(legacy_fits_at((enum legacy_dialect)d, at, (uint8_t)value) ==
				       !must);
		}
	}
}

UNIT(texts_are_bounded)
{
	uint8_t bytes[LEGACY_SIZE_MAX + 1];
	struct legacy_message message, again;
	char text[600];
	size_t length;

	/* Full to the last byte, no NUL, directly followed by another text. */
	test_request(LEGACY_W648, 1, bytes);
	memset(bytes + 72, 0xff, 576);
	bytes[LEGACY_SIZE_MAX] = 0xff;
	assert(legacy_decode(LEGACY_W648, bytes, &message) == 0);
	assert(message.name_length == 64 && message.stack_length == 512);
	assert(message.name == (const char *)bytes + 72);
	assert(message.stack == (const char *)bytes + 136);

	/* Old clients cut them one byte shorter. */
	memset(text, 'x', sizeof(text));
	message.name = message.stack = text;
	message.name_length = message.stack_length = sizeof(text);
	assert(legacy_encode_request(LEGACY_W648, &message, bytes, &length) == 0);
	assert(legacy_decode(LEGACY_W648, bytes, &again) == 0);
	assert(again.name_length == 63 && again.stack_length == 511);
	assert(bytes[135] == 0 && bytes[647] == 0);

	/* No text at all. */
	message.name = message.stack = NULL;
	assert(legacy_encode_request(LEGACY_W648, &message, bytes, &length) == 0);
	assert(legacy_decode(LEGACY_W648, bytes, &again) == 0);
	assert(again.name_length == 0 && again.stack_length == 0);
}

static const struct legacy_answer test_counters = {
	.type = LEGACY_RESPONSE,
	.device = 5,
	.dram = 0x0102030405060708,
	.l1 = 0x1112131415161718,
	.l1_small = 0x2122232425262728,
	.trace = 0x3132333435363738,
	.cb = 0x4142434445464748,
	.kernel = 0x5152535455565758,
	/* not part of this answer */
	.total_dram = UINT64_MAX,
	.available = true,
	.devices = 9,
	.ring_total = 9,
};

UNIT(responses_at_their_offsets)
{
	static const uint16_t fields[][2] = {{0, 1}, {4, 4}, {40, 32}, {72, 16}};
	uint8_t bytes[LEGACY_SIZE_MAX];

	for (unsigned int d = LEGACY_W72; d < LEGACY_DIALECTS; d++) {
		bool has_cb = d == LEGACY_W128 || d == LEGACY_W144;
		size_t length = 0;

		memset(bytes, 0xee, sizeof(bytes));
		assert(legacy_encode_response((enum legacy_dialect)d, &test_counters, bytes,
					      &length) == 0);
		assert(length == legacy_size((enum legacy_dialect)d));
		assert(test_get(bytes, 0, 4) == 4);
		assert(test_get(bytes, 4, 4) == 5);
		assert(test_get(bytes, 40, 8) == test_counters.dram);
		assert(test_get(bytes, 48, 8) == test_counters.l1);
		assert(test_get(bytes, 56, 8) == test_counters.l1_small);
		assert(test_get(bytes, 64, 8) == test_counters.trace);
		if (has_cb) {
			assert(test_get(bytes, 72, 8) == test_counters.cb);
			assert(test_get(bytes, 80, 8) == test_counters.kernel);
		}
		test_rest_is_zero(bytes, length, fields, has_cb ? 4 : 3);
		assert(length == LEGACY_SIZE_MAX || bytes[length] == 0xee);
	}
}

static const struct legacy_answer test_info = {
	.type = LEGACY_DEVICE_INFO_RESPONSE,
	.device = -1,
	.total_dram = 0x0102030405060708,
	.total_l1 = 0x1112131415161718,
	.arch = 0x21222324,
	.dram_channels = 0x31323334,
	.dram_per_channel = 0x41424344,
	.l1_per_core = 0x51525354,
	.available = true,
	.devices = 0x61626364,
	.ring_total = 0x71727374,
	.ring_used = 0x81828384,
	.ring_programs = 0x91929394,
	/* not part of this answer */
	.dram = UINT64_MAX,
	.cb = UINT64_MAX,
};

UNIT(device_info_at_its_offsets)
{
	/* The block is 16 bytes further on from W128 on. */
	static const struct {
		enum legacy_dialect dialect;
		uint16_t block;
		uint16_t fields[4][2];
	} rows[] = {
		{LEGACY_W112, 72, {{0, 1}, {4, 4}, {72, 40}}},
		{LEGACY_W128, 88, {{0, 1}, {4, 4}, {88, 40}}},
		{LEGACY_W144, 88, {{0, 1}, {4, 4}, {88, 40}, {128, 12}}},
	};
	uint8_t bytes[LEGACY_SIZE_MAX];

	for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
		size_t block = rows[row].block;
		size_t length = 0;

		memset(bytes, 0xee, sizeof(bytes));
		assert(legacy_encode_response(rows[row].dialect, &test_info, bytes, &length) == 0);
		assert(length == legacy_size(rows[row].dialect));
		assert(test_get(bytes, 0, 4) == 7);
		assert(test_get(bytes, 4, 4) == UINT32_MAX);
		assert(test_get(bytes, block, 8) == test_info.total_dram);
		assert(test_get(bytes, block + 8, 8) == test_info.total_l1);
		assert(test_get(bytes, block + 16, 4) == test_info.arch);
		assert(test_get(bytes, block + 20, 4) == test_info.dram_channels);
		assert(test_get(bytes, block + 24, 4) == test_info.dram_per_channel);
		assert(test_get(bytes, block + 28, 4) == test_info.l1_per_core);
		assert(test_get(bytes, block + 32, 4) == 1);
		assert(test_get(bytes, block + 36, 4) == test_info.devices);
		if (rows[row].dialect == LEGACY_W144) {
			assert(test_get(bytes, 128, 4) == test_info.ring_total);
			assert(test_get(bytes, 132, 4) == test_info.ring_used);
			assert(test_get(bytes, 136, 4) == test_info.ring_programs);
		}
		test_rest_is_zero(bytes, length, rows[row].fields, 4);
		assert(length == LEGACY_SIZE_MAX || bytes[length] == 0xee);
	}
}

UNIT(narrow_numbers_do_not_wrap)
{
	static const uint64_t values[] = {UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 5,
					  UINT64_MAX};
	struct legacy_answer answer = test_info;
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length;

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		answer.dram_per_channel = answer.l1_per_core = values[i];
		answer.ring_total = answer.ring_used = values[i];
		assert(legacy_encode_response(LEGACY_W112, &answer, bytes, &length) == 0);
		assert(test_get(bytes, 96, 4) == UINT32_MAX &&
		       test_get(bytes, 100, 4) == UINT32_MAX);
		assert(legacy_encode_response(LEGACY_W144, &answer, bytes, &length) == 0);
		assert(test_get(bytes, 112, 4) == UINT32_MAX &&
		       test_get(bytes, 116, 4) == UINT32_MAX);
		assert(test_get(bytes, 128, 4) == UINT32_MAX &&
		       test_get(bytes, 132, 4) == UINT32_MAX);
	}
}

UNIT(answers_that_do_not_exist)
{
	struct legacy_answer answer = {.type = LEGACY_DEVICE_INFO_RESPONSE};
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length = 77;

	assert(legacy_encode_response(LEGACY_W72, &answer, bytes, &length) == -EINVAL);
	assert(legacy_encode_response(LEGACY_W648, &answer, bytes, &length) == -EINVAL);
	for (unsigned int d = LEGACY_UNDECIDED; d <= LEGACY_W32; d++) {
		answer.type = LEGACY_DEVICE_INFO_RESPONSE;
		assert(legacy_encode_response((enum legacy_dialect)d, &answer, bytes, &length) ==
		       -EINVAL);
		answer.type = LEGACY_RESPONSE;
		assert(legacy_encode_response((enum legacy_dialect)d, &answer, bytes, &length) ==
		       -EINVAL);
	}
	for (unsigned int type = 0; type < 16; type++) {
		answer.type = (enum legacy_type)type;
		if (type != LEGACY_RESPONSE && type != LEGACY_DEVICE_INFO_RESPONSE)
			assert(legacy_encode_response(LEGACY_W144, &answer, bytes, &length) ==
			       -EINVAL);
	}
	assert(length == 77);
}

/* What realtime_monitor.py unpacks: six numbers of 64 bits. */
UNIT(statistics_record_has_six_numbers)
{
	const struct legacy_statistics record = {1, 2, 3, 4, 5, 6};
	uint8_t bytes[sizeof(record)];

	memcpy(bytes, &record, sizeof(record));
	for (size_t i = 0; i < 6; i++)
		assert(test_get(bytes, 8 * i, 8) == i + 1);
}

UNIT(text_ends_in_its_only_blank_line)
{
	static const char *const rows[][2] = {
		{"", "\n\n"},
		{"\n", "\n\n"},
		{"\n\n\n", "\n\n"},
		{"a", "a\n\n"},
		{"a\n", "a\n\n"},
		{"a\n\n\n", "a\n\n"},
		{"\n\na\n\n\nb\n c\n", "a\nb\n c\n\n"},
	};
	char bytes[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t room = LEGACY_ENCODE_TEXT_SIZE(strlen(rows[i][0]));
		size_t length = 0;

		memset(bytes, '#', sizeof(bytes));
		legacy_encode_text(rows[i][0], strlen(rows[i][0]), bytes, &length);
		assert(length == strlen(rows[i][1]) && memcmp(bytes, rows[i][1], length) == 0);
		assert(length <= room && bytes[length] == '#');
	}
}
