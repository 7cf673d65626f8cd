/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers and names; the numbers are fixed by the book, the names by the JSON contract. */

#include "model/types.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"

static const struct {
	const char *name;
	uint32_t pool, place;
} types_table[BOOK_TYPES] = {
#define TTMEM_TYPE(number, name, cpp, fdinfo, pool, place, ...) \
	[number] = {#name, TYPES_##pool, TYPES_##place},
#include <ttmem/types.def>
};

const char *types_name(uint32_t type)
{
	return type < BOOK_TYPES ? types_table[type].name : NULL;
}

int types_parse(const char *name, uint32_t *ret_type)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (strcasecmp(name, types_table[type].name) == 0) {
			*ret_type = type;
			return 0;
		}
	}
	return -EINVAL;
}

uint32_t types_folded(uint32_t type)
{
	return type < BOOK_TYPES ? types_table[type].pool : type;
}

uint32_t types_place(uint32_t type)
{
	return type < BOOK_TYPES ? types_table[type].place : type;
}

bool types_has_banks(uint32_t type)
{
	return type < BOOK_TYPES && types_table[type].place == type;
}

const char *types_op_name(uint32_t op)
{
	static const char *const names[] = {
		[BOOK_OP_ALLOC] = "alloc",
		[BOOK_OP_REF] = "ref",
		[BOOK_OP_UNREF] = "unref",
		[BOOK_OP_FREE] = "free",
		[BOOK_OP_UNKNOWN_FREE] = "unknown_free",
		[BOOK_OP_DOUBLE_FREE] = "double_free",
		[BOOK_OP_LOST_ALLOC] = "lost_alloc",
		[BOOK_OP_OVERFLOW_FREE] = "overflow_free",
		[BOOK_OP_HOOKED] = "hooked",
		[BOOK_OP_PEAK_RESET] = "peak_reset",
		[BOOK_OP_FAILED] = "alloc_failed",
		[BOOK_OP_UNPLACED_FREE] = "unplaced_free",
	};

	return op < ARRAY_SIZE(names) ? names[op] : NULL;
}

const char *types_incident_name(uint32_t kind)
{
	static const char *const names[] = {
		[BOOK_INCIDENT_DOUBLE_FREE] = "double_free",
		[BOOK_INCIDENT_UNKNOWN_FREE] = "unknown_free",
		[BOOK_INCIDENT_SIZE_CHANGE] = "size_change",
		[BOOK_INCIDENT_ALLOC_FAILED] = "alloc_failed",
		[BOOK_INCIDENT_CLASH] = "clash",
		[BOOK_INCIDENT_TRACE_OVERLAP] = "trace_overlap",
	};

	return kind < ARRAY_SIZE(names) ? names[kind] : NULL;
}

const char *types_incident_kind(uint32_t kind)
{
	if (kind == TYPES_OVERLAP)
		return "overlap";
	if (kind == TYPES_HELD)
		return TYPES_HELD_AT_CLOSE;
	return kind == TYPES_LEAK ? "leak" : types_incident_name(kind);
}

uint32_t types_find_incident_kind(const char *name)
{
	uint32_t kind = 0;

	while (kind < TYPES_INCIDENTS && strcmp(types_incident_kind(kind), name) != 0)
		kind++;
	return kind;
}

const char *types_source_name(uint32_t source)
{
	static const char *const names[] = {
		[BOOK_SOURCE_LIBRARY] = "book",
		[BOOK_SOURCE_SOCKET] = "socket",
		[BOOK_SOURCE_KERNEL] = "kernel",
	};

	return source < ARRAY_SIZE(names) ? names[source] : NULL;
}

const char *types_kernel_sort_name(uint32_t sort)
{
	static const char *const names[] = {"application", "fabric", "dispatch"};

	return sort < ARRAY_SIZE(names) ? names[sort] : NULL;
}

const char *types_flag_name(uint32_t bit)
{
	static const char *const names[] = {"owns_data", "preallocated", "alias", "hooked"};

	return bit < ARRAY_SIZE(names) ? names[bit] : NULL;
}
