/* SPDX-License-Identifier: Apache-2.0 */

/* One POST at a time, by libcurl, which handles TLS, proxies and name resolution. */

/* CURLOPT_PROTOCOLS is deprecated, but its successor is newer than Ubuntu 22.04's library, which would refuse it. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "web/export/push-private.h"
#include "web/export/push.h"

#define PUSH_CONNECT_MS 5000L
#define PUSH_TOTAL_MS 10000L
#define PUSH_URL_MAX 2048u
#define PUSH_HEADER_MAX 4096u

struct push_post {
	CURL *curl;
	struct curl_slist *headers;
	char url[PUSH_URL_MAX];
	char answer[PUSH_ANSWER_MAX];
	size_t answered; /* bytes of this answer so far */
	char problem[CURL_ERROR_SIZE];
	uint64_t until_ns; /* atomic: nothing is sent after this; UINT64_MAX = not stopping */
};

static pthread_once_t push_once = PTHREAD_ONCE_INIT;
static CURLcode push_global;

static void push_open_library(void)
{
	push_global = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* A collector that never stops sending is cut off; its status, which came first, counts. */
static size_t push_take_answer(char *bytes, size_t size, size_t count, void *context)
{
	struct push_post *post = context;
	size_t more = size * count;

	if (more > sizeof(post->answer) - post->answered)
		return 0;
	memcpy(post->answer + post->answered, bytes, more);
	post->answered += more;
	return more;
}

static bool push_is_stopped(const struct push_post *post)
{
	return clock_ns(CLOCK_MONOTONIC) >= __atomic_load_n(&post->until_ns, __ATOMIC_RELAXED);
}

/* Called at least once a second. */
static int push_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t upload,
			 curl_off_t uploaded)
{
	(void)total;
	(void)now;
	(void)upload;
	(void)uploaded;
	return push_is_stopped(context);
}

static int push_add_header(struct push_post *post, const char *line)
{
	struct curl_slist *more = curl_slist_append(post->headers, line);

	if (!more)
		return -ENOMEM;
	post->headers = more;
	return 0;
}

static int push_add_headers(struct push_post *post, const char *list, const char **ret_problem)
{
	CLEANUP_FREE char *copy = list ? strdup(list) : NULL;
	char *rest = copy;
	const char *name, *value;
	int r = list && !copy ? -ENOMEM : push_add_header(post, "Content-Type: application/json");

	/*
	 * Otherwise curl waits a second before a long message for a "100 Continue" that many
	 * collectors never send.
	 */
	if (r == 0)
		r = push_add_header(post, "Expect:");
	while (r == 0 && rest && (r = push_pairs_next(&rest, &name, &value)) > 0) {
		char line[PUSH_HEADER_MAX];

		r = (size_t)snprintf(line, sizeof(line), "%s: %s", name, value) < sizeof(line)
			    ? push_add_header(post, line)
			    : -EINVAL;
	}
	if (r == -EINVAL)
		*ret_problem = "OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value";
	return r;
}

/* Checked at the start: otherwise no push would ever succeed, and nobody would know why. */
static int push_set_file(struct push_post *post, CURLoption option, const char *path)
{
	if (!path || !*path)
		return 0;
	if (access(path, R_OK) < 0)
		return -errno;
	return curl_easy_setopt(post->curl, option, path) == CURLE_OK ? 0 : -ENOMEM;
}

static int push_set_files(struct push_post *post, const struct push_config *config,
			  const char **ret_problem)
{
	int r = push_set_file(post, CURLOPT_CAINFO, config->ca_file);

	if (r == 0)
		r = push_set_file(post, CURLOPT_SSLCERT, config->client_file);
	if (r == 0)
		r = push_set_file(post, CURLOPT_SSLKEY, config->key_file);
	if (r < 0 && r != -ENOMEM)
		*ret_problem = "a file of OTEL_EXPORTER_OTLP_*CERTIFICATE or _KEY, or "
			       "SSL_CERT_FILE, cannot be read";
	return r;
}

