/* SPDX-License-Identifier: Apache-2.0 */

/* Reads rows as their tables describe them. The object may be anything. */

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers/fields.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/text.h"
#include "model/types.h"

#define FIELDS_NAMES_MAX 64u

static uint64_t fields_take_number(const json_t *value)
{
	double real = json_real_value(value);

	if (json_is_integer(value) && json_integer_value(value) > 0)
		return (uint64_t)json_integer_value(value);
	/* As a document has them in which one number exceeds 2^63; the largest has become 2^64. */
	if (real >= 0x1p64 && real <= 0x1p64)
		return UINT64_MAX;
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

static int fields_take_types(const struct field *field, const json_t *object, char *rows,
			     struct pool *pool)
{
	int r = 0;

	for (uint32_t type = 0; r == 0 && types_name(type); type++)
		r = fields_take(json_object_get(object, types_name(type)), field->fields,
				rows + type * field->size, pool);
	return r;
}

static void fields_take_numbers(const json_t *list, size_t count, uint64_t *ret_numbers)
{
	for (size_t i = 0; i < count; i++)
		ret_numbers[i] = fields_take_number(json_array_get(list, i));
}

static int fields_take_elements(const struct field *field, const json_t *list, size_t count,
				char *elements, struct pool *pool)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *value = json_array_get(list, i);
		void *element = elements + i * field->size;

		if (field->kind == FIELD_TEXTS)
			*(const char **)element = json_string_value(value);
		else if (field->has_nulls && json_is_null(value))
			*(uint64_t *)element = UINT64_MAX;
		else if (field->kind == FIELD_NUMBERS)
			*(uint64_t *)element = fields_take_number(value);
		else if (field->kind == FIELD_TUPLES)
			fields_take_numbers(value, field->size / sizeof(uint64_t), element);
		else
			r = fields_take(value, field->fields, element, pool);
	}
	return r;
}

static int fields_take_list(const struct field *field, const json_t *list, char *row,
			    struct pool *pool)
{
	size_t count = bits_min(json_array_size(list), field->room);

	*(size_t *)(void *)(row + field->count) = count;
	return fields_take_elements(field, list, count, row + field->offset, pool);
}

/* Into the pool. */
static int fields_take_rows(const struct field *field, const json_t *list, char *row,
			    struct pool *pool)
{
	CLEANUP_FREE char *elements = NULL;
	size_t count = json_array_size(list);
	const void **member = (const void **)(void *)(row + field->offset);
	int r;

	*member = NULL;
	*(size_t *)(void *)(row + field->count) = 0;
	if (!pool || count == 0)
		return 0;
	elements = calloc(count, field->size);
	if (!elements)
		return -ENOMEM;
	r = fields_take_elements(field, list, count, elements, pool);
	if (r < 0)
		return r;
	*member = pool_block(pool, elements, count * field->size);
	if (!*member)
		return -ENOMEM;
	*(size_t *)(void *)(row + field->count) = count;
	return 0;
}

static int fields_take_pointer(const struct field *field, const json_t *object, void *member,
			       struct pool *pool)
{
	CLEANUP_FREE char *made = NULL;
	int r;

	*(const void **)member = NULL;
	if (!pool || !json_is_object(object))
		return 0;
	made = calloc(1, field->size);
	r = made ? fields_take(object, field->fields, made, pool) : -ENOMEM;
	if (r < 0)
		return r;
	*(const void **)member = pool_block(pool, made, field->size);
	return *(const void **)member ? 0 : -ENOMEM;
}

/* Whether the value is one of the kind. */
static bool fields_is(const struct field *field, const json_t *value)
{
	uint64_t number;

	switch (field->kind) {
	case FIELD_HEX:
		return json_is_string(value) &&
		       text_parse_u64(json_string_value(value), &number) == 0;
	case FIELD_NAME:
	case FIELD_TEXT:
		return json_is_string(value);
	case FIELD_FLAGS:
	case FIELD_LIST:
	case FIELD_ROWS:
	case FIELD_TEXTS:
	case FIELD_NUMBERS:
	case FIELD_TUPLES:
		return json_is_array(value);
	case FIELD_BOOL:
	case FIELD_NOT:
		return json_is_boolean(value);
	case FIELD_DOUBLE:
		return json_is_number(value);
	case FIELD_OBJECT:
	case FIELD_POINTER:
	case FIELD_TYPES:
		return json_is_object(value);
	default:
		return json_is_integer(value) || fields_take_number(value);
	}
}

static int fields_take_value(const struct field *field, const json_t *value, char *row,
			     struct pool *pool)
{
	void *member = row + field->offset;

	switch (field->kind) {
	case FIELD_HEX:
		*(uint64_t *)member = fields_take_hex(value);
		break;
	case FIELD_SIGNED:
		*(int64_t *)member = json_integer_value(value);
		break;
	case FIELD_DOUBLE:
		*(double *)member = json_is_number(value) ? json_number_value(value) : NAN;
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
		return fields_take(value, field->fields, member, pool);
	case FIELD_POINTER:
		return fields_take_pointer(field, value, member, pool);
	case FIELD_TYPES:
		return fields_take_types(field, value, member, pool);
	case FIELD_LIST:
		return fields_take_list(field, value, row, pool);
	case FIELD_NUMBERS:
		if (!field->count) {
			fields_take_numbers(value, field->room, member);
			return 0;
		}
		return field->room ? fields_take_list(field, value, row, pool)
				   : fields_take_rows(field, value, row, pool);
	case FIELD_EACH:
	case FIELD_ROWS:
	case FIELD_TEXTS:
	case FIELD_TUPLES:
		return fields_take_rows(field, value, row, pool);
	default:
		*(uint64_t *)member = fields_take_number(value);
		break;
	}
	return 0;
}

/* One entry of a table. */
static int fields_take_one(const json_t *object, const struct field *field, char *row,
			   struct pool *pool)
{
	const json_t *value = json_object_get(object, field->key);
	int r;

	if (field->kind == FIELD_CODE)
		return field->take ? field->take(object, row + field->offset, pool) : 0;
	if ((field->kind == FIELD_EACH && !field->size) || field->absent >= FIELD_ELSEWHERE ||
	    field->via)
		return 0;
	if (field->kind == FIELD_ALSO) {
		if (field->known)
			*(bool *)(row + field->known - 1) =
				json_object_get(object, field->fields->key) != NULL;
		return fields_take(object, field->fields, row + field->offset, pool);
	}
	r = fields_take_value(field, value, row, pool);
	if (field->known)
		*(bool *)(row + field->known - 1) =
			fields_is(field, value) ||
			(field->absent == FIELD_EITHER && json_is_null(value));
	if (field->unknown)
		*(bool *)(row + field->unknown - 1) = !fields_is(field, value);
	return r;
}

int fields_take(const json_t *object, const struct field *fields, void *row, struct pool *pool)
{
	int r = 0;

	for (const struct field *field = fields; r == 0 && field->key; field++)
		r = fields_take_one(object, field, row, pool);
	return r;
}
