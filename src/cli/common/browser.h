/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Links that sign a browser in: whose browser, and opening it. */

#include <stdint.h>

/*
 * Who is meant if nobody is named: with sudo, the browser of who has called it, because root's own is
 * rarely meant. A text for browser_find_user(); NULL = ours.
 */
const char *browser_default_user(void);

/* A name or a number. 0, or a result of options_mistake(). */
int browser_find_user(const char *command, const char *text, uint32_t *ret_user);

/*
 * Opens a link if a browser of @user would be seen by who sits at this terminal. Says so if that does
 * not work.
 */
void browser_open(const char *command, const char *link, uint32_t user);
