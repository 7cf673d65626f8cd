/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP requests on the native socket. A request is one packet: a request line, headers and the
 * empty line, no body. Only GET is supported; its first four bytes distinguish it from a native
 * request (wire/native.h) and from an offer (wire/offer.h).
 */

#include <stdbool.h>
#include <stddef.h>

#define HTTP_REQUEST_MAX 4096u /* same as NATIVE_REQUEST_MAX: what the daemon reads of a packet */

/* Whether these bytes begin an HTTP request. */
bool http_request_begins(const void *bytes, size_t length);

/*
 * @ret_target: the path and its parameters, room for HTTP_REQUEST_MAX bytes. 0, or -EBADMSG for
 * anything but one well-formed GET request without a body.
 */
int http_request_decode(const void *bytes, size_t length, char *ret_target);

/* Writes the request for @target. Its length, or -EINVAL if @target is invalid or too long. */
int http_request_encode(const char *target, char ret_bytes[HTTP_REQUEST_MAX]);
