/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Converts a namer's request into one for the symbolizer, and the answer into names. */

#include <stdbool.h>
#include <stddef.h>

#include "model/sites/namer.h"
#include "symbol/symbolizer.h"

_Static_assert(NAMER_NAMES_MAX >= RESOLVE_FRAMES_MAX, "room for all names");

/* The module borrows the place's path. Return: whether the place is valid. */
bool symbolizer_namer_module(const struct namer_place *place, struct symbolizer_module *ret_module);

/* The names point into the answer. Return: how many. */
size_t symbolizer_namer_names(const struct symbolizer_answer *answer, struct namer_name *ret_names,
			      size_t max);
