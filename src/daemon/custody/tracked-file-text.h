/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The format of the file of tracked processes, for its writer and its reader:
 *
 *	ttmem-roll 1
 *	boot 3b2e5c0a-...
 *	missed COUNT                            unobserved exits so far; may be left out
 *	PID START-TICKS DEVICE INODE NAME       one line for each process; the name may be empty
 *	end COUNT
 */

#define TRACKED_FILE_TEXT_HEADING "ttmem-roll 1"
#define TRACKED_FILE_TEXT_BOOT "boot "
#define TRACKED_FILE_TEXT_MISSED "missed "
#define TRACKED_FILE_TEXT_END "end "
