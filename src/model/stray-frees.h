/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One free with a wrong device number must not make a device. A process that did nothing on a
 * device but free buffers that it never had is no user of it, unless the device is known otherwise.
 */

struct snapshot;

/*
 * Before claims are resolved and devices merged: removes such parts, and counts their frees for the
 * process instead.
 */
void stray_frees_take_out(struct snapshot *snapshot);
