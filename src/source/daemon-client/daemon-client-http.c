/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Documents over HTTP. A request is one packet; the bytes of the response come in packets split at
 * any point. A daemon from before HTTP takes a request for garbage and hangs up, as does one that
 * stops, or whose user has too many connections; a request that only the older one answers tells
 * them apart.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/query.h"
#include "source/daemon-client/daemon-client-private.h"
#include "wire/http-request.h"
#include "wire/http-response.h"

#define DAEMON_CLIENT_OK 200u
#define DAEMON_CLIENT_NOT_FOUND 404u

/* What the daemon answers at once, from memory: whoever waits longer waits for one that hangs. */
static uint64_t daemon_client_patience(const char *path)
{
	bool is_quick = strcmp(path, "/api/v1/status") == 0 || strcmp(path, "/api/v1/cards") == 0;

	return is_quick ? DAEMON_CLIENT_PATIENCE_NS : DAEMON_CLIENT_PAST_PATIENCE_NS;
}

static int daemon_client_take_http(void *context, const void *bytes, size_t length, int fd)
{
	int r = http_response_feed(context, bytes, length);

	if (fd >= 0)
		(void)close(fd); /* none was asked for */
	if (r == HTTP_COMPLETE)
		return DAEMON_CLIENT_END;
	return r == -EBADMSG || r == -EMSGSIZE ? DAEMON_CLIENT_GARBAGE : r;
}

static int daemon_client_ignore(void *context, const void *payload, size_t length, int fd)
{
	if (fd >= 0)
		(void)close(fd); /* as above */
	return 0;
}

/*
 * The daemon hung up on a request: finds out why. DAEMON_CLIENT_OLDER; 0: it refuses what an older
 * one would answer, so it speaks HTTP; or another outcome or a negative errno.
 */
static int daemon_client_is_older(struct daemon_client *remote)
{
	struct native_request request;
	int r;

	native_request_init(&request, NATIVE_OLD_STATUS);
	r = daemon_client_talk(remote, &request, daemon_client_ignore, NULL);
	if (r == DAEMON_CLIENT_REFUSED && remote->fd >= 0)
		return 0;
	return r == 0 ? daemon_client_settle(remote, DAEMON_CLIENT_OLDER) : r;
}

/* A response that is not a document: its body is a text for people. */
static int daemon_client_refused(struct daemon_client *remote, const struct http_response *response)
{
	if (response->status == DAEMON_CLIENT_NOT_FOUND)
		return daemon_client_settle(remote, DAEMON_CLIENT_OLDER);
	(void)snprintf(remote->reason, sizeof(remote->reason), "ttmemd: %.*s",
		       (int)bits_min(response->body_length, 1024u),
		       response->body ? response->body : "");
	remote->outcome = DAEMON_CLIENT_REFUSED; /* but other requests may succeed */
	return DAEMON_CLIENT_REFUSED;
}

int daemon_client_reject(struct daemon_client *remote)
{
	return daemon_client_settle(remote, DAEMON_CLIENT_GARBAGE);
}

/* Writes the request. Its length, or a negative errno. */
static int daemon_client_request(const char *path, const struct query *query,
				 char ret_bytes[HTTP_REQUEST_MAX])
{
	char target[HTTP_REQUEST_MAX];
	FILE *out = fmemopen(target, sizeof(target), "w");

	if (!out)
		return -errno;
	fputs(path, out);
	if (query)
		query_write(query, out);
	return fclose(out) != 0 ? -errno : http_request_encode(target, ret_bytes);
}

int daemon_client_get(struct daemon_client *remote, const char *path, const struct query *query,
		      char **ret_text, size_t *ret_length)
{
	CLEANUP(http_response_deinit) struct http_response response;
	char bytes[HTTP_REQUEST_MAX];
	int length = daemon_client_request(path, query, bytes);
	const struct daemon_client_question question = {
		.bytes = bytes,
		.length = (size_t)length,
		.patience_ns = daemon_client_patience(path),
		.take = daemon_client_take_http,
		.context = &response,
	};
	int r;

	http_response_init(&response, DAEMON_CLIENT_TEXT_MAX);
	if (length < 0)
		return length;
	r = daemon_client_converse(remote, &question);
	if (r == -EPIPE) {
		r = daemon_client_is_older(remote);
		if (r == 0)
			r = daemon_client_converse(remote, &question);
	}
	if (r != 0)
		return r == -EPIPE ? DAEMON_CLIENT_REFUSED : r;
	if (response.status != DAEMON_CLIENT_OK)
		return daemon_client_refused(remote, &response);
	if (!response.body)
		response.body = strdup("");
	if (!response.body)
		return -ENOMEM;
	*ret_text = cleanup_steal(response.body);
	*ret_length = response.body_length;
	return 0;
}
