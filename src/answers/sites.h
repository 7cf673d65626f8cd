/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A call site with its sums, as documents list them: of leaks, of failed allocations, of what grows. */

#include <stddef.h>
#include <stdint.h>

#include "answers/call-stack.h"
#include "model/sites/call-site.h"

/* What the buffers of a call site are called. */
struct site_names {
	const char *name;              /* that all have; NULL = none, or several */
	uint64_t count;                /* how many names there are; 0 = not known */
	const struct call_site *names; /* the largest; their other members are not used */
	size_t listed;
};

struct site_row {
	struct site_names names;
	const char *phase;
	const char *const *phases; /* of a leak: all of them */
	size_t phase_count;
	struct call_stack stack;
	uint64_t bytes, buffers, oldest_ns;
	uint32_t type;
};

extern const struct field site_names_fields[];
extern const struct field site_fields[];
extern const struct field site_leak_fields[]; /* with all phases and the oldest buffer */

/* @names: the largest @listed of @count. */
struct site_names site_names_of(const struct call_site *names, size_t listed, size_t count);
