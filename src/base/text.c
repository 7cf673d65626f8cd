/* SPDX-License-Identifier: Apache-2.0 */

/* Text from other processes, and numbers for people. */

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"

size_t text_decode(const char *bytes, size_t length, uint32_t *ret_character)
{
	const unsigned char *p = (const unsigned char *)bytes;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t character;
	size_t n;

	*ret_character = TEXT_REPLACEMENT;
	if (length == 0)
		return 0;
	if (p[0] < 0x80) {
		*ret_character = p[0];
		return 1;
	}
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > length)
		return 1;
	character = p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		character = character << 6 | (p[i] & 0x3f);
	}
	/* Overlong, half of a UTF-16 pair, or beyond the last character. */
	if (character < least[n] || (character >= 0xd800 && character < 0xe000) ||
	    character > 0x10ffff)
		return 1;
	*ret_character = character;
	return n;
}

/* Whether all eight are ASCII, and none of them is 0. */
static bool text_is_plain(uint64_t bytes)
{
	return !((bytes | (bytes - UINT64_C(0x0101010101010101))) & UINT64_C(0x8080808080808080));
}

size_t text_clean(const char *bytes, size_t length, char *ret_text)
{
	char *to = ret_text;

	while (length > 0) {
		uint32_t character;
		uint64_t next;
		size_t n;

		/* Most text is. */
		for (; length >= sizeof(next); length -= sizeof(next)) {
			memcpy(&next, bytes, sizeof(next));
			if (!text_is_plain(next))
				break;
			memcpy(to, &next, sizeof(next));
			to += sizeof(next);
			bytes += sizeof(next);
		}
		for (; length > 0 && (signed char)*bytes > 0; length--)
			*to++ = *bytes++;
		n = text_decode(bytes, length, &character);
		if (n == 0)
			break;

		if (character == TEXT_REPLACEMENT || character == 0) {
			memcpy(to, "\xef\xbf\xbd", 3);
			to += 3;
		} else {
			memcpy(to, bytes, n);
			to += n;
		}
		bytes += n;
		length -= n;
	}
	*to = '\0';
	return (size_t)(to - ret_text);
}

bool text_is_harmful(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x061c, 0x061c},
		{0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
		{0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
	};

	/* Most text is ASCII. */
	if (character >= 0x20 && character < 0x7f)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (character >= ranges[i].first && character <= ranges[i].last)
			return true;
	}
	return false;
}

