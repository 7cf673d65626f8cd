/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lets one more user read a file of ours, which stays ours. */

#include <stdint.h>

/*
 * 0; or a negative errno: -EOPNOTSUPP if the file system cannot, and we may not give files away.
 */
int file_access_allow(int fd, uint32_t user);
