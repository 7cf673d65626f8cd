/* SPDX-License-Identifier: Apache-2.0 */

/* Writes rows as their tables describe them. */

#include "answers/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "base/bits.h"
#include "base/emit.h"
#include "base/text.h"
#include "model/types.h"

/* The struct that has the member. */
static const char *fields_base(const struct field *field, const void *row)
{
	const char *base = row;

	return field->via ? *(const char *const *)(const void *)(base + field->via - 1) : base;
}

/* The value as a number; what is not one counts as 1 if it is there. */
static uint64_t fields_number(const struct field *field, const char *base)
{
	const void *member = base + field->offset;

	switch (field->kind) {
	case FIELD_SHORT:
	case FIELD_NAME:
	case FIELD_FLAGS:
		return *(const uint32_t *)member;
	case FIELD_DOUBLE:
		return isnan(*(const double *)member) ? UINT64_C(0) : UINT64_C(1);
	case FIELD_BOOL:
		return *(const bool *)member;
	case FIELD_NOT:
		return !*(const bool *)member;
	case FIELD_TEXT:
	case FIELD_POINTER:
		return *(const void *const *)member != NULL;
	case FIELD_NUMBER:
	case FIELD_BYTES:
	case FIELD_TIME:
	case FIELD_SPAN:
	case FIELD_HEX:
	case FIELD_SIGNED:
		return *(const uint64_t *)member;
	default:
		return field->count ? *(const size_t *)(const void *)(base + field->count) : 1;
	}
}

static const char *fields_text(const struct field *field, const char *base)
{
	const void *member = base + field->offset;

	return field->kind == FIELD_TEXT ? *(const char *const *)member
					 : field->names(*(const uint32_t *)member);
}

/* Whether there is a value, for JSON; CSV and tables show a 0 that JSON leaves out. */
static bool fields_has(const struct field *field, const char *base, uint64_t number)
{
	if (field->known)
		return *(const bool *)(base + field->known - 1);
	if (field->unknown)
		return !*(const bool *)(base + field->unknown - 1);
	if (field->kind == FIELD_NAME)
		return field->absent == FIELD_ALWAYS || field->names((uint32_t)number);
	return number || (field->absent == FIELD_ALWAYS && field->kind != FIELD_POINTER);
}

static bool fields_has_cell(const struct field *field, const char *base)
{
	return (field->absent != FIELD_NULL && !field->known && !field->unknown) ||
	       fields_has(field, base, fields_number(field, base));
}

static void fields_put_flags(struct emit *json, const struct field *field, uint64_t flags)
{
	emit_open_array(json, field->key);
	for (uint32_t bit = 0; field->names(bit); bit++) {
		if (flags & UINT64_C(1) << bit)
			emit_string(json, NULL, field->names(bit));
	}
	emit_close_array(json);
}

void fields_put_by_type(struct emit *json, const char *key, const struct field *fields,
			const void *rows, size_t size)
{
	const char *row = rows;

	emit_open_object(json, key);
	for (uint32_t type = 0; types_name(type); type++, row += size) {
		if (!fields) {
			emit_u64(json, types_name(type), *(const uint64_t *)(const void *)row);
			continue;
		}
		fields_put_object(json, types_name(type), fields, row);
	}
	emit_close_object(json);
}

static void fields_put_element(struct emit *json, const struct field *field, const void *element)
{
	const uint64_t *numbers = element;

	if (field->kind == FIELD_TEXTS) {
		emit_string(json, NULL, *(const char *const *)element);
	} else if (field->has_nulls && *numbers == UINT64_MAX) {
		emit_null(json, NULL);
	} else if (field->kind == FIELD_NUMBERS) {
		emit_u64(json, NULL, *numbers);
	} else if (field->kind == FIELD_TUPLES) {
		emit_open_array(json, NULL);
		for (size_t i = 0; i < field->size / sizeof(*numbers); i++)
			emit_u64(json, NULL, numbers[i]);
		emit_close_array(json);
	} else {
		fields_put_row(json, field->fields, element);
	}
}

