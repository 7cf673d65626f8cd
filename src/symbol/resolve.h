/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Maps an address in an ELF file to source: function, file and line, one frame for the function and
 * one for each function inlined at that address.
 *
 * The file may be crafted, and the libraries that read it (libelf and libdw of elfutils) do not
 * expect that: they may crash or never return. So this is only called in a process that can be lost
 * at any time; see symbol/jail.h. Files are given as descriptors; nothing is opened by name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESOLVE_FILE_MAX (UINT64_C(4) << 30) /* bytes; larger files are refused */
#define RESOLVE_FRAMES_MAX 16u               /* per address; the outermost are dropped */
#define RESOLVE_TEXT_SIZE 256                /* including the NUL; longer texts are cut */
#define RESOLVE_BUILD_ID_MAX 32u             /* as in the book; 20 is usual */

struct resolve;

struct resolve_frame {
	uint32_t line;                    /* 0 = not known */
	uint32_t reserved;                /* 0 */
	char function[RESOLVE_TEXT_SIZE]; /* empty = not known; so for the next */
	char file[RESOLVE_TEXT_SIZE];
};

struct resolve_facts {
	uint32_t build_id_length; /* 0 = it has none */
	uint32_t link_crc;
	uint8_t build_id[RESOLVE_BUILD_ID_MAX];
	char link[RESOLVE_TEXT_SIZE]; /* name of a debug file; empty = none */
	bool has_debug;               /* has debug information of its own */
};

/*
 * The caller keeps @fd and @debug_fd (-1 = none), which must stay open. A debug file that belongs
 * to another file is ignored. 0; -EINVAL if @fd is not a regular file with an ELF program or
 * library; -EFBIG; or another negative errno.
 */
int resolve_new(struct resolve **ret_resolve, int fd, int debug_fd);
struct resolve *resolve_free(struct resolve *resolve);

void resolve_facts(const struct resolve *resolve, struct resolve_facts *ret_facts);

/*
 * The frames at @address, which is an address as in the file itself (as readelf shows it).
 * Innermost first. Return: the number of frames; 0 = not known.
 */
size_t resolve_find(struct resolve *resolve, uint64_t address, struct resolve_frame *ret_frames,
		    size_t max);
