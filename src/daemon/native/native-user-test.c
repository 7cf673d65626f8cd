/* SPDX-License-Identifier: Apache-2.0 */

/* Users are in the list as long as they have connections. */

#include "daemon/native/native-user.h"

#include <stddef.h>

#include "base/testing/unit.h"

UNIT(a_user_stays_until_the_last_connection_ends)
{
	struct native_user *users = NULL, *one = native_user_get(&users, 1),
			   *two = native_user_get(&users, 2);

	assert(one && two && one != two && native_user_get(&users, 1) == one);
	one->connections = two->connections = 1;
	native_user_put(&users, one);
	assert(native_user_get(&users, 1) == one && one->connections == 1);
	one->connections = 0;
	native_user_put(&users, one);
	assert(users == two && !two->next);
	two->connections = 0;
	native_user_put(&users, two);
	assert(!users);
}
