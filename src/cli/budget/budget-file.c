/* SPDX-License-Identifier: Apache-2.0 */

/* Reads and writes budget files. The parser knows no lines of members, so they are searched for. */

#include "cli/budget/budget-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "cli/budget/budget-summary.h"
#include "cli/budget/budget.h"
#include "cli/common/must.h"
#include "model/types.h"

#define BUDGET_FILE_SCHEMA "ttmem.budget/1"

struct budget_file {
	json_t *document;
};

/* A file that is being read. */
struct budget_reading {
	const char *text;
	json_t *document;
	char *error;
};

struct budget_file *budget_file_free(struct budget_file *file)
{
	if (file)
		json_decref(file->document);
	free(file);
	return NULL;
}

static struct budget_file *budget_file_consume(json_t *document)
{
	struct budget_file *file = must_alloc(1, sizeof(*file));

	file->document = must_have(document);
	return file;
}

struct budget_file *budget_file_new(void)
{
	return budget_file_consume(
		json_pack("{s:s, s:{}}", "schema", BUDGET_FILE_SCHEMA, "limits"));
}

/* Whether the string at @text, @length bytes with its quotes, is @key. */
static bool budget_file_is_key(const char *text, size_t length, const char *key)
{
	json_t *string = json_loadb(text, length, JSON_DECODE_ANY, NULL);
	const char *value = json_string_value(string);
	bool is_key = value && strcmp(value, key) == 0;

	json_decref(string);
	return is_key;
}

/* The line of the member @key of an object, which is valid JSON; 0 = none. */
static unsigned int budget_file_line(const char *text, const char *key)
{
	unsigned int line = 1;

	while (*text) {
		const char *start = text;

		if (*text != '"') {
			line += *text++ == '\n';
			continue;
		}
		for (text++; *text && *text != '"'; text++)
			text += *text == '\\' && text[1];
		text += *text == '"';
		if (text[strspn(text, " \t\r\n")] == ':' &&
		    budget_file_is_key(start, (size_t)(text - start), key))
			return line;
	}
	return 0;
}

/* Says what is wrong with a member (NULL: with the whole file). Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) static int
budget_file_wrong(const struct budget_reading *reading, const char *key, const char *format, ...)
{
	unsigned int line = key ? budget_file_line(reading->text, key) : 0;
	char shown[128];
	int n = 0;
	va_list args;

	if (line)
		n = snprintf(reading->error, BUDGET_FILE_ERROR, "line %u: ", line);
	if (key) {
		(void)text_escape(key, shown, sizeof(shown));
		n += snprintf(reading->error + n, BUDGET_FILE_ERROR - (size_t)n, "\"%s\" ", shown);
	}
	va_start(args, format);
	(void)vsnprintf(reading->error + n, BUDGET_FILE_ERROR - (size_t)n, format, args);
	va_end(args);
	return -EINVAL;
}

/* A number of bytes, or a text such as "4G". */
static int budget_file_size(const json_t *value, uint64_t *ret_bytes)
{
	if (json_is_string(value))
		return text_parse_size(json_string_value(value), ret_bytes);
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return -EINVAL;
	*ret_bytes = (uint64_t)json_integer_value(value);
	return 0;
}

static int budget_file_take(const struct budget_reading *reading, json_t *limits,
			    struct budget *budget)
{
	const char *key;
	json_t *value;

	json_object_foreach(limits, key, value)
	{
		uint64_t bytes;
		int r;

		if (budget_file_size(value, &bytes) < 0)
			return budget_file_wrong(
				reading, key,
				"needs a size: a number of bytes, or a text such as \"4G\"");
		r = budget_add(budget, key, bytes);
		if (r == -EINVAL)
			return budget_file_wrong(
				reading, key,
				"is no limit: [DEVICE:]TYPE, [DEVICE:][TYPE:]phase:NAME or "
				"[DEVICE:][TYPE:]site:NAME");
		if (r < 0)
			return r;
	}
	return 0;
}

/* Without the list, as in files of 0.2.0, no limit is optional. */
static int budget_file_take_optional(const struct budget_reading *reading, struct budget *budget)
{
	const json_t *list = json_object_get(reading->document, "optional");
	char shown[128];

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *key = json_string_value(json_array_get(list, i));

		if (key && budget_set_optional(budget, key))
			continue;
		(void)text_escape(key ? key : "?", shown, sizeof(shown));
		return budget_file_wrong(reading, "optional",
					 "names \"%s\", which is not one of the limits", shown);
	}
	return 0;
}

