/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the headers of a loaded file say: its build id, its names, which other files it needs. The
 * loader has already trusted them; parts that are not in memory are not read.
 */

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct book_module;

/* The smallest part of a file in memory: without its headers nothing more is known to be mapped. */
#define IMAGE_PAGE 4096u

/* The address of its first page. */
uintptr_t image_start(const struct dl_phdr_info *info);

/* Copies the build id, if there is one, to @module. Return: its address; NULL = there is none. */
const void *image_build_id(const struct dl_phdr_info *info, struct book_module *module);

/* The dynamic section. */
struct image_links {
	const ElfW(Dyn) * entries;
	size_t count;
	const char *strings;
	size_t strings_size;
	bool is_nodelete; /* it must never be unloaded (DF_1_NODELETE) */
};

/* False = it has none, or part of it cannot be read. */
bool image_links(const struct dl_phdr_info *info, struct image_links *ret_links);

/* The name in an entry, without folders; NULL = not a valid string. */
const char *image_name(const struct image_links *links, const ElfW(Dyn) * entry);

/* A path without its folders. */
const char *image_base(const char *path);
