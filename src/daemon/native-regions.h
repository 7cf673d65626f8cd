/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tt-metal's regions tell, for those who may not read them: totals are for everybody. In the worker's
 * thread.
 */

struct native_answer;

/* Adds a packet for each row of a region. 0, -EACCES if there are regions that we may not read either, or another
 * negative errno. */
int native_regions_put(struct native_answer *answer);
