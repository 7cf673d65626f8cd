/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Private memory straight from the kernel: an application's malloc may be replaced, instrumented or in
 * the middle of something when it calls us. Comes zeroed, is touched only as it is used, and is not
 * there in a forked child (which makes its own).
 */

#include <stddef.h>

/* NULL if there is none to be had. errno stays as it was. */
void *private_map(size_t length);

void private_unmap(void *memory, size_t length);
