/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What src/legacy adds to the command. In a build without it (-Dlegacy=disabled) legacy-parts-none.c defines all of
 * it: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

struct command;

/* The subcommands; the last is NULL. */
extern const struct command *const legacy_parts_commands[];

/* Reports an allocation to a server for old clients, as they did. Return: whether it was sent. NULL: not built. */
typedef bool legacy_parts_report(int fd, uint32_t device, uint32_t type, uint64_t address,
				 uint64_t size);
extern legacy_parts_report *const legacy_parts_allocate;
