/* SPDX-License-Identifier: Apache-2.0 */

/* Which devices an object of tt-metal stands for; a number is asked for in two ways if there are two. */

#include "metal/metal-target.h"

#include <stdlib.h>

#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-refuse.h"

static struct metal_target *metal_targets;

static struct metal_target *metal_target_new(const void *device, size_t count)
{
	struct metal_target *target = calloc(1, sizeof(*target) + count * sizeof(target->ids[0]));

	if (target) {
		target->device = device;
		target->count = (uint32_t)count;
	}
	return target;
}

/* Of a Device. False: refused. */
static bool metal_target_id(const struct metal_names *names, const void *device, uint32_t *ret_id)
{
	if (!names->has_ids || *(const void *const *)device != names->device_table) {
		metal_refuse("%s: the number of a device cannot be told", names->library);
		return false;
	}
	*ret_id = metal_names_id(device);
	return !metal_refused();
}

static size_t metal_target_length(const struct metal_vector *vector, size_t size)
{
	return (size_t)((const char *)vector->end - (const char *)vector->begin) / size;
}

/* The numbers by get_device_ids(), and by each device's own id(), as far as there are both. */
static bool metal_target_fill(const struct metal_names *names, const struct metal_vector *devices,
			      const struct metal_vector *ids, struct metal_target *target)
{
	const void *const *device = devices->begin;
	const int32_t *id = ids->begin;

	if (names->mesh_ids && metal_target_length(ids, sizeof(*id)) != target->count) {
		metal_refuse("%s: a mesh has %u devices and %zu numbers", names->library,
			     target->count, metal_target_length(ids, sizeof(*id)));
		return false;
	}
	for (uint32_t i = 0; i < target->count; i++) {
		if (names->mesh_ids && !names->has_ids) {
			target->ids[i] = (uint32_t)id[i];
			continue;
		}
		if (!metal_target_id(names, device[i], &target->ids[i]))
			return false;
		if (names->mesh_ids && target->ids[i] != (uint32_t)id[i]) {
			metal_refuse(
				"%s: a device has number %u by id() and %d by get_device_ids()",
				names->library, target->ids[i], id[i]);
			return false;
		}
	}
	return true;
}

static struct metal_target *metal_target_mesh(const struct metal_names *names, const void *mesh)
{
	struct metal_vector devices = names->mesh_devices(mesh), ids = {0};
	struct metal_target *target;

	if (names->mesh_ids)
		ids = names->mesh_ids(mesh);
	target = metal_target_new(mesh, metal_target_length(&devices, sizeof(void *)));
	if (target && !metal_target_fill(names, &devices, &ids, target)) {
		free(target);
		target = NULL;
	}
	names->operator_delete(devices.begin);
	names->operator_delete(ids.begin);
	return target;
}

static struct metal_target *metal_target_ask(const struct metal_names *names, const void *device)
{
	struct metal_target *target;

	if (*(const void *const *)device == names->mesh_table)
		return metal_target_mesh(names, device);
	target = metal_target_new(device, 1);
	if (target && !metal_target_id(names, device, &target->ids[0])) {
		free(target);
		return NULL;
	}
	return target;
}

struct metal_target *metal_target_known(const void *device)
{
	for (struct metal_target *target = metal_targets; target; target = target->next) {
		if (target->device == device && target->is_current) {
			target->references++;
			return target;
		}
	}
	return NULL;
}

struct metal_target *metal_target_get(const struct metal_names *names, const void *device)
{
	struct metal_target *target, *fresh;

	metal_lock();
	target = metal_target_known(device);
	metal_unlock();
	if (target)
		return target;
	fresh = metal_target_ask(names, device);
	if (!fresh)
		return NULL;
	metal_lock();
	target = metal_target_known(device); /* another thread may have asked meanwhile */
	if (target) {
		free(fresh);
	} else {
		target = fresh;
		target->references = 1;
		/* Not kept if nothing would say that it is old. */
		target->is_current = names->clear && names->mesh_close;
		target->next = metal_targets;
		metal_targets = target;
	}
	metal_unlock();
	return target;
}

static void metal_target_drop(struct metal_target *target)
{
	struct metal_target **link = &metal_targets;

	if (target->references || target->is_current)
		return;
	while (*link && *link != target)
		link = &(*link)->next;
	if (*link)
		*link = target->next;
	free(target);
}

bool metal_target_shares(const struct metal_target *a, const struct metal_target *b)
{
	for (uint32_t i = 0; i < a->count; i++) {
		for (uint32_t k = 0; k < b->count; k++) {
			if (a->ids[i] == b->ids[k])
				return true;
		}
	}
	return false;
}

void metal_target_put(struct metal_target *target)
{
	target->references--;
	metal_target_drop(target);
}

void metal_target_expire(void)
{
	struct metal_target *next;

	for (struct metal_target *target = metal_targets; target; target = next) {
		next = target->next;
		target->is_current = false;
		metal_target_drop(target);
	}
}

void metal_target_forget(void)
{
	metal_targets = NULL; /* the parent's; a child has little use for them */
}
