/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The functions in an ELF file's symbol table, in order of address. It is all there is for what was
 * built without debug information, and it is read only when that has no answer.
 */

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#define FUNCTIONS_MAX (UINT32_C(1) << 23) /* more are not read: 192 MiB of list */

struct functions_entry {
	uint64_t address;
	uint64_t size;
	uint32_t name;    /* offset in the table of strings */
	uint16_t rank;    /* of several at one address the largest is the one to name */
	uint16_t guessed; /* its size: it reaches to the next, at most to the end of its section */
};

struct functions {
	Elf *elf;       /* the caller's */
	size_t strings; /* number of the section */
	struct functions_entry *list;
	size_t count;
};

/* 0, -ENOENT if the file has no table of symbols, or -ENOMEM. @elf must stay. */
int functions_init(struct functions *functions, Elf *elf);
void functions_deinit(struct functions *functions);

/* The name of the function that @address is in, NULL if there is none; lives as long as @elf. */
const char *functions_find(const struct functions *functions, uint64_t address);
