/* SPDX-License-Identifier: Apache-2.0 */

/* Writing JSON as it comes; the header tells the idea. */

#include "base/emit.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

static void emit_text(struct emit *json, const char *text)
{
	size_t length = strlen(text);

	fputc('"', json->out);
	while (length > 0) {
		uint32_t character;
		size_t n = text_decode(text, length, &character);

		if (character == '"' || character == '\\')
			fprintf(json->out, "\\%c", (char)character);
		else if (character < 0x20 || character == 0x7f)
			fprintf(json->out, "\\u%04" PRIx32, character);
		else if (character == TEXT_REPLACEMENT)
			fputs("\xef\xbf\xbd", json->out);
		else
			fwrite(text, 1, n, json->out);
		text += n;
		length -= n;
	}
	fputc('"', json->out);
}

/* What stands before each value: a comma if it is not the first, and its key. */
static void emit_begin(struct emit *json, const char *key)
{
	uint64_t bit = UINT64_C(1) << json->depth;

	if (json->depth > 0 && json->filled & bit)
		fputc(',', json->out);
	json->filled |= bit;
	if (key) {
		emit_text(json, key);
		fputc(':', json->out);
	}
}

static void emit_open(struct emit *json, const char *key, char bracket)
{
	emit_begin(json, key);
	fputc(bracket, json->out);
	json->depth++;
	assert(json->depth < EMIT_DEPTH);
	json->filled &= ~(UINT64_C(1) << json->depth);
}

static void emit_close(struct emit *json, char bracket)
{
	assert(json->depth > 0);
	json->depth--;
	fputc(bracket, json->out);
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
	emit_begin(json, key);
	if (text)
		emit_text(json, text);
	else
		fputs("null", json->out);
}

void emit_u64(struct emit *json, const char *key, uint64_t value)
{
	emit_begin(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void emit_double(struct emit *json, const char *key, double value)
{
	emit_begin(json, key);
	if (isfinite(value))
		fprintf(json->out, "%.5g", value);
	else
		fputs("null", json->out);
}

void emit_bool(struct emit *json, const char *key, bool value)
{
	emit_begin(json, key);
	fputs(value ? "true" : "false", json->out);
}

void emit_null(struct emit *json, const char *key)
{
	emit_begin(json, key);
	fputs("null", json->out);
}

void emit_raw(struct emit *json, const char *key, const char *value)
{
	emit_begin(json, key);
	fputs(value, json->out);
}

void emit_hex(struct emit *json, const char *key, uint64_t value)
{
	emit_begin(json, key);
	fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}

void emit_end(struct emit *json)
{
	assert(json->depth == 0);
	json->filled = 0;
	fputc('\n', json->out);
}
