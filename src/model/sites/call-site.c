/* SPDX-License-Identifier: Apache-2.0 */

/* Keys, order and sums of call sites. */

#include "model/sites/call-site.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "model/merge.h"
#include "model/sites/name-stem.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "model/types.h"

struct call_site call_site_of(const struct snapshot_buffer *buffer)
{
	return (struct call_site){
		.type = buffer->type,
		.stack = buffer->stack,
		.name = buffer->name,
		.phase = buffer->name ? NULL : buffer->phase,
		.bytes = snapshot_buffer_bytes(buffer),
		.buffers = buffer->alike ? buffer->alike : 1,
		.oldest_ns = buffer->born_ns,
	};
}

int call_site_compare(const struct call_site *a, const struct call_site *b)
{
	int r = bits_compare(a->process, b->process);

	if (r == 0)
		r = bits_compare(a->thread, b->thread);
	if (r == 0)
		r = bits_compare(a->type, b->type);
	if (r == 0)
		r = bits_compare((uintptr_t)a->stack, (uintptr_t)b->stack);
	if (r || a->stack)
		return r;
	r = name_stem_compare(a->name, b->name);
	return r ? r : bits_compare((uintptr_t)a->phase, (uintptr_t)b->phase);
}

int call_site_compare_names(const void *left, const void *right)
{
	const struct call_site *a = left, *b = right;
	int r = call_site_compare(a, b);

	if (r == 0)
		r = bits_compare((uintptr_t)a->name, (uintptr_t)b->name);
	return r ? r : bits_compare((uintptr_t)a->phase, (uintptr_t)b->phase);
}

static int call_site_compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

int call_site_compare_sizes(const void *left, const void *right)
{
	const struct call_site *a = left, *b = right;
	int r = bits_compare(b->bytes, a->bytes);

	if (r == 0)
		r = bits_compare(b->buffers, a->buffers);
	if (r == 0)
		r = call_site_compare_text(a->name, b->name);
	if (r == 0)
		r = call_site_compare_text(a->phase, b->phase);
	if (r == 0)
		r = stack_compare(a->stack, b->stack);
	return r ? r : call_site_compare_names(left, right);
}

void call_site_add(struct call_site *sum, const struct call_site *more)
{
	sum->bytes = merge_add(sum->bytes, more->bytes);
	sum->buffers += more->buffers;
	sum->oldest_ns = bits_min(sum->oldest_ns, more->oldest_ns);
	for (uint32_t age = 0; age < CALL_SITE_AGES; age++)
		sum->ages[age] += more->ages[age];
}

const char *call_site_names(const struct call_site *site, char *buffer, size_t size)
{
	buffer[0] = '\0';
	if (site->names > 1 && site->stack)
		snprintf(buffer, size, "%zu names", site->names);
	else if (site->names > 1)
		name_stem(site->name, buffer, size);
	else if (site->name)
		snprintf(buffer, size, "%s", site->name);
	else if (site->phase)
		snprintf(buffer, size, "in %s", site->phase);
	return buffer;
}

const char *call_site_label(const struct call_site *site, char *buffer, size_t size)
{
	char names[CALL_SITE_NAMES];

	call_site_names(site, names, sizeof(names));
	snprintf(buffer, size, "%s%s%s", types_name(site->type), *names ? " " : "", names);
	return buffer;
}