static int budget_file_check(const struct budget_reading *reading)
{
	static const char *const members[] = {"$schema", "schema", "description", "limits",
					      "optional"};
	const char *key;
	json_t *value;

	if (!json_is_object(reading->document))
		return budget_file_wrong(reading, NULL, "is not an object of JSON");
	json_object_foreach(reading->document, key, value)
	{
		size_t i = 0;

		while (i < ARRAY_SIZE(members) && strcmp(members[i], key) != 0)
			i++;
		if (i == ARRAY_SIZE(members))
			return budget_file_wrong(reading, key, "is not known here");
	}
	value = json_object_get(reading->document, "schema");
	if (!value)
		return budget_file_wrong(reading, NULL,
					 "has no \"schema\": \"" BUDGET_FILE_SCHEMA "\"");
	if (!json_is_string(value) || strcmp(json_string_value(value), BUDGET_FILE_SCHEMA) != 0)
		return budget_file_wrong(reading, "schema", "is not \"" BUDGET_FILE_SCHEMA "\"");
	value = json_object_get(reading->document, "limits");
	if (!value)
		return budget_file_wrong(reading, NULL, "has no \"limits\"");
	if (!json_is_object(value))
		return budget_file_wrong(reading, "limits", "is not an object");
	value = json_object_get(reading->document, "optional");
	if (value && !json_is_array(value))
		return budget_file_wrong(reading, "optional", "is not a list of limits");
	return 0;
}

/* The whole text, which the caller frees. */
static int budget_file_read(const char *path, char **ret_text, char *ret_error)
{
	CLEANUP_FREE char *text = must_alloc(BUDGET_FILE_MAX + 2, 1);
	ssize_t n = small_file_read(AT_FDCWD, path, text, BUDGET_FILE_MAX + 2);

	if (n == -ENOENT)
		return -ENOENT;
	if (n < 0) {
		(void)snprintf(ret_error, BUDGET_FILE_ERROR, "%s", strerrordesc_np((int)-n));
		return -EINVAL;
	}
	if ((size_t)n > BUDGET_FILE_MAX) {
		(void)snprintf(ret_error, BUDGET_FILE_ERROR, "has more than %u bytes",
			       BUDGET_FILE_MAX);
		return -EINVAL;
	}
	if (strlen(text) != (size_t)n) {
		(void)snprintf(ret_error, BUDGET_FILE_ERROR, "is not text");
		return -EINVAL;
	}
	*ret_text = cleanup_steal(text);
	return 0;
}

int budget_file_load(const char *path, struct budget *budget, struct budget_file **ret_file,
		     char *ret_error)
{
	CLEANUP_FREE char *text = NULL;
	struct budget_reading reading = {.error = ret_error};
	json_error_t error;
	char shown[BUDGET_FILE_ERROR - 32];
	int r = budget_file_read(path, &text, ret_error);

	if (r < 0)
		return r;
	reading.text = text;
	reading.document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!reading.document) {
		(void)text_escape(error.text, shown, sizeof(shown)); /* it quotes the file */
		(void)snprintf(ret_error, BUDGET_FILE_ERROR, "line %d: %s",
			       error.line > 0 ? error.line : 1, shown);
		return -EINVAL;
	}
	r = budget_file_check(&reading);
	if (r == 0)
		r = budget_file_take(&reading, json_object_get(reading.document, "limits"), budget);
	if (r == 0)
		r = budget_file_take_optional(&reading, budget);
	if (r < 0 || !ret_file) {
		json_decref(reading.document);
		return r;
	}
	*ret_file = budget_file_consume(reading.document);
	return 0;
}

static void budget_file_set(struct budget_file *file, const char *key, uint64_t bytes)
{
	json_t *limits = json_object_get(file->document, "limits");

	if (json_object_set_new(limits, key, json_integer((json_int_t)bits_min(bytes, INT64_MAX))) <
	    0)
		must_end();
}

void budget_file_update(struct budget_file *file, const struct budget_verdict *verdicts,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (verdicts[i].moment)
			budget_file_set(file, verdicts[i].limit->key, verdicts[i].bytes);
	}
}

void budget_file_fill(struct budget_file *file, const struct budget_summary *summary,
		      struct budget *budget)
{
	json_t *optional = json_array();

	if (json_object_set_new(file->document, "optional", optional) < 0)
		must_end();
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		uint64_t most = 0;

		for (size_t i = 0; i < summary->count; i++) {
			if (summary->moments[i].type == type)
				most = bits_max(most, summary->moments[i].bytes);
		}
		if (most == 0)
			continue;
		budget_file_set(file, types_name(type), most);
		if (json_array_append_new(optional, json_string(types_name(type))) < 0)
			must_end();
		(void)budget_add(budget, types_name(type), most); /* a type is a valid key */
	}
}

void budget_file_write(const void *file, FILE *out)
{
	const struct budget_file *written = file;

	/* What cannot be written is noticed by the caller, as for every output. */
	(void)json_dumpf(written->document, out, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	(void)fputc('\n', out);
}
