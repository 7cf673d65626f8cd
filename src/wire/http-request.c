/* SPDX-License-Identifier: Apache-2.0 */

/* One packet in, one URL out. Headers are checked for syntax; none of them changes the answer. */

#include "wire/http-request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HTTP_GET "GET "
#define HTTP_VERSION " HTTP/1." /* and one digit */

bool http_request_begins(const void *bytes, size_t length)
{
	return length >= strlen(HTTP_GET) && memcmp(bytes, HTTP_GET, strlen(HTTP_GET)) == 0;
}

/* Visible ASCII that begins with a slash. */
static bool http_is_target(const char *text, size_t length)
{
	if (length == 0 || *text != '/')
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	}
	return true;
}

/* "Name: value". A body would be the next packet, which would be read as a request. */
static bool http_is_header(const char *line, size_t length)
{
	size_t name = 0;

	while (name < length && line[name] > ' ' && line[name] <= '~' && line[name] != ':')
		name++;
	if (name == 0 || name == length || line[name] != ':')
		return false;
	for (size_t i = name + 1; i < length; i++) {
		if ((unsigned char)line[i] < ' ' && line[i] != '\t')
			return false;
	}
	return !(name == 14 && strncasecmp(line, "Content-Length", name) == 0) &&
	       !(name == 17 && strncasecmp(line, "Transfer-Encoding", name) == 0);
}

/* The length of the line at @at without its CR LF; -1 if the line is incomplete. */
static ptrdiff_t http_line(const char *at, const char *end)
{
	const char *feed = memchr(at, '\n', (size_t)(end - at));

	return feed && feed > at && feed[-1] == '\r' ? feed - 1 - at : -1;
}

static bool http_are_headers(const char *at, const char *end)
{
	ptrdiff_t length;

	while ((length = http_line(at, end)) > 0) {
		if (!http_is_header(at, (size_t)length))
			return false;
		at += length + 2;
	}
	return length == 0 && at + 2 == end;
}

int http_request_decode(const void *bytes, size_t length, char *ret_target)
{
	const char *text = bytes, *end = text + length, *target = text + strlen(HTTP_GET);
	ptrdiff_t line, target_length;

	if (length > HTTP_REQUEST_MAX || !http_request_begins(bytes, length))
		return -EBADMSG;
	line = http_line(text, end);
	target_length = line - (ptrdiff_t)(strlen(HTTP_GET) + strlen(HTTP_VERSION) + 1);
	if (target_length <= 0 || !http_is_target(target, (size_t)target_length) ||
	    memcmp(target + target_length, HTTP_VERSION, strlen(HTTP_VERSION)) != 0 ||
	    text[line - 1] < '0' || text[line - 1] > '9' || !http_are_headers(text + line + 2, end))
		return -EBADMSG;
	memcpy(ret_target, target, (size_t)target_length);
	ret_target[target_length] = '\0';
	return 0;
}

int http_request_encode(const char *target, char ret_bytes[HTTP_REQUEST_MAX])
{
	int length;

	if (!http_is_target(target, strlen(target)))
		return -EINVAL;
	/* HTTP/1.1 requires a Host header; on this socket it means nothing. */
	length = snprintf(ret_bytes, HTTP_REQUEST_MAX,
			  HTTP_GET "%s" HTTP_VERSION "1\r\nHost: localhost\r\n\r\n", target);
	return length < 0 || (size_t)length >= HTTP_REQUEST_MAX ? -EINVAL : length;
}
