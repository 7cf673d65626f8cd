/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where ttmemd is, for commands that start one of their own. */

#include <stdbool.h>

#define DAEMON_PROGRAM_SIZE 4096

/* Looks beside this program, installed or in the build tree. */
bool daemon_program_find(char ret_path[DAEMON_PROGRAM_SIZE]);
