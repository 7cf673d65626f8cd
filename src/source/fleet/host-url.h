/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names of machines that run ttmemd, as people write them, and the addresses made of them. */

#include <stdbool.h>

#define HOST_URL_NAME_MAX 255u /* bytes; DNS has no longer ones */

/*
 * Whether this can be "host", "host:port", "::1" or "[::1]:port". Nothing that would change the
 * meaning of an address made of it.
 */
bool host_url_is_name(const char *name);

#define HOST_URL_LIST_MAX 256u /* names in a list */

/* The next of "host, host:port ..."; modifies the text. NULL: no more. */
char *host_url_next(char **rest);

/* Whether a text is a list of names, at least one and HOST_URL_LIST_MAX at most. */
bool host_url_is_list(const char *list);

/* "http://NAME:5392PATH", or with the name's own port. NULL: no memory. */
char *host_url(const char *name, const char *path);
