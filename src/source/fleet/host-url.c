/* SPDX-License-Identifier: Apache-2.0 */

/* Names are not resolved here; whether there is such a machine turns out when it is asked. */

#include "source/fleet/host-url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define HOST_URL_PORT "5392"

bool host_url_is_name(const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length > HOST_URL_NAME_MAX || strpbrk(name, "/@?#\\\"<>"))
		return false;
	for (; *name; name++) {
		if ((unsigned char)*name <= 0x20 || *name == 0x7f)
			return false;
	}
	return true;
}

char *host_url_next(char **rest)
{
	char *name;

	do
		name = strsep(rest, ", \t");
	while (name && !*name);
	return name;
}

bool host_url_is_list(const char *list)
{
	CLEANUP_FREE char *copy = strdup(list);
	char *rest = copy, *name;
	size_t count = 0;

	while ((name = host_url_next(&rest))) {
		if (!host_url_is_name(name) || ++count > HOST_URL_LIST_MAX)
			return false;
	}
	return count > 0;
}

char *host_url(const char *name, const char *path)
{
	const char *bracket = strchr(name, ']');
	const char *colon = strchr(bracket ? bracket : name, ':');
	bool is_bare = !bracket && colon && strchr(colon + 1, ':'); /* fd00::1, without a port */
	char *url;

	if (asprintf(&url, "http://%s%s%s%s%s", is_bare ? "[" : "", name, is_bare ? "]" : "",
		     colon && !is_bare ? "" : ":" HOST_URL_PORT, path) < 0)
		return NULL;
	return url;
}
