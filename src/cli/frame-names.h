/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the native frames that a command shows. The files are opened here and looked into by children
 * that have no rights (symbol/jail.h), one for each file: a file that was made to hurt costs its own names
 * and nothing else. Files of a living process are opened below its root; one that is not the file that was
 * loaded, by its build id, is not read.
 */

#include <stdint.h>

#include "core/namer.h"

struct frame_names;

/* 0 or a negative errno. No child is started before the first question. */
int frame_names_new(struct frame_names **ret_naming);
struct frame_names *frame_names_free(struct frame_names *naming);

/* There is a time for all questions together; from now on it begins anew. */
void frame_names_renew(struct frame_names *naming);

/* What a request takes; stays the naming's. */
struct namer *frame_names_namer(struct frame_names *naming);

/* How often a child was asked. */
uint64_t frame_names_questions(const struct frame_names *naming);
