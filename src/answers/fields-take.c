/* SPDX-License-Identifier: Apache-2.0 */

/* Reads rows as their tables describe them. The object may be anything. */

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "answers/fields.h"
#include "base/bits.h"
#include "base/text.h"
#include "model/types.h"

#define FIELDS_NAMES_MAX 64u

static uint64_t fields_take_number(const json_t *value)
{
	double real = json_real_value(value);

	if (json_is_integer(value) && json_integer_value(value) > 0)
		return (uint64_t)json_integer_value(value);
	/* As a document has them in which one number exceeds 2^63. */
	return real > 0 && real < 0x1p64 && real == trunc(real) ? (uint64_t)real : 0;
}

static uint32_t fields_take_short(const json_t *value)
{
	uint64_t number = fields_take_number(value);

	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

static uint64_t fields_take_hex(const json_t *value)
{
	const char *text = json_string_value(value);
	uint64_t number;

	return text && text_parse_u64(text, &number) == 0 ? number : 0;
}

static uint32_t fields_take_name(const struct field *field, const json_t *value)
{
	const char *text = json_string_value(value), *name;

	for (uint32_t i = 0; text && i < FIELDS_NAMES_MAX; i++) {
		name = field->names(i);
		if (name && strcmp(name, text) == 0)
			return i;
	}
	return UINT32_MAX;
}

static uint32_t fields_take_flags(const struct field *field, const json_t *list)
{
	uint32_t flags = 0, bit;

	for (size_t i = 0; i < json_array_size(list); i++) {
		bit = fields_take_name(field, json_array_get(list, i));
		flags |= bit < 32 ? UINT32_C(1) << bit : 0;
	}
	return flags;
}

static void fields_take_types(const struct field *field, const json_t *object, char *rows)
{
	for (uint32_t type = 0; types_name(type); type++)
		fields_take(json_object_get(object, types_name(type)), field->fields,
			    rows + type * field->size);
}

static void fields_take_list(const struct field *field, const json_t *list, char *row)
{
	size_t count = bits_min(json_array_size(list), field->room);

	for (size_t i = 0; i < count; i++)
		fields_take(json_array_get(list, i), field->fields,
			    row + field->offset + i * field->size);
	*(size_t *)(void *)(row + field->count) = count;
}

/* Whether the value is one of the kind. */
static bool fields_is(const struct field *field, const json_t *value)
{
	switch (field->kind) {
	case FIELD_HEX:
	case FIELD_NAME:
	case FIELD_TEXT:
		return json_is_string(value);
	case FIELD_FLAGS:
	case FIELD_LIST:
		return json_is_array(value);
	case FIELD_BOOL:
	case FIELD_NOT:
		return json_is_boolean(value);
	case FIELD_OBJECT:
	case FIELD_TYPES:
		return json_is_object(value);
	default:
		return json_is_integer(value) || fields_take_number(value);
	}
}

static void fields_take_value(const struct field *field, const json_t *value, char *row)
{
	void *member = row + field->offset;

	switch (field->kind) {
	case FIELD_HEX:
		*(uint64_t *)member = fields_take_hex(value);
		break;
	case FIELD_SIGNED:
		*(int64_t *)member = json_integer_value(value);
		break;
	case FIELD_SHORT:
		*(uint32_t *)member = fields_take_short(value);
		break;
	case FIELD_NAME:
		*(uint32_t *)member = fields_take_name(field, value);
		break;
	case FIELD_FLAGS:
		*(uint32_t *)member = fields_take_flags(field, value);
		break;
	case FIELD_TEXT:
		*(const char **)member = json_string_value(value);
		break;
	case FIELD_BOOL:
	case FIELD_NOT:
		*(bool *)member = json_is_boolean(value) &&
				  json_is_true(value) == (field->kind == FIELD_BOOL);
		break;
	case FIELD_OBJECT:
		fields_take(value, field->fields, member);
		break;
	case FIELD_TYPES:
		fields_take_types(field, value, member);
		break;
	case FIELD_LIST:
		fields_take_list(field, value, row);
		break;
	default:
		*(uint64_t *)member = fields_take_number(value);
		break;
	}
}

void fields_take(const json_t *object, const struct field *fields, void *row)
{
	char *base = row;

	for (const struct field *field = fields; field->key; field++) {
		const json_t *value = json_object_get(object, field->key);

		if (field->kind == FIELD_ALSO) {
			fields_take(object, field->fields, row);
			continue;
		}
		if (field->kind == FIELD_CODE || field->absent == FIELD_COLUMN || field->via)
			continue;
		fields_take_value(field, value, base);
		if (field->known)
			*(bool *)(base + field->known - 1) = fields_is(field, value);
		if (field->unknown)
			*(bool *)(base + field->unknown - 1) = !fields_is(field, value);
	}
}
