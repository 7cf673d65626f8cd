/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pictures of the screen as text, for tests. */

#include "tui/grid.h"

/* Compares the grid, without trailing blanks, with the expected lines, and releases it. @expected: NULL = draw only. */
void testing_grid_is(struct grid *grid, const char *expected);
