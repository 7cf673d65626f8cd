/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What functions print. Helpers assert. */

/*
 * What @fn prints to @stream, STDOUT_FILENO or STDERR_FILENO; valid until the next call. Both go to a file
 * meanwhile, so nothing is a terminal.
 */
const char *testing_printed(int stream, void (*fn)(void *context), void *context);
