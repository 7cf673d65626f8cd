/* SPDX-License-Identifier: Apache-2.0 */

/* The names of doors, as documents and metrics have them. */

#include "model/health.h"

#include <assert.h>

const char *health_door_name(enum health_door_id id)
{
	static const char *const names[HEALTH_DOORS] = {
		[HEALTH_DOOR_NATIVE] = "native",   [HEALTH_DOOR_LEGACY] = "old_clients",
		[HEALTH_DOOR_HTTP] = "http",       [HEALTH_DOOR_TOKEN] = "token",
		[HEALTH_DOOR_JOURNAL] = "journal", [HEALTH_DOOR_HISTORY] = "history",
		[HEALTH_DOOR_LOG] = "log",
	};

	assert(id < HEALTH_DOORS);
	return names[id];
}

bool health_is_closed(const struct health_door *door)
{
	return door->is_wanted && !door->is_open;
}
