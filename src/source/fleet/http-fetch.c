/* SPDX-License-Identifier: Apache-2.0 */

/* Concurrent HTTP requests with libcurl, which is loaded for the first of them. */

#include "source/fleet/http-fetch.h"

/* CURLOPT_PROTOCOLS is deprecated, but its successor is newer than Ubuntu 22.04's library, which would refuse it. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/process/late-library.h"

#define HTTP_FETCH_WAIT_MS 200

/* The library under the names that distributions give it. */
static const char *const http_fetch_libraries[] = {"libcurl-gnutls.so.4", "libcurl.so.4"};

#define HTTP_FETCH_CALLS(X) \
	X(easy_cleanup)     \
	X(easy_getinfo)     \
	X(easy_init)        \
	X(easy_setopt)      \
	X(easy_strerror)    \
	X(global_init)      \
	X(multi_add_handle) \
	X(multi_cleanup)    \
	X(multi_info_read)  \
	X(multi_init)       \
	X(multi_perform)    \
	X(multi_poll)       \
	X(multi_remove_handle)

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define HTTP_FETCH_MEMBER(name) __typeof__(curl_##name) *name;
static struct {
	HTTP_FETCH_CALLS(HTTP_FETCH_MEMBER)
} http_fetch_curl;

static bool http_fetch_load(void)
{
	static bool is_loaded;

	if (is_loaded)
		return true;
	void *library = late_library_open(http_fetch_libraries, ARRAY_SIZE(http_fetch_libraries));

	if (!library)
		return false;
#define HTTP_FETCH_LOOK_UP(name)                                        \
	http_fetch_curl.name = LATE_LIBRARY_CALL(library, curl_##name); \
	if (!http_fetch_curl.name)                                      \
		return false;
	HTTP_FETCH_CALLS(HTTP_FETCH_LOOK_UP)
	is_loaded = http_fetch_curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
	return is_loaded;
}

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
	CURL *one = http_fetch_curl.easy_init();

	if (!one)
		return NULL;
	fetch->most = most;
	/* Each fails only for an option that the library does not know, and ours is new enough. */
	(void)http_fetch_curl.easy_setopt(one, CURLOPT_URL, fetch->url);
	(void)http_fetch_curl.easy_setopt(one, CURLOPT_NOSIGNAL, 1L);
	(void)http_fetch_curl.easy_setopt(one, CURLOPT_PROTOCOLS,
					  (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	(void)http_fetch_curl.easy_setopt(one, CURLOPT_TIMEOUT, HTTP_FETCH_SECONDS);
	(void)http_fetch_curl.easy_setopt(one, CURLOPT_WRITEFUNCTION, http_fetch_take);
	(void)http_fetch_curl.easy_setopt(one, CURLOPT_WRITEDATA, fetch);
	(void)http_fetch_curl.easy_setopt(one, CURLOPT_PRIVATE, fetch);
	if (fetch->token) {
		(void)http_fetch_curl.easy_setopt(one, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		(void)http_fetch_curl.easy_setopt(one, CURLOPT_XOAUTH2_BEARER, fetch->token);
	}
	if (http_fetch_curl.multi_add_handle(all, one) == CURLM_OK)
		return one;
	http_fetch_curl.easy_cleanup(one);
	return NULL;
}

/* Common failures, in more specific words than the library's. */
static void http_fetch_explain(CURL *one, CURLcode result, struct http_fetch *fetch)
{
	const char *why = http_fetch_curl.easy_strerror(result);
	long error = 0;

	(void)http_fetch_curl.easy_getinfo(one, CURLINFO_OS_ERRNO, &error); /* 0: none */
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

	(void)http_fetch_curl.easy_getinfo(one, CURLINFO_PRIVATE,
					   (char **)&fetch); /* was set above */
	(void)http_fetch_curl.easy_getinfo(one, CURLINFO_RESPONSE_CODE,
					   &status); /* 0: no response */
	fetch->is_done = true;
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

static void http_fetch_run(CURLM *all, const bool *stop)
{
	int running = 0, left;
	CURLMsg *message;

	do {
		if (http_fetch_curl.multi_perform(all, &running) != CURLM_OK)
			return;
		while ((message = http_fetch_curl.multi_info_read(all, &left))) {
			if (message->msg == CURLMSG_DONE)
				http_fetch_conclude(message->easy_handle, message->data.result);
		}
	} while (running > 0 && !(stop && __atomic_load_n(stop, __ATOMIC_RELAXED)) &&
		 http_fetch_curl.multi_poll(all, NULL, 0, HTTP_FETCH_WAIT_MS, NULL) == CURLM_OK);
}

/* One that was interrupted has neither an answer nor a problem yet. */
static void http_fetch_end(CURLM *all, CURL *one, struct http_fetch *fetch)
{
	if (!fetch->is_done) {
		strcpy(fetch->problem, "it was not asked to the end");
		free(fetch->text);
		fetch->text = NULL;
	}
	(void)http_fetch_curl.multi_remove_handle(all, one); /* was added */
	http_fetch_curl.easy_cleanup(one);
}

int http_fetch_all(struct http_fetch *fetches, size_t count, const struct http_fetch_limits *limits)
{
	CLEANUP_FREE CURL **ones = calloc(count, sizeof(CURL *));
	CURLM *all = NULL;

	if (!http_fetch_load()) {
		for (size_t i = 0; i < count; i++)
			strcpy(fetches[i].problem, "libcurl is not installed");
		return 0;
	}
	all = http_fetch_curl.multi_init();
	if (!ones || !all)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		ones[i] = http_fetch_begin(all, &fetches[i],
					   bits_min(limits->text_max, limits->texts_max / count));
		if (!ones[i])
			strcpy(fetches[i].problem, "there is no memory to ask it");
	}
	http_fetch_run(all, limits->stop);
	for (size_t i = 0; i < count; i++) {
		if (ones[i])
			http_fetch_end(all, ones[i], &fetches[i]);
	}
	(void)http_fetch_curl.multi_cleanup(all); /* already empty */
	return 0;
}
