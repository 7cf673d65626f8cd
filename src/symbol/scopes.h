/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds the functions that contain an address, in a list of a unit's functions that is built once.
 * libdw can find them too, but reads the whole unit for each address, and a C++ unit has tens of
 * thousands of entries.
 */

#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>

#define SCOPES_UNITS 64u                         /* units whose lists are kept */
#define SCOPES_FUNCTIONS_MAX (UINT32_C(1) << 20) /* per unit; others are not found */
#define SCOPES_STEPS_MAX (UINT32_C(1) << 23)     /* entries to read for one list */
#define SCOPES_DEPTH_MAX 64u

struct scopes_function {
	uint64_t low, high; /* a function may have several ranges */
	Dwarf_Off entry;
};

struct scopes_unit {
	Dwarf *dwarf; /* NULL = this slot is free */
	Dwarf_Off entry;
	struct scopes_function *list; /* sorted by address */
	size_t count, capacity;
};

struct scopes {
	struct scopes_unit units[SCOPES_UNITS];
	size_t next;
};

void scopes_deinit(struct scopes *scopes);

/*
 * The function that contains @address and those inlined there, innermost first. Beyond @max the
 * outermost are dropped. Return: how many.
 */
size_t scopes_find(struct scopes *scopes, Dwarf_Die *unit, uint64_t address,
		   Dwarf_Die *ret_functions, size_t max);
