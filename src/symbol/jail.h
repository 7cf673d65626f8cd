/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Giving up all rights, for a process that reads files which anybody may have made. Afterwards it has
 * no user of its own (if it was root's), no capability, no way to get any, bounded memory and time, and
 * may only read from descriptors that it was given, use memory, and talk on its socket. There is no way
 * back.
 */

#include <stdint.h>

#define JAIL_USER 65534u /* nobody, everywhere */
#define JAIL_MEMORY (UINT64_C(1) << 30)
#define JAIL_SECONDS 600u /* of computing, in its whole life */

/* 0 or a negative errno, and then it must not read anything. */
int jail_enter(void);

/* Tries what is forbidden. Return: a bit for each thing that was not refused; 0 is what it should be. */
uint32_t jail_probe(void);
