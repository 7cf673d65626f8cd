/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The functions in an ELF file's symbol table, sorted by address. A file built without debug
 * information has nothing else, so the table is read only if the debug information has no answer.
 */

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#define FUNCTIONS_MAX (UINT32_C(1) << 23) /* further ones are not read: a list of 192 MiB */

struct functions_entry {
	uint64_t address;
	uint64_t size;
	uint32_t name;    /* offset in the string table */
	uint16_t rank;    /* of several functions at one address, the highest rank gives the name */
	uint16_t guessed; /* no size: ends at the next function or at the end of the section */
};

struct functions {
	Elf *elf;       /* the caller's */
	size_t strings; /* index of the section */
	struct functions_entry *list;
	size_t count;
};

/* 0, -ENOENT if the file has no symbol table, or -ENOMEM. @elf must outlive @functions. */
int functions_init(struct functions *functions, Elf *elf);
void functions_deinit(struct functions *functions);

/* The name of the function that contains @address, or NULL; valid as long as @elf. */
const char *functions_find(const struct functions *functions, uint64_t address);