/* Elements that lie one behind the other, in the row or where it points to. */
static void fields_put_list(struct emit *json, const struct field *field, const char *base)
{
	const char *written = NULL, *list = base + field->offset;
	size_t count = field->room;

	if (field->written)
		written = *(const char *const *)(const void *)(base + field->written - 1);
	if (written) {
		emit_raw(json, field->key, written);
		return;
	}
	if (field->count) {
		count = *(const size_t *)(const void *)(base + field->count);
		if (!field->room)
			list = *(const char *const *)(const void *)list;
	}
	emit_open_array(json, field->key);
	for (size_t i = 0; i < count; i++)
		fields_put_element(json, field, list + i * field->size);
	emit_close_array(json);
}

static void fields_put_each(struct emit *json, const struct field *field, const void *row)
{
	struct fields_room room;
	const void *element;
	size_t at = 0;

	assert(field->each);
	emit_open_array(json, field->key);
	while ((element = field->each(row, &at, &room)))
		fields_put_row(json, field->fields, element);
	emit_close_array(json);
}

static void fields_put_value(struct emit *json, const struct field *field, const char *base,
			     uint64_t number)
{
	const char *member = base + field->offset;

	switch (field->kind) {
	case FIELD_HEX:
		emit_hex(json, field->key, number);
		break;
	case FIELD_NAME:
	case FIELD_TEXT:
		emit_string(json, field->key, fields_text(field, base));
		break;
	case FIELD_FLAGS:
		fields_put_flags(json, field, number);
		break;
	case FIELD_BOOL:
	case FIELD_NOT:
		emit_bool(json, field->key, number);
		break;
	case FIELD_LIST:
	case FIELD_ROWS:
	case FIELD_TEXTS:
	case FIELD_NUMBERS:
	case FIELD_TUPLES:
		fields_put_list(json, field, base);
		break;
	case FIELD_EACH:
		fields_put_each(json, field, base);
		break;
	case FIELD_SIGNED:
		emit_i64(json, field->key, (int64_t)number);
		break;
	case FIELD_DOUBLE:
		emit_double(json, field->key, *(const double *)(const void *)member);
		break;
	case FIELD_OBJECT:
	case FIELD_POINTER:
		fields_put_object(json, field->key, field->fields,
				  field->kind == FIELD_OBJECT
					  ? member
					  : *(const char *const *)(const void *)member);
		break;
	case FIELD_TYPES:
		fields_put_by_type(json, field->key, field->fields, member, field->size);
		break;
	default:
		emit_u64(json, field->key, number);
		break;
	}
}

static void fields_put_one(struct emit *json, const struct field *field, const void *row)
{
	const char *base = fields_base(field, row);
	uint64_t number;

	if (field->kind == FIELD_CODE) {
		if (base)
			field->put(json, field->key, base + field->offset);
	} else if (field->kind == FIELD_ALSO) {
		if (base && fields_has(field, base, 1))
			fields_put(json, field->fields, base + field->offset);
	} else if (field->absent < FIELD_ELSEWHERE) {
		number = base ? fields_number(field, base) : 0;
		if (base && fields_has(field, base, number))
			fields_put_value(json, field, base, number);
		else if (field->absent < FIELD_NOTHING)
			emit_null(json, field->key);
	}
}

void fields_put(struct emit *json, const struct field *fields, const void *row)
{
	assert(row);
	for (const struct field *field = fields; field->key; field++)
		fields_put_one(json, field, row);
}

void fields_put_object(struct emit *json, const char *key, const struct field *fields,
		       const void *row)
{
	emit_open_object(json, key);
	fields_put(json, fields, row);
	emit_close_object(json);
}

void fields_put_row(struct emit *json, const struct field *fields, const void *row)
{
	fields_put_object(json, NULL, fields, row);
}

