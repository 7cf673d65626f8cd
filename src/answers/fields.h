/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A row of an answer, described once: a table with one entry for each field, from which JSON, CSV and text are
 * written, JSON is read, and its schema is made. An entry has a key, a member of the row's struct, its kind, and
 * what is written where there is no value. FIELD() checks at compile time that the member has the type of its
 * kind. What fits no kind is CODE.
 *
 *   struct field[] ──► fields_put()  ◄──► fields_take()     "pid":12,"comm":"python"
 *        ├─ "pid,comm" ──► fields_csv_row()                 12,python
 *        ├─ "comm,pid" ──► fields_table_row()               python   12
 *        ├─ "comm" ──► fields_cell()                        a column of "ttmem top"
 *        └─ fields_put_schema()                             {"type":"object","required":["pid",...
 */

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/table.h"

struct emit;
struct json_t;
struct pool;

#define FIELDS_MAX 32u   /* of a view */
#define FIELDS_TEXT 1024 /* the longest cell of a table */

enum field_kind {
	FIELD_NUMBER = 0, /* uint64_t, likewise the next four */
	FIELD_BYTES,
	FIELD_TIME,   /* CLOCK_REALTIME in ns */
	FIELD_SPAN,   /* ns */
	FIELD_HEX,    /* "0x1f" */
	FIELD_SIGNED, /* int64_t */
	FIELD_SHORT,  /* uint32_t, likewise the next two */
	FIELD_NAME,   /* its text is from names(); without one there is no value */
	FIELD_FLAGS,  /* a list of the texts of its bits */
	FIELD_TEXT,   /* const char *; NULL = no value; with names() one of those */
	FIELD_BOOL,
	FIELD_NOT,    /* bool: true is written as false */
	FIELD_DOUBLE, /* NAN = no value */
	/* In JSON only: */
	FIELD_OBJECT,  /* a struct with fields of its own */
	FIELD_POINTER, /* a pointer to one; NULL = no value */
	FIELD_TYPES, /* an object with one for each type of memory: an array of such structs, or of uint64_t */
	FIELD_LIST,  /* an array of them, and another member with their number */
	FIELD_ROWS,  /* likewise a pointer to the first */
	FIELD_TEXTS, /* likewise a pointer to the first of texts */
	FIELD_EACH, /* a list of structs that each() makes one after the other; with a size read as ROWS */
	FIELD_NUMBERS, /* likewise of uint64_t; with "room" an array of them in the row */
	FIELD_TUPLES, /* likewise of structs of uint64_t, each of which is written as an array of them */
	FIELD_ALSO, /* the fields of a struct in the row, as if its own; none if it is not known: the first is */
	FIELD_CODE, /* put() writes the members that the fields describe, and take() reads them */
};

/* Memory for an element that each() makes. FIELDS_IN() does not compile for a struct that is too large. */
struct fields_room {
	alignas(max_align_t) char bytes[4096];
};

#define FIELDS_IN(ROOM, STRUCT)             \
	((STRUCT *)(void *)((ROOM)->bytes + \
			    0 * sizeof(char[sizeof(STRUCT) <= sizeof((ROOM)->bytes) ? 1 : -1])))

#define FIELD_TYPE_NUMBER uint64_t
#define FIELD_TYPE_BYTES uint64_t
#define FIELD_TYPE_TIME uint64_t
#define FIELD_TYPE_SPAN uint64_t
#define FIELD_TYPE_HEX uint64_t
#define FIELD_TYPE_SIGNED int64_t
#define FIELD_TYPE_SHORT uint32_t
#define FIELD_TYPE_NAME uint32_t
#define FIELD_TYPE_FLAGS uint32_t
#define FIELD_TYPE_TEXT const char *
#define FIELD_TYPE_BOOL bool
#define FIELD_TYPE_NOT bool
#define FIELD_TYPE_DOUBLE double

/* What JSON has where there is no value: the member is 0, false or NULL, or "known" says so. */
enum field_absent {
	FIELD_ALWAYS = 0, /* 0 and false are values */
	FIELD_NULL,
	FIELD_NOTHING,
	FIELD_EITHER, /* nothing here; null where it is written without a row; null is known, too */
	FIELD_ELSEWHERE, /* never anything here: code writes it, and the schema has it */
	FIELD_COLUMN,    /* never anything: for tables and CSV */
};

struct field {
	const char *key;
	const struct field *fields;
	size_t size; /* of an element of an array */
	const char *(*names)(uint32_t number);

	/* CODE, of the member. EACH: the next element from @at on, which may be made in the room; NULL = the end. */
	void (*put)(struct emit *json, const char *key, const void *member);
	int (*take)(const struct json_t *object, void *member, struct pool *pool);
	const void *(*each)(const void *row, size_t *at, struct fields_room *room);
	const char *says; /* in the schema; NULL = the key says all */

	/* What people read in its column; has room for FIELDS_TEXT bytes. NULL = the kind decides. */
	const char *(*people)(const void *row, char *text);
	struct table_column column; /* without a title it is none */

	uint16_t offset; /* of the member */
	uint16_t via;   /* 1 + offset of a pointer to the struct that has the member; 0 = the row */
	uint16_t known; /* 1 + offset of a bool in the same struct; 0 = the member itself tells */
	uint16_t unknown; /* the same, if true stands for no value */
	uint16_t count;   /* of a list: offset of the number of its elements, a size_t */
	uint16_t room;    /* and how many the array in the row has room for */
	uint16_t written; /* 1 + offset of a text: if it is there, it is the list as JSON */
	uint8_t kind;     /* enum field_kind */
	uint8_t absent;   /* enum field_absent */
	/* For the schema: the range of valid numbers (0 = no end), and whether earlier versions lack the field. */
	uint8_t least;
	uint16_t most;
	bool is_later;
	bool has_nulls; /* of NUMBERS: UINT64_MAX is null */
};

#define FIELD_SAME(A, B) sizeof(char[__builtin_types_compatible_p(A, B) ? 1 : -1])

/* The offset of a member that has the type of its kind. */
#define FIELD_OFFSET(STRUCT, MEMBER, KIND) \
	(offsetof(STRUCT, MEMBER) +        \
	 0 * FIELD_SAME(__typeof__(((STRUCT *)NULL)->MEMBER), FIELD_TYPE_##KIND))

#define FIELD_OF(STRUCT, KEY, KIND, MEMBER) \
	.key = (KEY), .kind = FIELD_##KIND, .offset = FIELD_OFFSET(STRUCT, MEMBER, KIND)

#define FIELD_KNOWN(MEMBER) (1 + FIELD_OFFSET(ROW, MEMBER, BOOL)) /* for "known" */

/*
 * Entries for a member of the row, which is a ROW: each table defines that. More of the entry may follow, such
 * as its column. The second and third are for members whose 0 is no value, the next two for those that have
 * one if another member is true, or false.
 */
#define FIELD(KEY, KIND, MEMBER, ...)                           \
	{                                                       \
		FIELD_OF(ROW, KEY, KIND, MEMBER), ##__VA_ARGS__ \
	}
#define FIELD_OR_NULL(KEY, KIND, MEMBER, ...) \
	FIELD(KEY, KIND, MEMBER, .absent = FIELD_NULL, ##__VA_ARGS__)
#define FIELD_OR_NOTHING(KEY, KIND, MEMBER, ...) \
	FIELD(KEY, KIND, MEMBER, .absent = FIELD_NOTHING, ##__VA_ARGS__)
#define FIELD_IF(KNOWN, KEY, KIND, MEMBER, ...) \
	FIELD_OR_NULL(KEY, KIND, MEMBER, .known = FIELD_KNOWN(KNOWN), ##__VA_ARGS__)
#define FIELD_UNLESS(UNKNOWN, KEY, KIND, MEMBER, ...) \
	FIELD_OR_NULL(KEY, KIND, MEMBER, .unknown = FIELD_KNOWN(UNKNOWN), ##__VA_ARGS__)

/* A member of a struct that the row has a pointer to. */
#define FIELD_VIA(POINTER, STRUCT, KEY, KIND, MEMBER, ...)                                         \
	{                                                                                          \
		FIELD_OF(STRUCT, KEY, KIND, MEMBER),                                               \
			.via = 1 + offsetof(ROW, POINTER) +                                        \
			       0 * FIELD_SAME(__typeof__(((ROW *)NULL)->POINTER), const STRUCT *), \
			##__VA_ARGS__                                                              \
	}

/*
 * JSON only: a struct in the row, one that the row has a pointer to; an array of structs, one for each type of
 * memory; an array in the row; an array that it has a pointer to (ROWS, TEXTS); rows that are made; numbers.
 */
#define FIELD_STRUCT(KEY, MEMBER, FIELDS, ...)                                       \
	{                                                                            \
		.key = (KEY), .kind = FIELD_OBJECT, .offset = offsetof(ROW, MEMBER), \
		.fields = (FIELDS), ##__VA_ARGS__                                    \
	}
#define FIELD_POINTED(KEY, POINTER, FIELDS, ...)                                           \
	{                                                                                  \
		.key = (KEY), .kind = FIELD_POINTER, .offset = offsetof(ROW, POINTER),     \
		.fields = (FIELDS), .size = sizeof(*((ROW *)NULL)->POINTER), ##__VA_ARGS__ \
	}
#define FIELD_WITHIN(KEY, POINTER, FIELDS)                                             \
	{                                                                              \
		.key = (KEY), .kind = FIELD_OBJECT, .via = 1 + offsetof(ROW, POINTER), \
		.fields = (FIELDS)                                                     \
	}
#define FIELD_BY_TYPE(KEY, MEMBER, FIELDS)                                          \
	{                                                                           \
		.key = (KEY), .kind = FIELD_TYPES, .offset = offsetof(ROW, MEMBER), \
		.fields = (FIELDS), .size = sizeof(((ROW *)NULL)->MEMBER[0])        \
	}
#define FIELD_ARRAY(KEY, MEMBER, COUNT, FIELDS, ...)                                      \
	{                                                                                 \
		.key = (KEY), .kind = FIELD_LIST, .offset = offsetof(ROW, MEMBER),        \
		.fields = (FIELDS), .size = sizeof(((ROW *)NULL)->MEMBER[0]),             \
		.count = offsetof(ROW, COUNT),                                            \
		.room = sizeof(((ROW *)NULL)->MEMBER) / sizeof(((ROW *)NULL)->MEMBER[0]), \
		##__VA_ARGS__                                                             \
	}
#define FIELD_ARRAY_AT(KEY, KIND, POINTER, COUNT, ...)                                  \
	{                                                                               \
		.key = (KEY), .kind = FIELD_##KIND, .offset = offsetof(ROW, POINTER),   \
		.size = sizeof(*((ROW *)NULL)->POINTER), .count = offsetof(ROW, COUNT), \
		##__VA_ARGS__                                                           \
	}
#define FIELD_MADE(KEY, EACH, FIELDS, ...)                                            \
	{                                                                             \
		.key = (KEY), .kind = FIELD_EACH, .each = (EACH), .fields = (FIELDS), \
		##__VA_ARGS__                                                         \
	}
#define FIELD_LISTED(KEY, FIELDS, ...) /* a list that code writes */                \
	{                                                                           \
		.key = (KEY), .kind = FIELD_EACH, .fields = (FIELDS), ##__VA_ARGS__ \
	}
#define FIELD_FIXED(KEY, MEMBER, ...)                                                   \
	{                                                                               \
		.key = (KEY), .kind = FIELD_NUMBERS, .size = sizeof(uint64_t),          \
		.offset = offsetof(ROW, MEMBER),                                        \
		.room = sizeof(((ROW *)NULL)->MEMBER) / sizeof(uint64_t), ##__VA_ARGS__ \
	}
#define FIELD_CODED(KEY, PUT, ...)                                            \
	{                                                                     \
		.key = (KEY), .kind = FIELD_CODE, .put = (PUT), ##__VA_ARGS__ \
	}
#define FIELD_MORE_OF(MEMBER, FIELDS, ...)                                      \
	{                                                                       \
		.key = "", .kind = FIELD_ALSO, .offset = offsetof(ROW, MEMBER), \
		.fields = (FIELDS), ##__VA_ARGS__                               \
	}
#define FIELD_MORE(FIELDS, ...) /* of the same row */                            \
	{                                                                        \
		.key = "", .kind = FIELD_ALSO, .fields = (FIELDS), ##__VA_ARGS__ \
	}

#define FIELD_MORE_AT(POINTER, FIELDS,                                                   \
		      ...) /* of a struct that the row points to; NULL = none of them */ \
	{                                                                                \
		.key = "", .kind = FIELD_ALSO, .via = 1 + offsetof(ROW, POINTER),        \
		.fields = (FIELDS), ##__VA_ARGS__                                        \
	}

#define FIELD_END           \
	{                   \
		.key = NULL \
	} /* of a table */

/* Writes the members of an object; with its braces an element of a list, or a member. */
void fields_put(struct emit *json, const struct field *fields, const void *row);
void fields_put_row(struct emit *json, const struct field *fields, const void *row);
void fields_put_object(struct emit *json, const char *key, const struct field *fields,
		       const void *row);

/* An element of a list that itself has lists which code writes. */
struct fields_part {
	const struct field *next; /* at first its table */
	const char *list; /* the list whose elements come next; NULL = it is not begun, or ended */
};

/*
 * Writes the element up to the list of that key, whose elements come next, or to its end (NULL). @row: what is
 * not written yet must be there; a list that is passed is written as it is.
 */
void fields_put_part(struct emit *json, struct fields_part *part, const void *row,
		     const char *list);

/*
 * Fills the members of a row from an object that another program wrote, or NULL. What is missing or of another
 * type is 0, false, NULL, NAN or not known; a number that is negative or too large is 0, and a name that is not
 * ours UINT32_MAX. Texts live as long as the object; what pointers point to is in the pool (NULL: those fields
 * are not read). Fields of a struct that the row has a pointer to (FIELD_VIA) and EACH are not read. 0 or -ENOMEM.
 */
int fields_take(const struct json_t *object, const struct field *fields, void *row,
		struct pool *pool);

/* The JSON schema of an object with these members: its own members, without the braces; and parts of it. */
void fields_put_schema(struct emit *json, const struct field *fields);
void fields_put_required(struct emit *json,
			 const struct field *fields); /* elements of "required" */
void fields_put_properties(struct emit *json,
			   const struct field *fields); /* members of "properties" */

/* An object with a row for each type of memory; without fields a number. */
void fields_put_by_type(struct emit *json, const char *key, const struct field *fields,
			const void *rows, size_t size);

/* Some fields of a row, in the order of a list of keys with commas in between. */
struct fields_view {
	const struct field *fields[FIELDS_MAX];
	struct table_column columns[FIELDS_MAX];
	size_t count;
};

/* Each key must be in the table. */
void fields_choose(struct fields_view *view, const struct field *fields, const char *keys);

void fields_csv_row(FILE *out, const struct fields_view *view, const void *row);

/* The next cells of @table, which was begun with the view's columns. */
void fields_table_row(struct table *table, const struct fields_view *view, const void *row);

/* One field of a table, which must have the key. */
const struct field *fields_named(const struct field *fields, const char *key);

/* What people read in its column, NULL = no value. @text has room for FIELDS_TEXT bytes. */
const char *fields_cell(const struct field *field, const void *row, char *text);

/* What rows are ordered by: a text, never NULL, if its kind is TEXT. */
union field_value {
	uint64_t number;
	const char *text;
};

union field_value fields_value(const struct field *field, const void *row);
