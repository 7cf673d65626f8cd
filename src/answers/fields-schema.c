/* SPDX-License-Identifier: Apache-2.0 */

/* The JSON schema of rows, as their tables describe them. */

#include <assert.h>

#include "answers/fields.h"
#include "base/bits.h"
#include "base/emit.h"

#define SCHEMA_NAMES_MAX 64u

/* Whether null stands where there is no value. */
static bool schema_is_nullable(const struct field *field)
{
	if (field->absent == FIELD_NULL || field->absent == FIELD_EITHER)
		return true;
	return field->absent == FIELD_ALWAYS &&
	       (field->known || field->unknown || field->kind == FIELD_POINTER);
}

static void schema_put_type(struct emit *json, const char *type, bool is_nullable)
{
	if (!is_nullable) {
		emit_string(json, "type", type);
		return;
	}
	emit_open_array(json, "type");
	emit_string(json, NULL, type);
	emit_string(json, NULL, "null");
	emit_close_array(json);
}

static void schema_put_names(struct emit *json, const struct field *field, bool is_nullable)
{
	emit_open_array(json, "enum");
	for (uint32_t i = 0; i < SCHEMA_NAMES_MAX; i++) {
		if (field->names(i))
			emit_string(json, NULL, field->names(i));
	}
	if (is_nullable)
		emit_null(json, NULL);
	emit_close_array(json);
}

/* A boolean that is left out where it is the usual one has only the other value. */
static void schema_put_bool(struct emit *json, const struct field *field, bool is_nullable)
{
	if (field->absent == FIELD_NOTHING && !field->known && !field->unknown)
		emit_bool(json, "const", true);
	else
		schema_put_type(json, "boolean", is_nullable);
}

static void schema_put_tuple(struct emit *json, size_t count)
{
	emit_string(json, "type", "array");
	emit_open_object(json, "items");
	emit_string(json, "type", "integer");
	emit_u64(json, "minimum", 0);
	emit_close_object(json);
	emit_u64(json, "minItems", count);
	emit_u64(json, "maxItems", count);
}

/* An array, and what its elements are. */
static void schema_put_items(struct emit *json, const struct field *field)
{
	emit_string(json, "type", "array");
	if (field->kind == FIELD_NUMBERS && !field->count) {
		emit_u64(json, "minItems", field->room);
		emit_u64(json, "maxItems", field->room);
	}
	emit_open_object(json, "items");
	if (field->kind == FIELD_FLAGS) {
		schema_put_names(json, field, false);
	} else if (field->kind == FIELD_TEXTS) {
		emit_string(json, "type", "string");
	} else if (field->kind == FIELD_NUMBERS) {
		schema_put_type(json, "integer", field->has_nulls);
		emit_u64(json, "minimum", 0);
	} else if (field->kind == FIELD_TUPLES) {
		schema_put_tuple(json, field->size / sizeof(uint64_t));
	} else {
		emit_string(json, "type", "object");
		fields_put_schema(json, field->fields);
	}
	emit_close_object(json);
}

static void schema_put_types(struct emit *json, const struct field *field)
{
	emit_string(json, "$ref", "types.json#/$defs/each_type");
	schema_put_type(json, "object", schema_is_nullable(field));
	emit_open_object(json, "propertyNames");
	emit_string(json, "$ref", "types.json#/$defs/type");
	emit_close_object(json);
	emit_open_object(json, "additionalProperties");
	if (field->fields) {
		emit_string(json, "type", "object");
		fields_put_schema(json, field->fields);
	} else {
		emit_string(json, "type", "integer");
		emit_u64(json, "minimum", 0);
	}
	emit_close_object(json);
}

/* What the value of a field may be. */
static void schema_put_value(struct emit *json, const struct field *field)
{
	bool is_nullable = schema_is_nullable(field);

	switch (field->kind) {
	case FIELD_HEX:
		schema_put_type(json, "string", is_nullable);
		emit_string(json, "pattern",
			    field->absent == FIELD_ALWAYS || field->known || field->unknown
				    ? "^0x(0|[1-9a-f][0-9a-f]{0,15})$"
				    : "^0x[1-9a-f][0-9a-f]{0,15}$");
		break;
	case FIELD_NAME:
		schema_put_names(json, field, is_nullable);
		break;
	case FIELD_TEXT:
		if (field->names)
			schema_put_names(json, field, is_nullable);
		else
			schema_put_type(json, "string", is_nullable);
		break;
	case FIELD_BOOL:
	case FIELD_NOT:
		schema_put_bool(json, field, is_nullable);
		break;
	case FIELD_SIGNED:
		schema_put_type(json, "integer", is_nullable);
		break;
	case FIELD_DOUBLE:
		schema_put_type(json, "number", is_nullable);
		if (field->most)
			emit_u64(json, "minimum", field->least);
		break;
	case FIELD_OBJECT:
	case FIELD_POINTER:
		schema_put_type(json, "object", is_nullable);
		if (field->fields)
			fields_put_schema(json, field->fields);
		break;
	case FIELD_TYPES:
		schema_put_types(json, field);
		break;
	case FIELD_FLAGS:
	case FIELD_LIST:
	case FIELD_ROWS:
	case FIELD_TEXTS:
	case FIELD_EACH:
	case FIELD_NUMBERS:
	case FIELD_TUPLES:
		schema_put_items(json, field);
		break;
	default:
		schema_put_type(json, "integer", is_nullable);
		emit_u64(json, "minimum",
			 bits_max(field->least, field->absent == FIELD_NOTHING && !field->known));
		break;
	}
}

/* Whether more fields of the same object stand in the entry's place. */
static bool schema_is_more(const struct field *field)
{
	assert(field->kind != FIELD_CODE || field->fields);
	return field->kind == FIELD_ALSO || field->kind == FIELD_CODE;
}

void fields_put_required(struct emit *json, const struct field *fields)
{
	for (const struct field *field = fields; field->key; field++) {
		if (schema_is_more(field) && field->absent == FIELD_ALWAYS)
			fields_put_required(json, field->fields);
		else if (field->absent <= FIELD_NULL && !field->is_later)
			emit_string(json, NULL, field->key);
	}
}

void fields_put_properties(struct emit *json, const struct field *fields)
{
	for (const struct field *field = fields; field->key; field++) {
		if (schema_is_more(field)) {
			fields_put_properties(json, field->fields);
		} else if (field->absent != FIELD_COLUMN) {
			emit_open_object(json, field->key);
			if (field->says)
				emit_string(json, "description", field->says);
			schema_put_value(json, field);
			if (field->most)
				emit_u64(json, "maximum", field->most);
			emit_close_object(json);
		}
	}
}

void fields_put_schema(struct emit *json, const struct field *fields)
{
	emit_open_array(json, "required");
	fields_put_required(json, fields);
	emit_close_array(json);
	emit_open_object(json, "properties");
	fields_put_properties(json, fields);
	emit_close_object(json);
}
