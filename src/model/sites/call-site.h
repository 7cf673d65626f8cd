/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A call site with the sums of its buffers. What identifies it is their type and their stack. Without a stack
 * it is their name without its numbers (model/sites/name-stem.h), and without a name the phase in which they
 * were allocated. Texts are compared by pointer: they are those of one snapshot or of one pool.
 */

#include <stddef.h>
#include <stdint.h>

struct snapshot_buffer;
struct stack;

#define CALL_SITE_AGES 4u

/* Fields that are not part of the key are 0 or NULL. */
struct call_site {
	uint32_t process; /* index; set for threads, or if sites are per process */
	uint32_t thread;
	uint32_t type;
	const struct stack *stack;
	const char *name;  /* with a stack: the one with the most bytes */
	const char *phase; /* only without a name */
	uint64_t bytes;
	uint64_t buffers;
	uint64_t oldest_ns;
	/* Allocated in each quarter of their process's life: leaked buffers are of all ages. */
	uint64_t ages[CALL_SITE_AGES];
	size_t first_name, names; /* its part of a list of names */
};

/* The site of a buffer in any process, with that buffer alone. */
struct call_site call_site_of(const struct snapshot_buffer *buffer);

/* The order of keys: 0 for equal ones. */
int call_site_compare(const struct call_site *a, const struct call_site *b);

/* For qsort(): by key, and by name within a site. */
int call_site_compare_names(const void *left, const void *right);

/* For qsort(): largest first; then by texts, so that the same state always has the same order. */
int call_site_compare_sizes(const void *left, const void *right);

/* Adds the sums; they saturate. */
void call_site_add(struct call_site *sum, const struct call_site *more);

/* "NAME", "3 names", without a stack their stem; "in PHASE" without a name, else "". */
#define CALL_SITE_NAMES 4096u /* room for the longest */
const char *call_site_names(const struct call_site *site, char *buffer, size_t size);

/* What a site is called without its stack: its type and its names, for people. */
const char *call_site_label(const struct call_site *site, char *buffer, size_t size);
