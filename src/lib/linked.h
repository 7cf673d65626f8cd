/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How this library came into the process: as libttmem.so, or as libttmem.a inside of a program or of another
 * library. Which code is ours depends on it, and whether there is a loader that can be asked for anything.
 *
 * Of libttmem.so all is ours. In libttmem.a (src/lib/archive.sh makes it) all our code lies in one section,
 * and the linker says where that begins and ends; without such a section it says that there is none. So both
 * are made of the same objects.
 */

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* The code of this library: whatever is called by it returns above low and not above high. */
struct linked_code {
	uintptr_t low;
	uintptr_t high;
};

struct linked_code linked_code(void);

/* From first to last byte of an image by its own headers. */
struct linked_code linked_image(const ElfW(Ehdr) * image);

/* Whether all from @low up to @high is code of an image, so that it can be read. */
bool linked_is_code(const ElfW(Ehdr) * image, uintptr_t low, uintptr_t high);

/*
 * Whether the program was linked statically, with libttmem.a. Then there is no loader, and nothing is ever
 * loaded: files that a static libc loads all the same bring a second libc, and are not looked at.
 */
bool linked_is_static(void);

/* The one file of such a program, as dl_iterate_phdr() would tell it. */
void linked_program(struct dl_phdr_info *ret_info);

/* As dlopen(), for this library alone, dlsym() and dladdr(); nothing and false where there is no loader. */
void *linked_load(const char *name);
void *linked_symbol(void *library, const char *name);
bool linked_place(const void *address, Dl_info *ret_info);

/* A file that is loaded, from its first page to its end. */
struct linked_file {
	uintptr_t low;
	uintptr_t high;
	const struct link_map *map; /* the loader's record of it */
	const void *tables;         /* for unwinding */
};

/*
 * The one that a call returns into at @address, without any lock, as libc has it from 2.35 on
 * (_dl_find_object()). Neither the file nor the record is held: it is for files that cannot go.
 */
bool linked_find(uintptr_t address, struct linked_file *ret_file);
bool linked_can_find(void);

/* What its record says: how far it lies from the addresses in it, and its path; empty = the program. */
uintptr_t linked_base(const struct linked_file *file);
const char *linked_path(const struct linked_file *file);

/* The loader's name of a file, cut to @size, where nobody frees it. NULL is "". Return: its length. */
size_t linked_copy(const char *name, char *ret_copy, size_t size);
