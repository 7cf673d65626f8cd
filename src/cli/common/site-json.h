/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Frames and call sites of documents, read and written again. */

#include <jansson.h>

#include "model/sites/site.h"

/* An element of "stack", a site, or a member of one. Texts are the document's. */
struct frame site_json_frame(const json_t *row);

/* A list of frames. NULL = none, or no memory. */
const struct stack *site_json_stack(struct pool *texts, const json_t *stack);

/* A "site"; of an older document without what that does not have. Without one its rank is 0. */
struct site site_json_read(const json_t *site);

/* The same as a document has it; NULL: no memory. */
json_t *site_json_new(const struct site *site);
