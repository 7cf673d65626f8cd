/* SPDX-License-Identifier: Apache-2.0 */

/* Untrusted text is made harmless; numbers are for people. */

#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/emit.h"
#include "base/testing/unit.h"

static const char *escaped(const char *text)
{
	static char result[256];

	text_escape(text, result, sizeof(result));
	return result;
}

static const char *cleaned(const char *bytes, size_t length)
{
	static char result[TEXT_CLEAN_SIZE(64)];

	assert(length <= 64);
	assert(text_clean(bytes, length, result) == strlen(result));
	return result;
}

UNIT(clean_keeps_valid_text)
{
	assert(strcmp(cleaned("weights", 7), "weights") == 0);
	assert(strcmp(cleaned("\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80", 9),
		      "\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80") == 0);
	assert(strcmp(cleaned("", 0), "") == 0);
}

UNIT(clean_replaces_invalid_text)
{
	/* A lone continuation, a cut character, overlong forms, a surrogate, too large, NUL. */
	assert(strcmp(cleaned("a\x80z", 3), "a\xef\xbf\xbdz") == 0);
	assert(strcmp(cleaned("a\xe2\x82", 3), "a\xef\xbf\xbd\xef\xbf\xbd") == 0);
	assert(strcmp(cleaned("\xc0\xaf", 2), "\xef\xbf\xbd\xef\xbf\xbd") == 0);
	assert(strcmp(cleaned("\xe0\x80\xaf", 3), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") == 0);
	assert(strcmp(cleaned("\xed\xa0\x80", 3), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") == 0);
	assert(strncmp(cleaned("\xf4\x90\x80\x80", 4), "\xef\xbf\xbd", 3) == 0);
	assert(strcmp(cleaned("a\0b", 3), "a\xef\xbf\xbd"
					  "b") == 0);
}

UNIT(clean_never_writes_more_than_promised)
{
	char bytes[64], result[TEXT_CLEAN_SIZE(sizeof(bytes))];

	memset(bytes, 0xff, sizeof(bytes));
	assert(text_clean(bytes, sizeof(bytes), result) == sizeof(result) - 1);
}

UNIT(clean_finds_what_is_invalid_wherever_it_stands)
{
	static const char bad[] = {0, (char)0x80, (char)0xff};

	for (size_t length = 1; length <= 24; length++) {
		for (size_t at = 0; at < 3 * length; at++) {
			char bytes[24], expected[32];

			memset(bytes, 'a', sizeof(bytes));
			bytes[at / 3] = bad[at % 3];
			memset(expected, 'a', sizeof(expected));
			memcpy(expected + at / 3, "\xef\xbf\xbd", 3);
			expected[length + 2] = '\0';
			assert(strcmp(cleaned(bytes, length), expected) == 0);
		}
	}
}

UNIT(escape_disarms_terminals)
{
	assert(strcmp(escaped("\033[2J"), "\\x1b[2J") == 0);
	assert(strcmp(escaped("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f") == 0);
	assert(strcmp(escaped("\xc2\x9b"
			      "31m"),
		      "\\x9b31m") == 0);
	assert(strcmp(escaped("\xe2\x80\xae"
			      "abc"),
		      "\\u202eabc") == 0);
	assert(strcmp(escaped("back\\slash"), "back\\\\slash") == 0);
	assert(strcmp(escaped("\xc3\xa4 \xff"), "\xc3\xa4 \xef\xbf\xbd") == 0);
}

UNIT(escape_cuts_between_characters)
{
	char small[6];

	text_escape("abcd\033", small, sizeof(small));
	assert(strcmp(small, "abcd") == 0);
	text_escape("\xe2\x82\xac\xe2\x82\xac", small, sizeof(small));
	assert(strcmp(small, "\xe2\x82\xac") == 0);
}

UNIT(fit_marks_what_it_cuts)
{
	char result[64];

	text_fit("abcdef", 6, result, sizeof(result));
	assert(strcmp(result, "abcdef") == 0);
	text_fit("abcdefg", 6, result, sizeof(result));
	assert(strcmp(result, "abcde~") == 0);
	/* Wide characters: the cut text must not exceed the width. */
	text_fit("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 5, result, sizeof(result));
	assert(text_width(result) <= 5);
	text_fit("a\033b", 4, result, sizeof(result));
	assert(strcmp(result, "a~") == 0);
	text_fit("abc", 0, result, sizeof(result));
	assert(strcmp(result, "") == 0);
}

static void put_json(FILE *out, const char *text)
{
	struct emit json = EMIT_INIT(out);

	emit_string(&json, NULL, text);
}

static void put_fitted(FILE *out, const char *text)
{
	char shown[256];

	text_fit(text, 40, shown, sizeof(shown));
	fputs(shown, out);
}

/* What an output makes of a text; the caller frees it. */
static char *put_by(void (*put)(FILE *out, const char *text), const char *text)
{
	char *result = NULL;
	size_t length;
	FILE *out = open_memstream(&result, &length);

	assert(out);
	put(out, text);
	assert(fclose(out) == 0);
	return result;
}

static bool has_harmful(const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		uint32_t character;
		size_t n = text_decode(text, length, &character);

		if (text_is_harmful(character))
			return true;
		text += n;
		length -= n;
	}
	return false;
}

/* Every output escapes what any viewer may act on, and keeps the letters around it. */
UNIT(no_output_contains_a_raw_control)
{
	static void (*const puts[])(FILE * out, const char *text) = {
		text_put, text_put_csv, text_put_line, text_put_label, put_json, put_fitted,
	};
	static const char *const hostile[] = {
		"\x1b",
		"\x07",
		"\r",
		"\n",
		"\t",
		"\x7f",
		"\xc2\x9b",
		"\xc2\x85",
		"\xc2\xad",
		"\xd8\x9c",
		"\xe2\x80\x8e",
		"\xe2\x80\x8f",
		"\xe2\x80\xaa",
		"\xe2\x80\xab",
		"\xe2\x80\xac",
		"\xe2\x80\xad",
		"\xe2\x80\xae",
		"\xe2\x81\xa6",
		"\xe2\x81\xa7",
		"\xe2\x81\xa8",
		"\xe2\x81\xa9",
		"\xe2\x80\xa8",
		"\xef\xbb\xbf",
		"\xf3\xa0\x80\x81",
		/* C1 as a single byte is not UTF-8, but a terminal of Latin-1 would take it. */
		"\x9b",
		"\x90",
	};

	for (size_t i = 0; i < ARRAY_SIZE(puts); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(hostile); k++) {
			char text[32], *result;

			snprintf(text, sizeof(text), "left%sright", hostile[k]);
			result = put_by(puts[i], text);
			assert(!has_harmful(result) && !strstr(result, text));
			assert(strstr(result, "left") && strstr(result, "right"));
			assert(!memchr(result, 0x9b, strlen(result)));
			free(result);
		}
	}
}

UNIT(a_label_keeps_to_the_escapes_that_prometheus_knows)
{
	char *result = put_by(text_put_label, "a\\b\"c\n-\x1b[2J\xe2\x80\xae");

	assert(strcmp(result, "a\\\\b\\\"c\\n-\\\\x1b[2J\\\\u202e") == 0);
	free(result);
}

UNIT(a_journal_line_keeps_its_backslashes)
{
	char *result = put_by(text_put_line, "a\\x1b\nb\x1b");

	assert(strcmp(result, "a\\x1b b\\x1b") == 0);
	free(result);
}

UNIT(json_escapes_pairs)
{
	char *result = put_by(put_json, "\xf3\xa0\x80\x81");

	assert(strcmp(result, "\"\\udb40\\udc01\"") == 0);
	free(result);
}

UNIT(csv_is_no_formula)
{
	static const char *const cells[][2] = {
		{"=1+1", "\"'=1+1\""}, {"+1", "\"'+1\""},   {"-1", "\"'-1\""},
		{"@SUM", "\"'@SUM\""}, {"a=1", "a=1"},      {"", ""},
		{"\t=1", "\\x09=1"},   {"\r=1", "\\x0d=1"}, {"=\"", "\"'=\"\"\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
		char *result = put_by(text_put_csv, cells[i][0]);

		assert(strcmp(result, cells[i][1]) == 0);
		free(result);
	}
}

UNIT(csv_quotes_what_needs_it)
{
	char *result = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&result, &size);

	text_put_csv(out, "plain");
	fputc(',', out);
	text_put_csv(out, "a,b \"c\"\n");
	assert(fclose(out) == 0);
	assert(strcmp(result, "plain,\"a,b \"\"c\"\"\\x0a\"") == 0);
	free(result);
}

UNIT(sizes_are_printed_with_binary_units)
{
	char number[TEXT_NUMBER_SIZE];

	assert(strcmp(text_size(0, number), "0 B") == 0);
	assert(strcmp(text_size(1023, number), "1023 B") == 0);
	assert(strcmp(text_size(1024, number), "1.0 KiB") == 0);
	assert(strcmp(text_size(1536, number), "1.5 KiB") == 0);
	assert(strcmp(text_size((1 << 20) - 1, number), "1.0 MiB") == 0);
	assert(strcmp(text_size(UINT64_C(12) << 30, number), "12.0 GiB") == 0);
	assert(strcmp(text_size(UINT64_MAX, number), "16.0 EiB") == 0);
}

UNIT(durations_are_printed_in_one_unit)
{
	const uint64_t second = 1000000000;
	char number[TEXT_NUMBER_SIZE];

	assert(strcmp(text_duration(0, number), "0 ms") == 0);
	assert(strcmp(text_duration(second - 1, number), "999 ms") == 0);
	assert(strcmp(text_duration(119 * second, number), "119 s") == 0);
	assert(strcmp(text_duration(120 * second, number), "2 min") == 0);
	assert(strcmp(text_duration(3 * 3600 * second, number), "3 h") == 0);
	assert(strcmp(text_duration(UINT64_MAX, number), "213503 d") == 0);
}

UNIT(numbers_are_read_strictly)
{
	uint64_t value = 7;

	assert(text_parse_u64("0", &value) == 0 && value == 0);
	assert(text_parse_u64("18446744073709551615", &value) == 0 && value == UINT64_MAX);
	assert(text_parse_u64("0xfFfF", &value) == 0 && value == 0xffff);
	assert(text_parse_u64("010", &value) == 0 && value == 10);
	assert(text_parse_u64("18446744073709551616", &value) == -ERANGE);
	assert(text_parse_u64("0x10000000000000000", &value) == -ERANGE);
	assert(text_parse_u64("", &value) == -EINVAL);
	assert(text_parse_u64("0x", &value) == -EINVAL);
	assert(text_parse_u64("-1", &value) == -EINVAL);
	assert(text_parse_u64("+1", &value) == -EINVAL);
	assert(text_parse_u64(" 1", &value) == -EINVAL);
	assert(text_parse_u64("1a", &value) == -EINVAL);
	assert(value == 10);
}

UNIT(distance_counts_edits)
{
	assert(text_distance("smi", "smi") == 0);
	assert(text_distance("smu", "smi") == 1);
	assert(text_distance("jso", "json") == 1);
	assert(text_distance("", "abc") == 3);
	assert(text_distance("buffres", "buffers") == 2);
	assert(text_distance("x", "a word that is far too long to be one of ours") == SIZE_MAX);
}

UNIT(lines_of_a_log_are_harmless)
{
	static const char odd[] = "a\tb\\x\n\x1b]0;x\x07 \x9b\xe2\x80\xae\xf0\x9f\x9a\x80\0c\n";
	static const char shown[] =
		"a\tb\\x\n\\x1b]0;x\\x07 \xef\xbf\xbd\\u202e\xf0\x9f\x9a\x80\\x00"
		"c\n";
	char text[TEXT_ESCAPE_SIZE(sizeof(odd))];

	assert(text_escape_lines(odd, sizeof(odd) - 1, text) == sizeof(shown) - 1);
	assert(memcmp(text, shown, sizeof(shown) - 1) == 0);
	assert(text_harmless(odd, sizeof(odd) - 1) == 6);
	assert(text_harmless(shown, sizeof(shown) - 1) == sizeof(shown) - 1);
	assert(text_escape_lines("", 0, text) == 0);
}

UNIT(sizes_are_parsed_with_units)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"512", 512},
		{"0x200", 512},
		{"64K", 65536},
		{"64k", 65536},
		{"64 KiB", 65536},
		{"10MB", 10 << 20},
		{"1.5 GiB", UINT64_C(3) << 29},
		{"0.000001M", 1},
		{"512 B", 512},
		{"15E", UINT64_C(15) << 60},
		{"18446744073709551615", UINT64_MAX},
	};
	static const char *const bad[] = {"",      "K",  "1.5",  "1.K", "-1", "1 K B",
					  "1KiBs", "1i", "1  K", ".5K", "1Q", "1.1234567K"};
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert(text_parse_size(good[i].text, &bytes) == 0);
		assert(bytes == good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert(text_parse_size(bad[i], &bytes) == -EINVAL);
	assert(text_parse_size("16E", &bytes) == -ERANGE);
	assert(text_parse_size("18446744073709551616", &bytes) == -ERANGE);
}
