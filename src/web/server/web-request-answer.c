/* SPDX-License-Identifier: Apache-2.0 */

/* Answers and their headers: type, caching, policy, compression, tags. */

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>

#include "base/bits.h"
#include "web/server/accept-header.h"
#include "web/server/assets.h"
#include "web/server/web-private.h"
#include "web/server/web-request-private.h"
#include "web/server/web-request.h"

const char *web_request_header(const struct web_request *web_request, const char *name)
{
	return MHD_lookup_connection_value(web_request->connection, MHD_HEADER_KIND, name);
}

static const char *web_request_type(const struct web_request *web_request)
{
	const struct route *route = web_request->route;

	if (web_request->problem)
		return ROUTES_JSON;
	if (web_request->asset)
		return web_request->asset->type;
	return web_request->ask.openmetrics && route->type_openmetrics ? route->type_openmetrics
								       : route->type;
}

/*
 * The content security policy. A page may load scripts, styles, images and documents from here
 * only, and cannot turn text into markup.
 */
static const char *web_request_policy(const struct web_request *web_request)
{
	if (!web_request->problem && web_request->asset && web_request->asset->is_page)
		return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
		       "connect-src 'self'; base-uri 'none'; form-action 'none'; "
		       "frame-ancestors 'none'; require-trusted-types-for 'script'; "
		       "trusted-types 'none'";
	return "default-src 'none'; frame-ancestors 'none'";
}

static const char *web_request_caching(const struct web_request *web_request)
{
	if (web_request->problem || !web_request->asset)
		return "no-store";
	return web_request->asset->is_named ? "max-age=31536000, immutable" : "no-cache";
}

/* Headers of every answer; docs/http.md says why. */
static void web_request_add_headers(const struct web_request *web_request,
				    struct MHD_Response *response)
{
	const struct route *route = web_request->route;
	char tag[BODY_TAG_SIZE + 2];

	/* May fail for lack of memory: better an answer without a header than none. */
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				      web_request_type(web_request));
	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
				      web_request_caching(web_request));
	(void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	(void)MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	(void)MHD_add_response_header(response, "X-Frame-Options", "DENY");
	(void)MHD_add_response_header(response, "Content-Security-Policy",
				      web_request_policy(web_request));
	if (!web_request->problem && *web_request->sign_in.cookie)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE,
					      web_request->sign_in.cookie);
	if (!web_request->problem)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_VARY,
					      route->type_openmetrics ? "Accept, Accept-Encoding"
								      : "Accept-Encoding");
	if (!web_request->problem && *web_request->tag) {
		(void)snprintf(tag, sizeof(tag), "W/%s", web_request->tag); /* fits */
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
	}
	switch (web_request->status) {
	case MHD_HTTP_METHOD_NOT_ALLOWED:
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
					      route && route->post ? "POST" : "GET, HEAD");
		break;
	case MHD_HTTP_UNAUTHORIZED:
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					      "Bearer realm=\"ttmem\"");
		break;
	case MHD_HTTP_SERVICE_UNAVAILABLE:
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER,
					      web_request->retry ? web_request->retry
								 : WEB_REQUEST_RETRY);
		break;
	default:
		break;
	}
}

int web_request_queue(struct web_request *web_request, struct MHD_Response *response,
		      enum connection_limits_state state)
{
	enum MHD_Result result;

	web_request_add_headers(web_request, response);
	/* As above, that may fail; but without it compressed bytes are useless: nothing is sent. */
	if (web_request->packed &&
	    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip") !=
		    MHD_YES) {
		MHD_destroy_response(response);
		return -EIO;
	}
	__atomic_add_fetch(&web_request->web->answers[bits_min(web_request->status / 100, 5)], 1,
			   __ATOMIC_RELAXED);
	connection_limits_set(web_request->visit, state);
	result = MHD_queue_response(web_request->connection, web_request->status, response);
	MHD_destroy_response(response);
	return result == MHD_YES ? 0 : -EIO;
}

static void web_request_release_body(void *body)
{
	body_unref(body);
}

/* Whether the client has it already; then only that is sent. */
static bool web_request_is_known(struct web_request *web_request)
{
	if (web_request->problem || !*web_request->tag ||
	    !accept_header_has_tag(web_request_header(web_request, MHD_HTTP_HEADER_IF_NONE_MATCH),
				   web_request->tag))
		return false;
	web_request->status = MHD_HTTP_NOT_MODIFIED;
	web_request->packed = false;
	return true;
}

/* Sends what was generated. */
int web_request_answer(struct web_request *web_request)
{
	struct body *body = web_request->body;
	struct MHD_Response *response;

	if (!body)
		return -EIO;
	if (web_request_is_known(web_request))
		body->length = 0;
	response = MHD_create_response_from_buffer_with_free_callback_cls(
		body->length, body->text ? body->text : (char[]){""}, web_request_release_body,
		body);
	if (!response)
		return -EIO;
	web_request->body = NULL; /* owned by the response */
	return web_request_queue(web_request, response, CONNECTION_LIMITS_READING);
}

/* Sends a built-in file, or "not modified". */
int web_request_show(struct web_request *web_request)
{
	const struct asset *asset = web_request->asset;
	struct MHD_Response *response;
	struct MHD_IoVec file; /* the only way to send const bytes */
	bool known;

	(void)snprintf(web_request->tag, sizeof(web_request->tag), "%s", asset->etag); /* fits */
	web_request->status = MHD_HTTP_OK;
	web_request->packed = accept_header_takes_gzip(
		web_request_header(web_request, MHD_HTTP_HEADER_ACCEPT_ENCODING));
	known = web_request_is_known(web_request);
	file = (struct MHD_IoVec){
		.iov_base = web_request->packed ? asset->packed : asset->plain,
		.iov_len = web_request->packed ? asset->packed_size : asset->plain_size,
	};
	response = MHD_create_response_from_iovec(&file, known ? 0 : 1, NULL, NULL);
	return response ? web_request_queue(web_request, response, CONNECTION_LIMITS_READING)
			: -EIO;
}
