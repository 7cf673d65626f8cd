/* SPDX-License-Identifier: Apache-2.0 */

/* No user gets what others need. */

#include "base/share.h"

#include "base/testing/unit.h"

UNIT(one_user_alone_gets_half)
{
	assert(share_room(100, 0, 0) == 50);
	assert(share_room(100, 30, 30) == 20);
	assert(share_room(100, 50, 50) == 0);
}

UNIT(every_further_user_finds_something_left)
{
	uint64_t used = 0, total = 1 << 20;

	for (int user = 0; user < 16; user++) {
		uint64_t room = share_room(total, used, 0);

		assert(room > 0 && room <= (total - used) / 2);
		used += room;
		assert(share_room(total, used, room) == 0);
	}
	assert(used < total);
}

UNIT(whoever_has_more_than_is_left_gets_no_more)
{
	assert(share_room(100, 90, 60) == 0);
	assert(share_room(100, 90, 5) == 2);
	assert(share_room(100, 120, 5) == 0);
	assert(share_room(UINT64_MAX, 0, 0) == UINT64_MAX / 2);
}