/* Columns of one character. Only what names are likely to contain: wide East Asian and emoji. */
size_t text_columns(uint32_t character)
{
	static const struct {
		uint32_t first, last;
		uint8_t columns;
	} ranges[] = {
		{0x0300, 0x036f, 0},   {0x1100, 0x115f, 2},   {0x2e80, 0xa4cf, 2},
		{0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
		{0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},
		{0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2},
		{0x20000, 0x3fffd, 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (character >= ranges[i].first && character <= ranges[i].last)
			return ranges[i].columns;
	}
	return 1;
}

/*
 * The first character of @text as it is shown. Return: bytes that it takes in @text; @ret_shown is
 * the shown form, @ret_columns its width.
 */
static size_t text_show(const char *text, size_t length, char ret_shown[16], size_t *ret_columns)
{
	uint32_t character;
	size_t n = text_decode(text, length, &character);

	if (character == '\\' || text_is_harmful(character)) {
		int shown;

		if (character == '\\')
			shown = snprintf(ret_shown, 16, "\\\\");
		else if (character < 0x100)
			shown = snprintf(ret_shown, 16, "\\x%02" PRIx32, character);
		else
			shown = snprintf(ret_shown, 16, "\\u%04" PRIx32, character);
		*ret_columns = (size_t)shown;
	} else if (character == TEXT_REPLACEMENT) {
		memcpy(ret_shown, "\xef\xbf\xbd", 4);
		*ret_columns = 1;
	} else {
		memcpy(ret_shown, text, n);
		ret_shown[n] = '\0';
		*ret_columns = text_columns(character);
	}
	return n;
}

size_t text_escape(const char *text, char *ret_text, size_t size)
{
	size_t length = strlen(text), used = 0, columns;
	char shown[16];

	while (length > 0) {
		size_t n = text_show(text, length, shown, &columns);
		size_t add = strlen(shown);

		if (used + add + 1 > size)
			break;
		memcpy(ret_text + used, shown, add);
		used += add;
		text += n;
		length -= n;
	}
	ret_text[used] = '\0';
	return used;
}

size_t text_harmless(const char *text, size_t length)
{
	size_t at = 0, n = 1;

	for (; n > 0 && at < length; at += n) {
		uint32_t character;

		n = text_decode(text + at, length - at, &character);
		/* The replacement itself has three bytes; a single one is not UTF-8. */
		if (character != '\n' && character != '\t' &&
		    (text_is_harmful(character) || (n == 1 && character == TEXT_REPLACEMENT)))
			n = 0;
	}
	return at;
}

size_t text_escape_lines(const char *text, size_t length, char *ret_text)
{
	size_t at = 0, used = 0, columns;

	for (;;) {
		size_t n = text_harmless(text + at, length - at);
		char shown[16];

		memcpy(ret_text + used, text + at, n);
		at += n;
		used += n;
		if (at == length)
			return used;
		at += text_show(text + at, length - at, shown, &columns);
		n = strlen(shown);
		memcpy(ret_text + used, shown, n);
		used += n;
	}
}

void text_fit(const char *text, size_t width, char *ret_text, size_t size)
{
	size_t length = strlen(text), used = 0, at = 0, columns;
	size_t cut = 0; /* where the result ends if it must be cut */
	char shown[16];

	while (length > 0) {
		size_t n = text_show(text, length, shown, &columns);
		size_t add = strlen(shown);

		if (at + columns > width || used + add + 2 > size) {
			used = cut;
			if (width > 0 && size > 1)
				ret_text[used++] = '~';
			break;
		}
		memcpy(ret_text + used, shown, add);
		used += add;
		at += columns;
		if (at + 1 <= width)
			cut = used;
		text += n;
		length -= n;
	}
	ret_text[used] = '\0';
}

size_t text_width(const char *text)
{
	size_t length = strlen(text), width = 0;

	while (length > 0) {
		uint32_t character;
		size_t n = text_decode(text, length, &character);

		width += text_columns(character);
		text += n;
		length -= n;
	}
	return width;
}

/* Writes one character of a text: the first of its bytes, and how text_show() shows it. */
typedef void text_put_fn(FILE *out, char first, const char *shown);

static void text_put_each(FILE *out, const char *text, text_put_fn *put)
{
	size_t length = strlen(text), columns;
	char shown[16];

	while (length > 0) {
		size_t n = text_show(text, length, shown, &columns);

		put(out, *text, shown);
		text += n;
		length -= n;
	}
}

static void text_put_shown(FILE *out, char first, const char *shown)
{
	fputs(shown, out);
}

void text_put(FILE *out, const char *text)
{
	text_put_each(out, text, text_put_shown);
}

static void text_put_in_line(FILE *out, char first, const char *shown)
{
	fputs(first == '\\' ? "\\" : first == '\n' || first == '\r' ? " " : shown, out);
}

void text_put_line(FILE *out, const char *text)
{
	text_put_each(out, text, text_put_in_line);
}

static void text_put_in_label(FILE *out, char first, const char *shown)
{
	/* A shown backslash has been doubled already, and one that escapes has not. */
	if (first == '"' || (first != '\n' && first != '\\' && shown[0] == '\\'))
		fputc('\\', out);
	fputs(first == '\n' ? "\\n" : shown, out);
}

void text_put_label(FILE *out, const char *text)
{
	text_put_each(out, text, text_put_in_label);
}

/* A spreadsheet takes a cell that begins so for a formula, even one in quotes. */
static bool text_is_formula(const char *text)
{
	return *text && strchr("=+-@", *text);
}

static void text_put_in_cell(FILE *out, char first, const char *shown)
{
	if (first == '"')
		fputc('"', out);
	fputs(shown, out);
}

void text_put_csv(FILE *out, const char *text)
{
	bool quoted = strpbrk(text, "\",") != NULL || text_is_formula(text);

	if (quoted)
		fputc('"', out);
	if (text_is_formula(text))
		fputc('\'', out);
	text_put_each(out, text, text_put_in_cell);
	if (quoted)
		fputc('"', out);
}

const char *text_digits(uint64_t value, char digits[TEXT_DIGITS])
{
	size_t from = TEXT_DIGITS;

	/* Two at a time: each division has to wait for the one before. */
	for (; value >= 10; value /= 100) {
		unsigned int two = (unsigned int)(value % 100);

		digits[--from] = (char)('0' + two % 10);
		digits[--from] = (char)('0' + two / 10);
	}
	if (value > 0 || from == TEXT_DIGITS)
		digits[--from] = (char)('0' + value);
	return digits + from;
}

void text_put_u64(FILE *out, uint64_t value)
{
	char digits[TEXT_DIGITS];
	const char *first = text_digits(value, digits);

	(void)fwrite_unlocked(first, 1, (size_t)(digits + TEXT_DIGITS - first), out);
}

static bool text_in_bytes; /* set once, by a command-line option */

void text_show_bytes(void)
{
	text_in_bytes = true;
}

bool text_shows_bytes(void)
{
	return text_in_bytes;
}

const char *text_size(uint64_t bytes, char *ret_text)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024 || text_in_bytes) {
		snprintf(ret_text, TEXT_NUMBER_SIZE, "%" PRIu64 "%s", bytes,
			 text_in_bytes ? "" : " B");
		return ret_text;
	}
	/* 1023.95 would be printed as 1024.0. */
	while (value >= 1023.95 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(ret_text, TEXT_NUMBER_SIZE, "%.1f %s", value, units[unit]);
	return ret_text;
}

const char *text_duration(uint64_t ns, char *ret_text)
{
	static const struct {
		uint64_t below; /* in seconds */
		uint64_t unit;
		const char *name;
	} steps[] = {
		{120, 1, "s"},
		{7200, 60, "min"},
		{172800, 3600, "h"},
		{UINT64_MAX, 86400, "d"},
	};
	uint64_t seconds = ns / NS_PER_S;
	size_t i = 0;

	if (seconds < 1) {
		snprintf(ret_text, TEXT_NUMBER_SIZE, "%" PRIu64 " ms", ns / NS_PER_MS);
		return ret_text;
	}
	while (seconds >= steps[i].below)
		i++;
	snprintf(ret_text, TEXT_NUMBER_SIZE, "%" PRIu64 " %s", seconds / steps[i].unit,
		 steps[i].name);
	return ret_text;
}

int text_parse_u64(const char *text, uint64_t *ret_value)
{
	uint64_t base = 10, value = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		uint64_t digit;

		if (*text >= '0' && *text <= '9')
			digit = (uint64_t)(*text - '0');
		else if (base == 16 && (*text | 0x20) >= 'a' && (*text | 0x20) <= 'f')
			digit = (uint64_t)(*text | 0x20) - 'a' + 10;
		else
			return -EINVAL;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return -ERANGE;
	}
	*ret_value = value;
	return 0;
}

