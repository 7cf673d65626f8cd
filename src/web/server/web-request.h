/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One request from its first line to the end of its answer, between the HTTP library and the
 * routes. A request whose answer takes time is suspended while a lane generates it.
 */

#include <stddef.h>
#include <stdint.h>

struct MHD_Connection;
struct web_request;
struct web;

/* The first line of a request has arrived. NULL: no memory; the connection is then closed. */
struct web_request *web_request_new(struct web *web, const char *uri,
				    struct MHD_Connection *connection);
void web_request_free(struct web_request *web_request);

/*
 * The header is complete; called again when a lane is done. @method is unchecked. 0, or -EIO if the
 * connection cannot be served.
 */
int web_request_serve(struct web_request *web_request, const char *method);

/* Seconds until a retry, under overload. */
#define WEB_REQUEST_RETRY "1"
