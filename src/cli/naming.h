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

struct naming;

/* 0 or a negative errno. No child is started before the first question. */
int naming_new(struct naming **ret_naming);
struct naming *naming_free(struct naming *naming);

/* There is a time for all questions together; from now on it begins anew. */
void naming_renew(struct naming *naming);

/* What a request takes; stays the naming's. */
struct namer *naming_namer(struct naming *naming);

/* How often a child was asked. */
uint64_t naming_questions(const struct naming *naming);
