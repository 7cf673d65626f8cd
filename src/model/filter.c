/* SPDX-License-Identifier: Apache-2.0 */

/* Selecting processes, devices and types. */

#include "model/filter.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "book/format/layout.h"

bool filter_wants_pid(const struct filter *filter, uint32_t pid)
{
	return !filter->pid || filter->pid == pid;
}

bool filter_wants_type(const struct filter *filter, uint32_t type)
{
	return !filter->has_type || filter->type == type;
}

bool filter_wants_user(const struct filter *filter, const char *name, uint32_t id)
{
	uint64_t number;

	return !filter->user || strcmp(filter->user, name) == 0 ||
	       (text_parse_u64(filter->user, &number) == 0 && number == id);
}

bool filter_wants_device(const struct filter *filter, uint32_t device, uint64_t unique_id)
{
	for (uint32_t i = 0; i < filter->device_count; i++) {
		const struct filter_device *wanted = &filter->devices[i];

		if (wanted->value == (wanted->by_id ? unique_id : device))
			return true;
	}
	return filter->device_count == 0;
}

int filter_add_device(struct filter *filter, const char *text)
{
	struct filter_device device = {.by_id = strncasecmp(text, "0x", 2) == 0};
	int r;

	if (filter->device_count >= FILTER_DEVICES_MAX)
		return -ENOSPC;
	r = text_parse_u64(text, &device.value);
	if (r < 0)
		return -EINVAL;
	if (device.by_id ? device.value == 0 : device.value >= BOOK_DEVICES)
		return -EINVAL;
	filter->devices[filter->device_count++] = device;
	return 0;
}
