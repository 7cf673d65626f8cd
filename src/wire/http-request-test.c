/* SPDX-License-Identifier: Apache-2.0 */

/* HTTP requests: what is accepted, and each reason for refusal. */

#include "wire/http-request.h"

#include <errno.h>
#include <string.h>

#include "base/testing/unit.h"

static char target[HTTP_REQUEST_MAX];

static int decode(const char *text)
{
	return http_request_decode(text, strlen(text), target);
}

UNIT(the_clients_request_is_understood)
{
	char bytes[HTTP_REQUEST_MAX];
	int length = http_request_encode("/api/v1/leaks?pid=7", bytes);

	assert(length > 0 && http_request_begins(bytes, (size_t)length));
	assert(http_request_decode(bytes, (size_t)length, target) == 0);
	assert(strcmp(target, "/api/v1/leaks?pid=7") == 0);
}

UNIT(headers_are_checked_and_ignored)
{
	assert(decode("GET / HTTP/1.0\r\n\r\n") == 0 && strcmp(target, "/") == 0);
	assert(decode("GET /a?b=%20 HTTP/1.1\r\nHost: x\r\nX-Any:\tv: w\r\n\r\n") == 0);
	assert(strcmp(target, "/a?b=%20") == 0);
}

UNIT(each_malformed_request_is_refused)
{
	static const char *const wrong[] = {
		"",
		"GET",
		"GET ",
		"GET /",
		"GET / HTTP/1.1",
		"GET / HTTP/1.1\r\n",
		"GET / HTTP/1.1\n\n",
		"GET / HTTP/1.1\r\n\r\nx",
		"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"GET  HTTP/1.1\r\n\r\n",
		"GET x HTTP/1.1\r\n\r\n",
		"GET /a b HTTP/1.1\r\n\r\n",
		"GET /\x01 HTTP/1.1\r\n\r\n",
		"GET /\xff HTTP/1.1\r\n\r\n",
		"GET / HTTP/2.0\r\n\r\n",
		"GET / HTTP/1.x\r\n\r\n",
		"GET / http/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\n\r\n",
		"HEAD / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost\r\n\r\n",
		"GET / HTTP/1.1\r\n: x\r\n\r\n",
		"GET / HTTP/1.1\r\nTwo words: x\r\n\r\n",
		"GET / HTTP/1.1\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\nHost: b\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
		"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert(decode(wrong[i]) == -EBADMSG);
}

UNIT(a_target_that_cannot_be_sent_is_refused)
{
	char bytes[HTTP_REQUEST_MAX], large[HTTP_REQUEST_MAX];

	assert(http_request_encode("", bytes) == -EINVAL);
	assert(http_request_encode("leaks", bytes) == -EINVAL);
	assert(http_request_encode("/a b", bytes) == -EINVAL);
	assert(http_request_encode("/a\r\nHost: b", bytes) == -EINVAL);
	memset(large, 'x', sizeof(large) - 1);
	large[0] = '/';
	large[sizeof(large) - 1] = '\0';
	assert(http_request_encode(large, bytes) == -EINVAL);
	large[4000] = '\0';
	assert(http_request_encode(large, bytes) > 4000);
}
