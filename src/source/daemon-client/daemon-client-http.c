/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Documents over HTTP. A request is one packet; the bytes of the response come in packets that are cut
 * anywhere. A daemon of a version before HTTP takes a request for garbage and hangs up, as one does whose
 * user has too many connections; which of the two it is, a question that the older one knows tells.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "source/daemon-client/daemon-client-private.h"
#include "wire/http-request.h"
#include "wire/http-response.h"

#define REMOTE_STATUS "/api/v1/status" /* is made at once: no patience is needed */
#define REMOTE_OK 200u
#define REMOTE_NOT_FOUND 404u

static int remote_take_http(void *context, const void *bytes, size_t length, int fd)
{
	int r = http_response_feed(context, bytes, length);

	if (fd >= 0)
		(void)close(fd); /* none was asked for */
	if (r == HTTP_COMPLETE)
		return REMOTE_END;
	return r == -EBADMSG || r == -EMSGSIZE ? REMOTE_GARBAGE : r;
}

static int remote_ignore(void *context, const void *payload, size_t length, int fd)
{
	if (fd >= 0)
		(void)close(fd); /* as above */
	return 0;
}

/* Somebody hung up on a request. */
static int remote_is_older(struct remote *remote)
{
	struct native_request request;
	int r;

	native_request_init(&request, NATIVE_OLD_STATUS);
	r = remote_talk(remote, &request, remote_ignore, NULL);
	return r == 0 ? remote_settle(remote, REMOTE_OLDER) : r;
}

/* A response that is no document: its body is a text for people. */
static int remote_refused(struct remote *remote, const struct http_response *response)
{
	if (response->status == REMOTE_NOT_FOUND)
		return remote_settle(remote, REMOTE_OLDER);
	(void)snprintf(remote->reason, sizeof(remote->reason), "ttmemd: %.*s",
		       (int)bits_min(response->body_length, 1024u),
		       response->body ? response->body : "");
	remote->outcome = REMOTE_REFUSED; /* and may be asked something else */
	return REMOTE_REFUSED;
}

int remote_reject(struct remote *remote)
{
	return remote_settle(remote, REMOTE_GARBAGE);
}

int remote_get(struct remote *remote, const char *target, char **ret_text, size_t *ret_length)
{
	CLEANUP(http_response_deinit) struct http_response response;
	char bytes[HTTP_REQUEST_MAX];
	int length = http_request_encode(target, bytes);
	const struct remote_question question = {
		.bytes = bytes,
		.length = (size_t)length,
		.patience_ns = strcmp(target, REMOTE_STATUS) == 0 ? REMOTE_PATIENCE_NS
								  : REMOTE_PAST_PATIENCE_NS,
		.take = remote_take_http,
		.context = &response,
	};
	int r;

	http_response_init(&response, REMOTE_TEXT_MAX);
	if (length < 0)
		return length;
	r = remote_converse(remote, &question);
	if (r == -EPIPE)
		return remote_is_older(remote);
	if (r != 0)
		return r;
	if (response.status != REMOTE_OK)
		return remote_refused(remote, &response);
	if (!response.body)
		response.body = strdup("");
	if (!response.body)
		return -ENOMEM;
	*ret_text = cleanup_steal(response.body);
	*ret_length = response.body_length;
	return 0;
}
