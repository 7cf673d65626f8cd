/* SPDX-License-Identifier: Apache-2.0 */

/* Writes JSON to a stream piece by piece. */

#include "base/emit.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

/* One thread writes a document, in small pieces: a lock for each would take a third of the time. */
static void emit_bytes(struct emit *json, const char *bytes, size_t length)
{
	(void)fwrite_unlocked(bytes, 1, length, json->out); /* the stream remembers the error */
}

static void emit_byte(struct emit *json, char byte)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): that is the point */
	(void)putc_unlocked(byte, json->out);
}

static void emit_word(struct emit *json, const char *word)
{
	emit_bytes(json, word, strlen(word));
}

/* How many bytes from here on need no escaping: printable ASCII, except what JSON quotes. */
static size_t emit_plain(const char *text, size_t length)
{
	size_t n = 0;

	while (n < length && (uint8_t)text[n] >= 0x20 && (uint8_t)text[n] < 0x7f &&
	       text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

/* As JSON writes it: beyond 16 bits as a pair of UTF-16. */
static void emit_escaped(struct emit *json, uint32_t character)
{
	if (character < 0x10000) {
		fprintf(json->out, "\\u%04" PRIx32, character);
		return;
	}
	character -= 0x10000;
	fprintf(json->out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + (character >> 10),
		0xdc00 + (character & 0x3ff));
}

static void emit_text(struct emit *json, const char *text)
{
	size_t length = strlen(text);

	emit_byte(json, '"');
	while (length > 0) {
		size_t n = emit_plain(text, length);
		uint32_t character;

		if (n > 0) {
			emit_bytes(json, text, n);
		} else {
			n = text_decode(text, length, &character);
			if (character == '"' || character == '\\')
				fprintf(json->out, "\\%c", (char)character);
			else if (text_is_harmful(character))
				emit_escaped(json, character);
			else if (character == TEXT_REPLACEMENT)
				emit_word(json, "\xef\xbf\xbd");
			else
				emit_bytes(json, text, n);
		}
		text += n;
		length -= n;
	}
	emit_byte(json, '"');
}

#define EMIT_SHORT 128u

/* Writes what precedes a value, a comma if it is not the first, and its key; then the value, in one piece if it fits. */
static void emit_member(struct emit *json, const char *key, const char *value, size_t length)
{
	uint64_t bit = UINT64_C(1) << json->depth;
	size_t key_length = key ? strlen(key) : 0, at = 0;
	char text[EMIT_SHORT];

	if (json->depth > 0 && json->filled & bit)
		text[at++] = ',';
	json->filled |= bit;
	if (key && key_length < EMIT_SHORT / 2) {
		text[at++] = '"';
		for (size_t i = 0; i < key_length; i++)
			text[at++] = key[i];
		text[at++] = '"';
		text[at++] = ':';
	} else if (key) {
		fprintf(json->out, "%.*s\"%s\":", (int)at, text, key);
		at = 0;
	}
	if (length <= EMIT_SHORT - at) {
		memcpy(text + at, value, length);
		emit_bytes(json, text, at + length);
	} else {
		emit_bytes(json, text, at);
		emit_bytes(json, value, length);
	}
}

static void emit_begin(struct emit *json, const char *key)
{
	emit_member(json, key, "", 0);
}

static void emit_open(struct emit *json, const char *key, char bracket)
{
	emit_member(json, key, &bracket, 1);
	json->depth++;
	assert(json->depth < EMIT_DEPTH);
	json->filled &= ~(UINT64_C(1) << json->depth);
}

static void emit_close(struct emit *json, char bracket)
{
	assert(json->depth > 0);
	json->depth--;
	emit_byte(json, bracket);
}

void emit_open_object(struct emit *json, const char *key)
{
	emit_open(json, key, '{');
}

void emit_close_object(struct emit *json)
{
	emit_close(json, '}');
}

void emit_open_array(struct emit *json, const char *key)
{
	emit_open(json, key, '[');
}

void emit_close_array(struct emit *json)
{
	emit_close(json, ']');
}

void emit_string(struct emit *json, const char *key, const char *text)
{
	char quoted[EMIT_SHORT / 2];
	size_t length;

	if (!text) {
		emit_null(json, key);
		return;
	}
	length = strlen(text);
	if (length <= sizeof(quoted) - 2 && emit_plain(text, length) == length) {
		quoted[0] = '"';
		memcpy(quoted + 1, text, length);
		quoted[length + 1] = '"';
		emit_member(json, key, quoted, length + 2);
		return;
	}
	emit_begin(json, key);
	emit_text(json, text);
}

void emit_u64(struct emit *json, const char *key, uint64_t value)
{
	char digits[TEXT_DIGITS];
	const char *first = text_digits(value, digits);

	emit_member(json, key, first, (size_t)(digits + TEXT_DIGITS - first));
}

void emit_i64(struct emit *json, const char *key, int64_t value)
{
	emit_begin(json, key);
	if (value < 0)
		emit_byte(json, '-');
	text_put_u64(json->out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void emit_double(struct emit *json, const char *key, double value)
{
	emit_begin(json, key);
	if (isfinite(value))
		fprintf(json->out, "%.5g", value);
	else
		emit_word(json, "null");
}

void emit_bool(struct emit *json, const char *key, bool value)
{
	emit_member(json, key, value ? "true" : "false", value ? 4 : 5);
}

void emit_null(struct emit *json, const char *key)
{
	emit_member(json, key, "null", 4);
}

void emit_raw(struct emit *json, const char *key, const char *value)
{
	emit_begin(json, key);
	emit_word(json, value);
}

void emit_members(struct emit *json, const char *members, size_t length)
{
	emit_begin(json, NULL);
	emit_bytes(json, members, length);
}

void emit_hex(struct emit *json, const char *key, uint64_t value)
{
	char text[20]; /* as many as UINT64_MAX has, with 0x and quotes */
	size_t from = sizeof(text);

	text[--from] = '"';
	do
		text[--from] = "0123456789abcdef"[value % 16];
	while (value /= 16);
	text[--from] = 'x';
	text[--from] = '0';
	text[--from] = '"';
	emit_member(json, key, text + from, sizeof(text) - from);
}

void emit_end(struct emit *json)
{
	assert(json->depth == 0);
	json->filled = 0;
	emit_byte(json, '\n');
}
