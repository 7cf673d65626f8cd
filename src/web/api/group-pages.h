/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Groups any number of buffers: pages are read and added up one by one, so only the groups are held
 * in memory. The result is exact if nothing changes meanwhile; otherwise each page is from a
 * different moment, and the document says so.
 */

#include <stddef.h>

#include "model/sites/group.h"

#define GROUP_PAGES_PAGE 65536u /* buffers read at a time */
#define GROUP_PAGES_GROUPS_MAX 100000u
#define GROUP_PAGES_PAGES_MAX 400u /* more than any machine has: ends an endless walk */

struct emit;
struct snapshot;
struct snapshot_request;
struct web_provider;

/*
 * Calls @page for each page of the buffers, in turn. @like: which of them, for whom, and of which
 * moment. 0; 1: there are more pages than are read; or a negative errno, also of @page.
 */
int group_pages_each(const struct web_provider *provider, const struct snapshot_request *like,
		     int (*page)(void *context, const struct snapshot *page), void *context);

/* Writes the document with the first @limit groups. 0 or a negative errno. */
int group_pages_write(const struct web_provider *provider, const struct snapshot_request *like,
		      enum group_kind kind, size_t limit, struct emit *json);
