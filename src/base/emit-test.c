/* SPDX-License-Identifier: Apache-2.0 */

/* The JSON is correct, whatever the strings contain. */

/* How the code under test was compiled; the tests themselves always have their asserts. */
#ifdef NDEBUG
#define WITHOUT_ASSERTS
#endif

#include "base/emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "base/text.h"

UNIT(nested_json_has_its_commas)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct emit json = EMIT_INIT(out);

	emit_open_object(&json, NULL);
	emit_u64(&json, "a", 1);
	emit_open_array(&json, "b");
	emit_u64(&json, NULL, UINT64_MAX);
	emit_i64(&json, NULL, INT64_MIN);
	emit_i64(&json, NULL, 7);
	emit_open_object(&json, NULL);
	emit_close_object(&json);
	emit_open_array(&json, NULL);
	emit_close_array(&json);
	emit_close_array(&json);
	emit_bool(&json, "c", true);
	emit_null(&json, "d");
	emit_hex(&json, "e", 0x1f);
	emit_string(&json, "f", NULL);
	emit_close_object(&json);
	emit_end(&json);
	emit_open_object(&json, NULL);
	emit_bool(&json, "again", false);
	emit_close_object(&json);
	emit_end(&json);
	assert(fclose(out) == 0);
	assert(strcmp(text, "{\"a\":1,\"b\":[18446744073709551615,-9223372036854775808,7,{},[]],"
			    "\"c\":true,\"d\":null,"
			    "\"e\":\"0x1f\",\"f\":null}\n{\"again\":false}\n") == 0);
	free(text);
}

/* What fits is written in one piece. */
UNIT(members_of_any_length_are_written)
{
	char word[300], all[300], expected[1000];

	memset(all, 'w', sizeof(all));
	for (size_t key = 0; key < 150; key++) {
		for (size_t value = 40; value < 140; value += key % 60 == 3 ? 1 : 50) {
			char *text = NULL;
			size_t size = 0;
			FILE *out = open_memstream(&text, &size);
			struct emit json = EMIT_INIT(out);

			memset(word, 'w', sizeof(word));
			word[key] = '\0';
			emit_open_object(&json, NULL);
			emit_u64(&json, word, UINT64_MAX);
			emit_null(&json, word);
			emit_string(&json, "s", word);
			word[key] = 'w';
			word[value] = '\0';
			emit_string(&json, "v", word);
			emit_close_object(&json);
			assert(fclose(out) == 0);
			(void)snprintf(expected, sizeof(expected),
				       "{\"%.*s\":18446744073709551615,\"%.*s\":null,"
				       "\"s\":\"%.*s\",\"v\":\"%s\"}",
				       (int)key, all, (int)key, all, (int)key, all, word);
			assert(strcmp(text, expected) == 0);
			free(text);
		}
	}
}

UNIT(numbers_have_their_digits)
{
	char digits[TEXT_DIGITS + 1] = {0}, expected[24];

	for (uint64_t power = 1;; power *= 10) {
		for (uint64_t n = power - bits_min(power, 12); n < power + 12; n++) {
			(void)snprintf(expected, sizeof(expected), "%" PRIu64, n);
			assert(strcmp(text_digits(n, digits), expected) == 0);
		}
		if (power > UINT64_MAX / 10)
			break;
	}
	assert(strcmp(text_digits(UINT64_MAX, digits), "18446744073709551615") == 0);
}

UNIT(raw_json_is_embedded_as_it_is)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct emit json = EMIT_INIT(out);

	emit_open_object(&json, NULL);
	emit_raw(&json, "a", "[1,2]");
	emit_raw(&json, "b", "{}");
	emit_close_object(&json);
	emit_end(&json);
	assert(fclose(out) == 0);
	assert(strcmp(text, "{\"a\":[1,2],\"b\":{}}\n") == 0);
	free(text);
}

UNIT(members_made_apart_are_put_between_others)
{
	char *text = NULL, *members = NULL;
	size_t size = 0, length = 0;
	FILE *out = open_memstream(&text, &size), *aside = open_memstream(&members, &length);
	struct emit json = EMIT_INIT(out), some = EMIT_MEMBERS_INIT(aside);

	emit_u64(&some, "a", 1);
	emit_open_array(&some, "b");
	emit_close_array(&some);
	assert(fclose(aside) == 0);
	emit_open_object(&json, NULL);
	emit_members(&json, members, length);
	emit_null(&json, "c");
	emit_members(&json, members, length);
	emit_close_object(&json);
	assert(fclose(out) == 0);
	assert(strcmp(text, "{\"a\":1,\"b\":[],\"c\":null,\"a\":1,\"b\":[]}") == 0);
	free(text);
	free(members);
}

UNIT(hexadecimal_numbers_have_as_many_digits_as_they_need)
{
	static const uint64_t numbers[] = {0, 0x1f, UINT64_MAX};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct emit json = EMIT_INIT(out);

	emit_open_array(&json, NULL);
	for (size_t i = 0; i < 3; i++)
		emit_hex(&json, NULL, numbers[i]);
	emit_close_array(&json);
	assert(fclose(out) == 0);
	assert(strcmp(text, "[\"0x0\",\"0x1f\",\"0xffffffffffffffff\"]") == 0);
	free(text);
}

UNIT(strings_are_escaped_and_repaired)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct emit json = EMIT_INIT(out);

	emit_string(&json, NULL, "q\" b\\ \n \x7f \xc3\xa4 \xff \xed\xa0\x80");
	assert(fclose(out) == 0);
	assert(strcmp(text, "\"q\\\" b\\\\ \\u000a \\u007f \xc3\xa4 \xef\xbf\xbd "
			    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"") == 0);
	free(text);
}

#ifndef WITHOUT_ASSERTS
UNIT_FAIL(an_open_object_cannot_be_ended)
{
	struct emit json = EMIT_INIT(stdout);

	emit_open_object(&json, NULL);
	emit_end(&json);
}
#endif
