/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an option expects, for the message about a value that is something else. */

#include <stddef.h>

/* In words, for the placeholder that --help shows ("PID"): "a process id". Returns @ret_text. */
const char *options_expect(const char *placeholder, char *ret_text, size_t size);
