/* SPDX-License-Identifier: Apache-2.0 */

/* In place of src/legacy/commands, where that is not built. */

#include "cli/common/legacy-parts.h"

#include <stddef.h>

const struct command *const legacy_parts_commands[] = {NULL};
legacy_parts_report *const legacy_parts_allocate = NULL;
