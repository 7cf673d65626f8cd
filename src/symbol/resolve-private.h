/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of resolve; no one else includes this. */

#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>

#include "symbol/functions.h"
#include "symbol/resolve.h"
#include "symbol/scopes.h"

struct resolve_file {
	Elf *elf;     /* NULL = there is none */
	Dwarf *dwarf; /* NULL = it has no debug information */
	struct functions functions;
	bool functions_read; /* or tried to read */
	struct scopes scopes;
};

struct resolve {
	struct resolve_file file, debug;
	struct resolve_facts facts;
};