static void push_set_options(struct push_post *post)
{
	CURL *curl = post->curl;

	/* These fail only for unknown options, and the library is new enough. */
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	(void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, PUSH_CONNECT_MS);
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, PUSH_TOTAL_MS);
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, post->headers);
	(void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "ttmemd");
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, push_take_answer);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, post);
	(void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, post->problem);
	(void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	(void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, push_progress);
	(void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, post);
}

int push_post_new(struct push_post **ret_post, const struct push_config *config,
		  const char **ret_problem)
{
	struct push_post *post = calloc(1, sizeof(*post));
	int r = post ? 0 : -ENOMEM;

	(void)pthread_once(&push_once, push_open_library); /* fails only for a bad argument */
	if (r == 0 && push_global != CURLE_OK)
		r = -EIO;
	if (r == 0 && strlen(config->url) >= sizeof(post->url)) {
		*ret_problem = "the address is too long";
		r = -EINVAL;
	}
	if (r == 0) {
		post->until_ns = UINT64_MAX;
		snprintf(post->url, sizeof(post->url), "%s", config->url);
		post->curl = curl_easy_init();
		r = post->curl ? push_add_headers(post, config->headers, ret_problem) : -ENOMEM;
	}
	if (r == 0)
		r = push_set_files(post, config, ret_problem);
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

void push_post_stop(struct push_post *post, uint32_t ms)
{
	__atomic_store_n(&post->until_ns, clock_ns(CLOCK_MONOTONIC) + ms * NS_PER_MS,
			 __ATOMIC_RELAXED);
}

/* What the standard allows to be retried. */
static bool push_is_patience(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

/*
 * The status is the verdict on the message, even if the rest of the answer was too long or broke
 * off.
 */
static void push_judge(struct push_post *post, const char *path, CURLcode code,
		       struct push_result *ret_result)
{
	struct push_result result = {.outcome = PUSH_AWAY, .problem = post->problem};
	curl_off_t patience = 0;
	long status = 0;

	(void)curl_easy_getinfo(post->curl, CURLINFO_RESPONSE_CODE, &status); /* 0: no answer */
	(void)curl_easy_getinfo(post->curl, CURLINFO_RETRY_AFTER, &patience);
	if (status >= 200 && status < 300) {
		result.outcome = PUSH_TAKEN;
		result.answer = post->answer;
		result.answer_length = code == CURLE_OK ? post->answered : 0;
		result.problem = NULL;
	} else if (status >= 200) {
		result.outcome = push_is_patience(status) ? PUSH_AWAY : PUSH_REFUSED;
		snprintf(post->problem, sizeof(post->problem), "it answers %ld to %s", status,
			 path);
	} else if (!*post->problem) {
		snprintf(post->problem, sizeof(post->problem), "%s", curl_easy_strerror(code));
	}
	if (result.outcome == PUSH_AWAY && patience > 0)
		result.patience_s = (uint32_t)bits_min((uint64_t)patience, PUSH_PATIENCE_MAX_S);
	*ret_result = result;
}

void push_post_send(struct push_post *post, const char *path, const char *text, size_t length,
		    struct push_result *ret_result)
{
	size_t end = strlen(post->url);
	char url[PUSH_URL_MAX + 32];

	while (end > 0 && post->url[end - 1] == '/')
		end--;
	snprintf(url, sizeof(url), "%.*s%s", (int)end, post->url, path);
	post->answered = 0;
	*post->problem = '\0';
	if (push_is_stopped(post)) {
		*ret_result =
			(struct push_result){.outcome = PUSH_AWAY, .problem = "it is the end"};
		return;
	}
	(void)curl_easy_setopt(post->curl, CURLOPT_URL, url); /* out of memory: the old one fails */
	(void)curl_easy_setopt(post->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
	(void)curl_easy_setopt(post->curl, CURLOPT_POSTFIELDS, text);
	push_judge(post, path, curl_easy_perform(post->curl), ret_result);
}
