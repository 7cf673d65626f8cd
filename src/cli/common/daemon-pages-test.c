/* SPDX-License-Identifier: Apache-2.0 */

/* Merging the pages of a fake daemon. */

#include "cli/common/daemon-pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answers/ended.h"
#include "base/testing/unit.h"
#include "source/daemon-client/daemon-client.h"
#include "source/daemon-client/testing/daemon-client-testing.h"

static const struct daemon_pages_query leaks = {.answer = &answers[ANSWERS_LEAKS]};

static void serve_document(int fd, const char *document)
{
	char text[1000];

	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(document), document);
	daemon_client_testing_send(fd, text);
}

/* Three pages, selected by their cursors. */
static void serve_pages(int fd, const void *packet, size_t length)
{
	if (memmem(packet, length, "cursor=a-1", 10))
		serve_document(fd,
			       "{\"time_ns\":2,\"processes\":[],\"next\":\"a-2\",\"notes\":[]}");
	else if (memmem(packet, length, "cursor=a-2", 10))
		serve_document(fd, "{\"time_ns\":3,\"processes\":[{\"pid\":3}],\"next\":null,"
				   "\"notes\":[\"last\"]}");
	else
		serve_document(fd, "{\"time_ns\":1794787931175428897,\"processes\":[{\"pid\":1},"
				   "{\"pid\":2}],\"next\":\"a-1\",\"notes\":[]}");
}

/* A process whose list of buffers goes on on the second and the third page. */
static void serve_long_list(int fd, const void *packet, size_t length)
{
	if (memmem(packet, length, "cursor=a-1", 10))
		serve_document(fd, "{\"processes\":[{\"pid\":1,\"offset\":2,\"sites\":[],"
				   "\"buffers\":[{\"a\":3}]}],\"exact\":true,\"next\":\"a-2\","
				   "\"notes\":[]}");
	else if (memmem(packet, length, "cursor=a-2", 10))
		serve_document(fd, "{\"processes\":[{\"pid\":1,\"offset\":3,\"sites\":[],"
				   "\"buffers\":[{\"a\":4}]},{\"pid\":2,\"buffers\":[]}],"
				   "\"exact\":true,\"next\":null,\"notes\":[]}");
	else
		serve_document(fd, "{\"processes\":[{\"pid\":0,\"buffers\":[{\"a\":0}]},"
				   "{\"pid\":1,\"buffers\":[{\"a\":1},{\"a\":2}],"
				   "\"sites\":[7]}],\"exact\":true,\"next\":\"a-1\","
				   "\"notes\":[]}");
}

/* A daemon that does not know the parameter. */
static void serve_older(int fd, const void *packet, size_t length)
{
	if (memmem(packet, length, "buffers=0", 9))
		daemon_client_testing_send(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n"
					       "\r\nno");
	else
		serve_pages(fd, packet, length);
}

static int document(daemon_client_testing_fn *serve, char **ret_text)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve);
	struct daemon_client *remote;
	size_t length;
	FILE *out = open_memstream(ret_text, &length);
	bool is_begun;
	int r;

	assert(out && daemon_client_new(&remote) == 0);
	r = daemon_pages_document(remote, &leaks, out, &is_begun);
	assert(fclose(out) == 0 && is_begun == (length > 0));
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
	return r;
}

UNIT(a_list_that_goes_on_on_the_next_page_is_one_list)
{
	char *text;

	assert(document(serve_long_list, &text) == 0);
	assert(strcmp(text, "{\"processes\":[{\"pid\":0,\"buffers\":[{\"a\":0}]},"
			    "{\"pid\":1,\"sites\":[7],\"buffers\":[{\"a\":1},{\"a\":2},{\"a\":3},"
			    "{\"a\":4}]},{\"pid\":2,\"buffers\":[]}],\"exact\":true,\"next\":null,"
			    "\"notes\":[]}\n") == 0);
	free(text);
}

UNIT(pages_become_one_document)
{
	char *text;

	assert(document(serve_pages, &text) == 0);
	assert(strcmp(text,
		      "{\"time_ns\":1794787931175428897,\"processes\":[{\"pid\":1},{\"pid\":2},"
		      "{\"pid\":3}],\"next\":null,\"notes\":[\"last\"]}\n") == 0);
	free(text);
}

