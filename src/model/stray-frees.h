/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One free with a wrong device number must not make a device. A process that did nothing on a
 * device but free buffers that it never had is no user of it, unless the device is known otherwise.
 */

#include <stdint.h>

struct snapshot;
struct snapshot_part;

/* How many frees there were on a device, if there was nothing else; otherwise 0. */
uint64_t stray_frees_of(const struct snapshot_part *part);

/*
 * Before claims are resolved and devices merged: removes such parts, and counts their frees for the
 * process instead.
 */
void stray_frees_take_out(struct snapshot *snapshot);
