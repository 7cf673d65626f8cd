/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The source of everything that processes do not tell themselves: the driver's files and tt-metal's regions.
 * Has no state, so one may be asked by several threads at a time.
 */

struct source;

/* 0 or -ENOMEM. */
int machine_source_new(struct source **ret_source);
