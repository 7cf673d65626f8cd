/* SPDX-License-Identifier: Apache-2.0 */

/*
 * HTTP on the native socket with arbitrary bytes. The lowest bit of the first byte says whether the
 * rest is a request or a response. A response is parsed at once and again in pieces, whose size is
 * the rest of the first byte: both must give the same result.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "wire/http-request.h"
#include "wire/http-response.h"

#define FUZZ_BODY_MAX 1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_request(const uint8_t *data, size_t size)
{
	char target[HTTP_REQUEST_MAX], again[HTTP_REQUEST_MAX], bytes[HTTP_REQUEST_MAX];
	int length;

	if (http_request_decode(data, size, target) < 0)
		return;
	assert(http_request_begins(data, size) && *target == '/');
	length = http_request_encode(target, bytes);
	if (length < 0)
		return; /* our own headers are longer */
	assert(http_request_decode(bytes, (size_t)length, again) == 0);
	assert(strcmp(target, again) == 0);
}

static int fuzz_feed(struct http_response *response, const uint8_t *data, size_t size, size_t piece)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < size; at += piece) {
		size_t length = bits_min(piece, size - at);

		r = http_response_feed(response, data + at, length);
		/* Once it is complete nothing may follow. */
		if (r == HTTP_COMPLETE && at + length < size)
			r = http_response_feed(response, data + at + length, 1);
	}
	return r;
}

static void fuzz_response(const uint8_t *data, size_t size, size_t piece)
{
	struct http_response whole, pieces;
	int r, again;

	http_response_init(&whole, FUZZ_BODY_MAX);
	http_response_init(&pieces, FUZZ_BODY_MAX);
	r = fuzz_feed(&whole, data, size, size ? size : 1);
	again = fuzz_feed(&pieces, data, size, piece);
	assert(r == again);
	if (r == HTTP_COMPLETE) {
		assert(whole.status >= 200 && whole.status == pieces.status);
		assert(whole.body_length <= FUZZ_BODY_MAX);
		assert(whole.body_length == pieces.body_length);
		assert(whole.body_length == 0 ||
		       memcmp(whole.body, pieces.body, whole.body_length) == 0);
	}
	http_response_deinit(&whole);
	http_response_deinit(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size == 0)
		return 0;
	/* A separate allocation, so that a read beyond its end is detected. */
	copy = malloc(size);
	assert(copy);
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		fuzz_response(copy, size - 1, (size_t)(data[0] >> 1) + 1);
	else
		fuzz_request(copy, size - 1);
	free(copy);
	return 0;
}
