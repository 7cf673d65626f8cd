/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Client input as our own parsers see it. The input is up to four lines: the URL, and the Host,
 * Accept and Authorization headers.
 */

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/page-cursor.h"
#include "web/server/accept-header.h"
#include "web/server/address.h"
#include "web/server/auth.h"
#include "web/server/routes.h"
#include "web/server/sign-in.h"
#include "web/server/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "0123456789abcdef"

static void fuzz_target(const char *line)
{
	struct url url = {0};
	struct page_cursor place;
	uint32_t device = 0;

	if (url_parse(&url, line) == 0) {
		const struct route *route = routes_find(url.path, &device);

		if (url_read(&url, route ? routes_honours(route) : UINT32_MAX) == 0) {
			assert(url.query.limit > 0 && url.query.limit <= QUERY_LIMIT_MAX);
			assert(url.query.filter.device_count <= FILTER_DEVICES_MAX);
			if (url.query.cursor && page_cursor_parse(url.query.cursor, &place) == 0) {
				char text[PAGE_CURSOR_TEXT_SIZE];
				struct page_cursor again;

				assert(page_cursor_parse(page_cursor_format(&place, text),
							 &again) == 0);
				assert(again.slot == place.slot && again.inode == place.inode);
			}
		}
	}
	assert(memchr(url.problem, '\0', sizeof(url.problem)));
	url_deinit(&url);
}

static void fuzz_guard(const char *host, const char *authorization)
{
	char name[SIGN_IN_NAME_SIZE];
	struct address address;
	struct auth auth;

	if (address_parse(host, &address) == 0)
		assert(address.length > 0);
	assert(address_parse("127.0.0.1:1", &address) == 0);
	auth_init(&auth, &address, "127.0.0.1:1", false);
	strcpy(auth.token, TOKEN);
	auth.has_token = true;
	(void)auth_is_host(&auth, host); /* must not crash */
	auth.any = true;
	(void)auth_is_host(&auth, host); /* likewise */
	sign_in_cookie_name(host, name);
	assert(strlen(name) <= strlen("ttmem-65535") && !strpbrk(name, "=; ,"));
	if (auth_is_same_origin(host, authorization, NULL))
		assert(strlen(authorization) > strlen(host));
	if (auth_may_see(&auth, authorization, NULL))
		assert(strstr(authorization, TOKEN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const char *lines[4] = {"", "", "", ""};
	char *at = text;

	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < 4 && at; i++)
		lines[i] = strsep(&at, "\n");
	fuzz_target(lines[0]);
	fuzz_guard(lines[1], lines[3]);
	(void)accept_header_prefers_openmetrics(lines[2]); /* likewise */
	free(text);
	return 0;
}
