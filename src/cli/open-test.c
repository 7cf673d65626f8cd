/* SPDX-License-Identifier: Apache-2.0 */

/* Which page of the dashboard "ttmem open" chooses, and which links it believes, of the answers of a fake daemon. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "cli/common/command.h"
#include "cli/common/testing/testing-printed.h"
#include "source/daemon-client/testing/daemon-client-testing.h"

#define CODE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char *url = "http://127.0.0.1:5390/", *code = CODE;

static void serve(int fd, const void *packet, size_t length)
{
	static const char smi[] =
		"{\"devices\":[{\"device\":0,\"uid\":\"0xaa\"},{\"device\":1,\"uid\":null},"
		"{\"device\":7,\"uid\":\"0xbb\"}],\"processes\":[{\"pid\":5},{\"pid\":7}]}";
	char body[1024], text[2048];

	if (memmem(packet, length, "/smi", 4))
		(void)snprintf(body, sizeof(body), "%s", smi);
	else
		(void)snprintf(body, sizeof(body),
			       "{\"url\":\"%s\",\"code\":\"%s\",\"seconds\":60,\"session\":null}",
			       url, code);
	(void)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		       strlen(body), body);
	daemon_client_testing_send(fd, text);
}

struct call {
	char *place; /* NULL = none */
	int exit;
};

static void call(void *context)
{
	struct call *call = context;
	char name[] = "open", option[] = "--print", *argv[] = {name, option, call->place, NULL};

	call->exit = open_command.run(call->place ? 3 : 2, argv);
}

/* What is printed to that stream. */
static const char *print(int stream, const char *place, int exit)
{
	struct daemon_client_testing server = daemon_client_testing_here(serve);
	char words[64];
	struct call one = {.place = place ? words : NULL};
	const char *text;

	snprintf(words, sizeof(words), "%s", place ? place : "");
	text = testing_printed(stream, call, &one);
	daemon_client_testing_stop(&server);
	if (one.exit != exit)
		fprintf(stderr, "%s: %d, %s\n", words, one.exit, text);
	assert(one.exit == exit);
	return text;
}

UNIT(a_process_or_a_device_has_its_own_page)
{
	static const char *const pages[][2] = {
		{NULL, ""},
		{"5", "/process/5"},
		{"7", "/process/7"}, /* which is a device, too */
		{"0xaa", "/device/0xaa"},
		{"0xbb", "/device/0xbb"},
		{"0", "/device/0xaa"},
		{"1", "/device/1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		char link[256];

		snprintf(link, sizeof(link), "%s#/open/%s%s\n", url, code, pages[i][1]);
		assert(strcmp(print(STDOUT_FILENO, pages[i][0], COMMAND_OK), link) == 0);
	}
}

UNIT(what_is_not_there_has_no_page)
{
	static const char *const places[] = {"2", "6", "0xcc", "x"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char told[128];

		snprintf(told, sizeof(told),
			 "ttmem open: there is neither a process nor a device \"%s\"; see \"ttmem "
			 "smi\"\n",
			 places[i]);
		assert(strcmp(print(STDERR_FILENO, places[i], COMMAND_FAILED), told) == 0);
	}
}

UNIT(only_a_link_to_a_daemon_is_believed)
{
	static const char *const answers[][2] = {
		{"https://127.0.0.1:5390/", CODE},
		{"http://127.0.0.1:5390/;reboot", CODE},
		{"http://127.0.0.1:5390/", CODE "0"},
		{"http://127.0.0.1:5390/", "0123"},
		{"http://127.0.0.1:5390/",
		 "g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		url = answers[i][0];
		code = answers[i][1];
		assert(strcmp(print(STDERR_FILENO, NULL, COMMAND_FAILED),
			      "ttmem open: the answer of ttmemd makes no sense\n") == 0);
	}
}
