/* SPDX-License-Identifier: Apache-2.0 */

/* Whose browser is meant. */

#include "cli/common/browser.h"

#include <errno.h>

#include "base/testing/unit.h"

UNIT(a_user_is_found_by_name_and_by_number)
{
	uint32_t user = 1;

	assert(browser_find_user("open", "root", &user) == 0 && user == 0);
	assert(browser_find_user("open", "4711", &user) == 0 && user == 4711);
}

UNIT(an_unknown_user_is_a_mistake)
{
	uint32_t user = 1;

	assert(browser_find_user("open", "no such user", &user) == -EINVAL);
	assert(browser_find_user("open", "4294967295", &user) == -EINVAL && user == 1);
}
