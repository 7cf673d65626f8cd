/* SPDX-License-Identifier: Apache-2.0 */

/* Names of machines, and addresses made of them. */

#include "source/fleet/host-url.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

static void check(const char *name, const char *wanted)
{
	char *url = host_url(name, "/x");

	assert(host_url_is_name(name));
	assert(url && strcmp(url, wanted) == 0);
	free(url);
}

UNIT(names_become_addresses)
{
	check("host", "http://host:5392/x");
	check("host.example.com:80", "http://host.example.com:80/x");
	check("10.0.0.1", "http://10.0.0.1:5392/x");
	check("::1", "http://[::1]:5392/x");
	check("[::1]", "http://[::1]:5392/x");
	check("[fd00::1]:80", "http://[fd00::1]:80/x");
}

UNIT(lists_of_names_are_checked)
{
	char many[2 * (HOST_URL_LIST_MAX + 1) + 1] = "";

	assert(host_url_is_list("a") && host_url_is_list(" a:1 , b\t[::1]:5392,,"));
	assert(!host_url_is_list("") && !host_url_is_list(" , ") && !host_url_is_list("a,b/c"));
	for (size_t i = 0; i < HOST_URL_LIST_MAX; i++) {
		many[2 * i] = 'a';
		many[2 * i + 1] = ',';
	}
	assert(host_url_is_list(many));
	many[2 * HOST_URL_LIST_MAX] = 'a';
	assert(!host_url_is_list(many));
}

UNIT(names_that_would_change_the_address_are_refused)
{
	static const char *const wrong[] = {"",     "a/b",  "me@a", "a?b",  "a#b", "a b",
					    "a\tb", "a\nb", "a\\b", "a\"b", "<a>", "a\x7f"};
	char text[HOST_URL_NAME_MAX + 2];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert(!host_url_is_name(wrong[i]));
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert(!host_url_is_name(text));
	text[HOST_URL_NAME_MAX] = '\0';
	assert(host_url_is_name(text));
}
