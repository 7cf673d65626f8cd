/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How this library came into the process: as libttmem.so, or as libttmem.a inside a program or
 * another library. This decides which code is ours and whether there is a loader that can be
 * called.
 *
 * All of libttmem.so is ours. In libttmem.a (made by src/lib/archive.sh) all our code is in one
 * section, whose start and end the linker provides; without that section those symbols are NULL. So
 * both are made from the same objects.
 */

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* The code of this library: calls made by it return above low and not above high. */
struct linked_code {
	uintptr_t low;
	uintptr_t high;
};

struct linked_code linked_code(void);

/* From the first to the last byte of an image according to its headers. */
struct linked_code linked_image(const ElfW(Ehdr) * image);

/*
 * Whether the program was linked statically, with libttmem.a. Then there is no loader, and files
 * are never loaded: those that a static libc loads nevertheless bring a second libc, and are
 * ignored.
 */
bool linked_is_static(void);

/* The one file of such a program, as dl_iterate_phdr() would report it. */
void linked_program(struct dl_phdr_info *ret_info);

/* Like dlopen(), dlsym() and dladdr(); NULL and false where there is no loader. */
void *linked_open(const char *path, int flags);
void *linked_symbol(void *library, const char *name);
bool linked_place(const void *address, Dl_info *ret_info);

/* A loaded file, from its first page to its end. */
struct linked_file {
	uintptr_t low;
	uintptr_t high;
	const struct link_map *map; /* the loader's record of it; NULL = there is no loader */
	const void *tables;         /* unwind tables */
};

/*
 * The file into which a call returns at @address, found without a lock by _dl_find_object() (glibc
 * 2.35 or newer). Holds neither the file nor the record: only for files that cannot be unloaded.
 */
bool linked_find(uintptr_t address, struct linked_file *ret_file);
bool linked_can_find(void);

/* From its record: its load bias, and its path; empty = the program. */
uintptr_t linked_base(const struct linked_file *file);
const char *linked_path(const struct linked_file *file);

/* Copies a name that the loader may free, cut to @size. NULL is "". Return: its length. */
size_t linked_copy(const char *name, char *ret_copy, size_t size);
