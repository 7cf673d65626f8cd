/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process that records this one's book while it is told to. */

#include <stdbool.h>

/* Started once there is a book. False if that fails; then there is none. */
bool bench_recorder_start(void);

/* It has read everything so far, and goes on reading; false if it is gone. */
bool bench_recorder_go(void);

/* It reads nothing any more. */
void bench_recorder_pause(void);
void bench_recorder_end(void);