/* Only the first of two pages is not exact. */
static void serve_inexact(int fd, const void *packet, size_t length)
{
	if (memmem(packet, length, "cursor=", 7))
		serve_document(fd, "{\"processes\":[],\"exact\":true,\"next\":null,"
				   "\"notes\":[\"both\",\"second\"]}");
	else
		serve_document(fd, "{\"processes\":[],\"exact\":false,\"next\":\"b\","
				   "\"notes\":[\"first\",\"both\"]}");
}

UNIT(exactness_and_notes_of_all_pages_are_kept)
{
	char *text;

	assert(document(serve_inexact, &text) == 0);
	assert(strcmp(text, "{\"processes\":[],\"exact\":false,\"next\":null,"
			    "\"notes\":[\"first\",\"both\",\"second\"]}\n") == 0);
	free(text);
}

/* More than jansson's integers hold; nothing is lost of it. */
static void serve_one(int fd, const void *packet, size_t length)
{
	serve_document(fd, "{\"processes\": [{\"bytes\":18446744073709551615}], \"next\":null}\n");
}

UNIT(a_single_page_is_passed_on_as_it_is)
{
	char *text;

	assert(document(serve_one, &text) == 0);
	assert(strcmp(text,
		      "{\"processes\": [{\"bytes\":18446744073709551615}], \"next\":null}\n") == 0);
	free(text);
}

static void serve_cut(int fd, const void *packet, size_t length)
{
	if (memmem(packet, length, "cursor=", 7))
		daemon_client_testing_send(fd, "HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno");
	else
		serve_pages(fd, packet, length);
}

UNIT(a_document_whose_later_page_fails_is_whole_and_says_where_it_ends)
{
	json_t *json;
	char *text;

	assert(document(serve_cut, &text) == DAEMON_CLIENT_REFUSED);
	json = json_loads(text, 0, NULL);
	assert(json_array_size(json_object_get(json, "processes")) == 2);
	assert(strcmp(json_string_value(json_object_get(json, "next")), "a-1") == 0);
	json_decref(json);
	free(text);
}

static void serve_for_ever(int fd, const void *packet, size_t length)
{
	serve_document(fd, "{\"processes\":[{\"pid\":1}],\"next\":\"again\"}");
}

UNIT(pages_that_lead_nowhere_end)
{
	json_t *json;
	char *text;

	assert(document(serve_for_ever, &text) == 0);
	json = json_loads(text, 0, NULL);
	assert(json_array_size(json_object_get(json, "processes")) == 2);
	json_decref(json);
	free(text);
}

static void serve_injection(int fd, const void *packet, size_t length)
{
	assert(!memmem(packet, length, "evil", 4));
	serve_document(fd, "{\"processes\":[],\"next\":\"1&evil=1\"}");
}

static void serve_no_list(int fd, const void *packet, size_t length)
{
	serve_document(fd, "{\"processes\":{},\"next\":null}");
}

static void serve_no_json(int fd, const void *packet, size_t length)
{
	serve_document(fd, "{\"processes\":[");
}

static int add_pid(void *context, const void *row)
{
	*(uint64_t *)context += ((const struct leaks_row *)row)->ended.pid;
	return 0;
}

UNIT(what_is_no_page_is_refused_and_told)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_no_json);
	struct daemon_client *remote;
	uint64_t sum = 0;
	char *text;

	assert(daemon_client_new(&remote) == 0);
	assert(daemon_pages_each(remote, &leaks, add_pid, &sum, NULL) == DAEMON_CLIENT_GARBAGE);
	assert(strstr(daemon_client_reason(remote), "cannot be understood"));
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
	assert(document(serve_no_list, &text) == DAEMON_CLIENT_GARBAGE && *text == '\0');
	free(text);
	assert(document(serve_no_json, &text) == DAEMON_CLIENT_GARBAGE && *text == '\0');
	free(text);
	assert(document(serve_injection, &text) == 0);
	free(text);
}

UNIT(rows_of_all_pages_are_handed_over)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_pages);
	struct daemon_client *remote;
	uint64_t sum = 0;

	assert(daemon_client_new(&remote) == 0);
	assert(daemon_pages_each(remote, &leaks, add_pid, &sum, NULL) == 0 && sum == 6);
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
}

UNIT(an_older_daemon_is_asked_for_everything)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve_older);
	struct daemon_pages_query query = leaks;
	struct daemon_client *remote;
	uint64_t sum = 0;

	query.query.given = QUERY_BUFFERS;
	assert(daemon_client_new(&remote) == 0);
	assert(daemon_pages_each(remote, &query, add_pid, &sum, NULL) == 0 && sum == 6);
	daemon_client_free(remote);
	daemon_client_testing_stop(&server);
}
