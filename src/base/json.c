/* SPDX-License-Identifier: Apache-2.0 */

/* Writing JSON as it comes; the header tells the idea. */

#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"

static void json_text(struct json *json, const char *text)
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
static void json_begin(struct json *json, const char *key)
{
	uint64_t bit = UINT64_C(1) << json->depth;

	if (json->depth > 0 && json->filled & bit)
		fputc(',', json->out);
	json->filled |= bit;
	if (key) {
		json_text(json, key);
		fputc(':', json->out);
	}
}

static void json_open(struct json *json, const char *key, char bracket)
{
	json_begin(json, key);
	fputc(bracket, json->out);
	json->depth++;
	assert(json->depth < JSON_DEPTH);
	json->filled &= ~(UINT64_C(1) << json->depth);
}

static void json_close(struct json *json, char bracket)
{
	assert(json->depth > 0);
	json->depth--;
	fputc(bracket, json->out);
}

void json_open_object(struct json *json, const char *key)
{
	json_open(json, key, '{');
}

void json_close_object(struct json *json)
{
	json_close(json, '}');
}

void json_open_array(struct json *json, const char *key)
{
	json_open(json, key, '[');
}

void json_close_array(struct json *json)
{
	json_close(json, ']');
}

void json_string(struct json *json, const char *key, const char *text)
{
	json_begin(json, key);
	if (text)
		json_text(json, text);
	else
		fputs("null", json->out);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
	json_begin(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	json_begin(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
	json_begin(json, key);
	fputs("null", json->out);
}

void json_hex(struct json *json, const char *key, uint64_t value)
{
	json_begin(json, key);
	fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}

void json_end(struct json *json)
{
	assert(json->depth == 0);
	json->filled = 0;
	fputc('\n', json->out);
}
