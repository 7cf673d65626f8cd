/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pager between a command and the terminal. */

#include <stdbool.h>

/* What follows on stdout goes through it. Whether there is one. */
bool pager_open(void);

/* Waits until its user has seen enough; nothing if none is open. */
void pager_close(void);
