/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files of the dashboard (or of the plain page, where it could not be built), part of the program:
 * tools/build/dashboard.py makes the table. They are the same for everybody and never change while the
 * daemon runs, so a browser that has one is told so instead of getting it again.
 */

#include <stdbool.h>
#include <stddef.h>

struct asset {
	const char *path; /* "/", "/assets/index-1f2e3d.js" */
	const char *type; /* of its content */
	const char *etag; /* in quotes: a digest of what it holds */
	bool is_page;     /* for a browser to show */
	bool is_named;    /* by its content: under this name there will never be anything else */
	const unsigned char *plain, *packed;
	size_t plain_size, packed_size;
};

/* Made by the build. */
extern const struct asset assets_table[];
extern const size_t assets_count;

/* NULL: there is no such file. */
const struct asset *assets_find(const char *path);

/* Whether an If-None-Match header (NULL = none) says that the client has it. */
bool assets_is_known(const struct asset *asset, const char *if_none_match);
