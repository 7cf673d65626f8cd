/* SPDX-License-Identifier: Apache-2.0 */

/* A linear list: machines have few devices. */

#include "daemon/registry/peaks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "model/snapshot.h"

struct peaks_device {
	uint64_t unique_id;
	uint32_t device;
	bool is_present; /* the driver has or had it */
	uint64_t seen_ns;
	uint64_t bytes[BOOK_TYPES];
};

void peaks_init(struct peaks *peaks)
{
	*peaks = (struct peaks){0};
	(void)pthread_mutex_init(&peaks->lock, NULL); /* cannot fail on Linux */
}

void peaks_deinit(struct peaks *peaks)
{
	free(peaks->devices);
	pthread_mutex_destroy(&peaks->lock);
}

static struct peaks_device *peaks_find(const struct peaks *peaks, uint64_t unique_id,
				       uint32_t number)
{
	for (size_t i = 0; i < peaks->count; i++) {
		struct peaks_device *device = &peaks->devices[i];

		if (device->unique_id == unique_id && (unique_id || device->device == number))
			return device;
	}
	return NULL;
}

/*
 * Room for one more device. Programs can make up any number of ids, so those that the driver has
 * get room of their own; in either the one that was not seen for longest makes room.
 */
static struct peaks_device *peaks_room(struct peaks *peaks, bool is_present, uint64_t now_ns)
{
	size_t max = is_present ? SNAPSHOT_CARDS_MAX : PEAKS_MAX - SNAPSHOT_CARDS_MAX, count = 0;
	struct peaks_device *devices, *oldest = NULL;

	for (size_t i = 0; i < peaks->count; i++) {
		struct peaks_device *device = &peaks->devices[i];

		if (device->is_present != is_present)
			continue;
		count++;
		if (!oldest || device->seen_ns < oldest->seen_ns)
			oldest = device;
	}
	if (count >= max)
		return oldest->seen_ns + PEAKS_KEEP_NS < now_ns ? oldest : NULL;
	devices = array_grow(peaks->devices, &peaks->capacity, peaks->count + 1, sizeof(*devices));
	if (!devices)
		return NULL;
	peaks->devices = devices;
	return &devices[peaks->count++];
}

static bool peaks_is_only(const struct snapshot *snapshot, uint32_t number)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->device_count && count < 2; i++)
		count += snapshot->devices[i].device == number;
	return count == 1;
}

static struct peaks_device *peaks_of(struct peaks *peaks, const struct snapshot *snapshot,
				     const struct snapshot_device *row)
{
	struct peaks_device *device = peaks_find(peaks, row->unique_id, row->device);
	const struct peaks_device *before;
	struct peaks_device added;

	if (!device) {
		added = (struct peaks_device){.unique_id = row->unique_id, .device = row->device};
		/* It was known by its number only, until now. */
		before = row->unique_id ? peaks_find(peaks, 0, row->device) : NULL;
		if (before && peaks_is_only(snapshot, row->device))
			memcpy(added.bytes, before->bytes, sizeof(added.bytes));
		device = peaks_room(peaks, row->present, snapshot->time_ns);
		if (!device)
			return NULL;
		*device = added;
	}
	device->is_present = device->is_present || row->present;
	device->seen_ns = snapshot->time_ns;
	return device;
}

void peaks_apply(struct peaks *peaks, struct snapshot *snapshot)
{
	pthread_mutex_lock(&peaks->lock);
	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct snapshot_device *row = &snapshot->devices[i];
		struct peaks_device *device = peaks_of(peaks, snapshot, row);

		for (uint32_t type = 0; device && type < BOOK_TYPES; type++) {
			struct snapshot_memory *memory = &row->memory[type];
			uint64_t *most = &device->bytes[type];

			*most = bits_max(*most, memory->used);
			if (!memory->peak_is_unknown)
				*most = bits_max(*most, memory->peak);
			/* A device that nobody has used reports no peak, as without a daemon. */
			if (*most == 0 && row->processes == 0)
				continue;
			memory->peak = *most;
			memory->peak_is_unknown = false;
		}
	}
	pthread_mutex_unlock(&peaks->lock);
}
