/* SPDX-License-Identifier: Apache-2.0 */

/* One POST at a time, by libcurl: it knows TLS, proxies and names, which nobody should write again. */

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "web/push-inside.h"

#define PUSH_CONNECT_MS 5000L
#define PUSH_TOTAL_MS 10000L
#define PUSH_URL_MAX 2048u
#define PUSH_ANSWER_MAX (1u << 20) /* of which nothing is kept */

struct push_post {
	CURL *curl;
	struct curl_slist *headers;
	char url[PUSH_URL_MAX];
	size_t answered; /* bytes of this answer */
	int stopped;     /* atomic */
};

static pthread_once_t push_once = PTHREAD_ONCE_INIT;
static CURLcode push_global;

static void push_open_library(void)
{
	push_global = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* A collector that never stops talking is cut off. */
static size_t push_take_answer(char *bytes, size_t size, size_t count, void *context)
{
	struct push_post *post = context;

	(void)bytes;
	post->answered += size * count;
	return post->answered > PUSH_ANSWER_MAX ? 0 : size * count;
}

static int push_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t upload,
			 curl_off_t uploaded)
{
	const struct push_post *post = context;

	(void)total;
	(void)now;
	(void)upload;
	(void)uploaded;
	return __atomic_load_n(&post->stopped, __ATOMIC_RELAXED);
}

static int push_add_header(struct push_post *post, const char *line)
{
	struct curl_slist *more = curl_slist_append(post->headers, line);

	if (!more)
		return -ENOMEM;
	post->headers = more;
	return 0;
}

/* "name=value,name=value" becomes headers. */
static int push_add_headers(struct push_post *post, const char *list, const char **ret_problem)
{
	CLEANUP_FREE char *copy = list ? strdup(list) : NULL;
	char *rest = copy;
	const char *word;
	int r = list && !copy ? -ENOMEM : push_add_header(post, "Content-Type: application/json");

	while (r == 0 && rest && (word = strsep(&rest, ","))) {
		const char *equals = strchr(word, '=');
		char line[4096];

		if (!*word)
			continue;
		if (!equals || equals == word || strlen(word) + 2 > sizeof(line)) {
			*ret_problem = "OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value";
			return -EINVAL;
		}
		snprintf(line, sizeof(line), "%.*s: %s", (int)(equals - word), word, equals + 1);
		r = push_add_header(post, line);
	}
	return r;
}

static void push_set_options(struct push_post *post)
{
	CURL *curl = post->curl;

	/* Each fails only for an option that the library does not know, and it is new enough. */
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, PUSH_CONNECT_MS);
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, PUSH_TOTAL_MS);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, post->headers);
	(void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "ttmemd");
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, push_take_answer);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, post);
	(void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	(void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, push_progress);
	(void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, post);
}

int push_post_new(struct push_post **ret_post, const char *url, const char *headers,
		  const char **ret_problem)
{
	struct push_post *post = calloc(1, sizeof(*post));
	int r = post ? 0 : -ENOMEM;

	(void)pthread_once(&push_once, push_open_library); /* fails only for a bad argument */
	if (r == 0 && push_global != CURLE_OK)
		r = -EIO;
	if (r == 0) {
		snprintf(post->url, sizeof(post->url), "%s", url);
		post->curl = curl_easy_init();
		r = post->curl ? push_add_headers(post, headers, ret_problem) : -ENOMEM;
	}
	if (r < 0) {
		push_post_free(post);
		return r;
	}
	push_set_options(post);
	*ret_post = post;
	return 0;
}

struct push_post *push_post_free(struct push_post *post)
{
	if (!post)
		return NULL;
	if (post->curl)
		curl_easy_cleanup(post->curl);
	curl_slist_free_all(post->headers);
	free(post);
	return NULL;
}

void push_post_stop(struct push_post *post)
{
	__atomic_store_n(&post->stopped, 1, __ATOMIC_RELAXED);
}

/* What the standard says may be tried again. */
static bool push_is_patience(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

enum push_outcome push_post_send(struct push_post *post, const char *path, const char *text,
				 size_t length)
{
	size_t end = strlen(post->url);
	char url[PUSH_URL_MAX + 32];
	long status = 0;

	while (end > 0 && post->url[end - 1] == '/')
		end--;
	snprintf(url, sizeof(url), "%.*s%s", (int)end, post->url, path);
	post->answered = 0;
	(void)curl_easy_setopt(post->curl, CURLOPT_URL, url); /* out of memory: the old one fails */
	(void)curl_easy_setopt(post->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
	(void)curl_easy_setopt(post->curl, CURLOPT_POSTFIELDS, text);
	if (curl_easy_perform(post->curl) != CURLE_OK)
		return PUSH_AWAY;
	(void)curl_easy_getinfo(post->curl, CURLINFO_RESPONSE_CODE, &status); /* 0: refused */
	if (status >= 200 && status < 300)
		return PUSH_TAKEN;
	return push_is_patience(status) ? PUSH_AWAY : PUSH_REFUSED;
}
