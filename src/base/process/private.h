/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Private memory directly from the kernel: an application's malloc may be replaced, instrumented or
 * being interrupted when it calls us. The memory is zeroed, takes pages only as it is used, and
 * does not exist in a forked child (which makes its own), nor in a core dump.
 */

#include <stddef.h>

/* NULL if memory has run out, or the process is frozen (base/process/freeze.h). Preserves errno. */
void *private_map(size_t length);

void private_unmap(void *memory, size_t length);
