/* SPDX-License-Identifier: Apache-2.0 */

/* HTTP responses: bodies of both kinds in pieces of every size, and each reason for refusal. */

#include "wire/http-response.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"

#define OK "HTTP/1.1 200 OK\r\n"

/* The result of @text in pieces of @piece bytes; the body is compared. */
static int read_pieces(const char *text, size_t piece, const char *body)
{
	struct http_response response;
	int r = 0;

	http_response_init(&response, 1000);
	for (size_t at = 0; r == 0 && at < strlen(text); at += piece)
		r = http_response_feed(&response, text + at, bits_min(piece, strlen(text) - at));
	if (r == HTTP_COMPLETE && body) {
		assert(response.body_length == strlen(body));
		assert(strcmp(response.body ? response.body : "", body) == 0);
	}
	http_response_deinit(&response);
	return r;
}

UNIT(a_body_comes_whole_whatever_the_pieces)
{
	const char *counted =
		OK "Content-Type: text/plain\r\ncontent-length: 11\r\n\r\nhello world";
	const char *chunked = OK "Transfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n"
				 "5\r\nworld\r\n0\r\nX-After: 1\r\n\r\n";

	for (size_t piece = 1; piece <= strlen(chunked); piece++) {
		assert(read_pieces(counted, piece, "hello world") == HTTP_COMPLETE);
		assert(read_pieces(chunked, piece, "hello world") == HTTP_COMPLETE);
	}
	assert(read_pieces(OK "Content-Length: 0\r\n\r\n", 100, "") == HTTP_COMPLETE);
}

UNIT(sizes_of_chunks_are_hexadecimal)
{
	static const char text[] = OK "Transfer-Encoding: chunked\r\n\r\n"
				      "1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n";

	assert(read_pieces(text, 7, "abcdefghijklmnopqrstuvwxyz") == HTTP_COMPLETE);
}

UNIT(a_refusal_has_a_status_and_a_text)
{
	const char *text = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone";
	struct http_response response;

	http_response_init(&response, 1000);
	assert(http_response_feed(&response, text, strlen(text)) == HTTP_COMPLETE);
	assert(response.status == 404 && strcmp(response.body, "none") == 0);
	/* Nothing else was requested. */
	assert(http_response_feed(&response, "x", 1) == -EBADMSG);
	http_response_deinit(&response);
}

UNIT(a_response_that_is_cut_is_not_complete)
{
	const char *text = OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";

	for (size_t length = 0; length < strlen(text); length++) {
		struct http_response response;

		http_response_init(&response, 1000);
		assert(http_response_feed(&response, text, length) == 0);
		http_response_deinit(&response);
	}
}

UNIT(each_malformed_response_is_refused)
{
	static const char *const wrong[] = {
		"garbage",
		"HTTP/2",
		"HTTP/2.0 200 OK\r\n",
		"HTTP/1.1 20 OK\r\n",
		"HTTP/1.1 2000 OK\r\n",
		"HTTP/1.1 100 Continue\r\n",
		"HTTP/1.1 999 Odd\r\n",
		"HTTP/1.1  200 OK\r\n",
		"HTTP/1.1 200 OK\n",
		OK "no colon\r\n",
		OK ": no name\r\n",
		OK " folded: 1\r\n",
		OK "Name : blank\r\n",
		OK "\r\n",
		OK "Content-Length: \r\n",
		OK "Content-Length: -1\r\n",
		OK "Content-Length: +1\r\n",
		OK "Content-Length: 0x1\r\n",
		OK "Content-Length: 1 1\r\n",
		OK "Content-Length: 9999999999999999999999\r\n",
		OK "Content-Length: 1\r\nContent-Length: 1\r\n",
		OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
		OK "Transfer-Encoding: gzip\r\n",
		OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\ng\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n1;x=y\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n",
		OK "Content-Length: 1\r\n\r\nab",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert(read_pieces(wrong[i], strlen(wrong[i]), NULL) == -EBADMSG);
}

UNIT(what_is_too_long_is_refused_before_it_is_stored)
{
	char line[HTTP_LINE_MAX + 1];
	struct http_response response;
	int r = 0;

	assert(read_pieces(OK "Content-Length: 1001\r\n\r\n", 100, NULL) == -EMSGSIZE);
	assert(read_pieces(OK "Transfer-Encoding: chunked\r\n\r\n3e9\r\n", 100, NULL) == -EMSGSIZE);
	assert(read_pieces(OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nfffffffffffffff\r\n",
			   100, NULL) == -EMSGSIZE);
	memset(line, 'a', sizeof(line));
	http_response_init(&response, 1000);
	assert(http_response_feed(&response, line, sizeof(line)) == -EBADMSG);
	http_response_deinit(&response);
	http_response_init(&response, 1000);
	assert(http_response_feed(&response, OK, strlen(OK)) == 0);
	for (unsigned int i = 0; r == 0 && i <= HTTP_HEADERS_MAX; i++)
		r = http_response_feed(&response, "A: b\r\n", 6);
	assert(r == -EBADMSG);
	http_response_deinit(&response);
}
