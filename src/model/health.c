/* SPDX-License-Identifier: Apache-2.0 */

/* Names, as documents and metrics have them. */

#include "model/health.h"

const char *health_status(uint32_t is_well)
{
	return is_well == 0 ? "degraded" : is_well == 1 ? "ok" : NULL;
}

const char *health_door_name(uint32_t id)
{
	static const char *const names[HEALTH_DOORS] = {
		[HEALTH_DOOR_NATIVE] = "native",   [HEALTH_DOOR_LEGACY] = "old_clients",
		[HEALTH_DOOR_HTTP] = "http",       [HEALTH_DOOR_TOKEN] = "token",
		[HEALTH_DOOR_JOURNAL] = "journal", [HEALTH_DOOR_HISTORY] = "history",
		[HEALTH_DOOR_LOG] = "log",
	};

	return id < HEALTH_DOORS ? names[id] : NULL;
}

bool health_is_closed(const struct health_door *door)
{
	return door->is_wanted && !door->is_open;
}
