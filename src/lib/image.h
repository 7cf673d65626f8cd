/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a file that is loaded says of itself, by its headers in memory: its build id, its names, which others
 * it needs. The loader has believed all of it before; what is not in memory is not looked at.
 */

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct book_module;

/* The least there is of a file in memory: nothing else is known to be there without its headers. */
#define IMAGE_PAGE 4096u

/* Where its first page begins. */
uintptr_t image_start(const struct dl_phdr_info *info);

/* Copies the build id, if there is one, to @module. Return: where it lies; NULL = there is none. */
const void *image_build_id(const struct dl_phdr_info *info, struct book_module *module);

/* The table by which it was linked. */
struct image_links {
	const ElfW(Dyn) * entries;
	size_t count;
	const char *strings;
	size_t strings_size;
	bool is_nodelete; /* it says that it is never to be unloaded */
};

/* False = it has none, or not all of it can be read. */
bool image_links(const struct dl_phdr_info *info, struct image_links *ret_links);

/* The name in an entry, without folders; NULL = that is not text. */
const char *image_name(const struct image_links *links, const ElfW(Dyn) * entry);

/* A path without its folders. */
const char *image_base(const char *path);
