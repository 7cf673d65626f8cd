/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pager between a command and the terminal. */

#include <stdbool.h>

/* Sends stdout through a pager from now on. Return: whether there is one. */
bool pager_open(void);

/* Waits until the user quits it; does nothing if none is open. */
void pager_close(void);
