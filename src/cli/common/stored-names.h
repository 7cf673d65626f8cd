/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for frames of the daemon's records. The daemon asks no server for debug information, so a
 * program whose file was gone left addresses; with their build ids whoever reads the record can
 * still name them: from debug information on this machine, or from the servers of DEBUGINFOD_URLS.
 */

#include <jansson.h>
#include <stdbool.h>

struct stored_names;

/* NULL: no memory. Nothing is started before a frame needs a name. */
struct stored_names *stored_names_new(void);
struct stored_names *stored_names_free(struct stored_names *names);

/*
 * Names the frames in all stacks of a document, and chooses the frames that stand for these stacks
 * again. Returns whether anything has changed.
 */
bool stored_names_fill(struct stored_names *names, json_t *document);
