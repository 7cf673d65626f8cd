/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a client sends, as our own parsers see it. The input is up to four lines: the target, and the
 * Host, Accept and Authorization headers.
 */

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "model/page-cursor.h"
#include "web/server/accept-header.h"
#include "web/server/address.h"
#include "web/server/auth.h"
#include "web/server/routes.h"
#include "web/server/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "0123456789abcdef"

static void fuzz_target(const char *line)
{
	struct target target = {0};
	struct page_cursor place;
	uint32_t device = 0;

	if (target_parse(&target, line) == 0) {
		const struct route *route = routes_find(target.path, &device);

		if (target_read(&target, route ? route->parameters : UINT32_MAX) == 0) {
			assert(target.limit > 0 && target.limit <= TARGET_LIMIT_MAX);
			assert(target.filter.device_count <= FILTER_DEVICES_MAX);
			if (target.cursor && page_cursor_parse(target.cursor, &place) == 0) {
				char text[PAGE_CURSOR_TEXT_SIZE];
				struct page_cursor again;

				assert(page_cursor_parse(page_cursor_format(&place, text),
							 &again) == 0);
				assert(again.slot == place.slot && again.inode == place.inode);
			}
		}
	}
	assert(memchr(target.problem, '\0', sizeof(target.problem)));
	target_deinit(&target);
}

static void fuzz_guard(const char *host, const char *authorization)
{
	struct address address;
	struct guard guard;

	if (address_parse(host, &address) == 0)
		assert(address.length > 0);
	assert(address_parse("127.0.0.1:1", &address) == 0);
	guard_init(&guard, &address, "127.0.0.1:1", false);
	strcpy(guard.token, TOKEN);
	(void)guard_is_host(&guard, host); /* no crash is what counts */
	guard.any = true;
	(void)guard_is_host(&guard, host); /* likewise */
	if (guard_may_see(&guard, authorization, NULL))
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
	(void)media_prefers_openmetrics(lines[2]); /* likewise */
	free(text);
	return 0;
}
