/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Everything that processes do not tell themselves: the driver's files and tt-metal's regions. There is nothing
 * to keep between two looks, so this source is a function; it may be called by several threads at a time.
 */

struct snapshot;
struct source_request;

/* Adds to a snapshot that has its books already; not to a page. 0 or a negative errno. */
int machine_collect(const struct source_request *request, struct snapshot *snapshot);
