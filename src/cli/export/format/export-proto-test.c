/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes of Protocol Buffers and of pickles, as their documentation has them. */

#include "cli/export/format/export-proto.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "cli/export/format/export-pickle.h"

static void check(const struct export_proto *proto, const char *bytes, size_t length)
{
	assert(proto->length == length);
	assert(memcmp(proto->bytes, bytes, length) == 0);
}

UNIT(numbers_have_seven_bits_in_each_byte)
{
	struct export_proto proto = EXPORT_PROTO_NULL;

	export_proto_number(&proto, 1, 150);
	check(&proto, "\x08\x96\x01", 3);
	export_proto_reset(&proto);
	export_proto_number(&proto, 16, 0);
	check(&proto, "\x80\x01\x00", 3);
	export_proto_reset(&proto);
	export_proto_varint(&proto, UINT64_MAX);
	check(&proto, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
	export_proto_deinit(&proto);
}

UNIT(texts_and_messages_have_their_length_before_them)
{
	struct export_proto proto = EXPORT_PROTO_NULL, part = EXPORT_PROTO_NULL;

	export_proto_text(&proto, 2, "testing");
	check(&proto, "\x12\x07testing", 9);
	export_proto_reset(&proto);
	export_proto_number(&part, 1, 150);
	export_proto_message(&proto, 3, &part);
	export_proto_message(&proto, 3, &part); /* it is empty now */
	check(&proto, "\x1a\x03\x08\x96\x01\x1a\x00", 7);
	export_proto_deinit(&proto);
	export_proto_deinit(&part);
}

/* What pickle writes for a number. */
static void check_number(uint64_t value, const char *bytes, size_t length)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert(out);
	export_pickle_number(out, value);
	assert(fclose(out) == 0);
	assert(size == length && memcmp(text, bytes, length) == 0);
	free(text);
}

UNIT(pickled_numbers_are_as_short_as_they_can_be)
{
	check_number(255, "K\xff", 2);
	check_number(256, "M\x00\x01", 3);
	check_number(65536, "J\x00\x00\x01\x00", 5);
	check_number(INT32_MAX, "J\xff\xff\xff\x7f", 5);
}

UNIT(pickled_numbers_are_never_negative)
{
	check_number(UINT64_C(1) << 31, "\x8a\x05\x00\x00\x00\x80\x00", 7);
	check_number(UINT64_C(1) << 39, "\x8a\x06\x00\x00\x00\x00\x80\x00", 8);
	check_number(UINT64_MAX, "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", 11);
}
