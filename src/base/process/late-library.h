/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Libraries that few runs need. One that is linked is loaded at every start, with everything that it
 * needs itself: with libcurl that took ten times as long as all the rest.
 */

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first of @count names that can be loaded, NULL if there is none. It is never unloaded: it may
 * have threads and exit handlers of its own.
 */
static inline void *late_library_open(const char *const *names, size_t count)
{
	void *library = NULL;

	for (size_t i = 0; i < count && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	return library;
}

/* A function of the library under its own type, NULL if it has none of this name. */
#define LATE_LIBRARY_CALL(library, function) \
	((__typeof__(function) *)(uintptr_t)dlsym((library), #function))
