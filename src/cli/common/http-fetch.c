/* SPDX-License-Identifier: Apache-2.0 */

/* Concurrent HTTP requests with libcurl. */

#include "cli/common/http-fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"

#define HTTP_FETCH_WAIT_MS 200

void http_fetch_deinit(struct http_fetch *fetch)
{
	free(fetch->url);
	free(fetch->text);
	fetch->url = fetch->text = NULL;
}

static size_t http_fetch_take(char *bytes, size_t size, size_t count, void *context)
{
	struct http_fetch *fetch = context;
	size_t more = size * count;
	char *text;

	if (more > fetch->most - fetch->length)
		return 0;
	text = realloc(fetch->text, fetch->length + more + 1);
	if (!text)
		return 0;
	memcpy(text + fetch->length, bytes, more);
	fetch->text = text;
	fetch->length += more;
	text[fetch->length] = '\0';
	return more;
}

static CURL *http_fetch_begin(CURLM *all, struct http_fetch *fetch, size_t most)
{
	CURL *one = curl_easy_init();

	if (!one)
		return NULL;
	fetch->most = most;
	/* Each fails only for an option that the library does not know, and ours is new enough. */
	(void)curl_easy_setopt(one, CURLOPT_URL, fetch->url);
	(void)curl_easy_setopt(one, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(one, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(one, CURLOPT_TIMEOUT, HTTP_FETCH_SECONDS);
	(void)curl_easy_setopt(one, CURLOPT_WRITEFUNCTION, http_fetch_take);
	(void)curl_easy_setopt(one, CURLOPT_WRITEDATA, fetch);
	(void)curl_easy_setopt(one, CURLOPT_PRIVATE, fetch);
	if (fetch->token) {
		(void)curl_easy_setopt(one, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		(void)curl_easy_setopt(one, CURLOPT_XOAUTH2_BEARER, fetch->token);
	}
	if (curl_multi_add_handle(all, one) == CURLM_OK)
		return one;
	curl_easy_cleanup(one);
	return NULL;
}

/* Common failures, in more specific words than the library's. */
static void http_fetch_explain(CURL *one, CURLcode result, struct http_fetch *fetch)
{
	const char *why = curl_easy_strerror(result);
	long error = 0;

	(void)curl_easy_getinfo(one, CURLINFO_OS_ERRNO, &error); /* 0: none */
	if (result == CURLE_OPERATION_TIMEDOUT) {
		snprintf(fetch->problem, sizeof(fetch->problem), "no answer within %ld seconds",
			 HTTP_FETCH_SECONDS);
		return;
	}
	if (result == CURLE_WRITE_ERROR)
		why = "its answer is too long";
	else if (result == CURLE_URL_MALFORMAT)
		why = "this is no address, or its port is no number up to 65535";
	else if (result == CURLE_COULDNT_RESOLVE_HOST)
		why = "no such host";
	else if (result == CURLE_COULDNT_CONNECT && error == ECONNREFUSED)
		why = "connection refused";
	else if (result == CURLE_COULDNT_CONNECT && error > 0 && strerrordesc_np((int)error))
		why = strerrordesc_np((int)error);
	snprintf(fetch->problem, sizeof(fetch->problem), "%s", why);
}

/* A finished transfer: keeps its answer, or records why it failed. */
static void http_fetch_conclude(CURL *one, CURLcode result)
{
	struct http_fetch *fetch = NULL;
	long status = 0;

	(void)curl_easy_getinfo(one, CURLINFO_PRIVATE, (char **)&fetch); /* was set above */
	(void)curl_easy_getinfo(one, CURLINFO_RESPONSE_CODE, &status);   /* 0: no response */
	if (result == CURLE_OK && status == 200 && fetch->text)
		return;
	if (result != CURLE_OK)
		http_fetch_explain(one, result, fetch);
	else if (status == 421)
		snprintf(fetch->problem, sizeof(fetch->problem),
			 "it does not know itself by this name: set http-host there");
	else
		snprintf(fetch->problem, sizeof(fetch->problem), "it answers %ld", status);
	free(fetch->text);
	fetch->text = NULL;
}

static void http_fetch_run(CURLM *all)
{
	int running = 0, left;
	CURLMsg *message;

	do {
		if (curl_multi_perform(all, &running) != CURLM_OK)
			return;
		while ((message = curl_multi_info_read(all, &left))) {
			if (message->msg == CURLMSG_DONE)
				http_fetch_conclude(message->easy_handle, message->data.result);
		}
	} while (running > 0 &&
		 curl_multi_poll(all, NULL, 0, HTTP_FETCH_WAIT_MS, NULL) == CURLM_OK);
}

int http_fetch_all(struct http_fetch *fetches, size_t count)
{
	CLEANUP_FREE CURL **ones = calloc(count, sizeof(CURL *));
	CURLM *all = NULL;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		all = curl_multi_init();
	if (!ones || !all)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		ones[i] = http_fetch_begin(
			all, &fetches[i],
			bits_min(HTTP_FETCH_TEXT_MAX, HTTP_FETCH_TEXTS_MAX / count));
		if (!ones[i])
			strcpy(fetches[i].problem, "there is no memory to ask it");
	}
	http_fetch_run(all);
	for (size_t i = 0; i < count; i++) {
		if (!ones[i])
			continue;
		(void)curl_multi_remove_handle(all, ones[i]); /* was added */
		curl_easy_cleanup(ones[i]);
	}
	(void)curl_multi_cleanup(all); /* already empty */
	return 0;
}