void fields_put_part(struct emit *json, struct fields_part *part, const void *row, const char *list)
{
	if (list && part->list && strcmp(list, part->list) == 0)
		return;
	if (part->list) {
		emit_close_array(json);
		part->next++;
	} else {
		emit_open_object(json, NULL);
	}
	for (; part->next->key && (!list || strcmp(part->next->key, list) != 0); part->next++)
		fields_put_one(json, part->next, row);
	assert(!list || part->next->key);
	part->list = list;
	if (list)
		emit_open_array(json, list);
	else
		emit_close_object(json);
}

static const struct field *fields_find(const struct field *fields, const char *key, size_t length)
{
	while (fields->key &&
	       (strncmp(fields->key, key, length) != 0 || fields->key[length] != '\0'))
		fields++;
	return fields;
}

void fields_choose(struct fields_view *view, const struct field *fields, const char *keys)
{
	view->count = 0;
	for (const char *key = keys; *key; view->count++) {
		size_t length = strcspn(key, ",");
		const struct field *field = fields_find(fields, key, length);

		assert(field->key && view->count < FIELDS_MAX);
		view->fields[view->count] = field;
		view->columns[view->count] = field->column;
		key += length + (key[length] == ',');
	}
}

static void fields_csv_flags(FILE *out, const struct field *field, uint64_t flags)
{
	const char *separator = "";

	for (uint32_t bit = 0; field->names(bit); bit++) {
		if (flags & UINT64_C(1) << bit) {
			fprintf(out, "%s%s", separator, field->names(bit));
			separator = " ";
		}
	}
}

static void fields_csv_value(FILE *out, const struct field *field, const char *base)
{
	uint64_t number = fields_number(field, base);
	const char *text;

	switch (field->kind) {
	case FIELD_HEX:
		fprintf(out, "0x%" PRIx64, number);
		break;
	case FIELD_NAME:
	case FIELD_TEXT:
		text = fields_text(field, base);
		text_put_csv(out, text ? text : "");
		break;
	case FIELD_FLAGS:
		fields_csv_flags(out, field, number);
		break;
	default:
		text_put_u64(out, number);
		break;
	}
}

void fields_csv_row(FILE *out, const struct fields_view *view, const void *row)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct field *field = view->fields[i];
		const char *base = fields_base(field, row);

		if (fields_has_cell(field, base))
			fields_csv_value(out, field, base);
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread writes a list */
		(void)putc_unlocked(i + 1 < view->count ? ',' : '\n', out);
	}
}

const struct field *fields_named(const struct field *fields, const char *key)
{
	const struct field *field = fields_find(fields, key, strlen(key));

	assert(field->key);
	return field;
}

union field_value fields_value(const struct field *field, const void *row)
{
	const char *base = fields_base(field, row), *text;

	if (field->kind != FIELD_TEXT)
		return (union field_value){.number = fields_number(field, base)};
	text = fields_text(field, base);
	return (union field_value){.text = text ? text : ""};
}

const char *fields_cell(const struct field *field, const void *row, char *text)
{
	const char *base = fields_base(field, row);
	uint64_t number = fields_number(field, base);

	if (field->people)
		return field->people(row, text);
	if (!fields_has_cell(field, base))
		return NULL;
	switch (field->kind) {
	case FIELD_BYTES:
		return text_size(number, text);
	case FIELD_SPAN:
		return text_duration(number, text);
	case FIELD_NAME:
	case FIELD_TEXT:
		return fields_text(field, base);
	default:
		snprintf(text, FIELDS_TEXT, field->kind == FIELD_HEX ? "0x%" PRIx64 : "%" PRIu64,
			 number);
		return text;
	}
}

void fields_table_row(struct table *table, const struct fields_view *view, const void *row)
{
	char text[FIELDS_TEXT];

	for (size_t i = 0; i < view->count; i++) {
		const char *cell = fields_cell(view->fields[i], row, text);

		table_text(table, cell ? cell : "-");
	}
}
