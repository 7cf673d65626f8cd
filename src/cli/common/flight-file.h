/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of the daemon's flight recorder. `ttmem leaks` and `ttmem incidents` print their paths, but nobody except the
 * daemon's user may open those: the daemon decides who may read what, and hands over a descriptor.
 */

/* For recording_file_elsewhere: asks the daemon if @path is named as such a file. */
int flight_file_open(const char *path);
