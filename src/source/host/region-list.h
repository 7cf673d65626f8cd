/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which regions are read. Anybody may create files of such names, and as many as they like. So the
 * regions of the driver's cards come first, and of the others each owner has a share, in turn: who
 * creates more files only hides their own.
 */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;

#define REGION_FILES_MAX 256u   /* that are read */
#define REGION_OWNER_MAX 128u   /* of these, of one owner, unless they are of the driver's cards */
#define REGION_NAMES_MAX 16384u /* that are looked at */
#define REGION_NAME_MAX 64u

struct region_name {
	char text[REGION_NAME_MAX];
	uint32_t user; /* who owns the file */
	bool is_cards; /* the driver has a card with the id in the name */
	uint32_t turn; /* how many of this owner's come before it */
};

/*
 * The files to read, in order of precedence: *@ret_names, which the caller frees. @ret_left_out:
 * how many more there are. Returns how many to read, or -ENOMEM.
 */
int region_list(DIR *listing, const struct snapshot *snapshot, struct region_name **ret_names,
		size_t *ret_left_out);
