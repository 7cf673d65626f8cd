/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Drops all privileges, for a process that reads files which anybody may have crafted. Afterwards
 * the process is no longer root, has no capabilities and no way to gain any, has bounded memory and
 * time, and may only read from the descriptors it was given, use memory, and talk on its socket.
 * This cannot be undone.
 */

#include <stdint.h>

#define JAIL_USER 65534u /* "nobody" on every system */
#define JAIL_MEMORY (UINT64_C(1) << 30)
#define JAIL_SECONDS 600u /* of CPU time, in total */

/* 0 or a negative errno; after an error the process must not read anything. */
int jail_enter(void);

/* Tries what is forbidden. Return: one bit for each thing that was not refused; 0 is correct. */
uint32_t jail_probe(void);
