/* SPDX-License-Identifier: Apache-2.0 */

/* A linear list: machines have few devices. */

#include "daemon/registry/peaks.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bits.h"
#include "model/snapshot.h"

struct peaks_device {
	uint64_t unique_id;
	uint32_t device;
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

static struct peaks_device *peaks_of(struct peaks *peaks, const struct snapshot_device *row)
{
	struct peaks_device *devices;

	for (size_t i = 0; i < peaks->count; i++) {
		struct peaks_device *device = &peaks->devices[i];

		if (device->unique_id == row->unique_id &&
		    (device->unique_id || device->device == row->device))
			return device;
	}
	if (peaks->count >= PEAKS_MAX)
		return NULL;
	devices = array_grow(peaks->devices, &peaks->capacity, peaks->count + 1, sizeof(*devices));
	if (!devices)
		return NULL;
	peaks->devices = devices;
	devices[peaks->count] = (struct peaks_device){
		.unique_id = row->unique_id,
		.device = row->device,
	};
	return &devices[peaks->count++];
}

void peaks_apply(struct peaks *peaks, struct snapshot *snapshot)
{
	pthread_mutex_lock(&peaks->lock);
	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct snapshot_device *row = &snapshot->devices[i];
		struct peaks_device *device = peaks_of(peaks, row);

		for (uint32_t type = 0; device && type < BOOK_TYPES; type++) {
			struct snapshot_device_memory *memory = &row->memory[type];
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
