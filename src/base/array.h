/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Arrays that grow by doubling. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Makes room for @needed elements of @size bytes. Return: the array, which may have moved, or NULL,
 * and then the old one is unchanged.
 */
static inline void *array_grow(void *array, size_t *capacity, size_t needed, size_t size)
{
	/* Of large elements there is often only one. */
	size_t more = *capacity ? *capacity : size > 256 ? 1 : 16;
	void *grown;

	if (needed <= *capacity)
		return array;
	while (more < needed) {
		if (more > SIZE_MAX / 2)
			return NULL;
		more *= 2;
	}
	grown = reallocarray(array, more, size);
	if (grown)
		*capacity = more;
	return grown;
}