/* The power of 1024 for a unit; -1 if it is not one. */
static int text_unit(const char *text)
{
	static const char letters[] = "KMGTPE";
	const char *found;
	int power = 0;

	if (!*text)
		return 0;
	found = strchr(letters, toupper((unsigned char)*text));
	if (found) {
		power = (int)(found - letters) + 1;
		text++;
		text += (*text | 0x20) == 'i' && text[1];
	}
	text += (*text | 0x20) == 'b';
	return *text ? -1 : power;
}

int text_parse_size(const char *text, uint64_t *ret_bytes)
{
	size_t whole = strspn(text, "0123456789"), digits = 0;
	uint64_t value = 0, part = 0, scale = 1, factor;
	const char *rest = text + whole;
	int power;

	if (whole == 0 || whole > 20)
		return text_parse_u64(text, ret_bytes) == 0 ? 0 : -EINVAL;
	if (rest[0] == 'x' || rest[0] == 'X')
		return text_parse_u64(text, ret_bytes);
	if (*rest == '.') {
		digits = strspn(++rest, "0123456789");
		if (digits == 0 || digits > 6)
			return -EINVAL;
	}
	power = text_unit(rest + digits + (rest[digits] == ' '));
	if (power < 0 || (digits && power == 0))
		return -EINVAL;
	factor = UINT64_C(1) << 10 * power;
	for (size_t i = 0; i < whole; i++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return -ERANGE;
	}
	for (size_t i = 0; i < digits; i++) {
		part = part * 10 + (uint64_t)(rest[i] - '0');
		scale *= 10;
	}
	/* The part is below 1, so this is less than the factor; in two steps it cannot overflow. */
	part = part * (factor / scale) + part * (factor % scale) / scale;
	if (__builtin_mul_overflow(value, factor, &value) ||
	    __builtin_add_overflow(value, part, &value))
		return -ERANGE;
	*ret_bytes = value;
	return 0;
}

/* Levenshtein distance with one row; longer words simply count as far apart. */
size_t text_distance(const char *a, const char *b)
{
	size_t row[32], n = strlen(b);

	if (n >= ARRAY_SIZE(row))
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t change = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = bits_min(change, bits_min(row[j], diagonal) + 1);
		}
	}
	return row[n];
}
