/* SPDX-License-Identifier: Apache-2.0 */

/* Valid and invalid filters. */

#include "model/filter.h"

#include <errno.h>

#include "base/testing/unit.h"
#include "model/types.h"

UNIT(an_empty_filter_wants_everything)
{
	struct filter filter = {0};

	assert(filter_wants_pid(&filter, 1) && filter_wants_type(&filter, 6));
	assert(filter_wants_device(&filter, 1023, 0));
}

UNIT(devices_by_number_and_by_id)
{
	struct filter filter = {0};

	assert(filter_add_device(&filter, "3") == 0);
	assert(filter_add_device(&filter, "0x3") == 0);
	assert(filter_wants_device(&filter, 3, 0) && filter_wants_device(&filter, 9, 3));
	assert(!filter_wants_device(&filter, 9, 0));
}

UNIT(impossible_devices_are_refused)
{
	struct filter filter = {0};

	assert(filter_add_device(&filter, "1024") == -EINVAL);
	assert(filter_add_device(&filter, "-1") == -EINVAL);
	assert(filter_add_device(&filter, "0x0") == -EINVAL);
	assert(filter_add_device(&filter, "n300") == -EINVAL);
	assert(filter_add_device(&filter, "") == -EINVAL);
	assert(filter.device_count == 0);
	for (uint32_t i = 0; i < FILTER_DEVICES_MAX; i++)
		assert(filter_add_device(&filter, "1") == 0);
	assert(filter_add_device(&filter, "1") == -ENOSPC);
}

UNIT(types_have_names)
{
	uint32_t type = 9;

	assert(types_parse("DRAM", &type) == 0 && type == 0);
	assert(types_parse("kernel", &type) == 0 && type == 6);
	assert(types_parse("L2", &type) == -EINVAL && type == 6);
	assert(!types_name(BOOK_TYPES) && !types_op_name(0) && !types_op_name(99));
	assert(types_folded(4) == 0 && types_folded(3) == 1 && types_folded(5) == 1 &&
	       types_folded(6) == 1 && types_folded(2) == 2);
}
