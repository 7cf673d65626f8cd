/* SPDX-License-Identifier: Apache-2.0 */

/* A state for each part of a response: parts made of lines, and parts made of counted bytes. */

#include "wire/http-response.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/bits.h"

void http_response_init(struct http_response *response, size_t body_max)
{
	*response = (struct http_response){.body_max = body_max};
}

void http_response_deinit(struct http_response *response)
{
	free(response->body);
	response->body = NULL;
}

/* Digits only, in base 10 or 16. */
static int http_number(const char *text, size_t length, unsigned int base, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (length == 0 || length > 15) /* cannot overflow */
		return -EBADMSG;
	for (size_t i = 0; i < length; i++) {
		const char *digits = "0123456789abcdef";
		char c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] - 'A' + 'a') : text[i];
		const char *digit = c ? strchr(digits, c) : NULL;

		if (!digit || (unsigned int)(digit - digits) >= base)
			return -EBADMSG;
		number = number * base + (uint64_t)(digit - digits);
	}
	*ret_number = number;
	return 0;
}

/* "HTTP/1.1 200 OK"; interim responses (1xx) were not requested and are refused. */
static int http_take_status(struct http_response *response)
{
	const char *line = response->line;
	uint64_t status;

	if (response->line_length < 12 || line[7] < '0' || line[7] > '9' || line[8] != ' ' ||
	    http_number(line + 9, 3, 10, &status) < 0 ||
	    (response->line_length > 12 && line[12] != ' ') || status < 200 || status > 599)
		return -EBADMSG;
	response->status = (unsigned int)status;
	response->state = HTTP_HEADER;
	return 0;
}

/* Whether this is the header @name; if so, where its value lies. */
static bool http_has_name(const struct http_response *response, const char *name,
			  const char **ret_value, size_t *ret_length)
{
	size_t at = strlen(name), end = response->line_length;
	const char *line = response->line;

	if (end <= at || line[at] != ':' || strncasecmp(line, name, at) != 0)
		return false;
	at++;
	while (at < end && (line[at] == ' ' || line[at] == '\t'))
		at++;
	while (end > at && (line[end - 1] == ' ' || line[end - 1] == '\t'))
		end--;
	*ret_value = line + at;
	*ret_length = end - at;
	return true;
}

/* The two headers that say where the body ends. Conflicting ones are refused. */
static int http_take_header(struct http_response *response)
{
	const char *line = response->line, *value;
	size_t length, name = 0;

	while (name < response->line_length && line[name] > ' ' && line[name] <= '~' &&
	       line[name] != ':')
		name++;
	if (++response->headers > HTTP_HEADERS_MAX || name == 0 || name == response->line_length ||
	    line[name] != ':')
		return -EBADMSG;
	if (response->state == HTTP_TRAILER)
		return 0;
	if (http_has_name(response, "Content-Length", &value, &length)) {
		if (response->has_length || http_number(value, length, 10, &response->left) < 0)
			return -EBADMSG;
		response->has_length = true;
	}
	if (http_has_name(response, "Transfer-Encoding", &value, &length)) {
		if (response->is_chunked || length != 7 || strncasecmp(value, "chunked", 7) != 0)
			return -EBADMSG;
		response->is_chunked = true;
	}
	return response->has_length && response->is_chunked ? -EBADMSG : 0;
}

/* The empty line after the headers. A body that ends with the connection may be truncated. */
static int http_begin_body(struct http_response *response)
{
	if (response->is_chunked) {
		response->state = HTTP_CHUNK_SIZE;
		return 0;
	}
	if (!response->has_length)
		return -EBADMSG;
	if (response->left > response->body_max)
		return -EMSGSIZE;
	response->state = response->left > 0 ? HTTP_BODY : HTTP_RESPONSE_END;
	return 0;
}

static int http_take_chunk_size(struct http_response *response)
{
	if (http_number(response->line, response->line_length, 16, &response->left) < 0)
		return -EBADMSG;
	if (response->left > response->body_max - response->body_length)
		return -EMSGSIZE;
	response->state = response->left > 0 ? HTTP_CHUNK : HTTP_TRAILER;
	return 0;
}

static int http_take_line(struct http_response *response)
{
	bool is_empty = response->line_length == 0;

	switch (response->state) {
	case HTTP_STATUS_LINE:
		return http_take_status(response);
	case HTTP_HEADER:
		return is_empty ? http_begin_body(response) : http_take_header(response);
	case HTTP_CHUNK_SIZE:
		return http_take_chunk_size(response);
	case HTTP_CHUNK_END:
		response->state = HTTP_CHUNK_SIZE;
		return is_empty ? 0 : -EBADMSG;
	case HTTP_TRAILER:
		if (!is_empty)
			return http_take_header(response);
		response->state = HTTP_RESPONSE_END;
		return 0;
	case HTTP_BODY:
	case HTTP_CHUNK:
	case HTTP_RESPONSE_END:
		break;
	}
	return -EBADMSG;
}

/* Reads up to the end of the line, if it has arrived. The number of bytes used, or -errno. */
static ptrdiff_t http_feed_line(struct http_response *response, const char *bytes, size_t length)
{
	const char *feed = memchr(bytes, '\n', length);
	size_t used = feed ? (size_t)(feed - bytes) + 1 : length;
	int r;

	if (used > sizeof(response->line) - response->line_length)
		return -EBADMSG;
	memcpy(response->line + response->line_length, bytes, used);
	response->line_length += used;
	/* A peer that speaks another protocol may never end a line. */
	if (response->state == HTTP_STATUS_LINE &&
	    memcmp(response->line, "HTTP/1.", bits_min(response->line_length, 7)) != 0)
		return -EBADMSG;
	if (!feed)
		return (ptrdiff_t)used;
	if (response->line_length < 2 || response->line[response->line_length - 2] != '\r')
		return -EBADMSG;
	response->line_length -= 2;
	r = http_take_line(response);
	response->line_length = 0;
	return r < 0 ? r : (ptrdiff_t)used;
}

static ptrdiff_t http_feed_body(struct http_response *response, const char *bytes, size_t length)
{
	size_t used = bits_min(length, response->left);
	char *body = array_grow(response->body, &response->body_capacity,
				response->body_length + used + 1, 1);

	if (!body)
		return -ENOMEM;
	response->body = body;
	memcpy(body + response->body_length, bytes, used);
	response->body_length += used;
	body[response->body_length] = '\0';
	response->left -= used;
	if (response->left == 0)
		response->state =
			response->state == HTTP_CHUNK ? HTTP_CHUNK_END : HTTP_RESPONSE_END;
	return (ptrdiff_t)used;
}

int http_response_feed(struct http_response *response, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		bool is_counted = response->state == HTTP_BODY || response->state == HTTP_CHUNK;
		ptrdiff_t used;

		if (response->state == HTTP_RESPONSE_END)
			return -EBADMSG;
		used = is_counted ? http_feed_body(response, at, length)
				  : http_feed_line(response, at, length);
		if (used < 0)
			return (int)used;
		at += used;
		length -= (size_t)used;
	}
	return response->state == HTTP_RESPONSE_END ? HTTP_COMPLETE : 0;
}
